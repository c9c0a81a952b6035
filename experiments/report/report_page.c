/* The page's skeleton is a file of the data folder. The program replaces each text in braces. */
#include "experiments/report/live.h"
#include "experiments/report/report_impl.h"
#include "sim/base/datadir.h"
#include "sim/base/input.h"

#define MAX_BYTES ((size_t)1 << 20)
#define PATH_BYTES 4096

static char *read_data(const char *name, struct err *e)
{
    return xkept(input_text(datadir_path(name), MAX_BYTES, e));
}

/* Loads the simulator if the page can recompute a file. */
static void load_simulator(struct report_page *p, const struct figure_request *all, struct err *e)
{
    for (size_t i = 0; i < all->n_inputs && p->simulator == NULL && e->n == 0; i++) {
        if (json_member(all->inputs[i].tree, "recompute") != NULL) {
            p->simulator = xkept(live_simulator(&p->simulator_bytes, e));
        }
    }
}

int report_page_load(struct report_page *p, const struct figure_request *all, bool live,
                     struct err *e)
{
    static const char *const css[] = {"plots/page.css", "plots/live.css"};
    static const char *const js[] = {"plots/page.js",          "plots/live.js",
                                     "plots/live_schedule.js", "plots/live_parts.js",
                                     "plots/live_wasm.js",     "plots/live_recompute.js"};
    *p = (struct report_page){.html = read_data("plots/page.html", e), .live = live};
    for (size_t i = 0; i < (live ? sizeof css / sizeof css[0] : 1); i++) {
        p->css[i] = read_data(css[i], e);
    }
    for (size_t i = 0; i < (live ? sizeof js / sizeof js[0] : 1); i++) {
        p->js[i] = read_data(js[i], e);
    }
    if (live) {
        load_simulator(p, all, e);
    }
    return e->n > 0 ? -EINVAL : 0;
}

void report_page_put(const struct report_page *p,
                     void (*put)(void *ctx, const char *what, FILE *out), void *ctx, FILE *out)
{
    for (const char *at = p->html; *at != '\0';) {
        size_t n = strcspn(at, "{");
        (void)fwrite(at, 1, n, out);
        at += n;
        const char *end = strchr(at, '}');
        if (*at == '\0' || end == NULL) {
            break;
        }
        char what[16] = "";
        (void)snprintf(what, sizeof what, "%.*s", (int)(end - at - 1), at + 1);
        if (strcmp(what, "css") == 0 || strcmp(what, "js") == 0) {
            char *const *parts = what[0] == 'c' ? p->css : p->js;
            for (size_t i = 0; i < REPORT_PAGE_PARTS && parts[i] != NULL; i++) {
                (void)fputs(parts[i], out);
            }
        } else {
            put(ctx, what, out);
        }
        at = end + 1;
    }
}
