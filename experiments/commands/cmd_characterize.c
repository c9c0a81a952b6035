/* `xpusim characterize`: the papers' analyses of kernels and devices, as data. */
#include <errno.h>
#include <getopt.h>
#include <string.h>
#include <unistd.h>

#include "experiments/commands/commands.h"
#include "experiments/shell/cli.h"
#include "experiments/shell/table.h"
#include "experiments/validation/characterize.h"

#define MAX_OPTIONS 48

static const char help[] =
    "usage: xpusim characterize [STUDY...] [options]\n"
    "\n"
    "Prints what the hardware models say of kernels and passes, one value per row. Studies (all "
    "but\n"
    "schemes when none is named):\n"
    "\n"
    "  affinity  rate and rate per watt of each op against its rows, per device\n"
    "  corun     GEMM and GEMV beside each other on two engines\n"
    "  batch     prefill and decode time against the number of sequences\n"
    "  prompt    prefill time against its length\n"
    "  mixed     decode batches with a prefill chunk in them\n"
    "  chunk     static chunk rows: throughput, preemption bounds, footprint, and the knee\n"
    "  verify    drafts of one sequence verified at once, against their number\n"
    "  schemes   the four co-scheduling schemes over load (simulated: a minute)\n"
    "\n"
    "  --replications N  of schemes (default 8)\n"
    "  --jobs J          of schemes: runs at once (default: processors)\n"
    "  --csv             as CSV\n"
    "  --json            as JSON\n";

struct options {
    struct config_options config;
    uint32_t replications, jobs;
    bool csv, json;
};

static int parse(int argc, char **argv, struct options *o, struct err *e)
{
    static const struct option own[] = {{"replications", required_argument, NULL, 'n'},
                                        {"jobs", required_argument, NULL, 'J'},
                                        {"csv", no_argument, NULL, 'c'},
                                        {"json", no_argument, NULL, 'j'},
                                        {"quiet", no_argument, NULL, 'q'},
                                        {"help", no_argument, NULL, 'h'},
                                        {NULL, 0, NULL, 0}};
    struct option longs[MAX_OPTIONS];
    size_t n = config_long_options(longs, MAX_OPTIONS - sizeof own / sizeof own[0]);
    memcpy(&longs[n], own, sizeof own);
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    *o = (struct options){.config = config_options_default(),
                          .replications = 8,
                          .jobs = cpus > 0 ? (uint32_t)cpus : 1};
    opterr = 0;
    optind = 1;
    for (int c; (c = getopt_long(argc, argv, "h", longs, NULL)) != -1;) {
        switch (c) {
        case 'n':
            (void)cli_count("replications", optarg, 2, 10000, &o->replications, e);
            break;
        case 'J':
            (void)cli_count("jobs", optarg, 1, 1024, &o->jobs, e);
            break;
        case 'c':
            o->csv = true;
            break;
        case 'j':
            o->json = true;
            break;
        case 'q':
            break;
        case 'h':
            (void)fputs(help, stdout);
            (void)fputs(config_options_help, stdout);
            return 1;
        default:
            if (config_take_option(&o->config, c, optarg, e) == 0) {
                return err_add(e, "characterize: bad option: %s", argv[optind - 1]);
            }
        }
    }
    return e->n > 0 ? -EINVAL : 0;
}

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

static int run(const struct options *o, char **studies, int n, struct err *e)
{
    struct config c;
    struct characterize_rows rows = {0};
    int rc = config_load(&c, &o->config, e);
    struct characterize_options run = {&o->config, o->replications, o->jobs};
    if (n == 0) {
        for (int i = 0; rc == 0 && strcmp(characterize_studies[i], "schemes") != 0; i++) {
            rc = characterize_run(characterize_studies[i], &c, &run, &rows, e);
        }
    }
    for (int i = 0; rc == 0 && i < n; i++) {
        rc = characterize_run(studies[i], &c, &run, &rows, e);
    }
    if (rc == 0) {
        (o->json ? print_json : o->csv ? print_csv : print_table)(&rows, stdout);
    }
    characterize_rows_fini(&rows);
    config_fini(&c);
    return rc == 0 ? EXIT_OK : EXIT_BAD_INPUT;
}

int cmd_characterize(int argc, char **argv)
{
    struct options o;
    struct err e = ERR_INIT;
    int rc = parse(argc, argv, &o, &e);
    int status = rc > 0 ? EXIT_OK : EXIT_BAD_INPUT;
    if (rc == 0) {
        status = run(&o, argv + optind, argc - optind, &e);
    }
    err_print(&e, stderr);
    err_fini(&e);
    config_options_fini(&o.config);
    return status;
}
