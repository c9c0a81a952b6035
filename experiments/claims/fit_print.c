/* The findings of a fit: text, JSON, and the witness as a profile. */
#include <string.h>

#include "experiments/claims/fit.h"

static void set_print(const struct fit *f, uint32_t set, const char *between, FILE *out)
{
    bool first = true;
    for (uint32_t i = 0; i < f->claims.n; i++) {
        if ((set >> i & 1u) != 0) {
            (void)fprintf(out, "%s%s", first ? "" : between, f->claims.v[i].id);
            first = false;
        }
    }
}

static uint32_t size_of(uint32_t set)
{
    uint32_t n = 0;
    for (; set != 0; set &= set - 1) {
        n++;
    }
    return n;
}

static void print_witness(const struct fit *f, const struct fit_findings *g, FILE *out)
{
    (void)fprintf(out, "Largest set that holds together: %u of %u claims (", size_of(g->best.holds),
                  f->claims.n);
    set_print(f, g->best.holds, " ", out);
    (void)fprintf(out, "), judged on %u fresh traces\n", f->o->confirm);
    for (uint32_t i = 0; i < f->parameters.n; i++) {
        char buf[64];
        (void)fprintf(out, "    %-18s %s %s\n", f->parameters.v[i].name,
                      fit_parameter_value(&f->parameters.v[i], g->best.u[i], buf),
                      f->parameters.v[i].unit);
    }
    (void)fputc('\n', out);
    claims_print(&g->best.judged, false, out);
}

static void print_conflicts(const struct fit *f, const struct fit_findings *g, FILE *out)
{
    (void)fprintf(out, "\nSmallest sets that the emulators rule out in these ranges\n");
    for (uint32_t i = 0; i < g->n_conflicts; i++) {
        (void)fputs("    {", out);
        set_print(f, g->conflicts[i], ", ", out);
        (void)fputs("}\n", out);
    }
    if (g->n_conflicts == 0) {
        (void)fputs("    none of up to three claims\n", out);
    }
}

static void print_ranges(const struct fit *f, const struct fit_findings *g, FILE *out)
{
    (void)fprintf(out, "\nWhat is left of the ranges: by each claim alone, and by the set together "
                       "(share of the space)\n");
    for (uint32_t i = 0; i <= f->claims.n; i++) {
        (void)fprintf(out, "    %-8s %5.1f %%  ", i < f->claims.n ? f->claims.v[i].id : "together",
                      100.0 * g->left_frac[i]);
        for (uint32_t k = 0; k < f->parameters.n; k++) {
            char low[64];
            char high[64];
            bool cut = g->low[i][k] > 0.05 || g->high[i][k] < 0.95;
            if (g->low[i][k] > g->high[i][k] || !cut) {
                continue;
            }
            const struct fit_parameter *p = &f->parameters.v[k];
            const char *from = fit_parameter_value(p, g->low[i][k], low);
            (void)fprintf(out, " %s %s..%s", p->name, from,
                          fit_parameter_value(p, g->high[i][k], high));
        }
        (void)fputc('\n', out);
    }
}

static void print_measurement(const struct fit *f, const struct fit_findings *g, FILE *out)
{
    (void)fprintf(out, "\nWhat one measurement would settle: claims' doubt that knowing a number "
                       "removes, summed over claims\n");
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
        (void)fprintf(out, "    %.2f  %-18s %s\n", most, f->parameters.v[best].name,
                      f->parameters.v[best].measure);
    }
}

void fit_print(const struct fit *f, const struct fit_findings *g, FILE *out)
{
    (void)fprintf(out, "%u points of %u parameters, %u traces each, %.0f s of processor time\n\n",
                  f->n_points, f->parameters.n, f->o->run.replications, f->cpu_s);
    print_witness(f, g, out);
    print_conflicts(f, g, out);
    print_ranges(f, g, out);
    print_measurement(f, g, out);
}

/* ---- JSON ---- */

static cJSON *set_json(const struct fit *f, uint32_t set)
{
    cJSON *a = cJSON_CreateArray();
    for (uint32_t i = 0; i < f->claims.n; i++) {
        if ((set >> i & 1u) != 0) {
            cJSON_AddItemToArray(a, cJSON_CreateString(f->claims.v[i].id));
        }
    }
    return a;
}

static void texts_json(cJSON *o, const char *key, const struct setup_texts *t)
{
    if (t->n > 0) {
        cJSON_AddItemToObject(o, key,
                              cJSON_CreateStringArray((const char *const *)t->v, (int)t->n));
    }
}

cJSON *fit_profile(const struct fit *f, const struct fit_findings *g)
{
    struct setup s;
    fit_setup(&f->parameters, g->best.u, &s);
    struct setup all = s;
    struct err ignored = ERR_INIT;
    (void)setup_add(&all, f->o->fixed, &ignored);
    err_fini(&ignored);
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "about",
                            "Fitted to the claims by `xpusim claims --fit`, not measured: where "
                            "most of them hold together. Never a default.");
    cJSON_AddItemToObject(o, "holds", set_json(f, g->best.holds));
    texts_json(o, "set", &all.set);
    texts_json(o, "policy", &all.policy);
    texts_json(o, "workload", &all.workload);
    fit_setup_fini(&s);
    return o;
}

static cJSON *ranges_json(const struct fit *f, const struct fit_findings *g, uint32_t row)
{
    cJSON *o = cJSON_CreateObject();
    cJSON_AddNumberToObject(o, "left_frac", g->left_frac[row]);
    for (uint32_t k = 0; k < f->parameters.n && g->low[row][k] <= g->high[row][k]; k++) {
        const double ends[] = {g->low[row][k], g->high[row][k]};
        cJSON_AddItemToObject(o, f->parameters.v[k].name, cJSON_CreateDoubleArray(ends, 2));
    }
    return o;
}

cJSON *fit_to_json(const struct fit *f, const struct fit_findings *g)
{
    cJSON *o = cJSON_CreateObject();
    cJSON_AddNumberToObject(o, "points", f->n_points);
    cJSON_AddNumberToObject(o, "cpu_s", f->cpu_s);
    cJSON_AddItemToObject(o, "claims", set_json(f, UINT32_MAX));
    cJSON_AddItemToObject(o, "profile", fit_profile(f, g));
    cJSON_AddItemToObject(o, "judged", claims_to_json(&g->best.judged));
    cJSON *conflicts = cJSON_AddArrayToObject(o, "conflicts");
    for (uint32_t i = 0; i < g->n_conflicts; i++) {
        cJSON_AddItemToArray(conflicts, set_json(f, g->conflicts[i]));
    }
    cJSON *ranges = cJSON_AddObjectToObject(o, "ranges");
    cJSON *settles = cJSON_AddObjectToObject(o, "settles");
    cJSON *together = cJSON_AddObjectToObject(o, "together");
    for (uint32_t i = 0; i <= f->claims.n; i++) {
        const char *id = i < f->claims.n ? f->claims.v[i].id : "together";
        cJSON_AddItemToObject(ranges, id, ranges_json(f, g, i));
    }
    for (uint32_t i = 0; i < f->claims.n; i++) {
        cJSON *row = cJSON_AddObjectToObject(settles, f->claims.v[i].id);
        for (uint32_t k = 0; k < f->parameters.n; k++) {
            cJSON_AddNumberToObject(row, f->parameters.v[k].name, g->settles_frac[i][k]);
        }
        cJSON *pair = cJSON_AddObjectToObject(together, f->claims.v[i].id);
        for (uint32_t k = 0; k < f->claims.n; k++) {
            cJSON_AddNumberToObject(pair, f->claims.v[k].id, g->together_frac[i][k]);
        }
    }
    cJSON *parameters = cJSON_AddObjectToObject(o, "parameters");
    for (uint32_t k = 0; k < f->parameters.n; k++) {
        const struct fit_parameter *p = &f->parameters.v[k];
        char buf[64];
        cJSON *one = cJSON_AddObjectToObject(parameters, p->name);
        cJSON_AddStringToObject(one, "unit", p->unit);
        cJSON_AddStringToObject(one, "low", fit_parameter_value(p, 0.0, buf));
        cJSON_AddStringToObject(one, "high", fit_parameter_value(p, 1.0, buf));
        cJSON_AddStringToObject(one, "witness", fit_parameter_value(p, g->best.u[k], buf));
        cJSON_AddNumberToObject(one, "witness_at", g->best.u[k]);
        cJSON_AddStringToObject(one, "measure", p->measure);
    }
    return o;
}
