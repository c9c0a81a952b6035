/* A search on simulations: what it asks for is run, until it knows. */
#include "experiments/compare/search.h"

void search_run(const struct search_options *o, const struct compare_plan *plan, uint32_t policy,
                struct search_result *out)
{
    struct search s;
    struct search_ask ask;
    search_open(&s, o, out);
    while (search_next(&s, &ask)) {
        struct compare_plan p = *plan;
        p.policies = &plan->policies[policy];
        p.n_policies = 1;
        p.baseline = 0;
        p.first = ask.from;
        p.replications = ask.to - ask.from;
        p.arrivals.rate_scale = ask.scale;
        struct compare_result r;
        compare_run(&p, &r);
        search_take_runs(&s, &r);
        compare_result_fini(&r);
    }
    search_close(&s);
}
