/* Generates traces of agent workloads: the requests of every client, turn by turn. */
#include "traces/agents.h"

#include "sim/api/request.h"
#include "sim/base/hash.h"
#include "sim/base/rng.h"
#include "traces/traces.h"

#define MAX_TOKENS 100000000u

struct maker {
    const struct agents *a;
    struct trace_builder b;
    struct arena memory; /* of struct wait */
    size_t max_rows;
    uint32_t n_ids, n_sessions;
    uint32_t client_id;
    bool too_long, too_many; /* a prompt; a session's turns */
};

/* A list of requests to wait for. Lists may share a tail. */
struct wait {
    const struct wait *before;
    uint32_t id;
    uint32_t n; /* length of the list from here */
};

/* When a request starts: at ns, or ns after all parents have ended. */
struct begin {
    const struct wait *parents;
    int64_t ns, until_ns;
    bool starts_job;
};

/* Properties that a subagent inherits from the job that started it, unless it has its own. */
struct place {
    int cls;
    const char *model, *model_key; /* NULL: the default model */
    bool background;
    uint32_t ends_with; /* request that ends this one; UINT32_MAX: none */
    uint32_t context;   /* tokens of an earlier conversation in the prompt, and its request */
    uint32_t context_of;
};

/* A conversation so far. Jobs share one if a client keeps its session. */
struct talk {
    uint32_t session_id, turn;
    uint32_t prompt, answer; /* tokens of the last turn */
    uint32_t id;
};

/* The last request of a job, and the least duration of the job. */
struct ended {
    uint32_t id, answer;
    double least_s;
};

/* ---- drawn numbers ---- */

static bool has(const struct agents_job *j, int number)
{
    return j->v[number].kind != DRAW_NONE;
}

static double draw_s(const struct maker *m, const struct agents_job *j, int number, uint64_t stream)
{
    double x = has(j, number) ? draw_value(&j->v[number], stream, (uint32_t)number, false) : 0.0;
    return x * m->a->factor[number];
}

/* A whole number times its factor, rounded; at least 1 unless the drawn number is 0. */
static uint32_t draw_whole(const struct maker *m, const struct agents_job *j, int number,
                           uint64_t stream, uint32_t otherwise)
{
    double factor = m->a->factor[number];
    if (!has(j, number)) {
        return otherwise;
    }
    double x = draw_value(&j->v[number], stream, (uint32_t)number, true);
    x = factor == 1.0 || x == 0.0 ? x : fmax(round(x * factor), 1.0);
    return x > UINT32_MAX ? UINT32_MAX : (uint32_t)x;
}

static int64_t draw_ns(const struct maker *m, const struct agents_job *j, int number,
                       uint64_t stream)
{
    return has(j, number) ? units_ns_from_s(draw_s(m, j, number, stream)) : TIME_NEVER_NS;
}

/* ---- start times ---- */

static void wait_for(struct maker *m, struct begin *w, uint32_t id)
{
    struct wait *wait = arena_alloc(&m->memory, sizeof *wait);
    *wait = (struct wait){w->parents, id, 1 + (w->parents != NULL ? w->parents->n : 0)};
    w->parents = wait;
}

/* ---- requests ---- */

/* Kinds of keys of a stream; above a job's own numbers (AGENTS_...). */
enum { KEY_CLIENT = 100, KEY_COPY, KEY_JOB, KEY_TURN, KEY_SUBAGENT, KEY_PROBABILITY };

static uint64_t below(uint64_t stream, int key, uint64_t value)
{
    return rng_key(stream, RNG_WORKLOAD, (uint64_t)key, value);
}

static struct trace_extra extra_of(const struct maker *m, const struct agents_job *j,
                                   uint64_t stream, int64_t until_ns)
{
    struct trace_extra x = trace_extra_none();
    x.client_id = m->client_id;
    x.priority = (int32_t)draw_whole(m, j, AGENTS_PRIORITY, stream, 0);
    x.ttft_slo_ns = draw_ns(m, j, AGENTS_TTFT_SLO, stream);
    x.deadline_ns = draw_ns(m, j, AGENTS_DEADLINE, stream);
    x.cancel_ns = draw_ns(m, j, AGENTS_CANCEL, stream);
    x.until_ns = until_ns;
    return x;
}

static uint32_t tokens(struct maker *m, uint64_t n)
{
    m->too_long = m->too_long || n > MAX_TOKENS;
    return n > MAX_TOKENS ? MAX_TOKENS : (uint32_t)n;
}

/* Tokens of a job's next prompt. `answers`: tokens of the subagents that it waited for. */
static uint32_t prompt_of(struct maker *m, const struct agents_job *j, const struct place *p,
                          const struct talk *talk, uint64_t stream, bool first, uint64_t answers)
{
    uint64_t so_far = (uint64_t)talk->prompt + talk->answer;
    uint64_t n;
    if (first) {
        n = draw_whole(m, j, AGENTS_PROMPT, stream, 0);
        n += talk->turn > 0 ? so_far : (uint64_t)p->context + j->shared_tokens;
    } else if (has(j, AGENTS_GROWTH)) {
        n = (uint64_t)talk->prompt + draw_whole(m, j, AGENTS_GROWTH, stream, 0);
        n = n > so_far ? n : so_far + 1; /* includes the last answer and at least one new token */
    } else {
        n = so_far + answers + draw_whole(m, j, AGENTS_NEW, stream, 1);
    }
    return tokens(m, n);
}

/* Adds the next turn of a conversation, which updates `talk`. */
static void request_add(struct maker *m, const struct agents_job *j, const struct place *p,
                        struct talk *talk, uint64_t stream, uint32_t id, const struct begin *when,
                        uint32_t prompt)
{
    struct trace_row r = {.next = TRACE_NO_ROW,
                          .request_id = id,
                          .session_id = talk->session_id,
                          .turn = (uint16_t)talk->turn,
                          .cls = (uint8_t)p->cls,
                          .arrival_ns = when->ns,
                          .input_tokens = prompt,
                          .output_tokens = draw_whole(m, j, AGENTS_ANSWER, stream, 1),
                          .after_tool = talk->turn > 0 && !when->starts_job && j->after_tool};
    r.max_output_tokens = trace_default_limit(r.output_tokens);
    struct trace_extra x = extra_of(m, j, stream, when->until_ns);
    struct trace_node node = trace_node_none();
    node.n_parents = when->parents != NULL ? when->parents->n : 0;
    node.parents = arena_alloc(&m->memory, node.n_parents * sizeof *node.parents);
    for (const struct wait *w = when->parents; w != NULL; w = w->before) {
        node.parents[w->n - 1] = (struct trace_parent){w->id, 0};
    }
    node.ends_with = p->ends_with;
    node.background = p->background;
    node.starts_job = when->starts_job;
    if (p->model != NULL) {
        node.model = trace_builder_model(&m->b, p->model, m->a->path, 0, p->model_key);
    }
    if (talk->turn > 0) {
        r.prefix_tokens = tokens(m, (uint64_t)talk->prompt + talk->answer);
    } else if (p->context > 0) {
        r.prefix_tokens = p->context;
        node.prefix_of = p->context_of;
    } else {
        r.prefix_tokens = j->shared_tokens;
        x.prefix_group = j->prefix_group;
    }
    trace_builder_add(&m->b, &r, &x);
    trace_builder_node(&m->b, &node);
    talk->prompt = r.input_tokens;
    talk->answer = r.output_tokens;
    talk->id = id;
    talk->turn++;
}

/* ---- jobs ---- */

static struct ended job_add(struct maker *m, const struct agents_job *j, struct place p,
                            struct talk *talk, uint64_t stream, struct begin when);

static bool is_on_turn(const struct agents_job *sub, uint32_t turn)
{
    bool on = sub->on_turns == NULL;
    const cJSON *c = NULL;
    cJSON_ArrayForEach (c, sub->on_turns) {
        on = on || c->valuedouble == (double)turn + 1.0;
    }
    return on;
}

/* A turn, as its subagents need it. */
struct turn {
    uint32_t number; /* from 0 */
    uint64_t stream;
    bool last;
    uint32_t last_id; /* the job's last turn */
    uint32_t context; /* tokens of the conversation so far, and its last request */
    uint32_t context_of;
};

/* Starts copies of a subagent at `when`. Adds those that are waited for to `joined`. Returns the
 * tokens of their answers. */
static uint64_t copies_add(struct maker *m, const struct agents_job *sub, const struct place *p,
                           const struct turn *t, const struct begin *when, struct begin *joined)
{
    uint64_t stream = below(t->stream, KEY_SUBAGENT, hash_string(HASH_INIT, sub->name));
    uint64_t answers = 0;
    struct rng chance;
    rng_init(&chance, below(stream, KEY_PROBABILITY, 0));
    if (rng_uniform(&chance) >= sub->probability) {
        return 0;
    }
    struct place own = *p;
    own.cls = sub->cls >= 0 ? sub->cls : sub->background ? REQUEST_CLASS_PROACTIVE : p->cls;
    own.model = sub->model != NULL ? sub->model : p->model;
    own.model_key = sub->model != NULL ? sub->model_key : p->model_key;
    own.background = p->background || sub->background;
    own.ends_with = sub->ends_with_job ? t->last_id : p->ends_with;
    own.context = sub->with_context ? t->context : 0;
    own.context_of = t->context_of;
    uint32_t n = draw_whole(m, sub, AGENTS_COUNT, stream, 1);
    for (uint32_t k = 0; k < n && m->b.n <= m->max_rows; k++) {
        uint64_t copy = below(stream, KEY_COPY, k);
        struct begin w = *when;
        struct talk talk = {.session_id = m->n_sessions++};
        w.ns += units_ns_from_s(draw_s(m, sub, AGENTS_START, below(copy, KEY_TURN, 0)));
        struct ended e = job_add(m, sub, own, &talk, copy, w);
        if (!sub->background) {
            wait_for(m, joined, e.id);
            answers += e.answer;
        }
    }
    return answers;
}

/* Adds the subagents before a turn, one kind after the other. `when` becomes the end of the last
 * kind. Returns the tokens of their answers. */
static uint64_t before_add(struct maker *m, const struct agents_job *j, const struct place *p,
                           const struct turn *t, uint32_t id, struct begin *when)
{
    uint64_t answers = 0;
    bool first = true;
    for (uint32_t i = 0; i < j->n_subagents; i++) {
        const struct agents_job *sub = &j->subagents[i];
        if (!sub->before || !is_on_turn(sub, t->number)) {
            continue;
        }
        struct begin joined = {.until_ns = TIME_NEVER_NS};
        struct begin due = *when;
        if (first && t->number > 0) {
            wait_for(m, &due, id - 1); /* only here: later turns of a session wait anyway */
        }
        answers += copies_add(m, sub, p, t, &due, &joined);
        if (joined.parents != NULL) {
            *when = joined;
            first = false;
        }
    }
    return answers;
}

/* Adds the subagents that a turn starts. After the last turn, skips those whose answer would not be
 * read, and those that end with the job. */
static uint64_t after_add(struct maker *m, const struct agents_job *j, const struct place *p,
                          const struct turn *t, uint32_t id, struct begin *joined)
{
    uint64_t answers = 0;
    struct begin end = {.until_ns = TIME_NEVER_NS};
    wait_for(m, &end, id);
    for (uint32_t i = 0; i < j->n_subagents; i++) {
        const struct agents_job *sub = &j->subagents[i];
        bool pointless = t->last && (!sub->background || sub->ends_with_job);
        if (!sub->before && !pointless && is_on_turn(sub, t->number)) {
            answers += copies_add(m, sub, p, t, &end, joined);
        }
    }
    return answers;
}

static struct ended job_add(struct maker *m, const struct agents_job *j, struct place p,
                            struct talk *talk, uint64_t stream, struct begin when)
{
    uint32_t turns = draw_whole(m, j, AGENTS_TURNS, below(stream, KEY_TURN, 0), 1);
    uint32_t id = m->n_ids;
    struct turn t = {.last_id = id + turns - 1};
    struct ended ended = {.id = t.last_id};
    uint64_t answers = 0;
    m->n_ids += turns;
    for (; t.number < turns && m->b.n <= m->max_rows && talk->turn < UINT16_MAX; t.number++, id++) {
        t.stream = below(stream, KEY_TURN, t.number);
        t.last = t.number + 1 == turns;
        t.context = talk->prompt + talk->answer;
        t.context_of = talk->id;
        if (t.number > 0) {
            double gap_s = draw_s(m, j, AGENTS_GAP, t.stream);
            when.ns = units_ns_from_s(gap_s);
            ended.least_s += gap_s;
        }
        answers += before_add(m, j, &p, &t, id, &when);
        uint32_t prompt = prompt_of(m, j, &p, talk, t.stream, t.number == 0, answers);
        request_add(m, j, &p, talk, t.stream, id, &when, prompt);
        t.context = talk->prompt + talk->answer;
        t.context_of = id;
        when = (struct begin){.until_ns = TIME_NEVER_NS};
        answers = after_add(m, j, &p, &t, id, &when);
    }
    m->too_many = m->too_many || talk->turn == UINT16_MAX;
    SIM_ASSERT(t.number < turns || id == t.last_id + 1);
    ended.answer = talk->answer;
    return ended;
}

/* ---- clients ---- */

static void client_add(struct maker *m, const struct agents_job *j, uint64_t stream,
                       double rate_scale)
{
    struct place p = {.cls = j->cls >= 0 ? j->cls : REQUEST_CLASS_REACTIVE,
                      .model = j->model,
                      .model_key = j->model_key,
                      .ends_with = UINT32_MAX};
    struct talk talk = {.session_id = m->n_sessions++};
    struct ended last = {.id = 0};
    double duration_s = m->a->duration_s;
    bool closed = has(j, AGENTS_THINK);
    bool repeats = closed || has(j, AGENTS_EVERY);
    uint32_t jobs = draw_whole(m, j, AGENTS_JOBS, stream, repeats ? UINT32_MAX : 1);
    double at_s = 0.0; /* in a closed loop the earliest time: all requests answered at once */
    for (uint32_t k = 0; k < jobs && m->b.n <= m->max_rows; k++) {
        uint64_t job = below(stream, KEY_JOB, k);
        double gap_s = k == 0   ? draw_s(m, j, AGENTS_START, stream)
                       : closed ? draw_s(m, j, AGENTS_THINK, job)
                                : draw_s(m, j, AGENTS_EVERY, job) / rate_scale;
        at_s += gap_s;
        if (at_s >= duration_s || m->too_many) {
            return;
        }
        struct begin when = {.ns = units_ns_from_s(at_s), .until_ns = TIME_NEVER_NS};
        if (closed && k > 0) {
            when.ns = units_ns_from_s(gap_s);
            when.starts_job = true;
            /* Jobs were generated for instant answers. A slow policy must not get all of them. */
            when.until_ns = isinf(duration_s) ? TIME_NEVER_NS : units_ns_from_s(duration_s);
            if (!j->same_session) {
                wait_for(m, &when, last.id);
            }
        }
        if (k > 0 && !j->same_session) {
            talk = (struct talk){.session_id = m->n_sessions++};
        }
        last = job_add(m, j, p, &talk, job, when);
        at_s += closed ? last.least_s : 0.0;
    }
}

static int check(const struct maker *m, bool scaled, double rate_scale, struct err *e)
{
    if (m->b.n > m->max_rows) {
        return err_add(e, "%s: more than %zu requests; `jobs` says when a client stops", m->a->path,
                       m->max_rows);
    }
    if (m->too_many) {
        return err_add(e, "%s: a session of more than %d turns", m->a->path, UINT16_MAX - 1);
    }
    if (m->too_long) {
        return err_add(e, "%s: a prompt of more than %u tokens", m->a->path, MAX_TOKENS);
    }
    if (m->b.n == 0) {
        (void)err_add(e, "%s: no requests: no client starts before duration_s", m->a->path);
        return -ENODATA;
    }
    if (!scaled && rate_scale != 1.0) {
        return err_add(e, "%s: no client has every_s, so a load has no rate to scale", m->a->path);
    }
    return 0;
}

int agents_generate(const struct agents *a, uint64_t seed, double rate_scale, size_t max_rows,
                    struct trace *out, struct err *e)
{
    struct maker m = {.a = a, .max_rows = max_rows};
    bool scaled = false;
    bool open = true; /* every client sends jobs until duration_s */
    trace_builder_init(&m.b);
    *out = (struct trace){0};
    for (uint32_t i = 0; i < a->n_clients; i++) {
        const struct agents_job *j = &a->clients[i];
        uint64_t stream = below(seed, KEY_CLIENT, hash_string(HASH_INIT, j->name));
        uint32_t n = draw_whole(&m, j, AGENTS_COUNT, stream, 1);
        scaled = scaled || has(j, AGENTS_EVERY);
        open = open && has(j, AGENTS_EVERY) && !has(j, AGENTS_JOBS) && !isinf(a->duration_s);
        for (uint32_t k = 0; k < n; k++, m.client_id++) {
            client_add(&m, j, below(stream, KEY_COPY, k), rate_scale);
        }
    }
    int rc = check(&m, scaled, rate_scale, e);
    rc = rc == 0 ? trace_build(&m.b, false, a->path, out, e) : rc;
    out->made_ns = rc != -EINVAL && open ? units_ns_from_s(a->duration_s) : 0;
    trace_builder_fini(&m.b);
    arena_fini(&m.memory);
    return rc;
}
