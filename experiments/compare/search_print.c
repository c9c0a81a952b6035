/* A search's capacity table as text and JSON. */
#include <math.h>

#include "experiments/compare/search.h"
#include "experiments/shell/table.h"

static const char *const outcome_names[] = {"met", "missed", "undecided", "failed"};

/* What decides at the upper end; where there is none, what is nearest to it at the lower one. */
static int binding_of(const struct search_result *r)
{
    int i = r->high >= 0 ? r->high : r->low;
    return i >= 0 ? (int)r->tests[i].binding : -1;
}

static void put_end(struct table *t, const struct search_result *r, int test, int binding)
{
    char buf[96];
    if (test < 0) {
        table_cell(t, "-");
        table_cell(t, "-");
        table_cell(t, "-");
        return;
    }
    table_cell(t, "%.3g", r->tests[test].scale);
    table_cell(t, "%.4g", r->tests[test].req_per_min);
    table_cell(t, "%s", stats_format(&r->tests[test].values[binding].mean, buf, sizeof buf));
}

void search_print(const struct search_options *o, const struct compare_plan *plan,
                  const struct search_result *r, FILE *out)
{
    (void)fprintf(out,
                  "highest rate that holds: with %g %% confidence it lies between the rate shown "
                  "to hold and the rate shown not to\nx: factor on the workload's rates; /min: "
                  "requests; values: mean [interval of one test]\n\n",
                  100.0 * o->confidence_frac);
    struct table t;
    table_init(&t, "lrrlrrll");
    static const char *const heads[] = {"",       "holds: x", "/min",  "value",
                                        "not: x", "/min",     "value", "binding SLO"};
    for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++) {
        table_cell(&t, "%s", heads[i]);
    }
    for (uint32_t p = 0; p < plan->n_policies; p++) {
        int binding = binding_of(&r[p]);
        char buf[128];
        table_cell(&t, "%s", plan->policies[p].label);
        put_end(&t, &r[p], r[p].low, binding);
        put_end(&t, &r[p], r[p].high, binding);
        table_cell(&t, "%s",
                   binding >= 0 ? search_slo_name(o, (uint32_t)binding, buf, sizeof buf) : "-");
    }
    table_print(&t, out, 0);
    table_fini(&t);
    for (uint32_t p = 0; p < plan->n_policies; p++) {
        if (r[p].message[0] != '\0') {
            (void)fprintf(out, "%s: %s\n", plan->policies[p].label, r[p].message);
        }
    }
}

static cJSON *test_to_json(const struct search_options *o, const struct search_test *t)
{
    cJSON *j = cJSON_CreateObject();
    cJSON_AddNumberToObject(j, "rate_scale", t->scale);
    cJSON_AddNumberToObject(j, "req_per_min", t->req_per_min);
    cJSON_AddNumberToObject(j, "n", t->replications);
    cJSON_AddStringToObject(j, "outcome", outcome_names[t->outcome]);
    cJSON *slos = cJSON_AddObjectToObject(j, "slos");
    for (uint32_t i = 0; i <= o->n_slos && t->outcome != SEARCH_FAILED; i++) {
        char name[128];
        cJSON *v = cJSON_AddObjectToObject(slos, search_slo_name(o, i, name, sizeof name));
        cJSON_AddNumberToObject(v, "mean", t->values[i].mean.mean);
        cJSON_AddNumberToObject(v, "low", t->values[i].mean.low);
        cJSON_AddNumberToObject(v, "high", t->values[i].mean.high);
    }
    return j;
}

static void add_scale(cJSON *j, const char *scale, const char *rate, const struct search_result *r,
                      int test)
{
    cJSON_AddNumberToObject(j, scale, test >= 0 ? r->tests[test].scale : (double)NAN);
    cJSON_AddNumberToObject(j, rate, test >= 0 ? r->tests[test].req_per_min : (double)NAN);
}

cJSON *search_to_json(const struct search_options *o, const struct compare_plan *plan,
                      const struct search_result *r)
{
    cJSON *root = cJSON_CreateObject();
    for (uint32_t p = 0; p < plan->n_policies; p++) {
        cJSON *j = cJSON_AddObjectToObject(root, plan->policies[p].label);
        add_scale(j, "met_rate_scale", "met_req_per_min", &r[p], r[p].low);
        add_scale(j, "missed_rate_scale", "missed_req_per_min", &r[p], r[p].high);
        int binding = binding_of(&r[p]);
        char buf[128];
        cJSON_AddStringToObject(
            j, "binding",
            binding >= 0 ? search_slo_name(o, (uint32_t)binding, buf, sizeof buf) : "");
        cJSON_AddStringToObject(j, "message", r[p].message);
        cJSON *tests = cJSON_AddArrayToObject(j, "tests");
        for (uint32_t i = 0; i < r[p].n_tests; i++) {
            cJSON_AddItemToArray(tests, test_to_json(o, &r[p].tests[i]));
        }
    }
    return root;
}
