/* Workload generators: `mixed` (reactive and proactive streams) and `w1` (the common speed load).
 *
 * Streams are keyed by purpose and class: changing one class's rate moves nothing of the other, and
 * every policy of a comparison meets the same trace. All randomness is drawn here, none in the
 * engine. */
#include <errno.h>
#include <float.h>
#include <gsl/gsl_randist.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/api/request.h"
#include "sim/base/arena.h"
#include "sim/base/csvfile.h"
#include "sim/base/datadir.h"
#include "sim/base/json.h"
#include "sim/base/rng.h"
#include "sim/base/units.h"
#include "traces/traces.h"

enum arrival { ARRIVAL_POISSON, ARRIVAL_GAMMA, ARRIVAL_REPLAY, ARRIVAL_CLOSED };

/* Keys of `mixed`: numbers and texts, with defaults and help. */
enum {
    K_REACTIVE,
    K_PROACTIVE,
    K_DURATION,
    K_OUTPUT_SCALE,
    K_CV,
    K_THINK,
    K_TOOL,
    K_SESSIONS,
    K_USERS,
    K_BURST,
    K_ON,
    K_PERIOD,
    K_NUMBERS
};
enum { T_REACTIVE, T_PROACTIVE, T_ARRIVAL, T_EVENTS, T_TEXTS };

struct number_key {
    const char *name;
    double def, min, max;
    const char *help;
};

static const struct number_key numbers[K_NUMBERS] = {
    {"reactive_per_min", 3, 0, 1e6, "rate of reactive first turns, per minute"},
    {"proactive_per_min", 6, 0, 1e6, "rate of proactive first turns, per minute"},
    {"duration_s", 900, 1e-3, 1e8, "arrivals fall into [0, duration), s"},
    {"output_scale", 1, 1e-3, 1e3, "factor on output lengths, rounded, at least 1 token"},
    {"cv", 2, 0.05, 50, "coefficient of variation of gaps with arrival=gamma"},
    {"think_s", 30, 0, 1e6, "mean think time between turns (exponential), s"},
    {"tool_s", 2, 0, 1e6, "mean tool time before a turn that follows a tool call, s"},
    {"sessions", 0, 0, 1, "1: whole conversations with prefixes, where the dataset has them"},
    {"users", 1, 1, 1e4, "reactive users with arrival=closed, one request at a time each"},
    {"burst", 1, 1, 1e3, "activity: rate while active over mean rate, both classes; 1: none"},
    {"active_share", 0.5, 0.001, 1, "activity: share of time active; burst * share <= 1"},
    {"activity_period_s", 300, 1e-3, 1e7, "activity: mean active plus idle time, s"},
};
static const char *const text_names[T_TEXTS] = {"reactive", "proactive", "arrival", "events"};
static const char *const text_defaults[T_TEXTS] = {"reactive_mixed", "proactive_mixed", "poisson",
                                                   "proactivebench_events"};

struct mixed {
    double v[K_NUMBERS];
    char t[T_TEXTS][256];
    enum arrival arrival;
    uint64_t seed;
};

/* ---- parsing ---- */

static void mixed_defaults(struct mixed *m)
{
    for (int i = 0; i < K_NUMBERS; i++) {
        m->v[i] = numbers[i].def;
    }
    for (int i = 0; i < T_TEXTS; i++) {
        memcpy(m->t[i], text_defaults[i], strlen(text_defaults[i]) + 1);
    }
}

static void mixed_set(struct mixed *m, const char *spec, const char *key, const char *value,
                      struct err *e)
{
    for (int i = 0; i < K_NUMBERS; i++) {
        if (strcmp(key, numbers[i].name) == 0) {
            char *end = NULL;
            double v = strtod(value, &end);
            if (end == value || *end != '\0' || !(v >= numbers[i].min && v <= numbers[i].max)) {
                err_add(e, "workload \"%s\": %s: \"%s\" must be a number from %g to %g", spec, key,
                        value, numbers[i].min, numbers[i].max);
                return;
            }
            m->v[i] = v;
            return;
        }
    }
    for (int i = 0; i < T_TEXTS; i++) {
        if (strcmp(key, text_names[i]) == 0) {
            if (value[0] == '\0' || strlen(value) >= sizeof m->t[i]) {
                err_add(e, "workload \"%s\": %s: needs a name", spec, key);
                return;
            }
            memcpy(m->t[i], value, strlen(value) + 1);
            return;
        }
    }
    char known[512] = "";
    for (int i = 0; i < K_NUMBERS + T_TEXTS; i++) {
        size_t n = strlen(known);
        (void)snprintf(known + n, sizeof known - n, " %s",
                       i < K_NUMBERS ? numbers[i].name : text_names[i - K_NUMBERS]);
    }
    err_add(e, "workload \"%s\": unknown key \"%s\" (known:%s)", spec, key, known);
}

static void mixed_parse_list(struct mixed *m, const char *spec, const char *list, struct err *e)
{
    char *copy = xstrdup(list);
    char *save = NULL;
    for (char *part = strtok_r(copy, ",", &save); part != NULL; part = strtok_r(NULL, ",", &save)) {
        char *eq = strchr(part, '=');
        if (eq == NULL) {
            err_add(e, "workload \"%s\": \"%s\" must be key=value", spec, part);
            continue;
        }
        *eq = '\0';
        mixed_set(m, spec, part, eq + 1, e);
    }
    free(copy);
}

static void mixed_parse_json(struct mixed *m, const char *path, struct err *e)
{
    cJSON *root = json_read_file(path, e);
    if (root == NULL) {
        return;
    }
    if (!cJSON_IsObject(root)) {
        err_add(e, "%s: must be an object {...}", path);
    }
    for (const cJSON *c = root->child; c != NULL; c = c->next) {
        char text[64];
        const char *value = text;
        if (cJSON_IsNumber(c)) {
            (void)snprintf(text, sizeof text, "%.17g", c->valuedouble);
        } else if (cJSON_IsString(c)) {
            value = c->valuestring;
        } else {
            err_add(e, "%s: %s: must be a number or text", path, c->string);
            continue;
        }
        if (strcmp(c->string, "generator") == 0) {
            if (strcmp(value, "mixed") != 0) {
                err_add(e, "%s: generator: must be mixed", path);
            }
            continue;
        }
        mixed_set(m, path, c->string, value, e);
    }
    cJSON_Delete(root);
}

static void mixed_check(struct mixed *m, const char *spec, double scale, struct err *e)
{
    static const char *const kinds[] = {"poisson", "gamma", "replay", "closed"};
    int kind = -1;
    for (int i = 0; i < 4; i++) {
        kind = strcmp(m->t[T_ARRIVAL], kinds[i]) == 0 ? i : kind;
    }
    if (kind < 0) {
        err_add(e, "workload \"%s\": arrival: must be poisson, gamma, replay or closed", spec);
        return;
    }
    m->arrival = (enum arrival)kind;
    m->v[K_REACTIVE] *= scale;
    m->v[K_PROACTIVE] *= scale;
    bool closed = m->arrival == ARRIVAL_CLOSED;
    if (m->v[K_REACTIVE] + m->v[K_PROACTIVE] <= 0.0 && !closed) {
        err_add(e, "workload \"%s\": both rates are zero", spec);
    }
    double expected = (m->v[K_REACTIVE] + m->v[K_PROACTIVE]) / 60.0 * m->v[K_DURATION];
    if (expected > TRACE_MAX_ROWS / 2.0) {
        err_add(e, "workload \"%s\": %.0f requests expected, at most %u are taken", spec, expected,
                TRACE_MAX_ROWS / 2);
    }
    if (m->v[K_BURST] * m->v[K_ON] > 1.0 + 1e-12 && m->v[K_BURST] > 1.0) {
        err_add(e, "workload \"%s\": burst * active_share must be at most 1", spec);
    }
}

/* ---- arrivals ---- */

/* User activity: both classes' rates are multiplied by `burst` while active and by what keeps the
 * mean while idle; active and idle times are exponential. Maps a time of the unmodulated process
 * ("operational time") to real time, so that any arrival process can be modulated. */
struct activity {
    double burst, idle_factor, mean_on, mean_off;
    struct rng rng;
    bool enabled, on;
    double real_s, op_s, next_real_s; /* the current phase began at (real, op), ends at next_real */
};

static void activity_init(struct activity *a, const struct mixed *m)
{
    double share = m->v[K_ON];
    *a = (struct activity){.burst = m->v[K_BURST], .enabled = m->v[K_BURST] > 1.0};
    a->idle_factor = share < 1.0 ? (1.0 - a->burst * share) / (1.0 - share) : 1.0;
    a->mean_on = m->v[K_PERIOD] * share;
    a->mean_off = m->v[K_PERIOD] * (1.0 - share);
    rng_init(&a->rng, rng_key(m->seed, RNG_ACTIVITY, 0, 0));
    a->on = rng_uniform(&a->rng) < share;
    a->next_real_s = rng_exponential(&a->rng, a->on ? a->mean_on : a->mean_off);
}

static double activity_real(struct activity *a, double op_s)
{
    if (!a->enabled) {
        return op_s;
    }
    for (;;) {
        double rate = a->on ? a->burst : a->idle_factor;
        double end_op = a->op_s + rate * (a->next_real_s - a->real_s);
        if (op_s < end_op) {
            return a->real_s + (op_s - a->op_s) / rate;
        }
        a->op_s = end_op;
        a->real_s = a->next_real_s;
        a->on = !a->on;
        a->next_real_s += rng_exponential(&a->rng, a->on ? a->mean_on : a->mean_off);
    }
}

/* Gaps of recorded events, for arrival=replay. */
struct events {
    double *gap_s; /* owned */
    size_t n;
    double mean_s;
};

static int events_load(const char *name, struct events *ev, struct err *e)
{
    char path[4096];
    char relative[300];
    *ev = (struct events){0};
    (void)snprintf(relative, sizeof relative, "traces/datasets/%.200s.csv", name);
    bool file = strchr(name, '/') != NULL || strchr(name, '.') != NULL;
    struct csvfile *f = csvfile_open(file ? name : datadir_path(path, sizeof path, relative), e);
    if (f == NULL) {
        return -EINVAL;
    }
    size_t before = e->n;
    int at = csvfile_require(f, "arrival_s", e);
    int session = csvfile_column(f, "session_id");
    size_t cap = 0;
    double last = 0.0;
    uint64_t last_session = UINT64_MAX;
    double sum = 0.0;
    while (at >= 0 && e->n == before && csvfile_next(f, e) == 1) {
        double t = csvfile_number(f, at, 0.0, 1e9, e);
        uint64_t s = session < 0 ? 0 : csvfile_u64(f, session, 0, UINT32_MAX, e);
        if (s == last_session && t >= last) { /* gaps inside one recording only */
            if (ev->n == cap) {
                cap = cap == 0 ? 256 : cap * 2;
                ev->gap_s = xrealloc(ev->gap_s, cap * sizeof *ev->gap_s);
            }
            ev->gap_s[ev->n++] = t - last;
            sum += t - last;
        }
        last = t;
        last_session = s;
    }
    csvfile_close(f);
    if (e->n == before && (ev->n == 0 || sum <= 0.0)) {
        err_add(e, "events \"%s\": no gaps in it", name);
    }
    ev->mean_s = ev->n > 0 ? sum / (double)ev->n : 1.0;
    return e->n == before ? 0 : -EINVAL;
}

struct arrivals {
    enum arrival kind;
    double mean_s, cv;
    gsl_rng *rng;
    const struct events *events;
    size_t at; /* replay position */
    double op_s;
};

static double next_gap(struct arrivals *a)
{
    switch (a->kind) {
    case ARRIVAL_GAMMA: {
        double shape = 1.0 / (a->cv * a->cv);
        return gsl_ran_gamma(a->rng, shape, a->mean_s / shape);
    }
    case ARRIVAL_REPLAY: {
        double gap = a->events->gap_s[a->at] / a->events->mean_s * a->mean_s;
        a->at = (a->at + 1) % a->events->n;
        return gap;
    }
    case ARRIVAL_POISSON:
    case ARRIVAL_CLOSED:
        break;
    }
    return rng_exponential(a->rng->state, a->mean_s);
}

/* ---- requests ---- */

struct source {
    const struct dataset *data;
    struct rng lengths, gaps;
    uint32_t *session_first; /* rows that start a conversation; owned */
    size_t n_sessions;
};

static void source_init(struct source *s, const struct dataset *data, uint64_t seed, int cls)
{
    *s = (struct source){.data = data};
    rng_init(&s->lengths,
             rng_key(seed, cls == 0 ? RNG_LENGTH_REACTIVE : RNG_LENGTH_PROACTIVE, 0, 0));
    rng_init(&s->gaps, rng_key(seed, RNG_GAP, (uint64_t)cls, 0));
    s->session_first = xmalloc((data->n_sessions + 1) * sizeof *s->session_first);
    for (size_t i = 0; i < data->n; i++) {
        if (data->n_sessions > 0 && data->rows[i].turn == 0) {
            s->session_first[s->n_sessions++] = (uint32_t)i;
        }
    }
}

static struct trace_row row_of(const struct mixed *m, const struct dataset_row *d, int cls)
{
    double scaled = floor(d->output_tokens * m->v[K_OUTPUT_SCALE] + 0.5);
    struct trace_row r = {.next = TRACE_NO_ROW, .cls = (uint8_t)cls};
    r.input_tokens = d->input_tokens;
    r.output_tokens = scaled < 1.0 ? 1 : (uint32_t)scaled;
    r.max_output_tokens = trace_default_limit(r.output_tokens);
    return r;
}

/* One session at an instant: one row, or a whole conversation of the dataset. */
static void add_session(const struct mixed *m, struct source *s, struct trace_builder *b, int cls,
                        double at_s, uint32_t session_id)
{
    const struct dataset *d = s->data;
    bool whole = m->v[K_SESSIONS] > 0.0 && s->n_sessions > 0;
    size_t first = whole ? s->session_first[rng_below(&s->lengths, (uint32_t)s->n_sessions)]
                         : rng_below(&s->lengths, (uint32_t)d->n);
    for (size_t i = first; i < d->n && (i == first || (whole && d->rows[i].turn > 0)); i++) {
        struct trace_row r = row_of(m, &d->rows[i], cls);
        r.session_id = session_id;
        r.turn = (uint16_t)(i - first);
        r.arrival_ns = units_ns_from_s(at_s);
        if (r.turn > 0) {
            r.after_tool = d->rows[i].after_tool;
            r.prefix_tokens = d->rows[i].prefix_tokens;
            double mean = m->v[r.after_tool ? K_TOOL : K_THINK];
            r.arrival_ns = units_ns_from_s(rng_exponential(&s->gaps, mean));
        }
        trace_builder_add(b, &r, NULL);
    }
}

/* Closed loop: each user sends the next request a think time after the previous answer. How many
 * fit into the duration depends on the policy, so enough turns for instant answers are made. */
static void add_closed(const struct mixed *m, struct source *s, struct trace_builder *b,
                       uint32_t *session_id)
{
    for (int u = 0; u < (int)m->v[K_USERS]; u++) {
        double at = rng_exponential(&s->gaps, m->v[K_THINK]);
        for (uint16_t turn = 0; at < m->v[K_DURATION] && turn < UINT16_MAX; turn++) {
            const struct dataset_row *d =
                &s->data->rows[rng_below(&s->lengths, (uint32_t)s->data->n)];
            struct trace_row r = row_of(m, d, REQUEST_CLASS_REACTIVE);
            double gap = turn == 0 ? 0.0 : rng_exponential(&s->gaps, m->v[K_THINK]);
            r.session_id = *session_id;
            r.turn = turn;
            r.arrival_ns = units_ns_from_s(turn == 0 ? at : gap);
            at += gap;
            trace_builder_add(b, &r, NULL);
        }
        (*session_id)++;
    }
}

static void add_open(const struct mixed *m, struct source *s, const struct events *ev,
                     struct trace_builder *b, int cls, uint32_t *session_id)
{
    double rate = m->v[cls == 0 ? K_REACTIVE : K_PROACTIVE];
    if (rate <= 0.0) {
        return;
    }
    struct arrivals a = {.kind = m->arrival, .mean_s = 60.0 / rate, .cv = m->v[K_CV], .events = ev};
    a.rng = rng_gsl_new(
        rng_key(m->seed, cls == 0 ? RNG_ARRIVAL_REACTIVE : RNG_ARRIVAL_PROACTIVE, 0, 0));
    if (a.kind == ARRIVAL_REPLAY) {
        a.at = rng_below(a.rng->state, (uint32_t)ev->n); /* seeds differ by where they start */
    }
    struct activity act;
    activity_init(&act, m);
    for (;;) {
        a.op_s += next_gap(&a);
        double at = activity_real(&act, a.op_s);
        if (at >= m->v[K_DURATION] || b->n > TRACE_MAX_ROWS) {
            break;
        }
        add_session(m, s, b, cls, at, (*session_id)++);
    }
    gsl_rng_free(a.rng);
}

static int mixed_generate(struct mixed *m, const char *spec, struct trace *out, struct err *e)
{
    struct dataset data[2] = {{0}, {0}};
    struct events ev = {0};
    int rc = dataset_load(m->t[T_REACTIVE], &data[0], e);
    rc = rc == 0 ? dataset_load(m->t[T_PROACTIVE], &data[1], e) : rc;
    if (rc == 0 && m->arrival == ARRIVAL_REPLAY) {
        rc = events_load(m->t[T_EVENTS], &ev, e);
    }
    if (rc == 0) {
        struct trace_builder b;
        trace_builder_init(&b);
        uint32_t session_id = 0;
        for (int cls = 0; cls < 2; cls++) {
            struct source s;
            source_init(&s, &data[cls], m->seed, cls);
            if (cls == 0 && m->arrival == ARRIVAL_CLOSED) {
                add_closed(m, &s, &b, &session_id);
            } else {
                add_open(m, &s, &ev, &b, cls, &session_id);
            }
            free(s.session_first);
        }
        rc = trace_build(&b, true, spec, out, e);
        trace_builder_fini(&b);
    }
    free(ev.gap_s);
    dataset_fini(&data[0]);
    dataset_fini(&data[1]);
    return rc;
}

/* ---- w1 ---- */

/* 512 in, 64 out, Poisson 2/s from splitmix64(42): the load other simulators were timed with. */
static int w1_generate(const char *spec, const char *list, struct trace *out, struct err *e)
{
    unsigned long n = 0;
    char rest;
    if (sscanf(list, "n=%lu%c", &n, &rest) != 1 || n == 0 || n > TRACE_MAX_ROWS) {
        return err_add(e, "workload \"%s\": must be w1:n=N with N from 1 to %u", spec,
                       TRACE_MAX_ROWS);
    }
    struct trace_row *rows = xcalloc(n, sizeof *rows);
    uint64_t state = 42;
    double t = 0.0;
    for (unsigned long i = 0; i < n; i++) {
        uint64_t z = rng_mix64(state);
        state += 0x9E3779B97F4A7C15ULL;
        double u = (double)(z >> 11) * 0x1.0p-53;
        t += -log1p(-u) / 2.0;
        rows[i] = (struct trace_row){.arrival_ns = units_ns_from_s(t),
                                     .request_id = (uint32_t)i,
                                     .session_id = (uint32_t)i,
                                     .input_tokens = 512,
                                     .output_tokens = 64,
                                     .max_output_tokens = 256,
                                     .next = TRACE_NO_ROW};
    }
    /* Already in order: no second copy of a large trace for sorting. */
    *out = (struct trace){.rows = rows, .n = n, .n_first = n, .hash = rng_mix64(n)};
    return 0;
}

int trace_generate(const char *spec, uint64_t seed, double rate_scale, struct trace *out,
                   struct err *e)
{
    *out = (struct trace){0};
    const char *colon = strchr(spec, ':');
    size_t len = strlen(spec);
    if (strncmp(spec, "w1:", 3) == 0) {
        return w1_generate(spec, spec + 3, out, e);
    }
    struct mixed m = {.seed = seed};
    mixed_defaults(&m);
    size_t before = e->n;
    if (len > 5 && strcmp(spec + len - 5, ".json") == 0) {
        mixed_parse_json(&m, spec, e);
    } else if (strcmp(spec, "mixed") == 0 || (colon != NULL && strncmp(spec, "mixed:", 6) == 0)) {
        mixed_parse_list(&m, spec, colon == NULL ? "" : colon + 1, e);
    } else {
        return err_add(e, "workload \"%s\": must be mixed[:key=value,...], w1:n=N or FILE.json",
                       spec);
    }
    if (e->n == before) {
        mixed_check(&m, spec, rate_scale, e);
    }
    return e->n == before ? mixed_generate(&m, spec, out, e) : -EINVAL;
}

void trace_generator_help(FILE *out)
{
    fputs("mixed:key=value,...   reactive and proactive requests; a .json file has the same keys\n",
          out);
    for (int i = 0; i < K_NUMBERS; i++) {
        fprintf(out, "  %-20s %-8g %s\n", numbers[i].name, numbers[i].def, numbers[i].help);
    }
    fputs("  reactive, proactive  datasets: shipped names (xpusim list dataset) or CSV paths\n"
          "  arrival              poisson, gamma, replay (gaps of `events`), closed (reactive)\n"
          "  events               recorded arrivals for replay: proactivebench_events,\n"
          "                       azure_conv_2023, azure_code_2023, or a CSV path\n"
          "w1:n=N                the common speed load: 512 in, 64 out, Poisson 2/s\n",
          out);
}
