/* Estimates that policies ask for: their watts, and the noise of annotations. */
#include <string.h>

#include "tests/helpers/byhand.h"
#include "tests/helpers/two_models.h"

#define BE REQUEST_CLASS_PROACTIVE
#define MS(t) ((int64_t)((t)*1e6 + 0.5))

/* The answers for prompts of 1 to 40 rows, and for decodes of 1 to 40 requests. */
static struct estimate prompt_says[40], decode_says[40];

static void ask(struct sched *s, struct script *y)
{
    for (uint32_t n = 1; y->stage == 0 && n <= 40; n++) {
        struct work_shape w = {.rows = n, .logit_rows = 1, .sequences = 1, .prefill_rows = n};
        ck_assert_int_eq(sched_estimate(s, &w, OP_QKV, IGPU, n, &prompt_says[n - 1]), 0);
        w.prefill_rows = 0;
        w.sequences = w.logit_rows = n;
        ck_assert_int_eq(sched_estimate(s, &w, OP_QKV, IGPU, n, &decode_says[n - 1]), 0);
    }
    struct work_shape w = {.rows = 1, .logit_rows = 1, .sequences = 1};
    ck_assert_int_eq(sched_estimate(s, &w, OP_KIND_COUNT, IGPU, 1, &prompt_says[1]), -EINVAL);
    y->stage = 1;
    script_serve(s, y);
}

/* The toy iGPU draws 20 W for prompts and 10 W for decode. */
START_TEST(an_estimate_has_the_watts_of_its_phase)
{
    static const struct scenario_request q[] = {{BE, 0, 16, 1, 0, 0}};
    byhand_run(ask, q, 1);
    ck_assert_double_eq(prompt_says[0].watts, 20.0);
    ck_assert_double_eq(decode_says[0].watts, 10.0);
}
END_TEST

/* Counts how many of 40 annotations are not the true 10 ms. */
static uint32_t off(const struct estimate *e)
{
    uint32_t n = 0;
    for (int i = 0; i < 40; i++) {
        n += e[i].t_ns != MS(10) ? 1 : 0;
    }
    return n;
}

START_TEST(annotations_are_off_by_the_noise_of_their_phase)
{
    static const struct scenario_request q[] = {{BE, 0, 16, 1, 0, 0}};
    scenario_cost(&sc, IGPU, OP_QKV, 10, 0, 0);
    sc.setup.annotation.sigma_prefill = _i == 0 ? 0.1 : 0.0;
    sc.setup.annotation.sigma_decode = _i == 0 ? 0.0 : 0.1;
    byhand_run(ask, q, 1);
    ck_assert_uint_eq(off(prompt_says), _i == 0 ? 40 : 0);
    ck_assert_uint_eq(off(decode_says), _i == 0 ? 0 : 40);
}
END_TEST

static int64_t says(struct sched *s, const struct work_shape *w)
{
    struct estimate e;
    ck_assert_int_eq(sched_estimate(s, w, OP_QKV, IGPU, 1, &e), 0);
    return e.t_ns;
}

/* Works 1 to 3 differ from the first in one number each, and the last one in all. Estimates of
 * equal questions must be equal, in any order of questions. An estimate that is kept for the
 * question before fails. */
static void ask_in_turns(struct sched *s, struct script *y)
{
    static const struct work_shape works[] = {
        {.rows = 16, .logit_rows = 1, .sequences = 1, .prefill_rows = 16, .attn_pairs = 136},
        {.rows = 16, .logit_rows = 1, .sequences = 1, .prefill_rows = 16, .attn_pairs = 137},
        {.rows = 17, .logit_rows = 1, .sequences = 1, .prefill_rows = 16, .attn_pairs = 136},
        {.rows = 16, .logit_rows = 1, .sequences = 1, .prefill_rows = 15, .attn_pairs = 136},
        {.rows = 40, .logit_rows = 1, .sequences = 1, .prefill_rows = 40, .attn_pairs = 820},
    };
    for (int i = 1; i < 4; i++) {
        int64_t first = says(s, &works[0]);
        int64_t near = says(s, &works[i]);
        ck_assert_int_eq(says(s, &works[i]), near);
        ck_assert_int_ne(says(s, &works[4]), near);
        ck_assert_int_eq(says(s, &works[i]), near);
        ck_assert_int_ne(first, near);
    }
    script_serve(s, y);
}

START_TEST(noise_is_of_the_question_and_not_of_the_one_before)
{
    static const struct scenario_request q[] = {{BE, 0, 16, 1, 0, 0}};
    scenario_cost(&sc, IGPU, OP_QKV, 10, 0, 0);
    sc.setup.annotation.sigma_prefill = 0.1;
    byhand_run(ask_in_turns, q, 1);
}
END_TEST

/* Equal kernels of two models, operators and devices must have noise of their own. Each question
 * comes twice, and its two answers are equal. */
static void ask_of_others(struct sched *s, struct script *y)
{
    static const struct other {
        uint32_t model;
        enum op_kind op;
        uint8_t device;
    } others[] = {{0, OP_QKV, IGPU}, {1, OP_QKV, IGPU}, {0, OP_FFN, IGPU}, {0, OP_QKV, CPU}};
    struct estimate e[8];
    for (int i = 0; i < 8; i++) { /* each of the four, and again */
        const struct other *o = &others[i % 4];
        struct work_shape w = {
            .rows = 16, .logit_rows = 1, .sequences = 1, .prefill_rows = 16, .model = o->model};
        ck_assert_int_eq(sched_estimate(s, &w, o->op, o->device, 16, &e[i]), 0);
        for (int k = 0; k < i; k++) {
            ck_assert_int_eq(e[i].t_ns == e[k].t_ns, i - k == 4);
        }
    }
    script_serve(s, y);
}

START_TEST(noise_is_of_the_model_the_op_and_the_device)
{
    static struct two_models two;
    static const struct scenario_request q[] = {{BE, 0, 16, 1, 0, 0}};
    scenario_cost(&sc, -1, OP_QKV, 10, 0, 0);
    scenario_cost(&sc, -1, OP_FFN, 10, 0, 0);
    two_models_init(&sc, &two);
    sc.setup.annotation.sigma_prefill = 0.1;
    byhand_run(ask_of_others, q, 1);
}
END_TEST

static const struct suite_row suite[] = {
    CASE("by hand", .setup = byhand_igpu_setup, .teardown = byhand_teardown),
    TEST(an_estimate_has_the_watts_of_its_phase),
    LOOP(annotations_are_off_by_the_noise_of_their_phase, 2),
    TEST(noise_is_of_the_question_and_not_of_the_one_before),
    TEST(noise_is_of_the_model_the_op_and_the_device),
};
SUITE_MAIN("estimates", suite)
