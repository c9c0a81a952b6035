/* Rows of a store: what identifies a comparison, and the label of what is compared. */
#include <cjson/cJSON.h>

#include "experiments/compare/stored_impl.h"
#include "sim/base/json.h"

static bool is_compared(const struct stored_rows *l, const char *key)
{
    return l->by != NULL ? strcmp(key, l->by) == 0
                         : strcmp(key, "policy") == 0 || strncmp(key, "params.", 7) == 0;
}

/* The policy and its parameters, without those that a setting params.* replaces. */
static char *without_replaced(const char *policy, const cJSON *settings)
{
    struct text t = {0};
    size_t name = strcspn(policy, ":");
    text_format(&t, "%.*s", (int)name, policy);
    const char *before = ":";
    for (const char *at = policy + name + (policy[name] != '\0'); *at != '\0';) {
        size_t n = strcspn(at, ",");
        OWNED char *key = xformat("params.%.*s", (int)strcspn(at, "=,"), at);
        if (json_member(settings, key) == NULL) {
            text_format(&t, "%s%.*s", before, (int)n, at);
            before = ",";
        }
        at += n + (at[n] != '\0');
    }
    return text_end(&t);
}

/* The label: "fcfs:device=cpu", or the value of the setting. */
static const char *label_of(const struct stored_rows *l, const cJSON *settings, const char *policy)
{
    struct text t = {0};
    const cJSON *own = json_member(settings, l->by != NULL ? l->by : "policy");
    OWNED char *shown = own != NULL && !cJSON_IsString(own) ? json_text(own, false) : NULL;
    const char *head = shown != NULL         ? shown
                       : cJSON_IsString(own) ? own->valuestring
                       : l->by == NULL       ? policy
                                             : "-";
    OWNED char *rest = l->by == NULL ? without_replaced(head, settings) : xstrdup(head);
    text_string(&t, rest);
    bool open = strchr(rest, ':') == NULL;
    for (const cJSON *c = l->by == NULL && settings != NULL ? settings->child : NULL; c != NULL;
         c = c->next) {
        if (c->string != NULL && strncmp(c->string, "params.", 7) == 0) {
            OWNED char *value = cJSON_IsString(c) ? xstrdup(c->valuestring) : json_text(c, false);
            text_format(&t, "%s%s=%s", open ? ":" : ",", c->string + 7, value);
            open = false;
        }
    }
    return xkeep(text_end(&t));
}

static const char *keep(const char *text)
{
    return xkeep(xstrdup(text));
}

/* The policy with its parameters, as the base of the experiment has it. */
static const char *base_policy(struct stored_rows *l, int64_t experiment)
{
    if (l->of != experiment) {
        OWNED char *text = store_experiment_spec(l->store, experiment);
        SCOPED(json_drop) cJSON *spec = text != NULL ? cJSON_Parse(text) : NULL;
        const char *policy = json_string(json_member(spec, "base"), "policy");
        l->policy = policy[0] != '\0' ? keep(policy) : NULL;
        l->of = experiment;
    }
    return l->policy;
}

static void take(void *ctx, const struct store_replication *r)
{
    struct stored_rows *l = ctx;
    const char *base = base_policy(l, r->experiment);
    SCOPED(json_drop) cJSON *settings = cJSON_Parse(r->settings);
    settings = settings != NULL ? settings : cJSON_CreateObject();
    const char *label = label_of(l, settings, base != NULL ? base : r->of.policy);
    for (cJSON *c = settings->child, *next; c != NULL; c = next) {
        next = c->next;
        (void)texts_index(&l->settings, c->string != NULL ? c->string : "");
        if (c->string == NULL || is_compared(l, c->string)) {
            cJSON_Delete(cJSON_DetachItemViaPointer(settings, c));
        }
    }
    OWNED char *shared = json_text(settings, false);
    LIST_ADD(l->v, l->n,
             (struct stored_row){.experiment = r->experiment,
                                 .run = r->run,
                                 .name = keep(r->name),
                                 .revision = keep(r->revision),
                                 .shared = keep(shared),
                                 .label = label,
                                 .soc = keep(r->of.soc),
                                 .llm = keep(r->of.llm),
                                 .workload = keep(r->of.workload),
                                 .config_hash = keep(r->config_hash),
                                 .message = keep(r->message),
                                 .replication = r->replication,
                                 .seed = r->of.seed});
}

static int check_by(const struct stored_rows *l, struct err *e)
{
    if (texts_find(&l->settings, l->by) < l->settings.n) {
        return 0;
    }
    struct text t = {0};
    for (size_t i = 0; i < l->settings.n; i++) {
        text_item(&t, ", ", l->settings.v[i]);
    }
    OWNED char *there = text_end(&t);
    return err_add(e, "--by %s: no point of the store has this setting; there are %s", l->by,
                   there);
}

int stored_rows_read(struct store *s, const char *by, struct stored_rows *out, struct err *e)
{
    *out = (struct stored_rows){.by = by, .store = s};
    store_replications(s, take, out);
    return by != NULL ? check_by(out, e) : 0;
}

void stored_rows_fini(struct stored_rows *l)
{
    free(l->v);
    texts_fini(&l->settings);
}
