#include "experiments/run/config_files.h"

#include <ctype.h>
#include <libgen.h>
#include <unistd.h>

#include "experiments/run/folder.h"
#include "hwmodels/llm_hf.h"
#include "sim/base/json.h"
#include "sim/base/nearest.h"

static bool ends_with(const char *s, const char *tail)
{
    size_t n = strlen(s);
    size_t k = strlen(tail);
    return n >= k && strcmp(s + n - k, tail) == 0;
}

static void look(void *near, const char *path, const char *name, struct err *e)
{
    (void)path;
    (void)e;
    nearest_look(near, name);
}

void config_add_file(cJSON *tree, const char *key, const char *what, const char *file,
                     cJSON *(*read)(const char *path, struct err *e), struct err *e)
{
    if (!ends_with(what, ".json") && access(file, R_OK) != 0) {
        struct nearest near;
        SCOPED(err_fini) struct err none = ERR_INIT;
        OWNED char *folder = xstrdup(file);
        nearest_init(&near, what);
        (void)folder_each(dirname(folder), look, &near, &none);
        (void)err_add(
            e,
            "--%s %s: not a shipped name (`xpusim list %s` shows them), nor a file ending "
            "in .json%s",
            key, what, key, nearest_hint(&near));
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
