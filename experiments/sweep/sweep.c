#include "experiments/sweep/sweep.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "experiments/compare/compare.h"
#include "experiments/run/plugin.h"
#include "experiments/run/pool.h"
#include "experiments/run/runner.h"
#include "experiments/shell/progress.h"
#include "sim/base/arena.h"
#include "sim/base/hash.h"
#include "sim/base/json.h"
#include "sim/base/version.h"
#include "sim/stats/stats.h"

#define REPLICATION_BITS 20 /* of a job's number; SPEC_MAX_REPLICATIONS */
#define JOBS_PER_WORKER 500 /* of one process: what a plug-in leaks does not add up */

/* A point as a worker has it loaded: replications of one point come one after the other. */
struct loaded {
    bool valid;
    uint64_t point;
    struct spec_point settings;
    struct config config;
    struct config_policy policy;
    uint64_t code_hash; /* of a plug-in's file; 0: built in */
};

struct sweep {
    const struct spec *spec;
    struct store *store;
    const struct sweep_options *opt;
    struct sweep_result *result;
    /* the round: replications first .. until-1 of every open point */
    uint32_t first, until;
    uint64_t next_point;
    uint32_t next_replication;
    uint8_t *closed; /* owned, by point, with `until`; else NULL */
    uint64_t noted;  /* point that is known to be in the store; UINT64_MAX: none */
    struct progress progress;
    struct loaded loaded; /* in workers only */
};

/* A signal handler reaches nothing but static storage. */
static volatile sig_atomic_t stop_asked;

static void ask_stop(int sig)
{
    (void)sig;
    stop_asked = 1;
}

/* ---- in the worker ---- */

static void refuse(struct job_result *r, struct err *e)
{
    r->status = -EINVAL;
    (void)snprintf(r->message, sizeof r->message, "%s", e->n > 0 ? e->lines[0] : "unknown error");
    err_fini(e);
}

static int load_point(struct loaded *l, const struct spec *spec, uint64_t point, struct err *e)
{
    if (l->valid && l->point == point) {
        return 0;
    }
    if (l->valid) {
        config_fini(&l->config);
        spec_point_fini(&l->settings);
        l->valid = false;
    }
    if (spec_point(spec, point, &l->settings, e) != 0) {
        spec_point_fini(&l->settings);
        return -EINVAL;
    }
    l->point = point;
    l->valid = true; /* even if not: to be freed */
    bool ok = config_load(&l->config, &l->settings.options, e) == 0 &&
              config_policy_parse(&l->policy, l->settings.policy, e) == 0;
    l->code_hash = plugin_code_hash(l->settings.policy);
    if (!ok) {
        l->point = UINT64_MAX; /* the next replication says the same */
    }
    return ok ? 0 : -EINVAL;
}

/* What makes a run what it is: the fingerprint, and what that leaves out. */
static void fingerprint(const struct sweep *s, const struct trace *t, uint64_t seed, char *buf,
                        size_t size)
{
    const struct loaded *l = &s->loaded;
    (void)config_fingerprint(&l->config, &l->policy, t, seed, buf, size);
    size_t n = strlen(buf);
    if (l->code_hash != 0) {
        n += (size_t)snprintf(buf + n, size - n, " code=%016" PRIx64, l->code_hash);
    }
    if (s->spec->warmup_s > 0.0 && n < size) {
        (void)snprintf(buf + n, size - n, " warmup_s=%.17g", s->spec->warmup_s);
    }
}

static void describe(const struct sweep *s, const struct trace *t, uint64_t seed,
                     const struct runner_result *r, struct store_run *out)
{
    const struct loaded *l = &s->loaded;
    fingerprint(s, t, seed, out->fingerprint, sizeof out->fingerprint);
    (void)snprintf(out->soc, sizeof out->soc, "%s", l->config.soc.machine.name);
    (void)snprintf(out->llm, sizeof out->llm, "%s", l->config.llm.name);
    (void)snprintf(out->workload, sizeof out->workload, "%s", l->config.workload);
    (void)snprintf(out->policy, sizeof out->policy, "%s", l->policy.ops->name);
    (void)snprintf(out->params, sizeof out->params, "%s", l->policy.params_text);
    (void)snprintf(out->verdict, sizeof out->verdict, "%s", metrics_verdict_names[r->verdict]);
    out->rate_scale = l->settings.arrivals.rate_scale;
    out->seed = seed;
    out->config_hash = l->config.hash;
    out->trace_hash = t->hash;
}

/* The run and the metrics that are kept, one after the other. */
static void pack(const struct sweep *s, const struct trace *t, uint64_t seed,
                 const struct runner_result *r, struct job_result *out)
{
    unsigned char *data =
        xcalloc(1, sizeof(struct store_run) + r->metrics.n * sizeof(struct metric));
    describe(s, t, seed, r, (struct store_run *)(void *)data);
    size_t size = sizeof(struct store_run);
    for (size_t i = 0; i < r->metrics.n; i++) {
        if (spec_keeps(s->spec, r->metrics.v[i].name)) {
            memcpy(data + size, &r->metrics.v[i], sizeof(struct metric));
            size += sizeof(struct metric);
        }
    }
    out->data = data;
    out->size = size;
}

static void simulate(const struct sweep *s, const struct trace *t, uint64_t seed,
                     struct job_result *out)
{
    struct err e = ERR_INIT;
    struct runner_options opt = {.warmup_s = s->spec->warmup_s};
    struct runner_result r;
    out->status = runner_run(&s->loaded.config, &s->loaded.policy, t, seed, &opt, &r, &e);
    if (out->status == 0 && !r.sim.audit.clean) {
        out->status = -EIO;
        (void)snprintf(out->message, sizeof out->message, "the audit found a violation");
    } else if (r.sim.status != 0) {
        (void)snprintf(out->message, sizeof out->message, "%.*s", JOBS_MESSAGE_BYTES - 1,
                       r.sim.message);
    } else if (out->status != 0) {
        refuse(out, &e);
    } else {
        pack(s, t, seed, &r, out);
    }
    runner_result_fini(&r);
    err_fini(&e);
}

static void work(void *ctx, uint64_t job, struct pool_worker *w, struct job_result *out)
{
    struct sweep *s = ctx;
    struct loaded *l = &s->loaded;
    struct err e = ERR_INIT;
    uint32_t replication = (uint32_t)(job & (SPEC_MAX_REPLICATIONS - 1));
    if (load_point(l, s->spec, job >> REPLICATION_BITS, &e) != 0) {
        refuse(out, &e);
        return;
    }
    uint64_t seed = compare_seed(l->settings.options.seed, replication);
    struct trace t = {0};
    if (config_trace(&l->settings.options, seed, l->settings.arrivals, &t, &e) != 0) {
        refuse(out, &e);
        return;
    }
    char key[CONFIG_FINGERPRINT_BYTES];
    fingerprint(s, &t, seed, key, sizeof key);
    if (pool_wanted(w, key)) {
        simulate(s, &t, seed, out);
    }
    trace_fini(&t);
}

/* ---- in the parent ---- */

static bool next_of_round(struct sweep *s, uint64_t *job)
{
    const struct sweep_options *o = s->opt;
    for (; s->next_point < s->spec->n_points; s->next_point++, s->next_replication = s->first) {
        if (s->closed != NULL &&
            (s->next_point % o->shards != o->shard || s->closed[s->next_point])) {
            continue;
        }
        for (; s->next_replication < s->until; s->next_replication++) {
            uint64_t number = s->next_point * s->until + s->next_replication;
            if (s->closed != NULL || number % o->shards == o->shard) {
                *job = s->next_point << REPLICATION_BITS | s->next_replication++;
                return true;
            }
        }
    }
    return false;
}

/* A replication refers to its point: there before it. */
static void note_point(struct sweep *s, uint64_t point)
{
    if (point != s->noted && !store_has_point(s->store, s->result->experiment, point)) {
        cJSON *settings = spec_point_settings(s->spec, point);
        char *text = json_text(settings, false);
        store_point(s->store, s->result->experiment, point, text);
        cJSON_free(text);
        cJSON_Delete(settings);
    }
    s->noted = point;
}

static bool next(void *ctx, uint64_t *job)
{
    return next_of_round(ctx, job);
}

static bool wanted(void *ctx, uint64_t job, const char *key)
{
    struct sweep *s = ctx;
    int64_t run = store_find(s->store, key, s->spec->kept);
    if (run == 0) {
        return true;
    }
    note_point(s, job >> REPLICATION_BITS);
    store_member(s->store, s->result->experiment, job >> REPLICATION_BITS,
                 (uint32_t)(job & (SPEC_MAX_REPLICATIONS - 1)), run);
    return false;
}

static void done(void *ctx, uint64_t job, const struct job_result *r)
{
    struct sweep *s = ctx;
    uint64_t point = job >> REPLICATION_BITS;
    uint32_t replication = (uint32_t)(job & (SPEC_MAX_REPLICATIONS - 1));
    if (r->status == 0 && r->data == NULL) {
        s->result->found++;
        return;
    }
    note_point(s, point);
    if (r->status == 0) {
        const struct store_run *run = r->data;
        const struct metric *metrics =
            (const struct metric *)(const void *)((const unsigned char *)r->data + sizeof *run);
        int64_t id = store_put(s->store, run, s->spec->kept, metrics,
                               (r->size - sizeof *run) / sizeof *metrics);
        store_member(s->store, s->result->experiment, point, replication, id);
        s->result->done++;
        return;
    }
    store_failure(s->store, s->result->experiment, point, replication, r->message);
    if (s->result->failed++ == 0) {
        (void)snprintf(s->result->first_failure, sizeof s->result->first_failure,
                       "point %" PRIu64 ", replication %" PRIu32 ": %s", point, replication,
                       r->message);
    }
}

static bool go_on(void *ctx)
{
    struct sweep *s = ctx;
    store_commit(s->store, false);
    progress_show(&s->progress, s->result->done + s->result->found + s->result->failed);
    return stop_asked == 0 && store_ok(s->store) && !(s->opt->fail_fast && s->result->failed > 0);
}

/* ---- rounds ---- */

static bool wide(const struct sweep *s, uint64_t point, double *values)
{
    for (uint32_t i = 0; i < s->spec->n_until; i++) {
        const struct spec_until *u = &s->spec->until[i];
        store_values(s->store, s->result->experiment, point, u->metric, values, s->until);
        struct stats_interval x = stats_mean(values, s->until, STATS_LEVEL_FRAC);
        double limit = u->relative ? u->half_width * fabs(x.mean) : u->half_width;
        if (!(stats_half_width(&x) <= limit)) {
            return true;
        }
    }
    return false;
}

/* Closes the points whose intervals are narrow enough. Returns how many of this shard stay open. */
static uint64_t close_points(struct sweep *s)
{
    double *values = xcalloc(s->until, sizeof *values);
    uint64_t open = 0;
    for (uint64_t p = s->opt->shard; p < s->spec->n_points; p += s->opt->shards) {
        if (!s->closed[p]) {
            s->closed[p] = !wide(s, p, values);
            open += s->closed[p] ? 0 : 1;
        }
    }
    free(values);
    return open;
}

static int run_rounds(struct sweep *s)
{
    const struct spec *spec = s->spec;
    struct pool pool = {.parallel = s->opt->jobs,
                        .jobs_per_worker = JOBS_PER_WORKER,
                        .cpu_limit_s = s->opt->time_limit_s,
                        .memory_limit_bytes = s->opt->memory_limit_bytes,
                        .ctx = s,
                        .next = next,
                        .wanted = wanted,
                        .work = work,
                        .done = done,
                        .go_on = go_on};
    uint64_t open = (spec->n_points + s->opt->shards - 1 - s->opt->shard) / s->opt->shards;
    for (s->until = spec->replications;; s->until += spec->replications) {
        if (s->until > spec->max_replications) {
            s->until = spec->max_replications;
        }
        s->next_point = 0;
        s->next_replication = s->first;
        s->progress.total +=
            s->closed != NULL
                ? open * (s->until - s->first)
                : (spec_runs(spec, s->until) + s->opt->shards - 1 - s->opt->shard) / s->opt->shards;
        int rc = pool_run(&pool);
        store_commit(s->store, true);
        if (rc != 0 || s->closed == NULL) {
            return rc;
        }
        open = close_points(s);
        if (open == 0 || s->until == spec->max_replications) {
            s->result->points_open = open;
            return 0;
        }
        s->first = s->until;
    }
}

int64_t sweep_experiment(const struct spec *spec, struct store *store)
{
    return store_experiment(store, spec->name, XPUSIM_VERSION " " XPUSIM_REVISION, spec->canonical);
}

int sweep_run(const struct spec *spec, struct store *store, const struct sweep_options *opt,
              struct sweep_result *out, struct err *e)
{
    *out = (struct sweep_result){.experiment = sweep_experiment(spec, store)};
    struct sweep *s = xcalloc(1, sizeof *s);
    *s = (struct sweep){
        .spec = spec, .store = store, .opt = opt, .result = out, .noted = UINT64_MAX};
    progress_start(&s->progress, opt->progress, 0);
    s->closed = spec->n_until > 0 ? xcalloc(spec->n_points, 1) : NULL;
    struct sigaction action;
    struct sigaction old_int;
    struct sigaction old_term;
    memset(&action, 0, sizeof action);
    action.sa_handler = ask_stop;
    stop_asked = 0;
    (void)sigaction(SIGINT, &action, &old_int);
    (void)sigaction(SIGTERM, &action, &old_term);
    int rc = run_rounds(s);
    (void)sigaction(SIGINT, &old_int, NULL);
    (void)sigaction(SIGTERM, &old_term, NULL);
    progress_end(&s->progress);
    out->interrupted = rc == -EINTR;
    if (rc == 0) {
        store_finished(store, out->experiment, opt->shard, opt->shards);
    }
    free(s->closed);
    free(s);
    if (rc == -ENOMEM) {
        return rc;
    }
    if (rc != 0 && rc != -EINTR) {
        return err_add(e, "cannot start worker processes: %s", strerror(-rc));
    }
    return store_ok(store) ? 0 : -EIO;
}
