#include "hwmodels/backends/simdev.h"

#include <float.h>

#include "sim/base/rng.h"

#define TWO_PI 6.283185307179586
#define PRIVATE_FRAC 0.15 /* SIMDEV_PRIVATE: slowdown per device number */

enum job_state { JOB_QUEUED, JOB_RUNNING, JOB_DONE, JOB_CANCELLED };

struct job {
    struct backend_kernel *kernel;
    enum job_state state;
    double left_s; /* remaining isolated time */
    struct backend_stamps stamps;
};

struct backend_device {
    struct backend *backend;
    uint32_t index;
    bool open;
    struct job ring[BACKEND_MAX_INFLIGHT];
    int64_t last_ticket, started, ended;
    int64_t busy_ns;
    struct rng rng;
};

struct backend_kernel {
    struct backend_kernel *next; /* list of all that are not released */
    struct backend_device *device;
    struct kernel_spec spec;
    double alone_s, bytes, flop;
    struct kernel_curve curve;
    double others_bytes_per_s, slowdown; /* cached: slowdown at that traffic */
};

struct state {
    struct simdev_truth truth;
    struct backend_device devices[MACHINE_MAX_DEVICES];
    struct backend_kernel *kernels;
    double now_s;
};

/* ---- the machine ---- */

static bool running(const struct backend_device *d)
{
    return d->open && d->started > d->ended;
}

static struct job *job_of(struct backend_device *d, int64_t ticket)
{
    return &d->ring[(uint64_t)ticket % BACKEND_MAX_INFLIGHT];
}

static const struct job *job_of_running(const struct backend_device *d)
{
    return &d->ring[(uint64_t)d->started % BACKEND_MAX_INFLIGHT];
}

/* Time of a device's running kernel while those of the others run, over its isolated time. */
static double slowdown(const struct state *s, uint32_t device)
{
    const struct backend_device *d = &s->devices[device];
    struct backend_kernel *k = job_of_running(d)->kernel;
    double others = 0.0;
    uint32_t n_others = 0;
    for (uint32_t i = 0; i < s->truth.soc.machine.n_devices; i++) {
        const struct backend_device *o = &s->devices[i];
        if (i != device && running(o)) {
            const struct backend_kernel *ok = job_of_running(o)->kernel;
            /* Contention depends on the isolated demand of the other kernels, not on their present
             * rates, so no fixed point is needed. */
            others += ok->bytes / ok->alone_s;
            n_others++;
        }
    }
    if (n_others == 0) {
        return 1.0;
    }
    if (s->truth.form == SIMDEV_PRIVATE) {
        return 1.0 + PRIVATE_FRAC * (device + 1);
    }
    if (others != k->others_bytes_per_s) {
        k->others_bytes_per_s = others;
        k->slowdown = kernel_model_slowdown(&k->curve, k->flop, k->bytes, others,
                                            &s->truth.contention, s->truth.lambda[k->spec.op]);
    }
    return k->slowdown;
}

/* Isolated time of this launch, with random effects. DBL_MAX: it hangs. */
static double draw_s(struct state *s, struct backend_device *d, const struct backend_kernel *k)
{
    const struct simdev_truth *t = &s->truth;
    if (rng_uniform(&d->rng) < t->hang_frac) {
        return DBL_MAX;
    }
    double drift = t->drift_frac * sin(TWO_PI * s->now_s / t->drift_period_s);
    /* Noise and drift are factors, because times of real kernels spread in proportion and are never
     * negative. */
    double seconds = k->alone_s * exp(drift + t->noise_frac * rng_normal(&d->rng));
    return rng_uniform(&d->rng) < t->outlier_frac ? seconds * t->outlier_factor : seconds;
}

static void start_queued(struct state *s)
{
    for (uint32_t i = 0; i < s->truth.soc.machine.n_devices; i++) {
        struct backend_device *d = &s->devices[i];
        while (d->open && d->started == d->ended && d->started < d->last_ticket) {
            struct job *l = job_of(d, ++d->started);
            if (l->state == JOB_CANCELLED) {
                d->ended = d->started;
                continue;
            }
            l->state = JOB_RUNNING;
            l->stamps.start_ns = units_ns_from_s(s->now_s);
            l->left_s = draw_s(s, d, l->kernel);
        }
    }
}

/* Runs all devices up to the next completion, at most to `until_s`. False: reached until_s. */
static bool step(struct state *s, double until_s)
{
    start_queued(s);
    double pace[MACHINE_MAX_DEVICES] = {0.0};
    double next_s = until_s;
    int first = -1;
    for (uint32_t i = 0; i < s->truth.soc.machine.n_devices; i++) {
        if (running(&s->devices[i])) {
            pace[i] = slowdown(s, i);
            double end_s =
                s->now_s + job_of(&s->devices[i], s->devices[i].started)->left_s * pace[i];
            if (end_s < next_s) {
                next_s = end_s;
                first = (int)i;
            }
        }
    }
    for (uint32_t i = 0; i < s->truth.soc.machine.n_devices; i++) {
        if (pace[i] > 0.0) {
            struct job *l = job_of(&s->devices[i], s->devices[i].started);
            l->left_s = fmax(0.0, l->left_s - (next_s - s->now_s) / pace[i]);
        }
    }
    s->now_s = next_s;
    if (first < 0) {
        return false;
    }
    struct backend_device *d = &s->devices[first];
    struct job *l = job_of(d, d->started);
    l->state = JOB_DONE;
    l->stamps.end_ns = units_ns_from_s(s->now_s);
    l->stamps.cpu_ns = -1;
    d->busy_ns += l->stamps.end_ns - l->stamps.start_ns;
    d->ended = d->started;
    return true;
}

/* ---- the interface ---- */

static struct backend *sim_start(const struct backend_options *o, struct err *e)
{
    if (o->truth == NULL) {
        return err_null(e, "backend sim: needs a SoC to simulate: name one with --soc");
    }
    struct state *s = xcalloc(1, sizeof *s);
    s->truth = *o->truth;
    const struct machine *m = &s->truth.soc.machine;
    if (s->truth.contention.cap_bytes_per_s <= 0.0) {
        s->truth.contention.cap_bytes_per_s = m->ddr_cap_frac * m->ddr_peak_bytes_per_s;
    }
    struct backend *b = xcalloc(1, sizeof *b);
    *b = (struct backend){&backend_sim, *o, s};
    return b;
}

static void sim_stop(struct backend *b)
{
    struct state *s = b->state;
    while (s->kernels != NULL) { /* remaining ones of hanging devices */
        OWNED struct backend_kernel *k = s->kernels;
        s->kernels = k->next;
    }
    free(b->state);
    free(b);
}

static uint32_t sim_enumerate(struct backend *b, struct backend_info *out, uint32_t cap)
{
    const struct state *s = b->state;
    const struct machine *m = &s->truth.soc.machine;
    for (uint32_t i = 0; i < m->n_devices && i < cap; i++) {
        struct backend_info *d = &out[i];
        memset(d, 0, sizeof *d);
        (void)snprintf(d->name, sizeof d->name, "%s", m->devices[i].name);
        (void)snprintf(d->description, sizeof d->description, "simulated %.60s", m->name);
        d->kind = m->devices[i].kind;
        d->act_bits = 16;
        d->kv_bits = 16;
        const struct soc_device *sd = &s->truth.soc.devices[i];
        for (uint32_t r = 0; r < sd->n_runtimes && d->n_widths < BACKEND_MAX_WIDTHS; r++) {
            uint32_t bits = sd->runtimes[r].weight_bits;
            bool twice = false;
            for (uint32_t j = 0; j < d->n_widths; j++) {
                twice = twice || d->weight_bits[j] == bits;
            }
            if (!twice) {
                d->weight_bits[d->n_widths++] = bits;
            }
        }
    }
    return m->n_devices;
}

static struct backend_device *sim_open(struct backend *b, uint32_t index, struct err *e)
{
    struct state *s = b->state;
    if (index >= s->truth.soc.machine.n_devices || s->devices[index].open) {
        return err_null(e, "device %u: not there, or open already", index);
    }
    struct backend_device *d = &s->devices[index];
    d->backend = b;
    d->index = index;
    d->open = true;
    rng_init(&d->rng, rng_key(s->truth.seed, RNG_BACKEND, index, 0));
    return d;
}

static void sim_close(struct backend_device *d)
{
    d->open = false;
}

static bool sim_supports(const struct backend_device *d UNUSED, const struct kernel_spec *s)
{
    return s->rows >= 1;
}

static struct backend_kernel *sim_prepare(struct backend_device *d, const struct kernel_spec *spec,
                                          struct backend_prep *out, struct err *e UNUSED)
{
    struct state *s = d->backend->state;
    struct backend_kernel *k = xcalloc(1, sizeof *k);
    k->device = d;
    k->spec = *spec;
    k->alone_s = simdev_alone_s(&s->truth, d->index, spec);
    k->flop = kernel_spec_flop(spec);
    k->bytes = kernel_spec_bytes(spec);
    k->others_bytes_per_s = -1.0; /* not computed */
    simdev_curve(&s->truth, d->index, spec, &k->curve);
    memset(out, 0, sizeof *out);
    out->compile_s = s->truth.compile_s;
    s->now_s += out->compile_s;
    k->next = s->kernels;
    s->kernels = k;
    return k;
}

static void sim_release(struct backend_kernel *k)
{
    struct state *s = k->device->backend->state;
    struct backend_kernel **at = &s->kernels;
    while (*at != k) {
        at = &(*at)->next;
    }
    *at = k->next;
    free(k);
}

static int64_t sim_submit(struct backend_kernel *k)
{
    struct backend_device *d = k->device;
    struct state *s = d->backend->state;
    if (d->last_ticket - d->ended >= BACKEND_MAX_INFLIGHT) {
        return -EAGAIN;
    }
    int64_t ticket = ++d->last_ticket;
    *job_of(d, ticket) = (struct job){.kernel = k, .state = JOB_QUEUED};
    job_of(d, ticket)->stamps.submit_ns = units_ns_from_s(s->now_s);
    return ticket;
}

static int sim_wait(struct backend_device *d, int64_t ticket, int64_t timeout_ns)
{
    struct state *s = d->backend->state;
    double until_s = s->now_s + units_s_from_ns(timeout_ns);
    while (d->ended < ticket) {
        if (!step(s, until_s) && d->ended < ticket) {
            return -ETIMEDOUT;
        }
    }
    return job_of(d, ticket)->state == JOB_CANCELLED ? -ECANCELED : 0;
}

static int sim_stamps(struct backend_device *d, int64_t ticket, struct backend_stamps *out)
{
    if (ticket < 1 || ticket > d->ended || d->last_ticket - ticket >= BACKEND_MAX_INFLIGHT ||
        job_of(d, ticket)->state != JOB_DONE) {
        return -EINVAL;
    }
    *out = job_of(d, ticket)->stamps;
    return 0;
}

static int64_t sim_cancel(struct backend_device *d, int64_t ticket)
{
    int64_t stays = ticket - 1 > d->started ? ticket - 1 : d->started;
    for (int64_t t = stays + 1; t <= d->last_ticket; t++) {
        job_of(d, t)->state = JOB_CANCELLED;
    }
    return stays < d->last_ticket ? stays : d->last_ticket;
}

static void sim_counters(struct backend_device *d, struct backend_counters *out)
{
    out->busy_valid = true;
    out->busy_ns = d->busy_ns;
}

static int64_t sim_now_ns(struct backend *b)
{
    return units_ns_from_s(((const struct state *)b->state)->now_s);
}

static void sim_idle(struct backend *b, int64_t span_ns)
{
    struct state *s = b->state;
    double until_s = s->now_s + units_s_from_ns(span_ns);
    while (step(s, until_s)) {
    }
}

static void sim_host(struct backend *b, struct backend_host *out)
{
    out->foreign_frac = ((const struct state *)b->state)->truth.foreign_frac;
    out->steal_frac = 0.0;
}

const struct backend_ops backend_sim = {
    .name = "sim",
    .summary = "the simulator's own models in virtual time, with noise and contention",
    .virtual_time = true,
    .start = sim_start,
    .stop = sim_stop,
    .enumerate = sim_enumerate,
    .open = sim_open,
    .close = sim_close,
    .supports = sim_supports,
    .prepare = sim_prepare,
    .release = sim_release,
    .submit = sim_submit,
    .wait = sim_wait,
    .stamps = sim_stamps,
    .cancel = sim_cancel,
    .counters = sim_counters,
    .now_ns = sim_now_ns,
    .idle = sim_idle,
    .host = sim_host,
};
