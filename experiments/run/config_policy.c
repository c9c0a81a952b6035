/* A policy as a command line names it: NAME:key=value,... */
#include "experiments/run/config.h"
#include "experiments/run/plugin.h"
#include "policies/params.h"
#include "policies/registry.h"
#include "sim/base/nearest.h"

static int unknown_policy(const char *spec, const char *name, struct err *e)
{
    SCOPED(text_fini) struct text names = {0};
    size_t n = 0;
    const struct policy_ops *const *all = policy_list(&n);
    struct nearest near;
    nearest_init(&near, name);
    for (size_t i = 0; i < n; i++) {
        text_item(&names, ", ", all[i]->name);
        nearest_look(&near, all[i]->name);
    }
    for (const struct policy_alias *a = policy_alias_find(NULL); a->name != NULL; a++) {
        text_item(&names, ", ", a->name);
        nearest_look(&near, a->name);
    }
    return err_add(
        e,
        "--policy %s: no policy is called '%s'%s; there are %s, plug-ins by a path ending "
        "in .so, programs by exec:COMMAND and Python classes by python:FILE:CLASS",
        spec, name, strchr(name, ',') != NULL ? "; each --policy names one" : nearest_hint(&near),
        text_end(&names));
}

int config_policy_parse(struct config_policy *p, const char *spec, struct err *e)
{
    memset(p, 0, sizeof *p);
    p->label = spec;
    size_t len = plugin_path_length(spec);
    const struct policy_alias *alias = NULL;
    if (len > 0) {
        p->ops = plugin_load(spec, e);
        if (p->ops == NULL) {
            return -EINVAL;
        }
    } else {
        len = strcspn(spec, ":");
        OWNED char *name = xformat("%.*s", (int)len, spec);
        alias = policy_alias_find(name);
        p->ops = policy_find(alias != NULL ? alias->policy : name);
        int rc = p->ops == NULL ? unknown_policy(spec, name, e) : 0;
        if (rc != 0) {
            return rc;
        }
    }
    const char *given = spec[len] == ':' ? spec + len + 1 : "";
    OWNED char *params = policy_params_with(alias != NULL ? alias->params : "", given);
    int rc = policy_params_parse(p->ops, params, &p->params, e);
    p->params_text = policy_params_format(p->ops, &p->params);
    return rc;
}
