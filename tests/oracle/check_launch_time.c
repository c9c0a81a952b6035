/* Where the time of a launch goes. Without contention and limits it is the host's lead, its
 * kernels, a kernel that was killed, the device's reset, and frames of the display that it waited
 * for. That sum must be the time from its start to its end, for every launch of random loads.
 */
#include <string.h>

#include "experiments/conformance/randomload.h"
#include "policies/registry.h"
#include "tests/helpers/suite.h"

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

static const struct suite_row suite[] = {
    CASE("launches", .timeout_s = 60),
    LOOP(a_launch_takes_what_its_parts_take, sizeof runs / sizeof runs[0]),
};
SUITE_MAIN("launch_time", suite)
