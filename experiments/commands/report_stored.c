#include "experiments/commands/report_stored.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "experiments/compare/stored.h"
#include "sim/base/arena.h"
#include "sim/base/json.h"

#define RELEVANCE_FRAC 0.01 /* as compare's own default */

/* All comparisons as a tree, or NULL. */
static cJSON *read_store(const char *path, struct err *e)
{
    struct store *s = store_open(path, STORE_USE_READ, e);
    if (s == NULL) {
        return NULL;
    }
    struct option_texts usual = {0};
    struct stored_options o = {.metrics = &usual, .relevance_frac = RELEVANCE_FRAC, .every = true};
    struct document *d = document_new();
    int n = stored_compare(s, &o, document_array(d, ""), e);
    if (n == 0) {
        (void)err_add(e, "%s: holds no experiment", path);
    }
    cJSON *tree = n > 0 ? document_json(d) : NULL;
    document_free(d);
    (void)store_close(s, e);
    return tree;
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

int stored_files_write(const char *store, struct stored_files *out, struct err *e)
{
    *out = (struct stored_files){.n = 0};
    const char *tmp = getenv("TMPDIR");
    cJSON *all = read_store(store, e);
    if (all == NULL) {
        return -EINVAL;
    }
    out->dir = xformat("%s/xpusim-stored-XXXXXX", tmp != NULL ? tmp : "/tmp");
    if (mkdtemp(out->dir) == NULL) {
        (void)err_add(e, "%s: cannot make a temporary folder: %s", out->dir, strerror(errno));
        free(out->dir);
        out->dir = NULL;
    }
    out->path = xcalloc((size_t)cJSON_GetArraySize(all) + 1, sizeof *out->path);
    out->name = xcalloc((size_t)cJSON_GetArraySize(all) + 1, sizeof *out->name);
    for (const cJSON *c = out->dir != NULL ? all->child : NULL; c != NULL; c = c->next) {
        char *name = xformat("%s.%u.json", base_name(store), out->n + 1);
        char *path = xformat("%s/%s", out->dir, name);
        out->path[out->n] = path;
        out->name[out->n++] = name;
        (void)json_write_file(path, c, e);
    }
    cJSON_Delete(all);
    return e->n > 0 ? -EINVAL : 0;
}

void stored_files_fini(struct stored_files *f)
{
    for (uint32_t i = 0; i < f->n; i++) {
        (void)remove(f->path[i]);
        free(f->path[i]);
        free(f->name[i]);
    }
    if (f->dir != NULL) {
        (void)rmdir(f->dir);
    }
    free(f->dir);
    free(f->path);
    free(f->name);
    *f = (struct stored_files){.n = 0};
}
