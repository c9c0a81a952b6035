/* The likeliest tokens after each token of a real run. For rows that no kernel samples, the host
 * computes the model's head itself. */
#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "policies/registry.h"
#include "sim/drive/topk.h"
#include "tests/helpers/plain_engine.h"
#include "tests/helpers/realrun.h"
#include "tests/helpers/suite.h"

enum { VOCAB = 8, AT = 5 };

/* Returns the probabilities after token AT of a prompt of that length. */
static void probabilities(uint32_t prompt, double out[VOCAB])
{
    char *text = NULL;
    size_t bytes = 0;
    struct tokens t;
    realrun_requests_make(60);
    real_n = 1;
    real_q[0] = (struct scenario_request){.input_tokens = prompt, .output_tokens = 1};
    realrun_machine_make(&plain_engine, DRIVE_CLOCK_CPU);
    realrun_small_model();
    real.llm.vocab = VOCAB;
    real_options.topk = open_memstream(&text, &bytes);
    ck_assert_msg(realrun_run(policy_find("fcfs"), "", &t) == 0, "%s", real.result.message);
    fclose(real_options.topk);
    cJSON *line = cJSON_Parse(text);
    const cJSON *next = cJSON_GetArrayItem(cJSON_GetObjectItem(line, "next"), AT);
    ck_assert_int_eq(cJSON_GetArraySize(next), VOCAB);
    for (int i = 0; i < VOCAB; i++) {
        const cJSON *of = cJSON_GetArrayItem(next, i);
        out[cJSON_GetArrayItem(of, 0)->valueint] = cJSON_GetArrayItem(of, 1)->valuedouble;
    }
    cJSON_Delete(line);
    free(text);
}

/* A prompt of six tokens ends at token 5, so the engine has its logits. In a prompt of seven it is
 * one in the middle, and the host computes it. Both must be equal. All eight words of the
 * vocabulary are among the likeliest. */
START_TEST(the_hosts_head_is_that_of_the_engine)
{
    double engines[VOCAB] = {0}, hosts[VOCAB] = {0};
    double sum = 0.0;
    probabilities(AT + 1, engines);
    probabilities(AT + 2, hosts);
    for (int i = 0; i < VOCAB; i++) {
        ck_assert_double_eq_tol(hosts[i], engines[i], 1e-4);
        sum += hosts[i];
    }
    ck_assert_double_eq_tol(sum, 1.0, 1e-4);
}
END_TEST

/* exp of a logit of 1000 is no number: probabilities are of differences to the largest one,
 * wherever it is. 1 / (1 + 1 / e) is 0.731058579, and a difference of 1000 leaves nothing. */
START_TEST(large_logits_have_probabilities)
{
    for (uint32_t n = 1; n <= 9; n++) {
        float logits[9];
        struct topk out = {0};
        for (uint32_t at = 0; at < n; at++) {
            for (uint32_t i = 0; i < n; i++) {
                logits[i] = i == at ? 1000.0f : i == (at + 1) % n ? 999.0f : (float)i - 100.0f;
            }
            topk_fill(logits, n, &out);
            ck_assert_uint_eq(out.n, n < TOPK ? n : TOPK);
            ck_assert_int_eq(out.token[0], (int32_t)at);
            ck_assert_double_eq_tol(out.probability[0], n == 1 ? 1.0 : 0.731058579, 1e-6);
            for (uint32_t k = 1; k < out.n; k++) {
                ck_assert(k > 1 || out.token[k] == (int32_t)((at + 1) % n));
                ck_assert_double_eq_tol(out.probability[k], k == 1 ? 0.268941421 : 0.0, 1e-6);
            }
        }
    }
}
END_TEST

/* The smaller of two equally likely tokens is first, also where more are than are kept. */
START_TEST(of_equal_logits_the_first_are_kept_in_order)
{
    enum { N = TOPK + 5 };
    float logits[N];
    struct topk out = {0};
    for (uint32_t i = 0; i < N; i++) {
        logits[i] = i == 7 ? 2.0f : 1.0f;
    }
    topk_fill(logits, N, &out);
    ck_assert_uint_eq(out.n, TOPK);
    ck_assert_int_eq(out.token[0], 7);
    for (int32_t k = 1, token = 0; k < TOPK; k++, token++) {
        token += token == 7;
        ck_assert_int_eq(out.token[k], token);
    }
}
END_TEST

static const struct suite_row suite[] = {
    CASE("all", .timeout_s = 60),
    TEST(the_hosts_head_is_that_of_the_engine),
    TEST(large_logits_have_probabilities),
    TEST(of_equal_logits_the_first_are_kept_in_order),
};
SUITE_MAIN("likeliest tokens of real runs", suite)
