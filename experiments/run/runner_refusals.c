/* What a policy was refused, in words and as data. */
#include "experiments/run/runner.h"

static const char *errno_name(int status)
{
    static const struct {
        int status;
        const char *name;
    } names[] = {{-EBUSY, "EBUSY"},   {-EINVAL, "EINVAL"},     {-ENOMEM, "ENOMEM"},
                 {-ENOENT, "ENOENT"}, {-EALREADY, "EALREADY"}, {-EPERM, "EPERM"}};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (names[i].status == status) {
            return names[i].name;
        }
    }
    return "error";
}

const char *runner_refusal_text(const struct sim_refusal *x, char text[RUNNER_REFUSAL_BYTES])
{
    SIM_ASSERT(x->n > 0 && x->first_ns >= 0 && x->status < 0); /* a row is made by its first */
    bool in_hook = strcmp(x->hook, "schedule") != 0;
    (void)snprintf(text, RUNNER_REFUSAL_BYTES,
                   "%s %" PRIu64 " time%s%s%s, first at %.6g s: %s (%s)", x->action, x->n,
                   x->n == 1 ? "" : "s", in_hook ? " in " : "", in_hook ? x->hook : "",
                   units_s_from_ns(x->first_ns), x->why, errno_name(x->status));
    return text;
}

/* Actions that were refused as wrong; those that asked for KV there was none of are no fault. */
void runner_refusals(const struct sim_result *s, struct document *d)
{
    struct frame *f = document_data(d, "refused", 0, "action hook reason error count first_s");
    for (uint32_t i = 0; i < s->n_refusals; i++) {
        const struct sim_refusal *x = &s->refusals[i];
        if (counter_is_refusal(x->counter)) {
            FRAME_ROW(f, x->action, x->hook, x->why, errno_name(x->status), (double)x->n,
                      units_s_from_ns(x->first_ns));
        }
    }
}
