#include "experiments/run/other_binary.h"

#include <unistd.h>

#include "experiments/run/jobs.h"
#include "sim/base/input.h"

#define FIXED_ARGUMENTS 22
#define COMPLAINT "xpusim: error: "

/* A run of another binary, and the files of its two streams. */
struct other_run {
    const char *binary;
    const struct config_options *options;
    const char *policy, *seed, *decisions;
    FILE *out, *err;
};

/* In a worker process: executes the binary, and does not return. */
static void become(void *ctx, uint32_t index UNUSED, struct job_result *r UNUSED)
{
    const struct other_run *l = ctx;
    const struct config_options *o = l->options;
    const struct metrics_asked *asked = &o->asked;
    const char *args[FIXED_ARGUMENTS + 2 * (CONFIG_MAX_SETS + 2 * METRICS_MAX_ASKED)] = {
        l->binary,
        "run",
        "--json",
        "--quiet",
        "--soc",
        o->soc,
        "--llm",
        o->llm,
        "--policy",
        l->policy,
        "--seed",
        l->seed,
        o->trace != NULL ? "--trace" : "--workload",
        o->trace != NULL ? o->trace : o->workload};
    size_t n = 14;
    for (uint32_t i = 0; i < o->n_sets; i++) {
        args[n++] = "--set";
        args[n++] = o->sets[i];
    }
    for (uint32_t i = 0; i < asked->n_percents; i++) {
        args[n++] = "--quantile";
        args[n++] = xkeep(xformat("%g", asked->percent[i]));
    }
    for (uint32_t i = 0; i < asked->n_limits; i++) {
        args[n++] = "--below";
        args[n++] = xkeep(xformat("%g", asked->limit[i]));
    }
    if (asked->reader.tokens_per_s > 0.0) {
        args[n++] = "--qoe";
        args[n++] = xkeep(xformat("%.15g,%.15g", asked->reader.ttft_s, asked->reader.tokens_per_s));
    }
    if (o->machine != NULL) {
        args[n++] = "--machine";
        args[n++] = o->machine;
    }
    if (l->decisions != NULL) {
        args[n++] = "--decisions";
        args[n++] = l->decisions;
    }
    args[n] = NULL;
    if (dup2(fileno(l->out), STDOUT_FILENO) >= 0 && dup2(fileno(l->err), STDERR_FILENO) >= 0) {
        /* execv takes non-const pointers for historical reasons, and changes nothing. */
        union {
            const char **in;
            char **out;
        } list = {.in = args};
        (void)execv(l->binary, list.out);
    }
    static const char text[] = "cannot be started\n";
    (void)!write(fileno(l->err), text, sizeof text - 1);
    _exit(127);
}

/* Runs it. If it fails, returns NULL with the first line of its error, without the program's name,
 * if there is one. */
static cJSON *result_of(struct other_run *l, char *message, size_t size)
{
    struct job_result r;
    struct jobs j = {.n = 1, .parallel = 1, .ctx = l, .run = become};
    jobs_run(&j, &r);
    free(r.data);
    OWNED char *text = input_said(l->out);
    OWNED char *complaint = input_said(l->err);
    cJSON *tree = r.exit_status == 0 ? cJSON_Parse(text) : NULL;
    size_t skip = strncmp(complaint, COMPLAINT, strlen(COMPLAINT)) == 0 ? strlen(COMPLAINT) : 0;
    if (tree == NULL && r.exit_status == 0 && text[0] != '\0') {
        (void)snprintf(message, size, "its result is not JSON");
    } else if (tree == NULL && complaint[0] != '\0') {
        (void)snprintf(message, size, "%.*s", (int)strcspn(complaint + skip, "\n"),
                       complaint + skip);
    } else if (tree == NULL) {
        (void)snprintf(message, size, "%s", r.message);
    }
    return tree;
}

cJSON *other_binary_run(const char *binary, const struct config_options *o, const char *policy,
                        uint64_t seed, const char *decisions, char *message, size_t size)
{
    OWNED char *seed_text = xformat("%" PRIu64, seed);
    struct other_run l = {binary, o, policy, seed_text, decisions, tmpfile(), tmpfile()};
    message[0] = '\0';
    if (l.out == NULL || l.err == NULL) {
        (void)snprintf(message, size, "no temporary file: %s", strerror(errno));
        return NULL;
    }
    return result_of(&l, message, size);
}
