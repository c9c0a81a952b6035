/* Texts that an observer of a run makes: the state before a decision, what was refused, a steady
 * state. Calls are made up. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/compare/steady.h"
#include "experiments/conformance/scenario.h"
#include "experiments/diff/snapshot.h"
#include "experiments/run/interval.h"
#include "experiments/run/runner.h"
#include "experiments/shell/document.h"
#include "hwmodels/spread.h"
#include "sim/base/json.h"
#include "sim/base/scope.h"
#include "sim/core/counters.h"
#include "tests/helpers/suite.h"

/* ---- the state before a decision ---- */

static struct scenario sc;
static struct request requests[3];
static struct pass pass;
static struct launch launches[2];
static FILE *decisions;

static void setup(void)
{
    scenario_init(&sc);
    decisions = tmpfile();
    ck_assert_ptr_nonnull(decisions);
    memset(launches, 0, sizeof launches);
    pass = (struct pass){.id = 7, .op = 2, .n_ops = 9};
    for (uint32_t i = 0; i < 3; i++) {
        requests[i] =
            (struct request){.id = 10 + i,
                             .cls = i == 1 ? REQUEST_CLASS_REACTIVE : REQUEST_CLASS_PROACTIVE,
                             .input_tokens = 100 + i,
                             .kv_tokens = 20 + i,
                             .generated_tokens = 3 + i,
                             .preemptions = i,
                             .state = i == 2 ? REQUEST_STATE_QUEUED : REQUEST_STATE_DECODE};
    }
    requests[1].pass = &pass;
    for (uint32_t i = 0; i < 2; i++) {
        launches[i] = (struct launch){.id = 1 + i,
                                      .pass = &pass,
                                      .device = (uint8_t)(1 - i),
                                      .op_begin = 2 + i,
                                      .op_end = 5 + i,
                                      .rows = 64 + i,
                                      .submit_ns = 1500000000LL + i,
                                      .state = i == 0 ? LAUNCH_STATE_RUNNING : LAUNCH_STATE_QUEUED,
                                      .stop_requested = i == 1};
    }
}

static void teardown(void)
{
    (void)fclose(decisions);
    scenario_fini(&sc);
}

static const char full[] =
    "request 10 (proactive, decode): prompt 100, kv 20, generated 3, preempted 0\n"
    "request 11 (reactive, decode): prompt 101, kv 21, generated 4, preempted 1, in pass 7 at op 2 "
    "of 9\n"
    "request 12 (proactive, queued): prompt 102, kv 22, generated 5, preempted 2\n"
    "launch on igpu: pass 7, ops 2 to 5, rows 64, submitted at 1.500000000 s, running\n"
    "launch on npu: pass 7, ops 3 to 6, rows 65, submitted at 1.500000001 s, waiting, asked to "
    "stop\n";
static const char fewer[] =
    "request 10 (proactive, decode): prompt 100, kv 20, generated 3, preempted 0\n"
    "request 11 (reactive, decode): prompt 101, kv 21, generated 4, preempted 1, in pass 7 at op 2 "
    "of 9\n"
    "launch on npu: pass 7, ops 3 to 6, rows 65, submitted at 1.500000001 s, waiting, asked to "
    "stop\n";

/* Decisions are lines of 10 bytes behind a heading of 8. Events happen between them; what is asked
 * for is the state before the decision at an offset. */
static char *state_before(long offset, int64_t since_ns)
{
    struct snapshot *s = snapshot_new(&sc.machine, decisions, offset, since_ns);
    struct observer *o = snapshot_observer(s);
    rewind(decisions);
    (void)fputs("heading\n", decisions);
    for (int i = 0; i < 3; i++) {
        o->request_arrived(o->self, 10 + i, &requests[i]);
    }
    o->launch_submitted(o->self, 20, &launches[0]); /* takes effect, and then its line is written */
    (void)fputs("decision1\n", decisions);
    o->launch_submitted(o->self, 30, &launches[1]);
    (void)fputs("decision2\n", decisions);
    o->launch_started(o->self, 31, &launches[1], 0);
    o->pass_formed(o->self, 40, &pass);
    (void)fputs("decision3\n", decisions);
    o->launch_ended(o->self, 50, &launches[0], 1, 0);
    o->request_finished(o->self, 51, &requests[2]);
    o->pass_done(o->self, 52, &pass);
    o->pass_formed(o->self, 60, &pass);
    (void)fputs("decision4\n", decisions);
    o->request_shed(o->self, 70, &requests[0]);
    char *text = xstrdup(snapshot_text(s));
    snapshot_free(s);
    return text;
}

START_TEST(a_state_is_that_before_its_decision)
{
    OWNED char *third = state_before(20, 0); /* both launches are there, and nothing has ended */
    ck_assert_str_eq(third, full);
    OWNED char *fourth = state_before(30, 0);
    ck_assert_str_eq(fourth, fewer);
    OWNED char *first = state_before(0, 0); /* no launch yet */
    ck_assert_ptr_null(strstr(first, "launch"));
    ck_assert_ptr_nonnull(strstr(first, "request 12"));
    OWNED char *second = state_before(10, 0);
    ck_assert_ptr_nonnull(strstr(second, "launch on igpu"));
    ck_assert_ptr_null(strstr(second, "launch on npu"));
    OWNED char *late = state_before(30, 51); /* looked at from then on: the same */
    ck_assert_str_eq(late, fewer);
    OWNED char *never = state_before(20, 1000);
    ck_assert_str_eq(never, "");
}
END_TEST

/* ---- refusals ---- */

START_TEST(refusals_are_said_and_kept)
{
    char text[RUNNER_REFUSAL_BYTES];
    struct sim_result r = {.n_refusals = 3};
    r.refusals[0] = (struct sim_refusal){.action = "launch",
                                         .hook = "schedule",
                                         .why = "the device is busy",
                                         .n = 1,
                                         .first_ns = 1250000000,
                                         .status = -EBUSY,
                                         .counter = COUNTER_LAUNCH_DEVICE_BUSY};
    r.refusals[1] = (struct sim_refusal){.action = "timer",
                                         .hook = "pass_done",
                                         .why = "it lies before now",
                                         .n = 12,
                                         .first_ns = 500000,
                                         .status = -EINVAL,
                                         .counter = COUNTER_TIMER_REFUSED};
    r.refusals[2] = (struct sim_refusal){.action = "form",
                                         .hook = "schedule",
                                         .why = "no room",
                                         .n = 2,
                                         .first_ns = 1,
                                         .status = -ENOMEM,
                                         .counter = COUNTER_PASS_NO_MEMORY};
    ck_assert_str_eq(runner_refusal_text(&r.refusals[0], text),
                     "launch 1 time, first at 1.25 s: the device is busy (EBUSY)");
    ck_assert_str_eq(runner_refusal_text(&r.refusals[1], text),
                     "timer 12 times in pass_done, first at 0.0005 s: it lies before now (EINVAL)");
    ck_assert_str_eq(runner_refusal_text(&r.refusals[2], text),
                     "form 2 times, first at 1e-09 s: no room (ENOMEM)");
    static const struct {
        int status;
        const char *name;
    } names[] = {
        {-ENOENT, "(ENOENT)"}, {-EALREADY, "(EALREADY)"}, {-EPERM, "(EPERM)"}, {-EIO, "(error)"}};
    for (int i = 0; i < 4; i++) {
        r.refusals[2].status = names[i].status;
        ck_assert_ptr_nonnull(strstr(runner_refusal_text(&r.refusals[2], text), names[i].name));
    }
    /* For lack of KV is no fault, so it is not among the refused as data. */
    struct document *d = document_new();
    runner_refusals(&r, d);
    cJSON *tree = document_json(d);
    OWNED char *all = json_text(cJSON_GetObjectItem(tree, "refused"), false);
    ck_assert_str_eq(strtok(all, "\n"),
                     "[{\"action\":\"launch\",\"hook\":\"schedule\",\"reason\":\"the device is "
                     "busy\",\"error\":\"EBUSY\",\"count\":1,\"first_s\":1.25},"
                     "{\"action\":\"timer\",\"hook\":\"pass_done\",\"reason\":\"it lies before "
                     "now\",\"error\":\"EINVAL\",\"count\":12,\"first_s\":0.0005}]");
    cJSON_Delete(tree);
}
END_TEST

/* ---- intervals ---- */

START_TEST(an_interval_says_where_it_comes_from)
{
    struct conformal_interval x = {.n = 0};
    OWNED char *none = interval_text(&x);
    ck_assert_str_eq(none, "none: nothing like it was measured");
    x = (struct conformal_interval){
        .low_factor = 0.805, .high_factor = 1.242, .n = 7, .pool = CONFORMAL_MEASURED};
    OWNED char *own = interval_text(&x);
    ck_assert_str_eq(own, "x 0.81 to 1.24 (7 rows measured on this machine)");
    x.pool = "igpu";
    x.left = CONFORMAL_MODEL;
    x.distance = log(1.5);
    OWNED char *others = interval_text(&x);
    ck_assert_str_eq(others, "x 0.81 to 1.24 (model not measured: 7 left-out rows of igpu; nearest "
                             "measured x 1.5 away)");
    /* Rows of its machine updated this entry: exp(-+1.959964 sd) of its phase and size. */
    struct soc_runtime entry = {.measured_rows = 5};
    entry.error_sd[0][CONFORMAL_PREFILL] = 0.1;
    entry.error_sd[1][CONFORMAL_PREFILL] = 0.2;
    struct conformal_query q = {.weights = 1e12, .phase = CONFORMAL_PREFILL};
    ck_assert(interval_measured(&entry, &q, &x));
    ck_assert_double_eq_tol(x.low_factor, exp(-0.1959964), 1e-9);
    ck_assert_double_eq_tol(x.high_factor, exp(0.1959964), 1e-9);
    ck_assert_uint_eq(x.n, 5);
    q.weights = SPREAD_SMALL_WEIGHTS; /* the least that is not small */
    ck_assert(interval_measured(&entry, &q, &x));
    ck_assert_double_eq_tol(x.high_factor, exp(0.1959964), 1e-9);
    q.weights = nextafter(SPREAD_SMALL_WEIGHTS, 0.0);
    ck_assert(interval_measured(&entry, &q, &x));
    ck_assert_double_eq_tol(x.high_factor, exp(0.3919928), 1e-9);
    q.mixture = true; /* its prompts are as sure as others, its decode half as sure */
    ck_assert(interval_measured(&entry, &q, &x));
    ck_assert_double_eq_tol(x.high_factor, exp(0.3919928), 1e-9);
    q.phase = CONFORMAL_DECODE;
    ck_assert(!interval_measured(&entry, &q, &x));
    entry.error_sd[1][CONFORMAL_DECODE] = 0.1;
    ck_assert(interval_measured(&entry, &q, &x));
    ck_assert_double_eq_tol(x.low_factor, exp(-0.3919928), 1e-9);
}
END_TEST

/* Made from x: rows of y were off by 10, 20 and 40 %, one of z by 50 %. Their median is 20 (the
 * second of four), those of the pairs 20 and 50. In decode nothing was made from x; of all, w to y
 * was off by 30 %. */
START_TEST(a_machine_made_from_a_sibling_says_how_far_such_were_off)
{
    static struct conformal_row rows[] = {{.soc = "y",
                                           .family = "f",
                                           .by = "x",
                                           .kind = DEVICE_KIND_IGPU,
                                           .phase = CONFORMAL_PREFILL,
                                           .left = CONFORMAL_SOC},
                                          {.soc = "y",
                                           .family = "f",
                                           .by = "x",
                                           .kind = DEVICE_KIND_IGPU,
                                           .phase = CONFORMAL_PREFILL,
                                           .left = CONFORMAL_SOC},
                                          {.soc = "y",
                                           .family = "f",
                                           .by = "x",
                                           .kind = DEVICE_KIND_IGPU,
                                           .phase = CONFORMAL_PREFILL,
                                           .left = CONFORMAL_SOC},
                                          {.soc = "z",
                                           .family = "g",
                                           .by = "x",
                                           .kind = DEVICE_KIND_IGPU,
                                           .phase = CONFORMAL_PREFILL,
                                           .left = CONFORMAL_SOC},
                                          {.soc = "y",
                                           .family = "f",
                                           .by = "w",
                                           .kind = DEVICE_KIND_IGPU,
                                           .phase = CONFORMAL_PREFILL,
                                           .left = CONFORMAL_SOC},
                                          {.soc = "y",
                                           .family = "f",
                                           .by = "w",
                                           .kind = DEVICE_KIND_IGPU,
                                           .phase = CONFORMAL_DECODE,
                                           .left = CONFORMAL_SOC},
                                          {.soc = "y",
                                           .family = "f",
                                           .by = "y",
                                           .kind = DEVICE_KIND_IGPU,
                                           .phase = CONFORMAL_DECODE,
                                           .left = CONFORMAL_MODEL},
                                          {.soc = "y",
                                           .family = "f",
                                           .by = "x",
                                           .kind = DEVICE_KIND_NPU,
                                           .phase = CONFORMAL_DECODE,
                                           .left = CONFORMAL_SOC}};
    static const double off[] = {1.1, 0.8, 1.4, 1.5, 9.0, 1.3, 8.0, 7.0};
    for (int i = 0; i < 8; i++) {
        rows[i].ln_error = log(off[i]);
    }
    static struct soc soc;
    soc.machine = sc.machine;
    (void)snprintf(soc.like, sizeof soc.like, "x");
    struct conformal t = {.v = rows, .n = 8};
    OWNED char *text = interval_transfer_text(&t, &soc, 1);
    ck_assert_str_eq(text, "igpu: made from x by data sheet; on measured machines such transfers "
                           "were off by 20 % in the median in prefill (20 to 50 % by pair), "
                           "30 % in the median in decode (30 to 30 % by pair)");
    OWNED char *cpu = interval_transfer_text(&t, &soc, 2);
    ck_assert_str_eq(
        cpu,
        "cpu: made from x by data sheet; no measured machines say how far off such transfers are");
    ck_assert(interval_is_transfer(&soc, 1));
    soc.devices[1].runtimes[0].measured_rows = 1;
    ck_assert(!interval_is_transfer(&soc, 1));
    soc.devices[1].runtimes[0].measured_rows = 0;
    soc.devices[1].runtimes[0].start.given = true;
    ck_assert(!interval_is_transfer(&soc, 1));
    ck_assert(interval_is_transfer(&soc, 2));
    soc.like[0] = '\0';
    ck_assert(!interval_is_transfer(&soc, 2));
}
END_TEST

/* ---- a steady state ---- */

/* Requests end in an order of their own; latencies by arrival are 1 s and 2 s in turn for the first
 * token, and twice that for the end. The mean of any part with as many of each is 1.5 and 3. */
START_TEST(a_steady_state_is_of_latencies_by_arrival)
{
    struct steady *s = steady_new();
    struct observer *o = steady_observer(s);
    enum { N = 2000 };
    for (uint32_t k = 0; k < N; k++) {
        uint32_t i = k % 2 == 0 ? k + 1 : k - 1; /* neighbours end in the other order */
        int64_t arrival = 1000000000LL * i;
        int64_t first = i % 2 == 0 ? 1000000000LL : 2000000000LL;
        struct request r = {.id = i,
                            .cls = REQUEST_CLASS_PROACTIVE,
                            .arrival_ns = arrival,
                            .first_token_ns = arrival + first};
        o->request_finished(o->self, arrival + 2 * first, &r);
    }
    struct document *d = document_new();
    struct err e = ERR_INIT;
    ck_assert_int_eq(steady_document(s, false, d, &e), 0);
    cJSON *tree = document_json(d);
    const cJSON *steady = cJSON_GetObjectItem(tree, "steady");
    ck_assert_int_eq(cJSON_GetArraySize(steady), 2);
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    document_put(d, "text", f);
    (void)fclose(f);
    ck_assert_ptr_nonnull(strstr(text, "steady state, mean [95 % interval]"));
    for (int k = 0; k < 2; k++) {
        const cJSON *row =
            cJSON_GetObjectItem(steady, k == 0 ? "proactive.ttft_s" : "proactive.e2e_s");
        ck_assert_ptr_nonnull(row);
        double n = cJSON_GetObjectItem(row, "n")->valuedouble;
        double dropped = cJSON_GetObjectItem(row, "dropped")->valuedouble;
        double length = cJSON_GetObjectItem(row, "correlation_length")->valuedouble;
        ck_assert_double_eq(n, N);
        ck_assert_double_eq_tol(cJSON_GetObjectItem(row, "mean")->valuedouble, 1.5 * (k + 1),
                                0.002 * (k + 1));
        ck_assert_double_le(cJSON_GetObjectItem(row, "low")->valuedouble,
                            cJSON_GetObjectItem(row, "mean")->valuedouble);
        ck_assert_double_ge(cJSON_GetObjectItem(row, "high")->valuedouble,
                            cJSON_GetObjectItem(row, "mean")->valuedouble);
        OWNED char *worth = xformat("%.0f values, worth %.0f independent ones", n - dropped,
                                    (n - dropped) / length);
        ck_assert_msg(strstr(text, worth) != NULL, "no \"%s\" in %s", worth, text);
    }
    free(text);
    cJSON_Delete(tree);
    err_fini(&e);
}
END_TEST

static const struct suite_row suite[] = {
    CASE("said texts", .setup = setup, .teardown = teardown),
    TEST(a_state_is_that_before_its_decision),
    TEST(refusals_are_said_and_kept),
    TEST(an_interval_says_where_it_comes_from),
    TEST(a_machine_made_from_a_sibling_says_how_far_such_were_off),
    TEST(a_steady_state_is_of_latencies_by_arrival),
};
SUITE_MAIN("said texts", suite)
