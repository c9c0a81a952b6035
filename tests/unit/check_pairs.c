/* Pairs of co-running kernels: the cap, shares and losses of rows made by hand, and the samples
 * that a lost core leaves. */
#include "hwmodels/pairs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "hwmodels/backends/window.h"
#include "tests/helpers/suite.h"

static struct kernel_rows rows;

/* One side of a pair: so many bytes take ms next to the other, slowdown times as long as alone. */
static void side(uint32_t repetition, const char *device, const char *model, double bytes,
                 double ms, double slowdown)
{
    for (int k = 0; k < 2; k++) {
        struct kernel_row *r = kernel_rows_add(&rows);
        r->device = xkeep(xstrdup(device));
        r->model = xkeep(xstrdup(model));
        r->metric = k == 0 ? KERNEL_METRIC_CO_MS : KERNEL_METRIC_SLOWDOWN;
        r->repetition = repetition;
        r->samples = 20;
        r->bytes = bytes;
        r->value = k == 0 ? ms : slowdown;
    }
}

/* 16 MB in 1 ms and 24 MB in 1 ms both take 1.25 times as long as alone: 16 + 24 GB/s, and by
 * themselves 20 + 30. */
static void streams(uint32_t repetition)
{
    side(repetition, "npu", "read", 16e6, 1.0, 1.25);
    side(repetition, "igpu", "read", 24e6, 1.0, 1.25);
}

/* 10 and 2 GB/s; the first one loses 5 and then 7 %. */
static void products(void)
{
    side(0, "npu", "gemv", 10e6, 1.05, 1.05);
    side(0, "igpu", "gemm", 2e6, 1.0, 1.0);
    side(1, "npu", "gemv", 10e6, 1.07, 1.07);
    side(1, "igpu", "gemm", 2e6, 1.0, 1.0);
}

static const struct pairs_loss *loss_of(const struct pairs *p, const char *model)
{
    for (size_t i = 0; i < p->n_losses; i++) {
        if (strcmp(p->losses[i].model, model) == 0) {
            return &p->losses[i];
        }
    }
    return NULL;
}

/* The cap is 40 of 50 GB/s, of which the NPU gets 0.4. Below it the vector product loses 6 %, and
 * two values 2 % apart leave 12.706 x 1 % either way (Student, one degree). A pair above the cap
 * says nothing of losses below it. */
START_TEST(a_cap_its_shares_and_losses_below_it)
{
    struct pairs p;
    struct err e = ERR_INIT;
    rows = (struct kernel_rows){.n = 0};
    streams(0);
    streams(1);
    products();
    ck_assert_int_eq(pairs_make(&p, &rows, &e), 0);
    ck_assert_uint_eq(p.n, 4);
    ck_assert(p.saturated);
    ck_assert_double_eq_tol(p.most_bytes_per_s, 40e9, 1.0);
    ck_assert_double_eq_tol(p.asked_bytes_per_s, 50e9, 1.0);
    ck_assert_double_eq_tol(p.share.value, 0.4, 1e-12);
    ck_assert_ptr_null(loss_of(&p, "read"));
    const struct pairs_mean *m = &loss_of(&p, "gemv")->frac;
    ck_assert_double_eq_tol(m->value, 0.06, 1e-12);
    ck_assert_double_eq_tol(m->high - m->value, 0.12706, 1e-4);
    ck_assert_double_eq_tol(loss_of(&p, "gemm")->frac.value, 0.0, 1e-12);
}
END_TEST

/* 16 + 24 GB/s show the cap. A product asks for 19 GB/s and loses none, while the other device asks
 * for 30 and has 20. That is more than the cap, but one of the two was not slowed. So such a pair
 * says nothing of shares. */
START_TEST(a_share_is_of_two_that_were_both_slowed)
{
    struct pairs p;
    struct err e = ERR_INIT;
    rows = (struct kernel_rows){.n = 0};
    streams(0);
    side(1, "npu", "gemv", 19e6, 1.0, 1.0);
    side(1, "igpu", "read", 20e6, 1.0, 1.5);
    side(2, "npu", "read", 20e6, 1.0, 1.5);
    side(2, "igpu", "gemm", 19e6, 1.0, 1.0);
    ck_assert_int_eq(pairs_make(&p, &rows, &e), 0);
    ck_assert(p.saturated);
    ck_assert_double_eq_tol(p.most_bytes_per_s, 40e9, 1.0);
    for (size_t i = 0; i < p.n; i++) {
        ck_assert(p.cells[i].above);
    }
    ck_assert_uint_eq(p.share.n, 1);
    ck_assert_double_eq_tol(p.share.value, 0.4, 1e-12);
    err_fini(&e);
}
END_TEST

/* Nobody asks for more than 12 GB/s: no cap shows, and every loss is below it. */
START_TEST(a_pair_that_never_saturates_shows_no_cap)
{
    struct pairs p;
    struct err e = ERR_INIT;
    rows = (struct kernel_rows){.n = 0};
    products();
    ck_assert_int_eq(pairs_make(&p, &rows, &e), 0);
    ck_assert(!p.saturated);
    ck_assert_uint_eq(p.share.n, 0);
    for (size_t i = 0; i < rows.n; i++) {
        rows.v[i].samples = PAIRS_MIN_SAMPLES - 1;
    }
    ck_assert_int_ne(pairs_make(&p, &rows, &e), 0);
    ck_assert_uint_eq(p.left_out, 2);
    err_fini(&e);
}
END_TEST

/* ---- windows of two devices that run 10 ms launches one after another ---- */

struct backend_device {
    int64_t next; /* ticket */
    int64_t lost; /* the launch that had its core for half of the time; 0: none */
    struct backend_kernel *kernel;
};
struct backend_kernel {
    struct backend_device *device;
};

static int64_t fake_submit(struct backend_kernel *k)
{
    return ++k->device->next;
}

static int fake_wait(struct backend_device *d, int64_t ticket, int64_t timeout_ns)
{
    (void)d;
    (void)ticket;
    (void)timeout_ns;
    return 0;
}

static int fake_stamps(struct backend_device *d, int64_t ticket, struct backend_stamps *out)
{
    int64_t start_ns = 1000000000 + 10000000 * ticket;
    *out = (struct backend_stamps){.submit_ns = start_ns,
                                   .start_ns = start_ns,
                                   .end_ns = start_ns + 10000000,
                                   .cpu_ns = ticket == d->lost ? 5000000 : 10000000};
    return ticket > d->next ? -1 : 0;
}

static int64_t fake_cancel(struct backend_device *d, int64_t ticket)
{
    (void)ticket;
    return d->next;
}

static void fake_counters(struct backend_device *d, struct backend_counters *out)
{
    (void)d;
    out->busy_valid = false;
}

static int64_t fake_now(struct backend *b)
{
    (void)b;
    return 0;
}

static void fake_host(struct backend *b, struct backend_host *out)
{
    (void)b;
    *out = (struct backend_host){0.0, 0.0};
}

/* 21 launches a side; the first one starts the clock. Launch 7 of the first device had its core for
 * half of its time: it is a sample of neither side. */
START_TEST(a_lost_core_is_in_no_sample_of_either_side)
{
    static const struct backend_ops ops = {.name = "fake",
                                           .submit = fake_submit,
                                           .wait = fake_wait,
                                           .stamps = fake_stamps,
                                           .cancel = fake_cancel,
                                           .counters = fake_counters,
                                           .now_ns = fake_now,
                                           .host = fake_host};
    struct backend backend = {.ops = &ops};
    static struct window_side sides[2];
    struct window_options o = {&backend, "/proc", 0.2, 5, 1.0};
    for (int64_t lost = 0; lost <= 7; lost += 7) {
        struct backend_device devices[2] = {{.lost = lost}, {.lost = 0}};
        struct backend_kernel kernels[2] = {{&devices[0]}, {&devices[1]}};
        struct backend_host host;
        for (int k = 0; k < 2; k++) {
            sides[k] =
                (struct window_side){.device = &devices[k], .kernel = &kernels[k], .alone_s = 0.01};
        }
        ck_assert_int_eq(window_run(&o, sides, 2, &host), 0);
        for (int k = 0; k < 2; k++) {
            ck_assert_uint_eq(sides[k].n, lost == 0 ? 20 : 19);
        }
    }
}
END_TEST

static const struct suite_row suite[] = {
    TEST(a_cap_its_shares_and_losses_below_it),
    TEST(a_share_is_of_two_that_were_both_slowed),
    TEST(a_pair_that_never_saturates_shows_no_cap),
    TEST(a_lost_core_is_in_no_sample_of_either_side),
};
SUITE_MAIN("pairs", suite)
