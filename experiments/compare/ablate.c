#include "experiments/compare/ablate.h"

#include "experiments/run/config.h"
#include "experiments/run/plugin.h"
#include "experiments/shell/options.h"

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
        if (text_list_key(params, *all, strcspn(*all, "=")) == NULL) {
            options_text_add(list, xkeep(xformat("%s%s%s", spec, join, *all)));
        }
    }
    if (list->n == before + 1) {
        return err_add(e, "%s: %s (policy_ops.ablations)", spec,
                       p.ops->ablations == NULL ? "the policy declares no mechanism"
                                                : "it sets each of its mechanisms already");
    }
    return 0;
}
