/* Lengths of texts, for sources without token counts. */
#include "sim/base/json.h"
#include "sim/base/rng.h"
#include "sim/base/words.h"
#include "traces/import_json.h"

static uint64_t characters(const char *s)
{
    uint64_t n = 0;
    for (; *s != '\0'; s++) {
        n += ((unsigned char)*s & 0xc0) != 0x80; /* UTF-8: not a continuation byte */
    }
    return n;
}

static const char *response_of(const cJSON *r)
{
    return cJSON_IsString(r) ? r->valuestring : json_string(r, "response");
}

/* Characters in a request's payload, which is JSON in a string. */
static uint64_t sent(const char *payload)
{
    SCOPED(json_drop) cJSON *o = cJSON_Parse(payload);
    uint64_t n = characters(json_string(o, "prompt"));
    const cJSON *m;
    const cJSON *part;
    cJSON_ArrayForEach (m, json_member(o, "messages")) {
        n += characters(json_string(m, "content"));
        cJSON_ArrayForEach (part, json_member(m, "content")) {
            n += characters(json_string(part, "text"));
        }
    }
    return n;
}

/* Counts the pieces of the answer in streamed responses (strings, or objects with a string
 * "response"). Each nonempty piece is a token. */
static uint64_t pieces(const cJSON *responses)
{
    static const char *const keys[] = {"\"content\":", "\"text\":"};
    uint64_t n = 0;
    const cJSON *r;
    cJSON_ArrayForEach (r, responses) {
        for (int k = 0; k < 2; k++) {
            const char *at = response_of(r);
            while ((at = strstr(at, keys[k])) != NULL) {
                at += strlen(keys[k]);
                at += strspn(at, " ");
                /* The first and last pieces of a stream are empty. */
                n += at[0] == '"' && at[1] != '"';
            }
        }
    }
    return n;
}

/* The last number after "key": in the responses, or NAN. */
static double usage(const cJSON *responses, const char *key)
{
    double found = (double)NAN;
    const cJSON *r;
    cJSON_ArrayForEach (r, responses) {
        const char *text = response_of(r);
        const char *at = strstr(text, key);
        if (at != NULL) {
            at += strlen(key);
            at += strspn(at, "\": ");
            found = at[0] >= '0' && at[0] <= '9' ? strtod(at, NULL) : found;
        }
    }
    return found;
}

/* Reads a request of genai-perf. Its lengths are in the server's usage. If that was not requested
 * (stream_options), counts the pieces of the answer and divides the prompt's characters. */
static void genai_perf_request(struct import *im, const cJSON *request,
                               const struct import_place *p)
{
    const cJSON *responses = json_member(request, "response_outputs");
    const cJSON *times = json_member(request, "response_timestamps");
    int n_times = cJSON_GetArraySize(times);
    double input = usage(responses, "prompt_tokens");
    double output = usage(responses, "completion_tokens");
    if (!isfinite(input)) {
        input = ceil((double)sent(json_string(json_member(request, "request_inputs"), "payload")) /
                     im->options->chars_per_token);
        output = (double)pieces(responses);
        im->lost.estimated = true;
    }
    if (input < 1.0 || p->e->n >= ERR_MAX_LINES) {
        import_refuse(
            p, "response_outputs",
            "no usage.prompt_tokens in the server's responses (stream_options include_usage) "
            "and no text in request_inputs, so nothing says how long the prompt was");
        return;
    }
    struct import_row r = {.end_ns = TIME_NEVER_NS, .line = (uint32_t)p->number};
    r.start_ns = import_ns(json_member(request, "timestamp"), "timestamp", p);
    const cJSON *last = cJSON_GetArrayItem(times, n_times - 1);
    if (cJSON_IsNumber(last) && isfinite(last->valuedouble)) {
        r.end_ns = (int64_t)fmin(last->valuedouble, IMPORT_MAX_NS);
    }
    r.input = (uint64_t)fmin(input, IMPORT_MAX_TOKENS);
    r.output = isfinite(output) ? (uint64_t)fmin(output, IMPORT_MAX_TOKENS)
                                : (uint64_t)n_times; /* one token per response */
    import_add(im, &r);
}

void import_genai_perf(struct import *im, FILE *in, const char *path, struct err *e)
{
    SCOPED(json_drop) cJSON *o = import_document(in, path, e);
    unsigned long long n = 0;
    const cJSON *experiment;
    const cJSON *request;
    cJSON_ArrayForEach (experiment, json_member(o, "experiments")) {
        cJSON_ArrayForEach (request, json_member(experiment, "requests")) {
            struct import_place p = {path, "request ", n++, e};
            genai_perf_request(im, request, &p);
            if (e->n > 0) {
                break;
            }
        }
    }
}

/* Names of the answering side: ShareGPT has some conversations with models not from OpenAI. */
static const char *const answerers[] = {"gpt", "assistant", "chatgpt", "bing", "bard", NULL};

/* Reads a conversation: every answer is a turn, whose prompt is all that was said before. */
static void conversation(struct import *im, const cJSON *messages, int64_t start_ns, uint64_t key,
                         unsigned long long number)
{
    const struct trace_import_options *o = im->options;
    uint64_t before = 0;
    bool asked = false;
    struct import_row r = {.start_ns = start_ns, .key = key, .line = (uint32_t)number};
    const cJSON *m;
    cJSON_ArrayForEach (m, messages) {
        const char *who =
            json_string(m, "from")[0] != '\0' ? json_string(m, "from") : json_string(m, "role");
        const char *what =
            json_member(m, "value") != NULL ? json_string(m, "value") : json_string(m, "content");
        uint64_t tokens = (uint64_t)ceil((double)characters(what) / o->chars_per_token);
        tokens = tokens < IMPORT_MAX_TOKENS ? tokens : IMPORT_MAX_TOKENS;
        bool answer = words_find(answerers, who) >= 0;
        if (answer && asked && before > 0 && before < IMPORT_MAX_TOKENS) {
            r.input = before;
            r.output = tokens;
            r.end_ns = r.start_ns;
            import_add(im, &r);
            r.start_ns += units_ns_from_s(o->think_s);
            r.after = key;
            asked = false;
        }
        asked = asked || !answer;
        before += tokens;
    }
}

void import_sharegpt(struct import *im, FILE *in, const char *path, struct err *e)
{
    if (!(im->options->rate_per_min > 0.0)) {
        (void)err_add(e,
                      "%s: sharegpt has no times: --rate-per-min says how many conversations "
                      "begin in a minute",
                      path);
        (void)fclose(in);
        return;
    }
    SCOPED(json_drop) cJSON *o = import_document(in, path, e);
    struct rng r;
    rng_init(&r, rng_mix64(im->options->seed));
    double t_s = 0.0;
    unsigned long long n = 0;
    const cJSON *c;
    cJSON_ArrayForEach (c, o) {
        const cJSON *messages = json_member(c, "conversations");
        messages = messages == NULL ? json_member(c, "messages") : messages;
        OWNED char *name = xformat("%llu", n++);
        t_s += rng_exponential(&r, 60.0 / im->options->rate_per_min);
        if (t_s > IMPORT_MAX_S) {
            (void)err_add(e, "%s: conversation %s begins after %g s", path, name, IMPORT_MAX_S);
            break;
        }
        conversation(im, messages, units_ns_from_s(t_s), import_key(name), n);
    }
    im->history = im->lost.estimated = im->lost.no_times = true;
}
