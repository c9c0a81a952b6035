/* The four workloads of sd.npu (CoordGen) 4.1: one task each, answered back to back. A fifth one,
 * "texts", has requests with known tokens (texts.h). */
#include "traces/tasks.h"
#include "sim/base/rng.h"
#include "traces/spec_keys.h"
#include "traces/texts.h"
#include "traces/traces.h"

/* The paper names tasks and their sources, but no lengths. Lengths here are from public sets of the
 * same kind (traces/datasets/README.md); those of tweet are synthetic. */
static const struct task {
    const char *name, *dataset, *what;
} tasks[] = {
    {"summary", "specbench_summary", "summaries, Spec-Bench (the paper's source)"},
    {"rag", "mtrag", "answers from retrieved passages, MTRAG; the paper's set is not stated"},
    {"ui", "droidtask_ui", "one action of a UI agent, DroidTask; the paper's: AndroidArena"},
    {"tweet", "tweet_reply", "replies to messages: SYNTHETIC lengths; the paper's: LaMP"},
    {"texts", NULL, "requests whose tokens are known; file=FILE.jsonl, default " TEXTS_SHIPPED},
};
#define N_TASKS (sizeof tasks / sizeof tasks[0])

enum { TASK_N, TASK_CONCURRENT, TASK_GAP_S, TASK_HISTORY, TASK_NUMBERS };
static const struct spec_key keys[TASK_NUMBERS] = {
    {"n", 40, 1, 1e6, true, "requests in all; of texts by default each once"},
    {"concurrent", 1, 1, 1e4, true, "users, each with one request at a time; all begin at 0"},
    {"gap_s", 0, 0, 1e6, false, "from an answer to the user's next request, s"},
    {"history", 0, 0, 1, true, "1: texts are drafted from the user's earlier answers, too"},
};
#define MOST_HISTORY 10000 /* requests, each with its own matches */

static const struct task *task_of(const char *spec)
{
    size_t len = strcspn(spec, ":");
    for (size_t i = 0; i < N_TASKS; i++) {
        if (strlen(tasks[i].name) == len && strncmp(tasks[i].name, spec, len) == 0) {
            return &tasks[i];
        }
    }
    return NULL;
}

bool task_known(const char *spec)
{
    return task_of(spec) != NULL;
}

static const char *const names[] = {"file", NULL};

/* Source of a task's requests: their lengths, and maybe their texts. */
struct content {
    struct dataset data;       /* owned; rows are drawn */
    struct trace_texts *texts; /* a reference; each text is used once in random order, then again */
    uint32_t *order;           /* owned: indices of texts; NULL: request i has text i */
    struct rng lengths;
};

static void content_fini(struct content *c)
{
    dataset_fini(&c->data);
    texts_release(c->texts);
    free(c->order);
}

static int content_load(struct content *c, const char *dataset, const char *file, uint64_t seed,
                        struct err *e)
{
    *c = (struct content){0};
    /* One stream for all users, so that `concurrent` changes when the n requests arrive, but not
     * the requests. */
    rng_init(&c->lengths, rng_key(seed, RNG_LENGTH_REACTIVE, 0, 0));
    if (dataset != NULL) {
        return dataset_load(dataset, &c->data, e);
    }
    c->texts = texts_read(file, e);
    if (c->texts == NULL) {
        return -EINVAL;
    }
    c->order = xmalloc(c->texts->n * sizeof *c->order);
    for (uint32_t i = 0; i < c->texts->n; i++) {
        uint32_t at = rng_below(&c->lengths, i + 1); /* Fisher-Yates shuffle */
        c->order[i] = c->order[at];
        c->order[at] = i;
    }
    return 0;
}

/* Sets the lengths of request i. Returns the number of its text, from 1; 0 without texts. */
static uint32_t content_of(struct content *c, uint32_t i, struct trace_row *r)
{
    if (c->texts == NULL) {
        const struct dataset_row *d = &c->data.rows[rng_below(&c->lengths, (uint32_t)c->data.n)];
        r->input_tokens = d->input_tokens;
        r->output_tokens = d->output_tokens;
        return 0;
    }
    uint32_t k = c->order != NULL ? c->order[i % c->texts->n] : i;
    r->input_tokens = c->texts->texts[k].n_context;
    r->output_tokens = c->texts->texts[k].n_output;
    return k + 1;
}

/* Gives every request its own text, with matches in the user's earlier answers. */
static void content_after_answers(struct content *c, uint32_t n, uint32_t users)
{
    OWNED uint32_t *number = xmalloc(n * sizeof *number);
    for (uint32_t i = 0; i < n; i++) {
        number[i] = c->order[i % c->texts->n];
    }
    struct trace_texts *after = texts_after_answers(c->texts, number, n, users);
    texts_release(c->texts);
    free(c->order);
    c->texts = after;
    c->order = NULL;
}

static void requests_add(struct trace_builder *b, const double *v, struct content *c,
                         const char *spec, struct err *e)
{
    uint32_t users = (uint32_t)v[TASK_CONCURRENT];
    for (uint32_t i = 0; i < (uint32_t)v[TASK_N]; i++) {
        struct trace_row r = {
            .next = TRACE_NO_ROW, .session_id = i % users, .turn = (uint16_t)(i / users)};
        struct trace_extra extra = trace_extra_none();
        extra.client_id = r.session_id;
        extra.text = content_of(c, i, &r);
        r.max_output_tokens = trace_default_limit(r.output_tokens);
        /* A first turn has an instant; a later one has a gap after the previous answer. */
        r.arrival_ns = i < users ? 0 : units_ns_from_s(v[TASK_GAP_S]);
        trace_builder_add(b, &r, extra.text > 0 ? &extra : NULL);
        if (i / users == UINT16_MAX) {
            (void)err_add(e, "workload \"%s\": n: over %d requests of one user", spec, UINT16_MAX);
            break;
        }
    }
}

int task_generate(const char *spec, uint64_t seed, struct trace *out, struct err *e)
{
    const struct task *task = task_of(spec);
    double v[TASK_NUMBERS];
    const char *file[] = {TEXTS_SHIPPED};
    struct content content;
    *out = (struct trace){0};
    struct spec_keys k = {keys, TASK_NUMBERS, task->dataset == NULL ? names : NULL, v, file, 0};
    const char *colon = strchr(spec, ':');
    size_t before = e->n;
    spec_keys_init(&k);
    spec_keys_parse(&k, spec, colon != NULL ? colon + 1 : "", e);
    if (e->n > before || content_load(&content, task->dataset, file[0], seed, e) != 0) {
        return -EINVAL;
    }
    if (content.texts != NULL && (k.seen & 1ULL << TASK_N) == 0) {
        v[TASK_N] = content.texts->n;
    }
    bool history = v[TASK_HISTORY] > 0.0;
    if (history && (content.texts == NULL || v[TASK_N] > MOST_HISTORY)) {
        (void)err_add(e, "workload \"%s\": history: %s", spec,
                      content.texts == NULL ? "of texts only" : "of 10000 requests at most");
    } else if (history) {
        content_after_answers(&content, (uint32_t)v[TASK_N], (uint32_t)v[TASK_CONCURRENT]);
    }
    SCOPED(trace_builder_fini) struct trace_builder b;
    trace_builder_init(&b);
    requests_add(&b, v, &content, spec, e);
    int rc = e->n > before ? -EINVAL : trace_build(&b, true, spec, out, e);
    if (rc == 0 && content.texts != NULL) {
        trace_set_texts(out, content.texts);
    }
    content_fini(&content);
    return rc;
}

void task_help(FILE *out)
{
    for (size_t i = 0; i < N_TASKS; i++) {
        (void)fprintf(out, "%s:key=value,...%*s%s\n", tasks[i].name,
                      (int)(8 - strlen(tasks[i].name)), "", tasks[i].what);
    }
    spec_keys_help(keys, TASK_NUMBERS, out);
}
