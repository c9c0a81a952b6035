#include "traces/mixed.h"

#include "sim/api/request.h"
#include "sim/base/rng.h"
#include "traces/traces.h"

/* The source of a class's requests. */
struct source {
    const struct dataset *data;
    struct rng lengths, gaps;
    uint32_t *session_first; /* owned: first rows of conversations */
    size_t n_sessions;
    bool whole; /* draw conversations instead of rows */
};

static void source_init(struct source *s, const struct mixed *m, const struct dataset *data,
                        int cls)
{
    *s = (struct source){.data = data};
    /* One stream per class and purpose: a change of one class's rate or lengths does not change the
     * draws of the other, so workloads can be compared request by request. */
    rng_init(&s->lengths,
             rng_key(m->seed, cls == 0 ? RNG_LENGTH_REACTIVE : RNG_LENGTH_PROACTIVE, 0, 0));
    rng_init(&s->gaps, rng_key(m->seed, RNG_GAP, (uint64_t)cls, 0));
    s->session_first = xmalloc((data->n_sessions + 1) * sizeof *s->session_first);
    for (size_t i = 0; i < data->n; i++) {
        if (data->n_sessions > 0 && data->rows[i].turn == 0) {
            s->session_first[s->n_sessions++] = (uint32_t)i;
        }
    }
    s->whole = m->v[MIXED_SESSIONS] > 0.0 && s->n_sessions > 0;
}

static void source_fini(struct source *s)
{
    free(s->session_first);
}

/* Draws a row, or the first of a conversation. Whole rows keep input and output together. */
static size_t source_draw(struct source *s)
{
    return s->whole ? s->session_first[rng_below(&s->lengths, (uint32_t)s->n_sessions)]
                    : rng_below(&s->lengths, (uint32_t)s->data->n);
}

/* Whether the conversation of row `at` continues in the next row. */
static bool source_continues(const struct source *s, size_t at)
{
    return s->whole && at + 1 < s->data->n && s->data->rows[at + 1].turn > 0;
}

/* The scaled number of tokens, rounded, at least 1. */
static uint32_t scaled(uint32_t tokens, double factor)
{
    double x = floor(tokens * factor + 0.5);
    return x < 1.0 ? 1 : (uint32_t)x;
}

/* A request with the lengths of a dataset row, without its arrival. `later`: it is not the first
 * turn of its conversation. */
static struct trace_row row_of(const struct mixed *m, const struct dataset_row *d, int cls,
                               uint32_t session_id, uint32_t turn, bool later)
{
    double in = m->v[MIXED_REACTIVE_INPUT_SCALE + cls];
    double out = m->v[MIXED_OUTPUT_SCALE] * m->v[MIXED_REACTIVE_OUTPUT_SCALE + cls];
    uint32_t cap = (uint32_t)m->v[MIXED_INPUT_CAP];
    struct trace_row r = {.next = TRACE_NO_ROW, .cls = (uint8_t)cls};
    r.session_id = session_id;
    r.turn = (uint16_t)turn;
    r.input_tokens = scaled(d->input_tokens, in);
    r.input_tokens = cap > 0 && r.input_tokens > cap ? cap : r.input_tokens;
    r.output_tokens = scaled(d->output_tokens, out);
    /* A power of two of at least twice the length, so that policies that reserve by it do not learn
     * the length. */
    r.max_output_tokens = trace_default_limit(r.output_tokens);
    uint32_t prefix = later && d->prefix_tokens > 0 ? scaled(d->prefix_tokens, in) : 0;
    r.prefix_tokens = prefix < r.input_tokens ? prefix : r.input_tokens;
    r.after_tool = later && d->after_tool;
    return r;
}

static double gap_s(const struct mixed *m, struct source *s, const struct trace_row *r)
{
    return rng_exponential(&s->gaps, m->v[r->after_tool ? MIXED_TOOL_S : MIXED_THINK_S]);
}

/* Adds a session at an instant: a request, or a conversation. */
static void session_add(const struct mixed *m, struct source *s, struct trace_builder *b, int cls,
                        double at_s, uint32_t session_id)
{
    size_t at = source_draw(s);
    struct trace_row r = row_of(m, &s->data->rows[at], cls, session_id, 0, false);
    r.arrival_ns = units_ns_from_s(at_s);
    trace_builder_add(b, &r, NULL);
    for (uint32_t turn = 1; source_continues(s, at); turn++) {
        at++;
        r = row_of(m, &s->data->rows[at], cls, session_id, turn, true);
        r.arrival_ns = units_ns_from_s(gap_s(m, s, &r));
        trace_builder_add(b, &r, NULL);
    }
}

/* Closed loop, as in the reactive load of Agent.xpu's first version: each user is one session and
 * sends the next request a think time after the previous answer, until duration_s. The number of
 * requests depends on the policy, so enough turns for instant answers are made. With conversations,
 * a user starts a new one after the last turn of the old one. */
static int closed_add(const struct mixed *m, struct source *s, struct trace_builder *b,
                      uint32_t *session_id, const char *spec, struct err *e)
{
    for (int u = 0; u < (int)m->v[MIXED_USERS]; u++, (*session_id)++) {
        double at_s = rng_exponential(&s->gaps, m->v[MIXED_THINK_S]);
        size_t at = 0;
        bool later = false;
        for (uint32_t turn = 0; at_s < m->v[MIXED_DURATION_S] && b->n <= TRACE_MAX_ROWS; turn++) {
            if (turn == UINT16_MAX) {
                return err_add(e,
                               "workload \"%s\": think_s: so short that a user sends over %d "
                               "requests in duration_s",
                               spec, UINT16_MAX);
            }
            at = later ? at + 1 : source_draw(s);
            struct trace_row r =
                row_of(m, &s->data->rows[at], REQUEST_CLASS_REACTIVE, *session_id, turn, later);
            double gap = turn == 0 ? 0.0 : gap_s(m, s, &r);
            r.arrival_ns = units_ns_from_s(turn == 0 ? at_s : gap);
            /* Answered at once: the largest number of turns for any policy. */
            at_s += gap;
            struct trace_extra x = trace_extra_none();
            x.client_id = *session_id;
            /* Otherwise a slow policy would get all turns that were made for instant answers, long
             * after duration_s. */
            x.until_ns = units_ns_from_s(m->v[MIXED_DURATION_S]);
            trace_builder_add(b, &r, &x);
            later = source_continues(s, at);
        }
    }
    return 0;
}

static void open_add(const struct mixed *m, struct source *s, const struct events *ev,
                     struct trace_builder *b, int cls, uint32_t *session_id)
{
    double per_min = m->v[cls == 0 ? MIXED_REACTIVE_PER_MIN : MIXED_PROACTIVE_PER_MIN];
    if (per_min <= 0.0) {
        return;
    }
    SCOPED(arrivals_fini) struct arrivals a;
    struct activity act;
    arrivals_init(&a, m->arrival, 60.0 / per_min, m->v[MIXED_CV], ev,
                  rng_key(m->seed, cls == 0 ? RNG_ARRIVAL_REACTIVE : RNG_ARRIVAL_PROACTIVE, 0, 0));
    /* One key, so that both classes have the same activity. */
    activity_init(&act, m->v[MIXED_BURST], m->v[MIXED_ACTIVE_SHARE], m->v[MIXED_ACTIVITY_PERIOD_S],
                  rng_key(m->seed, RNG_ACTIVITY, 0, 0));
    for (;;) {
        double at_s = activity_real(&act, arrivals_next(&a));
        if (at_s >= m->v[MIXED_DURATION_S] || b->n > TRACE_MAX_ROWS) {
            break; /* trace_build reports too many rows */
        }
        session_add(m, s, b, cls, at_s, (*session_id)++);
    }
}

static int rows_make(const struct mixed *m, const struct dataset data[2], const struct events *ev,
                     const char *spec, struct trace *out, struct err *e)
{
    SCOPED(trace_builder_fini) struct trace_builder b;
    trace_builder_init(&b);
    uint32_t session_id = 0;
    int rc = 0;
    for (int cls = 0; cls < 2 && rc == 0; cls++) {
        SCOPED(source_fini) struct source s;
        source_init(&s, m, &data[cls], cls);
        if (cls == 0 && m->arrival == ARRIVAL_CLOSED) {
            rc = closed_add(m, &s, &b, &session_id, spec, e);
        } else {
            open_add(m, &s, ev, &b, cls, &session_id);
        }
    }
    rc = rc == 0 ? trace_build(&b, true, spec, out, e) : rc;
    bool open = m->arrival != ARRIVAL_CLOSED;
    out->made_ns = rc != -EINVAL && open ? units_ns_from_s(m->v[MIXED_DURATION_S]) : 0;
    return rc;
}

int mixed_generate(const struct mixed *m, const char *spec, struct trace *out, struct err *e)
{
    struct dataset data[2] = {{0}, {0}};
    SCOPED(events_fini) struct events ev = {0};
    int rc = dataset_load(m->t[MIXED_REACTIVE], &data[0], e);
    rc = rc == 0 ? dataset_load(m->t[MIXED_PROACTIVE], &data[1], e) : rc;
    if (rc == 0 && m->arrival == ARRIVAL_REPLAY) {
        rc = events_load(m->t[MIXED_EVENTS], &ev, e);
    }
    rc = rc == 0 ? rows_make(m, data, &ev, spec, out, e) : rc;
    dataset_fini(&data[0]);
    dataset_fini(&data[1]);
    return rc;
}
