#include "experiments/sweep/sweep.h"

#include <signal.h>

#include "experiments/shell/progress.h"
#include "sim/base/json.h"
#include "sim/base/version.h"
#include "sim/stats/stats_intervals.h"

#define REPLICATION_BITS 20 /* of a job's number, for SPEC_MAX_REPLICATIONS */
#define JOBS_PER_WORKER 500 /* per process, so that leaks of a plug-in do not add up */

/* The point that a worker has loaded. Replications of a point are consecutive. */
struct loaded {
    bool valid;
    uint64_t point;
    struct spec_point settings;
    struct config config;
    struct config_policy policy;
};

struct sweep {
    const struct spec *spec;
    struct store *store;
    const struct sweep_options *opt;
    struct sweep_result *result;
    /* a round runs replications first .. until - 1 of every open point */
    uint32_t first, until;
    uint64_t next_point;
    uint32_t next_replication;
    uint8_t *closed; /* owned, by point, with `until`; else NULL */
    uint64_t noted;  /* point that is known to be in the store; UINT64_MAX: none */
    struct progress progress;
    int64_t run;         /* one in the store; 0: none */
    const char **shares; /* owned list of kept names */
    size_t n_shares;
    struct loaded loaded; /* in workers only */
};

/* A signal handler can only reach static storage. */
static volatile sig_atomic_t stop_asked;

static void ask_stop(int sig UNUSED)
{
    stop_asked = 1;
}

/* ---- in the worker ---- */

static int load_point(struct loaded *l, const struct spec *spec, uint64_t point, struct err *e)
{
    /* Loading takes longer than a short run, so the replications of a point share it. */
    if (l->valid && l->point == point) {
        return 0;
    }
    if (l->valid) {
        config_fini(&l->config);
        l->valid = false;
    }
    if (spec_point(spec, point, &l->settings, e) != 0) {
        return -EINVAL;
    }
    SIM_ASSERT(!l->valid); /* the earlier configuration is freed */
    l->point = point;
    l->valid = true; /* also if loading fails, so that it is freed */
    bool ok = config_load(&l->config, &l->settings.options, e) == 0 &&
              config_policy_parse(&l->policy, l->settings.policy, e) == 0;
    if (!ok) {
        l->point = UINT64_MAX; /* so that the next replication reports the same errors */
    }
    return ok ? 0 : -EINVAL;
}

/* For assertions: a job is a replication of this round and of an existing point. */
static bool is_of_round(const struct sweep *s, uint64_t job)
{
    uint32_t replication = (uint32_t)(job & (SPEC_MAX_REPLICATIONS - 1));
    return job >> REPLICATION_BITS < s->spec->n_points && replication >= s->first &&
           replication < s->until;
}

static int cell(void *ctx, uint64_t job, struct study_cell *out, struct err *e)
{
    struct sweep *s = ctx;
    struct loaded *l = &s->loaded;
    uint32_t replication = (uint32_t)(job & (SPEC_MAX_REPLICATIONS - 1));
    SIM_ASSERT(is_of_round(s, job)); /* workers are forked within the round */
    if (load_point(l, s->spec, job >> REPLICATION_BITS, e) != 0) {
        return -EINVAL;
    }
    *out = (struct study_cell){.config = &l->config,
                               .options = &l->settings.options,
                               .policy = &l->policy,
                               .seed = config_seed(l->settings.options.seed, replication),
                               .arrivals = l->settings.arrivals,
                               .warmup_s = s->spec->warmup_s};
    return 0;
}

static uint64_t ended(const struct sweep_result *r)
{
    return r->done + r->found + r->failed + r->empty;
}

/* For assertions: each run of the rounds so far is reported at most once. */
static bool counts_are_sound(const struct sweep *s)
{
    return ended(s->result) <= s->progress.total;
}

static bool keeps(void *ctx, const char *name)
{
    return spec_keeps(((const struct sweep *)ctx)->spec, name);
}

/* ---- in the parent ---- */

static bool next_cell(void *ctx, uint64_t *job)
{
    struct sweep *s = ctx;
    const struct sweep_options *o = s->opt;
    SIM_ASSERT(s->next_replication >= s->first && s->next_replication <= s->until);
    for (; s->next_point < s->spec->n_points; s->next_point++, s->next_replication = s->first) {
        if (s->closed != NULL &&
            (s->next_point % o->shards != o->shard || s->closed[s->next_point])) {
            continue;
        }
        for (; s->next_replication < s->until; s->next_replication++) {
            /* A shard takes every N-th run, so that each has cheap and expensive points. With
             * `until` it takes whole points, because a point's own replications close it. */
            uint64_t number = s->next_point * s->until + s->next_replication;
            if (s->closed != NULL || number % o->shards == o->shard) {
                *job = s->next_point << REPLICATION_BITS | s->next_replication++;
                SIM_ASSERT(is_of_round(s, *job));
                return true;
            }
        }
    }
    return false;
}

/* Stores a point before its replications, which refer to it. */
static void note_point(struct sweep *s, uint64_t point)
{
    if (point != s->noted && !store_has_point(s->store, s->result->experiment, point)) {
        SCOPED(json_drop) cJSON *settings = spec_point_settings(s->spec, point);
        OWNED char *text = json_text(settings, false);
        store_point(s->store, s->result->experiment, point, text);
    }
    s->noted = point;
    SIM_ASSERT(!store_ok(s->store) || store_has_point(s->store, s->result->experiment, point));
}

static void done(void *ctx, uint64_t job, const struct study_outcome *o)
{
    struct sweep *s = ctx;
    uint64_t point = job >> REPLICATION_BITS;
    uint32_t replication = (uint32_t)(job & (SPEC_MAX_REPLICATIONS - 1));
    SIM_ASSERT(is_of_round(s, job) && (s->closed == NULL || !s->closed[point]));
    note_point(s, point);
    if (o->status == 0) {
        store_member(s->store, s->result->experiment, point, replication, o->run);
        s->run = o->run;
        s->result->found += o->found ? 1 : 0;
        s->result->done += o->found ? 0 : 1;
        return;
    }
    bool empty = o->status == STUDY_NO_REQUESTS;
    store_failure(s->store, s->result->experiment, point, replication, empty ? "" : o->message);
    if (empty) {
        s->result->empty++;
    } else if (s->result->failed++ == 0) {
        (void)snprintf(s->result->first_failure, sizeof s->result->first_failure,
                       "point %" PRIu64 ", replication %" PRIu32 ": %s", point, replication,
                       o->message);
    }
}

static bool go_on(void *ctx)
{
    struct sweep *s = ctx;
    SIM_ASSERT(counts_are_sound(s));
    progress_show(&s->progress, ended(s->result));
    return stop_asked == 0 && store_ok(s->store) && !(s->opt->fail_fast && s->result->failed > 0);
}

/* ---- rounds ---- */

/* How many of n numbers belong to this shard. */
static uint64_t of_shard(const struct sweep_options *o, uint64_t n)
{
    SIM_ASSERT(o->shard < o->shards); /* otherwise the shards would not add up to the whole */
    return (n + o->shards - 1 - o->shard) / o->shards;
}

static bool wide(const struct sweep *s, uint64_t point, double *values)
{
    SIM_ASSERT(s->until >= 2); /* one run has no interval */
    if (s->until < SWEEP_UNTIL_LEAST && s->until < s->spec->max_replications) {
        return true;
    }
    for (uint32_t i = 0; i < s->spec->n_until; i++) {
        const struct spec_until *u = &s->spec->until[i];
        store_values(s->store, s->result->experiment, point, u->metric, values, s->until);
        struct stats_interval x = stats_reported(values, s->until, NULL); /* as it is printed */
        double limit = u->relative ? u->half_width * fabs(x.mean) : u->half_width;
        /* Negated, so that an interval of NaN counts as wide. */
        if (!(stats_half_width(&x) <= limit)) {
            return true;
        }
    }
    return false;
}

/* Closes points whose intervals are narrow enough. Returns how many of this shard stay open. */
static uint64_t close_points(struct sweep *s)
{
    OWNED double *values = xcalloc(s->until, sizeof *values);
    uint64_t open = 0;
    for (uint64_t p = s->opt->shard; p < s->spec->n_points; p += s->opt->shards) {
        if (!s->closed[p]) {
            s->closed[p] = !wide(s, p, values);
            open += s->closed[p] ? 0 : 1;
        }
    }
    SIM_ASSERT(open <= of_shard(s->opt, s->spec->n_points));
    return open;
}

/* Runs the next replications of the open points. Returns 0 or -errno like study_stream. */
static int run_round(struct sweep *s, uint64_t open)
{
    const struct spec *spec = s->spec;
    uint32_t until = s->until + spec->replications;
    s->first = s->until;
    s->until = until < spec->max_replications ? until : spec->max_replications;
    s->next_point = 0;
    s->next_replication = s->first;
    s->progress.total += s->closed != NULL ? open * (s->until - s->first)
                                           : of_shard(s->opt, spec_runs(spec, s->until));
    struct study_stream stream = {.how = s->opt->how,
                                  .kept = spec->kept,
                                  .ctx = s,
                                  .cell = cell,
                                  .keeps = keeps,
                                  .next = next_cell,
                                  .done = done,
                                  .go_on = go_on};
    stream.how.store = s->store;
    stream.how.cells_per_worker = JOBS_PER_WORKER;
    stream.how.memory_limit_bytes = s->opt->memory_limit_bytes;
    SIM_ASSERT(s->first < s->until); /* otherwise the rounds would not end */
    int rc = study_stream(&stream);
    SIM_ASSERT(rc != 0 || ended(s->result) == s->progress.total);
    return rc;
}

/* Runs rounds of replications, until every interval is narrow enough. */
static int run_rounds(struct sweep *s)
{
    uint64_t open = of_shard(s->opt, s->spec->n_points);
    int rc = run_round(s, open);
    while (rc == 0 && s->closed != NULL) {
        open = close_points(s);
        if (open == 0 || s->until == s->spec->max_replications) {
            SIM_ASSERT(open <= of_shard(s->opt, s->spec->n_points) && s->result->points_open == 0);
            s->result->points_open = open;
            break;
        }
        rc = run_round(s, open);
    }
    return rc;
}

int64_t sweep_experiment(const struct spec *spec, struct store *store)
{
    /* This is the text of the file, before lists replaced ranges. */
    SIM_ASSERT(spec->canonical[0] == '{');
    return store_experiment(store, spec->name, XPUSIM_VERSION " " XPUSIM_REVISION, spec->canonical);
}

/* Whether the store has this run, made by any experiment. */
static bool is_there(struct sweep *s, uint64_t job)
{
    struct study_cell c;
    SCOPED(err_fini) struct err e = ERR_INIT;
    OWNED char *key = cell(s, job, &c, &e) == 0 ? study_key(&c, &e) : NULL;
    return key != NULL && store_find(s->store, key, s->spec->kept) != 0;
}

uint64_t sweep_there(const struct spec *spec, struct store *store)
{
    struct sweep_options all = {.shards = 1};
    struct sweep s = {.spec = spec, .store = store, .opt = &all, .until = spec->max_replications};
    uint64_t there = 0;
    for (uint64_t job = 0; next_cell(&s, &job);) {
        there += is_there(&s, job) ? 1 : 0;
    }
    if (s.loaded.valid) {
        config_fini(&s.loaded.config);
    }
    return there;
}

static double mean_of(struct sweep *s, uint64_t point, const char *metric, double *values)
{
    SIM_ASSERT(point < s->spec->n_points && s->until > 0); /* a round was run */
    store_values(s->store, s->result->experiment, point, metric, values, s->until);
    return stats_mean(values, s->until, STATS_LEVEL_FRAC).mean;
}

/* Takes the names of shares of extrapolated time, which contain those of devices. */
static void take_share(void *ctx, const char *name, double value UNUSED)
{
    struct sweep *s = ctx;
    if (strstr(name, ".extrapolated_") != NULL) {
        LIST_ADD(s->shares, s->n_shares, xkeep(xstrdup(name)));
    }
}

static void find_extrapolated(struct sweep *s)
{
    OWNED double *values = xcalloc(s->until + 1, sizeof *values);
    double most = 0.0;
    if (s->run != 0) { /* each run has a column for every metric of the store */
        store_read(s->store, s->run, take_share, s);
    }
    for (uint64_t p = 0; p < s->spec->n_points; p++) {
        struct extrapolated x = {.n = 0};
        double here = 0.0;
        for (size_t i = 0; i < s->n_shares; i++) {
            double mean = mean_of(s, p, s->shares[i], values);
            extrapolated_add(&x, s->shares[i], mean);
            here = text_ends(s->shares[i], ".extrapolated_frac") && mean > here ? mean : here;
        }
        if (here > most) {
            most = here;
            s->result->extrapolated = x;
            s->result->extrapolated_point = p;
        }
    }
    SIM_ASSERT((most > 0.0) == (s->result->extrapolated.n > 0)); /* of one point, or none */
    free(s->shares);
}

int sweep_run(const struct spec *spec, struct store *store, const struct sweep_options *opt,
              struct sweep_result *out, struct err *e)
{
    SIM_ASSERT(spec_is_sound(spec) && opt->shard < opt->shards);
    *out = (struct sweep_result){.experiment = sweep_experiment(spec, store)};
    OWNED struct sweep *s = xcalloc(1, sizeof *s);
    *s = (struct sweep){
        .spec = spec, .store = store, .opt = opt, .result = out, .noted = UINT64_MAX};
    progress_start(&s->progress, opt->how.progress, 0);
    s->closed = spec->n_until > 0 ? xcalloc(spec->n_points, 1) : NULL;
    /* The handler only asks, so that finished runs are stored first. */
    struct sigaction action = {.sa_handler = ask_stop};
    struct sigaction old_int;
    struct sigaction old_term;
    stop_asked = 0;
    (void)sigaction(SIGINT, &action, &old_int);
    (void)sigaction(SIGTERM, &action, &old_term);
    int rc = run_rounds(s);
    (void)sigaction(SIGINT, &old_int, NULL);
    (void)sigaction(SIGTERM, &old_term, NULL);
    progress_end(&s->progress);
    SIM_ASSERT(rc != 0 || out->experiment > 0 || !store_ok(store));
    out->interrupted = rc == -EINTR;
    if (rc == 0) {
        /* Marks the shard only when all of it is stored, because merge --complete relies on
         * that. */
        store_finished(store, out->experiment, opt->shard, opt->shards);
        find_extrapolated(s);
    }
    bool written = store_ok(store);
    free(s->closed);
    if (rc == -ENOMEM) {
        return rc;
    }
    if (rc != 0 && rc != -EINTR) {
        return err_add(e, "cannot start worker processes: %s", strerror(-rc));
    }
    return written ? 0 : -EIO;
}
