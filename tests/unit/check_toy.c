/* The toy machine of the conformance suite is as its header says, and its random loads reach all of
 * the ranges that they are drawn from, and nothing beyond. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/conformance/randomload.h"
#include "policies/registry.h"
#include "sim/base/scope.h"
#include "tests/helpers/suite.h"

static struct scenario sc;
static struct scenario_request q[SCENARIO_MAX_REQUESTS];

START_TEST(the_machine_is_as_its_header_says)
{
    scenario_init(&sc);
    const struct machine *m = &sc.machine;
    ck_assert_uint_eq(m->n_devices, 3);
    static const char *const names[] = {"npu", "igpu", "cpu"};
    static const enum device_kind kinds[] = {DEVICE_KIND_NPU, DEVICE_KIND_IGPU, DEVICE_KIND_CPU};
    for (uint32_t d = 0; d < 3; d++) {
        const struct device *x = &m->devices[d];
        ck_assert_str_eq(x->name, names[d]);
        ck_assert(x->kind == kinds[d] && x->index == d && x->static_attention == (d == NPU) &&
                  x->chunk_rows == (d == NPU ? 256 : 0));
        ck_assert(x->inflight_depth == 1 && x->max_shared == 4 &&
                  x->shared_efficiency_frac == 1.0 && x->ddr_weight == 1.0);
        ck_assert(x->idle_watts == 0.0 && x->decode_watts == 10.0 && x->prefill_watts == 20.0);
        ck_assert(x->submit_ns == 0 && x->completion_ns == 0 && !x->can_reset && !x->can_withdraw &&
                  !x->can_suspend);
    }
    ck_assert(m->ddr_peak_bytes_per_s == 100e9 && m->ddr_cap_frac == 1.0);
    ck_assert(m->memory_bytes == 1e12 && m->memory_usable_frac == 1.0);
    ck_assert(m->sync_ns == 0 && m->schedule_ns == 0 && m->sample_ns_per_token == 0);
    ck_assert(m->compile_fixed_ns == 1000 * NS_PER_S && m->compile_watts == 12.0 &&
              m->loader_bytes_per_s == 1e9 && m->swap_bytes_per_s == 1e9);
    ck_assert(m->idle_watts == 5.0);
    const struct llm *l = &sc.llm;
    ck_assert(l->n_layers == 1 && l->hidden == 64 && l->heads == 1 && l->kv_heads == 1 &&
              l->head_dim == 64);
    ck_assert(l->weight_bytes == 1e9 && l->kv_bytes_per_token == 1e6);
    ck_assert_ptr_eq(sc.setup.contention, contention_find("none"));
    ck_assert_ptr_eq(sc.setup.machine, m);
    ck_assert_ptr_eq(sc.setup.llm, l);
    ck_assert(sc.ridge_flop_per_byte == 1.0 && sc.setup.n_observers == 1 &&
              sc.setup.observers[0] == &sc.observer);
    /* Costs: 3 ms and 0.25 ms a row, at 40 GB/s while they take; without any a kernel takes a
     * nanosecond. */
    struct work_shape shape = {.rows = 8, .attn_pairs = 10};
    struct kernel_query k = {
        .device = IGPU, .op = OP_FFN, .rows = 6, .padded_rows = 8, .shape = &shape};
    struct kernel_cost cost;
    hwmodel_kernel(&sc.model, &k, &cost);
    ck_assert_int_eq(cost.t_ns, 1);
    scenario_cost(&sc, IGPU, OP_FFN, 3.0, 0.25, 40.0);
    hwmodel_kernel(&sc.model, &k, &cost);
    ck_assert_int_eq(cost.t_ns, 5000000);
    ck_assert_double_eq_tol(cost.bytes, 40.0 * 5000000, 1e-3);
    ck_assert_double_eq_tol(cost.flop, 2.0 * cost.bytes, 1e-3);
    k.device = NPU;
    hwmodel_kernel(&sc.model, &k, &cost);
    ck_assert_int_eq(cost.t_ns, 1);
    scenario_cost(&sc, -1, OP_MHA, 1.0, 0.0, 10.0); /* of all devices; a pair adds 0.1 ms on one */
    sc.attention_ms_per_pair[CPU] = 0.1;
    k.op = OP_MHA;
    for (uint8_t d = 0; d < 3; d++) {
        k.device = d;
        hwmodel_kernel(&sc.model, &k, &cost);
        ck_assert_int_eq(cost.t_ns, d == CPU ? 2000000 : 1000000);
    }
    sc.compute_only_frac = 0.75; /* bytes move in a quarter of the time */
    hwmodel_kernel(&sc.model, &k, &cost);
    ck_assert_int_eq(cost.load_ns, 500000);
    ck_assert_double_eq_tol(cost.bytes, 10.0 * 500000, 1e-3);
    scenario_fini(&sc);
}
END_TEST

/* Requests of a trace: first turns by arrival, then later ones, linked. */
START_TEST(a_trace_is_of_its_requests)
{
    static const struct scenario_request list[] = {{RT, 0.5, 10, 2, 7, 0},
                                                   {BE, 0.25, 20, 3, 0, 0},
                                                   {RT, 0.1, 30, 4, 7, 12},
                                                   {RT, 0.2, 50, 5, 7, 34}};
    scenario_init(&sc);
    sc.gaps_are_tools = true;
    scenario_trace(&sc, list, 4);
    static const uint32_t id[] = {0, 1, 2, 3};
    static const uint32_t turn[] = {0, 0, 1, 2};
    ck_assert(sc.trace.n == 4 && sc.trace.n_first == 2);
    for (uint32_t i = 0; i < 4; i++) {
        const struct trace_row *r = &sc.trace.rows[i];
        ck_assert(r->request_id == id[i] && r->turn == turn[i] &&
                  r->session_id == (i == 1 ? 1001u : 7u));
        ck_assert_int_eq(r->arrival_ns, units_ns_from_s(list[i].arrival_s));
        ck_assert(r->input_tokens == list[i].input_tokens &&
                  r->output_tokens == list[i].output_tokens &&
                  r->prefix_tokens == list[i].prefix_tokens);
        ck_assert(r->max_output_tokens == 1024 && r->cls == list[i].cls &&
                  r->after_tool == (i >= 2));
    }
    ck_assert(sc.trace.rows[0].next == 2 && sc.trace.rows[2].next == 3 &&
              sc.trace.rows[3].next == TRACE_NO_ROW && sc.trace.rows[1].next == TRACE_NO_ROW);
    scenario_fini(&sc);
}
END_TEST

/* ---- random loads ---- */

#define LOADS 2000

/* Range of a number over all loads. */
struct seen {
    const char *name;
    double low, high; /* that it must reach, nearly */
    double least, most;
    uint32_t n;
};

static void see(struct seen *s, double x)
{
    s->least = s->n == 0 ? x : fmin(s->least, x);
    s->most = s->n == 0 ? x : fmax(s->most, x);
    s->n++;
}

/* Within its range, and both ends within a fiftieth of it. */
static void judge(const struct seen *s)
{
    double width = s->high - s->low;
    ck_assert_msg(s->n > 100 && s->least >= s->low - 1e-9 * fabs(s->low) &&
                      s->most <= s->high + 1e-9 * fabs(s->high) &&
                      s->least <= s->low + 0.02 * width && s->most >= s->high - 0.02 * width,
                  "%s: %g to %g in %u loads, drawn from %g to %g", s->name, s->least, s->most, s->n,
                  s->low, s->high);
}

enum {
    N,
    LAYERS,
    CAP,
    COMPILE,
    OUTPUTS,
    SLOW,
    BYTES,
    FRAMES,
    FRAME_MS,
    LIMIT,
    BURST,
    TAU,
    EXPONENT,
    BLOCKS,
    NUMBERS
};

/* All of a device's costs follow its slowness and its bandwidth. */
static void see_costs(struct seen *s)
{
    const struct machine *m = &sc.machine;
    for (int d = 0; d < 3; d++) {
        const struct toy_cost *c = sc.cost[d];
        double slow = c[OP_FFN].fixed_ms / 0.8;
        double gb = c[OP_HEAD].gb_per_s;
        see(&s[SLOW], c[OP_FFN].fixed_ms);
        see(&s[BYTES], gb);
        const struct toy_cost want[] = {[OP_QKV] = {0.5 * slow, 0.01 * slow, 0.1 * gb},
                                        [OP_MHA] = {0.3 * slow, 0.002 * slow, 0.7 * gb},
                                        [OP_FFN] = {0.8 * slow, 0.02 * slow, 0.2 * gb},
                                        [OP_HEAD] = {0.4 * slow, 0.0, gb},
                                        [OP_LAYER] = {1.6 * slow, 0.0, gb}};
        for (int op = OP_QKV; op <= OP_LAYER; op++) {
            ck_assert_double_eq_tol(c[op].fixed_ms, want[op].fixed_ms, 1e-12);
            ck_assert_double_eq_tol(c[op].per_row_ms, want[op].per_row_ms, 1e-12);
            ck_assert_double_eq_tol(c[op].gb_per_s, want[op].gb_per_s, 1e-9);
        }
        ck_assert(m->devices[d].can_suspend == m->devices[d].can_withdraw &&
                  m->devices[d].reset_ns == 50000);
        ck_assert(m->devices[d].submit_ns == (m->sync_ns > 0 ? 10000 : 0) &&
                  m->devices[d].completion_ns == (m->sync_ns > 0 ? 5000 : 0));
    }
}

START_TEST(random_loads_reach_their_ranges)
{
    struct seen s[NUMBERS] = {[N] = {"requests", 4, 23},
                              [LAYERS] = {"layers", 1, 3},
                              [CAP] = {"DDR cap", 0.6, 1.0},
                              [COMPILE] = {"compile ms", 0.1, 100},
                              [OUTPUTS] = {"outputs", 1, 25},
                              [SLOW] = {"FFN ms", 0.4, 2.4},
                              [BYTES] = {"HEAD GB/s", 20, 90},
                              [FRAMES] = {"frames a second", 10, 200},
                              [FRAME_MS] = {"ms of a frame", 0.1, 8},
                              [LIMIT] = {"limit W", 5, 40},
                              [BURST] = {"burst W", 20, 80},
                              [TAU] = {"tau", 0.01, 1},
                              [EXPONENT] = {"exponent", 1, 3},
                              [BLOCKS] = {"blocks of KV beyond the largest request", 3, 42}};
    uint32_t flags[10] = {0};
    uint32_t forms[4] = {0};
    for (uint64_t seed = 1; seed <= LOADS; seed++) {
        uint32_t n = randomload_make(&sc, q, 24, seed);
        const struct machine *m = &sc.machine;
        uint32_t largest = 0;
        double t = 0.0;
        see(&s[N], n);
        see(&s[LAYERS], sc.llm.n_layers);
        see(&s[CAP], m->ddr_cap_frac);
        see(&s[COMPILE], (double)m->compile_fixed_ns / 1e6);
        for (uint32_t i = 0; i < n; i++) {
            uint32_t total = q[i].input_tokens + q[i].output_tokens;
            bool later = false;
            see(&s[OUTPUTS], q[i].output_tokens);
            largest = total > largest ? total : largest;
            for (uint32_t k = 0; k < i; k++) { /* the last turn of its session so far */
                if (q[i].session_id != 0 && q[k].session_id == q[i].session_id) {
                    later = true;
                    bool last = true;
                    for (uint32_t j = k + 1; j < i; j++) {
                        last = last && q[j].session_id != q[i].session_id;
                    }
                    if (last) {
                        ck_assert(q[i].cls == q[k].cls && q[i].prefix_tokens == q[k].input_tokens);
                        ck_assert_uint_gt(q[i].input_tokens,
                                          q[k].input_tokens + q[k].output_tokens);
                        ck_assert_uint_le(q[i].input_tokens,
                                          q[k].input_tokens + q[k].output_tokens + 1500);
                    }
                }
            }
            if (!later) {
                ck_assert(q[i].arrival_s >= t && q[i].prefix_tokens == 0 &&
                          q[i].input_tokens >= 1 && q[i].input_tokens <= 1500);
                t = q[i].arrival_s;
            }
            flags[0] += later;
            flags[1] += q[i].cls == REQUEST_CLASS_REACTIVE && !later;
        }
        see_costs(s);
        static const char *const names[] = {"max-min", "none", "proportional", "weighted"};
        for (int k = 0; k < 4; k++) {
            forms[k] += sc.setup.contention == contention_find(names[k]);
        }
        ck_assert(m->loader_fixed_ns == 1000000 && sc.llm.weight_bytes == 1e8 &&
                  sc.gaps_are_tools == (seed % 2 == 0));
        ck_assert(m->sync_ns == 0 ? m->schedule_ns == 0 && m->sample_ns_per_token == 0
                                  : m->sync_ns == 50000 && m->schedule_ns == 2000 &&
                                        m->sample_ns_per_token == 100000);
        flags[2] += m->sync_ns > 0;
        flags[3] += m->devices[NPU].static_attention;
        flags[4] += sc.setup.truth_sigma > 0.0;
        ck_assert(sc.setup.truth_sigma > 0.0
                      ? sc.setup.truth_sigma == 0.1 && sc.setup.annotation.sigma_prefill == 0.3 &&
                            sc.setup.annotation.sigma_decode == 0.2
                      : sc.setup.annotation.sigma_prefill == 0.0);
        flags[5] += sc.setup.prefix_reuse;
        flags[6] += sc.ridge_flop_per_byte == 3.0;
        ck_assert(sc.ridge_flop_per_byte == 1.0 || sc.ridge_flop_per_byte == 3.0);
        if (sc.setup.kv_capacity_tokens > 0) {
            flags[7]++;
            ck_assert_uint_eq(sc.setup.kv_capacity_tokens % 16, 0);
            see(&s[BLOCKS], (double)sc.setup.kv_capacity_tokens / 16.0 - floor(largest / 16.0));
        }
        if (sc.setup.frames.per_s > 0.0) {
            flags[8]++;
            see(&s[FRAMES], sc.setup.frames.per_s);
            see(&s[FRAME_MS], (double)sc.setup.frames.device_ns / 1e6);
            ck_assert(sc.setup.frames.device == IGPU && sc.setup.frames.bytes >= 1e4 &&
                      sc.setup.frames.bytes <= 1e8);
            ck_assert_double_le(sc.setup.frames.bytes,
                                100e9 * (double)sc.setup.frames.device_ns * 1e-9 * (1 + 1e-12));
        }
        if (sc.setup.throttle.limit_watts > 0.0) {
            flags[9]++;
            see(&s[LIMIT], sc.setup.throttle.limit_watts);
            see(&s[BURST], sc.setup.throttle.burst_watts);
            see(&s[TAU], sc.setup.throttle.tau_s);
            see(&s[EXPONENT], sc.setup.throttle.exponent);
            ck_assert_double_eq(sc.setup.throttle.min_speed, 0.2);
        }
        scenario_fini(&sc);
    }
    for (int k = 0; k < NUMBERS; k++) {
        judge(&s[k]);
    }
    /* Shares: within five standard deviations of what the draw says. */
    static const double share[10] = {0.0, 0.0, 0.5, 0.5, 0.5, 2.0 / 3.0, 0.5, 0.5, 0.25, 0.25};
    for (int k = 2; k < 10; k++) {
        double sd = sqrt(share[k] * (1.0 - share[k]) * LOADS);
        ck_assert_msg(fabs(flags[k] - share[k] * LOADS) < 5.0 * sd, "flag %d: %u of %d", k,
                      flags[k], LOADS);
    }
    for (int k = 0; k < 4; k++) {
        ck_assert_double_le(fabs(forms[k] - 0.25 * LOADS), 5.0 * sqrt(0.1875 * LOADS));
    }
    ck_assert_uint_gt(flags[0], LOADS); /* later turns occur, and reactive requests */
    ck_assert_uint_gt(flags[1], 2 * LOADS);
}
END_TEST

/* A random value of every parameter of every policy is one that the policy takes. */
START_TEST(random_parameters_are_taken)
{
    size_t n;
    const struct policy_ops *const *all = policy_list(&n);
    struct rng r;
    rng_init(&r, 1);
    for (size_t i = 0; i < n; i++) {
        for (const struct policy_param *p = all[i]->params; p != NULL && p->name != NULL; p++) {
            double least = (double)INFINITY;
            double most = -(double)INFINITY;
            for (int k = 0; k < 30; k++) {
                char text[256];
                size_t length = randomload_param(text, sizeof text, &r, p);
                ck_assert_uint_eq(length, strlen(text));
                ck_assert(strncmp(text, p->name, strlen(p->name)) == 0 &&
                          text[strlen(p->name)] == '=');
                if (p->type == PARAM_INT || p->type == PARAM_NUMBER) {
                    double v = atof(text + strlen(p->name) + 1);
                    ck_assert_msg(v >= p->min * (1 - 1e-3) && v <= p->max * (1 + 1e-3), "%s of %s",
                                  text, all[i]->name);
                    ck_assert(p->type != PARAM_INT || v == floor(v));
                    least = fmin(least, v);
                    most = fmax(most, v);
                }
            }
            if (p->type == PARAM_NUMBER && p->max > 4.0 * fmax(p->min, 1e-3)) {
                ck_assert_msg(most > 1.5 * least, "%s of %s: %g to %g", p->name, all[i]->name,
                              least, most);
            }
        }
    }
}
END_TEST

static const struct suite_row suite[] = {
    CASE("toy"),
    TEST(the_machine_is_as_its_header_says),
    TEST(a_trace_is_of_its_requests),
    TEST(random_loads_reach_their_ranges),
    TEST(random_parameters_are_taken),
};
SUITE_MAIN("toy", suite)
