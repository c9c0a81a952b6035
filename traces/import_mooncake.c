/* Mooncake's lines, {"timestamp": ms, "input_length": tokens, "output_length": tokens, "hash_ids":
 * [...]}. A hash identifies a block and all before it. AIPerf and Dynamo add session_id and
 * delay. */
#include "sim/base/json.h"
#include "traces/import.h"
#include "traces/import_json.h"

/* The member with either name; NULL if absent or null. */
static const cJSON *either(const cJSON *o, const char *name, const char *other)
{
    const cJSON *c = json_member(o, name);
    c = c != NULL ? c : json_member(o, other);
    return cJSON_IsNull(c) ? NULL : c;
}

static int64_t ms_ns(const cJSON *c, const char *key, const struct import_place *p)
{
    return units_ns_from_ms(import_number(c, key, 0.0, IMPORT_MAX_S * 1e3, p));
}

/* The key of the line's session; 0 without one. */
static uint64_t session_of(const cJSON *o, const struct import_place *p)
{
    const cJSON *c = either(o, "session_id", "session_id");
    if (c != NULL && !cJSON_IsString(c)) {
        import_refuse(p, "session_id", "must be a text");
    }
    return cJSON_IsString(c) && c->valuestring[0] != '\0' ? import_key(c->valuestring) : 0;
}

/* Sets the start of a first turn, or of a request without a session. */
static void begins(struct import *im, const cJSON *at, const cJSON *delay, struct import_row *r,
                   const struct import_place *p)
{
    bool draws = at == NULL && im->options->rate_per_min > 0.0;
    if (im->n_jobs++ > 0 && draws != im->lost.no_times) {
        import_refuse(p, "timestamp", "must be there where a session begins, or nowhere");
    } else if (at == NULL && !draws) {
        import_refuse(p, "timestamp",
                      "is missing; without any, --rate-per-min draws the beginnings");
    }
    if (delay != NULL && ms_ns(delay, "delay", p) > 0) {
        import_refuse(p, "delay", "no turn before it in its session");
    }
    im->lost.no_times = draws;
    r->start_ns = draws        ? import_begin(im, im->n_jobs - 1, p)
                  : at != NULL ? ms_ns(at, "timestamp", p)
                               : 0;
}

/* Sets the start of a later turn: `delay` after the previous answer, or its timestamp. Without
 * either it follows at once. */
static void follows(struct import *im, size_t last, const cJSON *at, const cJSON *delay,
                    struct import_row *r, const struct import_place *p)
{
    struct import_row *before = &im->rows[last];
    size_t errors = p->e->n;
    int64_t delay_ns = delay != NULL ? ms_ns(delay, "delay", p) : 0;
    r->start_ns = at != NULL ? ms_ns(at, "timestamp", p) : before->start_ns + delay_ns;
    r->after = r->key;
    if (p->e->n > errors) {
        return;
    }
    if (r->start_ns - (at != NULL ? delay_ns : 0) < before->start_ns) {
        import_refuse(p, delay != NULL ? "delay" : "timestamp", "the turn before it begins later");
    } else if (r->start_ns > units_ns_from_s(IMPORT_MAX_S)) {
        import_refuse(p, "delay", "its session lasts too long");
    }
    if (at == NULL || delay != NULL) { /* without an end time, answers take no time */
        before->end_ns = r->start_ns - delay_ns;
    }
}

void import_mooncake_line(struct import *im, const cJSON *o, const struct import_place *p)
{
    const cJSON *at = either(o, "timestamp", "created_time");
    const cJSON *delay = either(o, "delay", "delay_ms");
    struct import_row r = {
        .end_ns = TIME_NEVER_NS, .line = (uint32_t)p->number, .key = session_of(o, p)};
    size_t last = r.key != 0 ? map_find(&im->names, r.key) : IMPORT_NONE;
    r.input = import_tokens(either(o, "input_length", "input_tokens"), "input_length",
                            r.key != 0 ? 1.0 : 0.0, p);
    r.output = import_tokens(either(o, "output_length", "output_tokens"), "output_length",
                             r.key != 0 ? 1.0 : 0.0, p);
    if (last == IMPORT_NONE) {
        begins(im, at, delay, &r, p);
    } else {
        follows(im, last, at, delay, &r, p);
    }
    import_blocks(im, json_member(o, "hash_ids"), &r, p);
    if (r.n_blocks > 0 && (r.n_blocks - 1) * im->block_tokens >= r.input) {
        (void)err_add(p->e,
                      "%s:%llu: hash_ids: %zu blocks of %" PRIu32 " tokens are more than the "
                      "prompt; --block-tokens says how long one is",
                      p->path, p->number, r.n_blocks, im->block_tokens);
    }
    im->lost.unread = json_member(o, "priority") != NULL ? "priority" : im->lost.unread;
    if (r.key != 0) {
        map_put(&im->names, r.key, im->n);
    }
    import_add(im, &r);
}

/* Whether some turn begins with the first block of its previous turn: prompts are complete then. */
static bool prompts_are_whole(const struct import *im, const size_t *before)
{
    bool whole = false;
    for (size_t i = 0; i < im->n; i++) {
        const struct import_row *r = &im->rows[i];
        const struct import_row *b = before[i] != IMPORT_NONE ? &im->rows[before[i]] : NULL;
        whole = whole || (b != NULL && b->n_blocks > 0 && r->n_blocks > 0 &&
                          im->blocks[b->block] == im->blocks[r->block]);
    }
    return whole;
}

/* Dynamo's turns have complete prompts. AIPerf's have only the new part, to which the conversation
 * so far is added. */
void import_mooncake_end(struct import *im, const char *path, struct err *e)
{
    SCOPED(map_fini) struct map turns = {0};
    OWNED size_t *before = xmalloc((im->n + 1) * sizeof *before);
    for (size_t i = 0; i < im->n; i++) {
        const struct import_row *r = &im->rows[i];
        before[i] = r->after != 0 ? map_find(&turns, r->after) : IMPORT_NONE;
        if (r->key != 0) {
            map_put(&turns, r->key, i);
        }
    }
    im->grows = !prompts_are_whole(im, before);
    for (size_t i = 0; i < im->n && im->grows; i++) {
        struct import_row *r = &im->rows[i];
        if (before[i] == IMPORT_NONE) {
            continue;
        }
        r->prefix = im->rows[before[i]].input + im->rows[before[i]].output;
        r->input += r->prefix;
        r->n_blocks = 0; /* they are of the new part, so no prompt begins with them */
        im->lost.input_tokens += r->prefix;
        im->lost.grown++;
        if (r->input > IMPORT_MAX_TOKENS) {
            (void)err_add(e,
                          "%s:%" PRIu32 ": input_length: more than %u tokens with the turns before",
                          path, r->line, IMPORT_MAX_TOKENS);
            return;
        }
    }
}
