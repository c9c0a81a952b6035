#include "experiments/report/report.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "experiments/report/report_impl.h"
#include "sim/base/json.h"

/* ---- the headline ---- */

/* The policy with the lowest mean of a metric. */
static const cJSON *best_of(const cJSON *policies, const char *metric)
{
    const cJSON *best = NULL;
    const cJSON *p;
    cJSON_ArrayForEach(p, policies)
    {
        double v = report_number_of(report_metric_of(p, metric), "mean");
        if (!isnan(v) &&
            (best == NULL || v < report_number_of(report_metric_of(best, metric), "mean"))) {
            best = p;
        }
    }
    return best;
}

static void count_kinds(const cJSON *node, int n[3])
{
    static const char *const kinds[] = {"measured", "fitted", "assumed"};
    const char *kind = report_text_of(node, "kind");
    for (int i = 0; i < 3; i++) {
        n[i] += strcmp(kind, kinds[i]) == 0;
    }
    for (const cJSON *c = node->child; c != NULL; c = c->next) {
        count_kinds(c, n);
    }
}

/* Those whose interval meets that of the best: the comparison does not tell them apart by itself.
 */
static void write_close_ones(const cJSON *policies, const cJSON *best, const char *metric,
                             FILE *out)
{
    const cJSON *b = report_metric_of(best, metric);
    const cJSON *p;
    bool any = false;
    cJSON_ArrayForEach(p, policies)
    {
        const cJSON *m = report_metric_of(p, metric);
        if (p != best && report_number_of(m, "low") <= report_number_of(b, "high")) {
            (void)fputs(any ? ", " : " Intervals that meet its own: ", out);
            markup_put(out, p->string);
            (void)fputs(" (", out);
            report_put_mean(out, m);
            (void)fputs(" s)", out);
            any = true;
        }
    }
    (void)fputs(any ? "." : "", out);
}

static void write_headline(const cJSON *tree, FILE *out)
{
    const cJSON *policies = cJSON_GetObjectItemCaseSensitive(tree, "policies");
    const char *base_name = report_text_of(tree, "baseline");
    const cJSON *base = cJSON_GetObjectItemCaseSensitive(policies, base_name);
    const char *metric = METRIC_PRIMARY;
    const cJSON *best = best_of(policies, metric);
    (void)fputs("<p class=headline>", out);
    if (best == NULL) {
        (void)fputs("No reactive request finished under any policy.", out);
    } else if (best == base) {
        (void)fputs("<b>", out);
        markup_put(out, base_name);
        (void)fputs("</b>, the baseline, answers reactive requests soonest: ", out);
        report_put_mean(out, report_metric_of(best, metric));
        (void)fputs(" s.", out);
    } else {
        const cJSON *m = report_metric_of(best, metric);
        (void)fputs("<b>", out);
        markup_put(out, best->string);
        (void)fputs("</b> answers reactive requests soonest: ", out);
        report_put_mean(out, m);
        (void)fputs(" s to the last token, against ", out);
        report_put_mean(out, report_metric_of(base, metric));
        (void)fputs(" s of <b>", out);
        markup_put(out, base_name);
        (void)fputs("</b> (", out);
        report_put_change(out, m, report_metric_of(base, metric));
        (void)fputs("; ", out);
        markup_put(out, report_text_of(m, "verdict"));
        (void)fputs("). Energy per token: ", out);
        report_put_change(out, report_metric_of(best, "energy_j_per_token"),
                          report_metric_of(base, "energy_j_per_token"));
        (void)fputs("; ", out);
        markup_put(out, report_text_of(report_metric_of(best, "energy_j_per_token"), "verdict"));
        (void)fputs(".", out);
    }
    if (best != NULL) {
        write_close_ones(policies, best, metric, out);
    }
    (void)fputs("</p>\n", out);
}

static void write_trust(const cJSON *tree, FILE *out)
{
    const cJSON *soc =
        cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(tree, "config"), "soc");
    int n[3] = {0, 0, 0};
    count_kinds(soc, n);
    (void)fputs("<p class=trust>Hardware model <b>", out);
    markup_put(out, report_text_of(soc, "name"));
    (void)fprintf(out, "</b>: %d numbers measured, %d fitted, %d assumed. ", n[0], n[1], n[2]);
    if (cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(soc, "npu_extrapolated"))) {
        (void)fputs("<b>Its NPU is extrapolated from other parts</b>: trust the order of policies "
                    "more than sizes. ",
                    out);
    }
    markup_put(out, report_text_of(soc, "note"));
    double failed = report_number_of(tree, "failed_runs");
    if (failed > 0) {
        (void)fprintf(out, " <b>%.0f runs failed</b> and are missing from every mean.", failed);
    }
    (void)fputs("</p>\n", out);
}

/* ---- figures: a line per policy, a dot for the mean, a bar for the interval ---- */

#define FIGURE_WIDTH 720
#define FIGURE_LEFT 230
#define FIGURE_RIGHT 40
#define ROW_HEIGHT 24

/* Okabe and Ito's palette, told apart in every common colour blindness. */
static const char *const colours[] = {"#0072B2", "#D55E00", "#009E73", "#CC79A7",
                                      "#E69F00", "#56B4E9", "#000000"};

static double nice_step(double span)
{
    double raw = span / 5.0;
    double power = pow(10.0, floor(log10(raw)));
    double r = raw / power;
    return power * (r <= 1.0 ? 1.0 : r <= 2.0 ? 2.0 : r <= 5.0 ? 5.0 : 10.0);
}

static void write_axis(FILE *out, double top, double scale, int height)
{
    double step = nice_step(top);
    for (double v = 0.0; v <= top * 1.0001; v += step) {
        double x = FIGURE_LEFT + v * scale;
        (void)fprintf(out,
                      "<line x1=\"%.1f\" y1=\"4\" x2=\"%.1f\" y2=\"%d\" class=grid />"
                      "<text x=\"%.1f\" y=\"%d\" class=tick>%g</text>\n",
                      x, x, height - 22, x, height - 8, v);
    }
}

static void write_figure(const cJSON *policies, const char *metric, FILE *out)
{
    char title[160];
    double top = 0.0;
    int n = 0;
    const cJSON *p;
    cJSON_ArrayForEach(p, policies)
    {
        const cJSON *m = report_metric_of(p, metric);
        double high = report_number_of(m, "high");
        high = isnan(high) ? report_number_of(m, "mean") : high;
        top = high > top ? high : top;
        n++;
    }
    if (!(top > 0.0)) {
        return;
    }
    int height = n * ROW_HEIGHT + 34;
    (void)metric_title(metric, title, sizeof title);
    double scale = (FIGURE_WIDTH - FIGURE_LEFT - FIGURE_RIGHT) / top;
    (void)fprintf(out,
                  "<figure><figcaption>%s, with its 95 %% interval</figcaption>\n"
                  "<svg viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"%s\">\n",
                  title, FIGURE_WIDTH, height, title);
    write_axis(out, top, scale, height);
    int i = 0;
    cJSON_ArrayForEach(p, policies)
    {
        const cJSON *m = report_metric_of(p, metric);
        double y = 14.0 + i * ROW_HEIGHT;
        double mean = report_number_of(m, "mean");
        (void)fprintf(out, "<text x=\"%d\" y=\"%.1f\" class=name>", FIGURE_LEFT - 10, y + 4);
        char label[40];
        (void)snprintf(label, sizeof label, "%.34s%s", p->string,
                       strlen(p->string) > 34 ? "..." : "");
        markup_put(out, label);
        (void)fputs("</text>\n", out);
        if (!isnan(mean)) {
            double low = report_number_of(m, "low");
            double high = report_number_of(m, "high");
            low = isnan(low) || low < 0.0 ? fmin(mean, 0.0) : low;
            high = isnan(high) ? mean : high;
            (void)fprintf(out,
                          "<g stroke=\"%s\" fill=\"%s\"><title>%s: %.4g [%.4g, %.4g]</title>"
                          "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" "
                          "stroke-width=\"5\" stroke-opacity=\"0.45\" />"
                          "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"5\" /></g>\n",
                          colours[i % 7], colours[i % 7], "mean", mean, low, high,
                          FIGURE_LEFT + low * scale, y, FIGURE_LEFT + high * scale, y,
                          FIGURE_LEFT + mean * scale, y);
        }
        i++;
    }
    (void)fputs("</svg></figure>\n", out);
}

/* ---- the page ---- */

static const char head[] =
    "<!doctype html>\n<html lang=en><meta charset=utf-8>\n"
    "<meta name=viewport content=\"width=device-width, initial-scale=1\">\n"
    "<title>xpusim report</title>\n<style>\n"
    "body{font:16px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:75rem;padding:0 1rem;"
    "color:#222;background:#fff}\n"
    "h1{font-size:1.5rem}h2{font-size:1.25rem;margin-top:2.5rem;border-top:1px solid #ccc;"
    "padding-top:1rem}\n"
    ".headline{font-size:1.25rem}.trust{background:#f4f1e4;padding:.6rem 1rem;border-left:4px "
    "solid "
    "#E69F00}\n"
    "table{border-collapse:collapse;font-size:.85rem;display:block;overflow-x:auto}\n"
    "th,td{border-bottom:1px solid #ddd;padding:.3rem .6rem;text-align:left;vertical-align:top}\n"
    "th{background:#f6f6f6}th.by{cursor:pointer}small{color:#555}\n"
    "figure{display:inline-block;width:calc(50% - 1.2rem);min-width:22rem;margin:.5rem .5rem 1rem "
    "0}"
    "\nfigcaption{font-weight:600;font-size:.9rem}figcaption small{font-weight:400}"
    "figure.wide{width:auto;max-width:100%;display:block}img{max-width:100%;height:auto}svg{width:"
    "100%;height:auto}\n"
    ".grid{stroke:#ddd}.tick{font-size:12px;text-anchor:middle;fill:#555}"
    ".name{font-size:13px;text-anchor:end;fill:#222}\n"
    ".assumed{color:#a04000}.fitted{color:#0072B2}.measured{color:#00704f}\n"
    "pre{background:#f6f6f6;padding:.8rem;overflow-x:auto}details{margin:1rem 0}\n"
    "summary{cursor:pointer;font-weight:600}\n</style>\n";

static const char tail[] =
    "<script>\n"
    "document.querySelectorAll('table.sortable').forEach(function(t){"
    "t.querySelectorAll('th').forEach(function(h,i){h.className='by';h.title='sort';"
    "var up=true;h.addEventListener('click',function(){var b=t.tBodies[0];"
    "var v=function(r){var c=r.cells[i];var d=c.dataset.v;"
    "return d!==undefined?parseFloat(d):c.textContent;};"
    "Array.from(b.rows).sort(function(x,y){var a=v(x),c=v(y);"
    "return "
    "(a<c?-1:a>c?1:0)*(up?1:-1);}).forEach(function(r){b.appendChild(r);});up=!up;});});});\n"
    "</script>\n</html>\n";

/* An SVG as an image in the page: a document of its own, so that the names in it cannot clash. */
static void put_image(FILE *out, const struct report_figure *f)
{
    int width = FIGURE_WIDTH;
    const char *box = strstr(f->svg, "viewBox=\"0 0 ");
    (void)sscanf(box != NULL ? box : "", "viewBox=\"0 0 %d", &width);
    (void)fprintf(out, "<img alt=\"%s\" width=%d src=\"data:image/svg+xml,", f->figure->title,
                  width);
    for (const char *c = f->svg; *c != '\0'; c++) {
        if (strchr("<>\"#%\n\t", *c) != NULL) {
            (void)fprintf(out, "%%%02X", (unsigned)(unsigned char)*c);
        } else {
            (void)fputc(*c, out);
        }
    }
    (void)fputs("\">", out);
}

/* "Rate, and ...": a caption is a sentence. */
static void put_caption(FILE *out, const char *title)
{
    (void)fprintf(out, "%c%s", toupper((unsigned char)title[0]), title + 1);
}

static void write_drawn(const struct figure_request *all, const struct report_figure *f, FILE *out)
{
    (void)fputs("<figure class=wide><figcaption>", out);
    put_caption(out, f->figure->title);
    (void)fprintf(out, " <small><code>xpusim plot %s", f->figure->name);
    if ((f->figure->kinds & FIGURE_KIND_TIMELINE) != 0) {
        (void)fprintf(out, " --from %g --to %g", all->from_s, all->to_s);
    }
    (void)fputs(" ", out);
    markup_put(out, all->inputs[f->input].path);
    (void)fputs("</code></small></figcaption>\n", out);
    put_image(out, f);
    (void)fputs("</figure>\n", out);
}

static void write_comparison(const struct report_input *in, const struct figure_request *all,
                             const struct report_figures *figures, FILE *out)
{
    const cJSON *tree = in->tree;
    const cJSON *config = cJSON_GetObjectItemCaseSensitive(tree, "config");
    const cJSON *policies = cJSON_GetObjectItemCaseSensitive(tree, "policies");
    (void)fputs("<section>\n<h2>", out);
    markup_put(out, report_text_of(cJSON_GetObjectItemCaseSensitive(config, "llm"), "name"));
    (void)fputs(" on ", out);
    markup_put(out, report_text_of(cJSON_GetObjectItemCaseSensitive(config, "soc"), "name"));
    (void)fputs("</h2>\n", out);
    write_headline(tree, out);
    write_trust(tree, out);
    const cJSON *settings = cJSON_GetObjectItemCaseSensitive(tree, "settings");
    if (settings != NULL && settings->child != NULL) { /* of an experiment in a store */
        char *text = json_text(settings, false);
        (void)fputs("<p>Where <code>", out);
        markup_put(out, text);
        (void)fputs("</code></p>\n", out);
        cJSON_free(text);
    }
    (void)fputs("<p>Workload <code>", out);
    markup_put(out, report_text_of(tree, "workload"));
    (void)fprintf(out,
                  "</code>, %.0f replications on the same requests for every policy. "
                  "Intervals are 95 %%; differences are paired.</p>\n",
                  report_number_of(tree, "replications"));
    report_write_headline_table(tree, out);
    report_write_uncertainty(tree, out);
    for (const char *const *m = metric_usual; *m != NULL; m++) {
        write_figure(policies, *m, out);
    }
    for (size_t i = 0; i < figures->n; i++) {
        if (figures->v[i].input == in->index) {
            write_drawn(all, &figures->v[i], out);
        }
    }
    report_write_all_metrics(tree, out);
    report_write_hardware(tree, out);
    report_write_again(in, out);
    (void)fputs("</section>\n", out);
}

static void write_real(const struct report_input *in, const struct figure_request *all,
                       const struct report_figures *figures, FILE *out)
{
    (void)fputs("<section>\n", out);
    report_write_drive(in->tree, out);
    for (size_t i = 0; i < figures->n; i++) {
        if (figures->v[i].input == in->index) {
            write_drawn(all, &figures->v[i], out);
        }
    }
    (void)fputs("</section>\n", out);
}

static bool in_a_section(const struct report_input *in, size_t n, size_t index)
{
    for (size_t i = 0; i < n; i++) {
        if (in[i].index == index) {
            return true;
        }
    }
    return false;
}

void report_write(const struct report_input *in, size_t n, const struct figure_request *all,
                  const struct report_figures *figures, FILE *out)
{
    (void)fputs(head, out);
    (void)fputs("<h1>Scheduling policies compared</h1>\n", out);
    for (size_t i = 0; i < n; i++) {
        (report_is_drive(in[i].tree) ? write_real : write_comparison)(&in[i], all, figures, out);
    }
    bool begun = false;
    for (size_t i = 0; i < figures->n; i++) {
        if (!in_a_section(in, n, figures->v[i].input)) {
            (void)fputs(begun ? "" : "<section>\n<h2>Figures</h2>\n", out);
            begun = true;
            write_drawn(all, &figures->v[i], out);
        }
    }
    (void)fputs(begun ? "</section>\n" : "", out);
    (void)fputs(tail, out);
}

int report_check(const struct report_input *in, struct err *e)
{
    const cJSON *policies = cJSON_GetObjectItemCaseSensitive(in->tree, "policies");
    const cJSON *config = cJSON_GetObjectItemCaseSensitive(in->tree, "config");
    if (report_is_drive(in->tree)) {
        return 0;
    }
    if (!cJSON_IsObject(policies) || policies->child == NULL) {
        return err_add(e, "%s: policies: missing: not a result of `xpusim compare --json`",
                       in->path);
    }
    if (!cJSON_IsObject(cJSON_GetObjectItemCaseSensitive(config, "soc")) ||
        !cJSON_IsObject(cJSON_GetObjectItemCaseSensitive(config, "llm"))) {
        return err_add(e, "%s: config: missing: not a result of `xpusim compare --json`", in->path);
    }
    const char *base = report_text_of(in->tree, "baseline");
    if (!cJSON_HasObjectItem(policies, base)) {
        return err_add(e, "%s: baseline: \"%s\" is not among the policies", in->path, base);
    }
    const cJSON *p;
    cJSON_ArrayForEach(p, policies)
    {
        if (!cJSON_IsObject(report_metric_of(p, METRIC_PRIMARY))) {
            return err_add(e, "%s: policies.%s: has no %s", in->path, p->string, METRIC_PRIMARY);
        }
    }
    return 0;
}
