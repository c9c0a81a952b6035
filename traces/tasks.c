/* The four workloads of sd.npu (CoordGen) 4.1: one task each, answered back to back. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/rng.h"
#include "sim/base/units.h"
#include "traces/tasks.h"
#include "traces/traces.h"

/* The paper names tasks and their sources, no lengths. Lengths here are those of public sets of the
 * same kind (traces/datasets/README.md); tweet has none that could be counted and is synthetic. */
static const struct task {
    const char *name, *dataset, *what;
} tasks[] = {
    {"summary", "specbench_summary", "summaries, Spec-Bench (the paper's source)"},
    {"rag", "mtrag", "answers from retrieved passages, MTRAG; the paper's set is not stated"},
    {"ui", "droidtask_ui", "one action of a UI agent, DroidTask; the paper's: AndroidArena"},
    {"tweet", "tweet_reply", "replies to messages: SYNTHETIC lengths; the paper's: LaMP"},
};
#define N_TASKS (sizeof tasks / sizeof tasks[0])

enum { TASK_N, TASK_CONCURRENT, TASK_GAP_S, TASK_NUMBERS };
static const struct {
    const char *name;
    double def, min, max;
    const char *help;
} keys[TASK_NUMBERS] = {
    {"n", 40, 1, 1e6, "requests in all"},
    {"concurrent", 1, 1, 1e4, "users, each with one request at a time; all begin at 0"},
    {"gap_s", 0, 0, 1e6, "from an answer to the user's next request, s"},
};

static const struct task *task_of(const char *spec)
{
    size_t len = strcspn(spec, ":");
    for (size_t i = 0; i < N_TASKS; i++) {
        if (strlen(tasks[i].name) == len && strncmp(tasks[i].name, spec, len) == 0) {
            return &tasks[i];
        }
    }
    return NULL;
}

bool task_known(const char *spec)
{
    return task_of(spec) != NULL;
}

/* One "key=value" of `len` bytes. */
static void parse_one(const char *spec, const char *part, size_t len, double *v, uint32_t *seen,
                      struct err *e)
{
    for (int i = 0; i < TASK_NUMBERS; i++) {
        size_t n = strlen(keys[i].name);
        if (len <= n || part[n] != '=' || strncmp(part, keys[i].name, n) != 0) {
            continue;
        }
        char *end = NULL;
        double x = strtod(part + n + 1, &end);
        bool ok = end == part + len && len > n + 1 && x >= keys[i].min && x <= keys[i].max &&
                  (i == TASK_GAP_S || x == floor(x));
        if (!ok || (*seen >> i & 1u) != 0) {
            (void)err_add(e, "workload \"%s\": %s: must stand once, a %snumber from %g to %g", spec,
                          keys[i].name, i == TASK_GAP_S ? "" : "whole ", keys[i].min, keys[i].max);
            return;
        }
        *seen |= 1u << i;
        v[i] = x;
        return;
    }
    (void)err_add(e, "workload \"%s\": \"%.*s\": the keys are n, concurrent and gap_s", spec,
                  (int)(len < 60 ? len : 60), part);
}

static int parse(const char *spec, double *v, struct err *e)
{
    size_t before = e->n;
    uint32_t seen = 0;
    for (int i = 0; i < TASK_NUMBERS; i++) {
        v[i] = keys[i].def;
    }
    const char *p = strchr(spec, ':');
    while (p != NULL && p[1] != '\0') {
        size_t len = strcspn(++p, ",");
        parse_one(spec, p, len, v, &seen, e);
        p = p[len] == ',' ? p + len : NULL;
    }
    return e->n == before ? 0 : -EINVAL;
}

int task_generate(const char *spec, uint64_t seed, struct trace *out, struct err *e)
{
    double v[TASK_NUMBERS];
    struct dataset data;
    *out = (struct trace){0};
    if (parse(spec, v, e) != 0 || dataset_load(task_of(spec)->dataset, &data, e) != 0) {
        return -EINVAL;
    }
    struct trace_builder b;
    struct rng lengths;
    trace_builder_init(&b);
    rng_init(&lengths, rng_key(seed, RNG_LENGTH_REACTIVE, 0, 0));
    uint32_t users = (uint32_t)v[TASK_CONCURRENT];
    for (uint32_t i = 0; i < (uint32_t)v[TASK_N]; i++) {
        const struct dataset_row *d = &data.rows[rng_below(&lengths, (uint32_t)data.n)];
        struct trace_row r = {.next = TRACE_NO_ROW,
                              .session_id = i % users,
                              .turn = (uint16_t)(i / users),
                              .input_tokens = d->input_tokens,
                              .output_tokens = d->output_tokens,
                              .max_output_tokens = trace_default_limit(d->output_tokens)};
        /* Of a first turn an instant, of a later one the gap after the answer before it. */
        r.arrival_ns = i < users ? 0 : units_ns_from_s(v[TASK_GAP_S]);
        trace_builder_add(&b, &r, NULL);
        if (i / users == UINT16_MAX) {
            (void)err_add(e, "workload \"%s\": n: over %d requests of one user", spec, UINT16_MAX);
            break;
        }
    }
    int rc = e->n > 0 ? -EINVAL : trace_build(&b, true, spec, out, e);
    trace_builder_fini(&b);
    dataset_fini(&data);
    return rc;
}

void task_help(FILE *out)
{
    for (size_t i = 0; i < N_TASKS; i++) {
        (void)fprintf(out, "%s:key=value,...%*s%s\n", tasks[i].name,
                      (int)(8 - strlen(tasks[i].name)), "", tasks[i].what);
    }
    for (int i = 0; i < TASK_NUMBERS; i++) {
        (void)fprintf(out, "  %-20s %-8g %s\n", keys[i].name, keys[i].def, keys[i].help);
    }
}
