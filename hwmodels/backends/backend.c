#include "hwmodels/backends/backend.h"

#include "hwmodels/backends/worker.h"
#include "sim/base/clock.h"

/* Every build has all of them. If the machine lacks what a backend needs, its `start` says what to
 * install. */
static const struct backend_ops *const backends[] = {
    &backend_blas, &backend_native, &backend_opencl, &backend_openvino, &backend_sim, NULL};

const struct backend_ops *const *backend_list(void)
{
    return backends;
}

const struct backend_ops *backend_find(const char *name)
{
    for (size_t i = 0; backends[i] != NULL; i++) {
        if (strcmp(backends[i]->name, name) == 0) {
            return backends[i];
        }
    }
    return NULL;
}

int64_t backend_now_ns(struct backend *b)
{
    /* Simulated devices have their own, virtual clock. */
    return b->ops->now_ns != NULL ? b->ops->now_ns(b) : clock_now_ns();
}

void backend_idle(struct backend *b, int64_t span_ns)
{
    if (b->ops->idle != NULL) {
        b->ops->idle(b, span_ns);
    } else {
        worker_sleep(span_ns);
    }
}
