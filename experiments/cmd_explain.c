/* `xpusim explain`: where one request's latency went. It simulates the run again and watches. */
#include <errno.h>
#include <getopt.h>
#include <string.h>

#include "experiments/cli.h"
#include "experiments/commands.h"
#include "experiments/config.h"
#include "experiments/runner.h"
#include "experiments/table.h"
#include "sim/base/units.h"
#include "sim/metrics/explain.h"

#define MAX_OPTIONS 48

static const char help[] =
    "usage: xpusim explain --request ID --policy P [options of run]\n"
    "\n"
    "Splits a request's latency into exclusive causes that sum to it to the nanosecond.\n"
    "\n"
    "  --request ID         number of the request (first column of run --requests)\n"
    "  --policy P[:K=V,..]  policy and parameters\n"
    "  --json               as JSON\n"
    "\n";

struct explain_options {
    struct config_options config;
    const char *policy;
    double request;
    bool json, have_request;
};

static int parse_options(int argc, char **argv, struct explain_options *o, struct err *e)
{
    static const struct option own[] = {{"policy", required_argument, NULL, 'p'},
                                        {"request", required_argument, NULL, 'r'},
                                        {"json", no_argument, NULL, 'j'},
                                        {"help", no_argument, NULL, 'h'},
                                        {NULL, 0, NULL, 0}};
    struct option longs[MAX_OPTIONS];
    size_t n = config_long_options(longs, MAX_OPTIONS - sizeof own / sizeof own[0]);
    memcpy(&longs[n], own, sizeof own);
    *o = (struct explain_options){.config = config_options_default()};
    optind = 1;
    for (int c; (c = getopt_long(argc, argv, "h", longs, NULL)) != -1;) {
        switch (c) {
        case 'p':
            o->policy = optarg;
            break;
        case 'r':
            o->have_request = true;
            (void)cli_number("request", optarg, 0.0, 4e9, &o->request, e);
            break;
        case 'j':
            o->json = true;
            break;
        case 'h':
            (void)fputs(help, stdout);
            (void)fputs(config_options_help, stdout);
            return 1;
        default:
            if (config_take_option(&o->config, c, optarg, e) == 0) {
                return err_add(e, "`xpusim explain --help` shows the options");
            }
        }
    }
    if (optind < argc) {
        return err_add(e, "%s: not an option", argv[optind]);
    }
    if (o->policy == NULL || !o->have_request) {
        return err_add(e, "--policy and --request are needed");
    }
    return e->n > 0 ? -EINVAL : 0;
}

static void print_text(const struct explanation *x)
{
    double total = (double)(x->end_ns - x->arrival_ns);
    (void)printf("request %u (%s), %u prompt and %u output tokens: %.6f s from arrival to %s\n\n",
                 x->request_id, x->cls == REQUEST_CLASS_REACTIVE ? "reactive" : "proactive",
                 x->input_tokens, x->output_tokens, total / 1e9,
                 x->finished ? "last token" : "being dropped");
    struct table t;
    table_init(&t, "lrrl");
    for (int i = 0; i < EXPLAIN_CAUSE_COUNT; i++) {
        if (x->ns[i] != 0) {
            table_cell(&t, "%s", explain_cause_names[i]);
            table_cell(&t, "%.6f s", units_s_from_ns(x->ns[i]));
            table_cell(&t, "%.1f %%", 100.0 * (double)x->ns[i] / total);
            table_cell(&t, "%s", explain_cause_texts[i]);
        }
    }
    table_print(&t, stdout, 2);
    table_fini(&t);
    if (x->n_blockers > 0) {
        (void)printf("\nwho was in the way\n");
    }
    for (size_t i = 0; i < x->n_blockers && i < 5; i++) {
        const struct explain_blocker *b = &x->blockers[i];
        (void)printf("  request %u: %.6f s (%.6f s of them the kernel that was running)\n",
                     b->request_id, units_s_from_ns(b->tail_ns + b->queue_ns),
                     units_s_from_ns(b->tail_ns));
    }
}

static void print_json(const struct explanation *x, const char *fingerprint)
{
    cJSON *root = cJSON_CreateObject();
    cJSON_AddStringToObject(root, "fingerprint", fingerprint);
    cJSON_AddNumberToObject(root, "request_id", x->request_id);
    cJSON_AddStringToObject(root, "class",
                            x->cls == REQUEST_CLASS_REACTIVE ? "reactive" : "proactive");
    cJSON_AddBoolToObject(root, "finished", x->finished);
    cJSON_AddNumberToObject(root, "latency_ns", (double)(x->end_ns - x->arrival_ns));
    cJSON *causes = cJSON_AddObjectToObject(root, "causes_ns");
    for (int i = 0; i < EXPLAIN_CAUSE_COUNT; i++) {
        cJSON_AddNumberToObject(causes, explain_cause_names[i], (double)x->ns[i]);
    }
    cJSON *blockers = cJSON_AddArrayToObject(root, "blockers");
    for (size_t i = 0; i < x->n_blockers; i++) {
        cJSON *b = cJSON_CreateObject();
        cJSON_AddNumberToObject(b, "request_id", x->blockers[i].request_id);
        cJSON_AddNumberToObject(b, "tail_ns", (double)x->blockers[i].tail_ns);
        cJSON_AddNumberToObject(b, "queue_ns", (double)x->blockers[i].queue_ns);
        cJSON_AddItemToArray(blockers, b);
    }
    char *text = cJSON_Print(root);
    (void)printf("%s\n", text);
    cJSON_free(text);
    cJSON_Delete(root);
}

static int explain(const struct explain_options *o, const struct config *c,
                   const struct config_policy *p, const struct trace *t, struct err *e)
{
    struct explain *x = explain_new(&c->soc.machine, (uint32_t)o->request);
    struct runner_options opt = {.observer = explain_observer(x)};
    struct runner_result r;
    int status = EXIT_OK;
    (void)runner_run(c, p, t, o->config.seed, &opt, &r, e);
    const struct explanation *found = explain_find(x, (uint32_t)o->request);
    if (r.sim.status != 0) {
        (void)fprintf(stderr, "xpusim: error: %s\n", r.sim.message);
        status = EXIT_CHECK_FAILED;
    } else if (found == NULL) {
        (void)err_add(e, "--request %.0f: no such request left the system in this run", o->request);
        status = EXIT_BAD_INPUT;
    } else if (o->json) {
        char fingerprint[CONFIG_FINGERPRINT_BYTES];
        print_json(found,
                   config_fingerprint(c, p, t, o->config.seed, fingerprint, sizeof fingerprint));
    } else {
        print_text(found);
    }
    runner_result_fini(&r);
    explain_free(x);
    return status;
}

static int load_and_explain(const struct explain_options *o, struct err *e)
{
    struct config c;
    struct config_policy p;
    struct trace t = {0};
    int status = EXIT_BAD_INPUT;
    (void)config_load(&c, &o->config, e);
    (void)config_policy_parse(&p, o->policy, e);
    (void)config_trace(&o->config, o->config.seed, (struct config_arrivals){1.0, 1.0, false}, &t,
                       e);
    if (e->n == 0) {
        status = explain(o, &c, &p, &t, e);
    }
    trace_fini(&t);
    config_fini(&c);
    return status;
}

int cmd_explain(int argc, char **argv)
{
    struct explain_options o;
    struct err e = ERR_INIT;
    int rc = parse_options(argc, argv, &o, &e);
    int status = rc == 1 ? EXIT_OK : EXIT_BAD_INPUT;
    if (rc == 0) {
        status = load_and_explain(&o, &e);
    }
    err_print(&e, stderr);
    err_fini(&e);
    config_options_fini(&o.config);
    return status;
}
