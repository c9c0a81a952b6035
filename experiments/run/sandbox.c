#include "experiments/run/sandbox.h"

#include <unistd.h>

#include "experiments/run/jobs.h"
#include "experiments/run/plugin.h"
#include "experiments/shell/cli.h"

struct inside {
    const struct sandbox *s;
    int results_fd; /* for results: the real standard output */
};

/* Does the work in a separate process, including its output. */
static void work_in_worker(void *ctx, uint32_t index UNUSED, struct job_result *r)
{
    const struct inside *in = ctx;
    const struct sandbox *s = in->s;
    SCOPED(err_fini) struct err e = ERR_INIT;
    FILE *out = fdopen(in->results_fd, "w");
    if (out == NULL) {
        out_of_memory(0);
    }
    if (s->writes_stdout) {
        (void)dup2(in->results_fd, STDOUT_FILENO);
    }
    int status = s->work(s->ctx, out, &e);
    err_print(&e, stderr);
    if (fflush(out) != 0 && status == EXIT_OK) {
        perror("xpusim: error: cannot write results");
        status = EXIT_CHECK_FAILED;
    }
    r->size = sizeof status + s->answer_bytes;
    char *back = xmalloc(r->size);
    memcpy(back, &status, sizeof status);
    if (s->answer_bytes > 0) {
        memcpy(back + sizeof status, s->answer, s->answer_bytes);
    }
    r->data = back;
}

static int run_outside(const struct sandbox *s, int *died)
{
    struct job_result r;
    struct inside in = {s, -1};
    struct jobs j = {
        .n = 1, .parallel = 1, .cpu_limit_s = s->time_limit_s, .ctx = &in, .run = work_in_worker};
    /* A forked worker would print buffered text again. */
    (void)fflush(stdout);
    /* Duplicate it before the fork, because the worker's standard output is redirected. */
    in.results_fd = dup(STDOUT_FILENO);
    jobs_run(&j, &r);
    (void)close(in.results_fd);
    if (r.status != 0 || r.data == NULL) {
        (void)fprintf(stderr, "xpusim: error: policy %s: the run did not end: %s\n", s->policy,
                      r.status != 0 ? r.message : "its process ended");
        *died = r.exit_status == 0 ? -1 : r.exit_status;
        return EXIT_CHECK_FAILED;
    }
    int status = EXIT_OK;
    memcpy(&status, r.data, sizeof status);
    if (s->answer_bytes > 0) {
        memcpy(s->answer, (char *)r.data + sizeof status, s->answer_bytes);
    }
    free(r.data);
    return status;
}

int sandbox_run(const struct sandbox *s, int *died, struct err *e)
{
    int unused = 0;
    died = died != NULL ? died : &unused;
    *died = 0;
    /* Only plug-ins need a process. A built-in policy runs here, with a time limit. */
    if (plugin_path_length(s->policy) > 0) {
        return run_outside(s, died);
    }
    OWNED char *message =
        xformat("policy %s: the run was given up after %g s of CPU time (--time-limit)", s->policy,
                s->time_limit_s);
    worker_limit_self(s->time_limit_s, message);
    return s->work(s->ctx, stdout, e);
}
