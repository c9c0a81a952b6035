/* The memory of kernels and its collector (sim/engine/buffers.c), by hand. The toy iGPU has one
 * layer: QKV takes 4 ms, attention 6, FFN 8, the head 1, and a decode's layer 10. A prompt has four
 * kernels and takes 19 ms. A decode has two, of which the head is also the prompt's, and takes 11.
 * A load of a kernel takes 3 ms. The model is 64 wide. */
#include "tests/helpers/changedrun.h"

#include "tests/helpers/byhand.h"
#include "tests/helpers/two_models.h"

#define MB(n) ((n)*1e6)
#define WIDTH 64.0

static void setup(void)
{
    byhand_setup();
    scenario_cost(&sc, IGPU, OP_QKV, 4, 0, 0);
    scenario_cost(&sc, IGPU, OP_MHA, 6, 0, 0);
    scenario_cost(&sc, IGPU, OP_FFN, 8, 0, 0);
    scenario_cost(&sc, IGPU, OP_HEAD, 1, 0, 0);
    scenario_cost(&sc, IGPU, OP_LAYER, 10, 0, 0);
    x.device = IGPU;
}

static void kernels(int device, double budget_mb, double instructions_mb, double buffer_bytes)
{
    sc.setup.kernels[device] = (struct sim_kernel_memory){
        .budget_bytes = MB(budget_mb),
        .instructions_bytes = MB(instructions_mb),
        .buffer_bytes = buffer_bytes,
        .load_ns = MS(3),
    };
}

static void counted(uint64_t loads, uint64_t evictions, double peak_bytes)
{
    const struct sim_kernel_memory_use *k = &sc.result.kernel_memory;
    ck_assert(k->known);
    ck_assert_uint_eq(k->loads, loads);
    ck_assert_uint_eq(k->evictions, evictions);
    ck_assert_int_eq(k->load_ns, (int64_t)loads * MS(3));
    ck_assert_double_eq_tol(k->peak_bytes, peak_bytes, 1e-3);
}

static void tokens(uint32_t request, double first_ms, double second_ms)
{
    const double ms[] = {first_ms, second_ms};
    scenario_tokens_at(&sc, request, 2, ms);
}

/* The second prompt has 13 rows, and uses the kernels of 16. */
static const struct scenario_request two[] = {{BE, 0, 16, 2, 0, 0}, {BE, 1, 13, 2, 0, 0}};

/* Each of the five kernels is loaded once, with 2 MB of instructions. Three have buffers of 16 rows
 * of 100 B x 64. Head and decode's layer have one row each. The second request loads nothing. */
START_TEST(a_kernel_is_loaded_once_where_there_is_room)
{
    kernels(IGPU, 100, 2, 100);
    byhand_run(script_serve, two, 2);
    tokens(0, 19 + 4 * 3, 19 + 4 * 3 + 11 + 3);
    tokens(1, 1019, 1030);
    counted(5, 0, MB(10) + 100 * WIDTH * (3 * 16 + 2));
}
END_TEST

/* The second of two models is 160 wide. Each has its own four kernels: three with buffers of 16
 * rows of 100 B and its width, and the head with one. */
START_TEST(buffers_are_as_wide_as_their_own_model)
{
    static const struct scenario_request q[] = {{BE, 0, 16, 1, 0, 0}, {BE, 1, 16, 1, 0, 0}};
    static struct two_models both;
    two_models_init(&sc, &both);
    both.other.llm.hidden = 160;
    kernels(IGPU, 100, 2, 100);
    two_models_script(&sc, &x, q, (const uint8_t[]){0, 1}, NULL, 2, script_serve);
    counted(8, 0, MB(16) + 100 * (WIDTH + 160) * (3 * 16 + 1));
}
END_TEST

/* There is room for four kernels of 1 MB. The first decode's layer takes the place of QKV, the
 * oldest that it does not need. The second prompt loads QKV in the place of the layer, since it
 * needs the others itself. The second decode loads its layer again. */
START_TEST(a_launch_keeps_the_kernels_that_it_needs)
{
    kernels(IGPU, 4, 1, 0);
    byhand_run(script_serve, two, 2);
    tokens(0, 31, 45);
    tokens(1, 1000 + 19 + 3, 1000 + 22 + 14);
    counted(4 + 1 + 1 + 1, 1 + 1 + 1, MB(4));
}
END_TEST

/* There is room for the seven kernels of prompts of 16 and of 32 rows, which share the head. The
 * third prompt uses those of 16 again, so that the three of 64 rows take the places of those of 32.
 * The last prompt loads nothing. A collector that evicts the newest kernels, or the first loaded,
 * has other counts. */
START_TEST(the_least_recently_used_gives_way)
{
    static const struct scenario_request q[] = {{BE, 0, 16, 1, 0, 0},
                                                {BE, 1, 32, 1, 0, 0},
                                                {BE, 2, 16, 1, 0, 0},
                                                {BE, 3, 64, 1, 0, 0},
                                                {BE, 4, 16, 1, 0, 0}};
    kernels(IGPU, 7, 1, 0);
    byhand_run(script_serve, q, 5);
    ck_assert_int_eq(sc.records[2].first_token_ns, MS(2019));
    ck_assert_int_eq(sc.records[4].first_token_ns, MS(4019));
    counted(4 + 3 + 3, 3, MB(7));
}
END_TEST

/* There is room for two and a half kernels. A prompt gets its four all the same, and keeps FFN and
 * the head when it is over. The next one needs both, and loads QKV and attention next to them. */
START_TEST(a_launch_gets_what_it_needs_and_gives_back_what_is_over)
{
    static const struct scenario_request q[] = {{BE, 0, 16, 1, 0, 0}, {BE, 1, 16, 1, 0, 0}};
    kernels(IGPU, 2.5, 1, 0);
    byhand_run(script_serve, q, 2);
    ck_assert_int_eq(sc.records[0].first_token_ns, MS(31));
    ck_assert_int_eq(sc.records[1].first_token_ns, MS(1025));
    counted(4 + 2, 2 + 2, MB(4));
}
END_TEST

/* A prompt of 17 rows needs kernels of 32 rows. One of 16 rows cannot use them, and loads its
 * own. */
START_TEST(kernels_are_of_the_next_power_of_two_rows)
{
    static const struct scenario_request q[] = {{BE, 0, 17, 1, 0, 0}, {BE, 1, 16, 1, 0, 0}};
    kernels(IGPU, 100, 0, 10);
    byhand_run(script_serve, q, 2);
    counted(4 + 3, 0, 10 * WIDTH * (3 * 32 + 3 * 16 + 1));
}
END_TEST

static void cut_first(struct sched *s, struct script *y)
{
    if (y->stage == 0 && y->request[0] != NULL) {
        y->stage = 1;
        y->pass[0] = script_form(s, y->request[0]);
        struct launch_spec some = sched_launch_rest(s, y->pass[0], IGPU, YIELD_OP);
        some.n_ops = 1;
        some.rows = 4;
        ck_assert_int_eq(sched_launch(s, &some, NULL), 0);
    } else if (y->stage == 1 && sched_device_free_slots(s, IGPU) > 0) {
        y->stage = 2;
        ck_assert_int_eq(script_launch(s, y->pass[0], IGPU, YIELD_PASS, NULL), 0);
    }
}

/* QKV has 16 rows, and 4 of them are a launch. The next one has the other 12, and all later ops
 * with 16 rows. So there are kernels of QKV with 4 rows and with 16. */
START_TEST(a_share_of_the_rows_has_kernels_of_its_size)
{
    static const struct scenario_request q[] = {{BE, 0, 16, 1, 0, 0}};
    kernels(IGPU, 100, 0, 10);
    byhand_run(cut_first, q, 1);
    counted(5, 0, 10 * WIDTH * (4 + 3 * 16 + 1));
}
END_TEST

static struct resident_key attention(uint32_t t)
{
    return (struct resident_key){RESIDENT_COMPILED_ATTENTION, t, 0};
}

static void compile_first(struct sched *s, struct script *y)
{
    if (y->stage == 0) {
        y->stage = 1;
        y->rc[0] = sched_compile(s, attention(256));
    }
    if (sched_resident_state(s, attention(256)) == RESIDENT_READY) {
        script_serve(s, y);
    }
    if (script_at(s, y, 1, 500)) {
        y->rc[1] = sched_compile(s, attention(1024));
    }
    if (script_at(s, y, 2, 600)) {
        y->rc[2] = sched_resident_evict(s, attention(1024));
        y->rc[3] = sched_compile(s, attention(512));
    }
}

/* The NPU has chunks of 128 rows: QKV and FFN of 128, the head of 1, and attention compiled for 256
 * tokens. Buffers of 1000 B take 64 kB a row. So the four take 32.8 of the 80 MB.
 *
 * At 500 ms attention of 1024 rows needs 65.5 MB. With the other attention's 16.4 that alone is
 * more than 80. So the three kernels are evicted. Nothing else can be, since only policies give up
 * attention. The prompt at 2 s loads the three again, next to 49.2 MB of attention.
 *
 * In the second case the head runs until 1009 ms. The first launch then holds its kernels at 500
 * ms, so they stay. When it ends, the 1024 have been evicted. */
START_TEST(compiled_attention_counts_and_pushes_idle_kernels_out)
{
    static const struct scenario_request q[] = {{BE, 0, 256, 1, 0, 0}, {BE, 2, 256, 1, 0, 0}};
    sc.machine.devices[NPU].chunk_rows = 128;
    sc.machine.compile_fixed_ns = MS(5);
    sc.machine.compile_ns_per_token = 0;
    if (_i == 1) {
        scenario_cost(&sc, NPU, OP_HEAD, 995, 0, 0);
    }
    kernels(NPU, 80, 0, 1000);
    x.device = NPU;
    byhand_run(compile_first, q, 2);
    for (int i = 0; i < 4; i++) {
        ck_assert_int_eq(x.rc[i], 0);
    }
    double rows = _i == 0 ? 256 + 1024 : 128 + 128 + 1 + 256 + 1024;
    counted(_i == 0 ? 6 : 3, _i == 0 ? 3 : 0, 1000 * WIDTH * rows);
}
END_TEST

/* ---- whole machines ---- */

struct how {
    struct soc_kernels kernels; /* of all devices */
    bool every_event;
};

static void change(struct config *c, const void *with)
{
    const struct how *h = with;
    for (uint32_t i = 0; i < c->soc.machine.n_devices; i++) {
        c->soc.devices[i].kernels = h->kernels;
    }
    c->sim.collapse = !h->every_event;
}

static const char *const policies[] = {"agent-xpu-v1", "agent-xpu-v2", "openvino-cb", "llm-npu"};

/* Kernels that take one byte of memory and no time change no result, though every launch then
 * begins without the engine's shortcut. A byte is less than a block of KV, so the KV's capacity is
 * the same. It counts as memory in use, one byte on each of three devices. */
START_TEST(kernels_that_cost_nothing_change_nothing)
{
    static const struct how nothing = {.every_event = false}, byte = {.kernels.budget_bytes = 1};
    struct runner_result none, some;
    changed_run(policies[_i], change, &nothing, &none);
    changed_run(policies[_i], change, &byte, &some);
    ck_assert_ptr_null(metric_list_find(&none.metrics, "kernels.loads"));
    ck_assert_double_ge(changed_metric(&some, "kernels.loads"), 5.0);
    ck_assert_double_eq(changed_metric(&some, "kernels.load_s"), 0.0);
    changed_same(&none, &some, "memory_peak_bytes");
    double devices = 3; /* NPU, iGPU, CPU */
    ck_assert_double_eq_tol(changed_metric(&some, "memory_peak_bytes"),
                            changed_metric(&none, "memory_peak_bytes") + devices, 1e-3);
    runner_result_fini(&none);
    runner_result_fini(&some);
}
END_TEST

/* A run has the same results with and without events for the ends of kernels. */
START_TEST(kernels_need_not_be_events)
{
    struct how tight = {
        .kernels = {
            .budget_bytes = 30e6, .instructions_bytes = 4e6, .buffer_bytes = 2, .load_ns = MS(2)}};
    struct runner_result a, b;
    changed_run(policies[_i], change, &tight, &a);
    tight.every_event = true;
    changed_run(policies[_i], change, &tight, &b);
    const struct sim_kernel_memory_use *k = &a.sim.kernel_memory;
    ck_assert_uint_gt(k->evictions, 0);
    ck_assert_double_eq(changed_metric(&a, "kernels.evictions"), (double)k->evictions);
    ck_assert_double_eq(changed_metric(&a, "kernels.loads"), (double)k->loads);
    ck_assert_double_eq_tol(changed_metric(&a, "kernels.load_s"), 0.002 * (double)k->loads, 1e-9);
    ck_assert_double_eq(changed_metric(&a, "kernels.peak_bytes"), k->peak_bytes);
    changed_same(&a, &b, NULL);
    runner_result_fini(&a);
    runner_result_fini(&b);
}
END_TEST

/* A budget of 64 MB on each of three devices is taken from KV. The 3B model has 28 layers with 8 KV
 * heads of 128. K and V take one byte each, so a token takes 2 * 28 * 8 * 128 bytes. The capacity
 * is whole blocks of 16 tokens. */
START_TEST(a_budget_is_taken_from_kv)
{
    static const struct how nothing = {.every_event = false}, some = {.kernels.budget_bytes = 64e6};
    struct runner_result a, b;
    changed_run("fcfs", change, &nothing, &a);
    changed_run("fcfs", change, &some, &b);
    double kv_bytes = 2.0 * 28 * 8 * 128;
    double tokens_less = (double)(a.sim.kv_capacity_tokens - b.sim.kv_capacity_tokens);
    ck_assert_double_eq_tol(tokens_less, 3 * 64e6 / kv_bytes, 16.0);
    runner_result_fini(&a);
    runner_result_fini(&b);
}
END_TEST

static const struct suite_row suite[] = {
    CASE("by hand", .setup = setup, .teardown = byhand_teardown),
    TEST(buffers_are_as_wide_as_their_own_model),
    TEST(a_kernel_is_loaded_once_where_there_is_room),
    TEST(a_launch_keeps_the_kernels_that_it_needs),
    TEST(the_least_recently_used_gives_way),
    TEST(a_launch_gets_what_it_needs_and_gives_back_what_is_over),
    TEST(kernels_are_of_the_next_power_of_two_rows),
    TEST(a_share_of_the_rows_has_kernels_of_its_size),
    LOOP(compiled_attention_counts_and_pushes_idle_kernels_out, 2),
    CASE("whole machines", .timeout_s = 60),
    LOOP(kernels_that_cost_nothing_change_nothing, 4),
    LOOP(kernels_need_not_be_events, 4),
    TEST(a_budget_is_taken_from_kv),
};
SUITE_MAIN("memory of kernels", suite)
