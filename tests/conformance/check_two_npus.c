/* A second NPU is a SoC file: the shipped one with its NPU twice, and a policy that uses every NPU
 * it finds. Prices come from the file, so the expectation is a comparison: twins finish at the
 * same instant and as early as one of them alone; on one NPU the second waits for the first. */
#include <stdlib.h>
#include <string.h>

#include "hwmodels/roofline.h"
#include "policies/common/place.h"
#include "sim/base/json.h"
#include "tests/helpers/scenario.h"
#include "tests/helpers/suite.h"

static struct scenario sc;
static struct soc soc;
static struct llm llm;
static struct roofline truth;

/* The shipped machine; twice: its NPU again, as "npu2". The NPU has no static attention here, so
 * that it runs decodes too. */
static void machine(bool twice)
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
    ck_assert_msg(soc_parse(root, "two-npus", &soc, &e) == 0, "%s", e.n > 0 ? e.lines[0] : "");
    cJSON_Delete(root);
    root = json_read_file(llm_path("llama-3.2-3b"), &e);
    ck_assert_int_eq(llm_parse(root, "llama-3.2-3b", &llm, &e), 0);
    cJSON_Delete(root);
    roofline_init(&truth, hwmodel_find("extended"), &soc, &llm, NULL);
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

/* Whoever is in no pass gets one on the first NPU that is free. */
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

/* Finish times of n equal requests that come at 0, in ms. */
static void run(bool twice, uint32_t n, double *finish_ms)
{
    static const struct scenario_request two[] = {
        {.cls = BE, .input_tokens = 512, .output_tokens = 4},
        {.cls = BE, .input_tokens = 512, .output_tokens = 4}};
    machine(twice);
    scenario_init(&sc);
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
    /* The last token waits for the host, when the other request has the NPU already: less than two
     * whole requests, more than one and all but that. */
    ck_assert_double_gt(one[1], 1.9 * alone[0]);
    ck_assert_double_le(one[1], 2.0 * alone[0]);
}
END_TEST

START_TEST(machines_find_every_device_of_a_kind)
{
    machine(true);
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

/* Ways to launch the one row of a prompt of one token: on the iGPU, and on the NPU as a kernel of
 * its own, in chunks of 16 and of 32 rows, and on the graphs of as many. */
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

/* QKV as one of the forms, in turn; what is left of the pass on the iGPU. */
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

/* Equal rows of equal requests, launched in one form after the other, three times: each kernel
 * takes what its own form is said to take, whatever was launched before it. */
START_TEST(a_kernel_takes_what_its_own_form_takes)
{
    struct scenario_request q[FORMS * PER_FORM];
    for (uint32_t i = 0; i < FORMS * PER_FORM; i++) {
        q[i] = (struct scenario_request){
            .cls = BE, .arrival_s = i, .input_tokens = 1, .output_tokens = 1};
    }
    machine(false);
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

static const struct suite_row suite[] = {
    TEST(a_policy_schedules_over_two_npus),
    TEST(a_kernel_takes_what_its_own_form_takes),
    TEST(machines_find_every_device_of_a_kind),
};
SUITE_MAIN("two NPUs", suite)
