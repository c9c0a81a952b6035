/* The toy machine and the questions that the scenarios of agent-xpu-v1 share. */
#pragma once

#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "policies/registry.h"
#include "tests/helpers/scenario.h"

static struct scenario sc; /* large: one per process, tests run forked */

static void machine(uint32_t layers, double decode_layer_ms)
{
    scenario_init(&sc);
    sc.llm.n_layers = layers;
    scenario_agent_xpu(&sc, decode_layer_ms);
}

static int run_policy(const char *policy, const char *own, const char *extra,
                      const struct scenario_request *q, uint32_t n)
{
    char params[256];
    (void)snprintf(params, sizeof params, "%s%s%s", own,
                   own[0] != '\0' && extra[0] != '\0' ? "," : "", extra);
    scenario_policy(&sc, policy_find(policy), params);
    int rc = scenario_run(&sc, q, n, true);
    if (getenv("SHOW") != NULL) {
        scenario_print(&sc, stdout);
    }
    return rc;
}

static void run(const char *own, const char *extra, const struct scenario_request *q, uint32_t n)
{
    int rc = run_policy("agent-xpu-v1", own, extra, q, n);
    ck_assert_msg(rc == 0, "%s", sc.result.message);
}

/* Returns the switch where there is one. It is for scenarios whose own setting is the clause. */
static inline const char *unless(const char *own, const char *extra)
{
    return extra[0] == '\0' ? own : extra;
}

static inline bool at(const struct scenario_kernel *k, double begin_ms, double end_ms)
{
    return k != NULL && k->begin_ns == MS(begin_ms) && k->end_ns == MS(end_ms);
}

static inline bool begins(const struct scenario_kernel *k, double ms)
{
    return k != NULL && k->begin_ns == MS(ms);
}

static inline const struct scenario_kernel *kernel(uint32_t request, int device, enum op_kind op)
{
    return scenario_kernel_find(&sc, 0, request, device, op);
}

/* Returns the second kernel of that kind. */
static inline const struct scenario_kernel *second(uint32_t request, int device, enum op_kind op)
{
    const struct scenario_kernel *k = kernel(request, device, op);
    return k == NULL
               ? NULL
               : scenario_kernel_find(&sc, (uint32_t)(k - sc.kernels) + 1, request, device, op);
}

/* Returns the largest decode batch that a request leads (-1: any). */
static inline uint32_t largest_batch(int request)
{
    uint32_t most = 0;
    for (uint32_t i = 0; i < sc.n_kernels; i++) {
        const struct scenario_kernel *k = &sc.kernels[i];
        bool led = request < 0 || k->request == (uint32_t)request;
        most = led && k->op == OP_QKV && k->rows < 32 && k->rows > most ? k->rows : most;
    }
    return most;
}
