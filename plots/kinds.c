/* What a file of results is, from its keys or columns. */
#include <stdio.h>
#include <string.h>

#include "plots/figure.h"
#include "plots/grid.h"
#include "plots/results_impl.h"
#include "sim/base/input.h"
#include "sim/base/json.h"

const char *const figure_studies[] = {"affinity", "batch",   "chunk",  "corun", "mixed",
                                      "prompt",   "schemes", "verify", NULL};

/* A timeline is too long to parse for this: its first key tells. */
static bool begins_as_timeline(const char *path)
{
    char start[64] = "";
    FILE *f = input_try(path);
    if (f != NULL) {
        start[fread(start, 1, sizeof start - 1, f)] = '\0';
        (void)fclose(f);
    }
    return strstr(start, "displayTimeUnit") != NULL || strstr(start, "traceEvents") != NULL;
}

static bool compares_sd(const cJSON *root)
{
    const cJSON *p;
    cJSON_ArrayForEach(p, cJSON_GetObjectItemCaseSensitive(root, "policies"))
    {
        if (p->string != NULL && strncmp(p->string, "sd-npu", 6) == 0) {
            return true;
        }
    }
    return false;
}

static unsigned kinds_of_json(const char *path)
{
    if (begins_as_timeline(path)) {
        return FIGURE_KIND_TIMELINE;
    }
    static const struct {
        const char *key;
        unsigned kind;
    } keys[] = {{"drive", FIGURE_KIND_DRIVE},       {"loads", FIGURE_KIND_LOAD},
                {"policies", FIGURE_KIND_COMPARE},  {"kernels", FIGURE_KIND_KERNELS},
                {"strategies", FIGURE_KIND_GRAPHS}, {"interference", FIGURE_KIND_INTERFERENCE}};
    struct err ignored = ERR_INIT;
    cJSON *root = json_read_file(path, &ignored);
    unsigned kinds = 0;
    for (size_t i = 0; i < sizeof keys / sizeof keys[0] && kinds == 0; i++) {
        kinds = cJSON_HasObjectItem(root, keys[i].key) ? keys[i].kind : 0;
    }
    if (kinds == FIGURE_KIND_COMPARE && compares_sd(root)) {
        kinds |= FIGURE_KIND_SD;
    }
    if (cJSON_HasObjectItem(root, "uncertainty")) {
        kinds |= FIGURE_KIND_UNCERTAINTY;
    }
    cJSON_Delete(root);
    err_fini(&ignored);
    return kinds;
}

static unsigned kinds_of_study(const struct grid *g, int column)
{
    unsigned kinds = 0;
    for (size_t row = 1; row < g->n_rows; row++) {
        for (unsigned i = 0; figure_studies[i] != NULL; i++) {
            if (strcmp(grid_text(g, row, (size_t)column), figure_studies[i]) == 0) {
                kinds |= FIGURE_KIND_STUDY(i);
            }
        }
    }
    return kinds;
}

unsigned figure_kinds_of(const char *path)
{
    if (results_looks_like_json(path)) {
        return kinds_of_json(path);
    }
    struct err ignored = ERR_INIT;
    struct grid g;
    unsigned kinds = 0;
    if (grid_read(&g, path, &ignored) == 0) {
        int study = grid_column(&g, "study");
        kinds = study >= 0                            ? kinds_of_study(&g, study)
                : grid_column(&g, "e2e_s") >= 0       ? FIGURE_KIND_REQUESTS
                : grid_column(&g, "fingerprint") >= 0 ? FIGURE_KIND_SWEEP
                                                      : 0;
        grid_fini(&g);
    }
    err_fini(&ignored);
    return kinds;
}
