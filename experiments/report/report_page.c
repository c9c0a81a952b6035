/* The skeleton of the page, which is a file of the data folder: texts in braces stand for what the
 * program puts there. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/report/report_impl.h"
#include "sim/base/datadir.h"
#include "sim/base/input.h"

#define MAX_BYTES ((size_t)1 << 20)
#define PATH_BYTES 4096

static char *read_data(const char *name, struct err *e)
{
    return input_text(datadir_path(name), MAX_BYTES, e);
}

int report_page_load(struct report_page *p, struct err *e)
{
    p->html = read_data("plots/page.html", e);
    p->css = read_data("plots/page.css", e);
    p->js = read_data("plots/page.js", e);
    return e->n > 0 ? -EINVAL : 0;
}

void report_page_fini(struct report_page *p)
{
    free(p->html);
    free(p->css);
    free(p->js);
    *p = (struct report_page){NULL, NULL, NULL};
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
            (void)fputs(what[0] == 'c' ? p->css : p->js, out);
        } else {
            put(ctx, what, out);
        }
        at = end + 1;
    }
}
