#include "hwmodels/backends/measure.h"

#include <strings.h>

#include "hwmodels/backends/host.h"
#include "hwmodels/backends/measure_impl.h"
#include "sim/base/rng.h"

#define MB 1048576.0
#define CACHE_FACTOR 2.0     /* weights rotate through this many last-level caches ... */
#define MIN_POOL_MB 640.0    /* ... at least this (the protocol was validated with it) ... */
#define POOL_MEMORY_FRAC 0.2 /* ... and at most this share of the memory per device */

#define WINDOWS_OF_PAIR 5 /* each isolated, together, each isolated */
#define LOOK_S 1.0        /* time over which other load is observed */

void measure_options_init(struct measure_options *o)
{
    *o = (struct measure_options){.backend = &backend_native,
                                  .soc = "this-machine",
                                  .source = "xpusim measure",
                                  .size = PLAN_SMALL,
                                  .repetitions = 5,
                                  .min_samples = 5,
                                  .retries = 1,
                                  .window_s = 0.3,
                                  .deadline_s = 10.0,
                                  .foreign_limit_frac = 0.05,
                                  .steal_limit_frac = 0.02,
                                  .proc_dir = HOST_PROC_DIR,
                                  .rapl_dir = HOST_RAPL_DIR,
                                  .accel_dir = HOST_ACCEL_DIR,
                                  .seed = 1};
}

uint64_t measure_pool_bytes(const struct measure_options *o)
{
    const double cache_mb = host_cache_bytes() / MB;
    const double most_mb = POOL_MEMORY_FRAC * host_memory_bytes(o->proc_dir) / MB;
    double mb = CACHE_FACTOR * cache_mb > MIN_POOL_MB ? CACHE_FACTOR * cache_mb : MIN_POOL_MB;
    if (most_mb > 0.0 && mb > most_mb) {
        mb = most_mb;
        (void)fprintf(stderr,
                      "xpusim: weights rotate through %.0f MB only: less than twice the "
                      "last-level cache\n",
                      mb);
    }
    return (uint64_t)(mb * MB);
}

/* ---- repetitions ---- */

static void repetition_alone(struct measure *m, struct rng *rng)
{
    uint32_t order[MEASURE_MAX_DEVICES * PLAN_MAX_KERNELS];
    uint32_t n = 0;
    for (uint32_t d = 0; d < m->n_targets; d++) {
        for (uint32_t i = 0; i < m->targets[d].plan.n; i++) {
            order[n++] = d * PLAN_MAX_KERNELS + i;
        }
    }
    for (uint32_t i = n; i > 1; i--) { /* Fisher and Yates */
        uint32_t j = rng_below(rng, i);
        uint32_t swap = order[i - 1];
        order[i - 1] = order[j];
        order[j] = swap;
    }
    for (uint32_t i = 0; i < n; i++) {
        struct measure_target *t = &m->targets[order[i] / PLAN_MAX_KERNELS];
        measure_alone(m, t, &t->plan.kernels[order[i] % PLAN_MAX_KERNELS]);
    }
}

static void pairs_of(const struct measure *m, uint32_t a, uint32_t b, struct plan_pairs *out)
{
    (m->o->pairs_only ? plan_every_pair : plan_pairs)(&m->targets[a].info, &m->targets[b].info,
                                                      m->o->size, out);
}

static void repetition_pairs(struct measure *m)
{
    struct plan_pairs pairs;
    for (uint32_t a = 0; a < m->n_targets; a++) {
        for (uint32_t b = a + 1; b < m->n_targets; b++) {
            pairs_of(m, a, b, &pairs);
            for (uint32_t i = 0; i < pairs.n; i++) {
                measure_pair(m, &m->targets[a], &m->targets[b], &pairs.pairs[i]);
            }
        }
    }
}

static void count_steps(struct measure *m)
{
    struct plan_pairs pairs;
    uint32_t n = 0;
    uint32_t n_pairs = 0;
    for (uint32_t a = 0; a < m->n_targets; a++) {
        n += m->o->pairs_only ? 0 : m->targets[a].plan.n;
        for (uint32_t b = a + 1; b < m->n_targets && !m->o->alone_only; b++) {
            pairs_of(m, a, b, &pairs);
            n += pairs.n;
            n_pairs += pairs.n;
        }
    }
    m->steps_all = n * m->o->repetitions;
    m->windows_all = m->steps_all + (WINDOWS_OF_PAIR - 1) * n_pairs * m->o->repetitions;
}

/* Warns at the start, while stopping costs little: a busy machine takes longer, and its rows are
 * flagged. */
static void announce(const struct measure *m)
{
    const struct measure_options *o = m->o;
    struct host_times from = host_times_read(o->proc_dir);
    backend_idle(m->backend, units_ns_from_s(LOOK_S));
    struct host_times to = host_times_read(o->proc_dir);
    struct backend_host h = host_times_shares(&from, &to);
    double least_s = m->windows_all * o->window_s + (o->repetitions - 1) * o->spread_s;
    bool busy = h.foreign_frac > o->foreign_limit_frac || h.steal_frac > o->steal_limit_frac;
    (void)fprintf(
        stderr,
        "xpusim: %u windows of %g s: %.0f s at least, and as long again for each retry of "
        "a disturbed one (--retries %u)\n",
        m->windows_all, o->window_s, least_s, o->retries);
    if (h.foreign_frac < 0.0) {
        (void)fprintf(stderr, "xpusim: nothing says who else uses the processors here\n");
        return;
    }
    (void)fprintf(stderr,
                  "xpusim: others use %.0f %% of the processors now, the hypervisor %.0f %%%s\n",
                  100.0 * h.foreign_frac, 100.0 * h.steal_frac, busy ? ":" : "");
    if (busy) {
        (void)fprintf(
            stderr,
            "xpusim: above %.0f and %.0f %% a row is flagged, and --fit leaves it out. Better "
            "stop (Ctrl-C), and measure when the machine is idle; the same command continues\n",
            100.0 * o->foreign_limit_frac, 100.0 * o->steal_limit_frac);
    }
}

/* Sleeps for the pause in pieces, to reset the watchdog. */
static void pause_between(struct measure *m)
{
    for (double left_s = m->o->spread_s; left_s > 0.0; left_s -= 1.0) {
        watchdog_kick("the pause between repetitions", DRIVER_CALL_S);
        backend_idle(m->backend, units_ns_from_s(left_s < 1.0 ? left_s : 1.0));
    }
}

static void measure_all(struct measure *m)
{
    struct rng rng;
    rng_init(&rng, rng_key(m->o->seed, RNG_BACKEND, MEASURE_MAX_DEVICES, 1));
    count_steps(m);
    if (m->o->announce && m->o->backend->host == NULL) { /* a simulated machine is not this one */
        announce(m);
    }
    for (m->repetition = 0; m->repetition < m->o->repetitions; m->repetition++) {
        if (m->repetition > 0 && m->steps_done >= m->o->steps_done) {
            pause_between(m);
        }
        if (!m->o->pairs_only) {
            repetition_alone(m, &rng);
        }
        if (!m->o->alone_only) {
            repetition_pairs(m);
        }
    }
}

/* ---- devices ---- */

static int open_target(struct measure *m, const struct backend_info *infos, uint32_t n,
                       const char *name)
{
    for (uint32_t i = 0; i < m->n_targets; i++) {
        if (strcasecmp(m->targets[i].info.name, name) == 0) {
            return err_add(m->err, "--devices: %s is given twice", name);
        }
    }
    for (uint32_t i = 0; i < n; i++) {
        if (strcasecmp(infos[i].name, name) != 0) {
            continue;
        }
        if (m->n_targets == MEASURE_MAX_DEVICES) {
            return err_add(m->err, "--devices: at most %d", MEASURE_MAX_DEVICES);
        }
        struct measure_target *t = &m->targets[m->n_targets];
        t->info = infos[i];
        watchdog_kick(name, DRIVER_CALL_S);
        t->device = m->o->backend->open(m->backend, i, m->err);
        if (t->device == NULL) {
            return -EINVAL;
        }
        plan_kernels(&t->info, m->o->size, &t->plan);
        m->n_targets++;
        return 0;
    }
    SCOPED(text_fini) struct text known = {0};
    for (uint32_t i = 0; i < n; i++) {
        text_item(&known, ", ", infos[i].name);
    }
    return err_add(m->err, "--devices: backend %s has no device %s; it has %s", m->o->backend->name,
                   name, text_end(&known));
}

static int open_targets(struct measure *m)
{
    struct backend_info infos[BACKEND_MAX_DEVICES];
    uint32_t n = m->o->backend->enumerate(m->backend, infos, BACKEND_MAX_DEVICES);
    n = n < BACKEND_MAX_DEVICES ? n : BACKEND_MAX_DEVICES;
    if (n == 0) {
        return err_add(m->err, "backend %s: no device on this machine", m->o->backend->name);
    }
    if (m->o->devices == NULL) {
        for (uint32_t i = 0; i < n && i < 2; i++) {
            if (open_target(m, infos, n, infos[i].name) != 0) {
                return -EINVAL;
            }
        }
        return 0;
    }
    OWNED char *list = xstrdup(m->o->devices);
    char *rest = list;
    int rc = 0;
    for (char *name; rc == 0 && (name = strtok_r(rest, ",", &rest)) != NULL;) {
        rc = open_target(m, infos, n, name);
    }
    return rc == 0 && m->n_targets == 0 ? err_add(m->err, "--devices: names none") : rc;
}

static void write_head(struct measure *m)
{
    char lines[HOST_MAX_LINES + MEASURE_MAX_DEVICES][HOST_LINE_BYTES];
    const char *about[HOST_MAX_LINES + MEASURE_MAX_DEVICES];
    double memory_bytes = 0.0;
    size_t n = 0;
    if (m->o->backend->host == NULL) { /* a simulated machine is not this one */
        n = host_describe(m->o->proc_dir, lines);
        memory_bytes = host_memory_bytes(m->o->proc_dir);
    }
    for (uint32_t i = 0; i < m->n_targets; i++) {
        (void)snprintf(lines[n++], HOST_LINE_BYTES, "device %s: %s, weights rotate in %llu MB",
                       m->targets[i].info.name, m->targets[i].info.description,
                       (unsigned long long)(m->o->backend_options.pool_bytes >> 20));
    }
    for (size_t i = 0; i < n; i++) {
        about[i] = lines[i];
    }
    kernel_rows_write_head(m->out, memory_bytes, about, n);
}

int measure_run(const struct measure_options *o, FILE *out, struct err *e)
{
    size_t before = e->n;
    OWNED struct measure *m = xcalloc(1, sizeof *m);
    m->o = o;
    m->out = out;
    m->err = e;
    watchdog_kick(o->backend->name, DRIVER_CALL_S);
    if (o->backend->host == NULL) { /* a simulated machine does not use this one's power */
        host_energy_init(&m->energy, o->rapl_dir);
    }
    m->backend = o->backend->start(&o->backend_options, e);
    m->window = (struct window_options){m->backend, o->proc_dir, o->window_s, o->min_samples,
                                        o->deadline_s};
    if (m->backend != NULL && open_targets(m) == 0) {
        if (o->steps_done == 0) {
            write_head(m);
        }
        measure_all(m);
    }
    bool hung = false;
    bool leave = false;
    for (uint32_t i = 0; i < m->n_targets; i++) {
        hung = hung || m->targets[i].hung;
        leave = leave || !measure_target_safe(m, &m->targets[i]);
        if (measure_target_safe(m, &m->targets[i])) {
            o->backend->close(m->targets[i].device);
        }
    }
    if (m->backend != NULL && !leave) {
        o->backend->stop(m->backend);
    }
    watchdog_stop();
    return e->n > before ? -EINVAL : hung ? -ETIMEDOUT : 0;
}
