/* Simulated devices next to each other by hand: pace, chance, queues; and what --sim sets. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "hwmodels/backends/simdev.h"
#include "sim/base/datadir.h"
#include "sim/base/json.h"
#include "tests/helpers/suite.h"

static const int64_t minute_ns = 60 * (int64_t)NS_PER_S;

/* ---- simulated devices ---- */

static struct simdev_truth truth;

static void truth_setup(void)
{
    const char *path = datadir_path("hwmodels/soc/core-ultra-5-125h.json");
    struct err e = ERR_INIT;
    simdev_truth_init(&truth);
    cJSON *root = json_read_file(path, &e);
    ck_assert_int_eq(soc_parse(root, path, &truth.soc, &e), 0);
    cJSON_Delete(root);
}

static struct backend *sim_backend(void)
{
    struct err e = ERR_INIT;
    struct backend_options o = {.truth = &truth};
    struct backend *b = backend_sim.start(&o, &e);
    ck_assert_ptr_nonnull(b);
    return b;
}

static struct backend_device *sim_device(struct backend *b, uint32_t i)
{
    struct err e = ERR_INIT;
    struct backend_device *d = backend_sim.open(b, i, &e);
    ck_assert_ptr_nonnull(d);
    return d;
}

static struct backend_kernel *sim_kernel(struct backend_device *d, const struct kernel_spec *s)
{
    struct err e = ERR_INIT;
    struct backend_prep prep;
    struct backend_kernel *k = backend_sim.prepare(d, s, &prep, &e);
    ck_assert_ptr_nonnull(k);
    ck_assert(prep.compile_s == truth.compile_s && !prep.cached);
    return k;
}

static const struct kernel_spec heavy = {
    .op = KERNEL_GEMV, .weight_bits = 8, .act_bits = 16, .rows = 1, .n = 4096, .k = 4096};

static bool about(int64_t a_ns, double b_s)
{
    return fabs((double)a_ns - 1e9 * b_s) < 2.0;
}

/* Two kernels that want all of the memory, and one more behind the first. Each other one's draw is
 * what it takes alone; the pace changes where a kernel ends. */
START_TEST(devices_slow_each_other_while_both_run)
{
    truth.contention.cap_bytes_per_s = 40e9;
    truth.lambda[KERNEL_GEMV] = 0.25;
    struct kernel_spec big = heavy;
    big.n *= 8;
    struct backend *b = sim_backend();
    struct backend_device *d[2] = {sim_device(b, 0), sim_device(b, 1)};
    struct backend_kernel *k[2] = {sim_kernel(d[0], &heavy), sim_kernel(d[1], &big)};
    const struct kernel_spec *spec[2] = {&heavy, &big};
    double alone[2];
    double slow[2];
    for (uint32_t i = 0; i < 2; i++) {
        alone[i] = simdev_alone_s(&truth, i, spec[i]);
    }
    for (uint32_t i = 0; i < 2; i++) {
        struct kernel_curve c;
        simdev_curve(&truth, i, spec[i], &c);
        slow[i] = kernel_model_slowdown(&c, kernel_spec_flop(spec[i]), kernel_spec_bytes(spec[i]),
                                        kernel_spec_bytes(spec[1 - i]) / alone[1 - i],
                                        &truth.contention, truth.lambda[KERNEL_GEMV]);
        ck_assert_double_gt(slow[i], 1.2);
    }
    ck_assert_double_lt(2.0 * alone[0] * slow[0], alone[1] * slow[1]);
    ck_assert_int_eq(backend_sim.submit(k[0]), 1);
    ck_assert_int_eq(backend_sim.submit(k[0]), 2);
    ck_assert_int_eq(backend_sim.submit(k[1]), 1);
    ck_assert_int_eq(backend_sim.wait(d[0], 1, minute_ns), 0);
    double first_s = alone[0] * slow[0];
    struct backend_stamps at;
    ck_assert_int_eq(backend_sim.stamps(d[0], 1, &at), 0);
    ck_assert(at.submit_ns == 0 && at.start_ns == 0 && about(at.end_ns, first_s));
    ck_assert_int_eq(at.cpu_ns, -1);
    ck_assert_int_eq(backend_now_ns(b), at.end_ns);
    ck_assert_int_eq(backend_sim.stamps(d[1], 1, &at), -EINVAL);
    ck_assert_int_eq(backend_sim.wait(d[1], 1, minute_ns), 0);
    ck_assert_int_eq(backend_sim.stamps(d[0], 2, &at), 0);
    ck_assert(about(at.start_ns, first_s) && about(at.end_ns, 2.0 * first_s));
    ck_assert_int_eq(backend_sim.stamps(d[1], 1, &at), 0);
    /* Two kernels of the first device slow it, and then it runs alone. */
    double rest_s = alone[1] - 2.0 * first_s / slow[1];
    ck_assert_msg(about(at.end_ns, 2.0 * first_s + rest_s), "%lld", (long long)at.end_ns);
    ck_assert_int_eq(at.start_ns, 0);
    for (uint32_t i = 0; i < 2; i++) {
        struct backend_counters c = {false, 0};
        backend_sim.counters(d[i], &c);
        ck_assert(c.busy_valid &&
                  about(c.busy_ns, i == 0 ? 2.0 * first_s : 2.0 * first_s + rest_s));
    }
    /* A closed device takes part no more, and opens again. */
    backend_sim.release(k[1]);
    backend_sim.close(d[1]);
    int64_t before_ns = backend_now_ns(b);
    ck_assert_int_eq(backend_sim.submit(k[0]), 3);
    backend_idle(b, minute_ns);
    ck_assert_int_eq(backend_now_ns(b), before_ns + minute_ns);
    ck_assert_int_eq(backend_sim.stamps(d[0], 3, &at), 0);
    ck_assert(at.submit_ns == before_ns && about(at.end_ns - before_ns, alone[0]));
    backend_sim.release(k[0]);
    backend_sim.close(d[0]);
    backend_sim.stop(b);
}
END_TEST

/* In the other form the first device always loses 15 % and the second 30 %, at any demand. */
START_TEST(a_wrong_contention_is_of_the_device_alone)
{
    truth.form = SIMDEV_PRIVATE;
    struct backend *b = sim_backend();
    struct backend_device *d[2] = {sim_device(b, 0), sim_device(b, 1)};
    struct kernel_spec long_one = heavy;
    long_one.n *= 100;
    for (uint32_t i = 0; i < 2; i++) {
        struct backend_kernel *k = sim_kernel(d[i], &heavy);
        struct backend_kernel *other = sim_kernel(d[1 - i], &long_one);
        int64_t before_ns = backend_now_ns(b);
        int64_t ticket = backend_sim.submit(k);
        int64_t last = backend_sim.submit(other);
        ck_assert_int_eq(backend_sim.wait(d[i], ticket, minute_ns), 0);
        double alone_s = simdev_alone_s(&truth, i, &heavy);
        ck_assert(about(backend_now_ns(b) - before_ns, alone_s * (i == 0 ? 1.15 : 1.30)));
        ck_assert_int_eq(backend_sim.wait(d[1 - i], last, minute_ns), 0);
        backend_sim.release(
            k); /* the kernel that was made first, which is not the first of the list */
        backend_sim.release(other);
    }
    backend_sim.close(d[0]);
    backend_sim.close(d[1]);
    backend_sim.stop(b);
}
END_TEST

/* Each kind of chance by itself, where it is none. */
START_TEST(chance_changes_times_as_stated)
{
    struct backend_stamps at;
    double alone_s = simdev_alone_s(&truth, 0, &heavy);
    for (int kind = 0; kind < 3; kind++) {
        truth.outlier_frac = kind == 0 ? 1.0 : 0.0;
        truth.outlier_factor = 4.0;
        truth.drift_frac = kind == 1 ? 0.1 : 0.0;
        truth.drift_period_s = 8.0;
        truth.compile_s = kind == 1 ? 2.0 : 0.0; /* a quarter of the period */
        truth.hang_frac = kind == 2 ? 1.0 : 0.0;
        truth.foreign_frac = 0.25 * kind;
        struct backend *b = sim_backend();
        struct backend_device *d = sim_device(b, 0);
        struct backend_kernel *k = sim_kernel(d, &heavy);
        struct backend_host host = {-1.0, -1.0};
        ck_assert(about(backend_now_ns(b), truth.compile_s));
        backend_sim.host(b, &host);
        ck_assert(host.foreign_frac == 0.25 * kind && host.steal_frac == 0.0);
        ck_assert_int_eq(backend_sim.submit(k), 1);
        int rc = backend_sim.wait(d, 1, 3 * (int64_t)NS_PER_S);
        if (kind == 2) {
            ck_assert_int_eq(rc, -ETIMEDOUT);
            ck_assert(about(backend_now_ns(b), 3.0));
        } else {
            ck_assert_int_eq(rc, 0);
            ck_assert_int_eq(backend_sim.stamps(d, 1, &at), 0);
            ck_assert(about(at.end_ns - at.start_ns, alone_s * (kind == 0 ? 4.0 : exp(0.1))));
        }
        backend_sim.close(d);
        backend_sim.stop(b); /* with the kernel of a device that hangs */
    }
    /* Noise is a factor whose logarithm is normal: its deviation over many launches. */
    truth.hang_frac = 0.0;
    truth.noise_frac = 0.05;
    struct backend *b = sim_backend();
    struct backend_device *d = sim_device(b, 0);
    struct backend_kernel *k = sim_kernel(d, &heavy);
    double sum = 0.0;
    double squares = 0.0;
    enum { N = 4000 };
    for (int64_t i = 1; i <= N; i++) {
        ck_assert_int_eq(backend_sim.submit(k), i);
        ck_assert_int_eq(backend_sim.wait(d, i, minute_ns), 0);
        ck_assert_int_eq(backend_sim.stamps(d, i, &at), 0);
        double off = log(1e-9 * (double)(at.end_ns - at.start_ns) / alone_s);
        sum += off;
        squares += off * off;
    }
    /* Standard errors are 0.05 / sqrt(N) and 0.05 / sqrt(2 N): four of them. */
    ck_assert_double_lt(fabs(sum / N), 4.0 * 0.05 / sqrt(N));
    ck_assert_double_lt(fabs(sqrt(squares / N) - 0.05), 4.0 * 0.05 / sqrt(2.0 * N));
    backend_sim.release(k);
    backend_sim.close(d);
    backend_sim.stop(b);
}
END_TEST

START_TEST(a_simulated_queue_is_withdrawn_and_as_long_as_it_says)
{
    struct backend_stamps at;
    struct err e = ERR_INIT;
    struct backend *b = sim_backend();
    struct backend_device *d = sim_device(b, 0);
    ck_assert_ptr_null(backend_sim.open(b, 0, &e));
    ck_assert_str_eq(e.lines[0], "device 0: not there, or open already");
    ck_assert_ptr_null(backend_sim.open(b, truth.soc.machine.n_devices, &e));
    err_fini(&e);
    struct backend_kernel *k = sim_kernel(d, &heavy);
    for (int64_t i = 1; i <= BACKEND_MAX_INFLIGHT; i++) {
        ck_assert_int_eq(backend_sim.submit(k), i);
    }
    ck_assert_int_eq(backend_sim.submit(k), -EAGAIN);
    ck_assert_int_eq(backend_sim.wait(d, 2, minute_ns), 0);  /* 3 begins with the next step */
    ck_assert_int_eq(backend_sim.wait(d, 5, 1), -ETIMEDOUT); /* 3 runs */
    ck_assert_int_eq(backend_sim.cancel(d, 1), 3);
    ck_assert_int_eq(backend_sim.cancel(d, BACKEND_MAX_INFLIGHT + 9), BACKEND_MAX_INFLIGHT);
    ck_assert_int_eq(backend_sim.wait(d, 4, minute_ns), -ECANCELED);
    ck_assert_int_eq(backend_sim.wait(d, 3, 0), 0);
    ck_assert_int_eq(backend_sim.stamps(d, 4, &at), -EINVAL);
    ck_assert_int_eq(backend_sim.stamps(d, 0, &at), -EINVAL);
    ck_assert_int_eq(backend_sim.stamps(d, 1, &at), 0);
    ck_assert(backend_sim.supports(d, &heavy));
    ck_assert_int_eq(backend_sim.wait(d, BACKEND_MAX_INFLIGHT, minute_ns), -ECANCELED);
    ck_assert_int_eq(backend_sim.submit(k), BACKEND_MAX_INFLIGHT + 1);
    ck_assert_int_eq(backend_sim.wait(d, BACKEND_MAX_INFLIGHT + 1, minute_ns), 0);
    ck_assert_int_eq(backend_sim.stamps(d, 1, &at), -EINVAL);
    ck_assert_int_eq(backend_sim.stamps(d, 2, &at), 0);
    ck_assert_int_eq(backend_sim.submit(k), BACKEND_MAX_INFLIGHT + 2);
    ck_assert_int_eq(backend_sim.cancel(d, BACKEND_MAX_INFLIGHT + 2), BACKEND_MAX_INFLIGHT + 1);
    ck_assert_int_eq(backend_sim.wait(d, BACKEND_MAX_INFLIGHT + 2, 0), -ECANCELED);
    backend_sim.release(k);
    backend_sim.close(d);
    backend_sim.stop(b);
}
END_TEST

/* Devices have the names and kinds of the machine's file, and each width of its entries once. */
START_TEST(simulated_devices_are_those_of_the_file)
{
    struct backend_info info[BACKEND_MAX_DEVICES];
    const struct machine *m = &truth.soc.machine;
    struct backend *b = sim_backend();
    ck_assert_uint_eq(backend_sim.enumerate(b, info, BACKEND_MAX_DEVICES), m->n_devices);
    for (uint32_t i = 0; i < m->n_devices; i++) {
        const struct soc_device *d = &truth.soc.devices[i];
        uint32_t n = 0;
        ck_assert_str_eq(info[i].name, m->devices[i].name);
        ck_assert_ptr_nonnull(strstr(info[i].description, m->name));
        ck_assert_int_eq(info[i].kind, m->devices[i].kind);
        ck_assert(info[i].act_bits == 16 && info[i].kv_bits == 16);
        for (uint32_t r = 0; r < d->n_runtimes; r++) {
            bool first = true;
            for (uint32_t k = 0; k < r; k++) {
                first = first && d->runtimes[k].weight_bits != d->runtimes[r].weight_bits;
            }
            if (first) {
                ck_assert_uint_eq(info[i].weight_bits[n++], d->runtimes[r].weight_bits);
            }
        }
        ck_assert_uint_eq(info[i].n_widths, n);
    }
    memset(info, 0, sizeof info);
    ck_assert_uint_eq(backend_sim.enumerate(b, info, 1), m->n_devices);
    ck_assert_str_eq(info[1].name, "");
    backend_sim.stop(b);
    struct err e = ERR_INIT;
    struct backend_options o = {.truth = NULL};
    ck_assert_ptr_null(backend_sim.start(&o, &e));
    ck_assert_ptr_nonnull(strstr(e.lines[0], "needs a SoC to simulate"));
    err_fini(&e);
}
END_TEST

/* ---- --sim ---- */

START_TEST(every_key_sets_its_own_number)
{
    struct err e = ERR_INIT;
    struct simdev_truth t;
    struct {
        const char *key;
        double *at, low, high;
    } keys[] = {
        {"noise", &t.noise_frac, 0.0, 1.0},
        {"drift", &t.drift_frac, 0.0, 0.5},
        {"drift_period_s", &t.drift_period_s, 1.0, 1e6},
        {"outliers", &t.outlier_frac, 0.0, 1.0},
        {"outlier_factor", &t.outlier_factor, 1.0, 1000.0},
        {"foreign", &t.foreign_frac, 0.0, 1.0},
        {"compile_s", &t.compile_s, 0.0, 1000.0},
        {"hang", &t.hang_frac, 0.0, 1.0},
        {"sharpness", &t.contention.sharpness, 0.5, 100.0},
        {"lambda_gemv", &t.lambda[KERNEL_GEMV], 0.0, 2.0},
        {"lambda_decode", &t.lambda[KERNEL_DECODE], 0.0, 2.0},
        {"lambda_gemm", &t.lambda[KERNEL_GEMM], 0.0, 2.0},
    };
    enum { N = sizeof keys / sizeof keys[0] };
    char text[80];
    for (int i = 0; i < N; i++) {
        for (int end = 0; end < 2; end++) {
            double value = end == 0 ? keys[i].low : keys[i].high;
            simdev_truth_init(&t);
            (void)snprintf(text, sizeof text, "%s=%.17g", keys[i].key, value);
            ck_assert_int_eq(simdev_truth_set(&t, text, &e), 0);
            ck_assert_double_eq(*keys[i].at, value);
            struct simdev_truth plain;
            simdev_truth_init(&plain);
            *keys[i].at = *(double *)(void *)((char *)&plain + ((char *)keys[i].at - (char *)&t));
            ck_assert_int_eq(memcmp(&t, &plain, sizeof t), 0); /* and no other */
            (void)snprintf(text, sizeof text, "%s=%.17g", keys[i].key,
                           nextafter(value, end == 0 ? -1.0 : 2e6));
            ck_assert_int_eq(simdev_truth_set(&t, text, &e), -EINVAL);
            (void)snprintf(text, sizeof text, "must be a number from %g to %g", keys[i].low,
                           keys[i].high);
            ck_assert_ptr_nonnull(strstr(e.lines[e.n - 1], text));
        }
    }
    simdev_truth_init(&t);
    ck_assert_uint_eq(t.seed, 1);
    ck_assert_double_eq(t.contention.sharpness, 6.0);
    ck_assert(t.drift_period_s == 600.0 && t.outlier_factor == 3.0);
    ck_assert_int_eq(simdev_truth_set(&t, "seed=0,noise=0.5,form=private", &e), 0);
    ck_assert(t.seed == 0 && t.noise_frac == 0.5 && t.form == SIMDEV_PRIVATE);
    ck_assert_int_eq(simdev_truth_set(&t, "seed=7,form=model", &e), 0);
    ck_assert(t.seed == 7 && t.form == SIMDEV_MODEL);
    ck_assert_int_eq(simdev_truth_set(&t, "form=fill", &e), 0);
    ck_assert_int_eq(t.form, SIMDEV_FILL);
    ck_assert_int_eq(simdev_truth_set(&t, "form=steps", &e), 0);
    ck_assert_int_eq(t.form, SIMDEV_STEPS);
    /* All that is wrong is said, and what is right is set. */
    size_t before = e.n;
    ck_assert_int_eq(simdev_truth_set(&t, "noise,form=round,hue=1,drift=x,drift=,seed=3", &e),
                     -EINVAL);
    ck_assert_uint_eq(e.n, before + 5);
    ck_assert_str_eq(e.lines[before], "--sim noise: must be KEY=VALUE");
    ck_assert_str_eq(e.lines[before + 1],
                     "--sim form=round: must be model, fill, steps or private");
    ck_assert_ptr_nonnull(strstr(e.lines[before + 2], "--sim hue: not known; noise, drift,"));
    ck_assert_ptr_nonnull(
        strstr(e.lines[before + 3], "--sim drift=x: must be a number from 0 to 0.5"));
    ck_assert_ptr_nonnull(
        strstr(e.lines[before + 4], "--sim drift=: must be a number from 0 to 0.5"));
    ck_assert_uint_eq(t.seed, 3);
    err_fini(&e);
}
END_TEST

static const struct suite_row suite[] = {
    CASE("sim", .setup = truth_setup, .timeout_s = 60),
    TEST(devices_slow_each_other_while_both_run),
    TEST(a_wrong_contention_is_of_the_device_alone),
    TEST(chance_changes_times_as_stated),
    TEST(a_simulated_queue_is_withdrawn_and_as_long_as_it_says),
    TEST(simulated_devices_are_those_of_the_file),
    TEST(every_key_sets_its_own_number),
};
SUITE_MAIN("simulated devices", suite)
