/* These tests show how a running pass is stopped, what that costs, and what becomes of its KV
 * (clauses.md E.4, E.8). They cover the axes of the iteration-level scheduler, and hpf and hhpf,
 * rule by rule. Toy times are in tests/helpers/rules.h.
 *
 * In most scenarios BE0 prefills 400 tokens over two layers. Its kernels take 4, 1, 8, 4, 1 and 8
 * ms and the head 1: 0-4, 4-5, 5-13, 13-17, 17-18, 18-26, 26-27. RT1 (100 tokens: 1, 1, 2, 1, 1, 2,
 * 1) takes 9 ms. */
#include <string.h>

#include "tests/helpers/rules.h"

static const struct scenario_request two[] = {{BE, 0, 400, 1, 0, 0}, {RT, 0.002, 100, 1, 0, 0}};

/* These devices can do everything, and a reset or suspension takes 1 ms. */
static void able_machine(uint32_t layers)
{
    rules_machine(layers);
    for (int i = NPU; i <= IGPU; i++) {
        struct device *d = &sc.machine.devices[i];
        d->can_reset = true;
        d->can_withdraw = true;
        d->can_suspend = true;
        d->reset_ns = MS(1);
    }
}

/* RT1 starts and ends, and BE0 ends, at these ms. */
static bool times(const char *own, const char *extra, double start, double rt, double be)
{
    able_machine(2);
    rules_run("sjf-input", own, extra, two, 2);
    return rules_starts(1, start) && rules_finishes(1, rt) && rules_finishes(0, be);
}

/* ---- where it stops ---- */

/* RT1 comes at 2, and BE0's kernel ends at 4. Nothing is lost, so BE0 ends at 27 + 9 = 36. */
static bool stops_at_the_kernel(const char *extra)
{
    return times("preempt=kernel", extra, 4, 13, 36);
}

/* RT1 waits for the end of the layer, at 13. */
static bool stops_at_the_layer(const char *extra)
{
    return times("preempt=layer", extra, 13, 22, 36);
}

/* RT1 waits for the end of the iteration, at 27. */
static bool stops_at_the_iteration(const char *extra)
{
    return times("", extra, 27, 36, 27);
}

/* This is REEF: the kernel is killed at 2, and the device is free at 3. The killed kernel runs
 * again from its start. So BE0 takes 27 from 12 on, and its first kernel runs 12-16. */
static bool reset_runs_the_killed_kernel_again(const char *extra)
{
    bool same = times("preempt=reset", extra, 3, 12, 39);
    const struct scenario_kernel *k = scenario_kernel_find(&sc, 0, 0, IGPU, OP_QKV);
    return same && k != NULL && k->begin_ns == MS(12) && k->end_ns == MS(16);
}

/* REEF is reset with reactive requests alone and first come, first served. BE1 (100) waits since 1,
 * and RT2 does not take it along. RT3 (50: 5 + 1) comes at 4 and does not preempt RT2, although it
 * is shorter: 12-18. BE0 then takes its 27, and BE1 its 9. It does not matter how many kernels are
 * in flight. */
static bool reef_serves_reactive_work_in_arrival_order(const char *extra)
{
    able_machine(2);
    struct scenario_request q[] = {{BE, 0, 400, 1, 0, 0},
                                   {BE, 0.001, 100, 1, 0, 0},
                                   {RT, 0.002, 100, 1, 0, 0},
                                   {RT, 0.004, 50, 1, 0, 0}};
    rules_run("program-fcfs", "preempt=reset,class=rt_alone", extra, q, 4);
    return rules_finishes(2, 12) && rules_finishes(3, 18) && rules_finishes(0, 45) &&
           rules_finishes(1, 54);
}

/* ---- XSched's levels, three kernels handed over ---- */

/* The kernels that end at 4, 5 and 13 are on the device, so RT1 starts at 13. */
static bool level_1_waits_for_what_is_in_flight(const char *extra)
{
    return times("preempt=kernel,inflight=3,level=1", extra, 13, 22, 36);
}

/* With one kernel in flight both levels stop at the kernel boundary. */
static bool one_in_flight_needs_no_level(const char *extra)
{
    return times("preempt=kernel", extra, 4, 13, 36);
}

/* The kernels that have not begun are taken back, so RT1 starts at 4. */
static bool level_2_waits_for_the_running_kernel(const char *extra)
{
    return times("preempt=kernel,inflight=3,level=2", extra, 4, 13, 36);
}

/* BE0 is interrupted at 2, and the device is free at 3. BE0 keeps its 2 ms: 12 + 25 = 37. */
static bool level_3_waits_for_none_and_loses_nothing(const char *extra)
{
    return times("preempt=kernel,inflight=3,level=3", extra, 3, 12, 37);
}

/* This is XSched's own figure. With a threshold of 8 and kernels of T = 0.5 ms, the latency is
 * about 8 T at level 1 and 1 T at level 2. There are four layers of three kernels here, and RT1
 * comes 0.1 ms after the first has begun. */
static bool preemption_after(const char *own, const char *extra, double start)
{
    able_machine(4);
    for (enum op_kind op = OP_QKV; op <= OP_FFN; op++) {
        scenario_cost(&sc, -1, op, 0.5, 0, 5);
    }
    struct scenario_request q[] = {{BE, 0, 400, 1, 0, 0}, {RT, 0.0001, 100, 1, 0, 0}};
    rules_run("sjf-input", own, extra, q, 2);
    return rules_starts(1, start);
}

static bool eight_in_flight_take_eight_kernels(const char *extra)
{
    return preemption_after("preempt=kernel,inflight=8,level=1", extra, 4);
}

static bool level_2_takes_one_kernel_however_many_are_in_flight(const char *extra)
{
    return preemption_after("preempt=kernel,inflight=8,level=2", extra, 0.5);
}

/* ---- what becomes of KV ---- */

/* An iteration has 400 tokens. BE0's first ends at 26 and leaves KV of 400 tokens, and the second
 * would end at 26 + 27 = 53. RT1 comes at 28, the kernel ends at 30, and RT1 runs 30-39. Flash
 * moves 400 tokens of 1 MB in 1 ms. One request runs at a time, because a batch would take BE0
 * along. */
static bool fate(const char *own, const char *extra, double be, uint64_t evicted, uint64_t swapped)
{
    able_machine(2);
    sc.machine.swap_bytes_per_s = 400e9;
    struct scenario_request q[] = {{BE, 0, 800, 1, 0, 0}, {RT, 0.028, 100, 1, 0, 0}};
    char list[96];
    (void)snprintf(list, sizeof list, "preempt=kernel,token_budget=400,max_batch=1%s", own);
    rules_run("sjf-input", list, extra, q, 2);
    return rules_finishes(1, 39) && rules_finishes(0, be) &&
           sc.result.counters[COUNTER_KV_RECOMPUTE_EVICTIONS] == evicted &&
           sc.result.counters[COUNTER_KV_SWAP_INS] == swapped;
}

/* BE0 continues at 39 with the 23 ms that were left, and ends at 62. */
static bool checkpoint_keeps_the_pass(const char *extra)
{
    return fate("", extra, 62, 0, 0);
}

/* BE0 runs both iterations again: 39 + 53 = 92. */
static bool recompute_starts_the_prompt_over(const char *extra)
{
    return fate(",kv=recompute", extra, 92, 1, 0);
}

/* KV goes out 30-31 and comes back 39-40. The KV of the first iteration is there, and the second
 * runs again: 40 + 27 = 67. */
static bool swap_brings_the_kv_back(const char *extra)
{
    return fate(",kv=swap", extra, 67, 0, 1);
}

/* ---- hpf, hhpf ---- */

/* On one layer a prompt of 256 is QKV 2.56 on the NPU, attention 1 on the iGPU, FFN 5.12 on the NPU
 * and the head 1 on the iGPU, together 9.68. One of 512 takes 5.12 + 1 + 10.24 + 1 = 17.36. A
 * decode takes 2 for the layer and 1 for the head.
 *
 * RT0 answers at 9.68 and decodes nine more tokens, to 36.68. BE1 (512) comes at 10. */
static void reactive_decodes(const char *policy, const char *extra)
{
    able_machine(1);
    struct scenario_request q[] = {{RT, 0, 256, 10, 0, 0}, {BE, 0.010, 512, 1, 0, 0}};
    rules_run(policy, "inflight=1", extra, q, 2);
}

/* No more urgent request is ready on the NPU, so BE1's QKV runs 10-15.12. The iGPU is RT0's to the
 * end: attention runs 36.68-37.68, the FFN to 47.92 and the head to 48.92. */
static bool hpf_keeps_to_each_device(const char *extra)
{
    reactive_decodes("hpf", extra);
    return rules_starts(1, 10) && rules_finishes(0, 36.68) && rules_finishes(1, 48.92);
}

/* RT0 on the iGPU keeps the NPU idle, so BE1 ends at 36.68 + 17.36 = 54.04. */
static bool hhpf_stops_proactive_work_everywhere(const char *extra)
{
    reactive_decodes("hhpf", extra);
    return rules_starts(1, 36.68) && rules_finishes(0, 36.68) && rules_finishes(1, 54.04);
}

/* BE0 answers at 9.68 and decodes: its next token is there at 12.68. RT1 (256) comes at 12. */
static void reactive_comes(const char *policy, const char *own, const char *extra)
{
    able_machine(1);
    struct scenario_request q[] = {{BE, 0, 256, 20, 0, 0}, {RT, 0.012, 256, 1, 0, 0}};
    rules_run(policy, own, extra, q, 2);
}

/* RT1's QKV takes the NPU 12-14.56, and BE0 continues. BE0's layer (12.68-14.68) is running at
 * 14.56 and BE0 stops at its end. RT1's attention runs to 15.68 and its FFN 15.68-20.80, while BE0
 * gets its tokens at 16.68 and 19.68. The layer of BE0's next token (19.68-21.68) delays RT1's head
 * to 22.68. BE0's own head ends at 23.68. */
static bool hpf_gives_the_igpu_between_kernels(const char *extra)
{
    reactive_comes("hpf", "inflight=1", extra);
    return rules_tokens_at(0, 5, (double[]){9.68, 12.68, 16.68, 19.68, 23.68}) &&
           rules_finishes(1, 22.68);
}

/* With two in flight BE0's head is handed over with its layer. So RT1's attention runs 15.68-16.68
 * and its FFN to 21.80. BE0 gets its tokens at 15.68, 19.68 and 22.68, and then RT1's head runs, to
 * 23.68. */
static bool hpf_waits_for_what_is_in_flight(const char *extra)
{
    reactive_comes("hpf", "inflight=2,level=1", extra);
    return rules_tokens_at(0, 5, (double[]){9.68, 12.68, 15.68, 19.68, 22.68}) &&
           rules_finishes(1, 23.68);
}

/* RT1 runs as if it were alone, 12 + 9.68 = 21.68. BE0's head of 11.68-12.68 ends, and the rest
 * waits: 24.68. */
static bool hhpf_leaves_the_machine_to_the_most_urgent(const char *extra)
{
    reactive_comes("hhpf", "inflight=1", extra);
    return rules_tokens_at(0, 3, (double[]){9.68, 12.68, 24.68}) && rules_finishes(1, 21.68);
}

/* Both are proactive. BE1 (256, comes at 1) has priority 0 and BE0 (512) priority 1. BE0's first
 * chunk ends at 2.56, and BE1 at 12.24. BE0's second chunk runs 12.24-14.80, and 1 + 10.24 + 1 more
 * make 27.04. */
static bool hpf_follows_the_priorities_of_the_trace(const char *extra)
{
    able_machine(1);
    struct scenario_request q[] = {{BE, 0, 512, 1, 0, 0}, {BE, 0.001, 256, 1, 0, 0}};
    bool equal = strcmp(extra, "equal") == 0;
    rules_extra(0)->priority = equal ? 0 : 1;
    rules_run("hpf", "inflight=1", equal ? "" : extra, q, 2);
    return rules_finishes(1, 12.24) && rules_finishes(0, 27.04);
}

/* 16 blocks. BE0 (64) has five and decodes from 3.92 on. RT1 (32, three blocks), come at 4.5, stops
 * it when its layer ends at 5.92, has its prompt until 8.88, and decodes until 14.88. BE2 (208)
 * comes at 9.5 and lacks five blocks. BE0's iteration has waited since 5.92, and is as urgent as
 * BE2: it keeps its layer, and its head takes 14.88-15.88. Then BE2 takes 8.24. */
static bool hpf_takes_no_work_from_equals(const char *extra)
{
    rules_machine(1);
    sc.setup.kv_capacity_tokens = 256;
    struct scenario_request q[] = {
        {BE, 0, 64, 2, 0, 0}, {RT, 0.0045, 32, 3, 0, 0}, {BE, 0.0095, 208, 1, 0, 0}};
    bool urgent = strcmp(extra, "urgent") == 0;
    rules_extra(2)->priority = urgent ? -1 : 0;
    rules_run("hpf", "inflight=1", urgent ? "" : extra, q, 3);
    return rules_finishes(1, 14.88) && rules_finishes(0, 15.88) && rules_finishes(2, 24.12);
}

/* One request runs at a time, with quanta of 5 ms and then 10. BE0's attention ends at 2, where RT1
 * stops it until 10, and BE0 has its first token at 13. 5 of these 13 ms were its own. So it is
 * still in the first queue and decodes before BE2, which came at 3. At 16 BE0 has used 8, and BE2
 * is next. */
static bool a_pause_is_no_service(const char *extra)
{
    able_machine(1);
    struct scenario_request q[] = {
        {BE, 0, 100, 3, 0, 0}, {RT, 0.0015, 200, 1, 0, 0}, {BE, 0.003, 100, 1, 0, 0}};
    rules_run("autellix-like", "max_batch=1,preempt=kernel,t0_s=0.005,beta=1000", extra, q, 3);
    return rules_finishes(1, 10) && rules_starts(2, 16) &&
           rules_tokens_at(0, 3, (double[]){13, 16, 24});
}

static const struct rule_row all[] = {
    RULE(stops_at_the_kernel, "preempt=layer preempt=iteration preempt=reset",
         "preempt=layer preempt=iteration preempt=reset"),
    RULE(stops_at_the_layer, "preempt=kernel preempt=iteration preempt=reset",
         "preempt=kernel preempt=iteration preempt=reset"),
    RULE(stops_at_the_iteration, "preempt=layer preempt=kernel preempt=reset",
         "preempt=layer preempt=kernel preempt=reset"),
    RULE(reset_runs_the_killed_kernel_again, "preempt=kernel preempt=layer preempt=iteration",
         "preempt=kernel preempt=layer preempt=iteration"),
    RULE(reef_serves_reactive_work_in_arrival_order,
         "preempt=kernel preempt=iteration class=rt_first class=blind policy=sjf-input inflight=8",
         "preempt=kernel preempt=iteration class=rt_first class=blind policy=sjf-input"),
    RULE(one_in_flight_needs_no_level, "level=1 level=2 level=3 inflight=2,level=1",
         "level=3 inflight=2,level=1"),
    RULE(level_1_waits_for_what_is_in_flight, "level=2 level=3 level=device inflight=1",
         "level=2 level=3 level=device inflight=1"),
    RULE(level_2_waits_for_the_running_kernel, "level=1 level=3 level=device inflight=1",
         "level=1 level=3"),
    RULE(level_3_waits_for_none_and_loses_nothing, "level=1 level=2 preempt=reset",
         "level=1 level=2 preempt=reset"),
    RULE(eight_in_flight_take_eight_kernels, "level=2 level=3 inflight=7",
         "level=2 level=3 inflight=7"),
    RULE(level_2_takes_one_kernel_however_many_are_in_flight, "level=1 inflight=12", "level=1"),
    RULE(checkpoint_keeps_the_pass, "kv=recompute kv=swap", "kv=recompute kv=swap"),
    RULE(recompute_starts_the_prompt_over, "kv=checkpoint kv=swap", "kv=checkpoint kv=swap"),
    RULE(a_pause_is_no_service, "t0_s=0.004 t0_s=0.009", "t0_s=0.004 t0_s=0.009"),
    RULE(hpf_keeps_to_each_device, "policy=hhpf max_batch=1", "policy=hhpf"),
    RULE(hhpf_stops_proactive_work_everywhere, "policy=hpf max_batch=1", "policy=hpf"),
    RULE(hpf_gives_the_igpu_between_kernels, "policy=hhpf inflight=2,level=1 level=3",
         "policy=hhpf inflight=2,level=1 level=3"),
    RULE(hpf_waits_for_what_is_in_flight, "level=2 inflight=1", "level=2 inflight=1"),
    RULE(hhpf_leaves_the_machine_to_the_most_urgent, "policy=hpf", "policy=hpf"),
    RULE(hpf_follows_the_priorities_of_the_trace, "equal", "equal"),
    RULE(hpf_takes_no_work_from_equals, "urgent policy=hhpf", "urgent"),
    RULE(swap_brings_the_kv_back, "kv=checkpoint kv=recompute", "kv=checkpoint kv=recompute"),
};

RULES_MAIN("mechanisms", all)
