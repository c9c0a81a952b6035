#include "tests/helpers/two_models.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/words.h"
#include "tests/helpers/suite.h"
#include "traces/traces.h"

void two_models_init(struct scenario *sc, struct two_models *two)
{
    scenario_init(&two->other);
    two->other.llm = sc->llm;
    two->other.model.machine = &sc->machine;
    memcpy(two->other.cost, sc->cost, sizeof sc->cost);
    two->more = (struct sim_model){&two->other.llm, &two->other.model};
    sc->setup.more = &two->more;
    sc->setup.n_more = 1;
}

int two_models_run(struct scenario *sc, const struct scenario_request *q, const uint8_t *model,
                   const uint32_t *group, uint32_t n, bool kernels)
{
    static const char *const names[] = {"first", "second", "third", NULL};
    struct trace_builder b;
    struct err e = ERR_INIT;
    memset(sc->records, 0, sizeof sc->records);
    sc->n_kernels = 0;
    sc->observer.wants_kernels = kernels;
    scenario_trace(sc, q, n);
    trace_builder_init(&b);
    for (uint32_t i = 0; i < n; i++) {
        const struct trace_row *row = &sc->trace.rows[i];
        struct trace_node node = trace_node_none();
        struct trace_extra extra = trace_extra_none();
        extra.prefix_group = group != NULL ? group[row->request_id] : 0;
        node.model = trace_builder_model(&b, names[model[row->request_id]], "test", 0, "model");
        trace_builder_add(&b, row, &extra);
        trace_builder_node(&b, &node);
    }
    trace_fini(&sc->trace);
    SIM_REQUIRE(trace_build(&b, false, "test", &sc->trace, &e) == 0, "%s", e.lines[0]);
    trace_builder_fini(&b);
    err_fini(&e);
    for (uint32_t i = 0; i < sc->trace.graph->n_models; i++) {
        struct trace_model *m = &sc->trace.graph->models[i];
        m->is = (uint8_t)words_find(names, m->name);
    }
    sc->trace.machine = sc->events;
    sc->trace.n_machine = sc->n_events;
    int rc = scenario_again(sc);
    sc->trace.machine = NULL; /* they are not the trace's */
    sc->trace.n_machine = 0;
    return rc;
}

void two_models_fini(struct scenario *sc)
{
    trace_fini(&sc->trace);
    scenario_fini(sc);
}

void two_models_by_hand(struct scenario *sc, struct two_models *two)
{
    scenario_init(sc);
    two_models_init(sc, two);
    two->other.llm.n_layers = 3;
    scenario_cost(sc, -1, OP_MHA, 4, 0, 0);
    scenario_cost(sc, -1, OP_LAYER, 4, 0, 0);
    scenario_cost(&two->other, -1, OP_MHA, 2, 0, 0);
    scenario_cost(&two->other, -1, OP_LAYER, 2, 0, 0);
}

void two_models_script(struct scenario *sc, struct script *x, const struct scenario_request *q,
                       const uint8_t *model, const uint32_t *group, uint32_t n,
                       void (*step)(struct sched *s, struct script *x))
{
    x->step = step;
    sc->setup.policy = &script_ops;
    sc->setup.policy_context = x;
    int rc = two_models_run(sc, q, model, group, n, getenv("SHOW") != NULL);
    if (getenv("SHOW") != NULL) {
        scenario_print(sc, stdout);
    }
    ck_assert_msg(rc == 0, "%s", sc->result.message);
    ck_assert(sc->result.audit.clean);
}
