/* Metrics against arithmetic: the observer is driven by hand through a run of five requests. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/base/units.h"
#include "sim/metrics/metric_table.h"
#include "sim/metrics/metrics.h"
#include "tests/helpers/suite.h"

#define S(x) units_ns_from_s(x)
#define NPU 0
#define IGPU 1
#define N_OPS 4

static struct machine two_devices(void)
{
    struct machine m = {
        .name = "test", .n_devices = 2, .ddr_peak_bytes_per_s = 100e9, .idle_watts = 4.0};
    m.devices[NPU] =
        (struct device){.name = "npu", .kind = DEVICE_KIND_NPU, .index = NPU, .idle_watts = 1.0};
    m.devices[IGPU] =
        (struct device){.name = "igpu", .kind = DEVICE_KIND_IGPU, .index = IGPU, .idle_watts = 2.0};
    return m;
}

static struct request new_request(uint32_t id, uint32_t session, uint32_t turn,
                                  enum request_class cls, double arrival_s, uint32_t input)
{
    return (struct request){
        .id = id,
        .slot = id,
        .session_id = session,
        .turn = turn,
        .client_id = cls == REQUEST_CLASS_REACTIVE ? 2 : 1,
        .cls = cls,
        .arrival_ns = S(arrival_s),
        .input_tokens = input,
        .ttft_slo_ns = TIME_NEVER_NS,
        .tbt_slo_ns = TIME_NEVER_NS,
        .deadline_ns = TIME_NEVER_NS,
        .first_service_ns = TIME_NEVER_NS,
        .first_token_ns = TIME_NEVER_NS,
        .last_token_ns = TIME_NEVER_NS,
    };
}

/* A pass of one or two requests and the one launch it has at a time. */
struct work {
    struct segment segments[2];
    struct pass pass;
    struct launch launch;
};

static void work_form(struct work *w, uint32_t id, enum segment_role role, struct request *a,
                      struct request *b)
{
    memset(w, 0, sizeof *w);
    w->segments[0] = (struct segment){.request = a, .role = role, .n_tokens = 1};
    w->segments[1] = (struct segment){.request = b, .role = role, .n_tokens = 1};
    w->pass.id = id;
    w->pass.segments = w->segments;
    w->pass.n_segments = b == NULL ? 1 : 2;
    w->pass.n_ops = N_OPS;
    w->pass.layer = LAYER_OPS_DECODER;
    w->pass.shape.prefill_rows = role == SEGMENT_PREFILL ? a->input_tokens : 0;
    w->pass.has_reactive =
        a->cls == REQUEST_CLASS_REACTIVE || (b != NULL && b->cls == REQUEST_CLASS_REACTIVE);
}

static void work_start(struct observer *o, struct work *w, double t_s, uint32_t id, uint8_t device,
                       double lead_s)
{
    w->launch = (struct launch){.id = id, .pass = &w->pass, .device = device, .start_ns = S(t_s)};
    w->pass.n_launches = 1;
    o->launch_started(o->self, S(t_s), &w->launch, S(lead_s));
    for (uint32_t i = 0; i < w->pass.n_segments; i++) { /* no event falls into a lead here */
        struct request *r = (struct request *)(uintptr_t)w->segments[i].request;
        if (r->first_service_ns == TIME_NEVER_NS) {
            r->first_service_ns = S(t_s + lead_s);
            o->request_first_service(o->self, S(t_s + lead_s), r, &w->launch);
        }
    }
}

static void work_stop(struct observer *o, struct work *w, double t_s, bool complete,
                      double isolated_s, double lost_s)
{
    w->launch.end_ns = S(t_s);
    w->pass.op = complete ? N_OPS : 1;
    w->pass.n_launches = 0;
    o->launch_ended(o->self, S(t_s), &w->launch, S(isolated_s), S(lost_s));
}

/* n tokens of each request of a pass come out. */
static void tokens(struct observer *o, struct work *w, double t_s, uint32_t n)
{
    for (uint32_t i = 0; i < w->pass.n_segments; i++) {
        struct request *r = (struct request *)(uintptr_t)w->segments[i].request;
        int64_t since = r->last_token_ns == TIME_NEVER_NS ? r->arrival_ns : r->last_token_ns;
        r->generated_tokens += n;
        r->last_token_ns = S(t_s);
        r->first_token_ns = r->first_token_ns == TIME_NEVER_NS ? S(t_s) : r->first_token_ns;
        w->segments[i].emitted_tokens = n;
        w->segments[i].gap_ns = S(t_s) - since;
    }
    o->tokens(o->self, S(t_s), &w->pass);
}

static void finish(struct observer *o, struct request *r, double t_s)
{
    r->state = REQUEST_STATE_FINISHED;
    o->request_finished(o->self, S(t_s), r);
}

static void power(struct observer *o, double t_s, uint8_t domain, enum power_phase phase,
                  double watts)
{
    o->power(o->self, S(t_s), domain, phase, watts);
}

/* The run, instants in seconds. P and D are proactive, R, Q and U reactive; Q follows R in their
 * session. P: 100 in, 3 out; R: 50 in, 2 out; Q: 10 in, 1 out; D is shed, U never finishes.
 *
 *   0    P arrives; its prefill starts on the iGPU (lead 0.5)
 *   2    R arrives           3  P's launch yields, isolated 2.0     4  R's prefill starts
 *   6    R's last op; the host samples until 6.5: R's first token.  P's prefill goes on
 *   8    P's first token.  Decode pass {R, P} starts on the iGPU
 *   9    second tokens; R finishes; P loses the KV of 101 tokens
 *   11   Q arrives           12 P starts again on the NPU, Q on the iGPU
 *   13   Q's only token; D arrives          13.5 U arrives (the last one)
 *   14   P's third token     14.5 U starts on the NPU    15 D is shed   15.5 U's launch is killed
 *   16   end of the run */
static void drive(struct metrics *m, struct request req[5], double end_s)
{
    struct observer *o = metrics_observer(m);
    struct request *p = &req[0];
    struct request *r = &req[1];
    struct request *q = &req[2];
    struct request *d = &req[3];
    struct request *u = &req[4];
    struct work pp;
    struct work rp;
    struct work dec;
    struct work qp;
    struct work up;
    *p = new_request(0, 10, 0, REQUEST_CLASS_PROACTIVE, 0.0, 100);
    *r = new_request(1, 11, 0, REQUEST_CLASS_REACTIVE, 2.0, 50);
    *q = new_request(2, 11, 1, REQUEST_CLASS_REACTIVE, 11.0, 10);
    *d = new_request(3, 13, 0, REQUEST_CLASS_PROACTIVE, 13.0, 7);
    *u = new_request(4, 12, 0, REQUEST_CLASS_REACTIVE, 13.5, 9);
    r->ttft_slo_ns = S(5.0);
    r->tbt_slo_ns = S(3.0);
    q->ttft_slo_ns = S(1.0);
    u->deadline_ns = S(100.0);

    o->request_arrived(o->self, 0, p);
    work_form(&pp, 1, SEGMENT_PREFILL, p, NULL);
    work_start(o, &pp, 0.0, 1, IGPU, 0.5);
    power(o, 0.5, IGPU, POWER_PHASE_PREFILL, 31.0);
    o->request_arrived(o->self, S(2.0), r);
    work_stop(o, &pp, 3.0, false, 2.0, 0.0);
    power(o, 3.0, IGPU, POWER_PHASE_IDLE, 2.0);
    work_form(&rp, 2, SEGMENT_PREFILL, r, NULL);
    work_start(o, &rp, 4.0, 2, IGPU, 0.0);
    power(o, 4.0, IGPU, POWER_PHASE_PREFILL, 31.0);
    work_stop(o, &rp, 6.0, true, 2.0, 0.0);
    power(o, 6.0, OBSERVER_DOMAIN_HOST, POWER_PHASE_DECODE, 3.0);
    work_start(o, &pp, 6.0, 3, IGPU, 0.0);
    tokens(o, &rp, 6.5, 1);
    power(o, 6.5, OBSERVER_DOMAIN_HOST, POWER_PHASE_IDLE, 0.0);
    work_stop(o, &pp, 8.0, true, 2.0, 0.0);
    tokens(o, &pp, 8.0, 1);
    power(o, 8.0, IGPU, POWER_PHASE_DECODE, 25.0);
    work_form(&dec, 3, SEGMENT_DECODE, r, p);
    work_start(o, &dec, 8.0, 4, IGPU, 0.0);
    work_stop(o, &dec, 9.0, true, 1.0, 0.0);
    tokens(o, &dec, 9.0, 1);
    finish(o, r, 9.0);
    power(o, 9.0, IGPU, POWER_PHASE_IDLE, 2.0);
    o->kv_lost(o->self, S(9.0), p, 101);
    p->preemptions = 2;
    o->request_arrived(o->self, S(11.0), q);
    work_form(&pp, 4, SEGMENT_PREFILL, p, NULL);
    work_start(o, &pp, 12.0, 5, NPU, 0.0);
    power(o, 12.0, NPU, POWER_PHASE_PREFILL, 100.0); /* for no time at all */
    power(o, 12.0, NPU, POWER_PHASE_PREFILL, 10.0);
    work_form(&qp, 5, SEGMENT_PREFILL, q, NULL);
    work_start(o, &qp, 12.0, 6, IGPU, 0.0);
    power(o, 12.0, IGPU, POWER_PHASE_PREFILL, 31.0);
    work_stop(o, &qp, 13.0, true, 0.8, 0.0);
    power(o, 13.0, IGPU, POWER_PHASE_IDLE, 2.0);
    tokens(o, &qp, 13.0, 1);
    finish(o, q, 13.0);
    o->request_arrived(o->self, S(13.0), d);
    o->request_arrived(o->self, S(13.5), u);
    work_stop(o, &pp, 14.0, true, 2.0, 0.0);
    power(o, 14.0, NPU, POWER_PHASE_IDLE, 1.0);
    tokens(o, &pp, 14.0, 1);
    finish(o, p, 14.0);
    work_form(&up, 6, SEGMENT_PREFILL, u, NULL);
    work_start(o, &up, 14.5, 7, NPU, 0.0);
    power(o, 14.5, NPU, POWER_PHASE_PREFILL, 10.0);
    d->state = REQUEST_STATE_SHED;
    o->request_shed(o->self, S(15.0), d);
    work_stop(o, &up, 15.5, false, 0.0, 1.0);
    power(o, 15.5, NPU, POWER_PHASE_IDLE, 1.0);
    o->ddr(o->self, S(15.5), 2, S(1.0), 30e9, 30e9);
    o->ddr(o->self, S(15.5), 1, S(2.0), 50e9, 50e9);
    o->ddr(o->self, S(15.5), 1, S(1.0), 120e9, 90e9);
    o->run_ended(o->self, S(end_s));
}

static struct machine machine;
static struct request requests[5];
static struct metrics *metrics;
static struct metric_list list;

static void start(const struct metrics_options *opt)
{
    machine = two_devices();
    metrics = metrics_new(opt, &machine);
    drive(metrics, requests, 16.0);
    list = (struct metric_list){0};
    metrics_collect(metrics, &list);
}

static void setup(void)
{
    struct metrics_options opt = metrics_options_default();
    opt.records = true;
    opt.starvation_s = 5.0;
    opt.meter = (struct metrics_meter){2.0, 5.0, {{3.0, 6.0}}};
    start(&opt);
}

static void teardown(void)
{
    metric_list_fini(&list);
    metrics_free(metrics);
}

static double get(const char *name)
{
    const struct metric *m = metric_list_find(&list, name);
    ck_assert_msg(m != NULL, "no metric %s", name);
    return m->value;
}

#define EXPECT(name, x) ck_assert_double_eq_tol(get(name), (x), 1e-12 + 1e-12 * fabs(x))

START_TEST(latencies_follow_their_definitions)
{
    /* E2E is 14 - 0 for P, 9 - 2 = 7 for R and 13 - 11 = 2 for Q. By nearest rank of {2, 7} p50 is
     * the 1st and p90 the 2nd. */
    EXPECT("reactive.e2e_s.mean", 4.5);
    EXPECT("reactive.e2e_s.p50", 2.0);
    EXPECT("reactive.e2e_s.p90", 7.0);
    EXPECT("reactive.e2e_s.max", 7.0);
    EXPECT("reactive.e2e_s.n", 2.0);
    EXPECT("proactive.e2e_s.mean", 14.0);
    EXPECT("all.e2e_s.mean", 23.0 / 3.0);
    EXPECT("all.e2e_s.p50", 7.0);
    /* TTFT is 8 for P, 6.5 - 2 = 4.5 for R and 2 for Q. */
    EXPECT("reactive.ttft_s.mean", 3.25);
    EXPECT("reactive.ttft_s.p90", 4.5);
    EXPECT("all.ttft_s.max", 8.0);
    /* Gaps are 1 and 5 for P (8-9-14) and 2.5 for R (6.5-9). Q has one token and so none. */
    EXPECT("proactive.tbt_s.mean", 3.0);
    EXPECT("proactive.tbt_s.p50", 1.0);
    EXPECT("all.tbt_s.p50", 2.5);
    EXPECT("all.tbt_s.n", 3.0);
    /* TPOT is (14 - 8) / 2 = 3 for P and 2.5 / 1 for R. */
    EXPECT("proactive.tpot_s.mean", 3.0);
    EXPECT("reactive.tpot_s.mean", 2.5);
    EXPECT("reactive.tpot_s.n", 1.0);
    /* Session 10 is P alone. Session 11 lasts from R's arrival 2 to Q's finish 13. */
    EXPECT("proactive.session_s.mean", 14.0);
    EXPECT("reactive.session_s.mean", 11.0);
    EXPECT("reactive.session_s.n", 1.0);
}
END_TEST

START_TEST(each_paper_normalises_latency_its_own_way)
{
    /* TTFT / P is 4.5/50 = 0.09 for R and 2/10 = 0.2 for Q. */
    EXPECT("reactive.norm_ttft_per_input_s.mean", 0.145);
    /* E2E / (P + O) is 7/52 for R and 2/11 for Q. The ratio of sums is (7 + 2) / (52 + 11). */
    EXPECT("reactive.norm_e2e_per_token_s.mean", 0.5 * (7.0 / 52.0 + 2.0 / 11.0));
    EXPECT("reactive.norm_e2e_ratio_of_sums_s", 9.0 / 63.0);
    EXPECT("all.norm_e2e_ratio_of_sums_s", 23.0 / 166.0);
    /* E2E / O is 3.5 for R and 2 for Q. [vLLM] has the mean, [Orca] the median. */
    EXPECT("reactive.norm_e2e_per_output_s.mean", 2.75);
    EXPECT("reactive.norm_e2e_per_output_s.p50", 2.0);
}
END_TEST

START_TEST(waiting_is_split_by_stage)
{
    /* Before the first kernel P waits the lead of 0.5, R 4 - 2 = 2 and Q 12 - 11 = 1. */
    EXPECT("proactive.prefill_pending_s.mean", 0.5);
    EXPECT("reactive.prefill_pending_s.mean", 1.5);
    /* P's prefill was suspended from 3 to 6, and no other one was. */
    EXPECT("proactive.prefill_suspended_s.mean", 3.0);
    EXPECT("reactive.prefill_suspended_s.max", 0.0);
    /* R waited to decode from its token at 6.5 (not from its last op at 6) to 8: 1.5. Q never
     * waited. P waited from its KV loss at 9 to 12. */
    EXPECT("reactive.decode_pending_s.max", 1.5);
    EXPECT("reactive.decode_pending_s.mean", 0.75);
    EXPECT("proactive.decode_pending_s.mean", 3.0);
    /* Sums are 0.5 + 3 + 3 for P, 2 + 0 + 1.5 for R and 1 for Q. Only P is above the threshold of 5
     * s. U had waited 1 + 0.5. */
    EXPECT("proactive.wait_s.p99", 6.5);
    EXPECT("reactive.wait_s.max", 3.5);
    EXPECT("proactive.starved", 1.0);
    EXPECT("reactive.starved", 0.0);
}
END_TEST

START_TEST(preemption_latency_is_split_at_the_end_of_the_running_launch)
{
    /* Only R met a device with other people's work: arrived 2, P's launch ended 3, R started 4.
     * U found the NPU with P's launch, which ended 14, and started 14.5: 1.0 = 0.5 + 0.5. */
    EXPECT("reactive.preempt_latency_s.n", 2.0);
    EXPECT("reactive.preempt_latency_s.max", 2.0);
    EXPECT("reactive.preempt_latency_s.mean", 1.5);
    EXPECT("reactive.preempt_residual_s.max", 1.0);
    EXPECT("reactive.preempt_residual_s.p50", 0.5);
    EXPECT("reactive.preempt_rest_s.mean", 0.75);
}
END_TEST

START_TEST(counts_and_rates_cover_finished_shed_and_unfinished)
{
    EXPECT("all.arrived", 5.0);
    EXPECT("reactive.finished", 2.0);
    EXPECT("proactive.shed", 1.0);
    EXPECT("reactive.unfinished", 1.0);
    /* U is unfinished, so the span is 0 to 16 s, the run's end, and not 14, the last finish. */
    EXPECT("reactive.throughput_req_per_min", 2.0 / 16.0 * 60.0);
    EXPECT("all.throughput_req_per_min", 3.0 / 16.0 * 60.0);
    EXPECT("all.output_tokens_per_s", 6.0 / 16.0);
    EXPECT("proactive.preemptions", 2.0);
    EXPECT("proactive.evictions", 1.0);
    EXPECT("all.recomputed_tokens", 101.0);
    /* Reactive arrivals at 2, 11, 13.5 have gaps 9 and 2.5: mean 5.75, s.d. 3.25 * sqrt 2. */
    EXPECT("reactive.arrival_rate_req_per_min", 2.0 / 11.5 * 60.0);
    EXPECT("reactive.arrival_cv", 3.25 * sqrt(2.0) / 5.75);
    /* R meets TTFT 4.5 <= 5 and TPOT 2.5 <= 3. Q misses 2 > 1. U carries a deadline and is
     * unfinished. */
    EXPECT("reactive.slo_attainment_frac", 1.0 / 3.0);
    EXPECT("reactive.goodput_req_per_min", 1.0 / 16.0 * 60.0);
    ck_assert_double_nan(get("proactive.slo_attainment_frac"));
    /* Client 1 got 103 tokens and client 2 52 + 11 = 63: 166^2 / (2 (103^2 + 63^2)). */
    EXPECT("fairness_jain", 27556.0 / 29156.0);
    /* One pass is pure decode, with two sequences. */
    EXPECT("decode_batch.mean", 2.0);
}
END_TEST

START_TEST(time_in_system_and_backlog_are_integrals_of_the_population)
{
    /* In the system were P 14, R 7, Q 2, D 2 and U 2.5 s. Most were there at 13.5: P, D, U. */
    EXPECT("duration_s", 16.0);
    EXPECT("in_system.mean", 27.5 / 16.0);
    EXPECT("in_system.max", 3.0);
    EXPECT("backlog.at_last_arrival", 3.0);
    EXPECT("backlog.unfinished_frac", 3.0 / 5.0);
    EXPECT("arrival_window_s", 13.5);
    EXPECT("drain_s", 0.5);
    EXPECT("backlog.verdict", 1.0); /* UNDECIDED: five requests say nothing */
}
END_TEST

START_TEST(truncated_values_count_what_finished_by_the_last_arrival)
{
    /* Last arrival 13.5: R (9) and Q (13) count, P (14) does not. */
    EXPECT("truncated.reactive.e2e_s.mean", 4.5);
    EXPECT("truncated.reactive.e2e_s.p90", 7.0);
    EXPECT("truncated.reactive.ttft_s.mean", 3.25);
    EXPECT("truncated.reactive.throughput_req_per_min", 2.0 / 13.5 * 60.0);
    EXPECT("truncated.proactive.throughput_req_per_min", 0.0);
    ck_assert_double_nan(get("truncated.proactive.e2e_s.mean"));
    EXPECT("truncated.all.e2e_s.n", 2.0);
}
END_TEST

START_TEST(requests_of_the_warm_up_are_counted_but_not_measured)
{
    teardown();
    struct metrics_options opt = metrics_options_default();
    opt.warmup_ns = S(5.0);
    start(&opt);
    /* P (0) and R (2) arrived before, so Q alone is left: 2 s, one token and so no gaps. Session 11
     * began with R. */
    EXPECT("all.e2e_s.n", 1.0);
    EXPECT("all.e2e_s.mean", 2.0);
    EXPECT("all.ttft_s.n", 1.0);
    EXPECT("all.tbt_s.n", 0.0);
    EXPECT("all.wait_s.n", 1.0);
    EXPECT("all.session_s.n", 0.0);
    EXPECT("truncated.all.e2e_s.n", 1.0);
    /* Counts are as they are without warm-up. */
    EXPECT("all.finished", 3.0);
    EXPECT("truncated.reactive.throughput_req_per_min", 2.0 / 13.5 * 60.0);
}
END_TEST

START_TEST(a_horizon_is_the_cut_when_it_stopped_the_run)
{
    teardown();
    struct metrics_options opt = metrics_options_default();
    opt.horizon_ns = S(16.0);
    start(&opt);
    /* The cut is the horizon: P counts too, over 16 - 0 s. */
    EXPECT("truncated.all.e2e_s.n", 3.0);
    EXPECT("truncated.proactive.throughput_req_per_min", 1.0 / 16.0 * 60.0);
}
END_TEST

START_TEST(device_time_and_energy_are_exact_integrals)
{
    /* iGPU: prefill 2.5 + 4 + 1 = 7.5 s, decode 1 s, idle 7.5 s of 16. */
    EXPECT("igpu.prefill_frac", 7.5 / 16.0);
    EXPECT("igpu.decode_frac", 1.0 / 16.0);
    EXPECT("igpu.busy_frac", 8.5 / 16.0);
    EXPECT("igpu.weighted_util_frac", (7.5 + 0.46) / 16.0);
    EXPECT("npu.busy_frac", 3.0 / 16.0);
    EXPECT("npu_igpu_overlap_frac", 1.0 / 16.0);
    /* The iGPU has 7.5*31 + 25 + 7.5*2 = 272.5, the NPU 3*10 + 13*1 = 43, the host 0.5*3 and the
     * platform 16*4 = 64. */
    EXPECT("igpu.energy_j", 272.5);
    EXPECT("npu.energy_j", 43.0);
    EXPECT("host.energy_j", 1.5);
    EXPECT("energy_j", 381.0);
    EXPECT("energy_idle_j", 15.0 + 13.0 + 64.0);
    EXPECT("energy_active_j", 289.0);
    /* 160 tokens of prompts and 6 of answers count. */
    EXPECT("energy_j_per_token", 381.0 / 166.0);
    EXPECT("energy_active_j_per_output_token", 289.0 / 6.0);
    /* 12 to 13 s draw 31 + 10 + 4. The 100 W lasted no time. */
    EXPECT("peak_power_watts", 45.0);
    /* The meter shows 2 (16*5 + 8.5*6 + 3*3) = 2*140. */
    EXPECT("metered.energy_j", 280.0);
    EXPECT("metered.energy_j_per_token", 280.0 / 166.0);
    EXPECT("metered.energy_j_per_output_token", 280.0 / 6.0);
    EXPECT("metered.watts", 280.0 / 16.0);
}
END_TEST

START_TEST(ddr_traffic_and_contention_add_up)
{
    /* 2*30 + 2*50 + 90 = 250 GB are moved of 100 GB/s * 16 s. The demand is 60 + 100 + 120. */
    EXPECT("ddr.util_frac", 250.0 / 1600.0);
    EXPECT("ddr.demand_frac", 280.0 / 1600.0);
    /* Pressures are 0.3 (2 s), 0.5 (2 s), 1.2 (1 s) and none (11 s). */
    EXPECT("ddr.tier_low_frac", 13.0 / 16.0);
    EXPECT("ddr.tier_medium_frac", 2.0 / 16.0);
    EXPECT("ddr.tier_high_frac", 1.0 / 16.0);
    /* Launches take 2.5/2 (0.5 lead), 2/2, 2/2, 1/1, 2/2 and 1/0.8 of their isolated time. The
     * killed one counts as lost work only: (10.5 - 9.8) / 9.8. */
    EXPECT("contention_loss_frac", 0.7 / 9.8);
    EXPECT("killed_kernel_s", 1.0);
}
END_TEST

START_TEST(a_trace_tells_when_sessions_end_and_a_sketch_keeps_means)
{
    teardown();
    struct trace_row rows[5];
    memset(rows, 0, sizeof rows);
    for (uint32_t i = 0; i < 5; i++) {
        rows[i].request_id = i;
        rows[i].next = i == 1 ? 2 : TRACE_NO_ROW;
    }
    struct trace trace = {.rows = rows, .n = 5, .n_first = 4};
    struct metrics_options opt = metrics_options_default();
    opt.trace = &trace;
    opt.sketch = true;
    start(&opt);
    EXPECT("proactive.session_s.mean", 14.0);
    EXPECT("reactive.session_s.mean", 11.0);
    EXPECT("all.session_s.n", 2.0);
    EXPECT("all.e2e_s.mean", 23.0 / 3.0);
    ck_assert_double_eq_tol(get("all.e2e_s.p50"), 7.0, 0.005 * 7.0);
}
END_TEST

START_TEST(request_records_are_written_in_order_of_id)
{
    static const char *const expected[] = {
        "request_id,session_id,turn,class,arrival_s,start_s,first_token_s,finish_s,input_tokens,"
        "output_tokens,ttft_s,e2e_s,tpot_s,preemptions,state,prefill_pending_s,"
        "prefill_suspended_s,decode_pending_s,client_id,reused_tokens,recomputed_tokens\n",
        "0,10,0,proactive,0.000000000,0.500000000,8.000000000,14.000000000,100,3,8.000000000,"
        "14.000000000,3.000000000,2,finished,0.500000000,3.000000000,3.000000000,1,0,101\n",
        "1,11,0,reactive,2.000000000,4.000000000,6.500000000,9.000000000,50,2,4.500000000,"
        "7.000000000,2.500000000,0,finished,2.000000000,0.000000000,1.500000000,2,0,0\n",
        "2,11,1,reactive,11.000000000,12.000000000,13.000000000,13.000000000,10,1,2.000000000,"
        "2.000000000,,0,finished,1.000000000,0.000000000,0.000000000,2,0,0\n",
        "3,13,0,proactive,13.000000000,,,,7,0,,,,0,shed,,0.000000000,0.000000000,1,0,0\n",
        "4,12,0,reactive,13.500000000,14.500000000,,,9,0,,,,0,queued,1.000000000,0.000000000,"
        "0.000000000,2,0,0\n",
    };
    char path[] = "/tmp/check_metrics_XXXXXX";
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    FILE *f = fdopen(fd, "w+");
    ck_assert_ptr_nonnull(f);
    metrics_requests_write(metrics, NULL, f);
    rewind(f);
    char line[512];
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        ck_assert_ptr_nonnull(fgets(line, sizeof line, f));
        ck_assert_str_eq(line, expected[i]);
    }
    ck_assert_ptr_null(fgets(line, sizeof line, f));
    (void)fclose(f);
    (void)remove(path);
}
END_TEST

START_TEST(tokens_of_one_verification_have_gaps_of_zero)
{
    teardown();
    struct metrics_options opt = metrics_options_default();
    opt.asked.limit[opt.asked.n_limits++] = 1.0;
    opt.asked.limit[opt.asked.n_limits++] = 2.0;
    machine = two_devices();
    metrics = metrics_new(&opt, &machine);
    struct observer *o = metrics_observer(metrics);
    struct request r = new_request(0, 0, 0, REQUEST_CLASS_REACTIVE, 0.0, 5);
    struct work w;
    o->request_arrived(o->self, 0, &r);
    work_form(&w, 1, SEGMENT_PREFILL, &r, NULL);
    work_start(o, &w, 0.0, 1, IGPU, 0.0);
    work_stop(o, &w, 1.0, true, 1.0, 0.0);
    tokens(o, &w, 1.0, 1);
    work_form(&w, 2, SEGMENT_VERIFY, &r, NULL);
    w.segments[0].n_tokens = 5; /* one known token and 4 drafted ones */
    work_start(o, &w, 1.0, 2, IGPU, 0.0);
    work_stop(o, &w, 3.0, true, 2.0, 0.0);
    tokens(o, &w, 3.0, 3); /* 2 accepted, 1 corrected */
    finish(o, &r, 3.0);
    struct pass other = {.layer = LAYER_OPS_DECODER};
    o->preempt_asked(o->self, S(3.0), &(struct launch){.pass = &other});
    o->preempt_asked(o->self, S(3.0), &(struct launch){.pass = &other});
    other.has_reactive = true;
    o->preempt_asked(o->self, S(3.0), &(struct launch){.pass = &other});
    o->run_ended(o->self, S(3.0));
    list = (struct metric_list){0};
    metrics_collect(metrics, &list);
    EXPECT("proactive.stops_asked", 2.0);
    EXPECT("reactive.stops_asked", 1.0);
    EXPECT("all.stops_asked", 3.0);
    /* Gaps are 2, 0, 0. Sorted they are 0 0 2, so p50 is number ceil(1.5) = 2 and p90 number 3.
     * There is one step, of 2. */
    EXPECT("reactive.tbt_s.mean", 2.0 / 3.0);
    EXPECT("reactive.tbt_s.p50", 0.0);
    EXPECT("reactive.tbt_s.p90", 2.0);
    EXPECT("reactive.tbt_s.n", 3.0);
    EXPECT("reactive.tbt_s.below:1", 2.0 / 3.0);
    EXPECT("reactive.tbt_s.below:2", 1.0);
    EXPECT("reactive.tbt_step_s.below:1", 0.0);
    EXPECT("reactive.tbt_step_s.mean", 2.0);
    EXPECT("verify.drafted_tokens.mean", 4.0);
    EXPECT("verify.accepted_tokens.mean", 2.0);
}
END_TEST

START_TEST(every_metric_stands_in_the_glossary)
{
    for (size_t i = 0; i < list.n; i++) {
        ck_assert_msg(metric_describe(list.v[i].name) != NULL, "%s", list.v[i].name);
    }
}
END_TEST

static const struct suite_row suite[] = {
    CASE("run", .setup = setup, .teardown = teardown),
    TEST(latencies_follow_their_definitions),
    TEST(each_paper_normalises_latency_its_own_way),
    TEST(waiting_is_split_by_stage),
    TEST(preemption_latency_is_split_at_the_end_of_the_running_launch),
    TEST(counts_and_rates_cover_finished_shed_and_unfinished),
    TEST(time_in_system_and_backlog_are_integrals_of_the_population),
    TEST(truncated_values_count_what_finished_by_the_last_arrival),
    TEST(requests_of_the_warm_up_are_counted_but_not_measured),
    TEST(a_horizon_is_the_cut_when_it_stopped_the_run),
    TEST(device_time_and_energy_are_exact_integrals),
    TEST(ddr_traffic_and_contention_add_up),
    TEST(a_trace_tells_when_sessions_end_and_a_sketch_keeps_means),
    TEST(request_records_are_written_in_order_of_id),
    TEST(every_metric_stands_in_the_glossary),
    TEST(tokens_of_one_verification_have_gaps_of_zero),
};
SUITE_MAIN("metrics", suite)
