#include "experiments/run/config_files.h"

#include <ctype.h>
#include <libgen.h>
#include <unistd.h>

#include "experiments/run/folder.h"
#include "hwmodels/llm_hf.h"
#include "hwmodels/soc.h"
#include "sim/base/json.h"
#include "sim/base/nearest.h"

static void look(void *near, const char *path UNUSED, const char *name, struct err *e UNUSED)
{
    nearest_look(near, name);
}

int config_file_known(const char *option, const char *key, const char *what, const char *file,
                      struct err *e)
{
    if (text_ends(what, ".json") || access(file, R_OK) == 0) {
        return 0;
    }
    struct nearest near;
    SCOPED(err_fini) struct err none = ERR_INIT;
    OWNED char *folder = xstrdup(file);
    nearest_init(&near, what);
    (void)folder_each(dirname(folder), look, &near, &none);
    return err_add(e,
                   "--%s %s: not a shipped name (`xpusim list %s` shows them), nor a file ending "
                   "in .json%s",
                   option, what, key, nearest_hint(&near));
}

void config_add_file(cJSON *tree, const char *key, const char *what, const char *file,
                     cJSON *(*read)(const char *path, struct err *e), struct err *e)
{
    if (config_file_known(key, key, what, file, e) != 0) {
        return;
    }
    cJSON *part = read(file, e);
    if (part != NULL) {
        cJSON_AddItemToObject(tree, key, part);
    }
}

void config_set_width(cJSON *llm, const char *what, const char *width, struct err *e)
{
    char *end = NULL;
    unsigned long bits = strtoul(width, &end, 10);
    if (!isdigit((unsigned char)width[0]) || *end != '\0' || bits < 1 || bits > 32) {
        (void)err_add(e, "--llm %s: bits must be a whole number from 1 to 32", what);
    } else if (llm != NULL && bits != (unsigned long)json_number(llm, "weight_bits")) {
        llm_tree_width(llm, (uint32_t)bits);
        OWNED char *own = xformat("%s:bits=%lu", json_string(llm, "name"), bits);
        (void)cJSON_ReplaceItemInObjectCaseSensitive(llm, "name", cJSON_CreateString(own));
    }
}

/* ---- storage of a model by a runtime ---- */

static const struct {
    const char *entry, *model; /* keys of quantities */
} stored[] = {
    {"body_bytes", "body_bytes_per_weight"},
    {"head_bytes", "head_bytes_per_weight"},
    {"kv_bytes", "kv_bytes_per_element"},
};
enum { N_STORED = sizeof stored / sizeof stored[0] };

static bool states_any(const cJSON *soc)
{
    const cJSON *device;
    const cJSON *entry;
    cJSON_ArrayForEach (device, json_member(soc, "devices")) {
        cJSON_ArrayForEach (entry, json_member(device, "runtimes")) {
            for (uint32_t i = 0; i < N_STORED; i++) {
                if (json_member(entry, stored[i].entry) != NULL) {
                    return true;
                }
            }
        }
    }
    return false;
}

/* The tree of a device's entry for a width, or NULL. */
static const cJSON *entry_of(const cJSON *soc, const struct soc_device *d, uint32_t bits)
{
    enum soc_match match;
    uint32_t k = soc_runtime_find(d, NULL, bits, &match);
    const cJSON *device = cJSON_GetArrayItem(json_member(soc, "devices"), (int)d->entry);
    const cJSON *entries = json_member(device, "runtimes");
    return d->runtimes[k].weight_bits == bits ? cJSON_GetArrayItem(entries, (int)k) : NULL;
}

static void store_as(cJSON *llm, const cJSON *tree, const struct soc *soc, struct err *e)
{
    uint32_t bits = (uint32_t)json_number(llm, "weight_bits");
    for (uint32_t i = 0; i < N_STORED; i++) {
        const cJSON *first = NULL;
        if (llm_knows(llm, stored[i].model)) {
            continue;
        }
        for (uint32_t d = 0; d < soc->machine.n_devices; d++) {
            const cJSON *q = json_member(entry_of(tree, &soc->devices[d], bits), stored[i].entry);
            if (q != NULL && first != NULL &&
                json_number(q, "value") != json_number(first, "value")) {
                (void)err_add(e,
                              "%s: devices store %s with %g and %g bytes (%s of their runtimes); a "
                              "run has one copy of it",
                              soc->machine.name, json_string(llm, "name"),
                              json_number(first, "value"), json_number(q, "value"),
                              stored[i].entry);
            }
            first = first == NULL ? q : first;
        }
        const cJSON *least = json_member(llm, "dense_bytes_per_weight"); /* applies to heads */
        if (first != NULL && least != NULL && strcmp(stored[i].entry, "head_bytes") == 0 &&
            json_number(first, "value") < json_number(least, "value")) {
            first = least;
        }
        if (first != NULL) {
            (void)cJSON_ReplaceItemInObjectCaseSensitive(llm, stored[i].model,
                                                         cJSON_Duplicate(first, true));
        }
    }
}

void config_store_models(cJSON *tree, struct err *e)
{
    SCOPED(err_fini) struct err reported = ERR_INIT; /* reported when the run's machine is read */
    const cJSON *machine = json_member(tree, "soc");
    const cJSON *models = json_member(tree, "models");
    cJSON *more = json_member(models, "more");
    if (!states_any(machine)) {
        return;
    }
    OWNED struct soc *soc = xcalloc(1, sizeof *soc);
    if (soc_parse(machine, "", soc, &reported) != 0) {
        return;
    }
    store_as(json_member(tree, "llm"), machine, soc, e);
    for (cJSON *llm = more != NULL ? more->child : NULL; llm != NULL; llm = llm->next) {
        store_as(llm, machine, soc, e);
    }
}
