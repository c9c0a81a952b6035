/* Results of benchmarks with one record per request: the lifecycle metrics of inference-perf, and
 * the benchmarks.json of guidellm. Both have seconds. */
#include "sim/base/json.h"
#include "traces/import.h"
#include "traces/import_json.h"

static int64_t seconds_ns(const cJSON *o, const char *key, const struct import_place *p)
{
    return units_ns_from_s(import_number(json_member(o, key), key, 0.0, 4e9, p));
}

/* The times of a request, from its record. */
static struct import_row timed(const cJSON *o, const char *start, const char *end,
                               const struct import_place *p)
{
    struct import_row r = {.line = (uint32_t)p->number};
    r.start_ns = seconds_ns(o, start, p);
    r.end_ns = seconds_ns(o, end, p);
    return r;
}

/* ---- inference-perf ---- */

/* The server's count of a length if present, else the client's. */
static const cJSON *said(const cJSON *usage, const char *key, const cJSON *counted)
{
    const cJSON *c = json_member(usage, key);
    return cJSON_IsNumber(c) ? c : counted;
}

void import_inference_perf(struct import *im, FILE *in, const char *path, struct err *e)
{
    SCOPED(json_drop) cJSON *all = import_document(in, path, e);
    struct import_place p = {path, "request ", 0, e};
    const cJSON *o;
    cJSON_ArrayForEach (o, all) {
        const cJSON *error = json_member(o, "error");
        const cJSON *info = json_member(o, "info");
        const cJSON *response = json_member(info, "response_metrics");
        const cJSON *usage = json_member(response, "server_usage");
        const cJSON *out = json_member(response, "output_tokens");
        if (e->n > 0) {
            return;
        }
        if (error != NULL && !cJSON_IsNull(error)) {
            im->lost.failed++;
        } else if (info == NULL) { /* start_time alone is too common a key */
            (void)err_add(e, "%s:request %llu: info: missing, so it is no result of inference-perf",
                          path, (unsigned long long)p.number);
        } else {
            struct import_row r = timed(o, "start_time", "end_time", &p);
            r.input = import_tokens(said(usage, "prompt_tokens", json_member(info, "input_tokens")),
                                    "info.input_tokens", 1.0, &p);
            out = out != NULL ? out : json_member(info, "output_tokens"); /* versions before 2026 */
            r.output = import_tokens(said(usage, "completion_tokens", out),
                                     "info.response_metrics.output_tokens", 0.0, &p);
            import_add(im, &r);
        }
        p.number++;
    }
}

/* ---- guidellm ---- */

static void guidellm_request(struct import *im, const cJSON *o, const struct import_place *p)
{
    const cJSON *info = json_member(o, "info");
    const cJSON *turn = json_member(info, "turn_index");
    const char *name = json_string(info, "conversation_id");
    struct import_row r = timed(o, "request_start_time", "request_end_time", p);
    r.input = import_tokens(json_member(o, "prompt_tokens"), "prompt_tokens", 1.0, p);
    r.output = import_tokens_or_none(o, "output_tokens", p);
    r.prefix = import_tokens_or_none(o, "cached_tokens", p);
    r.key = name[0] == '\0' ? 0 : import_key(name);
    r.after = cJSON_IsNumber(turn) && turn->valuedouble > 0.0 ? r.key : 0;
    import_add(im, &r);
}

/* Its benchmarks run one after another, so their times form one long run. */
void import_guidellm(struct import *im, FILE *in, const char *path, struct err *e)
{
    SCOPED(json_drop) cJSON *all = import_document(in, path, e);
    struct import_place p = {path, "request ", 0, e};
    const cJSON *benchmark;
    cJSON_ArrayForEach (benchmark, json_member(all, "benchmarks")) {
        const cJSON *requests = json_member(benchmark, "requests");
        const cJSON *o;
        cJSON_ArrayForEach (o, json_member(requests, "successful")) {
            if (e->n == 0) {
                guidellm_request(im, o, &p);
            }
            p.number++;
        }
        im->lost.failed += (size_t)cJSON_GetArraySize(json_member(requests, "errored")) +
                           (size_t)cJSON_GetArraySize(json_member(requests, "incomplete"));
    }
}
