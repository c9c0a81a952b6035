/* Selections and comparisons on drawn machines as people and programs see them: made-up results,
 * every cell by hand. And what is to be measured for every number of the shipped machines. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/compare/compare.h"
#include "experiments/compare/select.h"
#include "experiments/compare/uncertainty.h"
#include "experiments/shell/document.h"
#include "sim/base/datadir.h"
#include "sim/base/json.h"
#include "tests/helpers/commanded.h"
#include "tests/helpers/suite.h"

static void json_is(const struct document *d, const char *want)
{
    SCOPED(json_drop) cJSON *is = document_json(d);
    OWNED char *text = cJSON_PrintUnformatted(is);
    ck_assert_str_eq(text, want);
}

/* It begins with a heading, which has an empty line before it. */
static void text_is(const struct document *d, const char *want)
{
    OWNED char *text = shown_text(d, "text");
    ck_assert_int_eq(text[0], '\n');
    ck_assert_str_eq(text + 1, want);
}

/* ---- selections ---- */

static const struct config_policy three[] = {{.label = "p:a=1"}, {.label = "q"}, {.label = "r"}};

/* One value has a mean and no interval, so that every number is known by hand. */
static struct select_one ones[3];
static double values[3][2];

static struct select_result selection(void)
{
    for (int i = 0; i < 3; i++) {
        values[i][0] = 8 >> i; /* 8, 4, 2 */
        ones[i] = (struct select_one){.values = values[i], .n = 1};
    }
    ones[1].left = true;
    return (struct select_result){.of = ones,
                                  .k = 3,
                                  .best = 1,
                                  .replications = 7,
                                  .delta = 0.25,
                                  .decided = true,
                                  .runs = 20,
                                  .equal_runs = 50};
}

static const struct select_asked asked = {.confidence_frac = 0.9, .indifference_percent = 2.0};

#define HEAD(best_, decided_)                                                                      \
    "{\"metric\":\"m.s\",\"confidence_frac\":0.9,\"indifference\":0.25," best_                     \
    "\"decided\":" decided_ ",\"replications\":7,\"runs\":20,\"equal_runs\":50,\"policies\":{"
#define ONE(name_, state_, n_, mean_, behind_)                                                     \
    "\"" name_ "\":{\"state\":\"" state_ "\",\"n\":" n_ ",\"mean\":" mean_ ",\"behind\":" behind_  \
    ",\"low\":null,\"high\":null,\"behind_low\":null,\"behind_high\":null}"

/* p is 4 behind the 4 of q, and r is 2 ahead in the value that both have. */
START_TEST(a_decided_selection)
{
    struct select_result r = selection();
    struct document *d = document_new();
    select_document(&asked, "m.s", three, &r, d);
    json_is(d, HEAD("\"best\":\"q\",", "true") ONE("p:a=1", "behind", "1", "8", "4") "," ONE(
                   "q", "best", "1", "4", "null") "," ONE("r", "behind", "1", "2", "-2") "}}");
    text_is(d, "m.s\nstate runs mean behind the best\np:a=1 behind 1 8 4\nq best 1 4\n"
               "r behind 1 2 -2\n\nbest: q, with probability 0.9 or more, unless one is better by "
               "less than 0.25\n20 runs; equal replication with this guarantee: 50 (2.5 times)\n");
}
END_TEST

/* More is better: p is ahead of the best by 4, and r behind it by 2. */
START_TEST(a_selection_of_a_gain)
{
    struct select_result r = selection();
    r.gain = true;
    r.decided = false;
    ones[2].left = true;
    struct document *d = document_new();
    select_document(&asked, "m.s", three, &r, d);
    json_is(d, HEAD("\"best\":\"q\",", "false") ONE("p:a=1", "behind", "1", "8", "-4") "," ONE(
                   "q", "best", "1", "4", "null") "," ONE("r", "left", "1", "2", "2") "}}");
    text_is(d, "m.s\nstate runs mean behind the best\np:a=1 behind 1 8 -4\nq best 1 4\n"
               "r left 1 2 2\n\nnot decided after 7 replications: several are left\n"
               "20 runs; equal replication with this guarantee: 50 (2.5 times)\n");
}
END_TEST

/* Two values, 2 apart: the interval's half width is 12.7062 times 1. The difference is paired over
 * the replications of both, the first two of each. */
START_TEST(a_selection_with_intervals)
{
    static double p[] = {3, 5, 100};
    static double q[] = {1, 1};
    struct select_result r = selection();
    ones[0] = (struct select_one){.values = p, .n = 2};
    ones[1] = (struct select_one){.values = q, .n = 2, .left = true};
    ones[2].failed = true;
    struct document *d = document_new();
    select_document(&asked, "m.s", three, &r, d);
    SCOPED(json_drop) cJSON *is = document_json(d);
    const cJSON *of = cJSON_GetObjectItem(cJSON_GetObjectItem(is, "policies"), "p:a=1");
    static const struct {
        const char *key;
        double want;
    } cells[] = {{"n", 2},
                 {"mean", 4},
                 {"low", 4 - 12.706204736},
                 {"high", 4 + 12.706204736},
                 {"behind", 3},
                 {"behind_low", 3 - 12.706204736},
                 {"behind_high", 3 + 12.706204736}};
    for (size_t i = 0; i < sizeof cells / sizeof cells[0]; i++) {
        ck_assert_double_eq_tol(json_number(of, cells[i].key), cells[i].want, 1e-8);
    }
    r.gain = true;
    struct document *turned = document_new();
    select_document(&asked, "m.s", three, &r, turned);
    SCOPED(json_drop) cJSON *gain = document_json(turned);
    of = cJSON_GetObjectItem(cJSON_GetObjectItem(gain, "policies"), "p:a=1");
    ck_assert_double_eq_tol(json_number(of, "behind"), -3, 1e-8);
    ck_assert_double_eq_tol(json_number(of, "behind_low"), -3 - 12.706204736, 1e-8);
    ck_assert_double_eq_tol(json_number(of, "behind_high"), -3 + 12.706204736, 1e-8);
    of = cJSON_GetObjectItem(cJSON_GetObjectItem(gain, "policies"), "r");
    ck_assert_str_eq(json_string(of, "state"), "failed");
    ck_assert(cJSON_IsNull(cJSON_GetObjectItem(of, "behind")));
}
END_TEST

START_TEST(a_selection_of_nobody)
{
    struct select_result r = selection();
    r.best = 3;
    r.decided = false;
    for (int i = 0; i < 3; i++) {
        ones[i] = (struct select_one){.values = values[i], .failed = true};
    }
    struct document *d = document_new();
    select_document(&asked, "m.s", three, &r, d);
    SCOPED(json_drop) cJSON *is = document_json(d);
    ck_assert(cJSON_IsNull(cJSON_GetObjectItem(is, "best")) || !cJSON_HasObjectItem(is, "best"));
    OWNED char *text = shown_text(d, "text");
    ck_assert_ptr_nonnull(strstr(text, "\nr failed 0 "));
    ck_assert_ptr_nonnull(strstr(text, "\n\nno policy served all requests; 20 runs\n"));
}
END_TEST

/* A share of up to 100 %, with or without its sign, and only with --select. */
START_TEST(an_indifference_is_a_share)
{
    static const char *const bad[] = {"0", "-1", "100.1", "x", "1%x", "1 "};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        OWNED char *word = xformat("--indifference=%s", bad[i]);
        SCOPED(said_fini)
        struct said s = COMMANDED(cmd_compare, "--policy", "fcfs", "--select", "0.9", word);
        OWNED char *why =
            xformat("--indifference: %s is no share above 0 and up to 100 %%", bad[i]);
        said_refused(&s, why);
    }
    static const char *const good[] = {"100", "1%", "1e-3", "2.5"};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        SCOPED(said_fini)
        struct said s = COMMANDED(cmd_compare, "--policy", "fcfs", "--indifference", good[i]);
        said_refused(&s, "--indifference belongs to --select P");
    }
    SCOPED(said_fini)
    struct said alone = COMMANDED(cmd_compare, "--policy", "fcfs", "--at-most", "1000");
    said_refused(&alone, "--at-most belongs to --select P");
    SCOPED(said_fini)
    struct said few =
        COMMANDED(cmd_compare, "--policy", "fcfs", "--select", "0.9", "--at-most", "4");
    ck_assert_int_eq(few.status, EXIT_BAD_INPUT);
    ck_assert_ptr_nonnull(strstr(few.err, "--at-most"));
}
END_TEST

/* ---- on drawn machines ---- */

static struct config config;
static const struct machine_number rate = {.name = ".rate", .measure = "M1"};
static const struct machine_number other = {.name = "", .measure = "M2"};
static struct uncertainty_pair pairs[4];
static double best[4];
static struct uncertainty_range means[4];

static struct compare_plan plan_of(void)
{
    config.soc.machine.n_devices = 2;
    (void)snprintf(config.soc.machine.devices[0].name, sizeof config.soc.machine.devices[0].name,
                   "npu");
    (void)snprintf(config.soc.machine.devices[1].name, sizeof config.soc.machine.devices[1].name,
                   "igpu");
    return (struct compare_plan){
        .config = &config, .policies = three, .n_policies = 2, .replications = 5};
}

/* Policy q in two metrics; two of its numbers decide the first, of which one turns the order. */
static struct uncertainty *result_of(uint32_t machines)
{
    static const char *const metrics[] = {"m.s", "n.s"};
    struct uncertainty *u = xkept(xcalloc(1, sizeof *u));
    u->metrics = metrics;
    u->n_metrics = 2;
    u->n_policies = 2;
    u->runs = 40;
    u->n_failed = 3;
    u->n_cut = 5;
    u->machines.n_draws = machines;
    u->machines.n_factors = 3;
    u->machines.n_rows = 8;
    u->machines.n_rows_inside = 6;
    u->machines.factor[0] = (struct machine_factor){.path = "P0",
                                                    .name = "rate",
                                                    .number = &rate,
                                                    .device = 1,
                                                    .nominal = 10,
                                                    .low = 11,
                                                    .high = 12};
    u->machines.factor[1] = (struct machine_factor){.path = "P1",
                                                    .name = "prefill",
                                                    .number = &other,
                                                    .kind = MACHINE_RESIDUAL,
                                                    .device = 0,
                                                    .nominal = 13,
                                                    .low = 14,
                                                    .high = 15};
    u->machines.factor[2] = (struct machine_factor){
        .path = "P2", .name = "ddr.together", .number = &other, .device = -1, .nominal = 1};
    for (uint32_t i = 0; i < 2; i++) {
        pairs[i] = (struct uncertainty_pair){.policy = 1,
                                             .metric = 1 - i, /* not in their order */
                                             .better_frac = 0.125 + 0.5 * i,
                                             .se = 0.25 + i,
                                             .not_worse_frac = 0.75 - 0.25 * i,
                                             .nominal = 4 + i,
                                             .sampling_low = 6 + i,
                                             .sampling_high = 8 + i,
                                             .model_low = 10 + i,
                                             .model_high = 12 + i,
                                             .model_var_frac = 0.5 - 0.25 * i,
                                             .next = -1};
    }
    pairs[1].n_idle = 2;
    pairs[1].n_top = 3;
    for (uint32_t k = 0; k < 3; k++) {
        pairs[1].top[k] = (struct uncertainty_share){.factor = k,
                                                     .share = 0.5 + k,
                                                     .low = 0.25 + k,
                                                     .high = 0.75 + k,
                                                     .wrong_after = 0.125 * k,
                                                     .flips = k == 0,
                                                     .holds_at = 21,
                                                     .turns_at = 22,
                                                     .difference_holds = 23,
                                                     .difference_turns = 24,
                                                     .difference_file = 25 + k,
                                                     .difference_low = 35 + k,
                                                     .difference_high = 45 + k};
    }
    pairs[1].next = 1;
    u->pairs = pairs;
    u->n_pairs = 2;
    for (int i = 0; i < 4; i++) {
        best[i] = 0.125 * (i + 1);
        means[i] = (struct uncertainty_range){50 + i, 60 + i};
    }
    u->best_frac = best;
    u->means = means;
    return u;
}

#define PAIR(better_, se_, not_worse_, rest_)                                                      \
    "{\"q\":{\"better_frac\":" better_ ",\"better_se\":" se_ ",\"not_worse_frac\":" not_worse_     \
    "," rest_ "}}"
#define DIFFERENCE(here_, from_, to_, low_, high_, share_)                                         \
    "\"difference\":" here_ ",\"sampling_low\":" from_ ",\"sampling_high\":" to_                   \
    ",\"model_low\":" low_ ",\"model_high\":" high_ ",\"model_var_frac\":" share_
#define MEAN(policy_, best_, low_, high_)                                                          \
    "\"" policy_ "\":{\"best_frac\":" best_ ",\"mean_low\":" low_ ",\"mean_high\":" high_ "}"
#define PAIR_OF_M PAIR("0.625", "1.25", "0.5", DIFFERENCE("5", "7", "9", "11", "13", "0.25"))
#define PAIR_OF_N PAIR("0.125", "0.25", "0.75", DIFFERENCE("4", "6", "8", "10", "12", "0.5"))
#define BEST_OF_M MEAN("p:a=1", "0.125", "50", "60") "," MEAN("q", "0.25", "51", "61")
#define BEST_OF_N MEAN("p:a=1", "0.375", "52", "62") "," MEAN("q", "0.5", "53", "63")
#define COUNTS                                                                                     \
    "\"uncertain_numbers\":3,\"runs\":40,\"runs_of_plain_comparison\":10,\"failed_machines\":3,"   \
    "\"unserved_runs\":5,"
#define BEST "\"best\":{\"m.s\":{" BEST_OF_M "},\"n.s\":{" BEST_OF_N "}},"
#define ROWS "\"draws_level_frac\":0.95,\"measured_rows\":8,\"measured_rows_inside_frac\":0.75"
#define COMMON COUNTS "\"pairs\":{\"m.s\":" PAIR_OF_M ",\"n.s\":" PAIR_OF_N "}," BEST ROWS

/* 63 machines are too few to name numbers. 40 runs are 4 times the 10 of 5 replications of two
 * policies, 2 runs of each on every machine are 252, and 0.5 / sqrt(63) is 0.063. */
START_TEST(few_machines_name_no_numbers)
{
    struct compare_plan plan = plan_of();
    struct uncertainty *u = result_of(63);
    struct document *d = document_new();
    uncertainty_document(&plan, u, d);
    json_is(d, "{\"machines\":63," COMMON "}");
    text_is(
        d,
        "on 63 machines drawn from the known ranges, 3 uncertain numbers\n"
        "40 runs, 4.0 times the 10 of the plain comparison; a probability of 0.5 is known to +- "
        "0.06 at best with this many machines\n"
        "5 of 252 runs on these machines ended with requests unserved; latencies do not cover "
        "them\n"
        "metric policy P(better) +- P(not worse) difference sampling: from to machine: from to "
        "machine's share\n"
        "m.s q 0.62 1.25 0.50 5 7 9 11 13 0.25\nn.s q 0.12 0.25 0.75 4 6 8 10 12 0.50\n"
        "metric policy best on this share of machines mean: from to\nm.s p:a=1 0.12 50 60\n"
        "m.s q 0.25 51 61\nn.s p:a=1 0.38 52 62\nn.s q 0.50 53 63\n"
        "machine and mean: from, to: the middle 95 % of the drawn machines, which is no confidence "
        "interval. A check: 75 % of 8 measured rows lie in the ranges that kernel times are drawn "
        "from\n\nwhat decides m.s is not listed: of 63 machines chance would name the numbers; it "
        "takes 64\n");
}
END_TEST

#define FACTOR(name_, path_, share_, low_, high_, value_, from_, to_, flip_, differences_, wrong_) \
    "\"" name_ "\":{\"path\":\"" path_ "\",\"share\":" share_ ",\"share_low\":" low_               \
    ",\"share_high\":" high_ ",\"value\":" value_ ",\"low\":" from_ ",\"high\":" to_ "," flip_     \
    "," differences_ ",\"wrong_after\":" wrong_ "}"
#define NO_FLIP                                                                                    \
    "\"holds_at\":null,\"turns_at\":null,\"difference_holds\":null,\"difference_turns\":null"
#define DIFFERENCES(file_, low_, high_)                                                            \
    "\"difference_file\":" file_ ",\"difference_low\":" low_ ",\"difference_high\":" high_

/* From 64 on the numbers of the first metric are listed, and what to measure: known, the second
 * leaves a probability of 0.125 instead of 0.375, the lesser of 0.625 and the rest. */
START_TEST(many_machines_name_the_numbers)
{
    struct compare_plan plan = plan_of();
    struct uncertainty *u = result_of(64);
    struct document *d = document_new();
    uncertainty_document(&plan, u, d);
    json_is(
        d, "{\"machines\":64," COMMON ",\"factors\":{\"m.s\":{\"q\":{" FACTOR(
               "igpu rate", "P0", "0.5", "0.25", "0.75", "10", "11", "12",
               "\"holds_at\":21,\"turns_at\":22,\"difference_holds\":23,\"difference_turns\":24",
               DIFFERENCES("25", "35", "45"),
               "0") "," FACTOR("npu, prefill of an unseen model", "P1", "1.5", "1.25", "1.75", "13",
                               "14", "15", NO_FLIP, DIFFERENCES("26", "36", "46"),
                               "0.125") "," FACTOR("ddr.together", "P2", "2.5", "2.25", "2.75", "1",
                                                   "0", "0", NO_FLIP, DIFFERENCES("27", "37", "47"),
                                                   "0.25") "}}},\"measure_next\":{\"q\":\"npu, "
                                                           "prefill of an unseen model: measure M2 "
                                                           "(P(wrong) 0.38, then 0.12)\"}}");
    OWNED char *text = shown_text(d, "text");
    static const char *const parts[] = {
        "\n\nwhat decides m.s, and how far it must move alone before the order turns (both sides "
        "run)\n",
        "\nm.s q igpu rate 0.50 0.25 0.75 10 11 12 21 22 0.00\n",
        "\nm.s q npu, prefill of an unseen model 1.50 1.25 1.75 13 14 15 - never 0.12\n",
        "\nnot listed, for q: 2 numbers whose share is chance, because both ends of the range "
        "give the same results\n",
        "\nmeasure next, for q: npu, prefill of an unseen model: measure M2 (P(wrong) 0.38, then "
        "0.12)\n"};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        ck_assert_msg(strstr(text, parts[i]) != NULL, "no\n%s\nin\n%s", parts[i], text);
    }
    pairs[1].next = -1;
    pairs[1].n_idle = 0;
    pairs[1].top[1].difference_low = NAN; /* no run there has the metric */
    u->machines.n_rows = 0;
    struct document *none = document_new();
    uncertainty_document(&plan, u, none);
    OWNED char *bare = shown_text(none, "text");
    ck_assert_ptr_nonnull(strstr(
        bare, "measure next, for q: nothing known alone makes the order surer (P(wrong) 0.38)\n"));
    ck_assert_ptr_null(strstr(bare, "not listed"));
    ck_assert_ptr_null(strstr(bare, "A check"));
    ck_assert_ptr_nonnull(strstr(bare, " 13 14 15 - not known 0.12\n"));
}
END_TEST

/* ---- what to measure ---- */

/* By the last part of a number's path, in the words of docs/concepts/uncertainty: which kernels or
 * transfers show it. The longest ending counts. */
static const struct {
    const char *ending, *measure;
    double offset;
    bool capped;
} measured[] = {
    {".loader.bandwidth", "loading a graph", 0, false},
    {".loader.swap_bandwidth", "loading a graph", 0, false},
    {".loader.fixed", "loading a graph", 0, false},
    {".compiler.fixed", "compiling attention of two prompt lengths", 0, false},
    {".compiler.per_token", "compiling attention of two prompt lengths", 0, false},
    {".decode_batch_inefficiency", "decode of several sequences at once", 0, false},
    {".kv_gather", "decode of several sequences at once", 0, false},
    {".attention_launches", "attention kernels over long prompts", 1, false},
    {".decode_attention", "attention kernels over long prompts", 0, false},
    {".special_attention", "attention kernels over long prompts", 0, false},
    {".recurrence", "a prompt of a model with states", 0, false},
    {".attention", "attention kernels over long prompts", 0, false},
    {".further_launches", "a decode of a mixture of experts, or of a model with states", 1, false},
    {".fused_launches", "the shortest kernels, one after the other", 1, false},
    {".enqueue", "the shortest kernels, one after the other", 1, false},
    {".prompt_enqueue", "prompts of few tokens", 1, false},
    {".launch", "the shortest kernels, one after the other", 1, false},
    {".bandwidth", "one-row kernels (decode, GEMV)", 0, true},
    {".rate", "matrix products of a chunk of rows (prefill, GEMM)", 0, false},
    {".row_fill", "matrix products of a chunk of rows (prefill, GEMM)", 1, false},
    {".batch_fill", "decode of several sequences at once", 0, false},
    {".expert_fill", "a prompt of a mixture of experts", 0, false},
    {".expert_rows", "a prompt of a mixture of experts", 0, false},
    {".width_fill", "it", 100, false},
    {".together", "streams on NPU and iGPU at once", 0, false},
    {".queueing", "streams on NPU and iGPU at once", 0, false},
    {".poll", "its power while it works, with a meter", 0, false},
    {"power", "its power while it works, with a meter", 0, false},
    {".prefill", "a prefill of this model of about 1000 tokens", 0, false},
    {".decode", "one token of this model at the contexts in question", 0, false},
    {"", "it", 0, false},
};
enum { N_MEASURED = sizeof measured / sizeof measured[0] };

static bool seen[N_MEASURED];

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text);
    size_t k = strlen(end);
    return n >= k && strcmp(text + n - k, end) == 0;
}

static void look_at(const char *soc, const char *llm)
{
    struct err e = ERR_INIT;
    struct config_options o = config_options_default();
    bool experts = llm != NULL;
    uint32_t found = 0;
    o.soc = soc;
    o.llm = experts ? llm : o.llm;
    OWNED struct config *c = xcalloc(1, sizeof *c);
    OWNED struct machines *m = xcalloc(1, sizeof *m);
    ck_assert_int_eq(config_load(c, &o, &e), 0);
    ck_assert_int_eq(machines_find(c, m, &e), 0);
    ck_assert_uint_gt(m->n_factors, 4);
    uint32_t residuals = 0;
    for (uint32_t i = 0; i < m->n_factors; i++) {
        const struct machine_factor *f = &m->factor[i];
        int k = 0;
        while (!ends_with(f->path, measured[k].ending)) {
            k++;
        }
        seen[k] = true;
        ck_assert_msg(strcmp(f->number->measure, measured[k].measure) == 0, "%s: %s", f->path,
                      f->number->measure);
        ck_assert(f->number->offset == measured[k].offset &&
                  f->number->capped == measured[k].capped);
        ck_assert_msg(ends_with(f->path, f->name) && f->name > f->path, "%s: %s", f->path, f->name);
        if (f->kind == MACHINE_RESIDUAL) {
            OWNED char *path = xformat("residual.%s.%s", c->soc.machine.devices[f->device].name,
                                       f->decode ? "decode" : "prefill");
            ck_assert_str_eq(f->path, path);
            ck_assert_str_eq(f->unit, "x time");
            ck_assert(f->nominal == 1.0);
            residuals++;
            continue;
        }
        /* The file's number, at its path; a range around it, or what it was fitted with. A batch
         * pays all of the fill where no file states a share: the range begins at 0. */
        const char *bad;
        const cJSON *q = json_find_path(c->tree, f->path, &bad);
        if (q == NULL && strcmp(f->name, "expert_fill") == 0) {
            found++;
            ck_assert(f->kind == MACHINE_RANGE && f->low == 1400.0 && f->high == 4200.0 &&
                      f->nominal == 2700.0 && strcmp(f->unit, "columns") == 0);
            continue;
        }
        if (q == NULL && strcmp(f->name, "expert_rows") == 0) {
            found++;
            ck_assert(f->kind == MACHINE_RANGE && f->low == 0.0 && f->high == 100.0 &&
                      f->nominal == 20.0 && strcmp(f->unit, "rows") == 0);
            continue;
        }
        if (q == NULL) {
            ck_assert_str_eq(f->name, "batch_fill");
            ck_assert(f->kind == MACHINE_RANGE && f->low == 0.0 && f->high == 1.0 &&
                      f->nominal == 1.0 && strcmp(f->unit, "1") == 0);
            continue;
        }
        ck_assert_msg(q != NULL && json_number(q, "value") == f->nominal, "%s", f->path);
        ck_assert_str_eq(f->unit, json_string(q, "unit"));
        ck_assert_msg(f->low <= f->nominal && f->nominal <= f->high && f->low < f->high, "%s",
                      f->path);
        if (f->kind == MACHINE_RANGE) {
            ck_assert_double_eq(f->low, fmin(json_number(q, "low"), f->nominal));
            ck_assert_double_eq(f->high, fmax(json_number(q, "high"), f->nominal));
        }
    }
    ck_assert_uint_ge(residuals, 2);
    ck_assert((found > 0) == experts && found % 2 == 0);
    config_fini(c);
}

START_TEST(every_number_says_what_to_measure)
{
    static const char *const socs[] = {"core-ultra-5-125h", "core-ultra-7-258v",
                                       "core-ultra-7-155h", "snapdragon-8elite",
                                       "apple-m1-max-24core"};
    for (size_t i = 0; i < sizeof socs / sizeof socs[0]; i++) {
        look_at(socs[i], NULL);
    }
    look_at("core-ultra-7-258v", "qwen3-30b-a3b:bits=4"); /* a mixture of experts */
    uint32_t n = 0;
    for (int k = 0; k < N_MEASURED; k++) {
        n += seen[k];
    }
    ck_assert_uint_gt(n, 10);
}
END_TEST

/* Draws of one recording are moved from their mean by the square root of how many there are. Two of
 * three pairs have both values. These pairs differ by 100 and 110; moved from their mean of 105,
 * they have a standard error of 5 sqrt(2). Student's quantile is 12.706. The draw without a partner
 * is in the mean of its policy only. */
START_TEST(draws_of_a_recording_are_spread_by_pairs)
{
    static struct metric name = {.name = "a.s"};
    double of[] = {0, 500, 400, 100, NAN, 510};
    struct config_options options = {.resample = true};
    struct compare_plan plan = {.options = &options, .policies = three, .n_policies = 2};
    struct compare_result r = {2, 3, 1, 1, .names = &name, .values = of};
    static const char *const metrics[] = {"a.s"};
    struct document *d = document_new();
    compare_document(&plan, &r, metrics, 1, false, d);
    SCOPED(json_drop) cJSON *tree = document_json(d);
    const cJSON *p = json_member(tree, "policies")->child->child;
    const cJSON *q = json_member(json_member(tree, "policies"), "q")->child;
    double half = 12.7062047 * 5 * sqrt(2);
    ck_assert_double_eq_tol(json_number(p, "mean"), 300, 1e-9);
    ck_assert_double_eq_tol(json_number(q, "diff_low"), 105 - half, 1e-5);
    ck_assert_double_eq_tol(json_number(q, "diff_high"), 105 + half, 1e-5);
    ck_assert_double_eq_tol(json_number(q, "ratio"), 305.0 / 200.0, 1e-9);
}
END_TEST

/* So many requests have exact quantiles, and one more has not. */
START_TEST(quantiles_are_sketched_beyond_the_limit)
{
    static struct metric name = {.name = "all.arrived"};
    double arrived[] = {1.0, RUNNER_EXACT_REQUESTS + (double)_i};
    struct compare_plan plan = {.policies = three, .n_policies = 1};
    struct compare_result r = {1, 2, 1, 1, .names = &name, .values = arrived};
    struct document *d = document_new();
    compare_document(&plan, &r, NULL, 0, false, d);
    SCOPED(json_drop) cJSON *tree = document_json(d);
    OWNED char *warnings = json_text(json_member(tree, "warnings"), false);
    ck_assert_msg((strstr(warnings, "from a sketch") != NULL) == (_i == 1), "%s", warnings);
}
END_TEST

static const struct suite_row rows[] = {
    CASE("selections"),
    TEST(a_decided_selection),
    TEST(a_selection_of_a_gain),
    TEST(a_selection_with_intervals),
    TEST(a_selection_of_nobody),
    TEST(an_indifference_is_a_share),
    CASE("drawn machines"),
    TEST(few_machines_name_no_numbers),
    TEST(many_machines_name_the_numbers),
    TEST(every_number_says_what_to_measure),
    CASE("redrawn sessions"),
    TEST(draws_of_a_recording_are_spread_by_pairs),
    CASE("samples"),
    LOOP(quantiles_are_sketched_beyond_the_limit, 2),
};
SUITE_MAIN("comparisons as they are printed", rows)
