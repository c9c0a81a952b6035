/* Power domains, and the exact integral of their power. */
#include "sim/engine/power.h"

#include "sim/engine/engine.h"

/* Sums all domains again, in a fixed order: a sum updated by differences would depend on the
 * history. */
__attribute__((noinline)) static void watts_change(struct engine *e, uint8_t domain, double watts)
{
    struct power *p = &e->power;
    const struct machine *m = e->core.setup->machine;
    p->watts[domain] = watts;
    p->total_watts = m->idle_watts;
    for (uint32_t i = 0; i < m->n_devices; i++) { /* entries of absent devices are 0 */
        p->total_watts += p->watts[i];
    }
    p->total_watts += p->watts[OBSERVER_DOMAIN_COMPILER];
    p->total_watts += p->watts[OBSERVER_DOMAIN_HOST];
}

void power_init(struct engine *e)
{
    const struct machine *m = e->core.setup->machine;
    struct power *p = &e->power;
    p->polls = m->poll_watts > 0.0 && (e->core.setup->policy->flags & POLICY_F_BUSY_POLL) != 0;
    p->host_draws = p->polls || m->compile_watts > 0.0;
    for (uint32_t i = 0; i < m->n_devices; i++) {
        p->watts[i] = m->devices[i].idle_watts;
    }
    watts_change(e, OBSERVER_DOMAIN_HOST, 0.0);
}

/* Sets a domain's state. Returns whether it changed. */
static inline bool set(struct engine *e, uint8_t domain, enum power_phase phase, double watts)
{
    struct power *p = &e->power;
    if (p->phase[domain] == phase && p->watts[domain] == watts) {
        return false;
    }
    SIM_ASSERT(e->now_ns >= p->since_ns[domain] && e->now_ns >= p->total_since_ns);
    SIM_ASSERT(domain < OBSERVER_DOMAINS && watts >= 0.0 && isfinite(watts));
    p->joules[domain] += p->watts[domain] * units_s_from_ns(e->now_ns - p->since_ns[domain]);
    p->since_ns[domain] = e->now_ns;
    p->total_joules += p->total_watts * units_s_from_ns(e->now_ns - p->total_since_ns);
    p->total_since_ns = e->now_ns;
    p->phase[domain] = phase;
    if (watts != p->watts[domain]) {
        watts_change(e, domain, watts);
    }
    CORE_OBSERVE(&e->core, power, e->now_ns, domain, phase, watts);
    return true;
}

/* A busy-polling coordinator draws power while work is on a device; sampling occupies one CPU
 * thread, and so does reading the weights of a model. The machine states the watts of single-thread
 * CPU work (compile_watts). */
static bool power_host(struct engine *e)
{
    const struct machine *m = e->core.setup->machine;
    const struct channel_item *loads = (const struct channel_item *)e->loader.items.first;
    bool weights =
        loads != NULL && loads->resident != NULL && loads->resident->key.kind == RESIDENT_WEIGHTS;
    double watts = (e->power.tails + (weights ? 1.0 : 0.0)) * m->compile_watts;
    bool busy = false;
    for (uint32_t i = 0; e->power.polls && i < m->n_devices; i++) {
        busy = busy || e->power.phase[i] != POWER_PHASE_IDLE;
    }
    watts += busy ? m->poll_watts : 0.0;
    return set(e, OBSERVER_DOMAIN_HOST, watts > 0.0 ? POWER_PHASE_DECODE : POWER_PHASE_IDLE, watts);
}

/* A device's power at its frequency step, without power limits. */
static inline double full_watts(const struct engine *e, uint8_t device, enum power_phase phase)
{
    const struct device *d = e->devices[device].desc;
    double watts = phase == POWER_PHASE_PREFILL  ? d->prefill_watts
                   : phase == POWER_PHASE_DECODE ? d->decode_watts
                                                 : d->idle_watts;
    double power = e->governors[device].power;
    return power == 1.0 ? watts : d->idle_watts + (watts - d->idle_watts) * power;
}

static inline double watts_of(const struct engine *e, uint8_t device, enum power_phase phase)
{
    double idle = e->devices[device].desc->idle_watts;
    double share = e->throttle.speed < 1.0 ? throttle_share(e) : 1.0;
    return idle + (full_watts(e, device, phase) - idle) * share;
}

/* Sets the speed that power limits allow, and the power of devices at that speed. */
static void limits_follow(struct engine *e)
{
    uint8_t n = (uint8_t)e->core.setup->machine->n_devices;
    double above = 0.0; /* watts above idle at full speed */
    for (uint8_t i = 0; i < n; i++) {
        const struct device *d = e->devices[i].desc;
        above += full_watts(e, i, power_phase_of(e, i)) - d->idle_watts;
    }
    throttle_decide(e, above);
    for (uint8_t i = 0; i < n; i++) {
        enum power_phase phase = power_phase_of(e, i);
        set(e, i, phase, watts_of(e, i, phase));
    }
    throttle_watch(e);
}

void power_changed_limited(struct engine *e)
{
    if (e->throttle.on) {
        limits_follow(e);
    }
    if (e->battery.feeds) {
        battery_follow(e);
    }
}

void power_cap(struct engine *e, double watts)
{
    e->throttle.cap_watts = watts;
    e->throttle.on = e->core.setup->throttle.limit_watts > 0.0 || watts > 0.0;
    limits_follow(e); /* also back to full speed, if the limit is gone */
    power_changed(e);
}

static inline void enter_phase(struct engine *e, uint8_t device, enum power_phase phase)
{
    if (e->governed) {
        governor_phase(e, device, phase);
    }
    set(e, device, phase, watts_of(e, device, phase));
    if (e->power.polls) {
        power_host(e);
    }
    power_changed(e);
}

/* Sets a device's phase from what runs on it: prefill draws more than decode. */
void power_device(struct engine *e, uint8_t device)
{
    enter_phase(e, device, power_phase_of(e, device));
}

void power_channels(struct engine *e)
{
    bool on = e->compiler.items.first != NULL;
    double watts = on ? e->core.setup->machine->compile_watts : 0.0;
    enum power_phase phase = on ? POWER_PHASE_COMPILE : POWER_PHASE_IDLE;
    bool compiler = set(e, OBSERVER_DOMAIN_COMPILER, phase, watts);
    if (power_host(e) || compiler) {
        power_changed(e);
    }
}

void power_tail(struct engine *e, int delta)
{
    SIM_ASSERT(delta > 0 || e->power.tails > 0);
    e->power.tails += (uint32_t)delta;
    if (e->power.host_draws) {
        power_host(e);
    }
    power_changed(e);
}

/* An iteration has three states: the host's lead, with the power of an idle machine, then the
 * device's work, then sampling. States without duration add no energy. */
void power_repeat(struct engine *e, struct repeat_record *r)
{
    struct power *p = &e->power;
    uint8_t d = r->launch->device;
    if (r->lead_ns > 0) { /* without a lead the device is in that phase already */
        e->now_ns = r->begin_ns + r->lead_ns;
        enter_phase(e, d, POWER_PHASE_DECODE);
    }
    r->device_watts = p->watts[d];
    r->host_watts = p->watts[OBSERVER_DOMAIN_HOST];
    double busy_watts = p->total_watts;
    e->now_ns += r->isolated_ns[0];
    enter_phase(e, d, POWER_PHASE_IDLE);
    power_tail(e, 1);
    r->tail_watts = p->watts[OBSERVER_DOMAIN_HOST];
    double tail_watts = p->total_watts;
    e->now_ns = r->begin_ns + r->gap_ns[0];
    power_tail(e, -1);
    /* Local variables, added in the order of single launches, so that sums are equal to the last
     * bit. */
    bool tail = r->tail_watts > 0.0 && r->sample_ns > 0;
    double sample_s = units_s_from_ns(r->sample_ns);
    int64_t idle_ns = r->lead_ns + r->sample_ns;
    double idle_j = p->watts[d] * units_s_from_ns(idle_ns);
    double all_idle_j = p->total_watts * units_s_from_ns(tail ? r->lead_ns : idle_ns);
    double device_j = p->joules[d];
    double host_j = p->joules[OBSERVER_DOMAIN_HOST];
    double all_j = p->total_joules;
    for (uint32_t k = 1; k < r->n; k++) {
        double isolated_s = units_s_from_ns(r->isolated_ns[k]);
        device_j += idle_j;
        all_j += all_idle_j;
        device_j += r->device_watts * isolated_s;
        all_j += busy_watts * isolated_s;
        host_j += r->host_watts * isolated_s;
        if (tail) {
            host_j += r->tail_watts * sample_s;
            all_j += tail_watts * sample_s;
        }
        e->now_ns += r->gap_ns[k];
    }
    p->joules[d] = device_j;
    p->joules[OBSERVER_DOMAIN_HOST] = host_j;
    p->total_joules = all_j;
    if (r->n > 1) {
        p->since_ns[d] = e->now_ns - r->sample_ns;
        p->total_since_ns = tail ? e->now_ns : p->since_ns[d];
    }
    p->since_ns[OBSERVER_DOMAIN_HOST] = e->now_ns; /* it is idle now */
    power_changed(e);
}

void power_finish(struct engine *e)
{
    struct power *p = &e->power;
    struct sim_audit *a = &e->core.result->audit;
    if (e->governed) {
        governor_finish(e);
    }
    for (uint32_t i = 0; i < OBSERVER_DOMAINS; i++) {
        p->joules[i] += p->watts[i] * units_s_from_ns(e->now_ns - p->since_ns[i]);
        SIM_ASSERT(p->joules[i] >= 0.0 && isfinite(p->joules[i]));
        a->energy_sum_j += p->joules[i];
    }
    a->energy_sum_j += e->core.setup->machine->idle_watts * units_s_from_ns(e->now_ns);
    a->energy_integral_j = power_joules(e);
}
