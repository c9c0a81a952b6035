/* Runs a cell in its worker, unless the store has it, and sends the result to the parent. */
#include "experiments/run/other_binary.h"
#include "experiments/run/plugin.h"
#include "experiments/run/runner.h"
#include "experiments/run/study_impl.h"
#include "sim/base/hash.h"
#include "sim/base/json.h"
#include "sim/base/memory.h"
#include "traces/traces.h"

static void fail(struct job_result *out, const char *message)
{
    SIM_ASSERT(message[0] != '\0' && out->data == NULL); /* a failure has only a message */
    out->status = -1;
    (void)snprintf(out->message, sizeof out->message, "%.*s", JOBS_MESSAGE_BYTES - 1, message);
}

/* ---- the message ---- */

/* The header. Values, names, observations and the texts of struct store_run follow. */
struct head {
    uint64_t n, names_bytes, observed_bytes, seed, config_hash, trace_hash;
    double rate_scale;
};

struct values {
    double *v;   /* owned */
    char *names; /* owned; concatenated */
    size_t n, most, names_bytes;
    FILE *texts;    /* fills names */
    char *observed; /* owned; NULL: nothing */
    size_t observed_bytes;
};

static void values_open(struct values *x, size_t most)
{
    *x = (struct values){.v = xmalloc((most + 1) * sizeof *x->v), .most = most};
    x->texts = memory_stream(&x->names, &x->names_bytes);
}

static void values_add(struct values *x, const struct study_stream *s, const char *name,
                       double value)
{
    if (s->keeps == NULL || s->keeps(s->ctx, name)) {
        SIM_ASSERT(x->n < x->most && name[0] != '\0'); /* within the announced number */
        x->v[x->n++] = value + 0.0;                    /* -0 is 0: a store has one zero */
        (void)fputs(name, x->texts);
        (void)fputc('\0', x->texts);
    }
}

/* For assertions: the number of NUL-terminated texts in `bytes` bytes. */
static size_t texts_in(const char *texts, size_t bytes)
{
    size_t n = 0;
    for (size_t i = 0; i < bytes; i++) {
        n += texts[i] == '\0' ? 1 : 0;
    }
    return n;
}

static void send(struct values *x, const struct store_run *run, const char *tree,
                 struct job_result *out)
{
    memory_stream_close(x->texts, &x->names);
    SIM_ASSERT(texts_in(x->names, x->names_bytes) == x->n); /* a name for each value */
    struct head h = {.n = x->n,
                     .names_bytes = x->names_bytes,
                     .observed_bytes = x->observed_bytes,
                     .seed = run->seed,
                     .config_hash = run->config_hash,
                     .trace_hash = run->trace_hash,
                     .rate_scale = run->rate_scale};
    char *data = NULL;
    FILE *f = memory_stream(&data, &out->size);
    (void)fwrite(&h, sizeof h, 1, f);
    (void)fwrite(x->v, sizeof *x->v, x->n, f);
    (void)fwrite(x->names, 1, x->names_bytes, f);
    if (x->observed_bytes > 0) { /* NULL without an observer */
        (void)fwrite(x->observed, 1, x->observed_bytes, f);
    }
    const char *const texts[] = {run->fingerprint, run->soc,    run->llm,     run->workload,
                                 run->policy,      run->params, run->verdict, tree};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        (void)fputs(texts[i] != NULL ? texts[i] : "", f);
        (void)fputc('\0', f);
    }
    memory_stream_close(f, &data);
    out->data = data;
    free(x->v);
    free(x->names);
    free(x->observed);
}

void study_record_read(void *data, size_t size, struct study_record *out)
{
    struct head h;
    char *at = data;
    SIM_ASSERT(size >= sizeof h &&
               (uintptr_t)data % sizeof(double) == 0); /* aligned for the values */
    memcpy(&h, at, sizeof h);
    *out = (struct study_record){
        .n = h.n, .names_bytes = h.names_bytes, .observed_bytes = h.observed_bytes};
    at += sizeof h;
    out->values = (double *)(void *)at;
    at += h.n * sizeof *out->values;
    out->names = at;
    at += h.names_bytes;
    out->observed = at;
    at += h.observed_bytes;
    const char *texts[8];
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        texts[i] = at;
        at += strlen(at) + 1;
    }
    SIM_REQUIRE(at == (char *)data + size, "a run's record is cut");
    out->run = (struct store_run){.fingerprint = texts[0],
                                  .soc = texts[1],
                                  .llm = texts[2],
                                  .workload = texts[3],
                                  .policy = texts[4],
                                  .params = texts[5],
                                  .verdict = texts[6],
                                  .rate_scale = h.rate_scale,
                                  .seed = h.seed,
                                  .config_hash = h.config_hash,
                                  .trace_hash = h.trace_hash};
    out->tree = texts[7];
}

/* ---- runs ---- */

/* The key of a run: its fingerprint, and everything that is not in it. */
static void put_key(const struct study_cell *c, const struct trace *t, struct text *key)
{
    /* The context belongs to the key. */
    SIM_ASSERT(key->n == 0 && (c->policy_context == NULL) == (c->context_key == NULL));
    OWNED char *fingerprint = config_fingerprint(c->config, c->policy, t, c->seed);
    text_string(key, fingerprint);
    uint64_t code = plugin_code_hash(c->policy->label);
    if (code != 0) {
        text_format(key, " code=%016" PRIx64, code);
    }
    if (c->warmup_s > 0.0) {
        text_format(key, " warmup_s=%.17g", c->warmup_s);
    }
    if (c->samples != RUNNER_SAMPLES_AUTO) {
        text_string(key, c->samples == RUNNER_SAMPLES_SKETCH ? " sketch" : " exact");
    }
    if (c->policy_context != NULL) {
        text_format(key, " told=%s", c->context_key);
    }
}

char *study_key(const struct study_cell *c, struct err *e)
{
    SCOPED(trace_fini) struct trace t = {0};
    SCOPED(text_fini) struct text key = {0};
    if (config_trace(c->options, c->seed, c->arrivals, &t, e) != 0) {
        return NULL;
    }
    put_key(c, &t, &key);
    return xstrdup(text_end(&key));
}

static void put_counters(struct values *x, const struct study_stream *s, const struct sim_result *r)
{
    char name[sizeof((struct metric *)0)->name];
    SIM_ASSERT(r->n_policy_counters <= SIM_MAX_POLICY_COUNTERS);
    for (int i = 0; i < COUNTER_COUNT; i++) {
        (void)snprintf(name, sizeof name, "counters.%s", counter_names[i]);
        values_add(x, s, name, (double)r->counters[i]);
    }
    for (uint32_t i = 0; i < r->n_policy_counters; i++) {
        (void)snprintf(name, sizeof name, "counters.policy.%s", r->policy_counter_names[i]);
        values_add(x, s, name, (double)r->policy_counters[i]);
    }
}

static void pack(const struct study_stream *s, const struct study_cell *c, const struct trace *t,
                 const struct runner_result *r, const char *key, struct pool_worker *w,
                 struct job_result *out)
{
    SIM_ASSERT(r->sim.status == 0 && r->metrics.n > 0); /* only successful runs have metrics */
    struct values x;
    values_open(&x, r->metrics.n + COUNTER_COUNT + r->sim.n_policy_counters);
    for (size_t i = 0; i < r->metrics.n; i++) {
        values_add(&x, s, r->metrics.v[i].name, r->metrics.v[i].value);
    }
    put_counters(&x, s, &r->sim);
    if (c->observer_write != NULL) {
        FILE *to = memory_stream(&x.observed, &x.observed_bytes);
        c->observer_write(c->observer_state, t, to);
        memory_stream_close(to, &x.observed);
    }
    struct store_run run = {.fingerprint = ""};
    OWNED char *tree = NULL;
    if (key[0] != '\0') {
        char ask[64];
        run = (struct store_run){.fingerprint = key,
                                 .soc = c->config->soc.machine.name,
                                 .llm = c->config->models,
                                 .workload = c->config->workload,
                                 .policy = c->policy->ops->name,
                                 .params = c->policy->params_text,
                                 .verdict = metrics_verdict_names[r->verdict],
                                 .rate_scale =
                                     c->arrivals.rate_scale > 0.0 ? c->arrivals.rate_scale : 1.0,
                                 .seed = c->seed,
                                 .config_hash = c->config->hash,
                                 .trace_hash = t->hash};
        (void)snprintf(ask, sizeof ask, STUDY_ASKS_CONFIGURATION "%016" PRIx64, c->config->hash);
        tree = pool_wanted(w, ask) ? json_text(c->config->tree, false) : NULL;
    }
    send(&x, &run, tree, out);
}

static void simulate(const struct study_stream *s, const struct study_cell *c,
                     const struct trace *t, const char *key, struct pool_worker *w,
                     struct job_result *out)
{
    /* A store has no data of observers, so these cells have no key. */
    SIM_ASSERT(key[0] == '\0' || c->observer_write == NULL);
    SCOPED(err_fini) struct err e = ERR_INIT;
    struct runner_options opt = {.samples = c->samples,
                                 .warmup_s = c->warmup_s,
                                 .policy_context = c->policy_context,
                                 .observer = c->observer};
    SCOPED(runner_result_fini) struct runner_result r;
    if (runner_run(c->config, c->policy, t, c->seed, &opt, &r, &e) != 0) {
        fail(out, r.sim.message);
    } else {
        pack(s, c, t, &r, key, w, out);
    }
}

/* Runs the cell with another binary. An older one may not report the verdict. */
static void simulate_there(const struct study_stream *s, const struct study_cell *c,
                           struct job_result *out)
{
    char message[JOBS_MESSAGE_BYTES];
    SCOPED(json_drop)
    cJSON *root = other_binary_run(c->binary, c->options, c->policy->label, c->seed, NULL, message,
                                   sizeof message);
    const cJSON *metrics = json_member(root, "metrics");
    const char *name = cJSON_GetStringValue(json_member(root, "verdict"));
    int verdict = METRICS_STABLE;
    while (name != NULL && verdict < METRICS_VERDICTS &&
           strcmp(name, metrics_verdict_names[verdict]) != 0) {
        verdict++;
    }
    bool numbered = json_member(metrics, "backlog.verdict") != NULL;
    if (root == NULL || !cJSON_IsObject(metrics) || name == NULL ||
        (verdict == METRICS_VERDICTS && !numbered)) {
        fail(out, root == NULL ? message : "its result holds no metrics or no verdict");
    } else {
        struct values x;
        values_open(&x, (size_t)cJSON_GetArraySize(metrics) + 1);
        for (const cJSON *m = metrics->child; m != NULL; m = m->next) {
            values_add(&x, s, m->string, cJSON_IsNumber(m) ? m->valuedouble : METRIC_UNDEFINED);
        }
        if (!numbered) {
            values_add(&x, s, "backlog.verdict", verdict);
        }
        struct store_run run = {.fingerprint = ""};
        send(&x, &run, NULL, out);
    }
}

static void leave_first(struct trace *t)
{
    SIM_ASSERT(t->n == 0 || t->n_first > 0); /* a trace has a first turn */
    t->n = t->n_first = t->n > 0 ? 1 : 0;
    trace_graph_free(t->graph);
    t->graph = NULL;
    if (t->n > 0) {
        t->rows[0].next = TRACE_NO_ROW;
    }
    t->hash = hash_string(t->hash, "the first");
}

void study_work(const struct study_stream *s, uint64_t index, struct pool_worker *w,
                struct job_result *out)
{
    SIM_ASSERT(out->status == 0 && out->data == NULL); /* unchanged: found in the store */
    struct study_cell c = {0};
    SCOPED(err_fini) struct err e = ERR_INIT;
    SCOPED(trace_fini) struct trace t = {0};
    int rc = 0;
    if (s->cell(s->ctx, index, &c, &e) != 0) {
        fail(out, e.n > 0 ? e.lines[0] : "unknown error");
    } else if ((rc = config_trace(c.options, c.seed, c.arrivals, &t, &e)) != 0) {
        fail(out, e.lines[0]);
        out->status = rc == -ENODATA ? STUDY_NO_REQUESTS : out->status;
    } else if (c.binary != NULL) {
        simulate_there(s, &c, out);
    } else {
        if (c.only_first) {
            leave_first(&t);
        }
        SCOPED(text_fini) struct text key = {0};
        bool kept = s->how.store != NULL && c.observer_write == NULL;
        if (kept) {
            put_key(&c, &t, &key);
        }
        if (!kept || pool_wanted(w, text_end(&key))) {
            simulate(s, &c, &t, text_end(&key), w, out);
        }
    }
    SIM_ASSERT(out->status == 0 || out->data == NULL);
    SIM_ASSERT(out->status != 0 || out->data != NULL || s->how.store != NULL);
}
