/* Writes the tables of the report page: comparisons, the hardware model, and how to repeat them. */
#include <sys/stat.h>
#include <time.h>

#include "experiments/report/report_impl.h"

void report_write_headline_table(const cJSON *tree, FILE *out)
{
    const cJSON *policies = json_member(tree, "policies");
    const cJSON *base = json_member(policies, json_string(tree, "baseline"));
    double relevance = json_number(tree, "relevance_frac");
    (void)fputs("<div class=wide><table class=means><thead><tr><th>policy", out);
    for (const char *const *name = metric_usual; *name != NULL; name++) {
        (void)fprintf(out, "<th>%s", metric_title(*name));
    }
    (void)fputs("</thead><tbody>\n", out);
    const cJSON *p;
    cJSON_ArrayForEach (p, policies) {
        unsigned runs;
        unsigned overloaded = report_overloaded(tree, p->string, &runs);
        markup_format(out, "<tr><td>%s", p->string);
        if (p == base) {
            (void)fputs("<br><small>baseline</small>", out);
        }
        if (overloaded > 0) {
            (void)fprintf(out, "<br><small class=overloaded>overloaded in %u of %u</small>",
                          overloaded, runs);
        }
        for (const char *const *name = metric_usual; *name != NULL; name++) {
            const cJSON *m = json_member(p, *name);
            (void)fputs("<td>", out);
            report_put_mean(out, m);
            if (p != base && cJSON_HasObjectItem(m, "verdict")) {
                (void)fputs("<br><small>", out);
                report_put_change(out, m, json_member(base, *name), relevance);
                (void)fputs("</small>", out);
            }
        }
        (void)fputs("\n", out);
    }
    (void)fputs("</tbody></table></div>\n", out);
}

/* Whether a row adds nothing: no policy has a number, or truncated.* equals the whole metric. */
static bool says_nothing(const cJSON *policies, const char *metric)
{
    static const char cut[] = "truncated.";
    bool truncated = strncmp(metric, cut, sizeof cut - 1) == 0;
    bool nothing = true;
    const cJSON *p;
    cJSON_ArrayForEach (p, policies) {
        double v = json_number(json_member(p, metric), "mean");
        double whole =
            truncated ? json_number(json_member(p, metric + sizeof cut - 1), "mean") : (double)NAN;
        nothing = nothing && (isnan(v) || v == whole);
    }
    return nothing;
}

void report_write_all_metrics(const cJSON *tree, FILE *out)
{
    const cJSON *policies = json_member(tree, "policies");
    (void)fputs("<details><summary>All metrics</summary><p class=soft>What each is: <code>xpusim "
                "list metric</code>. Left out: what no policy has a number of, and what "
                "<code>truncated.*</code> repeats.</p>\n<div class=wide><input type=search "
                "placeholder=\"search: reactive p90\" aria-label=\"search in all "
                "metrics\"><table><thead><tr><th>metric",
                out);
    const cJSON *p;
    cJSON_ArrayForEach (p, policies) {
        markup_format(out, "<th>%s", p->string);
    }
    (void)fputs("</thead><tbody>\n", out);
    const cJSON *m;
    cJSON_ArrayForEach (m, policies->child) {
        if (says_nothing(policies, m->string)) {
            continue;
        }
        markup_format(out, "<tr><td>%s", m->string);
        cJSON_ArrayForEach (p, policies) {
            (void)fputs("<td>", out);
            report_put_mean(out, json_member(p, m->string));
        }
        (void)fputs("\n", out);
    }
    (void)fputs("</tbody></table></div></details>\n", out);
}

static void write_pair(const cJSON *pair, const char *metric, FILE *out)
{
    markup_format(
        out, "<tr><td>%s<td>%s<td>%.2f &plusmn; %.2f<td>%.4g<td>%.4g to %.4g<td>%.4g to %.4g\n",
        metric_title(metric), pair->string, json_number(pair, "better_frac"),
        json_number(pair, "better_se"), json_number(pair, "difference"),
        json_number(pair, "sampling_low"), json_number(pair, "sampling_high"),
        json_number(pair, "model_low"), json_number(pair, "model_high"));
}

static void write_factor(const cJSON *f, const char *policy, FILE *out)
{
    markup_format(out, "<tr><td>%s<td>%s<td>%.2f (%.2f to %.2f)<td>%.4g (%.4g to %.4g)<td>", policy,
                  f->string, json_number(f, "share"), json_number(f, "share_low"),
                  json_number(f, "share_high"), json_number(f, "value"), json_number(f, "low"),
                  json_number(f, "high"));
    double turns = json_number(f, "turns_at");
    if (isnan(turns)) {
        (void)fputs("never in its range\n", out);
    } else {
        (void)fprintf(out, "between %.4g and %.4g\n", json_number(f, "holds_at"), turns);
    }
}

static const cJSON *first_of(const cJSON *o, const char *key)
{
    const cJSON *list = json_member(o, key);
    return list != NULL ? list->child : NULL;
}

/* Documents of older versions lack these numbers. */
static void write_rows_inside(const cJSON *u, FILE *out)
{
    double inside = json_number(u, "measured_rows_inside_frac");
    if (json_member(u, "measured_rows_inside_frac") != NULL && !isnan(inside)) {
        (void)fprintf(out,
                      "<p>Kernel times are drawn from %.0f measured rows. %.0f %% of them lie "
                      "between such ends.\n",
                      json_number(u, "measured_rows"), 100.0 * inside);
    }
}

void report_write_uncertainty(const cJSON *tree, FILE *out)
{
    const cJSON *u = json_member(tree, "uncertainty");
    if (u == NULL) {
        return;
    }
    (void)fprintf(
        out,
        "<h3>Whatever the true machine is?</h3><p>%.0f machines that it may be, %.0f "
        "uncertain numbers drawn together; every policy on each, on the same requests.</p>"
        "<div class=wide><table><thead><tr><th>metric<th>policy<th>probability that it is "
        "better<th>difference<th>by requests (95 %%)<th>by machine (draws)</thead>"
        "<tbody>\n",
        json_number(u, "machines"), json_number(u, "uncertain_numbers"));
    const cJSON *p;
    for (const cJSON *m = first_of(u, "pairs"); m != NULL; m = m->next) {
        for (p = m->child; p != NULL; p = p->next) {
            write_pair(p, m->string, out);
        }
    }
    (void)fputs("</tbody></table></div>\n", out);
    write_rows_inside(u, out);
    if (first_of(u, "factors") == NULL) {
        (void)fputs("<p>What decides is not listed: with so few machines chance would name it.\n",
                    out);
        return;
    }
    (void)fputs("<div class=wide><table><thead><tr><th>policy<th>what decides<th>share of "
                "variance<th>value (range)<th>order turns</thead><tbody>\n",
                out);
    for (const cJSON *m = first_of(u, "factors"); m != NULL; m = m->next) {
        for (p = m->child; p != NULL; p = p->next) {
            for (const cJSON *f = p->child; f != NULL; f = f->next) {
                write_factor(f, p->string, out);
            }
        }
    }
    (void)fputs("</tbody></table></div><ul>\n", out);
    cJSON_ArrayForEach (p, json_member(u, "measure_next")) {
        const char *what = p->valuestring != NULL ? p->valuestring : "";
        markup_format(out, "<li>Measure next, for %s: %s\n", p->string, what);
    }
    (void)fputs("</ul>\n", out);
}

static void write_numbers(const cJSON *node, const char *path, FILE *out)
{
    if (cJSON_HasObjectItem(node, "unit") && cJSON_HasObjectItem(node, "kind")) {
        markup_format(out, "<tr><td>%s<td>%g %s", path, json_number(node, "value"),
                      json_string(node, "unit"));
        (void)fprintf(out, "<td>%g to %g<td class=%s>%s<td>", json_number(node, "low"),
                      json_number(node, "high"), json_string(node, "kind"),
                      json_string(node, "kind"));
        markup_format(out, "%s\n", json_string(node, "source"));
        return;
    }
    int i = 0;
    for (const cJSON *c = node->child; c != NULL; c = c->next, i++) {
        char below[256];
        const char *name = c->string;
        char index[64];
        if (name == NULL) {
            const char *own = json_string(c, "name");
            (void)snprintf(index, sizeof index, "%d", i);
            name = own[0] != '\0' ? own : index;
        }
        (void)snprintf(below, sizeof below, "%.180s%s%.60s", path, path[0] != '\0' ? "." : "",
                       name);
        write_numbers(c, below, out);
    }
}

static const char *const kinds[] = {"measured", "datasheet", "fitted", "assumed"};
enum { N_KINDS = sizeof kinds / sizeof kinds[0] };

static void count_kinds(const cJSON *node, int n[N_KINDS])
{
    const char *kind = json_string(node, "kind");
    for (int i = 0; i < N_KINDS; i++) {
        n[i] += strcmp(kind, kinds[i]) == 0;
    }
    for (const cJSON *c = node->child; c != NULL; c = c->next) {
        count_kinds(c, n);
    }
}

void report_write_hardware(const cJSON *part, FILE *out)
{
    int n[N_KINDS] = {0};
    count_kinds(part, n);
    markup_format(out, "<p class=trust><b>%s</b>: numbers ", json_string(part, "name"));
    for (int i = 0; i < N_KINDS; i++) {
        (void)fprintf(out, "%s<span class=%s>%s %d</span>", i > 0 ? ", " : "", kinds[i], kinds[i],
                      n[i]);
    }
    (void)fputs(". ", out);
    if (cJSON_IsTrue(json_member(part, "npu_extrapolated"))) {
        (void)fputs("<b>Its NPU is extrapolated from other parts</b>: trust the order of policies "
                    "more than sizes. ",
                    out);
    }
    markup_format(out,
                  "%s</p>\n<details><summary>Every number of %s</summary><div "
                  "class=wide><table><thead><tr><th>number<th>value<th>range<th>kind<th>source</"
                  "thead><tbody>\n",
                  json_string(part, "note"), json_string(part, "name"));
    write_numbers(part, "", out);
    (void)fputs("</tbody></table></div></details>\n", out);
}

/* Uses the file's time, because results have no date: equal runs give equal bytes. */
static void put_date(const char *path, FILE *out)
{
    struct stat s;
    struct tm at;
    char text[64];
    if (stat(path, &s) == 0 && gmtime_r(&s.st_mtime, &at) != NULL &&
        strftime(text, sizeof text, "%Y-%m-%d %H:%M UTC", &at) > 0) {
        (void)fprintf(out, "Written %s by ", text);
    } else {
        (void)fputs("By ", out);
    }
}

void report_write_again(const struct report_input *in, FILE *out)
{
    const cJSON *tree = in->tree;
    const cJSON *about = json_member(tree, "about");
    markup_format(out, "<h3>How to get these numbers again</h3>\n<pre>%s</pre>\n<p>",
                  json_string(about, "command"));
    put_date(in->path, out);
    markup_put(out, json_string(about, "version"));
    if (cJSON_HasObjectItem(tree, "config_hash")) {
        markup_format(out,
                      ", configuration %s. One run of it: <code>xpusim run --policy P --seed "
                      "S</code> with the same options, S any of the seeds.",
                      json_string(tree, "config_hash"));
    }
    (void)fputs("</p>\n", out);
    if (json_member(tree, "seeds") == NULL) {
        return;
    }
    (void)fputs("<details><summary>Seeds and configuration</summary><pre>", out);
    OWNED char *seeds = json_text(json_member(tree, "seeds"), false);
    OWNED char *sim = json_text(json_member(json_member(tree, "config"), "sim"), true);
    markup_format(out, "%s\n%s", seeds, sim);
    (void)fputs("</pre></details>\n", out);
}
