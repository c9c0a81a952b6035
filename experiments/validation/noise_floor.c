#include "experiments/validation/noise_floor.h"

#include "sim/base/quantile.h"

#define SAME_TOKENS 1.02
#define SAME_VOCAB 1.1

struct row {
    const struct point *point;
    struct predict_case k;
    double seconds;
    bool done;
};

static bool within(double a, double b, double factor)
{
    return a <= b * factor && b <= a * factor;
}

static bool same_shape(const struct llm *a, const struct llm *b)
{
    return a->n_layers == b->n_layers && a->hidden == b->hidden && a->heads == b->heads &&
           a->kv_heads == b->kv_heads && a->head_dim == b->head_dim &&
           a->ffn_hidden == b->ffn_hidden && a->gated_ffn == b->gated_ffn &&
           a->n_experts == b->n_experts && within(a->vocab, b->vocab, SAME_VOCAB);
}

static bool same_case(const struct row *a, const struct row *b)
{
    const struct point *p = a->point;
    const struct point *q = b->point;
    return a->k.soc == b->k.soc && a->k.device == b->k.device && p->weight_bits == q->weight_bits &&
           p->act_bits == q->act_bits && p->batch == q->batch &&
           within(p->input_tokens + 1.0, q->input_tokens + 1.0, SAME_TOKENS);
}

/* "openvino-2025.0" and "openvino-2024.6": one toolchain, two versions. */
static bool other_version(const char *a, const char *b)
{
    size_t n = strcspn(a, "-");
    return strcmp(a, b) != 0 && strcspn(b, "-") == n && strncmp(a, b, n) == 0;
}

static size_t collect(const struct catalog *c, const struct points *points, enum device_kind kind,
                      enum conformal_phase phase, struct row *out)
{
    size_t n = 0;
    for (size_t i = 0; i < points->n; i++) {
        const struct point *p = &points->v[i];
        if (!point_is_latency(p) ||
            conformal_phase_of(point_is_prefill(p), p->input_tokens) != phase) {
            continue;
        }
        struct row *r = &out[n];
        *r = (struct row){.point = p, .seconds = point_pass_seconds(p)};
        predict_bind(c, p, &r->k);
        n += r->k.reason == NULL && r->k.soc->machine.devices[r->k.device].kind == kind;
    }
    return n;
}

/* Fills the errors of all twins. Returns their number. */
static size_t twins(struct row *rows, size_t n, double *error, size_t *groups)
{
    OWNED size_t *group = xmalloc((n + 1) * sizeof *group);
    size_t count = 0;
    *groups = 0;
    for (size_t i = 0; i < n; i++) {
        size_t m = 0;
        double sum = 0.0;
        for (size_t j = i; j < n && !rows[i].done; j++) {
            if (!rows[j].done && same_case(&rows[i], &rows[j]) &&
                strcmp(rows[i].point->runtime, rows[j].point->runtime) == 0 &&
                same_shape(&rows[i].k.llm, &rows[j].k.llm)) {
                group[m++] = j;
                sum += log(rows[j].seconds);
            }
        }
        for (size_t k = 0; m > 1 && k < m; k++) {
            rows[group[k]].done = true;
            error[count++] = fabs(expm1(log(rows[group[k]].seconds) - sum / (double)m));
        }
        *groups += m > 1;
    }
    return count;
}

static size_t versions(const struct row *rows, size_t n, size_t room, double *factor)
{
    size_t count = 0;
    for (size_t i = 0; i < n; i++) {
        for (size_t j = i + 1; j < n && count < room; j++) {
            if (same_case(&rows[i], &rows[j]) &&
                strcmp(rows[i].k.llm.name, rows[j].k.llm.name) == 0 &&
                other_version(rows[i].point->runtime, rows[j].point->runtime)) {
                factor[count++] = exp(fabs(log(rows[i].seconds / rows[j].seconds)));
            }
        }
    }
    return count;
}

struct noise_floor noise_floor_of(const struct catalog *c, const struct points *points,
                                  enum device_kind kind, enum conformal_phase phase)
{
    struct noise_floor out = {0};
    OWNED struct row *rows = xmalloc((points->n + 1) * sizeof *rows);
    size_t room = 8 * points->n + 1;
    OWNED double *scratch = xmalloc(room * sizeof *scratch);
    size_t n = collect(c, points, kind, phase, rows);
    out.twins = twins(rows, n, scratch, &out.twin_groups);
    SIM_ASSERT(out.twins >= 2 * out.twin_groups && out.twins <= n);
    out.twin_median_frac = sample_quantile_of(scratch, out.twins, 0.5);
    out.twin_p90_frac = sample_quantile_of(scratch, out.twins, 0.9);
    out.versions = versions(rows, n, room, scratch);
    out.version_median = sample_quantile_of(scratch, out.versions, 0.5);
    out.version_p90 = sample_quantile_of(scratch, out.versions, 0.9);
    return out;
}
