/* Redrawn traces have whole sessions of the recording and gaps of the recording, per class, in its
 * window. */
#include "sim/api/request.h"
#include "sim/base/arena.h"
#include "sim/base/units.h"
#include "tests/helpers/suite.h"
#include "traces/traces.h"

#include <stdlib.h>
#include <string.h>

enum { SESSIONS = 40, JOBS = 12 };
static const char *const models[] = {"small", "middle", "large"};

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
        ck_assert_int_eq(trace_resample(&from, false, seed, &t, &e), 0);
        int64_t last_ns[2] = {0, 0};
        for (size_t i = 0; i < t.n_first; i++) {
            const struct trace_row *r = &t.rows[i];
            ck_assert_int_le(r->arrival_ns, window_ns);
            /* Even sessions come 1 + 2 k s after the one before them in their class, plus the gap
             * of the odd one between. So a gap of a class is 4 k + 1 or 4 k + 3 s in whole seconds.
             * The first start is the rest of one. */
            const int64_t gap_ns = r->arrival_ns - last_ns[r->cls];
            ck_assert(last_ns[r->cls] == 0 || gap_ns % units_ns_from_s(1.0) == 0);
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

/* A session that is its own client is so each time it is drawn, as where no row has a client; one
 * that a client (1000) sent is always his. */
START_TEST(clients_are_drawn_with_their_sessions)
{
    struct trace from = recording();
    OWNED struct trace_extra *extras = xcalloc(from.n, sizeof *extras);
    for (size_t i = 0; i < from.n; i++) {
        extras[i] = trace_extra_none();
        bool stated = from.rows[i].session_id % 4 == 3;
        extras[i].client_id = stated ? 1000 : from.rows[i].session_id;
    }
    from.extras = extras;
    struct trace t;
    struct err e = ERR_INIT;
    ck_assert_int_eq(trace_resample(&from, false, 3, &t, &e), 0);
    ck_assert_ptr_nonnull(t.extras);
    uint32_t others = 0;
    for (size_t i = 0; i < t.n; i++) {
        const struct trace_row *r = &t.rows[i];
        bool stated = r->input_tokens / 100 % 4 == 3;
        ck_assert_uint_eq(t.extras[i].client_id, stated ? 1000 : r->session_id);
        others += !stated && r->session_id != r->input_tokens / 100;
    }
    ck_assert_uint_gt(others, 0); /* or the old number would do */
    from.extras = NULL;
    trace_fini(&t);
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
        ck_assert_int_eq(trace_resample(&from, false, seed, &t, &e), 0);
        n += (double)t.n_first / 400.0;
        for (size_t i = 0; i < t.n_first; i++) {
            seen[(t.rows[i].input_tokens - 1) / 100] = true;
        }
        trace_fini(&t);
    }
    /* The window ends with the last start, at 820 s. Even sessions have gaps 5, 9, ... 77 s, and 1
     * + 820 - 780 s from the last to the first. Odd ones have 3, 7, ... 79 s: 820 s for 20 of each.
     * A renewal process that begins anywhere in it has window / mean gap = 20 events. One count has
     * a standard deviation of about sqrt(20 0.59^2 + 20 0.56^2) = 3.6, and the mean of 400 one of
     * 0.18. */
    ck_assert_double_eq_tol(n, 40.0, 0.75);
    for (uint32_t s = 0; s < SESSIONS; s++) {
        ck_assert(seen[s]);
    }
    trace_fini(&from);
}
END_TEST

/* Four sessions of a class begin in the first 40 s of an hour, which the other class fills. Gaps
 * are 10, 10, 10 s, and 3570 s to the end and the begin, so CV^2 is 2.93. A count has a standard
 * deviation of sqrt(4 2.93) = 3.4 or less, and the mean of 400 one of 0.17. With a last instant
 * they are clients of closed loops: four of them, when they began, and each stays as long as in the
 * recording. */
START_TEST(sessions_that_begin_together_do_not_fill_the_window)
{
    for (int closed = 0; closed <= 1; closed++) {
        struct trace_builder b;
        struct trace from;
        struct err e = ERR_INIT;
        trace_builder_init(&b);
        for (uint32_t s = 0; s < 64; s++) {
            struct trace_row row = {.arrival_ns =
                                        units_ns_from_s(s < 4 ? 10.0 * s + 10.0 : 60.0 * (s - 3)),
                                    .request_id = s,
                                    .session_id = s,
                                    .input_tokens = s + 1,
                                    .output_tokens = 7,
                                    .max_output_tokens = 256,
                                    .cls = s >= 4};
            struct trace_extra x = trace_extra_none();
            /* Each stays for its own time: an hour, and s minutes less. */
            int64_t stays_ns = units_ns_from_s(3600.0 - 60.0 * s);
            x.until_ns = closed && s < 4 ? row.arrival_ns + stays_ns : TIME_NEVER_NS;
            trace_builder_add(&b, &row, &x);
        }
        ck_assert_int_eq(trace_build(&b, true, "recording", &from, &e), 0);
        trace_builder_fini(&b);
        double n = 0.0;
        uint32_t drawn = 0; /* clients, a bit each */
        for (uint64_t seed = 1; seed <= 400; seed++) {
            struct trace t;
            ck_assert_int_eq(trace_resample(&from, false, seed, &t, &e), 0);
            uint32_t k = 0;
            for (size_t i = 0; i < t.n_first; i++) {
                n += t.rows[i].cls == 0 ? 1.0 / 400.0 : 0.0;
                if (closed && t.rows[i].cls == 0) {
                    ck_assert_int_eq(t.rows[i].arrival_ns, units_ns_from_s(10.0 * ++k));
                    drawn |= 1u << t.rows[i].input_tokens;
                    ck_assert_int_eq(t.extras[i].until_ns - t.rows[i].arrival_ns,
                                     units_ns_from_s(3600.0 - 60.0 * (t.rows[i].input_tokens - 1)));
                }
            }
            ck_assert_uint_eq(k, closed ? 4 : 0);
            trace_fini(&t);
        }
        ck_assert_double_eq_tol(n, 4.0, 0.7);
        ck_assert_uint_eq(drawn, closed ? 30 : 0);
        trace_fini(&from);
    }
}
END_TEST

START_TEST(equal_seeds_redraw_the_same_trace)
{
    struct trace from = recording();
    struct trace a;
    struct trace b;
    struct trace c;
    struct err e = ERR_INIT;
    ck_assert_int_eq(trace_resample(&from, false, 3, &a, &e), 0);
    ck_assert_int_eq(trace_resample(&from, false, 3, &b, &e), 0);
    ck_assert_int_eq(trace_resample(&from, false, 4, &c, &e), 0);
    ck_assert(a.hash == b.hash);
    ck_assert(a.hash != c.hash);
    trace_fini(&a);
    trace_fini(&b);
    trace_fini(&c);
    trace_fini(&from);
}
END_TEST

/* ---- jobs ---- */

/* Job k of 12 begins at k + 1, k + 2, ... s. It has request A, two subagents B and C that start 1 s
 * and k s after it, and a second turn D of A's session that waits for both. C begins like A's
 * prompt, and B with the text of group 3. C is in the background, and ends with D. Prompts identify
 * job and letter: 10 k + letter + 100. */
static struct trace jobs_recording(void)
{
    struct trace_builder b;
    struct trace t;
    struct err e = ERR_INIT;
    trace_builder_init(&b);
    int64_t now_ns = 0;
    for (uint32_t k = 0; k < JOBS; k++) {
        now_ns += units_ns_from_s(k + 1.0);
        for (uint32_t letter = 0; letter < 4; letter++) {
            bool d = letter == 3;
            uint32_t a = 1000 + 4 * k;
            struct trace_row row = {.arrival_ns = letter == 0   ? now_ns
                                                  : letter == 2 ? units_ns_from_s(k)
                                                                : units_ns_from_s(1.0),
                                    .request_id = a + letter,
                                    .session_id = 7 * k + (d ? 0 : letter),
                                    .input_tokens = 100 + 10 * k + letter,
                                    .output_tokens = 5,
                                    .max_output_tokens = 256,
                                    .turn = d ? 1 : 0,
                                    .cls = (uint8_t)(k % 2)};
            struct trace_extra x = trace_extra_none();
            struct trace_node node = trace_node_none();
            x.prefix_group = letter == 1 ? 3 : 0;
            node.prefix_of = letter == 2 ? a : UINT32_MAX;
            row.prefix_tokens = letter == 1 || letter == 2 ? 40 : 0;
            node.background = letter == 2;
            node.ends_with = letter == 2 ? a + 3 : UINT32_MAX;
            node.n_parents = letter == 0 ? 0 : 1;
            node.parents = &(struct trace_parent){d ? a + 1 : a, 0};
            node.model = trace_builder_model(&b, models[k % 3], "jobs", 1, NULL);
            trace_builder_add(&b, &row, &x);
            trace_builder_node(&b, &node);
        }
    }
    ck_assert_int_eq(trace_build(&b, false, "jobs", &t, &e), 0);
    trace_builder_fini(&b);
    return t;
}

/* A trace drawn or cut from the recording asks for the models that its jobs, by their number, ask
 * for.
 */
static void models_are_kept(const struct trace *t)
{
    for (uint32_t i = 0; i < t->n; i++) {
        const uint32_t k = (t->rows[i].input_tokens - 100) / 10;
        ck_assert_uint_gt(t->graph->model[i], 0);
        ck_assert_str_eq(t->graph->models[t->graph->model[i] - 1].name, models[k % 3]);
    }
}

/* The row of a job that is so far from its first one. */
static uint32_t child(const struct trace *t, uint32_t of, uint32_t letter)
{
    const struct trace_graph *g = t->graph;
    for (uint32_t k = g->first[of]; k < g->first[of + 1]; k++) {
        if ((t->rows[g->edges[k].row].input_tokens - 100) % 10 == letter) {
            return g->edges[k].row;
        }
    }
    return TRACE_NO_ROW;
}

START_TEST(jobs_are_drawn_whole_with_all_that_holds_them_together)
{
    struct trace from = jobs_recording();
    bool seen[JOBS] = {false};
    size_t n = 0;
    for (uint64_t seed = 1; seed <= 200; seed++) {
        struct trace t;
        struct err e = ERR_INIT;
        ck_assert_int_eq(trace_resample(&from, true, seed, &t, &e), 0);
        const struct trace_graph *g = t.graph;
        ck_assert_uint_eq(t.n, 4 * t.n_first);
        ck_assert_uint_eq(g->n_jobs, t.n_first);
        models_are_kept(&t);
        ck_assert_uint_eq(g->n_groups, 1); /* text 3 is one for all copies */
        n += t.n_first;
        for (uint32_t a = 0; a < t.n_first; a++) {
            uint32_t k = (t.rows[a].input_tokens - 100) / 10;
            uint32_t b = child(&t, a, 1);
            uint32_t c = child(&t, a, 2);
            uint32_t d = child(&t, a, 3);
            seen[k] = true;
            ck_assert(b != TRACE_NO_ROW && c != TRACE_NO_ROW && d != TRACE_NO_ROW);
            ck_assert_uint_eq(child(&t, b, 3), d); /* and waits for its own subagent */
            ck_assert_uint_eq(t.rows[a].next, d);
            ck_assert_uint_eq(t.rows[a].session_id, t.rows[d].session_id);
            ck_assert_uint_eq(g->n_parents[d], 2);
            ck_assert_uint_eq(g->source[c], a);
            ck_assert_uint_eq(g->source[b], t.n);
            ck_assert_uint_eq(g->ends_with[c], d);
            ck_assert(g->background[c] && !g->background[b]);
            ck_assert_int_eq(t.rows[c].arrival_ns, units_ns_from_s(k)); /* a gap, not moved */
            ck_assert_uint_eq(t.rows[b].input_tokens, 100 + 10 * k + 1);
        }
        trace_fini(&t);
    }
    for (uint32_t k = 0; k < JOBS; k++) {
        ck_assert(seen[k]);
    }
    /* As above the mean number is that of the recording, 12. Gaps of the even jobs, from the one
     * before, are 13 (from the last), 5, 9, ... 21 s, and those of the odd ones 3, 7, ... 23 s.
     * Both have a mean of 13 s. CV^2 is 26.7 / 169 and 46.7 / 169. One count has a standard
     * deviation of about sqrt(6 * 0.16 + 6 * 0.28) = 1.6, and the mean of 200 one of 0.12. */
    ck_assert_double_eq_tol((double)n / 200.0, 12.0, 0.5);
    trace_fini(&from);
}
END_TEST

/* Two turns of a client of a closed loop, and three sessions of others. With a second such client
 * in its class either may come twice; one in the other class is alone there, with two more turns.
 */
START_TEST(a_closed_loop_alone_in_its_class_is_always_the_same)
{
    static const struct {
        int second; /* class of a second closed loop; -1: none */
        size_t fixed;
    } cases[] = {{-1, 2}, {REQUEST_CLASS_REACTIVE, 0}, {REQUEST_CLASS_PROACTIVE, 4}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct trace_builder b;
        trace_builder_init(&b);
        for (uint32_t session = 0; session < 5; session++) {
            bool closed = session == 0 || (session == 4 && cases[i].second >= 0);
            int cls = session == 4 && closed ? cases[i].second : REQUEST_CLASS_REACTIVE;
            for (uint16_t turn = 0; turn < (closed ? 2 : 1) && (closed || session < 4); turn++) {
                struct trace_row row = {.request_id = 2 * session + turn,
                                        .session_id = session,
                                        .turn = turn,
                                        .cls = (uint8_t)cls,
                                        .arrival_ns = units_ns_from_s(turn == 0 ? session : 1),
                                        .input_tokens = 10,
                                        .output_tokens = 1,
                                        .max_output_tokens = 1};
                struct trace_extra x = trace_extra_none();
                x.until_ns = closed ? units_ns_from_s(60) : TIME_NEVER_NS;
                trace_builder_add(&b, &row, &x);
            }
        }
        struct trace t;
        struct err e = ERR_INIT;
        ck_assert_int_eq(trace_build(&b, false, "closed", &t, &e), 0);
        trace_builder_fini(&b);
        ck_assert_uint_eq(trace_resample_fixed(&t), cases[i].fixed);
        trace_fini(&t);
    }
    struct trace from = jobs_recording();
    ck_assert_uint_eq(trace_resample_fixed(&from), 0); /* jobs of an open loop */
    trace_fini(&from);
}
END_TEST

/* A job of three sessions, each of one request, in a row. Any of them may be a closed loop's, whose
 * last turn is before an instant, and then the job is: alone in its class it is always the same. */
START_TEST(a_job_is_closed_if_any_of_its_sessions_is)
{
    for (int closed = -1; closed < 3; closed++) {
        struct trace_builder b;
        struct trace t;
        struct err e = ERR_INIT;
        trace_builder_init(&b);
        for (uint32_t i = 0; i < 3; i++) {
            struct trace_row row = {.request_id = i,
                                    .session_id = i,
                                    .cls = REQUEST_CLASS_REACTIVE,
                                    .input_tokens = 10,
                                    .output_tokens = 1,
                                    .max_output_tokens = 1};
            struct trace_extra x = trace_extra_none();
            struct trace_node node = trace_node_none();
            struct trace_parent parent = {i - 1, 0};
            x.until_ns = (int)i == closed ? units_ns_from_s(60) : TIME_NEVER_NS;
            node.n_parents = i > 0 ? 1 : 0;
            node.parents = &parent;
            trace_builder_add(&b, &row, &x);
            trace_builder_node(&b, &node);
        }
        ck_assert_int_eq(trace_build(&b, false, "job", &t, &e), 0);
        trace_builder_fini(&b);
        ck_assert_uint_eq(trace_resample_fixed(&t), closed < 0 ? 0 : 3);
        trace_fini(&t);
    }
}
END_TEST

START_TEST(what_cannot_be_redrawn_is_refused_in_words)
{
    struct trace from = jobs_recording();
    struct trace t;
    struct err e = ERR_INIT;
    ck_assert_int_ne(trace_resample(&from, false, 1, &t, &e), 0);
    ck_assert_ptr_nonnull(strstr(e.lines[0], "belong to jobs"));
    struct trace one;
    bool keep[4 * JOBS] = {false};
    for (uint32_t i = 0; i < from.n; i++) {
        keep[i] = from.rows[i].request_id < 1004;
    }
    ck_assert_int_eq(trace_subset(&from, keep, &one), 0);
    models_are_kept(&one);
    ck_assert_int_ne(trace_resample(&one, true, 1, &t, &e), 0);
    ck_assert_ptr_nonnull(strstr(e.lines[1], "hangs together"));
    trace_fini(&one);
    trace_fini(&from);
    err_fini(&e);
}
END_TEST

static const struct suite_row suite[] = {
    TEST(a_closed_loop_alone_in_its_class_is_always_the_same),
    TEST(a_job_is_closed_if_any_of_its_sessions_is),
    TEST(sessions_are_drawn_whole_and_gaps_are_those_of_their_class),
    TEST(redrawn_traces_have_the_recordings_rate_in_the_mean),
    TEST(sessions_that_begin_together_do_not_fill_the_window),
    TEST(equal_seeds_redraw_the_same_trace),
    TEST(clients_are_drawn_with_their_sessions),
    CASE("resampled jobs"),
    TEST(jobs_are_drawn_whole_with_all_that_holds_them_together),
    TEST(what_cannot_be_redrawn_is_refused_in_words),
};
SUITE_MAIN("resample", suite)
