/* The section of a comparison of real runs with simulated ones (`drive --compare --json`). */
#include "experiments/report/report_impl.h"

static void put_cell(FILE *out, double x, double scale, const char *unit)
{
    if (isnan(x)) {
        (void)fputs("<td>&ndash;", out);
    } else {
        (void)fprintf(out, "<td>%.3g%s", scale * x, unit);
    }
}

static void put_text(FILE *out, const cJSON *row, const char *key)
{
    markup_format(out, "<td>%s", json_string(row, key));
}

static const char *const metrics[] = {"ttft_s", "tpot_s", "e2e_s"};

static const struct {
    const char *title, *of;
    int metric;
} errors[] = {
    {"TTFT", "mape", 0},
    {"TPOT", "mape", 1},
    {"E2E", "mape", 2},
    {"E2E, mean of repeats", "mape_of_means", 2},
    {"E2E, speed-corrected", "mape_at_speed", 2},
    {"run-to-run: TTFT", "real_mape", 0},
    {"TPOT", "real_mape", 1},
    {"E2E", "real_mape", 2},
};
#define N_ERRORS (sizeof errors / sizeof errors[0])

static void write_errors(const cJSON *tree, FILE *out)
{
    (void)fputs("<h3>Errors of the simulation, and run-to-run differences</h3>"
                "<div class=wide><table><thead><tr><th>policy<th>simulated machine",
                out);
    for (size_t i = 0; i < N_ERRORS; i++) {
        (void)fprintf(out, "<th>%s", errors[i].title);
    }
    (void)fputs("<th>others had</thead><tbody>\n", out);
    const cJSON *row;
    cJSON_ArrayForEach (row, json_member(tree, "errors")) {
        (void)fputs("<tr>", out);
        put_text(out, row, "policy");
        put_text(out, row, "soc");
        for (size_t i = 0; i < N_ERRORS; i++) {
            const cJSON *of = json_member(row, errors[i].of);
            put_cell(out, json_number(of, metrics[errors[i].metric]), 100.0, " %");
        }
        put_cell(out, json_number(row, "foreign_frac"), 100.0,
                 json_number(row, "disturbed_runs") > 0.0 ? " % (disturbed)" : " %");
        (void)fputs("\n", out);
    }
    (void)fputs("</tbody></table></div>\n", out);
}

static void write_means(const cJSON *tree, FILE *out)
{
    (void)fputs("<h3>Means in seconds, real and simulated</h3><div class=wide><table><thead><tr>"
                "<th>class<th>policy<th>TTFT<th>simulated<th>TPOT<th>simulated<th>E2E"
                "<th>simulated</thead><tbody>\n",
                out);
    const cJSON *row;
    cJSON_ArrayForEach (row, json_member(tree, "means")) {
        (void)fputs("<tr>", out);
        put_text(out, row, "class");
        put_text(out, row, "policy");
        for (int i = 0; i < 6; i++) {
            const cJSON *of = json_member(row, metrics[i / 2]);
            put_cell(out, json_number(of, i % 2 == 0 ? "real" : "simulated"), 1.0, "");
        }
        (void)fputs("\n", out);
    }
    (void)fputs("</tbody></table></div>\n", out);
}

static void write_order(const cJSON *tree, FILE *out)
{
    (void)fputs("<h3>Order of policies</h3><p>Kendall's tau over pairs of policies that repeats "
                "tell apart, with 95 % when repeats are drawn again.</p><div class=wide><table>"
                "<thead><tr><th>class<th>metric<th>real against<th>tau<th>from<th>to<th>pairs"
                "<th>tied</thead><tbody>\n",
                out);
    const cJSON *row;
    cJSON_ArrayForEach (row, json_member(tree, "order")) {
        static const char *const numbers[] = {"tau", "low", "high", "pairs", "tied"};
        (void)fputs("<tr>", out);
        put_text(out, row, "class");
        put_text(out, row, "metric");
        put_text(out, row, "soc");
        for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
            put_cell(out, json_number(row, numbers[i]), 1.0, "");
        }
        (void)fputs("\n", out);
    }
    (void)fputs("</tbody></table></div>\n", out);
}

bool report_is_drive(const cJSON *tree)
{
    return cJSON_IsArray(json_member(tree, "drive")) && cJSON_IsArray(json_member(tree, "errors"));
}

void report_write_drive(const cJSON *tree, FILE *out)
{
    markup_format(out, "<p>%s, %.0f repeat%s, clock %s; %s</p>\n", json_string(tree, "trace"),
                  json_number(tree, "repeats"), text_plural((uint64_t)json_number(tree, "repeats")),
                  json_string(tree, "clock"), json_string(tree, "engines"));
    write_errors(tree, out);
    write_means(tree, out);
    write_order(tree, out);
}
