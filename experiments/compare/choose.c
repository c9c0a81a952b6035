#include "experiments/compare/choose.h"

#include <fnmatch.h>

#include "experiments/run/config.h"
#include "experiments/run/plugin.h"
#include "experiments/run/runner.h"
#include "experiments/shell/options.h"
#include "sim/metrics/metric_table.h"

#define OF_POLICY "counters.policy."

static bool matches_any(const char *pattern, const struct metric_list *names)
{
    /* A policy's own counters are only known after a run. */
    bool found = strncmp(pattern, OF_POLICY, strlen(OF_POLICY)) == 0;
    for (size_t i = 0; i < names->n && !found; i++) {
        found = fnmatch(pattern, names->v[i].name, 0) == 0;
    }
    for (int i = 0; i < COUNTER_COUNT && !found; i++) {
        char name[sizeof names->v[0].name];
        (void)snprintf(name, sizeof name, "counters.%s", counter_names[i]);
        found = fnmatch(pattern, name, 0) == 0;
    }
    return found;
}

int choose_check(const struct config *c, const struct option_texts *asked, struct err *e)
{
    size_t before = e->n;
    SCOPED(metric_list_fini) struct metric_list names = {0};
    runner_metric_names(c, true, &names);
    for (uint32_t i = 0; i < asked->n; i++) {
        if (!matches_any(asked->v[i], &names)) {
            (void)runner_no_metric("metric", asked->v[i], &names, e);
        }
    }
    return e->n > before ? -EINVAL : 0;
}

int choose_metrics(const struct compare_result *r, const struct option_texts *asked,
                   struct texts *out, struct err *e)
{
    size_t before = e->n;
    *out = (struct texts){0};
    for (size_t i = 0; asked->n == 0 && metric_usual[i] != NULL; i++) {
        (void)texts_index(out, metric_usual[i]);
    }
    for (uint32_t i = 0; i < asked->n; i++) {
        bool found = false;
        for (size_t k = 0; k < r->n_metrics; k++) {
            if (fnmatch(asked->v[i], r->names[k].name, 0) == 0) {
                found = true;
                (void)texts_index(out, r->names[k].name);
            }
        }
        if (!found && r->n_metrics > 0) {
            (void)err_add(e, "--metric %s: no run has it", asked->v[i]);
        }
    }
    if (out->n > CHOOSE_MAX) {
        (void)err_add(e, "--metric: %zu metrics match; at most %d are taken", out->n, CHOOSE_MAX);
    }
    return e->n > before ? -EINVAL : 0;
}

int ablate_variants(struct option_texts *list, const char *spec, struct err *e)
{
    struct config_policy p;
    if (config_policy_parse(&p, spec, e) != 0) {
        return -EINVAL;
    }
    const char *const none[] = {NULL};
    const char *const *all = p.ops->ablations != NULL ? p.ops->ablations : none;
    size_t name = plugin_path_length(spec) > 0 ? plugin_path_length(spec) : strcspn(spec, ":");
    const char *params = spec[name] == ':' ? spec + name + 1 : "";
    const char *join = params[0] != '\0' ? "," : spec[name] == ':' ? "" : ":";
    uint32_t before = list->n;
    options_text_add(list, spec);
    for (; *all != NULL; all++) {
        const char *without = xkeep(xformat("%s%s%s", spec, join, *all));
        struct config_policy q;
        bool given = text_list_key(params, *all, strcspn(*all, "=")) != NULL;
        /* An alias may have a parameter's value already. */
        if (!given && config_policy_parse(&q, without, e) == 0 &&
            strcmp(q.params_text, p.params_text) != 0) {
            options_text_add(list, without);
        }
    }
    if (list->n == before + 1) {
        return err_add(e, "%s: %s (policy_ops.ablations)", spec,
                       p.ops->ablations == NULL ? "the policy declares no mechanism"
                                                : "it sets each of its mechanisms already");
    }
    return 0;
}
