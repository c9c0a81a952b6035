/* Algorithm 1 of agent-xpu-v1 (A.6): dispatch by memory pressure, P_mem = sum of the bandwidths of
 * all running work, as a share of the peak. */
#include "policies/agent_xpu_v1/agent_xpu_v1.h"

double v1_pressure(const struct sched *s, const struct v1 *v)
{
    double sum = 0.0;
    for (uint32_t i = 0; i < s->machine->n_devices; i++) {
        sum += v->active[i].launch == NULL ? 0.0 : v->active[i].bytes_per_s;
    }
    return sum / s->machine->ddr_peak_bytes_per_s;
}

static bool memory_bound_runs(const struct sched *s, const struct v1 *v, uint32_t *n_active)
{
    bool found = false;
    *n_active = 0;
    for (uint32_t i = 0; i < s->machine->n_devices; i++) {
        const struct v1_active *a = &v->active[i];
        *n_active += a->launch == NULL ? 0 : 1;
        found = found || (a->launch != NULL && a->memory_bound);
    }
    return found;
}

/* Returns NULL to launch the kernel, or else the list in which it waits. `text` tests step 3 before
 * the class of step 4, as printed, so an isolated decode above tau_high blocks everything.
 * `intensity` keeps only the purpose of the tiers: two memory-bound kernels do not overlap, and
 * reactive ones never wait. */
static const char *refused_by(struct sched *s, const struct v1 *v, const struct v1_kernel *k,
                              int64_t refused_ns)
{
    uint32_t n_active;
    bool other = memory_bound_runs(s, v, &n_active);
    enum v1_pressure rule = (enum v1_pressure)param_int(s, V1_PRESSURE);
    if (rule == V1_PRESSURE_OFF || (n_active == 0 && param_bool(s, V1_IDLE_GUARD))) {
        return NULL;
    }
    bool pair = k->memory_bound && other;
    if (rule == V1_PRESSURE_INTENSITY) {
        return k->reactive || !pair ? NULL : "deferred";
    }
    double p = v1_pressure(s, v);
    double more = k->bytes_per_s / s->machine->ddr_peak_bytes_per_s;
    if (p + more > param_number(s, V1_TAU_HIGH)) {
        return "wait_slot";
    }
    if (k->reactive || (refused_ns != TIME_NEVER_NS && s->now_ns - refused_ns > v1_starve_ns(s))) {
        return NULL;
    }
    if (p < param_number(s, V1_TAU_LOW)) {
        return NULL;
    }
    /* The medium tier: "selective pairing based on kernel memory intensity" (6.4). */
    return p < param_number(s, V1_TAU_HIGH) && !pair ? NULL : "deferred";
}

bool v1_admits_alone(struct sched *s, const struct v1_kernel *k)
{
    /* Only the printed variant can refuse a kernel on an idle machine. */
    return param_int(s, V1_PRESSURE) != V1_PRESSURE_TEXT || param_bool(s, V1_IDLE_GUARD) ||
           k->bytes_per_s <= param_number(s, V1_TAU_HIGH) * s->machine->ddr_peak_bytes_per_s;
}

bool v1_admits_instead(struct sched *s, const struct v1 *v, const struct v1_kernel *k, int device)
{
    struct v1 then = *v;
    then.active[device] = (struct v1_active){0};
    return refused_by(s, &then, k, v1_context(k->request)->refused_ns) == NULL;
}

bool v1_admit(struct sched *s, const struct v1 *v, const struct v1_kernel *k, int64_t *refused_ns)
{
    const char *list = refused_by(s, v, k, *refused_ns);
    if (list == NULL) {
        *refused_ns = TIME_NEVER_NS;
        return true;
    }
    if (*refused_ns == TIME_NEVER_NS) {
        *refused_ns = s->now_ns;
        (void)sched_note(s, list, 1);
    }
    return false;
}
