/* Real against simulated: a dot per request, and the order of policies. Reads drive --compare
 * --json. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "plots/figure.h"
#include "sim/base/json.h"

static double number_of(const cJSON *o, const char *key)
{
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(o, key);
    return cJSON_IsNumber(v) ? v->valuedouble : (double)NAN;
}

/* Dots of one class and metric over all policies: real, simulated. */
static void dots(const cJSON *policies, const char *cls, const char *metric, struct figure_data *d)
{
    char real[32];
    char simulated[32];
    (void)snprintf(real, sizeof real, "real_%s", metric);
    (void)snprintf(simulated, sizeof simulated, "sim_%s", metric);
    figure_block(d, "%s", cls);
    const cJSON *p;
    cJSON_ArrayForEach(p, policies)
    {
        const cJSON *r;
        cJSON_ArrayForEach(r, cJSON_GetObjectItemCaseSensitive(p, "requests"))
        {
            const char *of = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(r, "class"));
            if (of != NULL && strcmp(of, cls) == 0) {
                figure_cell(d, number_of(r, real));
                figure_cell(d, number_of(r, simulated));
                figure_row_end(d);
            }
        }
    }
}

/* A row per policy of a class: number, real mean, simulated mean. */
static void order(const cJSON *means, const char *cls, struct figure_data *d)
{
    figure_block(d, "%s", cls);
    double at = 0.0;
    const cJSON *m;
    cJSON_ArrayForEach(m, means)
    {
        const char *of = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(m, "class"));
        const cJSON *e2e = cJSON_GetObjectItemCaseSensitive(m, "e2e_s");
        if (of != NULL && strcmp(of, cls) == 0) {
            figure_cell(d, at++);
            figure_cell(d, number_of(e2e, "real"));
            figure_cell(d, number_of(e2e, "simulated"));
            figure_row_end(d);
        }
    }
}

int figure_drive(const struct figure_request *q, struct figure_data *d, struct err *e)
{
    if (q->n_inputs != 1) {
        return err_add(e, "drive: one file of `drive --compare --json`");
    }
    cJSON *root = json_read_file(q->inputs[0].path, e);
    const cJSON *policies = cJSON_GetObjectItemCaseSensitive(root, "drive");
    if (root != NULL && !cJSON_IsArray(policies)) {
        (void)err_add(e, "%s: no real runs in it (drive --compare --json)", q->inputs[0].path);
    } else if (root != NULL) {
        dots(policies, "reactive", "ttft_s", d);
        dots(policies, "proactive", "ttft_s", d);
        dots(policies, "reactive", "e2e_s", d);
        dots(policies, "proactive", "e2e_s", d);
        const cJSON *means = cJSON_GetObjectItemCaseSensitive(root, "means");
        order(means, "reactive", d);
        order(means, "proactive", d);
        struct figure_texts rows = {.n = 0};
        const cJSON *p;
        cJSON_ArrayForEach(p, policies)
        {
            const char *name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(p, "policy"));
            figure_text_add(&rows, name == NULL ? "?" : name);
        }
        figure_var(d, "policies", cJSON_GetArraySize(policies));
        figure_texts_put(&rows, "rows", d);
    }
    cJSON_Delete(root);
    return e->n == 0 ? 0 : -EINVAL;
}
