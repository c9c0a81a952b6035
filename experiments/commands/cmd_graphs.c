/* `xpusim graphs`: switch strategies side by side on one instance, or on random ones. */
#include <cjson/cJSON.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/commands/commands.h"
#include "experiments/commands/graphs_print.h"
#include "hwmodels/graphs.h"
#include "sim/base/err.h"

#define MAX_STRATEGIES 16

static const char HELP[] =
    "usage: xpusim graphs --p T,T,.. --d T,T,.. --s T,T,.. --chunks C [options]\n"
    "       xpusim graphs --random N [--seed S] [--keep-old] [--json]\n"
    "\n"
    "Switches an NPU from its prefill graphs (G1) to its decode graphs (G2), block by block, "
    "while\n"
    "the prompt is still being computed, and compares strategies. Total = max(end of prefill, end\n"
    "of the last load).\n"
    "\n"
    "  --p LIST         integer time to compute one chunk with G1, per block\n"
    "  --d LIST         the same chunk with G2 (at least p)\n"
    "  --s LIST         time to load G2\n"
    "  --chunks C       chunks of the prompt\n"
    "  --strategy NAME  one of the strategies below, or all (default)\n"
    "  --keep-old       G1 stays usable while G2 loads; one more block of memory\n"
    "  --nodes N        budget of the exact search (default 2000000 states)\n"
    "  --gantt          draw each schedule\n"
    "  --json           results as JSON\n"
    "  --random N       N random instances: mean and worst ratio to the optimum\n"
    "  --seed S         of the random instances (default 1)\n";

struct options {
    int64_t times[3][GRAPHS_MAX_BLOCKS]; /* p, d, s */
    uint32_t n_times[3];                 /* 0: not given */
    int64_t chunks, random, seed, nodes; /* -1: not given */
    const char *strategy;
    bool keep_old, json, gantt;
};

static bool parse_integer(const char **text, int64_t *value)
{
    char *end;
    if (**text < '0' || **text > '9') {
        return false;
    }
    errno = 0;
    long long v = strtoll(*text, &end, 10);
    *value = v;
    *text = end;
    return errno == 0;
}

static int parse_list(const char *option, const char *text, int64_t *times, uint32_t *n,
                      struct err *e)
{
    const char *at = text;
    *n = 0;
    for (;;) {
        if (*n == GRAPHS_MAX_BLOCKS) {
            return err_add(e, "--%s: more than %d blocks", option, GRAPHS_MAX_BLOCKS);
        }
        if (!parse_integer(&at, &times[*n]) || (*at != ',' && *at != '\0')) {
            return err_add(e, "--%s: \"%s\" is not a list of integers such as 10,12,8", option,
                           text);
        }
        ++*n;
        if (*at++ == '\0') {
            return 0;
        }
    }
}

static int parse_count(const char *option, const char *text, int64_t min, int64_t max,
                       int64_t *value, struct err *e)
{
    const char *at = text;
    if (!parse_integer(&at, value) || *at != '\0' || *value < min || *value > max) {
        *value = -1;
        return err_add(e, "--%s: \"%s\" is not an integer from %" PRId64 " to %" PRId64, option,
                       text, min, max);
    }
    return 0;
}

static void print_help(void)
{
    size_t n;
    const struct graphs_strategy *st = graphs_strategies(&n);
    fputs(HELP, stdout);
    fputs("\nStrategies:\n", stdout);
    for (size_t i = 0; i < n; i++) {
        printf("  %-18s %s\n", st[i].name, st[i].what);
    }
}

/* 0, 1 when help was asked for, or -EINVAL. */
static int parse_options(int argc, char **argv, struct options *o, struct err *e)
{
    static const struct option longs[] = {{"p", required_argument, NULL, 'p'},
                                          {"d", required_argument, NULL, 'd'},
                                          {"s", required_argument, NULL, 's'},
                                          {"chunks", required_argument, NULL, 'c'},
                                          {"strategy", required_argument, NULL, 'S'},
                                          {"keep-old", no_argument, NULL, 'k'},
                                          {"nodes", required_argument, NULL, 'n'},
                                          {"gantt", no_argument, NULL, 'g'},
                                          {"json", no_argument, NULL, 'j'},
                                          {"random", required_argument, NULL, 'r'},
                                          {"seed", required_argument, NULL, 'x'},
                                          {"help", no_argument, NULL, 'h'},
                                          {NULL, 0, NULL, 0}};
    *o = (struct options){.chunks = -1, .random = -1, .seed = -1, .nodes = -1};
    optind = 1;
    for (int c; (c = getopt_long(argc, argv, "h", longs, NULL)) != -1;) {
        switch (c) {
        case 'p':
        case 'd':
        case 's': {
            int i = c == 'p' ? 0 : c == 'd' ? 1 : 2;
            char name[2] = {(char)c, '\0'};
            parse_list(name, optarg, o->times[i], &o->n_times[i], e);
            break;
        }
        case 'c':
            parse_count("chunks", optarg, 1, GRAPHS_MAX_POSITIONS, &o->chunks, e);
            break;
        case 'n':
            parse_count("nodes", optarg, 1, 1000000000, &o->nodes, e);
            break;
        case 'r':
            parse_count("random", optarg, 1, GRAPHS_STUDY_MAX, &o->random, e);
            break;
        case 'x':
            parse_count("seed", optarg, 0, INT64_MAX, &o->seed, e);
            break;
        case 'S':
            o->strategy = optarg;
            break;
        case 'k':
            o->keep_old = true;
            break;
        case 'g':
            o->gantt = true;
            break;
        case 'j':
            o->json = true;
            break;
        case 'h':
            return 1;
        default:
            return err_add(e, "graphs: bad usage, see xpusim graphs --help"); /* getopt said what */
        }
    }
    if (optind < argc) {
        err_add(e, "graphs: unexpected argument \"%s\"", argv[optind]);
    }
    return e->n == 0 ? 0 : -EINVAL;
}

/* Rules that join several options. */
static int check_options(const struct options *o, struct graphs_instance *g, struct err *e)
{
    bool instance = o->n_times[0] + o->n_times[1] + o->n_times[2] > 0 || o->chunks >= 0;
    if (o->random >= 0) {
        return instance || o->strategy != NULL || o->gantt || o->nodes >= 0
                   ? err_add(e, "graphs: --random goes with --seed, --keep-old and --json only")
                   : 0;
    }
    if (o->seed >= 0) {
        err_add(e, "graphs: --seed goes with --random");
    }
    if (o->strategy != NULL && strcmp(o->strategy, "all") != 0 &&
        graphs_strategy_find(o->strategy) == NULL) {
        err_add(e, "--strategy: no strategy \"%s\", see xpusim graphs --help", o->strategy);
    }
    if (o->n_times[0] == 0 || o->n_times[1] == 0 || o->n_times[2] == 0 || o->chunks < 0) {
        return err_add(e, "graphs: --p, --d, --s and --chunks are needed (or --random)");
    }
    if (o->n_times[1] != o->n_times[0] || o->n_times[2] != o->n_times[0]) {
        return err_add(e,
                       "graphs: --p, --d and --s hold %" PRIu32 ", %" PRIu32 " and %" PRIu32
                       " values; one per block is needed in each",
                       o->n_times[0], o->n_times[1], o->n_times[2]);
    }
    *g = (struct graphs_instance){.n_blocks = o->n_times[0],
                                  .n_chunks = (uint32_t)o->chunks,
                                  .p = o->times[0],
                                  .d = o->times[1],
                                  .s = o->times[2],
                                  .keep_old = o->keep_old,
                                  .max_nodes = o->nodes < 0 ? 0 : (uint64_t)o->nodes};
    graphs_instance_check(g, "graphs", e);
    return e->n == 0 ? 0 : -EINVAL;
}

static void print_text_row(const struct graphs_strategy *st, const struct graphs_result *r,
                           const struct graphs_result *best)
{
    char ratio[24] = "-";
    if (best->label == GRAPHS_OPTIMAL && best->total > 0) {
        snprintf(ratio, sizeof(ratio), "%.3f", (double)r->total / (double)best->total);
    }
    if (r->label == GRAPHS_UNFINISHED) {
        printf("%-18s not finished: the optimum lies between %" PRId64 " and %" PRId64 " (%" PRIu64
               " states)\n",
               st->name, r->lower_bound, r->total, r->nodes);
        return;
    }
    printf("%-18s %10" PRId64 " %8s %10" PRId64 " %10" PRId64 " %8" PRId64 " %7" PRIu32 "\n",
           st->name, r->total, ratio, r->prefill_end, r->switch_end, r->stall,
           r->memory_peak_blocks);
}

static void print_text(const struct graphs_instance *g, const struct options *o,
                       const struct graphs_result *results, const struct graphs_result *best)
{
    size_t n;
    const struct graphs_strategy *st = graphs_strategies(&n);
    printf("%" PRIu32 " blocks, %" PRIu32 " chunks, G1 %s\n\n%-18s %10s %8s %10s %10s %8s %7s\n",
           g->n_blocks, g->n_chunks, g->keep_old ? "kept while G2 loads" : "freed before G2 loads",
           "strategy", "total", "/exact", "prefill", "switch", "stall", "memory");
    for (size_t i = 0; i < n; i++) {
        if (results[i].memory_peak_blocks > 0) {
            print_text_row(&st[i], &results[i], best);
        }
    }
    for (size_t i = 0; o->gantt && i < n; i++) {
        if (results[i].memory_peak_blocks > 0) {
            printf("\n%s\n", st[i].name);
            graphs_print_gantt(g, &results[i], stdout);
        }
    }
}

static void add_intervals(cJSON *o, const struct graphs_result *r)
{
    static const char *const kinds[] = {"compute_g1", "compute_g2", "load_g2"};
    cJSON *list = cJSON_AddArrayToObject(o, "intervals");
    for (size_t i = 0; i < r->n_intervals; i++) {
        const struct graphs_interval *bar = &r->intervals[i];
        cJSON *one = cJSON_CreateObject();
        cJSON_AddStringToObject(one, "kind", kinds[bar->kind]);
        cJSON_AddNumberToObject(one, "chunk", bar->chunk + 1);
        cJSON_AddNumberToObject(one, "block", bar->block + 1);
        cJSON_AddNumberToObject(one, "start", (double)bar->start);
        cJSON_AddNumberToObject(one, "end", (double)bar->end);
        cJSON_AddItemToArray(list, one);
    }
}

static void print_json(const struct options *o, const struct graphs_result *results,
                       const struct graphs_result *best)
{
    size_t n;
    const struct graphs_strategy *st = graphs_strategies(&n);
    cJSON *root = cJSON_CreateObject();
    cJSON *totals = cJSON_AddObjectToObject(root, "totals");
    cJSON *all = cJSON_AddObjectToObject(root, "strategies");
    for (size_t i = 0; i < n; i++) {
        const struct graphs_result *r = &results[i];
        if (r->memory_peak_blocks == 0) {
            continue;
        }
        if (r->label == GRAPHS_UNFINISHED) {
            cJSON_AddNullToObject(totals, st[i].name); /* no number under a name it does not earn */
        } else {
            cJSON_AddNumberToObject(totals, st[i].name, (double)r->total);
        }
        cJSON *s = cJSON_AddObjectToObject(all, st[i].name);
        cJSON_AddNumberToObject(s, "total", (double)r->total);
        cJSON_AddNumberToObject(s, "lower_bound", (double)r->lower_bound);
        cJSON_AddNumberToObject(s, "prefill_end", (double)r->prefill_end);
        cJSON_AddNumberToObject(s, "switch_end", (double)r->switch_end);
        cJSON_AddNumberToObject(s, "stall", (double)r->stall);
        cJSON_AddNumberToObject(s, "memory_peak_blocks", r->memory_peak_blocks);
        cJSON_AddBoolToObject(s, "finished", r->label != GRAPHS_UNFINISHED);
        if (best->label == GRAPHS_OPTIMAL && best->total > 0) {
            cJSON_AddNumberToObject(s, "ratio_to_exact", (double)r->total / (double)best->total);
        }
        if (o->gantt) {
            add_intervals(s, r);
        }
    }
    char *text = cJSON_Print(root);
    printf("%s\n", text);
    cJSON_free(text);
    cJSON_Delete(root);
}

/* Solves and prints. 1 when the one strategy asked for is the exact one and it did not finish. */
static int run_instance(const struct graphs_instance *g, const struct options *o)
{
    size_t n;
    const struct graphs_strategy *st = graphs_strategies(&n);
    struct graphs_result results[MAX_STRATEGIES] = {{.total = 0}}; /* memory 0: not asked for */
    struct graphs_result best;
    SIM_REQUIRE(n <= MAX_STRATEGIES, "room for every strategy");
    graphs_strategy_find("exact")->solve(g, &best);
    bool all = o->strategy == NULL || strcmp(o->strategy, "all") == 0;
    int rc = EXIT_OK;
    for (size_t i = 0; i < n; i++) {
        if (all || strcmp(o->strategy, st[i].name) == 0) {
            st[i].solve(g, &results[i]);
            rc = !all && results[i].label == GRAPHS_UNFINISHED ? EXIT_CHECK_FAILED : rc;
        }
    }
    if (o->json) {
        print_json(o, results, &best);
    } else {
        print_text(g, o, results, &best);
    }
    for (size_t i = 0; i < n; i++) {
        graphs_result_fini(&results[i]);
    }
    graphs_result_fini(&best);
    return rc;
}

int cmd_graphs(int argc, char **argv)
{
    struct options o;
    struct graphs_instance g;
    struct err e = ERR_INIT;
    int rc = parse_options(argc, argv, &o, &e);
    if (rc == 1 && e.n == 0) {
        print_help();
        return EXIT_OK;
    }
    if (e.n == 0) {
        check_options(&o, &g, &e);
    }
    if (e.n > 0) {
        err_print(&e, stderr);
        err_fini(&e);
        return EXIT_BAD_INPUT;
    }
    if (o.random >= 0) {
        graphs_print_study((uint32_t)o.random, o.seed < 0 ? 1 : (uint64_t)o.seed, o.keep_old,
                           o.json, stdout);
        return EXIT_OK;
    }
    return run_instance(&g, &o);
}
