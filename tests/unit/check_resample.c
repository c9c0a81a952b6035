/* Redrawn traces: whole sessions of the recording, gaps of the recording, per class, in its window.
 */
#include "sim/api/request.h"
#include "sim/base/units.h"
#include "tests/helpers/suite.h"
#include "traces/traces.h"

#include <stdlib.h>

enum { SESSIONS = 40 };

/* Session s begins at the sum of 1 .. s + 1 s (gaps 1, 2, ... 40 s); it has 1 + s % 3 turns of
 * 100 s + turn input tokens, and is proactive when s is odd. */
static struct trace recording(void)
{
    struct trace_builder b;
    struct trace t;
    struct err e = ERR_INIT;
    trace_builder_init(&b);
    int64_t now_ns = 0;
    for (uint32_t s = 0; s < SESSIONS; s++) {
        now_ns += units_ns_from_s(s + 1.0);
        for (uint16_t turn = 0; turn < 1 + s % 3; turn++) {
            struct trace_row row = {.arrival_ns = turn == 0 ? now_ns : units_ns_from_s(5.0),
                                    .request_id = 10 * s + turn,
                                    .session_id = s,
                                    .input_tokens = 100 * s + turn + 1,
                                    .output_tokens = 7,
                                    .max_output_tokens = 256,
                                    .turn = turn,
                                    .cls = (uint8_t)(s % 2)};
            trace_builder_add(&b, &row, NULL);
        }
    }
    ck_assert_int_eq(trace_build(&b, true, "recording", &t, &e), 0);
    trace_builder_fini(&b);
    return t;
}

START_TEST(sessions_are_drawn_whole_and_gaps_are_those_of_their_class)
{
    struct trace from = recording();
    const int64_t window_ns = from.rows[from.n_first - 1].arrival_ns;
    for (uint64_t seed = 1; seed <= 50; seed++) {
        struct trace t;
        struct err e = ERR_INIT;
        ck_assert_int_eq(trace_resample(&from, seed, &t, &e), 0);
        int64_t last_ns[2] = {0, 0};
        for (size_t i = 0; i < t.n_first; i++) {
            const struct trace_row *r = &t.rows[i];
            ck_assert_int_le(r->arrival_ns, window_ns);
            /* Even sessions are 1 + 2 k s after the one before them in their class plus the gap of
             * the odd one between: a gap of a class is 4 k + 1 or 4 k + 3 s in whole seconds. */
            const int64_t gap_ns = r->arrival_ns - last_ns[r->cls];
            ck_assert_int_eq(gap_ns % units_ns_from_s(1.0), 0);
            ck_assert_int_gt(gap_ns, 0);
            last_ns[r->cls] = r->arrival_ns;
            const uint32_t session = (r->input_tokens - 1) / 100;
            ck_assert_int_eq(r->cls, (int)(session % 2));
            uint32_t turns = 0;
            for (uint32_t k = (uint32_t)i; k != TRACE_NO_ROW; k = t.rows[k].next) {
                ck_assert_uint_eq(t.rows[k].input_tokens, 100 * session + turns + 1);
                turns++;
            }
            ck_assert_uint_eq(turns, 1 + session % 3);
        }
        trace_fini(&t);
    }
    trace_fini(&from);
}
END_TEST

/* The number of sessions varies as the gaps do, around that of the recording; every session comes
 * up. */
START_TEST(redrawn_traces_have_the_recordings_rate_in_the_mean)
{
    struct trace from = recording();
    double n = 0.0;
    bool seen[SESSIONS] = {false};
    for (uint64_t seed = 1; seed <= 400; seed++) {
        struct trace t;
        struct err e = ERR_INIT;
        ck_assert_int_eq(trace_resample(&from, seed, &t, &e), 0);
        n += (double)t.n_first / 400.0;
        for (size_t i = 0; i < t.n_first; i++) {
            seen[(t.rows[i].input_tokens - 1) / 100] = true;
        }
        trace_fini(&t);
    }
    /* Even sessions have gaps 1, 5, ... 77 s (mean 39), odd ones 3, 7, ... 79 s (mean 41); the
     * window ends with the last start, at 820 s. A renewal process has window / mean + (CV^2 - 1) /
     * 2 events; CV is 0.59 and 0.56: 21.03 - 0.33 + 20 - 0.34 = 40.4. One count has a standard
     * deviation of sqrt(20.7 0.59^2 + 19.7 0.56^2) = 3.7, the mean of 400 of 0.18. */
    ck_assert_double_eq_tol(n, 40.4, 0.75);
    for (uint32_t s = 0; s < SESSIONS; s++) {
        ck_assert(seen[s]);
    }
    trace_fini(&from);
}
END_TEST

START_TEST(equal_seeds_redraw_the_same_trace)
{
    struct trace from = recording();
    struct trace a;
    struct trace b;
    struct trace c;
    struct err e = ERR_INIT;
    ck_assert_int_eq(trace_resample(&from, 3, &a, &e), 0);
    ck_assert_int_eq(trace_resample(&from, 3, &b, &e), 0);
    ck_assert_int_eq(trace_resample(&from, 4, &c, &e), 0);
    ck_assert(a.hash == b.hash);
    ck_assert(a.hash != c.hash);
    trace_fini(&a);
    trace_fini(&b);
    trace_fini(&c);
    trace_fini(&from);
}
END_TEST

static const struct suite_row suite[] = {
    TEST(sessions_are_drawn_whole_and_gaps_are_those_of_their_class),
    TEST(redrawn_traces_have_the_recordings_rate_in_the_mean),
    TEST(equal_seeds_redraw_the_same_trace),
};
SUITE_MAIN("resample", suite)
