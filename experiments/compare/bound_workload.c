/* The bound of a whole workload; bound.c has that of requests. */
#include "experiments/compare/bound_impl.h"

const char *const bound_by_names[] = {"path", "compute", "memory"};

struct released {
    double at_s; /* earliest instant */
    struct bound_work work;
};

/* Prices of a second of each device, with sum 1, and the resulting cost of a unit of work on its
 * cheapest device. */
struct prices {
    double row_s, pair_s, head_s;
};

/* ---- work per unit ---- */

static double floor_compute(const struct bound *b, enum op_kind op, uint32_t d, bool pairs)
{
    const struct kernel_floor *f = b->ops[op].of[d];
    return pairs ? fmin(f[0].pair_s, f[1].pair_s) : fmin(f[0].row_s, f[1].row_s);
}

static double cheapest(const struct bound *b, const double *price, enum op_kind op, bool pairs)
{
    double best = HUGE_VAL;
    for (uint32_t d = 0; d < b->n_devices; d++) {
        best = fmin(best, price[d] * floor_compute(b, op, d, pairs));
    }
    return best;
}

/* Prices at which an op costs the same on every device. False: it is free on some device. */
static bool prices_of(const struct bound *b, enum op_kind even, bool pairs, struct prices *out)
{
    double price[MACHINE_MAX_DEVICES];
    double sum = 0.0;
    for (uint32_t d = 0; d < b->n_devices; d++) {
        double cost = floor_compute(b, even, d, pairs);
        if (!(cost > 0.0)) {
            return false;
        }
        price[d] = 1.0 / cost;
        sum += price[d];
    }
    for (uint32_t d = 0; d < b->n_devices; d++) {
        price[d] /= sum;
    }
    double apart = cheapest(b, price, OP_QKV, false) + cheapest(b, price, OP_MHA, false) +
                   cheapest(b, price, OP_FFN, false);
    out->row_s = b->n_layers * fmin(apart, cheapest(b, price, OP_LAYER, false));
    out->pair_s =
        b->n_layers * fmin(cheapest(b, price, OP_MHA, true), cheapest(b, price, OP_LAYER, true));
    out->head_s = cheapest(b, price, OP_HEAD, false);
    return true;
}

struct traffic {
    double pass_bytes, row_bytes, key_bytes; /* of all layers; the head's rows are small */
};

static struct traffic traffic_of(const struct bound *b)
{
    struct traffic t = {HUGE_VAL, HUGE_VAL, HUGE_VAL};
    /* Floors of bytes are normally equal for all devices and for one row or many. In other models
     * the least one is a bound. */
    double op[OP_KIND_COUNT][3];
    for (int k = 0; k < OP_KIND_COUNT; k++) {
        op[k][0] = op[k][1] = op[k][2] = HUGE_VAL;
        for (uint32_t i = 0; i < 2 * b->n_devices; i++) {
            const struct kernel_floor *f = &b->ops[k].of[i / 2][i % 2];
            op[k][0] = fmin(op[k][0], f->bytes);
            op[k][1] = fmin(op[k][1], f->row_bytes);
            op[k][2] = fmin(op[k][2], f->key_bytes);
        }
    }
    double *sum[3] = {&t.pass_bytes, &t.row_bytes, &t.key_bytes};
    for (int i = 0; i < 3; i++) {
        double apart = op[OP_QKV][i] + op[OP_MHA][i] + op[OP_FFN][i];
        *sum[i] = b->n_layers * fmin(apart, op[OP_LAYER][i]);
    }
    t.pass_bytes += op[OP_HEAD][0];
    return t;
}

static double all_bandwidth(const struct bound *b)
{
    double sum = 0.0;
    for (uint32_t d = 0; d < b->n_devices; d++) {
        double most = 0.0;
        for (int k = 0; k < OP_KIND_COUNT; k++) {
            most = fmax(most, b->ops[k].of[d][0].bytes_per_s);
            most = fmax(most, b->ops[k].of[d][1].bytes_per_s);
        }
        sum += most;
    }
    return fmin(sum, b->ddr_bytes_per_s);
}

/* ---- work released from an instant on ---- */

SORT_BY(by_release, struct released, SORT_UP(at_s))

static double compute_end_s(const struct bound *b, const struct released *r, size_t n)
{
    static const struct {
        enum op_kind op;
        bool pairs;
    } even[] = {{OP_QKV, false}, {OP_FFN, false}, {OP_HEAD, false}, {OP_MHA, true}};
    double end = 0.0;
    for (size_t e = 0; e < sizeof even / sizeof even[0]; e++) {
        struct prices p;
        double work_s = 0.0;
        if (!prices_of(b, even[e].op, even[e].pairs, &p)) {
            continue;
        }
        for (size_t i = n; i-- > 0;) {
            const struct bound_work *w = &r[i].work;
            work_s += p.row_s * (w->prefill_rows + w->decode_rows) +
                      p.pair_s * (w->prefill_pairs + w->decode_keys) +
                      p.head_s * (1.0 + w->decode_passes);
            end = fmax(end, r[i].at_s + work_s);
        }
    }
    return end;
}

static double memory_end_s(const struct bound *b, const struct released *r, size_t n)
{
    struct traffic t = traffic_of(b);
    double bytes_per_s = all_bandwidth(b);
    double end = 0.0;
    double bytes = 0.0;
    double passes = 0.0;
    for (size_t i = n; i-- > 0;) {
        const struct bound_work *w = &r[i].work;
        passes = fmax(passes, 1.0 + w->decode_passes);
        /* a pass that verifies several tokens reads the keys once */
        bytes += t.row_bytes * (w->prefill_rows + w->decode_rows) +
                 t.key_bytes * (w->input + w->decode_keys);
        end = fmax(end, r[i].at_s + (bytes + passes * t.pass_bytes) / bytes_per_s);
    }
    return end;
}

/* ---- the whole workload ---- */

struct means {
    double ttft_s, e2e_s, norm_s, n;
};

static void means_add(struct means *m, const struct bound_latency *l, const struct trace_row *row)
{
    m->ttft_s += l->ttft_s;
    m->e2e_s += l->e2e_s;
    m->norm_s += l->e2e_s / ((double)row->input_tokens + row->output_tokens);
    m->n += 1.0;
}

/* Computes the bounds of all requests along their sessions. Returns the latest end. */
static double walk(const struct bound *b, const struct trace *t, struct released *r,
                   struct means *means)
{
    double end = 0.0;
    size_t n = 0;
    for (size_t first = 0; first < t->n_first; first++) {
        double at_s = 0.0;
        for (uint32_t i = (uint32_t)first; i != TRACE_NO_ROW; i = t->rows[i].next) {
            const struct trace_row *row = &t->rows[i];
            struct bound_latency l = bound_request(b, row);
            at_s += units_s_from_ns(row->arrival_ns);
            r[n++] = (struct released){at_s, bound_work(b, row)};
            at_s += l.e2e_s;
            end = fmax(end, at_s);
            means_add(&means[row->cls], &l, row);
            means_add(&means[REQUEST_CLASS_COUNT], &l, row);
        }
    }
    return end;
}

void bound_trace(const struct bound *b, const struct trace *t, struct bound_workload *out)
{
    struct means means[REQUEST_CLASS_COUNT + 1] = {{0}};
    OWNED struct released *r = xcalloc(t->n + 1, sizeof *r);
    double ends[3];
    ends[BOUND_BY_PATH] = walk(b, t, r, means);
    qsort(r, t->n, sizeof *r, by_release);
    ends[BOUND_BY_COMPUTE] = compute_end_s(b, r, t->n);
    ends[BOUND_BY_MEMORY] = memory_end_s(b, r, t->n);
    *out = (struct bound_workload){.by = BOUND_BY_PATH};
    for (int i = 0; i < 3; i++) {
        out->by = ends[i] > ends[out->by] ? (enum bound_by)i : out->by;
    }
    double span_s = t->n > 0 ? ends[out->by] - r[0].at_s : 0.0;
    out->makespan_s = span_s * (1.0 - BOUND_ROUNDING_FRAC);
    out->throughput_req_per_min = (double)t->n / out->makespan_s * 60.0;
    for (int c = 0; c <= REQUEST_CLASS_COUNT; c++) {
        const struct means *m = &means[c]; /* 0 / 0 is NaN: the class has no request */
        out->mean[c] = (struct bound_latency){m->ttft_s / m->n, m->e2e_s / m->n};
        out->norm_e2e_per_token_s[c] = m->norm_s / m->n;
    }
}

/* The bound covers these statistics of reactive, of proactive and of all requests. */
#define OF_EACH(statistic, member)                                                                 \
    {"reactive." statistic, offsetof(struct bound_workload, member(REQUEST_CLASS_REACTIVE))},      \
        {"proactive." statistic,                                                                   \
         offsetof(struct bound_workload, member(REQUEST_CLASS_PROACTIVE))},                        \
    {                                                                                              \
        "all." statistic, offsetof(struct bound_workload, member(REQUEST_CLASS_COUNT))             \
    }
#define TTFT(c) mean[c].ttft_s
#define E2E(c) mean[c].e2e_s
#define NORM(c) norm_e2e_per_token_s[c]

double bound_metric(const struct bound_workload *w, const char *metric)
{
    static const struct {
        const char *metric;
        size_t at;
    } bounded[] = {
        OF_EACH("ttft_s.mean", TTFT),
        OF_EACH("e2e_s.mean", E2E),
        OF_EACH("norm_e2e_per_token_s.mean", NORM),
        {"all.throughput_req_per_min", offsetof(struct bound_workload, throughput_req_per_min)},
    };
    for (size_t i = 0; i < sizeof bounded / sizeof bounded[0]; i++) {
        if (strcmp(bounded[i].metric, metric) == 0) {
            return *(const double *)((const char *)w + bounded[i].at);
        }
    }
    return (double)NAN;
}
