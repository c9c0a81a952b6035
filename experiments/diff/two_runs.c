#include "experiments/diff/two_runs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "experiments/run/other_binary.h"
#include "experiments/run/runner.h"
#include "sim/base/arena.h"
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
    r->time_limit_s = o->work.time_limit_s;
    r->side[0].policy = o->policy;
    r->side[1].policy = o->b_policy != NULL ? o->b_policy : o->policy;
    r->side[1].binary = o->against;
    for (int i = 0; i < 2; i++) {
        r->side[i].options = config_options_default();
        r->side[i].options.soc = NULL; /* all is laid over it */
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
        if (s->binary == NULL) { /* another binary knows its own policies */
            (void)config_policy_parse(&s->parsed, s->policy, e);
        }
        if (e->n > before) {
            return -EINVAL; /* side B would say the same again */
        }
    }
    return 0;
}

void two_runs_fini(struct two_runs *r)
{
    for (int i = 0; i < 2; i++) {
        config_fini(&r->side[i].config);
        config_options_fini(&r->side[i].options);
    }
}

/* ---- running ---- */

static void run_here(const struct two_runs_side *s, const struct trace *t,
                     struct observer *observer, struct two_runs_log *out)
{
    struct err e = ERR_INIT;
    struct runner_options opt = {.decision_log = out->log, .observer = observer};
    struct runner_result result;
    out->status = runner_run(&s->config, &s->parsed, t, s->options.seed, &opt, &result, &e);
    (void)snprintf(out->message, sizeof out->message, "%.*s", JOBS_MESSAGE_BYTES - 1,
                   out->status != 0 ? result.sim.message : "");
    runner_result_fini(&result);
    err_fini(&e);
}

/* The other binary reads the trace from a file and writes its log to one. */
static void run_there(const struct two_runs_side *s, const struct trace *t,
                      struct two_runs_log *out)
{
    char dir[] = "/tmp/xpusim-XXXXXX";
    char trace[64];
    char log[64];
    struct err e = ERR_INIT;
    out->status = -EIO;
    if (mkdtemp(dir) == NULL) {
        (void)snprintf(out->message, sizeof out->message, "no temporary folder: %s",
                       strerror(errno));
        return;
    }
    (void)snprintf(trace, sizeof trace, "%s/trace.csv", dir);
    (void)snprintf(log, sizeof log, "%s/decisions", dir);
    struct config_options options = s->options; /* its settings stay the side's */
    options.trace = trace;
    options.workload = NULL;
    if (trace_write(trace, t, &e) != 0) {
        (void)snprintf(out->message, sizeof out->message, "%s", e.lines[0]);
    } else {
        cJSON *result = other_binary_run(s->binary, &options, s->policy, s->options.seed, log,
                                         out->message, sizeof out->message);
        out->status = result != NULL ? 0 : -EIO;
        cJSON_Delete(result);
        out->log = input_try(log); /* of a run that failed: what it got to */
    }
    (void)unlink(trace);
    (void)unlink(log);
    (void)rmdir(dir);
    err_fini(&e);
}

void two_runs_run(const struct two_runs *r, int side, const struct trace *t,
                  struct observer *observer, FILE *log, struct two_runs_log *out)
{
    memset(out, 0, sizeof *out);
    if (r->side[side].binary != NULL) {
        run_there(&r->side[side], t, out);
    } else {
        out->log = log != NULL ? log : tmpfile();
        SIM_REQUIRE(out->log != NULL, "temporary files");
        run_here(&r->side[side], t, observer, out);
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
    l->log = NULL;
}

struct parting {
    const struct two_runs *runs;
    const struct trace *trace;
};

/* In a worker: a hash of the log without its heading, and of how the run ended. */
static void hash_one(void *ctx, uint32_t index, struct job_result *out)
{
    const struct parting *p = ctx;
    struct two_runs_log l;
    two_runs_run(p->runs, (int)index, p->trace, NULL, NULL, &l);
    uint64_t h = hash_u64(HASH_INIT, l.status != 0);
    char line[4096];
    bool first = true;
    while (l.log != NULL && fgets(line, sizeof line, l.log) != NULL) {
        bool heading = first && strncmp(line, "policy ", 7) == 0;
        h = heading ? h : hash_string(h, line);
        first = false;
    }
    uint64_t *data = xmalloc(sizeof *data);
    *data = h;
    out->data = data;
    out->size = sizeof *data;
}

bool two_runs_part(const struct two_runs *r, const struct trace *t)
{
    struct parting p = {r, t};
    struct job_result results[2];
    struct jobs j = {.n = 2,
                     .parallel = r->jobs < 2 ? r->jobs : 2,
                     .cpu_limit_s = r->time_limit_s,
                     .ctx = &p,
                     .run = hash_one};
    jobs_run(&j, results);
    bool whole = results[0].size == sizeof(uint64_t) && results[1].size == sizeof(uint64_t);
    bool part = whole
                    ? memcmp(results[0].data, results[1].data, sizeof(uint64_t)) != 0
                    : results[0].status != results[1].status || results[0].size != results[1].size;
    free(results[0].data);
    free(results[1].data);
    return part;
}
