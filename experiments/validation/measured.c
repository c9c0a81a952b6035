#include "experiments/validation/measured.h"

#include "experiments/shell/cli.h"
#include "experiments/validation/measured_impl.h"

#define MAX_TOKENS 100000000u
#define MAX_BATCH 65536u
#define MAX_VALUE 1e12

/* ---- keys ---- */

static const struct {
    const char *name;
    enum point_metric metric;
} metrics[] = {
    {"ttft_ms", POINT_TTFT_MS},
    {"tpot_ms", POINT_TPOT_MS},
    {"prefill_tok_s", POINT_PREFILL_TOK_S},
    {"decode_tok_s", POINT_DECODE_TOK_S},
};
#define N_METRICS (sizeof metrics / sizeof metrics[0])

/* Parses "metric@tokens=value" into a row without the other keys. False: unknown metric. */
static bool take_metric(const char *key, const char *value, struct point *p, struct err *e)
{
    size_t n = strcspn(key, "@");
    for (size_t i = 0; i < N_METRICS; i++) {
        if (strlen(metrics[i].name) != n || strncmp(metrics[i].name, key, n) != 0) {
            continue;
        }
        *p = (struct point){.metric = metrics[i].metric, .metric_name = metrics[i].name};
        if (key[n] != '@') {
            (void)err_add(e, "--measured: %s: needs the number of tokens, %s@1024", key, key);
            return true;
        }
        uint32_t least = point_is_prefill(p) ? 1 : 0;
        OWNED char *name = xformat("measured %s", key);
        (void)cli_count(name, key + n + 1, least, MAX_TOKENS, &p->input_tokens, e);
        (void)cli_number(name, value, 1e-9, MAX_VALUE, &p->value, e);
        return true;
    }
    return false;
}

static bool take_key(const char *key, const char *value, struct measured_keys *k, struct err *e)
{
    const struct {
        const char *key, **to;
    } texts[] = {
        {"model", &k->model}, {"runtime", &k->runtime}, {"device", &k->device}, {"file", &k->file}};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        if (strcmp(key, texts[i].key) == 0) {
            *texts[i].to = value[0] != '\0' ? xkeep(xstrdup(value)) : NULL;
            return true;
        }
    }
    if (strcmp(key, "bits") == 0) {
        (void)cli_count("measured bits", value, 1, 32, &k->bits, e);
    } else if (strcmp(key, "batch") == 0) {
        (void)cli_count("measured batch", value, 1, MAX_BATCH, &k->batch, e);
    } else {
        return false;
    }
    return true;
}

/* One of two passes over "key=value,...": first the keys for all rows, then the rows. */
static int take_list(const char *text, struct measured_keys *k, struct measured *out, bool rows,
                     struct err *e)
{
    size_t before = e->n;
    OWNED char *copy = xstrdup(text);
    char *rest;
    for (char *item = strtok_r(copy, ",", &rest); item != NULL; item = strtok_r(NULL, ",", &rest)) {
        char *value = strchr(item, '=');
        struct point p;
        if (value == NULL) {
            (void)err_add(e, "--measured '%s': '%s' is not key=value", text, item);
            continue;
        }
        *value++ = '\0';
        size_t errors = e->n;
        if (take_metric(item, value, &p, e)) {
            if (rows && e->n == errors) {
                measured_add(out, k, &p, xkeep(xformat("--measured '%s'", text)));
            }
        } else if (!take_key(item, value, k, e)) {
            (void)err_add(e,
                          "--measured '%s': '%s' is none of model, bits, runtime, device, batch, "
                          "file, ttft_ms@N, tpot_ms@N, prefill_tok_s@N, decode_tok_s@N",
                          text, item);
        }
    }
    return e->n > before ? -EINVAL : 0;
}

int measured_read(const char *text, const char *soc, struct measured *out, struct err *e)
{
    struct measured_keys k = {.soc = soc};
    if (strchr(text, '=') == NULL) {
        return measured_read_file(text, &k, out, e);
    }
    size_t n = out->points.n;
    int rc = take_list(text, &k, out, false, e);
    if (rc == 0 && k.file != NULL) {
        rc = measured_read_file(k.file, &k, out, e);
    } else if (rc == 0) {
        rc = take_list(text, &k, out, true, e);
        if (k.model == NULL || k.bits == 0) {
            rc = err_add(e, "--measured '%s': needs model and bits", text);
        } else if (out->points.n == n) {
            rc = err_add(e, "--measured '%s': states no time, as ttft_ms@1024=812", text);
        }
    }
    return rc;
}
