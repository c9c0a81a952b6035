#include "sim/metrics/usage.h"

/* The lowest demand whose rounded quotient with the peak is at least frac. */
static double demand_from(double frac, double peak_bytes_per_s)
{
    double x = frac * peak_bytes_per_s;
    if (frac <= 0.0 || !isfinite(x)) {
        return x;
    }
    while (x / peak_bytes_per_s >= frac) {
        x = nextafter(x, 0.0);
    }
    while (x / peak_bytes_per_s < frac) {
        x = nextafter(x, HUGE_VAL);
    }
    return x;
}

void usage_init(struct usage *u, const struct machine *machine, double tier_medium_frac,
                double tier_high_frac, const struct metrics_range *range)
{
    memset(u, 0, sizeof *u);
    u->machine = machine;
    u->tier_medium_from = demand_from(tier_medium_frac, machine->ddr_peak_bytes_per_s);
    u->tier_high_from = demand_from(tier_high_frac, machine->ddr_peak_bytes_per_s);
    u->speed = u->speed_least = 1.0;
    for (uint32_t i = 0; i < machine->n_devices; i++) {
        u->watts[i] = machine->devices[i].idle_watts;
        for (uint32_t m = 0; m < METRICS_MAX_MODELS; m++) {
            u->range[i].limit[m] = usage_range_limit(range[m * MACHINE_MAX_DEVICES + i]);
        }
    }
}

/* Sums all terms in a fixed order, so that rounding does not depend on the history. */
static inline double total_watts(const struct usage *u)
{
    double watts = u->machine->idle_watts;
    for (uint32_t i = 0; i < u->machine->n_devices; i++) {
        watts += u->watts[i];
    }
    watts += u->watts[OBSERVER_DOMAIN_COMPILER];
    return watts + u->watts[OBSERVER_DOMAIN_HOST];
}

/* Several domains may change at one instant, so states of zero length have no effect. */
static inline void advance(struct usage *u, int64_t now_ns)
{
    SIM_ASSERT(now_ns >= u->now_ns);
    if (now_ns == u->now_ns) {
        return;
    }
    double watts = total_watts(u);
    u->peak_watts = watts > u->peak_watts ? watts : u->peak_watts;
    if (u->working[DEVICE_KIND_NPU] > 0 && u->working[DEVICE_KIND_IGPU] > 0) {
        u->overlap_ns += now_ns - u->now_ns;
    }
    u->now_ns = now_ns;
}

static inline void close_phase(struct usage *u, int64_t now_ns, uint8_t domain)
{
    int64_t dt = now_ns - u->since_ns[domain];
    SIM_ASSERT(dt >= 0 && u->watts[domain] >= 0.0);
    u->phase_ns[domain][u->phase[domain]] += dt;
    u->watt_ns[domain][u->phase[domain]] += u->watts[domain] * (double)dt;
    u->since_ns[domain] = now_ns;
}

void usage_power(struct usage *u, int64_t now_ns, uint8_t domain, enum power_phase phase,
                 double watts)
{
    SIM_ASSERT(domain < OBSERVER_DOMAINS && (int)phase < USAGE_PHASES && watts >= 0.0);
    advance(u, now_ns);
    close_phase(u, now_ns, domain);
    bool works = phase != POWER_PHASE_IDLE;
    if (works != (u->phase[domain] != POWER_PHASE_IDLE) && domain < u->machine->n_devices) {
        uint32_t *working = &u->working[u->machine->devices[domain].kind];
        *working = works ? *working + 1 : *working - 1;
    }
    u->phase[domain] = phase;
    u->watts[domain] = watts;
}

void usage_frame(struct usage *u, int64_t now_ns, enum frame_state to, int64_t due_ns)
{
    switch (to) {
    case FRAME_MISSED:
        u->frames_missed++;
        break;
    case FRAME_STARTED:
        u->frames++;
        u->frame_runs = true;
        u->frame_since_ns = now_ns;
        u->frame_wait_ns += now_ns - due_ns;
        break;
    case FRAME_DONE:
        u->frame_ns += now_ns - u->frame_since_ns;
        u->frame_runs = false;
        if (now_ns - due_ns > u->frame_late_ns) {
            u->frame_late_ns = now_ns - due_ns;
        }
        break;
    }
}

void usage_speed(struct usage *u, int64_t now_ns, double speed)
{
    SIM_ASSERT(speed > 0.0 && speed <= 1.0 && now_ns >= u->speed_since_ns);
    if (now_ns > u->speed_since_ns) { /* else it lasted for no time */
        u->speed_lost_ns += (1.0 - u->speed) * (double)(now_ns - u->speed_since_ns);
        u->speed_least = u->speed < u->speed_least ? u->speed : u->speed_least;
    }
    u->speed_since_ns = now_ns;
    u->speed = speed;
}

/* Adds the host's time in a state of r, from the second launch on. */
static void repeated_host(struct usage *u, const struct repeat_record *r, int64_t busy_ns,
                          int64_t end_ns)
{
    const uint32_t host = OBSERVER_DOMAIN_HOST;
    bool tail = r->tail_watts > 0.0 && r->sample_ns > 0;
    int64_t ns = (r->host_watts > 0.0 ? busy_ns : 0) + (tail ? (r->n - 1) * r->sample_ns : 0);
    u->phase_ns[host][POWER_PHASE_DECODE] += ns;
    u->phase_ns[host][POWER_PHASE_IDLE] += end_ns - u->since_ns[host] - ns;
    u->since_ns[host] = end_ns;
}

/* Adds the DDR bytes of attention in repeated launches, as usage_ddr does. They are whole numbers,
 * so sums do not depend on the order. */
static void repeated_ddr(struct usage *u, const struct repeat_record *r)
{
    int64_t bytes = 0;
    int64_t tier_ns[USAGE_TIERS] = {0};
    for (uint32_t k = 0; k < r->n; k++) {
        const struct kernel_cost *a = &r->attention[k];
        double s = units_s_from_ns(a->load_ns);
        double demand = a->bytes / s;
        if (demand > 0.0) {
            bytes += units_round(demand * s);
            tier_ns[usage_tier(u, demand)] += a->load_ns;
        }
    }
    u->ddr_demand_bytes += (units_sum)r->layers * bytes;
    for (int i = 0; i < USAGE_TIERS; i++) {
        u->tier_ns[i] += (units_sum)r->layers * tier_ns[i];
    }
}

/* Adds energy from the second launch on; busy_ns is their time. The device idles between launches.
 * Doubles are added in local variables in the order of single launches, so sums are equal to the
 * last bit. */
static void repeated_power(struct usage *u, const struct repeat_record *r, int64_t busy_ns)
{
    uint8_t d = r->launch->device;
    double idle = u->watt_ns[d][POWER_PHASE_IDLE];
    double busy = u->watt_ns[d][POWER_PHASE_DECODE];
    double host = u->watt_ns[OBSERVER_DOMAIN_HOST][POWER_PHASE_DECODE];
    int64_t rest_ns = r->lead_ns + r->sample_ns;
    double tail = r->tail_watts * (double)r->sample_ns;
    double rest = u->watts[d] * (double)rest_ns;
    bool host_draws = r->host_watts > 0.0 || tail > 0.0;
    for (uint32_t k = 1; k < r->n; k++) {
        idle += rest;
        busy += r->device_watts * (double)r->isolated_ns[k];
        if (host_draws) {
            host += r->host_watts * (double)r->isolated_ns[k];
            host += tail;
        }
    }
    u->watt_ns[d][POWER_PHASE_IDLE] = idle;
    u->watt_ns[d][POWER_PHASE_DECODE] = busy;
    u->watt_ns[OBSERVER_DOMAIN_HOST][POWER_PHASE_DECODE] = host;
    if (r->n > 1) {
        u->phase_ns[d][POWER_PHASE_IDLE] += (r->n - 1) * rest_ns;
        u->phase_ns[d][POWER_PHASE_DECODE] += busy_ns;
        u->since_ns[d] += (r->n - 1) * rest_ns + busy_ns;
        u->now_ns = u->since_ns[d] + (tail > 0.0 ? r->sample_ns : 0);
        repeated_host(u, r, busy_ns, u->since_ns[d] + r->sample_ns);
    }
}

int64_t usage_repeated(struct usage *u, const struct repeat_record *r, int64_t now_ns)
{
    uint8_t d = r->launch->device;
    int64_t all_ns = now_ns - r->begin_ns - (int64_t)r->n * (r->lead_ns + r->sample_ns);
    int64_t busy_ns = all_ns - r->isolated_ns[0]; /* from the second launch on */
    SIM_ASSERT(r->n > 0);
    repeated_power(u, r, busy_ns);
    repeated_ddr(u, r);
    int64_t lead_ns = 0;
    (void)usage_leave(u, r->launch, r->begin_ns + r->lead_ns + r->isolated_ns[0], &lead_ns);
    u->reactive[d].sum_ns += r->launch->pass->has_reactive ? (r->n - 1) * r->lead_ns + busy_ns : 0;
    u->actual_ns += all_ns;
    u->isolated_ns += all_ns;
    struct usage_range *x = &u->range[d];
    const struct pass *p = r->launch->pass;
    const struct metrics_range *limit = &x->limit[p->shape.model];
    x->work_ns[p->shape.model] += all_ns;
    uint64_t longest = 0; /* context of the first; grows by a token each */
    for (uint32_t i = 0; i < p->n_segments; i++) {
        uint64_t context = (uint64_t)p->segments[i].request->kv_tokens + 1;
        longest = context > longest ? context : longest;
    }
    for (uint32_t k = 0; k < r->n; k++) {
        usage_range_add(x, p->n_segments > limit->rows_max, longest + k > limit->context_max,
                        r->isolated_ns[k]);
    }
    return all_ns;
}

/* Whether the phases of a domain sum to the run's time. */
static bool phases_sum_to(const struct usage *u, uint8_t domain, int64_t end_ns)
{
    int64_t sum_ns = 0;
    for (int p = 0; p < USAGE_PHASES; p++) {
        SIM_ASSERT(u->phase_ns[domain][p] >= 0 && u->watt_ns[domain][p] >= 0.0);
        sum_ns += u->phase_ns[domain][p];
    }
    return sum_ns == end_ns;
}

void usage_finish(struct usage *u, int64_t now_ns)
{
    usage_speed(u, now_ns, u->speed);
    /* A frame at the end of the run. */
    u->frame_ns += u->frame_runs ? now_ns - u->frame_since_ns : 0;
    advance(u, now_ns);
    for (uint8_t i = 0; i < OBSERVER_DOMAINS; i++) {
        close_phase(u, now_ns, i);
        SIM_ASSERT(phases_sum_to(u, i, now_ns));
    }
    SIM_ASSERT(u->ddr_denied_bytes >= 0 && u->overlap_ns <= now_ns);
}

/* Whether the machine's file states any power. If not, energy is unknown, not 0. */
static bool powers_are_known(const struct machine *m)
{
    bool known = m->idle_watts > 0.0 || m->poll_watts > 0.0 || m->compile_watts > 0.0;
    for (uint32_t i = 0; i < m->n_devices && !known; i++) {
        const struct device *d = &m->devices[i];
        known = d->idle_watts > 0.0 || d->decode_watts > 0.0 || d->prefill_watts > 0.0;
    }
    return known;
}

static double domain_joules(const struct usage *u, uint32_t domain)
{
    double watt_ns = powers_are_known(u->machine) ? 0.0 : METRIC_UNDEFINED;
    for (uint32_t p = 0; p < USAGE_PHASES; p++) {
        watt_ns += u->watt_ns[domain][p];
    }
    return watt_ns / 1e9;
}

static void collect_devices(const struct usage *u, const struct metrics_options *opt, double t_ns,
                            struct metric_list *out)
{
    for (uint32_t i = 0; i < u->machine->n_devices; i++) {
        const char *name = u->machine->devices[i].name;
        const int64_t *ns = u->phase_ns[i];
        double prefill = (double)ns[POWER_PHASE_PREFILL] / t_ns;
        double decode = (double)ns[POWER_PHASE_DECODE] / t_ns;
        const struct usage_range *x = &u->range[i];
        double launched_ns = x->all_ns > 0 ? (double)x->all_ns : METRIC_UNDEFINED;
#define DEVICE(part, title, unit, better, definition, value)                                       \
    metric_list_put(out, value, "%s." part, name);
#include "sim/metrics/metrics.def"
        if (u->machine->devices[i].kind == DEVICE_KIND_IGPU) {
            metric_list_put(out, opt->util_prefill_frac * prefill + opt->util_decode_frac * decode,
                            "%s.weighted_util_frac", name);
        }
        metric_list_put(out, domain_joules(u, i), "%s.energy_j", name);
    }
    metric_list_put(out, domain_joules(u, OBSERVER_DOMAIN_COMPILER), "compiler.energy_j");
    metric_list_put(out, domain_joules(u, OBSERVER_DOMAIN_HOST), "host.energy_j");
    metric_list_put(out, (double)u->phase_ns[OBSERVER_DOMAIN_COMPILER][POWER_PHASE_COMPILE] / t_ns,
                    "compiler.busy_frac");
}

static void collect_energy(const struct usage *u, double tokens, double output_tokens, double jobs,
                           struct metric_list *out)
{
    bool known = powers_are_known(u->machine);
    double idle = known ? u->machine->idle_watts * units_s_from_ns(u->now_ns) : METRIC_UNDEFINED;
    double active = 0.0;
    for (uint32_t i = 0; i < OBSERVER_DOMAINS; i++) {
        double idle_phase = u->watt_ns[i][POWER_PHASE_IDLE] / 1e9;
        idle += idle_phase;
        active += domain_joules(u, i) - idle_phase;
    }
    double all = idle + active;
#define ENERGY(part, title, unit, better, definition, value) metric_list_put(out, value, part);
#include "sim/metrics/metrics.def"
}

/* The busy time is divided among models as the isolated time of their launches. Without launches
 * all of it belongs to the first model. Unknown watts do not matter without such work. */
static double device_joules(const struct usage *u, const struct metrics_meter *m, uint32_t device)
{
    const int64_t *phase_ns = u->phase_ns[device];
    int64_t busy_ns = phase_ns[POWER_PHASE_PREFILL] + phase_ns[POWER_PHASE_DECODE];
    const units_sum *work_ns = u->range[device].work_ns;
    double all_ns = 0.0;
    for (uint32_t i = 0; i < METRICS_MAX_MODELS; i++) {
        all_ns += (double)work_ns[i];
    }
    double joules = 0.0;
    for (uint32_t i = 0; i < METRICS_MAX_MODELS && busy_ns > 0; i++) {
        double share = all_ns > 0.0 ? (double)work_ns[i] / all_ns : i == 0 ? 1.0 : 0.0;
        joules += share > 0.0 ? m->device_watts[i][device] * units_s_from_ns(busy_ns) * share : 0.0;
    }
    return joules;
}

static double metered_joules(const struct usage *u, const struct metrics_meter *m)
{
    double joules = m->idle_watts * units_s_from_ns(u->now_ns);
    for (uint32_t i = 0; i < u->machine->n_devices; i++) {
        joules += device_joules(u, m, i);
    }
    return m->factor * joules + domain_joules(u, OBSERVER_DOMAIN_COMPILER);
}

static void collect_metered(const struct usage *u, const struct metrics_meter *meter, double tokens,
                            double output_tokens, struct metric_list *out)
{
    double joules = metered_joules(u, meter);
    double run_s = u->now_ns > 0 ? units_s_from_ns(u->now_ns) : METRIC_UNDEFINED;
#define METERED(part, title, unit, better, definition, value) metric_list_put(out, value, part);
#include "sim/metrics/metrics.def"
}

void usage_collect(const struct usage *u, const struct metrics_options *opt, double tokens,
                   double output_tokens, double jobs, struct metric_list *out)
{
    double t_ns = u->now_ns > 0 ? (double)u->now_ns : METRIC_UNDEFINED;
    double ddr_ns = (double)(u->tier_ns[0] + u->tier_ns[1] + u->tier_ns[2]);
    double peak_bytes = u->machine->ddr_peak_bytes_per_s * t_ns / 1e9;
    collect_devices(u, opt, t_ns, out);
#define MACHINE(prefix, part, title, unit, better, definition, value)                              \
    metric_list_put(out, value, prefix part);
#include "sim/metrics/metrics.def"
    bool has_graphics = opt->frames || u->frames + u->frames_missed > 0;
#define GRAPHICS(part, suffix, title, unit, better, definition, value)                             \
    if (has_graphics)                                                                              \
        metric_list_put(out, value, part suffix);
#define SLOWED(part, title, unit, better, definition, value)                                       \
    if (opt->limited || u->speed_least < 1.0)                                                      \
        metric_list_put(out, value, part);
#include "sim/metrics/metrics.def"
#define PRESSURE(part, title, unit, better, definition, value)                                     \
    metric_list_put(out, value, "ddr." part);
#include "sim/metrics/metrics.def"
    tokens = tokens > 0.0 ? tokens : METRIC_UNDEFINED;
    output_tokens = output_tokens > 0.0 ? output_tokens : METRIC_UNDEFINED;
    collect_energy(u, tokens, output_tokens, jobs > 0.0 ? jobs : METRIC_UNDEFINED, out);
    if (opt->meter.factor > 0.0) {
        collect_metered(u, &opt->meter, tokens, output_tokens, out);
    }
}
