/* Logs of agents, a request a line: Dynamo's request trace, whose trajectories name their parents,
 * and TraceLab's rounds of coding sessions. */
#include <stdlib.h>
#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/json.h"
#include "sim/base/units.h"
#include "traces/import_json.h"
#include "traces/import_stream.h"

/* ---- dynamo ---- */

/* A request, until all are known and sorted by their start. */
struct record {
    struct import_row row;  /* with its end */
    uint64_t agent, parent; /* trajectories; 0: none */
    bool other_model;
};

/* A trajectory. */
struct agent {
    struct import_stream requests;
    struct import_sent origin;     /* of its parent; row IMPORT_NONE: none */
    size_t parent, child, sibling; /* agents, or IMPORT_NONE: the newest child, the one before */
    size_t last;                   /* record that ends last */
    uint32_t job;
    bool begun, waited, background;
};

struct dynamo {
    struct record *v; /* owned */
    size_t n;
    char *model; /* owned: of the first request */
};

static uint64_t text_key(const cJSON *o, const char *key, const char *otherwise)
{
    const char *name = json_string(o, key);
    name = name[0] == '\0' ? json_string(o, otherwise) : name;
    return name[0] == '\0' ? 0 : import_key(name);
}

static int64_t ms_ns(const cJSON *o, const char *key, const struct import_place *p)
{
    return units_ns_from_ms(import_number(import_get(o, key), key, 0.0, 4e12, p));
}

static void dynamo_line(struct import *im, const cJSON *o, const struct import_place *p)
{
    struct dynamo *d = im->kept;
    o = import_get(o, "event") != NULL ? import_get(o, "event") : o;
    if (strcmp(json_string(o, "event_type"), "request_end") != 0) {
        return;
    }
    const cJSON *request = import_get(o, "request");
    const cJSON *replay = import_get(request, "replay");
    const cJSON *context = import_get(o, "agent_context");
    const cJSON *input = import_get(replay, "input_length");
    input = input != NULL ? input : import_get(request, "input_tokens");
    struct record x = {.row = {.line = (uint32_t)p->number}};
    x.row.input = import_tokens(input, "request.input_tokens", 1.0, p);
    x.row.output =
        import_tokens(import_get(request, "output_tokens"), "request.output_tokens", 0.0, p);
    x.row.end_ns = ms_ns(o, "event_time_unix_ms", p);
    x.row.start_ns = x.row.end_ns;
    if (import_get(request, "request_received_ms") != NULL) {
        x.row.start_ns = ms_ns(request, "request_received_ms", p);
    } else if (import_get(request, "total_time_ms") != NULL) {
        x.row.start_ns -= ms_ns(request, "total_time_ms", p);
    }
    x.row.end_ns = x.row.end_ns > x.row.start_ns ? x.row.end_ns : x.row.start_ns;
    x.agent = text_key(context, "trajectory_id", "session_id");
    x.parent = text_key(context, "parent_trajectory_id", "parent_session_id");
    if (replay != NULL) {
        im->block_tokens = (uint32_t)import_tokens(import_get(replay, "trace_block_size"),
                                                   "request.replay.trace_block_size", 1.0, p);
        import_blocks(im, import_get(replay, "input_sequence_hashes"), &x.row);
    }
    d->model = d->model == NULL ? xstrdup(json_string(request, "model")) : d->model;
    x.other_model = strcmp(json_string(request, "model"), d->model) != 0;
    d->v = xgrow(d->v, d->n, sizeof *d->v);
    d->v[d->n++] = x;
}

static int by_start(const void *a, const void *b)
{
    const struct record *x = a;
    const struct record *y = b;
    if (x->row.start_ns != y->row.start_ns) {
        return x->row.start_ns < y->row.start_ns ? -1 : 1;
    }
    return (x->row.line > y->row.line) - (x->row.line < y->row.line);
}

/* The agents, in the order of their first requests. A request without a trajectory is an agent of
 * its own. `of` gets the agent of every record. The caller frees. */
static struct agent *agents_of(const struct dynamo *d, size_t *of, size_t *n_agents)
{
    struct import_map places = {0};
    struct agent *agents = xcalloc(d->n + 1, sizeof *agents);
    *n_agents = 0;
    for (size_t i = 0; i < d->n; i++) {
        const struct record *x = &d->v[i];
        size_t at = x->agent != 0 ? *import_map_at(&places, x->agent) : IMPORT_NONE;
        if (at == IMPORT_NONE) {
            at = (*n_agents)++;
            agents[at] = (struct agent){
                .parent = IMPORT_NONE, .child = IMPORT_NONE, .sibling = IMPORT_NONE, .last = i};
            agents[at].origin.row = IMPORT_NONE;
            agents[at].job = (uint32_t)at;
            if (x->agent != 0) {
                import_map_put(&places, x->agent, at);
            }
            size_t parent = x->parent != 0 && x->parent != x->agent
                                ? *import_map_at(&places, x->parent)
                                : IMPORT_NONE;
            if (parent != IMPORT_NONE) { /* it has begun; else nothing says what came first */
                agents[at].parent = parent;
                agents[at].sibling = agents[parent].child;
                agents[parent].child = at;
                agents[at].job = agents[parent].job;
            }
        }
        bool later = x->row.end_ns >= d->v[agents[at].last].row.end_ns;
        agents[at].last = later ? i : agents[at].last;
        of[i] = at;
    }
    import_map_fini(&places);
    return agents;
}

/* Waits for subagents that had ended; those that had not are in the background. */
static int64_t wait_for(struct import *im, const struct dynamo *d, struct agent *agents,
                        size_t self, const size_t *row_of, struct import_node *node,
                        int64_t start_ns, int64_t end_ns)
{
    for (size_t i = agents[self].child; i != IMPORT_NONE; i = agents[i].sibling) {
        struct agent *a = &agents[i];
        if (!a->begun || a->waited) {
            continue;
        }
        const struct import_row *last = &d->v[a->last].row;
        a->waited = true;
        if (last->end_ns <= start_ns) {
            import_edge_add(node, row_of[a->last], 0);
            end_ns = last->end_ns > end_ns ? last->end_ns : end_ns;
            continue;
        }
        a->background = true;
        for (size_t k = 0; k < a->requests.n; k++) {
            im->nodes[a->requests.v[k].row].background = true;
            im->rows[a->requests.v[k].row].cls = REQUEST_CLASS_PROACTIVE;
        }
    }
    return end_ns;
}

static void dynamo_build(struct import *im, struct dynamo *d)
{
    size_t n_agents = 0;
    size_t *of = xcalloc(d->n + 1, sizeof *of);
    size_t *row_of = xcalloc(d->n + 1, sizeof *row_of);
    struct agent *agents = agents_of(d, of, &n_agents);
    for (size_t i = 0; i < d->n; i++) {
        struct import_row r = d->v[i].row;
        struct agent *a = &agents[of[i]];
        if (!a->begun && a->parent != IMPORT_NONE) {
            const struct import_sent *from =
                import_last_before(&agents[a->parent].requests, r.start_ns);
            a->origin = from != NULL ? *from : a->origin;
            a->background = agents[a->parent].background;
        }
        a->begun = true;
        struct import_node node = {.before = IMPORT_NONE,
                                   .source = IMPORT_NONE,
                                   .job = a->job,
                                   .background = a->background};
        r.cls = a->background ? REQUEST_CLASS_PROACTIVE : REQUEST_CLASS_REACTIVE;
        bool has_origin = a->origin.row != IMPORT_NONE;
        int64_t end_ns = import_place(im, &a->requests, &r, has_origin ? &a->origin : NULL, &node);
        end_ns = wait_for(im, d, agents, of[i], row_of, &node, r.start_ns, end_ns);
        node.gap_ns = r.start_ns - end_ns;
        row_of[i] = im->n;
        im->lost.other_model += d->v[i].other_model;
        import_stream_add(im, &a->requests, &r, &node, r.end_ns, true);
    }
    for (size_t i = 0; i < n_agents; i++) {
        free(agents[i].requests.v);
    }
    free(agents);
    free(row_of);
    free(of);
}

void import_dynamo(struct import *im, FILE *in, const char *path, struct err *e)
{
    struct dynamo d = {0};
    im->kept = &d;
    import_values(im, in, path, dynamo_line, e);
    im->kept = NULL;
    if (e->n == 0 && d.n > 0) {
        qsort(d.v, d.n, sizeof *d.v, by_start);
        dynamo_build(im, &d);
        import_sources(im, 0);
    }
    free(d.v);
    free(d.model);
}

/* ---- tracelab ---- */

static bool is_answer(const char *type)
{
    static const char *const types[] = {"text", "reasoning", "tool_call", "usage_report", NULL};
    for (int i = 0; types[i] != NULL; i++) {
        if (strcmp(type, types[i]) == 0) {
            return true;
        }
    }
    return false;
}

/* A round was sent when its last input was there, and ended with the last part of its answer. */
void import_tracelab_line(struct import *im, const cJSON *o, const struct import_place *p)
{
    struct import_row r = {.start_ns = -1, .end_ns = -1, .line = (uint32_t)p->number};
    int64_t first_ns = -1; /* of the answer */
    const cJSON *event;
    cJSON_ArrayForEach(event, import_get(o, "timing_events"))
    {
        int64_t at_ns = import_timestamp_ns(json_string(event, "timestamp"));
        bool answer = is_answer(json_string(event, "event_type"));
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
    r.input = import_tokens(import_get(o, "input_tokens_total"), "input_tokens_total", 0.0, p);
    r.input += r.input == 0;
    r.prefix = import_tokens(import_get(o, "prefix_tokens"), "prefix_tokens", 0.0, p);
    r.output = import_tokens(import_get(o, "output_tokens"), "output_tokens", 0.0, p);
    char *name = xformat("%s %s %s", json_string(o, "project"), json_string(o, "session_file"),
                         json_string(o, "session_id"));
    r.after = r.key = import_key(name);
    free(name);
    import_add(im, &r);
}
