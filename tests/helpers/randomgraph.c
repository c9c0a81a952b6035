#include "tests/helpers/randomgraph.h"

#include "sim/base/arena.h"
#include "sim/base/rng.h"
#include "sim/base/units.h"
#include "tests/helpers/suite.h"
#include "traces/traces.h"

void randomgraph_make(uint64_t seed, struct trace *out)
{
    struct rng r;
    struct trace_builder b;
    struct err e = ERR_INIT;
    rng_init(&r, rng_key(seed, 0, 0, 0));
    trace_builder_init(&b);
    uint32_t n = 3 + (uint32_t)rng_below(&r, RANDOMGRAPH_ROWS - 3);
    uint16_t turns[RANDOMGRAPH_ROWS] = {0};   /* of each session */
    uint32_t last[RANDOMGRAPH_ROWS] = {0};    /* request of each session */
    uint32_t context[RANDOMGRAPH_ROWS] = {0}; /* tokens of it */
    uint32_t sessions = 0;
    bool ends = rng_below(&r, 2) == 0;
    for (uint32_t i = 0; i < n; i++) {
        bool goes_on = sessions > 0 && rng_below(&r, 3) == 0;
        uint32_t session = goes_on ? (uint32_t)rng_below(&r, sessions) : sessions++;
        struct trace_row row = {.request_id = i,
                                .session_id = session,
                                .turn = turns[session]++,
                                .cls = (uint8_t)rng_below(&r, 2),
                                .input_tokens = 1 + context[session] + (uint32_t)rng_below(&r, 300),
                                .output_tokens = 1 + (uint32_t)rng_below(&r, 80),
                                .max_output_tokens = 256,
                                .next = TRACE_NO_ROW};
        row.prefix_tokens = row.turn > 0 ? (uint32_t)rng_below(&r, context[session] + 1) : 0;
        struct trace_node node = trace_node_none();
        node.background = rng_below(&r, 5) == 0;
        uint32_t wanted = i > 0 ? (uint32_t)rng_below(&r, 4) : 0;
        for (uint32_t k = 0; k < wanted && k < i; k++) {
            uint32_t parent = (uint32_t)rng_below(&r, i);
            bool known = row.turn > 0 && parent == last[session];
            for (uint32_t j = 0; j < node.n_parents; j++) {
                known = known || node.parents[j].request_id == parent;
            }
            if (!known) {
                node.parents = xgrow(node.parents, node.n_parents, sizeof *node.parents);
                node.parents[node.n_parents++] =
                    (struct trace_parent){parent, (int64_t)rng_below(&r, 3) * 400 * NS_PER_MS};
            }
        }
        if (ends && i > 0 && rng_below(&r, 2) == 0) {
            node.ends_with = (uint32_t)rng_below(&r, i);
        }
        row.arrival_ns = (int64_t)rng_below(&r, 2000) * NS_PER_MS;
        last[session] = i;
        context[session] = row.input_tokens + row.output_tokens;
        trace_builder_add(&b, &row, NULL);
        trace_builder_node(&b, &node);
        free(node.parents);
    }
    ck_assert_msg(trace_build(&b, false, "random", out, &e) == 0, "%s", e.n > 0 ? e.lines[0] : "");
    trace_builder_fini(&b);
    err_fini(&e);
}
