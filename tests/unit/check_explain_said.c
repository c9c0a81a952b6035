/* `explain` on a few requests: what people see is what the data hold, and a latency otherwise is
 * that of a run which is so. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/report/job_path.h"
#include "sim/base/json.h"
#include "sim/base/rng.h"
#include "sim/base/words.h"
#include "tests/helpers/commanded.h"
#include "tests/helpers/suite.h"

/* Seven requests before the eighth, which has a further turn. */
#define HEAD                                                                                       \
    "# xpusim-trace v1\nrequest_id,session_id,turn,class,arrival_s,gap_s,input_tokens,"            \
    "output_tokens,prefix_tokens\n"
#define OTHERS                                                                                     \
    "0,0,0,proactive,0,,50,10,0\n1,1,0,proactive,0.01,,100,11,0\n"                                 \
    "2,2,0,proactive,0.02,,200,12,0\n3,3,0,reactive,0.03,,300,13,0\n"                              \
    "4,4,0,proactive,0.04,,400,14,0\n5,5,0,proactive,0.05,,500,15,0\n"                             \
    "6,6,0,proactive,0.06,,600,16,0\n"
#define FIRST_TURN "7,7,0,reactive,0.1,,200,10,0\n"
#define SECOND_TURN "8,7,1,reactive,,0.5,260,6,0\n"

/* A request graph: 4 joins 1 and 2, which begin when 0 has ended, and its prompt begins as that of
 * 5 does. 3 and 6 are others'. */
#define GRAPH_HEAD                                                                                 \
    "# xpusim-trace v2\nrequest_id,session_id,turn,class,arrival_s,gap_s,input_tokens,"            \
    "output_tokens,prefix_tokens,prefix_group,prefix_of,parent_ids\n"
#define JOB                                                                                        \
    "0,0,0,reactive,1,,200,20,0,,,\n1,1,0,reactive,,0.5,90,30,0,,,0\n"                             \
    "2,2,0,reactive,,0.5,140,20,0,,,0\n4,4,0,reactive,,0.1,280,25,100,,5,1;2\n"

static const char *const rules[] = {"fcfs", "agent-xpu-v2"};

static cJSON *explained(const char *policy, const char *trace, const char *what, const char *id,
                        const char *more, const char *value)
{
    SCOPED(said_fini)
    struct said s = COMMANDED(cmd_explain, "--policy", policy, "--trace", trace, "--json", what, id,
                              more, value);
    ck_assert_msg(s.status == EXIT_OK, "%s", s.err);
    cJSON *tree = cJSON_Parse(s.out);
    ck_assert_ptr_nonnull(tree);
    return tree;
}

static double number(const cJSON *tree, const char *within, const char *key)
{
    const cJSON *in = within != NULL ? cJSON_GetObjectItem(tree, within) : tree;
    const cJSON *v = cJSON_GetObjectItem(in, key);
    ck_assert_msg(cJSON_IsNumber(v), "%s", key);
    return v->valuedouble;
}

static void otherwise(struct text *t, const char *name, double s, double latency_ns)
{
    text_format(t, "%s %.6f s %+.1f %%\n", name, s, 100.0 * (1e9 * s / latency_ns - 1.0));
}

/* All that people see, from the data: causes that are not 0, the longest first; five that were in
 * the way of at most seven. Tokens are those until then. */
static char *for_people(const cJSON *tree, int tokens)
{
    SCOPED(text_fini) struct text t = {0};
    double latency = number(tree, NULL, "latency_ns");
    text_format(
        &t, "request 7 (reactive), 200 prompt and %d output tokens: %.6f s from arrival to %s\n\n",
        tokens, latency / 1e9,
        cJSON_GetObjectItem(tree, "until")->valuestring[0] == 'f' ? "first token" : "last token");
    bool told[EXPLAIN_CAUSE_COUNT] = {false};
    double sum = 0.0;
    for (;;) {
        int most = -1;
        for (int i = 0; i < EXPLAIN_CAUSE_COUNT; i++) {
            double ns = number(tree, "causes_ns", explain_cause_names[i]);
            if (!told[i] && ns > 0.0 &&
                (most < 0 || ns > number(tree, "causes_ns", explain_cause_names[most]))) {
                most = i;
            }
        }
        if (most < 0) {
            break;
        }
        double ns = number(tree, "causes_ns", explain_cause_names[most]);
        text_format(&t, "%s %.6f s %.1f %% %s\n", explain_cause_names[most], ns / 1e9,
                    100.0 * ns / latency, explain_cause_texts[most]);
        told[most] = true;
        sum += ns;
    }
    ck_assert_double_eq(sum, latency);
    const cJSON *blockers = cJSON_GetObjectItem(tree, "blockers");
    for (int i = 0; i < cJSON_GetArraySize(blockers); i++) {
        const cJSON *b = cJSON_GetArrayItem(blockers, i);
        double tail = number(b, NULL, "tail_ns");
        double queue = number(b, NULL, "queue_ns");
        double shared = number(b, NULL, "shared_ns");
        if (i == 0) {
            text_format(&t, "\nwho was in the way\n"
                            "in all in its passes before it rest of a kernel\n");
        }
        if (i < 5) {
            text_format(&t, "request %.0f %.6f s %.6f s %.6f s %.6f s\n",
                        number(b, NULL, "request_id"), (tail + queue + shared) / 1e9, shared / 1e9,
                        queue / 1e9, tail / 1e9);
        }
    }
    text_format(&t, "\notherwise\n");
    otherwise(&t, "DDR shared at no loss", number(tree, "otherwise", "uncontended_s"), latency);
    otherwise(&t, "alone, same policy", number(tree, "otherwise", "alone_s"), latency);
    otherwise(&t, "alone, no policy below", number(tree, "otherwise", "bound_s"), latency);
    text_format(&t, "\nwarning: %s\n",
                cJSON_GetArrayItem(cJSON_GetObjectItem(tree, "warnings"), 0)->valuestring);
    return xstrdup(text_end(&t));
}

START_TEST(people_see_what_the_data_hold)
{
    static const char *const until[] = {"last-token", "first-token"};
    folder_put("t.csv", HEAD OTHERS FIRST_TURN SECOND_TURN);
    for (int i = 0; i < 4; i++) {
        const char *policy = rules[i / 2];
        const char *end = until[i % 2];
        SCOPED(json_drop)
        cJSON *tree = explained(policy, "t.csv", "--request", "7", "--until", end);
        ck_assert_str_eq(cJSON_GetObjectItem(tree, "until")->valuestring, end);
        ck_assert_str_eq(cJSON_GetObjectItem(tree, "class")->valuestring, "reactive");
        ck_assert_uint_eq((unsigned)number(tree, NULL, "request_id"), 7);
        OWNED char *want = for_people(tree, i % 2 == 0 ? 10 : 1);
        SCOPED(said_fini)
        struct said s = COMMANDED(cmd_explain, "--policy", policy, "--trace", "t.csv", "--request",
                                  "7", "--until", end);
        OWNED char *is = squeezed(s.out);
        ck_assert_str_eq(is, want);
        ck_assert_str_eq(s.err, "");
        ck_assert_int_eq(s.status, EXIT_OK);
    }
    SCOPED(said_fini)
    struct said random = COMMANDED(cmd_explain, "--policy", "fcfs", "--trace", "t.csv", "--request",
                                   "7", "--set", "sim.truth_sigma=0.1");
    OWNED char *said = squeezed(random.out);
    ck_assert_ptr_nonnull(strstr(said, "\nalone, no policy below - no bound when kernel times are "
                                       "random\n"));
    SCOPED(json_drop) cJSON *all = explained("fcfs", "t.csv", "--request", "7", NULL, NULL);
    ck_assert_int_eq(cJSON_GetArraySize(cJSON_GetObjectItem(all, "blockers")), 7);
}
END_TEST

/* A kernel is priced as its own model's: another model of the run, which nobody asks for, changes
 * neither whose part of a pass is whose nor the bound. */
START_TEST(requests_are_explained_by_their_own_model)
{
    folder_put("sub.csv", "# xpusim-trace v2\nrequest_id,session_id,turn,class,arrival_s,gap_s,"
                          "input_tokens,output_tokens,prefix_tokens,model\n"
                          "0,0,0,reactive,1,,900,30,0,sub\n1,1,0,proactive,1.01,,500,40,0,sub\n"
                          "2,2,0,proactive,1.1,,700,40,0,sub\n");
    for (int i = 0; i < 2; i++) {
        SCOPED(said_fini)
        struct said both = COMMANDED(cmd_explain, "--policy", "vllm-v1", "--trace", "sub.csv",
                                     "--llm", "llama-3.1-8b", "--llm", "sub=qwen3-0.6b",
                                     i == 0 ? "--request" : "--job", "0");
        SCOPED(said_fini)
        struct said one = COMMANDED(cmd_explain, "--policy", "vllm-v1", "--trace", "sub.csv",
                                    "--llm", "sub=qwen3-0.6b", i == 0 ? "--request" : "--job", "0");
        ck_assert_ptr_nonnull(strstr(one.out, "shared_pass"));
        ck_assert_str_eq(both.out, one.out);
    }
}
END_TEST

START_TEST(latencies_otherwise_are_those_of_runs)
{
    folder_put("t.csv", HEAD OTHERS FIRST_TURN SECOND_TURN);
    folder_put("own.csv", HEAD FIRST_TURN SECOND_TURN);
    folder_put("graph.csv",
               GRAPH_HEAD "3,3,0,proactive,0.9,,600,40,0,,,\n" JOB "5,5,0,reactive,1,,100,10,0,,,\n"
                          "6,6,0,proactive,0,,400,40,0,,,\n");
    folder_put("job.csv", GRAPH_HEAD JOB "5,5,0,reactive,1,,100,10,0,,,\n");
    static const char *const cases[][4] = {{"--request", "8", "t.csv", "own.csv"},
                                           {"--request", "7", "t.csv", "own.csv"},
                                           {"--request", "4", "graph.csv", "job.csv"},
                                           {"--job", "2", "graph.csv", "job.csv"}};
    for (int i = 0; i < 8; i++) {
        const char *policy = rules[i / 4];
        const char *const *c = cases[i % 4];
        SCOPED(json_drop) cJSON *tree = explained(policy, c[2], c[0], c[1], NULL, NULL);
        SCOPED(json_drop) cJSON *own = explained(policy, c[3], c[0], c[1], NULL, NULL);
        SCOPED(json_drop)
        cJSON *none = explained(policy, c[2], c[0], c[1], "--set", "sim.contention=none");
        ck_assert_double_eq_tol(number(tree, "otherwise", "alone_s"),
                                number(own, NULL, "latency_ns") / 1e9, 1e-12);
        ck_assert_double_eq_tol(number(tree, "otherwise", "uncontended_s"),
                                number(none, NULL, "latency_ns") / 1e9, 1e-12);
        ck_assert(cJSON_GetObjectItem(cJSON_GetObjectItem(tree, "otherwise"), "bound_s") == NULL ||
                  i % 4 != 3);
    }
}
END_TEST

/* Request 1 gives up after 0.1 s, and its prompt alone takes longer. A job that lost a request of
 * its foreground continues without it. One that a horizon cut off might have ended. */
START_TEST(a_job_without_a_time_says_why)
{
    folder_put("lost.csv", "# xpusim-trace v2\nrequest_id,session_id,turn,class,arrival_s,gap_s,"
                           "input_tokens,output_tokens,prefix_tokens,cancel_s,parent_ids\n"
                           "0,0,0,reactive,1,,200,20,0,,\n1,1,0,reactive,,0.5,1500,30,0,0.1,0\n"
                           "2,2,0,reactive,,0.5,140,20,0,,0\n4,4,0,reactive,,0.1,280,25,0,,1;2\n");
    SCOPED(said_fini)
    struct said lost =
        COMMANDED(cmd_explain, "--policy", "fcfs", "--trace", "lost.csv", "--job", "0", "-q");
    ck_assert_msg(strstr(lost.out, "; request 1 did not finish, so the job is never complete\n") !=
                      NULL,
                  "%s", lost.out);
    folder_put("job.csv", GRAPH_HEAD JOB "5,5,0,reactive,1,,100,10,0,,,\n");
    SCOPED(said_fini)
    struct said cut = COMMANDED(cmd_explain, "--policy", "fcfs", "--trace", "job.csv", "--job", "0",
                                "--set", "sim.horizon_s=5", "-q");
    ck_assert_msg(strstr(cut.out, " so far: it is not complete\n") != NULL, "%s", cut.out);
}
END_TEST

/* Request 1 was due 5 s after request 0 and is cancelled before, with request 2. Request 3 waits
 * for it, so the path leads through it. */
START_TEST(a_path_has_the_request_that_never_arrived)
{
    folder_put("g.csv", "# xpusim-trace v2\nrequest_id,session_id,turn,class,arrival_s,gap_s,"
                        "input_tokens,output_tokens,prefix_tokens,ends_with,parent_ids\n"
                        "0,0,0,reactive,1,,200,12,0,,\n1,1,0,reactive,,5,900,300,0,2,0\n"
                        "2,2,0,reactive,,0.5,140,20,0,,0\n3,3,0,reactive,,0.25,280,25,0,,1\n");
    SCOPED(json_drop) cJSON *tree = explained("fcfs", "g.csv", "--job", "0", NULL, NULL);
    const cJSON *requests = cJSON_GetObjectItem(tree, "requests");
    ck_assert_int_eq(cJSON_GetArraySize(requests), 4);
    const cJSON *never = cJSON_GetArrayItem(requests, 1);
    double due_ns = json_number(cJSON_GetArrayItem(requests, 0), "end_ns") + 5e9;
    ck_assert_double_eq(json_number(never, "request_id"), 1.0);
    ck_assert_double_eq(json_number(never, "arrival_ns"), due_ns);
    ck_assert_double_eq(json_number(never, "end_ns"), due_ns);
    ck_assert(cJSON_IsNull(cJSON_GetObjectItem(never, "first_service_ns")));
    ck_assert(cJSON_IsFalse(cJSON_GetObjectItem(never, "finished")));
    ck_assert_double_eq(json_number(cJSON_GetArrayItem(requests, 3), "arrival_ns"), due_ns + 25e7);
    const cJSON *edges = cJSON_GetObjectItem(tree, "edges");
    double on_path = 0.0;
    for (int i = 0; i < cJSON_GetArraySize(edges); i++) {
        on_path += json_number(cJSON_GetArrayItem(edges, i), "on_path");
    }
    ck_assert_double_eq(on_path, 2.0); /* 0 to 1, 1 to 3 */
    SCOPED(said_fini)
    struct said text =
        COMMANDED(cmd_explain, "--policy", "fcfs", "--trace", "g.csv", "--job", "0", "-q");
    ck_assert_msg(strstr(text.out, "; request 1 never arrived, so the job is never complete\n") !=
                      NULL,
                  "%s", text.out);
}
END_TEST

enum { STEPS = 3, BLOCKERS = 4, WAITS = STEPS * BLOCKERS };

static struct explain_blocker made[STEPS][BLOCKERS];

static int64_t waited_ns(const struct explain_blocker *b)
{
    return b->tail_ns + b->queue_ns + b->shared_ns;
}

/* A job of requests 10, 11 and 12. Each waited for two of its own job's and for requests 20 and 21,
 * and the three parts of each wait are drawn. A wait is their sum: it says whose came first, which
 * eight people see, and for how long the job was in its own way. */
START_TEST(waits_of_a_job_are_sums_of_their_parts)
{
    struct trace_row in_trace[STEPS] = {{.request_id = 10}, {.request_id = 11}, {.request_id = 12}};
    const struct trace trace = {.rows = in_trace, .n = STEPS, .n_first = STEPS};
    struct explanation why[STEPS];
    struct critical_request v[STEPS];
    uint32_t steps[STEPS] = {0, 1, 2};
    const struct explain_blocker *in_order[WAITS];
    uint32_t victims[WAITS];
    int n = 0;
    int64_t own_ns = 0;
    struct rng r;
    rng_init(&r, rng_key(1, RNG_TEST, 0, 0));
    for (uint32_t i = 0; i < STEPS; i++) {
        why[i] = (struct explanation){.request_id = 10 + i, .finished = true, .end_ns = NS_PER_S};
        why[i].blockers = made[i];
        why[i].n_blockers = BLOCKERS;
        v[i] = (struct critical_request){
            .row = i, .why = &why[i], .end_ns = NS_PER_S, .after = CRITICAL_NONE, .on_path = true};
        for (uint32_t k = 0; k < BLOCKERS; k++) {
            struct explain_blocker *b = &made[i][k];
            bool own = k < 2;
            *b = (struct explain_blocker){.request_id = own ? 10 + (i + 1 + k) % STEPS : 18 + k,
                                          .cls = k == 2 ? REQUEST_CLASS_PROACTIVE
                                                        : REQUEST_CLASS_REACTIVE,
                                          .tail_ns = 1000 * (int64_t)rng_below(&r, 9000),
                                          .queue_ns = 1000 * (int64_t)rng_below(&r, 9000),
                                          .shared_ns = 1000 * (int64_t)rng_below(&r, 9000)};
            own_ns += own ? waited_ns(b) : 0;
            int to = n++;
            for (; to > 0 && waited_ns(in_order[to - 1]) < waited_ns(b); to--) {
                in_order[to] = in_order[to - 1];
                victims[to] = victims[to - 1];
            }
            in_order[to] = b;
            victims[to] = 10 + i;
        }
    }
    const struct critical_path p = {
        .v = v, .steps = steps, .n = STEPS, .n_steps = STEPS, .end_ns = NS_PER_S, .complete = true};
    struct document *d = document_new();
    job_path_document(&p, &trace, d);
    SCOPED(text_fini) struct text want = {0};
    SCOPED(json_drop) cJSON *tree = document_json(d);
    const cJSON *rows_of = cJSON_GetObjectItem(tree, "blockers");
    ck_assert_int_eq(cJSON_GetArraySize(rows_of), WAITS);
    for (int i = 0; i < WAITS; i++) {
        const struct explain_blocker *b = in_order[i];
        const cJSON *row = cJSON_GetArrayItem(rows_of, i);
        ck_assert(number(row, NULL, "request_id") == victims[i]);
        ck_assert(number(row, NULL, "by") == b->request_id);
        ck_assert(number(row, NULL, "tail_ns") == (double)b->tail_ns);
        ck_assert(number(row, NULL, "queue_ns") == (double)b->queue_ns);
        ck_assert(number(row, NULL, "shared_ns") == (double)b->shared_ns);
        if (i < 8) {
            text_format(&want, "%u %u %s %.6f s %.6f s %.6f s %.6f s\n", victims[i], b->request_id,
                        b->request_id < 20 ? "of this job" : words_classes[b->cls],
                        (double)waited_ns(b) / 1e9, (double)b->shared_ns / 1e9,
                        (double)b->queue_ns / 1e9, (double)b->tail_ns / 1e9);
        }
    }
    text_format(&want, "the job was in its own way for %.6f s\n", (double)own_ns / 1e9);
    OWNED char *text = shown_text(d, "text");
    ck_assert_msg(strstr(text, text_end(&want)) != NULL, "%s\nhas not\n%s", text, text_end(&want));
}
END_TEST

/* A job's first line counts its requests, those in the foreground, and those that ended. */
START_TEST(a_job_counts_its_requests)
{
    struct trace_row in_trace[STEPS] = {{.request_id = 10}, {.request_id = 11}, {.request_id = 12}};
    const struct trace trace = {.rows = in_trace, .n = STEPS, .n_first = STEPS};
    const struct explanation why = {.finished = true};
    for (uint32_t mask = 0; mask < 1u << 2 * STEPS; mask++) {
        struct critical_request v[STEPS];
        uint32_t foreground = 0;
        uint32_t ended = 0;
        for (uint32_t i = 0; i < STEPS; i++) {
            bool background = (mask >> i & 1) != 0;
            bool has_ended = (mask >> (STEPS + i) & 1) != 0;
            v[i] = (struct critical_request){.row = i,
                                             .why = has_ended ? &why : NULL,
                                             .background = background,
                                             .after = CRITICAL_NONE};
            foreground += background ? 0 : 1;
            ended += has_ended ? 1 : 0;
        }
        const struct critical_path p = {
            .v = v, .n = STEPS, .first_ns = NS_PER_S, .end_ns = 3 * NS_PER_S, .complete = true};
        struct document *d = document_new();
        job_path_document(&p, &trace, d);
        OWNED char *text = shown_text(d, "text");
        OWNED char *want = xformat("job of 3 requests, %u in the foreground, %u that ended: "
                                   "2.000000 s from its first arrival to the end of its last "
                                   "foreground request\n",
                                   foreground, ended);
        ck_assert_msg(strncmp(text, want, strlen(want)) == 0, "%s", text);
    }
}
END_TEST

static const struct suite_row rows[] = {
    CASE("explain", .setup = folder_enter, .teardown = folder_leave, .timeout_s = 60),
    TEST(people_see_what_the_data_hold),
    TEST(requests_are_explained_by_their_own_model),
    TEST(latencies_otherwise_are_those_of_runs),
    TEST(a_job_without_a_time_says_why),
    TEST(a_path_has_the_request_that_never_arrived),
    TEST(a_job_counts_its_requests),
    TEST(waits_of_a_job_are_sums_of_their_parts),
};
SUITE_MAIN("explain", rows)
