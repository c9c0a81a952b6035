/* Workloads of agents: counts, growth, gaps and shapes by closed forms, streams that do not touch,
 * and refusals that name file and key path. tests/golden/agents.sh compares whole files. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/api/request.h"
#include "sim/base/units.h"
#include "tests/helpers/suite.h"
#include "tests/helpers/tempfile.h"
#include "traces/agents.h"
#include "traces/draw.h"
#include "traces/traces.h"

static struct err err;
static const char *path;
static struct trace t;

static void setup(void)
{
    err = (struct err)ERR_INIT;
    path = tempfile_make(".json");
    t = (struct trace){0};
}

static void teardown(void)
{
    err_fini(&err);
    trace_fini(&t);
    tempfile_remove();
}

static void make(const char *text, uint64_t seed, double rate_scale, struct trace *out)
{
    tempfile_put(text);
    int rc = trace_generate(path, seed, rate_scale, out, &err);
    ck_assert_msg(rc == 0, "%s", err.n > 0 ? err.lines[0] : "no message");
}

static uint32_t row_of(const struct trace *x, uint32_t session_id, uint32_t turn)
{
    uint32_t i = 0;
    while (i < x->n && (x->rows[i].session_id != session_id || x->rows[i].turn != turn)) {
        i++;
    }
    ck_assert_msg(i < x->n, "no turn %u of session %u", turn, session_id);
    return i;
}

static bool has_edge(const struct trace *x, uint32_t from, uint32_t to)
{
    const struct trace_graph *g = x->graph;
    for (uint32_t k = g->first[from]; k < g->first[from + 1]; k++) {
        if (g->edges[k].row == to) {
            return true;
        }
    }
    return false;
}

/* ---- clients and turns ---- */

/* 4 sessions of 12 turns are 48 requests. From 0 on, every 40 s below 480 s, are 12 documents. A
 * prompt is 1,500 and 800 for every turn before it; its cache holds the last prompt and answer. */
START_TEST(counts_and_growth_are_as_by_hand)
{
    make("{\"duration_s\": 480, \"clients\": ["
         "{\"name\": \"session\", \"count\": 4, \"turns\": 12, \"prompt_tokens\": 1500,"
         " \"growth_tokens\": 800, \"answer_tokens\": 120,"
         " \"gap_s\": {\"distribution\": \"uniform\", \"min\": 2, \"max\": 8}},"
         "{\"name\": \"document\", \"class\": \"proactive\", \"every_s\": 40,"
         " \"prompt_tokens\": 6000, \"answer_tokens\": 300}]}",
         3, 1.0, &t);
    ck_assert_uint_eq(t.n, 48 + 12);
    ck_assert_uint_eq(t.n_first, 4 + 12);
    ck_assert_uint_eq(t.graph->n_jobs, 4 + 12);
    uint32_t documents = 0;
    double gaps_s = 0.0;
    for (size_t i = 0; i < t.n; i++) {
        const struct trace_row *r = &t.rows[i];
        if (r->cls == REQUEST_CLASS_PROACTIVE) {
            ck_assert_int_eq(r->arrival_ns, 40 * NS_PER_S * documents++);
            ck_assert_uint_eq(r->input_tokens, 6000);
            ck_assert_uint_eq(t.extras[i].client_id, 4);
            continue;
        }
        uint32_t prompt = 1500 + 800u * r->turn;
        ck_assert_uint_eq(r->input_tokens, prompt);
        ck_assert_uint_eq(r->prefix_tokens, r->turn == 0 ? 0 : prompt - 800 + 120);
        ck_assert_uint_eq(t.extras[i].client_id, r->session_id);
        ck_assert(r->turn == 0 || (r->arrival_ns >= 2 * NS_PER_S && r->arrival_ns < 8 * NS_PER_S));
        ck_assert(r->after_tool == (r->turn > 0));
        gaps_s += r->turn > 0 ? units_s_from_ns(r->arrival_ns) : 0.0;
    }
    ck_assert_uint_eq(documents, 12);
    /* Mean 5 s, standard deviation 6 / sqrt(12) of one gap: 4 standard errors of 44. */
    ck_assert_double_lt(fabs(gaps_s / 44.0 - 5.0), 4.0 * 6.0 / sqrt(12.0 * 44.0));
}
END_TEST

/* new_tokens come after the prompt and the answer; 100, then 100 + 10 + 7, ... A prompt that would
 * grow by less than the answer grows by the answer and one token. */
START_TEST(new_tokens_follow_the_answer)
{
    make("{\"clients\": [{\"name\": \"a\", \"turns\": 3, \"prompt_tokens\": 100,"
         " \"new_tokens\": 7, \"answer_tokens\": 10, \"gap_s\": 1, \"gap_kind\": \"think\"},"
         "{\"name\": \"b\", \"turns\": 2, \"prompt_tokens\": 100, \"growth_tokens\": 3,"
         " \"answer_tokens\": 10}]}",
         1, 1.0, &t);
    for (uint32_t turn = 0; turn < 3; turn++) {
        ck_assert_uint_eq(t.rows[row_of(&t, 0, turn)].input_tokens, 100 + 17 * turn);
    }
    ck_assert(!t.rows[row_of(&t, 0, 1)].after_tool);
    ck_assert_int_eq(t.rows[row_of(&t, 0, 1)].arrival_ns, NS_PER_S);
    ck_assert_uint_eq(t.rows[row_of(&t, 1, 1)].input_tokens, 111);
    ck_assert_uint_eq(t.rows[row_of(&t, 1, 1)].prefix_tokens, 110);
}
END_TEST

/* A job takes 2 s of tools and a thought 10 s. So jobs begin at 1, 13, 25 and not at 37 s any more.
 * All but the first wait for the last turn of the job before, and are jobs of their own. */
START_TEST(a_closed_loop_waits_and_stops)
{
    static const char text[] =
        "{\"duration_s\": 37, \"clients\": [{\"name\": \"a\", \"start_s\": 1, \"think_s\": 10,"
        " \"turns\": 2, \"prompt_tokens\": 9, \"new_tokens\": 1, \"answer_tokens\": 5,"
        " \"gap_s\": 2%s}]}";
    char spec[512];
    (void)snprintf(spec, sizeof spec, text, "");
    make(spec, 1, 1.0, &t);
    ck_assert_uint_eq(t.n, 6);
    ck_assert_uint_eq(t.n_first, 1);
    ck_assert_uint_eq(t.graph->n_jobs, 3);
    for (uint32_t s = 1; s < 3; s++) {
        uint32_t row = row_of(&t, s, 0);
        ck_assert(has_edge(&t, row_of(&t, s - 1, 1), row));
        ck_assert(t.graph->starts_job[row]);
        ck_assert_int_eq(t.rows[row].arrival_ns, 10 * NS_PER_S);
        ck_assert_int_eq(t.extras[row].until_ns, 37 * NS_PER_S);
        ck_assert_int_eq(t.extras[row_of(&t, s, 1)].until_ns, TIME_NEVER_NS);
    }
    trace_fini(&t);
    /* In one session the third job begins with 9 new tokens after 9 + 5, 15 + 5, 29 + 5, 35 + 5. */
    (void)snprintf(spec, sizeof spec, text, ", \"same_session\": true");
    make(spec, 1, 1.0, &t);
    ck_assert_uint_eq(t.n, 6);
    ck_assert_uint_eq(t.graph->n_jobs, 3);
    ck_assert_uint_eq(t.rows[row_of(&t, 0, 4)].input_tokens, 49);
    ck_assert_uint_eq(t.rows[row_of(&t, 0, 4)].prefix_tokens, 40);
    ck_assert(t.graph->starts_job[row_of(&t, 0, 4)]);
}
END_TEST

START_TEST(jobs_shared_prompts_and_targets_are_kept)
{
    make("{\"shared_prompts\": {\"x\": 7, \"tools\": 2500}, \"clients\": ["
         "{\"name\": \"a\", \"every_s\": 3, \"jobs\": 4, \"shared_prompt\": \"tools\","
         " \"prompt_tokens\": 10, \"answer_tokens\": 2, \"priority\": 5, \"ttft_slo_s\": 0.5,"
         " \"deadline_s\": 9, \"cancel_s\": 20}]}",
         1, 2.0, &t);
    ck_assert_uint_eq(t.n, 4);
    for (uint32_t i = 0; i < 4; i++) {
        ck_assert_int_eq(t.rows[i].arrival_ns, 3 * NS_PER_S / 2 * i); /* at twice the rate */
        ck_assert_uint_eq(t.rows[i].input_tokens, 2510);
        ck_assert_uint_eq(t.extras[i].prefix_group, 2);
        ck_assert_uint_eq(t.rows[i].prefix_tokens, 2500);
        ck_assert_int_eq(t.extras[i].priority, 5);
        ck_assert_int_eq(t.extras[i].ttft_slo_ns, NS_PER_S / 2);
        ck_assert_int_eq(t.extras[i].deadline_ns, 9 * NS_PER_S);
        ck_assert_int_eq(t.extras[i].cancel_ns, 20 * NS_PER_S);
    }
}
END_TEST

/* ---- subagents ---- */

/* Turn 1 (row of session 0) starts two helpers and a reader; turn 2 waits for the helpers, and its
 * prompt has both answers: 100 + 10 + 2 * 20 + 1. The reader has the context of 100 + 10, begins
 * after 3 s and ends with turn 2. After turn 2 nobody starts. */
START_TEST(a_turn_waits_for_subagents_but_not_in_the_background)
{
    make("{\"clients\": [{\"name\": \"a\", \"turns\": 2, \"prompt_tokens\": 100,"
         " \"new_tokens\": 1, \"answer_tokens\": 10, \"gap_s\": 4, \"subagents\": ["
         "{\"name\": \"helper\", \"count\": 2, \"prompt_tokens\": 50, \"answer_tokens\": 20},"
         "{\"name\": \"reader\", \"background\": true, \"ends_with_job\": true, \"start_s\": 3,"
         " \"with_context\": true, \"prompt_tokens\": 5, \"answer_tokens\": 30}]}]}",
         1, 1.0, &t);
    ck_assert_uint_eq(t.n, 5);
    ck_assert_uint_eq(t.graph->n_jobs, 1);
    uint32_t first = row_of(&t, 0, 0);
    uint32_t second = row_of(&t, 0, 1);
    uint32_t reader = row_of(&t, 3, 0);
    for (uint32_t s = 1; s <= 2; s++) {
        uint32_t helper = row_of(&t, s, 0);
        ck_assert(has_edge(&t, first, helper) && has_edge(&t, helper, second));
        ck_assert_uint_eq(t.rows[helper].cls, REQUEST_CLASS_REACTIVE);
        ck_assert(!t.graph->background[helper]);
    }
    ck_assert_uint_eq(t.graph->n_parents[second], 3);
    ck_assert_int_eq(t.rows[second].arrival_ns, 4 * NS_PER_S);
    ck_assert_uint_eq(t.rows[second].input_tokens, 151);
    ck_assert(has_edge(&t, first, reader) && !has_edge(&t, reader, second));
    ck_assert(t.graph->background[reader]);
    ck_assert_uint_eq(t.graph->ends_with[reader], second);
    ck_assert_uint_eq(t.rows[reader].cls, REQUEST_CLASS_PROACTIVE);
    ck_assert_uint_eq(t.rows[reader].input_tokens, 115);
    ck_assert_uint_eq(t.rows[reader].prefix_tokens, 110);
    ck_assert_uint_eq(t.graph->source[reader], first);
    ck_assert_uint_eq(t.graph->source[second], first);
    ck_assert_uint_eq(t.graph->source[row_of(&t, 1, 0)], TRACE_NO_ROW);
    ck_assert_int_eq(t.rows[reader].arrival_ns, 3 * NS_PER_S);
}
END_TEST

/* Steps before a turn: an embedder at 2 s, then two rerankers, then the answer. */
START_TEST(steps_before_a_turn_follow_each_other)
{
    make("{\"clients\": [{\"name\": \"a\", \"start_s\": 2, \"prompt_tokens\": 100,"
         " \"answer_tokens\": 10, \"subagents\": ["
         "{\"name\": \"embedder\", \"before\": true, \"prompt_tokens\": 5, \"answer_tokens\": 1},"
         "{\"name\": \"reranker\", \"before\": true, \"count\": 2, \"start_s\": 0.5,"
         " \"prompt_tokens\": 6, \"answer_tokens\": 1}]}]}",
         1, 1.0, &t);
    ck_assert_uint_eq(t.n, 4);
    ck_assert_uint_eq(t.n_first, 1);
    uint32_t answer = row_of(&t, 0, 0);
    uint32_t embedder = row_of(&t, 1, 0);
    ck_assert_int_eq(t.rows[embedder].arrival_ns, 2 * NS_PER_S);
    ck_assert(!has_edge(&t, embedder, answer));
    for (uint32_t s = 2; s <= 3; s++) {
        uint32_t reranker = row_of(&t, s, 0);
        ck_assert(has_edge(&t, embedder, reranker) && has_edge(&t, reranker, answer));
        ck_assert_int_eq(t.rows[reranker].arrival_ns, NS_PER_S / 2);
    }
    ck_assert_uint_eq(t.graph->n_parents[answer], 2);
    ck_assert_int_eq(t.rows[answer].arrival_ns, 0);
}
END_TEST

/* Chances of 0.25 over 2,000 turns; standard deviation sqrt(2000 * 0.25 * 0.75) = 19.4. Listed
 * turns, and none else. */
START_TEST(subagents_start_on_their_turns)
{
    make("{\"clients\": [{\"name\": \"a\", \"turns\": 2000, \"prompt_tokens\": 1,"
         " \"new_tokens\": 1, \"answer_tokens\": 1, \"subagents\": ["
         "{\"name\": \"b\", \"background\": true, \"probability\": 0.25, \"prompt_tokens\": 5,"
         " \"answer_tokens\": 1},"
         "{\"name\": \"c\", \"on_turns\": [2, 1999, 2000, 5000], \"prompt_tokens\": 6,"
         " \"answer_tokens\": 1}]}]}",
         1, 1.0, &t);
    uint32_t n[2] = {0, 0};
    for (size_t i = 0; i < t.n; i++) {
        n[0] += t.rows[i].session_id > 0 && t.rows[i].input_tokens == 5;
        n[1] += t.rows[i].session_id > 0 && t.rows[i].input_tokens == 6;
    }
    ck_assert_double_lt(fabs(n[0] - 500.0), 4.0 * 19.4);
    ck_assert_uint_eq(n[1], 2); /* turn 2,000 is the last: nobody would read the answer */
}
END_TEST

/* ---- numbers ---- */

#define N 20000

static void moments(const char *number, double *mean, double *cv)
{
    struct draw_column *columns = NULL;
    const struct draw_rule rule = {"x", 0, 1e9, false};
    double sum = 0.0;
    double squares = 0.0;
    char text[256];
    (void)snprintf(text, sizeof text, "{\"x\": %s}", number);
    cJSON *tree = cJSON_Parse(text);
    struct json_obj o = json_root(tree, "f", &err);
    struct draw d = draw_read(&o, &rule, &columns);
    ck_assert_msg(err.n == 0, "%s", err.n > 0 ? err.lines[0] : "");
    for (uint64_t i = 0; i < N; i++) {
        double x = draw_value(&d, i, 0, false);
        sum += x;
        squares += x * x;
    }
    *mean = sum / N;
    *cv = sqrt(squares / N - *mean * *mean) / *mean;
    draw_columns_free(columns);
    cJSON_Delete(tree);
}

/* Mean within 4 standard errors (cv / sqrt(N)), coefficient of variation within 10 %. */
START_TEST(distributions_have_their_moments)
{
    static const struct {
        const char *number;
        double mean, cv;
    } of[] = {
        {"7", 7, 0},
        {"{\"distribution\": \"uniform\", \"min\": 2, \"max\": 8}", 5, 0.34641},
        {"{\"distribution\": \"exponential\", \"mean\": 30}", 30, 1},
        {"{\"distribution\": \"gamma\", \"mean\": 4, \"cv\": 2}", 4, 2},
        {"{\"distribution\": \"lognormal\", \"mean\": 500, \"cv\": 1.5}", 500, 1.5},
        /* cut at 1: what is left of an exponential of mean 1 is 1 - 1/e; its square 2 - 4/e */
        {"{\"distribution\": \"exponential\", \"mean\": 1, \"max\": 1}", 0.632121, 0.57932},
    };
    for (size_t i = 0; i < sizeof of / sizeof of[0]; i++) {
        double mean = 0.0;
        double cv = 0.0;
        moments(of[i].number, &mean, &cv);
        ck_assert_msg(fabs(mean - of[i].mean) <= 4.0 * of[i].cv * of[i].mean / sqrt(N) + 1e-12,
                      "%s: mean %g", of[i].number, mean);
        ck_assert_msg(fabs(cv - of[i].cv) <= 0.1 * of[i].cv + 1e-6, "%s: cv %g", of[i].number, cv);
    }
}
END_TEST

/* Each of 1, 2 and 3 is drawn equally often: 2,000 of 6,000 times, standard deviation sqrt(6000 * 2
 * / 9) = 36.5. */
START_TEST(whole_uniform_numbers_are_equally_likely)
{
    const struct draw d = {.kind = DRAW_UNIFORM, .min = 1, .max = 3};
    uint32_t n[5] = {0};
    for (uint64_t i = 0; i < 6000; i++) {
        n[(int)draw_value(&d, i, 0, true)]++;
    }
    ck_assert_uint_eq(n[0] + n[4], 0);
    for (int i = 1; i <= 3; i++) {
        ck_assert_double_lt(fabs(n[i] - 2000.0), 4.0 * 36.5);
    }
}
END_TEST

/* Prompt and answer of one data set are of one row: no other pair comes. */
START_TEST(columns_of_a_data_set_stay_together)
{
    struct dataset data;
    ck_assert_int_eq(dataset_load("samsum", &data, &err), 0);
    make("{\"clients\": [{\"name\": \"a\", \"every_s\": 1, \"jobs\": 200, \"prompt_tokens\":"
         " {\"dataset\": \"samsum\", \"column\": \"input_tokens\"}, \"answer_tokens\":"
         " {\"dataset\": \"samsum\", \"column\": \"output_tokens\"}}]}",
         1, 1.0, &t);
    uint32_t different = 0;
    for (size_t i = 0; i < t.n; i++) {
        size_t k = 0;
        while (k < data.n && (data.rows[k].input_tokens != t.rows[i].input_tokens ||
                              data.rows[k].output_tokens != t.rows[i].output_tokens)) {
            k++;
        }
        ck_assert_uint_lt(k, data.n);
        different += t.rows[i].input_tokens != t.rows[0].input_tokens;
    }
    ck_assert_uint_gt(different, 100);
    dataset_fini(&data);
}
END_TEST

#define SESSION(gap)                                                                               \
    "{\"name\": \"a\", \"turns\": 5, \"prompt_tokens\": {\"distribution\": \"uniform\", \"min\": " \
    "1, \"max\": 999999}, \"new_tokens\": 1, \"answer_tokens\": {\"distribution\": \"uniform\", "  \
    "\"min\": 1, \"max\": 999}, \"gap_s\": " gap "}"

/* Another client in front, or another way to draw the gaps, leaves every length; another seed does
 * not. */
START_TEST(streams_do_not_touch_each_other)
{
    struct trace other;
    make("{\"clients\": [" SESSION("{\"distribution\": \"exponential\", \"mean\": 3}") "]}", 1, 1.0,
         &t);
    make("{\"clients\": [{\"name\": \"z\", \"prompt_tokens\": {\"distribution\": \"uniform\","
         " \"min\": 1, \"max\": 9}, \"answer_tokens\": 1}, " SESSION("4") "]}",
         1, 1.0, &other);
    for (uint32_t turn = 0; turn < 5; turn++) {
        const struct trace_row *a = &t.rows[row_of(&t, 0, turn)];
        const struct trace_row *b = &other.rows[row_of(&other, 1, turn)];
        ck_assert_uint_eq(a->input_tokens, b->input_tokens);
        ck_assert_uint_eq(a->output_tokens, b->output_tokens);
    }
    trace_fini(&other);
    make("{\"clients\": [" SESSION("4") "]}", 2, 1.0, &other);
    ck_assert_uint_ne(t.rows[0].input_tokens, other.rows[0].input_tokens);
    trace_fini(&other);
}
END_TEST

/* ---- files ---- */

static const char *const shipped[] = {"coding-agent",
                                      "coding-sessions",
                                      "copilot-sessions",
                                      "desktop-assistant",
                                      "leader-subagents",
                                      "rag-pipeline",
                                      "flows"};
#define N_SHIPPED (sizeof shipped / sizeof shipped[0])

/* Written as a trace file and read again it is the same, ids and graph included. */
START_TEST(a_shipped_workload_is_the_trace_that_gen_writes)
{
    struct trace again;
    for (uint64_t seed = 1; seed <= 3; seed++) {
        ck_assert_msg(trace_generate(shipped[_i], seed, 1.0, &t, &err) == 0, "%s", err.lines[0]);
        ck_assert_ptr_nonnull(t.graph);
        ck_assert_int_eq(trace_write(path, &t, &err), 0);
        ck_assert_msg(trace_read(path, &again, &err) == 0, "%s", err.n > 0 ? err.lines[0] : "");
        ck_assert_uint_eq(t.hash, again.hash);
        trace_fini(&t);
        trace_fini(&again);
    }
}
END_TEST

#define CLIENT "\"name\": \"a\", \"prompt_tokens\": 5, \"answer_tokens\": 5"
#define SUB(more)                                                                                  \
    "{" CLIENT                                                                                     \
    ", \"subagents\": [{\"name\": \"b\", \"prompt_tokens\": 5, \"answer_tokens\": 5" more "}]}"
static const struct {
    const char *clients, *says;
} BAD[] = {
    {"", ": clients: must be an array of length from 1 to 1000"},
    {"7", ": clients[0]: must be an object"},
    {"{\"prompt_tokens\": 5, \"answer_tokens\": 5}", ": clients[0].name: missing"},
    {"{\"name\": \"a\", \"answer_tokens\": 5}", ": clients[0].prompt_tokens: missing"},
    {"{\"name\": \"a\", \"prompt_tokens\": 5}", ": clients[0].answer_tokens: missing"},
    {"{" CLIENT ", \"colour\": 1}", ": clients[0].colour: unknown key"},
    {"{" CLIENT ", \"class\": \"urgent\"}", ": clients[0].class: must be one of"},
    {"{" CLIENT ", \"gap_kind\": \"nap\"}", ": clients[0].gap_kind: must be one of tool, think"},
    {"{" CLIENT ", \"turns\": 2}", ": clients[0].turns: needs growth_tokens or new_tokens"},
    {"{" CLIENT ", \"turns\": 2, \"new_tokens\": 1, \"growth_tokens\": 1}", "excludes new_tokens"},
    {"{" CLIENT ", \"gap_s\": -1}", ": clients[0].gap_s: must be a number from 0"},
    {"{" CLIENT ", \"gap_s\": \"4\"}", ": clients[0].gap_s: must be a number from 0"},
    {"{" CLIENT ", \"gap_s\": {\"distribution\": \"zipf\"}}",
     ": clients[0].gap_s.distribution: must be one of uniform, exponential, gamma, lognormal"},
    {"{" CLIENT ", \"gap_s\": {\"distribution\": \"gamma\", \"mean\": 2}}",
     ": clients[0].gap_s.cv: missing"},
    {"{" CLIENT ", \"gap_s\": {\"distribution\": \"uniform\", \"min\": 2, \"max\": 1}}",
     ": clients[0].gap_s: min is above max"},
    {"{" CLIENT ", \"turns\": {\"distribution\": \"uniform\", \"min\": 1.5, \"max\": 3}, "
     "\"growth_tokens\": 1}",
     ": clients[0].turns: min and max of whole numbers must be whole"},
    {"{" CLIENT ", \"gap_s\": {\"dataset\": \"samsum\"}}", ": clients[0].gap_s.column: missing"},
    {"{" CLIENT ", \"gap_s\": {\"dataset\": \"samsum\", \"column\": \"speed\"}}", "speed"},
    {"{" CLIENT ", \"gap_s\": {\"dataset\": \"nosuch\", \"column\": \"x\"}}", "nosuch"},
    {"{" CLIENT ", \"turns\": 1.5, \"new_tokens\": 1}", ": clients[0].turns: must be a whole"},
    {"{" CLIENT ", \"think_s\": 1, \"every_s\": 1, \"jobs\": 2}", ".think_s: excludes every_s"},
    {"{" CLIENT ", \"think_s\": 1}", ": clients[0].jobs: missing (or duration_s at the top)"},
    {"{" CLIENT ", \"jobs\": 2}", ": clients[0].jobs: needs think_s or every_s"},
    {"{" CLIENT ", \"every_s\": 0, \"jobs\": 2}", ": clients[0].every_s: must be a number from"},
    {"{" CLIENT ", \"same_session\": true}", ": clients[0].same_session: needs think_s"},
    {"{" CLIENT ", \"count\": {\"distribution\": \"exponential\", \"mean\": 2}}",
     ": clients[0].count: must be a number"},
    {"{" CLIENT ", \"shared_prompt\": \"tools\"}", ".shared_prompt: must be the name of one of"},
    {"{" CLIENT ", \"model\": \"a b\"}", ": clients[0].model: must be a name of letters"},
    {"{" CLIENT "}, {" CLIENT "}", ": clients[1].name: \"a\" is there twice"},
    {"{" CLIENT ", \"background\": true}", ": clients[0].background: unknown key"},
    {SUB(", \"think_s\": 1"), ": clients[0].subagents[0].think_s: unknown key"},
    {SUB(", \"background\": true, \"before\": true"), ".subagents[0].before: a turn cannot wait"},
    {"{" CLIENT ", \"subagents\": [{\"name\": \"b\", \"prompt_tokens\": 5, \"answer_tokens\": 5,"
     " \"with_context\": true, \"shared_prompt\": \"p\"}]}",
     ".subagents[0].shared_prompt: excludes with_context: a prompt begins with one text"},
    {SUB(", \"ends_with_job\": true"), ".subagents[0].ends_with_job: needs background"},
    {SUB(", \"probability\": 2"), ": clients[0].subagents[0].probability: must be a number from 0"},
    {SUB(", \"on_turns\": [0]"), ": clients[0].subagents[0].on_turns: must be whole numbers"},
    {SUB(", \"on_turns\": 3"), ": clients[0].subagents[0].on_turns: must be an array"},
    {"{" CLIENT ", \"turns\": 3, \"new_tokens\": 90000000}", "a prompt of more than 100000000"},
};

/* A list of shared prompts is the only error: clients, which are not read then, are no unknown key.
 */
START_TEST(what_is_not_read_after_an_error_is_no_unknown_key)
{
    SCOPED(err_fini) struct err e = ERR_INIT;
    struct agents a;
    cJSON *tree = cJSON_Parse("{\"shared_prompts\": [], \"clients\": [{" CLIENT "}]}");
    ck_assert_int_eq(agents_read(tree, "w.json", &a, &e), -EINVAL);
    ck_assert_uint_eq(e.n, 1);
    ck_assert_str_eq(e.lines[0], "w.json: shared_prompts: must be an object {...}");
    agents_fini(&a);
}
END_TEST

START_TEST(what_is_no_workload_is_refused_with_its_key)
{
    char text[1024];
    (void)snprintf(text, sizeof text, "{\"shared_prompts\": {\"p\": 5}, \"clients\": [%s]}",
                   BAD[_i].clients);
    tempfile_put(text);
    ck_assert_int_eq(trace_generate(path, 1, 1.0, &t, &err), -EINVAL);
    ck_assert_msg(strstr(err.lines[0], BAD[_i].says) != NULL, "%s", err.lines[0]);
    ck_assert_ptr_nonnull(strstr(err.lines[0], path));
}
END_TEST

START_TEST(a_workload_has_a_size)
{
    struct agents a;
    tempfile_put("{\"clients\": [{" CLIENT ", \"count\": 40, \"turns\": 30, \"new_tokens\": 1}]}");
    ck_assert_int_eq(agents_read(json_read_file(path, &err), path, &a, &err), 0);
    ck_assert_int_eq(agents_generate(&a, 1, 1.0, 1200, &t, &err), 0);
    ck_assert_uint_eq(t.n, 1200);
    trace_fini(&t);
    ck_assert_int_eq(agents_generate(&a, 1, 1.0, 1199, &t, &err), -EINVAL);
    ck_assert_ptr_nonnull(
        strstr(err.lines[0], "more than 1199 requests; `jobs` says when a client stops"));
    agents_fini(&a);
}
END_TEST

START_TEST(a_rate_needs_a_clock_and_requests_a_start)
{
    tempfile_put("{\"clients\": [{" CLIENT "}]}");
    ck_assert_int_eq(trace_generate(path, 1, 2.0, &t, &err), -EINVAL);
    ck_assert_ptr_nonnull(strstr(err.lines[0], "no client has every_s"));
    err_fini(&err);
    tempfile_put("{\"duration_s\": 3, \"clients\": [{" CLIENT ", \"start_s\": 3}]}");
    ck_assert_int_eq(trace_generate(path, 1, 1.0, &t, &err), -ENODATA);
    ck_assert_ptr_nonnull(strstr(err.lines[0], "no client starts before duration_s"));
}
END_TEST

/* ---- factors ---- */

#define SCALED                                                                                     \
    "{\"clients\": [{\"name\": \"a\", \"jobs\": 2, \"every_s\": 20, \"turns\": 4, "                \
    "\"prompt_tokens\": "                                                                          \
    "100, \"growth_tokens\": 50, \"answer_tokens\": 10, \"gap_s\": 2}]}"

/* Jobs begin at 0 and 20 / 4 = 5 s, with 2 turns of 4. Prompts have 200 and then 200 + 100 tokens
 * and answers 30, with half a second between them. Without factors there are 4 turns from 100 to
 * 250 tokens, answers of 10, gaps of 2 s and jobs every 20 s. */
START_TEST(factors_scale_all_numbers_of_a_kind)
{
    char spec[512];
    tempfile_put(SCALED);
    (void)snprintf(spec, sizeof spec, "%s:rate=4,turns=0.5,prompt=2,answer=3,gap=0.25", path);
    ck_assert(trace_workload_has_factors(spec));
    ck_assert_int_eq(trace_generate(spec, 1, 1.0, &t, &err), 0);
    ck_assert_uint_eq(t.n, 4);
    for (uint32_t session = 0; session < 2; session++) {
        const struct trace_row *first = &t.rows[row_of(&t, session, 0)];
        const struct trace_row *second = &t.rows[row_of(&t, session, 1)];
        ck_assert_int_eq(first->arrival_ns, session * 5 * NS_PER_S);
        ck_assert_uint_eq(first->input_tokens, 200);
        ck_assert_uint_eq(first->output_tokens, 30);
        ck_assert_uint_eq(second->input_tokens, 300);
        ck_assert_uint_eq(second->prefix_tokens, 230);
        ck_assert_int_eq(second->arrival_ns, NS_PER_S / 2);
    }
    struct trace plain;
    struct trace ones;
    ck_assert_int_eq(trace_generate(path, 1, 1.0, &plain, &err), 0);
    (void)snprintf(spec, sizeof spec, "%s:rate=1,gap=1", path);
    ck_assert_int_eq(trace_generate(spec, 1, 1.0, &ones, &err), 0);
    ck_assert_uint_eq(plain.n, 8);
    ck_assert(plain.hash == ones.hash && plain.hash != t.hash);
    trace_fini(&plain);
    trace_fini(&ones);
}
END_TEST

START_TEST(keys_that_are_no_factors_are_refused)
{
    char spec[512];
    tempfile_put(SCALED);
    (void)snprintf(spec, sizeof spec, "%s:speed=2", path);
    ck_assert_int_eq(trace_generate(spec, 1, 1.0, &t, &err), -EINVAL);
    ck_assert_ptr_nonnull(strstr(err.lines[0], "speed"));
    tempfile_put("{\"duration_s\": 60}");
    (void)snprintf(spec, sizeof spec, "%s:rate=2", path);
    ck_assert(!trace_workload_has_factors(spec) && !trace_workload_has_factors("w1:n=3"));
    ck_assert_int_eq(trace_generate(spec, 1, 1.0, &t, &err), -EINVAL);
    ck_assert_ptr_nonnull(strstr(err.lines[1], "are for one with clients"));
}
END_TEST

static const struct suite_row suite[] = {
    CASE("agents", .setup = setup, .teardown = teardown),
    TEST(counts_and_growth_are_as_by_hand),
    TEST(new_tokens_follow_the_answer),
    TEST(a_closed_loop_waits_and_stops),
    TEST(what_is_not_read_after_an_error_is_no_unknown_key),
    TEST(jobs_shared_prompts_and_targets_are_kept),
    TEST(a_turn_waits_for_subagents_but_not_in_the_background),
    TEST(steps_before_a_turn_follow_each_other),
    TEST(subagents_start_on_their_turns),
    TEST(distributions_have_their_moments),
    TEST(whole_uniform_numbers_are_equally_likely),
    TEST(columns_of_a_data_set_stay_together),
    TEST(streams_do_not_touch_each_other),
    LOOP(a_shipped_workload_is_the_trace_that_gen_writes, N_SHIPPED),
    LOOP(what_is_no_workload_is_refused_with_its_key, sizeof BAD / sizeof BAD[0]),
    TEST(a_workload_has_a_size),
    TEST(a_rate_needs_a_clock_and_requests_a_start),
    TEST(factors_scale_all_numbers_of_a_kind),
    TEST(keys_that_are_no_factors_are_refused),
};
SUITE_MAIN("agents", suite)
