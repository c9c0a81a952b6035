#include "experiments/run/about.h"

#include <cjson/cJSON.h>

#include "sim/base/json.h"
#include "sim/base/memory.h"

static void put(cJSON *o, const char *key, const char *text)
{
    if (text != NULL && text[0] != '\0') {
        cJSON_AddStringToObject(o, key, text);
    }
}

/* {kind, policy, soc, llm, workload, seed, command, version, fingerprint}, without what is unknown.
 * The caller frees it. */
static cJSON *tree_of(const struct about *a)
{
    cJSON *o = cJSON_CreateObject();
    put(o, "kind", a->kind);
    put(o, "policy", a->policy != NULL ? a->policy->label : NULL);
    if (a->config != NULL) {
        put(o, "soc", a->config->soc.machine.name);
        put(o, "llm", a->config->models);
        put(o, "workload", a->trace != NULL || a->workload ? a->config->workload : NULL);
    }
    if (a->trace != NULL) {
        cJSON_AddItemToObject(o, "seed", cJSON_CreateNumber((double)a->seed));
    }
    put(o, "command", options_command());
    put(o, "version", config_version());
    if (a->trace != NULL && a->policy != NULL && a->policy->ops != NULL) {
        OWNED char *fingerprint = config_fingerprint(a->config, a->policy, a->trace, a->seed);
        put(o, "fingerprint", fingerprint);
    }
    return o;
}

void about_document(const struct about *a, struct document *d)
{
    SCOPED(json_drop) cJSON *tree = tree_of(a);
    document_tree(d, "about", tree);
}

char *about_text(const struct about *a)
{
    SCOPED(json_drop) cJSON *tree = tree_of(a);
    return json_text(tree, false);
}

char *about_comment(const struct about *a)
{
    SCOPED(json_drop) cJSON *tree = tree_of(a);
    char *text = NULL;
    size_t size = 0;
    FILE *f = memory_stream(&text, &size);
    const cJSON *fact;
    cJSON_DeleteItemFromObject(tree, "version"); /* tables do not depend on it */
    cJSON_ArrayForEach (fact, tree) {
        (void)fprintf(f, "# %s: ", fact->string);
        if (cJSON_IsNumber(fact)) {
            (void)fprintf(f, "%" PRIu64, a->seed);
        } else {
            for (const char *c = fact->valuestring; *c != '\0'; c++) {
                (void)fputc(*c == '"' ? '\'' : (unsigned char)*c < ' ' ? ' ' : *c, f);
            }
        }
        (void)fputc('\n', f);
    }
    memory_stream_close(f, &text);
    return text;
}
