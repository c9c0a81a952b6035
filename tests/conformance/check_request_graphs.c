/* Random request graphs run under many policies. Every request arrives when the last of its parents
 * has ended and its gaps have passed, whichever requests are cancelled with others. Jobs end with
 * their last foreground request. The expectation is computed here from the ends that were seen. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/run/runner.h"
#include "sim/base/arena.h"
#include "sim/base/rng.h"
#include "sim/base/units.h"
#include "tests/helpers/randomgraph.h"
#include "tests/helpers/randomrun.h"
#include "tests/helpers/suite.h"
#include "traces/traces.h"

enum { MAX_ROWS = RANDOMGRAPH_ROWS, GRAPHS = 500 };

/* All fields are by request id. */
struct seen {
    int64_t arrived_ns[MAX_ROWS], ended_ns[MAX_ROWS];
    bool arrived[MAX_ROWS], ended[MAX_ROWS], shed[MAX_ROWS];
    struct request as_arrived[MAX_ROWS]; /* as a policy saw it then */
};

static void on_arrived(void *self, int64_t now_ns, const struct request *r)
{
    struct seen *s = self;
    ck_assert(!s->arrived[r->id]);
    s->arrived[r->id] = true;
    s->arrived_ns[r->id] = now_ns;
    s->as_arrived[r->id] = *r;
}

static void note_end(struct seen *s, int64_t now_ns, const struct request *r, bool shed)
{
    ck_assert(s->arrived[r->id] && !s->ended[r->id]);
    s->ended[r->id] = true;
    s->shed[r->id] = shed;
    s->ended_ns[r->id] = now_ns;
}

static void on_finished(void *self, int64_t now_ns, const struct request *r)
{
    note_end(self, now_ns, r, false);
}

static void on_shed(void *self, int64_t now_ns, const struct request *r)
{
    note_end(self, now_ns, r, true);
}

static bool is_edge(const struct trace_graph *g, uint32_t from, uint32_t to)
{
    for (uint32_t k = g->first[from]; k < g->first[from + 1]; k++) {
        if (g->edges[k].row == to) {
            return true;
        }
    }
    return false;
}

/* Counts by hand the agents that wait for request `id`. A turn of another session of the job waits
 * for it if it has it or a later turn of its session as a parent, and the turn before has ended. At
 * the very instant of its arrival that may have come first or not, so `now` decides. */
static uint32_t waiters_by_hand(const struct trace *t, const struct seen *s, const uint32_t *row_of,
                                const int64_t *end_ns, uint32_t id, bool now)
{
    const struct trace_row *own = &t->rows[row_of[id]];
    uint32_t most = 0;
    for (uint32_t turn = 0; turn < t->n; turn++) {
        const struct trace_row *x = &t->rows[turn];
        uint32_t before = UINT32_MAX;
        bool parent = false;
        for (uint32_t i = 0; i < t->n; i++) {
            const struct trace_row *y = &t->rows[i];
            before = y->next == turn ? y->request_id : before;
            parent = parent || (y->session_id == own->session_id && y->turn >= own->turn &&
                                is_edge(t->graph, i, turn));
        }
        if (parent && before != UINT32_MAX && x->session_id != own->session_id &&
            t->graph->job[turn] == t->graph->job[row_of[id]] &&
            (end_ns[before] < s->arrived_ns[id] || (now && end_ns[before] == s->arrived_ns[id]))) {
            uint32_t n = (s->arrived[before] ? s->as_arrived[before].waiters : 0) + 1;
            most = n > most ? n : most;
        }
    }
    return most;
}

/* Checks requests' places in their jobs, as the policy saw them. Returns the sum of waiters. */
static uint32_t check_places(const struct trace *t, const struct seen *s, const uint32_t *row_of,
                             const int64_t *end_ns)
{
    const struct trace_graph *g = t->graph;
    uint32_t depth[MAX_ROWS] = {0};
    uint32_t waited = 0;
    for (uint32_t id = 0; id < t->n; id++) {
        uint32_t row = row_of[id];
        const struct request *r = &s->as_arrived[id];
        for (uint32_t parent = 0; parent < id; parent++) {
            uint32_t p = row_of[parent];
            uint32_t to = depth[parent] + s->arrived[parent];
            bool longer = is_edge(g, p, row) && g->job[p] == g->job[row] && to > depth[id];
            depth[id] = longer ? to : depth[id];
        }
        if (s->arrived[id]) {
            ck_assert_uint_eq(r->job_id, g->job[row]);
            ck_assert(r->background == g->background[row]);
            ck_assert_uint_eq(r->depth, depth[id]);
            ck_assert_uint_ge(r->waiters, waiters_by_hand(t, s, row_of, end_ns, id, false));
            ck_assert_uint_le(r->waiters, waiters_by_hand(t, s, row_of, end_ns, id, true));
            waited += r->waiters;
        }
    }
    return waited;
}

/* Computes when each row was due, by id, parents first. A row whose partner had ended before never
 * comes, and its end is the instant at which it would have come. */
static uint32_t check_arrivals(const struct trace *t, const struct seen *s, uint64_t seed,
                               const char *policy)
{
    const struct trace_graph *g = t->graph;
    uint32_t row_of[MAX_ROWS];
    int64_t end_ns[MAX_ROWS];
    for (uint32_t i = 0; i < t->n; i++) {
        row_of[t->rows[i].request_id] = i;
    }
    for (uint32_t id = 0; id < t->n; id++) {
        uint32_t row = row_of[id];
        int64_t due_ns = 0;
        for (uint32_t parent = 0; parent < id; parent++) {
            uint32_t p = row_of[parent];
            for (uint32_t k = g->first[p]; k < g->first[p + 1]; k++) {
                if (g->edges[k].row == row) {
                    int64_t at_ns = end_ns[parent] + g->edges[k].gap_ns;
                    due_ns = at_ns > due_ns ? at_ns : due_ns;
                }
            }
        }
        due_ns += t->rows[row].arrival_ns;
        bool partner = g->ends_with[row] != TRACE_NO_ROW;
        uint32_t with = partner ? t->rows[g->ends_with[row]].request_id : 0;
        int64_t with_ns = partner ? end_ns[with] : INT64_MAX / 2;
        ck_assert_msg(s->arrived[id] ? with_ns >= due_ns : with_ns <= due_ns,
                      "graph %llu, %s: request %u", (unsigned long long)seed, policy, id);
        if (s->arrived[id]) {
            ck_assert_msg(s->arrived_ns[id] == due_ns,
                          "graph %llu, %s: request %u arrives at %lld and not %lld",
                          (unsigned long long)seed, policy, id, (long long)s->arrived_ns[id],
                          (long long)due_ns);
            ck_assert(s->ended[id]);
            /* A request that outlives its partner was on a device, and leaves when it may. */
            ck_assert(s->shed[id] ? partner && s->ended_ns[id] >= with_ns
                                  : s->ended_ns[id] <= with_ns + 10 * NS_PER_S);
        }
        end_ns[id] = s->arrived[id] ? s->ended_ns[id] : due_ns;
    }
    return check_places(t, s, row_of, end_ns);
}

/* Checks the sum and the number of the completion times of jobs, and the energy of each. A job
 * counts from its first arrival on, also if that was in the warm-up: then it has energy and no
 * time.
 */
static void check_jobs(const struct trace *t, const struct seen *s, const struct metric_list *m,
                       int64_t warmup_ns)
{
    double sum = 0.0;
    double n = 0.0;
    double timed = 0.0;
    for (uint32_t job = 0; job < t->graph->n_jobs; job++) {
        int64_t first_ns = INT64_MAX;
        int64_t last_ns = 0;
        bool whole = true;
        bool any = false;
        for (uint32_t i = 0; i < t->n; i++) {
            uint32_t id = t->rows[i].request_id;
            if (t->graph->job[i] != job) {
                continue;
            }
            if (s->arrived[id] && s->arrived_ns[id] < first_ns) {
                first_ns = s->arrived_ns[id];
            }
            if (!t->graph->background[i]) {
                any = true;
                whole = whole && s->arrived[id] && !s->shed[id];
                last_ns = s->ended_ns[id] > last_ns ? s->ended_ns[id] : last_ns;
            }
        }
        if (whole && any) {
            sum += first_ns < warmup_ns ? 0.0 : units_s_from_ns(last_ns - first_ns);
            timed += first_ns < warmup_ns ? 0.0 : 1.0;
            n += 1.0;
        }
    }
    ck_assert_double_eq(metric_list_find(m, "all.job_s.n")->value, timed);
    double each_j = metric_list_find(m, "energy_j_per_job")->value;
    double all_j = metric_list_find(m, "energy_j")->value;
    ck_assert(n > 0.0 ? fabs(n * each_j - all_j) <= 1e-9 * all_j : isnan(each_j));
    each_j = metric_list_find(m, "energy_active_j_per_job")->value;
    all_j = metric_list_find(m, "energy_active_j")->value;
    ck_assert(n > 0.0 ? fabs(n * each_j - all_j) <= 1e-9 * all_j : isnan(each_j));
    if (timed > 0.0) {
        ck_assert_double_eq_tol(metric_list_find(m, "all.job_s.mean")->value, sum / timed, 1e-9);
    }
}

/* Runs the policy once. With `told` all must happen as computed here. */
static uint32_t run(uint64_t seed, const char *policy, const struct trace *t, bool fast, bool told,
                    struct seen *s)
{
    static struct randomrun how;
    static struct config c;
    static struct config_policy p;
    struct trace copy;
    struct runner_result r;
    struct err e = ERR_INIT;
    how = (struct randomrun){.soc = "core-ultra-7-155h", .llm = "llama-3.2-1b", .seed = seed};
    (void)snprintf(how.policy, sizeof how.policy, "%s", policy);
    (void)snprintf(how.workload, sizeof how.workload, "w1:n=1");
    how.n_sets = fast ? 0 : 1;
    (void)snprintf(how.sets[0], sizeof how.sets[0], "sim.collapse=false");
    ck_assert(randomrun_load(&how, &c, &p, &copy));
    trace_fini(&copy);
    *s = (struct seen){.arrived_ns = {0}};
    struct observer o = {.self = s,
                         .request_arrived = on_arrived,
                         .request_finished = on_finished,
                         .request_shed = on_shed};
    struct runner_options opt = {.observer = &o, .warmup_s = seed % 3 == 0 ? 0.8 : 0.0};
    ck_assert_int_eq(runner_run(&c, &p, t, seed, &opt, &r, &e), 0);
    ck_assert_msg(r.sim.status == 0, "graph %llu, %s: %s", (unsigned long long)seed, policy,
                  r.sim.message);
    uint32_t waited = told ? check_arrivals(t, s, seed, policy) : 0;
    if (told) {
        check_jobs(t, s, &r.metrics, units_ns_from_s(opt.warmup_s));
    }
    runner_result_fini(&r);
    config_fini(&c);
    err_fini(&e);
    return waited;
}

START_TEST(requests_of_graphs_arrive_when_the_last_parent_has_ended)
{
    static const char *const policies[] = {
        "fcfs", "edf",          "openvino-cb", "agent-xpu-v1", "agent-xpu-v2", "vllm-v1",
        "orca", "hetero-split", "pd-static",   "llama-cpp",    "mlfq",         "time-share"};
    const uint32_t n = sizeof policies / sizeof policies[0];
    uint32_t joins = 0;
    uint32_t shed = 0;
    uint32_t never = 0;
    uint32_t waited = 0;
    for (uint64_t seed = 1; seed <= GRAPHS; seed++) {
        struct trace t;
        struct seen fast;
        struct seen slow;
        randomgraph_make(seed, &t);
        waited += run(seed, policies[seed % n], &t, true, true, &fast);
        (void)run(seed, policies[seed % n], &t, false, true, &slow);
        for (uint32_t i = 0; i < t.n; i++) {
            ck_assert(fast.arrived[i] == slow.arrived[i] && fast.ended_ns[i] == slow.ended_ns[i]);
            joins += t.graph->n_parents[i] > 1;
            shed += fast.shed[i];
            never += !fast.arrived[i];
        }
        trace_fini(&t);
    }
    printf("request graphs: %d, %u joins, %u requests cancelled, %u never came, %u agents waited\n",
           GRAPHS, joins, shed, never, waited);
    (void)fflush(stdout);
    ck_assert(joins > 500 && shed > 50 && never > 50 && waited > 100);
}
END_TEST

/* If a session's last instant is one that had a request, no request arrives at it any more. A
 * nanosecond later, the request comes when it came. */
START_TEST(nobody_arrives_at_the_last_instant_of_a_session)
{
    uint32_t tried = 0;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        struct trace t;
        struct seen before, after;
        randomgraph_make(seed, &t);
        (void)run(seed, "fcfs", &t, true, true, &before);
        free(t.extras);
        t.extras = xcalloc(t.n, sizeof *t.extras);
        for (uint32_t i = 0; i < t.n; i++) {
            t.extras[i] = trace_extra_usual(&t.rows[i]);
        }
        for (uint32_t i = 0; i < t.n; i++) {
            uint32_t id = t.rows[i].request_id;
            if (t.graph->n_parents[i] > 0 && before.arrived[id]) {
                tried++;
                t.extras[i].until_ns = before.arrived_ns[id];
                (void)run(seed, "fcfs", &t, true, false, &after);
                ck_assert(!after.arrived[id]);
                t.extras[i].until_ns++;
                (void)run(seed, "fcfs", &t, true, false, &after);
                ck_assert(after.arrived[id] && after.arrived_ns[id] == before.arrived_ns[id]);
                break;
            }
        }
        trace_fini(&t);
    }
    ck_assert_uint_gt(tried, 40);
}
END_TEST

/* Jobs of a client: each row of a job waits for some row of it before, and the first waits for one
 * of the jobs before. */
static uint32_t jobs_in_turn(uint64_t seed, struct trace *t)
{
    struct rng r;
    struct trace_builder b;
    struct err e = ERR_INIT;
    uint32_t first = 0; /* of the job */
    uint32_t jobs = 1;
    rng_init(&r, rng_key(seed, RNG_TEST, 3, 0));
    trace_builder_init(&b);
    for (uint32_t i = 0; i < 12; i++) {
        struct trace_row row = {.request_id = i,
                                .session_id = i,
                                .input_tokens = 20,
                                .output_tokens = 1 + (uint32_t)rng_below(&r, 3),
                                .max_output_tokens = 4,
                                .next = TRACE_NO_ROW};
        struct trace_node node = trace_node_none();
        struct trace_parent parent = {0, 0};
        node.starts_job = i > 0 && rng_below(&r, 3) == 0;
        if (node.starts_job) {
            parent.request_id = rng_below(&r, i);
            first = i;
            jobs++;
        } else if (i > 0) {
            parent.request_id = first + rng_below(&r, i - first);
        }
        node.parents = i > 0 ? &parent : NULL;
        node.n_parents = i > 0 ? 1 : 0;
        trace_builder_add(&b, &row, NULL);
        trace_builder_node(&b, &node);
    }
    ck_assert_int_eq(trace_build(&b, false, "jobs", t, &e), 0);
    trace_builder_fini(&b);
    return jobs;
}

/* Levels are counted from the begin of a request's own job. */
START_TEST(levels_begin_anew_with_each_job)
{
    for (uint64_t seed = 1; seed <= 40; seed++) {
        struct trace t;
        struct seen s;
        uint32_t jobs = jobs_in_turn(seed, &t);
        ck_assert_uint_eq(t.graph->n_jobs, jobs);
        (void)run(seed, "fcfs", &t, true, true, &s);
        for (uint32_t i = 0; i < t.n; i++) {
            ck_assert(!t.graph->starts_job[i] || s.as_arrived[t.rows[i].request_id].depth == 0);
        }
        trace_fini(&t);
    }
}
END_TEST

static const struct suite_row suite[] = {
    CASE("request graphs", .timeout_s = 120),
    TEST(requests_of_graphs_arrive_when_the_last_parent_has_ended),
    TEST(nobody_arrives_at_the_last_instant_of_a_session),
    TEST(levels_begin_anew_with_each_job),
};
SUITE_MAIN("request_graphs", suite)
