/* What every run guarantees, whichever executor ran it: the books add up. */
#include "sim/core/core.h"

struct full_request *core_request_find(struct core *c, uint32_t id)
{
    struct full_request *r = c->live_head;
    while (r != NULL && r->pub->id != id) {
        r = r->next_live;
    }
    return r;
}

/* Both sides of every check were counted apart, by other functions than this: arrivals when they
 * came, departures when they went, who is left from the list of the living. A check of a sum
 * against itself would always hold. */
void core_audit(struct core *c, int64_t end_ns)
{
    struct sim_audit *a = &c->result->audit;
    double live_sojourn_ns = 0.0;
    for (const struct full_request *r = c->live_head; r != NULL; r = r->next_live) {
        /* Who is still here has been here until now: without him the integral would be too large.
         */
        live_sojourn_ns += (double)(end_ns - r->pub->arrival_ns);
        if (r->pub->first_service_ns == TIME_NEVER_NS) {
            a->queued++;
        } else {
            a->running++;
        }
    }
    c->area_request_ns += (double)c->n_live * (double)(end_ns - c->area_from_ns);
    a->future = c->setup->trace->n - a->arrived;
    double sojourn = c->sojourn_ns + live_sojourn_ns;
    a->littles_law_residual_frac =
        sojourn > 0.0 ? fabs(c->area_request_ns - sojourn) / sojourn : 0.0;
    /* The same watts, summed over the machine and by domains: other orders of adding doubles, which
     * differ by rounding only. */
    double energy = fabs(a->energy_integral_j - a->energy_sum_j);
    a->clean = a->arrived == a->finished + a->shed + a->running + a->queued &&
               a->tokens_expected == a->tokens_produced && a->double_bookings == 0 &&
               a->causality_errors == 0 && a->ddr_max_over_capacity <= 1.0 + 1e-9 &&
               a->littles_law_residual_frac <= 1e-9 && energy <= 1e-9 * (1.0 + a->energy_sum_j);
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
