/* Writes the page: title and contents, a section per comparison, the figures of other files, and
 * the hardware models. */
#include "experiments/report/report.h"

#include <ctype.h>

#include "experiments/report/report_impl.h"

/* The inputs of the page. */
struct whole {
    const struct report_input *in;
    size_t n;
    const struct figure_request *all;
    const struct report_figures *figures;
    const struct report_page *page;
};

/* ---- figures ---- */

/* Writes an SVG as an image. As a document of its own, its names cannot clash. All its quotes are
 * single. */
static void put_image(FILE *out, const struct report_figure *f)
{
    int width = 1000;
    int height = 500;
    const char *box = strstr(f->svg, "viewBox='0 0 ");
    (void)sscanf(box != NULL ? box : "", "viewBox='0 0 %d %d", &width, &height);
    (void)fprintf(
        out,
        "<div class=wide><label class=zoom><input type=checkbox aria-label=\"enlarge\"><img "
        "alt=\"%s\" width=%d height=%d loading=lazy src=\"data:image/svg+xml,",
        f->figure->title, width, height);
    for (const char *c = f->svg; *c != '\0'; c++) {
        if (strchr("\"#%\n\t", *c) != NULL) {
            (void)fprintf(out, "%%%02X", (unsigned)(unsigned char)*c);
        } else {
            (void)fputc(*c, out);
        }
    }
    (void)fputs("\"></label></div>\n", out);
}

/* Writes a title with a capital letter, because a caption is a sentence. */
static void put_caption(FILE *out, const char *title)
{
    (void)fprintf(out, "%c%s", toupper((unsigned char)title[0]), title + 1);
}

static void write_drawn(const struct whole *w, size_t i, FILE *out)
{
    const struct report_figure *f = &w->figures->v[i];
    (void)fprintf(out, "<figure id=f%zu><figcaption><a href=\"#f%zu\">", i, i);
    put_caption(out, f->figure->title);
    (void)fprintf(out, ".</a> %s<small><code>xpusim plot %s", figure_reading(f->figure->name),
                  f->figure->name);
    if (strcmp(f->figure->kinds, "timeline") == 0) {
        (void)fprintf(out, " --from %g --to %g", w->all->from_s, w->all->to_s);
    }
    markup_format(out, " %s</code></small></figcaption>\n", w->all->inputs[f->input].path);
    put_image(out, f);
    (void)fputs("</figure>\n", out);
}

static void write_figures_of(const struct whole *w, size_t input, FILE *out)
{
    for (size_t i = 0; i < w->figures->n; i++) {
        if (w->figures->v[i].input == input) {
            write_drawn(w, i, out);
        }
    }
}

static bool in_a_section(const struct whole *w, size_t index)
{
    for (size_t i = 0; i < w->n; i++) {
        if (w->in[i].index == index) {
            return true;
        }
    }
    return false;
}

/* ---- sections ---- */

static const cJSON *part_of(const struct report_input *in, const char *part)
{
    return json_member(json_member(in->tree, "config"), part);
}

static void put_name(const struct report_input *in, FILE *out)
{
    if (report_is_drive(in->tree)) {
        (void)fputs("Real runs against simulated ones", out);
        return;
    }
    markup_format(out, "%s on %s", json_string(part_of(in, "llm"), "name"),
                  json_string(part_of(in, "soc"), "name"));
    const char *where = json_string(in->tree, "where"); /* only of an experiment in a store */
    if (where[0] != '\0') {
        markup_format(out, ": %s", where);
    }
}

static void write_comparison(const struct whole *w, const struct report_input *in, FILE *out)
{
    const cJSON *tree = in->tree;
    report_write_headline(tree, out);
    markup_format(out,
                  "<p>Workload <code>%s</code>, %.0f replication%s. Machine and model: <a "
                  "href=\"#hardware\">how far to trust them</a>.</p>\n",
                  json_string(tree, "workload"), json_number(tree, "replications"),
                  json_number(tree, "replications") == 1.0 ? "" : "s");
    if (json_string(tree, "sample_note")[0] != '\0') {
        markup_format(out, "<p><b>The sample:</b> %s.</p>\n", json_string(tree, "sample_note"));
    }
    const cJSON *warning = NULL;
    cJSON_ArrayForEach (warning, json_member(tree, "warnings")) {
        markup_format(out, "<p><b>Warning:</b> %s.</p>\n", cJSON_GetStringValue(warning));
    }
    report_write_headline_table(tree, out);
    report_write_uncertainty(tree, out);
    write_figures_of(w, in->index, out);
    report_write_all_metrics(tree, out);
    report_write_again(in, out);
}

static void write_section(const struct whole *w, size_t i, FILE *out)
{
    const struct report_input *in = &w->in[i];
    (void)fprintf(out, "<section id=c%zu>\n<h2><a href=\"#c%zu\">", i, i);
    put_name(in, out);
    (void)fputs("</a></h2>\n", out);
    if (report_is_drive(in->tree)) {
        report_write_drive(in->tree, out);
        write_figures_of(w, in->index, out);
        report_write_again(in, out);
    } else {
        write_comparison(w, in, out);
    }
    (void)fputs("</section>\n", out);
}

/* Whether an earlier comparison has the same machine or model. */
static bool seen_before(const struct whole *w, size_t i, const char *part)
{
    for (size_t k = 0; k < i; k++) {
        if (cJSON_Compare(part_of(&w->in[k], part), part_of(&w->in[i], part), true)) {
            return true;
        }
    }
    return false;
}

static void write_hardware(const struct whole *w, FILE *out)
{
    static const char *const parts[] = {"soc", "llm"};
    bool begun = false;
    for (size_t p = 0; p < 2; p++) {
        for (size_t i = 0; i < w->n; i++) {
            const cJSON *part = part_of(&w->in[i], parts[p]);
            if (part == NULL || seen_before(w, i, parts[p])) {
                continue;
            }
            (void)fputs(begun ? ""
                              : "<section id=hardware>\n<h2><a href=\"#hardware\">How far to "
                                "trust the hardware model</a></h2>\n",
                        out);
            begun = true;
            report_write_hardware(part, out);
        }
    }
    (void)fputs(begun ? "</section>\n" : "", out);
}

static void write_reading(const struct whole *w, FILE *out)
{
    double relevance = 0.01;
    bool any = false;
    for (size_t i = 0; i < w->n; i++) {
        double of = json_number(w->in[i].tree, "relevance_frac");
        relevance = isfinite(of) ? of : relevance;
        any = any || !report_is_drive(w->in[i].tree);
    }
    if (any) {
        (void)fprintf(
            out,
            "<p class=soft>How to read it: square brackets are a 95 %% interval over replications, "
            "all policies on the same requests. A signed number is the paired difference to the "
            "baseline, and in round brackets its percentage of the baseline's mean. It is printed "
            "where its interval excludes zero; "
            "differences of less than %g %% are called so. Not corrected: Holm's "
            "correction counts only the metrics that the comparison prints. One policy has "
            "one colour in all figures.</p>\n",
            100.0 * relevance);
    }
}

static void write_body(const struct whole *w, FILE *out)
{
    write_reading(w, out);
    for (size_t i = 0; i < w->n; i++) {
        write_section(w, i, out);
    }
    bool begun = false;
    for (size_t i = 0; i < w->figures->n; i++) {
        if (!in_a_section(w, w->figures->v[i].input)) {
            (void)fputs(begun ? ""
                              : "<section id=figures>\n<h2><a href=\"#figures\">Figures</a></h2>\n",
                        out);
            begun = true;
            write_drawn(w, i, out);
        }
    }
    (void)fputs(begun ? "</section>\n" : "", out);
    write_hardware(w, out);
}

/* ---- contents ---- */

static void write_links(const struct whole *w, const struct report_input *in, FILE *out)
{
    (void)fputs("<ul>", out);
    for (size_t i = 0; i < w->figures->n; i++) {
        size_t input = w->figures->v[i].input;
        if (in != NULL ? input == in->index : !in_a_section(w, input)) {
            (void)fprintf(out, "<li><a href=\"#f%zu\">", i);
            put_caption(out, w->figures->v[i].figure->title);
            (void)fputs("</a>", out);
        }
    }
    (void)fputs("</ul>\n", out);
}

static void write_contents(const struct whole *w, FILE *out)
{
    bool others = false;
    bool hardware = false;
    for (size_t i = 0; i < w->figures->n; i++) {
        others = others || !in_a_section(w, w->figures->v[i].input);
    }
    (void)fputs(w->page->live ? "<ul>\n<li><a href=\"#live\">Look, click, compare</a>\n" : "<ul>\n",
                out);
    for (size_t i = 0; i < w->n; i++) {
        (void)fprintf(out, "<li><a href=\"#c%zu\">", i);
        put_name(&w->in[i], out);
        (void)fputs("</a>", out);
        write_links(w, &w->in[i], out);
        hardware = hardware || part_of(&w->in[i], "soc") != NULL;
    }
    if (others) {
        (void)fputs("<li><a href=\"#figures\">Figures</a>", out);
        write_links(w, NULL, out);
    }
    (void)fputs(
        hardware ? "<li><a href=\"#hardware\">How far to trust the hardware model</a>\n" : "", out);
    (void)fputs("</ul>\n", out);
}

/* Names the comparisons. Browsers show this title as the page's name. */
static void write_title(const struct whole *w, FILE *out)
{
    if (w->n == 0 && report_put_runs(w->all, out)) {
        return;
    }
    (void)fputs(w->n > 0 ? "Scheduling policies compared: " : "Figures of xpusim", out);
    for (size_t i = 0; i < w->n; i++) {
        (void)fputs(i > 0 ? ", " : "", out);
        put_name(&w->in[i], out);
    }
}

static void write_live(const struct whole *w, FILE *out)
{
    if (w->page->live) {
        report_write_live(w->page, w->all, out);
    }
}

static void put(void *ctx, const char *what, FILE *out)
{
    const struct whole *w = ctx;
    static const struct {
        const char *what;
        void (*write)(const struct whole *w, FILE *out);
    } places[] = {{"title", write_title},
                  {"contents", write_contents},
                  {"live", write_live},
                  {"body", write_body}};
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        if (strcmp(places[i].what, what) == 0) {
            places[i].write(w, out);
        }
    }
}

void report_write(const struct report_page *page, const struct report_input *in, size_t n,
                  const struct figure_request *all, const struct report_figures *figures, FILE *out)
{
    struct whole w = {in, n, all, figures, page};
    report_page_put(page, put, &w, out);
}

void report_take(const struct figure_input *file, size_t index, struct report_input *in, size_t *n,
                 bool live, struct err *e)
{
    if (about_is(file->about, "sweep table")) {
        (void)err_add(e,
                      "%s: a table, and nothing says which columns to draw; `xpusim plot "
                      "latency-rate %s --x COLUMN --metric COLUMN` does",
                      file->path, file->path);
    } else if (about_is(file->about, "compare-store")) {
        (void)err_add(e, "%s: comparisons of a store; `xpusim report --store FILE.db` draws them",
                      file->path);
    } else if (about_is(file->about, "compare-suite")) {
        (void)err_add(e,
                      "%s: comparisons at the points of a suite; keep them with --store, and "
                      "`xpusim report --store FILE.db` draws them",
                      file->path);
    } else if (about_is(file->about, "selection")) {
        (void)err_add(e,
                      "%s: a selection, in which policies stop as they fall behind; "
                      "`xpusim compare --json` without --select has figures",
                      file->path);
    } else if (about_is(file->about, "view") && !live) {
        (void)err_add(e, "%s: runs to look at; add --live", file->path);
    } else if (about_is(file->about, "view") && !cJSON_IsArray(json_member(file->tree, "runs"))) {
        (void)err_add(e, "%s: runs: missing: not a result of `xpusim view --json`", file->path);
    } else if (about_is(file->about, "compare drive json")) {
        in[*n] = (struct report_input){file->path, file->tree, index};
        (void)report_check(&in[(*n)++], e);
    }
}

int report_check(const struct report_input *in, struct err *e)
{
    const cJSON *policies = json_member(in->tree, "policies");
    const cJSON *config = json_member(in->tree, "config");
    if (report_is_drive(in->tree)) {
        return 0;
    }
    if (!cJSON_IsObject(policies) || policies->child == NULL) {
        return err_add(e, "%s: policies: missing: not a result of `xpusim compare --json`",
                       in->path);
    }
    if (!cJSON_IsObject(json_member(config, "soc")) ||
        !cJSON_IsObject(json_member(config, "llm"))) {
        return err_add(e, "%s: config: missing: not a result of `xpusim compare --json`", in->path);
    }
    const char *base = json_string(in->tree, "baseline");
    if (!cJSON_HasObjectItem(policies, base)) {
        return err_add(e, "%s: baseline: \"%s\" is not among the policies", in->path, base);
    }
    const cJSON *p;
    cJSON_ArrayForEach (p, policies) {
        if (!cJSON_IsObject(json_member(p, METRIC_PRIMARY))) {
            return err_add(e, "%s: policies.%s: has no %s", in->path, p->string, METRIC_PRIMARY);
        }
    }
    return 0;
}
