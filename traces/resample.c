/* A trace drawn from a recorded one: whole sessions, and the gaps between their starts. */
#include <stdlib.h>

#include "sim/api/request.h"
#include "sim/base/arena.h"
#include "sim/base/rng.h"
#include "sim/base/units.h"
#include "traces/traces.h"

struct draw {
    const struct trace *from;
    struct trace_builder out;
    struct rng rng;
    uint32_t n_sessions;
};

/* All turns of a session, the first one at start_ns. */
static void add_session(struct draw *d, uint32_t first, int64_t start_ns)
{
    const struct trace *t = d->from;
    const int64_t later_ns = start_ns - t->rows[first].arrival_ns;
    for (uint32_t i = first; i != TRACE_NO_ROW; i = t->rows[i].next) {
        struct trace_row row = t->rows[i];
        row.session_id = d->n_sessions;
        row.arrival_ns = i == first ? start_ns : row.arrival_ns;
        if (t->extras == NULL) {
            trace_builder_add(&d->out, &row, NULL);
            continue;
        }
        struct trace_extra extra = t->extras[i];
        extra.until_ns += extra.until_ns != TIME_NEVER_NS ? later_ns : 0; /* an instant */
        trace_builder_add(&d->out, &row, &extra);
    }
    d->n_sessions++;
}

/* Sessions of one class over the recorded window. Their number varies as the gaps do. */
static void draw_class(struct draw *d, int cls, int64_t window_ns)
{
    const struct trace *t = d->from;
    uint32_t *first = xmalloc((t->n_first + 1) * sizeof *first);
    uint32_t n = 0;
    for (uint32_t i = 0; i < t->n_first; i++) {
        if (t->rows[i].cls == cls) {
            first[n++] = i;
        }
    }
    for (int64_t now_ns = 0; n > 0;) {
        const uint32_t gap = rng_below(&d->rng, n);
        const int64_t before_ns = gap > 0 ? t->rows[first[gap - 1]].arrival_ns : 0;
        now_ns += t->rows[first[gap]].arrival_ns - before_ns;
        if (now_ns > window_ns || d->n_sessions > t->n * 4) { /* gaps of 0 never reach its end */
            break;
        }
        add_session(d, first[rng_below(&d->rng, n)], now_ns);
    }
    free(first);
}

int trace_resample(const struct trace *t, uint64_t seed, struct trace *out, struct err *e)
{
    if (t->graph != NULL) {
        return err_add(e, "sessions of request graphs cannot be redrawn: they belong to jobs");
    }
    struct draw d = {.from = t};
    trace_builder_init(&d.out);
    rng_init(&d.rng, rng_key(seed, RNG_RESAMPLE, 0, 0));
    const int64_t window_ns = t->n_first > 0 ? t->rows[t->n_first - 1].arrival_ns : 0;
    for (int cls = REQUEST_CLASS_REACTIVE; cls <= REQUEST_CLASS_PROACTIVE; cls++) {
        draw_class(&d, cls, window_ns);
    }
    if (d.n_sessions == 0 && t->n_first > 0) {
        add_session(&d, 0, t->rows[0].arrival_ns);
    }
    const int rc = trace_build(&d.out, true, "redrawn sessions", out, e);
    if (rc == 0) {
        trace_copy_machine(out, t);
    }
    trace_builder_fini(&d.out);
    return rc;
}
