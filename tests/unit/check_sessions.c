/* Sessions of generated workloads are tested: conversations of a table, tool and think times,
 * closed loops. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "sim/base/datadir.h"
#include "sim/base/units.h"
#include "tests/helpers/madetrace.h"
#include "tests/helpers/suite.h"
#include "traces/traces.h"

static struct err err;
static struct trace t;

static void setup(void)
{
    err = (struct err)ERR_INIT;
    t = (struct trace){0};
}

static void teardown(void)
{
    err_fini(&err);
    trace_fini(&t);
}

/* Whether a session is the conversation that starts at row j of the table, to its end. */
static bool is_conversation(const struct table *d, size_t j, const struct trace_row *r)
{
    uint32_t id = d->v[j][0];
    for (uint32_t turn = 0;; turn++, j++) {
        if (j == d->n || d->v[j][0] != id || d->v[j][1] != r->input_tokens ||
            d->v[j][2] != r->output_tokens || r->turn != turn ||
            (turn > 0 && d->v[j][3] != r->prefix_tokens)) {
            return false;
        }
        if (r->next == TRACE_NO_ROW) {
            return j + 1 == d->n || d->v[j + 1][0] != id;
        }
        r = &t.rows[r->next];
    }
}

START_TEST(sessions_are_whole_conversations_of_the_table)
{
    struct table d = table_read("mtrag", "%u,%*u,%u,%u,%u", 4);
    madetrace("mixed:reactive=mtrag,sessions=1,reactive_per_min=60,proactive_per_min=0,"
              "duration_s=4000,think_s=20",
              9, &t);
    size_t n_linked = 0;
    double gap_s = 0.0;
    bool used[200] = {false};
    for (size_t i = 0; i < t.n_first; i++) {
        const struct trace_row *r = &t.rows[i];
        size_t j = 0;
        while (j < d.n && !((j == 0 || d.v[j][0] != d.v[j - 1][0]) && is_conversation(&d, j, r))) {
            j++;
        }
        ck_assert_msg(j < d.n, "session %zu is no conversation", i);
        used[d.v[j][0]] = true;
        ck_assert_uint_eq(r->prefix_tokens, 0);
        for (; r->next != TRACE_NO_ROW; n_linked++) {
            r = &t.rows[r->next];
            ck_assert_uint_eq(r->session_id, t.rows[i].session_id);
            gap_s += units_s_from_ns(r->arrival_ns);
        }
    }
    ck_assert_uint_eq(t.n, t.n_first + n_linked); /* every later turn was reached */
    ck_assert_uint_gt(n_linked, 10000);
    double n = (double)n_linked; /* exponential think times: standard error mean / sqrt n */
    ck_assert_double_eq_tol(gap_s / n, 20.0, 4.0 * 20.0 / sqrt(n));
    size_t n_used = 0;
    for (size_t i = 0; i < 200; i++) {
        n_used += used[i];
    }
    ck_assert_uint_eq(n_used, 110); /* all, but for a chance of 110 (1 - 1/110)^4000 = 1e-14 */
    free(d.v);
}
END_TEST

/* Think times have a mean of 50 s and tool times one of 3 s, with as large standard deviations.
 * Each mean of n must lie within four standard errors, mean / sqrt n. */
START_TEST(turns_after_tools_come_after_tool_times)
{
    madetrace("mixed:reactive=bfcl_multiturn,sessions=1,reactive_per_min=60,proactive_per_min=0,"
              "duration_s=4000,think_s=50,tool_s=3",
              9, &t);
    double sum[2] = {0.0, 0.0}, n[2] = {0.0, 0.0};
    for (size_t i = t.n_first; i < t.n; i++) {
        sum[t.rows[i].after_tool] += units_s_from_ns(t.rows[i].arrival_ns);
        n[t.rows[i].after_tool] += 1.0;
    }
    ck_assert_double_gt(n[0], 1000.0);
    ck_assert_double_gt(n[1], 1000.0);
    ck_assert_double_eq_tol(sum[0] / n[0], 50.0, 4.0 * 50.0 / sqrt(n[0]));
    ck_assert_double_eq_tol(sum[1] / n[1], 3.0, 4.0 * 3.0 / sqrt(n[1]));
}
END_TEST

START_TEST(closed_loop_users_have_enough_turns_for_instant_answers)
{
    madetrace("mixed:arrival=closed,users=50,think_s=10,duration_s=5000,proactive_per_min=0", 13,
              &t);
    ck_assert_uint_le(t.n_first, 50);
    ck_assert_uint_ge(t.n_first, 49); /* a user who first thinks over 5000 s: exp(-500) */
    double gaps_s = 0.0;
    size_t n = 0;
    for (size_t i = 0; i < t.n_first; i++) {
        const struct trace_row *r = &t.rows[i];
        int64_t at = r->arrival_ns, before = 0;
        gaps_s += units_s_from_ns(at);
        n++;
        for (uint16_t turn = 0; r->next != TRACE_NO_ROW; turn++) {
            ck_assert_uint_eq(r->turn, turn);
            r = &t.rows[r->next];
            ck_assert_uint_eq(r->session_id, t.rows[i].session_id);
            ck_assert_uint_eq(r->prefix_tokens, 0);
            before = at;
            at += r->arrival_ns;
            gaps_s += units_s_from_ns(r->arrival_ns);
            n++;
        }
        /* Answered at once, a user's last turn would come at or after the end, the one before it
         * would not. */
        ck_assert_int_lt(before, 5000 * NS_PER_S);
        ck_assert_int_ge(at, 5000 * NS_PER_S);
    }
    ck_assert_uint_eq(n, t.n);
    /* This is a stopped walk with 50 users of 500 + 1 thinks each. By Wald the mean gap is 10, with
     * standard error 10 / sqrt n. */
    ck_assert_double_eq_tol(gaps_s / (double)n, 10.0, 4.0 * 10.0 / sqrt((double)n));
}
END_TEST

static const struct suite_row suite[] = {
    CASE("sessions", .setup = setup, .teardown = teardown),
    TEST(sessions_are_whole_conversations_of_the_table),
    TEST(turns_after_tools_come_after_tool_times),
    TEST(closed_loop_users_have_enough_turns_for_instant_answers),
};
SUITE_MAIN("sessions", suite)
