/* Spans by the GenAI conventions or OpenInference: OTLP JSON, or a span per line. OpenTelemetry's
 * JavaScript SDK has such lines in memory, and VS Code's agent writes them to a file. A span with
 * token counts is a request. If spans record which agent invoked which (gen_ai.operation.name is
 * invoke_agent, or openinference.span.kind is AGENT), the agents become a request graph. Otherwise
 * requests are turns of gen_ai.conversation.id, or session.id. */
#include "sim/base/json.h"
#include "sim/base/words.h"
#include "traces/import.h"
#include "traces/import_json.h"

struct span {
    uint64_t id, parent, conversation, trace; /* keys; 0: none */
    bool agent, tool;
    bool request;
    struct import_row row; /* of a request; for a tool only its end */
    const char *model;
};

struct spans {
    struct span *v; /* owned */
    size_t n, requests;
    struct map places; /* index by id */
    struct map named;  /* index by trace of a span with a conversation */
    bool agents;
};

static const cJSON *attribute(const cJSON *span, const char *key)
{
    const cJSON *all = json_member(span, "attributes");
    if (cJSON_IsObject(all)) { /* the SDK's format */
        return json_member(all, key);
    }
    const cJSON *a;
    cJSON_ArrayForEach (a, all) {
        if (strcmp(json_string(a, "key"), key) == 0) {
            const cJSON *value = json_member(a, "value");
            return value == NULL ? NULL : value->child; /* {"intValue": "7"} */
        }
    }
    return NULL;
}

/* Per fact: its present name in the GenAI conventions, the earlier one, and OpenInference's. */
enum fact { INPUT, OUTPUT, CACHED, OPERATION, CONVERSATION, MODEL };
static const char *const names[][3] = {
    [INPUT] = {"gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens", "llm.token_count.prompt"},
    [OUTPUT] = {"gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens",
                "llm.token_count.completion"},
    [CACHED] = {"gen_ai.usage.cache_read.input_tokens", "gen_ai.usage.cached_tokens",
                "llm.token_count.prompt_details.cache_read"},
    [OPERATION] = {"gen_ai.operation.name", "openinference.span.kind"},
    [CONVERSATION] = {"gen_ai.conversation.id", "session.id"},
    [MODEL] = {"gen_ai.request.model", "llm.model_name"},
};

static const cJSON *fact(const cJSON *span, enum fact f)
{
    const cJSON *c = NULL;
    for (size_t i = 0; c == NULL && i < 3 && names[f][i] != NULL; i++) {
        c = attribute(span, names[f][i]);
    }
    return c;
}

static const char *fact_text(const cJSON *span, enum fact f)
{
    const char *text = cJSON_GetStringValue(fact(span, f));
    return text != NULL ? text : "";
}

/* Embeddings have input tokens, but generate nothing. A workflow has the sum of its agents' tokens.
 * LLM is the only kind of OpenInference that is an answer. */
static bool is_answer(const char *operation)
{
    static const char *const others[] = {
        "embeddings", "invoke_workflow", "EMBEDDING", "CHAIN", "RETRIEVER", "RERANKER",
        "TOOL",       "GUARDRAIL",       "EVALUATOR", NULL};
    return words_find(others, operation) < 0;
}

static bool is_tool(const char *operation)
{
    static const char *const tools[] = {"execute_tool", "TOOL", NULL};
    return words_find(tools, operation) >= 0;
}

static bool is_agent(const char *operation)
{
    static const char *const agents[] = {"invoke_agent", "AGENT", NULL};
    return words_find(agents, operation) >= 0;
}

static uint64_t tokens(const cJSON *span, enum fact f, double least, const struct import_place *p)
{
    const cJSON *c = fact(span, f);
    return c == NULL ? 0 : import_integer(c, names[f][0], least, IMPORT_MAX_TOKENS, p);
}

static uint64_t key_of(const char *name)
{
    return name[0] != '\0' ? import_key(name) : 0;
}

/* An instant in OTLP's format, or in the SDK's: [s, ns]. */
static int64_t instant(const cJSON *span, const char *otlp, const char *sdk,
                       const struct import_place *p)
{
    const cJSON *pair = json_member(span, sdk);
    if (pair == NULL) {
        return import_ns(json_member(span, otlp), otlp, p);
    }
    return (int64_t)import_integer(cJSON_GetArrayItem(pair, 0), sdk, 0.0, IMPORT_MAX_NS / NS_PER_S,
                                   p) *
               NS_PER_S +
           (int64_t)import_integer(cJSON_GetArrayItem(pair, 1), sdk, 0.0, NS_PER_S, p);
}

/* A tool that was running when the spans were sent has no end, and nothing follows it. */
static void tool_read(struct span *s, const cJSON *span, const struct import_place *p)
{
    bool ended =
        json_member(span, "endTimeUnixNano") != NULL || json_member(span, "endTime") != NULL;
    s->tool = ended && is_tool(fact_text(span, OPERATION));
    if (s->tool) {
        s->row.end_ns = instant(span, "endTimeUnixNano", "endTime", p);
    }
}

/* Reads tokens and times. A span of an agent is no request: it has the sum of its requests. */
static void request_read(struct span *s, const cJSON *span, const struct import_place *p)
{
    s->request = fact(span, INPUT) != NULL && is_answer(fact_text(span, OPERATION));
    if (!s->request) {
        return;
    }
    struct import_row *r = &s->row;
    r->line = (uint32_t)p->number;
    r->start_ns = instant(span, "startTimeUnixNano", "startTime", p);
    r->end_ns = instant(span, "endTimeUnixNano", "endTime", p);
    r->input = tokens(span, INPUT, 1.0, p);
    r->output = tokens(span, OUTPUT, 0.0, p);
    r->prefix = tokens(span, CACHED, 0.0, p);
}

/* Span ids are unique within a trace only. */
static uint64_t id_of(const cJSON *span, const char *key)
{
    const char *number = json_string(span, key);
    OWNED char *whole = xformat("%s %s", json_string(span, "traceId"), number);
    return number[0] != '\0' ? import_key(whole) : 0;
}

static void span_read(struct spans *all, const cJSON *span, const struct import_place *p)
{
    uint64_t id = id_of(span, "spanId");
    if (id != 0 && map_find(&all->places, id) != IMPORT_NONE) {
        return; /* exporters resend spans that were not acknowledged */
    }
    all->v = xgrow(all->v, all->n, sizeof *all->v);
    struct span *s = &all->v[all->n];
    *s = (struct span){
        .id = id,
        .parent = id_of(span, "parentSpanId"),
        .conversation = key_of(fact_text(span, CONVERSATION)),
        .trace = key_of(json_string(span, "traceId")),
        .agent = is_agent(fact_text(span, OPERATION)),
    };
    request_read(s, span, p);
    if (!s->request) {
        tool_read(s, span, p);
    }
    s->model = xkeep(xstrdup(fact_text(span, MODEL)));
    if (s->id != 0) {
        map_put(&all->places, s->id, all->n);
    }
    if (s->conversation != 0) {
        map_put(&all->named, s->trace, all->n);
    }
    all->agents = all->agents || s->agent;
    all->requests += s->request;
    all->n++;
}

static void otel_line(struct import *im, const cJSON *o, const struct import_place *p)
{
    const cJSON *resource;
    const cJSON *scope;
    const cJSON *span;
    cJSON_ArrayForEach (resource, json_member(o, "resourceSpans")) {
        cJSON_ArrayForEach (scope, json_member(resource, "scopeSpans")) {
            cJSON_ArrayForEach (span, json_member(scope, "spans")) {
                span_read(im->kept, span, p);
            }
        }
    }
    if (json_member(o, "startTime") != NULL) { /* otherwise a metric or an event */
        span_read(im->kept, o, p);
    }
}

/* ---- agents ---- */

/* The innermost agent around a span, or NULL. Stops if parents form a cycle. */
static const struct span *agent_around(const struct spans *all, const struct span *s)
{
    for (size_t steps = 0; s->parent != 0 && steps < all->n; steps++) {
        size_t at = map_find(&all->places, s->parent);
        if (at == IMPORT_NONE) {
            return NULL;
        }
        s = &all->v[at];
        if (s->agent) {
            return s;
        }
    }
    return NULL;
}

/* The conversation of a span: its own, or that of another span of its trace. */
static uint64_t conversation_of(const struct spans *all, const struct span *s)
{
    size_t at = map_find(&all->named, s->trace);
    return s->conversation != 0 ? s->conversation : at != IMPORT_NONE ? all->v[at].conversation : 0;
}

/* The key of an agent (NULL: none) around span s. An agent that was not invoked by another lasts as
 * long as its conversation. Its requests may have a different one, or a subagent's. */
static uint64_t agent_key(const struct spans *all, const struct span *agent, const struct span *s)
{
    if (agent != NULL && agent_around(all, agent) != NULL) {
        return agent->id;
    }
    bool named = agent != NULL && agent->conversation != 0;
    uint64_t conversation = named ? agent->conversation : conversation_of(all, s);
    return conversation != 0 ? conversation : s->trace;
}

static void record_of(const struct spans *all, const struct span *s, struct import_record *x)
{
    const struct span *agent = agent_around(all, s);
    const struct span *invoker = agent != NULL ? agent_around(all, agent) : NULL;
    x->row = s->row;
    x->row.end_ns = s->row.end_ns > s->row.start_ns ? s->row.end_ns : s->row.start_ns;
    x->agent = agent_key(all, agent, s);
    x->parent = invoker != NULL ? agent_key(all, invoker, s) : 0;
}

/* ---- tools ---- */

/* The end of a tool, or the start of a request, for an agent or a conversation. */
struct moment {
    uint64_t whose;
    int64_t at_ns;
    size_t span;
    bool request;
};

static int by_time(const void *a, const void *b)
{
    const struct moment *x = a;
    const struct moment *y = b;
    if (x->whose != y->whose) {
        return x->whose < y->whose ? -1 : 1;
    }
    if (x->at_ns != y->at_ns) {
        return x->at_ns < y->at_ns ? -1 : 1;
    }
    if (x->request != y->request) { /* ends before starts at the same instant */
        return x->request ? 1 : -1;
    }
    return x->span < y->span ? -1 : x->span > y->span;
}

/* A request follows a tool if a tool of its agent has ended since the previous request began. */
static void find_tools(struct spans *all)
{
    OWNED struct moment *v = xmalloc((all->n + 1) * sizeof *v);
    size_t n = 0;
    for (size_t i = 0; i < all->n; i++) {
        const struct span *s = &all->v[i];
        bool request = s->request && !s->agent;
        if (request || s->tool) {
            uint64_t whose = all->agents ? agent_key(all, agent_around(all, s), s)
                             : request   ? s->conversation
                                         : conversation_of(all, s);
            v[n++] = (struct moment){whose, request ? s->row.start_ns : s->row.end_ns, i, request};
        }
    }
    qsort(v, n, sizeof *v, by_time);
    bool begun = false; /* an earlier request of this agent */
    bool tool = false;  /* a tool since the last request */
    for (size_t k = 0; k < n;) {
        const struct moment at = v[k];
        begun = begun && at.whose != 0 && v[k - 1].whose == at.whose;
        tool = tool && begun;
        bool request = false;
        for (; k < n && v[k].whose == at.whose && v[k].at_ns == at.at_ns; k++) {
            tool = tool || (begun && !v[k].request);
            request = request || v[k].request;
            all->v[v[k].span].row.after_tool = v[k].request && tool;
        }
        begun = begun || request;
        tool = tool && !request;
    }
}

static void as_graph(struct import *im, const struct spans *all)
{
    SCOPED(import_records_fini) struct import_records records = {0};
    for (size_t i = 0; i < all->n; i++) {
        const struct span *s = &all->v[i];
        if (s->request && !s->agent) {
            struct import_record x = {.agent = 0};
            record_of(all, s, &x);
            import_record_add(&records, &x, s->model);
        }
    }
    import_records_build(im, &records);
}

static void as_sessions(struct import *im, const struct spans *all)
{
    for (size_t i = 0; i < all->n; i++) {
        struct import_row r = all->v[i].row;
        r.prefix = 0; /* import_sessions sets it by --history */
        r.after = r.key = all->v[i].conversation;
        if (all->v[i].request) {
            import_add(im, &r);
        }
    }
}

/* Faster than any server: instants are in another unit, such as milliseconds. */
#define LEAST_NS_PER_TOKEN 100000

static bool are_nanoseconds(const struct spans *all)
{
    size_t fast = 0;
    for (size_t i = 0; i < all->n; i++) {
        const struct import_row *r = &all->v[i].row;
        int64_t took_ns = r->end_ns - r->start_ns;
        fast += all->v[i].request && r->output > 1 && took_ns > 0 &&
                took_ns / LEAST_NS_PER_TOKEN < (int64_t)r->output;
    }
    return fast < all->requests;
}

/* Reads one document, or a document per line as the file exporter writes them. */
void import_otel(struct import *im, FILE *in, const char *path, struct err *e)
{
    struct spans all = {0};
    im->kept = &all;
    import_values(im, in, path, otel_line, e);
    im->kept = NULL;
    if (e->n == 0 && all.requests == 0) {
        (void)err_add(e, "%s: no requests: none of its spans has %s, or OpenInference's %s", path,
                      names[INPUT][0], names[INPUT][2]);
    } else if (e->n == 0 && !are_nanoseconds(&all)) {
        (void)err_add(e,
                      "%s: each answer takes less than %g ms a token: are its instants in "
                      "nanoseconds?",
                      path, LEAST_NS_PER_TOKEN / 1e6);
    }
    if (e->n == 0) {
        find_tools(&all);
        (all.agents ? as_graph : as_sessions)(im, &all);
    }
    map_fini(&all.places);
    map_fini(&all.named);
    free(all.v);
}
