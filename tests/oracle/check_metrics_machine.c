/* Metrics of the machine, computed by a second implementation. An observer keeps the events of
 * random runs in lists, and plain loops apply the definitions of sim/metrics/metrics.def to them. A
 * table names, for every part of metrics.def, the test that computes it a second time, so that none
 * is missing. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/conformance/randomload.h"
#include "policies/registry.h"
#include "sim/base/arena.h"
#include "sim/metrics/metric_table.h"
#include "sim/metrics/metrics.h"
#include "tests/helpers/suite.h"

enum { MOST = 40, LOADS = 16, ENTRIES = 1 << 16 };

static const char *const policies[] = {"program-fcfs", "vllm-v1",        "agent-xpu-v2",
                                       "hhpf",         "sarathi-hetero", "recompute-preempt"};

struct powered {
    int64_t at_ns;
    uint8_t domain;
    enum power_phase phase;
    double watts;
};
struct ran {
    uint32_t id;
    uint8_t device;
    bool reactive, over;
    int64_t begin_ns, end_ns, lead_ns, isolated_ns, lost_ns;
};
struct came {
    bool here, served, preempts[MACHINE_MAX_DEVICES];
    enum request_class cls;
    int64_t arrival_ns;
};
static struct powered *power;
static struct ran *launches;
static struct came requests[MOST];
static uint32_t n_power, n_launches, n_arrivals, in_system, at_last;
static double demand_bytes, lost_to_slowing_ns, speed, least_speed, speed_since_ns;
static double begun, missed, drawn_ns, waited_ns, latest_ns, frame_since_ns;
static bool frame_runs;
static int64_t first_ns, last_ns, last_leave_ns, end_ns;
static double latency[MOST], residual[MOST];
static uint32_t n_latencies;

static struct scenario sc;
static struct scenario_request q[MOST];

/* ---- keeping the events ---- */

static void on_power(void *self, int64_t now_ns, uint8_t d, enum power_phase phase, double watts)
{
    (void)self;
    ck_assert(n_power < ENTRIES);
    power[n_power++] = (struct powered){now_ns, d, phase, watts};
}

/* Returns whether a launch runs on the device now that has a reactive member (`reactive`), or one
 * that has none. */
static bool runs(uint8_t device, bool reactive)
{
    for (uint32_t i = 0; i < n_launches; i++) {
        if (!launches[i].over && launches[i].device == device && launches[i].reactive == reactive) {
            return true;
        }
    }
    return false;
}

static void on_arrived(void *self, int64_t now_ns, const struct request *r)
{
    (void)self;
    struct came *c = &requests[r->id];
    *c = (struct came){.here = true, .cls = r->cls, .arrival_ns = now_ns};
    for (uint8_t d = 0; d < sc.machine.n_devices; d++) {
        c->preempts[d] = r->cls == REQUEST_CLASS_REACTIVE && runs(d, false) && !runs(d, true);
    }
    first_ns = n_arrivals++ == 0 ? now_ns : first_ns;
    last_ns = now_ns;
    at_last = ++in_system;
}

static void on_finished(void *self, int64_t now_ns, const struct request *r)
{
    (void)self;
    (void)r;
    in_system--;
    last_leave_ns = now_ns;
}

static void on_started(void *self, int64_t now_ns, const struct launch *l, int64_t lead_ns)
{
    (void)self;
    ck_assert(n_launches < ENTRIES);
    launches[n_launches++] = (struct ran){.id = l->id,
                                          .device = l->device,
                                          .reactive = l->pass->has_reactive,
                                          .begin_ns = now_ns,
                                          .lead_ns = lead_ns};
}

static void on_ended(void *self, int64_t now_ns, const struct launch *l, int64_t isolated,
                     int64_t lost)
{
    (void)self;
    for (uint32_t i = 0; i < n_launches; i++) {
        if (launches[i].id == l->id && !launches[i].over) {
            launches[i].over = true;
            launches[i].end_ns = now_ns;
            launches[i].isolated_ns = isolated;
            launches[i].lost_ns = lost;
        }
    }
}

/* Returns the time between two instants in which the device runs a launch with a reactive
 * member. */
static double reactive_ns(uint8_t device, int64_t from_ns, int64_t to_ns)
{
    double sum = 0.0;
    int64_t at = from_ns;
    for (uint32_t i = 0; i < n_launches && at < to_ns; i++) { /* launches are in order of begin */
        const struct ran *v = &launches[i];
        int64_t begin = v->begin_ns > at ? v->begin_ns : at;
        int64_t end = v->over && v->end_ns < to_ns ? v->end_ns : to_ns;
        if (v->device == device && v->reactive && end > begin) {
            sum += (double)(end - begin);
            at = end;
        }
    }
    return sum;
}

static void on_service(void *self, int64_t now_ns, const struct request *r, const struct launch *l)
{
    (void)self;
    (void)now_ns;
    struct came *c = &requests[r->id];
    bool first = !c->served;
    c->served = true;
    if (!first || !c->preempts[l->device]) {
        return;
    }
    int64_t from = c->arrival_ns;
    double all = (double)(now_ns - from) - reactive_ns(l->device, from, l->start_ns);
    double rest = 0.0;
    for (uint32_t i = 0; i < n_launches; i++) { /* the first that ended there after the arrival */
        const struct ran *v = &launches[i];
        bool there = v->device == l->device && v->over && v->begin_ns <= from;
        if (there && v->end_ns >= from && rest == 0.0) {
            rest = (double)(v->end_ns - from) - reactive_ns(l->device, from, v->end_ns);
        }
    }
    latency[n_latencies] = all / 1e9;
    residual[n_latencies++] = rest / 1e9;
}

static void on_ddr(void *self, int64_t now_ns, uint64_t count, int64_t t_ns, double demand,
                   double share)
{
    (void)self;
    (void)now_ns;
    (void)share;
    demand_bytes += (double)count * demand * (double)t_ns / 1e9;
}

static void on_frame(void *self, int64_t now_ns, uint8_t device, enum frame_state to,
                     int64_t due_ns)
{
    (void)self;
    (void)device;
    missed += to == FRAME_MISSED;
    if (to == FRAME_STARTED) {
        begun++;
        waited_ns += (double)(now_ns - due_ns);
        frame_since_ns = (double)now_ns;
    } else if (to == FRAME_DONE) {
        drawn_ns += (double)now_ns - frame_since_ns;
        latest_ns = fmax(latest_ns, (double)(now_ns - due_ns));
    }
    frame_runs = to == FRAME_MISSED ? frame_runs : to == FRAME_STARTED;
}

static void on_speed(void *self, int64_t now_ns, double to)
{
    (void)self;
    if ((double)now_ns > speed_since_ns) {
        lost_to_slowing_ns += (1.0 - speed) * ((double)now_ns - speed_since_ns);
        least_speed = fmin(least_speed, speed);
    }
    speed_since_ns = (double)now_ns;
    speed = to;
}

static void on_end(void *self, int64_t now_ns)
{
    on_speed(self, now_ns, 1.0);
    drawn_ns += frame_runs ? (double)now_ns - frame_since_ns : 0.0;
    end_ns = now_ns;
}

static void forget(void)
{
    memset(requests, 0, sizeof requests);
    n_power = n_launches = n_arrivals = in_system = at_last = n_latencies = 0;
    demand_bytes = lost_to_slowing_ns = speed_since_ns = 0.0;
    begun = missed = drawn_ns = waited_ns = latest_ns = frame_since_ns = 0.0;
    frame_runs = false;
    speed = least_speed = 1.0;
    last_leave_ns = 0;
}

/* ---- the definitions ---- */

static struct metric_list got;
static const char *what; /* the run under test */

static void same(const char *name, double want)
{
    const struct metric *m = metric_list_find(&got, name);
    ck_assert_msg(m != NULL, "%s: no metric %s", what, name);
    bool undefined = isnan(want) && isnan(m->value);
    ck_assert_msg(undefined || fabs(m->value - want) <= 1e-6 * fmax(1e-3, fabs(want)),
                  "%s: %s is %.12g, not %.12g", what, name, m->value, want);
}

static void domains(void)
{
    enum power_phase phase[OBSERVER_DOMAINS] = {POWER_PHASE_IDLE};
    double watts[OBSERVER_DOMAINS] = {0.0};
    double joules[OBSERVER_DOMAINS] = {0.0};
    double overlap_ns = 0.0, compiles_ns = 0.0, peak = 0.0;
    int64_t at = 0;
    for (uint32_t d = 0; d < sc.machine.n_devices; d++) {
        watts[d] = sc.machine.devices[d].idle_watts;
    }
    for (uint32_t i = 0; i <= n_power; i++) {
        int64_t to = i < n_power ? power[i].at_ns : end_ns;
        double sum = sc.machine.idle_watts;
        for (uint32_t d = 0; d < OBSERVER_DOMAINS; d++) {
            joules[d] += watts[d] * (double)(to - at) / 1e9;
            sum += watts[d];
        }
        peak = to > at ? fmax(peak, sum) : peak;
        bool both = phase[NPU] != POWER_PHASE_IDLE && phase[IGPU] != POWER_PHASE_IDLE;
        overlap_ns += both ? (double)(to - at) : 0.0;
        bool compiles = phase[OBSERVER_DOMAIN_COMPILER] == POWER_PHASE_COMPILE;
        compiles_ns += compiles ? (double)(to - at) : 0.0;
        at = to;
        if (i < n_power) {
            phase[power[i].domain] = power[i].phase;
            watts[power[i].domain] = power[i].watts;
        }
    }
    same("npu_igpu_overlap_frac", overlap_ns / (double)end_ns);
    same("peak_power_watts", peak);
    same("compiler.energy_j", joules[OBSERVER_DOMAIN_COMPILER]);
    same("compiler.busy_frac", compiles_ns / (double)end_ns);
    same("host.energy_j", joules[OBSERVER_DOMAIN_HOST]);
}

static void launched(void)
{
    double actual = 0.0, isolated = 0.0, killed = 0.0;
    for (uint32_t i = 0; i < n_launches; i++) {
        const struct ran *v = &launches[i];
        int64_t kept_ns = v->end_ns - v->begin_ns - v->lead_ns - v->lost_ns;
        actual += kept_ns > 0 ? (double)kept_ns : 0.0; /* else it stopped before its first kernel */
        isolated += kept_ns > 0 ? (double)v->isolated_ns : 0.0;
        killed += (double)v->lost_ns;
    }
    same("contention_loss_frac", isolated > 0.0 ? (actual - isolated) / isolated : (double)NAN);
    same("killed_kernel_s", killed / 1e9);
    same("ddr.demand_frac",
         demand_bytes / (sc.machine.ddr_peak_bytes_per_s * (double)end_ns / 1e9));
}

static void conditions(void)
{
    if (least_speed < 1.0) {
        same("throttle.lost_frac", lost_to_slowing_ns / (double)end_ns);
        same("throttle.speed_min", least_speed);
    }
    if (begun + missed > 0.0) {
        same("graphics.frames", begun);
        same("graphics.missed", missed);
        same("graphics.missed_frac", missed / (missed + begun));
        same("graphics.busy_frac", drawn_ns / (double)end_ns);
        same("graphics.wait_s.mean", waited_ns / begun / 1e9);
        same("graphics.latency_s.max", latest_ns / 1e9);
    }
}

static void backlog(void)
{
    double window = (double)(last_ns - first_ns);
    double drain = fmax((double)(last_leave_ns - last_ns), 0.0);
    same("backlog.at_last_arrival", at_last);
    same("backlog.unfinished_frac", (double)at_last / n_arrivals);
    same("backlog.drain_frac", window > 0.0 ? drain / window : (double)NAN);
}

static void preempted(void)
{
    double all = 0.0, rest = 0.0, most = 0.0;
    for (uint32_t i = 0; i < n_latencies; i++) {
        all += latency[i];
        rest += residual[i];
        most = fmax(most, latency[i]);
    }
    double n = n_latencies > 0 ? n_latencies : (double)NAN;
    same("reactive.preempt_latency_s.n", n_latencies);
    same("reactive.preempt_latency_s.mean", all / n);
    same("reactive.preempt_latency_s.max", n_latencies > 0 ? most : (double)NAN);
    same("reactive.preempt_residual_s.mean", rest / n);
    same("reactive.preempt_rest_s.mean", (all - rest) / n);
}

START_TEST(metrics_of_the_machine_are_what_their_definitions_give)
{
    uint32_t preemptions = 0;
    power = xmalloc(ENTRIES * sizeof *power);
    launches = xmalloc(ENTRIES * sizeof *launches);
    for (uint64_t load = 1; load <= LOADS; load++) {
        char text[64];
        (void)snprintf(text, sizeof text, "%s, load %llu", policies[_i], (unsigned long long)load);
        what = text;
        uint32_t n = randomload_make(&sc, q, MOST, load);
        sc.machine.devices[IGPU].idle_watts = 1.5;
        sc.machine.compile_watts = load % 2 == 0 ? 4.0 : 0.0;
        sc.machine.poll_watts = load % 3 == 0 ? 2.5 : 0.0;
        const char *params = strcmp(policies[_i], "program-fcfs") == 0 ? "preempt=kernel" : "";
        scenario_policy(&sc, policy_find(policies[_i]), params);
        forget();
        struct metrics_options opt = metrics_options_default();
        struct metrics *m = metrics_new(&opt, &sc.machine);
        struct observer o = {.request_arrived = on_arrived,
                             .request_first_service = on_service,
                             .request_finished = on_finished,
                             .launch_started = on_started,
                             .launch_ended = on_ended,
                             .ddr = on_ddr,
                             .speed = on_speed,
                             .frame = on_frame,
                             .power = on_power,
                             .run_ended = on_end};
        sc.setup.observers[sc.setup.n_observers++] = &o;
        sc.setup.observers[sc.setup.n_observers++] = metrics_observer(m);
        ck_assert_msg(scenario_run(&sc, q, n, false) == 0, "%s: %s", what, sc.result.message);
        got = (struct metric_list){0};
        metrics_collect(m, &got);
        domains();
        launched();
        conditions();
        backlog();
        preempted();
        preemptions += n_latencies;
        metric_list_fini(&got);
        metrics_free(m);
        scenario_fini(&sc);
    }
    ck_assert(_i != 0 || preemptions > 0); /* program-fcfs finds devices busy */
    free(power);
    free(launches);
}
END_TEST

/* ---- no metric is missing ---- */

/* The parts of metrics.def, by the test that computes them a second time, or by hand where rows are
 * few. */
static const struct {
    const char *file, *parts;
} anew[] = {
    {"tests/oracle/check_metrics_machine.c",
     "npu_igpu_overlap_frac contention_loss_frac killed_kernel_s demand_frac graphics.frames "
     "graphics.missed graphics.missed_frac graphics.busy_frac graphics.wait_s graphics.latency_s "
     "throttle.lost_frac throttle.speed_min peak_power_watts backlog.at_last_arrival "
     "backlog.unfinished_frac backlog.drain_frac preempt_latency_s preempt_residual_s "
     "preempt_rest_s"},
    {"tests/oracle/check_metrics_anew.c",
     "ttft_s tbt_s tbt_step_s tpot_s e2e_s norm_ttft_per_input_s norm_e2e_per_token_s "
     "norm_e2e_per_output_s prefill_pending_s prefill_suspended_s decode_pending_s wait_s "
     "session_s arrived finished shed unfinished throughput_req_per_min output_tokens_per_s "
     "norm_e2e_ratio_of_sums_s preemptions evictions recomputed_tokens cached_tokens starved "
     "stops_asked arrival_rate_req_per_min arrival_cv duration_s arrival_window_s drain_s "
     "in_system fairness_jain decode_batch busy_frac prefill_frac decode_frac weighted_util_frac "
     "util_frac tier_low_frac tier_medium_frac tier_high_frac energy_j energy_active_j "
     "energy_idle_j energy_j_per_token energy_active_j_per_token energy_j_per_output_token "
     "energy_active_j_per_output_token"},
    {"tests/oracle/check_metrics_agents.c", "turn_s qoe cached_frac"},
    {"tests/conformance/check_request_graphs.c", "job_s energy_j_per_job energy_active_j_per_job"},
    {"tests/conformance/check_extrapolated.c",
     "extrapolated_frac extrapolated_rows_frac extrapolated_context_frac"},
    {"tests/conformance/check_verdict.c", "backlog.verdict"},
    {"tests/oracle/check_engine_machine.c", "battery.end_frac battery.drawn_j"},
    {"tests/oracle/check_engine_memory.c", "kv_peak_tokens"},
    {"tests/oracle/check_engine_channels.c", "memory_peak_bytes"},
    {"tests/unit/check_backlog.c",
     "backlog.growth_frac backlog.growth_t backlog.longest_rise_frac"},
    {"tests/unit/check_metrics.c",
     "goodput_req_per_min slo_attainment_frac metered.energy_j metered.energy_j_per_token "
     "metered.energy_j_per_output_token metered.watts"},
    {"tests/unit/check_supply.c", "battery.energy_j"},
    {"tests/oracle/check_engine_governor.c", "dvfs.speed_frac dvfs.changes"},
    {"tests/oracle/check_engine_buffers.c",
     "kernels.loads kernels.load_s kernels.evictions kernels.peak_bytes"},
    {"tests/unit/check_sd_npu.c", "verify verify.drafted_tokens verify.accepted_tokens"},
    /* No test computes these a second time. They are counters of the core that a run passes on. */
    {NULL, "events kernels decisions model.loads model.load_s model.load_bytes model.evictions"},
};

static bool has_word(const char *text, const char *word)
{
    size_t n = strlen(word);
    for (const char *p = strstr(text, word); p != NULL; p = strstr(p + 1, word)) {
        bool begins = p == text || p[-1] == ' ';
        if (begins && (p[n] == ' ' || p[n] == '\0')) {
            return true;
        }
    }
    return false;
}

/* Returns whether a test's source has the part in it, or the last component of its name. */
static bool names(const char *file, const char *part)
{
    const char *dot = strrchr(part, '.');
    size_t n = 0;
    char *text = NULL;
    FILE *f = fopen(file, "r");
    ck_assert_msg(f != NULL, "%s is not there", file);
    ck_assert(getdelim(&text, &n, '\0', f) > 0);
    (void)fclose(f);
    bool found = strstr(text, part) != NULL || (dot != NULL && strstr(text, dot) != NULL);
    free(text);
    return found;
}

START_TEST(every_metric_is_computed_anew_somewhere)
{
    size_t n = 0;
    const struct metric_descriptor *table = metric_table(&n);
    for (size_t i = 0; i < n; i++) {
        uint32_t found = 0;
        for (size_t k = 0; k < sizeof anew / sizeof anew[0]; k++) {
            bool here = has_word(anew[k].parts, table[i].part);
            found += here;
            ck_assert_msg(!here || anew[k].file == NULL || names(anew[k].file, table[i].part),
                          "%s does not name %s", anew[k].file, table[i].part);
        }
        ck_assert_msg(found == 1, "%s: %u tests compute it anew", table[i].part, found);
    }
}
END_TEST

static const struct suite_row suite[] = {
    TEST(every_metric_is_computed_anew_somewhere),
    LOOP(metrics_of_the_machine_are_what_their_definitions_give,
         sizeof policies / sizeof policies[0]),
};
SUITE_MAIN("metrics_machine", suite)
