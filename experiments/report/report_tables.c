/* Tables of the report page: comparisons, the hardware model, how to repeat it. */
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
    char *seeds = cJSON_PrintUnformatted(cJSON_GetObjectItemCaseSensitive(tree, "seeds"));
    char *sim = cJSON_Print(cJSON_GetObjectItemCaseSensitive(config, "sim"));
    markup_put(out, seeds != NULL ? seeds : "");
    (void)fputs("\n", out);
    markup_put(out, sim != NULL ? sim : "");
    cJSON_free(seeds);
    cJSON_free(sim);
    (void)fputs("</pre></details>\n", out);
}
