/* Metrics of small runs are computed by hand where a rule and its absence differ. Targets are met
 * exactly and missed by a microsecond, and tokens come together in the warm-up. Waits are
 * suspensions, and clients have ended. */
#include <math.h>
#include <string.h>

#include "sim/base/arena.h"
#include "sim/metrics/metrics.h"
#include "tests/helpers/script.h"
#include "tests/helpers/suite.h"
#include "traces/traces.h"

#define RT REQUEST_CLASS_REACTIVE
#define BE REQUEST_CLASS_PROACTIVE
#define MS(t) ((int64_t)((t)*1e6 + 0.5))

static struct scenario sc;
static struct script x;
static struct metrics_options opt;
static struct metrics *metrics;
static struct metric_list list;

/* On the toy iGPU a prompt takes 5 ms at any length, and a decode 3 ms. */
static void setup(void)
{
    scenario_init(&sc);
    memset(&x, 0, sizeof x);
    x.device = IGPU;
    opt = metrics_options_default();
    list = (struct metric_list){0};
    metrics = NULL;
    scenario_cost(&sc, -1, OP_QKV, 5 - 3e-6, 0, 0);
    scenario_cost(&sc, -1, OP_LAYER, 3 - 1e-6, 0, 0);
}

static void teardown(void)
{
    metric_list_fini(&list);
    metrics_free(metrics);
    scenario_fini(&sc);
}

static void run(void (*step)(struct sched *, struct script *), const struct scenario_request *q,
                uint32_t n)
{
    metrics = metrics_new(&opt, &sc.machine);
    sc.setup.observers[sc.setup.n_observers++] = metrics_observer(metrics);
    x.step = step;
    int rc = script_run(&sc, &x, q, n);
    ck_assert_msg(rc == 0, "%s", sc.result.message);
    metrics_collect(metrics, &list);
}

static double get(const char *name)
{
    const struct metric *m = metric_list_find(&list, name);
    ck_assert_msg(m != NULL, "no metric %s", name);
    return m->value;
}

/* ---- targets ---- */

struct target {
    double ttft_ms, tbt_ms, deadline_ms; /* 0: none */
    bool met;
};

/* Come at 100 ms, tokens 5, 8, 11, 14 and 17 ms later: TTFT 5, four gaps of 3, end 17. */
static const struct target targets[] = {
    {5, 0, 0, true},       {4.999, 0, 0, false},  {0, 3, 0, true},  {0, 2.999, 0, false},
    {0, 0, 17, true},      {0, 0, 16.999, false}, {5, 3, 17, true}, {4.999, 3, 17, false},
    {5, 2.999, 17, false}, {5, 3, 16.999, false},
};

START_TEST(each_target_is_met_exactly_and_missed_by_a_microsecond)
{
    static const struct scenario_request q[] = {{RT, 0.1, 16, 5, 0, 0}};
    const struct target *t = &targets[_i];
    sc.trace.extras = xcalloc(1, sizeof *sc.trace.extras);
    struct trace_extra *e = &sc.trace.extras[0];
    *e = trace_extra_none();
    e->ttft_slo_ns = t->ttft_ms > 0 ? MS(t->ttft_ms) : TIME_NEVER_NS;
    e->tbt_slo_ns = t->tbt_ms > 0 ? MS(t->tbt_ms) : TIME_NEVER_NS;
    e->deadline_ns = t->deadline_ms > 0 ? MS(t->deadline_ms) : TIME_NEVER_NS;
    run(script_serve, q, 1);
    ck_assert_double_eq(get("reactive.slo_attainment_frac"), t->met ? 1.0 : 0.0);
    ck_assert_double_eq_tol(get("reactive.goodput_req_per_min"), t->met ? 60.0 / 0.017 : 0.0, 1e-6);
}
END_TEST

/* ---- quality of experience ---- */

struct experience {
    double ttft_ms, token_ms, qoe; /* expected; read within; the answer */
};

/* Five tokens come after 5, 8, 11, 14 and 17 ms. A token each 2 ms from 2 ms on is late by 3, 4, 5,
 * 6 and 7 ms. The last one is read at 19, so that the areas of the expected are 16, 14, 12, 10 and
 * 8. Where reading takes 4 ms a token, only the first is late, and the reader stays 1 ms behind: 5
 * of 19 + 15 + 11 + 7 + 3. */
static const struct experience experiences[] = {
    {2, 2, 1.0 - 25.0 / 60.0}, {4, 4, 1.0 - 5.0 / 55.0}, {5, 4, 1.0}, {9, 3, 1.0}};

START_TEST(a_reader_is_late_by_what_the_tokens_are)
{
    static const struct scenario_request q[] = {{RT, 0.1, 16, 5, 0, 0}};
    const struct experience *t = &experiences[_i];
    opt.asked.reader = (struct metrics_reader){t->ttft_ms / 1e3, 1e3 / t->token_ms};
    run(script_serve, q, 1);
    ck_assert_double_eq_tol(get("reactive.qoe.mean"), t->qoe, 1e-9);
}
END_TEST

/* A token or none has no gaps to miss: only the other targets count. */
START_TEST(one_token_has_no_gap_to_miss)
{
    static const struct scenario_request q[] = {{RT, 0, 16, 1, 0, 0}};
    sc.trace.extras = xcalloc(1, sizeof *sc.trace.extras);
    sc.trace.extras[0] = trace_extra_none();
    sc.trace.extras[0].tbt_slo_ns = 1;
    run(script_serve, q, 1);
    ck_assert_double_eq(get("reactive.slo_attainment_frac"), 1.0);
}
END_TEST

/* ---- what is left when a run is cut off ---- */

/* Request 0 takes 5 ms for 16 tokens and four times 3 ms: 17 ms. Request 1 comes at 18, and the run
 * is cut at 20. It still needs 16 rows at 5 / 16 ms and as much decoding as each finished request
 * had, 17 ms together. The 2 ms since it came are added. The arrivals took 18 ms. */
START_TEST(what_is_left_takes_as_long_as_what_was_served)
{
    static const struct scenario_request q[] = {{RT, 0, 16, 5, 0, 0}, {RT, 0.018, 16, 9, 0, 0}};
    sc.setup.horizon_ns = MS(20);
    run(script_serve, q, 2);
    ck_assert_double_eq(get("all.finished"), 1.0);
    ck_assert_double_eq_tol(get("backlog.drain_frac"), (2.0 + 5.0 + 12.0) / 18.0, 1e-6);
}
END_TEST

/* ---- warm-up ---- */

static uint32_t accept_all(const void *params, uint64_t seed, const struct request *r,
                           const struct trace_text *text, uint64_t draw, uint32_t drafted)
{
    (void)text;
    (void)params;
    (void)seed;
    (void)r;
    (void)draw;
    return drafted;
}

/* Decodes by verifying four drafts at a time. */
static void verify(struct sched *s, struct script *y)
{
    for (uint32_t i = 0; i < 2; i++) {
        const struct request *r = y->request[i];
        if (r == NULL || r->pass != NULL || r->state != REQUEST_STATE_DECODE) {
            continue;
        }
        struct segment seg = {.request = r, .role = SEGMENT_VERIFY, .n_tokens = 5};
        struct pass_spec spec = {.segments = &seg, .n_segments = 1};
        ck_assert_int_eq(sched_pass_form(s, &spec, &y->pass[i]), 0);
    }
    script_serve(s, y);
}

/* Each request has its first token and then five at once. The one from before the warm-up's end
 * does not count, neither its gap nor the four gaps of zero. The other one has 1 + 4 gaps, sum 5
 * ms. */
START_TEST(tokens_that_come_together_in_the_warm_up_have_no_gaps)
{
    static const struct scenario_request q[] = {{RT, 0, 16, 6, 0, 0}, {RT, 0.2, 16, 6, 0, 0}};
    sc.setup.accept = accept_all;
    opt.warmup_ns = MS(100);
    run(verify, q, 2);
    ck_assert_double_eq(get("reactive.tbt_s.n"), 5.0);
    ck_assert_double_eq(get("reactive.tbt_step_s.n"), 1.0);
    ck_assert_double_eq_tol(get("reactive.tbt_s.mean"), 0.001, 1e-6);
    ck_assert_double_eq(get("reactive.finished"), 2.0);
}
END_TEST

/* ---- work in the system ---- */

/* A launch of `role` takes so many ms of machine time, and each of two segments gives `tokens`. */
static void step_of(struct request *r, enum segment_role role, double ms, uint32_t tokens)
{
    const struct observer *o = metrics_observer(metrics);
    struct segment s[] = {{r, role, 0, 1, tokens, 0}, {r, role, 0, 1, tokens, 0}};
    struct pass p = {.segments = s, .n_segments = role == SEGMENT_DRAFT ? 2 : 1, .n_ops = 1};
    p.shape.prefill_rows = role == SEGMENT_PREFILL ? r->input_tokens : 0;
    struct launch l = {.pass = &p, .device = IGPU, .start_ns = r->arrival_ns};
    o->launch_started(o->self, r->arrival_ns, &l, 0);
    l.end_ns = r->arrival_ns;
    o->launch_ended(o->self, r->arrival_ns, &l, MS(ms), 0);
    r->generated_tokens += tokens;
    r->first_token_ns = r->last_token_ns = r->arrival_ns;
    o->tokens(o->self, r->arrival_ns, &p);
}

/* A has 1000 prompt tokens of 1 ms from 0 to 7 s: 1 s of work. B has 1000 output tokens from 7 to
 * 10 s, where the last ones arrive. A verification of 2 ms gives 4 of them, so each takes 0.5
 * ms, and they are 0.5 s of work. So work is above its mean for the first 7 of 10 s. A model that
 * drafts two tokens in 0 ms is no iteration of a batch. */
START_TEST(a_step_of_several_tokens_is_the_work_of_each)
{
    metrics = metrics_new(&opt, &sc.machine);
    const struct observer *o = metrics_observer(metrics);
    struct request a = {.id = 0, .slot = 0, .session_id = 0, .input_tokens = 1000};
    struct request b = {.id = 1, .slot = 1, .session_id = 1, .input_tokens = 1};
    struct request last[8]; /* a status needs ten requests */
    b.max_output_tokens = 1000;
    b.arrival_ns = b.first_service_ns = MS(7e3);
    o->request_arrived(o->self, a.arrival_ns, &a);
    step_of(&a, SEGMENT_PREFILL, 1000, 1);
    o->request_finished(o->self, MS(7e3), &a);
    o->request_arrived(o->self, b.arrival_ns, &b);
    step_of(&b, SEGMENT_PREFILL, 1, 1);
    step_of(&b, SEGMENT_DRAFT, 0, 0);
    step_of(&b, SEGMENT_VERIFY, 2, 4);
    o->request_finished(o->self, MS(10e3), &b);
    for (uint32_t i = 0; i < 8; i++) {
        last[i] = (struct request){.id = 2 + i,
                                   .slot = 2 + i,
                                   .session_id = 2 + i,
                                   .input_tokens = 1,
                                   .arrival_ns = MS(10e3)};
        o->request_arrived(o->self, MS(10e3), &last[i]);
    }
    o->run_ended(o->self, MS(10e3));
    metrics_collect(metrics, &list);
    ck_assert_double_eq(get("decode_batch.mean"), 1.0);
    ck_assert_double_eq_tol(get("backlog.longest_rise_frac"), 0.7, 0.003);
}
END_TEST

/* ---- the meter ---- */

/* Nothing runs but the compiler, 12 W from 2 s to 6 s. The meter's numbers know no compiler, so its
 * factor of 2 is of the machine's 5 W alone: 2 * 16 * 5 + 48 J. */
START_TEST(a_meters_factor_is_of_its_own_numbers)
{
    sc.machine.idle_watts = 4.0;
    opt.meter = (struct metrics_meter){2.0, 5.0, {{3.0, 6.0, 9.0}}};
    metrics = metrics_new(&opt, &sc.machine);
    struct observer *o = metrics_observer(metrics);
    const uint8_t compiler = OBSERVER_DOMAIN_COMPILER;
    o->power(o->self, 2 * NS_PER_S, compiler, POWER_PHASE_COMPILE, 12.0);
    o->power(o->self, 6 * NS_PER_S, compiler, POWER_PHASE_IDLE, 0.0);
    o->run_ended(o->self, 16 * NS_PER_S);
    metrics_collect(metrics, &list);
    ck_assert_double_eq_tol(get("compiler.energy_j"), 48.0, 1e-9);
    ck_assert_double_eq_tol(get("metered.energy_j"), 208.0, 1e-9);
}
END_TEST

/* ---- starvation ---- */

/* The prompt's first op runs 0-5, then nothing until 45, then the rest: 100 ms of attention. */
static void with_a_pause(struct sched *s, struct script *y)
{
    const struct request *r = y->request[0];
    if (r == NULL) {
        return;
    }
    if (y->pass[0] == NULL && r->pass == NULL) {
        y->pass[0] = script_form(s, r);
    }
    if (y->stage == 0) {
        y->stage = 1;
        struct launch_spec l = sched_launch_rest(s, y->pass[0], IGPU, YIELD_KERNEL);
        l.n_ops = 1;
        ck_assert_int_eq(sched_launch(s, &l, &y->launch[0]), 0);
    }
    if (script_at(s, y, 1, 45)) {
        ck_assert_int_eq(script_launch(s, y->pass[0], IGPU, YIELD_PASS, &y->launch[0]), 0);
    }
}

struct starving {
    double horizon_ms, limit_ms; /* the run ends at 145 ms, or at the horizon */
    int starved;
};

/* The request is suspended from 5 to 45: 40 ms. By 40 ms it was so for 35 of them. */
static const struct starving starving[] = {
    {0, 39, 1}, {0, 41, 0}, {100, 39, 1}, {100, 41, 0}, {40, 34, 1}, {40, 36, 0},
};

START_TEST(a_suspension_is_a_wait_also_where_the_run_ends_before)
{
    static const struct scenario_request q[] = {{BE, 0, 16, 1, 0, 0}};
    const struct starving *w = &starving[_i];
    scenario_cost(&sc, IGPU, OP_MHA, 100, 0, 0);
    opt.starvation_s = w->limit_ms / 1e3;
    if (w->horizon_ms > 0) {
        sc.setup.horizon_ns = opt.horizon_ns = MS(w->horizon_ms);
    }
    run(with_a_pause, q, 1);
    ck_assert_double_eq(get("proactive.starved"), w->starved);
    ck_assert_double_eq(get("proactive.finished"), w->horizon_ms > 0 ? 0 : 1);
}
END_TEST

static void sheds_at_40(struct sched *s, struct script *y)
{
    if (script_at(s, y, 0, 40)) {
        ck_assert_int_eq(sched_shed(s, y->request[0]), 0);
    }
}

START_TEST(who_is_shed_after_a_long_wait_has_starved)
{
    static const struct scenario_request q[] = {{BE, 0, 16, 1, 0, 0}};
    opt.starvation_s = _i == 0 ? 0.039 : 0.041;
    run(sheds_at_40, q, 1);
    ck_assert_double_eq(get("proactive.shed"), 1.0);
    ck_assert_double_eq(get("proactive.starved"), _i == 0 ? 1.0 : 0.0);
}
END_TEST

/* ---- fairness ---- */

/* Without clients in the trace each session is one. The first has 30 + 10 tokens and ends before
 * the others begin. The second has 20 + 10 in one turn and 40 + 10 in the next, and the third 100 +
 * 20: 40, 80, 120. (40 + 80 + 120)^2 / (3 (40^2 + 80^2 + 120^2)) = 6/7. With a horizon at which the
 * third is still at work it has nothing yet. But it is one of three: 120^2 / (3 (40^2 + 80^2)). */
START_TEST(sessions_that_have_ended_are_clients_too)
{
    static const struct scenario_request q[] = {{RT, 0, 30, 10, 1, 0},
                                                {RT, 1, 20, 10, 2, 0},
                                                {RT, 3, 100, 20, 3, 0},
                                                {RT, 1, 40, 10, 2, 0}};
    opt.trace = &sc.trace;
    if (_i == 1) {
        sc.setup.horizon_ns = opt.horizon_ns = MS(3020);
    }
    /* metrics_new reads the trace, so the trace must be there before the run builds it again. */
    ck_assert_int_eq(script_run(&sc, (x.step = script_serve, &x), q, 4), 0);
    memset(&x, 0, sizeof x);
    x.device = IGPU;
    run(script_serve, q, 4);
    ck_assert_double_eq_tol(get("fairness_jain"), _i == 0 ? 6.0 / 7.0 : 0.6, 1e-12);
    ck_assert_double_eq(get("reactive.session_s.n"), _i == 0 ? 3.0 : 2.0);
}
END_TEST

/* ---- sessions that were not completed ---- */

/* Turn k is there from 20 k to 20 k + 10 ms. A session of three takes 50 ms, where none of them is
 * shed; so with the trace, which says when it ends, and without. */
START_TEST(a_session_with_a_shed_turn_has_no_completion_time)
{
    const int lost = _i % 4;
    struct trace_row rows[3] = {{.next = 1}, {.request_id = 1, .next = 2}, {.request_id = 2}};
    rows[2].next = TRACE_NO_ROW;
    struct trace trace = {.rows = rows, .n = 3, .n_first = 1};
    opt.trace = _i < 4 ? &trace : NULL;
    metrics = metrics_new(&opt, &sc.machine);
    struct observer *o = metrics_observer(metrics);
    for (int k = 0; k < 3; k++) {
        struct request r = {.id = (uint32_t)k, .turn = (uint32_t)k, .session_id = 7, .cls = BE};
        r.arrival_ns = r.first_service_ns = MS(20 * k);
        r.first_token_ns = r.last_token_ns = MS(20 * k + 10);
        r.ttft_slo_ns = r.tbt_slo_ns = r.deadline_ns = TIME_NEVER_NS;
        r.input_tokens = r.generated_tokens = 1;
        o->request_arrived(o->self, r.arrival_ns, &r);
        (k == lost ? o->request_shed : o->request_finished)(o->self, r.last_token_ns, &r);
    }
    o->run_ended(o->self, MS(50));
    metrics_collect(metrics, &list);
    ck_assert_double_eq(get("proactive.session_s.n"), lost == 3 ? 1.0 : 0.0);
    ck_assert(lost != 3 || fabs(get("proactive.session_s.mean") - 0.05) < 1e-12);
}
END_TEST

/* ---- sessions whose first turn never arrives ---- */

/* The first turn of session 7 is cancelled before it arrives (ends_with). Its other two arrive at
 * 20 and 40 ms and take 10 ms each: turns of 20 and 10 ms, and a session of 30 ms. */
START_TEST(a_session_begins_with_the_first_turn_that_arrives)
{
    struct trace_row rows[3] = {{.next = 1}, {.request_id = 1, .next = 2}, {.request_id = 2}};
    rows[2].next = TRACE_NO_ROW;
    struct trace trace = {.rows = rows, .n = 3, .n_first = 1};
    opt.trace = &trace;
    metrics = metrics_new(&opt, &sc.machine);
    struct observer *o = metrics_observer(metrics);
    for (int k = 1; k < 3; k++) {
        struct request r = {.id = (uint32_t)k, .turn = (uint32_t)k, .session_id = 7, .cls = BE};
        r.arrival_ns = r.first_service_ns = MS(20 * k);
        r.first_token_ns = r.last_token_ns = MS(20 * k + 10);
        r.ttft_slo_ns = r.tbt_slo_ns = r.deadline_ns = TIME_NEVER_NS;
        r.input_tokens = r.generated_tokens = 1;
        o->request_arrived(o->self, r.arrival_ns, &r);
        o->request_finished(o->self, r.last_token_ns, &r);
    }
    o->run_ended(o->self, MS(50));
    metrics_collect(metrics, &list);
    ck_assert_double_eq(get("all.turn_s.n"), 2.0);
    ck_assert_double_eq_tol(get("proactive.turn_s.mean"), 0.015, 1e-12);
    ck_assert_double_eq_tol(get("proactive.session_s.mean"), 0.03, 1e-12);
}
END_TEST

/* ---- a machine on which nothing happens ---- */

/* The only request would come at 50 ms, and the run ends at 20: nothing has a rate. */
START_TEST(nothing_has_a_rate_before_the_first_arrival)
{
    static const struct scenario_request q[] = {{RT, 0.05, 16, 2, 0, 0}};
    sc.setup.horizon_ns = opt.horizon_ns = MS(20);
    run(script_serve, q, 1);
    ck_assert_double_eq(get("all.arrived"), 0);
    ck_assert_double_nan(get("all.throughput_req_per_min"));
    ck_assert_double_nan(get("truncated.all.throughput_req_per_min"));
}
END_TEST

/* The platform draws 5 W, and idle devices 2, 3 and 0.5 W: 10.5 W, never more. */
START_TEST(the_peak_of_an_idle_machine_is_what_idles)
{
    static const double idle[] = {2, 3, 0.5};
    for (int d = 0; d < 3; d++) {
        sc.machine.devices[d].idle_watts = idle[d];
    }
    metrics = metrics_new(&opt, &sc.machine);
    struct observer *o = metrics_observer(metrics);
    o->run_ended(o->self, NS_PER_S);
    metrics_collect(metrics, &list);
    ck_assert_double_eq_tol(get("peak_power_watts"), 10.5, 1e-12);
    ck_assert_double_eq_tol(get("energy_j"), 10.5, 1e-9);
}
END_TEST

/* Within an instant at 2 s a limit halves the speed for no time, before a launch ends and leaves
 * 0.8 until 6 s. So the least is 0.8, and 0.2 of 4 s of 10 s is lost. */
START_TEST(a_speed_of_no_duration_is_not_the_least)
{
    metrics = metrics_new(&opt, &sc.machine);
    struct observer *o = metrics_observer(metrics);
    o->speed(o->self, MS(2000), 0.5);
    o->speed(o->self, MS(2000), 0.8);
    o->speed(o->self, MS(6000), 1.0);
    o->run_ended(o->self, MS(10000));
    metrics_collect(metrics, &list);
    ck_assert_double_eq_tol(get("throttle.speed_min"), 0.8, 1e-12);
    ck_assert_double_eq_tol(get("throttle.lost_frac"), 0.08, 1e-12);
}
END_TEST

/* A machine that states any power has energies, and those that it does not state are 0. Only one
 * without any has none. */
START_TEST(any_stated_power_is_enough_for_energy)
{
    for (int stated = -1; stated < 3 + 3 * 3; stated++) {
        struct machine m = sc.machine;
        double *own[3 + 3 * 3] = {&m.idle_watts, &m.poll_watts, &m.compile_watts};
        for (int d = 0; d < 3; d++) {
            own[3 + 3 * d] = &m.devices[d].idle_watts;
            own[4 + 3 * d] = &m.devices[d].decode_watts;
            own[5 + 3 * d] = &m.devices[d].prefill_watts;
        }
        for (int i = 0; i < 3 + 3 * 3; i++) {
            *own[i] = i == stated ? 4.0 : 0.0;
        }
        bool idles = stated == 0 || (stated >= 3 && stated % 3 == 0);
        metrics = metrics_new(&opt, &m);
        struct observer *o = metrics_observer(metrics);
        o->run_ended(o->self, 2 * NS_PER_S);
        metrics_collect(metrics, &list);
        static const char *const names[] = {"energy_j", "energy_idle_j", "igpu.energy_j",
                                            "host.energy_j"};
        const double want[] = {idles ? 8.0 : 0.0, idles ? 8.0 : 0.0,
                               stated == 3 + 3 * IGPU ? 8.0 : 0.0, 0.0};
        for (int i = 0; i < 4; i++) {
            is_near(get(names[i]), stated < 0 ? (double)NAN : want[i]);
        }
        metric_list_fini(&list);
        metrics_free(metrics);
        list = (struct metric_list){0};
        metrics = NULL;
    }
}
END_TEST

/* An NPU is divided, and its second half works from 0 to 6 s. The iGPU works from 2 to 8 s, so both
 * work for 4 of 10 s. */
START_TEST(a_part_of_an_npu_overlaps_too)
{
    struct machine m = sc.machine;
    m.devices[2] = m.devices[IGPU];
    m.devices[1] = m.devices[NPU];
    metrics = metrics_new(&opt, &m);
    struct observer *o = metrics_observer(metrics);
    o->power(o->self, 0, 1, POWER_PHASE_DECODE, 5.0);
    o->power(o->self, MS(2000), 2, POWER_PHASE_PREFILL, 5.0);
    o->power(o->self, MS(6000), 1, POWER_PHASE_IDLE, 0.0);
    o->power(o->self, MS(8000), 2, POWER_PHASE_IDLE, 0.0);
    o->run_ended(o->self, MS(10000));
    metrics_collect(metrics, &list);
    ck_assert_double_eq_tol(get("npu_igpu_overlap_frac"), 0.4, 1e-12);
}
END_TEST

static const struct suite_row suite[] = {
    CASE("by hand", .setup = setup, .teardown = teardown),
    LOOP(each_target_is_met_exactly_and_missed_by_a_microsecond,
         (sizeof targets / sizeof targets[0])),
    LOOP(a_reader_is_late_by_what_the_tokens_are, (sizeof experiences / sizeof experiences[0])),
    TEST(one_token_has_no_gap_to_miss),
    TEST(a_meters_factor_is_of_its_own_numbers),
    TEST(any_stated_power_is_enough_for_energy),
    TEST(what_is_left_takes_as_long_as_what_was_served),
    TEST(nothing_has_a_rate_before_the_first_arrival),
    TEST(a_part_of_an_npu_overlaps_too),
    TEST(the_peak_of_an_idle_machine_is_what_idles),
    TEST(tokens_that_come_together_in_the_warm_up_have_no_gaps),
    TEST(a_step_of_several_tokens_is_the_work_of_each),
    LOOP(a_suspension_is_a_wait_also_where_the_run_ends_before,
         (sizeof starving / sizeof starving[0])),
    LOOP(who_is_shed_after_a_long_wait_has_starved, 2),
    LOOP(sessions_that_have_ended_are_clients_too, 2),
    TEST(a_session_begins_with_the_first_turn_that_arrives),
    TEST(a_speed_of_no_duration_is_not_the_least),
    LOOP(a_session_with_a_shed_turn_has_no_completion_time, 8),
};
SUITE_MAIN("metrics rules", suite)
