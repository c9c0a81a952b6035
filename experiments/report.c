#include "experiments/report.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

/* ---- text ---- */

static void put(FILE *out, const char *text)
{
    for (; *text != '\0'; text++) {
        switch (*text) {
        case '<':
            (void)fputs("&lt;", out);
            break;
        case '>':
            (void)fputs("&gt;", out);
            break;
        case '&':
            (void)fputs("&amp;", out);
            break;
        case '"':
            (void)fputs("&quot;", out);
            break;
        default:
            (void)fputc(*text, out);
        }
    }
}

static const char *text_of(const cJSON *o, const char *key)
{
    const char *s = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(o, key));
    return s != NULL ? s : "";
}

static double number_of(const cJSON *o, const char *key)
{
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(o, key);
    return cJSON_IsNumber(v) ? v->valuedouble : (double)NAN;
}

/* Digits by the width of the interval: what it leaves open is not printed. */
static void put_mean(FILE *out, const cJSON *m)
{
    double mean = number_of(m, "mean");
    double half = (number_of(m, "high") - number_of(m, "low")) / 2.0;
    if (isnan(mean)) {
        (void)fputs("&ndash;", out);
        return;
    }
    int digits = 4;
    if (half > 0.0 && fabs(mean) > 0.0) {
        digits = (int)ceil(log10(fabs(mean) / half)) + 2;
        digits = digits < 2 ? 2 : digits > 6 ? 6 : digits;
    }
    (void)fprintf(out, "%.*g", digits, mean);
    if (half > 0.0) {
        (void)fprintf(out, " <small>&plusmn; %.2g</small>", half);
    }
}

/* ---- the headline ---- */

struct headline {
    const char *metric, *name, *unit;
};

static const struct headline headlines[] = {
    {"reactive.e2e_s.mean", "Reactive latency, to the last token", "s"},
    {"reactive.ttft_s.mean", "Reactive latency, to the first token", "s"},
    {"reactive.e2e_s.p90", "Reactive latency, 90th percentile", "s"},
    {"proactive.e2e_s.mean", "Proactive latency", "s"},
    {"all.throughput_req_per_min", "Throughput", "requests/min"},
    {"igpu.weighted_util_frac", "Weighted utilisation of the iGPU", "1"},
    {"energy_j_per_token", "Energy per token, idle power included", "J"},
    {"energy_active_j_per_token", "Energy per token above idle", "J"},
    {NULL, NULL, NULL},
};

static const cJSON *metric_of(const cJSON *policy, const char *name)
{
    return cJSON_GetObjectItemCaseSensitive(policy, name);
}

/* The policy with the lowest mean of a metric. */
static const cJSON *best_of(const cJSON *policies, const char *metric)
{
    const cJSON *best = NULL;
    const cJSON *p;
    cJSON_ArrayForEach(p, policies)
    {
        double v = number_of(metric_of(p, metric), "mean");
        if (!isnan(v) && (best == NULL || v < number_of(metric_of(best, metric), "mean"))) {
            best = p;
        }
    }
    return best;
}

static void count_kinds(const cJSON *node, int n[3])
{
    static const char *const kinds[] = {"measured", "fitted", "assumed"};
    const char *kind = text_of(node, "kind");
    for (int i = 0; i < 3; i++) {
        n[i] += strcmp(kind, kinds[i]) == 0;
    }
    for (const cJSON *c = node->child; c != NULL; c = c->next) {
        count_kinds(c, n);
    }
}

static void put_change(FILE *out, const cJSON *m, const cJSON *base)
{
    double change = number_of(m, "diff") / number_of(base, "mean");
    if (isnan(change)) {
        return;
    }
    (void)fprintf(out, "%+.0f %% [%+.0f, %+.0f]", 100.0 * change,
                  100.0 * number_of(m, "diff_low") / number_of(base, "mean"),
                  100.0 * number_of(m, "diff_high") / number_of(base, "mean"));
}

static void write_headline(const cJSON *tree, FILE *out)
{
    const cJSON *policies = cJSON_GetObjectItemCaseSensitive(tree, "policies");
    const char *base_name = text_of(tree, "baseline");
    const cJSON *base = cJSON_GetObjectItemCaseSensitive(policies, base_name);
    const char *metric = headlines[0].metric;
    const cJSON *best = best_of(policies, metric);
    (void)fputs("<p class=headline>", out);
    if (best == NULL) {
        (void)fputs("No reactive request finished under any policy.", out);
    } else if (best == base) {
        (void)fputs("<b>", out);
        put(out, base_name);
        (void)fputs("</b>, the baseline, answers reactive requests soonest: ", out);
        put_mean(out, metric_of(best, metric));
        (void)fputs(" s.", out);
    } else {
        const cJSON *m = metric_of(best, metric);
        (void)fputs("<b>", out);
        put(out, best->string);
        (void)fputs("</b> answers reactive requests soonest: ", out);
        put_mean(out, m);
        (void)fputs(" s to the last token, against ", out);
        put_mean(out, metric_of(base, metric));
        (void)fputs(" s of <b>", out);
        put(out, base_name);
        (void)fputs("</b> (", out);
        put_change(out, m, metric_of(base, metric));
        (void)fputs("; ", out);
        put(out, text_of(m, "verdict"));
        (void)fputs("). Energy per token: ", out);
        put_change(out, metric_of(best, "energy_j_per_token"),
                   metric_of(base, "energy_j_per_token"));
        (void)fputs("; ", out);
        put(out, text_of(metric_of(best, "energy_j_per_token"), "verdict"));
        (void)fputs(".", out);
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
    put(out, text_of(soc, "name"));
    (void)fprintf(out, "</b>: %d numbers measured, %d fitted, %d assumed. ", n[0], n[1], n[2]);
    if (cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(soc, "npu_extrapolated"))) {
        (void)fputs("<b>Its NPU is extrapolated from other parts</b>: trust the order of policies "
                    "more than sizes. ",
                    out);
    }
    put(out, text_of(soc, "note"));
    double failed = number_of(tree, "failed_runs");
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

static void write_figure(const cJSON *policies, const struct headline *h, FILE *out)
{
    double top = 0.0;
    int n = 0;
    const cJSON *p;
    cJSON_ArrayForEach(p, policies)
    {
        const cJSON *m = metric_of(p, h->metric);
        double high = number_of(m, "high");
        high = isnan(high) ? number_of(m, "mean") : high;
        top = high > top ? high : top;
        n++;
    }
    if (!(top > 0.0)) {
        return;
    }
    int height = n * ROW_HEIGHT + 34;
    double scale = (FIGURE_WIDTH - FIGURE_LEFT - FIGURE_RIGHT) / top;
    (void)fprintf(out,
                  "<figure><figcaption>%s, %s: mean and 95 %% interval</figcaption>\n"
                  "<svg viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"%s\">\n",
                  h->name, h->unit, FIGURE_WIDTH, height, h->name);
    write_axis(out, top, scale, height);
    int i = 0;
    cJSON_ArrayForEach(p, policies)
    {
        const cJSON *m = metric_of(p, h->metric);
        double y = 14.0 + i * ROW_HEIGHT;
        double mean = number_of(m, "mean");
        (void)fprintf(out, "<text x=\"%d\" y=\"%.1f\" class=name>", FIGURE_LEFT - 10, y + 4);
        char label[40];
        (void)snprintf(label, sizeof label, "%.34s%s", p->string,
                       strlen(p->string) > 34 ? "..." : "");
        put(out, label);
        (void)fputs("</text>\n", out);
        if (!isnan(mean)) {
            double low = number_of(m, "low");
            double high = number_of(m, "high");
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

/* ---- tables ---- */

static void write_headline_table(const cJSON *tree, FILE *out)
{
    const cJSON *policies = cJSON_GetObjectItemCaseSensitive(tree, "policies");
    const cJSON *base = cJSON_GetObjectItemCaseSensitive(policies, text_of(tree, "baseline"));
    (void)fputs("<table class=sortable><thead><tr><th>policy", out);
    for (const struct headline *h = headlines; h->metric != NULL; h++) {
        (void)fprintf(out, "<th>%s, %s", h->name, h->unit);
    }
    (void)fputs("</thead><tbody>\n", out);
    const cJSON *p;
    cJSON_ArrayForEach(p, policies)
    {
        (void)fputs("<tr><td>", out);
        put(out, p->string);
        for (const struct headline *h = headlines; h->metric != NULL; h++) {
            const cJSON *m = metric_of(p, h->metric);
            (void)fprintf(out, "<td data-v=\"%g\">", number_of(m, "mean"));
            put_mean(out, m);
            if (p != base && cJSON_HasObjectItem(m, "verdict")) {
                (void)fputs("<br><small>", out);
                put_change(out, m, metric_of(base, h->metric));
                (void)fputs("<br>", out);
                put(out, text_of(m, "verdict"));
                (void)fputs("</small>", out);
            }
        }
        (void)fputs("\n", out);
    }
    (void)fputs("</tbody></table>\n", out);
}

static void write_all_metrics(const cJSON *tree, FILE *out)
{
    const cJSON *policies = cJSON_GetObjectItemCaseSensitive(tree, "policies");
    (void)fputs(
        "<details><summary>All metrics</summary><table class=sortable><thead><tr><th>metric", out);
    const cJSON *p;
    cJSON_ArrayForEach(p, policies)
    {
        (void)fputs("<th>", out);
        put(out, p->string);
    }
    (void)fputs("</thead><tbody>\n", out);
    const cJSON *m;
    cJSON_ArrayForEach(m, policies->child)
    {
        (void)fputs("<tr><td>", out);
        put(out, m->string);
        cJSON_ArrayForEach(p, policies)
        {
            const cJSON *v = metric_of(p, m->string);
            (void)fprintf(out, "<td data-v=\"%g\">", number_of(v, "mean"));
            put_mean(out, v);
        }
        (void)fputs("\n", out);
    }
    (void)fputs("</tbody></table></details>\n", out);
}

static void write_numbers(const cJSON *node, const char *path, FILE *out)
{
    if (cJSON_HasObjectItem(node, "unit") && cJSON_HasObjectItem(node, "kind")) {
        (void)fputs("<tr><td>", out);
        put(out, path);
        (void)fprintf(out, "<td data-v=\"%g\">%g ", number_of(node, "value"),
                      number_of(node, "value"));
        put(out, text_of(node, "unit"));
        (void)fprintf(out, "<td>%g to %g<td class=%s>%s<td>", number_of(node, "low"),
                      number_of(node, "high"), text_of(node, "kind"), text_of(node, "kind"));
        put(out, text_of(node, "source"));
        (void)fputs("\n", out);
        return;
    }
    int i = 0;
    for (const cJSON *c = node->child; c != NULL; c = c->next, i++) {
        char below[256];
        const char *name = c->string;
        char index[64];
        if (name == NULL) {
            const char *own = text_of(c, "name");
            (void)snprintf(index, sizeof index, "%d", i);
            name = own[0] != '\0' ? own : index;
        }
        (void)snprintf(below, sizeof below, "%.180s%s%.60s", path, path[0] != '\0' ? "." : "",
                       name);
        write_numbers(c, below, out);
    }
}

static void write_hardware(const cJSON *tree, FILE *out)
{
    const cJSON *config = cJSON_GetObjectItemCaseSensitive(tree, "config");
    (void)fputs("<details><summary>Every number of the hardware model: measured, fitted or assumed"
                "</summary><table class=sortable><thead><tr><th>number<th>value<th>range<th>kind"
                "<th>source</thead><tbody>\n",
                out);
    write_numbers(cJSON_GetObjectItemCaseSensitive(config, "soc"), "soc", out);
    write_numbers(cJSON_GetObjectItemCaseSensitive(config, "llm"), "llm", out);
    (void)fputs("</tbody></table></details>\n", out);
}

static void write_again(const struct report_input *in, FILE *out)
{
    const cJSON *tree = in->tree;
    const cJSON *config = cJSON_GetObjectItemCaseSensitive(tree, "config");
    (void)fputs("<h3>How to get these numbers again</h3>\n<pre>xpusim compare", out);
    const cJSON *p;
    cJSON_ArrayForEach(p, cJSON_GetObjectItemCaseSensitive(tree, "policies"))
    {
        (void)fputs(" --policy ", out);
        put(out, p->string);
    }
    (void)fputs(" \\\n    --baseline ", out);
    put(out, text_of(tree, "baseline"));
    (void)fputs(" --soc ", out);
    put(out, text_of(cJSON_GetObjectItemCaseSensitive(config, "soc"), "name"));
    (void)fputs(" --llm ", out);
    put(out, text_of(cJSON_GetObjectItemCaseSensitive(config, "llm"), "name"));
    (void)fprintf(out, " --replications %.0f --seed %.0f \\\n    --workload ",
                  number_of(tree, "replications"), number_of(tree, "seed"));
    put(out, text_of(tree, "workload"));
    (void)fputs(" --json</pre>\n<p>One run of it: <code>xpusim run --policy P --seed S</code> with "
                "the same options, S any of the seeds below. ",
                out);
    put(out, text_of(tree, "version"));
    (void)fputs(", configuration ", out);
    put(out, text_of(tree, "config_hash"));
    (void)fputs(" (overrides by <code>--set</code> show in the configuration).</p>\n"
                "<details><summary>Seeds and configuration</summary><pre>",
                out);
    char *seeds = cJSON_PrintUnformatted(cJSON_GetObjectItemCaseSensitive(tree, "seeds"));
    char *sim = cJSON_Print(cJSON_GetObjectItemCaseSensitive(config, "sim"));
    put(out, seeds != NULL ? seeds : "");
    (void)fputs("\n", out);
    put(out, sim != NULL ? sim : "");
    cJSON_free(seeds);
    cJSON_free(sim);
    (void)fputs("</pre></details>\n", out);
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
    "\nfigcaption{font-weight:600;font-size:.9rem}svg{width:100%;height:auto}\n"
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

void report_write(const struct report_input *in, size_t n, FILE *out)
{
    (void)fputs(head, out);
    (void)fputs("<h1>Scheduling policies compared</h1>\n", out);
    for (size_t i = 0; i < n; i++) {
        const cJSON *tree = in[i].tree;
        const cJSON *config = cJSON_GetObjectItemCaseSensitive(tree, "config");
        const cJSON *policies = cJSON_GetObjectItemCaseSensitive(tree, "policies");
        (void)fputs("<section>\n<h2>", out);
        put(out, text_of(cJSON_GetObjectItemCaseSensitive(config, "llm"), "name"));
        (void)fputs(" on ", out);
        put(out, text_of(cJSON_GetObjectItemCaseSensitive(config, "soc"), "name"));
        (void)fputs("</h2>\n", out);
        write_headline(tree, out);
        write_trust(tree, out);
        (void)fputs("<p>Workload <code>", out);
        put(out, text_of(tree, "workload"));
        (void)fprintf(out,
                      "</code>, %.0f replications on the same requests for every policy. "
                      "Intervals are 95 %%; differences are paired.</p>\n",
                      number_of(tree, "replications"));
        write_headline_table(tree, out);
        for (const struct headline *h = headlines; h->metric != NULL; h++) {
            write_figure(policies, h, out);
        }
        write_all_metrics(tree, out);
        write_hardware(tree, out);
        write_again(&in[i], out);
        (void)fputs("</section>\n", out);
    }
    (void)fputs(tail, out);
}

int report_check(const struct report_input *in, struct err *e)
{
    const cJSON *policies = cJSON_GetObjectItemCaseSensitive(in->tree, "policies");
    const cJSON *config = cJSON_GetObjectItemCaseSensitive(in->tree, "config");
    if (!cJSON_IsObject(policies) || policies->child == NULL) {
        return err_add(e, "%s: policies: missing: not a result of `xpusim compare --json`",
                       in->path);
    }
    if (!cJSON_IsObject(cJSON_GetObjectItemCaseSensitive(config, "soc")) ||
        !cJSON_IsObject(cJSON_GetObjectItemCaseSensitive(config, "llm"))) {
        return err_add(e, "%s: config: missing: not a result of `xpusim compare --json`", in->path);
    }
    const char *base = text_of(in->tree, "baseline");
    if (!cJSON_HasObjectItem(policies, base)) {
        return err_add(e, "%s: baseline: \"%s\" is not among the policies", in->path, base);
    }
    const cJSON *p;
    cJSON_ArrayForEach(p, policies)
    {
        if (!cJSON_IsObject(metric_of(p, headlines[0].metric))) {
            return err_add(e, "%s: policies.%s: has no %s", in->path, p->string,
                           headlines[0].metric);
        }
    }
    return 0;
}
