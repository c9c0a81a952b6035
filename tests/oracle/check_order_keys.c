/* The orders by brute force. On random loads every iteration must take exactly the requests that
 * the order's definition (docs/clauses.md E.5 to E.16) puts first. At every iteration the keys of
 * all waiting requests are computed again, from what an observer sees. There is no heap here, no
 * account that is kept up to date, and nothing of the policies' own code.
 *
 * Every other load has little memory. Then the last request in the fixed order (class, arrival)
 * gives way to the first of the iteration. Where none can, the iteration shrinks. Where nothing is
 * left of it, the first request of that order runs alone.
 *
 * On the toy, a layer takes 0.03 n + 1 ms for a prompt of n rows and 2 ms for one sequence's
 * decode, and the head takes 1 ms. Instants are whole us, so that no key is rounded away next to
 * the step between classes. */
#include <math.h>
#include <string.h>

#include "policies/registry.h"
#include "sim/base/rng.h"
#include "tests/helpers/rules.h"
#include "tests/helpers/suite.h"
#include "traces/traces.h"

enum { N = 32, LAYERS = 2, CLIENTS = 4, IDS = 2048, LOADS = 40, BLOCK = 16 };

static const struct {
    const char *name, *params;
} orders[] = {
    {"sjf-input", ""},
    {"srpt", "limit=0.8"},
    {"edf", "ttft_slo_s=0.5,tbt_slo_s=0.05,proactive_s=1"},
    {"llf", "ttft_slo_s=0.5,tbt_slo_s=0.05,proactive_s=1"},
    {"mlfq", "q0_ms=5,starve_s=0.2,promote_every=7"},
    {"prema", "reactive_priority=3,expected_output=12"},
    {"vtc", "w_in=1,w_out=2,reactive_weight=4"},
    {"autellix-like", "mode=plas,t0_s=0.02,beta=4"},
    {"autellix-like", "mode=atlas,t0_s=0.02,beta=4"},
    {"program-fcfs", ""},
};

/* A request as the test follows it. */
struct seen {
    const struct request *r; /* NULL: not here */
    int64_t since_ns;        /* start of its wait; -1: it is in a pass */
    double idle_ns;          /* its waits before that */
    double isolated_ns;      /* prema: its isolated time on arrival */
    double served_s, at_level_s;
    double inherited_service_s, inherited_wait_s; /* autellix */
    int64_t counts_from_ns;                       /* its own part of them */
    double served_before_s;                       /* of served_s, until then */
    double place; /* in the level: the latest to its front has the smallest */
    int level;
    uint64_t admission; /* vtc: 0 while it is queued */
    bool charged;
    uint32_t kv; /* tokens */
    bool decodes;
};

static struct world {
    const char *order;
    bool atlas;
    uint32_t max_batch, budget;
    enum iter_rule { RT_FIRST, BLIND, RT_ALONE } rule;
    struct seen v[N];
    double service[IDS], wait[IDS]; /* of a program's finished calls, s; vtc: counters */
    int64_t first_ns[IDS];          /* of a session; 0: none yet */
    double returns;
    uint64_t admissions, iterations;
    int64_t formed_ns;
    uint64_t blocks; /* of KV; 0: enough */
    uint64_t states; /* blocks that a request has as long as it has KV */
    struct {
        struct seen *who[N];
        uint32_t rows[N], n, tokens;
    } batch;
} w;

static struct scenario_request q[N];
static uint64_t evictions, shrunk;
static uint64_t passed_over; /* choices of another request than the first in order of arrival */

static bool is(const char *order)
{
    return strcmp(w.order, order) == 0;
}

/* ---- work left, by the toy's times ---- */

static uint32_t left_rows(const struct seen *v)
{
    return v->decodes ? 0 : v->r->input_tokens + v->r->generated_tokens - v->kv;
}

static double prefill_ns(const struct seen *v)
{
    uint32_t n = left_rows(v);
    return n == 0 ? 0.0 : LAYERS * (0.03e6 * n + 1e6) + 1e6;
}

static double decode_ns(double tokens)
{
    return tokens * (LAYERS * 2e6 + 1e6);
}

/* ---- the request that each order puts first ---- */

static bool came_before(const struct request *x, const struct request *y)
{
    return x->arrival_ns != y->arrival_ns ? x->arrival_ns < y->arrival_ns : x->id < y->id;
}

static double deadline_us(const struct request *r)
{
    if (r->deadline_ns != TIME_NEVER_NS) {
        return (double)r->deadline_ns / 1e3;
    }
    if (r->cls == REQUEST_CLASS_PROACTIVE) {
        return (double)r->arrival_ns / 1e3 + 1e6;
    }
    bool first = r->generated_tokens == 0;
    int64_t slo_ns = first ? r->ttft_slo_ns : r->tbt_slo_ns;
    double slo_us = slo_ns != TIME_NEVER_NS ? (double)slo_ns / 1e3 : first ? 5e5 : 5e4;
    return (double)(first ? r->arrival_ns : r->last_token_ns) / 1e3 + slo_us;
}

static double srpt_key(const struct seen *v)
{
    const struct request *r = v->r;
    double output = q[r->id].output_tokens;
    if (r->generated_tokens > 0 && r->generated_tokens >= 0.8 * output) {
        return 0.0; /* it stays */
    }
    bool prompt = left_rows(v) > 0; /* the end of a prompt gives a token */
    return prefill_ns(v) + decode_ns(output - r->generated_tokens - (prompt ? 1.0 : 0.0));
}

static double prema_remaining_ns(const struct seen *v)
{
    return prefill_ns(v) + decode_ns(fmax(12.0 - v->r->generated_tokens, 1.0));
}

/* Returns the largest of the thresholds 1, 3 and 9 that the request's tokens have reached. It
 * has the tokens of its priority at arrival, and as many again for each isolated time that it
 * waited. */
static double prema_reached(const struct seen *v, int64_t now_ns)
{
    double idle_ns = v->idle_ns + (v->since_ns < 0 ? 0.0 : (double)(now_ns - v->since_ns));
    double priority = v->r->cls == REQUEST_CLASS_REACTIVE ? 3.0 : 1.0;
    double token = priority * (1.0 + idle_ns / v->isolated_ns);
    return token >= 9.0 ? 9.0 : token >= 3.0 ? 3.0 : 1.0;
}

static double prema_key(const struct seen *v, int64_t now_ns)
{
    double most = 0.0;
    for (int i = 0; i < N; i++) {
        most = w.v[i].r != NULL ? fmax(most, prema_reached(&w.v[i], now_ns)) : most;
    }
    return prema_remaining_ns(v) + (prema_reached(v, now_ns) < most ? 1e14 : 0.0);
}

/* Requests of one client and class run one by one, in order of arrival. */
static double vtc_key(const struct seen *v)
{
    for (int i = 0; i < N; i++) {
        const struct request *x = w.v[i].r;
        if (x != NULL && w.v[i].admission == 0 && x->client_id == v->r->client_id &&
            x->cls == v->r->cls && came_before(x, v->r)) {
            return 1e14;
        }
    }
    return w.service[v->r->client_id];
}

static double key_of(const struct seen *v, int64_t now_ns)
{
    const struct request *r = v->r;
    if (is("sjf-input")) {
        return r->input_tokens;
    }
    if (is("edf") || is("llf")) {
        double work_ns = v->decodes ? decode_ns(1.0) : prefill_ns(v);
        return deadline_us(r) - (is("llf") ? work_ns / 1e3 : 0.0);
    }
    return is("srpt")           ? srpt_key(v)
           : is("prema")        ? prema_key(v, now_ns)
           : is("vtc")          ? vtc_key(v)
           : is("program-fcfs") ? (double)w.first_ns[r->session_id] / 1e3
           : is("mlfq")         ? v->level * 1e12 + v->place
                                : v->level;
}

static bool goes_before(const struct seen *x, const struct seen *y, int64_t now_ns)
{
    bool classes = w.rule != BLIND && x->r->cls != y->r->cls;
    if (w.rule != RT_ALONE || !classes) {
        if (x->admission != 0 || y->admission != 0) { /* vtc: running requests stay */
            return y->admission == 0 || (x->admission != 0 && x->admission < y->admission);
        }
    }
    if (classes) {
        return x->r->cls == REQUEST_CLASS_REACTIVE;
    }
    double kx = key_of(x, now_ns);
    double ky = key_of(y, now_ns);
    return kx != ky ? kx < ky : came_before(x->r, y->r);
}

/* ---- requests that wait ---- */

static bool queued(uint32_t client)
{
    bool any = false;
    for (int i = 0; i < N; i++) {
        any = any || (w.v[i].r != NULL && w.v[i].admission == 0 && w.v[i].r->client_id == client);
    }
    return any;
}

/* A client without queued requests is lifted to the smallest counter among the clients that have
 * some. */
static void lift(uint32_t client)
{
    double least = HUGE_VAL;
    for (uint32_t c = 0; c < CLIENTS; c++) {
        least = queued(c) ? fmin(least, w.service[c]) : least;
    }
    if (!queued(client) && isfinite(least)) {
        w.service[client] = fmax(w.service[client], least);
    }
}

static void on_arrived(void *self, int64_t now_ns, const struct request *r)
{
    (void)self;
    struct seen *v = &w.v[r->id];
    if (is("vtc")) {
        lift(r->client_id);
    }
    *v = (struct seen){.r = r, .since_ns = now_ns, .kv = r->kv_tokens};
    v->isolated_ns = prema_remaining_ns(v);
    if (w.first_ns[r->session_id] == 0) {
        w.first_ns[r->session_id] = now_ns;
    }
    if (is("mlfq")) { /* the level whose quantum covers its prefill */
        while (ldexp(5e6, v->level) < prefill_ns(v)) {
            v->level++;
        }
    } else if (is("autellix-like")) { /* levels from 0, 2, 4, 8, .. 128 t0 of service */
        v->inherited_service_s = w.service[r->client_id];
        v->inherited_wait_s = w.wait[r->client_id];
        v->counts_from_ns = now_ns;
        while (v->level < 7 && v->inherited_service_s >= ldexp(0.02, v->level + 1)) {
            v->level++;
        }
    }
}

/* Every seven iterations, requests that waited for 0.2 s return to the front of the top level, the
 * longest wait first. */
static void promote_starved(int64_t now_ns)
{
    while (w.iterations >= 7) {
        struct seen *longest = NULL;
        for (int i = 0; i < N; i++) {
            struct seen *v = &w.v[i];
            bool due = v->r != NULL && v->level > 0 && now_ns - v->since_ns >= 200 * NS_PER_MS;
            if (due && (longest == NULL || v->since_ns < longest->since_ns ||
                        (v->since_ns == longest->since_ns && came_before(v->r, longest->r)))) {
                longest = v;
            }
        }
        if (longest == NULL) {
            w.iterations = 0;
            return;
        }
        longest->level = 0;
        longest->at_level_s = 0.0;
        longest->place = -++w.returns;
    }
}

/* A request whose program and call waited four times as long as they were served goes to the top.
 * Its own part of both begins again there. */
static void promote_waited(int64_t now_ns)
{
    for (int i = 0; i < N; i++) {
        struct seen *v = &w.v[i];
        double got_s = v->served_s - v->served_before_s;
        double wait_s = 4.0 * (v->inherited_service_s + got_s) - v->inherited_wait_s;
        double due_ns = (double)v->counts_from_ns + 1e9 * (got_s + wait_s);
        if (v->r != NULL && v->level > 0 && due_ns <= (double)now_ns + 0.001) {
            v->level = 0;
            v->at_level_s = 0.0;
            int64_t due = (int64_t)ceil(due_ns - 0.001);
            v->counts_from_ns = due > v->counts_from_ns ? due : v->counts_from_ns;
            v->served_before_s = v->served_s;
        }
    }
}

/* ---- an iteration ---- */

static bool chosen(const struct seen *v)
{
    bool any = false;
    for (uint32_t i = 0; i < w.batch.n; i++) {
        any = any || w.batch.who[i] == v;
    }
    return any;
}

static void choose(struct seen *v)
{
    uint32_t left = left_rows(v);
    uint32_t room = w.budget - w.batch.tokens;
    uint32_t rows = left == 0 ? 1 : left < room ? left : room;
    w.batch.who[w.batch.n] = v;
    w.batch.rows[w.batch.n++] = rows;
    w.batch.tokens += rows;
    if (is("vtc") && v->admission == 0) {
        double weight = v->r->cls == REQUEST_CLASS_REACTIVE ? 4.0 : 1.0;
        v->admission = ++w.admissions;
        w.service[v->r->client_id] += v->charged ? 0.0 : left / weight;
        v->charged = true;
    }
}

static uint64_t blocks(uint32_t tokens)
{
    return (tokens + BLOCK - 1) / BLOCK + (tokens > 0 ? w.states : 0);
}

static uint64_t free_blocks(void)
{
    uint64_t n = w.blocks == 0 ? 1000000 : w.blocks;
    for (int i = 0; i < N; i++) {
        n -= w.v[i].r != NULL ? blocks(w.v[i].kv) : 0;
    }
    return n;
}

/* Takes requests in order until the batch or the budget is full. No request begins whose prompt
 * would not fit next to those of the others. */
static void take_in_order(int64_t now_ns)
{
    uint64_t committed = 0;
    while (w.batch.n < w.max_batch && w.batch.tokens < w.budget) {
        struct seen *first = NULL;
        for (int i = 0; i < N; i++) {
            if (w.v[i].r != NULL && !chosen(&w.v[i]) &&
                (first == NULL || goes_before(&w.v[i], first, now_ns))) {
                passed_over += first != NULL;
                first = &w.v[i];
            }
        }
        if (first == NULL || (w.batch.n > 0 && w.rule == RT_ALONE &&
                              w.batch.who[0]->r->cls == REQUEST_CLASS_REACTIVE &&
                              first->r->cls == REQUEST_CLASS_PROACTIVE)) {
            return;
        }
        uint32_t left = left_rows(first);
        committed += blocks(first->kv + (left > 0 ? left : 1)) - blocks(first->kv);
        if (left > 0 && first->kv == 0 && w.batch.n > 0 && committed > free_blocks()) {
            return;
        }
        choose(first);
    }
}

static bool keeps_before(const struct seen *x, const struct seen *y)
{
    bool by_class = w.rule != BLIND && x->r->cls != y->r->cls;
    return by_class ? x->r->cls == REQUEST_CLASS_REACTIVE : came_before(x->r, y->r);
}

/* Returns the last request that holds KV outside the iteration, or NULL where it comes before the
 * iteration's first. */
static struct seen *victim(void)
{
    const struct seen *first = w.batch.who[0];
    struct seen *last = NULL;
    for (uint32_t i = 1; i < w.batch.n; i++) {
        first = keeps_before(w.batch.who[i], first) ? w.batch.who[i] : first;
    }
    for (int i = 0; i < N; i++) {
        struct seen *v = &w.v[i];
        if (v->r != NULL && v->kv > 0 && !chosen(v) && (last == NULL || keeps_before(last, v))) {
            last = v;
        }
    }
    return last != NULL && keeps_before(first, last) ? last : NULL;
}

static bool fits(void)
{
    uint64_t need = 0;
    for (uint32_t i = 0; i < w.batch.n; i++) {
        const struct seen *v = w.batch.who[i];
        need += blocks(v->kv + w.batch.rows[i]) - blocks(v->kv);
    }
    return need <= free_blocks();
}

static void make_room(void)
{
    struct seen *v = victim();
    if (v != NULL) {
        v->kv = 0;
        v->decodes = false;
        v->admission = 0;
        evictions++;
        return;
    }
    v = w.batch.who[--w.batch.n];
    v->admission = v->kv == 0 ? 0 : v->admission;
    shrunk++;
}

static void compose(int64_t now_ns)
{
    w.batch.n = w.batch.tokens = 0;
    take_in_order(now_ns);
    while (w.batch.n > 0 && !fits()) {
        make_room();
    }
    if (w.batch.n > 0) {
        return;
    }
    struct seen *first = NULL;
    for (int i = 0; i < N; i++) {
        struct seen *v = &w.v[i];
        first = v->r != NULL && (first == NULL || keeps_before(v, first)) ? v : first;
    }
    w.batch.tokens = 0;
    choose(first);
    while (!fits()) {
        make_room();
    }
}

static void on_formed(void *self, int64_t now_ns, const struct pass *p)
{
    (void)self;
    if (is("mlfq")) {
        promote_starved(now_ns);
    } else if (is("autellix-like")) {
        promote_waited(now_ns);
    }
    compose(now_ns);
    ck_assert_msg(p->n_segments == w.batch.n, "%s: pass %u has %u members, not %u", w.order, p->id,
                  p->n_segments, w.batch.n);
    for (uint32_t i = 0; i < w.batch.n; i++) {
        const struct segment *g = &p->segments[i];
        struct seen *v = w.batch.who[i];
        ck_assert_msg(g->request == v->r && g->n_tokens == w.batch.rows[i],
                      "%s: pass %u has %u rows of request %u at %u, not %u of %u", w.order, p->id,
                      g->n_tokens, g->request->id, i, w.batch.rows[i], v->r->id);
        v->idle_ns += (double)(now_ns - v->since_ns);
        v->since_ns = -1;
    }
    for (int i = 0; i < N; i++) {
        ck_assert_msg(w.v[i].r == NULL || w.v[i].r->kv_tokens == w.v[i].kv,
                      "%s: pass %u: request %d holds %u tokens, not %u", w.order, p->id, i,
                      w.v[i].r->kv_tokens, w.v[i].kv);
    }
    w.formed_ns = now_ns;
}

static void served(struct seen *v, const struct segment *g, int64_t now_ns)
{
    double t_s = (double)(now_ns - w.formed_ns) / 1e9;
    v->since_ns = now_ns;
    v->served_s += t_s;
    v->at_level_s += t_s;
    double quantum_s = is("mlfq") ? ldexp(0.005, v->level) : ldexp(0.02, v->level);
    if (v->at_level_s > quantum_s + 1e-12 && (is("mlfq") || v->level < 7)) {
        v->level++;
        v->at_level_s = 0.0;
    }
    v->place = -++w.returns;
    v->decodes = v->decodes || g->emitted_tokens > 0;
    v->kv += g->n_tokens;
    if (is("vtc")) {
        double weight = v->r->cls == REQUEST_CLASS_REACTIVE ? 4.0 : 1.0;
        w.service[v->r->client_id] += 2.0 * g->emitted_tokens / weight;
    }
}

static void on_done(void *self, int64_t now_ns, const struct pass *p)
{
    (void)self;
    w.iterations++;
    for (uint32_t i = 0; i < p->n_segments; i++) {
        struct seen *v = &w.v[p->segments[i].request->id];
        served(v, &p->segments[i], now_ns);
        if (v->r->state == REQUEST_STATE_FINISHED) {
            if (is("autellix-like")) {
                double *service = &w.service[v->r->client_id];
                double path_s = v->inherited_service_s + v->served_s;
                *service = w.atlas ? fmax(*service, path_s) : *service + v->served_s;
                w.wait[v->r->client_id] += (double)(now_ns - v->r->arrival_ns) / 1e9 - v->served_s;
            }
            v->r = NULL;
        }
    }
}

/* ---- random loads ---- */

static uint32_t make_load(struct rng *r)
{
    uint32_t n = 12 + rng_below(r, N - 12);
    uint32_t n_first = n - n / 4;
    double t_us = 1.0;
    for (uint32_t i = 0; i < n_first; i++) {
        t_us += rng_below(r, 3) == 0 ? 0.0 : 1.0 + rng_below(r, 60000);
        q[i] = (struct scenario_request){rng_below(r, 3) == 0 ? RT : BE,
                                         t_us * 1e-6,
                                         1 + rng_below(r, rng_below(r, 3) == 0 ? 400 : 60),
                                         1 + rng_below(r, 25),
                                         100 + i,
                                         0};
    }
    for (uint32_t i = n_first; i < n; i++) { /* later turns of the first sessions */
        const struct scenario_request *before = &q[i - n_first];
        q[i] = *before;
        q[i].arrival_s = (1.0 + rng_below(r, 50000)) * 1e-6;
        q[i].prefix_tokens = rng_below(r, 2) * before->input_tokens;
        q[i].input_tokens += before->output_tokens + rng_below(r, 40);
    }
    for (uint32_t i = 0; i < n; i++) {
        struct trace_extra *x = rules_extra(i);
        x->client_id = (i < n_first ? i : i - n_first) % CLIENTS;
        x->ttft_slo_ns = rng_below(r, 3) == 0 ? MS(rng_below(r, 900)) : TIME_NEVER_NS;
        x->tbt_slo_ns = rng_below(r, 3) == 0 ? MS(rng_below(r, 90)) : TIME_NEVER_NS;
        x->deadline_ns = rng_below(r, 5) == 0 ? MS(rng_below(r, 900)) : TIME_NEVER_NS;
    }
    return n;
}

static uint64_t most_blocks(uint32_t n)
{
    uint64_t most = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint64_t own = blocks(q[i].input_tokens + q[i].output_tokens);
        most = own > most ? own : most;
    }
    return most;
}

START_TEST(every_iteration_takes_those_whom_the_order_puts_first)
{
    static const char *const rules[] = {"rt_first", "blind", "rt_alone"};
    static const uint32_t batches[] = {1, 2, 3, 16};
    static const uint32_t budgets[] = {512, 100};
    for (uint64_t load = 0; load < LOADS; load++) {
        struct rng r;
        rng_init(&r, rng_key(load, RNG_TEST, 77, 0));
        rules_machine(LAYERS);
        uint32_t n = make_load(&r);
        w = (struct world){.order = orders[_i].name,
                           .atlas = strstr(orders[_i].params, "atlas") != NULL,
                           .max_batch = batches[load % 4],
                           .budget = budgets[load / 4 % 2],
                           .rule = (enum iter_rule)(load % 3),
                           .states = load % 7 == 3 ? 1 + load % 5 : 0};
        char params[256];
        (void)snprintf(params, sizeof params, "max_batch=%u,token_budget=%u,class=%s%s%s",
                       w.max_batch, w.budget, rules[w.rule], orders[_i].params[0] ? "," : "",
                       orders[_i].params);
        scenario_policy(&sc, policy_find(w.order), params);
        sc.setup.prefix_reuse = load % 2 == 0;
        w.blocks = load % 2 == 0 ? 0 : most_blocks(n) + rng_below(&r, 20);
        sc.setup.kv_capacity_tokens = w.blocks * BLOCK;
        sc.llm.kv_state_bytes = (double)(w.states * BLOCK) * sc.llm.kv_bytes_per_token;
        if (load % 5 == 0) {
            sc.machine.sample_ns_per_token = MS(0.3);
        }
        struct observer o = {
            .request_arrived = on_arrived, .pass_formed = on_formed, .pass_done = on_done};
        sc.setup.observers[sc.setup.n_observers++] = &o;
        ck_assert_msg(scenario_run(&sc, q, n, false) == 0, "%s", sc.result.message);
        ck_assert_uint_eq(sc.result.audit.finished, n);

        scenario_fini(&sc);
    }
    ck_assert_uint_gt(passed_over, 100); /* else the order would be that of arrival */
    ck_assert_uint_gt(evictions, 5);
    ck_assert_uint_gt(shrunk, 0);
}
END_TEST

static const struct suite_row suite[] = {
    CASE("orders", .timeout_s = 60),
    LOOP(every_iteration_takes_those_whom_the_order_puts_first, sizeof orders / sizeof orders[0]),
};
SUITE_MAIN("order_keys", suite)
