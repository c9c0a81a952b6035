/* Turns of a real run. The next turn's prompt begins with the prompt and answer of the turn before,
 * as far as its trace says. The next one may be late. */
#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policies/registry.h"
#include "tests/helpers/plain_engine.h"
#include "tests/helpers/realrun.h"
#include "tests/helpers/suite.h"

/* Returns a member of a request's line in the output of --topk. The caller frees the line. */
static cJSON *line_of(char *text, int request, const char *member, cJSON **line)
{
    for (char *at = text; at != NULL && *at != '\0'; at = strchr(at, '\n'), at += at != NULL) {
        *line = cJSON_Parse(at);
        if (cJSON_GetObjectItem(*line, "request")->valueint == request) {
            return cJSON_GetObjectItem(*line, member);
        }
        cJSON_Delete(*line);
    }
    ck_abort_msg("no line of request %d", request);
    return NULL;
}

/* A prompt has 9 tokens and 5 of output. The next one has 20, whose first `prefix` are those. The
 * first answer's last token was in no kernel, and is in the prompt. The token after the prefix is
 * made up, so it must differ. It would be equal by chance once in 101, and is not here. */
START_TEST(a_prompt_begins_with_the_turn_before)
{
    static const uint32_t prefixes[] = {14, 13, 9, 0};
    char *text = NULL;
    size_t bytes = 0;
    struct tokens t;
    cJSON *lines[3];
    realrun_requests_make(60);
    real_n = 2;
    real_q[0] = (struct scenario_request){.session_id = 7, .input_tokens = 9, .output_tokens = 5};
    real_q[1] = (struct scenario_request){.session_id = 7,
                                          .arrival_s = 0.001,
                                          .input_tokens = 20,
                                          .output_tokens = 2,
                                          .prefix_tokens = prefixes[_i]};
    realrun_machine_make(&plain_engine, DRIVE_CLOCK_CPU);
    realrun_small_model();
    real_options.topk = open_memstream(&text, &bytes);
    ck_assert_msg(realrun_run(policy_find("fcfs"), "", &t) == 0, "%s", real.result.message);
    fclose(real_options.topk);
    const cJSON *asked = line_of(text, 0, "context", &lines[0]);
    const cJSON *answer = line_of(text, 0, "output", &lines[1]);
    const cJSON *next = line_of(text, 1, "context", &lines[2]);
    ck_assert_int_eq(cJSON_GetArraySize(asked), 9);
    ck_assert_int_eq(cJSON_GetArraySize(answer), 5);
    for (int i = 0; i <= (int)prefixes[_i] && i < 14; i++) {
        int before = cJSON_GetArrayItem(i < 9 ? asked : answer, i < 9 ? i : i - 9)->valueint;
        int is = cJSON_GetArrayItem(next, i)->valueint;
        ck_assert_msg((is == before) == (i < (int)prefixes[_i]), "token %d: %d, %d", i, is, before);
    }
    for (int i = 0; i < 3; i++) {
        cJSON_Delete(lines[i]);
    }
    free(text);
}
END_TEST

/* A run may be idle for longer than it may stall: the second request comes an hour later. */
START_TEST(a_pause_is_no_stall)
{
    struct tokens t;
    realrun_requests_make(20);
    real_n = 2;
    real_q[1].arrival_s = 3600.0;
    realrun_machine_make(&plain_engine, DRIVE_CLOCK_CPU);
    realrun_small_model();
    real.setup.stall_ns = 60 * NS_PER_S;
    ck_assert_msg(realrun_run(policy_find("fcfs"), "", &t) == 0, "%s", real.result.message);
    ck_assert_uint_eq(t.n[1], real_q[1].output_tokens);
}
END_TEST

static const struct suite_row suite[] = {
    CASE("all", .timeout_s = 60),
    LOOP(a_prompt_begins_with_the_turn_before, 4),
    TEST(a_pause_is_no_stall),
};
SUITE_MAIN("turns of real runs", suite)
