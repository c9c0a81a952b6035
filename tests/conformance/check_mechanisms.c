/* How a running pass is stopped, what that costs, and what becomes of its KV (clauses.md E.4,
 * E.8): the axes of the iteration-level scheduler, and hpf and hhpf, rule by rule. Toy times:
 * tests/helpers/rules.h.
 *
 * Most scenarios: BE0 prefills 400 tokens over two layers, kernels 4, 1, 8, 4, 1, 8 and the head 1:
 * 0-4, 4-5, 5-13, 13-17, 17-18, 18-26, 26-27. RT1 (100 tokens: 1, 1, 2, 1, 1, 2, 1) takes 9 ms. */
#include <string.h>

#include "tests/helpers/rules.h"

static const struct scenario_request two[] = {{BE, 0, 400, 1, 0, 0}, {RT, 0.002, 100, 1, 0, 0}};

/* Devices that can do everything; a reset or suspension takes 1 ms. */
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

/* RT1 starts and ends, BE0 ends at these ms. */
static bool times(const char *own, const char *extra, double start, double rt, double be)
{
    able_machine(2);
    rules_run("sjf-input", own, extra, two, 2);
    return rules_starts(1, start) && rules_finishes(1, rt) && rules_finishes(0, be);
}

/* ---- where it stops ---- */

/* RT1 comes at 2, BE0's kernel ends at 4; nothing is lost: 27 + 9 = 36. */
static bool stops_at_the_kernel(const char *extra)
{
    return times("preempt=kernel", extra, 4, 13, 36);
}

/* The layer ends at 13. */
static bool stops_at_the_layer(const char *extra)
{
    return times("preempt=layer", extra, 13, 22, 36);
}

/* The iteration at 27. */
static bool stops_at_the_iteration(const char *extra)
{
    return times("", extra, 27, 36, 27);
}

/* REEF: killed at 2, free at 3. The killed kernel runs again from its start: BE0 takes 27 from 12
 * on, and its first kernel runs 12-16. */
static bool reset_runs_the_killed_kernel_again(const char *extra)
{
    bool same = times("preempt=reset", extra, 3, 12, 39);
    const struct scenario_kernel *k = scenario_kernel_find(&sc, 0, 0, IGPU, OP_QKV);
    return same && k != NULL && k->begin_ns == MS(12) && k->end_ns == MS(16);
}

/* REEF is reset, reactive requests alone and first come, first served. BE1 (100) waits since 1 and
 * is not taken along by RT2; RT3 (50: 5 + 1) comes at 4 and does not preempt RT2, although it is
 * shorter: 12-18. BE0 then takes its 27, BE1 its 9. Nor does it matter how many kernels are in
 * flight. */
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

/* The kernels to 4, 5 and 13 are on the device: RT1 starts at 13. */
static bool level_1_waits_for_what_is_in_flight(const char *extra)
{
    return times("preempt=kernel,inflight=3,level=1", extra, 13, 22, 36);
}

/* One in flight: both levels are the kernel boundary. */
static bool one_in_flight_needs_no_level(const char *extra)
{
    return times("preempt=kernel", extra, 4, 13, 36);
}

/* Those not begun are taken back. */
static bool level_2_waits_for_the_running_kernel(const char *extra)
{
    return times("preempt=kernel,inflight=3,level=2", extra, 4, 13, 36);
}

/* Interrupted at 2, free at 3; BE0 keeps its 2 ms: 12 + 25 = 37. */
static bool level_3_waits_for_none_and_loses_nothing(const char *extra)
{
    return times("preempt=kernel,inflight=3,level=3", extra, 3, 12, 37);
}

/* XSched's own figure: threshold 8, kernels of T = 0.5 ms, and the latency is about 8 T at level 1
 * and 1 T at level 2. Four layers of three kernels: RT1 comes 0.1 ms after the first has begun. */
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

/* 400 tokens an iteration: BE0's first ends at 26 and leaves KV of 400 tokens, the second would end
 * at 26 + 27 = 53. RT1 comes at 28, the kernel ends at 30; RT1 30-39. Flash moves 400 tokens of 1
 * MB in 1 ms. One request at a time: a batch would take BE0 along. */
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

/* It goes on at 39 with the 23 ms that were left: 62. */
static bool checkpoint_keeps_the_pass(const char *extra)
{
    return fate("", extra, 62, 0, 0);
}

/* Both iterations again: 39 + 53 = 92. */
static bool recompute_starts_the_prompt_over(const char *extra)
{
    return fate(",kv=recompute", extra, 92, 1, 0);
}

/* Out 30-31, back 39-40; the KV of the first iteration is there, the second runs anew: 67. */
static bool swap_brings_the_kv_back(const char *extra)
{
    return fate(",kv=swap", extra, 67, 0, 1);
}

/* ---- hpf, hhpf ---- */

/* On one layer a prompt of 256 is QKV 2.56 on the NPU, attention 1 on the iGPU, FFN 5.12 on the
 * NPU, head 1 on the iGPU: 9.68; one of 512 takes 5.12 + 1 + 10.24 + 1 = 17.36. A decode: layer 2,
 * head 1.
 *
 * RT0 answers at 9.68 and decodes nine more tokens, to 36.68. BE1 (512) comes at 10. */
static void reactive_decodes(const char *policy, const char *extra)
{
    able_machine(1);
    struct scenario_request q[] = {{RT, 0, 256, 10, 0, 0}, {BE, 0.010, 512, 1, 0, 0}};
    rules_run(policy, "inflight=1", extra, q, 2);
}

/* Nobody more urgent is ready on the NPU: QKV 10-15.12. The iGPU is RT0's to the end: attention
 * 36.68-37.68, FFN to 47.92, head to 48.92. */
static bool hpf_keeps_to_each_device(const char *extra)
{
    reactive_decodes("hpf", extra);
    return rules_starts(1, 10) && rules_finishes(0, 36.68) && rules_finishes(1, 48.92);
}

/* RT0 on the iGPU keeps the NPU idle: 36.68 + 17.36 = 54.04. */
static bool hhpf_stops_proactive_work_everywhere(const char *extra)
{
    reactive_decodes("hhpf", extra);
    return rules_starts(1, 36.68) && rules_finishes(0, 36.68) && rules_finishes(1, 54.04);
}

/* BE0 answers at 9.68 and decodes: 12.68, ...; RT1 (256) comes at 12. */
static void reactive_comes(const char *policy, const char *own, const char *extra)
{
    able_machine(1);
    struct scenario_request q[] = {{BE, 0, 256, 20, 0, 0}, {RT, 0.012, 256, 1, 0, 0}};
    rules_run(policy, own, extra, q, 2);
}

/* RT1's QKV takes the NPU 12-14.56 and BE0 goes on; at 14.56 BE0's layer (12.68-14.68) is stopped
 * at its end: attention to 15.68, FFN 15.68-20.80 while BE0 gets its tokens at 16.68 and 19.68. The
 * layer of its next (19.68-21.68) delays the head: 22.68; BE0's own head: 23.68. */
static bool hpf_gives_the_igpu_between_kernels(const char *extra)
{
    reactive_comes("hpf", "inflight=1", extra);
    return rules_tokens_at(0, 5, (double[]){9.68, 12.68, 16.68, 19.68, 23.68}) &&
           rules_finishes(1, 22.68);
}

/* With two in flight the head goes with its layer: attention 15.68-16.68, FFN to 21.80; BE0 gets
 * its tokens at 15.68, 19.68 and 22.68, when the head of RT1 runs, to 23.68. */
static bool hpf_waits_for_what_is_in_flight(const char *extra)
{
    reactive_comes("hpf", "inflight=2,level=1", extra);
    return rules_tokens_at(0, 5, (double[]){9.68, 12.68, 15.68, 19.68, 22.68}) &&
           rules_finishes(1, 23.68);
}

/* RT1 as if alone, 12 + 9.68 = 21.68. BE0's head of 11.68-12.68 ends, the rest waits: 24.68. */
static bool hhpf_leaves_the_machine_to_the_most_urgent(const char *extra)
{
    reactive_comes("hhpf", "inflight=1", extra);
    return rules_tokens_at(0, 3, (double[]){9.68, 12.68, 24.68}) && rules_finishes(1, 21.68);
}

/* Both proactive, BE1 (256, come at 1) of priority 0, BE0 (512) of priority 1: the first chunk ends
 * at 2.56, BE1 at 12.24; BE0's second chunk 12.24-14.80, then 1 + 10.24 + 1: 27.04. */
static bool hpf_follows_the_priorities_of_the_trace(const char *extra)
{
    able_machine(1);
    struct scenario_request q[] = {{BE, 0, 512, 1, 0, 0}, {BE, 0.001, 256, 1, 0, 0}};
    bool equal = strcmp(extra, "equal") == 0;
    rules_extra(0)->priority = equal ? 0 : 1;
    rules_run("hpf", "inflight=1", equal ? "" : extra, q, 2);
    return rules_finishes(1, 12.24) && rules_finishes(0, 27.04);
}

/* One at a time, quanta of 5 ms and then 10. BE0's attention ends at 2, where RT1 stops it until
 * 10; it goes on to 13. 5 of these 13 ms were its own: it is still in the first queue and decodes
 * before BE2, which came at 3, and at 16 it has used 8. */
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
    RULE(swap_brings_the_kv_back, "kv=checkpoint kv=recompute", "kv=checkpoint kv=recompute"),
};

RULES_MAIN("mechanisms", all)
