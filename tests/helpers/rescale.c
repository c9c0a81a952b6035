#include "tests/helpers/rescale.h"

#include <math.h>

static struct rescale by;
static const struct hwmodel *truth;

static void changed_kernel(const struct hwmodel *m, const struct kernel_query *q,
                           struct kernel_cost *out)
{
    hwmodel_kernel(truth, q, out);
    out->t_ns = (out->t_ns << by.time) - (by.faster ? out->t_ns / 4 : 0);
    out->load_ns = (out->load_ns << by.time) - (by.faster ? out->load_ns / 4 : 0);
    if (by.more_ns != 0 && out->t_ns > 0) {
        int64_t longer_ns = out->t_ns + by.more_ns;
        out->t_ns = longer_ns > 1 ? longer_ns : 1;
        /* Bytes that move for less long are fewer: the kernel asks for no more bandwidth. */
        int64_t load_ns = out->load_ns < out->t_ns ? out->load_ns : out->t_ns;
        out->bytes *= load_ns < out->load_ns ? (double)load_ns / (double)out->load_ns : 1.0;
        out->load_ns = load_ns;
    }
    out->bytes = ldexp(out->bytes, by.bytes);
    if (by.time > 0) { /* t_ns is rounded, at most half of one down */
        out->bytes = fmin(out->bytes, ldexp(m->machine->ddr_peak_bytes_per_s, -by.time) * 1e-9 *
                                          (double)out->t_ns);
    }
}

static double changed_ridge(const struct hwmodel *m, uint8_t device)
{
    (void)m;
    return ldexp(truth->ops->ridge_flop_per_byte(truth, device), -by.bytes);
}

static uint32_t same_limit(const struct hwmodel *m, uint8_t device)
{
    (void)m;
    return truth->ops->context_limit(truth, device);
}

const struct hwmodel *rescale_kernels(const struct hwmodel *of, struct rescale how)
{
    static struct hwmodel_ops ops;
    static struct hwmodel changed;
    truth = of;
    by = how;
    ops = (struct hwmodel_ops){.name = truth->ops->name,
                               .kernel = changed_kernel,
                               .ridge_flop_per_byte = changed_ridge,
                               .context_limit =
                                   truth->ops->context_limit == NULL ? NULL : same_limit};
    changed = *truth;
    changed.ops = &ops;
    return &changed;
}

void rescale_durations(struct machine *m)
{
    int64_t *const durations[] = {
        &m->sync_ns,         &m->schedule_ns,   &m->sample_ns_per_token, &m->compile_fixed_ns,
        &m->loader_fixed_ns, &m->swap_fixed_ns, &m->loader_evict_ns,     &m->compile_evict_ns};
    for (size_t i = 0; i < sizeof durations / sizeof durations[0]; i++) {
        *durations[i] *= 2;
    }
    m->compile_ns_per_token *= 2.0;
    m->loader_bytes_per_s /= 2.0;
    m->swap_bytes_per_s /= 2.0;
    for (uint32_t d = 0; d < m->n_devices; d++) {
        m->devices[d].submit_ns *= 2;
        m->devices[d].completion_ns *= 2;
        m->devices[d].reset_ns *= 2;
    }
}

void rescale_events(struct trace *t, int times, int64_t later_ns)
{
    for (uint32_t i = 0; i < t->n_machine; i++) {
        struct machine_event *v = &t->machine[i];
        v->at_ns = v->at_ns * times + later_ns;
        v->until_ns = v->every_ns > 0 ? v->until_ns * times + later_ns : v->until_ns;
        v->every_ns *= times;
        v->frames_per_s /= times;
        v->battery_j *= times; /* the same watts, as many times as long */
        v->battery_full_j *= times;
    }
}

void rescale_frames(struct sim_frames *f, struct trace *t, int64_t later_ns, int64_t at_ns)
{
    static struct machine_event changed[64];
    SIM_REQUIRE(t->n_machine <= sizeof changed / sizeof changed[0], "%u events", t->n_machine);
    f->per_s *= 1.0 - (double)later_ns / (double)at_ns;
    for (uint32_t i = 0; i < t->n_machine; i++) {
        changed[i] = t->machine[i];
        bool frames = (changed[i].sets & MACHINE_SETS_FRAMES) != 0;
        changed[i].at_ns += frames && changed[i].at_ns + later_ns >= 0 ? later_ns : 0;
    }
    t->machine = changed;
}

void rescale_setup(struct sim_setup *s)
{
    s->stall_ns *= 2;
    s->frames.per_s /= 2.0;
    s->frames.device_ns *= 2;
    s->throttle.tau_s *= 2.0;
    for (uint32_t d = 0; d < s->machine->n_devices; d++) {
        s->kernels[d].load_ns *= 2;
        s->dvfs[d].period_ns *= 2;
    }
}
