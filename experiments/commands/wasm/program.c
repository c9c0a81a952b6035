/* `xpusim compare` as a program for a browser: the command, and replacements for some parts of the
 * host. Functions that a page cannot have (database, processes, packed files) are undefined;
 * plots/live_wasm.js makes each of them an error that names it. */
#include <sys/random.h>
#include <sys/types.h>

#include "experiments/commands/commands.h"
#include "experiments/run/plugin.h"
#include "experiments/run/pool.h"
#include "policies/external/external.h"
#include "sim/base/input.h"
#include "sim/base/memory.h"

/* ---- instead of experiments/run/pool.c: jobs run in this process, one by one ---- */

bool pool_wanted(struct pool_worker *w UNUSED, const char *key UNUSED)
{
    return false; /* only a store asks, which a page lacks */
}

int pool_run(const struct pool *p)
{
    uint64_t job = 0;
    while (p->next(p->ctx, &job)) {
        struct job_result r;
        memset(&r, 0, sizeof r);
        p->work(p->ctx, job, NULL, &r);
        p->done(p->ctx, job, &r);
        free(r.data);
    }
    return 0;
}

/* ---- instead of experiments/run/worker.c and plugin.c ---- */

uint64_t worker_stdout_bytes(void)
{
    return 0;
}

uint32_t worker_processors(void)
{
    return 1;
}

size_t plugin_path_length(const char *spec UNUSED)
{
    return 0; /* a page has only built-in policies */
}

bool plugin_is_code(const char *spec UNUSED)
{
    return false;
}

const struct arena_source *hosted_memory(const struct policy_ops *ops UNUSED)
{
    return NULL;
}

uint64_t plugin_code_hash(const char *spec UNUSED)
{
    return 0;
}

/* ---- instead of sim/base/input_any.c: files of a page are not packed ---- */

FILE *input_open_any(const char *path, char *head, struct err *e)
{
    FILE *f = input_open(path, e);
    char own[INPUT_HEAD_BYTES];
    if (f != NULL) {
        head = head != NULL ? head : own;
        head[fread(head, 1, INPUT_HEAD_BYTES - 1, f)] = '\0';
        rewind(f);
    }
    return f;
}

/* ---- instead of the C library's random numbers, which only plug-ins need ---- */

ssize_t getrandom(void *out, size_t n, unsigned flags UNUSED)
{
    memset(out, 0x5a, n);
    return (ssize_t)n;
}

int main(int argc, char **argv)
{
    memory_guard();
    int status = argc > 1 ? command_main(&cmd_compare, argc - 1, argv + 1) : EXIT_BAD_INPUT;
    (void)fflush(stdout);
    return status;
}
