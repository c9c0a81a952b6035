/* `xpusim arena`: suites, judgements and the archive. */
#include "experiments/arena/judge.h"
#include "experiments/arena/ledger.h"
#include "experiments/commands/commands.h"
#include "experiments/run/job_options.h"
#include "experiments/run/plugin.h"
#include "experiments/shell/cli.h"
#include "policies/external/jail.h"
#include "sim/base/portable.h"

#define MAX_CANDIDATES 10000
#define DEFAULT_SUITE "laptop-2026.1"

struct options {
    struct option_texts policies;
    struct job_options work;
    struct option_output output;
    const char *suite, *ledger, *reference;
    bool sealed, words;
    uint32_t replications, falsify;
    struct select_asked select;
};

struct judging {
    const struct options *o;
    struct suite suite;
    struct certificate certificate;
    bool certified;
    uint32_t replications;
    struct config_policy reference;
    struct config_policy *candidates; /* owned; one per named policy */
    struct judge_runs reference_runs;
};

/* ---- candidates ---- */

static struct ledger_entry entry_of(const struct judging *j, const struct config_policy *p)
{
    return (struct ledger_entry){.sealed = j->o->sealed,
                                 .suite = j->suite.hash,
                                 .policy = p->label,
                                 .code = plugin_code_hash(p->label)};
}

/* Counts the candidates of the ledger. Refuses a candidate that was judged on this sealed split. */
static int count(const struct judging *j, const struct ledger_entry *l, struct ledger_count *n,
                 struct err *e)
{
    *n = (struct ledger_count){.candidates = 0};
    if (j->o->ledger == NULL || !j->o->sealed) {
        return 0;
    }
    int rc = ledger_read(j->o->ledger, l, n, e);
    if (rc == 0 && n->seen_sealed) {
        return err_add(e, "%s: %s was judged on this sealed split before; it answers once",
                       j->o->ledger, l->policy);
    }
    n->candidates += n->seen ? 0 : 1;
    return rc;
}

/* Confines plug-ins, so that they cannot read hidden data. Refuses one that cannot be confined. */
static int confine(const char *spec, struct err *e)
{
    const char *why = NULL;
    if (plugin_path_length(spec) > 0 && !jail_works(&why)) {
        return err_add(e,
                       "%s: it cannot be confined here, and the arena judges nobody who may look "
                       "at what is hidden: %s",
                       spec, why);
    }
    plugin_confine();
    return 0;
}

/* Judges one candidate. Returns 0, or -EINVAL with an error. */
static int judge_one(struct judging *j, const struct config_policy *p, struct document *d,
                     struct err *e)
{
    struct ledger_count n;
    struct ledger_entry l = entry_of(j, p);
    if (count(j, &l, &n, e) != 0) {
        return -EINVAL;
    }
    struct study_how how = j->o->work.how;
    how.store = NULL; /* runs of a candidate are not used again */
    SCOPED(judge_runs_fini) struct judge_runs runs;
    struct judge_result r;
    /* With another number of replications the certificate is about other requests. */
    bool same = j->certified && j->certificate.replications == j->replications;
    const struct certificate *c = same ? &j->certificate : NULL;
    judge_run(&j->suite, p, j->replications, &how, &runs);
    judge_result_of(&j->suite, &runs, &j->reference_runs, c, &r);
    judge_document(&j->suite, p->label, &r, c, d);
    uint32_t candidates = j->o->sealed ? n.candidates : 1;
    l.score = portable_exp(r.score.gain.mean);
    l.p = r.score.p_better;
    l.regressions = r.score.regressions;
    l.passes = score_passes(&r.score, candidates);
    DOCUMENT_VALUES(d, "candidates", candidates, "passes", l.passes);
    document_note(d, "%s: level %.2g, %.2g divided by %" PRIu32 " candidate%s",
                  l.passes ? "passes" : "does not pass", SCORE_LEVEL_FRAC / candidates,
                  SCORE_LEVEL_FRAC, candidates, text_plural(candidates));
    if (j->o->words && !j->o->sealed) {
        struct words_of w = {.suite = &j->suite,
                             .policy = p,
                             .reference = &j->reference,
                             .runs = &runs,
                             .reference_runs = &j->reference_runs,
                             .result = &r,
                             .how = how,
                             .falsify = j->o->falsify};
        words_document(&w, d);
    }
    return j->o->ledger != NULL ? ledger_append(j->o->ledger, &l, e) : 0;
}

/* ---- a judgement ---- */

static const char *reference_name(const struct judging *j)
{
    return j->o->reference != NULL ? j->o->reference : j->suite.references[0];
}

static int open_suite(struct judging *j, struct err *e)
{
    int rc = suite_load(&j->suite, j->o->suite, e);
    if (rc == 0 && j->o->sealed) {
        const char *sealed = j->suite.sealed;
        if (sealed == NULL) {
            return err_add(e, "%s: the suite has no sealed split", j->suite.spec.file);
        }
        rc = suite_load(&j->suite, sealed, e);
    }
    if (rc == 0) {
        j->certified = certificate_read(&j->suite, &j->certificate);
        j->replications = j->o->replications > 0 ? j->o->replications : j->suite.spec.replications;
        const char *reference = reference_name(j);
        rc = confine(reference, e);
        rc = rc == 0 ? config_policy_parse(&j->reference, reference, e) : rc;
    }
    return rc;
}

/* Reads all candidates before any run, because the runs of the reference take minutes. Refuses a
 * plug-in that asks for the lengths of answers: no real scheduler knows them. */
static int read_candidates(struct judging *j, struct err *e)
{
    const struct option_texts *names = &j->o->policies;
    j->candidates = xcalloc(names->n + 1, sizeof *j->candidates);
    for (uint32_t i = 0; i < names->n && e->n == 0; i++) {
        struct config_policy *p = &j->candidates[i];
        if (confine(names->v[i], e) == 0 && config_policy_parse(p, names->v[i], e) == 0 &&
            plugin_path_length(names->v[i]) > 0 && (p->ops->flags & POLICY_F_ORACLE) != 0) {
            (void)err_add(e,
                          "%s: it may ask for the lengths of answers (oracle), and the arena "
                          "judges nobody who may look at what is hidden",
                          names->v[i]);
        }
    }
    return e->n == 0 ? 0 : -EINVAL;
}

/* --select: finds the best of several candidates. Returns whether there is one. */
static bool choose(struct judging *j, struct document *d)
{
    const struct options *o = j->o;
    struct select_result r;
    choose_best(&j->suite, j->candidates, o->policies.n, &j->reference, &o->select, &o->work.how,
                &r);
    select_document(&o->select, "gain", j->candidates, &r, document_within(d, "selection"));
    return r.decided;
}

static int judge(void *values, struct err *e)
{
    struct options *o = values;
    struct judging *j = xkept(xcalloc(1, sizeof *j));
    j->o = o;
    bool decided = true;
    int rc = open_suite(j, e);
    rc = rc == 0 ? read_candidates(j, e) : rc;
    if (rc == 0 && o->select.confidence_frac > 0.0) {
        struct document *d = document_new();
        judge_document_suite(&j->suite, "public", SELECT_FIRST_MIN, reference_name(j), d);
        decided = choose(j, d);
        document_show(d, &o->output);
    } else if (rc == 0) {
        judge_run(&j->suite, &j->reference, j->replications, &o->work.how, &j->reference_runs);
        struct document *d = document_new();
        judge_document_suite(&j->suite, o->sealed ? "sealed" : "public", j->replications,
                             reference_name(j), d);
        struct document *all = o->policies.n > 1 ? document_array(d, "judgements") : NULL;
        for (uint32_t i = 0; i < o->policies.n && rc == 0; i++) {
            rc = judge_one(j, &j->candidates[i], all != NULL ? document_within(all, NULL) : d, e);
        }
        document_show(d, &o->output);
        judge_runs_fini(&j->reference_runs);
    }
    return rc != 0 || e->n > 0 ? EXIT_BAD_INPUT : decided ? EXIT_OK : EXIT_CHECK_FAILED;
}

static int run_judge(void *values, struct err *e)
{
    struct options *o = values;
    if (o->sealed && o->ledger == NULL) {
        return err_add(e, "--sealed: needs --ledger FILE, which counts the candidates that were "
                          "looked at");
    }
    if (o->select.confidence_frac > 0.0 &&
        (o->sealed || o->words || o->ledger != NULL || o->replications > 0)) {
        return err_add(e, "--select: chooses on the public split with as many runs as it takes, "
                          "explains nothing and counts nobody");
    }
    if (o->falsify > 0 && !o->words) {
        return err_add(e, "--falsify belongs to --words");
    }
    return select_asked_check(&o->select, e) != 0
               ? -EINVAL
               : job_options_work(&o->work, o->output.quiet, judge, o, e);
}

#define OPTIONS struct options

static const struct option_row judge_rows[] = {
    OPTION_TEXT(OPTIONS, suite, "suite", "NAME", DEFAULT_SUITE, "suite, by its name or its file"),
    OPTION_FLAG(OPTIONS, sealed, "sealed",
                "judge on the sealed split, once for each candidate: other seeds, machines and "
                "workloads"),
    OPTION_FILE(OPTIONS, ledger, "ledger", "FILE.csv",
                "file that counts the candidates and judgements of a campaign"),
    OPTION_TEXT(OPTIONS, reference, "reference", "P[:K=V,..]", NULL,
                "policy to score against (default: the suite's first reference)"),
    OPTION_COUNT(OPTIONS, replications, "replications", "N", NULL, 2, 10000,
                 "runs at each point (default: the suite's)"),
    OPTION_FLAG(OPTIONS, words, "words",
                "also explain: the request that lost most, the first decision that differs, "
                "refusals and failures"),
    OPTION_COUNT(OPTIONS, falsify, "falsify", "N", NULL, 8, 100000,
                 "with --words: search N scenarios for the one in which the policy is worst"),
};

static const struct command arena_judge = {
    .name = "arena judge",
    .summary = "score policies on a suite",
    .usage = "POLICY ... [--suite NAME] [--sealed --ledger FILE.csv] [options]",
    .about =
        "Runs each candidate and the reference on every point of a suite, with the same requests. "
        "Prints the score: how many times better the candidate is, as a geometric mean over "
        "points, metrics and replications, where a gain above a factor of 2 counts as 2 "
        "(docs/concepts/arena.md).",
    .operands = {"POLICY", 1, MAX_CANDIDATES, offsetof(OPTIONS, policies)},
    COMMAND_TAKES(OPTION_ROWS(NULL, judge_rows), OPTION_CHILD(select_option_table, select),
                  OPTION_CHILD(job_option_table, work), OPTION_CHILD(option_output_table, output)),
    .run = run_judge,
};

static const struct command *const subcommands[] = {&arena_judge, &arena_archive, &arena_new, NULL};
const struct command cmd_arena = {
    .name = "arena",
    .summary = "judge policies on frozen suites, keep the archive of results, begin a search",
    .usage = "judge POLICY ... [--suite NAME] [--sealed --ledger FILE.csv]\n"
             "archive [--suite NAME] [--store FILE.db]\n"
             "new DIR",
    .about = "Scores a policy on a suite of machines, models and workloads, or every shipped "
             "policy for the archive.",
    .subcommands = subcommands,
};
