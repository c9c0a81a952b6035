/* The four workloads of sd.npu (CoordGen) 4.1: one task each, answered back to back. */
#include <errno.h>
#include <string.h>

#include "sim/base/rng.h"
#include "sim/base/units.h"
#include "traces/spec_keys.h"
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
static const struct spec_key keys[TASK_NUMBERS] = {
    {"n", 40, 1, 1e6, true, "requests in all"},
    {"concurrent", 1, 1, 1e4, true, "users, each with one request at a time; all begin at 0"},
    {"gap_s", 0, 0, 1e6, false, "from an answer to the user's next request, s"},
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

int task_generate(const char *spec, uint64_t seed, struct trace *out, struct err *e)
{
    double v[TASK_NUMBERS];
    struct dataset data;
    *out = (struct trace){0};
    struct spec_keys k = {.numbers = keys, .n_numbers = TASK_NUMBERS, .v = v};
    const char *colon = strchr(spec, ':');
    size_t before = e->n;
    spec_keys_init(&k);
    spec_keys_parse(&k, spec, colon != NULL ? colon + 1 : "", e);
    if (e->n > before || dataset_load(task_of(spec)->dataset, &data, e) != 0) {
        return -EINVAL;
    }
    struct trace_builder b;
    struct rng lengths;
    trace_builder_init(&b);
    /* One stream for all users, so that the n requests are the same whoever asks for them:
     * `concurrent` changes when they come and not what they are. */
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
    spec_keys_help(keys, TASK_NUMBERS, out);
}
