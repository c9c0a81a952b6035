/* Metrics computed by a second implementation. An observer keeps the events of random runs in
 * lists. Plain loops apply the definitions at the head of sim/metrics/metrics.h to these lists.
 * They must give the values of the metrics, with a warm-up and without. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/conformance/randomload.h"
#include "policies/registry.h"
#include "sim/metrics/metrics.h"
#include "tests/helpers/suite.h"

enum { MOST = 40, LOADS = 12, TOKENS = 128, VALUES = 4096 };
#define STARVED_S 0.05

static const char *const policies[] = {"program-fcfs", "vllm-v1",        "agent-xpu-v2",
                                       "hhpf",         "sarathi-hetero", "recompute-preempt"};

struct noted {
    bool here, over;
    enum request_class cls;
    uint32_t session, turn, client, input, generated, preemptions, evictions, recomputed, reused;
    int64_t arrival_ns, start_ns, finish_ns, since_ns, suspended_ns, pending_ns;
    int64_t token_ns[TOKENS];
    uint32_t running;
};

static struct noted all[MOST];
static uint64_t stops[2], decode_passes, decode_sequences;
static int64_t ddr_tier_ns[3], first_ns, last_arrival_ns, last_finish_ns, end_ns;
static double ddr_bytes, joules[OBSERVER_DOMAINS][4], watts[OBSERVER_DOMAINS];
static double phase_ns[OBSERVER_DOMAINS][4], in_system_ns, present, most_present, changed_ns;
static enum power_phase phase[OBSERVER_DOMAINS];
static int64_t phase_since_ns[OBSERVER_DOMAINS];

static struct scenario sc;
static struct scenario_request q[MOST];

/* ---- keeping the events ---- */

static void population(int64_t now_ns, int more)
{
    in_system_ns += present * ((double)now_ns - changed_ns);
    changed_ns = (double)now_ns;
    present += more;
    most_present = fmax(most_present, present);
}

static void on_arrived(void *self, int64_t now_ns, const struct request *r)
{
    (void)self;
    bool first = last_arrival_ns < 0;
    first_ns = first ? now_ns : first_ns;
    last_arrival_ns = now_ns;
    all[r->id] = (struct noted){.here = true,
                                .cls = r->cls,
                                .session = r->session_id,
                                .turn = r->turn,
                                .client = r->client_id,
                                .input = r->input_tokens,
                                .arrival_ns = now_ns,
                                .start_ns = -1};
    population(now_ns, 1);
}

static void on_service(void *self, int64_t now_ns, const struct request *r, const struct launch *l)
{
    (void)self;
    (void)l;
    all[r->id].start_ns = now_ns;
}

static void on_tokens(void *self, int64_t now_ns, const struct pass *p)
{
    (void)self;
    for (uint32_t i = 0; i < p->n_segments; i++) {
        uint32_t id = p->segments[i].request->id;
        for (uint32_t k = 0; k < p->segments[i].emitted_tokens; k++) {
            all[id].token_ns[all[id].generated++] = now_ns;
        }
    }
}

static void on_finished(void *self, int64_t now_ns, const struct request *r)
{
    (void)self;
    all[r->id].over = true;
    all[r->id].finish_ns = last_finish_ns = now_ns;
    all[r->id].preemptions = r->preemptions;
    all[r->id].reused = r->reused_tokens;
    population(now_ns, -1);
}

static void on_lost(void *self, int64_t now_ns, const struct request *r, uint64_t tokens)
{
    (void)self;
    (void)now_ns;
    all[r->id].evictions++;
    all[r->id].recomputed += (uint32_t)tokens;
}

static void on_started(void *self, int64_t now_ns, const struct launch *l, int64_t lead_ns)
{
    (void)self;
    (void)lead_ns;
    for (uint32_t i = 0; i < l->pass->n_segments; i++) {
        struct noted *v = &all[l->pass->segments[i].request->id];
        if (v->running++ == 0 && v->start_ns >= 0) {
            *(v->generated > 0 ? &v->pending_ns : &v->suspended_ns) += now_ns - v->since_ns;
        }
    }
}

static void on_ended(void *self, int64_t now_ns, const struct launch *l, int64_t isolated,
                     int64_t lost)
{
    (void)self;
    (void)isolated;
    (void)lost;
    if (l->outcome == LAUNCH_OUTCOME_WITHDRAWN) {
        return;
    }
    bool sampled = l->pass->op == l->pass->n_ops && l->pass->n_launches == 0;
    for (uint32_t i = 0; i < l->pass->n_segments; i++) {
        struct noted *v = &all[l->pass->segments[i].request->id];
        if (--v->running == 0 && !sampled) {
            v->since_ns = now_ns;
        }
    }
}

static void on_done(void *self, int64_t now_ns, const struct pass *p)
{
    (void)self;
    bool decodes = p->shape.prefill_rows == 0;
    decode_passes += decodes;
    decode_sequences += decodes ? p->n_segments : 0;
    for (uint32_t i = 0; i < p->n_segments; i++) {
        all[p->segments[i].request->id].since_ns = now_ns;
    }
}

static void on_asked(void *self, int64_t now_ns, const struct launch *l)
{
    (void)self;
    (void)now_ns;
    stops[l->pass->has_reactive ? 0 : 1]++;
}

static void on_ddr(void *self, int64_t now_ns, uint64_t count, int64_t t_ns, double demand,
                   double share)
{
    (void)self;
    (void)now_ns;
    double pressure = demand / sc.machine.ddr_peak_bytes_per_s;
    ddr_tier_ns[pressure >= 0.7 ? 2 : pressure >= 0.4 ? 1 : 0] += (int64_t)count * t_ns;
    ddr_bytes += (double)count * share * (double)t_ns / 1e9;
}

static void on_power(void *self, int64_t now_ns, uint8_t d, enum power_phase to, double w)
{
    (void)self;
    double ns = (double)(now_ns - phase_since_ns[d]);
    joules[d][phase[d]] += watts[d] * ns / 1e9;
    phase_ns[d][phase[d]] += ns;
    phase_since_ns[d] = now_ns;
    phase[d] = to;
    watts[d] = w;
}

static void on_end(void *self, int64_t now_ns)
{
    end_ns = now_ns;
    population(now_ns, 0);
    for (uint8_t d = 0; d < OBSERVER_DOMAINS; d++) {
        on_power(self, now_ns, d, POWER_PHASE_IDLE, 0.0);
    }
}

/* ---- the definitions ---- */

static struct metric_list got;
static const char *what; /* the run under test */
static const char *group;
static double values[VALUES];
static uint32_t n_values;

static void same(const char *name, double want)
{
    const struct metric *m = metric_list_find(&got, name);
    ck_assert_msg(m != NULL, "no metric %s", name);
    bool undefined = isnan(want) && isnan(m->value);
    ck_assert_msg(undefined || fabs(m->value - want) <= 1e-9 * fmax(1.0, fabs(want)),
                  "%s: %s is %.12g, not %.12g", what, name, m->value, want);
}

static void scalar(const char *name, double want)
{
    char full[200];
    (void)snprintf(full, sizeof full, "%s.%s", group, name);
    same(full, want);
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

static double rank(double p)
{
    return n_values == 0 ? (double)NAN : values[(uint32_t)ceil(p * n_values) - 1];
}

/* Compares mean, nearest ranks, maximum and number of the values, and forgets the values. */
static void distribution(const char *name)
{
    static const char *const parts[] = {"mean", "p50", "p90", "p95", "p99", "max", "n"};
    double sum = 0.0;
    qsort(values, n_values, sizeof values[0], ascending);
    for (uint32_t i = 0; i < n_values; i++) {
        sum += values[i];
    }
    double want[] = {n_values > 0 ? sum / n_values : (double)NAN,
                     rank(0.5),
                     rank(0.9),
                     rank(0.95),
                     rank(0.99),
                     rank(1.0),
                     n_values};
    for (int i = 0; i < 7; i++) {
        char full[200];
        (void)snprintf(full, sizeof full, "%s.%s.%s", group, name, parts[i]);
        same(full, want[i]);
    }
    n_values = 0;
}

static void value(double ns)
{
    values[n_values++] = ns / 1e9;
}

enum field {
    TTFT,
    E2E,
    TPOT,
    NORM_TTFT,
    NORM_TOKEN,
    NORM_OUTPUT,
    PENDING,
    SUSPENDED,
    DECODE,
    WAIT
};

static double field(const struct noted *v, enum field f)
{
    double ttft = (double)(v->token_ns[0] - v->arrival_ns);
    double e2e = (double)(v->finish_ns - v->arrival_ns);
    double pending = (double)(v->start_ns - v->arrival_ns);
    switch (f) {
    case TTFT:
        return ttft;
    case E2E:
        return e2e;
    case TPOT:
        return (e2e - ttft) / (v->generated - 1.0); /* the last token is the end */
    case NORM_TTFT:
        return ttft / v->input;
    case NORM_TOKEN:
        return e2e / (v->input + v->generated);
    case NORM_OUTPUT:
        return e2e / v->generated;
    case PENDING:
        return pending;
    case SUSPENDED:
        return (double)v->suspended_ns;
    case DECODE:
        return (double)v->pending_ns;
    case WAIT:
        break;
    }
    return pending + (double)(v->suspended_ns + v->pending_ns);
}

static bool counts(const struct noted *v, int g)
{
    return v->here && (g == 2 || (int)v->cls == g);
}

static void latencies(int g, int64_t warmup_ns)
{
    static const char *const names[] = {"ttft_s",
                                        "e2e_s",
                                        "tpot_s",
                                        "norm_ttft_per_input_s",
                                        "norm_e2e_per_token_s",
                                        "norm_e2e_per_output_s",
                                        "prefill_pending_s",
                                        "prefill_suspended_s",
                                        "decode_pending_s",
                                        "wait_s"};
    for (int f = TTFT; f <= WAIT; f++) {
        for (int i = 0; i < MOST; i++) {
            const struct noted *v = &all[i];
            if (counts(v, g) && v->arrival_ns >= warmup_ns && (f != TPOT || v->generated > 1)) {
                value(field(v, (enum field)f));
            }
        }
        distribution(names[f]);
    }
    for (int steps = 0; steps < 2; steps++) {
        for (int i = 0; i < MOST; i++) {
            const struct noted *v = &all[i];
            for (uint32_t k = 1; counts(v, g) && v->arrival_ns >= warmup_ns && k < v->generated;
                 k++) {
                value((double)(v->token_ns[k] - v->token_ns[k - 1]));
            }
        }
        distribution(steps == 0 ? "tbt_s" : "tbt_step_s"); /* equal, as nothing is drafted */
    }
    for (int i = 0; i < MOST; i++) { /* a last turn, from the first's arrival */
        const struct noted *first = NULL;
        bool last = counts(&all[i], g);
        for (int k = 0; k < MOST; k++) {
            bool mate = all[k].here && all[k].session == all[i].session;
            first = mate && all[k].turn == 0 ? &all[k] : first;
            last = last && !(mate && all[k].turn > all[i].turn);
        }
        if (last && first->arrival_ns >= warmup_ns) {
            value((double)(all[i].finish_ns - first->arrival_ns));
        }
    }
    distribution("session_s");
}

static void totals(int g)
{
    double n = 0, output = 0, sum_e2e = 0, sum_tokens = 0, starved = 0, preemptions = 0, reused = 0;
    double evictions = 0, recomputed = 0;
    for (int i = 0; i < MOST; i++) {
        const struct noted *v = &all[i];
        if (counts(v, g)) {
            n++;
            output += v->generated;
            sum_e2e += (double)(v->finish_ns - v->arrival_ns) / 1e9;
            sum_tokens += v->input + v->generated;
            starved += field(v, WAIT) / 1e9 > STARVED_S;
            preemptions += v->preemptions;
            reused += v->reused;
            evictions += v->evictions;
            recomputed += v->recomputed;
        }
    }
    double span_s = (double)(last_finish_ns - first_ns) / 1e9;
    scalar("arrived", n);
    scalar("finished", n);
    scalar("shed", 0);
    scalar("unfinished", 0);
    scalar("throughput_req_per_min", n / span_s * 60.0);
    scalar("output_tokens_per_s", output / span_s);
    scalar("norm_e2e_ratio_of_sums_s", n > 0 ? sum_e2e / sum_tokens : (double)NAN);
    scalar("preemptions", preemptions);
    scalar("evictions", evictions);
    scalar("recomputed_tokens", recomputed);
    scalar("cached_tokens", reused);
    scalar("starved", starved);
    scalar("stops_asked", (double)(g == 2 ? stops[0] + stops[1] : stops[g]));
}

/* Compares the rate of all arrivals of a class, and the coefficient of variation of the gaps
 * between them. */
static void arrivals(int g)
{
    double at[MOST];
    uint32_t n = 0;
    for (int i = 0; i < MOST; i++) {
        if (counts(&all[i], g)) {
            at[n++] = (double)all[i].arrival_ns;
        }
    }
    qsort(at, n, sizeof at[0], ascending);
    double mean = n > 1 ? (at[n - 1] - at[0]) / (n - 1) : (double)NAN;
    double squares = 0.0;
    for (uint32_t i = 1; i < n; i++) {
        squares += (at[i] - at[i - 1] - mean) * (at[i] - at[i - 1] - mean);
    }
    scalar("arrival_rate_req_per_min", n > 1 && mean > 0.0 ? 60e9 / mean : (double)NAN);
    scalar("arrival_cv", n > 2 && mean > 0.0 ? sqrt(squares / (n - 2)) / mean : (double)NAN);
}

static void truncated(int g, int64_t warmup_ns)
{
    static const char *const names[] = {"ttft_s", "e2e_s", "norm_e2e_per_token_s"};
    static const enum field fields[] = {TTFT, E2E, NORM_TOKEN};
    double n = 0;
    for (int f = 0; f < 3; f++) {
        n = 0;
        for (int i = 0; i < MOST; i++) {
            const struct noted *v = &all[i];
            bool early = counts(v, g) && v->finish_ns <= last_arrival_ns;
            n += early;
            if (early && v->arrival_ns >= warmup_ns) {
                value(field(v, fields[f]));
            }
        }
        distribution(names[f]);
    }
    double span_min = (double)(last_arrival_ns - first_ns) / 60e9;
    scalar("throughput_req_per_min", span_min > 0.0 ? n / span_min : (double)NAN);
}

/* Returns Jain's index of the clients' tokens. */
static double jain(void)
{
    double sum = 0, squares = 0, n = 0;
    for (int i = 0; i < MOST; i++) {
        double tokens = 0;
        bool first = all[i].here;
        for (int k = 0; k < MOST; k++) {
            bool mate = all[k].here && all[k].client == all[i].client;
            first = first && !(mate && k < i);
            tokens += mate ? all[k].input + all[k].generated : 0;
        }
        n += first;
        sum += first ? tokens : 0;
        squares += first ? tokens * tokens : 0;
    }
    return sum * sum / (n * squares);
}

static void machine(void)
{
    double t_ns = (double)end_ns;
    double active = 0, idle = sc.machine.idle_watts * t_ns / 1e9, output = 0, tokens = 0;
    for (int i = 0; i < MOST; i++) {
        output += all[i].here ? all[i].generated : 0;
        tokens += all[i].here ? all[i].input + all[i].generated : 0;
    }
    for (uint32_t d = 0; d < OBSERVER_DOMAINS; d++) {
        idle += joules[d][POWER_PHASE_IDLE];
        for (int p = POWER_PHASE_DECODE; p <= POWER_PHASE_COMPILE; p++) {
            active += joules[d][p];
        }
    }
    for (uint32_t d = 0; d < sc.machine.n_devices; d++) {
        const double *ns = phase_ns[d];
        const double *j = joules[d];
        group = sc.machine.devices[d].name;
        scalar("prefill_frac", ns[POWER_PHASE_PREFILL] / t_ns);
        scalar("decode_frac", ns[POWER_PHASE_DECODE] / t_ns);
        scalar("busy_frac", (ns[POWER_PHASE_PREFILL] + ns[POWER_PHASE_DECODE]) / t_ns);
        scalar("energy_j", j[0] + j[1] + j[2] + j[3]);
    }
    same("igpu.weighted_util_frac",
         (phase_ns[IGPU][POWER_PHASE_PREFILL] + 0.46 * phase_ns[IGPU][POWER_PHASE_DECODE]) / t_ns);
    same("energy_active_j", active);
    same("energy_idle_j", idle);
    same("energy_j", active + idle);
    same("energy_j_per_token", (active + idle) / tokens);
    same("energy_active_j_per_token", active / tokens);
    same("energy_j_per_output_token", (active + idle) / output);
    same("energy_active_j_per_output_token", active / output);
    same("ddr.tier_high_frac", (double)ddr_tier_ns[2] / t_ns);
    same("ddr.tier_medium_frac", (double)ddr_tier_ns[1] / t_ns);
    same("ddr.tier_low_frac", 1.0 - (double)(ddr_tier_ns[1] + ddr_tier_ns[2]) / t_ns);
    const struct metric *m = metric_list_find(&got, "ddr.util_frac"); /* bytes are whole */
    ck_assert_double_eq_tol(m->value, ddr_bytes / (sc.machine.ddr_peak_bytes_per_s * t_ns / 1e9),
                            1e-6);
}

static void system_wide(void)
{
    same("duration_s", (double)end_ns / 1e9);
    same("arrival_window_s", (double)(last_arrival_ns - first_ns) / 1e9);
    same("drain_s", fmax((double)(last_finish_ns - last_arrival_ns) / 1e9, 0.0));
    same("in_system.mean", in_system_ns / (double)end_ns);
    same("in_system.max", most_present);
    same("fairness_jain", jain());
    same("decode_batch.mean",
         decode_passes > 0 ? (double)decode_sequences / (double)decode_passes : (double)NAN);
}

static void forget(void)
{
    memset(all, 0, sizeof all);
    memset(joules, 0, sizeof joules);
    memset(phase_ns, 0, sizeof phase_ns);
    memset(phase, 0, sizeof phase);
    memset(phase_since_ns, 0, sizeof phase_since_ns);
    memset(ddr_tier_ns, 0, sizeof ddr_tier_ns);
    memset(stops, 0, sizeof stops);
    decode_passes = decode_sequences = 0;
    ddr_bytes = in_system_ns = present = most_present = changed_ns = 0.0;
    last_arrival_ns = last_finish_ns = -1;
    for (uint32_t d = 0; d < OBSERVER_DOMAINS; d++) {
        watts[d] = d < sc.machine.n_devices ? sc.machine.devices[d].idle_watts : 0.0;
    }
}

static void compare(int64_t warmup_ns)
{
    static const char *const groups[] = {"reactive", "proactive", "all"};
    for (int g = 0; g < 3; g++) {
        char name[32];
        group = groups[g];
        latencies(g, warmup_ns);
        totals(g);
        if (g < 2) {
            arrivals(g);
        }
        (void)snprintf(name, sizeof name, "truncated.%s", groups[g]);
        group = name;
        truncated(g, warmup_ns);
    }
    machine();
    system_wide();
}

START_TEST(metrics_are_what_their_definitions_give)
{
    for (uint64_t load = 1; load <= LOADS; load++) {
        char text[64];
        (void)snprintf(text, sizeof text, "%s, load %llu", policies[_i], (unsigned long long)load);
        what = text;
        uint32_t n = randomload_make(&sc, q, MOST, load);
        int64_t warmup_ns = load % 3 == 0 ? MS(100) : 0;
        sc.machine.devices[IGPU].idle_watts = 1.5;
        const char *params = strcmp(policies[_i], "program-fcfs") == 0 ? "preempt=kernel" : "";
        scenario_policy(&sc, policy_find(policies[_i]), params);
        forget();
        struct metrics_options opt = metrics_options_default();
        opt.starvation_s = STARVED_S;
        opt.warmup_ns = warmup_ns;
        /* With a trace a session is over when its last turn ends, and otherwise when the run does.
         */
        scenario_trace(&sc, q, n);
        opt.trace = load % 2 == 0 ? &sc.trace : NULL;
        struct metrics *m = metrics_new(&opt, &sc.machine);
        struct observer o = {.request_arrived = on_arrived,
                             .request_first_service = on_service,
                             .tokens = on_tokens,
                             .request_finished = on_finished,
                             .kv_lost = on_lost,
                             .launch_started = on_started,
                             .launch_ended = on_ended,
                             .pass_done = on_done,
                             .preempt_asked = on_asked,
                             .ddr = on_ddr,
                             .power = on_power,
                             .run_ended = on_end};
        sc.setup.observers[sc.setup.n_observers++] = &o;
        sc.setup.observers[sc.setup.n_observers++] = metrics_observer(m);
        ck_assert_msg(scenario_again(&sc) == 0, "%s: %s", what, sc.result.message);
        got = (struct metric_list){0};
        metrics_collect(m, &got);
        compare(warmup_ns);
        metric_list_fini(&got);
        metrics_free(m);
        scenario_fini(&sc);
    }
}
END_TEST

static const struct suite_row suite[] = {
    LOOP(metrics_are_what_their_definitions_give, sizeof policies / sizeof policies[0]),
};
SUITE_MAIN("metrics_anew", suite)
