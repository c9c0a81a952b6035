/* A second NPU is a SoC file: the shipped one with its NPU twice, and a policy that uses every NPU
 * it finds. Prices come from the file, so the expectation is a comparison. Twins finish at the same
 * instant and as early as one of them alone. On one NPU the second waits for the first. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "hwmodels/roofline.h"
#include "policies/common/place.h"
#include "sim/base/json.h"
#include "sim/core/core.h"
#include "sim/core/kernels.h"
#include "tests/helpers/scenario.h"
#include "tests/helpers/suite.h"

static struct scenario sc;
static struct soc soc;
static struct llm llm;
static struct roofline truth;

/* Makes the shipped machine, with its NPU again as "npu2", or with its NPU in so many partitions.
 * The NPU has no static attention here, so that it runs decodes too. */
static void machine(bool twice, int partitions)
{
    struct err e = ERR_INIT;
    cJSON *root = json_read_file(soc_path("core-ultra-5-125h"), &e);
    cJSON *devices = cJSON_GetObjectItem(root, "devices");
    cJSON *npu = cJSON_GetArrayItem(devices, 0);
    cJSON_ReplaceItemInObject(npu, "static_attention", cJSON_CreateFalse());
    if (twice) {
        ck_assert(cJSON_InsertItemInArray(devices, 0, cJSON_Duplicate(npu, true)));
        cJSON_ReplaceItemInObject(npu, "name", cJSON_CreateString("npu2"));
    }
    cJSON_AddNumberToObject(npu, "tiles", 6);
    cJSON_AddNumberToObject(npu, "partitions", partitions);
    ck_assert_msg(soc_parse(root, "two-npus", &soc, &e) == 0, "%s", e.n > 0 ? e.lines[0] : "");
    cJSON_Delete(root);
    root = json_read_file(llm_path("llama-3.2-3b"), &e);
    ck_assert_int_eq(llm_parse(root, "llama-3.2-3b", &llm, &e), 0);
    cJSON_Delete(root);
    roofline_init(&truth, hwmodel_find("extended"), &soc, &llm);
    err_fini(&e);
}

static const struct request *waiting[2];

static void arrived(struct sched *s, const struct request *r)
{
    (void)s;
    waiting[r->id] = r;
}

static void pass_done(struct sched *s, const struct pass *p)
{
    (void)s;
    const struct request *r = p->segments[0].request;
    waiting[r->id] = r->state == REQUEST_STATE_FINISHED ? NULL : r;
}

/* A request that is in no pass gets one on the first NPU that is free. */
static void schedule(struct sched *s)
{
    for (int i = 0; i < 2; i++) {
        const struct request *r = waiting[i];
        int d = machine_find(s->machine, DEVICE_KIND_NPU);
        while (d >= 0 && sched_device_free_slots(s, (uint8_t)d) == 0) {
            d = machine_find_after(s->machine, DEVICE_KIND_NPU, d);
        }
        if (r == NULL || r->pass != NULL || d < 0) {
            continue;
        }
        bool decode = r->state == REQUEST_STATE_DECODE;
        struct segment g = {.request = r,
                            .role = decode ? SEGMENT_DECODE : SEGMENT_PREFILL,
                            .n_tokens = decode ? 1 : request_prefill_left(r)};
        struct pass_spec spec = {.segments = &g, .n_segments = 1, .fused_layers = decode};
        struct pass *p;
        ck_assert_int_eq(sched_pass_form(s, &spec, &p), 0);
        ck_assert_int_eq(place_whole(s, p, (uint8_t)d, YIELD_PASS), 0);
    }
}

static const struct policy_ops every_npu = {.contract = POLICY_CONTRACT,
                                            .name = "every-npu",
                                            .summary = "a request on every NPU",
                                            .needs = CAP_NPU,
                                            .request_arrived = arrived,
                                            .pass_done = pass_done,
                                            .schedule = schedule};

/* These say how the DDR is shared, and whether every boundary of a kernel is an event. */
static const char *contention = "none";
static bool every_boundary;

/* Fills in the finish times of n equal requests that come at 0, in ms. */
static void run_tokens(uint32_t n, uint32_t output_tokens, double *finish_ms)
{
    const struct scenario_request two[] = {
        {.cls = BE, .input_tokens = 512, .output_tokens = output_tokens},
        {.cls = BE, .input_tokens = 512, .output_tokens = output_tokens}};
    scenario_init(&sc);
    sc.setup.contention = contention_find(contention);
    sc.setup.collapse = !every_boundary;
    sc.setup.machine = &truth.machine;
    sc.setup.llm = &llm;
    sc.setup.truth = &truth.model;
    sc.setup.policy = &every_npu;
    memset(waiting, 0, sizeof waiting);
    ck_assert_msg(scenario_run(&sc, two, n, false) == 0, "%s", sc.result.message);
    ck_assert(sc.result.audit.clean);
    for (uint32_t i = 0; i < n; i++) {
        finish_ms[i] = units_ms_from_ns(sc.records[i].finish_ns);
    }
    scenario_fini(&sc);
}

static void run(bool twice, uint32_t n, double *finish_ms)
{
    machine(twice, 1);
    run_tokens(n, 4, finish_ms);
}

START_TEST(a_policy_schedules_over_two_npus)
{
    double alone[2];
    double one[2];
    double both[2];
    run(false, 1, alone);
    run(false, 2, one);
    run(true, 2, both); /* contention none: the twins do not slow each other */
    ck_assert_double_eq(both[0], alone[0]);
    ck_assert_double_eq(both[1], alone[0]);
    /* The last token waits for the host, when the other request has the NPU already. So the run
     * takes less than two whole requests, and more than one and all but that token. */
    ck_assert_double_gt(one[1], 1.9 * alone[0]);
    ck_assert_double_le(one[1], 2.0 * alone[0]);
}
END_TEST

START_TEST(machines_find_every_device_of_a_kind)
{
    machine(true, 1);
    const struct machine *m = &soc.machine;
    ck_assert_uint_eq(m->n_devices, 4);
    ck_assert_int_eq(machine_find(m, DEVICE_KIND_NPU), 0);
    ck_assert_int_eq(machine_find_after(m, DEVICE_KIND_NPU, 0), 1);
    ck_assert_int_eq(machine_find_after(m, DEVICE_KIND_NPU, 1), -1);
    ck_assert_int_eq(machine_find(m, DEVICE_KIND_IGPU), 2);
    ck_assert_str_eq(m->devices[1].name, "npu2");
    for (int kind = 0; kind < DEVICE_KIND_COUNT; kind++) {
        ck_assert_ptr_nonnull(device_kind_names()[kind]);
        ck_assert_str_eq(place_choices[kind + 1], device_kind_names()[kind]);
    }
    ck_assert_ptr_null(device_kind_names()[DEVICE_KIND_COUNT]);
}
END_TEST

/* ---- prices ---- */

enum { FORMS = 6, PER_FORM = 3 };

/* The one row of a prompt of one token is launched in these ways. It runs on the iGPU, and on the
 * NPU as a kernel of its own, in chunks of 16 and of 32 rows, and on the graphs of as many. */
static const struct form {
    enum device_kind kind;
    uint32_t chunk_rows;
    uint8_t graph;
} forms[FORMS] = {{DEVICE_KIND_IGPU, 0, 0}, {DEVICE_KIND_NPU, 0, 0},  {DEVICE_KIND_NPU, 16, 0},
                  {DEVICE_KIND_NPU, 16, 1}, {DEVICE_KIND_NPU, 32, 0}, {DEVICE_KIND_NPU, 32, 2}};

static int64_t stated_ns[FORMS * PER_FORM];
static const struct request *next;
static struct pass *under_way;

static int say_graphs(struct sched *s)
{
    int rc = 0;
    for (uint8_t g = 1; g <= 2; g++) {
        rc += sched_graph(s, g, (struct graph_shape){16u * g, 1});
        rc += sched_map(s, (struct resident_key){RESIDENT_GRAPH_BLOCK, 0, g}, 1e9);
    }
    return rc;
}

static void one_arrived(struct sched *s, const struct request *r)
{
    (void)s;
    next = r;
}

static void one_done(struct sched *s, const struct pass *p)
{
    (void)s;
    (void)p;
    under_way = NULL;
}

/* Launches QKV as one of the forms, in turn, and the rest of the pass on the iGPU. */
static void price_schedule(struct sched *s)
{
    int igpu = machine_find(s->machine, DEVICE_KIND_IGPU);
    if (under_way != NULL && under_way->state == PASS_STATE_READY) {
        ck_assert_int_eq(place_whole(s, under_way, (uint8_t)igpu, YIELD_PASS), 0);
    }
    if (under_way != NULL || next == NULL) {
        return;
    }
    const struct form *f = &forms[next->id % FORMS];
    uint8_t device = (uint8_t)machine_find(s->machine, f->kind);
    struct segment g = {.request = next, .role = SEGMENT_PREFILL, .n_tokens = 1};
    struct pass_spec spec = {.segments = &g, .n_segments = 1};
    ck_assert_int_eq(sched_pass_form(s, &spec, &under_way), 0);
    struct launch_spec l = sched_launch_rest(s, under_way, device, YIELD_PASS);
    l.n_ops = 1;
    l.chunk_rows = f->chunk_rows;
    l.graph = f->graph;
    struct estimate e;
    ck_assert_int_eq(
        sched_estimate_graph(s, &under_way->shape, OP_QKV, device, 1, f->chunk_rows, f->graph, &e),
        0);
    stated_ns[next->id] = e.t_ns;
    ck_assert_int_eq(sched_launch(s, &l, NULL), 0);
    next = NULL;
}

static const struct policy_ops every_form = {.contract = POLICY_CONTRACT,
                                             .name = "every-form",
                                             .summary = "one row in every form",
                                             .needs = CAP_NPU | CAP_IGPU,
                                             .init = say_graphs,
                                             .request_arrived = one_arrived,
                                             .pass_done = one_done,
                                             .schedule = price_schedule};

/* Equal rows of equal requests are launched in one form after the other, three times. Each kernel
 * takes the stated time of its own form, whichever was launched before it. */
START_TEST(a_kernel_takes_what_its_own_form_takes)
{
    struct scenario_request q[FORMS * PER_FORM];
    for (uint32_t i = 0; i < FORMS * PER_FORM; i++) {
        q[i] = (struct scenario_request){
            .cls = BE, .arrival_s = i, .input_tokens = 1, .output_tokens = 1};
    }
    machine(false, 1);
    scenario_init(&sc);
    sc.setup.machine = &truth.machine;
    sc.setup.llm = &llm;
    sc.setup.truth = &truth.model;
    sc.setup.policy = &every_form;
    ck_assert_msg(scenario_run(&sc, q, FORMS * PER_FORM, true) == 0, "%s", sc.result.message);
    for (uint32_t i = 0; i < FORMS * PER_FORM; i++) {
        const struct scenario_kernel *k = scenario_kernel_find(
            &sc, 0, i, machine_find(&truth.machine, forms[i % FORMS].kind), OP_QKV);
        ck_assert_ptr_nonnull(k);
        ck_assert_int_eq(k->end_ns - k->begin_ns, stated_ns[i]);
    }
    ck_assert_int_ne(stated_ns[2], stated_ns[3]);
    scenario_fini(&sc);
}
END_TEST

/* ---- partitions of one NPU ---- */

/* Two partitions of the NPU have half of its tiles, watts and rates each, and all of its launch
 * time and chunk. The iGPU comes behind them, and keeps its entry of the file. */
START_TEST(partitions_have_their_share_of_a_device)
{
    machine(false, 1);
    struct device whole = soc.machine.devices[0];
    struct soc_device numbers = soc.devices[0];
    machine(false, 2);
    ck_assert_uint_eq(soc.machine.n_devices, 4);
    for (uint32_t i = 0; i < 2; i++) {
        const struct device *d = &soc.machine.devices[i];
        const struct soc_runtime *r = &soc.devices[i].runtimes[0];
        ck_assert_str_eq(d->name, i == 0 ? "npu-1" : "npu-2");
        ck_assert_uint_eq(d->index, i);
        ck_assert_uint_eq(soc.devices[i].tiles, 3);
        ck_assert_uint_eq(soc.devices[i].entry, 0);
        ck_assert_double_eq(2.0 * d->prefill_watts, whole.prefill_watts);
        ck_assert_double_eq(2.0 * d->decode_watts, whole.decode_watts);
        ck_assert_double_eq(2.0 * r->many.flop_per_s, numbers.runtimes[0].many.flop_per_s);
        ck_assert_double_eq(2.0 * r->one.bytes_per_s, numbers.runtimes[0].one.bytes_per_s);
        ck_assert_double_eq(r->many.launch_s, numbers.runtimes[0].many.launch_s);
        ck_assert_uint_eq(d->chunk_rows, whole.chunk_rows);
    }
    ck_assert_str_eq(soc.machine.devices[2].name, "igpu");
    ck_assert_uint_eq(soc.machine.devices[2].index, 2);
    ck_assert_uint_eq(soc.devices[2].entry, 1);
}
END_TEST

/* Returns the isolated time of so many rows over 1024 keys each. */
static double kernel_ns(uint8_t op, uint32_t rows, bool prefill)
{
    struct work_shape w = {.rows = rows,
                           .logit_rows = 1,
                           .sequences = 1,
                           .prefill_rows = prefill ? rows : 0,
                           .attn_pairs = (uint64_t)1024 * rows,
                           .kv_read_tokens = 1024};
    struct kernel_query q = {.op = op, .rows = rows, .padded_rows = rows, .shape = &w};
    struct kernel_cost c;
    roofline_init(&truth, hwmodel_find("extended"), &soc, &llm);
    hwmodel_kernel(&truth.model, &q, &c);
    return (double)c.t_ns;
}

/* The engine is whole as yet. halve() makes halves of it. */
static struct soc_runtime *engine_that_fills(void)
{
    struct soc_runtime *r = &soc.devices[0].runtimes[0];
    machine(false, 1);
    soc.devices[0].tiles = 2;
    soc.devices[0].partitions = 2;
    r->fill_rows = 300.0;
    r->many.launch_s = r->one.launch_s = 0.0;
    return r;
}

static void halve(void)
{
    struct err e = ERR_INIT;
    soc_partition(&soc, "f", &e);
    ck_assert_uint_eq(e.n, 0);
}

/* Two halves have what the whole has, and no number counts twice: what it draws at rest and at
 * work, its share of the DDR, its peak, and the memory of its kernels. */
START_TEST(halves_add_up_to_the_device)
{
    engine_that_fills();
    struct device *d = soc.machine.devices;
    struct soc_device *sd = soc.devices;
    d->idle_watts = 1.5;
    d->decode_watts = 4.0;
    d->prefill_watts = 6.0;
    d->ddr_weight = 3.0;
    sd->peak_flop_per_s = 10e12;
    sd->kernels.budget_bytes = 8e6;
    halve();
    ck_assert_double_eq(d[0].idle_watts + d[1].idle_watts, 1.5);
    ck_assert_double_eq(d[0].decode_watts + d[1].decode_watts, 4.0);
    ck_assert_double_eq(d[0].prefill_watts + d[1].prefill_watts, 6.0);
    ck_assert_double_eq(d[0].ddr_weight + d[1].ddr_weight, 3.0);
    ck_assert_double_eq(sd[0].peak_flop_per_s + sd[1].peak_flop_per_s, 10e12);
    ck_assert_double_eq(sd[0].kernels.budget_bytes + sd[1].kernels.budget_bytes, 8e6);
}
END_TEST

/* An engine that fills by rows is smaller in a partition. 1024 rows take twice as long on half of
 * the tiles, and fewer rows less than that. */
START_TEST(a_smaller_engine_fills_with_fewer_rows)
{
    engine_that_fills()->many.bytes_per_s = 1e15;
    double whole_1024 = kernel_ns(OP_FFN, 1024, true);
    double whole_128 = kernel_ns(OP_FFN, 128, true);
    halve();
    ck_assert_double_eq_tol(kernel_ns(OP_FFN, 1024, true) / whole_1024, 2.0, 1e-6);
    double less =
        (1.0 + 150.0 / 128) / (1.0 + 300.0 / 128) / ((1.0 + 150.0 / 1024) / (1.0 + 300.0 / 1024));
    ck_assert_double_eq_tol(kernel_ns(OP_FFN, 128, true) / whole_128, 2.0 * less, 1e-6);
}
END_TEST

/* Attention has no fill that would shrink, with many rows or with one. So on half of the tiles it
 * takes twice as long. */
START_TEST(attention_has_its_share_of_an_engine_that_fills)
{
    engine_that_fills()->decode_attention_frac = 1e-3;
    double prompt = kernel_ns(OP_MHA, 512, true);
    double row = kernel_ns(OP_MHA, 1, false);
    halve();
    ck_assert_double_eq_tol(kernel_ns(OP_MHA, 512, true) / prompt, 2.0, 1e-4);
    ck_assert_double_eq_tol(kernel_ns(OP_MHA, 1, false) / row, 2.0, 1e-4);
}
END_TEST

/* Attention of a model with a special one takes more than twice as long here. On half of the
 * tiles that doubles again. */
START_TEST(special_attention_has_its_share_too)
{
    engine_that_fills()->special_attention_frac = 2e-3;
    double usual = kernel_ns(OP_MHA, 512, true);
    llm.special_attention = true;
    double prompt = kernel_ns(OP_MHA, 512, true);
    ck_assert_double_gt(prompt, 2.0 * usual);
    halve();
    ck_assert_double_eq_tol(kernel_ns(OP_MHA, 512, true) / prompt, 2.0, 1e-4);
}
END_TEST

/* Attention and recurrences have no fill, whoever states a rate of their own: each rate is half. */
START_TEST(rates_without_a_fill_are_halved)
{
    struct soc_runtime *r = engine_that_fills();
    r->width_fill = 700.0;
    r->attention_frac = 0.3;
    r->decode_attention_frac = 0.1;
    r->special_attention_frac = 0.2;
    r->kv_columns = 8;
    r->recurrence_frac = 0.05;
    const double whole = r->many.flop_per_s;
    halve();
    for (int i = 0; i < 2; i++) {
        const struct soc_runtime *part = &soc.devices[i].runtimes[0];
        const double rate = part->many.flop_per_s;
        ck_assert_double_eq_tol(part->attention_frac * rate / whole, 0.15, 1e-9);
        ck_assert_double_eq_tol(part->decode_attention_frac * rate / whole, 0.05, 1e-9);
        ck_assert_double_eq_tol(part->special_attention_frac * rate / whole, 0.1, 1e-9);
        ck_assert_uint_eq(part->kv_columns, 4);
        ck_assert_double_eq_tol(part->recurrence_frac * rate / whole, 0.025, 1e-9);
    }
}
END_TEST

/* Returns by how many ns contention lengthens a prompt of 512 rows next to an equal one. Both are
 * at the same kernel all the time. Its time is multiplied by the demand of both on the DDR, divided
 * by the capacity of that. */
static double cost_of_contention_ns(double *kernels)
{
    struct work_shape w = {.rows = 512,
                           .logit_rows = 1,
                           .sequences = 1,
                           .prefill_rows = 512,
                           .attn_pairs = 512 * 513 / 2,
                           .kv_read_tokens = 512,
                           .max_context_tokens = 512};
    double capacity = truth.machine.ddr_peak_bytes_per_s * truth.machine.ddr_cap_frac;
    double more_ns = 0.0;
    *kernels = 0.0;
    for (int op = OP_QKV; op <= OP_HEAD; op++) {
        struct kernel_run k;
        uint32_t rows = op == OP_HEAD ? 1 : 512;
        kernel_run_fill(&truth.model, &w, (enum op_kind)op, 0, 0, rows,
                        truth.machine.devices[0].chunk_rows, 0, &k);
        double demand = k.last.bytes / (double)k.last.t_ns * 1e9;
        double times = (op == OP_HEAD ? 1.0 : (double)llm.n_layers) * k.n;
        more_ns +=
            times * (double)k.last.t_ns * (fmax(1.0, 2.0 * demand / fmax(capacity, demand)) - 1.0);
        *kernels += times;
    }
    return more_ns;
}

START_TEST(partitions_run_side_by_side_and_contend_for_the_ddr)
{
    double alone[2];
    double both[2];
    double slowed[2];
    double kernels;
    machine(false, 2);
    truth.machine.ddr_cap_frac = 0.2;
    run_tokens(1, 1, alone);
    run_tokens(2, 1, both);
    ck_assert_double_eq(both[0], alone[0]);
    ck_assert_double_eq(both[1], alone[0]);
    contention = "proportional";
    run_tokens(2, 1, slowed);
    ck_assert_double_eq(slowed[0], slowed[1]);
    double more_ns = cost_of_contention_ns(&kernels);
    ck_assert_double_gt(more_ns, 1e6);
    ck_assert_double_le(fabs(1e6 * (slowed[0] - both[0]) - more_ns), kernels + 1.0);
    every_boundary = true; /* event by event */
    run_tokens(2, 1, both);
    ck_assert_double_eq(both[0], slowed[0]);
    ck_assert_double_eq(both[1], slowed[1]);
}
END_TEST

static void refused(uint32_t tiles, uint32_t partitions, bool measured, const char *why)
{
    struct err e = ERR_INIT;
    machine(false, 1);
    soc.devices[0].tiles = tiles;
    soc.devices[0].partitions = partitions;
    soc.devices[0].runtimes[0].ops.given = measured;
    soc_partition(&soc, "f", &e);
    ck_assert_uint_eq(e.n, 1);
    ck_assert_msg(strstr(e.lines[0], why) != NULL, "%s", e.lines[0]);
    ck_assert_uint_eq(soc.machine.n_devices, 3);
    err_fini(&e);
}

START_TEST(what_cannot_be_divided_is_refused)
{
    refused(3, 2, false, "3 tiles cannot be divided into 2 equal parts");
    refused(6, 3, false, "a machine has at most 4 devices");
    refused(2, 2, true, "its kernels were measured on all tiles");
}
END_TEST

static const struct suite_row suite[] = {
    TEST(partitions_have_their_share_of_a_device),
    TEST(halves_add_up_to_the_device),
    TEST(a_smaller_engine_fills_with_fewer_rows),
    TEST(attention_has_its_share_of_an_engine_that_fills),
    TEST(special_attention_has_its_share_too),
    TEST(rates_without_a_fill_are_halved),
    TEST(partitions_run_side_by_side_and_contend_for_the_ddr),
    TEST(what_cannot_be_divided_is_refused),
    TEST(a_policy_schedules_over_two_npus),
    TEST(a_kernel_takes_what_its_own_form_takes),
    TEST(machines_find_every_device_of_a_kind),
};
SUITE_MAIN("two NPUs", suite)
