/* Metamorphic relations: a random run (tests/helpers/randomrun.h) is changed in a way that has a
 * known effect on all that happens (tests/helpers/history.h). The number of a run says its policy,
 * so that every policy must fulfil every relation.
 * XPUSIM_RUNS asks for more runs and XPUSIM_FIRST for others. XPUSIM_ONLY asks for those with a
 * text in their command. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/run/jobs.h"
#include "policies/registry.h"
#include "sim/base/arena.h"
#include "sim/base/units.h"
#include "tests/helpers/history.h"
#include "tests/helpers/randomrun.h"
#include "tests/helpers/rescale.h"
#include "tests/helpers/suite.h"
#include "traces/traces.h"

#define CPU_LIMIT_S 4.0

/* ---- relations ---- */

struct pair {
    struct config c;
    struct config_policy p;
    struct trace t, changed;
    uint64_t seed;
    struct sim_setup a, b;
    struct expected x;
    bool from_rest; /* it applies only where all have ended when it begins and ends */
};

struct relation {
    const char *name;
    /* Makes b (first a copy of a) and its expectation, or returns false. It may change a, too. */
    bool (*make)(struct pair *p);
};

/* Nothing is drawn by ids or seeds any more. Returns false where the policy itself draws. */
static bool nothing_random(struct pair *p)
{
    struct sim_setup *both[] = {&p->a, &p->b};
    for (int i = 0; i < 2; i++) {
        both[i]->truth_sigma = 0.0;
        both[i]->annotation.sigma_prefill = 0.0;
        both[i]->annotation.sigma_decode = 0.0;
        both[i]->draft = NULL;
        both[i]->accept = NULL;
    }
    for (uint32_t i = 0; i < p->p.params.n; i++) {
        const char *name = p->p.ops->params[i].name;
        if (strstr(name, "sigma") != NULL && p->p.params.v[i] != 0.0) {
            return false;
        }
    }
    return true;
}

/* Only requests have instants of their own: there are no frames and no events. */
static bool only_requests_have_instants(const struct pair *p)
{
    return p->a.frames.per_s == 0.0 && p->t.n_machine == 0;
}

/* Unpacks the trace's rows. Nothing remains that only the whole trace knows. */
static bool rows_of(struct pair *p)
{
    trace_unpack(&p->t);
    return p->t.n > 0;
}

static void copy_rows(struct pair *p)
{
    bool *all = xmalloc(p->t.n);
    memset(all, true, p->t.n);
    ck_assert_int_eq(trace_subset(&p->t, all, &p->changed), 0);
    free(all);
    p->b.trace = &p->changed;
}

static bool first_row(const struct trace *t, size_t row)
{
    return t->graph != NULL ? t->graph->n_parents[row] == 0 : row < t->n_first;
}

/* Everything comes later, because a policy has no other clock than the run's. */
static bool make_later(struct pair *p)
{
    const int64_t later_ns = 1LL << 34; /* doubles hold sums with it */
    if (p->a.frames.per_s > 0.0 || !rows_of(p) || (p->p.ops->needs & CAP_LOAD) != 0) {
        return false; /* the first frame and what is loaded from the beginning on have instants */
    }
    copy_rows(p);
    rescale_events(&p->changed, 1, later_ns);
    for (size_t i = 0; i < p->changed.n; i++) {
        p->changed.rows[i].arrival_ns += first_row(&p->changed, i) ? later_ns : 0;
        if (p->changed.extras != NULL && p->changed.extras[i].until_ns != TIME_NEVER_NS) {
            p->changed.extras[i].until_ns += later_ns;
        }
    }
    if (p->b.horizon_ns != TIME_NEVER_NS) {
        p->b.horizon_ns += later_ns;
    }
    p->x.begin_ns = p->t.rows[0].arrival_ns;
    p->x.shift_ns = later_ns;
    return true;
}

/* Requests that come later are left out, because no policy knows the future. */
static bool make_without_later(struct pair *p)
{
    if (!rows_of(p) || p->t.graph != NULL || p->t.n_first < 2) {
        return false;
    }
    size_t cut = p->t.n_first / 2;
    bool *keep = xcalloc(p->t.n, sizeof *keep);
    for (size_t i = 0; i < cut; i++) {
        for (uint32_t row = (uint32_t)i; row != TRACE_NO_ROW; row = p->t.rows[row].next) {
            keep[row] = true;
        }
    }
    int rc = trace_subset(&p->t, keep, &p->changed);
    free(keep);
    p->b.trace = &p->changed;
    p->x.end_ns = p->t.rows[cut].arrival_ns;
    p->x.ends_sooner = true;
    return rc == 0;
}

/* The horizon is earlier, because no policy knows when the run ends. */
static bool make_earlier_horizon(struct pair *p)
{
    if (!rows_of(p)) {
        return false;
    }
    p->b.horizon_ns = p->t.rows[p->t.n_first / 2].arrival_ns + units_ns_from_s(1.0);
    p->x.end_ns = p->b.horizon_ns;
    return p->a.horizon_ns > p->b.horizon_ns;
}

/* Requests, sessions and clients have other numbers, in the same order. */
static bool make_other_ids(struct pair *p)
{
    if (!nothing_random(p) || !rows_of(p) || p->t.graph != NULL) {
        return false;
    }
    copy_rows(p);
    p->x.ids = 70001;
    for (size_t i = 0; i < p->changed.n; i++) {
        p->changed.rows[i].request_id += p->x.ids;
        p->changed.rows[i].session_id += 900007;
        if (p->changed.extras != NULL) {
            p->changed.extras[i].client_id += 900007;
        }
    }
    return true;
}

static bool make_other_seed(struct pair *p)
{
    p->b.seed += 12345;
    return nothing_random(p);
}

/* There is more memory than all requests need, and twice that. */
static bool make_more_memory(struct pair *p)
{
    static struct machine much[2];
    if (p->t.n_machine > 0) {
        return false; /* other programs take a part of it */
    }
    for (int i = 0; i < 2; i++) {
        struct sim_setup *s = i == 0 ? &p->a : &p->b;
        much[i] = *s->machine;
        much[i].memory_bytes = i == 0 ? 2e15 : 4e15;
        s->machine = &much[i];
        s->kv_capacity_tokens = i == 0 ? 500000000 : 1000000000;
    }
    return true;
}

/* Devices have other names, because a policy knows them by kind. */
static bool make_other_names(struct pair *p)
{
    static struct machine renamed;
    renamed = *p->a.machine;
    for (uint32_t d = 0; d < renamed.n_devices; d++) {
        (void)snprintf(renamed.devices[d].name, sizeof renamed.devices[d].name, "z%u", 9 - d);
    }
    (void)snprintf(renamed.name, sizeof renamed.name, "another");
    p->b.machine = &renamed;
    return true;
}

/* Watts are changed. They decide nothing where power has no limit and no step of frequency is
 * chosen by energy. */
static bool make_other_watts(struct pair *p)
{
    static struct machine hungry;
    for (uint32_t d = 0; d < p->a.machine->n_devices; d++) {
        if (p->a.dvfs[d].n > 0 && p->a.dvfs[d].rule == SIM_DVFS_ENERGY) {
            return false;
        }
    }
    hungry = *p->a.machine;
    hungry.idle_watts *= 3.0;
    hungry.poll_watts *= 5.0;
    hungry.compile_watts *= 7.0;
    p->b.machine = &hungry;
    return p->a.throttle.limit_watts == 0.0 && p->t.n_machine == 0;
}

/* These policies rightly remember one load in the next. */
static bool remembers(const struct policy_ops *p)
{
    static const char *const who[] = {
        "hygen-like", /* its admissions go by prefix and by age in turn, and are counted */
        "llama-cpp",  /* its slots know which sessions they had last */
        "mlfq",       /* it scans for starving requests every so many iterations */
    };
    for (size_t i = 0; i < sizeof who / sizeof who[0]; i++) {
        if (strcmp(p->name, who[i]) == 0) {
            return true;
        }
    }
    return false;
}

/* Equal loads come three times, far apart. The second time and the third are equal, where each
 * begins when no request is left of those before. */
static bool make_again(struct pair *p)
{
    const int64_t apart_ns = 125LL << 36; /* 2.4 hours, whole steps of what keys are rounded to */
    if (!nothing_random(p) || !only_requests_have_instants(p) || !rows_of(p) ||
        p->t.graph != NULL || p->a.horizon_ns != TIME_NEVER_NS || remembers(p->p.ops)) {
        return false;
    }
    uint32_t ids = 0;
    uint32_t sessions = 0;
    for (size_t i = 0; i < p->t.n; i++) {
        ids = p->t.rows[i].request_id >= ids ? p->t.rows[i].request_id + 1 : ids;
        sessions = p->t.rows[i].session_id >= sessions ? p->t.rows[i].session_id + 1 : sessions;
    }
    struct trace_builder b;
    trace_builder_init(&b);
    for (uint32_t k = 0; k < 3; k++) {
        for (size_t i = 0; i < p->t.n; i++) {
            struct trace_row row = p->t.rows[i];
            struct trace_extra x = p->t.extras == NULL ? trace_extra_none() : p->t.extras[i];
            row.arrival_ns += i < p->t.n_first ? apart_ns * k : 0;
            row.request_id += ids * k;
            row.session_id += sessions * k;
            x.until_ns += x.until_ns != TIME_NEVER_NS ? apart_ns * k : 0;
            x.client_id += sessions * k;
            trace_builder_add(&b, &row, &x);
        }
    }
    struct err e = ERR_INIT;
    bool built = trace_build(&b, false, "three times", &p->changed, &e) == 0;
    trace_builder_fini(&b);
    err_fini(&e);
    p->a.trace = p->b.trace = &p->changed;
    p->a.prefix_reuse = p->b.prefix_reuse = false;
    p->x = (struct expected){.begin_ns = p->t.rows[0].arrival_ns + apart_ns,
                             .end_ns = p->t.rows[0].arrival_ns + 2 * apart_ns,
                             .shift_ns = apart_ns,
                             .ids = ids,
                             .ends_sooner = true};
    p->from_rest = true;
    return built;
}

/* ---- kernels and machines in other units ---- */

static void change_peaks(struct pair *p, struct machine *m, int by)
{
    static struct contention_params params;
    m->ddr_peak_bytes_per_s = ldexp(m->ddr_peak_bytes_per_s, by);
    params = *(const struct contention_params *)p->a.contention_params;
    for (int d = 0; d < CONTENTION_MAX_DEVICES; d++) {
        params.ceiling_bytes_per_s[d] = ldexp(params.ceiling_bytes_per_s[d], by);
    }
    p->b.contention_params = &params;
    p->b.machine = m;
}

/* Weights, KV, states and kernels have twice the bytes, on twice the memory and twice the
 * bandwidth. */
static bool make_twice_the_bytes(struct pair *p)
{
    static struct machine m;
    static struct llm llm;
    if (p->a.n_more > 0 || (p->p.ops->needs & CAP_LOAD) != 0 || p->t.n_machine > 0) {
        return false; /* its loads stay as they are, and so does the memory of other programs */
    }
    m = *p->a.machine;
    m.memory_bytes *= 2.0;
    m.loader_bytes_per_s *= 2.0;
    m.swap_bytes_per_s *= 2.0;
    llm = *p->a.llm;
    llm.weight_bytes *= 2.0;
    llm.kv_bytes_per_token *= 2.0;
    llm.kv_state_bytes *= 2.0;
    p->b.llm = &llm;
    p->b.runtime_bytes *= 2.0;
    p->b.truth = rescale_kernels(p->a.truth, (struct rescale){.bytes = 1});
    change_peaks(p, &m, 1);
    p->b.frames.bytes *= 2.0;
    for (uint32_t d = 0; d < m.n_devices; d++) {
        p->b.kernels[d].budget_bytes *= 2.0;
        p->b.kernels[d].instructions_bytes *= 2.0;
        p->b.kernels[d].buffer_bytes *= 2.0;
    }
    return true;
}

static bool ends_with(const char *name, const char *end)
{
    size_t n = strlen(name);
    size_t m = strlen(end);
    return n >= m && strcmp(name + n - m, end) == 0;
}

/* Doubles the durations among a policy's parameters. A rate is halved. */
static void double_parameters(const struct config_policy *p, struct policy_params *out)
{
    *out = p->params;
    for (uint32_t i = 0; i < out->n; i++) {
        const char *name = p->ops->params[i].name;
        bool rate = strstr(name, "_per_s") != NULL;
        bool duration = ends_with(name, "_s") || ends_with(name, "_ms") || ends_with(name, "_us");
        out->v[i] *= rate ? 0.5 : duration ? 2.0 : 1.0;
    }
}

/* All runs at half the speed: no policy has a duration that is not a parameter of its own. */
static bool make_half_the_speed(struct pair *p)
{
    static struct machine m;
    static struct policy_params doubled;
    if (!nothing_random(p) || !rows_of(p) || p->a.n_more > 0) {
        return false;
    }
    m = *p->a.machine;
    p->b.truth = rescale_kernels(p->a.truth, (struct rescale){.time = 1});
    rescale_durations(&m);
    change_peaks(p, &m, -1);
    double_parameters(&p->p, &doubled);
    p->b.params = &doubled;
    copy_rows(p);
    for (size_t i = 0; i < p->changed.n; i++) {
        p->changed.rows[i].arrival_ns *= 2;
    }
    for (size_t i = 0; i < p->changed.n && p->changed.extras != NULL; i++) {
        struct trace_extra *x = &p->changed.extras[i];
        int64_t *const instants[] = {&x->ttft_slo_ns, &x->tbt_slo_ns, &x->deadline_ns,
                                     &x->cancel_ns, &x->until_ns};
        for (size_t k = 0; k < sizeof instants / sizeof instants[0]; k++) {
            *instants[k] *= *instants[k] != TIME_NEVER_NS ? 2 : 1;
        }
    }
    if (p->changed.graph != NULL) {
        struct trace_graph *g = p->changed.graph;
        for (uint32_t k = 0; k < g->first[p->changed.n]; k++) {
            g->edges[k].gap_ns *= 2;
        }
    }
    rescale_events(&p->changed, 2, 0);
    rescale_setup(&p->b);
    p->b.horizon_ns *= p->b.horizon_ns != TIME_NEVER_NS ? 2 : 1;
    p->x.twice = true;
    return true;
}

/* fcfs runs one request at a time, on kernels a quarter faster, so no request ends later. */
static bool make_faster_fcfs(struct pair *p)
{
    static struct config_policy fcfs;
    struct err e = ERR_INIT;
    bool known = config_policy_parse(&fcfs, "fcfs", &e) == 0;
    err_fini(&e);
    if (!known || !nothing_random(p) || !only_requests_have_instants(p) || !rows_of(p) ||
        p->t.graph != NULL || p->t.extras != NULL || p->t.n_first < p->t.n || p->a.n_more > 0 ||
        p->a.throttle.limit_watts > 0.0) { /* a faster machine is throttled sooner */
        return false;
    }
    p->b.truth = rescale_kernels(p->a.truth, (struct rescale){.faster = true});
    p->a.policy = p->b.policy = fcfs.ops;
    p->a.params = p->b.params = &fcfs.params;
    p->a.contention = p->b.contention = contention_find("none");
    p->x.no_later = true;
    return true;
}

static const struct relation relations[] = {
    {"everything later", make_later},
    {"without later requests", make_without_later},
    {"an earlier horizon", make_earlier_horizon},
    {"other ids", make_other_ids},
    {"another seed", make_other_seed},
    {"more memory than needed", make_more_memory},
    {"devices by other names", make_other_names},
    {"other watts", make_other_watts},
    {"three times the same", make_again},
    {"twice the bytes", make_twice_the_bytes},
    {"half the speed", make_half_the_speed},
    {"faster under fcfs", make_faster_fcfs},
};
enum { N_RELATIONS = sizeof relations / sizeof relations[0] };

/* ---- trials ---- */

enum outcome { SAYS_NOTHING, AS_EXPECTED, NOT_AS_EXPECTED };

/* Durations are rounded before they are doubled, and the rest of a run may turn on that. It does
 * where a few ns for each kernel change the same events. So do frames that are due sooner or later
 * by as much as rounding has added up to. */
static bool turns_on_rounding(const struct pair *p, const struct history *a,
                              const struct difference *d)
{
    static const int64_t more_ns[] = {1, -1, 2, -2, 4, -4};
    enum { N = sizeof more_ns / sizeof more_ns[0] };
    int64_t at_ns = d->at < a->n ? a->v[d->at].at_ns : NS_PER_S;
    bool turns = false;
    for (int i = 0; i < 2 * N && !turns; i++) {
        struct sim_setup s = p->a;
        struct trace t = *s.trace;
        struct history b = {.kernels = a->kernels};
        if (i < N) {
            s.truth = rescale_kernels(p->a.truth, (struct rescale){.more_ns = more_ns[i]});
        } else {
            rescale_frames(&s.frames, &t, more_ns[i - N] * d->drift_ns, at_ns);
            s.trace = &t;
        }
        history_simulate(&s, CPU_LIMIT_S, &b);
        turns = history_turns(a, &b, d);
        free(b.v);
    }
    return turns;
}

static enum outcome compare(struct pair *p, char *buf, size_t size)
{
    struct history a = {.kernels = p->x.twice};
    struct history b = {.kernels = p->x.twice};
    struct difference d = {0};
    history_simulate(&p->a, CPU_LIMIT_S, &a);
    history_simulate(&p->b, CPU_LIMIT_S, &b);
    const char *what = p->x.no_later ? history_later(&a, &b, buf, size)
                                     : history_differs(&a, &b, &p->x, buf, size, &d);
    bool from_rest =
        !p->from_rest || (history_rests(&a, p->x.begin_ns) && history_rests(&a, p->x.end_ns));
    bool says = from_rest && !(what != NULL && p->x.twice && turns_on_rounding(p, &a, &d));
    bool whole = p->x.end_ns == INT64_MAX - p->x.shift_ns && !p->x.no_later;
    if (what == NULL && whole && a.rc != b.rc) {
        (void)snprintf(buf, size, "status %d (%.150s) and %d (%.150s)", a.rc, a.message, b.rc,
                       b.message);
        what = buf;
    }
    free(a.v);
    free(b.v);
    return !says ? SAYS_NOTHING : what == NULL ? AS_EXPECTED : NOT_AS_EXPECTED;
}

static enum outcome hold(const struct randomrun *run, const struct relation *relation, char *buf,
                         size_t size)
{
    static struct pair p;
    memset(&p, 0, sizeof p);
    if (!randomrun_load(run, &p.c, &p.p, &p.t)) {
        return SAYS_NOTHING;
    }
    config_setup(&p.c, &p.p, &p.t, run->seed, &p.a);
    p.b = p.a;
    p.x = (struct expected){.begin_ns = INT64_MIN, .end_ns = INT64_MAX};
    enum outcome o = SAYS_NOTHING;
    if (relation->make(&p)) {
        p.x.end_ns -= p.x.end_ns == INT64_MAX ? p.x.shift_ns : 0;
        o = compare(&p, buf, size);
    }
    trace_fini(&p.changed);
    trace_fini(&p.t);
    config_fini(&p.c);
    return o;
}

/* A worker process tries all relations, to the first that does not hold, because some
 * configurations would simulate years. */
static void try_one(void *ctx, uint32_t index, struct job_result *r)
{
    const struct randomrun *run = (const struct randomrun *)ctx + index;
    enum outcome *outcomes = xcalloc(N_RELATIONS, sizeof *outcomes);
    r->data = outcomes;
    r->size = N_RELATIONS * sizeof *outcomes;
    for (int k = 0; k < N_RELATIONS; k++) {
        outcomes[k] = hold(run, &relations[k], r->message, sizeof r->message);
        if (outcomes[k] == NOT_AS_EXPECTED) {
            return;
        }
    }
}

static uint64_t env_number(const char *name, uint64_t def)
{
    const char *s = getenv(name);
    return s == NULL ? def : strtoull(s, NULL, 10);
}

/* Makes a random run of the policy whose turn it is. */
static void make(struct randomrun *run, uint64_t number)
{
    size_t n = 0;
    const struct policy_ops *const *all = policy_list(&n);
    const char *name = all[number % n]->name;
    randomrun_make(run, number);
    if (strcspn(run->policy, ":") != strlen(name) || strncmp(run->policy, name, strlen(name))) {
        (void)snprintf(run->policy, sizeof run->policy, "%s", name);
    }
}

/* Makes the n runs that are asked for, and their numbers. */
static void make_all(struct randomrun *runs, uint64_t *numbers, uint32_t n)
{
    static char text[RANDOMRUN_TEXT_BYTES];
    const char *only = getenv("XPUSIM_ONLY");
    uint64_t next = env_number("XPUSIM_FIRST", 0);
    for (uint32_t i = 0; i < n; next++) {
        make(&runs[i], next);
        if (only == NULL || strstr(randomrun_text(&runs[i], text), only) != NULL) {
            numbers[i++] = next;
        }
    }
}

/* Adds up outcomes, prints the relations that do not hold, and returns their number. */
static uint32_t report(const struct randomrun *runs, const uint64_t *numbers,
                       const struct job_result *r, uint32_t n, uint32_t held[])
{
    static char text[RANDOMRUN_TEXT_BYTES];
    uint32_t broken = 0;
    for (uint32_t i = 0; i < n; i++) {
        const enum outcome *outcomes = r[i].data;
        bool late = outcomes == NULL && (strstr(r[i].message, "CPU") != NULL ||
                                         strstr(r[i].message, "did not return") != NULL);
        const char *which = outcomes == NULL && !late ? "ended" : NULL;
        for (int k = 0; k < N_RELATIONS && outcomes != NULL; k++) {
            held[k] += outcomes[k] == AS_EXPECTED ? 1 : 0;
            which = outcomes[k] == NOT_AS_EXPECTED ? relations[k].name : which;
        }
        if (which != NULL) {
            broken++;
            printf("run %llu, %s: %s\n  %s\n", (unsigned long long)numbers[i], which, r[i].message,
                   randomrun_text(&runs[i], text));
        }
    }
    return broken;
}

/* Two runs of every policy (whole: ten) are tried with every relation. */
START_TEST(what_changes_changes_as_known)
{
    uint32_t n = suite_runs(2 * (uint32_t)suite_policies(), 10 * (uint32_t)suite_policies());
    struct randomrun *runs = xcalloc(n, sizeof *runs);
    uint64_t *numbers = xcalloc(n, sizeof *numbers);
    struct job_result *r = xcalloc(n, sizeof *r);
    make_all(runs, numbers, n);
    struct jobs j = {.n = n,
                     .parallel = worker_processors(),
                     .cpu_limit_s = 2 * N_RELATIONS * CPU_LIMIT_S,
                     .ctx = runs,
                     .run = try_one};
    jobs_run(&j, r);
    uint32_t held[N_RELATIONS] = {0};
    uint32_t broken = report(runs, numbers, r, n, held);
    for (uint32_t i = 0; i < n; i++) {
        free(r[i].data);
    }
    free(r);
    free(numbers);
    free(runs);
    for (int k = 0; k < N_RELATIONS; k++) {
        printf("%-26s holds in %u of %u\n", relations[k].name, held[k], n);
    }
    (void)fflush(stdout);
    ck_assert_uint_eq(broken, 0);
    uint32_t all = 0;
    for (int k = 0; k < N_RELATIONS; k++) {
        all += held[k];
        ck_assert_uint_ge(held[k], n >= 100 ? 1 : 0);
    }
    ck_assert_uint_ge(all, n >= 10 ? 1 : 0); /* otherwise no run was loaded: are the data there? */
}
END_TEST

static const struct suite_row suite[] = {
    CASE("relations", .timeout_s = 3600),
    TEST(what_changes_changes_as_known),
};
SUITE_MAIN("relations", suite)
