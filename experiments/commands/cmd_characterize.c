/* `xpusim characterize`: the papers' analyses of kernels and devices, as data. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "experiments/commands/commands.h"
#include "experiments/run/job_options.h"
#include "experiments/shell/cli.h"
#include "experiments/shell/table.h"
#include "experiments/validation/characterize.h"

struct options {
    struct config_options config;
    struct job_options work;
    struct option_output output;
    struct option_texts studies;
    uint32_t replications;
    bool csv;
};

static void print_table(const struct characterize_rows *r, FILE *out)
{
    struct table t;
    table_init(&t, "lllrlrl");
    for (size_t i = 0; i < r->n; i++) {
        const struct characterize_row *row = &r->v[i];
        table_cell(&t, "%s", row->study);
        table_cell(&t, "%s", row->device);
        table_cell(&t, "%s", row->what);
        table_cell(&t, "%s=%.4g", row->x_name, row->x);
        table_cell(&t, "%s", row->metric);
        table_cell(&t, "%.4g", row->value);
        table_cell(&t, "%s", row->unit);
    }
    table_print(&t, out, 0);
    table_fini(&t);
}

static void print_csv(const struct characterize_rows *r, FILE *out)
{
    (void)fputs("study,device,what,x_name,x,metric,value,unit\n", out);
    for (size_t i = 0; i < r->n; i++) {
        const struct characterize_row *row = &r->v[i];
        (void)fprintf(out, "%s,%s,\"%s\",%s,%.10g,%s,%.10g,%s\n", row->study, row->device,
                      row->what, row->x_name, row->x, row->metric, row->value, row->unit);
    }
}

static void print_json(const struct characterize_rows *r, FILE *out)
{
    cJSON *root = cJSON_CreateArray();
    for (size_t i = 0; i < r->n; i++) {
        const struct characterize_row *row = &r->v[i];
        cJSON *o = cJSON_CreateObject();
        cJSON_AddStringToObject(o, "study", row->study);
        cJSON_AddStringToObject(o, "device", row->device);
        cJSON_AddStringToObject(o, "what", row->what);
        cJSON_AddStringToObject(o, "x_name", row->x_name);
        cJSON_AddNumberToObject(o, "x", row->x);
        cJSON_AddStringToObject(o, "metric", row->metric);
        cJSON_AddNumberToObject(o, "value", row->value);
        cJSON_AddStringToObject(o, "unit", row->unit);
        cJSON_AddItemToArray(root, o);
    }
    char *text = cJSON_Print(root);
    (void)fprintf(out, "%s\n", text);
    cJSON_free(text);
    cJSON_Delete(root);
}

static int run(void *values, struct err *e)
{
    const struct options *o = values;
    const char *const *studies = o->studies.v;
    uint32_t n = o->studies.n;
    struct config c;
    struct characterize_rows rows = {0};
    int rc = config_load(&c, &o->config, e);
    struct characterize_options run = {&o->config, o->replications, o->work.jobs};
    if (n == 0) {
        for (int i = 0; rc == 0 && strcmp(characterize_studies[i], "schemes") != 0; i++) {
            rc = characterize_run(characterize_studies[i], &c, &run, &rows, e);
        }
    }
    for (uint32_t i = 0; rc == 0 && i < n; i++) {
        rc = characterize_run(studies[i], &c, &run, &rows, e);
    }
    if (rc == 0) {
        (o->output.json ? print_json : o->csv ? print_csv : print_table)(&rows, stdout);
    }
    characterize_rows_fini(&rows);
    config_fini(&c);
    return rc == 0 ? EXIT_OK : EXIT_BAD_INPUT;
}

#define OPTIONS struct options

static const struct option_row rows[] = {
    OPTION_COUNT(OPTIONS, replications, "replications", "N", "8", 2, 10000, "of schemes"),
    OPTION_FLAG(OPTIONS, csv, "csv", "results as CSV"),
};
static const struct option_table own = OPTION_TABLE(NULL, rows);
static const struct option_child children[] = {
    {.table = &own},
    {&job_option_table, offsetof(OPTIONS, work), NULL, false},
    {&option_output_table, offsetof(OPTIONS, output), NULL, false},
    {&config_option_table, offsetof(OPTIONS, config), NULL, false},
    {0},
};
const struct command cmd_characterize = {
    .name = "characterize",
    .summary = "the papers' analyses of kernels and devices, as data",
    .usage = "[STUDY...] [options]",
    .about =
        "Prints what the hardware models say of kernels and passes, one value per row. Studies "
        "(all but "
        "schemes when none is named):\n"
        "\n"
        "  affinity  rate and rate per watt of each op against its rows, per device\n"
        "  corun     GEMM and GEMV beside each other on two engines\n"
        "  batch     prefill and decode time against the number of sequences\n"
        "  prompt    prefill time against its length\n"
        "  mixed     decode batches with a prefill chunk in them\n"
        "  chunk     static chunk rows: throughput, preemption bounds, footprint, and the knee\n"
        "  verify    drafts of one sequence verified at once, against their number\n"
        "  schemes   the four co-scheduling schemes over load (simulated: a minute)",
    .operands = {"STUDY", 0, 64, offsetof(OPTIONS, studies)},
    .children = children,
    .bytes = sizeof(OPTIONS),
    .run = run,
};
