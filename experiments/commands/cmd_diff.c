/* `xpusim diff`: finds the first decision in which two runs differ, with both states. */
#include "experiments/commands/commands.h"
#include "experiments/diff/diverge.h"
#include "experiments/diff/two_runs.h"
#include "experiments/shell/cli.h"
#include "experiments/shell/document.h"
#include "sim/base/input.h"

struct options {
    struct two_runs_options given;
    struct option_texts logs;
    struct option_output output;
};

struct report {
    struct divergence d;
    const char *state[2];                /* NULL: none */
    char message[2][JOBS_MESSAGE_BYTES]; /* of failed runs */
    bool failed;
};

/* ---- two logs ---- */

static int diff_logs(const struct options *o, struct report *r, struct err *e)
{
    FILE *f[2];
    for (int i = 0; i < 2; i++) {
        f[i] = input_try(o->logs.v[i]);
        char start[8] = "";
        if (f[i] == NULL) {
            (void)err_add(e, "%s: %s", o->logs.v[i], strerror(errno));
        } else if (fread(start, 1, 7, f[i]) != 7 || strcmp(start, "policy ") != 0) {
            (void)err_add(e, "%s: not a decision log (`xpusim run --decisions`)", o->logs.v[i]);
        }
    }
    if (e->n == 0) {
        diverge_find(f[0], f[1], &r->d);
    }
    for (int i = 0; i < 2; i++) {
        if (f[i] != NULL) {
            (void)fclose(f[i]);
        }
    }
    return e->n > 0 ? -EINVAL : 0;
}

/* ---- two runs ---- */

static int diff_runs(const struct options *o, struct two_runs *runs, struct report *r,
                     struct err *e)
{
    struct trace t[2] = {{0}, {0}};
    int rc = two_runs_load(runs, &o->given, e);
    for (int i = 0; i < 2 && rc == 0; i++) {
        const struct config_options *options = &runs->side[i].options;
        rc = config_trace(options, options->seed, CONFIG_AS_WRITTEN, &t[i], e);
    }
    if (rc == 0) {
        struct two_runs_log l[2];
        for (int i = 0; i < 2; i++) {
            two_runs_run(runs, i, &t[i], NULL, &l[i]);
            r->failed = r->failed || l[i].status != 0;
            (void)snprintf(r->message[i], sizeof r->message[i], "%s", l[i].message);
        }
        if (l[0].log != NULL && l[1].log != NULL) {
            diverge_find(l[0].log, l[1].log, &r->d);
        }
        two_runs_log_fini(&l[0]);
        two_runs_log_fini(&l[1]);
        for (int i = 0; i < 2 && r->d.differs; i++) { /* runs again, for the state */
            two_runs_run(runs, i, &t[i], &r->d, &l[i]);
            r->state[i] = l[i].state;
            two_runs_log_fini(&l[i]);
        }
    }
    trace_fini(&t[0]);
    trace_fini(&t[1]);
    return rc;
}

/* ---- output ---- */

/* Whether the text has this line of n bytes. */
static bool has_line(const char *text, const char *line, size_t n)
{
    for (const char *p = text; *p != '\0';) {
        size_t k = strcspn(p, "\n");
        if (k == n && memcmp(p, line, n) == 0) {
            return true;
        }
        p += k + (p[k] == '\n');
    }
    return false;
}

/* Prints the text's lines that the other text has, or lacks, after a mark. */
static void put_lines(const char *text, const char *other, bool in_other, const char *mark,
                      struct document *d)
{
    for (const char *p = text; *p != '\0';) {
        size_t k = strcspn(p, "\n");
        if (has_line(other, p, k) == in_other) {
            document_note(d, "  %s %.*s", mark, (int)k, p);
        }
        p += k + (p[k] == '\n');
    }
}

static void put_states(const char *a, const char *b, struct document *d)
{
    if (a == NULL && b == NULL) {
        return;
    }
    bool alone = a == NULL || b == NULL;
    const char *known = a != NULL ? a : b;
    if (alone) {
        document_note(d, "\nstate just before (of %s; the other's is not known)",
                      a != NULL ? "A" : "B");
    } else {
        document_note(d, "\nstate just before: in both, only in A, only in B");
    }
    put_lines(known, alone ? known : b, true, " ", d);
    if (!alone) {
        put_lines(a, b, false, "A", d);
        put_lines(b, a, false, "B", d);
    }
}

static void put_report(const struct report *r, struct document *d)
{
    const struct divergence *v = &r->d;
    const char *const states[] = {r->state[0] != NULL ? r->state[0] : "",
                                  r->state[1] != NULL ? r->state[1] : ""};
    for (int i = 0; i < 2; i++) {
        if (r->message[i][0] != '\0') {
            document_note(d, "run %c failed: %s", 'A' + i, r->message[i]);
        }
    }
    DOCUMENT_VALUES(d, "differs", v->differs, "decision", v->line, "a", v->a, "b", v->b);
    struct document *context = document_array(d, "context");
    DOCUMENT_VALUES(d, "state_a", states[0], "message_a", r->message[0], "state_b", states[1],
                    "message_b", r->message[1]);
    for (uint32_t i = 0; i < v->n_context; i++) {
        DOCUMENT_VALUES(context, NULL, v->context[i]);
    }
    if (!v->differs) {
        document_note(d, "no difference in %" PRIu64 " decision%s", v->line, text_plural(v->line));
        return;
    }
    document_note(d,
                  "decision %" PRIu64 " is the first that differs (epoch, instant in ns, action)",
                  v->line);
    for (uint32_t i = 0; i < v->n_context; i++) {
        document_note(d, "    %s", v->context[i]);
    }
    document_note(d, "  A %s", v->a[0] != '\0' ? v->a : "(no further decision)");
    document_note(d, "  B %s", v->b[0] != '\0' ? v->b : "(no further decision)");
    put_states(r->state[0], r->state[1], d);
}

static int run(void *values, struct err *e)
{
    const struct options *o = values;
    if (o->logs.n == 1) {
        return err_add(e, "two decision logs are compared, or two runs");
    }
    const struct two_runs_options *g = &o->given;
    if (o->logs.n == 2 && (g->policy != NULL || g->b_policy != NULL || g->against != NULL ||
                           config_options_say_run(&g->both) || config_options_say_run(&g->b))) {
        return err_add(e,
                       "decision logs and --policy exclude each other, and so do options of runs");
    }
    if (options_without("diff", "quantile below qoe b-quantile b-below b-qoe", e) != 0 ||
        (o->logs.n == 2 && options_without("diff of decision logs", "time-limit", e) != 0)) {
        return EXIT_BAD_INPUT;
    }
    struct two_runs *runs = xkept(xcalloc(1, sizeof *runs));
    OWNED struct report *r = xcalloc(1, sizeof *r);
    int rc = o->logs.n == 2 ? diff_logs(o, r, e) : diff_runs(o, runs, r, e);
    int status = rc;
    if (rc == 0) {
        struct document *d = document_new();
        put_report(r, d);
        document_show(d, &o->output);
        status = r->d.differs || r->failed ? EXIT_CHECK_FAILED : EXIT_OK;
    }
    return status;
}

#define OPTIONS struct options

const struct command cmd_diff = {
    .name = "diff",
    .summary = "find the first decision in which two runs differ, with both states",
    .usage = "A.log B.log [--json]\n"
             "--policy P [options] [--b-OPTION ...] [--against BINARY] [--json]",
    .about =
        "Compares two decision logs (`run --decisions`), or makes two runs and compares theirs: "
        "the first decision that differs, the ones before it, and the state of both runs just "
        "before it. Exit 0 when all decisions are the same, 1 when they differ or a run fails.",
    COMMAND_TAKES(OPTION_CHILD(option_output_table, output),
                  TWO_RUNS_CHILDREN(offsetof(OPTIONS, given))),
    .operands = {"LOG", 0, 2, offsetof(OPTIONS, logs)},
    .run = run,
};
