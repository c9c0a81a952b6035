/* `xpusim gate`: compares this build with a recorded baseline or another binary. */
#include <unistd.h>

#include "experiments/commands/commands.h"
#include "experiments/gate/gate.h"
#include "experiments/run/job_options.h"
#include "experiments/shell/cli.h"
#include "sim/base/output.h"

struct gate_options {
    struct job_options work;
    struct option_output output;
    const char *baseline, *against, *old, *junit, *markdown, *html;
    bool update, strict, all, own_seed;
    uint64_t seed;
};

static int write_report(const char *path, const struct document *d, const char *form, struct err *e)
{
    struct output *out = output_open(path, e);
    if (out == NULL) {
        return -EINVAL;
    }
    document_put(d, form, output_stream(out));
    return output_close(out, true, e);
}

static int write_page(const char *path, const struct gate_review *v, struct err *e)
{
    struct output *out = output_open(path, e);
    bool whole = out != NULL && gate_review_page(v, output_stream(out), e) == 0;
    return output_close(out, whole, e);
}

static int show(const struct gate_options *o, const struct gate_baseline *b,
                const struct gate_report *r, struct err *e)
{
    struct gate_firsts firsts;
    const char *old = o->old != NULL ? o->old : o->against;
    struct gate_review v = {r, b, &firsts, o->baseline, old};
    struct document *d = document_new();
    struct document *review = document_new();
    gate_first_find(b, r, old, &o->work.how, &firsts);
    gate_document(r, o->all, d);
    gate_first_document(&firsts, d);
    gate_review(&v, review);
    document_print(d, &o->output, stdout);
    if (o->junit != NULL) {
        (void)write_report(o->junit, d, "junit", e);
    }
    if (o->markdown != NULL) {
        (void)write_report(o->markdown, review, "markdown", e);
    }
    if (o->html != NULL) {
        (void)write_page(o->html, &v, e);
    }
    return e->n > 0 ? -EINVAL : 0;
}

/* Whether a run failed. Such runs are not recorded, because every build would pass them. */
static bool any_failed(const struct gate_cells *now)
{
    bool any = false;
    for (uint32_t i = 0; i < now->n; i++) {
        any = any || now->v[i].failed > 0;
    }
    return any;
}

/* Refuses a metric that no policy of its group has: the recorded baseline would fail on its own
 * program. Policies may have different counters. */
static int check_metrics(const struct gate_baseline *b, const struct gate_cells *now, struct err *e)
{
    size_t before = e->n;
    for (uint32_t g = 0; g < b->n_groups; g++) {
        for (uint32_t m = 0; m < b->groups[g].n_metrics; m++) {
            bool any = false;
            for (uint32_t i = 0; i < now->n; i++) {
                any = any || (strcmp(now->v[i].group, b->groups[g].name) == 0 &&
                              gate_cell_values(&now->v[i], b->groups[g].metrics[m].name) != NULL);
            }
            if (!any) {
                (void)err_add(e,
                              "group %s: metric %s: no metric is called so; `xpusim run --json` "
                              "shows all",
                              b->groups[g].name, b->groups[g].metrics[m].name);
            }
        }
    }
    return e->n > before ? -EINVAL : 0;
}

static int update(const struct gate_options *o, const struct gate_baseline *b,
                  const struct gate_cells *now, struct err *e)
{
    for (uint32_t i = 0; i < now->n; i++) {
        if (now->v[i].failed > 0) {
            (void)fprintf(stderr, "xpusim: error: %s, %s: %" PRIu32 " run%s failed: %s\n",
                          now->v[i].group, now->v[i].policy, now->v[i].failed,
                          text_plural(now->v[i].failed), now->v[i].message);
        }
    }
    if (any_failed(now)) {
        (void)fprintf(stderr, "xpusim: error: %s is not updated\n", o->baseline);
        return EXIT_CHECK_FAILED;
    }
    if (gate_baseline_write(o->baseline, b, now, e) != 0) {
        return EXIT_BAD_INPUT;
    }
    (void)fprintf(stderr, "xpusim: %s is updated\n", o->baseline);
    return EXIT_OK;
}

/* Refuses a binary whose runs all failed, because every build would pass against it. */
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
    r.recorded = o->update;
    r.refused = o->update && (any_failed(now) || check_metrics(b, now, e) != 0);
    int status = EXIT_BAD_INPUT;
    if (show(o, b, &r, e) == 0) {
        bool bad = r.alarms > 0 || (o->strict && r.counts[GATE_OK] < r.n);
        status = o->update ? update(o, b, now, e) : bad ? EXIT_CHECK_FAILED : EXIT_OK;
    }
    return status;
}

static int gate(void *values, struct err *e)
{
    const struct gate_options *o = values;
    struct gate_baseline b;
    struct gate_cells now = {0};
    struct gate_cells other = {0};
    int status = EXIT_BAD_INPUT;
    if (gate_baseline_read(o->baseline, &b, e) == 0) {
        struct gate_run run = {.baseline = &b,
                               /* a baseline is recorded with the file's seeds */
                               .fresh_seeds = !o->update,
                               .own_seed = o->own_seed,
                               .seed = o->seed,
                               .how = o->work.how};
        if (o->against == NULL && !o->update && b.recorded.n == 0) {
            (void)err_add(e, "%s: holds no results; record them with --update", o->baseline);
        } else {
            (void)gate_measure(&run, &now, e);
        }
        if (e->n == 0 && o->against != NULL) {
            run.binary = o->against;
            run.fresh_seeds = false;
            (void)gate_measure(&run, &other, e);
        }
        if (e->n == 0 && (o->against == NULL || check_other(o, &other, e) == 0)) {
            status = judge(o, &b, o->against != NULL ? &other : &b.recorded, &now, e);
        }
    }
    return status;
}

static int run(void *values, struct err *e)
{
    struct gate_options *o = values;
    if (o->baseline == NULL) {
        return err_add(e, "--baseline is missing");
    }
    if (o->against != NULL && o->update) {
        return err_add(e, "--against and --update exclude each other");
    }
    if (o->against != NULL && access(o->against, X_OK) != 0) {
        return err_add(e, "--against %s: not a program: %s", o->against, strerror(errno));
    }
    if (o->old != NULL && access(o->old, X_OK) != 0) {
        return err_add(e, "--old %s: not a program: %s", o->old, strerror(errno));
    }
    return job_options_work(&o->work, o->output.quiet, gate, o, e);
}

#define OPTIONS struct gate_options

static const struct option_row rows[] = {
    OPTION_TEXT(OPTIONS, baseline, "baseline", "FILE", NULL,
                "groups of policies to run, and their recorded results"),
    OPTION_TEXT(OPTIONS, against, "against", "BINARY", NULL,
                "compare with another xpusim, run now, instead of the recorded results"),
    OPTION_TEXT(OPTIONS, old, "old", "BINARY", NULL,
                "xpusim before the change: report which decision changed first (default: that of "
                "--against)"),
    OPTION_FLAG(OPTIONS, update, "update", "show the differences, then record the new results"),
    OPTION_FLAG(OPTIONS, strict, "strict", "exit 1 on every row that is not OK"),
    OPTION_ROW(SEED, OPTIONS, seed, uint64_t, "seed", "N",
               "seed of the runs of `fresh` groups (default: derived from the group's)",
               .given = 1 + OPTION_AT(OPTIONS, own_seed, bool)),
    OPTION_FLAG(OPTIONS, all, "all", "print the rows that are OK too"),
    OPTION_TEXT(OPTIONS, junit, "junit", "FILE", NULL, "also write JUnit XML"),
    OPTION_TEXT(OPTIONS, markdown, "markdown", "FILE", NULL,
                "also write a view for reviewers in Markdown: what changed, why, how to accept"),
    OPTION_TEXT(OPTIONS, html, "html", "FILE", NULL, "also write that view as a page"),
};
const struct command cmd_gate = {
    .name = "gate",
    .summary = "compare scheduling metrics with a recorded baseline, for CI",
    .usage = "--baseline FILE [options]",
    .about = "Runs the experiments of a baseline file, and compares every metric of every policy "
             "with its recorded value. Exit 1 when something got worse, fails, or is missing.",
    .notes =
        "Verdicts:\n  REGRESSION  worse beyond the tolerance\n  GAIN        better beyond it\n  "
        "DRIFT       changed within it, or a metric without a direction\n  STATUS      runs fail, "
        "or their run status is another\n  ADDED       no baseline\n  REMOVED     no longer "
        "measured\nGroups with \"test\": \"exact\" repeat their seeds and must match. \"fresh\" "
        "ones take other\nseeds, and their rows are tested together at 1 % (Holm).",
    COMMAND_TAKES(OPTION_ROWS(NULL, rows), OPTION_CHILD(job_option_table, work),
                  OPTION_CHILD(option_json_table, output)),
    .run = run,
};
