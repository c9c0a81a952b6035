/* Explanations by a second implementation. In random runs an observer keeps the state between each
 * two events, and all kernels (tests/helpers/explain_anew.h). When it is known which device serves
 * a request, plain loops apply the definitions at the head of sim/metrics/explain.h to these lists.
 * All causes must be equal to the nanosecond. So must the times in which each other request was in
 * the way. */
#include <stdlib.h>
#include <string.h>

#include "experiments/conformance/randomload.h"
#include "policies/registry.h"
#include "tests/helpers/explain_anew.h"
#include "tests/helpers/suite.h"

enum { MOST = EXPLAIN_ANEW_MOST, LOADS = 10 };

static const struct {
    const char *policy, *params;
} runs[] = {{"agent-xpu-v2", ""},
            {"agent-xpu-v1", ""},
            {"time-share", "max_requests=4"},
            {"recompute-preempt", "kill=immediate"},
            {"program-fcfs", "preempt=kernel,kv=swap"},
            {"sd-npu", ""},
            {"hhpf", "inflight=3"},
            {"pd-mixed", "limit_tokens=100"},
            {"llm-npu", ""},
            {"vllm-v1", ""}};

static struct scenario sc;
static struct scenario_request q[MOST];
static const char *what;
static struct explain *x;

/* `explain` is called before this one, so that its explanation is there. */
static void compare(uint32_t id, const struct explained *v)
{
    const struct explanation *e = explain_find(x, id);
    ck_assert_ptr_nonnull(e);
    for (int c = 0; c < EXPLAIN_CAUSE_COUNT; c++) {
        ck_assert_msg(e->ns[c] == v->ns[c], "%s, request %u: %s %lld ns, not %lld", what, id,
                      explain_cause_names[c], (long long)e->ns[c], (long long)v->ns[c]);
    }
    int64_t tail[MOST] = {0};
    int64_t queue[MOST] = {0};
    int64_t shared[MOST] = {0};
    int64_t before = INT64_MAX;
    for (size_t i = 0; i < e->n_blockers; i++) {
        const struct explain_blocker *b = &e->blockers[i];
        tail[b->request_id] += b->tail_ns;
        queue[b->request_id] += b->queue_ns;
        shared[b->request_id] += b->shared_ns;
        int64_t sum = b->tail_ns + b->queue_ns + b->shared_ns;
        ck_assert(sum > 0 && sum <= before && b->cls == q[b->request_id].cls);
        before = sum;
    }
    for (uint32_t i = 0; i < MOST; i++) {
        ck_assert_msg(shared[i] == v->shared_ns[i],
                      "%s, request %u: shares with %u %lld ns, not %lld", what, id, i,
                      (long long)shared[i], (long long)v->shared_ns[i]);
        ck_assert_msg(tail[i] == v->tail_ns[i] && queue[i] == v->queue_ns[i],
                      "%s, request %u: request %u in its way %lld and %lld ns, not %lld and %lld",
                      what, id, i, (long long)tail[i], (long long)queue[i],
                      (long long)v->tail_ns[i], (long long)v->queue_ns[i]);
    }
}

START_TEST(causes_are_what_the_head_says)
{
    for (uint64_t load = 1; load <= LOADS; load++) {
        char text[64];
        (void)snprintf(text, sizeof text, "%s, load %u", runs[_i].policy, (unsigned)load);
        what = text;
        uint32_t n = randomload_make(&sc, q, MOST, 500 + load);
        sc.machine.devices[IGPU].can_reset = true;
        bool timers = strncmp(runs[_i].policy, "agent", 5) == 0; /* frames would be millions */
        if (strcmp(runs[_i].policy, "sd-npu") == 0) {
            sc.machine.devices[NPU].static_attention = false;
            sc.llm.n_layers = 6;
        }
        bool shared = strcmp(runs[_i].policy, "time-share") == 0;
        if (timers || shared) { /* frames take serial devices */
            sc.setup.frames = (struct sim_frames){0};
        }
        if (shared) {
            sc.machine.devices[IGPU].sharing = DEVICE_TIME_SHARED;
            sc.machine.devices[IGPU].max_shared = 4;
        }
        scenario_policy(&sc, policy_find(runs[_i].policy), runs[_i].params);
        x = explain_new(&sc.machine, EXPLAIN_ALL);
        explain_price(x, &sc.model);
        sc.setup.observers[sc.setup.n_observers++] = explain_observer(x);
        sc.setup.observers[sc.setup.n_observers++] = explain_anew_observer(&sc, compare);
        ck_assert_msg(scenario_run(&sc, q, n, false) == 0, "%s: %s", what, sc.result.message);
        explain_free(x);
        scenario_fini(&sc);
    }
    explain_anew_forget();
}
END_TEST

static const struct suite_row suite[] = {
    CASE("explain anew", .timeout_s = 60),
    LOOP(causes_are_what_the_head_says, sizeof runs / sizeof runs[0]),
};
SUITE_MAIN("explain_anew", suite)
