/* hetero-split's solver (clauses.md E.11) is compared with every other partition, and its room for
 * KV is tested. A chunk of 256 rows takes 4 ms for QKV and 8 for FFN on the NPU, and as long on the
 * iGPU, row by row. Attention takes 10, the head 1 and a decode 1. */
#include <math.h>

#include "policies/registry.h"
#include "sim/base/rng.h"
#include "tests/helpers/scenario.h"
#include "tests/helpers/suite.h"

static struct scenario sc;

static void machine(void)
{
    scenario_init(&sc);
    scenario_cost(&sc, -1, OP_QKV, 0, 4.0 / 256, 5);
    scenario_cost(&sc, -1, OP_FFN, 0, 8.0 / 256, 5);
    scenario_cost(&sc, -1, OP_MHA, 10, 0, 5);
    scenario_cost(&sc, -1, OP_HEAD, 1, 0, 5);
    scenario_cost(&sc, -1, OP_LAYER, 1, 0, 5);
    scenario_cost(&sc, NPU, OP_QKV, 4, 0, 5);
    scenario_cost(&sc, NPU, OP_FFN, 8, 0, 5);
}

static void run(const struct scenario_request *q, uint32_t n)
{
    scenario_policy(&sc, policy_find("hetero-split"), "");
    ck_assert_msg(scenario_run(&sc, q, n, true) == 0, "%s", sc.result.message);
}

/* Tries every partition of a prompt of up to eight chunks, with drawn costs and a drawn barrier.
 * The solver's partition must take as long as the shortest of all. Among equal ones it must be the
 * one with most rows on the NPU. */
START_TEST(split_takes_the_shortest_of_all_partitions)
{
    struct rng rng;
    rng_init(&rng, 100 + (uint64_t)_i);
    machine();
    uint32_t rows = 1 + rng_below(&rng, 2048);
    double barrier = 6.0 * rng_uniform(&rng);
    double npu = 0.5 + 6.0 * rng_uniform(&rng);
    double igpu = 0.02 * rng_uniform(&rng);
    scenario_cost(&sc, NPU, OP_QKV, npu, 0, 5);
    scenario_cost(&sc, IGPU, OP_QKV, 0, igpu, 5);
    sc.machine.sync_ns = MS(barrier);
    uint32_t best = 0;
    double least = HUGE_VAL;
    for (uint32_t m = 0;; m = rows - m < 256 ? rows : m + 256) {
        double there = npu * ceil(m / 256.0);
        double here = igpu * (rows - m);
        double ms = fmax(there, here) + (m > 0 && m < rows ? barrier : 0.0);
        best = ms <= least ? m : best;
        least = fmin(ms, least);
        if (m == rows) {
            break;
        }
    }
    /* A prompt of another length comes first, whose cut must not be used. */
    struct scenario_request q[] = {{BE, 0, 2049 - rows, 1, 0, 0}, {BE, 0, rows, 1, 0, 0}};
    run(q, 2);
    uint32_t chunks = 0;
    uint32_t others = 0;
    for (uint32_t i = 0; i < sc.n_kernels; i++) {
        const struct scenario_kernel *k = &sc.kernels[i];
        bool counts = k->op == OP_QKV && k->request == 1;
        chunks += counts && k->device == NPU;
        others += counts && k->device == IGPU ? k->rows : 0;
    }
    ck_assert_uint_eq(chunks, (best + 255) / 256);
    ck_assert_uint_eq(others, rows - best);
    scenario_fini(&sc);
}
END_TEST

/* Request 0 has 17 blocks of 16 tokens, for its 256 and its output. 256 more need 16 blocks, and
 * each of the two needs four to grow: 41 in all. With one block less, 1 begins when 0 has ended. */
START_TEST(split_leaves_everybody_blocks_to_grow)
{
    for (uint32_t less = 0; less < 2; less++) {
        machine();
        sc.setup.kv_capacity_tokens = (41 - less) * 16;
        struct scenario_request q[] = {{BE, 0, 256, 12, 0, 0}, {BE, 0.0235, 256, 1, 0, 0}};
        run(q, 2);
        const struct scenario_kernel *first = scenario_kernel_find(&sc, 0, 1, NPU, OP_QKV);
        ck_assert_ptr_nonnull(first);
        ck_assert_int_eq(first->begin_ns >= sc.records[0].finish_ns, less == 1);
        scenario_fini(&sc);
    }
}
END_TEST

/* Both come at once, and 40 blocks are 16 for the first prompt, 16 for the second and four for each
 * to grow. The second begins after the first prompt, and with one block less after its answer. */
START_TEST(split_counts_the_prompt_before_at_one_instant)
{
    for (uint32_t less = 0; less < 2; less++) {
        machine();
        sc.setup.kv_capacity_tokens = (40 - less) * 16;
        struct scenario_request q[] = {{BE, 0, 256, 12, 0, 0}, {BE, 0, 256, 1, 0, 0}};
        run(q, 2);
        const struct scenario_kernel *first = scenario_kernel_find(&sc, 0, 1, NPU, OP_QKV);
        int64_t after = less ? sc.records[0].finish_ns : sc.records[0].first_token_ns;
        ck_assert_ptr_nonnull(first);
        ck_assert_int_eq(first->begin_ns, after);
        scenario_fini(&sc);
    }
}
END_TEST

static const struct suite_row suite[] = {
    LOOP(split_takes_the_shortest_of_all_partitions, 40),
    TEST(split_leaves_everybody_blocks_to_grow),
    TEST(split_counts_the_prompt_before_at_one_instant),
};
SUITE_MAIN("hetero-split", suite)
