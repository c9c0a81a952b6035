/* Which of two models is the default one is a name and no more. Random loads of two models run
 * twice. The second time the models have exchanged their places, and so has the model that each
 * request asks for. Every request must come, begin and end at the same instants. Memory is tight
 * and answers are long, and KV of sessions goes to flash and back where the policy does that. */
#include <math.h>
#include <string.h>

#include "experiments/conformance/randomload.h"
#include "policies/registry.h"
#include "tests/helpers/suite.h"
#include "tests/helpers/two_models.h"

enum { LOADS = 60, MOST = 24 };

static struct scenario sc;
static struct two_models two;
static struct scenario_request q[MOST];
static struct scenario_record first[MOST];
static uint8_t model[MOST];

/* Only the default model has graphs (sim/core/launch.c), so such a policy is left out. */
static bool has_graphs(const struct policy_ops *ops)
{
    return (ops->needs & CAP_LOAD) != 0;
}

static const char *params_of(const struct policy_ops *ops, uint64_t load)
{
    for (const struct policy_param *p = ops->params; p != NULL && p->name != NULL; p++) {
        if (strcmp(p->name, "gap_kv") == 0 && load % 2 == 0) { /* whose gaps are tools */
            return "gap_kv=swap";
        }
    }
    return "";
}

static uint32_t make(const struct policy_ops *ops, uint64_t load)
{
    struct rng r;
    rng_init(&r, rng_key(load, RNG_TEST, 6, 0));
    uint32_t n = randomload_make(&sc, q, MOST, 3000 + load);
    two_models_init(&sc, &two);
    two.other.llm.n_layers = 1 + rng_below(&r, 4);
    sc.llm.kv_bytes_per_token = 1e5 * (1 + rng_below(&r, 4));
    two.other.llm.kv_bytes_per_token = 1e5 * (1 + rng_below(&r, 12));
    two.other.llm.weight_bytes = 2e8;
    sc.setup.truth_sigma = load % 4 > 0 ? 0.0 : sc.setup.truth_sigma;
    sc.setup.annotation.sigma_prefill = sc.setup.annotation.sigma_decode = 0.0; /* drawn by model */
    uint32_t largest = 0;
    for (uint32_t i = 0; i < n; i++) {
        model[i] = (uint8_t)rng_below(&r, 2);
        q[i].output_tokens *= load % 3 > 0 ? 5 : 1;
        for (uint32_t k = 0; k < i; k++) {
            bool same = q[i].session_id != 0 && q[k].session_id == q[i].session_id;
            model[i] = same ? model[k] : model[i];
        }
        uint32_t tokens = q[i].input_tokens + q[i].output_tokens;
        largest = tokens > largest ? tokens : largest;
    }
    sc.setup.kv_capacity_tokens = (largest / 16 + 2 + rng_below(&r, 12)) * 16;
    for (int op = 0; op < OP_KIND_COUNT; op++) {
        for (int d = 0; d < MACHINE_MAX_DEVICES; d++) {
            two.other.cost[d][op].fixed_ms *= 0.2 + rng_uniform(&r);
        }
    }
    scenario_policy(&sc, ops, params_of(ops, load));
    return n;
}

/* The models change places. */
static void exchange(uint32_t n)
{
    static struct sim_model was;
    was = (struct sim_model){sc.setup.llm, sc.setup.truth};
    sc.setup.llm = two.more.llm;
    sc.setup.truth = two.more.truth;
    two.more = was;
    for (uint32_t i = 0; i < n; i++) {
        model[i] ^= 1;
    }
}

START_TEST(which_model_is_the_default_one_changes_nothing)
{
    size_t n_policies = 0;
    const struct policy_ops *ops = policy_list(&n_policies)[_i];
    uint32_t ran = 0;
    for (uint64_t load = 0; load < LOADS && !has_graphs(ops); load++) {
        uint32_t n = make(ops, load);
        int rc = two_models_run(&sc, q, model, NULL, n, false);
        memcpy(first, sc.records, sizeof first);
        trace_fini(&sc.trace);
        exchange(n);
        int again = two_models_run(&sc, q, model, NULL, n, false);
        ck_assert_msg(rc == again, "%s, load %u: %d, exchanged %d: %s", ops->name, (unsigned)load,
                      rc, again, sc.result.message);
        for (uint32_t i = 0; i < n && rc == 0; i++) {
            const struct scenario_record *a = &first[i], *b = &sc.records[i];
            ck_assert_msg(memcmp(a, b, sizeof *a) == 0,
                          "%s, load %u: request %u ends at %lld ns, exchanged at %lld", ops->name,
                          (unsigned)load, i, (long long)a->finish_ns, (long long)b->finish_ns);
        }
        ran += rc == 0;
        two_models_fini(&sc);
    }
    ck_assert(has_graphs(ops) || ran > LOADS / 3);
}
END_TEST

static const struct suite_row suite[] = {
    CASE("models", .timeout_s = 60),
    LOOP_OVER(which_model_is_the_default_one_changes_nothing, suite_policies),
};
SUITE_MAIN("models_exchanged", suite)
