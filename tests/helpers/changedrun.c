#include "tests/helpers/changedrun.h"

#include <stdio.h>
#include <string.h>

#include "tests/helpers/randomrun.h"

void changed_run(const char *policy, void (*change)(struct config *c, const void *with),
                 const void *with, struct runner_result *r)
{
    static struct randomrun how;
    static struct config c;
    static struct config_policy p;
    struct trace t;
    struct runner_options opt = {0};
    struct err e = ERR_INIT;
    how = (struct randomrun){.soc = "core-ultra-5-125h", .llm = "llama-3.2-3b", .seed = 1};
    (void)snprintf(how.policy, sizeof how.policy, "%s", policy);
    (void)snprintf(how.workload, sizeof how.workload, "%s",
                   "mixed:reactive_per_min=6,proactive_per_min=6,duration_s=60");
    ck_assert(randomrun_load(&how, &c, &p, &t));
    change(&c, with);
    ck_assert_int_eq(runner_run(&c, &p, &t, how.seed, &opt, r, &e), 0);
    ck_assert_msg(r->sim.status == 0, "%s", r->sim.message);
    ck_assert(r->sim.audit.clean);
    trace_fini(&t);
    config_fini(&c);
    err_fini(&e);
}

double changed_metric(const struct runner_result *r, const char *name)
{
    const struct metric *m = metric_list_find(&r->metrics, name);
    ck_assert_msg(m != NULL, "%s", name);
    return m->value;
}

void changed_same(const struct runner_result *a, const struct runner_result *b, const char *but)
{
    for (size_t i = 0; i < a->metrics.n; i++) {
        const struct metric *m = &a->metrics.v[i];
        double other = changed_metric(b, m->name);
        ck_assert_msg((but != NULL && strcmp(m->name, but) == 0) ||
                          memcmp(&m->value, &other, sizeof other) == 0,
                      "%s: %.17g, %.17g", m->name, m->value, other);
    }
}
