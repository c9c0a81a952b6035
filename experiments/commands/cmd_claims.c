/* `xpusim claims`: compares the papers' published results with simulated ones. */
#include "experiments/claims/claims.h"
#include "experiments/claims/fit.h"
#include "experiments/claims/headlines.h"
#include "experiments/commands/commands.h"
#include "experiments/run/job_options.h"
#include "experiments/shell/cli.h"
#include "sim/base/datadir.h"
#include "sim/base/json.h"

static const char *const shipped[] = {"agent-xpu-v1", "agent-xpu-v2", "sd-npu"};

struct claims_options {
    struct option_texts ids, files, sets, policies, scales;
    const char *reading, *profile;
    const char *fit, *under, *over, *parameters, *state, *witness;
    uint32_t budget, points_traces, confirm;
    struct job_options work;
    struct option_output output;
    struct quantities_options run;
    bool brief, list, headline;
    uint32_t machines;
};

/* Fills the paths of the given files, or of the shipped ones. */
static uint32_t claims_files(const struct claims_options *o, const char **files)
{
    uint32_t n = 0;
    for (; n < o->files.n; n++) {
        files[n] = o->files.v[n];
    }
    for (size_t i = 0; o->files.n == 0 && i < sizeof shipped / sizeof shipped[0]; i++) {
        files[n++] = datadir_named(shipped[i], "experiments/claims", ".json");
    }
    return n;
}

static void read_files(struct claims *c, const struct claims_options *o, struct err *e)
{
    const char *files[CLAIMS_MAX_BOOKS];
    uint32_t n = claims_files(o, files);
    for (uint32_t i = 0; i < n; i++) {
        (void)claims_read(c, files[i], e);
    }
}

static void list_as_text(const struct claims *c)
{
    for (uint32_t i = 0; i < c->n; i++) {
        if (c->v[i].why == NULL) {
            (void)printf("%-4s %s, %s: %s\n", c->v[i].id, c->v[i].paper, c->v[i].where,
                         c->v[i].statement);
        } else {
            (void)printf("     reading %s%s: %s\n", c->v[i].reading,
                         c->v[i].taken ? " (taken)" : "", c->v[i].why);
        }
    }
}

/* Prints the list of claims. In formats other than text, a claim is a row. */
static void list(const struct claims *c, const struct option_output *out)
{
    static const struct frame_column columns[] = {
        {.name = "id", .kind = FRAME_TEXT},      {.name = "paper", .kind = FRAME_TEXT},
        {.name = "where", .kind = FRAME_TEXT},   {.name = "statement", .kind = FRAME_TEXT},
        {.name = "reading", .kind = FRAME_TEXT}, {.name = "taken", .kind = FRAME_FLAG},
        {.name = "why", .kind = FRAME_TEXT}};
    if (out->form == NULL) {
        list_as_text(c);
        return;
    }
    struct document *d = document_new();
    struct frame *f = DOCUMENT_FRAME(d, "", 0, columns);
    for (uint32_t i = 0; i < c->n; i++) {
        const struct claim *k = &c->v[i];
        bool reads = k->why != NULL;
        FRAME_ROW(f, k->id, k->paper, k->where, k->statement, reads ? k->reading : "",
                  reads && k->taken, reads ? k->why : "");
    }
    document_show(d, out);
}

static void show(const struct claims *c, const struct claims_options *o)
{
    struct document *d = document_new();
    if (!o->brief) {
        uint32_t n = o->run.replications;
        document_note(d,
                      "%u trace%s from seed %llu; mean [95 %% interval]; percentile of the "
                      "published value among single traces%s",
                      n, text_plural(n), (unsigned long long)o->run.seed,
                      n < CLAIM_TRACES ? "" : "\n");
        if (n < CLAIM_TRACES) {
            document_note(d,
                          "Their range holds the next trace with probability %.0f %% only; %d "
                          "traces give %.0f %%.\n",
                          100.0 * (n - 1.0) / (n + 1.0), CLAIM_TRACES, 100.0 * CLAIM_RANGE_FRAC);
        }
    }
    claims_document(c, !o->brief, "", d);
    document_show(d, &o->output);
}

static int changes_add(struct setup_texts *to, const struct option_texts *from, const char *option,
                       const char *form, char mark, struct err *e)
{
    for (uint32_t i = 0; i < from->n; i++) {
        if (strchr(from->v[i], mark) == NULL) {
            return err_add(e, "--%s %s: must be %s", option, from->v[i], form);
        }
        to->v[to->n++] = from->v[i];
    }
    return 0;
}

/* Collects the changes of all readings by profile and command line. The tree must outlive the
 * set-up. */
static int changes(const struct claims_options *o, cJSON **tree, struct setup *s, struct err *e)
{
    *s = (struct setup){.set = {.n = 0}};
    if (o->profile != NULL) {
        *tree = json_read_file(datadir_named(o->profile, "experiments/claims", ".json"), e);
        struct json_obj root = json_root(*tree, o->profile, e);
        if (*tree == NULL) {
            return -EINVAL;
        }
        (void)json_get_string(&root, "about");
        (void)json_has(&root, "holds");
        setup_read(s, &root);
        if (json_has(&root, "fitted_to")) {
            (void)json_get_array_size(&root, "fitted_to", 0, FIT_MAX_CLAIMS);
        }
    }
    int rc = e->n > 0 ? -EINVAL : 0;
    rc = rc == 0 ? changes_add(&s->set, &o->sets, "set", "PATH=VALUE", '=', e) : rc;
    rc = rc == 0 ? changes_add(&s->policy, &o->policies, "policy", "NAME:key=value", ':', e) : rc;
    return rc == 0 ? changes_add(&s->workload, &o->scales, "scale", "KIND:key=value", ':', e) : rc;
}

/* Marks the claims that a profile was fitted to, because they do not test it. */
static void mark_fitted(struct claims *c, const cJSON *profile)
{
    const cJSON *id;
    cJSON_ArrayForEach (id, json_member(profile, "fitted_to")) {
        if (cJSON_IsString(id)) {
            claims_set_by(c, id->valuestring, "the profile was fitted to this claim");
        }
    }
}

/* ---- fitting ---- */

/* Splits a text in place at commas. */
static uint32_t names_of(char *text, const char *option, const char **names, uint32_t max,
                         struct err *e)
{
    uint32_t n = 0;
    char *save = NULL;
    for (char *one = strtok_r(text, ",", &save); one != NULL; one = strtok_r(NULL, ",", &save)) {
        if (n == max) {
            (void)err_add(e, "%s: more than %" PRIu32 " names", option, max);
            return 0;
        }
        names[n++] = one;
    }
    return n;
}

static int fit_run(const struct claims_options *o, const struct fit_options *fo, const char *path,
                   const char *const *over, uint32_t n_over, struct err *e)
{
    struct fit *f = xkept(xcalloc(1, sizeof *f));
    struct fit_findings *found = xkept(xcalloc(1, sizeof *found));
    int rc = fit_parameters_read(&f->parameters, path, over, n_over, e);
    rc = rc == 0 ? fit_init(f, fo, e) : rc;
    rc = rc == 0 ? claims_fit(f) : rc;
    rc = rc == 0 ? fit_conclude(f, found) : rc;
    if (rc == 0) {
        struct document *d = document_new();
        fit_document(f, found, d);
        document_show(d, &o->output);
    }
    if (rc == 0 && o->witness != NULL && f->n_points > 0) {
        SCOPED(json_drop) cJSON *profile = fit_profile(f, found);
        rc = json_write_file(o->witness, profile, e);
    }
    return rc;
}

static int run_fit(const struct claims_options *o, const struct setup *changed, struct err *e)
{
    OWNED char *ids_text = xstrdup(o->fit);
    OWNED char *under_text = xstrdup(o->under != NULL ? o->under : "");
    OWNED char *over_text = xstrdup(o->over);
    const char *files[CLAIMS_MAX_BOOKS];
    const char *ids[FIT_MAX_CLAIMS];
    const char *under[FIT_MAX_CLAIMS];
    const char *over[FIT_MAX_PARAMETERS];
    struct fit_options fo = {.files = files,
                             .ids = ids,
                             .under = under,
                             .run = o->run,
                             .budget = o->budget,
                             .confirm = o->run.replications,
                             .confirm_each = o->confirm,
                             .state = o->state,
                             .fixed = changed,
                             .quiet = o->output.quiet};
    fo.n_files = claims_files(o, files);
    fo.n_ids = names_of(ids_text, "--fit", ids, FIT_MAX_CLAIMS, e);
    fo.n_under = names_of(under_text, "--under", under, FIT_MAX_CLAIMS, e);
    fo.run.replications = o->points_traces;
    fo.run.how.progress = false;
    uint32_t n_over = strcmp(o->over, "all") == 0
                          ? 0
                          : names_of(over_text, "--over", over, FIT_MAX_PARAMETERS, e);
    int rc = -EINVAL;
    if (e->n == 0) {
        const char *path = datadir_named(o->parameters, "experiments/claims", ".json");
        rc = fit_run(o, &fo, path, over, n_over, e);
    }
    return rc;
}

/* Reads the selected claims. The caller calls claims_fini in every case. */
static int choose(struct claims *c, const struct claims_options *o, const struct setup *changed,
                  const cJSON *profile, struct err *e)
{
    bool one = o->headline && strcmp(o->reading, "all") == 0;
    read_files(c, o, e);
    int rc = e->n > 0 ? -EINVAL : 0;
    rc = rc == 0 ? claims_select(c, o->ids.v, o->ids.n, e) : rc;
    rc = rc == 0 ? claims_choose(c, one ? "taken" : o->reading, e) : rc;
    rc = rc == 0 ? claims_change(c, changed, e) : rc;
    rc = rc == 0 && o->headline ? claims_headlines(c, e) : rc;
    mark_fitted(c, profile);
    return rc;
}

/* ---- headlines ---- */

/* Adds the notes that people need to read the table. */
static void explain_headlines(const struct claims_options *o, struct document *d)
{
    document_note(d,
                  "\n%u trace%s from seed %llu; mean [95 %% interval over traces]. `xpusim claims "
                  "ID` has every check of a claim.",
                  o->run.replications, text_plural(o->run.replications),
                  (unsigned long long)o->run.seed);
    if (o->machines > 0) {
        document_note(d,
                      "Drawn machines: 95 %% range of %u machine%s within the known ranges of the "
                      "default one, on %d traces each.",
                      o->machines, text_plural(o->machines), QUANTITIES_MACHINE_TRACES);
    } else {
        document_note(d, "--uncertainty 16 adds machines drawn within their known ranges.");
    }
}

/* Repeats the claims on drawn machines, and prints both as one table. */
static int show_headlines(const struct claims *c, const struct claims_options *o,
                          const struct setup *changed, struct err *e)
{
    SCOPED(claims_fini) struct claims drawn = {.n = 0};
    struct quantities_options run = o->run;
    run.machines = o->machines;
    run.replications = o->machines * QUANTITIES_MACHINE_TRACES;
    int rc = o->machines > 0 ? choose(&drawn, o, changed, NULL, e) : 0;
    rc = rc == 0 && o->machines > 0 ? claims_run(&drawn, &run, e) : rc;
    if (rc != -EINVAL) {
        struct document *d = document_new();
        bool reasons = output_is(&o->output, "markdown");
        headlines_document(c, o->machines > 0 ? &drawn : NULL, o->machines, reasons, d);
        explain_headlines(o, d);
        document_show(d, &o->output);
    }
    return rc;
}

static int judge(void *values, struct err *e)
{
    struct claims_options *o = values;
    SCOPED(claims_fini) struct claims c = {.n = 0};
    int status = EXIT_BAD_INPUT;
    SCOPED(json_drop) cJSON *tree = NULL;
    o->run.how = o->work.how;
    struct setup changed;
    int rc = changes(o, &tree, &changed, e);
    if (rc == 0 && o->fit != NULL) {
        rc = run_fit(o, &changed, e);
        return rc == 0 ? EXIT_OK : EXIT_BAD_INPUT;
    }
    rc = rc == 0 ? choose(&c, o, &changed, tree, e) : rc;
    if (rc == 0 && o->list) {
        list(&c, &o->output);
        status = EXIT_OK;
    } else if (rc == 0) {
        /* a profile replaces the independent machine */
        rc = o->profile == NULL ? claims_add_independent(&c, e) : 0;
        rc = rc == 0 ? claims_run(&c, &o->run, e) : rc;
        rc = rc == 0 && o->headline ? show_headlines(&c, o, &changed, e) : rc;
        status = rc == 0 ? EXIT_OK : rc == -EINVAL ? EXIT_BAD_INPUT : EXIT_CHECK_FAILED;
        if (rc != -EINVAL && !o->headline) {
            show(&c, o);
        }
    }
    return status;
}

static int run(void *values, struct err *e)
{
    struct claims_options *o = values;
    if (o->machines > 0 && !o->headline) {
        return err_add(e, "--uncertainty: is for --headline");
    }
    if (o->machines > 0 && o->run.replications < QUANTITIES_MACHINE_TRACES) {
        return err_add(e, "--uncertainty: needs --replications %d or more",
                       QUANTITIES_MACHINE_TRACES);
    }
    if (o->headline && (o->fit != NULL || o->list || o->brief)) {
        return err_add(e, "--headline: excludes --fit, --list and --brief");
    }
    bool of_fit = o->under != NULL || o->state != NULL || o->witness != NULL || o->confirm > 0;
    if (o->fit == NULL && (of_fit || strcmp(o->over, "all") != 0)) {
        return err_add(e, "--under, --over, --state, --witness and --confirm go with --fit");
    }
    if (o->fit != NULL && (o->ids.n > 0 || o->list || o->brief)) {
        return err_add(e, "--fit: names its claims itself, and takes no ID, --list and --brief");
    }
    if ((o->fit == NULL &&
         options_without("claims without --fit", "parameters budget traces", e) != 0) ||
        (o->list &&
         options_without("claims --list", "replications seed jobs time-limit store", e) != 0)) {
        return EXIT_BAD_INPUT;
    }
    return job_options_work(&o->work, o->output.quiet, judge, o, e);
}

#define OPTIONS struct claims_options

static const struct option_row rows[] = {
    OPTION_TEXTS(OPTIONS, files, "file", "FILE.json", CLAIMS_MAX_BOOKS,
                 "file of claims, instead of the shipped ones; may be repeated"),
    OPTION_TEXT(OPTIONS, reading, "reading", "NAME", "all",
                "interpretations of the set-ups: all, taken (one a claim), or one by its name"),
    OPTION_TEXTS(OPTIONS, sets, "set", "PATH=VALUE", SETUP_MAX_TEXTS,
                 "set a value for every run and kernel, as in `xpusim run`; may be repeated"),
    OPTION_TEXTS(OPTIONS, policies, "policy", "NAME:key=value,...", SETUP_MAX_TEXTS,
                 "parameters of that policy wherever a claim runs it; may be repeated"),
    OPTION_TEXTS(OPTIONS, scales, "scale", "KIND:key=value,...", SETUP_MAX_TEXTS,
                 "parameters of every workload of that kind (mixed:proactive_input_scale=2); may "
                 "be repeated"),
    OPTION_TEXT(OPTIONS, profile, "profile", "NAME|FILE.json", NULL,
                "set-up as a file, for policies and workloads too (paper-125h)"),
    OPTION_COUNT(OPTIONS, run.replications, "replications", "N", "39", 1, 100000,
                 "number of traces; the first has --seed itself"),
    OPTION_SEED(OPTIONS, run.seed, "seed", "1", "seed of the first trace"),
    OPTION_FLAG(OPTIONS, brief, "brief", "print one line per claim"),
    OPTION_FLAG(OPTIONS, headline, "headline",
                "print one line per headline of the papers, by the reading that its claim takes"),
    OPTION_COUNT(OPTIONS, machines, "uncertainty", "N", NULL, 1, 1000,
                 "with --headline: run N machines drawn within their known ranges, too (default: "
                 "none)"),
    OPTION_FLAG(OPTIONS, list, "list", "print ids and statements, without running anything"),
};
static const struct option_row fit_rows[] = {
    OPTION_TEXT(OPTIONS, fit, "fit", "ID,...", NULL,
                "search the open parameters for a point where these claims hold together"),
    OPTION_TEXT(OPTIONS, under, "under", "ID,...", NULL,
                "claims whose checks without runs are constraints of the search (kernel times)"),
    OPTION_TEXT(OPTIONS, over, "over", "NAME,...", "all", "open parameters to vary"),
    OPTION_TEXT(OPTIONS, parameters, "parameters", "NAME|FILE.json", "open-125h",
                "file of open parameters"),
    OPTION_COUNT(OPTIONS, budget, "budget", "N", "400", 2, 100000, "limit of points to simulate"),
    OPTION_COUNT(OPTIONS, points_traces, "traces", "N", "3", 2, 1000,
                 "traces of a point; --replications is for the confirmation"),
    OPTION_COUNT(OPTIONS, confirm, "confirm", "N", NULL, 1, 100000,
                 "traces to confirm each of the best eight points; further traces confirm the best "
                 "of these (default: a quarter of --replications)"),
    OPTION_TEXT(OPTIONS, state, "state", "FILE", NULL,
                "keep the points in this file, and continue from those that it has"),
    OPTION_TEXT(OPTIONS, witness, "witness", "FILE", NULL, "write the best point as a profile"),
};
const struct command cmd_claims = {
    .name = "claims",
    .summary = "compare the papers' published results with the simulator's",
    .usage = "[ID...] [options]",
    .about =
        "Runs the claims of the papers (all, or the IDs given). For each check it prints the "
        "published value, the simulator's value with its 95 % interval, the percentile of the "
        "published value among single 15-minute traces, and a verdict:\n\n  calibrated       "
        "a parameter was set from it, so it is no test\n  reproduced       the simulator has "
        "the published value\n  compatible       not decided: single traces are spread too "
        "wide\n  direction        right sign, other size\n  not reproduced   none of these\n  not "
        "modellable   the simulator cannot compute it\n\nSome numbers of the default 125H come "
        "from the Agent.xpu papers. So each of their claims, as taken, also gets a verdict on "
        "the independent machine, core-ultra-5-125h-siblings. A text may leave a set-up open. "
        "Then each interpretation (reading) has its own verdict, and the counts at the end "
        "are of the readings that the file takes. All claims take about 25 minutes on two "
        "processors, or 8 with --reading taken. --store keeps the runs.",
    .operands = {"ID", 0, UINT32_MAX, offsetof(OPTIONS, ids)},
    COMMAND_TAKES(OPTION_ROWS(NULL, rows), OPTION_ROWS("Fitting", fit_rows),
                  OPTION_CHILD(job_option_table, work), OPTION_CHILD(option_output_table, output)),
    .run = run,
};
