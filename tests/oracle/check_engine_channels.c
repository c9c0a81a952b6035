/* The loader, the compiler, shared DDR and energy, by hand. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/helpers/byhand.h"

static void setup(void)
{
    byhand_setup();
    x.device = IGPU;
    sc.machine.devices[NPU].static_attention = false;
    sc.machine.loader_bytes_per_s = 1e9;
    sc.machine.loader_fixed_ns = MS(1);
}

static void ready(uint32_t i, uint32_t id, double ms)
{
    ck_assert_uint_gt(x.n_ready, i);
    ck_assert_uint_eq(x.ready[i].id, id);
    ck_assert_msg(x.ready[i].at_ns == MS(ms), "resident %u ready at %.6f ms, not %.3f", id,
                  units_ms_from_ns(x.ready[i].at_ns), ms);
}

/* One request of 30 ms on the iGPU keeps the run alive. It arrives at 0. */
static const struct scenario_request keep[] = {{BE, 0, 16, 1, 0, 0}};

static struct resident_key block(uint32_t number)
{
    return (struct resident_key){RESIDENT_GRAPH_BLOCK, number, 2};
}

static struct resident_key attention(uint32_t tokens)
{
    return (struct resident_key){RESIDENT_COMPILED_ATTENTION, tokens, 0};
}

/* ---- the loader ---- */

static void load_three(struct sched *s, struct script *y)
{
    script_serve(s, y);
    if (y->stage == 0) {
        y->stage = 1;
        y->rc[0] = sched_load(s, block(1), 10e6);
        y->rc[1] = sched_load(s, block(1), 10e6);
        y->rc[2] = sched_load(s, block(2), 0.0);
        y->rc[3] = sched_load(s, block(3), 5e6);
        y->rc[4] = (int)sched_resident_state(s, block(3));
        y->rc[5] = (int)sched_resident_state(s, block(4));
    }
}

/* A load takes 1 ms and 1 ms a MB. So 10 MB are ready at 11 ms, and 5 MB 6 ms later, at 17. A
 * second load of the same block and a load of no bytes are refused. */
START_TEST(loads_go_through_one_channel_in_order)
{
    scenario_cost(&sc, IGPU, OP_QKV, 30, 0, 0);
    byhand_run(load_three, keep, 1);
    ck_assert_int_eq(x.rc[0], 0);
    ck_assert_int_eq(x.rc[1], -EALREADY);
    ck_assert_int_eq(x.rc[4], RESIDENT_PENDING);
    ck_assert_int_eq(x.rc[5], RESIDENT_ABSENT);
    ready(0, 1, 11);
    ck_assert_int_eq(x.rc[2], -EINVAL);
    ready(1, 3, 17);
    ck_assert_uint_eq(sc.result.counters[COUNTER_LOADS], 2);
    ck_assert_uint_eq(sc.result.counters[COUNTER_RESIDENT_REFUSED], 2);
    /* 1 GB of weights, 16 MB for one block of 16 tokens of KV, and 15 MB of graphs */
    ck_assert_double_eq_tol(sc.result.memory_peak_bytes, 1e9 + 16e6 + 15e6, 1.0);
}
END_TEST

/* ---- their memory ---- */

static int map_two(struct sched *s, struct script *y)
{
    y->rc[0] = sched_map(s, block(1), 600e6);
    y->rc[1] = (int)sched_resident_state(s, block(1));
    y->rc[2] = sched_map(s, block(2), 600e6);
    y->rc[3] = sched_map(s, block(3), 9e9);
    y->rc[4] = sched_load(s, block(3), 1e6);
    return 0;
}

static void fill_memory(struct sched *s, struct script *y)
{
    script_serve(s, y);
    if (script_at(s, y, 0, 5)) {
        y->rc[5] = sched_map(s, block(3), 1e6);
        y->rc[6] = (int)sched_kv_free_tokens(s);
        y->rc[7] = sched_load(s, block(3), 250e6);
        y->rc[8] = (int)sched_kv_free_tokens(s);
        y->rc[9] = sched_load(s, block(4), 235e6);
        y->rc[10] = sched_resident_evict(s, block(3));
        y->rc[11] = (int)sched_kv_free_tokens(s);
        y->rc[12] = sched_resident_evict(s, block(2));
        y->rc[13] = (int)sched_kv_free_tokens(s);
        y->rc[14] = (int)sched_kv_capacity_tokens(s);
    }
}

/* 1.7 GB of memory and 1 GB of weights leave 700 tokens at 1 MB each: 43 whole blocks of 16, or
 * 688.
 *
 *   graphs of 1.2 GB   1 GB are weights, 0.2 GB are new: 1888 - 1700 = 188 MB over, 12 blocks fewer
 *   the request        takes one block of 31, so 30 are free, or 480 tokens
 *   250 MB more        438 MB over, 28 blocks fewer: 15, of which 14 are free
 *   235 MB more        673 MB over, 43 blocks fewer: none would be left for the request, so refused
 *
 * Evicting the 250 MB gives the 480 tokens back. Evicting a mapped graph leaves 0.6 GB of graphs,
 * less than the weights. So KV has all its blocks again, of which 42 are free. A request can still
 * count on 31 alone, since the graph may come back. */
START_TEST(residents_take_memory_from_kv_and_are_refused_beyond_it)
{
    sc.machine.memory_bytes = 1.7e9;
    scenario_cost(&sc, IGPU, OP_QKV, 30, 0, 0);
    x.init = map_two;
    byhand_run(fill_memory, keep, 1);
    ck_assert_int_eq(x.rc[0], 0);
    ck_assert_int_eq(x.rc[1], RESIDENT_READY);
    ck_assert_int_eq(x.rc[2], 0);
    ck_assert_int_eq(x.rc[3], -ENOMEM);
    ck_assert_int_eq(x.rc[4], -EPERM); /* only in init */
    ck_assert_int_eq(x.rc[5], -EPERM); /* only in init */
    ck_assert_int_eq(x.rc[6], 480);
    ck_assert_int_eq(x.rc[7], 0);
    ck_assert_int_eq(x.rc[8], 14 * 16);
    ck_assert_int_eq(x.rc[9], -ENOMEM);
    ck_assert_int_eq(x.rc[10], 0);
    ck_assert_int_eq(x.rc[11], 480);
    ck_assert_int_eq(x.rc[12], 0);
    ck_assert_int_eq(x.rc[13], 42 * 16);
    ck_assert_int_eq(x.rc[14], 31 * 16);
    ck_assert_double_eq_tol(sc.result.memory_peak_bytes, 1.2e9 + 250e6 + 16e6, 1.0);
}
END_TEST

static int map_too_much(struct sched *s, struct script *y)
{
    y->rc[0] = sched_map(s, block(1), 9e9);
    return 0;
}

static void load_after_a_refusal(struct sched *s, struct script *y)
{
    script_serve(s, y);
    if (script_at(s, y, 0, 5)) {
        y->rc[1] = sched_load(s, block(1), 250e6);
        y->rc[2] = (int)sched_kv_free_tokens(s);
    }
}

/* The weights and 43 blocks of KV are there, as above. A graph that was refused holds no weights,
 * so one of 250 MB takes memory next to them: 1938 - 1700 = 238 MB over, 15 blocks fewer. The
 * request has one of the 28. */
START_TEST(a_refused_graph_holds_no_weights)
{
    sc.machine.memory_bytes = 1.7e9;
    scenario_cost(&sc, IGPU, OP_QKV, 30, 0, 0);
    x.init = map_too_much;
    byhand_run(load_after_a_refusal, keep, 1);
    ck_assert_int_eq(x.rc[0], -ENOMEM);
    ck_assert_int_eq(x.rc[1], 0);
    ck_assert_int_eq(x.rc[2], 27 * 16);
}
END_TEST

static void load_between_two(struct sched *s, struct script *y)
{
    script_serve(s, y);
    if (script_at(s, y, 0, 50)) {
        y->rc[0] = sched_load(s, block(1), 100e6);
    }
}

/* There are 160 MB of KV at first, then none, then a graph of 100 MB, and at last 96 MB of KV next
 * to it. Most memory is in use at the end, though KV has its peak before and nothing is loaded
 * then. A peak that is taken at loads only, or at the peak of KV, is smaller. */
START_TEST(memory_peaks_where_less_kv_meets_more_residents)
{
    scenario_cost(&sc, IGPU, OP_QKV, 30, 0, 0);
    static const struct scenario_request q[] = {{BE, 0, 160, 1, 0, 0}, {BE, 0.2, 96, 1, 0, 0}};
    byhand_run(load_between_two, q, 2);
    ck_assert_int_eq(x.rc[0], 0);
    ck_assert_double_eq_tol(sc.result.memory_peak_bytes, 1e9 + 100e6 + 96e6, 1.0);
}
END_TEST

/* With the graphs mapped, 31 blocks of 16 tokens are left of 43. A request of 495 and 1 tokens
 * needs 496, and runs. One of 601 is refused at its arrival, though the KV without graphs holds
 * 688. */
START_TEST(a_request_is_measured_by_what_the_mapped_graphs_leave)
{
    for (uint32_t more = 0; more < 2; more++) {
        setup();
        sc.machine.memory_bytes = 1.7e9;
        x.init = map_two;
        x.step = script_serve;
        const struct scenario_request q[] = {{BE, 0, more == 0 ? 495 : 600, 1, 0, 0}};
        int rc = script_run(&sc, &x, q, 1);
        ck_assert_int_eq(rc, more == 0 ? 0 : -ENOMEM);
        ck_assert(more == 0 || strstr(sc.result.message,
                                      "needs 601 KV tokens, the machine holds 496 next to the "
                                      "graphs mapped at the start") != NULL);
        byhand_teardown();
    }
}
END_TEST

static void ask_capacity(struct sched *s, struct script *y)
{
    script_serve(s, y);
    for (uint32_t i = 0; i < 4; i++) {
        if (script_at(s, y, i, 2 + 5 * (double)i)) {
            y->rc[5 + i] = (int)sched_kv_capacity_tokens(s);
        }
    }
}

/* Both graphs count while another program takes 80 MB, then 20, and then none. The memory is over
 * by 188, 268, 208 and 188 MB. That is 12, 17, 13 and 12 blocks of 43. */
START_TEST(mapped_graphs_count_whatever_other_programs_take)
{
    static const double taken[] = {80e6, 20e6, 0};
    sc.machine.memory_bytes = 1.7e9;
    scenario_cost(&sc, IGPU, OP_QKV, 30, 0, 0);
    x.init = map_two;
    for (uint32_t i = 0; i < 3; i++) {
        sc.events[sc.n_events++] = (struct machine_event){.at_ns = MS(5 + 5 * i),
                                                          .until_ns = TRACE_LAST_NS,
                                                          .sets = MACHINE_SETS_MEMORY,
                                                          .memory_bytes = taken[i]};
    }
    byhand_run(ask_capacity, keep, 1);
    ck_assert_int_eq(x.rc[5], 31 * 16);
    ck_assert_int_eq(x.rc[6], 26 * 16);
    ck_assert_int_eq(x.rc[7], 30 * 16);
    ck_assert_int_eq(x.rc[8], 31 * 16);
}
END_TEST

static void cancel_load(struct sched *s, struct script *y)
{
    script_serve(s, y);
    if (y->stage == 0) {
        (void)sched_load(s, block(1), 10e6);
        (void)sched_load(s, block(2), 3e6);
        (void)sched_load(s, block(3), 5e6);
        y->stage = 1;
    }
    if (script_at(s, y, 1, 3)) {
        y->rc[0] = sched_resident_evict(s, block(1)); /* in progress */
        y->rc[1] = sched_resident_evict(s, block(2)); /* waiting */
        y->rc[2] = sched_resident_evict(s, block(2));
        y->rc[3] = sched_load(s, block(1), 2e6);
    }
}

/* At 3 ms the first two loads are given up. Block 3 then takes 3..9 ms, and a new load of block 1
 * takes 9..12. */
START_TEST(a_cancelled_load_makes_way_for_the_next)
{
    scenario_cost(&sc, IGPU, OP_QKV, 30, 0, 0);
    byhand_run(cancel_load, keep, 1);
    ck_assert_int_eq(x.rc[0], 0);
    ck_assert_int_eq(x.rc[1], 0);
    ck_assert_int_eq(x.rc[2], -ENOENT);
    ck_assert_int_eq(x.rc[3], 0);
    ck_assert_uint_eq(x.n_ready, 2);
    ready(0, 3, 9);
    ready(1, 1, 12);
}
END_TEST

static void load_one(struct sched *s, struct script *y)
{
    script_serve(s, y);
    if (y->stage == 0) {
        y->stage = 1;
        (void)sched_load(s, block(1), 100e6);
    }
}

/* The loader is a DDR flow like a kernel. It moves 100 MB at 50 GB/s without a fixed cost, which
 * takes 2 ms. The kernel of 10 ms wants 80 of 100 GB/s. Max-min gives 50 to each, so the load takes
 * its 2 ms. Meanwhile the kernel runs at 50 / 80 and does 1.25 ms. The other 8.75 run alone: 10.75
 * ms. */
START_TEST(a_load_shares_the_ddr_with_kernels)
{
    sc.setup.contention = contention_find("max-min");
    sc.machine.loader_bytes_per_s = 50e9;
    sc.machine.loader_fixed_ns = 0;
    scenario_cost(&sc, IGPU, OP_QKV, 10, 0, 80);
    byhand_run(load_one, keep, 1);
    ready(0, 1, 2);
    ck_assert_int_eq(sc.records[0].finish_ns, MS(10.75) + 3);
}
END_TEST

/* A launch that names a graph block needs it loaded, and holds it while it lives. */
static void use_graph(struct sched *s, struct script *y)
{
    const struct request *r = y->request[0];
    if (r == NULL) {
        return;
    }
    if (y->stage == 0) {
        y->stage = 1;
        y->pass[0] = script_form(s, r);
        (void)sched_load(s, block(1), 10e6);
    }
    struct launch_spec l = sched_launch_rest(s, y->pass[0], NPU, YIELD_KERNEL);
    l.graph = 2;
    l.graph_block = 1;
    if (y->stage == 1) {
        y->stage = 2;
        y->rc[0] = sched_launch(s, &l, NULL);
    } else if (y->stage == 2 && y->n_ready == 1) {
        y->stage = 3;
        y->rc[1] = sched_launch(s, &l, NULL);
        y->rc[2] = sched_resident_evict(s, block(1));
    } else if (y->stage == 3 && y->n_ends == 1) {
        y->stage = 4;
        y->rc[3] = sched_resident_evict(s, block(1));
    }
}

START_TEST(a_launch_needs_its_graph_block_and_holds_it)
{
    scenario_cost(&sc, NPU, OP_QKV, 10, 0, 0);
    byhand_run(use_graph, keep, 1);
    ck_assert_int_eq(x.rc[0], -ENOENT);
    ck_assert_int_eq(x.rc[1], 0);
    ck_assert_int_eq(x.rc[2], -EBUSY);
    ck_assert_int_eq(x.rc[3], 0);
    ck_assert_int_eq(sc.records[0].finish_ns, MS(21) + 3); /* 11 ms of loading and 10 of work */
    ck_assert_uint_eq(sc.result.counters[COUNTER_LAUNCH_MISSING_RESIDENT], 1);
}
END_TEST

static int say_graphs(struct sched *s, struct script *y)
{
    y->rc[0] = sched_graph(s, 2, (struct graph_shape){32, 1});
    y->rc[1] = sched_graph(s, 2, (struct graph_shape){32, 1});
    y->rc[2] = sched_graph(s, 0, (struct graph_shape){32, 1});
    y->rc[3] = sched_graph(s, GRAPH_VERSIONS + 1, (struct graph_shape){32, 1});
    y->rc[4] = sched_graph(s, 1, (struct graph_shape){0, 1});
    y->rc[5] = sched_graph(s, 1, (struct graph_shape){32, 0});
    y->rc[6] = sched_graph(s, 1, (struct graph_shape){32, s->llm->n_layers + 1});
    return sched_map(s, block(1), 1e6);
}

static void launch_said(struct sched *s, struct script *y)
{
    const struct request *r = y->request[0];
    if (r == NULL || y->stage != 0) {
        return;
    }
    y->stage = 1;
    y->rc[7] = sched_graph(s, 1, (struct graph_shape){32, 1});
    y->pass[0] = script_form(s, r);
    struct launch_spec l = sched_launch_rest(s, y->pass[0], NPU, YIELD_KERNEL);
    l.graph = 2;
    l.graph_block = 1;
    l.chunk_rows = 16;
    y->rc[8] = sched_launch(s, &l, NULL);
    l.chunk_rows = 32;
    y->rc[9] = sched_launch(s, &l, NULL);
}

START_TEST(a_graph_is_said_once_before_the_run_and_launched_as_it_is)
{
    x.init = say_graphs;
    scenario_cost(&sc, NPU, OP_QKV, 10, 0, 0);
    byhand_run(launch_said, keep, 1);
    ck_assert_int_eq(x.rc[0], 0);
    for (int i = 1; i < 7; i++) {
        ck_assert_msg(x.rc[i] == -EINVAL, "answer %d: %d", i, x.rc[i]);
    }
    ck_assert_int_eq(x.rc[7], -EPERM);
    ck_assert_int_eq(x.rc[8], -EINVAL);
    ck_assert_int_eq(x.rc[9], 0);
    ck_assert_uint_eq(sc.result.counters[COUNTER_LAUNCH_BAD_SPAN], 1);
}
END_TEST

/* ---- the compiler ---- */

static void compile(struct sched *s, struct script *y)
{
    script_serve(s, y);
    if (y->stage == 0) {
        y->stage = 1;
        y->rc[0] = sched_compile(s, attention(100));
        y->rc[1] = sched_compile(s, attention(200));
        y->rc[2] = sched_compile(s, attention(300));
    }
    if (script_at(s, y, 1, 8)) {
        y->rc[3] = sched_resident_evict(s, attention(200)); /* in progress since 6 */
    }
}

/* A compilation takes 5 ms and 0.01 ms a token. So 100 tokens take 0..6 ms. 200 tokens take 6..13,
 * but are given up at 8, and 300 tokens take 8..16. The platform draws 5 W for 30 ms (and 3 ns),
 * the device 20 W for 30, and the compiler 12 W for 16: 0.15 + 0.6 + 0.192 = 0.942 J. */
START_TEST(one_thread_compiles_in_order_and_its_energy_counts)
{
    scenario_cost(&sc, IGPU, OP_QKV, 30, 0, 0);
    sc.machine.compile_fixed_ns = MS(5);
    sc.machine.compile_ns_per_token = 10000;
    byhand_run(compile, keep, 1);
    for (int i = 0; i < 4; i++) {
        ck_assert_int_eq(x.rc[i], 0);
    }
    ck_assert_uint_eq(x.n_ready, 2);
    ready(0, 100, 6);
    ready(1, 300, 16);
    ck_assert_uint_eq(sc.result.counters[COUNTER_COMPILES], 3);
    ck_assert_uint_eq(sc.result.counters[COUNTER_COMPILES_CANCELLED], 1);
    ck_assert_double_eq_tol(sc.result.audit.energy_integral_j, 0.942, 1e-6);
}
END_TEST

/* ---- memory that is given back ---- */

static void evict_and_bring(struct sched *s, struct script *y)
{
    script_serve(s, y);
    if (y->stage == 0) {
        y->stage = 1;
        (void)sched_load(s, block(1), 10e6);
        (void)sched_compile(s, attention(100));
    } else if (y->stage == 1 && y->n_ready == 2) {
        y->stage = 2;
        y->rc[0] = sched_resident_evict(s, block(1));
        y->rc[1] = sched_resident_evict(s, attention(100));
        y->rc[2] = (int)sched_resident_state(s, block(1));
        (void)sched_load(s, block(2), 10e6);
        (void)sched_compile(s, attention(200));
    }
}

/* Block 1 is loaded 0..11 ms and attention compiled 0..6 (5 ms and 0.01 ms a token). At 11 ms both
 * are evicted. Their successors take 11 ms on the loader and 7 on the compiler, so they are ready
 * at 22 and 18.
 *
 * In the second case giving a block back takes 4 ms and attention 2, so they are ready at 26 and
 * 20. The evicted block is absent at once all the same.
 *
 * The compiler draws its 12 W for 6 + 7 ms, or for 6 + 9. With 5 W for 30 ms and 20 W for 30 that
 * is 0.75 + 0.156 = 0.906 J, or 0.93. */
START_TEST(evictions_keep_their_channel_busy_where_the_machine_says_how_long)
{
    bool takes = _i == 1;
    scenario_cost(&sc, IGPU, OP_QKV, 30, 0, 0);
    sc.machine.compile_fixed_ns = MS(5);
    sc.machine.compile_ns_per_token = 10000;
    sc.machine.loader_evict_ns = takes ? MS(4) : 0;
    sc.machine.compile_evict_ns = takes ? MS(2) : 0;
    byhand_run(evict_and_bring, keep, 1);
    ck_assert_int_eq(x.rc[0], 0);
    ck_assert_int_eq(x.rc[1], 0);
    ck_assert_int_eq(x.rc[2], RESIDENT_ABSENT);
    ck_assert_uint_eq(x.n_ready, 4);
    ready(0, 100, 6);
    ready(1, 1, 11);
    ready(2, 200, takes ? 20 : 18);
    ready(3, 2, takes ? 26 : 22);
    ck_assert_double_eq_tol(sc.result.audit.energy_integral_j, takes ? 0.93 : 0.906, 1e-6);
}
END_TEST

/* ---- three flows ---- */

/* Request 0 runs on the NPU (10 ms alone, 20 GB/s), 1 on the iGPU (20 ms, 60) and 2 on the CPU (10
 * ms, 80). The DDR has 100 GB/s. */
static void three_devices(struct sched *s, struct script *y)
{
    y->stage = 1;
    for (uint32_t i = 0; i < 3; i++) {
        if (y->pass[i] == NULL && y->request[i] != NULL && y->request[i]->pass == NULL) {
            y->pass[i] = script_form(s, y->request[i]);
            (void)script_launch(s, y->pass[i], (uint8_t)i, YIELD_PASS, NULL);
        }
    }
}

struct form {
    const char *name;
    double ends_ms[3];
};

/* The ends of the three flows under each contention model.
 *
 * none: 10, 20 and 10.
 *
 * max-min: the NPU's 20 fit, and the others get 40 each, so the rates are 1, 2/3 and 1/2. At 10 the
 * NPU is done, the iGPU has 20 - 6.667 = 13.333 left, and the CPU 5. With 50 each the rates are 5/6
 * and 5/8, so the CPU is done at 10 + 8 = 18. The iGPU then has 13.333 - 6.667 = 6.667 left alone:
 * 24.6667.
 *
 * proportional: all run at 100 / 160 = 5/8. NPU and CPU are done at 16, and the iGPU has 10 left:
 * 26.
 *
 * weighted, with 3 for the iGPU: the shares are 20, 60 and 20, so the rates are 1, 1 and 1/4. At 10
 * the CPU has 7.5 left. The shares are then 60 (of 75) and 40, so the rates are 1 and 1/2. At 20
 * the iGPU is done, and the CPU has 2.5 left: 22.5. */
static const struct form forms[] = {{"none", {10, 20, 10}},
                                    {"max-min", {10, 24.0 + 2.0 / 3, 18}},
                                    {"proportional", {16, 26, 16}},
                                    {"weighted", {10, 20, 22.5}}};

START_TEST(three_flows_share_the_ddr_as_their_form_says)
{
    static const struct scenario_request q[] = {
        {BE, 0, 16, 1, 0, 0}, {BE, 0, 16, 1, 0, 0}, {BE, 0, 16, 1, 0, 0}};
    for (int collapse = 0; collapse < 2; collapse++) {
        setup();
        sc.setup.collapse = collapse == 1;
        sc.setup.contention = contention_find(forms[_i].name);
        sc.machine.devices[IGPU].ddr_weight = 3.0; /* only `weighted` uses it */
        scenario_cost(&sc, NPU, OP_QKV, 10, 0, 20);
        scenario_cost(&sc, IGPU, OP_QKV, 20, 0, 60);
        scenario_cost(&sc, CPU, OP_QKV, 10, 0, 80);
        byhand_run(three_devices, q, 3);
        for (uint32_t i = 0; i < 3; i++) { /* 3 ns of other kernels, and rounding up */
            int64_t late = sc.records[i].finish_ns - MS(forms[_i].ends_ms[i]) - 3;
            ck_assert_msg(late >= -1 && late <= 3, "%s: request %u ends at %.9f ms", forms[_i].name,
                          i, units_ms_from_ns(sc.records[i].finish_ns));
        }
        byhand_teardown();
    }
}
END_TEST

/* ---- energy ---- */

/* A prefill of 10 ms at 20 W runs on the iGPU, and then two decodes of 5 ms at 10 W. Sampling
 * takes 1 ms a token at 12 W, while the iGPU idles. The iGPU idles at 2 W, the NPU at 1 and the
 * platform at 5. A polling coordinator would draw 3 W while a device works, but this policy does
 * not poll.
 *
 * The run takes 23 ms. Platform and NPU draw 6 W: 0.138 J. The iGPU draws 0.2 + 0.1 J, and 2 W for
 * 3 ms: 0.006. Sampling draws 0.036. The sum is 0.48 J. */
START_TEST(energy_is_the_sum_of_what_each_state_draws)
{
    static const struct scenario_request q[] = {{BE, 0, 16, 3, 0, 0}};
    scenario_cost(&sc, IGPU, OP_QKV, 10 - 3e-6, 0, 0);
    scenario_cost(&sc, IGPU, OP_LAYER, 5 - 1e-6, 0, 0);
    sc.machine.devices[IGPU].idle_watts = 2;
    sc.machine.devices[NPU].idle_watts = 1;
    sc.machine.sample_ns_per_token = MS(1);
    sc.machine.poll_watts = 3;
    byhand_run(script_serve, q, 1);
    static const double token_ms[] = {11, 17, 23};
    for (int i = 0; i < 3; i++) { /* two kernels of 1 ns with attention and FFN */
        ck_assert_int_le(llabs(sc.records[0].token_ns[i] - MS(token_ms[i])), 3);
    }
    ck_assert_double_eq_tol(sc.result.audit.energy_integral_j, 0.48, 1e-6);
    ck_assert_double_eq_tol(sc.result.audit.energy_sum_j, 0.48, 1e-6);
}
END_TEST

static const struct suite_row suite[] = {
    CASE("by hand", .setup = setup, .teardown = byhand_teardown),
    TEST(loads_go_through_one_channel_in_order),
    TEST(memory_peaks_where_less_kv_meets_more_residents),
    TEST(a_request_is_measured_by_what_the_mapped_graphs_leave),
    TEST(mapped_graphs_count_whatever_other_programs_take),
    TEST(residents_take_memory_from_kv_and_are_refused_beyond_it),
    TEST(a_refused_graph_holds_no_weights),
    TEST(a_cancelled_load_makes_way_for_the_next),
    TEST(a_load_shares_the_ddr_with_kernels),
    TEST(a_launch_needs_its_graph_block_and_holds_it),
    TEST(a_graph_is_said_once_before_the_run_and_launched_as_it_is),
    TEST(one_thread_compiles_in_order_and_its_energy_counts),
    LOOP(evictions_keep_their_channel_busy_where_the_machine_says_how_long, 2),
    TEST(energy_is_the_sum_of_what_each_state_draws),
    CASE("forms"),
    LOOP(three_flows_share_the_ddr_as_their_form_says, (sizeof forms / sizeof forms[0])),
};
SUITE_MAIN("engine channels", suite)
