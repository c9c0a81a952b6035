/* Makes the options of each point from the settings of an experiment. */
#include <fnmatch.h>

#include "experiments/run/plugin.h"
#include "experiments/run/runner.h"
#include "experiments/sweep/spec.h"
#include "sim/base/nearest.h"
#include "sim/base/rng.h"
#include "sim/base/words.h"

#define CHECK_VALUES 200u /* values of a dimension that are tried before the first run */

static const char *const text_keys[] = {"policy", "soc",     "llm",   "workload",
                                        "trace",  "machine", "point", NULL};
static const char *const prefixes[] = {"params.", "workload.", "soc.", "llm.", "sim.", NULL};

static bool is_slo(const char *key)
{
    return strcmp(key, "ttft_slo_s") == 0 || strcmp(key, "tpot_slo_s") == 0;
}

/* The part of key after the prefix, or NULL. */
static const char *after_prefix(const char *key, const char *prefix)
{
    size_t n = strlen(prefix);
    return strncmp(key, prefix, n) == 0 && key[n] != '\0' ? key + n : NULL;
}

static bool is_path(const char *key)
{
    for (int i = 0; prefixes[i] != NULL; i++) {
        if (after_prefix(key, prefixes[i]) != NULL) {
            return true;
        }
    }
    return false;
}

static const char *const number_keys[] = {"rate", "seed", "ttft_slo_s", "tpot_slo_s", NULL};

bool spec_is_setting(const char *key)
{
    bool number = false;
    for (int i = 0; number_keys[i] != NULL; i++) {
        number = number || strcmp(key, number_keys[i]) == 0;
    }
    return number || words_find(text_keys, key) >= 0 || is_path(key);
}

/* "; did you mean policy?", or "". */
static const char *near_setting(struct nearest *n, const char *key)
{
    SIM_ASSERT(!spec_is_setting(key));
    nearest_init(n, key);
    for (int i = 0; text_keys[i] != NULL; i++) {
        nearest_look(n, text_keys[i]);
    }
    for (int i = 0; number_keys[i] != NULL; i++) {
        nearest_look(n, number_keys[i]);
    }
    return nearest_hint(n);
}

int spec_setting_check(const char *key, const cJSON *value, const char *file, const char *path,
                       struct err *e)
{
    const double v = cJSON_IsNumber(value) ? value->valuedouble : -1.0;
    if (words_find(text_keys, key) >= 0) {
        if (!cJSON_IsString(value) || value->valuestring[0] == '\0') {
            return err_add(e, "%s: %s: must be text, and not empty", file, path);
        }
    } else if (strcmp(key, "rate") == 0) {
        if (v < 1e-6 || v > 1e6) {
            return err_add(e, "%s: %s: must be a number from 1e-06 to 1e+06", file, path);
        }
    } else if (is_slo(key)) {
        if (v < 1e-6 || v > 1e6) {
            return err_add(e, "%s: %s: must be a number from 1e-06 to 1e+06", file, path);
        }
    } else if (strcmp(key, "seed") == 0) {
        if (v < 0.0 || v > (double)RNG_SEED_MAX || v != floor(v)) {
            return err_add(e, "%s: %s: must be a whole number from 0 to %llu", file, path,
                           RNG_SEED_MAX);
        }
    } else if (is_path(key)) {
        if (!cJSON_IsNumber(value) && !cJSON_IsBool(value) && !cJSON_IsString(value)) {
            return err_add(e, "%s: %s: must be a number, true, false or text", file, path);
        }
    } else {
        struct nearest near;
        return err_add(
            e,
            "%s: %s: no setting is called %s%s; there are policy, soc, llm, workload, "
            "trace, machine, point, rate, seed, ttft_slo_s, tpot_slo_s, params.K, workload.K, "
            "soc.X, llm.X, sim.X",
            file, path, key, near_setting(&near, key));
    }
    SIM_ASSERT(spec_is_setting(key)); /* both functions know the same names */
    return 0;
}

/* ---- one point ---- */

/* A value as text for --set, which may be in `number`. It is valid as long as both. */
static const char *value_text(const cJSON *v, char number[static 32])
{
    if (cJSON_IsString(v)) {
        return v->valuestring;
    }
    if (cJSON_IsBool(v)) {
        return cJSON_IsTrue(v) ? "true" : "false";
    }
    /* The shortest text that reads back as the same number. */
    for (int digits = 15; digits <= 17; digits++) {
        (void)snprintf(number, 32, "%.*g", digits, v->valuedouble);
        if (strtod(number, NULL) == v->valuedouble) {
            break;
        }
    }
    /* The run gets exactly the number of the file. */
    SIM_ASSERT(strtod(number, NULL) == v->valuedouble);
    return number;
}

/* Sets key=value in "NAME" or "NAME:key=value,...", and removes an earlier value of the key. */
static void set_key(const char **text, const char *key, const char *value)
{
    size_t head = plugin_path_length(*text);
    head = head > 0 ? head : strcspn(*text, ":");
    SIM_ASSERT((*text)[head] == ':' || (*text)[head] == '\0'); /* a name ends before its keys */
    size_t key_len = strlen(key);
    const char *separator = ":";
    struct text t = {0};
    text_add(&t, *text, head);
    for (const char *p = *text + head + ((*text)[head] == ':'); *p != '\0';) {
        size_t n = strcspn(p, ",");
        if (strncmp(p, key, key_len) != 0 || p[key_len] != '=') {
            text_string(&t, separator);
            text_add(&t, p, n);
            separator = ",";
        }
        p += n + (p[n] == ',');
    }
    text_format(&t, "%s%s=%s", separator, key, value);
    *text = xkeep(text_end(&t));
}

static int add_set(struct config_options *o, const char *path, const char *value, struct err *e)
{
    if (o->n_sets == CONFIG_MAX_SETS) {
        return err_add(e, "%s: more than %d paths at one point", path, CONFIG_MAX_SETS);
    }
    o->sets[o->n_sets++] = xkeep(xformat("%s=%s", path, value));
    return 0;
}

/* Plain settings come first, so that params.K and workload.K change the point's own policy and
 * workload. */
static void apply_plain(const cJSON *v, const char *key, struct spec_point *p)
{
    struct {
        const char *key, **text;
    } const texts[] = {{"policy", &p->policy},     {"soc", &p->soc},     {"llm", &p->llm},
                       {"workload", &p->workload}, {"trace", &p->trace}, {"machine", &p->machine}};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        if (strcmp(key, texts[i].key) == 0) {
            SIM_ASSERT(cJSON_IsString(v)); /* spec_setting_check saw it */
            *texts[i].text = v->valuestring;
        }
    }
    if (strcmp(key, "workload") == 0) {
        p->trace = "";
    }
    if (strcmp(key, "rate") == 0) {
        p->arrivals.rate_scale = v->valuedouble;
    } else if (is_slo(key)) {
        *(key[1] == 't' ? &p->options.ttft_slo_s : &p->options.tpot_slo_s) = v->valuedouble;
    } else if (strcmp(key, "seed") == 0) {
        p->options.seed = (uint64_t)v->valuedouble;
    }
}

static int apply_path(const cJSON *v, const char *key, struct spec_point *p, struct err *e)
{
    char number[32];
    const char *text = value_text(v, number);
    const char *rest = after_prefix(key, "params.");
    if (rest != NULL) {
        set_key(&p->policy, rest, text);
        return 0;
    }
    rest = after_prefix(key, "workload.");
    if (rest != NULL && p->trace[0] != '\0') {
        return err_add(e, "%s: the workload is a trace file; it has no keys", key);
    }
    if (rest != NULL) {
        set_key(&p->workload, rest, text);
        return 0;
    }
    SIM_ASSERT(spec_is_setting(key)); /* spec_setting_check saw it */
    return is_path(key) ? add_set(&p->options, key, text, e) : 0;
}

/* Calls take for each setting of a point; later calls override earlier ones. varied: leaves out the
 * settings of base. */
static int each_setting(const struct spec *s, uint64_t point, bool varied,
                        int (*take)(void *ctx, const char *key, const cJSON *v), void *ctx)
{
    SIM_ASSERT(point < s->n_points);
    int rc = 0;
    for (const cJSON *c = s->base != NULL && !varied ? s->base->child : NULL; c != NULL;
         c = c->next) {
        rc |= take(ctx, c->string, c);
    }
    uint64_t below = s->n_points;
    for (uint32_t i = 0; i < s->n_dimensions; i++) {
        const struct spec_dimension *d = &s->dimensions[i];
        below /= d->n;
        uint32_t at = (uint32_t)(point / below % d->n);
        for (uint32_t k = 0; k < d->n_axes; k++) {
            const struct spec_axis *a = &d->axes[k];
            if (a->key != NULL) {
                rc |= take(ctx, a->key, a->values[at]);
                continue;
            }
            for (const cJSON *c = a->values[at]->child; c != NULL; c = c->next) {
                rc |= take(ctx, c->string, c);
            }
        }
    }
    SIM_ASSERT(below == 1); /* the last dimension varies fastest */
    return rc;
}

struct pointing {
    struct spec_point *p;
    struct err *e;
};

static int take_plain(void *ctx, const char *key, const cJSON *v)
{
    struct pointing *t = ctx;
    apply_plain(v, key, t->p);
    return 0;
}

static int take_path(void *ctx, const char *key, const cJSON *v)
{
    struct pointing *t = ctx;
    return apply_path(v, key, t->p, t->e);
}

int spec_point(const struct spec *s, uint64_t point, struct spec_point *out, struct err *e)
{
    memset(out, 0, sizeof *out);
    out->options = config_options_default();
    for (uint32_t i = 0; i < s->n_patterns; i++) {
        config_options_metric(&out->options, s->patterns[i]);
    }
    for (uint32_t i = 0; i < s->n_until; i++) {
        config_options_metric(&out->options, s->until[i].metric);
    }
    out->arrivals = CONFIG_AS_WRITTEN;
    out->policy = out->trace = out->machine = "";
    out->soc = CONFIG_DEFAULT_SOC;
    out->llm = CONFIG_DEFAULT_LLM;
    out->workload = CONFIG_DEFAULT_WORKLOAD;
    struct pointing t = {out, e};
    (void)each_setting(s, point, false, take_plain, &t);
    if (out->policy[0] == '\0' && s->suite == NULL) {
        return err_add(e, "policy: missing: neither in base nor varied");
    }
    int rc = each_setting(s, point, false, take_path, &t);
    if (s->has_horizon) {
        char text[64];
        (void)snprintf(text, sizeof text, "%.17g", s->horizon_s);
        rc |= add_set(&out->options, "sim.horizon_s", text, e);
    }
    if (out->trace[0] != '\0' && s->max_replications > 1) {
        rc = err_add(e, "trace: a recorded trace is one replication, however often it runs; use "
                        "\"replications\": 1, and several traces as an axis");
    }
    spec_paths(s->file, out);
    out->options.soc = out->soc;
    out->options.llm = out->llm;
    out->options.trace = out->trace[0] != '\0' ? out->trace : NULL;
    out->options.machine = out->machine[0] != '\0' ? out->machine : NULL;
    out->options.workload = out->trace[0] != '\0' ? NULL : out->workload;
    SIM_ASSERT((out->options.trace == NULL) != (out->options.workload == NULL)); /* exactly one */
    return rc == 0 ? 0 : -EINVAL;
}

static int take_setting(void *ctx, const char *key, const cJSON *v)
{
    SIM_ASSERT(json_member(ctx, key) == NULL); /* a setting varies in one place */
    cJSON_AddItemToObject(ctx, key, cJSON_Duplicate(v, true));
    return 0;
}

cJSON *spec_point_settings(const struct spec *s, uint64_t point)
{
    cJSON *o = cJSON_CreateObject();
    (void)each_setting(s, point, true, take_setting, o);
    return o;
}

/* ---- trying values ---- */

struct found {
    bool pattern[SPEC_MAX_PATTERNS], until[SPEC_MAX_UNTIL];
};

static void match_metrics(const struct spec *s, const struct config *c, struct found *f)
{
    SCOPED(metric_list_fini) struct metric_list names = {0};
    runner_metric_names(c, true, &names);
    SIM_ASSERT(names.n > 0); /* without names no pattern would match */
    for (uint32_t k = 0; k < s->n_patterns; k++) {
        for (size_t i = 0; i < names.n && !f->pattern[k]; i++) {
            f->pattern[k] = fnmatch(s->patterns[k], names.v[i].name, 0) == 0;
        }
    }
    for (uint32_t k = 0; k < s->n_until; k++) {
        f->until[k] = f->until[k] || metric_list_find(&names, s->until[k].metric) != NULL;
    }
}

static void try_point(const struct spec *s, uint64_t point, struct found *f, struct err *e)
{
    OWNED struct spec_point *p = xcalloc(1, sizeof *p);
    if (spec_point(s, point, p, e) == 0) {
        OWNED struct config *c = xcalloc(1, sizeof *c);
        OWNED struct config_policy *policy = xcalloc(1, sizeof *policy);
        const char *const name = p->policy;
        if (config_load_all(c, &p->options, p->arrivals, &name, 1, policy, e) == 0) {
            match_metrics(s, c, f);
        }
        config_fini(c);
    }
}

static bool told(const struct err *e, const char *line)
{
    for (size_t i = 0; i < e->n && i < ERR_MAX_LINES; i++) {
        if (strstr(e->lines[i], line) != NULL) {
            return true;
        }
    }
    return false;
}

/* Tries one point. Puts the key path in front of its errors, and leaves out those that an earlier
 * point has reported. */
static void try_at(const struct spec *s, uint64_t point, const char *path, struct found *f,
                   struct err *e)
{
    SCOPED(err_fini) struct err own = ERR_INIT;
    try_point(s, point, f, &own);
    for (size_t i = 0; i < own.n && i < ERR_MAX_LINES; i++) {
        if (!told(e, own.lines[i])) {
            (void)err_add(e, "%s: %s: %s", s->file, path, own.lines[i]);
        }
    }
}

/* "axes.policy[0], axes.rate[0]", or "base". The caller frees it. */
static char *first_point_path(const struct spec *s)
{
    struct text t = {0};
    for (uint32_t i = 0; i < s->n_dimensions; i++) {
        SIM_ASSERT(s->dimensions[i].n_axes > 0); /* spec_is_sound checked it */
        text_item(&t, ", ", s->dimensions[i].axes[0].path);
        text_string(&t, "[0]");
    }
    text_string(&t, s->n_dimensions == 0 ? "base" : "");
    return text_end(&t);
}

static bool only_seeds(const struct spec_dimension *d)
{
    return d->n_axes == 1 && d->axes[0].key != NULL && strcmp(d->axes[0].key, "seed") == 0;
}

int spec_check(const struct spec *s, struct err *e)
{
    size_t before = e->n;
    struct found f = {0};
    char *path = first_point_path(s);
    try_at(s, 0, path, &f, e);
    free(path);
    uint64_t below = s->n_points;
    for (uint32_t i = 0; i < s->n_dimensions; i++) {
        const struct spec_dimension *d = &s->dimensions[i];
        below /= d->n;
        for (uint32_t k = 1; k < d->n && !only_seeds(d); k++) {
            if (k >= CHECK_VALUES && k + 1 < d->n) {
                k = d->n - 1;
            }
            SIM_ASSERT(k * below < s->n_points); /* the others have their first values */
            path = xformat("%s[%" PRIu32 "]", d->axes[0].path, k);
            try_at(s, k * below, path, &f, e);
            free(path);
        }
    }
    SIM_ASSERT(below == 1);      /* all dimensions were tried */
    bool tried = e->n == before; /* after an error, metrics may be missing */
    for (uint32_t k = 0; k < s->n_patterns && tried; k++) {
        if (!f.pattern[k]) {
            (void)err_add(e, "%s: metrics[%" PRIu32 "]: no metric is called %s", s->file, k,
                          s->patterns[k]);
        }
    }
    for (uint32_t k = 0; k < s->n_until && tried; k++) {
        if (!f.until[k]) {
            (void)err_add(e, "%s: until.%s: no metric is called so", s->file, s->until[k].metric);
        }
    }
    return e->n > before ? -EINVAL : 0;
}
