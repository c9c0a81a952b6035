/* `xpusim graphs`: compares switch strategies on one instance, or on random ones. */
#include "experiments/commands/commands.h"
#include "experiments/commands/graphs_print.h"
#include "experiments/run/about.h"
#include "hwmodels/graphs.h"

#define MAX_STRATEGIES 16

struct options {
    int64_t times[3][GRAPHS_MAX_BLOCKS]; /* p, d, s */
    uint32_t n_times[3];                 /* 0: not given */
    uint32_t chunks, random, nodes;      /* 0: not given */
    uint64_t seed;
    bool seed_given;
    const char *strategy;
    bool keep_old, gantt;
    struct option_output output;
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

static int take_times(void *target, const struct option_row *row, const char *arg, struct err *e)
{
    struct options *o = target;
    int i = row->name[0] == 'p' ? 0 : row->name[0] == 'd' ? 1 : 2;
    return parse_list(row->name, arg, o->times[i], &o->n_times[i], e);
}

static void print_strategies(FILE *out)
{
    size_t n;
    const struct graphs_strategy *st = graphs_strategies(&n);
    (void)fputs("Strategies:\n", out);
    for (size_t i = 0; i < n; i++) {
        (void)fprintf(out, "  %-18s %s\n", st[i].name, st[i].what);
    }
}

/* Checks options that depend on each other. */
static int check_options(const struct options *o, struct graphs_instance *g, struct err *e)
{
    bool instance = o->n_times[0] + o->n_times[1] + o->n_times[2] > 0 || o->chunks > 0;
    if (o->random > 0) {
        return instance || o->strategy != NULL || o->gantt || o->nodes > 0
                   ? err_add(e, "graphs: --random goes with --seed, --keep-old and --json only")
                   : 0;
    }
    if (o->seed_given) {
        err_add(e, "graphs: --seed goes with --random");
    }
    if (o->strategy != NULL && strcmp(o->strategy, "all") != 0 &&
        graphs_strategy_find(o->strategy) == NULL) {
        err_add(e, "--strategy: no strategy \"%s\", see xpusim graphs --help", o->strategy);
    }
    if (o->n_times[0] == 0 || o->n_times[1] == 0 || o->n_times[2] == 0 || o->chunks == 0) {
        return err_add(e, "graphs: --p, --d, --s and --chunks are needed (or --random)");
    }
    if (o->n_times[1] != o->n_times[0] || o->n_times[2] != o->n_times[0]) {
        return err_add(e,
                       "graphs: --p, --d and --s hold %" PRIu32 ", %" PRIu32 " and %" PRIu32
                       " values; one per block is needed in each",
                       o->n_times[0], o->n_times[1], o->n_times[2]);
    }
    *g = (struct graphs_instance){.n_blocks = o->n_times[0],
                                  .n_chunks = o->chunks,
                                  .p = o->times[0],
                                  .d = o->times[1],
                                  .s = o->times[2],
                                  .keep_old = o->keep_old,
                                  .max_nodes = o->nodes};
    graphs_instance_check(g, "graphs", e);
    return e->n == 0 ? 0 : -EINVAL;
}

/* Puts a line with the column widths of the title line. */
static void put_row(const struct graphs_strategy *st, bool keep_old, const struct graphs_result *r,
                    const struct graphs_result *best, struct document *d)
{
    bool known = best->label != GRAPHS_UNFINISHED && best->total > 0;
    if (r->label == GRAPHS_UNFINISHED) {
        document_note(d,
                      "%-18s not finished: the optimum lies between %" PRId64 " and %" PRId64
                      " (%" PRIu64 " states)",
                      st->name, r->lower_bound, r->total, r->nodes);
        return;
    }
    document_note(d, "%-18s %10" PRId64 " %8s %10" PRId64 " %10" PRId64 " %8" PRId64 " %7" PRIu32,
                  graphs_strategy_title(st, keep_old), r->total,
                  known ? document_format("%.3f", (double)r->total / (double)best->total) : "-",
                  r->prefill_end, r->switch_end, r->stall, r->memory_peak_blocks);
}

static void put_intervals(const struct graphs_result *r, struct document *d)
{
    static const char *const kinds[] = {"compute_g1", "compute_g2", "load_g2"};
    struct frame *f = document_data(d, "intervals", 0, "kind chunk block start end");
    for (size_t i = 0; i < r->n_intervals; i++) {
        const struct graphs_interval *bar = &r->intervals[i];
        FRAME_ROW(f, kinds[bar->kind], bar->chunk + 1, bar->block + 1, bar->start, bar->end);
    }
}

static void put_strategy(const struct options *o, const struct graphs_result *r,
                         const struct graphs_result *best, struct document *d)
{
    bool known = best->label == GRAPHS_OPTIMAL && best->total > 0;
    DOCUMENT_VALUES(d, "total", r->total, "lower_bound", r->lower_bound, "prefill_end",
                    r->prefill_end, "switch_end", r->switch_end, "stall", r->stall,
                    "memory_peak_blocks", r->memory_peak_blocks, "finished",
                    (bool)(r->label != GRAPHS_UNFINISHED), "ratio_to_exact",
                    FRAME_IF(known, (double)r->total / (double)best->total));
    if (o->gantt) {
        put_intervals(r, d);
    }
}

/* Puts the requested strategies. Those not requested have no memory peak. */
static void put_results(const struct graphs_instance *g, const struct options *o,
                        const struct graphs_result *results, const struct graphs_result *best,
                        struct document *d)
{
    size_t n;
    const struct graphs_strategy *st = graphs_strategies(&n);
    document_note(d, "%" PRIu32 " block%s, %" PRIu32 " chunk%s, G1 %s\n", g->n_blocks,
                  text_plural(g->n_blocks), g->n_chunks, text_plural(g->n_chunks),
                  g->keep_old ? "kept while G2 loads" : "freed before G2 loads");
    document_note(d, "%-18s %10s %8s %10s %10s %8s %7s", "strategy", "total",
                  g->keep_old ? "/best" : "/exact", "prefill", "switch", "stall", "memory");
    struct document *totals = document_within(d, "totals");
    struct document *all = document_within(d, "strategies");
    struct document *charts = document_within(d, NULL);
    for (size_t i = 0; i < n; i++) {
        const struct graphs_result *r = &results[i];
        const char *title = graphs_strategy_title(&st[i], o->keep_old);
        if (r->memory_peak_blocks == 0) {
            continue;
        }
        if (r->label == GRAPHS_UNFINISHED) { /* the title would claim a proved optimum */
            DOCUMENT_VALUES(totals, st[i].name, FRAME_NONE);
        } else {
            DOCUMENT_VALUES(totals, title, r->total);
        }
        put_row(&st[i], o->keep_old, r, best, totals);
        put_strategy(o, r, best, document_within(all, title));
        if (o->gantt) {
            document_note(charts, "\n%s", title);
            graphs_gantt(g, r, charts);
        }
    }
}

/* Solves the instance. Returns 1 if only the exact strategy was requested and did not finish. */
static int run_instance(const struct graphs_instance *g, const struct options *o,
                        struct document *d)
{
    size_t n;
    const struct graphs_strategy *st = graphs_strategies(&n);
    struct graphs_result results[MAX_STRATEGIES] = {{.total = 0}}; /* memory 0: not requested */
    SCOPED(graphs_result_fini) struct graphs_result best;
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
    put_results(g, o, results, &best, d);
    for (size_t i = 0; i < n; i++) {
        graphs_result_fini(&results[i]);
    }
    return rc;
}

static int run(void *values, struct err *e)
{
    const struct options *o = values;
    struct graphs_instance g;
    if (check_options(o, &g, e) != 0) {
        return EXIT_BAD_INPUT;
    }
    struct document *d = document_new();
    int status = EXIT_OK;
    about_document(&(struct about){.kind = "graphs"}, d);
    if (o->random > 0) {
        graphs_study(o->random, o->seed_given ? o->seed : 1, o->keep_old, d);
    } else {
        status = run_instance(&g, o, d);
    }
    document_show(d, &o->output);
    return status;
}

#define OPTIONS struct options

static const struct option_row rows[] = {
    OPTION_OWN(take_times, "p", "LIST", "integer time to compute one chunk with G1, per block"),
    OPTION_OWN(take_times, "d", "LIST",
               "integer time to compute the chunk with G2 (at least p), per block"),
    OPTION_OWN(take_times, "s", "LIST", "integer time to load G2, per block"),
    OPTION_COUNT(OPTIONS, chunks, "chunks", "C", NULL, 1, GRAPHS_MAX_POSITIONS,
                 "number of chunks of the prompt"),
    OPTION_TEXT(OPTIONS, strategy, "strategy", "NAME", NULL,
                "one of the strategies below (default: all)"),
    OPTION_FLAG(OPTIONS, keep_old, "keep-old",
                "keep G1 usable while G2 loads; takes one more block of memory"),
    OPTION_COUNT(OPTIONS, nodes, "nodes", "N", NULL, 1, 1000000000,
                 "budget of the exact search (default 2000000 states)"),
    OPTION_FLAG(OPTIONS, gantt, "gantt", "draw each schedule"),
    OPTION_COUNT(OPTIONS, random, "random", "N", NULL, 1, GRAPHS_STUDY_MAX,
                 "solve N random instances: mean and worst ratio to the optimum"),
    OPTION_ROW(SEED, OPTIONS, seed, uint64_t, "seed", "S",
               "seed of the random instances (default 1)",
               .given = 1 + OPTION_AT(OPTIONS, seed_given, bool)),
};
const struct command cmd_graphs = {
    .name = "graphs",
    .summary = "compare strategies of switching NPU graphs with the optimum",
    .usage = "--p T,T,.. --d T,T,.. --s T,T,.. --chunks C [options]\n"
             "--random N [--seed S] [--keep-old] [--json]",
    .about = "Switches an NPU from its prefill graphs (G1) to its decode graphs (G2), block by "
             "block, during the computation of the prompt, and compares strategies. Total = "
             "max(end of prefill, end of the last load).",
    .print_notes = print_strategies,
    COMMAND_TAKES(OPTION_ROWS(NULL, rows), OPTION_CHILD(option_output_table, output)),
    .run = run,
};
