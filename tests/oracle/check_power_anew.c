/* The watts and speeds of a machine by a second implementation. An observer keeps the phase of
 * every device. After each instant of a random run, formulas give the state that must last until
 * the next one:
 *
 *   the step of each governor
 *   the speed that power limits leave
 *   the watts of each device
 *   the watts of the host
 *
 * The formulas are those at the heads of sim/engine/governor.c, throttle.c and power.c. Machines
 * have steps of frequency, a limit of the average power, a cap that comes and goes, and a host that
 * samples for long. */
#include <math.h>
#include <string.h>

#include "experiments/run/runner.h"
#include "policies/registry.h"
#include "sim/base/units.h"
#include "tests/helpers/randomrun.h"
#include "tests/helpers/suite.h"

#define REACHED (1.0 - 1e-9) /* share of a limit from which on the average counts as at it */

static const char *const policies[] = {
    "agent-xpu-v2",      "agent-xpu-v1",   "vllm-v1",     "hhpf",
    "recompute-preempt", "sarathi-hetero", "openvino-cb", "llm-npu"};

/* A governor that follows its device's utilisation. */
struct governed {
    uint32_t step;
    bool busy, tied; /* tied: the device changed at the very end of a period, before it or after */
    int64_t busy_since_ns, busy_ns, period_end_ns; /* 0: no period */
};

static struct sim_setup setup;
static struct governed governor[MACHINE_MAX_DEVICES];
static double watts[OBSERVER_DOMAINS], step_speed[MACHINE_MAX_DEVICES];
static enum power_phase phase[OBSERVER_DOMAINS];
static double speed, cap_watts, average_watts;
static int64_t at_ns;
static uint32_t tails; /* passes that the host samples now */
static bool tails_known;
static const char *run;

/* Counts over all runs. The test asserts that none of them is 0. */
static uint64_t n_steps, n_limits, n_caps;

static void near(const char *what, double got, double want)
{
    ck_assert_msg(fabs(got - want) <= 1e-9 * (1.0 + fabs(want)),
                  "%s, %lld ns: %s is %.12g, not %.12g", run, (long long)at_ns, what, got, want);
}

/* ---- governors ---- */

static double full_watts_of(uint32_t d, enum power_phase of)
{
    const struct device *x = &setup.machine->devices[d];
    return of == POWER_PHASE_PREFILL ? x->prefill_watts : x->decode_watts;
}

static uint32_t cheapest_step(uint32_t d)
{
    const struct sim_dvfs *g = &setup.dvfs[d];
    double idle = setup.machine->devices[d].idle_watts;
    uint32_t best = 0;
    double least = INFINITY;
    for (uint32_t i = 0; i < g->n; i++) {
        double above = (full_watts_of(d, phase[d]) - idle) * g->steps[i].power;
        double joules = (setup.machine->idle_watts + idle + above) / g->steps[i].speed;
        best = joules <= least ? i : best; /* of equal ones the fastest */
        least = fmin(least, joules);
    }
    return best;
}

static void end_period(uint32_t d)
{
    const struct sim_dvfs *g = &setup.dvfs[d];
    struct governed *x = &governor[d];
    int64_t end_ns = x->period_end_ns;
    x->busy_ns += x->busy ? end_ns - x->busy_since_ns : 0;
    x->busy_since_ns = end_ns;
    double wanted = g->headroom * (double)x->busy_ns / (double)g->period_ns *
                    g->steps[x->step].speed * (1.0 - 1e-9);
    uint32_t to = 0;
    while (to + 1 < g->n && g->steps[to].speed < wanted) {
        to++;
    }
    n_steps += to != x->step;
    x->step = to;
    x->busy_ns = 0;
    x->period_end_ns = x->busy || to > 0 ? end_ns + g->period_ns : 0;
}

static void governor_works(uint32_t d, bool busy)
{
    const struct sim_dvfs *g = &setup.dvfs[d];
    struct governed *x = &governor[d];
    if (g->rule == SIM_DVFS_ENERGY) {
        x->step = busy ? cheapest_step(d) : x->step;
    } else if (busy != x->busy) {
        x->tied = x->tied || (x->period_end_ns > 0 && x->period_end_ns - g->period_ns == at_ns);
        x->busy_ns += x->busy ? at_ns - x->busy_since_ns : 0;
        x->busy_since_ns = at_ns;
        if (x->period_end_ns == 0) {
            x->busy_ns = 0;
            x->period_end_ns = at_ns + g->period_ns;
        }
    }
    x->busy = busy;
}

/* ---- after an instant ---- */

static double total_watts(void)
{
    double sum = setup.machine->idle_watts;
    for (uint32_t i = 0; i < OBSERVER_DOMAINS; i++) {
        sum += watts[i];
    }
    return sum;
}

/* Returns the watts of a device that no power limit slows. */
static double unlimited_watts(uint32_t d)
{
    double idle = setup.machine->devices[d].idle_watts;
    double power = setup.dvfs[d].n > 0 ? setup.dvfs[d].steps[governor[d].step].power : 1.0;
    return phase[d] == POWER_PHASE_IDLE ? idle : idle + (full_watts_of(d, phase[d]) - idle) * power;
}

/* Returns the speed at which fixed + above x speed^exponent is the allowed power. */
static double speed_by_limits(void)
{
    const struct sim_throttle *s = &setup.throttle;
    double fixed = total_watts(), above = 0.0, allowed = INFINITY;
    for (uint32_t d = 0; d < setup.machine->n_devices; d++) {
        double idle = setup.machine->devices[d].idle_watts;
        fixed -= watts[d] - idle;
        above += unlimited_watts(d) - idle;
    }
    bool limited = s->limit_watts > 0.0 && average_watts >= s->limit_watts * REACHED;
    allowed = s->burst_watts > 0.0 ? s->burst_watts : allowed;
    allowed = cap_watts > 0.0 ? fmin(allowed, cap_watts) : allowed;
    allowed = limited ? fmin(allowed, s->limit_watts) : allowed;
    n_limits += limited;
    n_caps += cap_watts > 0.0 && fixed + above > cap_watts;
    if (above <= 0.0 || fixed + above <= allowed) {
        return 1.0;
    }
    return fmax(s->min_speed, pow(fmax(allowed - fixed, 0.0) / above, 1.0 / s->exponent));
}

static double host_watts(void)
{
    bool busy = false;
    for (uint32_t d = 0; d < setup.machine->n_devices; d++) {
        busy = busy || phase[d] != POWER_PHASE_IDLE;
    }
    bool polls = (setup.policy->flags & POLICY_F_BUSY_POLL) != 0 && busy;
    return setup.machine->compile_watts * tails + (polls ? setup.machine->poll_watts : 0.0);
}

static void check_state(void)
{
    bool tied = false;
    for (uint32_t d = 0; d < setup.machine->n_devices; d++) {
        tied = tied || governor[d].tied;
    }
    if (tied) {
        return;
    }
    near("the speed", speed, speed_by_limits());
    for (uint32_t d = 0; d < setup.machine->n_devices; d++) {
        double idle = setup.machine->devices[d].idle_watts;
        double share = pow(speed, setup.throttle.exponent);
        near("a device's step", step_speed[d],
             setup.dvfs[d].n > 0 ? setup.dvfs[d].steps[governor[d].step].speed : 1.0);
        near("a device's power", watts[d], idle + (unlimited_watts(d) - idle) * share);
    }
    if (tails_known) {
        near("the host's power", watts[OBSERVER_DOMAIN_HOST], host_watts());
    }
}

/* Moves the average over a stretch in which nothing changed. Had it met its limit on the way, no
 * other speed would have been left. */
static void move_average(int64_t now_ns)
{
    const struct sim_throttle *s = &setup.throttle;
    double drawn = total_watts();
    double keep = exp(-units_s_from_ns(now_ns - at_ns) / s->tau_s);
    average_watts = drawn + (average_watts - drawn) * keep;
    if (average_watts > s->limit_watts * (1.0 + 1e-6)) {
        near("the speed until now", speed, speed_by_limits());
    }
}

/* Goes on to the instant of a hook. */
static void follow(int64_t now_ns)
{
    if (now_ns == at_ns) {
        return;
    }
    check_state();
    if (setup.throttle.limit_watts > 0.0) {
        move_average(now_ns);
    }
    for (uint32_t d = 0; d < setup.machine->n_devices; d++) {
        struct governed *x = &governor[d];
        while (x->period_end_ns > 0 && x->period_end_ns <= now_ns) {
            uint32_t was = x->step;
            int64_t end_ns = x->period_end_ns;
            end_period(d);
            ck_assert_msg(x->step == was || end_ns == now_ns || x->tied,
                          "%s: device %u has no step at %lld ns", run, d, (long long)end_ns);
        }
    }
    at_ns = now_ns;
}

/* ---- hooks ---- */

static void on_power(void *self, int64_t now_ns, uint8_t domain, enum power_phase to, double drawn)
{
    (void)self;
    follow(now_ns);
    phase[domain] = to;
    watts[domain] = drawn;
    if (domain < setup.machine->n_devices && setup.dvfs[domain].n > 0) {
        governor_works(domain, to != POWER_PHASE_IDLE);
    }
}

static void on_step(void *self, int64_t now_ns, uint8_t device, double to)
{
    (void)self;
    follow(now_ns);
    step_speed[device] = to;
}

static void on_speed(void *self, int64_t now_ns, double to)
{
    (void)self;
    follow(now_ns);
    speed = to;
}

static void on_conditions(void *self, int64_t now_ns, const struct machine_state *now)
{
    (void)self;
    follow(now_ns);
    cap_watts = now->power_limit_watts;
}

/* With its last kernel done, the host samples the pass. Passes that overlap others wait for these,
 * so the number of sampled passes is not known from then on. */
static void on_ended(void *self, int64_t now_ns, const struct launch *l, int64_t isolated_ns,
                     int64_t lost_ns)
{
    (void)self;
    (void)isolated_ns;
    (void)lost_ns;
    follow(now_ns);
    tails_known = tails_known && !l->pass->overlaps;
    tails += l->pass->op == l->pass->n_ops && l->pass->n_launches == 0;
}

static void on_done(void *self, int64_t now_ns, const struct pass *p)
{
    (void)self;
    (void)p;
    follow(now_ns);
    tails--;
}

static void on_end(void *self, int64_t now_ns)
{
    (void)self;
    follow(now_ns);
}

/* ---- runs ---- */

static void forget(const struct config *c, const struct config_policy *p)
{
    config_setup(c, p, NULL, 0, &setup);
    memset(watts, 0, sizeof watts);
    memset(phase, 0, sizeof phase);
    memset(governor, 0, sizeof governor);
    for (uint32_t d = 0; d < setup.machine->n_devices; d++) {
        watts[d] = setup.machine->devices[d].idle_watts;
        step_speed[d] = 1.0;
    }
    at_ns = 0;
    tails = 0;
    tails_known = true;
    cap_watts = 0.0;
    speed = 1.0;
    average_watts = total_watts();
}

/* Sets a limit of the average that is met within seconds on every second machine, and a host that
 * samples long enough for two passes at once. */
static void change(struct config *c, uint64_t number)
{
    struct config_power *p = &c->sim.power;
    p->limit = number % 2 == 0 ? CONFIG_LIMIT_THERMAL : CONFIG_LIMIT_NONE;
    p->resistance_k_per_w = 1.0;
    p->ambient_c = 0.0;
    p->limit_c = 8.0 + (double)(number % 5) * 3.0;
    p->capacity_j_per_k = 0.3;
    c->soc.machine.compile_watts = 3.0;
    c->soc.machine.poll_watts = 2.0;
    c->soc.machine.sample_ns_per_token = 20 * NS_PER_MS;
    for (uint32_t d = 0; d < c->soc.machine.n_devices; d++) {
        c->soc.machine.devices[d].idle_watts = 0.25 * (d + 1.0);
    }
}

static void try_number(const char *policy, uint64_t number)
{
    static struct randomrun how;
    static struct config c;
    static struct config_policy p;
    static char text[96];
    struct trace t;
    struct runner_result r;
    struct err e = ERR_INIT;
    (void)snprintf(text, sizeof text, "%s, %llu", policy, (unsigned long long)number);
    run = text;
    how = (struct randomrun){
        .soc = "core-ultra-5-125h", .llm = "llama-3.2-1b", .seed = number, .machine = true};
    (void)snprintf(how.policy, sizeof how.policy, "%s", policy);
    (void)snprintf(how.workload, sizeof how.workload, "%s",
                   "mixed:reactive_per_min=60,proactive_per_min=60,duration_s=10,output_scale=0.2");
    ck_assert(randomrun_load(&how, &c, &p, &t));
    change(&c, number);
    forget(&c, &p);
    struct observer o = {.power = on_power,
                         .step = on_step,
                         .speed = on_speed,
                         .conditions = on_conditions,
                         .launch_ended = on_ended,
                         .pass_done = on_done,
                         .run_ended = on_end};
    struct runner_options opt = {.observer = &o};
    ck_assert_int_eq(runner_run(&c, &p, &t, how.seed, &opt, &r, &e), 0);
    ck_assert_msg(r.sim.status == 0 && r.sim.audit.clean, "%s: %s", run, r.sim.message);
    runner_result_fini(&r);
    trace_fini(&t);
    config_fini(&c);
    err_fini(&e);
}

START_TEST(speeds_and_watts_are_what_their_formulas_give)
{
    n_steps = n_limits = n_caps = 0;
    for (uint32_t i = 0; i < suite_runs(12, 100); i++) {
        try_number(policies[_i], 100 * (uint64_t)_i + i);
    }
    ck_assert_msg(n_steps > 0 && n_limits > 0 && n_caps > 0,
                  "%s: %llu steps, %llu limits, %llu caps", policies[_i],
                  (unsigned long long)n_steps, (unsigned long long)n_limits,
                  (unsigned long long)n_caps);
}
END_TEST

static const struct suite_row suite[] = {
    CASE("power", .timeout_s = 60),
    LOOP(speeds_and_watts_are_what_their_formulas_give, sizeof policies / sizeof policies[0]),
};
SUITE_MAIN("power_anew", suite)
