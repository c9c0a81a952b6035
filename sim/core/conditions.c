/* Cancellation of requests by their users, and the conditions of the machine. */
#include "sim/core/consistent.h"
#include "sim/core/kv.h"
#include "sim/core/memory.h"

void core_request_cancel(struct core *c, struct full_request *r)
{
    if (r == NULL) {
        return; /* it finished or was shed before its user gave up */
    }
    /* Kernels or the loader use its KV, so it leaves when they are done. */
    if (r->pub->pass != NULL || r->kv_moving) {
        r->cancel_pending = true;
        if (r->pub->pass != NULL) {
            core_pass(r->pub->pass)->steady = false; /* the pass will lose a request */
            core_pass_check_wanted(c, core_pass(r->pub->pass));
        }
        return;
    }
    core_request_shed(c, r);
}

/* ---- conditions ---- */

/* Conditions of the machine that concern requests and memory.
 *
 * Other programs get free memory, then cached KV, then KV that requests free. Until they have
 * enough, no request gets KV, so the policy must evict as it does in any shortage. A request that
 * cannot have its KV even by itself is shed, as a server refuses what its memory cannot hold. */

struct machine_state core_machine_state(const struct core *c)
{
    struct machine_state now = c->conditions;
    now.memory_free_bytes = core_memory_free_bytes(c);
    now.battery_frac = c->exec_ops->battery_frac != NULL ? c->exec_ops->battery_frac(c->exec) : 1.0;
    return now;
}

static void shed(struct core *c, struct full_request *r)
{
    core_count(c, COUNTER_MEMORY_SHED);
    core_request_cancel(c, r);
}

static void shed_too_long(struct core *c)
{
    struct full_request *r = c->live_head;
    while (r != NULL) {
        if (core_request_fits(c, r) || r->cancel_pending) {
            r = r->next_live;
        } else {
            shed(c, r);
            r = c->live_head; /* other requests may have left with it */
        }
    }
    while (c->n_models > 1 && (r = weights_in_the_way(c)) != NULL) {
        shed(c, r);
    }
}

void core_machine_event(struct core *c, const struct machine_event *event)
{
    struct machine_state *now = &c->conditions;
    c->result->events++;
    c->expected = NULL; /* this ends a sched_steady promise */
    if ((event->sets & MACHINE_SETS_POWER_LIMIT) != 0) {
        now->power_limit_watts = event->power_limit_watts;
    }
    if ((event->sets & MACHINE_SETS_SOURCE) != 0) {
        now->on_battery = event->on_battery;
    }
    if ((event->sets & MACHINE_SETS_WINDOW) != 0) {
        now->background_window = event->background_window;
    }
    if ((event->sets & MACHINE_SETS_MEMORY) != 0) {
        core_memory_taken(c, event->memory_bytes);
        shed_too_long(c);
    }
    const struct machine_state seen = core_machine_state(c);
    CORE_OBSERVE(c, conditions, c->sched->now_ns, &seen);
}
