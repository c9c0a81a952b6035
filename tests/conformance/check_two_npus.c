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
    char path[1024];
    struct err e = ERR_INIT;
    cJSON *root = json_read_file(soc_path("core-ultra-5-125h", path, sizeof path), &e);
    cJSON *devices = cJSON_GetObjectItem(root, "devices");
    cJSON *npu = cJSON_GetArrayItem(devices, 0);
    cJSON_ReplaceItemInObject(npu, "static_attention", cJSON_CreateFalse());
    if (twice) {
        ck_assert(cJSON_InsertItemInArray(devices, 0, cJSON_Duplicate(npu, true)));
        cJSON_ReplaceItemInObject(npu, "name", cJSON_CreateString("npu2"));
    }
    ck_assert_msg(soc_parse(root, "two-npus", &soc, &e) == 0, "%s", e.n > 0 ? e.lines[0] : "");
    cJSON_Delete(root);
    root = json_read_file(llm_path("llama-3.2-3b", path, sizeof path), &e);
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

static const struct suite_row suite[] = {
    TEST(a_policy_schedules_over_two_npus),
    TEST(machines_find_every_device_of_a_kind),
};
SUITE_MAIN("two NPUs", suite)
