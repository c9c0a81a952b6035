/* `native`: this project's kernels on CPU cores, one pinned thread per device. Always available. */
#include "hwmodels/backends/cpu.h"

static struct backend *start(const struct backend_options *o, struct err *e UNUSED)
{
    struct backend *b = xcalloc(1, sizeof *b);
    struct cpu_backend *s = xcalloc(1, sizeof *s);
    s->kernels = *native_kernels_best();
    (void)snprintf(s->description, sizeof s->description, "own kernels (%s)", s->kernels.name);
    *b = (struct backend){&backend_native, *o, s};
    return b;
}

static void stop(struct backend *b)
{
    free(b->state);
    free(b);
}

const struct backend_ops backend_native = {
    .name = "native",
    .summary = "own kernels on CPU cores",
    .start = start,
    .stop = stop,
    CPU_BACKEND_OPS,
};
