#include <math.h>

#include "experiments/drive/against.h"
#include "experiments/shell/table.h"

static const char *const metric_names[AGAINST_METRICS] = {"TTFT", "TPOT", "E2E"};
static const char *const metric_keys[AGAINST_METRICS] = {"ttft_s", "tpot_s", "e2e_s"};
static const char *const class_names[] = {"reactive", "proactive"};

/* Mean over repeats of the error of one simulation. */
static double mape_simulated(const struct against_policy *p, uint32_t model, enum against_metric m)
{
    double sum = 0.0;
    for (uint32_t k = 0; k < p->n_real; k++) {
        sum += against_mape(&p->simulated[model], &p->real[k].times, m);
    }
    return p->n_real > 0 ? sum / p->n_real : (double)NAN;
}

/* Mean over pairs of repeats: the same run twice. */
static double mape_real(const struct against_policy *p, enum against_metric m)
{
    double sum = 0.0;
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->n_real; i++) {
        for (uint32_t k = 0; k < p->n_real; k++) {
            if (i != k) {
                sum += against_mape(&p->real[i].times, &p->real[k].times, m);
                n++;
            }
        }
    }
    return n > 0 ? sum / n : (double)NAN;
}

static void percent(struct table *t, double x)
{
    if (isnan(x)) {
        table_cell(t, "-");
    } else {
        table_cell(t, "%.1f %%", 100.0 * x);
    }
}

static double worst_foreign(const struct against_policy *p, uint32_t *disturbed)
{
    double most = -1.0;
    *disturbed = 0;
    for (uint32_t k = 0; k < p->n_real; k++) {
        most = fmax(most, p->real[k].foreign_frac + p->real[k].steal_frac);
        *disturbed += real_disturbed(&p->real[k]);
    }
    return most;
}

static void print_errors(const struct against *a, FILE *out)
{
    struct table t;
    table_init(&t, "lrrrrrrr");
    static const char *const head[] = {
        "mean |error| per request", "TTFT", "TPOT", "E2E", "real: TTFT", "TPOT", "E2E", "others"};
    for (int i = 0; i < 8; i++) {
        table_cell(&t, "%s", head[i]);
    }
    for (uint32_t i = 0; i < a->n_policies; i++) {
        const struct against_policy *p = &a->policies[i];
        for (uint32_t m = 0; m < a->n_models; m++) {
            uint32_t disturbed;
            double foreign = worst_foreign(p, &disturbed);
            table_cell(&t, "%s%s%s", p->label, a->n_models > 1 ? ", " : "",
                       a->n_models > 1 ? a->models[m] : "");
            for (int k = 0; k < AGAINST_METRICS; k++) {
                percent(&t, mape_simulated(p, m, (enum against_metric)k));
            }
            for (int k = 0; k < AGAINST_METRICS; k++) {
                percent(&t, mape_real(p, (enum against_metric)k));
            }
            table_cell(&t, "%.0f %%%s", 100.0 * foreign, disturbed > 0 ? " disturbed" : "");
        }
    }
    table_print(&t, out, 0);
    table_fini(&t);
    (void)fprintf(out,
                  "real: the same run twice. others: the most processor time that others had "
                  "or took in a run; above %.0f %% it is marked.\n",
                  100.0 * REAL_DISTURBED_FRAC);
}

static double mean_over_repeats(const struct against_policy *p, enum against_metric m,
                                enum request_class cls)
{
    double sum = 0.0;
    for (uint32_t k = 0; k < p->n_real; k++) {
        sum += against_mean(&p->real[k].times, m, cls);
    }
    return p->n_real > 0 ? sum / p->n_real : (double)NAN;
}

static void print_means(const struct against *a, FILE *out)
{
    struct table t;
    table_init(&t, "lrrrrrr");
    table_cell(&t, "real / simulated mean, s");
    for (int c = 0; c < 2; c++) {
        for (int m = 0; m < AGAINST_METRICS; m++) {
            table_cell(&t, "%.5s %s", class_names[c], metric_names[m]);
        }
    }
    for (uint32_t i = 0; i < a->n_policies; i++) {
        const struct against_policy *p = &a->policies[i];
        table_cell(&t, "%s", p->label);
        for (int c = 0; c < 2; c++) {
            for (int m = 0; m < AGAINST_METRICS; m++) {
                table_cell(
                    &t, "%.3g / %.3g",
                    mean_over_repeats(p, (enum against_metric)m, (enum request_class)c),
                    against_mean(&p->simulated[0], (enum against_metric)m, (enum request_class)c));
            }
        }
    }
    table_print(&t, out, 0);
    table_fini(&t);
}

static void put_tau(struct table *t, const struct against_tau *x)
{
    if (isnan(x->tau)) {
        table_cell(t, "- (%u of %u tied)", x->tied, x->pairs);
    } else {
        table_cell(t, "%.2f [%.2f, %.2f] (%u of %u tied)", x->tau, x->low, x->high, x->tied,
                   x->pairs);
    }
}

static void print_order(const struct against *a, FILE *out)
{
    struct table t;
    table_init(&t, "lrrr");
    table_cell(&t, "order of policies, Kendall's tau");
    for (uint32_t m = 0; m < a->n_models; m++) {
        table_cell(&t, "%s", a->models[m]);
    }
    table_cell(&t, "real against real");
    table_end_row(&t);
    for (int c = 0; c < 2; c++) {
        for (int m = 0; m < AGAINST_METRICS; m++) {
            table_cell(&t, "%s %s", class_names[c], metric_names[m]);
            for (uint32_t k = 0; k < a->n_models; k++) {
                struct against_tau x =
                    against_tau(a, k, (enum against_metric)m, (enum request_class)c);
                put_tau(&t, &x);
            }
            struct against_tau x =
                against_tau_real(a, (enum against_metric)m, (enum request_class)c);
            put_tau(&t, &x);
            table_end_row(&t);
        }
    }
    table_print(&t, out, 0);
    table_fini(&t);
    (void)fprintf(out, "tied: pairs of policies whose real means overlap over the repeats; they "
                       "count on neither side. [least, most] of each repeat alone.\n");
}

void against_print(const struct against *a, FILE *out)
{
    (void)fprintf(out, "%s, clock %s, %u repeats; %s\n\n", a->trace, a->clock, a->repeats,
                  a->engines);
    print_errors(a, out);
    (void)fputc('\n', out);
    print_means(a, out);
    (void)fputc('\n', out);
    print_order(a, out);
}

/* ---- JSON ---- */

static void add_number(cJSON *to, const char *key, double x)
{
    if (isnan(x)) {
        cJSON_AddNullToObject(to, key);
    } else {
        cJSON_AddNumberToObject(to, key, x);
    }
}

static cJSON *tau_to_json(const struct against_tau *t)
{
    cJSON *o = cJSON_CreateObject();
    add_number(o, "tau", t->tau);
    add_number(o, "low", t->low);
    add_number(o, "high", t->high);
    cJSON_AddNumberToObject(o, "pairs", t->pairs);
    cJSON_AddNumberToObject(o, "tied", t->tied);
    return o;
}

static cJSON *run_to_json(const struct real_run *r)
{
    cJSON *o = cJSON_CreateObject();
    cJSON_AddNumberToObject(o, "foreign_frac", r->foreign_frac);
    cJSON_AddNumberToObject(o, "steal_frac", r->steal_frac);
    cJSON_AddNumberToObject(o, "load_before", r->load_before);
    cJSON_AddBoolToObject(o, "disturbed", real_disturbed(r));
    cJSON_AddBoolToObject(o, "realtime", r->report.realtime);
    cJSON_AddNumberToObject(o, "duration_s", r->end_s);
    char hash[24];
    (void)snprintf(hash, sizeof hash, "%016llx", (unsigned long long)r->report.token_hash);
    cJSON_AddStringToObject(o, "tokens", hash);
    return o;
}

static cJSON *requests_to_json(const struct against *a, const struct against_policy *p)
{
    cJSON *list = cJSON_CreateArray();
    (void)a;
    for (size_t i = 0; p->n_real > 0 && i < p->simulated[0].n; i++) {
        const struct request_time *s = &p->simulated[0].v[i];
        for (uint32_t k = 0; k < p->n_real; k++) {
            const struct request_time *r = &p->real[k].times.v[i];
            if (!s->finished || !r->finished) {
                continue;
            }
            cJSON *o = cJSON_CreateObject();
            cJSON_AddStringToObject(o, "class", class_names[r->cls]);
            cJSON_AddNumberToObject(o, "repeat", k);
            for (int m = 0; m < AGAINST_METRICS; m++) {
                char key[24];
                (void)snprintf(key, sizeof key, "real_%s", metric_keys[m]);
                add_number(o, key, against_value(r, (enum against_metric)m));
                (void)snprintf(key, sizeof key, "sim_%s", metric_keys[m]);
                add_number(o, key, against_value(s, (enum against_metric)m));
            }
            cJSON_AddItemToArray(list, o);
        }
    }
    return list;
}

static cJSON *policy_to_json(const struct against *a, const struct against_policy *p)
{
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "policy", p->label);
    cJSON *models = cJSON_AddArrayToObject(o, "simulated");
    for (uint32_t i = 0; i < a->n_models; i++) {
        cJSON *s = cJSON_CreateObject();
        cJSON_AddStringToObject(s, "soc", a->models[i]);
        for (int m = 0; m < AGAINST_METRICS; m++) {
            char key[32];
            (void)snprintf(key, sizeof key, "%s_mape", metric_keys[m]);
            add_number(s, key, mape_simulated(p, i, (enum against_metric)m));
        }
        cJSON_AddItemToArray(models, s);
    }
    cJSON *noise = cJSON_AddObjectToObject(o, "real_against_real");
    for (int m = 0; m < AGAINST_METRICS; m++) {
        char key[32];
        (void)snprintf(key, sizeof key, "%s_mape", metric_keys[m]);
        add_number(noise, key, mape_real(p, (enum against_metric)m));
    }
    cJSON *means = cJSON_AddObjectToObject(o, "means");
    for (int c = 0; c < 2; c++) {
        for (int m = 0; m < AGAINST_METRICS; m++) {
            char key[48];
            (void)snprintf(key, sizeof key, "%s.%s.real", class_names[c], metric_keys[m]);
            add_number(means, key,
                       mean_over_repeats(p, (enum against_metric)m, (enum request_class)c));
            (void)snprintf(key, sizeof key, "%s.%s.simulated", class_names[c], metric_keys[m]);
            add_number(
                means, key,
                against_mean(&p->simulated[0], (enum against_metric)m, (enum request_class)c));
        }
    }
    cJSON *runs = cJSON_AddArrayToObject(o, "runs");
    for (uint32_t k = 0; k < p->n_real; k++) {
        cJSON_AddItemToArray(runs, run_to_json(&p->real[k]));
    }
    cJSON_AddItemToObject(o, "requests", requests_to_json(a, p));
    return o;
}

cJSON *against_to_json(const struct against *a)
{
    cJSON *root = cJSON_CreateObject();
    cJSON_AddStringToObject(root, "trace", a->trace);
    cJSON_AddStringToObject(root, "clock", a->clock);
    cJSON_AddStringToObject(root, "engines", a->engines);
    cJSON_AddNumberToObject(root, "repeats", a->repeats);
    cJSON *policies = cJSON_AddArrayToObject(root, "drive");
    for (uint32_t i = 0; i < a->n_policies; i++) {
        cJSON_AddItemToArray(policies, policy_to_json(a, &a->policies[i]));
    }
    cJSON *order = cJSON_AddArrayToObject(root, "order");
    for (int c = 0; c < 2; c++) {
        for (int m = 0; m < AGAINST_METRICS; m++) {
            cJSON *o = cJSON_CreateObject();
            cJSON_AddStringToObject(o, "class", class_names[c]);
            cJSON_AddStringToObject(o, "metric", metric_keys[m]);
            for (uint32_t k = 0; k < a->n_models; k++) {
                struct against_tau x =
                    against_tau(a, k, (enum against_metric)m, (enum request_class)c);
                cJSON_AddItemToObject(o, k == 0 ? "simulated" : "second", tau_to_json(&x));
            }
            struct against_tau x =
                against_tau_real(a, (enum against_metric)m, (enum request_class)c);
            cJSON_AddItemToObject(o, "real", tau_to_json(&x));
            cJSON_AddItemToArray(order, o);
        }
    }
    return root;
}
