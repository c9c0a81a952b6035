#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
/* `xpusim check-policy POLICY`: runs the conformance suite (experiments/conformance). */
#include <sys/mman.h>
#include <unistd.h>

#include "experiments/commands/commands.h"
#include "experiments/conformance/conformance.h"
#include "experiments/run/config.h"
#include "experiments/run/job_options.h"
#include "experiments/run/jobs.h"
#include "experiments/run/plugin.h"
#include "experiments/run/sandbox.h"
#include "policies/external/external.h"
#include "policies/external/jail.h"
#include "policies/params.h"
#include "sim/base/output.h"
#include "sim/base/words.h"
#include "traces/traces.h"

#define MAX_CHECKS 16
#ifdef __SANITIZE_ADDRESS__ /* it needs more memory than a jail has */
#define CONFINES false
#else
#define CONFINES true
#endif
#define ANSWER_LIMIT_S "10" /* of a program on these small loads, unless limit_s is given */

struct options {
    struct option_texts policies;
    struct job_options work;
    uint32_t loads, load;
    bool one_load, capable;
    const char *params, *pair, *trace, *decisions;
};

/* ---- the suite ---- */

struct suite {
    const struct conformance *c;
    const uint32_t *checks; /* indices of the checks that apply */
    char *now; /* shared with the checks' processes: CONFORMANCE_NOW_BYTES each; or NULL */
};

/* Runs one check in its own process, so that a crash fails only this check. The result is the text
 * of the failure, and the check's output about it. */
static void check_one(void *ctx, uint32_t index, struct job_result *r)
{
    const struct suite *s = ctx;
    struct conformance c = *s->c;
    OWNED char *left = NULL;
    size_t size = 0;
    c.now = s->now != NULL ? s->now + (size_t)index * CONFORMANCE_NOW_BYTES : NULL;
    c.out = open_memstream(&left, &size);
    SIM_REQUIRE(c.out != NULL, "memory");
    OWNED char *why = conformance_checks[s->checks[index]].fails(&c);
    (void)fclose(c.out);
    char *told = why != NULL ? xformat("%s\n%s", why, left) : xformat("%s", "");
    r->data = told;
    r->size = strlen(told) + 1;
}

/* Prints the lines of a text with indentation. */
static void put_lines(const char *text)
{
    while (*text != '\0') {
        size_t n = strcspn(text, "\n");
        (void)printf("        %.*s\n", (int)n, text);
        text += n + (text[n] == '\n');
    }
}

static int check_all(const struct options *o, struct conformance *c)
{
    uint32_t applying[MAX_CHECKS];
    struct job_result results[MAX_CHECKS];
    uint32_t n = 0;
    uint32_t n_held = 0;
    uint32_t n_open = 0;
    bool short_of_kv = false;
    for (uint32_t i = 0; conformance_checks[i].name != NULL; i++) {
        SIM_REQUIRE(i < MAX_CHECKS, "more checks than there is room for");
        if (conformance_applies(&conformance_checks[i], c)) {
            applying[n++] = i;
        }
    }
    void *now = mmap(NULL, (size_t)MAX_CHECKS * CONFORMANCE_NOW_BYTES, PROT_READ | PROT_WRITE,
                     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct suite suite = {c, applying, now != MAP_FAILED ? now : NULL};
    struct jobs j = {.n = n,
                     .parallel = worker_processors(),
                     .cpu_limit_s = o->work.how.cpu_limit_s,
                     .progress = isatty(STDERR_FILENO) != 0,
                     .ctx = &suite,
                     .run = check_one};
    jobs_run(&j, results);
    for (uint32_t i = 0; i < n; i++) {
        const struct job_result *r = &results[i];
        const char *why = r->status != 0 ? r->message : r->data != NULL ? r->data : "it ended";
        bool held = why[0] == '\0';
        bool open = strncmp(why, CONFORMANCE_OPEN, sizeof CONFORMANCE_OPEN - 1) == 0;
        (void)printf("%-6s  %s\n",
                     held   ? "ok"
                     : open ? "open"
                            : "FAILED",
                     conformance_checks[applying[i]].name);
        put_lines(why);
        if (r->status != 0 && suite.now != NULL) { /* the check's process ended before its output */
            put_lines(suite.now + (size_t)i * CONFORMANCE_NOW_BYTES);
        }
        n_held += held;
        n_open += open;
        short_of_kv = short_of_kv || strstr(why, "not enough free KV") != NULL ||
                      strstr(why, "finished within") != NULL;
        free(r->data);
    }
    if (short_of_kv) {
        bool python = strncmp(c->label, "python:", 7) == 0;
        (void)printf("who gives KV back: sim/api/policy.h, \"Memory\", and docs/recipes/%s\n",
                     python ? "admit.py" : "evict.c");
    }
    (void)printf("%s: %u of %u checks hold", c->label, n_held, n);
    (void)printf(n_open > 0 ? ", %u open (--loads %d)\n" : "\n", n_open, CONFORMANCE_LOADS);
    return n_held + n_open == n ? EXIT_OK : EXIT_CHECK_FAILED;
}

/* ---- one load ---- */

struct one_load {
    const struct options *o;
    const struct conformance *c;
    struct conformance_case how;
    const struct trace *trace; /* NULL: the load's own requests */
};

/* Prints the end of the last run of n requests. */
static int put_end(const struct scenario *sc, size_t n, FILE *out)
{
    const struct sim_result *r = &sc->result;
    bool failed = r->status != 0 || r->audit.finished != n;
    (void)fprintf(out, "%llu of %zu request%s finished\n", (unsigned long long)r->audit.finished, n,
                  text_plural(n));
    (void)fprintf(out, "%s%s%s", r->message, failed ? "\n" : "", r->scene);
    return failed ? EXIT_CHECK_FAILED : EXIT_OK;
}

static int run_load(void *ctx, FILE *out, struct err *e)
{
    const struct one_load *l = ctx;
    OWNED struct scenario *sc = xcalloc(1, sizeof *sc);
    struct scenario_request q[CONFORMANCE_MAX_REQUESTS];
    uint32_t n = conformance_prepare(sc, q, l->c, &l->how);
    scenario_trace(sc, q, n);
    const struct trace *t = l->trace != NULL ? l->trace : &sc->trace;
    struct output *decisions = l->o->decisions != NULL ? output_open(l->o->decisions, e) : NULL;
    int status = EXIT_BAD_INPUT;
    if (e->n == 0 && l->how.pair != CONFORMANCE_ALONE) {
        const char *differ = conformance_differ(sc, t, l->how.pair);
        (void)fprintf(out, "%s\n", differ != NULL ? differ : "both runs are equal");
        status = differ != NULL ? EXIT_CHECK_FAILED : EXIT_OK;
    } else if (e->n == 0) {
        sc->setup.decision_log = decisions != NULL ? output_stream(decisions) : NULL;
        (void)conformance_run(sc, t);
        status = put_end(sc, t->n, out);
    }
    (void)output_close(decisions, true, e);
    scenario_fini(sc);
    return status;
}

static int check_load(const struct options *o, const struct conformance *c, struct err *e)
{
    SCOPED(trace_fini) struct trace t = {0};
    int pair = words_find(conformance_pairs, o->pair);
    struct one_load l = {
        .o = o,
        .c = c,
        .how = {.params = o->params,
                .load = o->load,
                .capable = o->capable,
                .pair = pair > 0 ? (enum conformance_pair)pair : CONFORMANCE_ALONE},
        .trace = o->trace != NULL ? &t : NULL};
    if (o->trace != NULL && trace_read(o->trace, &t, e) == 0) {
        trace_unpack(&t);
        for (size_t i = 0; i < t.n; i++) {
            if (t.rows[i].request_id >= SCENARIO_MAX_REQUESTS) {
                (void)err_add(e, "%s: request_id %u: these are from 0 to %d", o->trace,
                              t.rows[i].request_id, SCENARIO_MAX_REQUESTS - 1);
            }
        }
    }
    int status = EXIT_BAD_INPUT;
    if (e->n == 0) {
        struct sandbox box = {.policy = c->label,
                              .time_limit_s = o->work.how.cpu_limit_s,
                              .ctx = &l,
                              .work = run_load};
        status = sandbox_run(&box, NULL, e);
    }
    return status;
}

/* ---- the command ---- */

static int run(void *values, struct err *e)
{
    const struct options *o = values;
    const char *spec = o->policies.v[0];
    bool of_a_load = o->capable || o->params != NULL || o->pair != NULL || o->trace != NULL ||
                     o->decisions != NULL;
    if (of_a_load && !o->one_load) {
        return err_add(e, "--capable, --params, --pair, --trace and --decisions need --load");
    }
    if (o->one_load && options_without("check-policy --load", "loads", e) != 0) {
        return EXIT_BAD_INPUT;
    }
    struct config_policy p;
    if (config_policy_parse(&p, spec, e) != 0) {
        return -EINVAL;
    }
    struct policy_params given;
    if (o->params != NULL && policy_params_parse(p.ops, o->params, &given, e) != 0) {
        return -EINVAL;
    }
    size_t path = plugin_path_length(spec);
    const char *rest = spec + (path > 0 ? path : strcspn(spec, ":"));
    const char *params = rest[0] == ':' ? rest + 1 : "";
    bool hurry = external_spec_length(spec) > 0 && strstr(params, "limit_s=") == NULL;
    OWNED char *with =
        hurry ? xformat("%s%slimit_s=" ANSWER_LIMIT_S, params, params[0] == '\0' ? "" : ",")
              : xstrdup(params);
    const char *why = NULL;
    bool two = CONFINES && plugin_is_code(spec) && hosted_memory(p.ops) == NULL && jail_works(&why);
    if (o->pair != NULL && strcmp(o->pair, "confined") == 0 && !two) {
        return err_add(e,
                       "--pair confined: the policy is no shared object, or runs in a jail "
                       "already, or there is none%s%s",
                       why != NULL ? ": " : "", why != NULL ? why : "");
    }
    struct conformance c = {.ops = p.ops,
                            .label = spec,
                            .params = with,
                            .n_loads = o->loads,
                            .out = stderr,
                            .confined = two ? plugin_load_confined : NULL};
    return o->one_load ? check_load(o, &c, e) : check_all(o, &c);
}

#define OPTIONS struct options

static const char *const pairs[] = {"collapsed", "repeated", "hidden", "confined", NULL};
static const struct option_row rows[] = {
    OPTION_COUNT(OPTIONS, loads, "loads", "N", "40", 1, 1000000,
                 "number of random loads of each check; numbers of loads count over all checks"),
    OPTION_ROW(COUNT, OPTIONS, load, uint32_t, "load", "N",
               "run only this load, and print how it ends", .min = 1, .max = UINT32_MAX,
               .given = 1 + OPTION_AT(OPTIONS, one_load, bool)),
    OPTION_FLAG(OPTIONS, capable, "capable",
                "with --load: every device can reset, withdraw and suspend"),
    OPTION_TEXT(OPTIONS, params, "params", "K=V,..", NULL,
                "with --load: parameters in place of those of the policy"),
    OPTION_CHOICE(OPTIONS, pair, "pair", "PAIR", NULL, pairs,
                  "with --load: compare two runs that must be equal"),
    OPTION_FILE(OPTIONS, trace, "trace", "FILE.csv",
                "with --load: its machine, with these requests"),
    OPTION_FILE(OPTIONS, decisions, "decisions", "FILE", "with --load: write every decision there"),
};
const struct command cmd_check_policy = {
    .name = "check-policy",
    .summary = "run the conformance suite on one policy: does it serve everybody?",
    .usage = "POLICY[:K=V,..] [--loads N]\n"
             "POLICY[:K=V,..] --load N [--trace FILE.csv]",
    .about =
        "Runs a policy on random small loads of a toy machine, many of them with little memory. "
        "Every request must finish with all its tokens, unless its user gives up, and a device "
        "must have work within 60 s while one is there. No load may take 600 s. Equal runs "
        "must take equal decisions, and "
        "no decision may depend on what a scheduler cannot know. A shared object must decide the "
        "same in a jailed process of its own. The command shrinks a load that "
        "fails, and prints how to run it again. A program has " ANSWER_LIMIT_S
        " s for an answer, unless limit_s says otherwise. Exit 1 when a check fails. A check that "
        "needs more loads to decide is open, and has not failed.",
    .operands = {"POLICY", 1, 1, offsetof(OPTIONS, policies)},
    COMMAND_TAKES(OPTION_ROWS(NULL, rows), OPTION_CHILD(time_limit_option_table, work)),
    .run = run,
};
