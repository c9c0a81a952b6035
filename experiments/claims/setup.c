#include "experiments/claims/setup.h"

#include "experiments/run/config.h"
#include "policies/params.h"

const char *const setup_keys[SETUP_LISTS] = {"set", "policy", "workload", "metric", "soc"};

/* ---- reading ---- */

static void texts_read(struct setup_texts *t, struct json_obj *o, const char *key, char mark)
{
    if (!json_has(o, key)) {
        return;
    }
    uint32_t n = (uint32_t)json_get_array_size(o, key, 0, SETUP_MAX_TEXTS);
    const cJSON *list = json_member(o->node, key);
    for (uint32_t i = 0; i < n; i++) {
        const cJSON *text = cJSON_GetArrayItem(list, (int)i);
        if (!cJSON_IsString(text) || strchr(text->valuestring, mark) == NULL) {
            json_refuse(o, key, "must hold strings %s",
                        mark == ':' ? "NAME:key=value" : "NAME=VALUE");
            return;
        }
        t->v[t->n++] = text->valuestring;
    }
}

void setup_read(struct setup *s, struct json_obj *o)
{
    *s = (struct setup){.set = {.n = 0}};
    for (int k = 0; k < SETUP_LISTS; k++) {
        bool of_names = &s->list[k] == &s->policy || &s->list[k] == &s->workload;
        texts_read(&s->list[k], o, setup_keys[k], of_names ? ':' : '=');
    }
}

int setup_add(struct setup *s, const struct setup *more, struct err *e)
{
    for (int k = 0; k < SETUP_LISTS; k++) {
        struct setup_texts *t = &s->list[k];
        for (uint32_t i = 0; i < more->list[k].n; i++) {
            if (t->n == SETUP_MAX_TEXTS) {
                return err_add(e, "%s: more than %d changes of a set-up", more->list[k].v[i],
                               SETUP_MAX_TEXTS);
            }
            t->v[t->n++] = more->list[k].v[i];
        }
    }
    return 0;
}

bool setup_is_empty(const struct setup *s)
{
    uint32_t n = 0;
    for (int k = 0; k < SETUP_LISTS; k++) {
        n += s->list[k].n;
    }
    return n == 0;
}

bool setup_is_same(const struct setup *a, const struct setup *b)
{
    bool same = true;
    for (int k = 0; k < SETUP_LISTS; k++) {
        same = same && a->list[k].n == b->list[k].n;
        for (uint32_t i = 0; same && i < a->list[k].n; i++) {
            same = strcmp(a->list[k].v[i], b->list[k].v[i]) == 0;
        }
    }
    return same;
}

/* ---- applying ---- */

/* Whether "NAME" or "NAME?key=value&...", n characters, matches spec "NAME:key=value,...": every
 * condition is one of its pairs, or of `place` ("llm=...,soc=..."). */
static bool means(const char *who, size_t n, const char *spec, const char *place)
{
    size_t name = strcspn(who, "?:");
    name = name < n ? name : n;
    size_t own = strcspn(spec, ":");
    if (own != name || strncmp(who, spec, name) != 0) {
        return false;
    }
    const char *list = spec[own] == ':' ? spec + own + 1 : "";
    for (size_t at = name + 1; at < n;) {
        size_t end = at + strcspn(who + at, "&");
        end = end < n ? end : n;
        if (text_list_item(list, ',', who + at, end - at) == NULL &&
            text_list_item(place, ',', who + at, end - at) == NULL) {
            return false;
        }
        at = end + 1;
    }
    return true;
}

char *setup_merge(const char *spec, const char *with, const char *place)
{
    size_t n = strcspn(spec, ":");
    size_t who = strcspn(with, ":");
    if (!means(with, who, spec, place)) {
        return xstrdup(spec);
    }
    const char *own = spec[n] == ':' ? spec + n + 1 : "";
    const char *pairs = with + who + (with[who] == ':');
    OWNED char *list = policy_params_with(own, pairs);
    return xformat("%.*s:%s", (int)n, spec, list);
}

static void edit_text(cJSON *form, const char *key, const struct setup_texts *with,
                      const char *place)
{
    const cJSON *item = json_member(form, key);
    if (!cJSON_IsString(item)) {
        return;
    }
    char *text = xstrdup(item->valuestring);
    for (uint32_t i = 0; i < with->n; i++) {
        char *merged = setup_merge(text, with->v[i], place);
        free(text);
        text = merged;
    }
    cJSON_ReplaceItemInObjectCaseSensitive(form, key, cJSON_CreateString(text));
    free(text);
}

static void edit_sets(cJSON *form, const struct setup_texts *with, const char *place)
{
    cJSON *list = json_member(form, "set");
    if (list == NULL && with->n > 0) {
        list = cJSON_AddArrayToObject(form, "set");
    }
    const cJSON *policy = json_member(form, "policy");
    for (uint32_t i = 0; i < with->n; i++) {
        const char *who = strstr(with->v[i], " @");
        if (who != NULL && (!cJSON_IsString(policy) ||
                            !means(who + 2, strlen(who + 2), policy->valuestring, place))) {
            continue;
        }
        size_t n = who != NULL ? (size_t)(who - with->v[i]) : strlen(with->v[i]);
        OWNED char *text = xformat("%.*s", (int)n, with->v[i]);
        cJSON_AddItemToArray(list, cJSON_CreateString(text));
    }
}

/* Replaces the machine of a definition, which is the default one if none is stated. */
static void edit_soc(cJSON *form, const struct setup_texts *with)
{
    const char *stated = json_string(form, "soc");
    const char *soc = stated[0] != '\0' ? stated : CONFIG_DEFAULT_SOC;
    for (uint32_t i = 0; i < with->n; i++) {
        size_t n = strcspn(with->v[i], "=");
        if (strlen(soc) == n && strncmp(soc, with->v[i], n) == 0) {
            cJSON *other = cJSON_CreateString(with->v[i] + n + 1);
            cJSON_DeleteItemFromObjectCaseSensitive(form, "soc");
            cJSON_AddItemToObject(form, "soc", other);
            return;
        }
    }
}

cJSON *setup_apply(const struct setup *s, const cJSON *definition)
{
    static const char *const placed[] = {"run", "sustained", "kernel", "corun", "machine"};
    cJSON *copy = cJSON_Duplicate(definition, true);
    for (size_t i = 0; i < sizeof placed / sizeof placed[0]; i++) {
        cJSON *form = json_member(copy, placed[i]);
        if (cJSON_IsObject(form)) {
            /* machine and model of a definition, if stated */
            OWNED char *place =
                xformat("llm=%s,soc=%s", json_string(form, "llm"), json_string(form, "soc"));
            edit_text(form, "policy", &s->policy, place);
            edit_text(form, "workload", &s->workload, place);
            edit_sets(form, &s->set, place);
            edit_soc(form, &s->soc);
        }
    }
    return copy;
}

const char *setup_metric(const struct setup *s, const char *metric)
{
    for (uint32_t i = 0; i < s->metric.n; i++) {
        size_t n = strcspn(s->metric.v[i], "=");
        if (strlen(metric) == n && strncmp(metric, s->metric.v[i], n) == 0) {
            return s->metric.v[i] + n + 1;
        }
    }
    return metric;
}
