#include "hwmodels/backends/simdev.h"
#include "hwmodels/roofline.h"
#include "sim/base/words.h"

#define STEP_ROWS 48u  /* SIMDEV_STEPS; between the row counts that a plan measures */
#define FILL_ROWS 27.0 /* SIMDEV_FILL; m0 of the 125H iGPU, its SoC file */

void simdev_truth_init(struct simdev_truth *t)
{
    memset(t, 0, sizeof *t);
    t->contention.sharpness = 6.0;
    t->contention.cap_bytes_per_s = 0.0; /* 0: ddr.together x ddr.peak of the SoC */
    t->drift_period_s = 600.0;
    t->outlier_factor = 3.0;
    t->seed = 1;
}

static int set_form(struct simdev_truth *t, const char *value, struct err *e)
{
    static const char *const forms[] = {"model", "fill", "steps", "private", NULL};
    int i = words_find(forms, value);
    if (i < 0) {
        OWNED char *known = words_list(forms, " or ");
        return err_add(e, "--sim form=%s: must be %s", value, known);
    }
    t->form = (enum simdev_form)i;
    return 0;
}

static int set_one(struct simdev_truth *t, const char *key, const char *value, struct err *e)
{
    double seed = -1.0;
    struct {
        const char *key;
        double *at, min, max;
    } const known[] = {
        {"noise", &t->noise_frac, 0.0, 1.0},
        {"drift", &t->drift_frac, 0.0, 0.5},
        {"drift_period_s", &t->drift_period_s, 1.0, 1e6},
        {"outliers", &t->outlier_frac, 0.0, 1.0},
        {"outlier_factor", &t->outlier_factor, 1.0, 1e3},
        {"foreign", &t->foreign_frac, 0.0, 1.0},
        {"compile_s", &t->compile_s, 0.0, 1e3},
        {"hang", &t->hang_frac, 0.0, 1.0},
        {"sharpness", &t->contention.sharpness, 0.5, 100.0},
        {"lambda_gemv", &t->lambda[KERNEL_GEMV], 0.0, 2.0},
        {"lambda_decode", &t->lambda[KERNEL_DECODE], 0.0, 2.0},
        {"lambda_gemm", &t->lambda[KERNEL_GEMM], 0.0, 2.0},
        {"seed", &seed, 0.0, 1e15},
    };
    if (strcmp(key, "form") == 0) {
        return set_form(t, value, e);
    }
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (strcmp(key, known[i].key) != 0) {
            continue;
        }
        char *end;
        double v = strtod(value, &end);
        if (end == value || *end != '\0' || !(v >= known[i].min && v <= known[i].max)) {
            return err_add(e, "--sim %s=%s: must be a number from %g to %g", key, value,
                           known[i].min, known[i].max);
        }
        *known[i].at = v;
        t->seed = seed >= 0.0 ? (uint64_t)seed : t->seed;
        return 0;
    }
    return err_add(e,
                   "--sim %s: not known; noise, drift, drift_period_s, outliers, outlier_factor, "
                   "foreign, compile_s, hang, sharpness, lambda_gemv, lambda_decode, lambda_gemm, "
                   "seed, form are",
                   key);
}

int simdev_truth_set(struct simdev_truth *t, const char *text, struct err *e)
{
    size_t before = e->n;
    OWNED char *copy = xstrdup(text);
    char *rest = copy;
    for (char *item; (item = strtok_r(rest, ",", &rest)) != NULL;) {
        char *value = strchr(item, '=');
        if (value == NULL) {
            err_add(e, "--sim %s: must be KEY=VALUE", item);
            continue;
        }
        *value++ = '\0';
        (void)set_one(t, item, value, e);
    }
    return e->n == before ? 0 : -EINVAL;
}

/* The entry of a kernel: for products that of their width, for attention that of the cache's width,
 * or the widest, and for streams the default. */
static const struct soc_runtime *runtime_of(const struct simdev_truth *t, uint32_t device,
                                            const struct kernel_spec *s)
{
    const struct soc_device *d = &t->soc.devices[device];
    enum soc_match match;
    uint32_t at = soc_runtime_find(d, NULL, s->weight_bits, &match);
    if (!kernel_op_is_product(s->op) && !kernel_op_is_attention(s->op)) {
        at = d->fallback;
    } else if (match != SOC_MATCH_EXACT && kernel_op_is_attention(s->op)) {
        for (uint32_t i = 0; i < d->n_runtimes; i++) {
            at = d->runtimes[i].weight_bits > d->runtimes[at].weight_bits ? i : at;
        }
    }
    return &d->runtimes[at];
}

void simdev_curve(const struct simdev_truth *t, uint32_t device, const struct kernel_spec *s,
                  struct kernel_curve *out)
{
    const struct soc_runtime *r = runtime_of(t, device, s);
    bool stream = !kernel_op_is_product(s->op) && !kernel_op_is_attention(s->op);
    const struct soc_curve *c = s->rows == 1 && !stream ? &r->one : &r->many;
    out->flop_per_s = c->flop_per_s * (kernel_op_is_attention(s->op) ? r->attention_frac : 1.0);
    out->bytes_per_s = c->bytes_per_s;
    out->launch_s = stream ? 0.0 : c->launch_s;
    out->knee = r->knee;
}

/* Makes one op of the spec's work and bytes, whose time is that of the simulator's model. */
double simdev_alone_s(const struct simdev_truth *t, uint32_t device, const struct kernel_spec *s)
{
    if (s->op == KERNEL_READ || s->op == KERNEL_COPY) { /* not a kernel of a model, only traffic */
        struct kernel_curve c;
        simdev_curve(t, device, s, &c);
        return kernel_spec_bytes(s) / c.bytes_per_s;
    }
    struct soc_runtime r = *runtime_of(t, device, s);
    /* The truth has one model at a time, so that a test can show that a fit with another one is
     * rejected. */
    r.fill_rows = t->form == SIMDEV_FILL ? FILL_ROWS : 0.0;
    r.min_rows = 1;
    r.enqueue_s = 0.0;  /* for consecutive ops of a layer */
    r.width_fill = 0.0; /* for the width of a model, which a single kernel lacks */
    r.decode_batch_frac = r.attention_launches = r.kv_gather_frac = 0.0;
    r.fused_launch_frac = 1.0;
    uint32_t rows = s->rows;
    if (t->form == SIMDEV_STEPS && s->op == KERNEL_GEMM) {
        rows = (rows + STEP_ROWS - 1) / STEP_ROWS * STEP_ROWS;
    }
    /* A stream uses the many-row curve: two rows of half the work. */
    rows = s->op == KERNEL_KNOB ? 2 : rows;
    struct kernel_curve c;
    simdev_curve(t, device, s, &c);
    struct soc_runtime plain = r;
    plain.many.flop_per_s = plain.one.flop_per_s = c.flop_per_s;
    plain.many.launch_s = plain.one.launch_s = c.launch_s;
    struct roofline m;
    memset(&m, 0, sizeof m);
    m.ops[OP_QKV] = (struct roofline_op){.flop_per_row = kernel_spec_flop(s) / s->rows,
                                         .weight_bytes = kernel_spec_bytes(s),
                                         .prims = 1.0};
    if (s->op == KERNEL_KNOB) {
        m.ops[OP_QKV].flop_per_row = kernel_spec_flop(s) / 2.0;
    }
    m.runtime[device] = &plain;
    m.model = (struct hwmodel){hwmodel_find("p-norm"), &t->soc.machine, NULL, &m};
    struct work_shape shape = {.rows = rows, .sequences = 1, .prefill_rows = rows};
    struct kernel_query q = {.device = (uint8_t)device,
                             .op = OP_QKV,
                             .rows = rows,
                             .padded_rows = rows,
                             .shape = &shape};
    struct kernel_cost cost;
    hwmodel_kernel(&m.model, &q, &cost);
    return (double)cost.t_ns / 1e9;
}
