/* Makes rows from windows: an isolated shape, and a pair in its bracket. */
#include "hwmodels/backends/measure_impl.h"

#define LOST_CORE_FRAC 0.05 /* limit: share of a worker's time without its core */
#define SPIKES_FRAC 0.1     /* of samples over twice the median: more are two speeds, not spikes */
#define BAR_CELLS 30

static void show_progress(struct measure *m)
{
    m->steps_done++;
    if (m->o->step != NULL && m->steps_done > m->o->steps_done) {
        m->o->step(m->o->step_ctx, m->steps_done);
    }
    if (!m->o->progress) {
        return;
    }
    char bar[BAR_CELLS + 1];
    uint32_t full = m->steps_done * BAR_CELLS / (m->steps_all > 0 ? m->steps_all : 1);
    for (uint32_t i = 0; i < BAR_CELLS; i++) {
        bar[i] = i < full ? '#' : '.';
    }
    bar[BAR_CELLS] = '\0';
    (void)fprintf(stderr, "\r[%s] %u of %u", bar, m->steps_done, m->steps_all);
    if (m->steps_done == m->steps_all) {
        (void)fprintf(stderr, "\r%*s\r", BAR_CELLS + 40, "");
    }
    (void)fflush(stderr);
}

/* ---- rows ---- */

static struct kernel_row new_row(const struct measure *m, const struct measure_target *t,
                                 const struct kernel_spec *s, enum kernel_metric metric)
{
    struct kernel_row r = {.soc = m->o->soc,
                           .device = t->info.name,
                           .runtime = m->o->backend->name,
                           .kind = t->info.kind,
                           .partner = "",
                           .source = m->o->source,
                           .flag = "",
                           .metric = metric,
                           .repetition = m->repetition,
                           .foreign_frac = -1.0,
                           .steal_frac = -1.0};
    kernel_row_set_spec(&r, s);
    return r;
}

static void emit(const struct measure *m, const struct kernel_row *r)
{
    kernel_row_write(m->out, r);
    if (!m->o->backend->virtual_time) { /* a real measurement takes hours and may be cut off */
        (void)fflush(m->out);
    }
}

static void emit_value(const struct measure *m, const struct measure_target *t,
                       const struct kernel_spec *s, enum kernel_metric metric, double value)
{
    struct kernel_row r = new_row(m, t, s, metric);
    r.value = r.p10 = r.p90 = value;
    r.samples = 1;
    emit(m, &r);
}

static void emit_flag(const struct measure *m, const struct measure_target *t,
                      const struct kernel_spec *s, const char *flag)
{
    struct kernel_row r = new_row(m, t, s, KERNEL_METRIC_MS);
    r.flag = flag;
    emit(m, &r);
}

/* Excludes a device that did not respond by its deadline from further work. */
static void lose(struct measure_target *t)
{
    if (!t->hung) {
        (void)fprintf(stderr,
                      "xpusim: %s has not finished a kernel by its deadline; its other kernels are "
                      "left out\n",
                      t->info.name);
    }
    t->hung = true;
}

/* Why a window cannot be trusted; "": it can. */
static const char *flag_of(const struct measure *m, const struct window_side *s, int rc,
                           const struct backend_host *host)
{
    if (s->hung || rc == -ETIMEDOUT) {
        return "deadline";
    }
    if (rc != 0) {
        return "failed";
    }
    if (s->n < 3 || s->n < m->o->min_samples / 2) {
        return "few_samples";
    }
    if (s->cached) { /* no further try changes this */
        return "in_cache";
    }
    if (host->steal_frac > m->o->steal_limit_frac) {
        return "steal";
    }
    if (host->foreign_frac > m->o->foreign_limit_frac) {
        return "foreign_cpu";
    }
    if (s->idle_frac > LOST_CORE_FRAC) {
        return "lost_core";
    }
    if (s->spike_frac > SPIKES_FRAC) {
        return "spikes";
    }
    return host->foreign_frac < 0.0 ? "unscreened" : "";
}

/* The worse of two flags of one measurement. Disturbed rows make pairs (pairs.c), but bytes from a
 * cache do not. */
static const char *worse(const char *a, const char *b)
{
    bool lost = strcmp(a, "deadline") == 0 || strcmp(a, "failed") == 0;
    bool in_cache = strcmp(b, "in_cache") == 0 && !lost;
    return a[0] == '\0' || in_cache || strcmp(b, "deadline") == 0 ? b : a;
}

/* Whether a disturbance may be over at the next try. */
static bool passing(const char *flag)
{
    return strcmp(flag, "steal") == 0 || strcmp(flag, "foreign_cpu") == 0 ||
           strcmp(flag, "lost_core") == 0 || strcmp(flag, "spikes") == 0;
}

static void fill_row(struct kernel_row *r, struct window_side *s, const struct backend_host *host,
                     const char *flag)
{
    r->flag = flag;
    r->samples = s->n;
    r->foreign_frac = host->foreign_frac > 1.0 ? 1.0 : host->foreign_frac;
    r->steal_frac = host->steal_frac > 1.0 ? 1.0 : host->steal_frac;
    if (s->n > 0) {
        r->value = s->median_s * 1e3;
        r->p10 = window_quantile(s, 0.1) * 1e3;
        r->p90 = window_quantile(s, 0.9) * 1e3;
    }
}

/* ---- windows ---- */

bool measure_target_safe(const struct measure *m, const struct measure_target *t)
{
    return !t->hung || m->o->backend->virtual_time;
}

static void release(struct measure *m, const struct measure_target *t, struct window_side *side)
{
    if (!t->hung) { /* otherwise its queue still has the kernel */
        m->o->backend->release(side->kernel);
    }
}

/* Runs a window of n sides, and repeats it while it is disturbed. Returns the worst flag of its
 * sides. */
static const char *run_window(struct measure *m, struct measure_target *const *targets, uint32_t n,
                              struct backend_host *host, int *rc)
{
    const char *flag = "";
    /* Only transient disturbances are retried, such as other load; a hanging device or a refused
     * kernel would fail again. */
    for (uint32_t attempt = 0; attempt <= m->o->retries; attempt++) {
        watchdog_kick(targets[0]->info.name, DRIVER_CALL_S);
        *rc = window_run(&m->window, m->sides, n, host);
        flag = "";
        for (uint32_t k = 0; k < n; k++) {
            flag = worse(flag, flag_of(m, &m->sides[k], *rc, host));
            if (m->sides[k].hung) {
                lose(targets[k]);
            }
        }
        if (!passing(flag)) {
            break;
        }
    }
    return flag;
}

/* Prepares a kernel and calls it twice: the first call separately, the second for the kernel's
 * time. In the first repetition both are rows. False: not possible (the device hung or refused). */
static bool prepare(struct measure *m, struct measure_target *t, const struct kernel_spec *s,
                    struct window_side *side, bool record)
{
    side->cached = false;
    const struct backend_ops *ops = m->o->backend;
    struct backend_prep prep;
    struct backend_stamps st;
    double times_s[2] = {0.0, 0.0};
    if (t->hung || !ops->supports(t->device, s)) {
        return false;
    }
    watchdog_kick(kernel_spec_name(s), DRIVER_CALL_S);
    struct err why = ERR_INIT;
    side->device = t->device;
    side->kernel = ops->prepare(t->device, s, &prep, &why);
    side->cached = prep.cached;
    if (side->kernel == NULL) {
        err_print(&why, stderr);
        err_fini(&why);
        emit_flag(m, t, s, "not_prepared");
        return false;
    }
    for (int i = 0; i < 2; i++) {
        int64_t ticket = ops->submit(side->kernel);
        int rc =
            ticket < 0 ? -EIO : ops->wait(t->device, ticket, units_ns_from_s(m->o->deadline_s));
        if (rc != 0 || ops->stamps(t->device, ticket, &st) != 0) {
            emit_flag(m, t, s, rc == -ETIMEDOUT ? "deadline" : "failed");
            if (rc == -ETIMEDOUT) {
                lose(t);
            }
            release(m, t, side);
            return false;
        }
        /* The first call counts from its submission, because it includes preparation by the driver;
         * the second is only the kernel. */
        times_s[i] = units_s_from_ns(st.end_ns - (i == 0 ? st.submit_ns : st.start_ns));
    }
    side->alone_s = times_s[1] > 1e-7 ? times_s[1] : 1e-7;
    if (record) {
        if (prep.compile_s >= 0.0) {
            emit_value(m, t, s, KERNEL_METRIC_COMPILE_MS, prep.compile_s * 1e3);
        }
        emit_value(m, t, s, KERNEL_METRIC_FIRST_MS, times_s[0] * 1e3);
    }
    return true;
}

/* -1: no NPU, unknown, or a simulated NPU, which this machine's counter does not count. */
static double npu_busy_us(const struct measure *m, const struct measure_target *t)
{
    bool counted = t->info.kind == DEVICE_KIND_NPU && m->o->backend->host == NULL;
    return counted ? host_npu_busy_us(m->o->accel_dir) : -1.0;
}

void measure_alone(struct measure *m, struct measure_target *t, const struct kernel_spec *s)
{
    struct backend_host host;
    int rc;
    if (m->steps_done >= m->o->steps_done && prepare(m, t, s, &m->sides[0], m->repetition == 0)) {
        double npu_us = npu_busy_us(m, t);
        int64_t from_ns = backend_now_ns(m->backend);
        (void)host_energy_joules(&m->energy);
        const char *flag = run_window(m, &t, 1, &host, &rc);
        double joules = host_energy_joules(&m->energy);
        double span_s = units_s_from_ns(backend_now_ns(m->backend) - from_ns);
        double npu_to_us = npu_busy_us(m, t);
        struct kernel_row r = new_row(m, t, s, KERNEL_METRIC_MS);
        fill_row(&r, &m->sides[0], &host, flag);
        emit(m, &r);
        double busy = m->sides[0].busy_frac;
        if (npu_us >= 0.0 && npu_to_us >= npu_us) {
            busy = (npu_to_us - npu_us) / 1e6 / span_s;
        }
        if (busy >= 0.0) {
            emit_value(m, t, s, KERNEL_METRIC_BUSY, busy);
        }
        if (joules >= 0.0 && span_s > 0.0) {
            emit_value(m, t, s, KERNEL_METRIC_POWER_W, joules / span_s);
        }
        release(m, t, &m->sides[0]);
    }
    show_progress(m);
}

/* Runs a window of one isolated side of the pair. Returns its median, or 0 with *flag set. */
static double bracket(struct measure *m, struct measure_target *t, uint32_t side, const char **flag)
{
    struct backend_host host;
    int rc;
    /* Windows use the first sides. */
    struct window_side keep = m->sides[0];
    if (side == 1) {
        m->sides[0] = m->sides[1];
    }
    const char *one = run_window(m, &t, 1, &host, &rc);
    double median_s = m->sides[0].n > 0 ? m->sides[0].median_s : 0.0;
    if (side == 1) {
        m->sides[1] = m->sides[0];
        m->sides[0] = keep;
    }
    *flag = worse(*flag, one);
    return median_s;
}

static void emit_pair(struct measure *m, struct measure_target *const *t, const struct plan_pair *p,
                      double alone_s[2][2], const struct backend_host *host, const char *flag)
{
    for (uint32_t k = 0; k < 2; k++) {
        struct kernel_row r = new_row(m, t[k], &p->side[k], KERNEL_METRIC_CO_MS);
        r.partner = xkeep(xformat("%s:%s", t[1 - k]->info.name, kernel_spec_name(&p->side[1 - k])));
        r.held_out = p->held_out;
        fill_row(&r, &m->sides[k], host, flag);
        emit(m, &r);
        double alone_ms = (alone_s[k][0] + alone_s[k][1]) / 2.0 * 1e3;
        r.metric = KERNEL_METRIC_SLOWDOWN;
        r.value = alone_ms > 0.0 ? r.value / alone_ms : 0.0;
        r.p10 = alone_ms > 0.0 ? r.p10 / alone_ms : 0.0;
        r.p90 = alone_ms > 0.0 ? r.p90 / alone_ms : 0.0;
        emit(m, &r);
    }
}

void measure_pair(struct measure *m, struct measure_target *a, struct measure_target *b,
                  const struct plan_pair *p)
{
    struct measure_target *t[2] = {a, b};
    struct backend_host host;
    int rc;
    if (m->steps_done >= m->o->steps_done && prepare(m, a, &p->side[0], &m->sides[0], false)) {
        if (prepare(m, b, &p->side[1], &m->sides[1], false)) {
            double alone_s[2][2] = {{0.0, 0.0}, {0.0, 0.0}};
            const char *flag = "";
            for (uint32_t k = 0; k < 2 && !a->hung && !b->hung; k++) {
                alone_s[k][0] = bracket(m, t[k], k, &flag);
            }
            /* Each isolated, both together, each isolated again, so that a machine that becomes
             * slower in between changes both sides of the ratio. */
            if (!a->hung && !b->hung) {
                flag = worse(flag, run_window(m, t, 2, &host, &rc));
                struct window_side together[2] = {m->sides[0], m->sides[1]};
                for (uint32_t k = 0; k < 2 && !a->hung && !b->hung; k++) {
                    alone_s[k][1] = bracket(m, t[k], k, &flag);
                }
                m->sides[0] = together[0];
                m->sides[1] = together[1];
                emit_pair(m, t, p, alone_s, &host, flag);
            }
            for (uint32_t k = 0; k < 2; k++) {
                if (t[k]->hung) {
                    emit_flag(m, t[k], &p->side[k], "deadline");
                }
            }
            release(m, b, &m->sides[1]);
        }
        release(m, a, &m->sides[0]);
    }
    show_progress(m);
}
