/* The options that every simulating command takes. Simulation settings have no separate options,
 * only --set, so that a setting is one row of config_sim.c. */
#include "experiments/run/recordings.h"
#include "sim/metrics/metric_table.h"

struct config_options config_options_default(void)
{
    return (struct config_options){.soc = CONFIG_DEFAULT_SOC, .llm = CONFIG_DEFAULT_LLM, .seed = 1};
}

static int take_trace(void *target, const struct option_row *row UNUSED, const char *arg,
                      struct err *e)
{
    return recordings_add(target, arg, e);
}

static int take_llm(void *target, const struct option_row *row, const char *arg,
                    struct err *e UNUSED)
{
    struct config_options *o = target;
    o->llm = o->llm_given ? xkeep(xformat("%s,%s", o->llm, arg)) : arg;
    o->llm_given = arg != row->preset;
    return 0;
}

/* The index of a path's value, or n_sets. text: "path=value". */
static uint32_t place_of(const struct config_options *o, const char *text)
{
    size_t n = strcspn(text, "=") + 1;
    uint32_t i = 0;
    while (i < o->n_sets && strncmp(o->sets[i], text, n) != 0) {
        i++;
    }
    return i;
}

bool config_options_sets(const struct config_options *o, const char *text)
{
    return place_of(o, text) < o->n_sets;
}

void config_options_set(struct config_options *o, const char *text)
{
    uint32_t i = place_of(o, text);
    SIM_REQUIRE(i < CONFIG_MAX_SETS, "%s: more than %d settings", text, CONFIG_MAX_SETS);
    o->sets[i] = text;
    o->n_sets += i == o->n_sets;
}

static int take_set(void *target, const struct option_row *row UNUSED, const char *arg,
                    struct err *e)
{
    struct config_options *o = target;
    const char *equals = strchr(arg, '=');
    if (equals == NULL || equals == arg) {
        return err_add(e, "--set %s: must be PATH=VALUE, as in sim.contention=none", arg);
    }
    /* As for other options: a second value would silently replace the first. */
    if (config_options_sets(o, arg)) {
        return err_add(e, "--set %.*s: given twice; it takes one value", (int)(equals - arg), arg);
    }
    if (o->n_sets == CONFIG_MAX_SETS) {
        return err_add(e, "--set: more than %d overrides", CONFIG_MAX_SETS);
    }
    config_options_set(o, arg);
    return 0;
}

/* Adds a number, unless it is there already. Returns false if there is no room. */
static bool add_number(double v[METRICS_MAX_ASKED], uint32_t *n, double x)
{
    uint32_t i = 0;
    while (i < *n && v[i] != x) {
        i++;
    }
    if (i == METRICS_MAX_ASKED) {
        return false;
    }
    v[i] = x;
    *n = i == *n ? i + 1 : *n;
    return true;
}

static bool add_quantile(struct metrics_asked *a, double percent)
{
    return metrics_quantile_is_usual(percent) || add_number(a->percent, &a->n_percents, percent);
}

void config_options_metric(struct config_options *o, const char *metric)
{
    double percent = metric_quantile(metric);
    double limit = metric_limit(metric);
    if (!isnan(limit)) {
        (void)add_number(o->asked.limit, &o->asked.n_limits, limit);
    } else if (percent > 0.0) {
        (void)add_quantile(&o->asked, percent);
    }
    if (strstr(metric, ".qoe.") != NULL && !(o->asked.reader.tokens_per_s > 0.0)) {
        o->asked.reader = METRICS_READER;
    }
}

/* Metric names print %g, so numbers with more digits could share a name. */
static bool is_nameable(double x)
{
    OWNED char *text = xformat("%g", x);
    return strtod(text, NULL) == x;
}

static int take_quantile(void *target, const struct option_row *row UNUSED, const char *arg,
                         struct err *e)
{
    struct config_options *o = target;
    OWNED char *name = xformat(".p%s", arg);
    double percent = metric_quantile(name);
    if (percent == 0.0) {
        return err_add(e, "--quantile %s: must be a percentage between 0 and 100, as in 97.5", arg);
    }
    if (!is_nameable(percent)) {
        return err_add(e, "--quantile %s: has more than six digits", arg);
    }
    if (!add_quantile(&o->asked, percent)) {
        return err_add(e, "--quantile %s: at most %d", arg, METRICS_MAX_ASKED);
    }
    return 0;
}

static int take_limit(void *target, const struct option_row *row UNUSED, const char *arg,
                      struct err *e)
{
    struct config_options *o = target;
    OWNED char *name = xformat(".below:%s", arg);
    double limit = metric_limit(name);
    if (isnan(limit)) {
        return err_add(e, "--below %s: must be a number of at least 0", arg);
    }
    if (!is_nameable(limit)) {
        return err_add(e, "--below %s: has more than six digits", arg);
    }
    if (!add_number(o->asked.limit, &o->asked.n_limits, limit)) {
        return err_add(e, "--below %s: at most %d", arg, METRICS_MAX_ASKED);
    }
    return 0;
}

static int take_reader(void *target, const struct option_row *row UNUSED, const char *arg,
                       struct err *e)
{
    struct config_options *o = target;
    struct metrics_reader *r = &o->asked.reader;
    int end = 0;
    int n = sscanf(arg, "%lf,%lf%n", &r->ttft_s, &r->tokens_per_s, &end);
    if (n != 2 || arg[end] != '\0' || !(r->ttft_s >= 0.0 && r->ttft_s <= 1e6) ||
        !(r->tokens_per_s >= 1e-3 && r->tokens_per_s <= 1e6)) {
        return err_add(e,
                       "--qoe %s: must be seconds to the first token and tokens per second, as "
                       "in 1,4.8",
                       arg);
    }
    return 0;
}

#define OPTIONS struct config_options

static const struct option_row rows[] = {
    OPTION_ROW(TEXT, OPTIONS, soc, const char *, "soc", "S", "shipped SoC or FILE.json",
               .preset = CONFIG_DEFAULT_SOC, .given = 1 + OPTION_AT(OPTIONS, soc_given, bool)),
    {.name = "llm",
     .value = "[NAME=]M[:bits=N]",
     .preset = CONFIG_DEFAULT_LLM,
     .take = take_llm,
     .kind = OPTION_KIND_OWN,
     .repeats = true,
     .help =
         "shipped model or FILE.json; `M:bits=4` takes it with weights of 4 bits. Repeated, for "
         "several models: the first is the default, and requests ask for others by NAME, or by "
         "the name of their file"},
    OPTION_OWN_LIST(take_trace, "trace", "FILE",
                    "recorded requests: a trace CSV. Commands that replicate also take several, a "
                    "folder, or a pattern"),
    OPTION_TEXT(OPTIONS, workload, "workload", "W", NULL,
                "workload of a generator (default " CONFIG_DEFAULT_WORKLOAD ")"),
    OPTION_TEXT(OPTIONS, machine, "machine", "FILE", NULL,
                "events of the machine from a JSON file: memory, power, battery, frames; in the "
                "place of those of the workload or trace"),
    OPTION_ROW(SEED, OPTIONS, seed, uint64_t, "seed", "N",
               "seed of workload, noise and policies that draw random numbers", .preset = "1",
               .given = 1 + OPTION_AT(OPTIONS, seed_given, bool)),
    OPTION_NUMBER(OPTIONS, ttft_slo_s, "ttft-slo", "S", NULL, 1e-6, 1e6,
                  "TTFT target of every request without one, for *.slo_attainment_frac"),
    OPTION_NUMBER(OPTIONS, tpot_slo_s, "tpot-slo", "S", NULL, 1e-6, 1e6,
                  "target per output token after the first, for the same metric"),
    OPTION_OWN_LIST(take_quantile, "quantile", "P",
                    "further quantile of every distribution, in percent: 97.5 is `.p97.5`; "
                    "repeated (default: p50, p90, p95 and p99)"),
    OPTION_OWN_LIST(take_limit, "below", "X",
                    "share of every distribution that is at most X: 2 is `.below:2`; repeated"),
    OPTION_OWN(take_reader, "qoe", "TTFT,SPEED",
               "compute the quality of experience of a user who expects the first token after TTFT "
               "s and reads SPEED tokens per second (default where a metric asks for it: 1,4.8)"),
    OPTION_OWN_LIST(
        take_set, "set", "PATH=VALUE",
        "set any value of the configuration: soc.X, llm.X or sim.X, as in sim.contention=none; "
        "may be repeated. `xpusim list setting` names those of sim"),
};

const struct option_table config_option_table = OPTION_TABLE("Machine and workload", rows);

bool config_options_say_run(const struct config_options *o)
{
    return o->soc_given || o->llm_given || o->trace != NULL || o->workload != NULL ||
           o->machine != NULL || o->n_sets > 0 || o->seed_given || o->ttft_slo_s > 0.0 ||
           o->tpot_slo_s > 0.0;
}

void config_options_overlay(struct config_options *base, const struct config_options *over)
{
    base->soc = over->soc != NULL ? over->soc : base->soc;
    base->llm = over->llm != NULL ? over->llm : base->llm;
    base->llm_given = base->llm_given || over->llm != NULL;
    if (over->trace != NULL || over->workload != NULL) { /* a trace or a workload, not both */
        base->trace = over->trace;
        base->workload = over->workload;
        base->recordings = over->recordings;
        base->n_recordings = over->n_recordings;
    }
    base->machine = over->machine != NULL ? over->machine : base->machine;
    base->seed = over->seed_given ? over->seed : base->seed;
    base->ttft_slo_s = over->ttft_slo_s > 0.0 ? over->ttft_slo_s : base->ttft_slo_s;
    base->tpot_slo_s = over->tpot_slo_s > 0.0 ? over->tpot_slo_s : base->tpot_slo_s;
    for (uint32_t i = 0; i < over->asked.n_percents; i++) {
        (void)add_quantile(&base->asked, over->asked.percent[i]);
    }
    for (uint32_t i = 0; i < over->asked.n_limits; i++) {
        (void)add_number(base->asked.limit, &base->asked.n_limits, over->asked.limit[i]);
    }
    base->asked.reader =
        over->asked.reader.tokens_per_s > 0.0 ? over->asked.reader : base->asked.reader;
    for (uint32_t i = 0; i < over->n_sets && base->n_sets < CONFIG_MAX_SETS; i++) {
        config_options_set(base, over->sets[i]);
    }
}

uint32_t config_options_words(const struct config_options *o,
                              struct config_word words[CONFIG_MAX_WORDS])
{
    const struct metrics_reader *r = &o->asked.reader;
    const struct config_word given[] = {
        {"soc", o->soc},
        {"llm", o->llm},
        {"workload", o->workload},
        {"trace", o->trace},
        {"machine", o->machine},
        {"ttft-slo", o->ttft_slo_s > 0.0 ? xkeep(xformat("%.15g", o->ttft_slo_s)) : NULL},
        {"tpot-slo", o->tpot_slo_s > 0.0 ? xkeep(xformat("%.15g", o->tpot_slo_s)) : NULL},
        {"qoe",
         r->tokens_per_s > 0.0 ? xkeep(xformat("%.15g,%.15g", r->ttft_s, r->tokens_per_s)) : NULL},
    };
    uint32_t n = 0;
    for (size_t i = 0; i < sizeof given / sizeof given[0]; i++) {
        words[n] = given[i];
        n += given[i].value != NULL;
    }
    for (uint32_t i = 0; i < o->n_sets; i++) {
        words[n++] = (struct config_word){"set", o->sets[i]};
    }
    return n;
}
