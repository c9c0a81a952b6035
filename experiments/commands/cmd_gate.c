/* `xpusim gate`: this build against a recorded baseline, or against another binary. */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "experiments/commands/commands.h"
#include "experiments/gate/gate.h"
#include "experiments/shell/cli.h"

static const char help[] =
    "usage: xpusim gate --baseline FILE [options]\n"
    "\n"
    "Runs the matrix of a baseline file and judges every metric of every policy against what is\n"
    "recorded there. Exit 1 when something got worse, fails, or is missing.\n"
    "\n"
    "  --baseline FILE   groups of policies to run, and their recorded results\n"
    "  --against BINARY  instead of the recorded results, those of another xpusim, run now\n"
    "  --update          show the differences, then record the new results\n"
    "  --strict          exit 1 on every row that is not OK\n"
    "  --seed N          of the runs of `fresh` groups (default: derived from the group's)\n"
    "  --jobs J          runs at once (default: processors); results do not depend on it\n"
    "  --time-limit S    CPU seconds after which a run is given up (default 600)\n"
    "  --all             print the rows that are OK too\n"
    "  --json            the report as JSON\n"
    "  --junit FILE      also as JUnit XML\n"
    "  --markdown FILE   also as a Markdown table\n"
    "  --quiet           no progress bar\n"
    "\n"
    "Verdicts: REGRESSION worse beyond the tolerance; GAIN better beyond it; DRIFT changed within\n"
    "it, or a metric without a direction; STATUS runs fail or their verdict is another; ADDED no\n"
    "baseline; REMOVED no longer measured. Groups with \"test\": \"exact\" repeat their seeds and "
    "must\n"
    "match; \"fresh\" ones take other seeds, and their rows are tested together at 1 % (Holm).\n";

struct gate_options {
    const char *baseline, *against, *junit, *markdown;
    bool update, strict, all, json, quiet, own_seed;
    uint64_t seed;
    uint32_t jobs;
    double time_limit_s;
};

static void take_seed(struct gate_options *o, const char *arg, struct err *e)
{
    uint32_t seed = 0;
    o->own_seed = cli_count("seed", arg, 0, UINT32_MAX, &seed, e) == 0;
    o->seed = seed;
}

/* One option; false when it is unknown. */
static bool take_option(struct gate_options *o, int c, struct err *e)
{
    switch (c) {
    case 'b':
        o->baseline = optarg;
        return true;
    case 'a':
        o->against = optarg;
        return true;
    case 'u':
        o->update = true;
        return true;
    case 'S':
        o->strict = true;
        return true;
    case 's':
        take_seed(o, optarg, e);
        return true;
    case 'J':
        (void)cli_count("jobs", optarg, 1, 4096, &o->jobs, e);
        return true;
    case 't':
        (void)cli_number("time-limit", optarg, 1.0, 1e7, &o->time_limit_s, e);
        return true;
    case 'A':
        o->all = true;
        return true;
    case 'j':
        o->json = true;
        return true;
    case 'x':
        o->junit = optarg;
        return true;
    case 'm':
        o->markdown = optarg;
        return true;
    case 'q':
        o->quiet = true;
        return true;
    default:
        return false;
    }
}

/* 0, 1 when help was printed, or -EINVAL. */
static int parse_options(int argc, char **argv, struct gate_options *o, struct err *e)
{
    static const struct option longs[] = {{"baseline", required_argument, NULL, 'b'},
                                          {"against", required_argument, NULL, 'a'},
                                          {"update", no_argument, NULL, 'u'},
                                          {"strict", no_argument, NULL, 'S'},
                                          {"seed", required_argument, NULL, 's'},
                                          {"jobs", required_argument, NULL, 'J'},
                                          {"time-limit", required_argument, NULL, 't'},
                                          {"all", no_argument, NULL, 'A'},
                                          {"json", no_argument, NULL, 'j'},
                                          {"junit", required_argument, NULL, 'x'},
                                          {"markdown", required_argument, NULL, 'm'},
                                          {"quiet", no_argument, NULL, 'q'},
                                          {"help", no_argument, NULL, 'h'},
                                          {NULL, 0, NULL, 0}};
    *o = (struct gate_options){.jobs = jobs_processors(), .time_limit_s = 600.0};
    optind = 1;
    for (int c; (c = getopt_long(argc, argv, "hq", longs, NULL)) != -1;) {
        if (c == 'h') {
            (void)fputs(help, stdout);
            return 1;
        }
        if (!take_option(o, c, e)) {
            return err_add(e, "`xpusim gate --help` shows the options");
        }
    }
    if (optind < argc) {
        return err_add(e, "%s: not an option", argv[optind]);
    }
    if (o->baseline == NULL) {
        return err_add(e, "--baseline is missing");
    }
    if (o->against != NULL && o->update) {
        return err_add(e, "--against and --update exclude each other");
    }
    if (o->against != NULL && access(o->against, X_OK) != 0) {
        return err_add(e, "--against %s: not a program: %s", o->against, strerror(errno));
    }
    return e->n > 0 ? -EINVAL : 0;
}

static int write_report(const char *option, const char *path, const struct gate_report *r,
                        void (*print)(const struct gate_report *, FILE *), struct err *e)
{
    FILE *f = fopen(path, "w");
    if (f != NULL) {
        print(r, f);
    }
    if (f == NULL || fclose(f) != 0) {
        return err_add(e, "--%s %s: cannot write: %s", option, path, strerror(errno));
    }
    return 0;
}

static int show(const struct gate_options *o, const struct gate_report *r, struct err *e)
{
    if (o->json) {
        cJSON *root = gate_to_json(r);
        char *text = cJSON_Print(root);
        (void)printf("%s\n", text);
        cJSON_free(text);
        cJSON_Delete(root);
    } else {
        gate_print(r, o->all, stdout);
    }
    if (o->junit != NULL) {
        (void)write_report("junit", o->junit, r, gate_print_junit, e);
    }
    if (o->markdown != NULL) {
        (void)write_report("markdown", o->markdown, r, gate_print_markdown, e);
    }
    return e->n > 0 ? -EINVAL : 0;
}

/* Failing runs are not recorded: a baseline of failures would pass for ever. */
static int update(const struct gate_options *o, const struct gate_baseline *b,
                  const struct gate_cells *now, struct err *e)
{
    uint32_t failed = 0;
    for (uint32_t i = 0; i < now->n; i++) {
        if (now->v[i].failed > 0) {
            (void)fprintf(stderr, "xpusim: error: %s, %s: %" PRIu32 " runs failed: %s\n",
                          now->v[i].group, now->v[i].policy, now->v[i].failed, now->v[i].message);
            failed++;
        }
    }
    if (failed > 0) {
        (void)fprintf(stderr, "xpusim: error: %s is not updated\n", o->baseline);
        return EXIT_CHECK_FAILED;
    }
    if (gate_baseline_write(o->baseline, b, now, e) != 0) {
        return EXIT_BAD_INPUT;
    }
    (void)fprintf(stderr, "xpusim: %s is updated\n", o->baseline);
    return EXIT_OK;
}

/* A binary that cannot run anything would let everything pass. */
static int check_other(const struct gate_options *o, const struct gate_cells *other, struct err *e)
{
    for (uint32_t i = 0; i < other->n; i++) {
        if (other->v[i].failed < other->v[i].replications) {
            return 0;
        }
    }
    return err_add(e, "--against %s: all its runs failed: %s", o->against,
                   other->n > 0 ? other->v[0].message : "");
}

static int judge(const struct gate_options *o, const struct gate_baseline *b,
                 const struct gate_cells *before, const struct gate_cells *now, struct err *e)
{
    struct gate_report r;
    gate_judge(b, before, now, o->against == NULL, &r);
    int status = EXIT_BAD_INPUT;
    if (show(o, &r, e) == 0) {
        bool bad = r.alarms > 0 || (o->strict && r.counts[GATE_OK] < r.n);
        status = o->update ? update(o, b, now, e) : bad ? EXIT_CHECK_FAILED : EXIT_OK;
    }
    gate_report_fini(&r);
    return status;
}

static int gate(const struct gate_options *o, struct err *e)
{
    struct gate_baseline b;
    struct gate_cells now = {NULL, 0};
    struct gate_cells other = {NULL, 0};
    int status = EXIT_BAD_INPUT;
    if (gate_baseline_read(o->baseline, &b, e) == 0) {
        struct gate_run run = {.baseline = &b,
                               .fresh_seeds = !o->update, /* recorded are the file's own seeds */
                               .own_seed = o->own_seed,
                               .seed = o->seed,
                               .parallel = o->jobs,
                               .cpu_limit_s = o->time_limit_s,
                               .progress = !o->quiet && isatty(STDERR_FILENO) != 0};
        if (o->against == NULL && !o->update && b.recorded.n == 0) {
            (void)err_add(e, "%s: holds no results; record them with --update", o->baseline);
        } else if (gate_measure(&run, &now, e) == 0) {
            run.binary = o->against;
            run.fresh_seeds = false;
            int rc = o->against != NULL ? gate_measure(&run, &other, e) : 0;
            rc = rc == 0 && o->against != NULL ? check_other(o, &other, e) : rc;
            status = rc != 0 ? EXIT_BAD_INPUT
                             : judge(o, &b, o->against != NULL ? &other : &b.recorded, &now, e);
        }
    }
    gate_cells_fini(&now);
    gate_cells_fini(&other);
    gate_baseline_fini(&b);
    return status;
}

int cmd_gate(int argc, char **argv)
{
    struct gate_options o;
    struct err e = ERR_INIT;
    int rc = parse_options(argc, argv, &o, &e);
    int status = rc == 1 ? EXIT_OK : EXIT_BAD_INPUT;
    if (rc == 0) {
        status = gate(&o, &e);
    }
    err_print(&e, stderr);
    err_fini(&e);
    return status;
}
