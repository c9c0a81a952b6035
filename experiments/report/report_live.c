/* Writes the live part of the page: its data, and what a reader sees without JavaScript. */
#include "experiments/report/live.h"
#include "experiments/report/report_impl.h"
#include "plots/palette.h"

static const cJSON *runs_of(const struct figure_input *in)
{
    return about_is(in->about, "view") ? json_member(in->tree, "runs") : NULL;
}

bool report_put_runs(const struct figure_request *all, FILE *out)
{
    for (size_t i = 0; i < all->n_inputs; i++) {
        const cJSON *run = NULL;
        if (runs_of(&all->inputs[i]) == NULL) {
            continue;
        }
        (void)fputs("Schedules: ", out);
        cJSON_ArrayForEach (run, runs_of(&all->inputs[i])) {
            markup_format(out, run->prev->next == NULL ? "%s" : ", %s", json_string(run, "policy"));
        }
        markup_format(out, " on %s on %s", about_fact(all->inputs[i].about, "llm"),
                      about_fact(all->inputs[i].about, "soc"));
        return true;
    }
    return false;
}

/* Writes a row per run, with its status and the usual metrics. */
static void write_runs(const cJSON *runs, FILE *out)
{
    const cJSON *run = NULL;
    (void)fputs("<div class=wide><table><thead><tr><th>policy<th>run status", out);
    for (const char *const *name = metric_usual; *name != NULL; name++) {
        (void)fprintf(out, "<th>%s", metric_title(*name));
    }
    (void)fputs("</thead><tbody>\n", out);
    cJSON_ArrayForEach (run, runs) {
        const cJSON *result = json_member(run, "result");
        const char *verdict = json_string(result, "verdict");
        markup_format(out, "<tr><td>%s<td", json_string(run, "policy"));
        (void)fputs(strcmp(verdict, "OVERLOADED") == 0 ? " class=overloaded>" : ">", out);
        markup_put(out, verdict);
        for (const char *const *name = metric_usual; *name != NULL; name++) {
            double v = json_number(json_member(result, "metrics"), *name);
            (void)fprintf(out, isnan(v) ? "<td>&ndash;" : "<td>%.4g", v);
        }
        (void)fputs("\n", out);
    }
    (void)fputs("</tbody></table></div>\n", out);
}

/* Adds each policy's place in the palette, so that it has one colour on the whole page. */
static void add_slots(const cJSON *tree, cJSON *slots)
{
    static const char *const lists[] = {"policies", "verdicts"};
    const cJSON *c = NULL;
    cJSON_ArrayForEach (c, json_member(tree, "runs")) {
        const char *name = json_string(c, "policy");
        cJSON_DeleteItemFromObjectCaseSensitive(slots, name);
        cJSON_AddNumberToObject(slots, name, palette_slot(name));
    }
    for (size_t i = 0; i < 2; i++) {
        cJSON_ArrayForEach (c, json_member(tree, lists[i])) {
            cJSON_DeleteItemFromObjectCaseSensitive(slots, c->string);
            cJSON_AddNumberToObject(slots, c->string, palette_slot(c->string));
        }
    }
    cJSON_ArrayForEach (c, json_member(tree, "loads")) {
        add_slots(c, slots);
    }
}

/* Describes every metric for the page's script. */
static cJSON *metrics_tree(void)
{
    size_t n;
    const struct metric_descriptor *m = metric_table(&n);
    cJSON *list = cJSON_CreateArray();
    for (size_t i = 0; i < n; i++) {
        cJSON *row = JSON_MEMBERS(cJSON_CreateObject(), "part", m[i].part, "title", m[i].title,
                                  "unit", m[i].unit, "better", metric_better_names[m[i].better],
                                  "definition", m[i].definition);
        cJSON_AddItemToArray(list, row);
    }
    return list;
}

void report_write_live(const struct report_page *page_of, const struct figure_request *all,
                       FILE *out)
{
    SCOPED(json_drop) cJSON *page = cJSON_CreateObject();
    cJSON *slots = cJSON_AddObjectToObject(page, "slots");
    (void)fputs("<section id=live>\n<h2><a href=\"#live\">Look, click, compare</a></h2>\n"
                "<div id=app aria-busy=true><noscript><p>This part needs JavaScript. The tables "
                "and figures of the page do not.</p></noscript></div>\n",
                out);
    for (size_t i = 0; i < all->n_inputs; i++) {
        if (runs_of(&all->inputs[i]) != NULL) {
            (void)fputs("<details open class=static><summary>The runs in numbers</summary>\n", out);
            write_runs(runs_of(&all->inputs[i]), out);
            (void)fputs("</details>\n", out);
        }
    }
    (void)fputs("</section>\n", out);
    for (size_t i = 0; i < all->n_inputs; i++) {
        const struct figure_input *in = &all->inputs[i];
        if (in->tree != NULL && about_is(in->about, LIVE_KINDS)) {
            add_slots(in->tree, slots);
            live_write(out, about_fact(in->about, "kind"), in->path, in->tree);
        }
    }
    cJSON_AddItemToObject(page, "metrics", metrics_tree());
    cJSON *load = cJSON_AddArrayToObject(page, "load_metrics");
    for (const char *const *name = live_load_metrics; *name != NULL; name++) {
        cJSON_AddItemToArray(load, cJSON_CreateString(*name));
    }
    live_write(out, "page", "", page);
    if (page_of->simulator != NULL) {
        live_write_simulator(out, page_of->simulator, page_of->simulator_bytes);
    }
}
