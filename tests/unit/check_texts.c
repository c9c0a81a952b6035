/* Token texts and the drafters that draft on them: the automaton against brute force, matches and
 * acceptance by hand, and what a file may not be. */
#include <stdio.h>
#include <string.h>

#include "hwmodels/drafters.h"
#include "sim/base/rng.h"
#include "sim/base/suffix.h"
#include "tests/helpers/suite.h"
#include "tests/helpers/tempfile.h"
#include "traces/texts.h"
#include "traces/traces.h"

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

/* In place of what was read before. */
static void read_text(const char *text)
{
    texts_release(texts);
    const char *path = tempfile_make(".jsonl");
    tempfile_put(text);
    texts = texts_read(path, &err);
}

static const struct trace_text *read_one(const char *text)
{
    read_text(text);
    ck_assert_msg(texts != NULL, "%s", err.n > 0 ? err.lines[0] : "no message");
    return &texts->texts[0];
}

/* ---- the automaton ---- */

/* Every length and every place are tried. */
static struct suffix_match brute(const uint32_t *x, uint32_t n, uint32_t most)
{
    struct suffix_match found = {0};
    for (uint32_t length = 1; length < n && length <= most; length++) {
        for (uint32_t end = length; end < n; end++) {
            if (memcmp(x + end - length, x + n - length, length * sizeof *x) == 0) {
                found = (struct suffix_match){length, end};
                break;
            }
        }
    }
    return found;
}

START_TEST(the_automaton_finds_what_a_search_of_all_places_finds)
{
    static const uint32_t most[] = {0, 1, 2, 3, 7, UINT32_MAX};
    struct rng r;
    rng_init(&r, 20);
    uint32_t longest = 0;
    for (int text = 0; text < 1000; text++) {
        uint32_t x[80];
        uint32_t numbers = 1 + rng_below(&r, text % 2 == 0 ? 4 : 40);
        uint32_t n = 1 + rng_below(&r, 80);
        struct suffix *s = suffix_new();
        for (uint32_t i = 0; i < n; i++) {
            /* Large numbers too: they are names and not places. */
            x[i] = UINT32_MAX - rng_below(&r, numbers);
            suffix_add(s, x[i]);
            for (size_t k = 0; k < sizeof most / sizeof most[0]; k++) {
                struct suffix_match is = suffix_longest(s, most[k]);
                struct suffix_match want = brute(x, i + 1, most[k]);
                ck_assert_msg(is.length == want.length && is.at == want.at,
                              "text %d, %u numbers, most %u: %u at %u, by search %u at %u", text,
                              i + 1, most[k], is.length, is.at, want.length, want.at);
                longest = want.length > longest ? want.length : longest;
            }
        }
        suffix_free(s);
    }
    ck_assert_uint_gt(longest, 20); /* long ones were among them */
}
END_TEST

/* The longest end of y that x has, and its first place there. */
static struct suffix_match brute_within(const uint32_t *x, uint32_t n, const uint32_t *y,
                                        uint32_t n_y, uint32_t most)
{
    struct suffix_match found = {0};
    for (uint32_t length = 1; length <= n_y && length <= n && length <= most; length++) {
        for (uint32_t end = length; end <= n; end++) {
            if (memcmp(x + end - length, y + n_y - length, length * sizeof *x) == 0) {
                found = (struct suffix_match){length, end};
                break;
            }
        }
    }
    return found;
}

START_TEST(a_cursor_keeps_the_longest_end_of_another_text_that_the_sequence_has)
{
    static const uint32_t most[] = {1, 3, UINT32_MAX};
    struct rng r;
    rng_init(&r, 21);
    uint32_t longest = 0;
    for (int text = 0; text < 500; text++) {
        uint32_t x[60], y[60];
        uint32_t n = 1 + rng_below(&r, 60);
        uint32_t n_y = 1 + rng_below(&r, 60);
        uint32_t numbers = 2 + rng_below(&r, 4);
        struct suffix *s = suffix_new();
        for (uint32_t i = 0; i < n; i++) {
            x[i] = rng_below(&r, numbers);
            suffix_add(s, x[i]);
        }
        struct suffix_cursor c = {0};
        for (uint32_t i = 0; i < n_y; i++) {
            /* Half of them continue as the sequence does somewhere, and one number more is unknown
             * to it. */
            y[i] = i > 0 && rng_below(&r, 2) == 0 ? x[(i * 7) % n] : rng_below(&r, numbers + 1);
            suffix_follow(s, &c, y[i]);
            for (size_t k = 0; k < sizeof most / sizeof most[0]; k++) {
                struct suffix_match is = suffix_followed(s, c, most[k]);
                struct suffix_match want = brute_within(x, n, y, i + 1, most[k]);
                ck_assert_msg(is.length == want.length && is.at == want.at,
                              "text %d, place %u, most %u: %u at %u, by search %u at %u", text, i,
                              most[k], is.length, is.at, want.length, want.at);
                longest = want.length > longest ? want.length : longest;
            }
        }
        suffix_free(s);
    }
    ck_assert_uint_gt(longest, 6);
}
END_TEST

/* ---- matches and acceptance ---- */

START_TEST(matches_and_right_tokens_are_those_found_by_hand)
{
    static const struct {
        uint32_t length, at, right;
    } want[] = {
        {0, 0, 0}, /* 9 is new */
        {1, 1, 2}, /* .. 1 drafts 2 3 4 9 1, and 2 3 7 comes */
        {2, 2, 1}, /* .. 1 2: 3 4 9 1 2 */
        {3, 3, 0}, /* .. 1 2 3: 4 9 1 2 3, and 7 comes */
        {0, 0, 0}, /* 7 is new */
        {1, 2, 2}, /* .. 7 2: 3 4 and on; the answer ends behind them */
        {2, 3, 1}, /* .. 7 2 3 */
    };
    static const uint32_t known[] = {5, 6, 7, 8, 9, 10, 11}; /* tokens before each place */
    const struct trace_text *t =
        read_one("{\"context\": [1,2,3,4,9], \"output\": [1,2,3,7,2,3,4]}\n");
    ck_assert_uint_eq(t->n_context, 5);
    ck_assert_uint_eq(t->n_output, 7);
    struct drafter d = {.kind = TRACE_SUFFIX, .max_draft_tokens = 40, .proactive = true};
    for (uint32_t i = 0; i < 7; i++) {
        for (int k = 0; k < TRACE_CALIBRATED; k++) { /* with matches up to 3 both are equal */
            const struct trace_match *m = &t->matches[k][i];
            ck_assert_uint_eq(m->length, want[i].length);
            ck_assert_ptr_eq(m->draft, want[i].length > 0 ? t->tokens + want[i].at : NULL);
            ck_assert_uint_eq(m->right, want[i].right);
        }
        uint32_t drafted = want[i].length > 0 ? known[i] - want[i].at : 0;
        ck_assert_uint_eq(drafter_length(&d, t, i), drafted);
        ck_assert_uint_eq(drafter_right(&d, t, i, drafted), want[i].right);
        ck_assert_uint_eq(drafter_right(&d, t, i, 1), want[i].right > 0);
    }
}
END_TEST

START_TEST(prompt_lookup_matches_three_tokens_at_most)
{
    const struct trace_text *t =
        read_one("{\"context\": [1,2,3,8,5,1,2,3,4,0,5,1,2], \"output\": [3,4,9]}\n");
    /* Before the second token the text ends by 0 5 1 2 3. The first 1 2 3 is followed by 8, the
     * first 5 1 2 3 by 4. */
    struct drafter d = {.kind = TRACE_LOOKUP, .max_draft_tokens = 10};
    ck_assert_uint_eq(t->matches[TRACE_LOOKUP][1].length, 3);
    ck_assert_ptr_eq(t->matches[TRACE_LOOKUP][1].draft, t->tokens + 3);
    ck_assert_uint_eq(drafter_length(&d, t, 1), 10); /* of 11 */
    ck_assert_uint_eq(drafter_right(&d, t, 1, 10), 0);
    d.kind = TRACE_SUFFIX;
    ck_assert_uint_eq(t->matches[TRACE_SUFFIX][1].length, 4);
    ck_assert_ptr_eq(t->matches[TRACE_SUFFIX][1].draft, t->tokens + 8);
    ck_assert_uint_eq(drafter_length(&d, t, 1), 6); /* 4 0 5 1 2 3: there the text ends */
    ck_assert_uint_eq(drafter_right(&d, t, 1, 6), 1);
    d.tokens_per_match = 1;
    ck_assert_uint_eq(drafter_length(&d, t, 1), 5); /* 1 and one for each that matches */
    d.max_draft_tokens = 3;
    ck_assert_uint_eq(drafter_length(&d, t, 1), 3);
}
END_TEST

/* There are two users. The first asks for texts 0, 2 and 0 again, and the second for 1 twice.
 * Nothing of the prompts is kept, and nothing of the other user's answers. */
START_TEST(earlier_answers_of_the_user_are_drafted_from_where_they_match_longer)
{
    static const uint32_t number[] = {0, 1, 2, 1, 0};
    read_text("{\"context\": [1,2,9], \"output\": [5,6,7,8]}\n"
              "{\"context\": [1], \"output\": [5,6,1]}\n"
              "{\"context\": [6,3,5], \"output\": [6,7,2,5,6,7,4294967295]}\n");
    ck_assert_ptr_nonnull(texts);
    struct trace_texts *after = texts_after_answers(texts, number, 5, 2);
    const struct trace_match *m = after->texts[2].matches[TRACE_SUFFIX]; /* after 5 6 7 8 */
    const uint32_t *first = texts->texts[0].tokens + 3;
    const uint32_t *own = texts->texts[2].tokens;
    ck_assert_ptr_eq(after->texts[0].matches[TRACE_SUFFIX][1].draft, NULL); /* no answer yet */
    /* .. 5 is new in the text. The earlier answer continues by 6 7 8, of which the output has
     * two. */
    ck_assert(m[0].draft == first + 1 && m[0].left == 3 && m[0].length == 1 && m[0].right == 2);
    /* For .. 5 6 the text has had a 6 only. The match of .. 5 6 7 is longer still. */
    ck_assert(m[1].draft == first + 2 && m[1].length == 2 && m[1].right == 1);
    ck_assert(m[2].draft == first + 3 && m[2].length == 3 && m[2].left == 1 && m[2].right == 0);
    ck_assert_ptr_eq(m[3].draft, NULL); /* 2 is of an earlier prompt, which is not kept */
    /* .. 5, then 5 6 and 5 6 7, are equally long in both, so the text's own are taken. */
    ck_assert(m[4].draft == own + 3 && m[4].length == 1);
    ck_assert(m[6].draft == own + 5 && m[6].length == 3);
    /* The second user repeats its answer to an equal prompt. That ended by 1, and nothing follows
     * it. */
    const struct trace_match *again = after->texts[3].matches[TRACE_SUFFIX];
    const uint32_t *other = texts->texts[1].tokens + 1;
    ck_assert_ptr_eq(again[0].draft, NULL);
    ck_assert(again[1].draft == other + 1 && again[1].length == 1 && again[2].draft == other + 2);
    /* The third request of the first user: its first answer is there whole. */
    const struct trace_match *third = after->texts[4].matches[TRACE_LOOKUP];
    ck_assert(third[1].draft == first + 1 && third[1].right == 3 && third[3].length == 3);
    ck_assert(after->hash != texts->hash);
    texts_release(after);
}
END_TEST

START_TEST(drafts_are_for_the_classes_and_texts_there_are)
{
    const struct trace_text *t = read_one("{\"context\": [1,2,1], \"output\": [2,1,2]}\n");
    struct drafter d = {.kind = TRACE_SUFFIX, .max_draft_tokens = 40};
    struct request r = {.cls = REQUEST_CLASS_REACTIVE, .generated_tokens = 1};
    /* 1 2 1 2: the end 1 2 was followed by 1 2, and the answer by 1 2 as well. */
    ck_assert_uint_eq(drafter_draft(&d, 1, &r, t, 0), 2);
    ck_assert_uint_eq(drafter_accept(&d, 1, &r, t, 0, 2), 2);
    ck_assert_uint_eq(drafter_draft(&d, 1, &r, NULL, 0), 0);
    ck_assert_uint_eq(drafter_accept(&d, 1, &r, NULL, 0, 2), 0);
    r.cls = REQUEST_CLASS_PROACTIVE;
    ck_assert_uint_eq(drafter_draft(&d, 1, &r, t, 0), 0);
    d.proactive = true;
    ck_assert_uint_eq(drafter_draft(&d, 1, &r, t, 0), 2);
}
END_TEST

START_TEST(rejections_have_the_causes_found_by_hand)
{
    const struct trace_text *t =
        read_one("{\"context\": [1,2,3,4,5,6,7,8,9], \"output\": [1,0,2,3,0,11,5,6]}\n");
    /* After 1 the draft is 2 3 4 5 6 7 8 9 1, and the answer has 0 2 3: missing. After 1 0 2 the
     * draft is 3 4 5 6 7 8 9 1 0 2, and 3 0 11 5 6 comes. So 3 is right, and 4 became 0 11:
     * synonym. After .. 2 3 0 the draft is 2 3 0, and 11 5 6 comes: redundant. After .. 11 5 the
     * draft is 6 to 5, eleven tokens. 6 is right and the answer's last, which is emitted with any
     * draft. 0, 2 and 11 are new, so after 1 0 and after 11 nothing is drafted. */
    struct drafter d = {.kind = TRACE_SUFFIX, .max_draft_tokens = 40};
    struct drafter_account a = {0};
    drafter_count(&d, t, &a);
    ck_assert_uint_eq(a.verifications, 4);
    ck_assert_uint_eq(a.drafted, 9 + 10 + 3 + 11);
    ck_assert_uint_eq(a.accepted, 1);
    ck_assert_uint_eq(a.rejected, 3);
    ck_assert_uint_eq(a.missing, 1);
    ck_assert_uint_eq(a.synonym, 1);
}
END_TEST

/* A draft must not give the answer away: the same known text gives the same drafts, whichever
 * tokens follow. */
START_TEST(a_draft_does_not_depend_on_the_answer_to_come)
{
    struct rng r;
    rng_init(&r, 7);
    for (int round = 0; round < 50; round++) {
        char line[2][256];
        int n[2] = {0, 0};
        int same = 4 + (int)rng_below(&r, 8); /* tokens of the answer that both have */
        for (int k = 0; k < 2; k++) {
            n[k] += snprintf(line[k], sizeof line[k], "{\"context\":[1,2,3,1,2,4],\"output\":[");
        }
        for (int i = 0; i < same; i++) {
            unsigned x = 1 + rng_below(&r, 4);
            for (int k = 0; k < 2; k++) {
                n[k] += snprintf(line[k] + n[k], sizeof line[k] - (size_t)n[k], "%u,", x);
            }
        }
        (void)snprintf(line[0] + n[0], sizeof line[0] - (size_t)n[0], "5]}\n");
        (void)snprintf(line[1] + n[1], sizeof line[1] - (size_t)n[1], "1,2,3,1,2]}\n");
        char both[512];
        (void)snprintf(both, sizeof both, "%s%s", line[0], line[1]);
        (void)read_one(both);
        ck_assert_uint_eq(texts->n, 2);
        struct drafter d = {.max_draft_tokens = 40};
        for (int kind = 0; kind < TRACE_CALIBRATED; kind++) {
            d.kind = (enum trace_drafter)kind;
            for (uint32_t i = 0; i <= (uint32_t)same; i++) {
                ck_assert_uint_eq(drafter_length(&d, &texts->texts[0], i),
                                  drafter_length(&d, &texts->texts[1], i));
            }
        }
        tempfile_remove();
    }
}
END_TEST

/* ---- the file ---- */

START_TEST(a_text_becomes_words)
{
    /* a, two spaces, b_1, (, é, ), end of line; " b_1" has its space and is another word. */
    const struct trace_text *t =
        read_one("{\"context\": \"a  b_1(\\u00e9)\\n\", \"output\": \"a b_1)\", \"from\": 3}\n\n");
    const uint32_t *x = t->tokens;
    ck_assert_uint_eq(t->n_context, 7);
    ck_assert_uint_eq(t->n_output, 3);
    ck_assert_uint_eq(x[7], x[0]);
    ck_assert_uint_ne(x[8], x[2]);
    ck_assert_uint_eq(x[9], x[5]);
    for (int i = 0; i < 7; i++) {
        for (int k = 0; k < i; k++) {
            ck_assert_uint_ne(x[i], x[k]);
        }
    }
}
END_TEST

/* White space between words is one word, and a control character that is none is one by itself. */
START_TEST(all_white_space_is_white)
{
    static const char *const white[] = {"\\t\\t", "\\n\\n", "\\u000b\\u000b",
                                        "\\f\\f", "\\r\\r", "  "};
    static const char *const none[] = {"\\u0008\\u0008", "\\u000e\\u000e"};
    for (size_t i = 0; i < sizeof white / sizeof *white; i++) {
        OWNED char *text = xformat("{\"context\": \"a%s b\", \"output\": \"a\"}\n", white[i]);
        ck_assert_uint_eq(read_one(text)->n_context, 3);
    }
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        OWNED char *text = xformat("{\"context\": \"a%s b\", \"output\": \"a\"}\n", none[i]);
        ck_assert_uint_eq(read_one(text)->n_context, 4);
    }
}
END_TEST

static const struct {
    const char *text, *says;
} wrong[] = {
    {"", ": no texts"},
    {"{\"context\": [1], \"output\": [1]}\n[3]\n", ":2: line: must be an object"},
    {"{\"context\": [1]}\n", ":1: output: must be a text, or a list of token numbers"},
    {"\n{\"context\": [1], \"output\": [1.5]}\n", ":2: output: must hold whole numbers from 0"},
    {"{\"context\": [-1], \"output\": [1]}\n", ":1: context: must hold whole numbers from 0"},
    {"{\"context\": [4294967296], \"output\": [1]}\n", ":1: context: must hold whole numbers"},
    {"{\"context\": [1, \"a\"], \"output\": [1]}\n", ":1: context: must hold whole numbers"},
    {"{\"context\": [1], \"output\": []}\n", ":1: output: has no token"},
    {"{\"context\": \"\", \"output\": \"a\"}\n", ":1: context: has no token"},
    {"{\"context\": \"a\", \"output\": [1]}\n", ":1: output: has token numbers in a file of texts"},
    {"{\"context\": [1], \"output\": [1]}\n{\"context\": \"a\", \"output\": \"a\"}\n",
     ":2: context: is a text in a file of token numbers"},
    {"{\"context\": [1], \"output\": [1]}\n{\"context\n", ":2"},
};

START_TEST(a_wrong_file_is_told_with_its_line)
{
    read_text(wrong[_i].text);
    ck_assert_ptr_null(texts);
    ck_assert_uint_ge(err.n, 1);
    ck_assert_msg(strstr(err.lines[0], wrong[_i].says) != NULL, "\"%s\" lacks \"%s\"", err.lines[0],
                  wrong[_i].says);
}
END_TEST

/* ---- the workload ---- */

START_TEST(each_text_comes_once_and_then_again)
{
    struct trace t;
    struct trace other;
    ck_assert_int_eq(trace_generate("texts", 3, 1.0, &t, &err), 0);
    ck_assert_int_eq(trace_generate("texts", 4, 1.0, &other, &err), 0);
    ck_assert_uint_eq(t.n, t.texts->n);
    bool seen[1000] = {false};
    for (uint32_t i = 0; i < t.n; i++) {
        const struct trace_text *x = trace_text_at(&t, i);
        size_t k = (size_t)(x - t.texts->texts);
        ck_assert(!seen[k]);
        seen[k] = true;
        ck_assert_uint_eq(t.rows[i].input_tokens, x->n_context);
        ck_assert_uint_eq(t.rows[i].output_tokens, x->n_output);
    }
    ck_assert_uint_ne(t.hash, other.hash); /* another order */
    struct trace some;
    bool keep[1000] = {[5] = true, [9] = true};
    for (uint32_t i = 0; i < t.n; i++) { /* sessions, so that rows can be left out */
        t.rows[i] = (struct trace_row){.request_id = i,
                                       .session_id = i,
                                       .input_tokens = t.rows[i].input_tokens,
                                       .output_tokens = t.rows[i].output_tokens,
                                       .max_output_tokens = t.rows[i].max_output_tokens,
                                       .next = TRACE_NO_ROW};
    }
    const struct trace_text *ninth = trace_text_at(&t, 9);
    ck_assert_int_eq(trace_subset(&t, keep, &some), 0);
    trace_fini(&t); /* the subset holds the texts as well */
    ck_assert_uint_eq(some.n, 2);
    ck_assert_ptr_eq(trace_text_at(&some, 1), ninth);
    trace_fini(&some);
    trace_fini(&other);
}
END_TEST

START_TEST(the_texts_are_part_of_the_hash)
{
    uint64_t hash[2];
    for (int i = 0; i < 2; i++) {
        const char *path = tempfile_make(".jsonl");
        tempfile_put(i == 0 ? "{\"context\": [1,2], \"output\": [1]}\n"
                            : "{\"context\": [1,2], \"output\": [2]}\n");
        char spec[512];
        (void)snprintf(spec, sizeof spec, "texts:file=%s,n=3", path);
        struct trace t;
        ck_assert_int_eq(trace_generate(spec, 1, 1.0, &t, &err), 0);
        ck_assert_uint_eq(t.n, 3);
        hash[i] = t.hash;
        trace_fini(&t);
        tempfile_remove();
    }
    ck_assert_uint_ne(hash[0], hash[1]);
    struct trace t;
    ck_assert_int_ne(trace_generate("texts:file=none", 1, 1.0, &t, &err), 0);
    ck_assert_int_ne(trace_generate("summary:file=none", 1, 1.0, &t, &err), 0);
    ck_assert_msg(strstr(err.lines[1], "unknown key \"file\"") != NULL, "%s", err.lines[1]);
}
END_TEST

static const struct suite_row rows[] = {
    TEST(the_automaton_finds_what_a_search_of_all_places_finds),
    TEST(a_cursor_keeps_the_longest_end_of_another_text_that_the_sequence_has),
    CASE("texts", .setup = setup, .teardown = teardown),
    TEST(matches_and_right_tokens_are_those_found_by_hand),
    TEST(prompt_lookup_matches_three_tokens_at_most),
    TEST(earlier_answers_of_the_user_are_drafted_from_where_they_match_longer),
    TEST(drafts_are_for_the_classes_and_texts_there_are),
    TEST(rejections_have_the_causes_found_by_hand),
    TEST(a_draft_does_not_depend_on_the_answer_to_come),
    TEST(a_text_becomes_words),
    TEST(all_white_space_is_white),
    LOOP(a_wrong_file_is_told_with_its_line, sizeof wrong / sizeof wrong[0]),
    TEST(each_text_comes_once_and_then_again),
    TEST(the_texts_are_part_of_the_hash),
};
SUITE_MAIN("texts", rows)
