#include "tests/helpers/liverun_watch.h"

#include <inttypes.h>

#include "sim/base/hash.h"
#include "tests/helpers/virtual.h"

#define STOPS_NS (50 * NS_PER_MS) /* until a lane sees that its launch is to stop */

static void at(struct livewatch *w, int64_t now_ns, uint64_t what, uint64_t which)
{
    if (now_ns < w->now_ns) {
        virtual_finding("time goes back from %" PRId64 " to %" PRId64, w->now_ns, now_ns);
    }
    if (w->ends > 0) {
        virtual_finding("something happens after the run has ended");
    }
    w->now_ns = now_ns;
    w->history = hash_u64(hash_u64(w->history, (uint64_t)now_ns), (what << 48) | which);
}

static void step(uint8_t *state, uint8_t from, uint8_t to, const char *what, uint32_t id)
{
    if (*state != from) {
        virtual_finding("%s %u: from %u to %u", what, id, *state, to);
    }
    *state = to;
}

/* ---- requests ---- */

static void on_arrived(void *self, int64_t now_ns, const struct request *r)
{
    struct livewatch *w = self;
    at(w, now_ns, 1, r->id);
    step(&w->requests[r->id], 0, 1, "request", r->id);
    w->arrived++;
}

static void left(struct livewatch *w, int64_t now_ns, uint64_t how, const struct request *r)
{
    at(w, now_ns, how, r->id);
    step(&w->requests[r->id], 1, 2, "request", r->id);
    w->left++;
    if (w->tokens[r->id] != r->generated_tokens) {
        virtual_finding("request %u: %u tokens came out, and it has %u", r->id, w->tokens[r->id],
                        r->generated_tokens);
    }
}

static void on_finished(void *self, int64_t now_ns, const struct request *r)
{
    left(self, now_ns, 2, r);
}

static void on_shed(void *self, int64_t now_ns, const struct request *r)
{
    left(self, now_ns, 3, r);
}

static void on_tokens(void *self, int64_t now_ns, const struct pass *p)
{
    struct livewatch *w = self;
    at(w, now_ns, 4, p->id);
    for (uint32_t op = 0; op < p->n_ops; op++) {
        w->rows[p->id % LIVEWATCH_LAUNCHES] += pass_op_rows(p, op);
    }
    for (uint32_t i = 0; i < p->n_segments; i++) {
        w->tokens[p->segments[i].request->id] += p->segments[i].emitted_tokens;
    }
}

/* ---- launches ---- */

static void on_submitted(void *self, int64_t now_ns, const struct launch *l)
{
    struct livewatch *w = self;
    at(w, now_ns, 5, l->id);
    w->pass_of[l->id % LIVEWATCH_LAUNCHES] = l->pass->id % LIVEWATCH_LAUNCHES;
    w->on_idle[l->id % LIVEWATCH_LAUNCHES] = w->live[l->device]++ == 0;
    step(&w->launches[l->id % LIVEWATCH_LAUNCHES], 0, 1, "launch", l->id);
}

static void on_started(void *self, int64_t now_ns, const struct launch *l, int64_t lead_ns)
{
    struct livewatch *w = self;
    at(w, now_ns, 6, l->id);
    w->begin_ns[l->id % LIVEWATCH_LAUNCHES] = now_ns + lead_ns;
    step(&w->launches[l->id % LIVEWATCH_LAUNCHES], 1, 2, "launch", l->id);
    if (w->running[l->device] != 0) {
        virtual_finding("launch %u starts on device %u, which runs launch %u", l->id, l->device,
                        w->running[l->device]);
    }
    w->running[l->device] = l->id;
}

static void on_resident(void *self, int64_t now_ns, struct resident_key key, enum resident_state to)
{
    struct livewatch *w = self;
    at(w, now_ns, 16 + (uint64_t)to, ((uint64_t)key.kind << 40) | ((uint64_t)key.a << 8) | key.b);
    w->resident_ns = to == RESIDENT_READY ? now_ns : w->resident_ns;
}

/* The order of policy.h. */
static void check_order(struct livewatch *w, int64_t now_ns, const struct launch *l)
{
    bool late = now_ns == w->resident_ns || (now_ns == w->ended_ns && l->device < w->ended_device);
    if (w->wall && late) {
        virtual_finding("launch %u of device %u ends out of order", l->id, l->device);
    }
    w->ended_ns = now_ns;
    w->ended_device = l->device;
}

/* On the processor's clock nothing lies between kernels: a launch that began one takes what they
 * took by themselves, what a stopped one lost, and the reset. */
static void check_time(struct livewatch *w, int64_t now_ns, const struct launch *l,
                       int64_t isolated_ns, int64_t lost_ns)
{
    int64_t took_ns = now_ns - w->begin_ns[l->id % LIVEWATCH_LAUNCHES];
    bool reset = l->outcome == LAUNCH_OUTCOME_RESET;
    int64_t parts_ns =
        isolated_ns + lost_ns + (reset ? w->machine->devices[l->device].reset_ns : 0);
    if (took_ns >= 0 && took_ns != parts_ns) {
        virtual_finding("launch %u takes %" PRId64 " ns, and its parts %" PRId64, l->id, took_ns,
                        parts_ns);
    }
}

static void on_ended(void *self, int64_t now_ns, const struct launch *l, int64_t isolated_ns,
                     int64_t lost_ns)
{
    struct livewatch *w = self;
    at(w, now_ns, 7 + (uint64_t)l->outcome, l->id);
    w->live[l->device]--;
    check_order(w, now_ns, l);
    w->history = hash_u64(hash_u64(w->history, (uint64_t)isolated_ns), (uint64_t)lost_ns);
    uint8_t *state = &w->launches[l->id % LIVEWATCH_LAUNCHES];
    if (l->outcome == LAUNCH_OUTCOME_WITHDRAWN) {
        step(state, 1, 3, "launch", l->id);
        return;
    }
    if (w->running[l->device] == l->id) {
        step(state, 2, 3, "launch", l->id);
        w->running[l->device] = 0;
        if (!w->wall) {
            check_time(w, now_ns, l, isolated_ns, lost_ns);
        }
    } else { /* one that was stopped before anybody knew that it had begun */
        step(state, 1, 3, "launch", l->id);
    }
    if (w->free_ns[l->device] > now_ns) {
        virtual_finding("launch %u ends %" PRId64 " ns before its last kernel", l->id,
                        w->free_ns[l->device] - now_ns);
    }
}

static void on_asked(void *self, int64_t now_ns, const struct launch *l)
{
    struct livewatch *w = self;
    at(w, now_ns, 15, l->id);
    int64_t *asked_ns = &w->asked_ns[l->id % LIVEWATCH_LAUNCHES];
    *asked_ns = *asked_ns == 0 ? now_ns : *asked_ns;
}

static void on_kernel(void *self, const struct kernel_record *k)
{
    struct livewatch *w = self;
    uint8_t device = k->launch->device;
    if (k->begin_ns < w->free_ns[device]) {
        virtual_finding("a kernel of launch %u begins %" PRId64 " ns before the one before ends",
                        k->launch->id, w->free_ns[device] - k->begin_ns);
    }
    w->free_ns[device] = k->end_ns;
    int64_t asked_ns = w->asked_ns[k->launch->id % LIVEWATCH_LAUNCHES];
    bool stops = asked_ns > 0 && k->launch->yield == YIELD_KERNEL && !w->jumps;
    if (stops && k->begin_ns > asked_ns + STOPS_NS) {
        virtual_finding("launch %u begins a kernel %" PRId64 " ns after it was asked to stop",
                        k->launch->id, k->begin_ns - asked_ns);
    }
    w->history = hash_u64(hash_u64(w->history, (uint64_t)k->begin_ns), (uint64_t)k->end_ns);
}

static void on_run_ended(void *self, int64_t now_ns)
{
    struct livewatch *w = self;
    at(w, now_ns, 20, 0);
    w->ends++;
}

void livewatch_init(struct livewatch *w, const struct machine *machine, bool wall, bool jumps)
{
    *w = (struct livewatch){.history = HASH_INIT,
                            .machine = machine,
                            .wall = wall,
                            .jumps = jumps,
                            .ended_ns = -1,
                            .resident_ns = -1};
    w->observer = (struct observer){.self = w,
                                    .wants_kernels = true,
                                    .request_arrived = on_arrived,
                                    .request_finished = on_finished,
                                    .request_shed = on_shed,
                                    .tokens = on_tokens,
                                    .launch_submitted = on_submitted,
                                    .launch_started = on_started,
                                    .launch_ended = on_ended,
                                    .kernel = on_kernel,
                                    .preempt_asked = on_asked,
                                    .resident = on_resident,
                                    .run_ended = on_run_ended};
}
