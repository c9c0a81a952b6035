#include "experiments/diff/two_runs.h"

#include <unistd.h>

#include "experiments/diff/snapshot.h"
#include "experiments/run/other_binary.h"
#include "experiments/run/plugin.h"
#include "experiments/run/runner.h"
#include "sim/base/hash.h"
#include "sim/base/input.h"
#include "traces/traces.h"

/* ---- options ---- */

#define OPTIONS struct two_runs_options

static const struct option_row rows[] = {
    OPTION_TEXT(OPTIONS, policy, "policy", "P[:K=V,..]", NULL,
                "policy and parameters of both sides"),
    OPTION_TEXT(OPTIONS, b_policy, "b-policy", "P", NULL, "of side B only"),
    OPTION_TEXT(OPTIONS, against, "against", "BINARY", NULL,
                "side B is another xpusim (XPUSIM_DATA_DIR, if it lost its data)"),
};
const struct option_table two_runs_option_table = OPTION_TABLE(NULL, rows);

static void settle(struct two_runs *r, const struct two_runs_options *o)
{
    r->jobs = worker_processors();
    r->time_limit_s = o->work.how.cpu_limit_s;
    r->side[0].policy = o->policy;
    r->side[1].policy = o->b_policy != NULL ? o->b_policy : o->policy;
    r->side[1].binary = o->against;
    for (int i = 0; i < 2; i++) {
        r->side[i].options = config_options_default();
        r->side[i].options.soc = NULL; /* the overlay sets it */
        config_options_overlay(&r->side[i].options, &o->both);
        r->side[i].options.seed = o->both.seed;
    }
    config_options_overlay(&r->side[1].options, &o->b);
}

int two_runs_load(struct two_runs *r, const struct two_runs_options *o, struct err *e)
{
    size_t before = e->n;
    settle(r, o);
    if (r->side[0].policy == NULL) {
        return err_add(e, "--policy is missing (`xpusim list policy` shows the names)");
    }
    const char *binary = r->side[1].binary;
    if (binary != NULL && access(binary, X_OK) != 0) {
        (void)err_add(e, "--against %s: not a program: %s", binary, strerror(errno));
    }
    for (int i = 0; i < 2; i++) {
        struct two_runs_side *s = &r->side[i];
        (void)config_load(&s->config, &s->options, e);
        if (s->binary == NULL) { /* another binary may have other policies */
            (void)config_policy_parse(&s->parsed, s->policy, e);
        }
        if (e->n > before) {
            return -EINVAL; /* side B would repeat the errors */
        }
    }
    return 0;
}

/* ---- running ---- */

/* A log that was cut would show another first difference, or none. */
static void require_room(int status)
{
    SIM_REQUIRE(status != -ENOSPC, "room for temporary files");
}

/* Runs a side in this process. The status is -ENOSPC where its log is not whole. before: the
 * decision whose state is requested, or NULL; index: of the side. */
static void run_here(const struct two_runs_side *s, const struct trace *t,
                     const struct divergence *before, int index, struct two_runs_log *out)
{
    SCOPED(err_fini) struct err e = ERR_INIT;
    struct runner_options opt = {.decision_log = out->log};
    SCOPED(runner_result_fini) struct runner_result result;
    struct snapshot *shot = NULL;
    if (before != NULL) {
        shot =
            snapshot_new(&s->config.soc.machine, out->log, before->offset[index], before->since_ns);
        opt.observer = snapshot_observer(shot);
    }
    out->status = runner_run(&s->config, &s->parsed, t, s->options.seed, &opt, &result, &e);
    (void)snprintf(out->message, sizeof out->message, "%.*s", JOBS_MESSAGE_BYTES - 1,
                   out->status != 0 ? result.sim.message : "");
    if (fflush(out->log) != 0 || ferror(out->log) != 0) {
        out->status = -ENOSPC;
    }
    out->state = shot != NULL ? xkeep(xstrdup(snapshot_text(shot))) : NULL;
    runner_tell_printed(&s->parsed, result.printed_bytes);
    snapshot_free(shot);
}

/* A worker's message about its run. The state follows, with its final NUL. */
struct said {
    int status;
    char message[JOBS_MESSAGE_BYTES];
    char state[];
};

struct one_run {
    const struct two_runs_side *side;
    const struct trace *trace;
    const struct divergence *before;
    int index;
    FILE *log;
};

static void run_in_worker(void *ctx, uint32_t index UNUSED, struct job_result *r)
{
    const struct one_run *x = ctx;
    struct two_runs_log l = {.log = x->log};
    run_here(x->side, x->trace, x->before, x->index, &l);
    size_t text = l.state != NULL ? strlen(l.state) + 1 : 0;
    struct said *said = xcalloc(1, sizeof *said + text);
    said->status = l.status;
    (void)snprintf(said->message, sizeof said->message, "%s", l.message);
    if (text > 0) {
        memcpy(said->state, l.state, text);
    }
    r->data = said;
    r->size = sizeof *said + text;
}

static void did_not_end(const struct two_runs_side *s, const struct job_result *r,
                        char message[JOBS_MESSAGE_BYTES])
{
    (void)snprintf(message, JOBS_MESSAGE_BYTES, "policy %s: the run did not end: %.256s", s->policy,
                   r->status != 0 ? r->message : "its process ended");
}

static void run_safely(const struct two_runs *runs, int side, const struct trace *t,
                       const struct divergence *before, struct two_runs_log *out)
{
    struct one_run x = {&runs->side[side], t, before, side, out->log};
    struct job_result r;
    struct jobs j = {
        .n = 1, .parallel = 1, .cpu_limit_s = runs->time_limit_s, .ctx = &x, .run = run_in_worker};
    if (plugin_path_length(x.side->policy) > 0) { /* a crash then loses no decision */
        (void)setvbuf(out->log, NULL, _IOLBF, BUFSIZ);
    }
    jobs_run(&j, &r);
    const struct said *said = r.data;
    out->status = said != NULL ? said->status : -EIO;
    require_room(out->status);
    if (said == NULL) {
        did_not_end(x.side, &r, out->message);
    } else {
        (void)snprintf(out->message, sizeof out->message, "%s", said->message);
        out->state = r.size > sizeof *said ? xkeep(xstrdup(said->state)) : NULL;
    }
    free(r.data);
}

/* The other binary reads the trace from a file and writes its log to one. */
static void run_there(const struct two_runs_side *s, const struct trace *t,
                      struct two_runs_log *out)
{
    const char *tmp = getenv("TMPDIR");
    OWNED char *dir = xformat("%s/xpusim-XXXXXX", tmp != NULL ? tmp : "/tmp");
    SCOPED(err_fini) struct err e = ERR_INIT;
    out->status = -EIO;
    if (mkdtemp(dir) == NULL) {
        (void)snprintf(out->message, sizeof out->message, "no temporary folder (TMPDIR): %s",
                       strerror(errno));
        return;
    }
    OWNED char *trace = xformat("%s/trace.csv", dir);
    OWNED char *log = xformat("%s/decisions", dir);
    struct config_options options = s->options; /* its other members are borrowed */
    options.trace = trace;
    options.workload = NULL;
    if (trace_write(trace, t, &e) != 0) {
        (void)snprintf(out->message, sizeof out->message, "%s", e.lines[0]);
    } else {
        SCOPED(json_drop)
        cJSON *result = other_binary_run(s->binary, &options, s->policy, s->options.seed, log,
                                         out->message, sizeof out->message);
        out->status = result != NULL ? 0 : -EIO;
        out->log = input_try(log); /* after a failed run: the decisions so far */
    }
    (void)unlink(trace);
    (void)unlink(log);
    (void)rmdir(dir);
}

void two_runs_run(const struct two_runs *r, int side, const struct trace *t,
                  const struct divergence *before, struct two_runs_log *out)
{
    memset(out, 0, sizeof *out);
    if (r->side[side].binary != NULL) {
        run_there(&r->side[side], t, out);
    } else {
        out->log = tmpfile();
        SIM_REQUIRE(out->log != NULL, "temporary files");
        run_safely(r, side, t, before, out);
    }
    if (out->log != NULL) {
        rewind(out->log);
    }
}

void two_runs_log_fini(struct two_runs_log *l)
{
    if (l->log != NULL) {
        (void)fclose(l->log);
    }
    *l = (struct two_runs_log){0};
}

struct parting {
    const struct two_runs *runs;
    const struct trace *trace;
};

/* A worker's message about its run of a pair. */
struct hashed {
    uint64_t log; /* hash of the decisions, and of whether the run failed */
    int status;
    two_runs_end end;
};

static void hash_one(void *ctx, uint32_t index, struct job_result *out)
{
    const struct parting *p = ctx;
    const struct two_runs_side *s = &p->runs->side[index];
    SCOPED(two_runs_log_fini) struct two_runs_log l = {0};
    if (s->binary != NULL) {
        run_there(s, p->trace, &l);
    } else {
        l.log = tmpfile();
        SIM_REQUIRE(l.log != NULL, "temporary files");
        run_here(s, p->trace, NULL, (int)index, &l);
        rewind(l.log);
    }
    struct hashed *h = xcalloc(1, sizeof *h);
    h->log = hash_u64(HASH_INIT, l.status != 0);
    h->status = l.status;
    char line[4096];
    bool first = true;
    bool begins = true; /* the line, of which there may be more than fits */
    while (l.log != NULL && fgets(line, sizeof line, l.log) != NULL &&
           strcmp(line, DIVERGE_NOTES "\n") != 0) {
        bool heading = first && strncmp(line, "policy ", 7) == 0;
        h->log = heading ? h->log : hash_string(h->log, begins ? diverge_decision(line) : line);
        first = false;
        begins = strchr(line, '\n') != NULL;
    }
    (void)snprintf(h->end, sizeof h->end, "%s", l.message);
    out->data = h;
    out->size = sizeof *h;
}

bool two_runs_part(const struct two_runs *r, const struct trace *t, two_runs_end end[2])
{
    struct parting p = {r, t};
    struct job_result results[2];
    struct jobs j = {.n = 2,
                     .parallel = r->jobs < 2 ? r->jobs : 2,
                     .cpu_limit_s = r->time_limit_s,
                     .ctx = &p,
                     .run = hash_one};
    jobs_run(&j, results);
    const struct hashed *h[2] = {results[0].data, results[1].data};
    for (int i = 0; i < 2; i++) {
        if (h[i] != NULL) {
            require_room(h[i]->status);
            (void)snprintf(end[i], sizeof end[i], "%s", h[i]->end);
        } else {
            did_not_end(&r->side[i], &results[i], end[i]);
        }
    }
    bool part =
        h[0] != NULL && h[1] != NULL ? h[0]->log != h[1]->log : (h[0] == NULL) != (h[1] == NULL);
    free(results[0].data);
    free(results[1].data);
    return part;
}
