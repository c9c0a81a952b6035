/* A search on simulations: what it asks for, as cells of a study. */
#include "experiments/compare/search.h"

bool search_judge(void *ctx, const struct study_outcomes *came, struct study *next)
{
    struct search_runs *r = ctx;
    struct search_ask ask;
    if (came == NULL) {
        search_open(&r->search, r->options, r->result);
    } else {
        struct compare_result result;
        compare_take(&r->plan, came, &result);
        search_take_runs(&r->search, &result);
        compare_result_fini(&result);
    }
    if (!search_next(&r->search, &ask)) {
        search_close(&r->search);
        return false;
    }
    r->plan.first = ask.from;
    r->plan.replications = ask.to - ask.from;
    r->plan.arrivals.rate_scale = ask.scale;
    compare_ask(&r->plan, next);
    return true;
}
