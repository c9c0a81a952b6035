/* Policies of other processes are tested without the process. A policy that acts at random
 * (tests/helpers/wild.h) does the same by lines of the protocol as by calls. Each message has all
 * changes, and nothing else (tests/helpers/spoken.h). */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "experiments/conformance/randomload.h"
#include "sim/base/json.h"
#include "tests/helpers/spoken.h"
#include "tests/helpers/suite.h"
#include "tests/helpers/wild.h"

enum { LOADS = 25, MAX_REQUESTS = 24 };

static struct scenario sc;
static struct scenario_request q[MAX_REQUESTS];

/* ---- lines that make no sense, at both sides of every limit ---- */

static const struct {
    const char *action, *wrong; /* NULL says that it has the form, and is refused or done */
} forms[] = {
    {"[\"occupy\",255,1]", NULL},
    {"[\"timer\",-1]", "when"},
    {"[\"timer\",0.5]", "when"},
    {"[\"timer\",9.1e18]", "when"},
    {"[\"timer\",null]", "when"},
    {"[\"timer\"]", "when"},
    {"[\"timer\",1,2]", "more than the action has"},
    {"[\"kv_rank\",4294967295,4294967295]", NULL},
    {"[\"kv_rank\",4294967296,1]", "which request"},
    {"[\"kv_rank\",1,4294967296]", "which rank"},
    {"[\"kv_rank\",1]", "which rank"},
    {"[\"kv\",4294967295,\"elsewhere\"]", "where to: memory, cache, flash or nowhere"},
    {"[\"kv\",4294967295,\"nowhere\"]", NULL},
    {"[\"kv\",4294967295,\"nowhere\",7]", NULL},
    {"[\"kv\",4294967295,\"nowhere\",-7]", "from which token"},
    {"[\"kv\",4294967295,\"nowhere\",7,7]", "more than the action has"},
    {"[\"load\",\"graph_block\",1,1,-1]", "bytes"},
    {"[\"load\",\"graph_block\",1,1]", "bytes"},
    {"[\"load\",\"graph_block\",1,1,1.1e15]", "bytes"},
    {"[\"drop\",\"compiled_attention\",4294967295]", NULL},
    {"[\"drop\",\"compiled_attention\",4294967295,0]", NULL},
    {"[\"drop\",\"attention\",1]", "what kind of resident"},
    {"[\"drop\",\"compiled_attention\"]", "which resident"},
    {"[\"drop\",\"compiled_attention\",1,\"x\"]", "which resident"},
    {"[\"cancel\",4294967295]", NULL},
    {"[\"cancel\",\"1\"]", "which pass"},
    {"[\"preempt\",4294967295,{\"now\":true}]", NULL},
    {"[\"preempt\",4294967295,{\"now\":1}]", "now"},
    {"[\"preempt\",4294967295,{\"soon\":true}]", "the action has no such option"},
    {"[\"preempt\",4294967295,true]", "options are an object"},
    {"[\"preempt\",4294967295,{},{}]", "more than the action has"},
    {"[\"form\",4000000000,[]]", "a pass has segments"},
    {"[\"form\",4000000000,7]", "a pass has segments"},
    {"[\"form\",0,[[4294967295,\"decode\",1]]]", "the number of what it makes is not new"},
    {"[\"form\",4000000000,[[4294967295,\"decode\",1]]]", NULL},
    {"[\"form\",4000000000,[[4294967295,\"decode\",1]],true]", NULL},
    {"[\"form\",4000000000,[[4294967295,\"decode\",1]],1]", "fused"},
    {"[\"form\",4000000000,[[4294967295,\"decode\"]]]", "the tokens of a segment"},
    {"[\"form\",4000000000,[[4294967295,\"encode\",1]]]", "the role of a segment"},
    {"[\"form\",4000000000,[[\"x\",\"decode\",1]]]", "the request of a segment"},
    {"[\"launch\",0,4294967295,0]", "the number of what it makes is not new"},
    {"[\"launch\",4000000000,4294967295,2]", NULL},
    {"[\"launch\",4000000000,4294967295,3]", "there is no such device"},
    {"[\"launch\",4000000000,4294967295,0,{\"n_ops\":4294967296}]", "n_ops"},
    {"[\"launch\",4000000000,4294967295,0,{\"graph\":256}]", "graph"},
    {"[\"launch\",4000000000,4294967295,0,{\"yield\":\"never\"}]", "yield"},
    {"[\"launch\",4000000000,4294967295,0,{\"pass\":1}]", "the action has no such option"},
    {"[\"note\",7,1]", "the name of a counter, and how many"},
    {"[\"note\",\"it\",-1]", "the name of a counter, and how many"},
    {"[\"note\",\"it\",9.1e15]", "the name of a counter, and how many"},
    {"[\"dance\"]", "no such action"},
    {"[]", "no such action"},
    {"7", "no such action"},
};

static const struct {
    const char *question, *wrong;
} questions[] = {
    {"7", "questions come in an array"},
    {"[7]", "a question is an array that begins with its name"},
    {"[[\"weather\"]]", "no such question"},
    {"[[\"machine_state\",1]]", "more than the question has"},
    {"[[\"resident\",\"graph_block\"]]", "which resident"},
    {"[[\"resident\",\"graph_block\",1,1,1]]", "more than the question has"},
    {"[[\"draft\",-1]]", "which request"},
    {"[[\"estimate\",[1,1,1,1,1,1],\"qkv\",0]]", "the numbers of a shape"},
    {"[[\"estimate\",[1,1,1,1,1,1,1],\"qkc\",0]]", "which op"},
    {"[[\"estimate\",[1,1,1,1,1,1,1],\"qkv\",256]]", "which device"},
    {"[[\"estimate\",[1,1,1,1,1,1,1],\"qkv\"]]", "which device"},
    {"[[\"estimate\",[1,1,1,1,1,1,1],\"qkv\",0,-1]]", "rows"},
    {"[[\"estimate\",[1,1,1,1,1,1,1],\"qkv\",0,1,-1]]", "chunk_rows"},
    {"[[\"estimate\",[1,1,1,1,1,1,1],\"qkv\",0,1,1,256]]", "graph"},
    {"[[\"estimate\",[1,1,1,1,1,1,1],\"qkv\",0,1,1,0,0]]", "more than the question has"},
    {"[[\"estimate\",[1,1,1,1,9.1e15,1,1],\"qkv\",0]]", "the numbers of a shape"},
};

static void check_nonsense(struct sched *s)
{
    struct external_run *x = spoken_run(s);
    char text[256];
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        (void)snprintf(text, sizeof text, "[%s]", forms[i].action);
        SCOPED(json_drop) cJSON *tree = cJSON_Parse(text);
        const char *wrong = external_act(s, x, tree);
        bool same = forms[i].wrong == NULL ? wrong == NULL
                                           : wrong != NULL && strcmp(wrong, forms[i].wrong) == 0;
        ck_assert_msg(same, "%s: %s", text, wrong != NULL ? wrong : "taken");
    }
    for (size_t i = 0; i < sizeof questions / sizeof questions[0]; i++) {
        SCOPED(json_drop) cJSON *tree = cJSON_Parse(questions[i].question);
        const char *wrong = external_answer(s, x, tree);
        ck_assert_msg(wrong != NULL && strcmp(wrong, questions[i].wrong) == 0, "%s: %s",
                      questions[i].question, wrong != NULL ? wrong : "taken");
    }
    x->refusals.n = x->n_refusals = 0;
    spoken.nonsense = true;
}

/* ---- hooks ---- */

static void use(struct sched *s)
{
    spoken.real = s;
    spoken.lines = *s;
    spoken.lines.api = &spoken_api;
    spoken.lines.state = (char *)s->state + sizeof(struct external_run);
}

static void event(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static void event(const char *fmt, ...)
{
    size_t used = strlen(spoken.events);
    va_list ap;
    va_start(ap, fmt);
    used +=
        (size_t)snprintf(spoken.events + used, sizeof spoken.events - used, used > 0 ? "," : "");
    used += (size_t)vsnprintf(spoken.events + used, sizeof spoken.events - used, fmt, ap);
    va_end(ap);
    ck_assert_uint_lt(used, sizeof spoken.events);
}

static int init(struct sched *s)
{
    struct external_run *x = spoken_run(s);
    x->process.to = x->process.from = -1; /* there is none */
    use(s);
    text_string(&x->line, "what was written before");
    spoken_check_init(s);
    return wild.init(&spoken.lines);
}

static void arrived(struct sched *s, const struct request *r)
{
    char at[4][24];
    use(s);
    spoken.hooks.request_arrived(s, r);
    struct spoken_thing *t = spoken_add('r', r->id, r);
    spoken_row(t, t->reported); /* the event has all of it */
    t->whole = true;
    spoken_time(at[0], r->arrival_ns);
    spoken_time(at[1], r->ttft_slo_ns);
    spoken_time(at[2], r->tbt_slo_ns);
    spoken_time(at[3], r->deadline_ns);
    event("[\"arrived\",%u,%u,%u,%u,\"%s\",%d,%s,%u,%u,%s,%s,%s,%u,%u,%s,%u,%u,%u,%s,%u,%" PRIu64
          "]",
          r->id, r->session_id, r->turn, r->client_id,
          r->cls == REQUEST_CLASS_REACTIVE ? "reactive" : "proactive", r->priority, at[0],
          r->input_tokens, r->max_output_tokens, at[1], at[2], at[3], r->reused_tokens,
          r->kv_tokens, spoken_yes(r->kv_swapped), r->job_id, r->depth, r->waiters,
          spoken_yes(r->background), r->model, r->kv_state_tokens);
    wild.request_arrived(&spoken.lines, r);
}

static void cancelled(struct sched *s, const struct request *r)
{
    use(s);
    spoken.hooks.request_cancelled(s, r);
    event("[\"cancelled\",%u]", r->id);
    wild.request_cancelled(&spoken.lines, r);
}

static void launch_done(struct sched *s, const struct launch *l)
{
    static const char *const outcomes[] = {"done", "yielded", "withdrawn", "reset"};
    spoken.hooks.launch_done(s, l);
    event("[\"launch_done\",%u,\"%s\"]", spoken_launch_number(l), outcomes[l->outcome]);
}

static void pass_done(struct sched *s, const struct pass *p)
{
    char list[256] = "";
    size_t used = 0;
    spoken.hooks.pass_done(s, p);
    for (uint32_t i = 0; i < p->n_segments; i++) {
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%u", i > 0 ? "," : "",
                                 p->segments[i].emitted_tokens);
    }
    event("[\"pass_done\",%u,[%s]]", spoken_pass_number(p), list);
}

static void resident_ready(struct sched *s, struct resident_key k)
{
    spoken.hooks.resident_ready(s, k);
    event("[\"resident_ready\",\"%s\",%u,%u]",
          k.kind == RESIDENT_GRAPH_BLOCK ? "graph_block" : "compiled_attention", k.a, k.b);
}

static void kv_moved(struct sched *s, const struct request *r)
{
    spoken.hooks.kv_moved(s, r);
    event("[\"kv_moved\",%u]", r->id);
}

/* A thing that has ended keeps its last row until that is reported, because the core reuses its
 * struct. */
static void bury(struct sched *s)
{
    spoken_look();
    external_bury(spoken_run(s));
    for (uint32_t i = 0; i < spoken.n; i++) {
        struct spoken_thing *t = &spoken.things[i];
        const struct request *r = t->kind == 'r' ? t->of : NULL;
        const struct pass *p = t->kind == 'p' ? t->of : NULL;
        const struct launch *l = t->kind == 'l' ? t->of : NULL;
        bool ended =
            (r != NULL && (r->state == REQUEST_STATE_FINISHED || r->state == REQUEST_STATE_SHED)) ||
            (p != NULL && (p->state == PASS_STATE_DONE || p->state == PASS_STATE_CANCELLED)) ||
            (l != NULL && l->state == LAUNCH_STATE_ENDED);
        t->of = ended ? NULL : t->of;
    }
}

static void schedule(struct sched *s)
{
    struct rng r;
    rng_init(&r, rng_key(s->epoch, RNG_TEST, 93, 0));
    use(s);
    spoken_check_message(s, "schedule");
    spoken_check_questions(s, &r);
    wild.schedule(&spoken.lines);
    if (rng_below(&r, 3) == 0) { /* as of a sync, in the middle */
        spoken_check_message(s, "result");
    }
    bury(s);
}

/* ---- tests ---- */

static void speak_for(const struct policy_ops *like)
{
    static const char *const words[] = {"first", "middle", "last", NULL};
    static const struct policy_param params[] = {POLICY_INT("many", 3, 0, 9, ""),
                                                 POLICY_NUMBER("share", 0.25, 0, 1, ""),
                                                 POLICY_BOOL("flag", 1, ""),
                                                 POLICY_CHOICE("word", 2, words, ""),
                                                 POLICY_NUMBER("limit_s", 0, 0, 60, ""),
                                                 {0}};
    struct policy_ops *o = &spoken.external.ops;
    memset(&spoken, 0, sizeof spoken);
    spoken.external.n_params = 4;
    memcpy(spoken.external.params, params, sizeof params);
    external_hooks(&spoken.hooks);
    *o = spoken.hooks;
    o->contract = (struct policy_contract)POLICY_CONTRACT;
    o->name = like->name; /* what it draws follows from that */
    o->summary = like->summary;
    o->needs = like->needs;
    o->params = spoken.external.params;
    o->state_size_bytes = spoken.hooks.state_size_bytes + like->state_size_bytes;
    o->init = init;
    o->request_arrived = arrived;
    o->request_cancelled = cancelled;
    o->launch_done = launch_done;
    o->pass_done = pass_done;
    o->resident_ready = resident_ready;
    o->kv_moved = kv_moved;
    o->schedule = schedule;
}

static void schedule_nonsense(struct sched *s)
{
    if (!spoken.nonsense) {
        check_nonsense(s);
    }
    schedule(s);
}

START_TEST(what_is_malformed_is_told_by_what_lacks_at_both_sides_of_a_limit)
{
    uint32_t n = randomload_make(&sc, q, MAX_REQUESTS, 500);
    wild_calls = 0;
    speak_for(&wild);
    spoken.external.ops.schedule = schedule_nonsense;
    scenario_policy(&sc, &spoken.external.ops, "");
    ck_assert_msg(scenario_run(&sc, q, n, false) == 0, "%s", sc.result.message);
    ck_assert(spoken.nonsense);
    scenario_fini(&sc);
}
END_TEST

START_TEST(a_policy_does_the_same_by_lines_as_by_calls)
{
    static struct scenario_record by_calls[MAX_REQUESTS];
    static struct sim_result result;
    const struct policy_ops *const all[] = {&wild, &wild_loads, &wild_sheds};
    const struct policy_ops *like = all[_i % 3];
    uint32_t n = 0;
    for (int lines_too = 0; lines_too < 2; lines_too++) {
        n = randomload_make(&sc, q, MAX_REQUESTS, 500 + (uint64_t)_i);
        sc.llm.n_layers += 1; /* of which its graphs take two blocks */
        wild_calls = 0;
        if (lines_too > 0) {
            speak_for(like);
        }
        scenario_policy(&sc, lines_too > 0 ? &spoken.external.ops : like, "");
        ck_assert_msg(scenario_run(&sc, q, n, false) == 0, "%s", sc.result.message);
        if (lines_too == 0) {
            memcpy(by_calls, sc.records, n * sizeof sc.records[0]);
            result = sc.result;
            scenario_fini(&sc);
        }
    }
    ck_assert_mem_eq(by_calls, sc.records, n * sizeof sc.records[0]);
    for (int i = 0; i < COUNTER_COUNT; i++) {
        ck_assert_msg(result.counters[i] == sc.result.counters[i] || i == COUNTER_ORACLE_REFUSED,
                      "%s", counter_names[i]);
    }
    scenario_fini(&sc);
}
END_TEST

static const struct suite_row suite[] = {
    CASE("spoken", .timeout_s = 60),
    TEST(what_is_malformed_is_told_by_what_lacks_at_both_sides_of_a_limit),
    LOOP(a_policy_does_the_same_by_lines_as_by_calls, LOADS),
};
SUITE_MAIN("spoken", suite)
