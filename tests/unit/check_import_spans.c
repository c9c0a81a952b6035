/* Spans under the names of OpenInference, as instrumented LangGraph writes them. */
#include "sim/base/units.h"
#include "tests/helpers/suite.h"
#include "tests/helpers/tempfile.h"
#include "traces/traces.h"

#define SPAN(id, parent, kind, from, to, more)                                                     \
    "{\"traceId\":\"t\",\"spanId\":\"" id "\",\"parentSpanId\":\"" parent                          \
    "\",\"startTimeUnixNano\":\"" from "000000000\",\"endTimeUnixNano\":\"" to                     \
    "000000000\",\"attributes\":[{\"key\":\"openinference.span.kind\",\"value\":{\"stringValue\":" \
    "\"" kind "\"}}" more "]}"
#define COUNT(kind, n) ",{\"key\":\"llm.token_count." kind "\",\"value\":{\"intValue\":\"" n "\"}}"
#define LLM(id, parent, from, to, in, out, more)                                                   \
    SPAN(id, parent, "LLM", from, to, COUNT("prompt", in) COUNT("completion", out) more)

/* A tool ran before b2 and ended when b2 began. Another one, n's in a, ended before a2 and after b
 * began. A third ended before b1, and has no request before it. Agent b starts 2 s after a1, and a
 * continues 5 s after b2. The cache of b2 had 250 tokens, of which 200 + 20 are of the turn before.
 * Chains and agents have sums of tokens, and embeddings answer nothing. */
static const char *const agents[] = {
    SPAN("a", "", "AGENT", "0", "60", ""),
    SPAN("n", "a", "CHAIN", "0", "60", COUNT("prompt", "999")),
    LLM("a1", "n", "0", "10", "100", "10", ""),
    SPAN("b", "a", "AGENT", "11", "29", COUNT("prompt", "500")),
    SPAN("t0", "b", "TOOL", "11", "12", ""),
    LLM("b1", "b", "12", "20", "200", "20", ""),
    LLM("b2", "b", "21", "25", "300", "30", COUNT("prompt_details.cache_read", "250")),
    SPAN("t1", "b", "TOOL", "20", "21", ""),
    SPAN("t2", "n", "TOOL", "25", "29", ""),
    SPAN("e", "a", "EMBEDDING", "26", "27", COUNT("prompt", "77")),
    LLM("a2", "n", "30", "40", "150", "15", ""),
};

START_TEST(spans_of_openinference_are_agents_and_their_requests)
{
    static const struct {
        uint32_t session, turn, input, output, prefix;
        int64_t gap_s;
        bool after_tool;
    } want[] = {{0, 0, 100, 10, 0, 0, false},
                {0, 1, 150, 15, 0, 5, true},
                {1, 0, 200, 20, 0, 2, false},
                {1, 1, 300, 30, 220, 1, true}};
    SCOPED(text_fini) struct text file = {0};
    text_string(&file, "{\"resourceSpans\":[{\"scopeSpans\":[{\"spans\":[");
    for (size_t i = 0; i < sizeof agents / sizeof agents[0]; i++) {
        text_format(&file, "%s%s", i > 0 ? "," : "", agents[i]);
    }
    text_string(&file, "]}]}]}");
    const char *path = tempfile_make("");
    tempfile_put(text_end(&file));
    SCOPED(err_fini) struct err err = ERR_INIT;
    SCOPED(trace_fini) struct trace t = {0};
    struct trace_import_losses lost;
    struct trace_import_options o = TRACE_IMPORT_DEFAULTS;
    ck_assert_int_eq(trace_import(&o, path, &t, &lost, &err), 0);
    tempfile_remove();
    ck_assert_uint_eq(t.n, sizeof want / sizeof want[0]);
    for (size_t i = 0; i < t.n; i++) {
        const struct trace_row *r = &t.rows[i];
        ck_assert_uint_eq(r->session_id, want[i].session);
        ck_assert_uint_eq(r->turn, want[i].turn);
        ck_assert_uint_eq(r->input_tokens, want[i].input);
        ck_assert_uint_eq(r->output_tokens, want[i].output);
        ck_assert_uint_eq(r->prefix_tokens, want[i].prefix);
        ck_assert_int_eq(r->arrival_ns, want[i].gap_s * NS_PER_S);
        ck_assert_int_eq(r->after_tool, want[i].after_tool);
    }
}
END_TEST

/* A span of an agent's answer, of a trace; seconds. */
static void answer(struct text *file, const char *trace, const char *id, const char *parent,
                   uint32_t from, uint32_t to)
{
    text_format(file,
                "{\"traceId\":\"%s\",\"spanId\":\"%s\",\"parentSpanId\":\"%s\","
                "\"startTimeUnixNano\":\"%u000000000\",\"endTimeUnixNano\":\"%u000000000\","
                "\"attributes\":[{\"key\":\"openinference.span.kind\",\"value\":{\"stringValue\":"
                "\"%s\"}}%s]},",
                trace, id, parent, from, to, parent[0] == '\0' ? "AGENT" : "LLM",
                parent[0] == '\0' ? "" : COUNT("prompt", "100") COUNT("completion", "10"));
}

/* Two traces number their spans equally, and the first is there twice: an exporter that got no
 * answer sent it again. So there are two agents of two requests each. The second request begins at
 * the instant at which the first ends, and is its next turn, after 0 s. */
START_TEST(spans_are_known_by_their_number_and_trace)
{
    SCOPED(text_fini) struct text file = {0};
    text_string(&file, "{\"resourceSpans\":[{\"scopeSpans\":[{\"spans\":[");
    static const char *const traces[] = {"t", "u", "t"};
    for (int i = 0; i < 3; i++) {
        answer(&file, traces[i], "a", "", 0, 60);
        answer(&file, traces[i], "b", "a", 1, 10);
        answer(&file, traces[i], "c", "a", 10, 20);
    }
    file.n--; /* the last comma */
    text_string(&file, "]}]}]}");
    const char *path = tempfile_make("");
    tempfile_put(text_end(&file));
    SCOPED(err_fini) struct err err = ERR_INIT;
    SCOPED(trace_fini) struct trace t = {0};
    struct trace_import_losses lost;
    struct trace_import_options o = TRACE_IMPORT_DEFAULTS;
    ck_assert_msg(trace_import(&o, path, &t, &lost, &err) == 0, "%s", err.lines[0]);
    tempfile_remove();
    ck_assert_uint_eq(t.n, 4);
    ck_assert_uint_eq(t.n_first, 2);
    for (size_t i = 0; i < 2; i++) {
        uint32_t next = t.rows[i].next;
        ck_assert_uint_lt(next, 4);
        ck_assert_uint_eq(t.rows[next].turn, 1);
        ck_assert_int_eq(t.rows[next].arrival_ns, 0);
    }
}
END_TEST

static const struct suite_row suite[] = {
    TEST(spans_are_known_by_their_number_and_trace),
    TEST(spans_of_openinference_are_agents_and_their_requests),
};
SUITE_MAIN("import_spans", suite)
