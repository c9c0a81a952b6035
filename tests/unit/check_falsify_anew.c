/* The search of falsify worked out again, ask by ask: generations, confirmation, shrinking. And its
 * space: bounds, values, the command of a point. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/falsify/falsify.h"
#include "experiments/run/runner.h"
#include "sim/base/json.h"
#include "sim/base/portable.h"
#include "sim/base/rng.h"
#include "sim/base/scope.h"
#include "tests/helpers/suite.h"

static struct config_options options;
static struct config config;
static struct space space;

static void open_on(const char *soc, const char *workload, const char *over)
{
    struct err e = ERR_INIT;
    options = config_options_default();
    options.soc = soc != NULL ? soc : options.soc;
    options.workload = workload;
    ck_assert_int_eq(config_load(&config, &options, &e), 0);
    ck_assert_int_eq(space_init(&space, &options, &config, over, &e), 0);
}

static void open_space(const char *workload, const char *over)
{
    open_on(NULL, workload, over);
}

static void close_space(void)
{
    config_fini(&config);
}

static uint32_t axis(const char *name)
{
    uint32_t i = 0;
    while (strcmp(space.axis[i].name, name) != 0) {
        i++;
        ck_assert_uint_lt(i, space.n);
    }
    return i;
}

/* ---- the search ---- */

#define MOST 20000

struct asked {
    double u[SPACE_MAX_AXES];
    uint32_t first, n;
};

static struct asked asked[MOST];
static uint32_t n_asked;
static bool undefined; /* a fifth of the space has no loss */

/* The loss has a ridge along two axes, a slope along a third, and noise of the replication. */
static double loss_of(const double *u, uint32_t replication)
{
    uint32_t rate = axis("reactive_per_min");
    uint32_t npu = axis("npu_rate");
    uint32_t kv = axis("kv");
    if (undefined && u[kv] < 0.2) {
        return (double)NAN;
    }
    double ridge = 0.6 - 2.0 * fabs(u[rate] - 0.8) - 1.5 * fabs(u[npu] - 0.15);
    return ridge + 0.05 * u[axis("burst")] + 0.02 * sin(7.0 * replication + 3.0 * u[rate]);
}

static void measure(void *ctx, const struct falsify_ask *ask, double *loss)
{
    (void)ctx;
    for (uint32_t p = 0; p < ask->n_points; p++) {
        ck_assert_uint_lt(n_asked, MOST);
        memcpy(asked[n_asked].u, ask->points[p].u, sizeof asked[n_asked].u);
        asked[n_asked].first = ask->first;
        asked[n_asked++].n = ask->n;
        for (uint32_t k = 0; k < ask->n; k++) {
            loss[p * ask->n + k] = loss_of(ask->points[p].u, ask->first + k);
        }
    }
}

/* Repeats the search: each point that it would ask is compared with the one that was asked. */
struct again {
    const struct falsify_options *o;
    uint32_t at;
    double nominal[SPACE_MAX_AXES], worst[SPACE_MAX_AXES], worst_loss, confirmed;
    uint32_t out;
};

static void next(struct again *g, const double *u, uint32_t first, uint32_t n)
{
    ck_assert_uint_lt(g->at, n_asked);
    for (uint32_t a = 0; a < space.n; a++) {
        ck_assert_msg(fabs(asked[g->at].u[a] - u[a]) < 1e-12, "ask %u, axis %u: %g, again %g",
                      g->at, a, asked[g->at].u[a], u[a]);
    }
    ck_assert_uint_eq(asked[g->at].first, first);
    ck_assert_uint_eq(asked[g->at].n, n);
    g->at++;
}

static double mean_over(const double *u, uint32_t first, uint32_t n)
{
    double sum = 0.0;
    for (uint32_t k = 0; k < n; k++) {
        sum += loss_of(u, first + k);
    }
    return sum / n;
}

/* A generation: points, what they lose, and the best of them first. */
static void generations(struct again *g)
{
    double mean[SPACE_MAX_AXES], width[SPACE_MAX_AXES];
    struct rng r;
    rng_init(&r, rng_key(g->o->seed, RNG_FALSIFY, 0, 0));
    g->worst_loss = (double)NAN;
    for (uint32_t tried = 0; tried < g->o->budget;) {
        static double u[32][SPACE_MAX_AXES], loss[32];
        uint32_t n = tried == 0 ? 32 : 16;
        n = n < g->o->budget - tried ? n : g->o->budget - tried;
        if (tried == 0) { /* a random order of the n-ths of every axis, each taken once */
            for (uint32_t a = 0; a < space.n; a++) {
                uint32_t order[32];
                for (uint32_t i = 0; i < n; i++) {
                    uint32_t j = rng_below(&r, i + 1);
                    order[i] = i;
                    order[i] = order[j];
                    order[j] = i;
                }
                for (uint32_t i = 0; i < n; i++) {
                    u[i][a] = (order[i] + rng_uniform(&r)) / n;
                }
                u[0][a] = g->nominal[a];
            }
        } else {
            for (uint32_t i = 0; i < n; i++) {
                for (uint32_t a = 0; a < space.n; a++) {
                    double x = mean[a] + width[a] * rng_normal(&r);
                    u[i][a] = x < 0.0 ? 0.0 : x > 1.0 ? 1.0 : x;
                }
            }
        }
        bool taken[32] = {false};
        for (uint32_t i = 0; i < n; i++) {
            next(g, u[i], 0, g->o->replications);
            loss[i] = mean_over(u[i], 0, g->o->replications);
            g->out += isnan(loss[i]) ? 1 : 0;
            if (!isnan(loss[i]) && !(loss[i] <= g->worst_loss)) {
                g->worst_loss = loss[i];
                memcpy(g->worst, u[i], sizeof g->worst);
            }
        }
        uint32_t best[32];
        uint32_t elite = 0;
        uint32_t wanted = n / 4 > 2 ? n / 4 : 2;
        for (; elite < wanted; elite++) {
            int top = -1;
            for (uint32_t i = 0; i < n; i++) {
                top =
                    !taken[i] && !isnan(loss[i]) && (top < 0 || loss[i] > loss[top]) ? (int)i : top;
            }
            if (top < 0) {
                break;
            }
            taken[top] = true;
            best[elite] = (uint32_t)top;
        }
        for (uint32_t a = 0; a < space.n && elite > 0; a++) {
            double m = 0.0;
            double s = 0.0;
            for (uint32_t i = 0; i < elite; i++) {
                m += u[best[i]][a] / elite;
            }
            for (uint32_t i = 0; i < elite; i++) {
                s += pow(u[best[i]][a] - m, 2.0) / elite;
            }
            mean[a] = tried == 0 ? m : 0.3 * mean[a] + 0.7 * m;
            width[a] = tried == 0 ? sqrt(s) : 0.3 * width[a] + 0.7 * sqrt(s);
            width[a] = width[a] < 0.04 ? 0.04 : width[a];
        }
        tried += n;
    }
}

/* Whether the policy still loses enough at p with an axis moved to x: above the relevance, and half
 * of what was confirmed. */
static bool kept(struct again *g, double *p, uint32_t a, double x)
{
    double less[SPACE_MAX_AXES];
    double v[64];
    memcpy(less, p, sizeof less);
    less[a] = x;
    next(g, less, 200000, g->o->confirm);
    for (uint32_t k = 0; k < g->o->confirm; k++) {
        v[k] = loss_of(less, 200000 + k);
    }
    struct stats_interval s = stats_mean(v, g->o->confirm, STATS_LEVEL_FRAC);
    bool yes = s.low > log(1.0 + g->o->relevance_frac) && s.mean >= g->confirmed / 2.0;
    if (yes) {
        p[a] = x;
    }
    return yes;
}

/* Changed axes by how far they are from what was given, nearest first. */
static uint32_t changed(const struct again *g, const double *p, uint32_t *order)
{
    struct space_point at;
    bool listed[SPACE_MAX_AXES] = {false};
    uint32_t n = 0;
    memcpy(at.u, p, sizeof at.u);
    for (;;) {
        int nearest = -1;
        for (uint32_t a = 0; a < space.n; a++) {
            if (!listed[a] && !space_is_nominal(&space, &at, a) &&
                (nearest < 0 ||
                 fabs(p[a] - g->nominal[a]) < fabs(p[nearest] - g->nominal[nearest]))) {
                nearest = (int)a;
            }
        }
        if (nearest < 0) {
            return n;
        }
        listed[nearest] = true;
        order[n++] = (uint32_t)nearest;
    }
}

static void shrunk(struct again *g, double *p)
{
    uint32_t order[SPACE_MAX_AXES];
    memcpy(p, g->worst, sizeof g->worst);
    for (bool smaller = true; smaller;) {
        uint32_t n = changed(g, p, order);
        smaller = false;
        for (uint32_t i = 0; i < n; i++) {
            smaller = kept(g, p, order[i], g->nominal[order[i]]) || smaller;
        }
    }
    uint32_t n = changed(g, p, order);
    for (uint32_t i = 0; i < n; i++) {
        double way = g->nominal[order[i]] - p[order[i]];
        for (int k = 0; k < 3; k++) {
            way /= 2.0;
            (void)kept(g, p, order[i], p[order[i]] + way);
        }
    }
}

static const struct falsify_options searches[] = {{.metric = "m",
                                                   .budget = 100,
                                                   .replications = 2,
                                                   .confirm = 10,
                                                   .relevance_frac = 0.01,
                                                   .seed = 1},
                                                  {.metric = "m",
                                                   .budget = 77,
                                                   .replications = 1,
                                                   .confirm = 5,
                                                   .relevance_frac = 0.05,
                                                   .seed = 2},
                                                  {.metric = "m",
                                                   .budget = 5,
                                                   .replications = 3,
                                                   .confirm = 4,
                                                   .relevance_frac = 0.9,
                                                   .seed = 3}, /* nothing is found */
                                                  {.metric = "m",
                                                   .budget = 60,
                                                   .replications = 2,
                                                   .confirm = 6,
                                                   .relevance_frac = 0.02,
                                                   .seed = 4}};

START_TEST(a_search_asks_what_a_second_one_would)
{
    static struct falsify_result r;
    struct again g = {.o = &searches[_i]};
    double least[SPACE_MAX_AXES];
    open_space("mixed:duration_s=60", "workload,machine");
    undefined = _i % 2 == 1;
    n_asked = 0;
    falsify_search(g.o, &space, measure, NULL, &r);
    struct space_point nominal = space_nominal(&space);
    memcpy(g.nominal, nominal.u, sizeof g.nominal);
    next(&g, g.nominal, 100000, g.o->confirm);
    ck_assert_double_eq_tol(r.given.mean, mean_over(g.nominal, 100000, g.o->confirm), 1e-12);
    generations(&g);
    ck_assert_uint_eq(r.n_tried, g.o->budget);
    ck_assert_uint_eq(r.n_out, g.out);
    ck_assert_int_eq(g.out > 0, undefined);
    ck_assert_double_eq_tol(r.worst_searched, g.worst_loss, 1e-12);
    for (uint32_t a = 0; a < space.n; a++) {
        ck_assert_double_eq_tol(r.worst.u[a], g.worst[a], 1e-12);
    }
    next(&g, g.worst, 100000, g.o->confirm);
    g.confirmed = mean_over(g.worst, 100000, g.o->confirm);
    ck_assert_double_eq_tol(r.worst_confirmed.mean, g.confirmed, 1e-12);
    ck_assert_int_eq(r.found, r.worst_confirmed.low > log(1.0 + g.o->relevance_frac));
    ck_assert_int_eq(r.found, _i != 2);
    if (r.found) {
        shrunk(&g, least);
        for (uint32_t a = 0; a < space.n; a++) {
            ck_assert_double_eq_tol(r.least.u[a], least[a], 1e-12);
        }
        next(&g, least, 300000, g.o->confirm);
        ck_assert_double_eq_tol(r.least_confirmed.mean, mean_over(least, 300000, g.o->confirm),
                                1e-12);
        ck_assert_uint_eq(r.least_first, 300000);
        for (uint32_t k = 0; k < g.o->confirm; k++) {
            ck_assert_double_eq_tol(r.least_loss[k], loss_of(least, 300000 + k), 1e-12);
        }
    }
    ck_assert_uint_eq(g.at, n_asked);
    close_space();
}
END_TEST

/* ---- the space ---- */

/* As the papers' loads and neighbouring machines have it; what is given widens it. */
static const struct {
    const char *name;
    double low, high, nominal;
    bool machine, logarithmic;
} wanted[] = {{"reactive_per_min", 0.25, 12, 3, false, true},
              {"proactive_per_min", 0.25, 50, 50, false, true}, /* given */
              {"burst", 1, 8, 1, false, true},
              {"reactive_input_scale", 0.1, 4, 0.1, false, true}, /* given */
              {"proactive_input_scale", 0.25, 4, 1, false, true},
              {"reactive_output_scale", 0.25, 4, 1, false, true},
              {"proactive_output_scale", 0.25, 4, 1, false, true},
              {"sessions", 0, 1, 0, false, false},
              {"kv", 0.1, 1, 1, true, true},
              {"ddr", 0.5, 2, 1, true, true},
              {"npu_rate", 0.25, 4, 1, true, true},
              {"igpu_rate", 0.5, 2, 1, true, true}};

START_TEST(axes_have_their_bounds_and_values)
{
    open_space("mixed:proactive_per_min=50,cv=0.5,reactive_input_scale=0.1,duration_s=60",
               "workload,machine");
    ck_assert_uint_eq(space.n, sizeof wanted / sizeof wanted[0]);
    struct space_point nominal = space_nominal(&space);
    for (uint32_t i = 0; i < space.n; i++) {
        const struct space_axis *a = &space.axis[i];
        ck_assert_str_eq(a->name, wanted[i].name);
        ck_assert_double_eq(a->low, wanted[i].low);
        ck_assert_double_eq(a->high, wanted[i].high);
        ck_assert_double_eq(a->nominal, wanted[i].nominal);
        ck_assert(a->machine == wanted[i].machine && a->logarithmic == wanted[i].logarithmic &&
                  !a->agents);
        ck_assert(space_is_nominal(&space, &nominal, i));
        ck_assert_double_eq(space_value(&space, &nominal, i), wanted[i].nominal);
        for (int k = 0; k <= 10; k++) {
            struct space_point p = nominal;
            p.u[i] = k / 10.0;
            double v = wanted[i].logarithmic
                           ? exp(log(wanted[i].low) +
                                 k / 10.0 * (log(wanted[i].high) - log(wanted[i].low)))
                           : k / 10.0;
            double step = pow(10.0, floor(log10(v > 0.0 ? v : 1.0)) - 1.0); /* two digits */
            double rounded = wanted[i].logarithmic ? round(v / step) * step : v >= 0.5 ? 1.0 : 0.0;
            double got = space_value(&space, &p, i);
            ck_assert_msg(fabs(got - rounded) <= 1e-9 + (got == wanted[i].nominal ? step : 0.0),
                          "%s at %d: %g, not %g", a->name, k, got, rounded);
            ck_assert_int_eq(space_is_nominal(&space, &p, i), got == wanted[i].nominal);
        }
    }
    close_space();
}
END_TEST

/* Given keys come back, changed axes are added, and so is the share of time of bursts, rounded
 * down. */
START_TEST(a_point_is_a_command)
{
    open_space("mixed:proactive_per_min=6,cv=0.5,duration_s=60", "workload");
    struct space_point p = space_nominal(&space);
    OWNED char *as_given = space_command(&space, &p);
    ck_assert_str_eq(as_given, "--soc core-ultra-5-125h --llm llama-3.2-3b --workload "
                               "mixed:cv=0.5,duration_s=60,proactive_per_min=6");
    p.u[axis("burst")] = 1.0; /* 8, so an eighth */
    p.u[axis("sessions")] = 1.0;
    p.u[axis("proactive_per_min")] = 0.0;
    OWNED char *far = space_command(&space, &p);
    ck_assert_str_eq(
        far,
        "--soc core-ultra-5-125h --llm llama-3.2-3b --workload "
        "mixed:cv=0.5,duration_s=60,proactive_per_min=0.25,burst=8,active_share=0.125,sessions=1");
    p.u[axis("burst")] = log(3.0) / log(8.0);
    OWNED char *third = space_command(&space, &p);
    ck_assert_ptr_nonnull(strstr(third, ",burst=3,active_share=0.3333,"));
    /* All that the runs had: without the machine's events or the targets they are other runs. */
    options.machine = "my laptop.json";
    options.ttft_slo_s = 0.5;
    options.tpot_slo_s = 0.25;
    options.asked.reader = (struct metrics_reader){2.0, 3.5};
    options.sets[options.n_sets++] = "sim.collapse=false";
    p = space_nominal(&space);
    OWNED char *whole = space_command(&space, &p);
    ck_assert_str_eq(whole, "--soc core-ultra-5-125h --llm llama-3.2-3b --workload "
                            "mixed:cv=0.5,duration_s=60,proactive_per_min=6 --machine "
                            "'my laptop.json' --ttft-slo 0.5 --tpot-slo 0.25 --qoe 2,3.5 --set "
                            "sim.collapse=false");
    close_space();
}
END_TEST

/* Every rate and bandwidth of the machine file, by an own walk over it, times the factor of its
 * axis. */
static uint32_t walked;

static void walk(const cJSON *node, const char *path, const char *device, double npu, double igpu,
                 double ddr, const char *command)
{
    const cJSON *c;
    cJSON_ArrayForEach (c, node) {
        OWNED char *at = c->string != NULL ? xformat("%s.%s", path, c->string) : xstrdup(path);
        const cJSON *v = cJSON_GetObjectItem(c, "value");
        bool rate = c->string != NULL && strcmp(c->string, "rate") == 0;
        bool bandwidth = c->string != NULL && strcmp(c->string, "bandwidth") == 0;
        double by = bandwidth                     ? ddr
                    : !rate                       ? 0.0
                    : strcmp(device, "npu") == 0  ? npu
                    : strcmp(device, "igpu") == 0 ? igpu
                                                  : 0.0;
        if (cJSON_IsNumber(v) && by > 0.0) {
            OWNED char *set = xformat(" --set %s=%.6g", at, v->valuedouble * by);
            ck_assert_msg(strstr(command, set) != NULL, "no%s in %s", set, command);
            walked++;
        } else if (cJSON_IsObject(c) && !cJSON_IsNumber(v)) {
            walk(c, at, device, npu, igpu, ddr, command);
        }
    }
}

/* These are machines, and whether each has the axes npu_rate and igpu_rate. All have kv and ddr. */
static const struct {
    const char *soc;
    bool npu, igpu;
} machines[] = {{"core-ultra-5-125h", true, true},
                {"apple-m2-10core", false, true},
                {"rtx-4090", false, false}};

START_TEST(factors_of_the_machine_reach_every_number)
{
    open_on(machines[_i].soc, "mixed:duration_s=60", "machine");
    struct space_point p = space_nominal(&space);
    ck_assert_uint_eq(space.n, (machines[_i].npu ? 3u : 2u) + (machines[_i].igpu ? 1u : 0u));
    if (machines[_i].npu) {
        p.u[axis("npu_rate")] = 0.0; /* a quarter */
    }
    if (machines[_i].igpu) {
        p.u[axis("igpu_rate")] = 1.0; /* twice */
    }
    p.u[axis("ddr")] = 0.0; /* half */
    p.u[axis("kv")] = 0.0;  /* a tenth */
    OWNED char *command = space_command(&space, &p);
    const cJSON *soc = cJSON_GetObjectItem(config.tree, "soc");
    const cJSON *d;
    walked = 0;
    cJSON_ArrayForEach (d, cJSON_GetObjectItem(soc, "devices")) {
        const char *name = cJSON_GetObjectItem(d, "name")->valuestring;
        const cJSON *r;
        int k = 0;
        cJSON_ArrayForEach (r, cJSON_GetObjectItem(d, "runtimes")) {
            OWNED char *path = xformat("soc.devices.%s.runtimes.%d", name, k++);
            walk(r, path, name, 0.25, 2.0, 0.5, command); /* a gpu's rate has no axis */
        }
    }
    double peak =
        cJSON_GetObjectItem(cJSON_GetObjectItem(cJSON_GetObjectItem(soc, "ddr"), "peak"), "value")
            ->valuedouble;
    OWNED char *ddr = xformat(" --set soc.ddr.peak=%.6g", peak / 2.0);
    ck_assert_ptr_nonnull(strstr(command, ddr));
    double left = config.soc.machine.memory_bytes * config.soc.machine.memory_usable_frac -
                  config.sim.weight_copies * config.llm.weight_bytes;
    OWNED char *kv = xformat(" --set sim.kv_capacity_tokens=%.6g",
                             floor(floor(left / config.llm.kv_bytes_per_token * 1e6) / 1e6 / 10.0));
    ck_assert_msg(strstr(command, kv) != NULL, "no%s in %s", kv, command);
    ck_assert_uint_gt(walked, 0);
    uint32_t sets = 0;
    for (const char *at = command; (at = strstr(at, " --set ")) != NULL; at++) {
        sets++;
    }
    ck_assert_uint_eq(sets, walked + 2);
    /* Only one axis is changed. */
    p = space_nominal(&space);
    p.u[axis("kv")] = 1.0;
    OWNED char *plain = space_command(&space, &p);
    ck_assert_ptr_null(strstr(plain, "--set"));
    close_space();
}
END_TEST

/* The nominal KV is that of a run, also where runs count the memory of their runtime. */
START_TEST(nominal_kv_is_that_of_a_run)
{
    uint64_t tokens[2];
    for (int i = 0; i < 2; i++) {
        SCOPED(err_fini) struct err e = ERR_INIT;
        SCOPED(trace_fini) struct trace t = {0};
        SCOPED(runner_result_fini) struct runner_result r;
        struct config_policy p;
        const struct runner_options opt = {0};
        options = config_options_default();
        options.soc = "core-ultra-7-258v";
        options.workload = "mixed:duration_s=60";
        config_options_set(&options, i == 0 ? "soc.devices.igpu.footprint.counted=false"
                                            : "soc.devices.igpu.footprint.counted=true");
        ck_assert_int_eq(config_load(&config, &options, &e), 0);
        ck_assert_int_eq(space_init(&space, &options, &config, "machine", &e), 0);
        ck_assert_int_eq(config_policy_parse(&p, "fcfs", &e), 0);
        ck_assert_int_eq(config_trace(&options, options.seed, CONFIG_AS_WRITTEN, &t, &e), 0);
        ck_assert_int_eq(runner_run(&config, &p, &t, options.seed, &opt, &r, &e), 0);
        tokens[i] = r.sim.kv_capacity_tokens;
        ck_assert_uint_eq((uint64_t)space.kv_tokens, tokens[i]);
        close_space();
    }
    ck_assert_uint_lt(tokens[1], tokens[0]);
}
END_TEST

static const struct suite_row suite[] = {
    CASE("falsify anew"),
    LOOP(a_search_asks_what_a_second_one_would, sizeof searches / sizeof searches[0]),
    TEST(axes_have_their_bounds_and_values),
    TEST(a_point_is_a_command),
    LOOP(factors_of_the_machine_reach_every_number, sizeof machines / sizeof machines[0]),
    TEST(nominal_kv_is_that_of_a_run),
};
SUITE_MAIN("falsify anew", suite)
