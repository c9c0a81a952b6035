/* Refused actions, and the failure of a run. The result lists refusals by action, hook and reason,
 * with their number and the time of the first. So authors see them even if their policy ignores the
 * status of its actions. */
#include "sim/core/core.h"

const char *const counter_names[COUNTER_COUNT] = {
#define COUNTER(id, name) name,
#include "sim/core/counters.def"
};

#define NAME(name) #name
const char *const core_hook_names[HOOK_COUNT] = {CORE_HOOKS(NAME)};

int core_refuse(struct core *c, enum counter which, int status, const char *why)
{
    SIM_ASSERT(status < 0 && why != NULL);
    /* core_acted reports the refusal, because only it gets the action's name. */
    core_count(c, which);
    c->refused_as = which;
    c->refused_why = why;
    return status;
}

/* Reasons are static texts, so a comparison of pointers is enough. */
static struct sim_refusal *refusal_of(struct sim_result *r, const char *action, const char *hook,
                                      const char *why)
{
    for (uint32_t i = 0; i < r->n_refusals; i++) {
        struct sim_refusal *x = &r->refusals[i];
        if (x->why == why && x->hook == hook && strcmp(x->action, action) == 0) {
            return x;
        }
    }
    /* The array is full. Refusals of further kinds are only in the counters. */
    return r->n_refusals < SIM_MAX_REFUSALS ? &r->refusals[r->n_refusals++] : NULL;
}

int core_acted(struct core *c, const char *action, int rc)
{
    SIM_ASSERT(rc <= 0 && action != NULL && c->hook != HOOK_outside);
    const int64_t now_ns = c->sched->now_ns;
    c->last[rc != 0] = (struct core_decision){action, now_ns};
    if (rc == 0) {
        return 0;
    }
    SIM_REQUIRE(c->refused_why != NULL, "%s is refused without a reason", action);
    const char *hook = core_hook_names[c->hook];
    struct sim_refusal *x = refusal_of(c->result, action, hook, c->refused_why);
    c->last_refusal = x;
    if (x != NULL && x->n++ == 0) {
        *x = (struct sim_refusal){action, hook, c->refused_why, c->refused_as, rc, 1, now_ns};
    }
    c->refused_why = NULL; /* for the next action */
    return rc;
}

int core_fail(struct core *c, int status, const char *fmt, ...)
{
    struct sim_result *res = c->result;
    SIM_ASSERT(status < 0);
    if (res->status != 0) {
        return res->status; /* keep the first failure, which caused the others */
    }
    res->status = status;
    int n = snprintf(res->message, sizeof res->message,
                     "policy %s, seed %" PRIu64 ", t=%" PRId64 " ns, event %" PRIu64 ": ",
                     c->setup->policy->name, c->setup->seed, c->sched->now_ns, res->events);
    if (n > 0 && (size_t)n < sizeof res->message) {
        va_list ap;
        va_start(ap, fmt);
        (void)vsnprintf(res->message + n, sizeof res->message - (size_t)n, fmt, ap);
        va_end(ap);
        (void)text_visible(res->message, "");
    }
    return status;
}

bool counter_is_refusal(enum counter which)
{
    return which <= COUNTER_OUTSIDE_SCHEDULE && which != COUNTER_PASS_NO_MEMORY &&
           which != COUNTER_PASS_CANCELLED;
}
