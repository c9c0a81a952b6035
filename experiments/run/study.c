#include "experiments/run/study.h"

#include "experiments/run/plugin.h"
#include "experiments/run/pool.h"
#include "experiments/run/study_impl.h"
#include "experiments/shell/progress.h"
#include "sim/base/memory.h"

#define CELLS_PER_WORKER 40 /* limits memory that `load` allocates and a worker keeps */

struct running {
    const struct study_stream *study;
    struct study_names *names; /* owned; study_run moves them to its result */
    bool reads;                /* read values of runs in the store */
};

/* For assertions: a run failed with a message, or is in the store, or has values. */
static bool outcome_is_sound(const struct study_outcome *o)
{
    bool failed = o->status != 0;
    return failed == (o->message[0] != '\0') && (o->values == NULL) == (o->names == NULL) &&
           !(failed && (o->values != NULL || o->run != 0 || o->found)) &&
           !(o->found && o->run <= 0) && (failed || o->run != 0 || o->values != NULL) &&
           (o->observed_bytes == 0 || o->observed != NULL);
}

/* ---- in the parent ---- */

static bool next_cell(void *ctx, uint64_t *job)
{
    const struct study_stream *s = ((const struct running *)ctx)->study;
    return s->next(s->ctx, job);
}

/* Returns the study's shared copy of names. `text` has them concatenated. */
static const struct study_names *intern(struct study_names **names, const char *text, size_t size,
                                        size_t n)
{
    /* Most runs of a study have equal names, so store these once, and an array of numbers per run.
     */
    for (const struct study_names *i = *names; i != NULL; i = i->next) {
        if (i->size == size && (size == 0 || memcmp(i->text, text, size) == 0)) {
            SIM_ASSERT(i->n == n); /* equal texts have equal counts */
            return i;
        }
    }
    struct study_names *new = xcalloc(1, sizeof *new);
    *new = (struct study_names){.next = *names, .n = n, .size = size};
    new->text = xmalloc(size + 1);
    if (size > 0) { /* no names, no text */
        memcpy(new->text, text, size);
    }
    new->v = xcalloc(n + 1, sizeof *new->v);
    const char *at = new->text;
    for (size_t i = 0; i < n; i++, at += strlen(at) + 1) {
        new->v[i] = at;
    }
    SIM_ASSERT(at == new->text + size); /* n names fill the text */
    *names = new;
    return new;
}

/* A run that is read from the store. */
struct reading {
    FILE *names; /* concatenated */
    double *values;
    size_t n;
};

static void take_value(void *ctx, const char *name, double value)
{
    struct reading *r = ctx;
    SIM_ASSERT(name[0] != '\0'); /* "" would end the list */
    (void)fwrite(name, 1, strlen(name) + 1, r->names);
    LIST_ADD(r->values, r->n, value);
}

/* Fills names and values of a run of the store. */
static void read_values(struct store *s, struct study_outcome *o, struct study_names **names)
{
    SIM_ASSERT(o->found && o->run > 0 && o->values == NULL); /* else values would be lost */
    OWNED char *text = NULL;
    size_t size = 0;
    struct reading r = {.names = memory_stream(&text, &size)};
    store_read(s, o->run, take_value, &r);
    memory_stream_close(r.names, &text);
    o->names = intern(names, text, size, r.n);
    o->values = xrealloc(r.values, (r.n + 1) * sizeof *r.values);
    SIM_ASSERT(outcome_is_sound(o));
}

/* Answers workers: whether to make a run, and whether to send a configuration. */
static bool is_wanted(void *ctx, uint64_t job, const char *key)
{
    struct running *running = ctx;
    const struct study_stream *s = running->study;
    SIM_ASSERT(s->how.store != NULL); /* workers ask only if there is a store */
    if (strncmp(key, STUDY_ASKS_CONFIGURATION, strlen(STUDY_ASKS_CONFIGURATION)) == 0) {
        return !store_has_configuration(s->how.store, key + strlen(STUDY_ASKS_CONFIGURATION));
    }
    struct study_outcome o = {.found = true};
    o.run = store_find(s->how.store, key, s->kept);
    if (o.run != 0 && running->reads) {
        read_values(s->how.store, &o, &running->names);
    }
    if (o.run != 0) {
        SIM_ASSERT(!running->reads || outcome_is_sound(&o));
        /* Study_run: values; study_stream: none. */
        SIM_ASSERT((o.values != NULL) == running->reads);
        s->done(s->ctx, job, &o);
    }
    free(o.values);
    return o.run == 0;
}

static void free_names(struct study_names *names)
{
    while (names != NULL) {
        struct study_names *next = names->next;
        free(names->text);
        free(names->v);
        free(names);
        names = next;
    }
}

/* For assertions: the store has the record's configuration. */
static bool store_has_its_configuration(struct store *s, const struct study_record *record)
{
    char hash[24];
    (void)snprintf(hash, sizeof hash, "%016" PRIx64, record->run.config_hash);
    return store_has_configuration(s, hash);
}

/* Stores a run, which another process may have stored in the meantime. */
static int64_t keep(const struct study_stream *s, const struct study_record *record,
                    const struct study_names *names, const double *values)
{
    if (record->tree[0] != '\0') {
        char hash[24];
        (void)snprintf(hash, sizeof hash, "%016" PRIx64, record->run.config_hash);
        /* Before the run that refers to it, in case the process is killed in between. */
        store_configuration(s->how.store, hash, record->tree);
    }
    SIM_ASSERT(names->n == record->n);
    SIM_ASSERT(!store_ok(s->how.store) || store_has_its_configuration(s->how.store, record));
    return store_put(s->how.store, &record->run, s->kept, names->v, values, names->n);
}

static void take(void *ctx, uint64_t job, const struct job_result *r)
{
    struct running *running = ctx;
    const struct study_stream *s = running->study;
    if (r->status == 0 && r->data == NULL) { /* found in the store and reported by is_wanted */
        SIM_ASSERT(s->how.store != NULL);
        return;
    }
    struct study_outcome o = {.status = r->status};
    memcpy(o.message, r->message, sizeof o.message);
    if (r->status == 0) {
        struct study_record record;
        study_record_read(r->data, r->size, &record);
        o.names = intern(&running->names, record.names, record.names_bytes, record.n);
        o.values = record.values;
        o.observed = record.observed;
        o.observed_bytes = record.observed_bytes;
        if (s->how.store != NULL && record.run.fingerprint[0] != '\0') {
            o.run = keep(s, &record, o.names, o.values);
        }
    }
    SIM_ASSERT(outcome_is_sound(&o));
    s->done(s->ctx, job, &o);
}

static bool goes_on(void *ctx)
{
    const struct study_stream *s = ((const struct running *)ctx)->study;
    if (s->how.store != NULL) {
        /* At every check of the pool, so that an interrupted study loses little. */
        store_commit(s->how.store, false);
    }
    return s->go_on == NULL || s->go_on(s->ctx);
}

static void work(void *ctx, uint64_t job, struct pool_worker *w, struct job_result *out)
{
    study_work(((const struct running *)ctx)->study, job, w, out);
}

static int stream(struct running *r)
{
    const struct study_stream *s = r->study;
    struct pool pool = {.parallel = s->how.parallel,
                        .jobs_per_worker =
                            s->how.cells_per_worker > 0 ? s->how.cells_per_worker : 1,
                        .cpu_limit_s = s->how.cpu_limit_s,
                        .memory_limit_bytes = s->how.memory_limit_bytes,
                        .ctx = r,
                        .next = next_cell,
                        .wanted = is_wanted,
                        .work = work,
                        .done = take,
                        .go_on = goes_on};
    SIM_ASSERT(pool.parallel >= 1); /* else no cell would run, without an error */
    int rc = pool_run(&pool);
    if (s->how.store != NULL) {
        store_commit(s->how.store, true);
    }
    return rc;
}

int study_stream(const struct study_stream *s)
{
    struct running r = {.study = s};
    int rc = stream(&r);
    free_names(r.names);
    return rc;
}

/* ---- outcomes in memory ---- */

struct batch {
    const struct study_cell *cells;
    struct study_outcomes out;
    bool *ended; /* owned; indexed by cell */
    uint32_t next, done;
    struct progress progress;
};

/* For assertions: a cell ends once, and after it was handed out. */
static bool batch_is_sound(const struct batch *b)
{
    return b->done <= b->next && b->done <= b->out.n;
}

static bool next_of_batch(void *ctx, uint64_t *index)
{
    struct batch *b = ctx;
    SIM_ASSERT(batch_is_sound(b));
    *index = b->next;
    return b->next++ < b->out.n;
}

static int cell_of_batch(void *ctx, uint64_t index, struct study_cell *out, struct err *e)
{
    SIM_ASSERT(index < ((const struct batch *)ctx)->out.n);
    *out = ((const struct batch *)ctx)->cells[index];
    return out->load != NULL ? out->load(out, e) : 0;
}

/* For assertions. */
static bool all_are_sound(const struct study_outcomes *o)
{
    bool all = true;
    for (uint32_t i = 0; i < o->n; i++) {
        all = all && outcome_is_sound(&o->v[i]);
    }
    return all;
}

static void *copy(const void *data, size_t bytes)
{
    void *p = xmalloc(bytes + 1);
    memcpy(p, data, bytes);
    return p;
}

static void done_of_batch(void *ctx, uint64_t index, const struct study_outcome *o)
{
    struct batch *b = ctx;
    SIM_ASSERT(index < b->next && !b->ended[index]); /* started, and reported once */
    struct study_outcome *out = &b->out.v[index];
    *out = *o;
    /* Copy: the stream's outcome is valid only in this call. */
    out->values = o->values != NULL ? copy(o->values, o->names->n * sizeof *out->values) : NULL;
    out->observed = o->observed_bytes > 0 ? copy(o->observed, o->observed_bytes) : NULL;
    b->ended[index] = true;
    progress_show(&b->progress, ++b->done);
    SIM_ASSERT(batch_is_sound(b));
}

/* A fork costs as much as a run of a minute. Built-in policies, and those with a process for each
 * run, leave no state behind. A shared object and an observer may. */
static uint32_t cells_of_a_worker(const struct study_cell *cells, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (cells[i].observer != NULL ||
            (cells[i].policy != NULL && plugin_is_code(cells[i].policy->label))) {
            return 1;
        }
    }
    return CELLS_PER_WORKER;
}

struct study_outcomes study_run(const struct study_cell *cells, uint32_t n,
                                const struct study_how *how)
{
    struct batch b = {.cells = cells, .ended = xcalloc((size_t)n + 1, sizeof *b.ended)};
    study_outcomes_open(&b.out, n);
    struct study_stream s = {.how = *how,
                             .kept = "*",
                             .ctx = &b,
                             .cell = cell_of_batch,
                             .next = next_of_batch,
                             .done = done_of_batch};
    /* Not more processes than cells. */
    s.how.parallel = how->parallel < n ? how->parallel : n;
    if (how->cells_per_worker == 0) {
        s.how.cells_per_worker = cells_of_a_worker(cells, n);
    }
    struct running running = {.study = &s, .reads = true};
    progress_start(&b.progress, how->progress, n);
    int rc = n > 0 ? stream(&running) : 0;
    progress_end(&b.progress);
    SIM_ASSERT(rc != 0 || b.done == n); /* all reported, or an error */
    if (rc == -ENOMEM) {                /* not the cell's fault, so there is no result without it */
        out_of_memory(0);
    }
    for (uint32_t i = 0; i < n && rc != 0; i++) { /* no process could be started */
        if (!b.ended[i]) {
            b.out.v[i].status = -EIO;
            (void)snprintf(b.out.v[i].message, JOBS_MESSAGE_BYTES, "cannot start a process: %s",
                           strerror(-rc));
        }
    }
    SIM_ASSERT(rc == -ENOMEM || all_are_sound(&b.out)); /* also after errors */
    b.out.names = running.names;
    free(b.ended);
    return b.out;
}

void study_outcomes_open(struct study_outcomes *o, uint32_t n)
{
    *o = (struct study_outcomes){.v = xcalloc((size_t)n + 1, sizeof *o->v), .n = n};
}

void study_outcomes_read(struct study_outcomes *o, uint32_t index, struct store *s, int64_t run)
{
    SIM_ASSERT(index < o->n && o->v[index].values == NULL); /* not read before */
    o->v[index] = (struct study_outcome){.run = run, .found = true};
    read_values(s, &o->v[index], &o->names);
}

void study_outcomes_fini(struct study_outcomes *o)
{
    for (uint32_t i = 0; i < o->n; i++) {
        free(o->v[i].values);
        free(o->v[i].observed);
    }
    free(o->v);
    free_names(o->names);
    *o = (struct study_outcomes){0};
}

/* Index of a name, or SIZE_MAX. */
static size_t place_of(const struct study_outcome *o, const char *name)
{
    for (size_t i = 0; o->values != NULL && i < o->names->n; i++) {
        if (strcmp(o->names->v[i], name) == 0) {
            return i;
        }
    }
    return SIZE_MAX;
}

bool study_has(const struct study_outcome *o, const char *name)
{
    return place_of(o, name) != SIZE_MAX;
}

double study_value(const struct study_outcome *o, const char *name)
{
    size_t i = place_of(o, name);
    return i != SIZE_MAX ? o->values[i] : METRIC_UNDEFINED;
}

bool study_battery_empty(const struct study_outcome *o)
{
    return study_value(o, "backlog.verdict") == (double)METRICS_BATTERY_EMPTY;
}

double study_left(const struct study_outcome *o)
{
    double ended = study_value(o, "counters.ended_with");
    double refused = study_value(o, "all.shed") - (isfinite(ended) ? ended : 0.0);
    return refused + study_value(o, "all.unfinished") + (study_battery_empty(o) ? 1.0 : 0.0);
}

double study_value_near(const struct study_outcome *o, size_t index, const char *name)
{
    /* Runs list metrics in equal order, so the index from another run is usually right. */
    bool there = o->values != NULL && index < o->names->n && strcmp(o->names->v[index], name) == 0;
    return there ? o->values[index] : study_value(o, name);
}
