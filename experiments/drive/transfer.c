#include "experiments/drive/transfer.h"

#include <gsl/gsl_multimin.h>
#include <gsl/gsl_sort.h>

#include "experiments/drive/fit_impl.h"
#include "hwmodels/roofline.h"
#include "sim/base/json.h"
#include "sim/base/scope_gsl.h"

#define FOLDS 10
#define ITERATIONS 3000
#define SIZE_END 1e-4
#define STEP 0.3
#define RESTARTS 3
#define KNEE 2.0 /* start value */

/* Keys, units and bounds as in a SoC file. The fit uses ln(number + offset), so numbers far below
 * the offset are as good as 0. */
static const struct {
    const char *key, *unit;
    double low, high, offset;
} numbers[TRANSFER_NUMBERS] = {
    {"rate", "TFLOP/s", 1e-3, 1e3, 0.0},
    {"bandwidth", "GB/s", 0.1, 0.0 /* the DDR's peak */, 0.0},
    {"launch", "us", 0.0, 1e4, 1.0},
    {"row_fill", "rows", 0.0, 2e3, 1.0},
    {"attention", "1", 5e-3, 4.0, 0.0},
    {"decode_attention", "1", 5e-3, 4.0, 0.0},
    {"knee", "1", 1.0 /* the sum */, 20.0, 0.0},
    [TRANSFER_ONE_LAUNCH] = {"one_row.launch", "us", 0.0, 1e4, 1.0},
};

/* Kernels of equal work. */
struct kind {
    struct drive_kernel k; /* the first */
    double sum_s, n;
};

struct problem {
    struct roofline model;
    struct soc_runtime params;
    uint8_t device;
    const struct kind *v;
    size_t n;
    int fold; /* left out; -1: none */
    double low[TRANSFER_NUMBERS], high[TRANSFER_NUMBERS];
};

/* ---- kernels ---- */

SORT_BY(by_work, struct drive_kernel, SORT_UP(device), SORT_UP(op), SORT_UP(rows),
        SORT_UP(padded_rows), SORT_UP(shape_rows), SORT_UP(prefill_rows), SORT_UP(pairs),
        SORT_UP(keys), SORT_UP(sequences), SORT_UP(ns))

/* Kinds of one device, without kernels that lost their core. The caller frees them. */
static struct kind *kinds_of(const struct fit_input *in, uint8_t device, size_t *n)
{
    OWNED struct drive_kernel *k = xmalloc((in->n + 1) * sizeof *k);
    size_t kernels = 0;
    for (size_t i = 0; i < in->n; i++) {
        if (in->kernels[i].device == device && !in->kernels[i].stopped) {
            k[kernels++] = in->kernels[i];
        }
    }
    if (kernels > 0) {
        qsort(k, kernels, sizeof *k, by_work);
    }
    struct kind *out = xmalloc((kernels + 1) * sizeof *out);
    SIM_ASSERT(kernels <= in->n);
    *n = 0;
    for (size_t i = 0; i < kernels;) {
        size_t end = i;
        struct drive_kernel same = k[i];
        while (end < kernels) {
            same.ns = k[end].ns;
            if (by_work(&same, &k[end]) != 0) {
                break;
            }
            end++;
        }
        double limit = FIT_LOST_CORE * (double)k[(i + end) / 2].ns;
        struct kind *to = &out[(*n)++];
        *to = (struct kind){.k = k[i]};
        for (size_t j = i; j < end; j++) {
            if (end - i < 3 || (double)k[j].ns <= limit) {
                to->sum_s += (double)k[j].ns / 1e9;
                to->n += 1.0;
            }
        }
        SIM_ASSERT(to->n > 0.0 && to->sum_s > 0.0 && to->n <= (double)(end - i));
        SIM_ASSERT(*n == 1 || by_work(&out[*n - 2].k, &to->k) < 0); /* each kind is there once */
        i = end;
    }
    SIM_ASSERT(*n <= kernels);
    return out;
}

/* ---- the fit ---- */

static void cost_of(struct problem *q, const struct kind *k, struct kernel_cost *cost)
{
    struct work_shape w = fit_shape(&k->k);
    struct kernel_query query = {.device = q->device,
                                 .op = (enum op_kind)k->k.op,
                                 .rows = k->k.rows,
                                 .padded_rows = k->k.padded_rows,
                                 .shape = &w};
    hwmodel_kernel(&q->model.model, &query, cost);
    SIM_ASSERT(q->device == k->k.device && cost->t_ns > 0 && cost->flop >= 0.0);
}

static double predicted_s(struct problem *q, const struct kind *k)
{
    struct kernel_cost cost;
    cost_of(q, k, &cost);
    return (double)cost.t_ns / 1e9;
}

static double log_of(int i, double x)
{
    SIM_ASSERT(x + numbers[i].offset > 0.0); /* each number has a logarithm */
    return log(x + numbers[i].offset);
}

static double value_of(const struct problem *q, int i, double v)
{
    double x = exp(v) - numbers[i].offset;
    SIM_ASSERT(q->low[i] <= q->high[i] && q->low[i] + numbers[i].offset > 0.0);
    return fmin(fmax(x, q->low[i]), q->high[i]);
}

static void take(struct problem *q, const double x[TRANSFER_NUMBERS])
{
    struct soc_runtime *r = &q->params;
    for (int i = 0; i < TRANSFER_NUMBERS; i++) {
        SIM_ASSERT(x[i] >= q->low[i] * (1.0 - 1e-9) && x[i] <= q->high[i] * (1.0 + 1e-9));
    }
    SIM_ASSERT(q->model.runtime[q->device] == r); /* the model reads these */
    r->many.flop_per_s = 1e12 * x[TRANSFER_RATE];
    r->many.bytes_per_s = 1e9 * x[TRANSFER_BANDWIDTH];
    r->many.launch_s = 1e-6 * x[TRANSFER_LAUNCH];
    r->one = r->many;
    r->one.launch_s = 1e-6 * x[TRANSFER_ONE_LAUNCH];
    r->fill_rows = x[TRANSFER_FILL];
    r->width_fill = r->enqueue_s = r->prompt_enqueue_s = r->special_attention_frac = 0.0;
    r->recurrence_frac = r->further_launches = 0.0;
    r->attention_frac = x[TRANSFER_ATTENTION];
    r->decode_attention_frac = x[TRANSFER_DECODE_ATTENTION];
    r->knee = x[TRANSFER_KNEE];
}

static double objective(const gsl_vector *v, void *ctx)
{
    struct problem *q = ctx;
    double x[TRANSFER_NUMBERS];
    double outside = 0.0;
    for (int i = 0; i < TRANSFER_NUMBERS; i++) {
        double at = gsl_vector_get(v, (size_t)i);
        x[i] = value_of(q, i, at);
        /* This gives a slope back into the bounds, where the clamped error is flat. */
        outside += fabs(at - log_of(i, x[i]));
    }
    take(q, x);
    double sum = 0.0;
    double weight = 0.0;
    for (size_t i = 0; i < q->n; i++) {
        if (q->fold < 0 || i % FOLDS != (size_t)q->fold) {
            double error = log(predicted_s(q, &q->v[i]) * q->v[i].n / q->v[i].sum_s);
            /* The weight is the root of time, because with time itself only prompts would count. */
            double w = sqrt(q->v[i].sum_s);
            SIM_ASSERT(isfinite(error));
            sum += w * error * error;
            weight += w;
        }
    }
    SIM_ASSERT(weight > 0.0 && sum >= 0.0 && q->fold < FOLDS); /* no fold has all kinds */
    return sum / weight + outside;
}

/* Starts from the highest rate and bandwidth that any kernel reached. The device can do no less,
 * and a descent from there finds the right side of the roofline. */
static void reached(struct problem *q, double x[TRANSFER_NUMBERS])
{
    x[TRANSFER_RATE] = x[TRANSFER_BANDWIDTH] = 0.0;
    for (size_t i = 0; i < q->n; i++) {
        struct kernel_cost cost;
        cost_of(q, &q->v[i], &cost);
        double s = q->v[i].sum_s / q->v[i].n;
        x[TRANSFER_RATE] = fmax(x[TRANSFER_RATE], cost.flop / s / 1e12);
        if (q->v[i].k.padded_rows == 1) {
            x[TRANSFER_BANDWIDTH] = fmax(x[TRANSFER_BANDWIDTH], cost.bytes / s / 1e9);
        }
    }
    SIM_ASSERT(x[TRANSFER_RATE] > 0.0 && isfinite(x[TRANSFER_RATE]));
}

/* Starts from x, and stores the best there. */
static void minimise(struct problem *q, double x[TRANSFER_NUMBERS], int starts)
{
    SIM_ASSERT(starts > 0 && q->n >= FOLDS);
    SCOPED(vector_drop) gsl_vector *v = gsl_vector_alloc(TRANSFER_NUMBERS);
    SCOPED(vector_drop) gsl_vector *step = gsl_vector_alloc(TRANSFER_NUMBERS);
    gsl_multimin_fminimizer *m =
        gsl_multimin_fminimizer_alloc(gsl_multimin_fminimizer_nmsimplex2, TRANSFER_NUMBERS);
    gsl_multimin_function f = {objective, TRANSFER_NUMBERS, q};
    gsl_vector_set_all(step, STEP);
    for (int start = 0; start < starts; start++) {
        for (int i = 0; i < TRANSFER_NUMBERS; i++) {
            gsl_vector_set(v, (size_t)i, log_of(i, x[i]));
        }
        int status = gsl_multimin_fminimizer_set(m, &f, v, step) == 0 ? GSL_CONTINUE : GSL_FAILURE;
        for (int i = 0; i < ITERATIONS && status == GSL_CONTINUE; i++) {
            status = gsl_multimin_fminimizer_iterate(m) != 0
                         ? GSL_FAILURE
                         : gsl_multimin_test_size(gsl_multimin_fminimizer_size(m), SIZE_END);
        }
        for (int i = 0; i < TRANSFER_NUMBERS; i++) {
            x[i] = value_of(q, i, gsl_vector_get(gsl_multimin_fminimizer_x(m), (size_t)i));
            SIM_ASSERT(x[i] >= q->low[i] * (1.0 - 1e-9) && x[i] <= q->high[i] * (1.0 + 1e-9));
        }
    }
    gsl_multimin_fminimizer_free(m);
}

/* Median and P90 of the errors of kinds, weighted by time. */
static void judge(struct problem *q, struct transfer_device *d)
{
    OWNED double *error = xmalloc((q->n + 1) * sizeof *error);
    OWNED size_t *order = xmalloc((q->n + 1) * sizeof *order);
    double all = 0.0;
    for (size_t i = 0; i < q->n; i++) {
        error[i] = fabs(predicted_s(q, &q->v[i]) * q->v[i].n / q->v[i].sum_s - 1.0);
        all += q->v[i].sum_s;
    }
    gsl_sort_index(order, error, 1, q->n);
    double sum = 0.0;
    for (size_t i = 0; i < q->n; i++) {
        SIM_ASSERT(i == 0 || error[order[i]] >= error[order[i - 1]]);
        double before = sum;
        sum += q->v[order[i]].sum_s;
        d->median_frac = before < 0.5 * all ? error[order[i]] : d->median_frac;
        d->p90_frac = before < 0.9 * all ? error[order[i]] : d->p90_frac;
    }
    SIM_ASSERT(d->median_frac <= d->p90_frac && fabs(sum - all) <= 1e-9 * all);
}

/* Ranges from a jackknife: the spread of fits that leave out a tenth each, in logarithms. */
static void jackknife(struct problem *q, const double x[TRANSFER_NUMBERS],
                      struct transfer_device *d)
{
    double v[FOLDS][TRANSFER_NUMBERS];
    SIM_ASSERT(q->fold == -1); /* x is fitted to all kinds */
    for (q->fold = 0; q->fold < FOLDS; q->fold++) {
        double y[TRANSFER_NUMBERS];
        memcpy(y, x, sizeof y);
        minimise(q, y, 1);
        for (int i = 0; i < TRANSFER_NUMBERS; i++) {
            v[q->fold][i] = log_of(i, y[i]);
        }
    }
    q->fold = -1;
    for (int i = 0; i < TRANSFER_NUMBERS; i++) {
        double mean = 0.0;
        double squares = 0.0;
        for (int k = 0; k < FOLDS; k++) {
            mean += v[k][i] / FOLDS;
        }
        for (int k = 0; k < FOLDS; k++) {
            squares += (v[k][i] - mean) * (v[k][i] - mean);
        }
        double sd = sqrt(squares * (FOLDS - 1.0) / FOLDS);
        double at = log_of(i, x[i]);
        d->number[i] =
            (struct fit_number){x[i], value_of(q, i, at - Z95 * sd), value_of(q, i, at + Z95 * sd)};
        SIM_ASSERT(fit_number_ok(d->number[i]));
    }
}

static void fit_device(const struct fit_input *in, const struct fit *fit, const struct soc *soc,
                       const struct llm *llm, uint8_t device, struct transfer_device *d)
{
    struct problem q = {.device = device, .fold = -1};
    OWNED struct kind *kinds = kinds_of(in, device, &q.n);
    q.v = kinds;
    *d = (struct transfer_device){.few_rows = fit->devices[device].split.few_below};
    if (q.n >= FOLDS) {
        roofline_init(&q.model, hwmodel_find("p-norm"), soc, llm);
        q.params = *q.model.runtime[device];
        q.params.few_rows = d->few_rows;
        roofline_set_runtime(&q.model, device, &q.params);
        double x[TRANSFER_NUMBERS] = {q.params.many.flop_per_s / 1e12,
                                      q.params.many.bytes_per_s / 1e9,
                                      q.params.many.launch_s * 1e6,
                                      q.params.fill_rows,
                                      q.params.attention_frac,
                                      0.5 * q.params.attention_frac,
                                      KNEE,
                                      q.params.one.launch_s * 1e6};
        double stated = x[TRANSFER_BANDWIDTH];
        reached(&q, x);
        x[TRANSFER_BANDWIDTH] = x[TRANSFER_BANDWIDTH] > 0.0 ? x[TRANSFER_BANDWIDTH] : stated;
        for (int i = 0; i < TRANSFER_NUMBERS; i++) {
            q.low[i] = numbers[i].low;
            q.high[i] = numbers[i].high;
        }
        q.high[TRANSFER_BANDWIDTH] = soc->machine.ddr_peak_bytes_per_s / 1e9;
        minimise(&q, x, RESTARTS);
        jackknife(&q, x, d);
        take(&q, x);
        d->kinds = (uint32_t)q.n;
        for (size_t i = 0; i < q.n; i++) {
            d->kernels += (uint32_t)q.v[i].n;
        }
        SIM_ASSERT(d->kernels >= d->kinds && d->kernels <= in->n);
        judge(&q, d);
    }
}

void transfer_fit(const struct fit_input *in, const struct fit *fit, const struct soc *soc,
                  const struct llm *llm, struct transfer *out)
{
    out->n_devices = soc->machine.n_devices;
    SIM_ASSERT(out->n_devices > 0 && out->n_devices <= MACHINE_MAX_DEVICES);
    for (uint32_t i = 0; i < out->n_devices; i++) {
        fit_device(in, fit, soc, llm, (uint8_t)i, &out->devices[i]);
    }
}

/* ---- output ---- */

static void put(cJSON *to, const struct transfer_device *d, int i, const char *key,
                const char *source)
{
    const struct fit_number *x = &d->number[i];
    SIM_ASSERT(d->kinds > 0 && x->value >= 0.0); /* devices without kernels are not written */
    json_put_quantity(
        to, key,
        (struct quantity){
            .value = x->value, .low = x->low, .high = x->high, .kind = QUANTITY_FITTED},
        numbers[i].unit, source);
}

void transfer_write(const struct transfer_device *d, cJSON *entry, const char *source)
{
    if (d->kinds == 0) {
        return;
    }
    cJSON *one = cJSON_CreateObject();
    for (int i = 0; i < TRANSFER_ONE_LAUNCH; i++) {
        put(entry, d, i, numbers[i].key, source);
    }
    put(one, d, TRANSFER_RATE, "rate", source);
    put(one, d, TRANSFER_BANDWIDTH, "bandwidth", source);
    put(one, d, TRANSFER_ONE_LAUNCH, "launch", source);
    cJSON_DeleteItemFromObject(entry, "few_rows");
    cJSON_AddNumberToObject(entry, "few_rows", d->few_rows);
    cJSON_DeleteItemFromObject(entry, "one_row");
    cJSON_AddItemToObject(entry, "one_row", one);
    cJSON_DeleteItemFromObject(entry, "width_fill");
    cJSON_DeleteItemFromObject(entry, "enqueue");
    cJSON_DeleteItemFromObject(entry, "prompt_enqueue");
    cJSON_DeleteItemFromObject(entry, "special_attention");
    cJSON_DeleteItemFromObject(entry, "recurrence");
    cJSON_DeleteItemFromObject(entry, "fit");
}

void transfer_print(const struct transfer *t, const struct machine *m, FILE *out)
{
    (void)fprintf(out, "transferable form (p-norm), for models that have no table:\n");
    for (uint32_t i = 0; i < t->n_devices; i++) {
        const struct transfer_device *d = &t->devices[i];
        if (d->kinds == 0) {
            continue;
        }
        (void)fprintf(out, "  %-5s", m->devices[i].name);
        for (int k = 0; k < TRANSFER_NUMBERS; k++) {
            const struct fit_number *x = &d->number[k];
            (void)fprintf(out, " %s %.3g [%.3g, %.3g] %s%s", numbers[k].key, x->value, x->low,
                          x->high, strcmp(numbers[k].unit, "1") != 0 ? numbers[k].unit : "",
                          k + 1 < TRANSFER_NUMBERS ? "," : "");
        }
        (void)fprintf(out,
                      "\n        |error| of %u kind%s (%u kernel%s), by time: %.1f %% median, "
                      "%.1f %% P90\n",
                      d->kinds, text_plural(d->kinds), d->kernels, text_plural(d->kernels),
                      100.0 * d->median_frac, 100.0 * d->p90_frac);
    }
}
