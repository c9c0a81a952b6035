#include "tests/helpers/realrun.h"

#include <check.h>
#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

#include "hwmodels/engines/engines.h"

struct scenario real;
struct scenario_request real_q[N_REQUESTS];
uint32_t real_n;
struct drive_options real_options;
struct drive_report real_report;

/* ---- what is run ---- */

static int real_run(const struct sim_setup *setup, struct sim_result *result)
{
    drive_report_fini(&real_report);
    return drive_run(&real_options, setup, result, &real_report);
}

/* Arrivals so close that requests meet on any machine; the first is long and proactive; every
 * fourth continues an earlier one's session. */
void realrun_requests_make(uint32_t longest)
{
    real_n = N_REQUESTS;
    for (uint32_t i = 0; i < real_n; i++) {
        real_q[i] = (struct scenario_request){
            .cls = i % 3 == 1 ? REQUEST_CLASS_REACTIVE : REQUEST_CLASS_PROACTIVE,
            .arrival_s = 0.0003 * i,
            .input_tokens = 3 + (i + 1) * 37 % longest,
            .output_tokens = 1 + (i * 5 + 7) % 12,
        };
        if (i % 4 == 3) {
            uint32_t before = i - 3;
            real_q[before].session_id = 10 + before;
            real_q[i].session_id = 10 + before;
            real_q[i].cls = real_q[before].cls;
            real_q[i].arrival_s = 0.001; /* a gap */
            real_q[i].input_tokens += real_q[before].input_tokens + real_q[before].output_tokens;
            real_q[i].prefix_tokens = real_q[before].input_tokens;
        }
    }
}

void realrun_machine_make(const struct engine_ops *engine, enum drive_clock clock)
{
    scenario_init(&real);
    real.run = real_run;
    struct machine *m = &real.machine;
    m->devices[NPU].chunk_rows = 16;
    m->devices[NPU].static_attention = false;
    for (int d = 0; d < 3; d++) {
        m->devices[d].can_reset = true;
        m->devices[d].can_withdraw = true;
        m->devices[d].inflight_depth = 2;
        scenario_cost(&real, d, OP_QKV, 0.02, 0.002, 1);
        scenario_cost(&real, d, OP_MHA, 0.02, 0.002, 1);
        scenario_cost(&real, d, OP_FFN, 0.04, 0.004, 1);
        scenario_cost(&real, d, OP_HEAD, 0.02, 0.002, 1);
        scenario_cost(&real, d, OP_LAYER, 0.08, 0.008, 1);
    }
    real_options = (struct drive_options){.clock = clock, .hang_s = 120.0};
    for (int d = 0; d < MACHINE_MAX_DEVICES; d++) {
        real_options.devices[d] = (struct drive_device){engine, "CPU", -1};
    }
}

/* A model that plain loops run in milliseconds. */
void realrun_small_model(void)
{
    struct llm *l = &real.llm;
    l->n_layers = 2;
    l->layer = LAYER_OPS_DECODER;
    l->hidden = 32;
    l->heads = 2;
    l->kv_heads = 1;
    l->head_dim = 16;
    l->ffn_hidden = 64;
    l->vocab = 101;
    l->weight_bits = 8;
    l->gated_ffn = true;
    l->weight_bytes = 1e5;
    l->kv_bytes_per_token = 128;
}

/* 2 layers x 256. */
void realrun_ggml_model(void)
{
    realrun_small_model();
    struct llm *l = &real.llm;
    l->hidden = 256;
    l->heads = 4;
    l->kv_heads = 2;
    l->head_dim = 64;
    l->ffn_hidden = 512;
    l->vocab = 500;
}

/* Parameters that a real run asks of a policy: one kernel in flight. */
const char *realrun_parameters_of(const char *name)
{
    return strcmp(name, "hpf") == 0 || strcmp(name, "hhpf") == 0 ? "inflight=1" : "";
}

/* ---- tokens ---- */

static void tokens_read(FILE *in, struct tokens *out)
{
    char line[4096];
    memset(out, 0, sizeof *out);
    rewind(in);
    while (fgets(line, sizeof line, in) != NULL) {
        char *at = line;
        unsigned long id = strtoul(at, &at, 10);
        ck_assert_uint_lt(id, real_n);
        while (*at == ' ') {
            out->t[id][out->n[id]++] = (int32_t)strtol(at, &at, 10);
        }
    }
}

int realrun_run(const struct policy_ops *policy, const char *params, struct tokens *out)
{
    scenario_policy(&real, policy, params);
    FILE *f = tmpfile();
    ck_assert_ptr_nonnull(f);
    real_options.tokens = f;
    int rc = scenario_run(&real, real_q, real_n, false);
    if (rc == 0) {
        tokens_read(f, out);
    }
    fclose(f);
    real_options.tokens = NULL;
    scenario_fini(&real);
    return rc;
}

/* Requests whose tokens are those of the other run, from `from` tokens on compared. */
uint32_t realrun_alike(const struct tokens *a, const struct tokens *b)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < real_n; i++) {
        n += a->n[i] == b->n[i] && memcmp(a->t[i], b->t[i], a->n[i] * sizeof a->t[i][0]) == 0;
    }
    return n;
}

uint32_t realrun_alike_at_first(const struct tokens *a, const struct tokens *b)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < real_n; i++) {
        n += a->n[i] > 0 && b->n[i] > 0 && a->t[i][0] == b->t[i][0];
    }
    return n;
}

static bool may_begin_with(const cJSON *line, int32_t token)
{
    const cJSON *next = cJSON_GetObjectItem(line, "next");
    int at = cJSON_GetArraySize(next) - cJSON_GetArraySize(cJSON_GetObjectItem(line, "output"));
    const cJSON *likeliest = cJSON_GetArrayItem(next, at);
    double most = cJSON_GetArrayItem(cJSON_GetArrayItem(likeliest, 0), 1)->valuedouble;
    const cJSON *one;
    cJSON_ArrayForEach (one, likeliest) {
        if (cJSON_GetArrayItem(one, 0)->valueint == token) {
            return cJSON_GetArrayItem(one, 1)->valuedouble >= 0.9 * most;
        }
    }
    return false;
}

bool realrun_may_begin_with(FILE *topk, uint32_t request, int32_t token)
{
    char *line = NULL;
    size_t size = 0;
    bool may = false;
    rewind(topk);
    while (getline(&line, &size, topk) > 0) {
        cJSON *o = cJSON_Parse(line);
        ck_assert_ptr_nonnull(o);
        if (cJSON_GetObjectItem(o, "request")->valueint == (int)request) {
            may = may_begin_with(o, token);
        }
        cJSON_Delete(o);
    }
    free(line);
    return may;
}

void realrun_whole(const char *policy)
{
    ck_assert_msg(real.result.audit.clean, "%s: books", policy);
    ck_assert_uint_eq(real.result.audit.finished, real_n);
    for (uint32_t i = 0; i < real_n; i++) {
        ck_assert_uint_eq(real.records[i].generated, real_q[i].output_tokens);
    }
}

/* sd-npu loads graphs, which only some engines do (checked apart); every other policy of the list
 * runs on all. */
bool realrun_refused(const char *policy)
{
    return strcmp(policy, "sd-npu") == 0 || strcmp(policy, "replay") == 0;
}

/* OpenVINO's threading library loads a part of itself in a way that sanitizers of addresses and of
 * threads end the process for (RTLD_DEEPBIND, google/sanitizers issue 611). */
const struct engine_ops *realrun_openvino(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    printf("skipped: engine openvino cannot be loaded under a sanitizer\n");
    return NULL;
#else
    struct err e = ERR_INIT;
    const struct engine_ops *ops = engine_find("openvino", &e);
    err_fini(&e);
    if (ops == NULL) {
        printf("skipped: engine openvino is not there (make engines)\n");
    }
    return ops;
#endif
}
