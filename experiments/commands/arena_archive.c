/* `xpusim arena archive`: scores every shipped policy on a suite, and makes its certificate. */
#include "experiments/arena/judge.h"
#include "experiments/run/job_options.h"
#include "experiments/shell/cli.h"
#include "experiments/sweep/sweep_slurm.h"
#include "policies/registry.h"
#include "sim/base/portable.h"

#define MAX_POLICIES 256

struct options {
    struct option_texts policies;
    struct job_options work;
    struct option_output output;
    const char *suite;
    uint32_t replications; /* 0: the suite's */
    struct slurm_options slurm;
};

/* A policy on the leaderboard. */
struct standing {
    const char *policy; /* borrowed */
    struct score score;
    uint32_t failed;
    double headroom, gain[SUITE_MAX_METRICS]; /* ln; by metric, over the scored points */
};

static void take_gains(const struct suite *s, const struct judge_result *r, struct standing *to)
{
    for (uint32_t m = 0; m < s->spec.n_patterns; m++) {
        double x[SUITE_MAX_POINTS];
        for (uint32_t p = 0; p < s->n_points; p++) {
            x[p] =
                s->points[p].scored ? r->cells[p * s->spec.n_patterns + m].gain.mean : (double)NAN;
        }
        to->gain[m] = stats_mean(x, s->n_points, STATS_LEVEL_FRAC).mean;
    }
}

SORT_BY(by_score, struct standing, SORT_DOWN(score.gain.mean))

/* Adds every registered policy with its defaults, and every alias. */
static void add_shipped(struct option_texts *list)
{
    size_t n = 0;
    const struct policy_ops *const *all = policy_list(&n);
    for (size_t i = 0; i < n; i++) {
        options_text_add(list, all[i]->name);
    }
    for (const struct policy_alias *a = policy_alias_find(NULL); a->name != NULL; a++) {
        options_text_add(list, a->name);
    }
}

static void leaderboard(const struct suite *s, const struct standing *x, uint32_t n,
                        struct document *d)
{
    static const struct frame_column fixed[] = {
        {.name = "policy", .kind = FRAME_TEXT},
        {.name = "score", .format = "%.3f"},
        {.name = "low", .title = "from", .format = "%.3f"},
        {.name = "high", .title = "to", .format = "%.3f"},
        {.name = "headroom", .title = "to best known", .format = "%.2f"},
        {.name = "regressions", .format = "%.0f"},
        {.name = "failed", .title = "failed runs", .format = "%.0f"},
    };
    enum { FIXED = sizeof fixed / sizeof fixed[0] };
    struct frame_column columns[FIXED + SUITE_MAX_METRICS];
    for (uint32_t i = 0; i < FIXED; i++) {
        columns[i] = fixed[i];
    }
    for (uint32_t m = 0; m < s->spec.n_patterns; m++) {
        columns[FIXED + m] = (struct frame_column){.name = s->spec.patterns[m], .format = "%.3f"};
    }
    document_heading(d, "leaderboard");
    struct frame *f = document_frame_of(d, "leaderboard", 1, columns, FIXED + s->spec.n_patterns);
    for (uint32_t i = 0; i < n; i++) {
        const struct stats_interval *g = &x[i].score.gain;
        FRAME_ROW(f, x[i].policy, portable_exp(g->mean), portable_exp(g->low),
                  portable_exp(g->high), portable_exp(x[i].headroom), x[i].score.regressions,
                  x[i].failed);
        for (uint32_t m = 0; m < s->spec.n_patterns; m++) {
            FRAME_SET(f, s->spec.patterns[m], portable_exp(x[i].gain[m]));
        }
    }
}

static int judge_all(const struct options *o, const struct suite *s, uint32_t n, struct document *d,
                     struct err *e)
{
    const struct study_how *how = &o->work.how;
    OWNED struct certificate *c = xcalloc(1, sizeof *c);
    OWNED struct standing *x = xcalloc(o->policies.n + 1, sizeof *x);
    struct config_policy first;
    SCOPED(judge_runs_fini) struct judge_runs reference = {.replications = 0};
    int rc = config_policy_parse(&first, s->references[0], e);
    if (rc == 0) {
        judge_run(s, &first, n, how, &reference);
        rc = certificate_make(s, n, how, c, e);
    }
    for (uint32_t i = 0; i < o->policies.n && rc == 0; i++) {
        struct config_policy p;
        struct judge_runs runs;
        struct judge_result r;
        rc = config_policy_parse(&p, o->policies.v[i], e);
        if (rc == 0) {
            judge_run(s, &p, n, how, &runs);
            judge_result_of(s, &runs, &reference, c, &r);
            x[i] = (struct standing){
                .policy = p.label, .score = r.score, .failed = r.n_failed, .headroom = r.headroom};
            take_gains(s, &r, &x[i]);
            judge_runs_fini(&runs);
        }
    }
    if (rc == 0) {
        qsort(x, o->policies.n, sizeof *x, by_score);
        leaderboard(s, x, o->policies.n, d);
        document_heading(d, "what is left");
        certificate_document(s, c, d);
    }
    return rc;
}

/* ---- several machines ---- */

/* Runs one shard into the store. Prints nothing. */
static int run_shard(const struct options *o, const struct suite *s, uint32_t n, struct err *e)
{
    OWNED struct config_policy *p = xcalloc(o->policies.n + 1, sizeof *p);
    const size_t all = (size_t)o->policies.n * s->n_points * n;
    OWNED struct study_cell *cells = xcalloc(all + 1, sizeof *cells);
    uint32_t mine = 0;
    int rc = 0;
    for (uint32_t i = 0; i < o->policies.n && rc == 0; i++) {
        rc = config_policy_parse(&p[i], o->policies.v[i], e);
    }
    for (size_t k = o->slurm.shard; k < all && rc == 0; k += o->slurm.shards) {
        size_t run = k % ((size_t)s->n_points * n);
        cells[mine++] = suite_cell(s, (uint32_t)(run / n), &p[k / ((size_t)s->n_points * n)],
                                   (uint32_t)(run % n));
    }
    if (rc == 0) {
        struct study_outcomes runs = study_run(cells, mine, &o->work.how);
        study_outcomes_fini(&runs); /* the store has them */
    }
    return rc;
}

static int to_slurm(const struct options *o, uint32_t n, struct err *e)
{
    OWNED char *replications = xformat("%" PRIu32, n);
    struct slurm_command c = {.jobs = 1};
    slurm_word(&c, "arena");
    slurm_word(&c, "archive");
    slurm_word(&c, "--suite");
    slurm_word(&c, o->suite);
    slurm_word(&c, "--replications");
    slurm_word(&c, replications);
    for (uint32_t i = 0; i < o->policies.n; i++) {
        slurm_word(&c, "--policy");
        slurm_word(&c, o->policies.v[i]);
    }
    return sweep_slurm(o->work.path, &o->slurm, &c, e);
}

/* ---- the command ---- */

static int print_all(struct options *o, const struct suite *s, uint32_t n, struct err *e)
{
    struct document *d = document_new();
    judge_document_suite(s, "public", n, s->references[0], d);
    int rc = judge_all(o, s, n, d, e);
    if (rc == 0) {
        document_print(d, &o->output, stdout);
    }
    return rc;
}

static int archive(void *values, struct err *e)
{
    struct options *o = values;
    struct suite *s = xkept(xcalloc(1, sizeof *s));
    int rc = suite_load(s, o->suite, e);
    if (rc == 0) {
        uint32_t n = o->replications > 0 ? o->replications : s->spec.replications;
        if (o->policies.n == 0) {
            add_shipped(&o->policies);
        }
        rc = o->slurm.tasks > 0    ? to_slurm(o, n, e)
             : o->slurm.shards > 1 ? run_shard(o, s, n, e)
                                   : print_all(o, s, n, e);
    }
    return rc == 0 ? EXIT_OK : EXIT_BAD_INPUT;
}

static int run(void *values, struct err *e)
{
    struct options *o = values;
    if (slurm_refuse_alone(&o->slurm, e) != 0) {
        return EXIT_BAD_INPUT;
    }
    if (o->work.path == NULL && (o->slurm.tasks > 0 || o->slurm.shards > 1)) {
        return err_add(e, "--slurm and --shard need --store FILE.db, where runs go");
    }
    return job_options_work(&o->work, o->output.quiet, archive, o, e);
}

#define OPTIONS struct options

static const struct option_row rows[] = {
    OPTION_TEXT(OPTIONS, suite, "suite", "NAME", "laptop-2026.1", "suite, by its name or its file"),
    OPTION_TEXTS(OPTIONS, policies, "policy", "P[:K=V,..]", MAX_POLICIES,
                 "policy to show; repeated (default: every shipped one)"),
    OPTION_COUNT(OPTIONS, replications, "replications", "N", NULL, 2, 10000,
                 "runs at each point (default: the suite's)"),
};
const struct command arena_archive = {
    .name = "arena archive",
    .summary = "score every shipped policy on a suite, with its headroom certificate",
    .usage = "[--suite NAME] [--policy P ...] --store FILE.db [--json]",
    .about = "Runs every shipped policy on every point of a suite, and the best schedules in "
             "hindsight. Prints the leaderboard, and what is known to be possible at each point. "
             "With --store an interrupted archive continues where it was. With --slurm the runs of "
             "policies are spread over machines; the same command without it prints what they "
             "give. `make archive` keeps the results in the tree.",
    COMMAND_TAKES(OPTION_ROWS(NULL, rows), OPTION_CHILD(slurm_option_table, slurm),
                  OPTION_CHILD(job_option_table, work), OPTION_CHILD(option_output_table, output)),
    .run = run,
};
