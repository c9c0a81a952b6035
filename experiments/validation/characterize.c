#include "experiments/validation/characterize.h"

#include "experiments/run/chunks.h"
#include "experiments/run/interval.h"
#include "experiments/run/price.h"
#include "sim/api/contention.h"

static const char *const op_names[] = {"QKV", "MHA", "FFN", "HEAD"};
static const uint32_t row_steps[] = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096};
#define N_ROW_STEPS (sizeof row_steps / sizeof row_steps[0])
#define MIXED_CONTEXT 1024

/* Identifies a value. */
struct point {
    const char *study, *device, *what, *x_name;
    double x;
};

void characterize_columns(struct frame *f)
{
    static const struct frame_column columns[] = {
        {.name = "study", .kind = FRAME_TEXT},
        {.name = "device", .kind = FRAME_TEXT},
        {.name = "what", .kind = FRAME_TEXT},
        {.name = "x_name", .kind = FRAME_TEXT},
        {.name = "x"},
        {.name = "metric", .kind = FRAME_TEXT},
        {.name = "value"},
        {.name = "unit", .kind = FRAME_TEXT},
    };
    frame_columns(f, columns, sizeof columns / sizeof columns[0]);
}

static void add(struct frame *f, struct point p, const char *metric, const char *unit, double value)
{
    FRAME_ROW(f, p.study, p.device, p.what, p.x_name, p.x, metric, value, unit);
}

/* ---- kernels ---- */

static double watts_of(const struct device *d, uint32_t rows)
{
    return rows > 1 ? d->prefill_watts : d->decode_watts;
}

static void affinity_of(const struct config *c, uint8_t device, struct frame *out)
{
    const struct machine *m = &c->soc.machine;
    const struct device *d = &m->devices[device];
    for (size_t i = 0; i < N_ROW_STEPS; i++) {
        uint32_t rows = row_steps[i];
        struct work_shape w =
            rows > 1 ? price_prefill_shape(&c->llm, rows, 1) : price_decode_shape(&c->llm, 1023, 1);
        for (int op = OP_QKV; op <= OP_FFN; op++) {
            struct price_op k = price_op(&c->truth, device, (enum op_kind)op, &w);
            struct point row = {"affinity", d->name, op_names[op], "rows", rows};
            double tflops = k.flop / k.seconds / 1e12;
            add(out, row, "intensity", "flop/B", k.flop / k.bytes);
            add(out, row, "rate", "TFLOP/s", tflops);
            add(out, row, "padding_rate", "TFLOP/s", k.padding_flop / k.seconds / 1e12);
            add(out, row, "efficiency", "TFLOP/s/W", tflops / watts_of(d, rows));
            if (op == OP_MHA && d->static_attention) {
                double compile_s =
                    ((double)m->compile_fixed_ns + m->compile_ns_per_token * rows) / 1e9;
                double layers = c->llm.n_layers;
                add(out, row, "rate_with_compile", "TFLOP/s",
                    k.flop * layers / (k.seconds * layers + compile_s) / 1e12);
            }
        }
    }
}

/* ---- two engines ---- */

static int engine(const struct machine *m, int which)
{
    int d = machine_find(m, which == 0 ? DEVICE_KIND_NPU : DEVICE_KIND_IGPU);
    return d >= 0 ? d : machine_find(m, which == 0 ? DEVICE_KIND_CPU : DEVICE_KIND_GPU);
}

static void study_corun(const struct config *c, struct frame *out, struct err *e)
{
    static const char *const names[] = {"GEMM", "GEMV"};
    const struct machine *m = &c->soc.machine;
    int d[2] = {engine(m, 0), engine(m, 1)};
    if (d[0] < 0 || d[1] < 0 || d[0] == d[1]) {
        (void)err_add(e, "characterize corun: %s has no two engines", m->name);
        return;
    }
    struct work_shape shapes[2] = {price_prefill_shape(&c->llm, 4096, 1),
                                   price_decode_shape(&c->llm, 0, 1)};
    for (int a = 0; a < 2; a++) {
        for (int b = 0; b < 2; b++) {
            struct flow f[2];
            const int kind[2] = {a, b};
            for (int i = 0; i < 2; i++) {
                struct price_op k = price_op(&c->truth, (uint8_t)d[i], OP_QKV, &shapes[kind[i]]);
                f[i] = (struct flow){k.bytes / k.seconds, 1.0, (uint8_t)d[i], 0.0};
            }
            double cap = fmax(m->ddr_peak_bytes_per_s * m->ddr_cap_frac,
                              fmax(f[0].demand_bytes_per_s, f[1].demand_bytes_per_s));
            c->contention->share(f, 2, cap, &c->contention_params);
            double together = 0.0;
            for (int i = 0; i < 2; i++) {
                char what[48];
                (void)snprintf(what, sizeof what, "%s beside %s", names[kind[i]],
                               names[kind[1 - i]]);
                struct point row = {"corun", m->devices[d[i]].name, what, "demand_GBs",
                                    f[i].demand_bytes_per_s / 1e9};
                double slow = f[i].demand_bytes_per_s / f[i].share_bytes_per_s;
                add(out, row, "slowdown", "x", slow);
                SIM_ASSERT(slow >= 1.0);
                together += 1.0 / slow;
            }
            SIM_ASSERT(together > 0.0 && together <= 2.0);
            OWNED char *what = xformat("%s and %s", names[a], names[b]);
            add(out, (struct point){"corun", "both", what, "pairs", 1}, "work_over_alone", "x",
                together);
        }
    }
}

/* ---- passes ---- */

static void batch_of(const struct config *c, uint8_t d, struct frame *out)
{
    const char *name = c->soc.machine.devices[d].name;
    for (uint32_t n = 1; n <= 32; n *= 2) {
        struct work_shape p = price_prefill_shape(&c->llm, 512, n);
        struct work_shape s = price_decode_shape(&c->llm, 1024, n);
        if (n <= 8) {
            add(out, (struct point){"batch", name, "prefill of 512 tokens", "sequences", n}, "time",
                "ms", 1e3 * price_pass(&c->truth, d, &p).seconds);
        }
        add(out, (struct point){"batch", name, "decode step at 1024 tokens", "sequences", n},
            "time", "ms", 1e3 * price_pass(&c->truth, d, &s).seconds);
    }
}

static void prompt_of(const struct config *c, uint8_t d, struct frame *out)
{
    for (uint32_t n = 32; n <= 8192; n *= 2) {
        struct work_shape w = price_prefill_shape(&c->llm, n, 1);
        double s = price_pass(&c->truth, d, &w).seconds;
        struct point row = {"prompt", c->soc.machine.devices[d].name, "prefill", "tokens", n};
        add(out, row, "time", "ms", 1e3 * s);
        add(out, row, "throughput", "tok/s", n / s);
    }
}

static void mixed_of(const struct config *c, uint8_t d, struct frame *out)
{
    for (uint32_t b = 1; b <= 16; b *= 4) {
        struct work_shape alone = price_decode_shape(&c->llm, MIXED_CONTEXT, b);
        double decode_s = price_pass(&c->truth, d, &alone).seconds;
        for (uint32_t chunk = 128; chunk <= 1024; chunk *= 2) {
            struct work_shape p = price_prefill_shape(&c->llm, chunk, 1);
            double prefill_s = price_pass(&c->truth, d, &p).seconds;
            struct work_shape w = alone;
            w.rows += p.rows;
            w.logit_rows += p.logit_rows;
            w.sequences += p.sequences;
            w.prefill_rows = p.prefill_rows;
            w.attn_pairs += p.attn_pairs;
            w.kv_read_tokens += p.kv_read_tokens;
            w.far_pairs += p.far_pairs;
            w.far_keys += p.far_keys;
            double mixed_s = price_pass(&c->truth, d, &w).seconds;
            OWNED char *what = xformat("%u decoding sequences", b);
            struct point row = {"mixed", c->soc.machine.devices[d].name, what, "prefill_tokens",
                                chunk};
            add(out, row, "time", "ms", 1e3 * mixed_s);
            add(out, row, "decode_slowdown", "x", mixed_s / decode_s);
            add(out, row, "prefill_slowdown", "x", mixed_s / prefill_s);
        }
    }
}

/* Drafts of a sequence at 1024 tokens, all verified in one pass: the time, and the time per token
 * if all are accepted. Rows of a static graph are free until it is full (sd.npu 3.3). */
static void verify_of(const struct config *c, uint8_t d, struct frame *out)
{
    for (uint32_t drafted = 0; drafted <= 32; drafted = drafted == 0 ? 1 : 2 * drafted) {
        struct work_shape w = price_verify_shape(&c->llm, 1024, drafted + 1);
        double ms = 1e3 * price_pass(&c->truth, d, &w).seconds;
        struct point row = {"verify", c->soc.machine.devices[d].name, "verification",
                            "draft_tokens", drafted};
        add(out, row, "time", "ms", ms);
        add(out, row, "time_per_token", "ms", ms / (drafted + 1));
    }
}

/* ---- chunks ---- */

/* Runs one prompt with nonlinear ops fused, separate on the same engine, and on another one. */
static void fusion(const struct config *c, uint8_t device, struct frame *out)
{
    static const char *const names[] = {"nonlinear ops fused", "nonlinear ops apart",
                                        "nonlinear ops on another engine"};
    const struct device *d = &c->soc.machine.devices[device];
    for (int i = 0; i < 3; i++) {
        struct roofline r;
        roofline_init(&r, c->truth.model.ops, &c->soc, &c->llm);
        if (i > 0) {
            roofline_unfuse(&r, i == 2 ? (double)c->soc.machine.sync_ns / 1e9 : 0.0);
        }
        struct work_shape w = price_prefill_shape(&c->llm, CHUNKS_PROMPT, 1);
        double s = price_pass(&r, device, &w).seconds;
        add(out, (struct point){"chunk", d->name, names[i], "chunk_rows", d->chunk_rows},
            "throughput", "tok/s", CHUNKS_PROMPT / s);
    }
}

static void study_chunk(const struct config *c, struct frame *out, struct err *e)
{
    int d = chunks_device(&c->truth);
    if (d < 0) {
        (void)err_add(e, "characterize chunk: no device of %s has static shapes",
                      c->soc.machine.name);
        return;
    }
    for (uint32_t rows = 32; rows <= CHUNKS_PROMPT; rows *= 2) {
        struct chunk k = chunks_price(&c->truth, (uint8_t)d, rows);
        struct point row = {"chunk", c->soc.machine.devices[d].name, "prompt of 1024 tokens",
                            "chunk_rows", rows};
        add(out, row, "throughput", "tok/s", k.tokens_per_s);
        add(out, row, "bound_kernel", "ms", 1e3 * k.kernel_s);
        add(out, row, "bound_layer", "ms", 1e3 * k.layer_s);
        add(out, row, "bound_request", "ms", 1e3 * k.request_s);
        add(out, row, "activations", "MB", k.activation_bytes / 1e6);
        add(out, row, "kernels", "1", ceil((double)CHUNKS_PROMPT / rows) * 2 * c->llm.n_layers);
    }
    fusion(c, (uint8_t)d, out);
    add(out,
        (struct point){"chunk", c->soc.machine.devices[d].name, "knee", "share_of_best",
                       CHUNKS_KNEE_FRAC},
        "chunk_rows", "rows", chunks_knee(&c->truth));
}

/* ---- schemes ---- */

static const struct {
    const char *name, *policy;
} schemes[] = {{"a: preemption, recompute", "recompute-preempt"},
               {"b: time sharing", "time-share"},
               {"c: continuous batching", "orca"},
               {"d: Agent.xpu v1", "agent-xpu-v1"},
               {"d: Agent.xpu v2", "agent-xpu-v2"}};
enum { N_SCHEMES = sizeof schemes / sizeof schemes[0], MOST_RATE = 4 };

/* Puts every scheme at one rate, in steps of 6 requests per minute. */
static void put_schemes(const struct compare_result *r, uint32_t rate, struct frame *out)
{
    static const char *const metrics[] = {"reactive.e2e_s.mean", "proactive.e2e_s.mean",
                                          "truncated.all.throughput_req_per_min"};
    static const char *const halves[] = {"reactive.e2e_s.mean.half_width",
                                         "proactive.e2e_s.mean.half_width",
                                         "truncated.all.throughput_req_per_min.half_width"};
    static const char *const units[] = {"s", "s", "1/min"};
    for (uint32_t i = 0; i < N_SCHEMES; i++) {
        for (int k = 0; k < 3; k++) {
            struct stats_interval s =
                stats_mean(compare_values(r, i, metrics[k]), r->replications, STATS_LEVEL_FRAC);
            struct point row = {"schemes", schemes[i].policy, schemes[i].name, "requests_per_min",
                                rate * 6};
            add(out, row, metrics[k], units[k], s.mean);
            add(out, row, halves[k], units[k], (s.high - s.low) / 2.0);
        }
    }
}

static void study_schemes(const struct characterize *k, struct frame *rows, struct err *e)
{
    if (k->options->workload != NULL || k->options->trace != NULL) {
        (void)err_add(e, "characterize schemes: takes no --workload and no --trace; it has four "
                         "loads of its own");
        return;
    }
    struct config_policy policies[N_SCHEMES] = {0};
    for (int i = 0; i < N_SCHEMES; i++) {
        (void)config_policy_parse(&policies[i], schemes[i].policy, e);
    }
    for (uint32_t rate = 1; rate <= MOST_RATE; rate++) {
        OWNED char *workload = xformat(
            "mixed:reactive_per_min=%u,proactive_per_min=%u,duration_s=900", rate * 2, rate * 4);
        struct config_options at = *k->options;
        at.workload = workload;
        struct compare_plan plan = {.config = k->config,
                                    .options = &at,
                                    .policies = policies,
                                    .n_policies = N_SCHEMES,
                                    .replications = k->replications,
                                    .how = k->how};
        SCOPED(compare_result_fini) struct compare_result r;
        compare_run(&plan, &r);
        if (r.n_failures > 0) {
            (void)err_add(e, "characterize schemes: %s", r.failures[0].message);
        } else {
            put_schemes(&r, rate, rows);
        }
    }
}

/* ---- intervals ---- */

/* 95 % intervals of predicted times, as factors, by prompt or context length. */
static void study_interval(const struct config *c, struct frame *out, struct err *e)
{
    static const char *const phases[] = {"prefill", "decode"};
    const struct conformal *t = interval_table(e);
    for (uint8_t d = 0; t != NULL && d < c->soc.machine.n_devices; d++) {
        for (uint32_t tokens = 32; tokens <= 8192; tokens *= 4) {
            for (int i = 0; i < 2; i++) {
                struct conformal_interval x =
                    interval_of(t, &c->soc, d, c->truth.runtime[d], &c->llm, i == 0, tokens);
                struct point row = {"interval", c->soc.machine.devices[d].name, phases[i], "tokens",
                                    tokens};
                add(out, row, "low", "x", x.low_factor);
                add(out, row, "high", "x", x.high_factor);
                add(out, row, "distance", "ln", x.distance);
            }
        }
    }
}

static const struct {
    const char *name;
    /* per device, or for the whole machine; neither: simulated */
    void (*of)(const struct config *c, uint8_t device, struct frame *out);
    void (*fill)(const struct config *c, struct frame *out, struct err *e);
} studies[] = {
    {"affinity", affinity_of, NULL},    {"corun", NULL, study_corun},
    {"batch", batch_of, NULL},          {"prompt", prompt_of, NULL},
    {"mixed", mixed_of, NULL},          {"chunk", NULL, study_chunk},
    {"verify", verify_of, NULL},        {CHARACTERIZE_SCHEMES, NULL, NULL},
    {"interval", NULL, study_interval},
};

const char *characterize_study(size_t i)
{
    return i < sizeof studies / sizeof studies[0] ? studies[i].name : NULL;
}

void characterize_run(const struct characterize *k, struct frame *rows, struct err *e)
{
    const size_t n = sizeof studies / sizeof studies[0];
    size_t i = 0;
    while (i < n && strcmp(studies[i].name, k->study) != 0) {
        i++;
    }
    if (i == n) {
        SCOPED(text_fini) struct text names = {0};
        for (i = 0; i < n; i++) {
            text_item(&names, ", ", studies[i].name);
        }
        (void)err_add(e, "characterize %s: must be one of %s", k->study, text_end(&names));
    } else if (studies[i].fill != NULL) {
        studies[i].fill(k->config, rows, e);
    } else if (studies[i].of == NULL) {
        study_schemes(k, rows, e);
    } else {
        for (uint8_t d = 0; d < k->config->soc.machine.n_devices; d++) {
            studies[i].of(k->config, d, rows);
        }
    }
}
