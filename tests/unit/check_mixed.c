/* Parts of the generators on their own: activity, closed loops over conversations, scaled rates. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/units.h"
#include "tests/helpers/suite.h"
#include "traces/arrivals.h"
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

static void make(const char *spec, double rate_scale)
{
    int rc = trace_generate(spec, 1, rate_scale, &t, &err);
    ck_assert_msg(rc == 0, "%s", err.n > 0 ? err.lines[0] : "no message");
}

static void expect_refused(const char *spec, const char *has)
{
    ck_assert_int_eq(trace_generate(spec, 1, 1.0, &t, &err), -EINVAL);
    ck_assert_msg(strstr(err.lines[0], has) != NULL, "%s", err.lines[0]);
    ck_assert_ptr_null(t.rows);
    err_fini(&err);
}

/* A phase by hand: active until 4 s at rate 2, then idle until 14 s at rate 0.5 (share 1/3 keeps
 * the mean at 1). Operational 6 s = 3 s real; operational 8 s is the end of the phase, 4 s; one
 * more operational second takes 2 s. */
START_TEST(activity_stretches_idle_and_squeezes_active_time)
{
    struct activity a;
    activity_init(&a, 2.0, 1.0 / 3.0, 300.0, 1);
    ck_assert_double_eq_tol(a.idle_factor, 0.5, 1e-15); /* (1 - 2/3) / (1 - 1/3) */
    ck_assert_double_eq_tol(a.mean_on_s, 100.0, 1e-12);
    ck_assert_double_eq_tol(a.mean_off_s, 200.0, 1e-12);
    a.on = true;
    a.next_real_s = 4.0;
    ck_assert_double_eq_tol(activity_real(&a, 6.0), 3.0, 1e-12);
    ck_assert_double_eq_tol(activity_real(&a, 8.0), 4.0, 1e-12);
    ck_assert(!a.on);
    a.next_real_s = 14.0;
    ck_assert_double_eq_tol(activity_real(&a, 9.0), 6.0, 1e-12);
    ck_assert_double_eq_tol(activity_real(&a, 12.9), 13.8, 1e-12); /* 4 + 4.9 * 2 */
}
END_TEST

/* Without bursts operational time is real time, for any share. */
START_TEST(activity_is_off_by_default)
{
    struct activity a;
    activity_init(&a, 1.0, 0.5, 300.0, 1);
    ck_assert_double_eq(activity_real(&a, 123.456), 123.456);
}
END_TEST

/* The rate is 1 in operational time over many periods, so real / operational tends to 1. Phases
 * alternate with means a = 30 and b = 70. Over D s of them, the time active has variance 2 a^2 b^2
 * D / (a+b)^3 = 8.82 D. The rate differs by 3 - 1/7 between the phases. */
START_TEST(activity_keeps_the_mean_rate)
{
    struct activity a;
    activity_init(&a, 3.0, 0.3, 100.0, 7);
    ck_assert_double_eq_tol(a.idle_factor, 1.0 / 7.0, 1e-15); /* (1 - 0.9) / 0.7 */
    const double op_s = 1e7;
    double real_s = activity_real(&a, op_s);
    double sd_s = sqrt(8.82 * op_s) * (3.0 - 1.0 / 7.0);
    ck_assert_double_eq_tol(real_s, op_s, 4.0 * sd_s);
}
END_TEST

/* Every instant is divided by the scale; lengths and number stay. */
START_TEST(w1_follows_the_rate_scale)
{
    struct trace fast;
    make("w1:n=1000", 1.0);
    ck_assert_int_eq(trace_generate("w1:n=1000", 1, 4.0, &fast, &err), 0);
    ck_assert_uint_eq(fast.n, t.n);
    for (size_t i = 0; i < t.n; i++) {
        ck_assert_int_le(llabs(4 * fast.rows[i].arrival_ns - t.rows[i].arrival_ns), 4);
    }
    ck_assert_uint_ne(fast.hash, t.hash);
    trace_fini(&fast);
}
END_TEST

/* A user works through one conversation after another in one session: where the prefix of a turn is
 * that of its row in mtrag; a new conversation starts with none. Conversations of mtrag have two
 * turns or more, so both kinds of turns must occur. */
START_TEST(closed_users_go_through_whole_conversations)
{
    struct dataset d;
    ck_assert_int_eq(dataset_load("mtrag", &d, &err), 0);
    make("mixed:arrival=closed,users=4,sessions=1,reactive=mtrag,proactive_per_min=0,"
         "think_s=10,duration_s=4000",
         1.0);
    ck_assert_uint_eq(t.n_first, 4);
    size_t n_new = 0;
    size_t n_later = 0;
    for (size_t s = 0; s < t.n_first; s++) {
        size_t at = 0; /* row of the dataset that the turn before came from */
        bool inside = false;
        for (uint32_t i = (uint32_t)s; i != TRACE_NO_ROW; i = t.rows[i].next) {
            const struct trace_row *r = &t.rows[i];
            if (inside && at + 1 < d.n && d.rows[at + 1].turn > 0) {
                at++;
                ck_assert_uint_eq(r->prefix_tokens, d.rows[at].prefix_tokens);
                n_later++;
            } else {
                ck_assert_uint_eq(r->prefix_tokens, 0);
                for (at = 0; at < d.n; at++) { /* conversations with equal first rows: see below */
                    if (d.rows[at].turn == 0 && d.rows[at].input_tokens == r->input_tokens &&
                        d.rows[at].output_tokens == r->output_tokens &&
                        (r->next == TRACE_NO_ROW || at + 1 == d.n || d.rows[at + 1].turn == 0 ||
                         d.rows[at + 1].input_tokens == t.rows[r->next].input_tokens)) {
                        break; /* the second row distinguishes two with equal beginnings */
                    }
                }
                ck_assert_uint_lt(at, d.n);
                n_new++;
            }
            inside = true;
            ck_assert_uint_eq(r->input_tokens, d.rows[at].input_tokens);
            ck_assert_uint_eq(r->output_tokens, d.rows[at].output_tokens);
        }
    }
    ck_assert_uint_gt(n_new, 20);
    ck_assert_uint_gt(n_later, n_new);
    ck_assert_uint_eq(n_new + n_later, t.n);
    dataset_fini(&d);
}
END_TEST

static uint32_t scaled(uint32_t tokens, double factor)
{
    double x = floor(tokens * factor + 0.5);
    return tokens == 0 ? 0 : x < 1.0 ? 1 : (uint32_t)x;
}

/* Factors on lengths of either class change these lengths, each rounded, with their prefixes, and
 * nothing else of any request. */
START_TEST(factors_change_lengths_and_nothing_else)
{
    static const char plain[] = "mixed:sessions=1,reactive=mtrag,proactive=bfcl_multiturn,"
                                "reactive_per_min=30,proactive_per_min=30,duration_s=600";
    static const double in[2][2] = {{2.5, 1}, {0.4, 0.03}}, out[2][2] = {{1, 3.2}, {0.1, 7}};
    struct trace s;
    char spec[512];
    size_t n_prefixes = 0;
    (void)snprintf(spec, sizeof spec,
                   "%s,reactive_input_scale=%g,proactive_input_scale=%g,output_scale=2,"
                   "reactive_output_scale=%g,proactive_output_scale=%g",
                   plain, in[_i][0], in[_i][1], out[_i][0], out[_i][1]);
    make(plain, 1.0);
    ck_assert_int_eq(trace_generate(spec, 1, 1.0, &s, &err), 0);
    ck_assert_uint_eq(s.n, t.n);
    for (size_t i = 0; i < t.n; i++) {
        const struct trace_row *a = &t.rows[i], *b = &s.rows[i];
        uint32_t input = scaled(a->input_tokens, in[_i][a->cls]);
        uint32_t prefix = scaled(a->prefix_tokens, in[_i][a->cls]);
        ck_assert_uint_eq(b->input_tokens, input);
        ck_assert_uint_eq(b->output_tokens, scaled(a->output_tokens, 2.0 * out[_i][a->cls]));
        ck_assert_uint_eq(b->prefix_tokens, prefix < input ? prefix : input);
        ck_assert(a->arrival_ns == b->arrival_ns && a->cls == b->cls && a->turn == b->turn &&
                  a->session_id == b->session_id && a->after_tool == b->after_tool);
        n_prefixes += prefix > 0;
    }
    ck_assert_uint_gt(n_prefixes, 100);
    trace_fini(&s);
}
END_TEST

/* 65,535 turns are the most that a session can have. None are dropped, and the user gets an
 * error. */
START_TEST(what_would_be_cut_is_refused)
{
    expect_refused("mixed:arrival=closed,think_s=0", "think_s");
    expect_refused("mixed:arrival=closed,think_s=0.001,duration_s=1000", "think_s");
    expect_refused("mixed:burst=2,active_share=0.5,activity_period_s=0.001,duration_s=1e5,"
                   "reactive_per_min=1",
                   "activity_period_s");
}
END_TEST

/* Without sessions=1 a row of a conversation is a request by itself. Nothing came before it in its
 * session, so it has no prefix and comes after no tool. mtrag has later turns with prefixes, and
 * bfcl_multiturn has turns after tools. */
START_TEST(a_row_of_a_conversation_alone_has_nothing_before_it)
{
    static const char *const names[] = {"mtrag", "bfcl_multiturn"};
    struct dataset d;
    char spec[128];
    ck_assert_int_eq(dataset_load(names[_i], &d, &err), 0);
    bool before = false;
    for (size_t i = 0; i < d.n; i++) {
        before = before || (_i == 0 ? d.rows[i].prefix_tokens > 0 : d.rows[i].after_tool);
    }
    ck_assert(before);
    dataset_fini(&d);
    (void)snprintf(spec, sizeof spec, "mixed:reactive=%s,reactive_per_min=60,duration_s=600",
                   names[_i]);
    make(spec, 1.0);
    ck_assert_uint_eq(t.n_first, t.n);
    ck_assert_uint_gt(t.n, 300);
    for (size_t i = 0; i < t.n; i++) {
        ck_assert_uint_eq(t.rows[i].prefix_tokens, 0);
        ck_assert_uint_eq(t.rows[i].turn, 0);
        ck_assert(!t.rows[i].after_tool);
    }
}
END_TEST

static const struct suite_row suite[] = {
    CASE("mixed", .setup = setup, .teardown = teardown),
    TEST(activity_stretches_idle_and_squeezes_active_time),
    TEST(activity_is_off_by_default),
    TEST(activity_keeps_the_mean_rate),
    TEST(w1_follows_the_rate_scale),
    TEST(closed_users_go_through_whole_conversations),
    LOOP(a_row_of_a_conversation_alone_has_nothing_before_it, 2),
    LOOP(factors_change_lengths_and_nothing_else, 2),
    TEST(what_would_be_cut_is_refused),
};
SUITE_MAIN("mixed", suite)
