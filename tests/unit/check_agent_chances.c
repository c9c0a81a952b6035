/* Workloads of agents, number by number: with which chance a subagent starts, to the last bit, by
 * how much prompts grow, and which times a load scales. */
#include <math.h>
#include <stdio.h>

#include "tests/helpers/suite.h"
#include "tests/helpers/tempfile.h"
#include "traces/traces.h"

static struct err err;
static const char *path;

static void setup(void)
{
    err = (struct err)ERR_INIT;
    path = tempfile_make(".json");
}

static void teardown(void)
{
    err_fini(&err);
    tempfile_remove();
}

static bool has_subagent(double probability, uint64_t seed)
{
    char text[400];
    (void)snprintf(text, sizeof text,
                   "{\"clients\": [{\"name\": \"a\", \"turns\": 2, \"prompt_tokens\": 1,"
                   " \"new_tokens\": 1, \"answer_tokens\": 1, \"subagents\": [{\"name\": \"b\","
                   " \"probability\": %.17g, \"prompt_tokens\": 5, \"answer_tokens\": 1}]}]}",
                   probability);
    struct trace x;
    tempfile_put(text);
    ck_assert_int_eq(trace_generate(path, seed, 1.0, &x, &err), 0);
    bool has = x.n > 2;
    ck_assert_uint_le(x.n, 3);
    trace_fini(&x);
    return has;
}

/* A chance p is that of a number below p, of whole multiples of 2^-53 from 0 on: exactly p 2^53 of
 * them. So the least p with which a subagent starts is the next number behind such a multiple. It
 * is found by halves; below 1/2 there are numbers between two multiples. */
START_TEST(a_chance_is_that_of_a_number_below_it)
{
    uint64_t seed = 1;
    while (!has_subagent(0.25, seed)) {
        seed++;
    }
    double without = 0.0;
    double with = 0.25;
    for (int i = 0; i < 120 && nextafter(without, 1.0) < with; i++) {
        double p = without + (with - without) / 2.0;
        *(has_subagent(p, seed) ? &with : &without) = p;
    }
    ck_assert_double_eq(nextafter(without, 1.0), with);
    ck_assert_double_eq(ldexp(without, 53), floor(ldexp(without, 53)));
    ck_assert_double_ne(ldexp(with, 53), floor(ldexp(with, 53)));
    ck_assert(!has_subagent(0.0, 1) && has_subagent(1.0, 1));
}
END_TEST

/* However little it is to grow, a prompt holds the answer before it and one new token. */
START_TEST(a_prompt_grows_by_the_answer_and_one_at_least)
{
    for (uint32_t growth = 1; growth <= 20; growth++) {
        char text[256];
        (void)snprintf(text, sizeof text,
                       "{\"clients\": [{\"name\": \"a\", \"turns\": 3, \"prompt_tokens\": 100,"
                       " \"growth_tokens\": %u, \"answer_tokens\": 10}]}",
                       growth);
        struct trace t;
        tempfile_put(text);
        ck_assert_int_eq(trace_generate(path, 1, 1.0, &t, &err), 0);
        ck_assert_uint_eq(t.n, 3);
        uint32_t more = growth > 10 ? growth : 11;
        for (uint32_t turn = 0; turn < 3; turn++) {
            ck_assert_uint_eq(t.rows[turn].input_tokens, 100 + more * turn);
        }
        trace_fini(&t);
    }
}
END_TEST

/* A load divides the 20 s between jobs by 2. It leaves the 8 s that a person thinks, and starts. */
START_TEST(a_rate_is_of_jobs_by_the_clock_alone)
{
    struct trace t;
    tempfile_put("{\"clients\": [{\"name\": \"a\", \"jobs\": 2, \"every_s\": 20, \"start_s\": 3, "
                 "\"prompt_tokens\": 10, \"answer_tokens\": 5}, {\"name\": \"b\", \"jobs\": 2, "
                 "\"think_s\": 8, \"start_s\": 1, \"prompt_tokens\": 20, \"answer_tokens\": 5}]}");
    ck_assert_int_eq(trace_generate(path, 1, 2.0, &t, &err), 0);
    int64_t gap_ns = 0;
    uint32_t starts = 0;
    ck_assert_uint_eq(t.n, 4);
    for (uint32_t i = 0; i < t.n; i++) {
        const struct trace_row *r = &t.rows[i];
        bool closed = r->input_tokens == 20;
        bool waits = t.graph->n_parents[i] > 0;
        if (waits) { /* the second job of the loop */
            ck_assert(closed);
            gap_ns = r->arrival_ns;
        } else {
            starts += closed ? r->arrival_ns == NS_PER_S
                             : r->arrival_ns == 3 * NS_PER_S || r->arrival_ns == 13 * NS_PER_S;
        }
    }
    ck_assert_int_eq(gap_ns, 8 * NS_PER_S);
    ck_assert_uint_eq(starts, 3);
    trace_fini(&t);
}
END_TEST

static const struct suite_row suite[] = {
    CASE("chances", .setup = setup, .teardown = teardown),
    TEST(a_chance_is_that_of_a_number_below_it),
    TEST(a_prompt_grows_by_the_answer_and_one_at_least),
    TEST(a_rate_is_of_jobs_by_the_clock_alone),
};
SUITE_MAIN("chances of agents", suite)
