/* Collapsing is invisible: random runs over everything a command line can say give the same
 * decisions, metrics, counters and status with and without it, and without a decision log, when
 * passes that repeat themselves run in one step. The number of events is all that may differ.
 * XPUSIM_RUNS asks for more of them, XPUSIM_FIRST for others; XPUSIM_SHOW prints why runs failed
 * alike. */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/run/jobs.h"
#include "experiments/run/runner.h"
#include "sim/base/arena.h"
#include "tests/helpers/randomrun.h"

enum outcome { SAME, FAILED_ALIKE, NOT_LOADED, OUTCOMES };

struct one {
    struct runner_result result;
    char *log;
    size_t log_bytes;
    int rc;
};

enum how { COLLAPSED, KERNEL_BY_KERNEL, IN_ONE_STEP, HOWS };

static void run_once(const struct config *base, const struct config_policy *p,
                     const struct trace *t, uint64_t seed, enum how how, struct one *out)
{
    struct err e = ERR_INIT;
    struct config *c = (struct config *)(uintptr_t)base;
    c->sim.collapse = how != KERNEL_BY_KERNEL;
    FILE *log = how == IN_ONE_STEP ? NULL : open_memstream(&out->log, &out->log_bytes);
    struct runner_options o = {.decision_log = log};
    out->rc = runner_run(c, p, t, seed, &o, &out->result, &e);
    if (log != NULL) {
        (void)fclose(log);
    }
    err_fini(&e);
}

static void one_fini(struct one *o)
{
    runner_result_fini(&o->result);
    free(o->log);
}

static int differs_at_line(const struct one *a, const struct one *b)
{
    int line = 1;
    for (size_t i = 0; i < a->log_bytes && i < b->log_bytes && a->log[i] == b->log[i]; i++) {
        line += a->log[i] == '\n' ? 1 : 0;
    }
    return line;
}

/* NULL, or what differs. */
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
    for (int i = 0; i < COUNTER_COUNT; i++) {
        if (a->result.sim.counters[i] != b->result.sim.counters[i]) {
            (void)snprintf(buf, size, "counter %d: %llu and %llu", i,
                           (unsigned long long)a->result.sim.counters[i],
                           (unsigned long long)b->result.sim.counters[i]);
            return buf;
        }
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

/* In a worker process: some configurations would simulate years. */
static void compare_run(void *ctx, uint32_t index, struct job_result *r)
{
    uint64_t number = *(const uint64_t *)ctx + index;
    static struct randomrun run;
    static struct config c;
    static struct config_policy p;
    static struct one one[HOWS];
    struct trace t;
    randomrun_make(&run, number);
    enum outcome *outcome = xcalloc(1, sizeof *outcome);
    r->data = outcome;
    r->size = sizeof *outcome;
    if (!randomrun_load(&run, &c, &p, &t)) {
        *outcome = NOT_LOADED;
        return;
    }
    const char *what = NULL;
    for (int k = 0; k < HOWS && what == NULL; k++) {
        run_once(&c, &p, &t, run.seed, (enum how)k, &one[k]);
        what = difference(&one[COLLAPSED], &one[k], r->message, sizeof r->message);
    }
    r->status = what == NULL ? 0 : -EPROTO;
    *outcome = one[0].rc == 0 ? SAME : FAILED_ALIKE;
    if (what == NULL && one[0].rc != 0) {
        (void)snprintf(r->message, sizeof r->message, "%s", one[0].result.sim.message);
    }
    for (int k = 0; k < HOWS; k++) {
        one_fini(&one[k]);
    }
    trace_fini(&t);
    config_fini(&c);
}

static uint64_t env_number(const char *name, uint64_t def)
{
    const char *s = getenv(name);
    return s == NULL ? def : strtoull(s, NULL, 10);
}

START_TEST(collapsing_changes_no_random_run)
{
    uint64_t first = env_number("XPUSIM_FIRST", 0);
    uint32_t n = (uint32_t)env_number("XPUSIM_RUNS", 300);
    struct job_result *r = xcalloc(n, sizeof *r);
    struct jobs j = {.n = n,
                     .parallel = worker_processors(),
                     .cpu_limit_s = 10.0,
                     .ctx = &first,
                     .run = compare_run};
    jobs_run(&j, r);
    uint32_t count[OUTCOMES] = {0};
    uint32_t stopped = 0;
    uint32_t different = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (getenv("XPUSIM_SHOW") != NULL && r[i].message[0] != '\0') {
            printf("run %llu: %s\n", (unsigned long long)(first + i), r[i].message);
        }
        if (r[i].data == NULL) {
            stopped++;
        } else if (r[i].status == 0) {
            count[*(enum outcome *)r[i].data]++;
        }
        if (r[i].status == -EPROTO || (r[i].data == NULL && strstr(r[i].message, "CPU") == NULL)) {
            static struct randomrun run;
            static char text[RANDOMRUN_TEXT_BYTES];
            randomrun_make(&run, first + i);
            printf("run %llu: %s\n  %s\n", (unsigned long long)(first + i), r[i].message,
                   randomrun_text(&run, text));
            different++;
        }
        free(r[i].data);
    }
    free(r);
    printf("%u random runs: %u alike, %u fail alike, %u too long, %u do not go together\n", n,
           count[SAME], count[FAILED_ALIKE], stopped, count[NOT_LOADED]);
    (void)fflush(stdout);
    ck_assert_uint_eq(different, 0);
    ck_assert_uint_ge(count[SAME], n / 4);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("collapse");
    TCase *c = tcase_create("collapse");
    tcase_set_timeout(c, 0);
    tcase_add_test(c, collapsing_changes_no_random_run);
    suite_add_tcase(s, c);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
