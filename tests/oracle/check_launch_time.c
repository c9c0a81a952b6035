/* Where the time of a launch is spent. Without contention and limits it has these parts: the host's
 * lead, the isolated time of its kernels, a kernel that was killed, the device's reset, and frames
 * of the display that it waited for. Their sum must be the time from its start to its end, for
 * every launch of random loads. */
#include <string.h>

#include "experiments/conformance/randomload.h"
#include "policies/registry.h"
#include "tests/helpers/suite.h"
#include "tests/helpers/wild.h"

enum { LOADS = 24, MOST = 24, FRAMES = 1 << 14, LAUNCHES = 1 << 16 };

static const struct {
    const char *policy, *params;
    bool resets;
} runs[] = {{"program-fcfs", "preempt=reset", true},
            {"prema", "preempt=reset", true},
            {"mlfq", "preempt=reset", true},
            {"sjf-input", "preempt=reset", true},
            {"srpt", "preempt=layer", false},
            {"hhpf", "", false},
            {"agent-xpu-v1", "", false},
            {"agent-xpu-v2", "", false}};

static struct scenario sc;
static struct scenario_request q[MOST];
static int64_t lead_ns[LAUNCHES];
static struct shown {
    int64_t begin_ns, end_ns;
} frames[FRAMES];
static struct over {
    uint32_t id;
    uint8_t device;
    int64_t begin_ns, end_ns, isolated_ns, lost_ns;
} overs[LAUNCHES];
static uint32_t n_frames, n_overs, n_reset, n_waited;
static char what[64];

static void on_started(void *self, int64_t now_ns, const struct launch *l, int64_t lead)
{
    (void)self;
    (void)now_ns;
    ck_assert_uint_lt(l->id, LAUNCHES);
    lead_ns[l->id] = lead;
}

static void on_ended(void *self, int64_t now_ns, const struct launch *l, int64_t isolated_ns,
                     int64_t lost_ns)
{
    bool reset = l->outcome == LAUNCH_OUTCOME_RESET;
    int64_t end_ns = now_ns - (reset ? sc.machine.devices[l->device].reset_ns : 0);
    (void)self;
    if (l->outcome != LAUNCH_OUTCOME_WITHDRAWN && end_ns > l->start_ns + lead_ns[l->id]) {
        overs[n_overs++] = (struct over){l->id,  l->device,   l->start_ns + lead_ns[l->id],
                                         end_ns, isolated_ns, lost_ns};
        n_reset += reset;
    }
}

static void on_frame(void *self, int64_t now_ns, uint8_t device, enum frame_state to,
                     int64_t due_ns)
{
    (void)self;
    (void)device;
    (void)due_ns;
    if (to == FRAME_STARTED) {
        ck_assert_uint_lt(n_frames, FRAMES);
        frames[n_frames++] = (struct shown){now_ns, INT64_MAX};
    } else if (to == FRAME_DONE) {
        frames[n_frames - 1].end_ns = now_ns;
    }
}

static int64_t behind_frames_ns(const struct over *x)
{
    int64_t sum_ns = 0;
    for (uint32_t i = 0; i < n_frames && x->device == sc.setup.frames.device; i++) {
        int64_t from = frames[i].begin_ns > x->begin_ns ? frames[i].begin_ns : x->begin_ns;
        int64_t to = frames[i].end_ns < x->end_ns ? frames[i].end_ns : x->end_ns;
        sum_ns += to > from ? to - from : 0;
    }
    n_waited += sum_ns > 0;
    return sum_ns;
}

static void run(int which, uint64_t load)
{
    static struct observer o = {
        .launch_started = on_started, .launch_ended = on_ended, .frame = on_frame};
    uint32_t n = randomload_make(&sc, q, MOST, 400 + load);
    (void)snprintf(what, sizeof what, "%s, load %llu", runs[which].policy,
                   (unsigned long long)load);
    sc.setup.contention = contention_find("none");
    sc.setup.throttle = (struct sim_throttle){0};
    sc.setup.frames = (struct sim_frames){.per_s = 40.0 + (double)(load % 7) * 20.0,
                                          .device = IGPU,
                                          .device_ns = MS(0.3) + MS(0.5) * (int64_t)(load % 5),
                                          .bytes = 1e5};
    for (uint32_t d = 0; d < sc.machine.n_devices; d++) {
        sc.machine.devices[d].can_reset = true;
        sc.machine.devices[d].can_suspend = false;
    }
    scenario_policy(&sc, policy_find(runs[which].policy), runs[which].params);
    sc.setup.observers[sc.setup.n_observers++] = &o;
    n_frames = n_overs = 0;
    (void)scenario_run(&sc, q, n, false); /* some machines refuse a policy */
    for (uint32_t i = 0; i < n_overs; i++) {
        const struct over *x = &overs[i];
        int64_t parts_ns = x->isolated_ns + x->lost_ns + behind_frames_ns(x);
        ck_assert_msg(parts_ns == x->end_ns - x->begin_ns,
                      "%s: launch %u runs for %lld ns, and its parts take %lld", what, x->id,
                      (long long)(x->end_ns - x->begin_ns), (long long)parts_ns);
    }
    scenario_fini(&sc);
}

START_TEST(a_launch_takes_what_its_parts_take)
{
    n_reset = n_waited = 0;
    for (uint64_t load = 0; load < LOADS; load++) {
        run(_i, load);
    }
    ck_assert(n_waited > 1000);
    ck_assert(!runs[_i].resets || n_reset > 20);
}
END_TEST

/* ---- leads ---- */

enum { PASSES = 4096, OPS = 64 };
static uint32_t ran_on[PASSES][OPS]; /* devices on which kernels of an op ended */
static uint32_t n_synced, n_alone;

static void on_kernel(void *self, const struct kernel_record *k)
{
    const struct pass *p = k->launch->pass;
    uint32_t op = k->op == OP_HEAD ? p->n_ops - 1 : k->layer * p->layer.n;
    (void)self;
    for (uint32_t i = 0; k->op != OP_HEAD && p->layer.kind[i] != k->op; i++) {
        op++;
    }
    ck_assert(p->id < PASSES && op < OPS);
    ran_on[p->id][op] |= 1u << k->launch->device;
}

/* The lead is the host's time from the submission on. Where the op before ran on another device, a
 * barrier is added. */
static void on_lead(void *self, int64_t now_ns, const struct launch *l, int64_t lead)
{
    const struct machine *m = &sc.machine;
    const struct device *d = &m->devices[l->device];
    (void)self;
    ck_assert(l->pass->id < PASSES);
    uint32_t before = l->op_begin > 0 ? ran_on[l->pass->id][l->op_begin - 1] : 0;
    bool syncs = (before & ~(1u << l->device)) != 0;
    int64_t ready_ns =
        l->submit_ns + m->schedule_ns + d->submit_ns + d->completion_ns + (syncs ? m->sync_ns : 0);
    int64_t want_ns = ready_ns > now_ns ? ready_ns - now_ns : 0;
    ck_assert_msg(lead == want_ns, "%s: launch %u from op %u on, device %u: lead %lld ns, not %lld",
                  what, l->id, l->op_begin, l->device, (long long)lead, (long long)want_ns);
    n_synced += syncs;
    n_alone += !syncs;
}

/* The policy launches, stops and moves at random. */
START_TEST(a_launch_waits_for_the_devices_of_the_op_before)
{
    static struct observer o = {
        .wants_kernels = true, .kernel = on_kernel, .launch_started = on_lead};
    n_synced = n_alone = 0;
    for (uint64_t load = 0; load < 300; load++) {
        uint32_t n = randomload_make(&sc, q, MOST, 600 + load);
        (void)snprintf(what, sizeof what, "load %llu", (unsigned long long)load);
        sc.machine.sync_ns = MS(0.7);
        sc.machine.schedule_ns = MS(0.01);
        for (uint32_t d = 0; d < sc.machine.n_devices; d++) {
            sc.machine.devices[d].submit_ns = MS(0.02) * (d + 1);
            sc.machine.devices[d].inflight_depth = 1 + (uint32_t)(load % 3);
            sc.machine.devices[d].chunk_rows = 16 << d; /* so stops fall inside ops */
        }
        sc.machine.devices[NPU].static_attention = false;
        memset(ran_on, 0, sizeof ran_on);
        scenario_policy(&sc, &wild, "");
        sc.setup.observers[sc.setup.n_observers++] = &o;
        ck_assert_msg(scenario_run(&sc, q, n, false) == 0, "%s: %s", what, sc.result.message);
        scenario_fini(&sc);
    }
    ck_assert_msg(n_synced > 1000 && n_alone > 1000, "%u and %u", n_synced, n_alone);
}
END_TEST

static const struct suite_row suite[] = {
    CASE("launches", .timeout_s = 60),
    LOOP(a_launch_takes_what_its_parts_take, sizeof runs / sizeof runs[0]),
    TEST(a_launch_waits_for_the_devices_of_the_op_before),
};
SUITE_MAIN("launch_time", suite)
