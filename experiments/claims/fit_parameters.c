/* Reads the open parameters, and makes the set-up at a point of the unit cube. */
#include "experiments/claims/fit.h"

static void read_range(struct fit_parameter *p, struct json_obj *o)
{
    if (json_has(o, "levels")) {
        p->n_levels = (uint32_t)json_get_array_size(o, "levels", 2, FIT_MAX_LEVELS);
        const cJSON *list = json_member(o->node, "levels");
        for (uint32_t i = 0; i < p->n_levels; i++) {
            const cJSON *level = cJSON_GetArrayItem(list, (int)i);
            p->levels[i] = cJSON_IsString(level) ? level->valuestring : "";
        }
        p->high = 1.0;
        return;
    }
    static const char *const scales[] = {"linear", "log", NULL};
    p->log_scale = json_has(o, "scale") && json_get_choice(o, "scale", scales) == 1;
    p->low = json_get_number(o, "low", p->log_scale ? 1e-12 : -1e12, 1e12);
    p->high = json_get_number(o, "high", p->low, 1e12);
}

static void read_one(struct fit_parameter *p, struct json_obj *o)
{
    p->unit = json_get_string(o, "unit");
    p->what = json_get_string(o, "what");
    p->measure = json_get_string(o, "measure");
    read_range(p, o);
    setup_read(&p->changes, o);
    if (setup_is_empty(&p->changes)) {
        json_refuse(o, NULL, "must change something (set, policy, workload)");
    }
    json_done(o);
}

static bool wanted(const char *name, const char *const *over, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (strcmp(name, over[i]) == 0) {
            return true;
        }
    }
    return n == 0;
}

int fit_parameters_read(struct fit_parameters *p, const char *path, const char *const *over,
                        uint32_t n_over, struct err *e)
{
    *p = (struct fit_parameters){.n = 0};
    const cJSON *tree = xkept(json_read_file(path, e));
    if (tree == NULL) {
        return -EINVAL;
    }
    struct json_obj root = json_root(tree, path, e);
    (void)json_get_string(&root, "about");
    struct json_obj all = json_get_object(&root, "parameters");
    for (const cJSON *c = all.node != NULL ? all.node->child : NULL; c != NULL; c = c->next) {
        struct json_obj o = json_get_object(&all, c->string);
        if (!wanted(c->string, over, n_over)) {
            continue;
        }
        if (p->n == FIT_MAX_PARAMETERS) {
            return err_add(e, "%s: more than %d parameters", path, FIT_MAX_PARAMETERS);
        }
        p->v[p->n].name = c->string;
        read_one(&p->v[p->n++], &o);
    }
    json_done(&root);
    for (uint32_t i = 0; i < n_over; i++) {
        if (all.node == NULL || !json_has(&all, over[i])) {
            (void)err_add(e, "--over %s: %s has no such parameter", over[i], path);
        }
    }
    return e->n > 0 ? -EINVAL : 0;
}

const char *fit_parameter_value(const struct fit_parameter *p, double u, char *buf)
{
    if (p->n_levels > 0) {
        uint32_t level = (uint32_t)(u * p->n_levels);
        return p->levels[level < p->n_levels ? level : p->n_levels - 1];
    }
    double x = p->log_scale ? p->low * pow(p->high / p->low, u) : p->low + u * (p->high - p->low);
    /* The run reads this text, and the report prints it. With four digits both are equal, so a
     * reader can repeat the run. */
    (void)snprintf(buf, 64, "%.4g", x);
    return buf;
}

static void put(struct setup_texts *to, const struct setup_texts *from, const char *value)
{
    for (uint32_t i = 0; i < from->n && to->n < SETUP_MAX_TEXTS; i++) {
        const char *mark = strstr(from->v[i], "{x}");
        to->v[to->n++] =
            mark == NULL
                ? from->v[i]
                : xkeep(xformat("%.*s%s%s", (int)(mark - from->v[i]), from->v[i], value, mark + 3));
    }
}

void fit_setup(const struct fit_parameters *p, const double *u, struct setup *out)
{
    *out = (struct setup){.set = {.n = 0}};
    for (uint32_t i = 0; i < p->n; i++) {
        char buf[64];
        const char *value = fit_parameter_value(&p->v[i], u[i], buf);
        for (int k = 0; k < SETUP_LISTS; k++) {
            put(&out->list[k], &p->v[i].changes.list[k], value);
        }
    }
}
