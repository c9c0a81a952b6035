/* Totals of requests, for every kind of end. Random traces have cancellations, targets, deadlines,
 * sessions that end, and request graphs. Memory is tight, other programs take some, and some runs
 * end at a horizon. An observer keeps the end of each request. The definitions of
 * sim/metrics/metrics.def, summed over that list, must give the values of the metrics. */
#include <math.h>
#include <string.h>

#include "experiments/run/runner.h"
#include "policies/registry.h"
#include "sim/base/units.h"
#include "tests/helpers/randomrun.h"
#include "tests/helpers/suite.h"
#include "traces/traces.h"

enum { MOST = 400 };

static const char *const policies[] = {"recompute-preempt", "vllm-v1",       "agent-xpu-v2",
                                       "vllm-priority",     "program-fcfs",  "sarathi",
                                       "time-share",        "autellix-like", "agent-xpu-v1"};

enum end { NOT_YET, FINISHED, SHED };
struct noted {
    const struct request *live;
    bool here, target;
    enum end end;
    enum request_class cls;
    uint32_t preemptions, evictions, reused, running, input, generated;
    uint64_t recomputed;
    int64_t arrival_ns, start_ns, since_ns, waited_ns, end_ns, first_ns, last_ns;
    int64_t ttft_slo_ns, tbt_slo_ns, deadline_ns;
};

static struct noted all[MOST];
static int64_t first_arrival_ns, span_end_ns;
static const struct metric_list *got;
static char what[96];

/* Counts over all runs. Neither may be 0 at the end, or the test has not seen such an end. */
static uint32_t n_shed, n_broken;

/* ---- keeping the events ---- */

static void on_arrived(void *self, int64_t now_ns, const struct request *r)
{
    (void)self;
    ck_assert_uint_lt(r->id, MOST);
    first_arrival_ns = first_arrival_ns < 0 ? now_ns : first_arrival_ns;
    all[r->id] = (struct noted){.live = r,
                                .here = true,
                                .cls = r->cls,
                                .input = r->input_tokens,
                                .arrival_ns = now_ns,
                                .since_ns = now_ns,
                                .start_ns = -1,
                                .ttft_slo_ns = r->ttft_slo_ns,
                                .tbt_slo_ns = r->tbt_slo_ns,
                                .deadline_ns = r->deadline_ns};
}

static void on_service(void *self, int64_t now_ns, const struct request *r, const struct launch *l)
{
    (void)self;
    (void)l;
    all[r->id].start_ns = now_ns;
    all[r->id].waited_ns = now_ns - all[r->id].arrival_ns;
}

static void keep(struct noted *v, enum end end, int64_t now_ns)
{
    v->end = end;
    v->end_ns = now_ns;
    v->preemptions = v->live->preemptions;
    v->reused = v->live->reused_tokens;
    v->generated = v->live->generated_tokens;
    v->first_ns = v->live->first_token_ns;
    v->last_ns = v->live->last_token_ns;
    v->live = NULL;
}

static void on_finished(void *self, int64_t now_ns, const struct request *r)
{
    (void)self;
    keep(&all[r->id], FINISHED, now_ns);
    span_end_ns = now_ns;
}

static void on_shed(void *self, int64_t now_ns, const struct request *r)
{
    (void)self;
    keep(&all[r->id], SHED, now_ns);
}

static void on_lost(void *self, int64_t now_ns, const struct request *r, uint64_t tokens)
{
    (void)self;
    (void)now_ns;
    all[r->id].evictions++;
    all[r->id].recomputed += tokens;
}

static void on_started(void *self, int64_t now_ns, const struct launch *l, int64_t lead_ns)
{
    (void)self;
    (void)lead_ns;
    for (uint32_t i = 0; i < l->pass->n_segments; i++) {
        struct noted *v = &all[l->pass->segments[i].request->id];
        if (v->running++ == 0 && v->start_ns >= 0) {
            v->waited_ns += now_ns - v->since_ns;
        }
    }
}

static void on_ended(void *self, int64_t now_ns, const struct launch *l, int64_t isolated_ns,
                     int64_t lost_ns)
{
    (void)self;
    (void)isolated_ns;
    (void)lost_ns;
    bool sampled = l->pass->op == l->pass->n_ops && l->pass->n_launches == 0;
    for (uint32_t i = 0; l->outcome != LAUNCH_OUTCOME_WITHDRAWN && i < l->pass->n_segments; i++) {
        struct noted *v = &all[l->pass->segments[i].request->id];
        if (--v->running == 0 && !sampled) {
            v->since_ns = now_ns;
        }
    }
}

static void on_done(void *self, int64_t now_ns, const struct pass *p)
{
    (void)self;
    for (uint32_t i = 0; i < p->n_segments; i++) {
        all[p->segments[i].request->id].since_ns = now_ns;
    }
}

static void on_end(void *self, int64_t now_ns)
{
    (void)self;
    for (int i = 0; i < MOST; i++) { /* while their requests are still there */
        if (all[i].live != NULL) {
            keep(&all[i], NOT_YET, now_ns);
            span_end_ns = now_ns;
        }
    }
}

/* ---- the definitions ---- */

static void same(const char *group, const char *part, double want)
{
    char name[64];
    (void)snprintf(name, sizeof name, "%s.%s", group, part);
    const struct metric *m = metric_list_find(got, name);
    ck_assert_msg(m != NULL, "%s: no %s", what, name);
    ck_assert_msg((isnan(want) && isnan(m->value)) ||
                      fabs(m->value - want) <= 1e-9 * (1.0 + fabs(want)),
                  "%s: %s is %.12g, not %.12g", what, name, m->value, want);
}

static bool meets_all(const struct noted *v)
{
    double gaps = v->generated - 1.0;
    bool soon = v->ttft_slo_ns == TIME_NEVER_NS || v->first_ns - v->arrival_ns <= v->ttft_slo_ns;
    bool steady = v->tbt_slo_ns == TIME_NEVER_NS ||
                  (double)(v->last_ns - v->first_ns) <= (double)v->tbt_slo_ns * gaps;
    return v->end == FINISHED && soon && steady && v->end_ns <= v->deadline_ns;
}

/* Returns whether the request waited for longer than a minute, for any of its ends. One that waits
 * when the run ends counts too. */
static bool starved(const struct noted *v)
{
    int64_t ns = v->start_ns < 0 ? v->end_ns - v->arrival_ns : v->waited_ns;
    ns += v->start_ns >= 0 && v->end != FINISHED && v->running == 0 ? v->end_ns - v->since_ns : 0;
    return units_s_from_ns(ns) > 60.0;
}

static void totals(int g, const char *group)
{
    double arrived = 0, ends[3] = {0}, preemptions = 0, evictions = 0, recomputed = 0, cached = 0;
    double prompts = 0, targets = 0, met = 0, starving = 0;
    for (int i = 0; i < MOST; i++) {
        const struct noted *v = &all[i];
        if (!v->here || (g < 2 && (int)v->cls != g)) {
            continue;
        }
        bool target = v->ttft_slo_ns != TIME_NEVER_NS || v->tbt_slo_ns != TIME_NEVER_NS ||
                      v->deadline_ns != TIME_NEVER_NS;
        arrived++;
        ends[v->end]++;
        preemptions += v->preemptions;
        evictions += v->evictions;
        recomputed += (double)v->recomputed;
        cached += v->end == FINISHED ? v->reused : 0;
        prompts += v->end == FINISHED ? v->input : 0;
        targets += target;
        met += target && meets_all(v);
        starving += starved(v);
    }
    double span_s = span_end_ns > first_arrival_ns ? units_s_from_ns(span_end_ns - first_arrival_ns)
                                                   : (double)NAN;
    same(group, "arrived", arrived);
    same(group, "finished", ends[FINISHED]);
    same(group, "shed", ends[SHED]);
    same(group, "unfinished", ends[NOT_YET]);
    same(group, "throughput_req_per_min", ends[FINISHED] / span_s * 60.0);
    same(group, "preemptions", preemptions);
    same(group, "evictions", evictions);
    same(group, "recomputed_tokens", recomputed);
    same(group, "cached_tokens", cached);
    same(group, "cached_frac", prompts > 0.0 ? cached / prompts : (double)NAN);
    same(group, "goodput_req_per_min", targets > 0.0 ? met / span_s * 60.0 : (double)NAN);
    same(group, "slo_attainment_frac", targets > 0.0 ? met / targets : (double)NAN);
    same(group, "starved", starving);
    n_shed += (uint32_t)ends[SHED];
}

/* Counts the jobs whose foreground requests have all finished, and compares the energy per job. */
static void jobs(const struct trace *t)
{
    double complete = 0.0;
    for (uint32_t j = 0; t->graph != NULL && j < t->graph->n_jobs; j++) {
        bool whole = true, some = false, over = true;
        for (size_t i = 0; i < t->n; i++) {
            if (t->graph->job[i] == j && !t->graph->background[i]) {
                const struct noted *v = &all[t->rows[i].request_id];
                some = true;
                whole = whole && v->here && v->end == FINISHED;
                over = over && v->here && v->end != NOT_YET;
            }
        }
        complete += some && whole;
        n_broken += some && over && !whole;
    }
    const struct metric *all_j = metric_list_find(got, "energy_j");
    const struct metric *m = metric_list_find(got, "energy_j_per_job");
    ck_assert(all_j != NULL && m != NULL);
    double joules = all_j->value;
    double want = complete > 0.0 ? joules / complete : (double)NAN;
    ck_assert_msg((isnan(want) && isnan(m->value)) || fabs(m->value - want) <= 1e-9 * want,
                  "%s: %g J a job, not %g", what, m->value, want);
}

/* ---- runs ---- */

static void try_number(const char *policy, uint64_t number)
{
    static const char *const groups[] = {"reactive", "proactive", "all"};
    static struct randomrun how;
    static struct config c;
    static struct config_policy p;
    struct trace t;
    struct runner_result r;
    struct err e = ERR_INIT;
    (void)snprintf(what, sizeof what, "%s, %llu", policy, (unsigned long long)number);
    how = (struct randomrun){.soc = "core-ultra-5-125h",
                             .llm = number % 2 == 0 ? "llama-3.2-1b" : "llama-3.2-3b",
                             .seed = number,
                             .machine = number % 3 == 0,
                             .own_trace = true};
    (void)snprintf(how.policy, sizeof how.policy, "%s", policy);
    if (number % 4 == 0) {
        (void)snprintf(how.sets[how.n_sets++], sizeof how.sets[0], "sim.horizon_s=%u",
                       5 + (unsigned)number % 60);
    }
    ck_assert(randomrun_load(&how, &c, &p, &t));
    uint32_t largest = 0;
    for (size_t i = 0; i < t.n; i++) {
        uint32_t tokens = t.rows[i].input_tokens + t.rows[i].output_tokens;
        largest = tokens > largest ? tokens : largest;
    }
    c.sim.kv_capacity_tokens = largest + 64 + (uint32_t)(number % 5) * 400;
    memset(all, 0, sizeof all);
    first_arrival_ns = span_end_ns = -1;
    struct observer o = {.request_arrived = on_arrived,
                         .request_first_service = on_service,
                         .request_finished = on_finished,
                         .request_shed = on_shed,
                         .kv_lost = on_lost,
                         .launch_started = on_started,
                         .launch_ended = on_ended,
                         .pass_done = on_done,
                         .run_ended = on_end};
    struct runner_options opt = {.observer = &o};
    if (runner_run(&c, &p, &t, how.seed, &opt, &r, &e) == 0) {
        got = &r.metrics;
        for (int g = 0; g < 3; g++) {
            totals(g, groups[g]);
        }
        jobs(&t);
    }
    runner_result_fini(&r);
    trace_fini(&t);
    config_fini(&c);
    err_fini(&e);
}

START_TEST(totals_are_those_of_all_ends)
{
    for (uint32_t i = 0; i < suite_runs(12, 60); i++) {
        try_number(policies[_i], 1000 + 100 * (uint64_t)_i + i);
    }
    ck_assert(n_shed > 0 && n_broken > 0);
}
END_TEST

static const struct suite_row suite[] = {
    CASE("ends", .timeout_s = 60),
    LOOP(totals_are_those_of_all_ends, sizeof policies / sizeof policies[0]),
};
SUITE_MAIN("metrics_ends", suite)
