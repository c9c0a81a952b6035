/* Hooks of observers are counted here. An observer that has every hook is called for each action
 * and each end exactly once. The decision log, the audit and the metrics, which come from other
 * code, must have the same numbers. A run decides and measures the same with any observer and with
 * none. Runs are random, over everything that a command line can say. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/run/jobs.h"
#include "experiments/run/runner.h"
#include "policies/registry.h"
#include "tests/helpers/randomrun.h"
#include "tests/helpers/suite.h"

enum { PART = 28, RUNS = 90, FIRST = 70000 }; /* WHOLE=yes and sanitizers run all of them */
#define CPU_LIMIT_S 5.0

/* ---- an observer that counts ---- */

struct counted {
    uint64_t arrived, served, finished, shed, formed, done, submitted, started, ended, withdrawn,
        asked, kernels, recomputed, losses, frames, missed, run_ends, slowed, followed_end;
    uint64_t emitted, emitted_of_finished;
    double bytes;
    int64_t last_ns, end_ns;
    uint64_t backwards;
};

static void at(struct counted *c, int64_t now_ns)
{
    c->backwards += now_ns < c->last_ns ? 1 : 0;
    c->followed_end += c->run_ends;
    c->last_ns = now_ns;
}

static void on_arrived(void *self, int64_t now_ns, const struct request *r)
{
    struct counted *c = self;
    (void)r;
    at(c, now_ns);
    c->arrived++;
}

static void on_service(void *self, int64_t now_ns, const struct request *r, const struct launch *l)
{
    struct counted *c = self;
    (void)r;
    (void)l;
    at(c, now_ns);
    c->served++;
}

static void on_tokens(void *self, int64_t now_ns, const struct pass *p)
{
    struct counted *c = self;
    at(c, now_ns);
    for (uint32_t i = 0; i < p->n_segments; i++) {
        c->emitted += p->segments[i].emitted_tokens;
    }
}

static void on_finished(void *self, int64_t now_ns, const struct request *r)
{
    struct counted *c = self;
    at(c, now_ns);
    c->finished++;
    c->emitted_of_finished += r->generated_tokens;
}

static void on_shed(void *self, int64_t now_ns, const struct request *r)
{
    struct counted *c = self;
    (void)r;
    at(c, now_ns);
    c->shed++;
}

static void on_formed(void *self, int64_t now_ns, const struct pass *p)
{
    struct counted *c = self;
    (void)p;
    at(c, now_ns);
    c->formed++;
}

static void on_done(void *self, int64_t now_ns, const struct pass *p)
{
    struct counted *c = self;
    (void)p;
    at(c, now_ns);
    c->done++;
}

static void on_submitted(void *self, int64_t now_ns, const struct launch *l)
{
    struct counted *c = self;
    (void)l;
    at(c, now_ns);
    c->submitted++;
}

static void on_started(void *self, int64_t now_ns, const struct launch *l, int64_t lead_ns)
{
    struct counted *c = self;
    (void)l;
    (void)lead_ns;
    at(c, now_ns);
    c->started++;
}

static void on_ended(void *self, int64_t now_ns, const struct launch *l, int64_t isolated_ns,
                     int64_t lost_ns)
{
    struct counted *c = self;
    (void)isolated_ns;
    (void)lost_ns;
    at(c, now_ns);
    c->ended++;
    c->withdrawn += l->outcome == LAUNCH_OUTCOME_WITHDRAWN ? 1 : 0;
}

static void on_repeated(void *self, int64_t now_ns, const struct repeat_record *r)
{
    struct counted *c = self;
    at(c, now_ns);
    c->formed += r->n - 1;
    c->submitted += r->n - 1;
    c->started += r->n - 1;
    c->ended += r->n;
    c->done += r->n;
    c->emitted += (uint64_t)r->n * r->launch->pass->n_segments;
}

static void on_asked(void *self, int64_t now_ns, const struct launch *l)
{
    struct counted *c = self;
    (void)l;
    at(c, now_ns);
    c->asked++;
}

static void on_kernel(void *self, const struct kernel_record *k)
{
    struct counted *c = self;
    c->backwards += k->begin_ns > k->end_ns ? 1 : 0;
    c->kernels++;
}

static void on_lost(void *self, int64_t now_ns, const struct request *r, uint64_t tokens)
{
    struct counted *c = self;
    (void)r;
    at(c, now_ns);
    c->losses++;
    c->recomputed += tokens;
}

static void on_ddr(void *self, int64_t now_ns, uint64_t count, int64_t duration_ns,
                   double demand_bytes_per_s, double share_bytes_per_s)
{
    struct counted *c = self;
    (void)demand_bytes_per_s;
    c->bytes += (double)count * (double)llround(share_bytes_per_s * (double)duration_ns * 1e-9);
    c->backwards += now_ns < 0 ? 1 : 0;
}

static void on_speed(void *self, int64_t now_ns, double speed)
{
    struct counted *c = self;
    at(c, now_ns);
    c->slowed += speed < 1.0 ? 1 : 0;
}

static void on_frame(void *self, int64_t now_ns, uint8_t device, enum frame_state to,
                     int64_t due_ns)
{
    struct counted *c = self;
    (void)device;
    (void)due_ns;
    at(c, now_ns);
    c->frames += to == FRAME_STARTED ? 1 : 0;
    c->missed += to == FRAME_MISSED ? 1 : 0;
}

static void on_end(void *self, int64_t now_ns)
{
    struct counted *c = self;
    at(c, now_ns);
    c->run_ends++;
    c->end_ns = now_ns;
}

static struct observer observer_of(struct counted *c)
{
    return (struct observer){.self = c,
                             .request_arrived = on_arrived,
                             .request_first_service = on_service,
                             .tokens = on_tokens,
                             .request_finished = on_finished,
                             .request_shed = on_shed,
                             .pass_formed = on_formed,
                             .pass_done = on_done,
                             .launch_submitted = on_submitted,
                             .launch_started = on_started,
                             .launch_ended = on_ended,
                             .preempt_asked = on_asked,
                             .kernel = on_kernel,
                             .kv_lost = on_lost,
                             .ddr = on_ddr,
                             .speed = on_speed,
                             .frame = on_frame,
                             .run_ended = on_end};
}

/* ---- a run, watched or not ---- */

enum how { LOGGED, EACH_KERNEL, EACH_PASS, REPEATS, UNWATCHED, HOWS };

struct one {
    struct runner_result result;
    struct counted seen;
    char *log;
    size_t log_bytes;
    int rc;
};

static void run_once(const struct config *c, const struct config_policy *p, const struct trace *t,
                     uint64_t seed, enum how how, struct one *out)
{
    struct err e = ERR_INIT;
    struct observer o = observer_of(&out->seen);
    o.wants_kernels = how == EACH_KERNEL;
    o.kernel = how == EACH_KERNEL ? on_kernel : NULL;
    o.repeated = how == REPEATS ? on_repeated : NULL;
    o.ddr = how == REPEATS ? NULL : on_ddr; /* attention of repeated passes is not in it */
    FILE *log =
        how == LOGGED || how == EACH_KERNEL ? open_memstream(&out->log, &out->log_bytes) : NULL;
    struct runner_options with = {.decision_log = log,
                                  .observer = how == LOGGED || how == UNWATCHED ? NULL : &o};
    out->rc = runner_run(c, p, t, seed, &with, &out->result, &e);
    if (log != NULL) {
        (void)fclose(log);
    }
    err_fini(&e);
}

/* Counts the accepted actions of a kind in a log: "EPOCH NS NAME ... = 0". NULL says: of every
 * kind. */
static uint64_t accepted(const struct one *o, const char *name)
{
    uint64_t n = 0;
    for (const char *line = o->log; *line != '\0';) {
        const char *end = strchr(line, '\n');
        char word[32] = "";
        (void)sscanf(line, "%*s %*s %31s", word);
        bool fine = end - line > 4 && strncmp(end - 4, " = 0", 4) == 0;
        n += fine && (name == NULL || strcmp(word, name) == 0) ? 1 : 0;
        line = end + 1;
    }
    return n;
}

static double value(const struct one *o, const char *name)
{
    const struct metric *m = metric_list_find(&o->result.metrics, name);
    return m == NULL ? 0.0 : m->value;
}

/* ---- what must agree ---- */

struct pair {
    const char *what;
    uint64_t a, b;
};

static const char *unequal(const struct pair *v, size_t n, char *buf, size_t size)
{
    for (size_t i = 0; i < n; i++) {
        if (v[i].a != v[i].b) {
            (void)snprintf(buf, size, "%s: %" PRIu64 " and %" PRIu64, v[i].what, v[i].a, v[i].b);
            return buf;
        }
    }
    return NULL;
}
#define UNEQUAL(v, buf, size) unequal(v, sizeof(v) / sizeof((v)[0]), buf, size)

static const char *same_run(const struct one *a, const struct one *b, char *buf, size_t size)
{
    if (a->rc != b->rc || strcmp(a->result.sim.message, b->result.sim.message) != 0) {
        (void)snprintf(buf, size, "status %d and %d", a->rc, b->rc);
        return buf;
    }
    if (a->log != NULL && b->log != NULL && strcmp(a->log, b->log) != 0) {
        (void)snprintf(buf, size, "decisions differ");
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
    const struct pair pairs[] = {
        {"kernels", a->result.sim.kernels, b->result.sim.kernels},
        {"accepted actions", a->result.sim.decisions, b->result.sim.decisions},
        {"end", (uint64_t)a->result.sim.end_ns, (uint64_t)b->result.sim.end_ns}};
    return UNEQUAL(pairs, buf, size);
}

/* The hooks must agree with the log of the run without an observer, with its audit and its
 * metrics. */
static const char *hooks_agree(const struct one *logged, const struct one *o, enum how how,
                               double peak_bytes_per_s, char *buf, size_t size)
{
    const struct sim_result *s = &logged->result.sim;
    const struct counted *n = &o->seen;
    const struct pair pairs[] = {
        {"arrivals, by the audit", n->arrived, s->audit.arrived},
        {"arrivals, by the metrics", n->arrived, (uint64_t)value(logged, "all.arrived")},
        {"ends, by the audit", n->finished, s->audit.finished},
        {"ends, by the metrics", n->finished, (uint64_t)value(logged, "all.finished")},
        {"cancelled requests", n->shed, s->audit.shed},
        {"passes, by the log", n->formed, accepted(logged, "form")},
        {"launches, by the log", n->submitted, accepted(logged, "launch")},
        {"stops, by the counter", n->asked, s->counters[COUNTER_PREEMPT_ASKED]},
        {"withdrawn launches", n->withdrawn, s->counters[COUNTER_LAUNCH_WITHDRAWN]},
        {"tokens of finished requests", n->emitted_of_finished, s->audit.tokens_produced},
        {"tokens that are lost", n->recomputed, (uint64_t)value(logged, "all.recomputed_tokens")},
        {"evictions", n->losses, (uint64_t)value(logged, "all.evictions")},
        {"frames", n->frames, (uint64_t)value(logged, "graphics.frames")},
        {"missed frames", n->missed, (uint64_t)value(logged, "graphics.missed")},
        {"ends of the run", n->run_ends, 1},
        {"the run's end", (uint64_t)n->end_ns, (uint64_t)s->end_ns},
        {"hooks after the end", n->followed_end, 0},
        {"hooks back in time", n->backwards, 0},
        {"actions, by the log", s->decisions, accepted(logged, NULL) - accepted(logged, "timer")}};
    const char *what = UNEQUAL(pairs, buf, size);
    if (what == NULL && how == EACH_KERNEL) {
        const struct pair kernels[] = {{"kernels", n->kernels, s->kernels}};
        what = UNEQUAL(kernels, buf, size);
    }
    double bytes = value(logged, "ddr.util_frac") * peak_bytes_per_s * (double)s->end_ns * 1e-9;
    if (what == NULL && how != REPEATS && fabs(n->bytes - bytes) > 1e-9 * bytes + 1.0) {
        (void)snprintf(buf, size, "DDR bytes: %.17g and %.17g", n->bytes, bytes);
        what = buf;
    }
    if (what == NULL && s->audit.running + s->audit.queued == 0) { /* nothing is in flight */
        const struct pair whole[] = {
            {"launches that end", n->ended, n->submitted},
            {"launches that start, or are taken back", n->started + n->withdrawn, n->ended},
            {"passes that end", n->done + s->counters[COUNTER_PASS_CANCELLED], n->formed}};
        what = UNEQUAL(whole, buf, size);
    }
    return what;
}

/* ---- random runs ---- */

enum outcome { NOT_LOADED, FAILED, FINE };

static void try_one(void *ctx, uint32_t index, struct job_result *r)
{
    static struct config c;
    static struct config_policy p;
    static struct one one[HOWS];
    struct randomrun run;
    struct trace t;
    uint32_t *outcome = xcalloc(1, sizeof *outcome);
    r->data = outcome;
    r->size = sizeof *outcome;
    randomrun_make(&run, FIRST + index);
    run.machine = index % 3 == 1;
    (void)ctx;
    if (!randomrun_load(&run, &c, &p, &t)) {
        *outcome = NOT_LOADED;
        return;
    }
    const char *what = NULL;
    for (enum how how = LOGGED; how < HOWS && what == NULL; how++) {
        worker_limit_cpu(CPU_LIMIT_S);
        run_once(&c, &p, &t, run.seed, how, &one[how]);
        what = same_run(&one[LOGGED], &one[how], r->message, sizeof r->message);
        if (what == NULL && one[how].rc == 0 && how != LOGGED && how != UNWATCHED) {
            what = hooks_agree(&one[LOGGED], &one[how], how, c.soc.machine.ddr_peak_bytes_per_s,
                               r->message, sizeof r->message);
        }
    }
    *outcome = one[LOGGED].rc != 0 ? FAILED : FINE;
    r->status = what != NULL ? -EINVAL : 0;
    for (enum how how = LOGGED; how < HOWS; how++) {
        runner_result_fini(&one[how].result);
        free(one[how].log);
    }
    trace_fini(&t);
    config_fini(&c);
}

START_TEST(every_hook_is_called_as_often_as_the_log_says_and_changes_nothing)
{
    static struct job_result r[RUNS];
    uint32_t n = suite_whole() || getenv("SANITIZED") != NULL ? RUNS : PART;
    struct jobs j = {.n = n, .parallel = 2, .cpu_limit_s = CPU_LIMIT_S, .run = try_one};
    uint32_t fine = 0;
    bool bad = false;
    jobs_run(&j, r);
    for (uint32_t i = 0; i < n; i++) {
        static char text[RANDOMRUN_TEXT_BYTES];
        struct randomrun run;
        if (r[i].data != NULL && r[i].status != 0) {
            randomrun_make(&run, FIRST + i);
            printf("run %u: %s\n  %s\n", FIRST + i, r[i].message, randomrun_text(&run, text));
            bad = true;
        }
        fine += r[i].data != NULL && *(uint32_t *)r[i].data == FINE ? 1 : 0;
        free(r[i].data);
    }
    (void)fflush(stdout);
    ck_assert(!bad);
    ck_assert_uint_ge(fine, n / 2);
}
END_TEST

/* ---- timers ---- */

/* Counts the accepted timers of a log, and those for the instant at which they were set: "EPOCH NS
 * timer at=NS = 0". */
static uint64_t timers(const char *log, uint64_t *n_now)
{
    uint64_t n = 0;
    for (const char *line = log; *line != '\0'; line = strchr(line, '\n') + 1) {
        char now[32] = "";
        char at[32] = "";
        if (sscanf(line, "%*s %31s timer at=%31s = 0", now, at) == 2) {
            *n_now += strcmp(now, at) == 0 ? 1 : 0;
            n++;
        }
    }
    return n;
}

/* A timer for the present instant brings the policy one more call and nothing else. It costs time,
 * and no result shows it. On the second machine splits of a prompt end together. */
START_TEST(nobody_asks_to_be_woken_at_once)
{
    static const char *const machines[] = {"core-ultra-5-125h", "snapdragon-8gen3"};
    static struct config c;
    static struct one one;
    struct config_options o = config_options_default();
    struct err e = ERR_INIT;
    size_t n_policies;
    const struct policy_ops *const *all = policy_list(&n_policies);
    uint64_t n = 0;
    o.workload = "mixed:reactive_per_min=10,proactive_per_min=20,duration_s=40";
    o.soc = machines[_i];
    ck_assert_int_eq(config_load(&c, &o, &e), 0);
    for (size_t i = 0; i < n_policies; i++) {
        const char *name = all[i]->name;
        struct config_policy p = {0};
        struct trace t;
        uint64_t n_now = 0;
        ck_assert_int_eq(config_policy_parse(&p, name, &e), 0);
        ck_assert_int_eq(config_trace(&o, 1, CONFIG_AS_WRITTEN, &t, &e), 0);
        run_once(&c, &p, &t, 1, LOGGED, &one);
        n += timers(one.log, &n_now);
        ck_assert_msg(n_now == 0, "%s: %" PRIu64 " timers for the instant that it is", name, n_now);
        runner_result_fini(&one.result);
        free(one.log);
        trace_fini(&t);
    }
    ck_assert_uint_gt(n, 100);
    config_fini(&c);
}
END_TEST

static const struct suite_row suite[] = {
    CASE("hooks", .timeout_s = 300),
    LOOP(nobody_asks_to_be_woken_at_once, 2),
    TEST(every_hook_is_called_as_often_as_the_log_says_and_changes_nothing),
};
SUITE_MAIN("observers", suite)
