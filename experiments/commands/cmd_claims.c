/* `xpusim claims`: the papers' published results against the simulator's. */
#include <errno.h>
#include <unistd.h>

#include "experiments/claims/claims.h"
#include "experiments/commands/commands.h"
#include "experiments/run/config.h"
#include "experiments/run/job_options.h"
#include "experiments/shell/cli.h"
#include "sim/base/datadir.h"
#include "sim/base/json.h"

#define PATH_BYTES 4096

static const char *const shipped[] = {"agent-xpu-v1", "agent-xpu-v2", "sd-npu"};

struct claims_options {
    struct option_texts ids, files;
    struct job_options work;
    struct option_output output;
    struct quantities_options run;
    bool brief, list;
};

static void read_files(struct claims *c, const struct claims_options *o, char paths[][PATH_BYTES],
                       struct err *e)
{
    for (uint32_t i = 0; i < o->files.n; i++) {
        (void)claims_read(c, o->files.v[i], e);
    }
    for (size_t i = 0; o->files.n == 0 && i < sizeof shipped / sizeof shipped[0]; i++) {
        char name[64];
        (void)snprintf(name, sizeof name, "experiments/claims/%s.json", shipped[i]);
        (void)claims_read(c, datadir_path(paths[i], PATH_BYTES, name), e);
    }
}

static void list(const struct claims *c)
{
    for (uint32_t i = 0; i < c->n; i++) {
        (void)printf("%-4s %s, %s: %s\n", c->v[i].id, c->v[i].paper, c->v[i].where,
                     c->v[i].statement);
    }
}

static void show(const struct claims *c, const struct claims_options *o)
{
    if (o->output.json) {
        cJSON *root = claims_to_json(c);
        json_print(root, stdout);
        return;
    }
    if (!o->brief) {
        (void)printf("%u traces from seed %llu; mean [95 %% interval]; percentile of the published "
                     "value among single traces\n\n",
                     o->run.replications, (unsigned long long)o->run.seed);
    }
    claims_print(c, !o->brief, stdout);
}

static int run(void *values, struct err *e)
{
    struct claims_options *o = values;
    struct claims c = {.n = 0};
    char paths[sizeof shipped / sizeof shipped[0]][PATH_BYTES];
    int status = EXIT_BAD_INPUT;
    o->run.parallel = o->work.jobs;
    o->run.cpu_limit_s = o->work.time_limit_s;
    o->run.progress = !o->output.quiet && isatty(STDERR_FILENO) != 0;
    read_files(&c, o, paths, e);
    int rc = e->n > 0 ? -EINVAL : claims_select(&c, o->ids.v, o->ids.n, e);
    if (rc == 0 && o->list) {
        list(&c);
        status = EXIT_OK;
    } else if (rc == 0) {
        rc = claims_evaluate(&c, &o->run, e);
        status = rc == 0 ? EXIT_OK : rc == -EINVAL ? EXIT_BAD_INPUT : EXIT_CHECK_FAILED;
        if (rc != -EINVAL) {
            show(&c, o);
        }
    }
    claims_fini(&c);
    return status;
}

#define OPTIONS struct claims_options

static const struct option_row rows[] = {
    OPTION_TEXTS(OPTIONS, files, "file", "FILE.json", CLAIMS_MAX_BOOKS,
                 "claims of this file instead of the shipped ones; may be repeated"),
    OPTION_COUNT(OPTIONS, run.replications, "replications", "N", "39", 1, 100000,
                 "traces; the first has --seed itself"),
    OPTION_SEED(OPTIONS, run.seed, "seed", "1", "of the first trace"),
    OPTION_FLAG(OPTIONS, brief, "brief", "one line per claim"),
    OPTION_FLAG(OPTIONS, list, "list", "ids and statements, without running anything"),
};
static const struct option_table own = OPTION_TABLE(NULL, rows);
static const struct option_child children[] = {
    {.table = &own},
    {&job_option_table, offsetof(OPTIONS, work), NULL, false},
    {&option_json_table, offsetof(OPTIONS, output), NULL, false},
    {0},
};
const struct command cmd_claims = {
    .name = "claims",
    .summary = "the papers' published results against the simulator's",
    .usage = "[ID...] [options]",
    .about =
        "Runs what the papers claim (all, or the IDs given) and prints, check by check, what was "
        "published, what the simulator says with its 95 % interval, where the published value "
        "lies among single 15-minute traces (percentile), and a verdict: calibrated (a parameter "
        "was set from it), reproduced, direction (right sign, other size), not reproduced, not "
        "modellable.",
    .operands = {"ID", 0, UINT32_MAX, offsetof(OPTIONS, ids)},
    .children = children,
    .bytes = sizeof(OPTIONS),
    .run = run,
};
