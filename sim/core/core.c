/* An instant of the run: events that the executor reports (except those of passes and launches),
 * and then the call of the policy. And the audit of what every run guarantees, with any executor.
 */
#include "sim/core/core.h"
#include "sim/core/consistent.h"
#include "sim/core/kv.h"
#include "sim/core/memory.h"

void core_timer(struct core *c)
{
    c->result->events++;
}

void core_kv_moved(struct core *c, struct full_request *r, bool in)
{
    c->result->events++;
    SIM_ASSERT(r->alive && r->kv_moving && r->pub->pass == NULL);
    SIM_ASSERT(in == r->pub->kv_swapped);
    r->kv_moving = false;
    core_progress(c);
    if (!in) {
        kv_shrink(c, r, 0);
    }
    r->pub->kv_swapped = !in;
    CORE_HOOK(c, kv_moved, c->sched, r->pub);
    /* Notify the policy of the end of the move first, so that it never sees a move of a request
     * that has left. */
    if (r->cancel_pending) {
        core_request_shed(c, r);
    }
}

void core_cold_moved(struct core *c, uint32_t row)
{
    struct cold_kv *k = cold_of(c, row);
    if (k != NULL && k->state == COLD_MOVING) {
        c->result->events++;
        struct prefix_node *shared = k->prefix;
        c->kv_blocks_free += k->blocks;
        k->blocks = 0;
        cold_let_go(c, k);
        if (shared != NULL) {
            prefix_drop(c, shared, k->session_id);
        }
        BECOMES(cold, k->state, COLD_SWAPPED); /* stays in the list cold_held */
        kv_check_blocks(c);
    }
}

void core_resident_done(struct core *c, struct resident *r)
{
    SIM_REQUIRE(r->state == RESIDENT_PENDING, "what nobody waits for is there");
    SIM_ASSERT(resident_find(c, r->key) == r);
    c->result->events++;
    BECOMES(resident, r->state, RESIDENT_READY);
    core_progress(c);
    CORE_OBSERVE(c, resident, c->sched->now_ns, r->key, RESIDENT_READY);
    if (r->key.kind == RESIDENT_WEIGHTS) {
        weights_loaded(c, r);
    } else {
        CORE_HOOK(c, resident_ready, c->sched, r->key);
    }
}

/* Makes objects that ended in this instant reusable, after the policy has seen them. */
#define BURY(kind, list, is_over)                                                                  \
    for (struct full_##kind * x; (x = c->dead_##list) != NULL;) {                                  \
        SIM_ASSERT(is_over);                                                                       \
        c->dead_##list = x->next_free;                                                             \
        FREE_PUT(c->free_##list, x);                                                               \
    }
static void bury_dead(struct core *c)
{
    BURY(launch, launches, x->pub->state == LAUNCH_STATE_ENDED)
    BURY(pass, passes, after_pass[x->pub->state] == 0 && x->pub->n_launches == 0)
    BURY(request, requests, !x->alive)
}

/* Ends the instant. Events that the policy's own actions caused do not lead to another call. */
static void rest(struct core *c)
{
    c->events_seen = c->result->events;
    bury_dead(c);
    SIM_ASSERT(core_consistent(c));
}

/* Fails the run if a sched_steady promise was broken. */
static int steady_kept(struct core *c)
{
    const struct full_pass *p = c->expected;
    c->expected = NULL;
    return p == NULL ? 0
                     : core_fail(c, -EPROTO,
                                 "schedule declared that it is steady (sched_steady), and did not "
                                 "form pass %u again and launch it whole on its device",
                                 p->pub->id);
}

int core_schedule(struct core *c)
{
    /* Without this, results would depend on which kernel ends the executor simulates: a policy
     * whose decisions change with time would be called at more instants. */
    if (c->result->events == c->events_seen) {
        return 0;
    }
    SIM_ASSERT(core_consistent(c)); /* also after the executor's events */
    if (c->n_held > 0) {
        weights_let_in(c);
    }
    if (c->kv_blocks_owed > 0) {
        kv_collect(c, NULL);
    }
    if (c->prefixes != NULL) {
        prefix_match_waiting(c);
    }
    SIM_ASSERT(c->hook == HOOK_outside);
    c->sched->epoch++;
    for (uint32_t round = 0; round < SCHEDULE_MAX_ROUNDS; round++) {
        c->again = false;
        c->actions = 0;
        core_count(c, COUNTER_SCHEDULE_ROUNDS);
        CORE_HOOK(c, schedule, c->sched);
        if (c->result->status != 0) {
            return c->result->status;
        }
        if (!c->again || c->actions == 0) {
            rest(c);
            return steady_kept(c);
        }
    }
    return core_fail(c, -ELOOP, "schedule acted %d times in one instant and did not come to rest",
                     SCHEDULE_MAX_ROUNDS);
}

/* ---- audit ---- */

struct full_request *core_request_find(struct core *c, uint32_t id)
{
    struct full_request *r = c->live_head;
    while (r != NULL && r->pub->id != id) {
        r = r->next_live;
    }
    return r;
}

/* Both sides of every check come from independent counts: arrivals, departures, and the list of
 * live requests. A check of a sum against itself would always hold. */
void core_audit(struct core *c, int64_t end_ns)
{
    struct sim_audit *a = &c->result->audit;
    double live_sojourn_ns = 0.0;
    for (const struct full_request *r = c->live_head; r != NULL; r = r->next_live) {
        /* The integral includes live requests, so the sum must, too. */
        live_sojourn_ns += (double)(end_ns - r->pub->arrival_ns);
        bool waits = r->pub->first_service_ns == TIME_NEVER_NS;
        a->queued += waits;
        a->running += !waits;
    }
    c->area_request_ns += (double)c->n_live * (double)(end_ns - c->area_from_ns);
    a->future = c->setup->trace->n - a->arrived;
    double sojourn = c->sojourn_ns + live_sojourn_ns;
    a->littles_law_residual_frac =
        sojourn > 0.0 ? fabs(c->area_request_ns - sojourn) / sojourn : 0.0;
    /* The watts are summed over the machine and by domain. The two orders of addition differ by
     * rounding only. */
    double energy = fabs(a->energy_integral_j - a->energy_sum_j);
    a->clean = a->arrived == a->finished + a->shed + a->running + a->queued &&
               a->tokens_expected == a->tokens_produced && a->double_bookings == 0 &&
               a->ddr_max_over_capacity <= 1.0 + 1e-9 && a->littles_law_residual_frac <= 1e-9 &&
               energy <= 1e-9 * (1.0 + a->energy_sum_j);
    if (!a->clean) {
        core_fail(c, -EPROTO,
                  "audit failed: arrived %" PRIu64 " = finished %" PRIu64 " + shed %" PRIu64
                  " + running %" PRIu64 " + queued %" PRIu64 "? tokens %" PRIu64 " of %" PRIu64
                  ", DDR %.12g of capacity, Little %.3g, energy %.12g vs %.12g J, double bookings "
                  "%" PRIu64,
                  a->arrived, a->finished, a->shed, a->running, a->queued, a->tokens_produced,
                  a->tokens_expected, a->ddr_max_over_capacity, a->littles_law_residual_frac,
                  a->energy_integral_j, a->energy_sum_j, a->double_bookings);
    }
}
