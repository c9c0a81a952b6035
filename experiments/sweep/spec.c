/* Reads an experiment file, and checks its syntax and size. */
#include "experiments/sweep/spec.h"

#include <fnmatch.h>

#include "sim/base/json.h"

/* ---- one setting, one dimension ---- */

static bool dimension_sets(const struct spec_dimension *d, const char *key)
{
    for (uint32_t i = 0; i < d->n_axes; i++) {
        const struct spec_axis *a = &d->axes[i];
        /* Rows are the only axis of their dimension. */
        SIM_ASSERT(a->key != NULL || d->n_axes == 1);
        if (a->key != NULL && strcmp(a->key, key) == 0) {
            return true;
        }
        for (uint32_t k = 0; a->key == NULL && k < a->n; k++) {
            if (json_member(a->values[k], key) != NULL) {
                return true;
            }
        }
    }
    return false;
}

static void refuse_two_places(const struct spec *s, struct err *e)
{
    bool horizon = json_member(s->base, "sim.horizon_s") != NULL;
    for (uint32_t i = 0; i < s->n_dimensions && !horizon; i++) {
        horizon = dimension_sets(&s->dimensions[i], "sim.horizon_s");
    }
    if (s->has_horizon && horizon) {
        (void)err_add(e, "%s: horizon_s: also set as sim.horizon_s; state one of them", s->file);
    }
    for (uint32_t i = 0; i < s->n_dimensions; i++) {
        for (uint32_t k = 0; k < s->dimensions[i].n_axes; k++) {
            const struct spec_axis *a = &s->dimensions[i].axes[k];
            for (uint32_t j = 0; a->key != NULL && j < s->n_dimensions; j++) {
                bool earlier_axis = j < i && s->dimensions[j].axes[0].key != NULL;
                SIM_ASSERT(s->dimensions[j].n_axes > 0); /* the file has no errors */
                bool rows = s->dimensions[j].n_axes > 0 && s->dimensions[j].axes[0].key == NULL;
                if ((earlier_axis || rows) && dimension_sets(&s->dimensions[j], a->key)) {
                    (void)err_add(e, "%s: %s: also set by %s; a setting varies in one place",
                                  s->file, a->path, s->dimensions[j].axes[0].path);
                }
            }
        }
    }
}

/* ---- the rest of the file ---- */

static void read_metrics(struct spec *s, const cJSON *list, struct err *e)
{
    size_t size = 2;
    for (const cJSON *c = list != NULL ? list->child : NULL; c != NULL; c = c->next) {
        if (!cJSON_IsString(c) || c->valuestring[0] == '\0' || s->n_patterns == SPEC_MAX_PATTERNS) {
            (void)err_add(e,
                          "%s: metrics[%" PRIu32 "]: must be the name of a metric, * for any "
                          "part; at most %d",
                          s->file, s->n_patterns, SPEC_MAX_PATTERNS);
            break;
        }
        s->patterns[s->n_patterns++] = c->valuestring;
        size += strlen(c->valuestring) + 1;
    }
    if (list != NULL && (!cJSON_IsArray(list) || list->child == NULL)) {
        (void)err_add(e, "%s: metrics: must be a list of names with at least one", s->file);
    }
    s->kept = xkept(xcalloc(size, 1));
    for (uint32_t i = 0; i < s->n_patterns; i++) {
        (void)strcat(s->kept, i > 0 ? "," : "");
        (void)strcat(s->kept, s->patterns[i]);
    }
    if (s->n_patterns == 0) {
        (void)strcat(s->kept, "*");
    }
    SIM_ASSERT(strlen(s->kept) < size);
}

static void read_until(struct spec *s, struct json_obj *root, struct err *e)
{
    struct json_obj until = json_get_object(root, "until");
    for (const cJSON *c = until.node != NULL ? until.node->child : NULL; c != NULL; c = c->next) {
        if (s->n_until == SPEC_MAX_UNTIL) {
            (void)err_add(e, "%s: until: more than %d metrics", s->file, SPEC_MAX_UNTIL);
            return;
        }
        struct json_obj o = json_get_object(&until, c->string);
        bool relative = json_has(&o, "half_width_frac");
        struct spec_until *u = &s->until[s->n_until++];
        u->metric = c->string;
        u->relative = relative;
        u->half_width = json_get_number(&o, relative ? "half_width_frac" : "half_width", 0.0, 1e15);
        json_done(&o);
        if (!spec_keeps(s, c->string)) {
            (void)err_add(e, "%s: until.%s: not among the metrics to keep", s->file, c->string);
        }
    }
    if (until.node != NULL && until.node->child == NULL) {
        (void)err_add(e, "%s: until: names no metric", s->file);
    }
}

static void read_scalars(struct spec *s, struct json_obj *o, struct err *e)
{
    s->name = json_string_or(o, "name", "");
    s->replications = json_u32_or(o, "replications", 1, SPEC_MAX_REPLICATIONS - 1, 1);
    s->warmup_s = json_number_or(o, "warmup_s", 0.0, 1e9, 0.0);
    s->has_horizon = json_has(o, "horizon_s");
    s->horizon_s = json_number_or(o, "horizon_s", 0.0, 1e9, 0.0);
    if (s->has_horizon && s->horizon_s > 0.0 && s->horizon_s <= s->warmup_s) {
        (void)err_add(e, "%s: horizon_s: %g does not lie beyond warmup_s %g", s->file, s->horizon_s,
                      s->warmup_s);
    }
    if (json_has(o, "until")) {
        read_until(s, o, e);
        /* By default, a search for precision ends at twenty times the replications that it begins
         * with. */
        s->max_replications = json_u32_or(o, "max_replications", s->replications,
                                          SPEC_MAX_REPLICATIONS - 1, 20 * s->replications);
        if (s->replications < 2) {
            (void)err_add(e,
                          "%s: replications: must be at least 2 with until: one run has no "
                          "interval",
                          s->file);
        }
    } else if (json_has(o, "max_replications")) {
        (void)err_add(e, "%s: max_replications: means nothing without until", s->file);
        (void)json_get_u32(o, "max_replications", 1, SPEC_MAX_REPLICATIONS - 1);
    }
    if (s->max_replications < s->replications) {
        s->max_replications = s->replications;
    }
    /* A job's number has room for them. */
    SIM_ASSERT(s->replications >= 1 && s->max_replications < SPEC_MAX_REPLICATIONS);
}

bool spec_is_sound(const struct spec *s)
{
    uint64_t points = 1;
    bool even = true;
    for (uint32_t i = 0; i < s->n_dimensions; i++) {
        const struct spec_dimension *d = &s->dimensions[i];
        points *= d->n;
        even = even && d->n > 0 && d->n_axes > 0;
        for (uint32_t k = 0; k < d->n_axes; k++) {
            even = even && d->axes[k].n == d->n && (d->axes[k].key != NULL || d->n_axes == 1);
        }
    }
    return even && points == s->n_points && s->replications <= s->max_replications &&
           points * s->max_replications <= SPEC_MAX_RUNS;
}

/* Counts the points, and refuses too many runs. */
static void check_size(struct spec *s, bool yes, struct err *e)
{
    SCOPED(text_fini) struct text factors = {0};
    double points = 1.0;
    for (uint32_t i = 0; i < s->n_dimensions; i++) {
        const struct spec_dimension *d = &s->dimensions[i];
        points *= d->n;
        text_format(&factors, "%s %" PRIu32 " x ", d->axes[0].path, d->n);
    }
    /* A double does not overflow from a product of many long lists. Many runs need --yes, because
     * one unintended list multiplies their number. */
    double runs = points * s->max_replications;
    SIM_ASSERT(points >= 1.0 && s->max_replications >= s->replications); /* no errors so far */
    if (runs > SPEC_MAX_RUNS) {
        (void)err_add(e, "%s: %.0f runs (%sreplications %" PRIu32 "); at most %u", s->file, runs,
                      text_end(&factors), s->max_replications, SPEC_MAX_RUNS);
    } else if (runs > SPEC_CONFIRM_RUNS && !yes) {
        (void)err_add(e, "%s: %.0f runs (%sreplications %" PRIu32 "); more than %u need --yes",
                      s->file, runs, text_end(&factors), s->max_replications, SPEC_CONFIRM_RUNS);
    }
    s->n_points = runs <= SPEC_MAX_RUNS ? (uint64_t)points : 0; /* 0: refused */
}

static cJSON *child(struct json_obj *o, const char *key)
{
    if (!json_has(o, key)) {
        return NULL;
    }
    int index = 0; /* its bit in o->seen marks the key as read */
    for (cJSON *c = o->node->child; c != NULL; c = c->next, index++) {
        if (strcmp(c->string, key) == 0) {
            o->seen |= index < 64 ? 1ULL << index : 0;
            return c;
        }
    }
    return NULL;
}

/* A common mistake is a setting at the top level of the file. */
static void refuse_settings(struct json_obj *o, struct err *e)
{
    for (const cJSON *c = o->node->child; c != NULL; c = c->next) {
        if (c->string != NULL && spec_is_setting(c->string)) {
            (void)child(o, c->string);
            (void)err_add(e,
                          "%s: %s: a setting belongs in base (one value), axes or zip (lists), or "
                          "rows",
                          o->file, c->string);
        }
    }
}

/* Adds the policies of the command line as an axis. */
static int add_policies(struct spec *s, const char *const *policies, uint32_t n, struct err *e)
{
    cJSON *axes = json_member(s->root, "axes");
    if (n == 0 || !cJSON_IsObject(s->root)) {
        return 0;
    }
    if (axes == NULL) {
        axes = cJSON_AddObjectToObject(s->root, "axes");
    }
    const cJSON *base = json_member(s->root, "base");
    if (json_member(axes, "policy") != NULL || json_member(base, "policy") != NULL) {
        return err_add(e, "--policy: %s names its policies", s->file);
    }
    cJSON_AddItemToObject(axes, "policy", cJSON_CreateStringArray(policies, (int)n));
    return 0;
}

int spec_load(struct spec *s, const char *file, bool yes, struct err *e)
{
    return spec_load_with(s, file, NULL, 0, yes, e);
}

int spec_load_with(struct spec *s, const char *file, const char *const *policies, uint32_t n,
                   bool yes, struct err *e)
{
    memset(s, 0, sizeof *s);
    s->file = file;
    size_t before = e->n;
    s->root = xkept(json_read_file(file, e));
    if (s->root == NULL || add_policies(s, policies, n, e) != 0) {
        return -EINVAL;
    }
    struct json_obj o = json_root(s->root, file, e);
    if (o.node == NULL) {
        return -EINVAL;
    }
    /* Taken before lists replace ranges, because this text identifies the experiment. */
    s->canonical = xkept(json_text(s->root, false));
    s->base = child(&o, "base");
    s->suite = child(&o, "suite");
    spec_read_lists(s, child(&o, "axes"), child(&o, "zip"), child(&o, "rows"), e);
    read_metrics(s, child(&o, "metrics"), e);
    read_scalars(s, &o, e);
    refuse_settings(&o, e);
    json_done(&o);
    if (e->n == before) {
        refuse_two_places(s, e);
    }
    if (e->n == before) {
        check_size(s, yes, e);
    }
    SIM_ASSERT(e->n > before || spec_is_sound(s));
    return e->n > before ? -EINVAL : 0;
}

bool spec_keeps(const struct spec *s, const char *metric)
{
    for (uint32_t i = 0; i < s->n_patterns; i++) {
        if (fnmatch(s->patterns[i], metric, 0) == 0) {
            return true;
        }
    }
    return s->n_patterns == 0 || strstr(metric, ".extrapolated_") != NULL ||
           strcmp(metric, "backlog.verdict") == 0;
}

uint64_t spec_runs(const struct spec *s, uint32_t replications)
{
    SIM_ASSERT(replications <= s->max_replications);
    return s->n_points * replications;
}
