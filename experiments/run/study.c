#include "experiments/run/study.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/run/pool.h"
#include "experiments/run/study_impl.h"
#include "experiments/shell/progress.h"
#include "sim/base/arena.h"
#include "sim/base/err.h"
#include "sim/base/memory.h"

struct running {
    const struct study *study;
    struct study_names *names; /* owned until keep_all hands them on */
    uint64_t next;             /* cell, where the study does not say */
};

/* ---- in the parent ---- */

static bool next_cell(void *ctx, uint64_t *job)
{
    struct running *r = ctx;
    if (r->study->next != NULL) {
        return r->study->next(r->study->ctx, job);
    }
    *job = r->next;
    return r->next++ < r->study->n;
}

static const char *kept_of(const struct study *s)
{
    return s->kept != NULL ? s->kept : "*";
}

/* The names of an outcome, as they stand one after the other. */
static const struct study_names *intern(struct study_names **names, const char *text, size_t size,
                                        size_t n)
{
    /* Runs of a study have nearly all the same names: they are kept once, and a run is an array of
     * numbers. */
    for (const struct study_names *i = *names; i != NULL; i = i->next) {
        if (i->size == size && (size == 0 || memcmp(i->text, text, size) == 0)) {
            return i;
        }
    }
    struct study_names *new = xcalloc(1, sizeof *new);
    *new = (struct study_names){.next = *names, .n = n, .size = size};
    new->text = xmalloc(size + 1);
    if (size > 0) { /* none has no text */
        memcpy(new->text, text, size);
    }
    new->v = xcalloc(n + 1, sizeof *new->v);
    const char *at = new->text;
    for (size_t i = 0; i < n; i++, at += strlen(at) + 1) {
        new->v[i] = at;
    }
    *names = new;
    return new;
}

/* A run read back. */
struct reading {
    FILE *names; /* one after the other */
    double *values;
    size_t n;
};

static void take_value(void *ctx, const char *name, double value)
{
    struct reading *r = ctx;
    (void)fwrite(name, 1, strlen(name) + 1, r->names);
    r->values = xgrow(r->values, r->n, sizeof *r->values);
    r->values[r->n++] = value;
}

/* Fills names and values of a run of the store. */
static void read_values(struct store *s, struct study_outcome *o, struct study_names **names)
{
    char *text = NULL;
    size_t size = 0;
    struct reading r = {.names = memory_stream(&text, &size)};
    store_read(s, o->run, take_value, &r);
    memory_stream_close(r.names, &text);
    o->names = intern(names, text, size, r.n);
    o->values = xrealloc(r.values, (r.n + 1) * sizeof *r.values);
    free(text);
}

/* Asked by workers: is a run to be made, is a configuration to be sent? */
static bool is_wanted(void *ctx, uint64_t job, const char *key)
{
    struct running *running = ctx;
    const struct study *s = running->study;
    if (strncmp(key, STUDY_ASKS_CONFIGURATION, strlen(STUDY_ASKS_CONFIGURATION)) == 0) {
        return !store_has_configuration(s->how.store, key + strlen(STUDY_ASKS_CONFIGURATION));
    }
    struct study_outcome o = {.found = true};
    o.run = store_find(s->how.store, key, kept_of(s));
    if (o.run != 0 && s->reads) {
        read_values(s->how.store, &o, &running->names);
    }
    if (o.run != 0) {
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

/* Keeps a run; the same run may have come in from elsewhere meanwhile. */
static int64_t keep(const struct study *s, const struct study_record *record,
                    const struct study_names *names, const double *values)
{
    if (record->tree[0] != '\0') {
        char hash[24];
        (void)snprintf(hash, sizeof hash, "%016" PRIx64, record->run.config_hash);
        /* Before the run that names it: a store that was cut off never names what is not there. */
        store_configuration(s->how.store, hash, record->tree);
    }
    return store_put(s->how.store, &record->run, kept_of(s), names->v, values, names->n);
}

static void take(void *ctx, uint64_t job, const struct job_result *r)
{
    struct running *running = ctx;
    const struct study *s = running->study;
    if (r->status == 0 && r->data == NULL) { /* found: told when it was asked for */
        return;
    }
    struct study_outcome o = {.status = r->status};
    memcpy(o.message, r->message, sizeof o.message);
    if (r->status == 0) {
        struct study_record record;
        study_record_read(r->data, r->size, &record);
        o.names = intern(&running->names, record.names, record.names_bytes, record.n);
        o.values = record.values;
        o.said = record.said;
        o.said_bytes = record.said_bytes;
        if (s->how.store != NULL && record.run.fingerprint[0] != '\0') {
            o.run = keep(s, &record, o.names, o.values);
        }
    }
    s->done(s->ctx, job, &o);
}

static bool goes_on(void *ctx)
{
    const struct study *s = ((const struct running *)ctx)->study;
    if (s->how.store != NULL) {
        /* At every look of the pool, so that an interrupted study loses no more than the last
         * moment. */
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
    const struct study *s = r->study;
    struct pool pool = {.parallel = s->how.parallel,
                        .jobs_per_worker = s->cells_per_worker > 0 ? s->cells_per_worker : 1,
                        .cpu_limit_s = s->how.cpu_limit_s,
                        .memory_limit_bytes = s->memory_limit_bytes,
                        .ctx = r,
                        .next = next_cell,
                        .wanted = is_wanted,
                        .work = work,
                        .done = take,
                        .go_on = goes_on};
    int rc = pool_run(&pool);
    if (s->how.store != NULL) {
        store_commit(s->how.store, true);
    }
    return rc;
}

/* ---- all in memory ---- */

struct batch {
    const struct study *study;
    struct study_outcomes *out;
    struct running running;
    bool *ended; /* owned; by cell */
    uint32_t done;
    struct progress progress;
};

static int cell_of_batch(void *ctx, uint64_t index, struct study_cell *out, struct err *e)
{
    const struct batch *b = ctx;
    return b->study->cell(b->study->ctx, index, out, e);
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
    struct study_outcome *out = &b->out->v[index];
    *out = *o;
    /* The outcome is the stream's, valid for this call only. */
    out->values = o->values != NULL ? copy(o->values, o->names->n * sizeof *out->values) : NULL;
    out->said = o->said_bytes > 0 ? copy(o->said, o->said_bytes) : NULL;
    b->ended[index] = true;
    progress_show(&b->progress, ++b->done);
}

static void keep_all(const struct study *s, struct study_outcomes *out)
{
    /* These would be called with the ctx of another study, as they know it. */
    SIM_ASSERT(s->next == NULL && s->keeps == NULL && s->go_on == NULL);
    uint32_t n = (uint32_t)s->n;
    study_outcomes_open(out, n);
    if (n == 0) {
        return;
    }
    struct batch b = {.study = s, .out = out, .ended = xcalloc(n, sizeof *b.ended)};
    struct study streamed = *s;
    /* No more processes than cells: each would be started for nothing. */
    streamed.how.parallel = s->how.parallel < n ? s->how.parallel : n;
    streamed.reads = true;
    streamed.ctx = &b;
    streamed.cell = cell_of_batch;
    streamed.done = done_of_batch;
    b.running.study = &streamed;
    progress_start(&b.progress, s->how.progress, n);
    int rc = stream(&b.running);
    progress_end(&b.progress);
    if (rc == -ENOMEM) { /* the machine's fault, not the cell's: no result without it */
        out_of_memory(0);
    }
    for (uint32_t i = 0; i < n && rc != 0; i++) { /* not even one process */
        if (!b.ended[i]) {
            out->v[i].status = -EIO;
            (void)snprintf(out->v[i].message, JOBS_MESSAGE_BYTES, "cannot start a process: %s",
                           strerror(-rc));
        }
    }
    out->names = b.running.names;
    free(b.ended);
}

static void tell_each(const struct study *s, struct study_outcomes *out)
{
    struct running r = {.study = s};
    *out = (struct study_outcomes){.rc = stream(&r)};
    free_names(r.names);
}

void study_run(study_judge *judge, void *ctx)
{
    struct study_outcomes o = {0};
    struct study s = {0};
    for (bool more = judge(ctx, NULL, &s); more;) {
        (s.done != NULL ? tell_each : keep_all)(&s, &o);
        s = (struct study){0};
        more = judge(ctx, &o, &s);
        study_outcomes_fini(&o);
    }
}

void study_outcomes_open(struct study_outcomes *o, uint32_t n)
{
    *o = (struct study_outcomes){.v = xcalloc((size_t)n + 1, sizeof *o->v), .n = n};
}

void study_outcomes_read(struct study_outcomes *o, uint32_t index, struct store *s, int64_t run)
{
    o->v[index] = (struct study_outcome){.run = run, .found = true};
    read_values(s, &o->v[index], &o->names);
}

void study_outcomes_fini(struct study_outcomes *o)
{
    for (uint32_t i = 0; i < o->n; i++) {
        free(o->v[i].values);
        free(o->v[i].said);
    }
    free(o->v);
    free_names(o->names);
    *o = (struct study_outcomes){0};
}

/* Its index; SIZE_MAX: none. */
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

double study_value_near(const struct study_outcome *o, size_t index, const char *name)
{
    /* Runs have their metrics in one order: where the same name was found in another run it usually
     * stands here, too. */
    bool there = o->values != NULL && index < o->names->n && strcmp(o->names->v[index], name) == 0;
    return there ? o->values[index] : study_value(o, name);
}
