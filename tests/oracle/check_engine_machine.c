/* Events of the machine, by hand. The toy iGPU of the power tests has one layer: QKV takes 4 s,
 * attention 6, FFN 8 and the head 2. So a prefill takes 20 s, at 30 W, and nothing else draws
 * power. In the tests of memory a token takes 1 MB of KV and a block 16 tokens, and 12 blocks fit
 * next to the weights. */
#include <errno.h>
#include <string.h>

#include "policies/registry.h"
#include "tests/helpers/byhand.h"

#define S(t) units_ns_from_s(t)
#define MIB (1024.0 * 1024.0)

static struct machine_state seen[8];
static uint32_t n_seen;

static void on_conditions(void *self, int64_t now_ns, const struct machine_state *now)
{
    (void)self;
    (void)now_ns;
    ck_assert_uint_lt(n_seen, 8);
    seen[n_seen++] = *now;
}

static void setup(void)
{
    byhand_setup();
    n_seen = 0;
    sc.observer.conditions = on_conditions;
    scenario_cost(&sc, IGPU, OP_QKV, 4000, 0, 0);
    scenario_cost(&sc, IGPU, OP_MHA, 6000, 0, 0);
    scenario_cost(&sc, IGPU, OP_FFN, 8000, 0, 0);
    scenario_cost(&sc, IGPU, OP_HEAD, 2000, 0, 0);
    sc.machine.idle_watts = 0;
    sc.machine.devices[IGPU].prefill_watts = 30;
    sc.machine.compile_watts = 0;
    sc.setup.throttle = (struct sim_throttle){.exponent = 1, .min_speed = 0.1};
    x.step = script_serve;
    x.device = IGPU;
}

static struct machine_event *event(double at_s, uint32_t sets)
{
    struct machine_event *v = &sc.events[sc.n_events++];
    *v = (struct machine_event){.at_ns = S(at_s), .until_ns = TRACE_LAST_NS, .sets = sets};
    return v;
}

static const struct scenario_request one[] = {{BE, 0, 256, 1, 0, 0}};

static double finish_s(void)
{
    byhand_run(x.step, one, 1);
    return (double)sc.records[0].finish_ns / 1e9;
}

/* ---- power ---- */

/* From 7 s on, in the middle of attention, 15 of 30 W halve the speed. 13 s of work are left, and
 * take 26. The device draws 30 W for 7 s and 15 W for 26 s. */
START_TEST(a_power_limit_doubles_times_from_then_on)
{
    event(7, MACHINE_SETS_POWER_LIMIT)->power_limit_watts = 15;
    ck_assert_double_eq_tol(finish_s(), 33.0, 1e-8);
    ck_assert_double_eq_tol(sc.result.audit.energy_sum_j, 7 * 30 + 26 * 15, 1e-6);
    ck_assert_double_eq(seen[0].power_limit_watts, 15.0);
}
END_TEST

/* The limit ends at 17 s. By then 12 s of work are done, and the other 8 run at full speed. With an
 * exponent of 3 a limit of 30 / 8 W is half speed. */
START_TEST(a_power_limit_ends)
{
    sc.setup.throttle.exponent = _i == 0 ? 1 : 3;
    event(7, MACHINE_SETS_POWER_LIMIT)->power_limit_watts = _i == 0 ? 15 : 3.75;
    event(17, MACHINE_SETS_POWER_LIMIT)->power_limit_watts = 0;
    ck_assert_double_eq_tol(finish_s(), 25.0, 1e-8);
}
END_TEST

/* PL1 is 1000 W, which is never reached. The lower limit of the two counts. */
START_TEST(the_lower_of_two_limits_counts)
{
    sc.setup.throttle =
        (struct sim_throttle){.limit_watts = 1000, .tau_s = 10, .exponent = 1, .min_speed = 0.1};
    event(7, MACHINE_SETS_POWER_LIMIT)->power_limit_watts = 15;
    ck_assert_double_eq_tol(finish_s(), 33.0, 1e-8);
}
END_TEST

/* ---- battery ---- */

static void battery(double at_s, double charge_j, double full_j)
{
    struct machine_event *v = event(at_s, MACHINE_SETS_BATTERY | MACHINE_SETS_SOURCE);
    v->battery_j = charge_j;
    v->battery_full_j = full_j;
    v->on_battery = true;
}

/* 300 J at 30 W last 10 s from the start, or until 15 s where the battery comes at 5 s. The request
 * is then unfinished, and the run is no failure. */
START_TEST(a_battery_is_empty_when_its_joules_are_drawn)
{
    double from_s = _i == 0 ? 0 : 5;
    battery(from_s, 300, 600);
    byhand_run(x.step, one, 1);
    ck_assert_int_eq(sc.result.end_ns, S(from_s + 10));
    ck_assert(sc.result.battery.empty);
    ck_assert_double_eq_tol(sc.result.battery.drawn_j, 300, 1e-6);
    ck_assert_double_eq_tol(sc.result.battery.end_frac, 0, 1e-9);
    ck_assert_uint_eq(sc.result.audit.running, 1);
    ck_assert_uint_eq(sc.result.audit.finished, 0);
}
END_TEST

/* At 8 s the machine is on mains again. By then 240 of 600 J are drawn. The run ends when it would
 * without a battery. */
START_TEST(mains_keep_the_charge)
{
    battery(0, 600, 600);
    event(8, MACHINE_SETS_SOURCE)->on_battery = false;
    ck_assert_double_eq_tol(finish_s(), 20.0, 1e-8);
    ck_assert(!sc.result.battery.empty);
    ck_assert_double_eq_tol(sc.result.battery.drawn_j, 240, 1e-6);
    ck_assert_double_eq_tol(sc.result.battery.end_frac, 0.6, 1e-9);
    ck_assert(seen[0].on_battery && !seen[1].on_battery);
    ck_assert_double_eq_tol(seen[1].battery_frac, 0.6, 1e-9);
}
END_TEST

/* The platform draws 5 W as well, so 20 s of 35 W take 700 of 1000 J. In the second case the charge
 * is set to 500 J at 10 s, when 350 are drawn. 350 more are drawn after it, so 150 of 1000 J are
 * left. */
START_TEST(the_package_draws_and_a_charge_can_be_set_again)
{
    sc.machine.idle_watts = 5;
    battery(0, 1000, 1000);
    if (_i == 1) {
        battery(10, 500, 1000);
    }
    ck_assert_double_eq_tol(finish_s(), 20.0, 1e-8);
    ck_assert_double_eq_tol(sc.result.battery.drawn_j, 700, 1e-6);
    ck_assert_double_eq_tol(sc.result.battery.end_frac, _i == 0 ? 0.3 : 0.15, 1e-9);
}
END_TEST

/* A limit of 15 W from 4 s on saves energy and time on battery. By then 120 J are drawn, and the
 * other 180 last 12 s. */
START_TEST(a_power_limit_stretches_the_battery)
{
    battery(0, 300, 300);
    event(4, MACHINE_SETS_POWER_LIMIT)->power_limit_watts = 15;
    byhand_run(x.step, one, 1);
    ck_assert_int_eq(sc.result.end_ns, S(16));
}
END_TEST

/* 30 W behind a supply of efficiency 0.75 are 40 W at the battery. The display takes 10 W. So 300 J
 * last 6 s. */
START_TEST(the_supply_and_the_rest_draw_as_well)
{
    sc.setup.supply = (struct sim_supply){0.75, 10};
    battery(0, 300, 300);
    byhand_run(x.step, one, 1);
    ck_assert_int_eq(sc.result.end_ns, S(6));
    ck_assert_double_eq_tol(sc.result.battery.drawn_j, 300, 1e-6);
}
END_TEST

/* 50 W for 5 s are 250 of 1000 J. On mains the battery is not drawn from, also not by the
 * display. */
START_TEST(mains_feed_the_rest_too)
{
    sc.setup.supply = (struct sim_supply){0.75, 10};
    battery(0, 1000, 1000);
    event(5, MACHINE_SETS_SOURCE)->on_battery = false;
    ck_assert_double_eq_tol(finish_s(), 20.0, 1e-8);
    ck_assert_double_eq_tol(sc.result.battery.drawn_j, 250, 1e-6);
    ck_assert_double_eq_tol(sc.result.battery.end_frac, 0.75, 1e-9);
}
END_TEST

static void serve_nobody(struct sched *s, struct script *y)
{
    (void)s;
    (void)y;
}

/* A policy that serves nobody has stalled, and the empty battery is no excuse. */
START_TEST(an_empty_battery_hides_no_stall)
{
    sc.machine.idle_watts = 5;
    battery(0, 50, 50);
    x.step = serve_nobody;
    ck_assert_int_ne(script_run(&sc, &x, one, 1), 0);
    ck_assert_ptr_nonnull(strstr(sc.result.message, "no event to come"));
}
END_TEST

/* ---- frames and windows ---- */

/* Frames of 0.5 s are due every 10 s from 5 s on. The first waits for attention, which ends at 10
 * s. The second, due at 15 s, waits for FFN, which ends at 18.5 s. The head then ends at 21 s. No
 * frame is due after 16 s. */
START_TEST(frames_begin_and_end)
{
    sc.setup.frames =
        (struct sim_frames){.per_s = 0, .device = IGPU, .device_ns = S(0.5), .bytes = 0};
    event(5, MACHINE_SETS_FRAMES)->frames_per_s = 0.1;
    event(16, MACHINE_SETS_FRAMES)->frames_per_s = 0;
    ck_assert_double_eq_tol(finish_s(), 21.0, 1e-8);
}
END_TEST

START_TEST(frames_need_a_device)
{
    event(5, MACHINE_SETS_FRAMES)->frames_per_s = 0.1;
    ck_assert_int_ne(script_run(&sc, &x, one, 1), 0);
    ck_assert(sc.result.refused);
    ck_assert_ptr_nonnull(strstr(sc.result.message, "machine[0].frames_per_s"));
}
END_TEST

static struct machine_state at[4];

static void serve_in_the_window(struct sched *s, struct script *y)
{
    struct machine_state now = sched_machine_state(s);
    at[y->stage < 4 ? y->stage++ : 3] = now;
    if (now.background_window) {
        script_serve(s, y);
    }
}

/* The window is closed when the first request arrives at 1 s. It is open for 20 s from 30 s on, and
 * again every 100 s. It may open until 130 s, and does at that
 * instant. So the second prompt, at 60 s, begins at 130 s. No other event
 * calls `schedule` at 30 s. */
START_TEST(a_policy_sees_windows_open_again_and_again)
{
    static const struct scenario_request two[] = {{BE, 1, 256, 1, 0, 0}, {BE, 60, 256, 1, 0, 0}};
    event(0, MACHINE_SETS_WINDOW)->background_window = false;
    for (int k = 0; k < 2; k++) {
        struct machine_event *v = event(k == 0 ? 30 : 50, MACHINE_SETS_WINDOW);
        v->background_window = k == 0;
        v->every_ns = S(100);
        v->until_ns = S(k == 0 ? 130 : 140);
    }
    byhand_run(serve_in_the_window, two, 2);
    ck_assert(at[0].background_window == false);
    ck_assert_int_eq(sc.records[0].start_ns, S(30));
    ck_assert_int_eq(sc.records[1].start_ns, S(130));
}
END_TEST

/* edf with class=window. The background prompt arrives at 1 s. Its window opens at 30 s and closes
 * at 31 s, while the prompt runs from 30 to 50 s. A user's prompt, at 2 s, is served until 22 s.
 * The background request's second token needs another iteration, which waits for the window at 100
 * s. */
START_TEST(background_work_waits_for_a_window)
{
    static const struct scenario_request two[] = {{BE, 1, 256, 2, 0, 0}, {RT, 2, 256, 1, 0, 0}};
    const double at_s[] = {0, 30, 31, 100};
    for (int k = 0; k < 4; k++) {
        event(at_s[k], MACHINE_SETS_WINDOW)->background_window = k % 2 == 1;
    }
    scenario_policy(&sc, policy_find("edf"), "class=window,device=igpu");
    ck_assert_int_eq(scenario_run(&sc, two, 2, false), 0);
    ck_assert_int_eq(sc.records[1].start_ns, S(2));
    ck_assert_int_eq(sc.records[0].start_ns, S(30));
    ck_assert_int_eq(sc.records[0].first_token_ns, S(50));
    ck_assert_int_gt(sc.records[0].finish_ns, S(100));
}
END_TEST

/* ---- memory ---- */

/* Sets 12 blocks of 16 MB, and kernels of 1 ms a row and of 10 ms a decode. */
static void small_memory(void)
{
    sc.machine.memory_bytes = sc.llm.weight_bytes + 192e6;
    for (int op = 0; op < OP_KIND_COUNT; op++) {
        scenario_cost(&sc, IGPU, (enum op_kind)op, 0, 0, 0);
    }
    scenario_cost(&sc, IGPU, OP_QKV, 0, 1, 0);
    scenario_cost(&sc, IGPU, OP_LAYER, 10, 0, 0);
}

static uint64_t lost[3], n_lost;

static void on_lost(void *self, int64_t now_ns, const struct request *r, uint64_t tokens)
{
    (void)self;
    (void)now_ns;
    lost[r->id] += tokens;
    n_lost++;
}

/* Serves in order. Where A can get no KV, it drops that of B. */
static void take_from_the_younger(struct sched *s, struct script *y)
{
    script_serve(s, y);
    const struct request *a = y->request[0];
    const struct request *b = y->request[1];
    if (a != NULL && a->pass == NULL && b != NULL && b->pass == NULL && b->kv_tokens > 0) {
        y->rc[0] = sched_kv_move(s, kv_of(b), KV_NOWHERE);
        script_serve(s, y);
    }
}

/* A has 79 tokens in 5 blocks and runs to 79 ms. B has 64 in 4 blocks, waits on the device and runs
 * to 143 ms. So 3 blocks are free. Without an event both decode in turn.
 *
 * In the second case another program takes 5 blocks at 100 ms: it gets the 3 at once, and 2 are
 * owed. B's decode needs a fifth block, and gets none. A's first decode has room for its 80th
 * token, 143 to 153 ms. Its second needs a sixth block. So B gives up its 4: 2 pay the debt, and A
 * has one of the others. A decodes to 173 ms and is done. B computes 64 + 1 tokens again, to 238
 * ms, and decodes its last token to 248 ms.
 *
 * In the third case the memory is given back at 150 ms. Nothing is owed any more, and no request
 * loses anything. */
START_TEST(memory_that_is_taken_forces_one_eviction)
{
    static const struct scenario_request two[] = {{BE, 0, 79, 4, 0, 0}, {BE, 0.01, 64, 3, 0, 0}};
    small_memory();
    sc.machine.devices[IGPU].inflight_depth = 2;
    memset(lost, 0, sizeof lost);
    n_lost = 0;
    sc.observer.kv_lost = on_lost;
    if (_i > 0) {
        event(0.1, MACHINE_SETS_MEMORY)->memory_bytes = 5 * 16e6;
    }
    if (_i > 1) {
        event(0.15, MACHINE_SETS_MEMORY)->memory_bytes = 0;
    }
    byhand_run(take_from_the_younger, two, 2);
    ck_assert_uint_eq(sc.result.audit.finished, 2);
    ck_assert_uint_eq(n_lost, _i == 1 ? 1 : 0);
    ck_assert_uint_eq(lost[1], _i == 1 ? 64 : 0);
    if (_i == 1) {
        ck_assert_double_eq_tol(units_ms_from_ns(sc.records[0].finish_ns), 173, 1e-3);
        ck_assert_double_eq_tol(units_ms_from_ns(sc.records[1].finish_ns), 248, 1e-3);
    }
}
END_TEST

/* A queue of three has room for three, two, one and no launch. When the first has ended, at 32 ms,
 * it has room for one again. */
static void note_room(struct sched *s, struct script *y)
{
    for (uint32_t i = 0; i < 4; i++) {
        const struct request *r = y->request[i];
        if (r != NULL && r->pass == NULL && r->state != REQUEST_STATE_DECODE) {
            y->rc[y->stage++] = (int)sched_device_free_slots(s, IGPU);
            y->pass[i] = script_form(s, r);
            y->rc[16 + i] = script_launch(s, y->pass[i], IGPU, YIELD_PASS, &y->launch[i]);
        }
    }
    if (y->n_ends == 1 && y->rc[8]++ == 0) {
        y->rc[9] = (int)sched_device_free_slots(s, IGPU);
    }
    script_serve(s, y);
}

START_TEST(a_queue_has_the_room_that_is_left)
{
    static const struct scenario_request q[] = {
        {BE, 0, 32, 1, 0, 0}, {BE, 0, 32, 1, 0, 0}, {BE, 0, 32, 1, 0, 0}, {BE, 0, 32, 1, 0, 0}};
    small_memory();
    sc.machine.devices[IGPU].inflight_depth = 3;
    byhand_run(note_room, q, 4);
    ck_assert_uint_eq(x.stage, 4);
    for (int i = 0; i < 4; i++) {
        ck_assert_int_eq(x.rc[i], 3 - i);
        ck_assert_int_eq(x.rc[16 + i], i < 3 ? 0 : -EBUSY);
    }
    ck_assert_int_eq(x.rc[9], 1);
}
END_TEST

static void take_from_the_youngest(struct sched *s, struct script *y)
{
    script_serve(s, y);
    for (int i = 2; i > 0 && y->request[0] != NULL && y->request[0]->pass == NULL; i--) {
        const struct request *r = y->request[i];
        if (r != NULL && r->pass == NULL && r->kv_tokens > 0) {
            (void)sched_kv_move(s, kv_of(r), KV_NOWHERE);
            script_serve(s, y);
        }
    }
}

/* A has 5 blocks, B and C have 2 each, and 3 are free when 5 are taken at 100 ms: 2 are owed. A
 * needs a sixth block at 153 ms. C's two pay the debt and A gets none of them, so B gives its two
 * as well. An engine that serves A before the debt takes nothing from B. */
START_TEST(what_is_owed_is_paid_before_anybody_gets_any)
{
    static const struct scenario_request q[] = {
        {BE, 0, 79, 4, 0, 0}, {BE, 0.01, 32, 2, 0, 0}, {BE, 0.02, 32, 2, 0, 0}};
    small_memory();
    sc.machine.devices[IGPU].inflight_depth = 3;
    memset(lost, 0, sizeof lost);
    n_lost = 0;
    sc.observer.kv_lost = on_lost;
    event(0.1, MACHINE_SETS_MEMORY)->memory_bytes = 5 * 16e6;
    byhand_run(take_from_the_youngest, q, 3);
    ck_assert_uint_eq(n_lost, 2);
    ck_assert_uint_eq(lost[1], 32);
    ck_assert_uint_eq(lost[2], 32);
    ck_assert_uint_eq(sc.result.audit.finished, 3);
}
END_TEST

/* The first turn holds 7 of 12 blocks when 8 are taken, and ends at 110 ms. The prefix that it
 * leaves is given to the other program at once. The next turn comes a second later, when all memory
 * is given back. It computes all of its 150 tokens: 110 + 1000 + 150 = 1260 ms. */
START_TEST(what_a_turn_leaves_pays_the_debt)
{
    static const struct scenario_request turns[] = {{BE, 0, 110, 1, 7, 0}, {BE, 1, 150, 1, 7, 110}};
    small_memory();
    event(0.05, MACHINE_SETS_MEMORY)->memory_bytes = 8 * 16e6;
    event(0.5, MACHINE_SETS_MEMORY)->memory_bytes = 0;
    byhand_run(script_serve, turns, 2);
    ck_assert_double_eq_tol(units_ms_from_ns(sc.records[1].finish_ns), 1260, 1e-3);
}
END_TEST

/* A session's first turn leaves 64 tokens in 4 blocks. Another program takes 8 blocks from 100 to
 * 500 ms, and leaves these 4. In the second case it takes 9, and the prefix is dropped. The second
 * turn of 100 tokens comes after a second, and computes 36 or 100 of them. */
START_TEST(cached_prefixes_give_way_before_requests)
{
    static const struct scenario_request turns[] = {{BE, 0, 64, 1, 7, 0}, {BE, 1, 100, 1, 7, 64}};
    small_memory();
    event(0.1, MACHINE_SETS_MEMORY)->memory_bytes = (_i == 0 ? 8 : 9) * 16e6;
    event(0.5, MACHINE_SETS_MEMORY)->memory_bytes = 0;
    byhand_run(script_serve, turns, 2);
    ck_assert_double_eq_tol(units_ms_from_ns(sc.records[1].finish_ns), _i == 0 ? 1100 : 1164, 1e-3);
}
END_TEST

static uint64_t most_tokens;

static void note_capacity(struct sched *s, struct script *y)
{
    if (script_at(s, y, 0, 80)) {
        most_tokens = sched_kv_capacity_tokens(s);
    }
    script_serve(s, y);
}

/* Requests of 111 and 112 tokens need 7 blocks. From 50 to 200 ms other programs have 6 of the 12.
 * The first request leaves when its prefill ends, at 110 ms. The second leaves when it arrives, at
 * 60 ms. One of 50 tokens arrives at 100 ms, and runs when the first has left. The last one arrives
 * at 300 ms, and is served. */
START_TEST(what_cannot_fit_any_more_is_shed)
{
    static const struct scenario_request q[] = {{BE, 0, 110, 2, 0, 0},
                                                {BE, 0.06, 110, 1, 0, 0},
                                                {BE, 0.1, 50, 1, 0, 0},
                                                {BE, 0.3, 110, 1, 0, 0}};
    small_memory();
    event(0.05, MACHINE_SETS_MEMORY)->memory_bytes = 6 * 16e6;
    event(0.2, MACHINE_SETS_MEMORY)->memory_bytes = 0;
    byhand_run(note_capacity, q, 4);
    ck_assert_uint_eq(most_tokens, 96);
    ck_assert_uint_eq(sc.result.audit.shed, 2);
    ck_assert_uint_eq(sc.result.counters[COUNTER_MEMORY_SHED], 2);
    ck_assert_double_eq_tol(units_ms_from_ns(sc.records[0].finish_ns), 110, 1e-3);
    ck_assert_int_eq(sc.records[0].state, REQUEST_STATE_SHED);
    ck_assert_double_eq_tol(units_ms_from_ns(sc.records[1].finish_ns), 60, 1e-3);
    ck_assert_double_eq_tol(units_ms_from_ns(sc.records[2].finish_ns), 160, 1e-3);
    ck_assert_double_eq_tol(units_ms_from_ns(sc.records[3].finish_ns), 410, 1e-3);
}
END_TEST

static void compile_when_short(struct sched *s, struct script *y)
{
    script_serve(s, y);
    if (script_at(s, y, 0, 70)) {
        struct resident_key kernels = {RESIDENT_COMPILED_ATTENTION, 64, 0};
        struct resident_key graph = {RESIDENT_GRAPH_BLOCK, 0, 1};
        y->rc[0] = sched_compile(s, kernels);
        y->rc[1] = sched_load(s, graph, 1e6);
        y->rc[2] = sched_resident_evict(s, kernels);
    }
}

/* At 50 ms a prompt of 110 tokens holds 7 of 12 blocks, and 8 are taken, so 3 are owed. In the
 * second case others want 20, which is more than there is. Compiled attention takes no memory here,
 * so it is compiled and evicted all the same. A graph block takes some, and is refused. */
START_TEST(what_takes_no_memory_needs_none)
{
    static const struct scenario_request q[] = {{BE, 0, 110, 1, 0, 0}};
    small_memory();
    event(0.05, MACHINE_SETS_MEMORY)->memory_bytes = (_i == 0 ? 8 : 20) * 16e6;
    event(0.09, MACHINE_SETS_MEMORY)->memory_bytes = 0;
    byhand_run(compile_when_short, q, 1);
    ck_assert_int_eq(x.rc[0], 0);
    ck_assert_int_eq(x.rc[1], -ENOMEM);
    ck_assert_int_eq(x.rc[2], 0);
}
END_TEST

/* ---- in the middle of iterations that run in one step ---- */

/* A prompt of 73 ms is followed by 100 decodes of 10 ms. Half speed from 500 ms on doubles the 573
 * ms that are left: 1,646 ms in all. The joules must be equal to the last bit, whether iterations
 * run in one step or each kernel is an event. The head's one ns is below the tolerance. */
START_TEST(an_event_ends_iterations_in_one_step)
{
    static const struct scenario_request q[] = {{BE, 0, 64, 101, 0, 0}};
    int64_t end_ns[2];
    double energy_j[2];
    for (int k = 0; k < 2; k++) {
        byhand_teardown();
        setup();
        sc.n_events = 0;
        small_memory();
        scenario_cost(&sc, IGPU, OP_QKV, 9, 1, 0);
        event(0.5, MACHINE_SETS_POWER_LIMIT)->power_limit_watts = 5;
        scenario_policy(&sc, policy_find("orca"), "");
        sc.setup.collapse = k == 0;
        sc.observer.tokens = NULL; /* nobody looks at each token */
        sc.observer.kernel = NULL;
        ck_assert_int_eq(scenario_run(&sc, q, 1, false), 0);
        end_ns[k] = sc.records[0].finish_ns;
        energy_j[k] = sc.result.audit.energy_sum_j;
    }
    ck_assert_double_eq_tol(units_ms_from_ns(end_ns[0]), 1646, 2e-3);
    ck_assert_int_eq(end_ns[0], end_ns[1]);
    ck_assert(energy_j[0] == energy_j[1]);
}
END_TEST

/* Before each launch comes host work of 5 ms at no watts. The prompt takes 73 ms at 30 W, 2.19 J,
 * and each decode 10 ms at 10 W, 0.1 J. The battery has 5.05 J more. These last for 50 decodes of
 * 15 ms, for 5 ms of host work and for half a decode: 78 + 750 + 10 = 838 ms. That holds too where
 * iterations run in one step, and where a supply of one half draws twice as much from twice the
 * charge. */
START_TEST(a_battery_is_watched_between_iterations)
{
    static const struct scenario_request q[] = {{BE, 0, 64, 101, 0, 0}};
    small_memory();
    scenario_cost(&sc, IGPU, OP_QKV, 9, 1, 0);
    sc.machine.schedule_ns = 5 * NS_PER_MS;
    double times = _i < 2 ? 1.0 : 2.0;
    sc.setup.supply.efficiency_frac = 1.0 / times;
    battery(0, times * (2.19 + 5.05), 20);
    scenario_policy(&sc, policy_find("orca"), "");
    sc.setup.collapse = _i % 2 == 0;
    sc.observer.tokens = NULL; /* nobody looks at each token */
    sc.observer.kernel = NULL;
    ck_assert_int_eq(scenario_run(&sc, q, 1, false), 0);
    ck_assert(sc.result.battery.empty);
    ck_assert_double_eq_tol(units_ms_from_ns(sc.result.end_ns), 838, 1e-2);
}
END_TEST

static const struct suite_row suite[] = {
    CASE("power", .setup = setup, .teardown = byhand_teardown),
    TEST(a_power_limit_doubles_times_from_then_on),
    LOOP(a_power_limit_ends, 2),
    TEST(the_lower_of_two_limits_counts),
    CASE("battery", .setup = setup, .teardown = byhand_teardown),
    LOOP(a_battery_is_empty_when_its_joules_are_drawn, 2),
    TEST(mains_keep_the_charge),
    LOOP(the_package_draws_and_a_charge_can_be_set_again, 2),
    TEST(a_power_limit_stretches_the_battery),
    TEST(the_supply_and_the_rest_draw_as_well),
    TEST(mains_feed_the_rest_too),
    TEST(an_empty_battery_hides_no_stall),
    CASE("frames and windows", .setup = setup, .teardown = byhand_teardown),
    TEST(frames_begin_and_end),
    TEST(frames_need_a_device),
    TEST(a_policy_sees_windows_open_again_and_again),
    TEST(background_work_waits_for_a_window),
    CASE("memory", .setup = setup, .teardown = byhand_teardown),
    TEST(a_queue_has_the_room_that_is_left),
    LOOP(memory_that_is_taken_forces_one_eviction, 3),
    LOOP(cached_prefixes_give_way_before_requests, 2),
    TEST(what_cannot_fit_any_more_is_shed),
    LOOP(what_takes_no_memory_needs_none, 2),
    TEST(what_is_owed_is_paid_before_anybody_gets_any),
    TEST(what_a_turn_leaves_pays_the_debt),
    CASE("one step", .setup = setup, .teardown = byhand_teardown),
    TEST(an_event_ends_iterations_in_one_step),
    LOOP(a_battery_is_watched_between_iterations, 4),
};
SUITE_MAIN("events of the machine", suite)
