/* Metrics of agents and their users, computed by a second implementation. An observer keeps
 * arrivals, tokens and ends of random runs. Turns, cached shares and shares below limits follow
 * from those lists by plain loops. The quality of experience follows from a reader who is simulated
 * in small steps of time. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/conformance/randomload.h"
#include "policies/registry.h"
#include "sim/metrics/metrics.h"
#include "tests/helpers/suite.h"

enum { MOST = 40, LOADS = 10, TOKENS = 128, STEPS = 200000 };

static const char *const policies[] = {"vllm-v1", "agent-xpu-v2", "hhpf", "recompute-preempt"};

static struct noted {
    bool here;
    uint32_t cls, session, turn, input, reused, n;
    int64_t arrival_ns, finish_ns, token_ns[TOKENS];
} all[MOST];

static struct scenario sc;
static struct scenario_request q[MOST];
static const char *what;

static void on_arrived(void *self, int64_t now_ns, const struct request *r)
{
    (void)self;
    all[r->id] = (struct noted){.here = true,
                                .cls = r->cls,
                                .session = r->session_id,
                                .turn = r->turn,
                                .input = r->input_tokens,
                                .arrival_ns = now_ns};
}

static void on_tokens(void *self, int64_t now_ns, const struct pass *p)
{
    (void)self;
    for (uint32_t i = 0; i < p->n_segments; i++) {
        struct noted *v = &all[p->segments[i].request->id];
        for (uint32_t k = 0; k < p->segments[i].emitted_tokens; k++) {
            v->token_ns[v->n++] = now_ns;
        }
    }
}

static void on_finished(void *self, int64_t now_ns, const struct request *r)
{
    (void)self;
    all[r->id].finish_ns = now_ns;
    all[r->id].reused = r->reused_tokens;
}

/* Returns the next turn of the session, or NULL. */
static const struct noted *next_turn(const struct noted *v)
{
    for (int i = 0; i < MOST; i++) {
        if (all[i].here && all[i].session == v->session && all[i].turn == v->turn + 1) {
            return &all[i];
        }
    }
    return NULL;
}

/* Follows the reader, and one that is never late, in small steps until all is read. Both read
 * continuously: the one reads tokens that are out, the other tokens that are expected to be.
 * Returns the area below the first curve over that below the second. */
static double reader(const struct noted *v, struct metrics_reader who)
{
    double wait_s = (double)(v->token_ns[v->n - 1] - v->arrival_ns) / 1e9 + who.ttft_s;
    double step_s = (wait_s + 2.0 * v->n / who.tokens_per_s) / STEPS;
    double read = 0.0, area = 0.0, wanted = 0.0;
    uint32_t out = 0;
    for (double t = 0.0; read < v->n - 1e-9; t += step_s) {
        while (out < v->n && (double)(v->token_ns[out] - v->arrival_ns) / 1e9 <= t) {
            out++;
        }
        double expected = fmin(fmax(0.0, (t - who.ttft_s) * who.tokens_per_s), v->n);
        if (t >= who.ttft_s) {
            read = fmin(read + step_s * who.tokens_per_s, out);
        }
        area += read;
        wanted += expected;
    }
    return area / wanted;
}

static double metric(const struct metric_list *l, const char *name, int group, const char *rest)
{
    static const char *const groups[] = {"reactive", "proactive", "all"};
    char full[128];
    (void)snprintf(full, sizeof full, "%s.%s%s", groups[group], name, rest);
    const struct metric *m = metric_list_find(l, full);
    ck_assert_msg(m != NULL, "no metric %s", full);
    return m->value;
}

static void same(double got, double want, double within, const char *name)
{
    ck_assert_msg((isnan(got) && isnan(want)) || fabs(got - want) <= within,
                  "%s: %s is %.12g, not %.12g", what, name, got, want);
}

static void compare(const struct metric_list *l, const struct metrics_options *opt, int g)
{
    double turns = 0, turn_s = 0, quick_turns = 0, prompt = 0, cached = 0, qoe = 0, n = 0,
           early = 0;
    double limit_s = opt->asked.limit[0];
    for (int i = 0; i < MOST; i++) {
        const struct noted *v = &all[i];
        if (!v->here || (g < 2 && v->cls != (uint32_t)g)) {
            continue;
        }
        prompt += v->input;
        cached += v->reused;
        if (v->arrival_ns < opt->warmup_ns) {
            continue;
        }
        const struct noted *next = next_turn(v);
        double s = (double)((next != NULL ? next->arrival_ns : v->finish_ns) - v->arrival_ns) / 1e9;
        turns++;
        turn_s += s;
        quick_turns += s <= limit_s;
        early += (double)(v->token_ns[0] - v->arrival_ns) / 1e9 <= limit_s;
        qoe += reader(v, opt->asked.reader);
        n++;
    }
    double none = n > 0 ? 0.0 : (double)NAN;
    char below[32];
    (void)snprintf(below, sizeof below, ".below:%g", limit_s);
    same(metric(l, "turn_s", g, ".n"), turns, 0.0, "turns");
    same(metric(l, "turn_s", g, ".mean"), none + turn_s / fmax(n, 1), 1e-9, "turn_s");
    same(metric(l, "turn_s", g, below), none + quick_turns / fmax(n, 1), 1e-12, "quick turns");
    same(metric(l, "ttft_s", g, below), none + early / fmax(n, 1), 1e-12, "ttft_s below");
    same(metric(l, "cached_frac", g, ""), prompt > 0 ? cached / prompt : (double)NAN, 1e-12,
         "cached_frac");
    same(metric(l, "qoe", g, ".n"), n, 0.0, "readers");
    same(metric(l, "qoe", g, ".mean"), none + qoe / fmax(n, 1), 2e-3, "qoe");
}

START_TEST(what_agents_see_is_what_its_definitions_give)
{
    uint32_t later_turns = 0;
    uint32_t reused = 0;
    for (uint64_t load = 1; load <= LOADS; load++) {
        char text[64];
        (void)snprintf(text, sizeof text, "%s, load %llu", policies[_i], (unsigned long long)load);
        what = text;
        uint32_t n = randomload_make(&sc, q, MOST, load);
        scenario_policy(&sc, policy_find(policies[_i]), "");
        memset(all, 0, sizeof all);
        struct metrics_options opt = metrics_options_default();
        opt.warmup_ns = load % 3 == 0 ? MS(100) : 0;
        opt.trace = load % 2 == 0 ? &sc.trace : NULL; /* it marks last turns, or nothing does */
        opt.asked = (struct metrics_asked){
            .limit = {load % 2 == 0 ? 0.05 : 1.0}, .n_limits = 1, .reader = {0.02, 300.0}};
        scenario_trace(&sc, q, n);
        struct metrics *m = metrics_new(&opt, &sc.machine);
        struct observer o = {
            .request_arrived = on_arrived, .tokens = on_tokens, .request_finished = on_finished};
        sc.setup.observers[sc.setup.n_observers++] = &o;
        sc.setup.observers[sc.setup.n_observers++] = metrics_observer(m);
        ck_assert_msg(scenario_again(&sc) == 0, "%s: %s", what, sc.result.message);
        struct metric_list got = {0};
        metrics_collect(m, &got);
        for (int g = 0; g < 3; g++) {
            compare(&got, &opt, g);
        }
        for (int i = 0; i < MOST; i++) {
            later_turns += all[i].turn > 0;
            reused += all[i].reused;
        }
        metric_list_fini(&got);
        metrics_free(m);
        scenario_fini(&sc);
    }
    ck_assert_uint_gt(later_turns, 20);
    ck_assert_uint_gt(reused, 0);
}
END_TEST

static const struct suite_row suite[] = {
    LOOP(what_agents_see_is_what_its_definitions_give, sizeof policies / sizeof policies[0]),
};
SUITE_MAIN("metrics_agents", suite)
