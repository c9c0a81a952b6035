#include "experiments/report/report_figures.h"

#include <unistd.h>

#include "plots/about.h"
#include "plots/render.h"
#include "sim/base/input.h"

#define MAX_SVG_BYTES ((size_t)256 << 20)

static char *draw(const struct figure *f, const struct figure_request *q, const char *dir,
                  struct err *e)
{
    SCOPED(figure_data_fini) struct figure_data d;
    char *svg = NULL;
    OWNED char *path = xformat("%s/%s.svg", dir, f->name);
    figure_data_init(&d);
    if (figure_prepare(f, q, &d, e) == 0 && render_figure(f, &d, dir, RENDER_SVG, e) == 0) {
        svg = input_text(path, MAX_SVG_BYTES, e);
        (void)remove(path);
    }
    return svg;
}

/* Figures that put several inputs side by side. */
static bool stands_together(const struct figure *f)
{
    return strcmp(f->name, "cdf") == 0 || strcmp(f->name, "lengths") == 0 ||
           strcmp(f->name, "causes") == 0 || strcmp(f->name, "interference") == 0;
}

/* The request of a figure that input i begins: itself, and the later ones that stand beside it.
 * False when an earlier input has it already. */
static bool request_for(const struct figure_request *all, size_t i, const struct figure *f,
                        struct figure_request *out)
{
    *out = *all;
    out->n_inputs = 0;
    for (size_t k = 0; k < all->n_inputs; k++) {
        bool same = k == i || (stands_together(f) && about_is(all->inputs[k].about, f->kinds));
        if (same && k < i) {
            return false;
        }
        if (same) {
            out->inputs[out->n_inputs++] = all->inputs[k];
        }
    }
    return true;
}

static void draw_all(const struct figure_request *all, const char *dir, struct report_figures *out,
                     struct err *e)
{
    size_t n;
    const struct figure *f = figure_list(&n);
    for (size_t i = 0; i < all->n_inputs; i++) {
        for (size_t k = 0; k < n && e->n == 0; k++) {
            struct figure_request q;
            if (!about_is(all->inputs[i].about, f[k].chosen ? f[k].name : f[k].kinds) ||
                out->n == REPORT_MAX_FIGURES || !request_for(all, i, &f[k], &q)) {
                continue;
            }
            char *svg = draw(&f[k], &q, dir, e);
            if (svg != NULL) {
                out->v[out->n++] = (struct report_figure){&f[k], i, xkept(svg)};
            }
        }
    }
}

int report_figures_draw(const struct figure_request *all, struct report_figures *out, struct err *e)
{
    *out = (struct report_figures){.n = 0};
    const char *tmp = getenv("TMPDIR");
    if (render_check_gnuplot(e) != 0) {
        return -EINVAL;
    }
    OWNED char *dir = xformat("%s/xpusim-report-XXXXXX", tmp != NULL ? tmp : "/tmp");
    if (mkdtemp(dir) == NULL) {
        (void)err_add(e, "%s: cannot make a temporary folder: %s", dir, strerror(errno));
    } else {
        draw_all(all, dir, out, e);
        (void)rmdir(dir);
    }
    return e->n > 0 ? -EINVAL : 0;
}
