/* Drafts calibrated with the model's own expectations (traces/calibration.h), by hand, and what
 * `drive --topk` writes for them. */
#include <cjson/cJSON.h>
#include <string.h>

#include "hwmodels/drafters.h"
#include "policies/registry.h"
#include "sim/drive/topk.h"
#include "tests/helpers/plain_engine.h"
#include "tests/helpers/realrun.h"
#include "tests/helpers/suite.h"
#include "tests/helpers/tempfile.h"
#include "traces/texts.h"

static struct err err;
static struct trace_texts *texts;

static void setup(void)
{
    err = (struct err)ERR_INIT;
    texts = NULL;
}

static void teardown(void)
{
    texts_release(texts);
    err_fini(&err);
    tempfile_remove();
}

static const struct trace_text *read_one(const char *text)
{
    const char *path = tempfile_make(".jsonl");
    tempfile_put(text);
    texts = texts_read(path, &err);
    ck_assert_msg(texts != NULL, "%s", err.n > 0 ? err.lines[0] : "no message");
    return &texts->texts[0];
}

/* ---- drafts ---- */

/* The context is 1 2 3 1 4 5. Behind the first 1 the model expects 4 with 0.6, and behind the
 * second 2 with 0.5, so 4 is the likeliest. With 0.5 it is as likely, and the first counts. Behind
 * 4 it expects 5, and behind 5 a 7 that the context does not have. The tree leaves out tokens that
 * it expects behind those of the answer (the 8 behind 9). */
static const char line[] =
    "{\"context\":[1,2,3,1,4,5],\"output\":[1,4,5,7,9],"
    "\"next\":[[[4,0.6],[2,0.3]],[[3,0.9]],[],[[2,0.5]],[[5,0.8],[3,0.1]],[[7,0.7]],"
    "[[4,0.9]],[[8,0.9]],[[8,0.9]],[[8,0.9]]]}\n";

START_TEST(a_draft_is_the_likeliest_path_where_the_text_has_no_two_tokens)
{
    char text[sizeof line];
    memcpy(text, line, sizeof line);
    *(strstr(text, "[4,0.6]") + 5) = _i == 0 ? '6' : '5';
    const struct trace_text *t = read_one(text);
    const struct trace_match *m = t->matches[TRACE_CALIBRATED];
    static const uint32_t path[] = {4, 5, 7};
    /* Before the first token the text ends by 4 5, and nothing has followed it: the tree has 7. */
    ck_assert_uint_eq(m[0].left, 1);
    ck_assert_uint_eq(m[0].draft[0], 7);
    ck_assert_uint_eq(m[0].right, 0);
    /* In .. 5 1 one token matches, so the draft is 1 -> 4 -> 5 -> 7, and all are right. */
    ck_assert_uint_eq(m[1].left, 3);
    ck_assert_mem_eq(m[1].draft, path, sizeof path);
    ck_assert_uint_eq(m[1].right, 3);
    /* In .. 1 4 and .. 1 4 5 two tokens and more match, so the draft is the automaton's. */
    for (int i = 2; i < 4; i++) {
        ck_assert_mem_eq(&m[i], &t->matches[TRACE_SUFFIX][i], sizeof m[i]);
    }
    /* In .. 5 7 neither the context nor the tree has a 7. */
    ck_assert_uint_eq(m[4].length, 0);
    struct drafter d = {.kind = TRACE_CALIBRATED, .max_draft_tokens = 2, .proactive = true};
    ck_assert_uint_eq(drafter_length(&d, t, 1), 2);
    ck_assert_uint_eq(drafter_right(&d, t, 1, 2), 2);
}
END_TEST

/* 1 -> 2 -> 1: the path ends where it comes back. */
START_TEST(a_path_ends_where_it_repeats_itself)
{
    const struct trace_text *t = read_one("{\"context\":[1,2,9],\"output\":[1,3],"
                                          "\"next\":[[[2,0.5]],[[1,0.5]],[],[]]}\n");
    const struct trace_match *m = &t->matches[TRACE_CALIBRATED][1];
    static const uint32_t path[] = {2, 1};
    ck_assert_uint_eq(m->left, 2);
    ck_assert_mem_eq(m->draft, path, sizeof path);
}
END_TEST

/* A user's earlier answer has 5 1 2; the text now ends by 5 1, which goes before the tree. */
START_TEST(an_earlier_answer_goes_before_the_tree)
{
    const struct trace_text *t = read_one("{\"context\":[7,8],\"output\":[5,1,2],"
                                          "\"next\":[[],[],[],[]]}\n"
                                          "{\"context\":[1,6],\"output\":[5,1,4],"
                                          "\"next\":[[[4,0.9]],[],[],[]]}\n");
    ck_assert_uint_eq(t[1].matches[TRACE_CALIBRATED][2].draft[0], 4);
    static const uint32_t both[] = {0, 1};
    struct trace_texts *after = texts_after_answers(texts, both, 2, 1);
    ck_assert_uint_eq(after->texts[1].matches[TRACE_CALIBRATED][2].draft[0], 2);
    texts_release(after);
}
END_TEST

/* The hash of a trace has the expectations in it, and a file without them has no such drafts. */
START_TEST(expectations_are_optional_and_part_of_the_hash)
{
    uint64_t hash[3];
    static const char *const files[] = {
        "{\"context\":[1],\"output\":[2]}\n",
        "{\"context\":[1],\"output\":[2],\"next\":[[[2,0.5]]]}\n",
        "{\"context\":[1],\"output\":[2],\"next\":[[[2,0.25]]]}\n",
    };
    for (int i = 0; i < 3; i++) {
        const struct trace_text *t = read_one(files[i]);
        ck_assert((t->matches[TRACE_CALIBRATED] == NULL) == (i == 0));
        hash[i] = texts->hash;
        texts_release(texts);
        texts = NULL;
    }
    ck_assert(hash[0] != hash[1] && hash[1] != hash[2]);
}
END_TEST

START_TEST(a_wrong_file_is_told_with_its_line)
{
    static const struct {
        const char *next, *says;
    } wrong[] = {
        {"[[[2,0.5]],[]]", ":1: next: must have an entry for each of the 2 tokens but the last"},
        {"7", ":1: next: must have an entry"},
        {"[[[2,1.5]]]", ":1: next[0]: must be pairs [token, probability], the likeliest first"},
        {"[[[2,0.2],[3,0.4]]]", ":1: next[0]: must be pairs"},
        {"[[[2]]]", ":1: next[0]: must be pairs"},
        {"[[[2.5,0.5]]]", ":1: next[0]: must be pairs"},
        {"[[[-1,0.5]]]", ":1: next[0]: must be pairs"},
        {"[5]", ":1: next[0]: must be pairs"},
    };
    char text[256];
    const char *path = tempfile_make(".jsonl");
    (void)snprintf(text, sizeof text, "{\"context\":[1],\"output\":[2],\"next\":%s}\n",
                   wrong[_i].next);
    tempfile_put(text);
    texts = texts_read(path, &err);
    ck_assert_ptr_null(texts);
    ck_assert_msg(strstr(err.lines[0], wrong[_i].says) != NULL, "%s", err.lines[0]);
}
END_TEST

/* ---- what drive writes ---- */

/* exp(0), exp(-ln 2) and exp(-ln 4) give 4/7, 2/7 and 1/7. */
START_TEST(the_likeliest_come_first_with_their_probabilities)
{
    static const float logits[] = {-1.3862944f, 0.0f, -0.6931472f};
    struct topk k;
    topk_fill(logits, 3, &k);
    ck_assert_uint_eq(k.n, 3);
    static const int tokens[] = {1, 2, 0};
    static const double sevenths[] = {4, 2, 1};
    for (uint32_t i = 0; i < 3; i++) {
        ck_assert_int_eq(k.token[i], tokens[i]);
        ck_assert_double_eq_tol((double)k.probability[i], sevenths[i] / 7.0, 1e-6);
    }
    float many[20];
    for (int i = 0; i < 20; i++) {
        many[i] = (float)(i * 7 % 20); /* each of 0 .. 19 once */
    }
    topk_fill(many, 20, &k);
    ck_assert_uint_eq(k.n, TOPK);
    for (uint32_t i = 0; i < TOPK; i++) {
        ck_assert_double_eq((double)many[k.token[i]], 19.0 - i);
    }
}
END_TEST

static int number_at(const cJSON *list, int i)
{
    return cJSON_GetArrayItem(list, i)->valueint;
}

/* These are pairs of a session. The second prompt begins with the first one's prompt and answer,
 * and is computed again. So behind each token of that answer the host's head must expect the
 * token that the engine's head has chosen in the first turn. The file is read as token texts,
 * and drafts. */
START_TEST(what_drive_writes_agrees_with_its_tokens_and_is_read_again)
{
    enum { N = 4 };
    static struct tokens tokens;
    char text[65536];
    const char *path = tempfile_make(".jsonl");
    realrun_requests_make(60);
    real_n = N;
    for (uint32_t i = 0; i < N; i++) {
        bool second = i % 2 == 1;
        real_q[i] = (struct scenario_request){.cls = REQUEST_CLASS_REACTIVE,
                                              .arrival_s = second ? 0.001 : 0.0,
                                              .input_tokens = second ? 25 : 13,
                                              .output_tokens = 6,
                                              .session_id = 1 + i / 2,
                                              .prefix_tokens = second ? 19 : 0};
    }
    realrun_machine_make(&plain_engine, DRIVE_CLOCK_CPU);
    realrun_small_model();
    real.setup.prefix_reuse = false;
    real_options.topk = tmpfile();
    ck_assert_int_eq(realrun_run(policy_find("fcfs"), "", &tokens), 0);
    rewind(real_options.topk);
    size_t n = fread(text, 1, sizeof text - 1, real_options.topk);
    text[n] = '\0';
    (void)fclose(real_options.topk);
    real_options.topk = NULL;
    tempfile_put(text);
    texts = texts_read(path, &err);
    ck_assert_msg(texts != NULL && texts->n == N, "%s", err.n > 0 ? err.lines[0] : "too few");
    const char *at = text;
    for (uint32_t i = 0; i < N; i++) {
        const char *end = NULL;
        cJSON *o = cJSON_ParseWithOpts(at, &end, false);
        const cJSON *output = cJSON_GetObjectItem(o, "output");
        const cJSON *context = cJSON_GetObjectItem(o, "context");
        const cJSON *next = cJSON_GetObjectItem(o, "next");
        int id = cJSON_GetObjectItem(o, "request")->valueint;
        int n_context = cJSON_GetArraySize(context);
        ck_assert_int_eq(cJSON_GetArraySize(output), 6);
        ck_assert_int_eq(cJSON_GetArraySize(next), n_context + 5);
        for (int k = 0; k < n_context + 5; k++) {
            const cJSON *entry = cJSON_GetArrayItem(next, k);
            double sum = 0.0;
            ck_assert_int_eq(cJSON_GetArraySize(entry), TOPK);
            for (int j = 0; j < TOPK; j++) {
                sum += cJSON_GetArrayItem(cJSON_GetArrayItem(entry, j), 1)->valuedouble;
            }
            ck_assert(sum > TOPK / 101.0 && sum < 1.0); /* of a vocabulary of 101 */
            int best = number_at(cJSON_GetArrayItem(entry, 0), 0);
            if (k >= n_context - 1) { /* the engine's head */
                ck_assert_int_eq(best, number_at(output, k + 1 - n_context));
                ck_assert_int_eq(best, tokens.t[id][k + 1 - n_context]);
            } else if (id % 2 == 1 && k >= 12 && k < 18) { /* the host's */
                ck_assert_int_eq(number_at(context, k + 1), tokens.t[id - 1][k - 12]);
                ck_assert_int_eq(best, number_at(context, k + 1));
            }
        }
        ck_assert_ptr_nonnull(texts->texts[i].matches[TRACE_CALIBRATED]);
        cJSON_Delete(o);
        at = end;
    }
}
END_TEST

static const struct suite_row suite[] = {
    CASE("texts", .setup = setup, .teardown = teardown),
    LOOP(a_draft_is_the_likeliest_path_where_the_text_has_no_two_tokens, 2),
    TEST(a_path_ends_where_it_repeats_itself),
    TEST(an_earlier_answer_goes_before_the_tree),
    TEST(expectations_are_optional_and_part_of_the_hash),
    LOOP(a_wrong_file_is_told_with_its_line, 8),
    TEST(the_likeliest_come_first_with_their_probabilities),
    TEST(what_drive_writes_agrees_with_its_tokens_and_is_read_again),
};
SUITE_MAIN("calibrated drafts", suite)
