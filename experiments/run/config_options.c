/* The options that every simulating command takes. Short options for simulation settings are
 * spelled as overrides of the `sim` object, so there is one way in. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/run/config.h"
#include "experiments/shell/cli.h"
#include "sim/base/arena.h"

enum option_value {
    OPTION_SOC = 0x100,
    OPTION_LLM,
    OPTION_TRACE,
    OPTION_WORKLOAD,
    OPTION_SEED,
    OPTION_TTFT_SLO,
    OPTION_TPOT_SLO,
    OPTION_SET,
    OPTION_CONTENTION,
    OPTION_HWMODEL,
    OPTION_KV_CAPACITY,
    OPTION_NO_PREFIX_REUSE,
    OPTION_ANNOTATION_NOISE,
    OPTION_TRUTH_NOISE,
    OPTION_HORIZON,
    OPTION_NO_COLLAPSE,
};

static const struct option longs[] = {
    {"soc", required_argument, NULL, OPTION_SOC},
    {"llm", required_argument, NULL, OPTION_LLM},
    {"trace", required_argument, NULL, OPTION_TRACE},
    {"workload", required_argument, NULL, OPTION_WORKLOAD},
    {"seed", required_argument, NULL, OPTION_SEED},
    {"ttft-slo", required_argument, NULL, OPTION_TTFT_SLO},
    {"tpot-slo", required_argument, NULL, OPTION_TPOT_SLO},
    {"set", required_argument, NULL, OPTION_SET},
    {"contention", required_argument, NULL, OPTION_CONTENTION},
    {"hwmodel", required_argument, NULL, OPTION_HWMODEL},
    {"kv-capacity", required_argument, NULL, OPTION_KV_CAPACITY},
    {"no-prefix-reuse", no_argument, NULL, OPTION_NO_PREFIX_REUSE},
    {"annotation-noise", required_argument, NULL, OPTION_ANNOTATION_NOISE},
    {"truth-noise", required_argument, NULL, OPTION_TRUTH_NOISE},
    {"horizon", required_argument, NULL, OPTION_HORIZON},
    {"no-collapse", no_argument, NULL, OPTION_NO_COLLAPSE},
};

const char config_options_help[] =
    "Machine and workload:\n"
    "  --soc S              shipped SoC or FILE.json (default " CONFIG_DEFAULT_SOC ")\n"
    "  --llm M              shipped model or FILE.json (default " CONFIG_DEFAULT_LLM ")\n"
    "  --trace FILE         requests of a trace CSV, or\n"
    "  --workload W         of a generator, such as\n"
    "                       mixed:reactive_per_min=3,proactive_per_min=6,duration_s=900 (default)\n"
    "  --seed N             of workload, noise and drawing policies (default 1)\n"
    "  --ttft-slo S         target of every request without one, for *.slo_attainment_frac;\n"
    "  --tpot-slo S         likewise, per output token after the first\n"
    "  --set PATH=VALUE     any value of the configuration: soc.X, llm.X, sim.X; may be repeated\n"
    "  --contention C       latency (default), max-min, none, pccs, proportional, weighted\n"
    "  --hwmodel F          extended (default), roofline, p-norm             [sim.hwmodel]\n"
    "  --kv-capacity N      KV tokens; 0: what memory leaves    [sim.kv_capacity_tokens]\n"
    "  --no-prefix-reuse    drop the KV of finished turns             [sim.prefix_reuse]\n"
    "  --annotation-noise X sigma of what policies are told: 0 for none, one value, or\n"
    "                       PREFILL,DECODE (default 0.130,0.071)        [sim.annotation]\n"
    "  --truth-noise X      sigma of what kernels really take (default 0) [sim.truth_sigma]\n"
    "  --horizon S          stop after S seconds; 0 drains (default)    [sim.horizon_s]\n"
    "  --no-collapse        one event per kernel; slower, same results   [sim.collapse]\n";

struct config_options config_options_default(void)
{
    return (struct config_options){.soc = CONFIG_DEFAULT_SOC, .llm = CONFIG_DEFAULT_LLM, .seed = 1};
}

void config_options_fini(struct config_options *o)
{
    for (uint32_t i = 0; i < o->n_sets; i++) {
        free(o->sets[i]);
    }
    o->n_sets = 0;
}

size_t config_long_options(struct option *out, size_t max)
{
    size_t n = sizeof longs / sizeof longs[0];
    SIM_REQUIRE(n <= max, "room for %zu options of %zu", max, n);
    memcpy(out, longs, sizeof longs);
    return n;
}

static int add_set(struct config_options *o, const char *path, const char *value, struct err *e)
{
    if (o->n_sets == CONFIG_MAX_SETS) {
        return err_add(e, "--set: more than %d overrides", CONFIG_MAX_SETS);
    }
    size_t size = strlen(path) + strlen(value) + 2;
    char *text = xmalloc(size);
    (void)snprintf(text, size, "%s=%s", path, value);
    o->sets[o->n_sets++] = text;
    return 1;
}

static int take_set(struct config_options *o, const char *arg, struct err *e)
{
    const char *equals = strchr(arg, '=');
    if (equals == NULL || equals == arg) {
        return err_add(e, "--set %s: must be PATH=VALUE, as in sim.contention=none", arg);
    }
    char path[192];
    size_t len = (size_t)(equals - arg);
    if (len >= sizeof path) {
        return err_add(e, "--set %.40s...: path too long", arg);
    }
    memcpy(path, arg, len);
    path[len] = '\0';
    return add_set(o, path, equals + 1, e);
}

/* "X" sets both sigmas, "X,Y" prefill and decode. */
static int take_annotation(struct config_options *o, const char *arg, struct err *e)
{
    char prefill[64];
    const char *comma = strchr(arg, ',');
    size_t len = comma != NULL ? (size_t)(comma - arg) : strlen(arg);
    if (len == 0 || len >= sizeof prefill) {
        return err_add(e, "--annotation-noise %.40s: must be X or PREFILL,DECODE", arg);
    }
    memcpy(prefill, arg, len);
    prefill[len] = '\0';
    int rc = add_set(o, "sim.annotation.sigma_prefill", prefill, e);
    return rc < 0
               ? rc
               : add_set(o, "sim.annotation.sigma_decode", comma != NULL ? comma + 1 : prefill, e);
}

static int take_seed(struct config_options *o, const char *arg, struct err *e)
{
    char *end = NULL;
    errno = 0;
    unsigned long long v = strtoull(arg, &end, 10);
    if (arg[0] < '0' || arg[0] > '9' || *end != '\0' || errno != 0) {
        return err_add(e, "--seed %s: must be a whole number from 0 to 18446744073709551615", arg);
    }
    o->seed = v;
    return 1;
}

int config_take_option(struct config_options *o, int c, const char *arg, struct err *e)
{
    switch (c) {
    case OPTION_SOC:
        o->soc = arg;
        return 1;
    case OPTION_LLM:
        o->llm = arg;
        return 1;
    case OPTION_TRACE:
        o->trace = arg;
        return 1;
    case OPTION_WORKLOAD:
        o->workload = arg;
        return 1;
    case OPTION_SEED:
        return take_seed(o, arg, e);
    case OPTION_TTFT_SLO:
        return cli_number("ttft-slo", arg, 1e-6, 1e6, &o->ttft_slo_s, e) != 0 ? -EINVAL : 1;
    case OPTION_TPOT_SLO:
        return cli_number("tpot-slo", arg, 1e-6, 1e6, &o->tpot_slo_s, e) != 0 ? -EINVAL : 1;
    case OPTION_SET:
        return take_set(o, arg, e);
    case OPTION_CONTENTION:
        return add_set(o, "sim.contention", arg, e);
    case OPTION_HWMODEL:
        return add_set(o, "sim.hwmodel", arg, e);
    case OPTION_KV_CAPACITY:
        return add_set(o, "sim.kv_capacity_tokens", arg, e);
    case OPTION_NO_PREFIX_REUSE:
        return add_set(o, "sim.prefix_reuse", "false", e);
    case OPTION_ANNOTATION_NOISE:
        return take_annotation(o, arg, e);
    case OPTION_TRUTH_NOISE:
        return add_set(o, "sim.truth_sigma", arg, e);
    case OPTION_HORIZON:
        return add_set(o, "sim.horizon_s", arg, e);
    case OPTION_NO_COLLAPSE:
        return add_set(o, "sim.collapse", "false", e);
    default:
        return 0;
    }
}
