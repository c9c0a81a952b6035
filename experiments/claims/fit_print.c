/* Prints the findings of a fit as a document, and the witness as a profile. */
#include <cjson/cJSON.h>

#include "experiments/claims/fit.h"

/* "B6, B7" */
static const char *set_text(const struct claims *c, uint32_t set, const char *between)
{
    const char *text = "";
    for (uint32_t i = 0; i < c->n; i++) {
        if ((set >> i & 1u) != 0) {
            text = document_format("%s%s%s", text, text[0] != '\0' ? between : "", c->v[i].id);
        }
    }
    return text;
}

static void put_set(const struct claims *c, uint32_t set, struct document *array)
{
    for (uint32_t i = 0; i < c->n; i++) {
        if ((set >> i & 1u) != 0) {
            DOCUMENT_VALUES(array, NULL, c->v[i].id);
        }
    }
}

static const char *value_text(const struct fit_parameter *p, double u)
{
    char text[64];
    return document_format("%s", fit_parameter_value(p, u, text));
}

static void put_witness(const struct fit *f, const struct fit_findings *g, struct document *d)
{
    document_note(
        d, "Largest set that holds together: %u of %u claims (%s), judged on %u fresh trace%s",
        fit_set_size(g->best.holds), f->claims.n, set_text(&f->claims, g->best.holds, " "),
        f->o->confirm, text_plural(f->o->confirm));
    document_note(d, "Compatible there, not decided: %u (%s)", fit_set_size(g->best.compatible),
                  set_text(&f->claims, g->best.compatible, " "));
    put_set(&f->claims, g->best.compatible, document_array(d, "compatible"));
    for (uint32_t i = 0; i < f->parameters.n; i++) {
        const struct fit_parameter *p = &f->parameters.v[i];
        document_note(d, "    %-18s %s %s", p->name, value_text(p, g->best.u[i]), p->unit);
    }
    document_note(d, "%s", "");
    claims_document(&g->best.judged, false, "judged", d);
}

/* Adds numbers of simulated points where each claim may hold, and fresh verdicts of the best. */
static void put_points(const struct fit *f, const struct fit_findings *g, struct document *d)
{
    const char *line = "Points where a claim is plausible, of those simulated:";
    struct document *plausible = document_within(d, "plausible");
    for (uint32_t i = 0; i < f->claims.n; i++) {
        line = document_format("%s %s %u", line, f->claims.v[i].id, g->plausible[i]);
        DOCUMENT_VALUES(plausible, f->claims.v[i].id, g->plausible[i]);
    }
    document_note(d, "%s", line);
    document_note(d, "\nThe best points, each on %u fresh trace%s", fit_confirm_each(f->o),
                  text_plural(fit_confirm_each(f->o)));
    DOCUMENT_VALUES(d, "each_on", fit_confirm_each(f->o));
    struct frame *t = document_data(d, "best_points", 0, "point holds compatible");
    for (uint32_t i = 0; i < f->n_confirmed; i++) {
        const struct fit_confirmed *c = &f->confirmed[i];
        const char *holds = set_text(&f->claims, c->holds, " ");
        const char *compatible = set_text(&f->claims, c->compatible, " ");
        document_note(d, "    point %3u: %s; compatible: %s", c->point + 1, holds, compatible);
        FRAME_ROW(t, c->point + 1, holds, compatible);
    }
    document_note(d, "%s", "");
}

static void put_conflicts(const struct claims *c, const uint32_t *sets, uint32_t n,
                          const char *name, struct document *d)
{
    struct document *conflicts = document_array(d, name);
    for (uint32_t i = 0; i < n; i++) {
        document_note(d, "    {%s}", set_text(c, sets[i], ", "));
        put_set(c, sets[i], document_array(conflicts, NULL));
    }
    if (n == 0) {
        document_note(d, "    none of up to three claims");
    }
}

/* ---- constraints ---- */

/* Adds the remaining ranges of the parameters on which constraints depend. */
static void put_pool(const struct fit *f, struct document *d)
{
    const struct fit_under *c = &f->under;
    struct document *left = document_within(d, "constraints_leave");
    for (uint32_t k = 0; k < c->n_active; k++) {
        const struct fit_parameter *p = &f->parameters.v[c->active[k]];
        double low = 1.0;
        double high = 0.0;
        for (uint32_t i = 0; i < c->n_pool; i++) {
            low = fmin(low, c->pool[i].u[c->active[k]]);
            high = fmax(high, c->pool[i].u[c->active[k]]);
        }
        document_note(d, "    %-18s %s to %s %s", p->name, value_text(p, low), value_text(p, high),
                      p->unit);
        DOCUMENT_VALUES(document_array(left, p->name), NULL, value_text(p, low), NULL,
                        value_text(p, high));
    }
}

static void put_under(const struct fit *f, struct document *d)
{
    const struct fit_under *c = &f->under;
    uint32_t all = 0;
    for (uint32_t i = 0; i < c->n_grid; i++) {
        all += c->seen[i].holds == (1u << c->n_claims) - 1u;
    }
    document_note(d,
                  "Constraints: %s, priced without runs on a grid of %u machines; all hold on %u",
                  set_text(&c->stated, UINT32_MAX, " "), c->n_grid, all);
    put_set(&c->stated, UINT32_MAX, document_array(d, "under"));
    DOCUMENT_VALUES(d, "grid", c->n_grid, "grid_holds", all, "priced", c->n_seen);
    if (c->n_pool > 0) {
        put_pool(f, d);
    } else {
        document_note(d,
                      "No machine in the ranges has all of them. Smallest sets that hold nowhere, "
                      "on the grid or by descent from its nearest points:");
        put_conflicts(&c->stated, c->conflicts, c->n_conflicts, "constraints_exclude", d);
    }
    document_note(d, "%s", "");
}

/* ---- ranges ---- */

/* Adds a row of ranges, for a claim or for all; text only has those that became narrower. */
static void put_range(const struct fit *f, const struct fit_findings *g, uint32_t row,
                      struct document *ranges, struct document *d)
{
    const char *id = row < f->claims.n ? f->claims.v[row].id : "together";
    const char *line = document_format("    %-8s %5.1f %%  ", id, 100.0 * g->left_frac[row]);
    struct document *of = document_within(ranges, id);
    DOCUMENT_VALUES(of, "left_frac", g->left_frac[row]);
    bool any = true; /* a set without a point of the space has no ranges from there on */
    for (uint32_t k = 0; k < f->parameters.n; k++) {
        const struct fit_parameter *p = &f->parameters.v[k];
        double low = g->low[row][k];
        double high = g->high[row][k];
        any = any && low <= high;
        if (any) {
            DOCUMENT_VALUES(document_array(of, p->name), NULL, low, NULL, high);
        }
        if (low <= high && (low > 0.05 || high < 0.95)) {
            line = document_format("%s %s %s..%s", line, p->name, value_text(p, low),
                                   value_text(p, high));
        }
    }
    document_note(d, "%s", line);
}

static void put_ranges(const struct fit *f, const struct fit_findings *g, struct document *d)
{
    document_note(d, "\nWhat is left of the ranges: by each claim alone, and by the set together "
                     "(share of the space)");
    struct document *ranges = document_within(d, "ranges");
    for (uint32_t i = 0; i <= f->claims.n; i++) {
        put_range(f, g, i, ranges, d);
    }
    struct document *settles = document_within(d, "settles");
    struct document *together = document_within(d, "together");
    for (uint32_t i = 0; i < f->claims.n; i++) {
        struct document *row = document_within(settles, f->claims.v[i].id);
        for (uint32_t k = 0; k < f->parameters.n; k++) {
            DOCUMENT_VALUES(row, f->parameters.v[k].name, g->settles_frac[i][k]);
        }
        struct document *pair = document_within(together, f->claims.v[i].id);
        for (uint32_t k = 0; k < f->claims.n; k++) {
            DOCUMENT_VALUES(pair, f->claims.v[k].id, g->together_frac[i][k]);
        }
    }
}

/* Adds parameters to measure, the most informative first. */
static void put_measurements(const struct fit *f, const struct fit_findings *g, struct document *d)
{
    document_note(d, "\nWhat one measurement would settle: claims' doubt that knowing a number "
                     "removes, summed over claims");
    bool done[FIT_MAX_PARAMETERS] = {false};
    for (uint32_t n = 0; n < f->parameters.n; n++) {
        uint32_t best = 0;
        double most = -1.0;
        for (uint32_t k = 0; k < f->parameters.n; k++) {
            double sum = 0.0;
            for (uint32_t c = 0; c < f->claims.n; c++) {
                sum += g->settles_frac[c][k];
            }
            if (!done[k] && sum > most) {
                most = sum;
                best = k;
            }
        }
        done[best] = true;
        document_note(d, "    %.2f  %-18s %s", most, f->parameters.v[best].name,
                      f->parameters.v[best].measure);
    }
    struct frame *t =
        document_data(d, "parameters", 1, "parameter unit low high witness witness_at measure");
    for (uint32_t k = 0; k < f->parameters.n; k++) {
        const struct fit_parameter *p = &f->parameters.v[k];
        FRAME_ROW(t, p->name, p->unit, value_text(p, 0.0), value_text(p, 1.0),
                  value_text(p, g->best.u[k]), g->best.u[k], p->measure);
    }
}

void fit_document(const struct fit *f, const struct fit_findings *g, struct document *d)
{
    if (f->o->n_under > 0) {
        put_under(f, d);
    }
    if (f->n_points == 0) {
        return; /* no machine has all of the constraints */
    }
    SCOPED(json_drop) cJSON *profile = fit_profile(f, g);
    document_note(d, "%u point%s of %u parameter%s, %u trace%s each, %.0f s of processor time\n",
                  f->n_points, text_plural(f->n_points), f->parameters.n,
                  text_plural(f->parameters.n), f->o->run.replications,
                  text_plural(f->o->run.replications), f->cpu_s);
    DOCUMENT_VALUES(d, "points", f->n_points, "cpu_s", f->cpu_s, "seed", f->o->run.seed, "traces",
                    f->o->run.replications, "confirmed_on", f->o->confirm);
    put_set(&f->claims, UINT32_MAX, document_array(d, "claims"));
    document_tree(d, "profile", profile);
    put_points(f, g, d);
    put_witness(f, g, d);
    if (f->o->n_under > 0) {
        claims_document(&g->under, true, "constraints", d);
    }
    document_note(d, "\nSmallest sets that the emulators rule out in these ranges");
    put_conflicts(&f->claims, g->conflicts, g->n_conflicts, "conflicts", d);
    put_ranges(f, g, d);
    put_measurements(f, g, d);
}

/* ---- the witness ---- */

static void add_set(cJSON *a, const struct claims *c, uint32_t set)
{
    for (uint32_t i = 0; i < c->n; i++) {
        if ((set >> i & 1u) != 0) {
            cJSON_AddItemToArray(a, cJSON_CreateString(c->v[i].id));
        }
    }
}

cJSON *fit_profile(const struct fit *f, const struct fit_findings *g)
{
    struct setup s;
    fit_setup(&f->parameters, g->best.u, &s);
    struct setup all = s;
    SCOPED(err_fini) struct err ignored = ERR_INIT;
    (void)setup_add(&all, f->o->fixed, &ignored);
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "about",
                            "Fitted to the claims by `xpusim claims --fit`, not measured: where "
                            "most of them hold together. Never a default.");
    cJSON *fitted = cJSON_AddArrayToObject(o, "fitted_to");
    add_set(fitted, &f->claims, UINT32_MAX);
    add_set(fitted, &f->under.stated, UINT32_MAX); /* chosen for these, too */
    add_set(cJSON_AddArrayToObject(o, "holds"), &f->claims, g->best.holds);
    for (int k = 0; k < SETUP_LISTS; k++) {
        const struct setup_texts *t = &all.list[k];
        if (t->n > 0) {
            cJSON_AddItemToObject(o, setup_keys[k],
                                  cJSON_CreateStringArray((const char *const *)t->v, (int)t->n));
        }
    }
    return o;
}
