/* `xpusim claims`: the papers' published results against the simulator's. */
#include <errno.h>
#include <getopt.h>
#include <unistd.h>

#include "experiments/claims/claims.h"
#include "experiments/commands/commands.h"
#include "experiments/run/config.h"
#include "experiments/shell/cli.h"
#include "sim/base/datadir.h"

#define PATH_BYTES 4096

static const char *const shipped[] = {"agent-xpu-v1", "agent-xpu-v2", "sd-npu"};

static const char help[] =
    "usage: xpusim claims [ID...] [options]\n"
    "\n"
    "Runs what the papers claim (all, or the IDs given) and prints, check by check, what was\n"
    "published, what the simulator says with its 95 % interval, where the published value lies\n"
    "among single 15-minute traces (percentile), and a verdict: calibrated (a parameter was set\n"
    "from it), reproduced, direction (right sign, other size), not reproduced, not modellable.\n"
    "\n"
    "  --file FILE.json     claims of this file instead of the shipped ones; may be repeated\n"
    "  --replications N     traces (default 39); the first has --seed itself\n"
    "  --seed N             default 1\n"
    "  --jobs J             runs at once (default: processors); results do not depend on it\n"
    "  --time-limit S       CPU seconds after which a run is given up (default 600)\n"
    "  --brief              one line per claim\n"
    "  --list               ids and statements, without running anything\n"
    "  --json               results as JSON\n"
    "  --quiet              no progress bar\n";

struct claims_options {
    const char *files[CLAIMS_MAX_BOOKS];
    uint32_t n_files;
    struct quantities_options run;
    bool brief, list, json, quiet;
};

static bool take_option(struct claims_options *o, int c, const char *arg, struct err *e)
{
    uint32_t seed;
    switch (c) {
    case 'f':
        if (o->n_files == CLAIMS_MAX_BOOKS) {
            (void)err_add(e, "--file: more than %d", CLAIMS_MAX_BOOKS);
        } else {
            o->files[o->n_files++] = arg;
        }
        return true;
    case 'n':
        (void)cli_count("replications", arg, 1, 100000, &o->run.replications, e);
        return true;
    case 's':
        if (cli_count("seed", arg, 0, UINT32_MAX, &seed, e) == 0) {
            o->run.seed = seed;
        }
        return true;
    case 'J':
        (void)cli_count("jobs", arg, 1, 4096, &o->run.parallel, e);
        return true;
    case 't':
        (void)cli_number("time-limit", arg, 1.0, 1e7, &o->run.cpu_limit_s, e);
        return true;
    case 'b':
        o->brief = true;
        return true;
    case 'l':
        o->list = true;
        return true;
    case 'j':
        o->json = true;
        return true;
    case 'q':
        o->quiet = true;
        return true;
    default:
        return false;
    }
}

/* 0, 1 when help was printed, or -EINVAL. */
static int parse_options(int argc, char **argv, struct claims_options *o, struct err *e)
{
    static const struct option longs[] = {{"file", required_argument, NULL, 'f'},
                                          {"replications", required_argument, NULL, 'n'},
                                          {"seed", required_argument, NULL, 's'},
                                          {"jobs", required_argument, NULL, 'J'},
                                          {"time-limit", required_argument, NULL, 't'},
                                          {"brief", no_argument, NULL, 'b'},
                                          {"list", no_argument, NULL, 'l'},
                                          {"json", no_argument, NULL, 'j'},
                                          {"quiet", no_argument, NULL, 'q'},
                                          {"help", no_argument, NULL, 'h'},
                                          {NULL, 0, NULL, 0}};
    *o = (struct claims_options){
        .run = {
            .replications = 39, .parallel = jobs_processors(), .seed = 1, .cpu_limit_s = 600.0}};
    optind = 1;
    for (int c; (c = getopt_long(argc, argv, "hq", longs, NULL)) != -1;) {
        if (c == 'h') {
            (void)fputs(help, stdout);
            return 1;
        }
        if (!take_option(o, c, optarg, e)) {
            return err_add(e, "`xpusim claims --help` shows the options");
        }
    }
    o->run.progress = !o->quiet && isatty(STDERR_FILENO) != 0;
    return e->n > 0 ? -EINVAL : 0;
}

static void read_files(struct claims *c, const struct claims_options *o, char paths[][PATH_BYTES],
                       struct err *e)
{
    for (uint32_t i = 0; i < o->n_files; i++) {
        (void)claims_read(c, o->files[i], e);
    }
    for (size_t i = 0; o->n_files == 0 && i < sizeof shipped / sizeof shipped[0]; i++) {
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
    if (o->json) {
        cJSON *root = claims_to_json(c);
        char *text = cJSON_Print(root);
        (void)printf("%s\n", text);
        cJSON_free(text);
        cJSON_Delete(root);
        return;
    }
    if (!o->brief) {
        (void)printf("%u traces from seed %llu; mean [95 %% interval]; percentile of the published "
                     "value among single traces\n\n",
                     o->run.replications, (unsigned long long)o->run.seed);
    }
    claims_print(c, !o->brief, stdout);
}

int cmd_claims(int argc, char **argv)
{
    struct claims_options o;
    struct err e = ERR_INIT;
    struct claims c = {.n = 0};
    char paths[sizeof shipped / sizeof shipped[0]][PATH_BYTES];
    int rc = parse_options(argc, argv, &o, &e);
    int status = rc == 1 ? EXIT_OK : EXIT_BAD_INPUT;
    if (rc == 0) {
        read_files(&c, &o, paths, &e);
        rc = e.n > 0 ? -EINVAL : claims_select(&c, &argv[optind], (uint32_t)(argc - optind), &e);
    }
    if (rc == 0 && o.list) {
        list(&c);
        status = EXIT_OK;
    } else if (rc == 0) {
        rc = claims_evaluate(&c, &o.run, &e);
        status = rc == 0 ? EXIT_OK : rc == -EINVAL ? EXIT_BAD_INPUT : EXIT_CHECK_FAILED;
        if (rc != -EINVAL) {
            show(&c, &o);
        }
    }
    claims_fini(&c);
    err_print(&e, stderr);
    err_fini(&e);
    return status;
}
