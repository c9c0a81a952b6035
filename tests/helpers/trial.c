#include "tests/helpers/trial.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/run/runner.h"
#include "sim/base/arena.h"
#include "sim/base/hash.h"
#include "tests/helpers/tempfile.h"

#define CPU_LIMIT_S 4.0

struct one {
    struct runner_result result;
    char *log;
    size_t log_bytes;
    uint64_t records; /* a hash of them; 0: none */
    int rc;
};

enum how { COLLAPSED, KERNEL_BY_KERNEL, IN_ONE_STEP, AGAIN, HOWS };

static void run_once(const struct config *base, const struct config_policy *p,
                     const struct trace *t, uint64_t seed, enum how how, struct one *out)
{
    struct err e = ERR_INIT;
    struct config *c = (struct config *)(uintptr_t)base;
    /* A model that states no limit is asked for every cost, and none is remembered. */
    const struct hwmodel_ops *ops = c->truth.model.ops;
    struct hwmodel_ops forgets = *ops;
    forgets.context_limit = NULL;
    c->truth.model.ops = how == KERNEL_BY_KERNEL ? &forgets : ops;
    c->sim.collapse = how != KERNEL_BY_KERNEL;
    FILE *log = how == IN_ONE_STEP ? NULL : open_memstream(&out->log, &out->log_bytes);
    /* The seed decides which runs use sketches, skip a warm-up, or write records. */
    const char *path = seed % 5 == 1 ? tempfile_make(".csv") : NULL;
    struct runner_options o = {.decision_log = log,
                               .samples =
                                   seed % 2 == 1 ? RUNNER_SAMPLES_SKETCH : RUNNER_SAMPLES_AUTO,
                               .warmup_s = seed % 3 == 1 ? (double)(seed % 16) : 0.0,
                               .requests = path != NULL ? output_open(path, &e) : NULL};
    out->rc = runner_run(c, p, t, seed, &o, &out->result, &e);
    c->truth.model.ops = ops;
    if (path != NULL) {
        out->records = hash_file(path);
        tempfile_remove();
    }
    if (log != NULL) {
        (void)fclose(log);
    }
    err_fini(&e);
}

static void one_fini(struct one *o)
{
    runner_result_fini(&o->result);
    free(o->log);
    *o = (struct one){.rc = 0};
}

static int differs_at_line(const struct one *a, const struct one *b)
{
    int line = 1;
    for (size_t i = 0; i < a->log_bytes && i < b->log_bytes && a->log[i] == b->log[i]; i++) {
        line += a->log[i] == '\n' ? 1 : 0;
    }
    return line;
}

/* NULL, or what differs. The number of events is all that may. */
static const char *difference(const struct one *a, const struct one *b, char *buf, size_t size)
{
    if (a->rc != b->rc) {
        (void)snprintf(buf, size, "status %d (%.200s) and %d (%.200s)", a->rc,
                       a->result.sim.message, b->rc, b->result.sim.message);
        return buf;
    }
    if (b->log != NULL &&
        (a->log_bytes != b->log_bytes || memcmp(a->log, b->log, a->log_bytes) != 0)) {
        (void)snprintf(buf, size, "decisions, from line %d on", differs_at_line(a, b));
        return buf;
    }
    if (a->records != b->records) {
        (void)snprintf(buf, size, "what became of single requests");
        return buf;
    }
    for (int i = 0; i < COUNTER_COUNT; i++) {
        if (a->result.sim.counters[i] != b->result.sim.counters[i]) {
            (void)snprintf(buf, size, "counter %d: %llu and %llu", i,
                           (unsigned long long)a->result.sim.counters[i],
                           (unsigned long long)b->result.sim.counters[i]);
            return buf;
        }
    }
    if (memcmp(&a->result.sim.battery, &b->result.sim.battery, sizeof a->result.sim.battery) != 0) {
        (void)snprintf(buf, size, "battery: %.17g and %.17g J drawn", a->result.sim.battery.drawn_j,
                       b->result.sim.battery.drawn_j);
        return buf;
    }
    const struct sim_audit *audits[2] = {&a->result.sim.audit, &b->result.sim.audit};
    if (audits[0]->ddr_max_over_capacity != audits[1]->ddr_max_over_capacity) {
        (void)snprintf(buf, size, "audited part of the DDR's capacity: %.17g and %.17g",
                       audits[0]->ddr_max_over_capacity, audits[1]->ddr_max_over_capacity);
        return buf;
    }
    if (audits[0]->energy_sum_j != audits[1]->energy_sum_j ||
        audits[0]->energy_integral_j != audits[1]->energy_integral_j) {
        (void)snprintf(buf, size, "energy: %.17g and %.17g J, summed %.17g and %.17g",
                       audits[0]->energy_integral_j, audits[1]->energy_integral_j,
                       audits[0]->energy_sum_j, audits[1]->energy_sum_j);
        return buf;
    }
    for (size_t i = 0; i < a->result.metrics.n; i++) {
        const struct metric *x = &a->result.metrics.v[i];
        const struct metric *y = &b->result.metrics.v[i];
        if (strcmp(x->name, "events") != 0 && memcmp(x, y, sizeof *x) != 0) {
            (void)snprintf(buf, size, "%s: %.17g and %.17g", x->name, x->value, y->value);
            return buf;
        }
    }
    return NULL;
}

/* ---- what numbers of a result can be ---- */

static double value(const struct metric_list *l, const char *first, const char *rest)
{
    char name[128];
    (void)snprintf(name, sizeof name, "%s%s", first, rest);
    const struct metric *m = metric_list_find(l, name);
    return m == NULL ? (double)NAN : m->value;
}

/* a <= b but for rounding; what is not defined is not less. */
static bool above(double a, double b)
{
    return a > b + 1e-9 * (fabs(a) + fabs(b)) + 1e-12;
}

static bool ends_with(const char *name, const char *end)
{
    size_t n = strlen(name);
    size_t m = strlen(end);
    return n >= m && strcmp(name + n - m, end) == 0;
}

/* One metric by itself, and a distribution by its mean: quantiles rise, none is below zero. */
static bool impossible(const struct metric_list *l, const struct metric *m, bool shared)
{
    static const char *const shares[] = {
        ".busy_frac",          ".prefill_frac",         ".decode_frac",   ".weighted_util_frac",
        "slo_attainment_frac", "npu_igpu_overlap_frac", ".tier_low_frac", ".tier_medium_frac",
        ".tier_high_frac",     "fairness_jain"};
    for (size_t i = 0; i < sizeof shares / sizeof shares[0]; i++) {
        if (ends_with(m->name, shares[i]) && (m->value < 0.0 || above(m->value, 1.0))) {
            return true;
        }
    }
    /* A kernel's time is rounded to the nearest ns, so it may be half of one short. */
    double rounded = 0.5e-9 * value(l, "kernels", "") / value(l, "duration_s", "");
    if (strcmp(m->name, "ddr.util_frac") == 0 && shared && above(m->value, 1.0 + rounded)) {
        return true;
    }
    if (!ends_with(m->name, "_s.mean")) {
        return ends_with(m->name, "_j") && m->value < 0.0;
    }
    char stem[96];
    (void)snprintf(stem, sizeof stem, "%.*s", (int)(strlen(m->name) - strlen("mean")), m->name);
    double p50 = value(l, stem, "p50");
    double p90 = value(l, stem, "p90");
    double p99 = value(l, stem, "p99");
    double max = value(l, stem, "max");
    return p50 < 0.0 || above(p50, p90) || above(p90, p99) || above(p99, max) ||
           above(m->value, max) || isinf(m->value);
}

static const char *invariant_broken(const struct metric_list *l, bool shared, char *buf,
                                    size_t size)
{
    static const char *const classes[] = {"reactive.", "proactive.", "all."};
    for (size_t i = 0; i < l->n; i++) {
        if (impossible(l, &l->v[i], shared)) {
            (void)snprintf(buf, size, "invariant: %s is %.17g", l->v[i].name, l->v[i].value);
            return buf;
        }
    }
    for (int c = 0; c < 3; c++) {
        double arrived = value(l, classes[c], "arrived");
        double sum = value(l, classes[c], "finished") + value(l, classes[c], "shed") +
                     value(l, classes[c], "unfinished");
        if (arrived != sum) {
            (void)snprintf(buf, size, "invariant: %sarrived is %.17g, the sum of ends %.17g",
                           classes[c], arrived, sum);
            return buf;
        }
        if (above(value(l, classes[c], "e2e_s.max"), value(l, "duration_s", ""))) {
            (void)snprintf(buf, size, "invariant: %se2e_s.max is more than the run", classes[c]);
            return buf;
        }
    }
    double whole = value(l, "energy_j", "");
    double parts = value(l, "energy_active_j", "") + value(l, "energy_idle_j", "");
    if (above(whole, parts) || above(parts, whole)) {
        (void)snprintf(buf, size, "invariant: energy_j %.17g, active and idle %.17g", whole, parts);
        return buf;
    }
    return NULL;
}

/* ---- one trial ---- */

/* A worker process: some configurations would simulate years. */
static void try_one(void *ctx, uint32_t index, struct job_result *r)
{
    static struct config c;
    static struct config_policy p;
    static struct one one[HOWS];
    const struct randomrun *run = (const struct randomrun *)ctx + index;
    struct trace t;
    enum trial_outcome *outcome = xcalloc(1, sizeof *outcome);
    r->data = outcome;
    r->size = sizeof *outcome;
    if (!randomrun_load(run, &c, &p, &t)) {
        *outcome = TRIAL_NOT_LOADED;
        return;
    }
    const char *what = NULL;
    for (int k = 0; k < HOWS && what == NULL; k++) {
        worker_limit_cpu(CPU_LIMIT_S);
        run_once(&c, &p, &t, run->seed, (enum how)k, &one[k]);
        what = difference(&one[COLLAPSED], &one[k], r->message, sizeof r->message);
    }
    const struct sim_result *sim = &one[COLLAPSED].result.sim;
    if (what == NULL && one[COLLAPSED].rc == 0) {
        bool shared = !c.contention->unlimited;
        what =
            invariant_broken(&one[COLLAPSED].result.metrics, shared, r->message, sizeof r->message);
    } else if (what == NULL) {
        (void)snprintf(r->message, sizeof r->message, "%s", sim->message);
        what = strstr(sim->message, "audit failed") != NULL ? r->message : NULL;
    }
    *outcome = what != NULL             ? TRIAL_FINDING
               : one[COLLAPSED].rc == 0 ? TRIAL_SAME
                                        : TRIAL_FAILED_ALIKE;
    for (int k = 0; k < HOWS; k++) {
        one_fini(&one[k]);
    }
    trace_fini(&t);
    config_fini(&c);
}

void trials_run(const struct randomrun *runs, uint32_t n, uint32_t parallel, struct trial *out)
{
    struct job_result *r = xcalloc(n, sizeof *r);
    struct jobs j = {.n = n,
                     .parallel = parallel,
                     .cpu_limit_s = CPU_LIMIT_S,
                     .ctx = (void *)(uintptr_t)runs,
                     .run = try_one};
    jobs_run(&j, r);
    for (uint32_t i = 0; i < n; i++) {
        bool died = r[i].data == NULL;
        bool late = died && (strstr(r[i].message, "CPU") != NULL || /* or none was there for it */
                             strstr(r[i].message, "did not return") != NULL);
        out[i].outcome = late   ? TRIAL_TOO_LONG
                         : died ? TRIAL_FINDING
                                : *(enum trial_outcome *)r[i].data;
        memcpy(out[i].message, r[i].message, sizeof out[i].message);
        free(r[i].data);
    }
    free(r);
}
