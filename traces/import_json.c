/* JSON formats: lines of objects (bailian, aiperf, openai), and documents (vllm). Other files have
 * the rest. Unknown keys are ignored. */
#include "traces/import_json.h"
#include "sim/base/input.h"
#include "sim/base/json.h"

/* ---- lines ---- */

static void lines_read(struct import *im, FILE *in, const char *path, import_line_fn *each,
                       struct err *e)
{
    struct input_line l = {0};
    while (e->n < ERR_MAX_LINES && input_next(in, path, &l, e) == 1) {
        if (l.text[strspn(l.text, " \t\r\n")] == '\0') {
            continue;
        }
        SCOPED(json_drop) cJSON *o = cJSON_ParseWithOpts(l.text, NULL, true);
        if (!cJSON_IsObject(o)) {
            (void)err_add(e, "%s:%llu: must be one JSON object", path,
                          (unsigned long long)l.number);
        } else {
            struct import_place p = {path, "", l.number, e};
            each(im, o, &p);
        }
    }
    free(l.text);
    (void)fclose(in);
}

static uint64_t chat_key(const cJSON *c, const char *key, const struct import_place *p)
{
    double id = import_number(c, key, -1.0, 9e15, p);
    OWNED char *name = xformat("%.0f", id);
    return id < 0.0 ? 0 : import_key(name);
}

/* Qwen-Bailian: as Mooncake's, with seconds, blocks of 16 tokens, and each chat's parent. */
static void bailian_line(struct import *im, const cJSON *o, const struct import_place *p)
{
    struct import_row r = {.end_ns = TIME_NEVER_NS, .line = (uint32_t)p->number};
    r.start_ns = units_ns_from_s(
        import_number(json_member(o, "timestamp"), "timestamp", 0.0, IMPORT_MAX_S, p));
    r.input = import_tokens(json_member(o, "input_length"), "input_length", 1.0, p);
    r.output = import_tokens(json_member(o, "output_length"), "output_length", 0.0, p);
    r.key = chat_key(json_member(o, "chat_id"), "chat_id", p);
    r.after = chat_key(json_member(o, "parent_chat_id"), "parent_chat_id", p);
    import_blocks(im, json_member(o, "hash_ids"), &r, p);
    import_add(im, &r);
}

/* A record of aiperf's profile_export.jsonl. */
static void aiperf_line(struct import *im, const cJSON *o, const struct import_place *p)
{
    const cJSON *meta = json_member(o, "metadata");
    const cJSON *metrics = json_member(o, "metrics");
    const cJSON *error = json_member(o, "error");
    const char *phase = json_string(meta, "benchmark_phase");
    phase = phase[0] == '\0' ? json_string(meta, "credit_phase") : phase;
    if (strcmp(phase, "warmup") == 0) {
        return;
    }
    if ((error != NULL && !cJSON_IsNull(error)) ||
        cJSON_IsTrue(json_member(meta, "was_cancelled"))) {
        im->lost.failed++;
        return;
    }
    struct import_row r = {.end_ns = TIME_NEVER_NS, .line = (uint32_t)p->number};
    const cJSON *start = json_member(meta, "request_start_ns");
    start = start == NULL ? json_member(meta, "timestamp_ns") : start;
    r.start_ns = import_ns(start, "metadata.request_start_ns", p);
    if (json_member(meta, "request_end_ns") != NULL) {
        r.end_ns = import_ns(json_member(meta, "request_end_ns"), "metadata.request_end_ns", p);
    }
    r.input = import_tokens(json_member(json_member(metrics, "input_sequence_length"), "value"),
                            "metrics.input_sequence_length", 1.0, p);
    r.output = import_tokens(json_member(json_member(metrics, "output_sequence_length"), "value"),
                             "metrics.output_sequence_length", 0.0, p);
    const char *name = json_string(meta, "x_correlation_id");
    name = name[0] == '\0' ? json_string(meta, "conversation_id") : name;
    const cJSON *turn = json_member(meta, "turn_index");
    r.key = name[0] == '\0' ? 0 : import_key(name);
    r.after = cJSON_IsNumber(turn) && turn->valuedouble > 0.0 ? r.key : 0;
    import_add(im, &r);
}

/* An answer of OpenAI's API, chat completions or responses, as clients log them or a batch contains
 * them. It has its start in whole seconds, and no end. */
static void openai_line(struct import *im, const cJSON *o, const struct import_place *p)
{
    const cJSON *body = json_member(json_member(o, "response"), "body");
    o = cJSON_IsObject(body) ? body : o;
    const cJSON *error = json_member(o, "error");
    if (error != NULL && !cJSON_IsNull(error)) {
        im->lost.failed++;
        return;
    }
    bool response = json_member(o, "created_at") != NULL;
    const char *created = response ? "created_at" : "created";
    const char *in = response ? "input_tokens" : "prompt_tokens";
    const char *out = response ? "output_tokens" : "completion_tokens";
    const char *before = json_string(o, "previous_response_id");
    const cJSON *usage = json_member(o, "usage");
    if (usage == NULL || cJSON_IsNull(usage)) { /* truncated, or part of a stream */
        im->lost.uncounted_line = im->lost.uncounted++ == 0 ? p->number : im->lost.uncounted_line;
        return;
    }
    OWNED char *details = xformat("%s_details", in);
    struct import_row r = {.end_ns = TIME_NEVER_NS, .line = (uint32_t)p->number};
    r.start_ns = units_ns_from_s(import_number(json_member(o, created), created, 0.0, 4e9, p));
    r.input = import_tokens(json_member(usage, in), in, 1.0, p);
    r.output = import_tokens(json_member(usage, out), out, 0.0, p);
    r.prefix = import_tokens_or_none(json_member(usage, details), "cached_tokens", p);
    r.key = response ? import_key(json_string(o, "id")) : 0;
    r.after = before[0] != '\0' ? import_key(before) : 0;
    import_add(im, &r);
}

/* ---- documents ---- */

static double sum_of(const cJSON *array)
{
    double sum = 0.0;
    const cJSON *c;
    cJSON_ArrayForEach (c, array) {
        sum += cJSON_IsNumber(c) ? c->valuedouble : 0.0;
    }
    return sum;
}

/* Results of vllm's benchmark (--save-detailed): an array per property. */
static void vllm_read(struct import *im, FILE *in, const char *path, struct err *e)
{
    static const char *const keys[] = {"start_times", "input_lens", "output_lens", "ttfts", "itls"};
    enum { START, INPUT, OUTPUT, TTFT, ITL, N_KEYS };
    SCOPED(json_drop) cJSON *o = import_document(in, path, e);
    const cJSON *at[N_KEYS]; /* iterators, because cJSON's access by index is linear */
    int n = cJSON_GetArraySize(json_member(o, keys[INPUT]));
    bool have = json_member(o, keys[START]) != NULL;
    for (int k = 0; k < N_KEYS; k++) {
        const cJSON *array = json_member(o, keys[k]);
        have = have && (k > OUTPUT || cJSON_GetArraySize(array) == n);
        at[k] = array == NULL ? NULL : array->child;
    }
    if (o != NULL && !have) {
        (void)err_add(
            e,
            "%s: start_times, input_lens and output_lens must be arrays of one length; "
            "without start_times (older versions of vllm, SGLang) nothing says when requests "
            "came",
            path);
    }
    for (int i = 0; i < n && e->n == 0; i++) {
        struct import_place p = {path, "request ", (unsigned long long)i, e};
        struct import_row r = {.end_ns = TIME_NEVER_NS, .line = (uint32_t)i};
        r.start_ns = units_ns_from_s(import_number(at[START], keys[START], 0.0, 4e9, &p));
        r.input = import_tokens(at[INPUT], keys[INPUT], 1.0, &p);
        r.output = import_tokens(at[OUTPUT], keys[OUTPUT], 0.0, &p);
        if (cJSON_IsNumber(at[TTFT]) && at[ITL] != NULL) {
            double answer_s = at[TTFT]->valuedouble + sum_of(at[ITL]);
            r.end_ns = r.start_ns + units_ns_from_s(fmin(answer_s, 1e9));
        }
        import_add(im, &r);
        for (int k = 0; k < N_KEYS; k++) {
            at[k] = at[k] == NULL ? NULL : at[k]->next;
        }
    }
}

/* ---- the formats ---- */

struct source {
    const char *keys[3];    /* a line's object has all; a document has one near its begin */
    const char *or_keys[3]; /* alternative: a line's object has all of these */
    import_line_fn *line;
    import_end_fn *end;    /* called after the last line, or NULL */
    uint32_t block_tokens; /* of hash_ids, as documented for the traces */
    bool rebase;           /* times start at the first request */
    char opens;            /* first character of a document */
    import_document_fn *document;
};

static bool has_all(const cJSON *o, const char *const *keys)
{
    size_t n = 0;
    while (keys[n] != NULL && json_member(o, keys[n]) != NULL) {
        n++;
    }
    return n > 0 && keys[n] == NULL;
}

static bool json_is(const struct import_format *f, const cJSON *first, const char *text)
{
    const struct source *s = f->source;
    if (s->line != NULL) {
        return has_all(first, s->keys) || has_all(first, s->or_keys);
    }
    bool has = false;
    for (size_t n = 0; s->keys[n] != NULL; n++) {
        has = has || strstr(text, s->keys[n]) != NULL;
    }
    return has && text[0] == s->opens;
}

static void json_read(struct import *im, const struct import_format *f, FILE *in, const char *path,
                      struct err *e)
{
    const struct source *s = f->source;
    bool other = s->block_tokens > 0 && im->options->block_tokens > 0;
    im->block_tokens = other ? im->options->block_tokens : s->block_tokens;
    im->rebase = s->rebase;
    if (s->line != NULL) {
        lines_read(im, in, path, s->line, e);
        if (s->end != NULL && e->n == 0) {
            s->end(im, path, e);
        }
    } else {
        s->document(im, in, path, e);
    }
}

static const struct source aiperf = {
    .keys = {"metadata", "metrics"}, .line = aiperf_line, .rebase = true};
static const struct source agentic_mooncake = {
    .keys = {"\"dynamo.agentic_mooncake\""}, .opens = '{', .document = import_agentic_mooncake};
static const struct source dynamo = {.keys = {"\"dynamo.request.trace.v1\""},
                                     .opens = '{',
                                     .document = import_dynamo,
                                     .rebase = true};
static const struct source tracelab = {.keys = {"input_tokens_total", "newly_append_tokens"},
                                       .line = import_tracelab_line,
                                       .rebase = true};
static const struct source claude_code = {
    .keys = {"\"isSidechain\""}, .opens = '{', .document = import_claude_code, .rebase = true};
static const struct source copilot = {
    .keys = {"\"llm_calls\""}, .opens = '{', .document = import_copilot, .rebase = true};
static const struct source codex = {
    .keys = {"\"session_meta\""}, .opens = '{', .document = import_codex, .rebase = true};
static const struct source weka = {
    .keys = {"\"hash_id_scope\""}, .opens = '{', .document = import_weka};
static const struct source bailian = {
    .keys = {"chat_id", "input_length"}, .line = bailian_line, .block_tokens = 16};
static const struct source mooncake = {.keys = {"input_length"},
                                       .line = import_mooncake_line,
                                       .end = import_mooncake_end,
                                       .block_tokens = 512};
static const struct source genai_perf = {
    .keys = {"\"experiments\""}, .opens = '{', .document = import_genai_perf, .rebase = true};
static const struct source guidellm = {
    .keys = {"\"guidellm_version\""}, .opens = '{', .document = import_guidellm, .rebase = true};
static const struct source inference_perf = {
    .keys = {"\"start_time\""}, .opens = '[', .document = import_inference_perf, .rebase = true};
static const struct source openai = {.keys = {"object", "usage"},
                                     .or_keys = {"custom_id", "response"},
                                     .line = openai_line,
                                     .rebase = true};
static const struct source otel = {.keys = {"\"resourceSpans\"", "\"instrumentationScope\""},
                                   .opens = '{',
                                   .document = import_otel,
                                   .rebase = true};
static const struct source sharegpt = {
    .keys = {"\"conversations\"", "\"messages\""}, .opens = '[', .document = import_sharegpt};
static const struct source vllm = {
    .keys = {"\"input_lens\""}, .opens = '{', .document = vllm_read, .rebase = true};

/* The first format that recognises a file reads it; mooncake's keys are a subset of bailian's. */
const struct import_format import_json_formats[] = {
    {"agentic-mooncake", json_is, json_read, &agentic_mooncake},
    {"aiperf", json_is, json_read, &aiperf},
    {"bailian", json_is, json_read, &bailian},
    {"claude-code", json_is, json_read, &claude_code},
    {"codex", json_is, json_read, &codex},
    {"copilot", json_is, json_read, &copilot},
    {"dynamo", json_is, json_read, &dynamo},
    {"genai-perf", json_is, json_read, &genai_perf},
    {"guidellm", json_is, json_read, &guidellm},
    {"inference-perf", json_is, json_read, &inference_perf},
    {"mooncake", json_is, json_read, &mooncake},
    {"openai", json_is, json_read, &openai},
    {"otel", json_is, json_read, &otel},
    {"sharegpt", json_is, json_read, &sharegpt},
    {"tracelab", json_is, json_read, &tracelab},
    {"vllm", json_is, json_read, &vllm},
    {"weka", json_is, json_read, &weka},
    {NULL, NULL, NULL, NULL},
};
