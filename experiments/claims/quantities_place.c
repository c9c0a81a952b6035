/* The machine, the model and the settings of a quantity. */
#include "experiments/claims/quantities_impl.h"

struct quantity_place quantity_place_read(struct json_obj *o)
{
    struct quantity_place p = {.sets = NULL};
    p.soc = json_string_or(o, "soc", CONFIG_DEFAULT_SOC);
    p.llm = json_string_or(o, "llm", CONFIG_DEFAULT_LLM);
    if (json_has(o, "set")) {
        (void)json_get_array_size(o, "set", 0, CONFIG_MAX_SETS);
        p.sets = json_member(o->node, "set");
        const cJSON *s;
        cJSON_ArrayForEach (s, p.sets) {
            if (!cJSON_IsString(s)) {
                json_refuse(o, "set", "must hold strings PATH=VALUE");
                p.sets = NULL;
                return p;
            }
        }
    }
    return p;
}

int quantity_options(const struct quantity_place *p, struct config_options *out, struct err *e)
{
    *out = config_options_default();
    out->soc = p->soc;
    out->llm = p->llm;
    const cJSON *s;
    cJSON_ArrayForEach (s, p->sets) {
        if (strchr(s->valuestring, '=') == NULL || out->n_sets == CONFIG_MAX_SETS) {
            return err_add(e, "set %s: must be PATH=VALUE", s->valuestring);
        }
        config_options_set(out, s->valuestring);
    }
    return 0;
}
