#include "experiments/compare/capacity.h"

#define CAPACITY_REPLICATIONS 3
#define CAPACITY_COMPRESS 50.0 /* arrivals so much faster that the machine never waits for one */

int capacity_measure(const struct compare_plan *plan, struct capacity *out, struct err *e)
{
    struct compare_plan p = compare_alone(plan, plan->baseline);
    p.replications = CAPACITY_REPLICATIONS;
    p.arrivals.compress = CAPACITY_COMPRESS;
    SCOPED(compare_result_fini) struct compare_result r;
    compare_run(&p, &r);
    compare_report_failures(&p, &r);
    *out = (struct capacity){0.0, 0.0};
    if (r.n_failures == 0) {
        const double *done = compare_values(&r, 0, "all.throughput_req_per_min");
        const double *arrived = compare_values(&r, 0, "all.arrived");
        const double *window = compare_values(&r, 0, "arrival_window_s");
        double n = CAPACITY_REPLICATIONS;
        for (uint32_t i = 0; i < CAPACITY_REPLICATIONS; i++) {
            out->req_per_min += done[i] / n;
            out->offered_req_per_min +=
                (arrived[i] - 1.0) / (window[i] * CAPACITY_COMPRESS) * 60.0 / n;
        }
    }
    if (!(out->req_per_min > 0.0) || !(out->offered_req_per_min > 0.0)) {
        return err_add(e, "--load: the capacity of %s could not be measured on this workload",
                       plan->policies[plan->baseline].label);
    }
    return 0;
}
