#include "experiments/config_speculation.h"

#include <errno.h>
#include <string.h>

#include "sim/base/datadir.h"

#define PATH_BYTES 4096

static const char *const methods[] = {"none", "pld", "sam", "eagle", NULL};
static const char *const histories[] = {"full", "turn", "trace", NULL};
static const char *const lengths[] = {"fixed", "prop", "empirical", NULL};

cJSON *config_speculation_to_json(void)
{
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "method", "none");
    cJSON_AddStringToObject(o, "dataset", "summary");
    cJSON_AddStringToObject(o, "model", "qwen2.5-1.5b");
    cJSON_AddBoolToObject(o, "ours", false);
    cJSON_AddStringToObject(o, "length", "fixed");
    cJSON_AddNumberToObject(o, "max_draft_tokens", 0); /* 0: the method's */
    cJSON_AddNumberToObject(o, "reuse_frac", 0);
    cJSON_AddStringToObject(o, "history", "full");
    cJSON_AddBoolToObject(o, "proactive", true); /* both classes draft, or reactive ones only */
    return o;
}

/* Draft lengths other than the method's own; constants of the paper's text. */
static void lengths_apply(const struct speculation_data *data, struct speculation_model *m,
                          enum speculation_length length)
{
    const struct speculation_constants *c = &data->constants;
    m->length = length;
    m->tokens_per_match = (uint32_t)c->sam_tokens_per_match.value;
    m->match_frac = m->alpha;
    m->short_tokens = (uint32_t)c->short_tokens.value;
    m->short_frac = c->short_frac.value;
    m->friendly_tokens = (uint32_t)c->friendly_tokens.value;
    m->unfriendly_frac = c->unfriendly_frac.value;
}

int config_speculation_parse(struct json_obj o, struct config_speculation *out)
{
    memset(out, 0, sizeof *out);
    size_t before = o.err->n;
    int method = json_get_choice(&o, "method", methods);
    const char *dataset = json_get_string(&o, "dataset");
    const char *model = json_get_string(&o, "model");
    bool ours = json_get_bool(&o, "ours");
    int length = json_get_choice(&o, "length", lengths);
    uint32_t most = json_get_u32(&o, "max_draft_tokens", 0, SPECULATION_MAX_DRAFT);
    double reuse = json_get_number(&o, "reuse_frac", 0.0, 0.99);
    int history = json_get_choice(&o, "history", histories);
    bool proactive = json_get_bool(&o, "proactive");
    json_done(&o);
    if (o.err->n > before || method == 0) {
        return o.err->n > before ? -EINVAL : 0;
    }
    char dir[PATH_BYTES];
    static struct speculation_data data; /* large; constant once read, so sharing it is harmless */
    if (speculation_data_read(datadir_path(dir, sizeof dir, SPECULATION_DIR), &data, o.err) != 0 ||
        speculation_model_fit(&data, dataset, model, (enum speculation_method)(method - 1), ours,
                              SPECULATION_EXCLUSIVE, &out->model, o.err) != 0) {
        return -EINVAL;
    }
    if (length != SPECULATION_FIXED) {
        lengths_apply(&data, &out->model, (enum speculation_length)length);
    }
    out->model.max_draft_tokens = most > 0 ? most : out->model.max_draft_tokens;
    out->model.reuse_frac = reuse;
    if (history != SPECULATION_HISTORY_FULL) {
        out->model.history_cold_frac = data.constants.history_cold_frac.value;
        out->model.history_half_requests = data.constants.history_half_requests.value;
    }
    out->enabled = true;
    out->run = (struct speculation_run){.by_class = {&out->model, proactive ? &out->model : NULL},
                                        .history = (enum speculation_history)history};
    return 0;
}

void config_speculation_setup(const struct config_speculation *s, struct sim_setup *setup)
{
    if (s->enabled) {
        setup->draft = speculation_run_draft;
        setup->accept = speculation_run_accept;
        setup->speculation_params = &s->run;
    }
}
