/* Traces of coding agents with dependencies: Weka's sessions with nested subagents, and Mooncake's
 * agentic format. */
#include "sim/base/json.h"
#include "sim/base/rng.h"
#include "traces/import.h"
#include "traces/import_json.h"

/* ---- weka ---- */

/* A subagent, for which its parent's next request may wait. */
struct child {
    size_t first, n; /* rows */
    struct import_sent last;
    bool waited; /* handled by a later request of the parent, or asynchronous */
};

/* The requests of one agent, in order, and its subagents. */
struct family {
    struct import_stream requests;
    struct child *children; /* owned */
    size_t n_children;
};

/* State while a session is read. */
struct weka {
    struct import *im;
    const struct import_place *p;
    const char *model;
    uint32_t job;
    uint64_t scope;
    int64_t begin_ns;
    bool relative; /* nested times are relative to their subagent's start */
};

static int64_t seconds_of(const struct weka *w, const cJSON *o, const char *key)
{
    return units_ns_from_s(import_number(json_member(o, key), key, 0.0, IMPORT_MAX_S, w->p));
}

static void in_background(struct import *im, const struct child *c)
{
    for (size_t row = c->first; row < c->first + c->n; row++) {
        im->nodes[row].background = true;
        im->rows[row].cls = REQUEST_CLASS_PROACTIVE;
    }
}

/* Adds edges from the subagents that have ended. Those still running are in the background, because
 * their parent did not wait. Returns the latest of their ends and `end_ns`. */
static int64_t join(struct import *im, struct family *s, struct import_node *node, int64_t start_ns,
                    int64_t end_ns)
{
    for (size_t i = 0; i < s->n_children; i++) {
        struct child *c = &s->children[i];
        if (!c->waited && c->last.end_ns > start_ns) {
            in_background(im, c);
        } else if (!c->waited) {
            import_edge_add(node, c->last.row, 0);
            end_ns = c->last.end_ns > end_ns ? c->last.end_ns : end_ns;
        }
        c->waited = true;
    }
    return end_ns;
}

static void request_read(struct weka *w, const cJSON *o, int64_t base_ns, struct family *s,
                         const struct import_sent *origin)
{
    struct import *im = w->im;
    struct import_row r = {.end_ns = TIME_NEVER_NS, .line = (uint32_t)w->p->number};
    struct import_node node = {
        .before = IMPORT_NONE, .source = IMPORT_NONE, .scope = w->scope, .job = w->job};
    r.start_ns = w->begin_ns + base_ns + seconds_of(w, o, "t");
    r.input = import_tokens(json_member(o, "in"), "in", 0.0, w->p);
    r.input += r.input == 0;
    r.output = import_tokens(json_member(o, "out"), "out", 0.0, w->p);
    import_blocks(im, json_member(o, "hash_ids"), &r, w->p);
    bool known = cJSON_IsNumber(json_member(o, "api_time"));
    int64_t end_ns = r.start_ns + (known ? seconds_of(w, o, "api_time") : 0);
    w->model = w->model == NULL ? json_string(o, "model") : w->model;
    im->lost.other_model += !import_text_is(o, "model", w->model);
    int64_t from_ns = import_place(im, &s->requests, &r, origin, &node);
    node.gap_ns = r.start_ns - join(im, s, &node, r.start_ns, from_ns);
    import_stream_add(im, &s->requests, &r, &node, end_ns, known);
}

/* Reads an agent's requests. Returns the request that ended last; row IMPORT_NONE without any. */
static struct import_sent stream_read(struct weka *w, const cJSON *requests, int64_t base_ns,
                                      const struct import_sent *origin, int depth)
{
    struct family s = {0};
    const cJSON *o;
    cJSON_ArrayForEach (o, requests) {
        if (w->p->e->n > 0 || depth > 16) {
            break;
        }
        if (!import_text_is(o, "type", "subagent")) {
            request_read(w, o, base_ns, &s, origin);
            continue;
        }
        int64_t t_ns = base_ns + seconds_of(w, o, "t");
        const struct import_sent *spawn = import_last_before(&s.requests, w->begin_ns + t_ns);
        struct import_sent from = spawn != NULL    ? *spawn
                                  : origin != NULL ? *origin
                                                   : (struct import_sent){0};
        struct child c = {.first = w->im->n};
        c.last = stream_read(w, json_member(o, "requests"), w->relative ? t_ns : base_ns,
                             spawn != NULL || origin != NULL ? &from : NULL, depth + 1);
        c.n = w->im->n - c.first;
        c.waited = c.n == 0 || import_text_is(o, "status", "async_launched");
        if (c.n > 0 && c.waited) {
            in_background(w->im, &c);
        }
        LIST_ADD(s.children, s.n_children, c);
    }
    const struct import_sent *last = import_last_before(&s.requests, INT64_MAX);
    struct import_sent result = last != NULL ? *last : (struct import_sent){.row = IMPORT_NONE};
    for (size_t i = 0; i < s.n_children; i++) { /* subagents that no later request has joined */
        const struct child *c = &s.children[i];
        result = !c->waited && c->last.end_ns > result.end_ns ? c->last : result;
    }
    free(s.requests.v);
    free(s.children);
    return result;
}

/* Whether a nested time is before its subagent's: then nested times are relative to it. */
static bool times_are_relative(const cJSON *requests)
{
    const cJSON *o;
    const cJSON *inner;
    cJSON_ArrayForEach (o, requests) {
        cJSON_ArrayForEach (inner, json_member(o, "requests")) {
            if (json_number(inner, "t") < json_number(o, "t")) {
                return true;
            }
        }
        if (times_are_relative(json_member(o, "requests"))) {
            return true;
        }
    }
    return false;
}

static void weka_session(struct import *im, const cJSON *o, const struct import_place *p)
{
    uint32_t job = im->n > 0 ? im->nodes[im->n - 1].job + 1 : 0;
    bool local = !import_text_is(o, "hash_id_scope", "global");
    size_t first = im->n;
    struct weka w = {im, p, NULL, job, local ? job + 1u : 0, 0, false};
    double rate = im->options->rate_per_min;
    if (job > 0 && !(rate > 0.0)) {
        (void)err_add(p->e,
                      "%s: several sessions need --rate-per-min: nothing says when each began",
                      p->path);
        return;
    }
    if (rate > 0.0) {
        w.begin_ns = import_begin(im, job, p);
        im->lost.no_times = true;
    }
    uint64_t block = import_tokens(json_member(o, "block_size"), "block_size", 1.0, p);
    if (im->block_tokens > 0 && im->block_tokens != block) {
        import_refuse(p, "block_size", "must be that of the sessions before");
    }
    im->block_tokens = (uint32_t)block;
    w.relative = times_are_relative(json_member(o, "requests"));
    (void)stream_read(&w, json_member(o, "requests"), 0, NULL, 0);
    if (im->n == first && p->e->n == 0) {
        import_refuse(p, "requests", "must have a request");
    }
    if (local) {
        import_sources(im, first);
        im->n_blocks = 0; /* other sessions cannot share them */
        for (size_t i = first; i < im->n; i++) {
            im->rows[i].n_blocks = 0;
        }
    }
}

void import_weka(struct import *im, FILE *in, const char *path, struct err *e)
{
    import_values(im, in, path, weka_session, e);
    if (e->n == 0 && im->n_blocks > 0) {
        import_sources(im, 0);
    }
}

/* ---- agentic mooncake ---- */

static double ms_of(const cJSON *o, const char *key, const struct import_place *p)
{
    return import_number(json_member(o, key), key, 0.0, IMPORT_MAX_S * 1e3, p);
}

/* Names of requests and sessions are unique within their play only. */
static uint64_t name_key(const cJSON *o, const cJSON *play, const char *key)
{
    return rng_mix64(import_key(json_string(play, "play_id"))) ^ import_key(json_string(o, key));
}

static uint32_t job_of(struct import *im, const cJSON *o)
{
    uint64_t key = rng_mix64(import_key(json_string(o, "play_id")));
    size_t job = map_find(&im->names, key);
    if (job == IMPORT_NONE) {
        job = im->n_jobs++;
        map_put(&im->names, key, job);
    }
    return (uint32_t)job;
}

/* Reads the dependencies of a request: the ends of others, or with `dispatch` the ends for which
 * the other waits. */
static void dependencies_read(struct import *im, const cJSON *o, struct import_node *node,
                              struct import_row *r, const struct import_place *p)
{
    const cJSON *d;
    cJSON_ArrayForEach (d, json_member(o, "dependencies")) {
        size_t parent = map_find(&im->names, name_key(d, o, "request_id"));
        int64_t delay_ns = units_ns_from_ms(ms_of(d, "delay_ms", p));
        if (parent == IMPORT_NONE) {
            import_refuse(p, "dependencies.request_id", "must be a request above");
            return;
        }
        if (!import_text_is(d, "trigger", "dispatch")) {
            import_edge_add(node, parent, delay_ns);
            continue;
        }
        const struct import_node *other = &im->nodes[parent];
        delay_ns += other->gap_ns;
        if (other->before != IMPORT_NONE) {
            import_edge_add(node, other->before, delay_ns);
        }
        for (uint32_t k = 0; k < other->n_parents; k++) {
            import_edge_add(node, other->parents[k].request_id,
                            other->parents[k].gap_ns + delay_ns);
        }
        if (other->before == IMPORT_NONE && other->n_parents == 0) {
            int64_t at_ns = im->rows[parent].start_ns + delay_ns - other->gap_ns;
            r->start_ns = at_ns > r->start_ns ? at_ns : r->start_ns;
        }
    }
}

/* Sets the turn before: the last request of the session, if this one waits for it without extra
 * delay. Gaps of parents become relative to the shortest. */
static void turn_find(struct import *im, struct import_node *node, uint64_t session)
{
    size_t last = map_find(&im->names, session);
    int64_t least_ns = INT64_MAX;
    uint32_t at = UINT32_MAX;
    for (uint32_t k = 0; k < node->n_parents; k++) {
        least_ns = node->parents[k].gap_ns < least_ns ? node->parents[k].gap_ns : least_ns;
        at = node->parents[k].request_id == last ? k : at;
    }
    node->gap_ns = node->n_parents > 0 ? least_ns : 0;
    for (uint32_t k = 0; k < node->n_parents; k++) {
        node->parents[k].gap_ns -= least_ns;
    }
    if (at != UINT32_MAX && node->parents[at].gap_ns == 0) {
        node->before = last;
        node->parents[at] = node->parents[--node->n_parents];
    }
}

static void agentic_line(struct import *im, const cJSON *o, const struct import_place *p)
{
    if (json_member(o, "schema") != NULL) {
        im->block_tokens =
            (uint32_t)import_tokens(json_member(o, "block_size"), "block_size", 1, p);
        if (json_number(o, "version") != 2.0) {
            import_refuse(p, "version", "must be 2");
        }
        return;
    }
    struct import_row r = {.end_ns = TIME_NEVER_NS, .line = (uint32_t)p->number};
    struct import_node node = {.before = IMPORT_NONE, .source = IMPORT_NONE};
    const cJSON *in = json_member(o, "input_length");
    const cJSON *out = json_member(o, "output_length");
    in = in != NULL ? in : json_member(o, "input_tokens");
    out = out != NULL ? out : json_member(o, "output_tokens");
    r.start_ns = units_ns_from_ms(ms_of(o, "not_before_ms", p));
    r.input = import_tokens(in, "input_length", 1.0, p);
    r.output = import_tokens(out, "output_length", 0.0, p);
    import_blocks(im, json_member(o, "hash_ids"), &r, p);
    node.job = job_of(im, o);
    node.scope = node.job + 1u;
    const cJSON *priority = json_member(o, "priority");
    node.priority =
        priority == NULL ? 0 : (int32_t)import_number(priority, "priority", -1e6, 1e6, p);
    dependencies_read(im, o, &node, &r, p);
    uint64_t session = rng_mix64(name_key(o, o, "session_id")); /* unlike the keys of requests */
    turn_find(im, &node, session);
    bool waits = node.before != IMPORT_NONE || node.n_parents > 0;
    im->lost.not_before += waits && r.start_ns > 0;
    for (uint32_t k = 0; k < node.n_parents; k++) { /* a start is not before its parents' */
        int64_t at_ns = im->rows[node.parents[k].request_id].start_ns;
        r.start_ns = at_ns > r.start_ns ? at_ns : r.start_ns;
    }
    int64_t turn_ns = node.before != IMPORT_NONE ? im->rows[node.before].start_ns : 0;
    r.start_ns = turn_ns > r.start_ns ? turn_ns : r.start_ns;
    if (im->models == NULL) {
        im->models = xkeep(xstrdup(json_string(o, "model")));
    }
    im->lost.other_model += !import_text_is(o, "model", im->models);
    map_put(&im->names, name_key(o, o, "request_id"), im->n);
    map_put(&im->names, session, im->n);
    import_add_node(im, &r, &node);
}

void import_agentic_mooncake(struct import *im, FILE *in, const char *path, struct err *e)
{
    import_values(im, in, path, agentic_line, e);
    if (e->n == 0) {
        import_sources(im, 0);
    }
}
