/* A kernel has one price for everybody who asks. Every (SoC, device, runtime, weight width) that
 * is shipped is priced by a run, by `validate`, and by a policy's estimate, and the three must
 * agree. */
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "experiments/run/config.h"
#include "experiments/validation/predict.h"
#include "sim/base/json.h"
#include "sim/base/units.h"
#include "sim/engine/sim.h"
#include "tests/helpers/suite.h"

#define PROMPT 300 /* neither a multiple of a chunk, nor below every chunk */

/* ---- a policy that runs whole passes of the only request on one device ---- */

static struct {
    uint8_t device;
    int64_t estimate_ns[2]; /* of the kernels of prefill and decode */
    int64_t start_ns[2], end_ns[2];
    uint32_t passes;
    const struct request *request;
} seen;

static int64_t estimated_ns(struct sched *s, const struct work_shape *w)
{
    int64_t sum = 0;
    for (int op = OP_QKV; op <= OP_HEAD; op++) {
        struct estimate e;
        ck_assert_int_eq(sched_estimate(s, w, (enum op_kind)op, seen.device, 0, &e), 0);
        sum += e.t_ns * (op == OP_HEAD ? 1 : s->llm->n_layers);
    }
    return sum;
}

static void arrived(struct sched *s, const struct request *r)
{
    (void)s;
    seen.request = r;
}

static void schedule(struct sched *s)
{
    const struct request *r = seen.request;
    if (r == NULL || r->pass != NULL || seen.passes == 2) {
        return;
    }
    bool decode = r->state == REQUEST_STATE_DECODE;
    struct segment seg = {.request = r,
                          .role = decode ? SEGMENT_DECODE : SEGMENT_PREFILL,
                          .n_tokens = decode ? 1 : request_prefill_left(r)};
    struct pass_spec spec = {.segments = &seg, .n_segments = 1};
    struct pass *p;
    ck_assert_int_eq(sched_pass_form(s, &spec, &p), 0);
    seen.estimate_ns[seen.passes] = estimated_ns(s, &p->shape);
    seen.start_ns[seen.passes] = s->now_ns;
    struct launch_spec l = sched_launch_rest(s, p, seen.device, YIELD_PASS);
    ck_assert_int_eq(sched_launch(s, &l, NULL), 0);
}

static void pass_done(struct sched *s, const struct pass *p)
{
    (void)p;
    seen.end_ns[seen.passes++] = s->now_ns;
}

static const struct policy_ops ops = {.name = "one-device",
                                      .contract = POLICY_CONTRACT,
                                      .state_size_bytes = 8,
                                      .request_arrived = arrived,
                                      .pass_done = pass_done,
                                      .schedule = schedule};

/* ---- one entry of one SoC ---- */

static struct config config;
static char path[64];

/* Writes a copy of a shipped file in which `entry` is the device's default. */
static void write_soc(const char *soc, uint32_t device, uint32_t entry)
{
    struct err e = ERR_INIT;
    cJSON *tree = json_read_file(soc_path(soc), &e);
    cJSON *d = cJSON_GetArrayItem(cJSON_GetObjectItem(tree, "devices"), (int)device);
    cJSON *list = cJSON_GetObjectItem(d, "runtimes");
    for (int i = 0; i < cJSON_GetArraySize(list); i++) {
        cJSON *r = cJSON_GetArrayItem(list, i);
        cJSON_DeleteItemFromObject(r, "default");
        cJSON_AddBoolToObject(r, "default", i == (int)entry);
    }
    (void)cJSON_ReplaceItemInObject(d, "static_attention", cJSON_CreateBool(false));
    char *text = cJSON_Print(tree);
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    ck_assert_int_ge(fputs(text, f), 0);
    ck_assert_int_eq(fclose(f), 0);
    cJSON_free(text);
    cJSON_Delete(tree);
    err_fini(&e);
}

static void load(const struct soc *soc, uint32_t device, uint32_t entry)
{
    struct err e = ERR_INIT;
    struct config_options o = config_options_default();
    char bits[32];
    char bytes[64]; /* a width and its bytes go together */
    write_soc(soc->machine.name, device, entry);
    (void)snprintf(bits, sizeof bits, "llm.weight_bits=%u",
                   soc->devices[device].runtimes[entry].weight_bits);
    (void)snprintf(bytes, sizeof bytes, "llm.body_bytes_per_weight=%.17g",
                   soc->devices[device].runtimes[entry].format.body_bytes);
    o.soc = path;
    o.llm = "llama-3.2-3b";
    o.sets[o.n_sets++] = bits;
    o.sets[o.n_sets++] = bytes;
    ck_assert_msg(config_load(&config, &o, &e) == 0, "%s", e.n > 0 ? e.lines[0] : "");
    ck_assert_ptr_eq(config.truth.runtime[device], &config.soc.devices[device].runtimes[entry]);
    config.sim.annotation = (struct annotation_options){0};
    o.n_sets = 0;
    err_fini(&e);
    (void)remove(path);
}

static void run_alone(uint8_t device)
{
    struct trace_row row = {
        .input_tokens = PROMPT, .output_tokens = 2, .max_output_tokens = 2, .next = TRACE_NO_ROW};
    struct trace trace = {.rows = &row, .n = 1, .n_first = 1};
    struct config_policy policy = {.ops = &ops};
    struct sim_setup setup;
    struct sim_result result;
    memset(&seen, 0, sizeof seen);
    seen.device = device;
    config_setup(&config, &policy, &trace, 1, &setup);
    ck_assert_msg(sim_run(&setup, &result) == 0, "%s", result.message);
    ck_assert_uint_eq(seen.passes, 2);
}

static double validated_s(uint8_t device, uint32_t entry, bool decode)
{
    struct point p = {
        .metric = decode ? POINT_TPOT_MS : POINT_TTFT_MS, .input_tokens = PROMPT, .batch = 1};
    struct predict_case k = {.soc = &config.soc, .device = device, .runtime = entry};
    k.llm = config.llm;
    return predict_price(&k, &p, NULL).seconds;
}

/* The tolerance is a nanosecond of rounding for each op and each cost of the host. */
static void same(const struct soc *soc, uint8_t device, uint32_t entry, int i, double s,
                 const char *who)
{
    double want = units_s_from_ns(seen.end_ns[i] - seen.start_ns[i]);
    ck_assert_msg(fabs(s - want) < 1e-8 + 1e-12 * want,
                  "%s %s %s %u bits, %s: a run takes %.9f s, %s says %.9f", soc->machine.name,
                  config.soc.machine.devices[device].name,
                  config.soc.devices[device].runtimes[entry].runtime,
                  config.soc.devices[device].runtimes[entry].weight_bits,
                  i == 0 ? "prefill" : "decode", want, who, s);
}

static void check_entry(const struct soc *soc, uint8_t device, uint32_t entry)
{
    load(soc, device, entry);
    run_alone(device);
    const struct machine *m = &config.soc.machine;
    const struct device *d = &m->devices[device];
    double host_s =
        units_s_from_ns(m->schedule_ns + d->submit_ns + d->completion_ns + m->sample_ns_per_token);
    for (int i = 0; i < 2; i++) {
        same(soc, device, entry, i, validated_s(device, entry, i == 1), "validate");
        same(soc, device, entry, i, units_s_from_ns(seen.estimate_ns[i]) + host_s, "an estimate");
    }
    config_fini(&config);
}

START_TEST(every_shipped_entry_has_one_price)
{
    struct catalog c;
    struct err e = ERR_INIT;
    ck_assert_int_eq(catalog_open(&c, &e), 0);
    uint32_t entries = 0;
    (void)snprintf(path, sizeof path, "/tmp/xpusim-one-price-%ld.tmp.json", (long)getpid());
    for (size_t i = 0; i < c.n_socs; i++) {
        const struct soc *s = c.socs[i];
        for (uint8_t d = 0; d < s->machine.n_devices; d++) {
            for (uint32_t r = 0; r < s->devices[d].n_runtimes; r++) {
                check_entry(s, d, r);
                entries++;
            }
        }
    }
    ck_assert_uint_gt(entries, 80);
    err_fini(&e);
}
END_TEST

/* The 258V's NPU compiles 1024 rows for 4 bits. So 300 tokens cost the time of 1024 in token-level
 * kernels, and not that of two chunks of 256. */
START_TEST(a_runtimes_static_shape_holds_in_a_run)
{
    struct err e = ERR_INIT;
    struct config_options o = config_options_default();
    char bits[] = "llm.weight_bits=4";
    char bytes[] = "llm.body_bytes_per_weight=0.56";
    o.soc = "core-ultra-7-258v";
    o.llm = "qwen3-8b";
    o.sets[o.n_sets++] = bits;
    o.sets[o.n_sets++] = bytes;
    ck_assert_int_eq(config_load(&config, &o, &e), 0);
    ck_assert_uint_eq(config.soc.machine.devices[0].chunk_rows, 1024);
    struct work_shape few = price_prefill_shape(&config.llm, 300, 1);
    struct work_shape many = price_prefill_shape(&config.llm, 1024, 1);
    ck_assert_double_eq_tol(price_op(&config.truth, 0, OP_FFN, &few).seconds,
                            price_op(&config.truth, 0, OP_FFN, &many).seconds, 1e-9);
    config_fini(&config);
    o.n_sets = 0;
    err_fini(&e);
}
END_TEST

/* ---- passes whose layers are one op between passes whose layers are several ---- */

/* There are two prompts, two decodes of the first and one of the second. The second prompt is one
 * token longer, so its decode reads as many keys as the first one's second decode. */
static const uint32_t whose[] = {0, 1, 0, 0, 1};
static const struct request *both[2];
static bool fuse; /* the fourth pass */
static int64_t took_ns[5];

static void both_arrived(struct sched *s, const struct request *r)
{
    (void)s;
    both[r->id] = r;
}

static void schedule_both(struct sched *s)
{
    const struct request *r = seen.passes < 5 ? both[whose[seen.passes]] : NULL;
    if (r == NULL || both[1] == NULL || both[0]->pass != NULL || both[1]->pass != NULL) {
        return;
    }
    bool decode = r->state == REQUEST_STATE_DECODE;
    struct segment seg = {.request = r,
                          .role = decode ? SEGMENT_DECODE : SEGMENT_PREFILL,
                          .n_tokens = decode ? 1 : request_prefill_left(r)};
    struct pass_spec spec = {
        .segments = &seg, .n_segments = 1, .fused_layers = fuse && seen.passes == 3};
    struct pass *p;
    ck_assert_int_eq(sched_pass_form(s, &spec, &p), 0);
    took_ns[seen.passes] = -s->now_ns;
    struct launch_spec l = sched_launch_rest(s, p, seen.device, YIELD_PASS);
    ck_assert_int_eq(sched_launch(s, &l, NULL), 0);
}

static void one_done(struct sched *s, const struct pass *p)
{
    (void)p;
    took_ns[seen.passes++] += s->now_ns;
}

static const struct policy_ops taking_turns = {.name = "taking-turns",
                                               .contract = POLICY_CONTRACT,
                                               .state_size_bytes = 8,
                                               .request_arrived = both_arrived,
                                               .pass_done = one_done,
                                               .schedule = schedule_both};

static int64_t last_took_ns(bool fused)
{
    struct trace_row rows[2];
    for (uint32_t i = 0; i < 2; i++) {
        rows[i] = (struct trace_row){.request_id = i,
                                     .session_id = i,
                                     .input_tokens = PROMPT + i,
                                     .output_tokens = 3 - i,
                                     .max_output_tokens = 3,
                                     .next = TRACE_NO_ROW};
    }
    struct trace trace = {.rows = rows, .n = 2, .n_first = 2};
    struct config_policy policy = {.ops = &taking_turns};
    struct sim_setup setup;
    struct sim_result result;
    memset(&seen, 0, sizeof seen);
    memset(both, 0, sizeof both);
    seen.device = 1;
    fuse = fused;
    config_setup(&config, &policy, &trace, 1, &setup);
    ck_assert_msg(sim_run(&setup, &result) == 0, "%s", result.message);
    ck_assert_uint_eq(seen.passes, 5);
    return took_ns[4];
}

/* The attention of the last pass reads as many keys as that of the fourth. The fourth pass has
 * fused layers, so nothing of it may be kept as the price of attention. The last pass must take the
 * same time after fused layers and after separate ones. */
START_TEST(a_pass_costs_the_same_after_one_of_fused_layers)
{
    struct err e = ERR_INIT;
    struct config_options o = config_options_default();
    ck_assert_int_eq(config_load(&config, &o, &e), 0);
    ck_assert_int_eq(last_took_ns(true), last_took_ns(false));
    ck_assert_int_lt(took_ns[2], took_ns[4]); /* one key less */
    config_fini(&config);
    err_fini(&e);
}
END_TEST

static const struct suite_row suite[] = {
    CASE("prices", .timeout_s = 60),
    TEST(a_pass_costs_the_same_after_one_of_fused_layers),
    TEST(every_shipped_entry_has_one_price),
    TEST(a_runtimes_static_shape_holds_in_a_run),
};
SUITE_MAIN("one price", suite)
