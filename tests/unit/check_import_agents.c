/* Traces of coding agents: samples by hand, every request, edge and beginning of which is checked,
 * and refusals that name line and key. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/api/request.h"
#include "sim/base/units.h"
#include "tests/helpers/suite.h"
#include "tests/helpers/tempfile.h"
#include "traces/traces.h"

#define MS (NS_PER_S / 1000)
#define NOBODY UINT32_MAX

static struct err err;
static struct trace t;
static const char *path;
static struct trace_import_losses lost;

static void setup(void)
{
    err = (struct err)ERR_INIT;
    path = tempfile_make("");
    t = (struct trace){0};
}

static void teardown(void)
{
    err_fini(&err);
    trace_fini(&t);
    tempfile_remove();
}

static int import(const char *text, double rate_per_min)
{
    tempfile_put(text);
    struct trace_import_options o = TRACE_IMPORT_DEFAULTS;
    o.rate_per_min = rate_per_min;
    return trace_import(&o, path, &t, &lost, &err);
}

static void import_file(const char *file)
{
    struct trace_import_options o = TRACE_IMPORT_DEFAULTS;
    int rc = trace_import(&o, file, &t, &lost, &err);
    ck_assert_msg(rc == 0, "%s", err.n > 0 ? err.lines[0] : "no message");
}

static uint32_t row_of(uint32_t id)
{
    uint32_t i = 0;
    while (i < t.n && t.rows[i].request_id != id) {
        i++;
    }
    ck_assert_uint_lt(i, t.n);
    return i;
}

/* Expected request of a sample. Parents end with NOBODY; the turn before is not one. */
struct want {
    uint32_t id, session, turn;
    int64_t at_ms; /* of an arrival, or the gap */
    uint32_t input, output, prefix, prefix_of, client;
    uint32_t parents[3];
    int64_t gaps_ms[3];
    bool background;
    int cls, priority;
};

static void check_parents(const struct want *w, uint32_t row, const struct trace_node *node)
{
    uint32_t n = 0;
    for (; w->parents[n] != NOBODY; n++) {
        bool found = false;
        for (uint32_t k = 0; k < node->n_parents; k++) {
            found = found || (node->parents[k].request_id == w->parents[n] &&
                              node->parents[k].gap_ns == w->gaps_ms[n] * MS);
        }
        ck_assert_msg(found, "request %u does not wait for %u", w->id, w->parents[n]);
    }
    ck_assert_uint_eq(node->n_parents, n);
    ck_assert_uint_eq(t.graph->n_parents[row], n + (w->turn > 0));
}

static void check(const struct want *want, size_t n)
{
    ck_assert_uint_eq(t.n, n);
    struct trace_node *nodes = trace_graph_nodes(&t);
    for (size_t i = 0; i < n; i++) {
        const struct want *w = &want[i];
        uint32_t row = row_of(w->id);
        const struct trace_row *r = &t.rows[row];
        ck_assert_uint_eq(r->session_id, w->session);
        ck_assert_uint_eq(r->turn, w->turn);
        ck_assert_int_eq(r->arrival_ns, w->at_ms * MS);
        ck_assert_uint_eq(r->input_tokens, w->input);
        ck_assert_uint_eq(r->output_tokens, w->output);
        ck_assert_uint_eq(r->prefix_tokens, w->prefix);
        ck_assert_uint_eq(nodes[row].prefix_of, w->prefix_of);
        ck_assert_uint_eq(t.extras[row].client_id, w->client);
        ck_assert_int_eq(t.extras[row].priority, w->priority);
        ck_assert_uint_eq(nodes[row].background, w->background);
        ck_assert_int_eq(r->cls, w->cls);
        check_parents(w, row, &nodes[row]);
    }
    free(nodes);
}

#define ALONE .parents = {NOBODY}
#define PRO REQUEST_CLASS_PROACTIVE

/* Request 4 is sent at 8 s, 2 s after the explorer's second one has ended (4.5 + 1.5 s). The
 * watcher was launched and not waited for. Request 5 is sent while 4 runs, 7 s after 0 has ended.
 * Request 6 continues 4, with which it shares 4 blocks of 64. */
START_TEST(weka_subagents_are_waited_for_or_in_the_background)
{
    static const struct want want[] = {
        {0, 0, 0, 0, 150, 20, 0, NOBODY, 0, ALONE},
        {1, 1, 0, 1000, 130, 5, 64, 0, 0, {0, NOBODY}, {0}, false, 0, 0},
        {2, 1, 1, 500, 200, 7, 128, 1, 0, ALONE},
        {3, 3, 0, 250, 64, 3, 0, NOBODY, 0, {0, NOBODY}, {0}, true, PRO, 0},
        {4, 0, 1, 2000, 260, 30, 128, 0, 0, {2, NOBODY}, {0}, false, 0, 0},
        {5, 5, 0, 7000, 70, 4, 64, 0, 0, {0, NOBODY}, {0}, false, 0, 0},
        {6, 0, 2, 1000, 300, 1, 256, 4, 0, ALONE},
    };
    import_file("tests/fuzz/corpus/weka/sample");
    check(want, sizeof want / sizeof want[0]);
    ck_assert_str_eq(lost.format, "weka");
    ck_assert_uint_eq(lost.empty, 1);
    ck_assert_uint_eq(lost.other_model, 2);
    ck_assert_uint_eq(lost.overlapping, 1);
    ck_assert_uint_eq(lost.gaps_from_arrivals, 0);
    ck_assert_uint_eq(t.graph->n_jobs, 1);
}
END_TEST

#define SESSION(requests)                                                                          \
    "{\"id\":\"s\",\"models\":[\"m\"],\"block_size\":64,\"hash_id_scope\":\"local\",\"requests\":" \
    "[" requests "]}\n"
#define REQUEST(t, more) "{\"t\":" t ",\"type\":\"n\",\"model\":\"m\",\"in\":64,\"out\":2" more "}"

/* The nested 0.5 s are before its subagent's 3 s, so they count from there: 3.5 s, 1.5 s after the
 * first request has ended. The parent's next one is sent at 5 s, before the nested one ends, so
 * nobody waited for it. */
START_TEST(weka_times_may_count_from_the_subagent)
{
    static const char first[] = REQUEST("0", ",\"api_time\":2");
    static const char inner[] = REQUEST("0.5", ",\"api_time\":9");
    static const char last[] = REQUEST("5", "");
    char text[1024];
    (void)snprintf(text, sizeof text,
                   SESSION("%s,{\"t\":3,\"type\":\"subagent\",\"requests\":[%s]},%s"), first, inner,
                   last);
    ck_assert_int_eq(import(text, 0.0), 0);
    uint32_t nested = row_of(1);
    ck_assert_int_eq(t.rows[nested].arrival_ns, 1500 * MS);
    ck_assert(t.graph->background[nested]);
    ck_assert_uint_eq(t.rows[row_of(2)].turn, 1);
    ck_assert_int_eq(t.rows[row_of(2)].arrival_ns, 3000 * MS);
    ck_assert_uint_eq(t.graph->n_parents[row_of(2)], 1);
}
END_TEST

/* Blocks of two sessions are different under the scope local. Where no answer has an end, gaps
 * count from arrival to arrival. */
START_TEST(weka_sessions_begin_at_a_rate_and_share_nothing)
{
    static const char first[] = REQUEST("0", ",\"hash_ids\":[1]");
    static const char last[] = REQUEST("4", ",\"hash_ids\":[1,2]");
    char text[1024];
    (void)snprintf(text, sizeof text, SESSION("%s") SESSION("%s,%s"), first, first, last);
    ck_assert_int_eq(import(text, 6.0), 0);
    ck_assert_uint_eq(t.n, 3);
    ck_assert_uint_eq(t.graph->n_jobs, 2);
    ck_assert(t.rows[row_of(1)].arrival_ns > t.rows[row_of(0)].arrival_ns);
    ck_assert_uint_eq(t.graph->source[row_of(1)], TRACE_NO_ROW);
    ck_assert_uint_eq(t.graph->source[row_of(2)], row_of(1));
    ck_assert_int_eq(t.rows[row_of(2)].arrival_ns, 4000 * MS);
    ck_assert_uint_eq(lost.gaps_from_arrivals, 1);
    ck_assert(lost.no_times);
}
END_TEST

/* r2 is dispatched 50 ms after r1 is, which is 250 ms after r0 has ended: 300 ms. r3 waits 100 ms
 * for r0 (its turn before) and r1, and 400 for r2. Play q has names and blocks of its own. */
START_TEST(agentic_mooncake_keeps_its_dependencies)
{
    static const struct want want[] = {
        {0, 0, 0, 500, 128, 10, 0, NOBODY, 0, ALONE},
        {1, 1, 0, 250, 100, 20, 64, 0, 0, {0, NOBODY}, {0}, false, 0, 4},
        {2, 2, 0, 300, 64, 5, 0, NOBODY, 0, {0, NOBODY}, {0}, false, 0, 0},
        {3, 0, 1, 100, 200, 30, 128, 0, 0, {1, 2, NOBODY}, {0, 300}, false, 0, 0},
        {4, 4, 0, 900, 64, 8, 0, NOBODY, 1, ALONE},
    };
    import_file("tests/fuzz/corpus/agentic-mooncake/sample");
    check(want, sizeof want / sizeof want[0]);
    ck_assert_str_eq(lost.format, "agentic-mooncake");
    ck_assert_uint_eq(lost.other_model, 1);
    ck_assert_uint_eq(lost.not_before, 1);
    ck_assert_uint_eq(t.graph->n_jobs, 2);
}
END_TEST

/* From root-0 (0 to 1.5 s) to sub-0 (2 to 3 s) are 0.5 s, and from its end to root-1 is 1 s.
 * The slow one runs until 9 s, when root-1 has long begun. A request without a trajectory is a job
 * of its own. */
START_TEST(dynamo_trajectories_wait_for_each_other)
{
    static const struct want want[] = {
        {0, 0, 0, 0, 37, 3, 0, NOBODY, 0, ALONE},
        {1, 1, 0, 500, 10, 2, 0, NOBODY, 1, ALONE},
        {2, 2, 0, 500, 30, 8, 16, 0, 0, {0, NOBODY}, {0}, false, 0, 0},
        {3, 3, 0, 500, 20, 40, 0, NOBODY, 0, {0, NOBODY}, {0}, true, PRO, 0},
        {4, 0, 1, 1000, 60, 1, 32, 0, 0, {2, NOBODY}, {0}, false, 0, 0},
    };
    import_file("tests/fuzz/corpus/dynamo/sample");
    check(want, sizeof want / sizeof want[0]);
    ck_assert_str_eq(lost.format, "dynamo");
    ck_assert_uint_eq(lost.empty, 1);
    ck_assert_uint_eq(lost.other_model, 1);
}
END_TEST

/* Sent with the last input at 0.5 s, answered until 4.25 s; the next one is sent at 6.25 s. The
 * other project's session has the same id, and its round only a usage report, 1 s after. */
START_TEST(tracelab_rounds_are_turns)
{
    import_file("tests/fuzz/corpus/tracelab/sample");
    ck_assert_str_eq(lost.format, "tracelab");
    ck_assert_uint_eq(lost.untimed, 1);
    ck_assert_ptr_null(t.graph);
    ck_assert_uint_eq(t.n, 3);
    ck_assert_int_eq(t.rows[0].arrival_ns, 0);
    ck_assert_uint_eq(t.rows[0].input_tokens, 1000);
    ck_assert_uint_eq(t.rows[0].output_tokens, 50);
    ck_assert_int_eq(t.rows[1].arrival_ns, 1000 * MS);
    ck_assert_uint_eq(t.rows[1].input_tokens, 70);
    ck_assert_uint_eq(t.rows[0].next, 2);
    ck_assert_int_eq(t.rows[2].arrival_ns, 2000 * MS);
    ck_assert_uint_eq(t.rows[2].prefix_tokens, 1000);
    ck_assert_uint_eq(t.rows[2].output_tokens, 20);
}
END_TEST

static void check_tools(const bool *after_tool)
{
    for (uint32_t id = 0; id < t.n; id++) {
        ck_assert_msg(t.rows[row_of(id)].after_tool == after_tool[id], "request %u", id);
    }
}

/* Message m1 comes in two lines, is sent with its question at 0 s and ends at 3. The explorer is
 * sent 0.1 s later, and its second request 0.9 s after its first has ended. Its answer ends at 7,
 * and 0.5 s later the tool's result goes to the main conversation. An answer that the program made
 * up is no request. 1500 tokens were cached before m6, 1274 of which the turn before can have left.
 * Nothing says when the last one was sent. */
START_TEST(claude_code_side_chains_are_subagents)
{
    static const struct want want[] = {
        {0, 0, 0, 0, 1010, 120, 0, NOBODY, 0, ALONE},
        {1, 1, 0, 100, 403, 40, 0, NOBODY, 0, {0, NOBODY}, {0}, false, 0, 0},
        {2, 1, 1, 900, 465, 30, 403, NOBODY, 0, ALONE},
        {3, 0, 1, 500, 1214, 60, 1010, NOBODY, 0, {2, NOBODY}, {0}, false, 0, 0},
        {4, 0, 2, 20500, 1501, 1, 1274, NOBODY, 0, ALONE},
        {5, 0, 3, 9000, 7, 3, 0, NOBODY, 0, ALONE},
    };
    import_file("tests/fuzz/corpus/claude-code/sample");
    check(want, sizeof want / sizeof want[0]);
    check_tools((const bool[]){false, false, true, true, false, false});
    ck_assert_str_eq(lost.format, "claude-code");
    ck_assert_uint_eq(lost.failed, 1);
    ck_assert_uint_eq(lost.empty, 1);
    ck_assert_uint_eq(lost.unsent, 1);
    ck_assert_uint_eq(lost.other_model, 1);
    ck_assert_uint_eq(lost.untimed, 0);
    ck_assert_uint_eq(lost.overlapping, 0);
    ck_assert_uint_eq(lost.prefix_tokens, 226);
    ck_assert_uint_eq(t.graph->n_jobs, 1);
}
END_TEST

/* The first request is sent with the last input at 0.6 s and counted at 3.2. The second one is sent
 * with a tool's result, 2 s later. The child is still at work then, so nobody waits for it.
 * Somebody else had cached 128 tokens of its first prompt. A count without tokens, or repeated, is
 * no request. The last one has no input of its own. */
START_TEST(codex_threads_are_subagents)
{
    static const struct want want[] = {
        {0, 0, 0, 0, 2000, 100, 0, NOBODY, 0, ALONE},
        {1, 1, 0, 400, 500, 20, 0, NOBODY, 0, {0, NOBODY}, {0}, true, PRO, 0},
        {2, 0, 1, 2000, 2200, 50, 2048, NOBODY, 0, ALONE},
        {3, 1, 1, 3400, 600, 9, 512, NOBODY, 0, .parents = {NOBODY}, .background = true,
         .cls = PRO},
    };
    import_file("tests/fuzz/corpus/codex/sample");
    check(want, sizeof want / sizeof want[0]);
    check_tools((const bool[]){false, false, true, false});
    ck_assert_str_eq(lost.format, "codex");
    ck_assert_uint_eq(lost.unsent, 1);
    ck_assert_uint_eq(lost.other_model, 2);
    ck_assert_uint_eq(lost.prefix_tokens, 128);
    ck_assert_uint_eq(lost.failed + lost.empty + lost.untimed, 0);
}
END_TEST

/* The first call ends at 2 s and took 2 s, so the session begins at 0. The next one begins at 6 s,
 * 4 s after that end: a helper's call without tokens, and the tools, are in that gap. The third is
 * a new turn of the user, at 119 s, and says more cached than it has. The other session's call says
 * nothing of its time but the end. */
START_TEST(sessions_of_copilot_are_chains_of_calls_that_end_at_their_time)
{
    static const struct want want[] = {
        {0, 0, 0, 0, 5000, 40, 0, NOBODY, 0, ALONE},
        {1, 0, 1, 4000, 6000, 30, 5000, NOBODY, 0, ALONE},
        {2, 2, 0, 30000, 900, 1, 0, NOBODY, 1, ALONE},
        {3, 0, 2, 111750, 2000, 7, 2000, NOBODY, 0, ALONE},
    };
    import_file("tests/fuzz/corpus/copilot/sample");
    check(want, sizeof want / sizeof want[0]);
    check_tools((const bool[]){false, true, false, false});
    ck_assert_str_eq(lost.format, "copilot");
    ck_assert_uint_eq(lost.failed, 1);
    ck_assert_uint_eq(lost.untimed, 1);
    ck_assert_uint_eq(lost.unsent, 1);
    ck_assert_uint_eq(lost.empty, 1);
    ck_assert_uint_eq(lost.other_model, 1);
    ck_assert_uint_eq(lost.prefix_tokens, 3500);
    ck_assert_uint_eq(lost.overlapping, 0);
}
END_TEST

/* The leader's tool invokes a worker, whose own tokens are those of its two requests. Its second
 * one ends at 5.5, 1 s before the leader continues. */
START_TEST(spans_of_agents_are_a_graph)
{
    static const struct want want[] = {
        {0, 0, 0, 0, 100, 10, 0, NOBODY, 0, ALONE},
        {1, 1, 0, 500, 50, 5, 0, NOBODY, 0, {0, NOBODY}, {0}, false, 0, 0},
        {2, 1, 1, 500, 70, 6, 55, NOBODY, 0, ALONE},
        {3, 0, 1, 1000, 160, 12, 100, NOBODY, 0, {2, NOBODY}, {0}, false, 0, 0},
    };
    import_file("tests/fuzz/corpus/otel/agents");
    check(want, sizeof want / sizeof want[0]);
    ck_assert_str_eq(lost.format, "otel");
    ck_assert_uint_eq(lost.other_model, 1);
    ck_assert_uint_eq(lost.prefix_tokens, 20);
    ck_assert_uint_eq(lost.failed + lost.empty + lost.overlapping, 0);
}
END_TEST

#define SPAN(id, parent, op, from, to, more)                                                       \
    "{\"traceId\":\"t\",\"spanId\":\"" id "\",\"parentSpanId\":\"" parent                          \
    "\",\"startTimeUnixNano\":\"" from "000000000\",\"endTimeUnixNano\":\"" to                     \
    "000000000\",\"attributes\":[{\"key\":\"gen_ai.operation.name\",\"value\":{\"stringValue\":"   \
    "\"" op "\"}}" more "]},"
#define AGENT(id, parent, from, to) SPAN(id, parent, "invoke_agent", from, to, "")
#define TOKENS(kind, n)                                                                            \
    ",{\"key\":\"gen_ai.usage." kind "_tokens\",\"value\":{\"intValue\":\"" n "\"}}"
#define CHAT(id, parent, from, to, in, out)                                                        \
    SPAN(id, parent, "chat", from, to, TOKENS("input", in) TOKENS("output", out))
#define SPANS_BEGIN "{\"resourceSpans\":[{\"scopeSpans\":[{\"spans\":["
#define SPANS_END "{}]}]}]}"
#define SPANS(list) SPANS_BEGIN list SPANS_END

/* b is at work when a continues at 30 s, so it is in the background. So is c, which b had started
 * at 16 s and for which b alone waits. Later requests of c are, too. */
START_TEST(what_a_subagent_in_the_background_started_is_there_too)
{
    static const struct want want[] = {
        {0, 0, 0, 0, 100, 10, 0, NOBODY, 0, ALONE},
        {1, 1, 0, 2000, 200, 20, 0, NOBODY, 0, {0, NOBODY}, {0}, true, PRO, 0},
        {2, 2, 0, 2000, 300, 30, 0, NOBODY, 0, {1, NOBODY}, {0}, true, PRO, 0},
        {3, 0, 1, 20000, 150, 15, 0, NOBODY, 0, ALONE},
        {4, 2, 1, 25000, 330, 33, 0, NOBODY, 0, .parents = {NOBODY}, .background = true,
         .cls = PRO},
        {5, 1, 1, 32000, 250, 25, 0, NOBODY, 0, {4, NOBODY}, {0}, true, PRO, 0},
    };
    ck_assert_int_eq(
        import(SPANS(AGENT("a", "", "0", "200") CHAT("a1", "a", "0", "10", "100", "10")
                         AGENT("b", "a", "11", "100") CHAT("b1", "b", "12", "15", "200", "20")
                             AGENT("c", "b", "16", "90") CHAT("c1", "c", "17", "25", "300", "30")
                                 CHAT("a2", "a", "30", "40", "150", "15")
                                     CHAT("c2", "c", "50", "60", "330", "33")
                                         CHAT("b2", "b", "92", "99", "250", "25")),
               0.0),
        0);
    check(want, sizeof want / sizeof want[0]);
}
END_TEST

/* The subagent b has its last answer at 15 s, and c, which b started, continues until 28. Agent a
 * continues at 30 s, 2 s after that. The child f of d still works when a continues at 60. So d is
 * in the background as f is. */
START_TEST(a_subagent_ends_when_what_it_started_does)
{
    static const struct want want[] = {
        {0, 0, 0, 0, 100, 10, 0, NOBODY, 0, ALONE},
        {1, 1, 0, 2000, 200, 20, 0, NOBODY, 0, {0, NOBODY}, {0}, false, 0, 0},
        {2, 2, 0, 2000, 300, 30, 0, NOBODY, 0, {1, NOBODY}, {0}, false, 0, 0},
        {3, 0, 1, 2000, 150, 15, 0, NOBODY, 0, {2, NOBODY}, {0}, false, 0, 0},
        {4, 4, 0, 2000, 250, 25, 0, NOBODY, 0, {3, NOBODY}, {0}, true, PRO, 0},
        {5, 5, 0, 2000, 350, 35, 0, NOBODY, 0, {4, NOBODY}, {0}, true, PRO, 0},
        {6, 0, 2, 20000, 160, 16, 0, NOBODY, 0, ALONE},
    };
    /* There are two parts, because a string of C has 4,095 bytes at most. */
    OWNED char *text =
        xformat("%s%s",
                SPANS_BEGIN AGENT("a", "", "0", "200") CHAT("a1", "a", "0", "10", "100", "10")
                    AGENT("b", "a", "11", "29") CHAT("b1", "b", "12", "15", "200", "20")
                        AGENT("c", "b", "16", "29") CHAT("c1", "c", "17", "28", "300", "30")
                            CHAT("a2", "a", "30", "40", "150", "15"),
                AGENT("d", "a", "41", "99") CHAT("d1", "d", "42", "45", "250", "25")
                    AGENT("f", "d", "46", "99") CHAT("f1", "f", "47", "90", "350", "35")
                        CHAT("a3", "a", "60", "70", "160", "16") SPANS_END);
    ck_assert_int_eq(import(text, 0.0), 0);
    check(want, sizeof want / sizeof want[0]);
}
END_TEST

/* a's conversation is A, and those of the requests are others: b has one of its own, and a2 its own
 * id, as VS Code writes it. b waits for a1, and a2 for b. */
#define IN(name) ",{\"key\":\"gen_ai.conversation.id\",\"value\":{\"stringValue\":\"" name "\"}}"
START_TEST(the_conversation_of_an_agent_is_that_of_its_span)
{
    static const struct want want[] = {
        {0, 0, 0, 0, 100, 10, 0, NOBODY, 0, ALONE},
        {1, 1, 0, 2000, 200, 20, 0, NOBODY, 0, {0, NOBODY}, {0}, false, 0, 0},
        {2, 0, 1, 10000, 150, 15, 0, NOBODY, 0, {1, NOBODY}, {0}, false, 0, 0},
    };
    ck_assert_int_eq(
        import(SPANS(SPAN("a", "", "invoke_agent", "0", "60", IN("A"))
                         SPAN("a1", "a", "chat", "0", "10",
                              IN("A") TOKENS("input", "100") TOKENS("output", "10"))
                             SPAN("b", "a", "invoke_agent", "11", "21", IN("B"))
                                 SPAN("b1", "b", "chat", "12", "20",
                                      IN("B") TOKENS("input", "200") TOKENS("output", "20"))
                                     SPAN("a2", "a", "chat", "30", "40",
                                          IN("Z") TOKENS("input", "150") TOKENS("output", "15"))),
               0.0),
        0);
    check(want, sizeof want / sizeof want[0]);
}
END_TEST

/* They have tokens, and are no answer of the model: neither a turn between two, nor a failed one.
 */
START_TEST(spans_of_embeddings_are_no_requests)
{
    static const struct want want[] = {
        {0, 0, 0, 0, 100, 10, 0, NOBODY, 0, ALONE},
        {1, 0, 1, 20000, 150, 15, 0, NOBODY, 0, ALONE},
    };
    ck_assert_int_eq(
        import(SPANS(AGENT("a", "", "0", "200") CHAT("a1", "a", "0", "10", "100", "10")
                         SPAN("e", "a", "embeddings", "12", "13", TOKENS("input", "77"))
                             CHAT("a2", "a", "30", "40", "150", "15")),
               0.0),
        0);
    check(want, sizeof want / sizeof want[0]);
    trace_fini(&t);
    ck_assert_int_eq(import(SPANS(SPAN("e", "", "embeddings", "0", "1", TOKENS("input", "77"))
                                      CHAT("a1", "", "2", "10", "100", "10")),
                            0.0),
                     0);
    ck_assert_uint_eq(t.n, 1);
    ck_assert_uint_eq(lost.failed, 0);
}
END_TEST

/* A workflow has the sum of its agents' tokens. */
START_TEST(a_workflow_is_no_request)
{
    ck_assert_int_eq(
        import(SPANS(SPAN("w", "", "invoke_workflow", "0", "40", TOKENS("input", "250"))
                         CHAT("a1", "w", "2", "10", "100", "10")),
               0.0),
        0);
    ck_assert_uint_eq(t.n, 1);
    ck_assert_uint_eq(lost.failed, 0);
}
END_TEST

/* VS Code writes an instant as [s, ns], attributes as an object, and metrics between the spans. The
 * second call begins 2 s after the first has ended. */
START_TEST(spans_of_the_sdk_are_read_as_those_of_otlp)
{
    static const struct want want[] = {
        {0, 0, 0, 0, 50, 5, 0, NOBODY, 0, ALONE},
        {1, 0, 1, 2000, 90, 7, 40, NOBODY, 0, ALONE},
    };
    import_file("tests/fuzz/corpus/otel/sdk");
    check(want, sizeof want / sizeof want[0]);
    ck_assert_str_eq(lost.format, "otel");
}
END_TEST

#define HEADER                                                                                     \
    "{\"schema\":\"dynamo.agentic_mooncake\",\"version\":2,\"block_size\":64,"                     \
    "\"hash_id_scope\":\"local\"}\n"
#define ROW(more)                                                                                  \
    "{\"request_id\":\"a\",\"play_id\":\"p\",\"session_id\":\"s\",\"model\":\"m\"" more "}\n"

#define PLAYED(id, not_before_ms, dependencies)                                                    \
    "{\"request_id\":\"" id "\",\"play_id\":\"p\",\"session_id\":\"" id                            \
    "\",\"model\":\"m\",\"not_before_ms\":" not_before_ms                                          \
    ",\"input_length\":9,\"output_length\":1,\"dependencies\":[" dependencies "]}\n"
#define DISPATCH(of, delay_ms)                                                                     \
    "{\"request_id\":\"" of "\",\"trigger\":\"dispatch\",\"delay_ms\":" delay_ms "}"

/* A request that waits for dispatches of requests that wait for nobody arrives when the last of
 * them allows it. So c arrives 1 s after b, whichever is named last, and d at its own time, 48 s
 * after a's dispatch. */
START_TEST(dispatches_and_not_before_are_all_waited_for)
{
    static const struct want want[] = {
        {0, 0, 0, 0, 9, 1, 0, NOBODY, 0, ALONE},
        {1, 1, 0, 90000, 9, 1, 0, NOBODY, 0, ALONE},
        {2, 2, 0, 91000, 9, 1, 0, NOBODY, 0, ALONE},
        {3, 3, 0, 50000, 9, 1, 0, NOBODY, 0, ALONE},
    };
    ck_assert_int_eq(import(HEADER PLAYED("a", "0", "") PLAYED("b", "90000", "")
                                PLAYED("c", "0", DISPATCH("b", "1000") "," DISPATCH("a", "2000"))
                                    PLAYED("d", "50000", DISPATCH("a", "2000")),
                            0.0),
                     0);
    check(want, sizeof want / sizeof want[0]);
}
END_TEST

START_TEST(what_is_wrong_is_refused_with_line_and_key)
{
    static const struct {
        const char *text, *says;
    } bad[] = {
        {SESSION(""), ":1: requests: must have a request"},
        {SESSION("{\"type\":\"n\",\"in\":1,\"out\":1}"), ":1: t: must be a number"},
        {SESSION("{\"t\":0,\"type\":\"n\",\"in\":-1,\"out\":1}"), ":1: in: must be a number"},
        {SESSION("{\"t\":0,\"type\":\"n\",\"in\":1}"), ":1: out: must be a number"},
        {SESSION(REQUEST("0", "")) SESSION(REQUEST("0", "")), "need --rate-per-min"},
        {"{\"schema\":\"dynamo.request.trace.v1\",\"event_type\":\"request_end\"}\n",
         ":1: request.input_tokens: must be a number"},
        {"{\"input_tokens_total\":-1,\"newly_append_tokens\":1,\"timing_events\":[{\"event_type\":"
         "\"text\",\"timestamp\":\"2026-06-01T10:00:00Z\"}]}\n",
         ":1: input_tokens_total: must be a number"},
        {"{\"isSidechain\":false,\"uuid\":\"u\",\"type\":\"user\"}\n", "no answer says how many"},
        {"{\"isSidechain\":false,\"uuid\":\"u\",\"type\":\"assistant\",\"timestamp\":\"2026-06-01T"
         "10:00:00Z\",\"message\":{\"usage\":{\"input_tokens\":-1}}}\n",
         ":1: input_tokens: must be a number"},
        {"{\"type\":\"session_meta\",\"payload\":{}}\n", "no answer says how many"},
        {"{\"type\":\"session_meta\",\"payload\":{}}\n{\"type\":\"event_msg\",\"timestamp\":\"2026-"
         "06-01"
         "T10:00:00Z\",\"payload\":{\"type\":\"token_count\",\"info\":{\"last_token_usage\":{"
         "\"output_tokens\":\"x\"}}}}\n",
         ":2: output_tokens: must be a number"},
        {"{\"session_id\":\"s\",\"turns\":[{\"llm_calls\":[{\"tokens\":{}}]}]}\n",
         "no call says how many tokens"},
        {"{\"session_id\":\"s\",\"turns\":[{\"llm_calls\":[{\"timestamp\":\"2026-06-01T10:00:00Z\","
         "\"duration_ms\":-1,\"tokens\":{\"prompt\":1}}]}]}\n",
         ":1: duration_ms: must be a number"},
        {HEADER ROW(""), ":2: not_before_ms: must be a number"},
        {HEADER ROW(",\"not_before_ms\":0,\"input_length\":0"), ":2: input_length: must be"},
        {HEADER ROW(",\"not_before_ms\":0,\"input_length\":1,\"output_length\":1,\"dependencies\":"
                    "[{\"request_id\":\"b\",\"trigger\":\"completion\",\"delay_ms\":0}]"),
         ":2: dependencies.request_id: must be a request above"},
        {"{\"schema\":\"dynamo.agentic_mooncake\",\"version\":3,\"block_size\":64}\n",
         ":1: version: must be 2"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        ck_assert_int_eq(import(bad[i].text, 0.0), -EINVAL);
        ck_assert_msg(strstr(err.lines[0], bad[i].says) != NULL, "%zu: %s", i, err.lines[0]);
        err_fini(&err);
        err = (struct err)ERR_INIT;
    }
}
END_TEST

static const struct suite_row suite[] = {
    CASE("import agents", .setup = setup, .teardown = teardown),
    TEST(weka_subagents_are_waited_for_or_in_the_background),
    TEST(weka_times_may_count_from_the_subagent),
    TEST(weka_sessions_begin_at_a_rate_and_share_nothing),
    TEST(agentic_mooncake_keeps_its_dependencies),
    TEST(dynamo_trajectories_wait_for_each_other),
    TEST(tracelab_rounds_are_turns),
    TEST(claude_code_side_chains_are_subagents),
    TEST(codex_threads_are_subagents),
    TEST(sessions_of_copilot_are_chains_of_calls_that_end_at_their_time),
    TEST(spans_of_agents_are_a_graph),
    TEST(what_a_subagent_in_the_background_started_is_there_too),
    TEST(a_subagent_ends_when_what_it_started_does),
    TEST(the_conversation_of_an_agent_is_that_of_its_span),
    TEST(spans_of_embeddings_are_no_requests),
    TEST(a_workflow_is_no_request),
    TEST(spans_of_the_sdk_are_read_as_those_of_otlp),
    TEST(dispatches_and_not_before_are_all_waited_for),
    TEST(what_is_wrong_is_refused_with_line_and_key),
};
SUITE_MAIN("import_agents", suite)
