#include "experiments/run/config_speculation.h"

#include "sim/base/datadir.h"
#include "sim/base/words.h"

static void finish(const struct speculation_data *data, const struct config_drafts *c,
                   struct config_speculation *out, enum config_drafter which)
{
    struct speculation_model *m = &out->model[which];
    m->length = (enum speculation_length)c->length;
    m->max_draft_tokens = c->max_draft_tokens > 0 ? c->max_draft_tokens : m->max_draft_tokens;
    m->reuse_frac = c->reuse_frac;
    if (c->history != SPECULATION_HISTORY_FULL) {
        m->history_cold_frac = data->constants.history_cold_frac.value;
        m->history_half_requests = data->constants.history_half_requests.value;
    }
    out->run[which] = (struct speculation_run){.by_class = {m, c->proactive ? m : NULL},
                                               .history = (enum speculation_history)c->history};
}

/* The drafters of policies that are whole systems. */
static const struct {
    enum speculation_method method;
    bool ours;
} systems[CONFIG_DRAFTERS] = {
    [CONFIG_DRAFTER_PLD] = {SPECULATION_PLD, false},
    [CONFIG_DRAFTER_SAM] = {SPECULATION_SAM, false},
    [CONFIG_DRAFTER_OURS] = {SPECULATION_SAM, true},
    [CONFIG_DRAFTER_EAGLE] = {SPECULATION_EAGLE, false},
};

/* Drafters on token texts have the longest drafts of their published methods. The only other rule
 * for lengths that they have is the one by match. */
static void texts_fit(const struct speculation_constants *k, const struct config_drafts *c,
                      struct config_speculation *out)
{
    for (int i = 0; i < TRACE_DRAFTERS; i++) {
        double own = i == TRACE_LOOKUP ? k->pld_draft_tokens.value : k->sam_draft_tokens.value;
        bool by_match = i == TRACE_SUFFIX && c->length == SPECULATION_PROP;
        out->texts[i] = (struct drafter){
            .kind = (enum trace_drafter)i,
            .max_draft_tokens = c->max_draft_tokens > 0 ? c->max_draft_tokens : (uint32_t)own,
            .tokens_per_match = by_match ? (uint32_t)k->sam_tokens_per_match.value : 0,
            .proactive = c->proactive};
    }
    out->run_texts = c->method > SPECULATION_METHODS ? c->method - SPECULATION_METHODS - 1 : -1;
}

int config_speculation_fit(const struct config_drafts *c, struct config_speculation *out,
                           struct err *e)
{
    memset(out, 0, sizeof *out);
    const struct speculation_data *data = speculation_data_shipped(e);
    if (data == NULL) {
        return -EINVAL;
    }
    for (int i = CONFIG_DRAFTER_PLD; i < CONFIG_DRAFTERS; i++) {
        if (speculation_model_fit(data, c->dataset, c->model, systems[i].method, systems[i].ours,
                                  SPECULATION_EXCLUSIVE, &out->model[i], e) != 0) {
            return -EINVAL;
        }
        finish(data, c, out, (enum config_drafter)i);
    }
    texts_fit(&data->constants, c, out);
    if (c->method > 0 && out->run_texts < 0) {
        if (speculation_model_fit(data, c->dataset, c->model,
                                  (enum speculation_method)(c->method - 1), c->ours,
                                  SPECULATION_EXCLUSIVE, &out->model[CONFIG_DRAFTER_RUN], e) != 0) {
            return -EINVAL;
        }
        finish(data, c, out, CONFIG_DRAFTER_RUN);
    }
    return 0;
}

/* The value of a policy's parameter `drafter`, or NULL. */
static const char *drafter_word(const struct policy_ops *ops, const struct policy_params *params)
{
    for (uint32_t i = 0; i < params->n; i++) {
        const struct policy_param *p = &ops->params[i];
        if (strcmp(p->name, "drafter") == 0 && p->type == PARAM_CHOICE) {
            return p->choices[(uint32_t)params->v[i]];
        }
    }
    return NULL;
}

static int texts_drafter(const struct config_speculation *s, const char *word)
{
    static const char *const names[] = {"lookup", "suffix", "calibrated", NULL};
    bool run = word == NULL || strcmp(word, "run") == 0 || strcmp(word, "model") == 0;
    return run ? s->run_texts : words_find(names, word);
}

const struct drafter *config_speculation_texts(const struct config_speculation *s,
                                               const struct policy_ops *ops,
                                               const struct policy_params *params)
{
    int i = texts_drafter(s, drafter_word(ops, params));
    return i >= 0 ? &s->texts[i] : NULL;
}

/* The drafter of a policy; without the parameter, or with a model of the run, the run's, which
 * states the acceptance. */
static enum config_drafter drafter_of(const char *word)
{
    static const char *const names[] = {"run", "none", "pld", "sam", "ours", "eagle", NULL};
    int k = word != NULL ? words_find(names, word) : -1;
    return k >= 0 && k < CONFIG_DRAFTERS ? (enum config_drafter)k : CONFIG_DRAFTER_RUN;
}

void config_speculation_setup(const struct config_speculation *s, struct sim_setup *setup)
{
    const char *word = drafter_word(setup->policy, setup->params);
    enum config_drafter which = drafter_of(word);
    setup->drafter = word;
    if (word == NULL || strcmp(word, "model") != 0) {
        setup->draft_model = 0;
    }
    const struct drafter *texts = config_speculation_texts(s, setup->policy, setup->params);
    if (texts != NULL) {
        setup->draft = drafter_draft;
        setup->accept = drafter_accept;
        setup->speculation_params = texts;
        setup->drafts_on_texts = true;
        setup->drafts_calibrated = texts->kind == TRACE_CALIBRATED;
    } else if (s->run[which].by_class[REQUEST_CLASS_REACTIVE] != NULL) {
        setup->draft = speculation_run_draft;
        setup->accept = speculation_run_accept;
        setup->speculation_params = &s->run[which];
    }
}
