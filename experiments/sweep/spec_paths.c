/* Resolves paths relative to the experiment file, from any working directory. */
#include "experiments/run/plugin.h"
#include "experiments/sweep/spec.h"
#include "policies/external/external.h"
#include "sim/base/datadir.h"

/* Puts the folder of the experiment file before the path that begins at `at`, if it is relative. */
static void insert_folder(const char *file, const char **text, size_t at)
{
    SIM_ASSERT(at <= strlen(*text));
    const char *slash = strrchr(file, '/');
    if ((*text)[at] != '/' && (*text)[at] != '\0' && slash != NULL) {
        *text =
            xkeep(xformat("%.*s%.*s%s", (int)at, *text, (int)(slash + 1 - file), file, *text + at));
    }
}

/* Resolves the file in "PATH.so", "python:FILE:CLASS" and "exec:./PROGRAM ...". A program without a
 * slash is found in PATH, so it has none. */
static void policy_path(const char *file, const char **text)
{
    if (plugin_path_length(*text) == 0) {
        return;
    }
    size_t at = external_spec_length(*text) > 0 ? strcspn(*text, ":") + 1 : 0;
    SIM_ASSERT(at <= plugin_path_length(*text)); /* the path precedes the parameters */
    OWNED char *own = at > 0 ? external_file(*text) : NULL;
    if (at == 0 || own != NULL) {
        insert_folder(file, text, at);
    }
}

/* Resolves a file of clients, or a generator's files of lengths, arrivals and token texts. Shipped
 * names have neither slash nor dot. */
static void workload_paths(const char *file, const char **text)
{
    static const char *const keys[] = {"reactive=", "proactive=", "events=", "file="};
    size_t head = strcspn(*text, ":");
    if (head > 5 && strncmp(*text + head - 5, ".json", 5) == 0) {
        insert_folder(file, text, 0);
        return;
    }
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        size_t at = 0;
        for (const char *p; (p = strstr(*text + at, keys[i])) != NULL;) {
            bool key = p > *text && (p[-1] == ':' || p[-1] == ',');
            at = (size_t)(p - *text) + strlen(keys[i]);
            size_t len = strcspn(*text + at, ",");
            if (key && (memchr(*text + at, '/', len) != NULL || memchr(*text + at, '.', len))) {
                insert_folder(file, text, at);
            }
        }
    }
}

/* Resolves the paths in "M" or "NAME=M,..". Each M is a name or a path, perhaps with ":bits=N". */
static void llm_paths(const char *file, const char **text)
{
    for (size_t at = 0; (*text)[at] != '\0';) {
        size_t name = strcspn(*text + at, "=:,");
        at += (*text)[at + name] == '=' ? name + 1 : 0;
        OWNED char *m = xformat("%.*s", (int)strcspn(*text + at, ":,"), *text + at);
        if (datadir_is_path(m)) {
            insert_folder(file, text, at);
        }
        at += strcspn(*text + at, ",");
        at += (*text)[at] == ',';
    }
}

void spec_paths(const char *file, struct spec_point *p)
{
    policy_path(file, &p->policy);
    workload_paths(file, &p->workload);
    insert_folder(file, &p->trace, 0);
    insert_folder(file, &p->machine, 0);
    if (datadir_is_path(p->soc)) {
        insert_folder(file, &p->soc, 0);
    }
    llm_paths(file, &p->llm);
}
