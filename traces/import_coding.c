/* Logs of coding agents on a user's disk: Claude Code's transcripts (~/.claude/projects, a line per
 * message) and rollouts of Codex (~/.codex/sessions). Both have the tokens of every answer; texts
 * are not read. Files of a session may be concatenated. */
#include "sim/base/json.h"
#include "sim/base/rng.h"
#include "traces/import.h"
#include "traces/import_json.h"

/* ---- claude code ---- */

/* A line, to which others refer as their parent. */
struct line {
    int64_t at_ns; /* -1: no time */
    uint64_t root; /* key of the first line of its chain */
    uint64_t session;
    size_t answer; /* index of its record, or IMPORT_NONE */
    bool tool;     /* it is the result of a tool */
};

struct transcript {
    struct line *lines; /* owned */
    size_t n_lines;
    struct map places;  /* lines, by uuid */
    struct map answers; /* records, by message */
    struct map copied;  /* by session that begins with a copy: a copied line */
    struct import_records records;
};

static bool has_tool_result(const cJSON *message)
{
    const cJSON *c;
    const cJSON *content = json_member(message, "content"); /* a string, or a list of parts */
    cJSON_ArrayForEach (c, content) {
        if (import_text_is(c, "type", "tool_result")) {
            return true;
        }
    }
    return false;
}

/* The key of a line's session. A resumed or forked session begins with a copy of the first
 * session's lines, and belongs to it. */
static uint64_t claude_session(struct transcript *t, const cJSON *o, size_t known)
{
    uint64_t session = import_key(json_string(o, "sessionId"));
    size_t from = map_find(&t->copied, session);
    if (from == IMPORT_NONE && known != IMPORT_NONE && t->lines[known].session != session) {
        map_put(&t->copied, session, known);
        from = known;
    }
    return from != IMPORT_NONE ? t->lines[from].session : session;
}

/* Sets the agent: the main conversation of a session, or a subagent, which is a side chain. */
static void claude_agent(const cJSON *o, const struct line *l, struct import_record *x)
{
    const char *agent = json_string(o, "agentId");
    if (!cJSON_IsTrue(json_member(o, "isSidechain"))) {
        x->agent = l->session;
        return;
    }
    x->agent = l->session ^ rng_mix64(agent[0] != '\0' ? import_key(agent) : l->root);
    x->parent = l->session;
}

/* An answer has several lines of one message. Each repeats the prompt's tokens and has the output
 * so far. It was sent at the time of the line before its first one. */
static void claude_answer(struct import *im, const cJSON *o, const struct line *parent,
                          struct line *l, const struct import_place *p)
{
    struct transcript *t = im->kept;
    const cJSON *message = json_member(o, "message");
    const cJSON *usage = json_member(message, "usage");
    struct import_record x = {.row = {.line = (uint32_t)p->number}};
    claude_agent(o, l, &x);
    const char *id = json_string(message, "id");
    uint64_t name = rng_mix64(import_key(id)) ^ import_key(json_string(o, "requestId"));
    name ^= id[0] == '\0' ? x.agent : 0;
    uint64_t output = import_tokens_or_none(usage, "output_tokens", p);
    size_t at = map_find(&t->answers, name);
    if (at != IMPORT_NONE) {
        struct import_row *r = &t->records.v[at].row;
        r->output = output > r->output ? output : r->output;
        r->end_ns = l->at_ns > r->end_ns ? l->at_ns : r->end_ns;
        l->answer = at;
        return;
    }
    bool sent = parent != NULL && parent->at_ns >= 0 && parent->at_ns <= l->at_ns;
    im->lost.unsent += !sent;
    x.row.start_ns = sent ? parent->at_ns : l->at_ns;
    x.row.end_ns = l->at_ns;
    x.row.after_tool = parent != NULL && parent->tool;
    x.row.prefix = import_tokens_or_none(usage, "cache_read_input_tokens", p);
    x.row.input = x.row.prefix + import_tokens_or_none(usage, "input_tokens", p) +
                  import_tokens_or_none(usage, "cache_creation_input_tokens", p);
    x.row.input += x.row.input == 0;
    x.row.output = output;
    l->answer = t->records.n;
    map_put(&t->answers, name, t->records.n);
    import_record_add(&t->records, &x, json_string(message, "model"));
}

static void claude_line(struct import *im, const cJSON *o, const struct import_place *p)
{
    struct transcript *t = im->kept;
    const char *uuid = json_string(o, "uuid");
    const char *before = json_string(o, "parentUuid");
    const cJSON *message = json_member(o, "message");
    if (uuid[0] == '\0') {
        return; /* a summary or a file snapshot */
    }
    size_t known = map_find(&t->places, import_key(uuid));
    uint64_t session = claude_session(t, o, known);
    if (known != IMPORT_NONE) {
        return;
    }
    size_t at = before[0] != '\0' ? map_find(&t->places, import_key(before)) : IMPORT_NONE;
    struct line l = {.session = session,
                     .at_ns = import_timestamp_ns(json_string(o, "timestamp")),
                     .root = at != IMPORT_NONE ? t->lines[at].root : import_key(uuid),
                     .answer = IMPORT_NONE,
                     .tool = has_tool_result(message)};
    /* Hooks, reminders and skills insert lines between a tool's result and the answer, which still
     * follows the tool. */
    bool added = message == NULL || cJSON_IsTrue(json_member(o, "isMeta"));
    l.tool = l.tool || (added && at != IMPORT_NONE && t->lines[at].tool);
    bool answer = import_text_is(o, "type", "assistant") && json_member(message, "usage") != NULL;
    bool made_up = import_text_is(message, "model", "<synthetic>") ||
                   cJSON_IsTrue(json_member(o, "isApiErrorMessage"));
    if (answer && made_up) {
        im->lost.failed++;
    } else if (answer && l.at_ns < 0) {
        im->lost.untimed++;
    } else if (answer) {
        claude_answer(im, o, at != IMPORT_NONE ? &t->lines[at] : NULL, &l, p);
    }
    t->lines = xgrow(t->lines, t->n_lines, sizeof *t->lines);
    map_put(&t->places, import_key(uuid), t->n_lines);
    t->lines[t->n_lines++] = l;
}

void import_claude_code(struct import *im, FILE *in, const char *path, struct err *e)
{
    struct transcript t = {.lines = NULL};
    im->kept = &t;
    import_values(im, in, path, claude_line, e);
    im->kept = NULL;
    if (e->n == 0 && t.records.n > 0) {
        import_records_build(im, &t.records);
    } else if (e->n == 0) {
        (void)err_add(e, "%s: no answer says how many tokens it took (message.usage)", path);
    }
    import_records_fini(&t.records);
    map_fini(&t.places);
    map_fini(&t.answers);
    map_fini(&t.copied);
    free(t.lines);
}

/* ---- codex ---- */

struct rollout {
    struct import_records records;
    uint64_t thread, parent, forked; /* keys; `forked`: whose history is copied, or `parent` */
    struct map threads, counts;      /* seen so far */
    bool copies;                     /* no own count yet: lines may be copies */
    const char *model;
    int64_t sent_ns;     /* last input of the current request; -1: none */
    int64_t answer_ns;   /* first part of the answer; -1: none yet */
    double total_tokens; /* of the thread at the last count; -1: none */
    bool tool;           /* the last input is the result of a tool */
};

/* Starts a thread. A spawned or forked thread may begin with a copy of the other's history; the
 * head in that copy starts no thread. */
static void codex_thread(struct rollout *r, const cJSON *meta)
{
    const char *id = json_string(meta, "id");
    id = id[0] != '\0' ? id : json_string(meta, "session_id");
    uint64_t thread = id[0] != '\0' ? import_key(id) : 0;
    if (r->copies && (thread == r->parent || thread == r->forked ||
                      map_find(&r->threads, thread) != IMPORT_NONE)) {
        return;
    }
    const char *forked = json_string(meta, "forked_from_id");
    const char *parent = json_string(meta, "parent_thread_id");
    const cJSON *spawn =
        json_member(json_member(json_member(meta, "source"), "subagent"), "thread_spawn");
    parent = parent[0] != '\0' ? parent : json_string(spawn, "parent_thread_id");
    r->thread = thread;
    r->parent = parent[0] != '\0' ? import_key(parent) : 0;
    r->forked = forked[0] != '\0' ? import_key(forked) : r->parent;
    r->copies = r->forked != 0;
    if (thread != 0) {
        map_put(&r->threads, thread, 0);
    }
    r->sent_ns = r->answer_ns = -1;
    r->total_tokens = -1.0;
}

/* Records the time of an input of the model, or of the first part of its answer. */
static void codex_item(struct rollout *r, const cJSON *item, int64_t at_ns)
{
    const char *type = json_string(item, "type");
    bool input = text_ends(type, "_output") || strcmp(type, "user_message") == 0 ||
                 (strcmp(type, "message") == 0 && !import_text_is(item, "role", "assistant"));
    bool answer = text_ends(type, "_call") || strcmp(type, "reasoning") == 0 ||
                  (strcmp(type, "message") == 0 && import_text_is(item, "role", "assistant"));
    if (at_ns >= 0 && answer && r->answer_ns < 0) {
        r->answer_ns = at_ns;
    } else if (at_ns >= 0 && input && r->answer_ns < 0) {
        r->sent_ns = at_ns;
        r->tool = text_ends(type, "_output");
    }
}

/* A count of tokens ends a request. Counts are repeated if only limits of the account changed, and
 * copied with the history of another thread. */
static void codex_count(struct import *im, struct rollout *r, const cJSON *info, int64_t at_ns,
                        const struct import_place *p)
{
    const cJSON *usage = json_member(info, "last_token_usage");
    const cJSON *total = json_member(json_member(info, "total_token_usage"), "total_tokens");
    if (usage == NULL || cJSON_IsNull(usage) ||
        (cJSON_IsNumber(total) && total->valuedouble == r->total_tokens)) {
        return;
    }
    r->total_tokens = cJSON_IsNumber(total) ? total->valuedouble : -1.0;
    OWNED char *text = json_text(info, false);
    uint64_t count = import_key(text);
    r->copies = r->copies && map_find(&r->counts, count) != IMPORT_NONE;
    if (r->copies) {
        r->sent_ns = r->answer_ns = -1;
        return;
    }
    map_put(&r->counts, count, 0);
    if (at_ns < 0) {
        im->lost.untimed++;
        return;
    }
    struct import_record x = {.row = {.line = (uint32_t)p->number, .end_ns = at_ns},
                              .agent = r->thread,
                              .parent = r->parent};
    x.row.input = import_tokens_or_none(usage, "input_tokens", p);
    x.row.input += x.row.input == 0;
    x.row.prefix = import_tokens_or_none(usage, "cached_input_tokens", p);
    x.row.output = import_tokens_or_none(usage, "output_tokens", p);
    int64_t sent_ns = r->sent_ns >= 0 ? r->sent_ns : r->answer_ns >= 0 ? r->answer_ns : at_ns;
    im->lost.unsent += r->sent_ns < 0;
    x.row.start_ns = sent_ns < at_ns ? sent_ns : at_ns;
    x.row.after_tool = r->sent_ns >= 0 && r->tool;
    import_record_add(&r->records, &x, r->model != NULL ? r->model : "");
    r->sent_ns = r->answer_ns = -1;
}

static void codex_line(struct import *im, const cJSON *o, const struct import_place *p)
{
    struct rollout *r = im->kept;
    const cJSON *payload = json_member(o, "payload");
    int64_t at_ns = import_timestamp_ns(json_string(o, "timestamp"));
    if (import_text_is(o, "type", "session_meta")) {
        codex_thread(r, payload);
    } else if (import_text_is(o, "type", "turn_context")) {
        r->model = xkeep(xstrdup(json_string(payload, "model")));
    } else if (r->copies && import_text_is(payload, "type", "task_started")) {
        r->sent_ns = r->answer_ns = -1; /* times of copied lines */
    } else if (import_text_is(payload, "type", "token_count")) {
        codex_count(im, r, json_member(payload, "info"), at_ns, p);
    } else {
        codex_item(r, payload, at_ns);
    }
}

void import_codex(struct import *im, FILE *in, const char *path, struct err *e)
{
    struct rollout r = {.sent_ns = -1, .answer_ns = -1, .total_tokens = -1.0};
    im->kept = &r;
    import_values(im, in, path, codex_line, e);
    im->kept = NULL;
    if (e->n == 0 && r.records.n > 0) {
        import_records_build(im, &r.records);
    } else if (e->n == 0) {
        (void)err_add(e, "%s: no answer says how many tokens it took (token_count)", path);
    }
    import_records_fini(&r.records);
    map_fini(&r.threads);
    map_fini(&r.counts);
}
