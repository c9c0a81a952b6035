/* Logs of agents: Dynamo's request trace, whose trajectories have parents, TraceLab's rounds of
 * coding sessions, and Azure's sessions of GitHub Copilot. */
#include "sim/base/json.h"
#include "sim/base/words.h"
#include "traces/import.h"
#include "traces/import_json.h"

/* ---- dynamo ---- */

static uint64_t text_key(const cJSON *o, const char *key, const char *otherwise)
{
    const char *name = json_string(o, key);
    name = name[0] == '\0' ? json_string(o, otherwise) : name;
    return name[0] == '\0' ? 0 : import_key(name);
}

static int64_t ms_ns(const cJSON *o, const char *key, const struct import_place *p)
{
    return units_ns_from_ms(import_number(json_member(o, key), key, 0.0, 4e12, p));
}

static void dynamo_line(struct import *im, const cJSON *o, const struct import_place *p)
{
    o = json_member(o, "event") != NULL ? json_member(o, "event") : o;
    if (strcmp(json_string(o, "event_type"), "request_end") != 0) {
        return;
    }
    const cJSON *request = json_member(o, "request");
    const cJSON *replay = json_member(request, "replay");
    const cJSON *context = json_member(o, "agent_context");
    const cJSON *input = json_member(replay, "input_length");
    input = input != NULL ? input : json_member(request, "input_tokens");
    struct import_record x = {.row = {.line = (uint32_t)p->number}};
    x.row.input = import_tokens(input, "request.input_tokens", 1.0, p);
    x.row.output =
        import_tokens(json_member(request, "output_tokens"), "request.output_tokens", 0.0, p);
    x.row.end_ns = ms_ns(o, "event_time_unix_ms", p);
    x.row.start_ns = x.row.end_ns;
    if (json_member(request, "request_received_ms") != NULL) {
        x.row.start_ns = ms_ns(request, "request_received_ms", p);
    } else if (json_member(request, "total_time_ms") != NULL) {
        x.row.start_ns -= ms_ns(request, "total_time_ms", p);
    }
    x.row.end_ns = x.row.end_ns > x.row.start_ns ? x.row.end_ns : x.row.start_ns;
    x.agent = text_key(context, "trajectory_id", "session_id");
    x.parent = text_key(context, "parent_trajectory_id", "parent_session_id");
    if (replay != NULL) {
        im->block_tokens = (uint32_t)import_tokens(json_member(replay, "trace_block_size"),
                                                   "request.replay.trace_block_size", 1.0, p);
        import_blocks(im, json_member(replay, "input_sequence_hashes"), &x.row, p);
    }
    import_record_add(im->kept, &x, json_string(request, "model"));
}

void import_dynamo(struct import *im, FILE *in, const char *path, struct err *e)
{
    SCOPED(import_records_fini) struct import_records all = {0};
    im->kept = &all;
    import_values(im, in, path, dynamo_line, e);
    im->kept = NULL;
    if (e->n == 0 && all.n > 0) {
        import_records_build(im, &all);
        import_sources(im, 0);
    }
}

/* ---- tracelab ---- */

static const char *const of_answers[] = {"text", "reasoning", "tool_call", "usage_report", NULL};

/* A round is sent at its last input, and ends with the last part of its answer. */
void import_tracelab_line(struct import *im, const cJSON *o, const struct import_place *p)
{
    struct import_row r = {.start_ns = -1, .end_ns = -1, .line = (uint32_t)p->number};
    int64_t first_ns = -1; /* first part of the answer */
    const cJSON *event;
    cJSON_ArrayForEach (event, json_member(o, "timing_events")) {
        int64_t at_ns = import_timestamp_ns(json_string(event, "timestamp"));
        bool answer = words_find(of_answers, json_string(event, "event_type")) >= 0;
        if (at_ns >= 0 && answer) {
            first_ns = first_ns < 0 || at_ns < first_ns ? at_ns : first_ns;
            r.end_ns = at_ns > r.end_ns ? at_ns : r.end_ns;
        } else if (at_ns >= 0 && at_ns > r.start_ns) {
            r.start_ns = at_ns;
        }
    }
    r.start_ns = r.start_ns < 0 || (first_ns >= 0 && r.start_ns > first_ns) ? first_ns : r.start_ns;
    if (r.start_ns < 0) {
        im->lost.untimed++;
        return;
    }
    r.end_ns = r.end_ns < 0 ? TIME_NEVER_NS : r.end_ns;
    r.input = import_tokens(json_member(o, "input_tokens_total"), "input_tokens_total", 0.0, p);
    r.input += r.input == 0;
    r.prefix = import_tokens(json_member(o, "prefix_tokens"), "prefix_tokens", 0.0, p);
    r.output = import_tokens(json_member(o, "output_tokens"), "output_tokens", 0.0, p);
    OWNED char *name = xformat("%s %s %s", json_string(o, "project"),
                               json_string(o, "session_file"), json_string(o, "session_id"));
    r.after = r.key = import_key(name);
    import_add(im, &r);
}

/* ---- copilot ---- */

/* A call's timestamp is its end. The data set does not say so, and its own loader adds the
 * duration. But only with ends do the calls of a session not overlap. */
static void copilot_call(struct import *im, const cJSON *o, uint64_t session,
                         const struct import_place *p)
{
    const cJSON *tokens = json_member(o, "tokens");
    int64_t end_ns = import_timestamp_ns(json_string(o, "timestamp"));
    struct import_record x = {.row = {.line = (uint32_t)p->number, .end_ns = end_ns},
                              .agent = session};
    x.row.input = import_tokens_or_none(tokens, "prompt", p);
    if (x.row.input == 0) { /* tokens of helpers are not counted */
        im->lost.failed++;
        return;
    }
    if (end_ns < 0) {
        im->lost.untimed++;
        return;
    }
    bool timed = cJSON_IsNumber(json_member(o, "duration_ms"));
    im->lost.unsent += !timed;
    x.row.start_ns = end_ns - (timed ? ms_ns(o, "duration_ms", p) : 0);
    x.row.output = import_tokens_or_none(tokens, "completion", p);
    x.row.prefix = import_tokens_or_none(tokens, "cached", p);
    x.row.after_tool = import_text_is(o, "initiator_type", "agent");
    import_record_add(im->kept, &x, json_string(o, "model"));
}

static void copilot_session(struct import *im, const cJSON *o, const struct import_place *p)
{
    const cJSON *turn;
    const cJSON *call;
    cJSON_ArrayForEach (turn, json_member(o, "turns")) {
        cJSON_ArrayForEach (call, json_member(turn, "llm_calls")) {
            copilot_call(im, call, import_key(json_string(o, "session_id")), p);
        }
    }
}

void import_copilot(struct import *im, FILE *in, const char *path, struct err *e)
{
    SCOPED(import_records_fini) struct import_records all = {0};
    im->kept = &all;
    import_values(im, in, path, copilot_session, e);
    im->kept = NULL;
    if (e->n == 0 && all.n > 0) {
        import_records_build(im, &all);
    } else if (e->n == 0) {
        (void)err_add(e, "%s: no call says how many tokens it took (tokens.prompt)", path);
    }
}
