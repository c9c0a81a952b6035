#include "experiments/validation/calibrate_space.h"

const char *const calibrate_param_names[CALIBRATE_N_PARAMS] = {
    "rate",
    "bandwidth",
    "launch",
    "row_fill",
    "attention",
    "width_fill",
    "one_row.bandwidth",
    "one_row.launch",
    "enqueue",
    "prompt_enqueue",
    "special_attention",
};

const double calibrate_offsets[CALIBRATE_N_PARAMS] = {
    [CALIBRATE_LAUNCH] = 1e-6,     [CALIBRATE_FILL] = 1.0,     [CALIBRATE_WIDTH] = 100.0,
    [CALIBRATE_ONE_LAUNCH] = 1e-6, [CALIBRATE_ENQUEUE] = 1e-6, [CALIBRATE_PROMPT_ENQUEUE] = 1e-6,
};

double calibrate_v_of(double x, double offset)
{
    return offset > 0.0 ? log1p(x / offset) : log(x);
}

double calibrate_x_of(double v, double offset)
{
    return offset > 0.0 ? offset * expm1(v) : exp(v);
}

static void bound(struct calibrate_space *s, int k, double x, double low, double high)
{
    double offset = calibrate_offsets[k];
    s->offset[k] = offset;
    s->low[k] = calibrate_v_of(low, offset);
    s->high[k] = calibrate_v_of(high, offset);
    double margin = 1e-3 * (s->high[k] - s->low[k]); /* the transform never reaches its ends */
    s->start[k] = fmin(fmax(calibrate_v_of(x, offset), s->low[k] + margin), s->high[k] - margin);
    SIM_ASSERT(s->low[k] < s->start[k] && s->start[k] < s->high[k]);
    s->index[s->n++] = k;
}

void calibrate_space_fill(const struct calibrate_set *set, const struct soc_runtime *r,
                          struct calibrate_space *s)
{
    memset(s, 0, sizeof *s);
    double peak = set->soc->devices[set->device].peak_flop_per_s;
    double ddr = set->soc->machine.ddr_peak_bytes_per_s;
    /* `peak` is that of FP16. With quantised activations, engines reach twice that in INT8. */
    double top = r->weight_bits < 16 ? 2.0 * peak : peak;
    bound(s, CALIBRATE_RATE, r->many.flop_per_s, 1e-3 * peak, top);
    bound(s, CALIBRATE_BANDWIDTH, r->many.bytes_per_s, 1e-3 * ddr, ddr);
    bound(s, CALIBRATE_LAUNCH, r->many.launch_s, 0.0, 10e-3);
    if (!set->roofline) {
        bound(s, CALIBRATE_FILL, r->fill_rows, 0.0, 2000.0);
    }
    bound(s, CALIBRATE_ATTENTION, r->attention_frac, 5e-3, 4.0);
    if (r->width_fill_own && !set->roofline) {
        bound(s, CALIBRATE_WIDTH, r->width_fill, 0.0, 50000.0);
    }
    if (r->one_row_own) {
        bound(s, CALIBRATE_ONE_BANDWIDTH, r->one.bytes_per_s, 1e-3 * ddr, ddr);
        bound(s, CALIBRATE_ONE_LAUNCH, r->one.launch_s, 0.0, 10e-3);
    }
    if (r->enqueue_own && !set->roofline) {
        bound(s, CALIBRATE_ENQUEUE, r->enqueue_s, 0.0, 10e-3);
    }
    if (r->prompt_enqueue_own && !set->roofline) {
        bound(s, CALIBRATE_PROMPT_ENQUEUE, r->prompt_enqueue_s, 0.0, 10e-3);
    }
    if (r->special_attention_own && !set->roofline) {
        bound(s, CALIBRATE_SPECIAL, r->special_attention_frac, 5e-3, 4.0);
    }
    s->n_groups = set->n_groups > 1 ? (int)set->n_groups : 0;
}

void calibrate_space_hold(struct calibrate_space *s, int k)
{
    int n = 0;
    for (int i = 0; i < s->n; i++) {
        if (s->index[i] != k) {
            s->index[n++] = s->index[i];
        }
    }
    s->n = n;
}

size_t calibrate_space_size(const struct calibrate_space *s)
{
    return (size_t)s->n + 2u * (size_t)s->n_groups;
}

double calibrate_t_at(const struct calibrate_space *s UNUSED, const gsl_vector *u, int i)
{
    return 1.0 / (1.0 + exp(-gsl_vector_get(u, (size_t)i)));
}

double calibrate_v_at(const struct calibrate_space *s, const gsl_vector *u, int i)
{
    int k = s->index[i];
    return s->low[k] + (s->high[k] - s->low[k]) * calibrate_t_at(s, u, i);
}

double calibrate_u_at(const struct calibrate_space *s, int k, double v)
{
    double t = (v - s->low[k]) / (s->high[k] - s->low[k]);
    return log(t / (1.0 - t));
}

double calibrate_offset_at(const struct calibrate_space *s, const gsl_vector *u, int group,
                           int which)
{
    if (s->n_groups == 0 || group < 0) {
        return 0.0;
    }
    return CALIBRATE_OFFSET_SD * gsl_vector_get(u, (size_t)(s->n + 2 * group + which));
}

/* The member of a parameter; one-row kernels have the rate of the others. */
static double *place_of(struct soc_runtime *r, int k)
{
    double *const places[CALIBRATE_N_PARAMS] = {
        &r->many.flop_per_s, &r->many.bytes_per_s, &r->many.launch_s,         &r->fill_rows,
        &r->attention_frac,  &r->width_fill,       &r->one.bytes_per_s,       &r->one.launch_s,
        &r->enqueue_s,       &r->prompt_enqueue_s, &r->special_attention_frac};
    return places[k];
}

void calibrate_param_set(struct soc_runtime *r, int k, double x)
{
    *place_of(r, k) = x;
    if (k == CALIBRATE_RATE) {
        r->one.flop_per_s = x;
    }
}

double calibrate_param_get(const struct soc_runtime *r, int k)
{
    struct soc_runtime copy = *r;
    return *place_of(&copy, k);
}

struct soc_runtime calibrate_params_at(const struct calibrate_space *s,
                                       const struct soc_runtime *base, const gsl_vector *u)
{
    struct soc_runtime r = *base;
    for (int i = 0; i < s->n; i++) {
        int k = s->index[i];
        calibrate_param_set(&r, k, calibrate_x_of(calibrate_v_at(s, u, i), s->offset[k]));
    }
    if (!r.one_row_own) {
        r.one = r.many;
    }
    return r;
}

/* ---- groups ---- */

static bool together(const struct point *a, const struct point *b)
{
    return strcmp(a->soc, b->soc) == 0 && strcmp(a->runtime, b->runtime) == 0;
}

/* Makes a group of row i and all rows like it, if those that count are of two models. */
static void group_rows(struct calibrate_set *s, size_t i)
{
    const struct point *p = s->rows[i].point;
    bool two = false;
    for (size_t j = i; j < s->n; j++) {
        two = two || (!s->rows[j].left_out && together(s->rows[j].point, p) &&
                      strcmp(s->rows[j].k.llm.name, s->rows[i].k.llm.name) != 0);
    }
    if (!two || s->n_groups == CALIBRATE_MAX_GROUPS) {
        return;
    }
    bool own = strcmp(s->rows[i].k.soc->machine.name, s->soc->machine.name) == 0;
    s->groups[s->n_groups] = (struct calibrate_group){p->soc, p->runtime, own};
    for (size_t j = 0; j < s->n; j++) {
        if (together(s->rows[j].point, p)) {
            s->rows[j].group = (int)s->n_groups;
        }
    }
    s->n_groups++;
}

void calibrate_group(struct calibrate_set *s)
{
    s->n_groups = 0;
    for (size_t i = 0; i < s->n; i++) {
        s->rows[i].group = -1;
    }
    for (size_t i = 0; i < s->n; i++) {
        if (s->rows[i].group < 0 && !s->rows[i].left_out) {
            group_rows(s, i);
        }
    }
}
