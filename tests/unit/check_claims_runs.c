/* These tests show which trace and which machine a replication of a quantity has. Arrivals show the
 * trace, and times the machine. Quantities of drafts on texts are tested, too. */
#include <math.h>
#include <string.h>

#include "experiments/claims/claims.h"
#include "experiments/claims/quantities_impl.h"
#include "hwmodels/drafters.h"
#include "sim/base/arena.h"
#include "tests/helpers/suite.h"
#include "tests/helpers/tempfile.h"
#include "traces/texts.h"
#include "traces/traces.h"

#define RUNS 4

#define USUAL "mixed:reactive_per_min=20,proactive_per_min=1,duration_s=20,output_scale=0.2"
#define SPARSE "mixed:reactive_per_min=6,proactive_per_min=0,duration_s=10,output_scale=0.2"

static const char file[] =
    "{\"paper\": \"P\", \"source\": \"s\", \"quantities\": {\"q\": {\"run\": {\"policy\": \"fcfs\","
    " \"workload\": \"%s\", \"llm\":"
    " \"qwen2.5-0.5b\"}}},"
    " \"claims\": [{\"id\": \"X\", \"where\": \"w\", \"statement\": \"t\", \"checks\": ["
    "{\"name\": \"arrived\", \"value\": \"q:reactive.arrived\", \"above\": 0},"
    "{\"name\": \"time\", \"value\": \"q:reactive.ttft_s.mean\", \"above\": 0}]}]}";

struct found {
    double arrived[RUNS], time[RUNS];
};

static void find_in(struct found *f, const char *workload, uint32_t n, uint64_t seed,
                    uint32_t machines)
{
    SCOPED(err_fini) struct err err = ERR_INIT;
    struct claims c = {0};
    const char *path = tempfile_make(".json");
    OWNED char *text = xformat(file, workload);
    tempfile_put(text);
    (void)claims_read(&c, path, &err);
    tempfile_remove();
    struct quantities_options o = {.replications = n,
                                   .seed = seed,
                                   .machines = machines,
                                   .how = {.parallel = 1, .cpu_limit_s = 60}};
    (void)claims_run(&c, &o, &err);
    ck_assert_msg(err.n == 0, "%s", err.n > 0 ? err.lines[0] : "");
    memcpy(f->arrived, c.v[0].checks[0].x, n * sizeof(double));
    memcpy(f->time, c.v[0].checks[1].x, n * sizeof(double));
    claims_fini(&c);
}

static void find(struct found *f, uint32_t n, uint64_t seed, uint32_t machines)
{
    find_in(f, USUAL, n, seed, machines);
}

/* Replication k is the one run of k's seed; no two are the same. */
START_TEST(every_replication_has_a_trace_of_its_own)
{
    struct found all;
    find(&all, RUNS, 5, 0);
    for (uint32_t k = 0; k < RUNS; k++) {
        struct found one;
        find(&one, 1, config_seed(5, k), 0);
        ck_assert_double_eq(all.arrived[k], one.arrived[0]);
        ck_assert_double_eq(all.time[k], one.time[0]);
        for (uint32_t l = 0; l < k; l++) {
            ck_assert_double_ne(all.time[k], all.time[l]);
        }
    }
}
END_TEST

/* Runs without requests are no failure: they have no value, and the others count. */
START_TEST(replications_without_requests_count_for_nobody)
{
    struct found f;
    find_in(&f, SPARSE, RUNS, 5, 0);
    uint32_t empty = 0;
    for (uint32_t k = 0; k < RUNS; k++) {
        SCOPED(trace_fini) struct trace t = {0};
        SCOPED(err_fini) struct err e = ERR_INIT;
        bool none = trace_generate(SPARSE, config_seed(5, k), 1.0, &t, &e) != 0;
        empty += none;
        ck_assert_int_eq(isnan(f.arrived[k]), none);
        ck_assert(none || f.arrived[k] == (double)t.n);
    }
    ck_assert(empty > 0 && empty < RUNS);
}
END_TEST

/* Two traces run on each of two machines, and they are those of the file's machine. */
START_TEST(drawn_machines_have_the_same_traces)
{
    struct found file_s;
    struct found drawn;
    find(&file_s, 2, 5, 0);
    find(&drawn, 4, 5, 2);
    for (int k = 0; k < 4; k++) {
        ck_assert_double_eq(drawn.arrived[k], file_s.arrived[k % 2]);
        ck_assert_double_ne(drawn.time[k], file_s.time[k % 2]);
    }
    ck_assert_double_ne(drawn.time[0], drawn.time[2]);
    ck_assert_double_ne(drawn.time[1], drawn.time[3]);
}
END_TEST

/* Drafted and accepted tokens are of a verification, causes percent of what was rejected: of every
 * text, with as many tokens as the published constants say. */
START_TEST(drafts_on_texts_are_shares)
{
    static const char *const drafters[] = {"lookup", "suffix"};
    static const struct drafter as[] = {
        {.kind = TRACE_LOOKUP, .max_draft_tokens = 10, .proactive = true},
        {.kind = TRACE_SUFFIX, .max_draft_tokens = 40, .proactive = true}};
    static const char *const fields[] = {"drafted", "accepted", "missing", "synonym", "redundant"};
    SCOPED(err_fini) struct err err = ERR_INIT;
    struct trace_texts *texts = texts_read("change_texts", &err);
    ck_assert_ptr_nonnull(texts);
    for (int d = 0; d < 2; d++) {
        struct drafter_account a = {0};
        for (uint32_t i = 0; i < texts->n; i++) {
            drafter_count(&as[d], &texts->texts[i], &a);
        }
        double rejected = (double)a.rejected;
        double per = (double)a.verifications;
        const double want[] = {(double)a.drafted / per, (double)a.accepted / per,
                               100.0 * (double)a.missing / rejected,
                               100.0 * (double)a.synonym / rejected,
                               100.0 - 100.0 * (double)(a.missing + a.synonym) / rejected};
        for (int f = 0; f < (d == 0 ? 1 : 5); f++) {
            OWNED char *text =
                xformat("{\"file\": \"change_texts\", \"drafter\": \"%s\", \"field\": \"%s\"%s}",
                        drafters[d], fields[f], f % 2 == 0 ? ", \"history\": 0" : "");
            cJSON *tree = cJSON_Parse(text);
            struct json_obj o = json_root(tree, "f", &err);
            ck_assert_double_eq_tol(quantity_texts(&o), want[f], 1e-9);
            ck_assert_uint_eq(err.n, 0);
            cJSON_Delete(tree);
        }
    }
    texts_release(texts);
}
END_TEST

/* Every draft is in one of two ranges that meet, and ranges are those of the lengths drawn. */
START_TEST(drafts_of_a_length_are_shares)
{
    static const uint32_t ranges[][2] = {{0, 1}, {1, 3}, {3, SPECULATION_MAX_DRAFT + 1}, {0, 3}};
    double share[4];
    SCOPED(err_fini) struct err err = ERR_INIT;
    for (int i = 0; i < 4; i++) {
        OWNED char *text = xformat("{\"dataset\": \"summary\", \"model\": \"qwen2.5-1.5b\", "
                                   "\"method\": \"sam\", \"from\": %u, \"below\": %u}",
                                   ranges[i][0], ranges[i][1]);
        cJSON *tree = cJSON_Parse(text);
        struct json_obj o = json_root(tree, "f", &err);
        share[i] = quantity_drafts(&o);
        ck_assert_msg(err.n == 0, "%s", err.n > 0 ? err.lines[0] : "");
        cJSON_Delete(tree);
    }
    ck_assert_double_eq_tol(share[0] + share[1] + share[2], 100.0, 1e-9);
    ck_assert_double_eq_tol(share[0] + share[1], share[3], 1e-9);
    ck_assert(share[1] > 0.0 && share[2] > 0.0);
}
END_TEST

static const struct suite_row suite[] = {
    CASE("claims' runs", .timeout_s = 60),
    TEST(every_replication_has_a_trace_of_its_own),
    TEST(replications_without_requests_count_for_nobody),
    TEST(drawn_machines_have_the_same_traces),
    TEST(drafts_on_texts_are_shares),
    TEST(drafts_of_a_length_are_shares),
};
SUITE_MAIN("claims' runs", suite)
