/* Waits that count as latency of preemption, by hand. */

#include "sim/base/units.h"
#include "sim/metrics/metrics.h"
#include "tests/helpers/suite.h"

#define S(t) ((int64_t)((t)*1e9 + 0.5))

/* A request, the one pass that serves it, and the pass's one launch. */
struct work {
    struct request request;
    struct segment segment;
    struct pass pass;
    struct launch launch;
};

static struct metrics *metrics;
static struct observer *o;

static void arrive(struct work *w, uint32_t id, enum request_class cls, double at_s)
{
    *w = (struct work){.request = {.id = id,
                                   .slot = id,
                                   .session_id = id,
                                   .cls = cls,
                                   .arrival_ns = S(at_s),
                                   .input_tokens = 10,
                                   .ttft_slo_ns = TIME_NEVER_NS,
                                   .tbt_slo_ns = TIME_NEVER_NS,
                                   .deadline_ns = TIME_NEVER_NS}};
    w->segment = (struct segment){.request = &w->request, .n_tokens = 10};
    w->pass = (struct pass){.id = id,
                            .segments = &w->segment,
                            .n_segments = 1,
                            .n_ops = 1,
                            .shape.prefill_rows = 10,
                            .has_reactive = cls == REQUEST_CLASS_REACTIVE};
    o->request_arrived(o->self, S(at_s), &w->request);
}

static void start(struct work *w, double at_s, double lead_s)
{
    w->launch = (struct launch){.id = w->pass.id, .pass = &w->pass, .start_ns = S(at_s)};
    o->launch_started(o->self, S(at_s), &w->launch, S(lead_s));
    w->request.first_service_ns = S(at_s + lead_s);
    o->request_first_service(o->self, S(at_s + lead_s), &w->request, &w->launch);
}

static void stop(struct work *w, double at_s)
{
    w->launch.end_ns = S(at_s);
    o->launch_ended(o->self, S(at_s), &w->launch, S(at_s) - w->request.first_service_ns, 0);
}

/* P runs from 0 to 4; R comes at 1, Q at 2. R is served from 5 to 9, Q from 10 on, its first kernel
 * after a lead of 0.5. R waited 4 = 3 for P's launch + 1. Q waited 8.5, of which R had the device
 * for 4: 4.5 = 2 for P's launch + 2.5. */
START_TEST(preemption_latency_is_waiting_behind_the_other_class)
{
    static struct work p, r, q;
    arrive(&p, 0, REQUEST_CLASS_PROACTIVE, 0.0);
    start(&p, 0.0, 0.0);
    arrive(&r, 1, REQUEST_CLASS_REACTIVE, 1.0);
    arrive(&q, 2, REQUEST_CLASS_REACTIVE, 2.0);
    stop(&p, 4.0);
    start(&r, 5.0, 0.0);
    stop(&r, 9.0);
    start(&q, 10.0, 0.5);
    stop(&q, 11.0);
    o->run_ended(o->self, S(11.0));
    struct metric_list list = {0};
    metrics_collect(metrics, &list);
    static const struct {
        const char *name;
        double value;
    } want[] = {{"reactive.preempt_latency_s.n", 2.0},    {"reactive.preempt_latency_s.p50", 4.0},
                {"reactive.preempt_latency_s.max", 4.5},  {"reactive.preempt_residual_s.max", 3.0},
                {"reactive.preempt_residual_s.p50", 2.0}, {"reactive.preempt_rest_s.max", 2.5}};
    for (size_t i = 0; i < sizeof want / sizeof want[0]; i++) {
        ck_assert_double_eq_tol(metric_list_find(&list, want[i].name)->value, want[i].value, 1e-12);
    }
    metric_list_fini(&list);
}
END_TEST

static struct machine machine = {
    .name = "test",
    .n_devices = 1,
    .ddr_peak_bytes_per_s = 100e9,
    .devices = {{.name = "igpu", .kind = DEVICE_KIND_IGPU}},
};

static void setup(void)
{
    struct metrics_options opt = metrics_options_default();
    metrics = metrics_new(&opt, &machine);
    o = metrics_observer(metrics);
}

static void teardown(void)
{
    metrics_free(metrics);
}

static const struct suite_row suite[] = {
    CASE("by hand", .setup = setup, .teardown = teardown),
    TEST(preemption_latency_is_waiting_behind_the_other_class),
};
SUITE_MAIN("preemption latency", suite)
