/* Scenarios counted in steps: every pass takes 1 ms (and some ns), so that the step in which
 * something happened is its time in ms. For schedulers that are compared step by step with their
 * originals (tests/originals). "Rows" are the tokens that a step computes. */
#pragma once

#include <check.h>

#include "tests/helpers/scenario.h"

#define STEPS_MAX 32
#define STEPS(...) ((uint32_t[STEPS_MAX]){__VA_ARGS__}) /* numbers, 0 after the last */

static inline void steps_init(struct scenario *sc, uint32_t block_tokens)
{
    scenario_init(sc);
    scenario_cost(sc, -1, OP_MHA, 1, 0, 0);
    scenario_cost(sc, -1, OP_LAYER, 1, 0, 0);
    sc->setup.kv_block_tokens = block_tokens;
}

/* Runs a policy with so many KV blocks. */
static inline void steps_run(struct scenario *sc, const struct policy_ops *ops, const char *params,
                             uint32_t blocks, const struct scenario_request *q, uint32_t n)
{
    sc->setup.kv_capacity_tokens = (uint64_t)blocks * sc->setup.kv_block_tokens;
    scenario_policy(sc, ops, params);
    scenario_check(sc, q, n);
}

/* The steps, from 1, at whose ends a request got its tokens. */
static inline void steps_tokens(const struct scenario *sc, uint32_t request, const uint32_t *steps)
{
    const struct scenario_record *r = &sc->records[request];
    for (uint32_t i = 0; i < r->tokens_n || steps[i] != 0; i++) {
        uint32_t step = i < r->tokens_n ? (uint32_t)(units_ms_from_ns(r->token_ns[i]) + 0.5) : 0;
        ck_assert_msg(step == steps[i], "request %u, token %u of %u: step %u, not %u", request,
                      i + 1, r->tokens_n, step, steps[i]);
    }
}

static inline void steps_rows(const struct scenario *sc, const uint32_t *rows)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < sc->n_kernels; i++) {
        const struct scenario_kernel *k = &sc->kernels[i];
        if (k->op == OP_QKV || k->op == OP_LAYER) {
            ck_assert_msg(rows[n] == k->rows, "step %u: %u rows, not %u", n + 1, k->rows, rows[n]);
            n++;
        }
    }
    ck_assert_uint_eq(rows[n], 0);
}
