/* Tables of the report page: comparisons, the hardware model, how to repeat it. */
#include "sim/base/json.h"
#include <math.h>
#include <string.h>

#include "experiments/report/report_impl.h"

void report_write_headline_table(const cJSON *tree, FILE *out)
{
    const cJSON *policies = cJSON_GetObjectItemCaseSensitive(tree, "policies");
    const cJSON *base =
        cJSON_GetObjectItemCaseSensitive(policies, report_text_of(tree, "baseline"));
    (void)fputs("<table class=sortable><thead><tr><th>policy", out);
    char title[160];
    for (const char *const *name = metric_usual; *name != NULL; name++) {
        (void)fprintf(out, "<th>%s", metric_title(*name, title, sizeof title));
    }
    (void)fputs("</thead><tbody>\n", out);
    const cJSON *p;
    cJSON_ArrayForEach(p, policies)
    {
        (void)fputs("<tr><td>", out);
        markup_put(out, p->string);
        for (const char *const *name = metric_usual; *name != NULL; name++) {
            const cJSON *m = report_metric_of(p, *name);
            (void)fprintf(out, "<td data-v=\"%g\">", report_number_of(m, "mean"));
            report_put_mean(out, m);
            if (p != base && cJSON_HasObjectItem(m, "verdict")) {
                (void)fputs("<br><small>", out);
                report_put_change(out, m, report_metric_of(base, *name));
                (void)fputs("<br>", out);
                markup_put(out, report_text_of(m, "verdict"));
                (void)fputs("</small>", out);
            }
        }
        (void)fputs("\n", out);
    }
    (void)fputs("</tbody></table>\n", out);
}

void report_write_all_metrics(const cJSON *tree, FILE *out)
{
    const cJSON *policies = cJSON_GetObjectItemCaseSensitive(tree, "policies");
    (void)fputs(
        "<details><summary>All metrics</summary><table class=sortable><thead><tr><th>metric", out);
    const cJSON *p;
    cJSON_ArrayForEach(p, policies)
    {
        (void)fputs("<th>", out);
        markup_put(out, p->string);
    }
    (void)fputs("</thead><tbody>\n", out);
    const cJSON *m;
    cJSON_ArrayForEach(m, policies->child)
    {
        (void)fputs("<tr><td>", out);
        markup_put(out, m->string);
        cJSON_ArrayForEach(p, policies)
        {
            const cJSON *v = report_metric_of(p, m->string);
            (void)fprintf(out, "<td data-v=\"%g\">", report_number_of(v, "mean"));
            report_put_mean(out, v);
        }
        (void)fputs("\n", out);
    }
    (void)fputs("</tbody></table></details>\n", out);
}

static void write_pair(const cJSON *pair, const char *metric, FILE *out)
{
    char title[160];
    (void)fputs("<tr><td>", out);
    markup_put(out, metric_title(metric, title, sizeof title));
    (void)fputs("<td>", out);
    markup_put(out, pair->string);
    (void)fprintf(out,
                  "<td data-v=\"%g\">%.2f &plusmn; %.2f<td>%.4g<td>%.4g to %.4g<td>%.4g to %.4g\n",
                  report_number_of(pair, "better_frac"), report_number_of(pair, "better_frac"),
                  report_number_of(pair, "better_se"), report_number_of(pair, "difference"),
                  report_number_of(pair, "sampling_low"), report_number_of(pair, "sampling_high"),
                  report_number_of(pair, "model_low"), report_number_of(pair, "model_high"));
}

static void write_factor(const cJSON *f, const char *policy, FILE *out)
{
    (void)fputs("<tr><td>", out);
    markup_put(out, policy);
    (void)fputs("<td>", out);
    markup_put(out, f->string);
    (void)fprintf(out, "<td data-v=\"%g\">%.2f (%.2f to %.2f)<td>%.4g (%.4g to %.4g)<td>",
                  report_number_of(f, "share"), report_number_of(f, "share"),
                  report_number_of(f, "share_low"), report_number_of(f, "share_high"),
                  report_number_of(f, "value"), report_number_of(f, "low"),
                  report_number_of(f, "high"));
    double turns = report_number_of(f, "turns_at");
    if (isnan(turns)) {
        (void)fputs("never in its range\n", out);
    } else {
        (void)fprintf(out, "between %.4g and %.4g\n", report_number_of(f, "holds_at"), turns);
    }
}

void report_write_uncertainty(const cJSON *tree, FILE *out)
{
    const cJSON *u = cJSON_GetObjectItemCaseSensitive(tree, "uncertainty");
    if (u == NULL) {
        return;
    }
    (void)fprintf(
        out,
        "<h3>Whatever the true machine is?</h3><p>%.0f machines that it may be, %.0f "
        "uncertain numbers drawn together; every policy on each, on the same requests.</p>"
        "<table class=sortable><thead><tr><th>metric<th>policy<th>probability that it is "
        "better<th>difference<th>by requests (95 %%)<th>by machine (95 %%)</thead><tbody>\n",
        report_number_of(u, "machines"), report_number_of(u, "uncertain_numbers"));
    const cJSON *m;
    const cJSON *p;
    cJSON_ArrayForEach(m, cJSON_GetObjectItemCaseSensitive(u, "pairs")){
        cJSON_ArrayForEach(p, m){write_pair(p, m->string, out);
}
}
(void)fputs("</tbody></table><table class=sortable><thead><tr><th>policy<th>what decides<th>share "
            "of variance<th>value (range)<th>order turns</thead><tbody>\n",
            out);
cJSON_ArrayForEach(m, cJSON_GetObjectItemCaseSensitive(u, "factors")){
    cJSON_ArrayForEach(p, m){const cJSON * f;
cJSON_ArrayForEach(f, p)
{
    write_factor(f, p->string, out);
}
}
}
(void)fputs("</tbody></table><ul>\n", out);
cJSON_ArrayForEach(p, cJSON_GetObjectItemCaseSensitive(u, "measure_next"))
{
    (void)fputs("<li>Measure next, for ", out);
    markup_put(out, p->string);
    (void)fputs(": ", out);
    markup_put(out, p->valuestring != NULL ? p->valuestring : "");
    (void)fputs("\n", out);
}
(void)fputs("</ul>\n", out);
}

static void write_numbers(const cJSON *node, const char *path, FILE *out)
{
    if (cJSON_HasObjectItem(node, "unit") && cJSON_HasObjectItem(node, "kind")) {
        (void)fputs("<tr><td>", out);
        markup_put(out, path);
        (void)fprintf(out, "<td data-v=\"%g\">%g ", report_number_of(node, "value"),
                      report_number_of(node, "value"));
        markup_put(out, report_text_of(node, "unit"));
        (void)fprintf(out, "<td>%g to %g<td class=%s>%s<td>", report_number_of(node, "low"),
                      report_number_of(node, "high"), report_text_of(node, "kind"),
                      report_text_of(node, "kind"));
        markup_put(out, report_text_of(node, "source"));
        (void)fputs("\n", out);
        return;
    }
    int i = 0;
    for (const cJSON *c = node->child; c != NULL; c = c->next, i++) {
        char below[256];
        const char *name = c->string;
        char index[64];
        if (name == NULL) {
            const char *own = report_text_of(c, "name");
            (void)snprintf(index, sizeof index, "%d", i);
            name = own[0] != '\0' ? own : index;
        }
        (void)snprintf(below, sizeof below, "%.180s%s%.60s", path, path[0] != '\0' ? "." : "",
                       name);
        write_numbers(c, below, out);
    }
}

void report_write_hardware(const cJSON *tree, FILE *out)
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

void report_write_again(const struct report_input *in, FILE *out)
{
    const cJSON *tree = in->tree;
    const cJSON *config = cJSON_GetObjectItemCaseSensitive(tree, "config");
    (void)fputs("<h3>How to get these numbers again</h3>\n<pre>xpusim compare", out);
    const cJSON *p;
    cJSON_ArrayForEach(p, cJSON_GetObjectItemCaseSensitive(tree, "policies"))
    {
        (void)fputs(" --policy ", out);
        markup_put(out, p->string);
    }
    (void)fputs(" \\\n    --baseline ", out);
    markup_put(out, report_text_of(tree, "baseline"));
    (void)fputs(" --soc ", out);
    markup_put(out, report_text_of(cJSON_GetObjectItemCaseSensitive(config, "soc"), "name"));
    (void)fputs(" --llm ", out);
    markup_put(out, report_text_of(cJSON_GetObjectItemCaseSensitive(config, "llm"), "name"));
    (void)fprintf(out, " --replications %.0f --seed %.0f \\\n    --workload ",
                  report_number_of(tree, "replications"), report_number_of(tree, "seed"));
    markup_put(out, report_text_of(tree, "workload"));
    (void)fputs(" --json</pre>\n<p>One run of it: <code>xpusim run --policy P --seed S</code> with "
                "the same options, S any of the seeds below. ",
                out);
    markup_put(out, report_text_of(tree, "version"));
    (void)fputs(", configuration ", out);
    markup_put(out, report_text_of(tree, "config_hash"));
    (void)fputs(" (overrides by <code>--set</code> show in the configuration).</p>\n"
                "<details><summary>Seeds and configuration</summary><pre>",
                out);
    char *seeds = json_text(cJSON_GetObjectItemCaseSensitive(tree, "seeds"), false);
    char *sim = json_text(cJSON_GetObjectItemCaseSensitive(config, "sim"), true);
    markup_put(out, seeds);
    (void)fputs("\n", out);
    markup_put(out, sim);
    cJSON_free(seeds);
    cJSON_free(sim);
    (void)fputs("</pre></details>\n", out);
}
