/* `xpusim list kernels`: lists the cost model's kernels, divided as in a run. */
#include "experiments/commands/list.h"

#include "experiments/run/about.h"
#include "experiments/run/interval.h"
#include "experiments/run/models.h"
#include "experiments/run/price.h"

#define CHUNK_ROWS 256u      /* of agent-xpu-v2, section 4.4 */
#define DECODE_CONTEXT 1024u /* tokens */

static const char *const op_names[] = {"QKV", "MHA", "FFN", "HEAD", "LAYER"};
static const uint32_t prompts[] = {128, 256, 512, 1024, 2048, 4096};
enum { N_PROMPTS = sizeof prompts / sizeof prompts[0] };

static void put_kernel(const struct config *c, uint8_t device, enum op_kind op,
                       const struct work_shape *w, const char *work, struct frame *f)
{
    const struct device *d = &c->soc.machine.devices[device];
    struct price_op k = price_op(&c->truth, device, op, w);
    FRAME_ROW(f, d->name, op_names[op], work, k.kernels, k.seconds, k.bytes / k.seconds,
              k.flop / k.seconds, k.padding_flop / k.seconds, k.flop / k.bytes, k.bytes,
              w->prefill_rows > 0 ? d->prefill_watts : d->decode_watts);
}

static void put_kernels(const struct config *c, struct document *d)
{
    static const struct frame_column columns[] = {
        {.name = "device", .kind = FRAME_TEXT},
        {.name = "op", .kind = FRAME_TEXT},
        {.name = "work", .kind = FRAME_TEXT},
        {.name = "kernels", .only_data = true},
        {.name = "time_s", .unit = "s", .title = "ms", .scale = 1e3, .format = "%.3f"},
        {.name = "bytes_per_s", .title = "GB/s", .scale = 1e-9, .format = "%.1f"},
        {.name = "flop_per_s", .title = "TFLOP/s", .scale = 1e-12, .format = "%.2f"},
        {.name = "padding_flop_per_s", .title = "padding", .scale = 1e-12, .format = "%.2f"},
        {.name = "flop_per_byte", .title = "flop/byte", .format = "%.1f"},
        {.name = "memory_bytes", .title = "MB", .scale = 1e-6, .format = "%.1f"},
        {.name = "watts", .unit = "W", .title = "W", .format = "%.3g"},
    };
    struct frame *f = DOCUMENT_FRAME(d, "kernels", 0, columns);
    struct work_shape chunk = price_prefill_shape(&c->llm, CHUNK_ROWS, 1);
    struct work_shape one = price_decode_shape(&c->llm, DECODE_CONTEXT - 1, 1);
    struct work_shape eight = price_decode_shape(&c->llm, DECODE_CONTEXT - 1, 8);
    for (uint8_t i = 0; i < c->soc.machine.n_devices; i++) {
        for (int op = OP_QKV; op <= OP_HEAD; op++) {
            put_kernel(c, i, (enum op_kind)op, &chunk, "prefill 256", f);
        }
        put_kernel(c, i, OP_LAYER, &one, "decode 1 at 1024", f);
        put_kernel(c, i, OP_HEAD, &one, "decode 1 at 1024", f);
        for (int op = OP_QKV; op <= OP_HEAD; op++) {
            put_kernel(c, i, (enum op_kind)op, &eight, "decode 8 at 1024", f);
        }
    }
}

/* Puts the longest kernel that a reactive arrival can wait for with preemption between kernels. */
static void put_longest(const struct config *c, struct document *d)
{
    static const struct frame_column columns[] = {
        {.name = "device", .kind = FRAME_TEXT},
        {.name = "prompt_tokens", .title = "prompt"},
        {.name = "chunk_ms", .title = "chunk ms", .format = "%.1f"},
        {.name = "mha_ms", .title = "MHA ms", .format = "%.1f"},
        {.name = "mha_uncut_ms", .title = "uncut MHA ms", .format = "%.1f"},
        {.name = "longest_ms", .title = "longest kernel ms", .format = "%.1f"},
    };
    struct frame *f = DOCUMENT_FRAME(d, "longest", 0, columns);
    for (uint8_t i = 0; i < c->soc.machine.n_devices; i++) {
        for (int k = 0; k < N_PROMPTS; k++) {
            struct work_shape causal = price_prefill_shape(&c->llm, prompts[k], 1);
            struct work_shape uncut = causal;
            uncut.attn_pairs = (uint64_t)prompts[k] * prompts[k];
            struct work_shape margin =
                price_prefill_shape(&c->llm, prompts[k] < CHUNK_ROWS ? prompts[k] : CHUNK_ROWS, 1);
            double ffn = 1e3 * price_op(&c->truth, i, OP_FFN, &margin).longest_s;
            double qkv = 1e3 * price_op(&c->truth, i, OP_QKV, &margin).longest_s;
            double mha = 1e3 * price_op(&c->truth, i, OP_MHA, &causal).longest_s;
            double full = 1e3 * price_op(&c->truth, i, OP_MHA, &uncut).longest_s;
            double chunk = fmax(ffn, qkv);
            FRAME_ROW(f, c->soc.machine.devices[i].name, prompts[k], chunk, mha, full,
                      fmax(chunk, mha));
        }
    }
}

/* Puts the rates of many-row kernels, which bound each device. */
static void put_roofs(const struct config *c, struct document *d)
{
    struct frame *f = document_data(d, "roofs", 0, "device runtime flop_per_s bytes_per_s");
    for (uint32_t i = 0; i < c->soc.machine.n_devices; i++) {
        const struct soc_runtime *rt = c->truth.runtime[i];
        FRAME_ROW(f, c->soc.machine.devices[i].name, rt->runtime, rt->many.flop_per_s,
                  rt->many.bytes_per_s);
    }
}

/* Puts the intervals of these times, for a prefill and a decode at DECODE_CONTEXT. */
static void put_intervals(const struct config *c, const struct conformal *t, struct document *d)
{
    static const char *const phases[] = {"prefill", "decode"};
    struct frame *f = document_data(
        d, "intervals", 0, "device phase low_factor high_factor unseen rows pool distance_ln");
    for (uint8_t device = 0; device < c->soc.machine.n_devices; device++) {
        for (int i = 0; i < 2; i++) {
            struct conformal_interval x = interval_of(t, &c->soc, device, c->truth.runtime[device],
                                                      &c->llm, i == 0, DECODE_CONTEXT);
            const char *name = c->soc.machine.devices[device].name;
            OWNED char *text = interval_text(&x);
            FRAME_ROW(f, name, phases[i], x.low_factor, x.high_factor, conformal_left_names[x.left],
                      x.n, x.pool, x.distance);
            document_note(d, "%s %s: %s", name, phases[i], text);
        }
    }
}

int list_kernels(const struct config_options *o, struct document *d, struct err *e)
{
    SCOPED(config_fini) struct config c;
    const struct conformal *residuals = NULL;
    int rc = -EINVAL;
    if (config_load(&c, o, e) == 0 && models_refuse_several(o, "list kernels", e) == 0 &&
        (residuals = interval_table(e)) != NULL) {
        about_document(&(struct about){.kind = "kernels", .config = &c}, d);
        document_note(d, "One layer of %s on %s, alone on the machine\n", c.llm.name,
                      c.soc.machine.name);
        put_kernels(&c, d);
        document_note(d,
                      "\nLongest prefill kernel by prompt length (chunks of %u rows; what a "
                      "reactive arrival waits for at most)\n",
                      CHUNK_ROWS);
        put_longest(&c, d);
        put_roofs(&c, d);
        document_note(d, "\n95 %% intervals of these times, from errors on what was left out\n");
        put_intervals(&c, residuals, d);
        rc = 0;
    }
    return rc;
}
