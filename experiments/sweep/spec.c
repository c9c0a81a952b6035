/* Reading an experiment file: form, lists, size. */
#include "experiments/sweep/spec.h"

#include <fnmatch.h>

#include "sim/base/json.h"

#define MAX_RANGE 1000000.0 /* values of one list */

/* ---- lists ---- */

/* {"from": a, "to": b, "step": s} as the array it stands for; NULL with errors. */
static cJSON *range_values(const cJSON *range, const char *file, const char *path, struct err *e)
{
    size_t before = e->n;
    struct json_obj o = json_root(range, file, e);
    o.path = path;
    double from = json_get_number(&o, "from", -1e15, 1e15);
    double to = json_get_number(&o, "to", -1e15, 1e15);
    double step = json_number_or(&o, "step", -1e15, 1e15, 1.0);
    json_done(&o);
    if (e->n > before) {
        return NULL;
    }
    /* The 1e-9 keeps the end: 0.3 / 0.1 comes out below 3. */
    double steps = step != 0.0 ? floor((to - from) / step + 1e-9) : -1.0;
    if (!(steps >= 0.0) || steps >= MAX_RANGE) {
        return err_null(e, "%s: %s: from %g to %g by %g is %s; must be 1 to %.0f values", file,
                        path, from, to, step, steps >= MAX_RANGE ? "too long" : "empty: 0 runs",
                        MAX_RANGE);
    }
    cJSON *list = cJSON_CreateArray();
    /* By multiplication: a sum of steps drifts further with every value. */
    for (double i = 0.0; i <= steps; i += 1.0) {
        cJSON_AddItemToArray(list, cJSON_CreateNumber(from + i * step));
    }
    SIM_ASSERT(cJSON_GetArraySize(list) == (int)steps + 1); /* both ends */
    return list;
}

/* Replaces range objects among the children of `place` by the lists they stand for. */
static void expand_ranges(cJSON *place, const char *file, const char *path, struct err *e)
{
    for (cJSON *c = place != NULL ? place->child : NULL; c != NULL; c = c->next) {
        if (!cJSON_IsObject(c)) {
            continue;
        }
        OWNED char *at = xformat("%s.%s", path, c->string);
        cJSON *list = range_values(c, file, at, e);
        if (list != NULL) { /* in place: keeps position and name */
            cJSON_Delete(c->child);
            c->child = list->child;
            c->type = cJSON_Array;
            list->child = NULL;
            cJSON_Delete(list);
        }
    }
}

static void axis_init(struct spec_axis *a, const char *key, const cJSON *list)
{
    a->key = key;
    a->n = (uint32_t)cJSON_GetArraySize(list);
    a->values = xkept(xcalloc(a->n + 1, sizeof *a->values));
    uint32_t i = 0;
    for (const cJSON *v = list->child; v != NULL; v = v->next) {
        a->values[i++] = v;
    }
    SIM_ASSERT(i == a->n);
}

static struct spec_dimension *add_dimension(struct spec *s, uint32_t n_axes, struct err *e)
{
    if (s->n_dimensions == SPEC_MAX_DIMENSIONS) {
        return err_null(e, "%s: more than %d dimensions", s->file, SPEC_MAX_DIMENSIONS);
    }
    struct spec_dimension *d = &s->dimensions[s->n_dimensions++];
    SIM_ASSERT(d->n_axes == 0 && d->n == 0); /* the struct was emptied */
    d->axes = xkept(xcalloc(n_axes + 1, sizeof *d->axes));
    return d;
}

/* Adds one list of values to a dimension. */
static void add_axis(const struct spec *s, struct spec_dimension *d, const char *path,
                     const cJSON *list, struct err *e)
{
    struct spec_axis *a = &d->axes[d->n_axes];
    SIM_ASSERT(a->values == NULL && list->string != NULL); /* lists are an object's members */
    a->path = xkeep(xformat("%s.%s", path, list->string));
    if (!cJSON_IsArray(list)) {
        if (!cJSON_IsObject(list)) { /* a bad range has said so already */
            (void)err_add(e, "%s: %s: must be a list [...] or {\"from\", \"to\", \"step\"}",
                          s->file, a->path);
        }
        return;
    }
    axis_init(a, list->string, list);
    d->n_axes++;
    if (a->n == 0) {
        (void)err_add(e, "%s: %s: empty: 0 runs", s->file, a->path);
    }
    for (uint32_t i = 0; i < a->n; i++) {
        OWNED char *at = xformat("%s[%" PRIu32 "]", a->path, i);
        int rc = spec_setting_check(a->key, a->values[i], s->file, at, e);
        if (rc != 0 && i == 0) {
            break; /* an unknown name is one error, not one per value */
        }
    }
    if (d->n_axes == 1) {
        d->n = a->n;
    } else if (a->n != d->n) {
        (void)err_add(e,
                      "%s: %s: has %" PRIu32 " values, %s has %" PRIu32
                      "; the lists of one zip group must be equally long",
                      s->file, a->path, a->n, d->axes[0].path, d->n);
    }
}

static bool is_object(const struct spec *s, const cJSON *node, const char *path, struct err *e)
{
    if (!cJSON_IsObject(node)) {
        (void)err_add(e, "%s: %s: must be an object {...}", s->file, path);
        return false;
    }
    return true;
}

static void read_axes(struct spec *s, cJSON *axes, struct err *e)
{
    if (axes == NULL || !is_object(s, axes, "axes", e)) {
        return;
    }
    expand_ranges(axes, s->file, "axes", e);
    for (const cJSON *c = axes->child; c != NULL; c = c->next) {
        struct spec_dimension *d = add_dimension(s, 1, e);
        if (d == NULL) {
            return;
        }
        add_axis(s, d, "axes", c, e);
    }
}

static void read_zip(struct spec *s, cJSON *zip, struct err *e)
{
    if (zip == NULL) {
        return;
    }
    if (!cJSON_IsArray(zip)) {
        (void)err_add(e, "%s: zip: must be a list of objects [{...}]", s->file);
        return;
    }
    int i = 0;
    for (cJSON *group = zip->child; group != NULL; group = group->next, i++) {
        char path[32];
        (void)snprintf(path, sizeof path, "zip[%d]", i);
        if (!is_object(s, group, path, e)) {
            continue;
        }
        expand_ranges(group, s->file, path, e);
        struct spec_dimension *d = add_dimension(s, (uint32_t)cJSON_GetArraySize(group), e);
        for (const cJSON *c = group->child; d != NULL && c != NULL; c = c->next) {
            add_axis(s, d, path, c, e);
        }
        if (d != NULL && group->child == NULL) {
            (void)err_add(e, "%s: %s: empty: 0 runs", s->file, path);
        }
        SIM_ASSERT(d == NULL || d->n_axes <= (uint32_t)cJSON_GetArraySize(group)); /* its room */
    }
}

static void check_settings(const struct spec *s, const cJSON *o, const char *path, struct err *e)
{
    if (!is_object(s, o, path, e)) {
        return;
    }
    for (const cJSON *c = o->child; c != NULL; c = c->next) {
        OWNED char *at = xformat("%s.%s", path, c->string);
        (void)spec_setting_check(c->string, c, s->file, at, e);
    }
}

static void read_rows(struct spec *s, const cJSON *rows, struct err *e)
{
    if (rows == NULL) {
        return;
    }
    if (!cJSON_IsArray(rows) || rows->child == NULL) {
        (void)err_add(e, "%s: rows: %s", s->file,
                      cJSON_IsArray(rows) ? "empty: 0 runs" : "must be a list of objects [{...}]");
        return;
    }
    struct spec_dimension *d = add_dimension(s, 1, e);
    if (d == NULL) {
        return;
    }
    axis_init(&d->axes[0], NULL, rows);
    d->axes[0].path = "rows";
    d->n_axes = 1;
    d->n = d->axes[0].n;
    for (uint32_t i = 0; i < d->n; i++) {
        char at[32];
        (void)snprintf(at, sizeof at, "rows[%" PRIu32 "]", i);
        check_settings(s, d->axes[0].values[i], at, e);
    }
}

/* ---- one setting, one dimension ---- */

static bool dimension_sets(const struct spec_dimension *d, const char *key)
{
    for (uint32_t i = 0; i < d->n_axes; i++) {
        const struct spec_axis *a = &d->axes[i];
        SIM_ASSERT(a->key != NULL || d->n_axes == 1); /* rows are alone in their dimension */
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
    for (uint32_t i = 0; i < s->n_dimensions; i++) {
        for (uint32_t k = 0; k < s->dimensions[i].n_axes; k++) {
            const struct spec_axis *a = &s->dimensions[i].axes[k];
            for (uint32_t j = 0; a->key != NULL && j < s->n_dimensions; j++) {
                bool earlier_axis = j < i && s->dimensions[j].axes[0].key != NULL;
                SIM_ASSERT(s->dimensions[j].n_axes > 0); /* of a file without errors */
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
        /* A search for precision has an end: twenty times the replications that it begins with,
         * where the file does not say. */
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
    SIM_ASSERT(s->replications >= 1 &&
               s->max_replications < SPEC_MAX_REPLICATIONS); /* as a job has */
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

/* How many runs there are, and whether that is meant. */
static void check_size(struct spec *s, bool yes, struct err *e)
{
    SCOPED(text_fini) struct text factors = {0};
    double points = 1.0;
    for (uint32_t i = 0; i < s->n_dimensions; i++) {
        const struct spec_dimension *d = &s->dimensions[i];
        points *= d->n;
        text_format(&factors, "%s %" PRIu32 " x ", d->axes[0].path, d->n);
    }
    /* As a double, which a product of many long lists does not overflow. Many runs have to be asked
     * for: one list more than was meant multiplies all of them. */
    double runs = points * s->max_replications;
    SIM_ASSERT(points >= 1.0 && s->max_replications >= s->replications); /* without errors so far */
    if (runs > SPEC_MAX_RUNS) {
        (void)err_add(e, "%s: %.0f runs (%sreplications %" PRIu32 "); at most %u", s->file, runs,
                      text_end(&factors), s->max_replications, SPEC_MAX_RUNS);
    } else if (runs > SPEC_CONFIRM_RUNS && !yes) {
        (void)err_add(e, "%s: %.0f runs (%sreplications %" PRIu32 "); more than %u need --yes",
                      s->file, runs, text_end(&factors), s->max_replications, SPEC_CONFIRM_RUNS);
    }
    s->n_points = runs <= SPEC_MAX_RUNS ? (uint64_t)points : 0; /* it is refused */
}

static cJSON *child(struct json_obj *o, const char *key)
{
    if (!json_has(o, key)) {
        return NULL;
    }
    int index = 0; /* marks it as asked for */
    for (cJSON *c = o->node->child; c != NULL; c = c->next, index++) {
        if (strcmp(c->string, key) == 0) {
            o->seen |= index < 64 ? 1ULL << index : 0;
            return c;
        }
    }
    return NULL;
}

/* The usual first mistake: a setting where its place belongs. */
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

/* Adds the axis of policies that the file leaves to its user. */
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
    /* Before ranges are replaced by their lists: an experiment is known by what its file says. */
    s->canonical = xkept(json_text(s->root, false));
    s->base = child(&o, "base");
    s->suite = child(&o, "suite");
    if (s->base != NULL) {
        check_settings(s, s->base, "base", e);
    }
    read_axes(s, child(&o, "axes"), e);
    read_zip(s, child(&o, "zip"), e);
    read_rows(s, child(&o, "rows"), e);
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
