/* Which samples a window of a measurement keeps, by a second reading of its header, on a device
 * whose launches are drawn; and what others did to the processor meanwhile. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hwmodels/backends/window.h"
#include "sim/base/rng.h"
#include "tests/helpers/suite.h"

/* A device whose launches were drawn before; tickets count from 1. */
struct backend_device {
    struct backend_stamps at[BACKEND_MAX_INFLIGHT + 2];
    bool lost[BACKEND_MAX_INFLIGHT + 2]; /* nobody knows its stamps */
    int64_t submitted, stays;
    int64_t busy_ns;
    int64_t cancel_after_ns; /* those that have not begun then are withdrawn; -1: it cannot */
};
struct backend_kernel {
    struct backend_device *device;
};
static int64_t clock_ns;
static int64_t waited_ns;

static int64_t refuse_from; /* so many launches are taken; 0: all */
static int fail_wait;

static int64_t fake_submit(struct backend_kernel *k)
{
    if (refuse_from > 0 && k->device->submitted >= refuse_from) {
        return -EAGAIN;
    }
    return k->device->stays = ++k->device->submitted;
}

static int fake_wait(struct backend_device *d, int64_t ticket, int64_t timeout_ns)
{
    ck_assert_int_le(ticket, d->submitted);
    waited_ns = timeout_ns;
    clock_ns = 1000000000;
    d->busy_ns = 250000000;
    return fail_wait;
}

static int fake_stamps(struct backend_device *d, int64_t ticket, struct backend_stamps *out)
{
    if (ticket < 1 || ticket > d->stays || d->lost[ticket]) {
        return -EINVAL;
    }
    *out = d->at[ticket];
    return 0;
}

static int64_t fake_cancel(struct backend_device *d, int64_t ticket)
{
    if (d->cancel_after_ns < 0) {
        return -ENOTSUP;
    }
    for (d->stays = ticket - 1;
         d->stays < d->submitted && d->at[d->stays + 1].start_ns < d->cancel_after_ns;) {
        d->stays++;
    }
    return d->stays;
}

static void fake_counters(struct backend_device *d, struct backend_counters *out)
{
    *out = (struct backend_counters){true, d->busy_ns};
}

static int64_t fake_now(struct backend *b)
{
    (void)b;
    return clock_ns;
}

static void fake_host(struct backend *b, struct backend_host *out)
{
    (void)b;
    *out = (struct backend_host){0.125, 0.25};
}

static const struct backend_ops fake = {.submit = fake_submit,
                                        .wait = fake_wait,
                                        .stamps = fake_stamps,
                                        .cancel = fake_cancel,
                                        .counters = fake_counters,
                                        .now_ns = fake_now,
                                        .host = fake_host};

/* Draws kernels back to back, with a pause, a spike or a lost core now and then. */
static void draw_device(struct backend_device *d, struct rng *r, bool knows_cpu, bool loses)
{
    int64_t t = 1000 + rng_below(r, 5000);
    memset(d, 0, sizeof *d);
    for (uint32_t i = 1; i < BACKEND_MAX_INFLIGHT + 2; i++) {
        int64_t took = 900 + rng_below(r, 200);
        took = rng_below(r, 12) == 0 ? 3 * took : took;
        t += rng_below(r, 10) == 0 ? rng_below(r, 500) : 0;
        d->at[i] = (struct backend_stamps){.start_ns = t, .end_ns = t + took};
        d->at[i].cpu_ns = !knows_cpu             ? -1
                          : rng_below(r, 9) == 0 ? took / 2
                                                 : took - rng_below(r, 60);
        d->lost[i] = loses && i > 1 && rng_below(r, 15) == 0;
        t += took;
    }
    d->cancel_after_ns = -1;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

static bool kept(const struct backend_stamps *st)
{
    return st->cpu_ns < 0 || (double)st->cpu_ns >= 0.9 * (double)(st->end_ns - st->start_ns);
}

/* The samples of a side by the header, sorted; other NULL: alone. */
static uint32_t samples_of(const struct backend_device *d, int64_t last,
                           const struct backend_device *other, int64_t other_last, double *out,
                           double *spikes)
{
    int64_t from = d->at[1].start_ns;
    int64_t to = d->at[last].end_ns;
    uint32_t n = 0;
    uint32_t left = 0;
    if (other != NULL) {
        from = other->at[1].start_ns > from ? other->at[1].start_ns : from;
        to = other->at[other_last].end_ns < to ? other->at[other_last].end_ns : to;
    }
    for (int64_t t = 2; t <= last; t++) {
        int64_t begin = d->at[t - 1].end_ns;
        int64_t end = d->at[t].end_ns;
        int64_t lost = 0;
        for (int64_t k = 1; other != NULL && k <= other_last; k++) {
            int64_t a = other->at[k].start_ns > begin ? other->at[k].start_ns : begin;
            int64_t b = other->at[k].end_ns < end ? other->at[k].end_ns : end;
            lost += b > a && !kept(&other->at[k]) ? b - a : 0;
        }
        if (!d->lost[t] && !d->lost[t - 1] && begin >= from && end <= to && kept(&d->at[t]) &&
            (double)lost <= (1.0 - 0.9) * (double)(end - begin)) {
            out[n++] = (double)(end - begin) * 1e-9;
        }
    }
    qsort(out, n, sizeof *out, by_value);
    while (n > 0 && left < n && out[n - left - 1] > 2.0 * out[(n + 1) / 2 - 1]) {
        left++;
    }
    *spikes = n > 0 ? (double)left / n : 0.0;
    return n - left;
}

/* The share of its launches in which the worker had no core, between the ends of two that are
 * known, while all run; -1: of some nobody knows. */
static double idle_of(const struct backend_device *d, int64_t last,
                      const struct backend_device *other, int64_t other_last)
{
    int64_t from = d->at[1].start_ns;
    int64_t to = d->at[last].end_ns;
    double span = 0.0;
    double had = 0.0;
    if (other != NULL) {
        from = other->at[1].start_ns > from ? other->at[1].start_ns : from;
        to = other->at[other_last].end_ns < to ? other->at[other_last].end_ns : to;
    }
    for (int64_t t = 2; t <= last; t++) {
        if (!d->lost[t] && !d->lost[t - 1] && d->at[t - 1].end_ns >= from &&
            d->at[t].end_ns <= to) {
            if (d->at[t].cpu_ns < 0) {
                return -1.0;
            }
            span += (double)(d->at[t].end_ns - d->at[t].start_ns);
            had += (double)d->at[t].cpu_ns;
        }
    }
    return span > 0.0 ? fmax(0.0, 1.0 - had / span) : -1.0;
}

/* The window waits for launches that were queued. A device that does not answer is lost; a launch
 * that was withdrawn is no failure. */
START_TEST(a_window_that_fails_has_no_samples)
{
    static const struct {
        int wait;
        int64_t refuse;
        int rc;
        bool hung;
    } cases[] = {{0, 2, -EIO, false},
                 {-EIO, 0, -EIO, false},
                 {-ETIMEDOUT, 0, -ETIMEDOUT, true},
                 {-ECANCELED, 0, 0, false}};
    static struct backend_device d;
    static struct window_side side;
    struct backend b = {.ops = &fake};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct rng r;
        struct backend_kernel k = {&d};
        struct backend_host host = {0};
        struct window_options o = {.backend = &b, .min_samples = 10, .deadline_s = 0.5};
        rng_init(&r, rng_key(i, RNG_TEST, 104, 0));
        draw_device(&d, &r, true, false);
        refuse_from = cases[i].refuse;
        fail_wait = cases[i].wait;
        side = (struct window_side){.device = &d, .kernel = &k, .alone_s = 1e-6};
        side.idle_frac = 7.0;
        side.n = 7;
        waited_ns = 0;
        ck_assert_int_eq(window_run(&o, &side, 1, &host), cases[i].rc);
        ck_assert_uint_eq(side.n, 0);
        ck_assert_double_eq(side.idle_frac, -1.0);
        ck_assert_int_eq(side.hung, cases[i].hung);
        ck_assert_int_gt(waited_ns, 0);
    }
    refuse_from = fail_wait = 0;
}
END_TEST

START_TEST(a_window_keeps_the_samples_of_undisturbed_launches)
{
    static struct backend_device d[2];
    static struct window_side sides[2];
    static double wanted[BACKEND_MAX_INFLIGHT];
    struct backend b = {.ops = &fake};
    uint64_t seen = 0;
    double spikes_seen = 0.0;
    for (uint64_t i = 0; i < 200; i++) {
        struct rng r;
        struct backend_kernel k[2] = {{&d[0]}, {&d[1]}};
        uint32_t n_sides = 1 + (uint32_t)(i % 2);
        rng_init(&r, rng_key(i, RNG_TEST, 103, 0));
        struct window_options o = {
            .backend = &b, .min_samples = 3 + rng_below(&r, 30), .deadline_s = 0.5};
        o.window_s = 1e-6 * rng_below(&r, 60);
        double span_s = o.window_s;
        for (uint32_t s = 0; s < n_sides; s++) {
            draw_device(&d[s], &r, rng_below(&r, 4) > 0, n_sides == 1 && rng_below(&r, 2) > 0);
            sides[s] = (struct window_side){.device = &d[s], .kernel = &k[s]};
            sides[s].alone_s = 1e-6 * (1 + rng_below(&r, 3));
            span_s = fmax(span_s, o.min_samples * sides[s].alone_s);
        }
        for (uint32_t s = 0; s < n_sides; s++) {
            d[s].lost[(int64_t)ceil(span_s / sides[s].alone_s) + 1] = false; /* the last is known */
        }
        if (n_sides > 1 && rng_below(&r, 2) > 0) {
            d[1].cancel_after_ns = d[0].at[(int64_t)ceil(span_s / sides[0].alone_s) + 1].end_ns;
        }
        struct backend_host host = {0};
        clock_ns = 0;
        ck_assert_int_eq(window_run(&o, sides, n_sides, &host), 0);
        ck_assert_double_eq(host.foreign_frac, 0.125);
        ck_assert(fabs(1e-9 * (double)waited_ns - (4.0 * span_s + 0.5)) < 1e-8);
        for (uint32_t s = 0; s < n_sides; s++) {
            ck_assert_int_eq(d[s].submitted, (int64_t)ceil(span_s / sides[s].alone_s) + 1);
        }
        for (uint32_t s = 0; s < n_sides; s++) {
            double spikes = 0.0;
            uint32_t n = samples_of(&d[s], d[s].stays, n_sides > 1 ? &d[1 - s] : NULL,
                                    n_sides > 1 ? d[1 - s].stays : 0, wanted, &spikes);
            qsort(sides[s].samples, sides[s].n, sizeof(double), by_value);
            ck_assert_msg(sides[s].n == n, "window %u, side %u: %u samples, not %u", (unsigned)i, s,
                          sides[s].n, n);
            for (uint32_t x = 0; x < n; x++) {
                ck_assert_double_eq_tol(sides[s].samples[x], wanted[x], 1e-15);
            }
            /* The median is the middle one of the samples left, or the lower of two. */
            ck_assert_double_eq_tol(sides[s].median_s, n > 0 ? wanted[(n + 1) / 2 - 1] : 0.0,
                                    1e-15);
            ck_assert_double_eq_tol(sides[s].spike_frac, spikes, 1e-12);
            ck_assert_double_eq_tol(sides[s].busy_frac, 0.25, 1e-12);
            double idle = idle_of(&d[s], d[s].stays, n_sides > 1 ? &d[1 - s] : NULL,
                                  n_sides > 1 ? d[1 - s].stays : 0);
            ck_assert_double_eq_tol(sides[s].idle_frac, idle, 1e-9);
            seen += n;
            spikes_seen += spikes;
        }
    }
    ck_assert_uint_gt(seen, 1000);
    ck_assert_double_gt(spikes_seen, 1.0);
}
END_TEST

/* ---- what others did to the processor ---- */

static struct host_times times_of(const char *stat)
{
    char folder[] = "/tmp/check_measure.XXXXXX";
    char path[64];
    ck_assert_ptr_nonnull(mkdtemp(folder));
    (void)snprintf(path, sizeof path, "%s/stat", folder);
    FILE *f = stat != NULL ? fopen(path, "w") : NULL;
    if (f != NULL) {
        (void)fputs(stat, f);
        (void)fclose(f);
    }
    struct host_times t = host_times_read(folder);
    (void)unlink(path);
    (void)rmdir(folder);
    return t;
}

/* user nice system idle iowait irq softirq steal: busy are 1 + 2 + 4 + 32 + 64, idle 8 + 16. */
START_TEST(shares_of_a_host_are_of_all_its_time)
{
    struct host_times a = times_of("cpu 1 2 4 8 16 32 64 128 256 512\ncpu0 9 9 9 9\n");
    ck_assert(a.valid);
    ck_assert_double_eq(a.busy_ticks, 103.0);
    ck_assert_double_eq(a.steal_ticks, 128.0);
    ck_assert_double_eq(a.all_ticks, 255.0);
    struct host_times old = times_of("cpu 1 2 4 8\n"); /* of an old system */
    ck_assert(old.valid);
    ck_assert_double_eq(old.busy_ticks, 7.0);
    ck_assert_double_eq(old.all_ticks, 15.0);
    ck_assert(!times_of("cpu 1 2 4\n").valid);
    ck_assert(!times_of("intr 1 2 4 8\n").valid);
    ck_assert(!times_of(NULL).valid);
    /* 200 ticks: 60 busy, of which one's own are 20 and one proves nothing; 30 stolen. */
    double tick_s = 1.0 / (double)sysconf(_SC_CLK_TCK);
    struct host_times b = {
        .valid = true, .busy_ticks = 163.0, .steal_ticks = 158.0, .all_ticks = 455.0};
    a.own_s = 1.0;
    b.own_s = 1.0 + 20.0 * tick_s;
    struct backend_host h = host_times_shares(&a, &b);
    ck_assert_double_eq_tol(h.foreign_frac, 39.0 / 200.0, 1e-12);
    ck_assert_double_eq_tol(h.steal_frac, 30.0 / 200.0, 1e-12);
    b.own_s = 1.0 + 59.5 * tick_s; /* less than nothing is nothing */
    ck_assert_double_eq(host_times_shares(&a, &b).foreign_frac, 0.0);
    b.busy_ticks = 1e6; /* and more than all is all */
    ck_assert_double_eq(host_times_shares(&a, &b).foreign_frac, 1.0);
    b.steal_ticks = 1.0; /* a counter that went back */
    ck_assert_double_eq(host_times_shares(&a, &b).steal_frac, 0.0);
    b.all_ticks = a.all_ticks; /* no time went by */
    ck_assert_double_eq(host_times_shares(&a, &b).foreign_frac, -1.0);
    ck_assert_double_eq(host_times_shares(&a, &b).steal_frac, -1.0);
    b = a;
    b.all_ticks += 1.0;
    a.valid = false;
    ck_assert_double_eq(host_times_shares(&a, &b).foreign_frac, -1.0);
}
END_TEST

static const struct suite_row suite[] = {
    TEST(shares_of_a_host_are_of_all_its_time),
    TEST(a_window_that_fails_has_no_samples),
    TEST(a_window_keeps_the_samples_of_undisturbed_launches),
};
SUITE_MAIN("windows of a measurement", suite)
