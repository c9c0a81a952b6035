/* Predictions of a left-out machine, for each choice of what was measured of it. */
#include "experiments/validation/leave_machine_impl.h"

#define NORMAL_95 1.959964

/* ---- rows of the machine ---- */

void leave_collect(struct pair *p)
{
    for (size_t i = 0; i < p->judged->n; i++) {
        struct update_row r = {.point = &p->judged->v[i]};
        if (!point_is_latency(r.point)) {
            continue;
        }
        predict_bind(p->c, r.point, &r.k);
        if (r.k.soc == p->made && r.k.reason == NULL &&
            (r.k.match == SOC_MATCH_EXACT || p->judged != p->points) && r.k.device == p->device &&
            p->valid[r.k.runtime]) {
            LIST_ADD(p->rows, p->n, r);
        }
    }
}

static enum conformal_phase phase_of(const struct update_row *r)
{
    return conformal_phase_of(point_is_prefill(r->point), r->point->input_tokens);
}

/* Rows of one model at one width under one version: a user's benchmark. */
static bool together(const struct update_row *a, const struct update_row *b)
{
    return strcmp(a->k.llm.name, b->k.llm.name) == 0 &&
           a->point->weight_bits == b->point->weight_bits &&
           strcmp(a->point->runtime, b->point->runtime) == 0;
}

/* The first row of each benchmark with a long prompt and a decode. */
static size_t benchmarks(const struct pair *p, size_t *out)
{
    size_t n = 0;
    for (size_t i = 0; i < p->n; i++) {
        bool first = true;
        bool has[UPDATE_PHASES] = {false};
        for (size_t j = 0; j < p->n; j++) {
            if (together(&p->rows[i], &p->rows[j])) {
                first = first && j >= i;
                has[phase_of(&p->rows[j])] = true;
            }
        }
        if (first && has[CONFORMAL_PREFILL] && has[CONFORMAL_DECODE]) {
            out[n++] = i;
        }
    }
    return n;
}

/* ---- predictions ---- */

struct choice {
    const size_t *benchmark; /* first rows */
    uint32_t n;
};

static bool same_model(const struct update_row *a, const struct update_row *b)
{
    return strcmp(a->k.llm.name, b->k.llm.name) == 0;
}

static bool same_width(const struct update_row *a, const struct update_row *b)
{
    return a->point->weight_bits == b->point->weight_bits;
}

static bool small(const struct update_row *a, const struct update_row *b UNUSED)
{
    return update_is_small(&a->k.llm);
}

/* Whether a measured benchmark has this relation to the row. */
static bool any_measured(const struct pair *p, const struct choice *c, size_t row,
                         bool (*relates)(const struct update_row *measured,
                                         const struct update_row *row))
{
    for (uint32_t i = 0; i < c->n; i++) {
        if (relates(&p->rows[c->benchmark[i]], &p->rows[row])) {
            return true;
        }
    }
    return false;
}

/* Fills mean errors of measured rows, by phase; a phase without rows has that of the other one. */
static void offsets(const struct update *u, const struct update_row *rows, size_t n, double *out)
{
    size_t count[UPDATE_PHASES] = {0};
    for (int i = 0; i < UPDATE_PHASES; i++) {
        out[i] = 0.0;
    }
    for (size_t i = 0; i < n; i++) {
        int phase = (int)phase_of(&rows[i]);
        double measured = log(point_pass_seconds(rows[i].point));
        out[phase] += update_predict(u, &rows[i]).ln_seconds - measured;
        count[phase]++;
    }
    for (int i = 0; i < UPDATE_PHASES; i++) {
        out[i] = count[i] > 0 ? out[i] / (double)count[i] : out[CONFORMAL_PREFILL];
    }
}

static double transfer_half(const struct pair *p, const struct update_row *r)
{
    struct conformal_query q = {.soc = p->made->machine.name,
                                .family = p->made->family,
                                .kind = p->made->machine.devices[p->device].kind,
                                .phase = phase_of(r),
                                .weights = r->k.llm.body_weights + r->k.llm.head_weights,
                                .tokens = r->point->input_tokens,
                                .mixture = r->k.llm.n_experts > 0,
                                .left = CONFORMAL_SOC};
    struct conformal_interval x = conformal_of(&p->table, &q, CONFORMAL_LEVEL);
    return x.n > 0 ? log(x.high_factor) : (double)NAN;
}

/* Fills the intervals that the file of this update would have. */
static void halves(const struct pair *p, const struct update *u, bool small_models,
                   double out[SOC_MAX_RUNTIMES][UPDATE_PHASES])
{
    const struct soc_device *d = &p->made->devices[p->device];
    for (uint32_t r = 0; r < d->n_runtimes; r++) {
        SCOPED(update_usual_fini) struct update_usual usual;
        update_usual(u, p->c, d->runtimes[r].runtime, small_models, p->valid[r] ? UPDATE_MODELS : 0,
                     &usual);
        for (int phase = 0; phase < UPDATE_PHASES; phase++) {
            out[r][phase] = NORMAL_95 * update_error_sd(u, &usual, r, (enum conformal_phase)phase);
        }
    }
}

/* The measured rows of a choice. */
struct known {
    struct update_row *rows;
    size_t n;
    double offset[UPDATE_PHASES]; /* mean errors by data sheet */
};

static void predict_others(const struct pair *p, const struct choice *c, const struct known *known,
                           const struct update *prior, const struct update *posterior,
                           bool averaged)
{
    const struct soc *s = p->sibling;
    double half[2][SOC_MAX_RUNTIMES][UPDATE_PHASES];
    halves(p, posterior, false, half[0]);
    halves(p, posterior, true, half[1]);
    for (size_t i = 0; i < p->n; i++) {
        if (any_measured(p, c, i, same_model)) {
            continue;
        }
        const struct update_row *r = &p->rows[i];
        double measured = log(point_pass_seconds(r->point));
        struct update_prediction sheet = update_predict(prior, r);
        struct update_prediction updated = update_predict(posterior, r);
        struct leave_rows *out = p->out;
        SIM_ASSERT(r->k.soc == p->made && strcmp(p->truth->machine.name, s->machine.name) != 0);
        KEPT_ADD(
            out->v, out->n,
            (struct leave_row){
                .soc = p->truth->machine.name,
                .by = s->machine.name,
                .same_family = s->family[0] != '\0' && strcmp(s->family, p->truth->family) == 0,
                .kind = p->made->machine.devices[p->device].kind,
                .phase = phase_of(r),
                .width_measured = any_measured(p, c, i, same_width),
                .small = update_is_small(&r->k.llm),
                .small_measured = any_measured(p, c, i, small),
                .averaged = averaged,
                .ln_error =
                    {log(predict_price(&r->k, r->point, &p->roofline[r->k.runtime]).seconds) -
                         measured,
                     sheet.ln_seconds - measured,
                     sheet.ln_seconds - known->offset[phase_of(r)] - measured,
                     updated.ln_seconds - measured},
                .half = {(double)NAN, p->sheet_half[i], (double)NAN,
                         half[update_is_small(&r->k.llm)][r->k.runtime][phase_of(r)]}});
    }
}

/* Copies that are averaged with a pair's, of weight 1. */
struct others {
    struct update *prior;
    double *weight;
    size_t n;
};

/* The caller frees the rows. */
static struct known known_of(const struct pair *p, const struct choice *c)
{
    struct known known = {.rows = xmalloc((p->n + 1) * sizeof *known.rows)};
    for (size_t i = 0; i < p->n; i++) {
        if (any_measured(p, c, i, together)) {
            known.rows[known.n++] = p->rows[i];
        }
    }
    return known;
}

/* `others`: NULL for the sibling's copy alone. */
static int try_choice(const struct pair *p, const struct choice *c, const struct others *others,
                      struct err *e)
{
    struct known known = known_of(p, c);
    SCOPED(update_fini) struct update prior;
    SCOPED(update_fini) struct update u;
    update_init(&prior, p->made, p->tree, p->device, &p->table);
    update_init(&u, p->made, p->tree, p->device, &p->table);
    if (others != NULL) {
        update_average(&prior, others->prior, others->weight, others->n);
        update_average(&u, others->prior, others->weight, others->n);
    }
    offsets(&prior, known.rows, known.n, known.offset);
    int rc = update_take(&u, known.rows, known.n, e);
    if (rc == 0) {
        predict_others(p, c, &known, &prior, &u, others != NULL);
    }
    free(known.rows);
    return rc;
}

/* Fills choices: each benchmark is the first once, and the next ones follow in the table's order.
 * `first` has room for twice the rows. */
static size_t choices(const struct pair *p, size_t *first, struct choice *out)
{
    size_t n = benchmarks(p, first);
    memcpy(first + n, first, n * sizeof *first);
    for (size_t i = 0; i < n; i++) {
        out[i] = (struct choice){first + i, p->measured < n ? p->measured : (uint32_t)n};
    }
    return n;
}

int leave_try_all(struct pair *p, struct err *e)
{
    OWNED size_t *first = xmalloc((2 * p->n + 1) * sizeof *first);
    OWNED struct choice *choice = xmalloc((p->n + 1) * sizeof *choice);
    size_t n = choices(p, first, choice);
    update_init(&p->prior, p->made, p->tree, p->device, &p->table);
    p->sheet_half = xmalloc((p->n + 1) * sizeof *p->sheet_half);
    for (size_t i = 0; i < p->n; i++) {
        p->sheet_half[i] = transfer_half(p, &p->rows[i]);
    }
    int rc = 0;
    size_t before = p->out->n;
    for (size_t i = 0; i < n && rc == 0; i++) {
        rc = try_choice(p, &choice[i], NULL, e);
    }
    p->out->pairs += p->out->n > before;
    return rc;
}

/* ---- averages of copies ---- */

/* Whether the pair has the rows of a choice of another one, and its evidence for them. */
static bool weighs(const struct pair *p, const struct known *known, double *ln_evidence)
{
    OWNED struct update_row *own = xmalloc((known->n + 1) * sizeof *own);
    size_t n = 0;
    for (size_t i = 0; i < known->n; i++) {
        for (size_t j = 0; j < p->n; j++) {
            if (p->rows[j].point == known->rows[i].point) {
                own[n++] = p->rows[j];
            }
        }
    }
    *ln_evidence = n == known->n ? update_ln_evidence(&p->prior, own, n) : 0.0;
    return n == known->n;
}

static bool same_kind(const struct pair *a, const struct pair *b)
{
    return a->sibling->machine.devices[a->device].kind ==
           b->sibling->machine.devices[b->device].kind;
}

/* Predicts with the average of copies if the pair's is the likeliest for the choice. */
static int try_average(struct pair *pair, size_t n, const struct pair *p, const struct choice *c,
                       struct err *e)
{
    struct known known = known_of(p, c);
    OWNED struct update *prior = xmalloc((n + 1) * sizeof *prior);
    OWNED double *weight = xcalloc(n + 1, sizeof *weight);
    struct others others = {.prior = prior, .weight = weight};
    double own = update_ln_evidence(&p->prior, known.rows, known.n);
    bool likeliest = true;
    for (size_t k = 0; k < n; k++) {
        double ln_evidence;
        if (&pair[k] != p && same_kind(&pair[k], p) && weighs(&pair[k], &known, &ln_evidence)) {
            likeliest = likeliest && (ln_evidence < own || (ln_evidence == own && p < &pair[k]));
            prior[others.n] = pair[k].prior; /* borrowed */
            weight[others.n++] = exp(ln_evidence - own);
        }
    }
    free(known.rows);
    return likeliest ? try_choice(p, c, &others, e) : 0;
}

int leave_try_averages(struct catalog *c, struct pair *pair, size_t n, struct err *e)
{
    int rc = 0;
    for (size_t k = 0; k < n && rc == 0; k++) {
        struct pair *p = &pair[k];
        OWNED size_t *first = xmalloc((2 * p->n + 1) * sizeof *first);
        OWNED struct choice *choice = xmalloc((p->n + 1) * sizeof *choice);
        size_t n_choices = choices(p, first, choice);
        catalog_add_soc(c, p->made);
        for (size_t i = 0; i < n_choices && rc == 0; i++) {
            rc = try_average(pair, n, p, &choice[i], e);
        }
        c->n_socs--;
    }
    return rc;
}
