/* Claims as a table and as JSON. */
#include <math.h>
#include <string.h>

#include "experiments/claims/claims.h"
#include "experiments/shell/table.h"

static void published_text(const struct claim_check *k, char *buf, size_t size)
{
    if (k->kind != CHECK_NUMBER) {
        (void)snprintf(buf, size, "%s %g", k->kind == CHECK_ABOVE ? "above" : "below", k->low);
    } else if (k->low == k->high) {
        (void)snprintf(buf, size, "%g", k->low);
    } else {
        (void)snprintf(buf, size, "%g to %g", k->low, k->high);
    }
}

/* The mean with its interval; a value without spread as it is. */
static void simulated_text(const struct claim_check *k, char *buf, size_t size)
{
    if (k->mean.sd > 0.0) {
        (void)stats_format(&k->mean, buf, size);
    } else if (isfinite(k->mean.mean)) {
        (void)snprintf(buf, size, "%.4g", k->mean.mean);
    } else {
        (void)snprintf(buf, size, "-");
    }
}

static void add_row(struct table *t, const char *id, const char *what, const struct claim_check *k,
                    const char *verdict)
{
    char text[96];
    table_cell(t, "%s", id);
    table_cell(t, "%s", what);
    published_text(k, text, sizeof text);
    table_cell(t, "%s", text);
    simulated_text(k, text, sizeof text);
    table_cell(t, "%s", text);
    table_cell(t, "%s", k->unit);
    if (isfinite(k->percentile) && k->mean.sd > 0.0) {
        table_cell(t, "%.0f", k->percentile);
    } else {
        table_cell(t, "%s", "");
    }
    table_cell(t, "%s", verdict);
}

static void print_one(const struct claim *c, FILE *out)
{
    (void)fprintf(out, "%s  %s\n    %s, %s. %s\n", c->id, claim_verdict_names[c->verdict], c->paper,
                  c->where, c->statement);
    if (c->why != NULL) {
        (void)fprintf(out, "    Reading \"%s\"%s: %s\n", c->reading,
                      c->taken ? ", the one to take" : "", c->why);
    }
    struct table t;
    table_init(&t, "llrrlrl");
    static const char *const titles[] = {"", "", "published", "simulated", "", "percentile", ""};
    for (size_t i = 0; c->n_checks > 0 && i < sizeof titles / sizeof titles[0]; i++) {
        table_cell(&t, "%s", titles[i]);
    }
    for (uint32_t i = 0; i < c->n_checks; i++) {
        const struct claim_check *k = &c->checks[i];
        add_row(&t, "", k->name, k,
                k->informative ? "for information" : claim_verdict_names[k->verdict]);
    }
    table_print(&t, out, 4);
    table_fini(&t);
    (void)fprintf(out, "    %s\n\n", c->reason);
}

static void print_brief(const struct claim *c, FILE *out)
{
    (void)fprintf(out, "%-4s %-23s  %s", c->id, claim_verdict_names[c->verdict], c->statement);
    if (c->why != NULL) {
        (void)fprintf(out, " [%s%s]", c->reading, c->taken ? ", taken" : "");
    }
    (void)fprintf(out, ": %s\n", c->reason);
}

/* Of each claim one reading counts: the one taken, or the first where that was not asked for. */
static bool counts(const struct claims *c, uint32_t at)
{
    uint32_t first = at;
    while (first > 0 && strcmp(c->v[first - 1].id, c->v[at].id) == 0) {
        first--;
    }
    for (uint32_t i = first; i < c->n && strcmp(c->v[i].id, c->v[at].id) == 0; i++) {
        if (c->v[i].taken) {
            return i == at;
        }
    }
    return first == at;
}

void claims_print(const struct claims *c, bool details, FILE *out)
{
    uint32_t count[CLAIM_VERDICT_COUNT] = {0};
    uint32_t n = 0;
    for (uint32_t i = 0; i < c->n; i++) {
        if (details) {
            print_one(&c->v[i], out);
        } else {
            print_brief(&c->v[i], out);
        }
        if (counts(c, i)) {
            count[c->v[i].verdict]++;
            n++;
        }
    }
    (void)fprintf(out, "%u claims:", n);
    for (int v = 0; v < CLAIM_VERDICT_COUNT; v++) {
        (void)fprintf(out, "%s %u %s", v > 0 ? "," : "", count[v], claim_verdict_names[v]);
    }
    (void)fputc('\n', out);
}

static void add_number(cJSON *o, const char *key, double v)
{
    if (isfinite(v)) {
        cJSON_AddNumberToObject(o, key, v);
    } else {
        cJSON_AddNullToObject(o, key);
    }
}

static void add_published(cJSON *o, const struct claim_check *k)
{
    if (k->kind == CHECK_NUMBER && k->low == k->high) {
        cJSON_AddNumberToObject(o, "published", k->low);
        return;
    }
    char text[64];
    published_text(k, text, sizeof text);
    cJSON_AddStringToObject(o, "published", text);
}

static cJSON *check_json(const struct claim_check *k)
{
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "name", k->name);
    cJSON_AddStringToObject(o, "unit", k->unit);
    add_published(o, k);
    add_number(o, "simulated", k->mean.mean);
    add_number(o, "low", k->mean.low);
    add_number(o, "high", k->mean.high);
    cJSON_AddNumberToObject(o, "n", k->mean.n);
    add_number(o, "least", k->least);
    add_number(o, "most", k->most);
    add_number(o, "percentile", k->percentile);
    cJSON_AddBoolToObject(o, "informative", k->informative);
    cJSON_AddBoolToObject(o, "ours", k->ours);
    cJSON_AddStringToObject(o, "verdict", claim_verdict_names[k->verdict]);
    return o;
}

/* The check a reader should see first: the one that decided. */
static const struct claim_check *deciding(const struct claim *c)
{
    const struct claim_check *worst = NULL;
    for (uint32_t i = 0; i < c->n_checks; i++) {
        const struct claim_check *k = &c->checks[i];
        if (!k->informative && (worst == NULL || k->verdict > worst->verdict)) {
            worst = k;
        }
    }
    return worst;
}

cJSON *claims_to_json(const struct claims *c)
{
    cJSON *all = cJSON_CreateArray();
    for (uint32_t i = 0; i < c->n; i++) {
        const struct claim *one = &c->v[i];
        const struct claim_check *k = deciding(one);
        cJSON *o = cJSON_CreateObject();
        cJSON_AddItemToArray(all, o);
        cJSON_AddStringToObject(o, "id", one->id);
        cJSON_AddStringToObject(o, "paper", one->paper);
        cJSON_AddStringToObject(o, "where", one->where);
        cJSON_AddStringToObject(o, "statement", one->statement);
        cJSON_AddStringToObject(o, "reading", one->reading);
        cJSON_AddBoolToObject(o, "taken", one->taken);
        cJSON_AddBoolToObject(o, "counts", counts(c, i));
        if (one->why != NULL) {
            cJSON_AddStringToObject(o, "why", one->why);
        }
        if (one->text_setup != NULL) {
            cJSON_AddStringToObject(o, "setup", one->text_setup);
        }
        if (k != NULL) {
            cJSON_AddStringToObject(o, "unit", k->unit);
            add_published(o, k);
        } else {
            cJSON_AddNullToObject(o, "published");
        }
        add_number(o, "simulated", k != NULL ? k->mean.mean : (double)NAN);
        add_number(o, "low", k != NULL ? k->mean.low : (double)NAN);
        add_number(o, "high", k != NULL ? k->mean.high : (double)NAN);
        cJSON_AddStringToObject(o, "verdict", claim_verdict_names[one->verdict]);
        cJSON_AddStringToObject(o, "reason", one->reason);
        cJSON *checks = cJSON_AddArrayToObject(o, "checks");
        for (uint32_t i2 = 0; i2 < one->n_checks; i2++) {
            cJSON_AddItemToArray(checks, check_json(&one->checks[i2]));
        }
    }
    return all;
}
