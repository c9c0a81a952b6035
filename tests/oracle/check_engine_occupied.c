/* A device that works without a pass (sched_occupy). It takes no launch, draws the power of decode,
 * and the policy is called when it is free again. */
#include <errno.h>
#include <string.h>

#include "tests/helpers/script.h"
#include "tests/helpers/suite.h"

#define BE REQUEST_CLASS_PROACTIVE
#define MS(t) ((int64_t)((t)*1e6 + 0.5))

enum { OCCUPIED, AGAIN, LAUNCHED, PAST, NOWHERE, WHILE_BUSY, ON_ANOTHER };

static struct scenario sc;
static struct script x;
static double npu_joules, npu_watts;
static int64_t npu_since_ns, woken_ns;
static uint32_t slots_before, slots_then, slots_after;

/* Integrates the power that is reported. */
static void on_power(void *self, int64_t now_ns, uint8_t domain, enum power_phase phase,
                     double watts)
{
    (void)self;
    (void)phase;
    if (domain == NPU) {
        npu_joules += npu_watts * units_s_from_ns(now_ns - npu_since_ns);
        npu_since_ns = now_ns;
        npu_watts = watts;
    }
}

/* At 5 ms the policy occupies the NPU until 15, and tries to launch the prompt there. At 15 it
 * launches the prompt. */
static void step(struct sched *s, struct script *c)
{
    if (c->request[0] == NULL) {
        return;
    }
    if (script_at(s, c, 0, 5)) {
        c->pass[0] = script_form(s, c->request[0]);
        slots_before = sched_device_free_slots(s, NPU);
        c->rc[PAST] = sched_occupy(s, NPU, s->now_ns);
        c->rc[NOWHERE] = sched_occupy(s, (uint8_t)s->machine->n_devices, s->now_ns + MS(1));
        c->rc[OCCUPIED] = sched_occupy(s, NPU, s->now_ns + MS(10));
        c->rc[AGAIN] = sched_occupy(s, NPU, s->now_ns + MS(10));
        slots_then = sched_device_free_slots(s, NPU);
        c->rc[LAUNCHED] = script_launch(s, c->pass[0], NPU, YIELD_PASS, NULL);
    } else if (c->stage == 1 && s->now_ns > MS(5)) {
        c->stage++;
        woken_ns = s->now_ns; /* nobody set a timer */
        slots_after = sched_device_free_slots(s, NPU);
        ck_assert_int_eq(script_launch(s, c->pass[0], NPU, YIELD_PASS, NULL), 0);
        c->rc[WHILE_BUSY] = sched_occupy(s, NPU, s->now_ns + MS(1));
    }
}

/* One layer takes 4 + 6 + 8 + 1 ms. The NPU draws 1 W at rest, 3 W in decode and 7 W in prefill. */
static void setup(void)
{
    scenario_init(&sc);
    memset(&x, 0, sizeof x);
    x.step = step;
    sc.observer.power = on_power;
    struct device *npu = &sc.machine.devices[NPU];
    npu->static_attention = false;
    npu->idle_watts = npu_watts = 1;
    npu->decode_watts = 3;
    npu->prefill_watts = 7;
    scenario_cost(&sc, NPU, OP_QKV, 4, 0, 5);
    scenario_cost(&sc, NPU, OP_MHA, 6, 0, 5);
    scenario_cost(&sc, NPU, OP_FFN, 8, 0, 5);
    scenario_cost(&sc, NPU, OP_HEAD, 1, 0, 5);
}

static void teardown(void)
{
    scenario_fini(&sc);
}

/* The NPU is free again at `free_ms`, and has run the prompt at `done_ms`. */
static void run(double free_ms, double done_ms)
{
    static const struct scenario_request q[] = {{BE, 0, 256, 1, 0, 0}};
    int rc = script_run(&sc, &x, q, 1);
    ck_assert_msg(rc == 0, "%s", sc.result.message);
    ck_assert_int_eq(woken_ns, MS(free_ms));
    ck_assert_int_eq(sc.records[0].first_token_ns, MS(done_ms));
}

/* The NPU is at rest for 5 ms, occupied for 10 and prefills for 19. */
START_TEST(an_occupied_device_draws_power_and_takes_no_launch)
{
    run(15, 15 + 19);
    ck_assert_int_eq(x.rc[PAST], -EINVAL);
    ck_assert_int_eq(x.rc[NOWHERE], -EINVAL);
    ck_assert_int_eq(x.rc[OCCUPIED], 0);
    ck_assert_int_eq(x.rc[AGAIN], -EBUSY);
    ck_assert_int_eq(x.rc[LAUNCHED], -EBUSY);
    ck_assert_int_eq(x.rc[WHILE_BUSY], -EBUSY);
    ck_assert_uint_gt(slots_before, 0);
    ck_assert_uint_eq(slots_then, 0);
    ck_assert_uint_eq(slots_after, slots_before);
    ck_assert_double_eq_tol(npu_joules, 0.005 * 1 + 0.010 * 3 + 0.019 * 7, 1e-9);
}
END_TEST

/* The platform draws 5 W, the NPU at rest 1, and 7 W are allowed. So 1 W is left above rest.
 * Occupied, the NPU would draw 2 W above rest, so it runs at half speed. In prefill it would draw 4
 * W above rest, so it runs at a quarter. */
START_TEST(a_power_limit_slows_what_occupies_a_device)
{
    sc.setup.throttle = (struct sim_throttle){7, 7, 10, 1, 0.1};
    sc.machine.devices[NPU].prefill_watts = 5;
    run(5 + 20, 25 + 19 * 4);
    ck_assert_double_eq_tol(npu_joules, 0.005 * 1 + (0.020 + 0.076) * 2, 1e-9);
}
END_TEST

/* The NPU runs at half speed until a period of 8 ms is over, at 13 ms. By then 4 of the 10 ms are
 * done, and 6 are left. */
START_TEST(a_step_of_frequency_changes_what_is_left_of_it)
{
    sc.setup.dvfs[NPU] = (struct sim_dvfs){
        .n = 2, .steps = {{0.5, 0.25}, {1, 1}}, .period_ns = MS(8), .headroom = 1.25};
    run(13 + 6, 19 + 19);
    ck_assert_double_eq_tol(npu_joules, 0.005 * 1 + 0.008 * 1.5 + 0.006 * 3 + 0.019 * 7, 1e-9);
}
END_TEST

static const struct suite_row suite[] = {
    CASE("by hand", .setup = setup, .teardown = teardown),
    TEST(an_occupied_device_draws_power_and_takes_no_launch),
    TEST(a_power_limit_slows_what_occupies_a_device),
    TEST(a_step_of_frequency_changes_what_is_left_of_it),
};
SUITE_MAIN("engine occupied", suite)
