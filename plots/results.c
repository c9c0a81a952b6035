#include "plots/results.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "plots/about.h"
#include "plots/grid.h"
#include "plots/results_impl.h"
#include "sim/base/json.h"
#include "sim/stats/stats.h"

#define UNDEFINED ((double)NAN)

/* ---- compare --json ---- */

static double field(const cJSON *o, const char *name)
{
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(o, name);
    return cJSON_IsNumber(v) ? v->valuedouble : UNDEFINED;
}

static void put_axis(cJSON *axes, const char *name, const cJSON *value)
{
    if (value != NULL) {
        cJSON_AddItemToObject(axes, name, cJSON_Duplicate(value, true));
    }
}

static void add_policies(struct results *r, cJSON *root, cJSON *holder, const cJSON *load)
{
    cJSON *policies = cJSON_GetObjectItemCaseSensitive(holder, "policies");
    const cJSON *config = cJSON_GetObjectItemCaseSensitive(root, "config");
    const cJSON *capacity = cJSON_GetObjectItemCaseSensitive(root, "capacity_req_per_min");
    cJSON *p = NULL;
    cJSON_ArrayForEach(p, policies)
    {
        cJSON *point = cJSON_CreateObject();
        cJSON *axes = cJSON_AddObjectToObject(point, "axes");
        cJSON_AddStringToObject(axes, "policy", p->string);
        for (int k = 0; k < 2; k++) {
            const char *part = k == 0 ? "soc" : "llm";
            const cJSON *o = cJSON_GetObjectItemCaseSensitive(config, part);
            put_axis(axes, part, cJSON_GetObjectItemCaseSensitive(o, "name"));
        }
        put_axis(axes, "workload", cJSON_GetObjectItemCaseSensitive(root, "workload"));
        put_axis(axes, "load", load);
        if (cJSON_IsNumber(load) && cJSON_IsNumber(capacity)) {
            cJSON_AddNumberToObject(axes, "offered_req_per_min",
                                    load->valuedouble * capacity->valuedouble);
        }
        cJSON_AddItemToObject(point, "metrics", cJSON_Duplicate(p, true));
        const cJSON *v = cJSON_GetObjectItemCaseSensitive(
            cJSON_GetObjectItemCaseSensitive(holder, "verdicts"), p->string);
        double overloaded = field(v, "overloaded");
        cJSON_AddNumberToObject(point, "overloaded", overloaded);
        cJSON_AddNumberToObject(point, "runs",
                                overloaded + field(v, "stable") + field(v, "backlogged"));
        cJSON_AddItemToArray(r->points, point);
    }
}

static int add_compare(struct results *r, const char *path, struct err *e)
{
    cJSON *root = json_read_file(path, e);
    if (root == NULL) {
        return -EINVAL;
    }
    cJSON *loads = cJSON_GetObjectItemCaseSensitive(root, "loads");
    int before = cJSON_GetArraySize(r->points);
    add_policies(r, root, root, NULL);
    cJSON *at = NULL;
    cJSON_ArrayForEach(at, loads)
    {
        add_policies(r, root, at, cJSON_GetObjectItemCaseSensitive(at, "load"));
    }
    cJSON_Delete(root);
    if (cJSON_GetArraySize(r->points) == before) {
        return err_add(e, "%s: no comparison: expected what `xpusim compare --json` prints", path);
    }
    return 0;
}

int results_load(struct results *r, const struct figure_request *request, struct err *e)
{
    *r = (struct results){.points = cJSON_CreateArray(), .request = request};
    for (size_t i = 0; i < request->n_inputs; i++) {
        const char *path = request->inputs[i].path;
        int rc =
            about_looks_like_json(path) ? add_compare(r, path, e) : results_add_csv(r, path, e);
        if (rc != 0) {
            return rc;
        }
    }
    return 0;
}

void results_fini(struct results *r)
{
    cJSON_Delete(r->points);
    r->points = NULL;
}

size_t results_n(const struct results *r)
{
    return (size_t)cJSON_GetArraySize(r->points);
}

/* ---- axes ---- */

static const cJSON *axes_of(const struct results *r, size_t i)
{
    return cJSON_GetObjectItemCaseSensitive(cJSON_GetArrayItem(r->points, (int)i), "axes");
}

const char *results_axis(const struct results *r, size_t i, const char *axis, char *buf,
                         size_t size)
{
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(axes_of(r, i), axis);
    if (cJSON_IsString(v)) {
        return v->valuestring;
    }
    if (cJSON_IsNumber(v)) {
        (void)snprintf(buf, size, "%g", v->valuedouble);
        return buf;
    }
    return NULL;
}

bool results_axis_number(const struct results *r, size_t i, const char *axis, double *out)
{
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(axes_of(r, i), axis);
    if (cJSON_IsNumber(v)) {
        *out = v->valuedouble;
        return true;
    }
    return false;
}

bool results_axis_varies(const struct results *r, const char *axis)
{
    char a[64];
    char b[64];
    const char *first = results_axis(r, 0, axis, a, sizeof a);
    for (size_t i = 1; i < results_n(r); i++) {
        const char *other = results_axis(r, i, axis, b, sizeof b);
        if ((first == NULL) != (other == NULL) || (first != NULL && strcmp(first, other) != 0)) {
            return true;
        }
    }
    return false;
}

static bool numeric(const struct results *r, const char *axis)
{
    double x;
    for (size_t i = 0; i < results_n(r); i++) {
        if (!results_axis_number(r, i, axis, &x)) {
            return false;
        }
    }
    return results_n(r) > 0;
}

const char *results_pick_axis(const struct results *r, const char *asked,
                              const char *const *candidates, const char *not_this, const char *what,
                              struct err *e)
{
    if (asked != NULL) {
        if (!numeric(r, asked)) {
            (void)err_add(e, "axis %s: not a number of every point of the input", asked);
            return NULL;
        }
        return asked;
    }
    for (size_t i = 0; candidates[i] != NULL; i++) {
        if (numeric(r, candidates[i]) && results_axis_varies(r, candidates[i])) {
            return candidates[i];
        }
    }
    const cJSON *a = NULL;
    cJSON_ArrayForEach(a, axes_of(r, 0))
    {
        if (numeric(r, a->string) && results_axis_varies(r, a->string) &&
            (not_this == NULL || strcmp(a->string, not_this) != 0)) {
            return a->string;
        }
    }
    (void)err_add(e, "%s: %s varies in the input (%s)", r->request->inputs[0].path, what,
                  "compare --load R1,R2,.. --json and sweeps over it have it; --x names an axis");
    return NULL;
}

/* Axes that say the same as x do not name a series: the load beside the offered rate. */
static bool says_the_same(const char *a, const char *b)
{
    static const char *const rates[] = {"load", "offered_req_per_min", "rate", "rate_scale"};
    int both = 0;
    if (b == NULL) {
        return false;
    }
    for (size_t i = 0; i < sizeof rates / sizeof rates[0]; i++) {
        both += (strcmp(a, rates[i]) == 0) + (strcmp(b, rates[i]) == 0);
    }
    return strcmp(a, b) == 0 || both == 2;
}

const char *results_label(const struct results *r, size_t i, const char *x, const char *y,
                          char *buf, size_t size)
{
    char number[64];
    size_t n = 0;
    buf[0] = '\0';
    const cJSON *a = NULL;
    cJSON_ArrayForEach(a, axes_of(r, i))
    {
        bool policy = strcmp(a->string, "policy") == 0;
        if (says_the_same(a->string, x) || says_the_same(a->string, y) ||
            !(policy || results_axis_varies(r, a->string)) || n >= size) {
            continue;
        }
        const char *text = results_axis(r, i, a->string, number, sizeof number);
        bool plain = policy || cJSON_IsString(a);
        n += (size_t)snprintf(buf + n, size - n, "%s%s%s%s", n > 0 ? ", " : "",
                              plain ? "" : a->string, plain ? "" : " ", text);
    }
    if (buf[0] == '\0') {
        (void)snprintf(buf, size, "%s", r->request->inputs[0].label);
    }
    return buf;
}

/* ---- metrics ---- */

bool results_metric(const struct results *r, size_t i, const char *metric,
                    struct results_value *out)
{
    const cJSON *m =
        cJSON_GetObjectItemCaseSensitive(cJSON_GetArrayItem(r->points, (int)i), "metrics");
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(m, metric);
    *out = (struct results_value){field(v, "mean"), field(v, "low"), field(v, "high")};
    return v != NULL && isfinite(out->mean);
}

struct results_load results_overload(const struct results *r, size_t i)
{
    const cJSON *p = cJSON_GetArrayItem(r->points, (int)i);
    double runs = field(p, "runs");
    double overloaded = field(p, "overloaded");
    if (!isfinite(runs) || !isfinite(overloaded)) {
        return (struct results_load){0, 0};
    }
    return (struct results_load){(unsigned)runs, (unsigned)overloaded};
}

const char *results_mark(const struct results *r, size_t i, char *buf, size_t size)
{
    struct results_load l = results_overload(r, i);
    buf[0] = '\0';
    if (l.overloaded > 0) {
        (void)snprintf(buf, size, "overloaded in %u of %u runs", l.overloaded, l.runs);
    }
    return buf;
}

/* Names of the first point that share the metric's first or last part. */
static void similar(const struct results *r, const char *metric, char *buf, size_t size)
{
    const cJSON *m = cJSON_GetObjectItemCaseSensitive(cJSON_GetArrayItem(r->points, 0), "metrics");
    const char *dot = strchr(metric, '.');
    size_t prefix = dot == NULL ? 3 : (size_t)(dot - metric) + 4;
    size_t n = 0;
    int shown = 0;
    buf[0] = '\0';
    for (int pass = 0; pass < 2 && shown == 0; pass++) {
        const cJSON *v = NULL;
        cJSON_ArrayForEach(v, m)
        {
            bool like = pass == 1 || strncmp(v->string, metric, prefix) == 0;
            if (like && shown < 8 && n < size) {
                n += (size_t)snprintf(buf + n, size - n, "%s%s", shown > 0 ? ", " : "", v->string);
                shown++;
            }
        }
    }
}

bool results_has(const struct results *r, const char *metric)
{
    struct results_value v;
    bool has = false;
    for (size_t i = 0; i < results_n(r) && !has; i++) {
        has = results_metric(r, i, metric, &v);
    }
    return has;
}

int results_require(const struct results *r, const char *metric, struct err *e)
{
    if (results_has(r, metric)) {
        return 0;
    }
    char have[400];
    similar(r, metric, have, sizeof have);
    return err_add(e, "%s: no metric %s; there are: %s, ...", r->request->inputs[0].path, metric,
                   have);
}
