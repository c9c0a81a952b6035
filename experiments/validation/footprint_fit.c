#include "experiments/validation/footprint_fit.h"

#include "experiments/validation/least_squares.h"
#include "experiments/validation/predict_impl.h"
#include "hwmodels/footprint.h"

#define NUMBERS 4
#define MIB 1048576.0

void footprint_collect(const struct catalog *c, const struct points *points,
                       struct footprint_rows *out)
{
    *out = (struct footprint_rows){0};
    for (size_t i = 0; i < points->n; i++) {
        struct footprint_row r = {.point = &points->v[i]};
        if (r.point->metric != POINT_MEMORY_MIB) {
            continue;
        }
        predict_bind(c, r.point, &r.k);
        if (r.k.reason == NULL) {
            KEPT_ADD(out->v, out->n, r);
        }
    }
}

static enum device_kind kind_of(const struct footprint_row *r)
{
    return r->k.soc->machine.devices[r->k.device].kind;
}

/* "openvino-2025.4" and "openvino-2025.0" are one toolchain. */
static size_t toolchain_length(const struct footprint_row *r)
{
    return strcspn(r->point->runtime, ".");
}

static bool same_toolchain(const struct footprint_row *a, const struct footprint_row *b)
{
    size_t n = toolchain_length(a);
    return kind_of(a) == kind_of(b) && n == toolchain_length(b) &&
           strncmp(a->point->runtime, b->point->runtime, n) == 0;
}

/* Attention scores depend on the device; the other numbers on the runtime. */
static struct soc_memory on_device(const struct footprint_row *r, const struct soc_memory *m)
{
    struct soc_memory own = *m;
    own.score_bytes = r->k.soc->devices[r->k.device].memory.score_bytes;
    return own;
}

/* Relative to the measured value: 1 = sum over k of number k times column k, plus KV and scores. */
static double columns(const struct footprint_row *r, double out[NUMBERS])
{
    const struct llm *m = &r->k.llm;
    double bytes = r->point->value * MIB;
    out[0] = 1e9 / bytes;
    out[1] = m->weight_bytes / bytes;
    out[2] = 1e3 * m->vocab / bytes;
    out[3] = (double)m->hidden * r->point->input_tokens / bytes;
    const struct soc_memory none = {0};
    struct soc_memory known = on_device(r, &none);
    return 1.0 - footprint_bytes(&known, m, r->point->input_tokens) / bytes;
}

bool footprint_fit(const struct footprint_rows *r, const struct footprint_row *like,
                   struct soc_memory *out)
{
    double(*a)[NUMBERS] = xmalloc((r->n + 1) * sizeof *a);
    OWNED double *y = xmalloc((r->n + 1) * sizeof *y);
    double x[NUMBERS] = {0};
    size_t n = 0;
    for (size_t i = 0; i < r->n; i++) {
        if (!r->v[i].left_out && same_toolchain(&r->v[i], like)) {
            y[n] = columns(&r->v[i], a[n]);
            n++;
        }
    }
    if (n >= NUMBERS) {
        least_squares_fit(&a[0][0], y, n, NUMBERS, x);
    }
    *out = (struct soc_memory){.fixed_bytes = 1e9 * x[0],
                               .weights_frac = x[1],
                               .tokenizer_bytes = 1e3 * x[2],
                               .activation_bytes = x[3]};
    (void)snprintf(out->runtime, sizeof out->runtime, "%.*s", (int)toolchain_length(like),
                   like->point->runtime);
    free(a);
    return n >= NUMBERS;
}

static void add(struct soc_memory *sum, const struct soc_memory *m, double by)
{
    sum->fixed_bytes += by * m->fixed_bytes;
    sum->weights_frac += by * m->weights_frac;
    sum->tokenizer_bytes += by * m->tokenizer_bytes;
    sum->activation_bytes += by * m->activation_bytes;
}

static bool is_first(const struct footprint_rows *r, size_t i)
{
    for (size_t j = 0; j < i; j++) {
        if (same_toolchain(&r->v[j], &r->v[i])) {
            return false;
        }
    }
    return true;
}

bool footprint_fit_others(const struct footprint_rows *r, const struct footprint_row *like,
                          struct soc_memory *out)
{
    size_t n = 0;
    struct soc_memory sum = {.runtime = FOOTPRINT_OTHER};
    for (size_t i = 0; i < r->n; i++) {
        struct soc_memory m;
        if (is_first(r, i) && !same_toolchain(&r->v[i], like) && footprint_fit(r, &r->v[i], &m)) {
            add(&sum, &m, 1.0);
            n++;
        }
    }
    *out = (struct soc_memory){.runtime = FOOTPRINT_OTHER};
    add(out, &sum, n > 0 ? 1.0 / (double)n : 0.0);
    return n > 0;
}

double footprint_row_bytes(const struct footprint_row *r, const struct soc_memory *m)
{
    struct soc_memory own = on_device(r, m);
    return footprint_bytes(&own, &r->k.llm, r->point->input_tokens);
}

/* The mean over the runtimes of the shipped files, each counted once. */
static bool mean_of_files(const struct catalog *c, struct soc_memory *out)
{
    const struct soc_memory *seen[64];
    size_t n = 0;
    *out = (struct soc_memory){.runtime = FOOTPRINT_OTHER};
    for (size_t s = 0; s < c->n_socs; s++) {
        for (uint32_t d = 0; d < c->socs[s]->machine.n_devices; d++) {
            const struct soc_memory *m = &c->socs[s]->devices[d].memory;
            bool known = m->runtime[0] == '\0' || strcmp(m->runtime, FOOTPRINT_OTHER) == 0 ||
                         n == sizeof seen / sizeof seen[0];
            for (size_t i = 0; i < n && !known; i++) {
                known = strcmp(seen[i]->runtime, m->runtime) == 0;
            }
            if (!known) {
                add(out, m, 1.0);
                seen[n++] = m;
            }
        }
    }
    struct soc_memory sum = *out;
    *out = (struct soc_memory){.runtime = FOOTPRINT_OTHER};
    add(out, &sum, n > 0 ? 1.0 / (double)n : 0.0);
    return n > 0;
}

struct prediction predict_memory(const struct catalog *c, const struct point *p)
{
    struct footprint_row r = {.point = p};
    predict_bind(c, p, &r.k);
    if (r.k.reason != NULL) {
        return predict_unknown(r.k.reason);
    }
    const struct soc_memory *own = &r.k.soc->devices[r.k.device].memory;
    size_t n = strlen(own->runtime);
    bool exact =
        n > 0 && strncmp(own->runtime, p->runtime, n) == 0 && strchr("-.", p->runtime[n]) != NULL;
    struct soc_memory mean;
    if (!exact && !mean_of_files(c, &mean)) {
        return predict_unknown("no SoC file states what its runtime needs next to the weights");
    }
    struct prediction out = predict_known(footprint_row_bytes(&r, exact ? own : &mean) / MIB);
    out.runtime_default = !exact;
    r.k.match = exact ? SOC_MATCH_EXACT : SOC_MATCH_OTHER;
    predict_interval(c, p, &r.k, 1.0, &out);
    out.low *= out.value;
    out.high *= out.value;
    return out;
}

/* ---- ranges ---- */

struct range {
    double low[NUMBERS], high[NUMBERS];
};

static void widen(struct range *x, const struct soc_memory *m)
{
    const double v[NUMBERS] = {m->fixed_bytes / 1e9, m->weights_frac, m->tokenizer_bytes / 1e3,
                               m->activation_bytes};
    for (int k = 0; k < NUMBERS; k++) {
        x->low[k] = fmin(x->low[k], v[k]);
        x->high[k] = fmax(x->high[k], v[k]);
    }
}

void footprint_print(const struct catalog *c, const struct points *points, FILE *out)
{
    struct footprint_rows r;
    footprint_collect(c, points, &r);
    for (size_t i = 0; i < r.n; i++) {
        struct soc_memory all;
        if (!is_first(&r, i) || !footprint_fit(&r, &r.v[i], &all)) {
            continue;
        }
        struct range x = {{(double)INFINITY, (double)INFINITY, (double)INFINITY, (double)INFINITY},
                          {0}};
        widen(&x, &all);
        for (size_t j = 0; j < r.n; j++) {
            for (size_t k = 0; k < r.n; k++) {
                r.v[k].left_out = point_same_source(r.v[k].point->source, r.v[j].point->source);
            }
            struct soc_memory without;
            if (same_toolchain(&r.v[j], &r.v[i]) && footprint_fit(&r, &r.v[i], &without)) {
                widen(&x, &without);
            }
        }
        for (size_t k = 0; k < r.n; k++) {
            r.v[k].left_out = false;
        }
        (void)fprintf(
            out,
            "%-16s %-4s  fixed %.3f [%.3f, %.3f] GB  weights %.3f [%.3f, %.3f]  tokenizer "
            "%.2f [%.2f, %.2f] kB  activations %.0f [%.0f, %.0f] B\n",
            all.runtime, device_kind_names()[kind_of(&r.v[i])], all.fixed_bytes / 1e9, x.low[0],
            x.high[0], all.weights_frac, x.low[1], x.high[1], all.tokenizer_bytes / 1e3, x.low[2],
            x.high[2], all.activation_bytes, x.low[3], x.high[3]);
    }
}
