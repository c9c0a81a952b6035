/* `xpusim list kernels`: what the cost model says, cut into kernels exactly as a run cuts them. */
#include "experiments/commands/list_kernels.h"

#include <math.h>

#include "experiments/commands/commands.h"
#include "experiments/run/interval.h"
#include "experiments/run/price.h"
#include "experiments/shell/table.h"
#include "sim/base/json.h"

#define CHUNK_ROWS 256u      /* the chunk of agent-xpu-v2 4.4 */
#define DECODE_CONTEXT 1024u /* tokens */

static const char *const op_names[] = {"QKV", "MHA", "FFN", "HEAD", "LAYER"};
static const uint32_t prompts[] = {128, 256, 512, 1024, 2048, 4096};
enum { N_PROMPTS = sizeof prompts / sizeof prompts[0] };

static struct work_shape prefill_shape(uint64_t tokens, bool causal)
{
    return (struct work_shape){.rows = (uint32_t)tokens,
                               .logit_rows = 1,
                               .sequences = 1,
                               .prefill_rows = (uint32_t)tokens,
                               .attn_pairs = causal ? tokens * (tokens + 1) / 2 : tokens * tokens,
                               .kv_read_tokens = tokens,
                               .max_context_tokens = (uint32_t)tokens};
}

static struct work_shape decode_shape(uint32_t sequences)
{
    uint64_t keys = (uint64_t)sequences * DECODE_CONTEXT;
    return (struct work_shape){.rows = sequences,
                               .logit_rows = sequences,
                               .sequences = sequences,
                               .attn_pairs = keys,
                               .kv_read_tokens = keys,
                               .max_context_tokens = DECODE_CONTEXT};
}

static void add_row(const struct config *c, uint8_t device, enum op_kind op,
                    const struct work_shape *w, const char *work, cJSON *rows, struct table *t)
{
    const struct device *d = &c->soc.machine.devices[device];
    struct price_op k = price_op(&c->truth, device, op, w);
    double seconds = k.seconds;
    double bytes = k.bytes;
    double watts = w->prefill_rows > 0 ? d->prefill_watts : d->decode_watts;
    cJSON *row = cJSON_CreateObject();
    cJSON_AddStringToObject(row, "device", d->name);
    cJSON_AddStringToObject(row, "op", op_names[op]);
    cJSON_AddStringToObject(row, "work", work);
    cJSON_AddNumberToObject(row, "kernels", k.kernels);
    cJSON_AddNumberToObject(row, "time_s", seconds);
    cJSON_AddNumberToObject(row, "bytes_per_s", bytes / seconds);
    cJSON_AddNumberToObject(row, "flop_per_s", k.flop / seconds);
    cJSON_AddNumberToObject(row, "flop_per_byte", k.flop / bytes);
    cJSON_AddNumberToObject(row, "memory_bytes", bytes);
    cJSON_AddNumberToObject(row, "watts", watts);
    cJSON_AddItemToArray(rows, row);
    table_cell(t, "%s", d->name);
    table_cell(t, "%s", op_names[op]);
    table_cell(t, "%s", work);
    table_cell(t, "%.3f", seconds * 1e3);
    table_cell(t, "%.1f", bytes / seconds / 1e9);
    table_cell(t, "%.2f", k.flop / seconds / 1e12);
    table_cell(t, "%.1f", k.flop / bytes);
    table_cell(t, "%.1f", bytes / 1e6);
    table_cell(t, "%.0f", watts);
}

static void nodes(const struct config *c, cJSON *rows, struct table *t)
{
    static const char *const titles[] = {"device",  "op",        "work", "ms", "GB/s",
                                         "TFLOP/s", "flop/byte", "MB",   "W"};
    for (size_t i = 0; i < sizeof titles / sizeof titles[0]; i++) {
        table_cell(t, "%s", titles[i]);
    }
    struct work_shape chunk = prefill_shape(CHUNK_ROWS, true);
    struct work_shape one = decode_shape(1);
    struct work_shape eight = decode_shape(8);
    for (uint8_t d = 0; d < c->soc.machine.n_devices; d++) {
        for (int op = OP_QKV; op <= OP_HEAD; op++) {
            add_row(c, d, (enum op_kind)op, &chunk, "prefill 256", rows, t);
        }
        add_row(c, d, OP_LAYER, &one, "decode 1 at 1024", rows, t);
        add_row(c, d, OP_HEAD, &one, "decode 1 at 1024", rows, t);
        for (int op = OP_QKV; op <= OP_HEAD; op++) {
            add_row(c, d, (enum op_kind)op, &eight, "decode 8 at 1024", rows, t);
        }
    }
}

/* The longest kernel a reactive arrival can meet: the bound of kernel-boundary preemption. */
static void longest(const struct config *c, cJSON *rows, struct table *t)
{
    static const char *const titles[] = {"device", "prompt",       "chunk ms",
                                         "MHA ms", "uncut MHA ms", "longest kernel ms"};
    for (size_t i = 0; i < sizeof titles / sizeof titles[0]; i++) {
        table_cell(t, "%s", titles[i]);
    }
    for (uint8_t d = 0; d < c->soc.machine.n_devices; d++) {
        for (int i = 0; i < N_PROMPTS; i++) {
            struct work_shape causal = prefill_shape(prompts[i], true);
            struct work_shape uncut = prefill_shape(prompts[i], false);
            struct work_shape margin =
                prefill_shape(prompts[i] < CHUNK_ROWS ? prompts[i] : CHUNK_ROWS, true);
            double ffn = 1e3 * price_op(&c->truth, d, OP_FFN, &margin).longest_s;
            double qkv = 1e3 * price_op(&c->truth, d, OP_QKV, &margin).longest_s;
            double mha = 1e3 * price_op(&c->truth, d, OP_MHA, &causal).longest_s;
            double full = 1e3 * price_op(&c->truth, d, OP_MHA, &uncut).longest_s;
            double chunk = fmax(ffn, qkv);
            cJSON *row = cJSON_CreateObject();
            cJSON_AddStringToObject(row, "device", c->soc.machine.devices[d].name);
            cJSON_AddNumberToObject(row, "prompt_tokens", prompts[i]);
            cJSON_AddNumberToObject(row, "chunk_ms", chunk);
            cJSON_AddNumberToObject(row, "mha_ms", mha);
            cJSON_AddNumberToObject(row, "mha_uncut_ms", full);
            cJSON_AddNumberToObject(row, "longest_ms", fmax(chunk, mha));
            cJSON_AddItemToArray(rows, row);
            table_cell(t, "%s", c->soc.machine.devices[d].name);
            table_cell(t, "%u", prompts[i]);
            table_cell(t, "%.1f", chunk);
            table_cell(t, "%.1f", mha);
            table_cell(t, "%.1f", full);
            table_cell(t, "%.1f", fmax(chunk, mha));
        }
    }
}

/* What bounds each device: the rates of its many-row kernels. */
static void roofs(const struct config *c, cJSON *rows)
{
    for (uint32_t d = 0; d < c->soc.machine.n_devices; d++) {
        const struct soc_runtime *rt = c->truth.runtime[d];
        cJSON *row = cJSON_CreateObject();
        cJSON_AddStringToObject(row, "device", c->soc.machine.devices[d].name);
        cJSON_AddStringToObject(row, "runtime", rt->runtime);
        cJSON_AddNumberToObject(row, "flop_per_s", rt->many.flop_per_s);
        cJSON_AddNumberToObject(row, "bytes_per_s", rt->many.bytes_per_s);
        cJSON_AddItemToArray(rows, row);
    }
}

/* How sure these times are: of a prefill and of a decode at DECODE_CONTEXT. */
static void intervals(const struct config *c, const struct conformal *t, cJSON *rows, FILE *out)
{
    static const char *const phases[] = {"prefill", "decode"};
    for (uint8_t d = 0; d < c->soc.machine.n_devices; d++) {
        for (int i = 0; i < 2; i++) {
            struct conformal_interval x =
                interval_of(t, &c->soc, d, c->truth.runtime[d], &c->llm, i == 0, DECODE_CONTEXT);
            const char *name = c->soc.machine.devices[d].name;
            cJSON *row = cJSON_CreateObject();
            cJSON_AddStringToObject(row, "device", name);
            cJSON_AddStringToObject(row, "phase", phases[i]);
            cJSON_AddNumberToObject(row, "low_factor", x.low_factor);
            cJSON_AddNumberToObject(row, "high_factor", x.high_factor);
            cJSON_AddNumberToObject(row, "level_frac", x.level_frac);
            cJSON_AddNumberToObject(row, "rows", (double)x.n);
            cJSON_AddStringToObject(row, "pool", x.pool);
            cJSON_AddNumberToObject(row, "distance_ln", x.distance);
            cJSON_AddItemToArray(rows, row);
            char text[160];
            if (out != NULL) {
                (void)fprintf(out, "%s %s: %s\n", name, phases[i],
                              interval_text(&x, text, sizeof text));
            }
        }
    }
}

int list_kernels(const struct config_options *o, bool json, struct err *e)
{
    struct config c;
    struct conformal residuals = {0};
    if (config_load(&c, o, e) != 0 || interval_table_read(&residuals, e) != 0) {
        conformal_fini(&residuals);
        config_fini(&c);
        return EXIT_BAD_INPUT;
    }
    cJSON *root = cJSON_CreateObject();
    struct table kernels;
    struct table bounds;
    table_init(&kernels, "lllrrrrrr");
    table_init(&bounds, "lrrrrr");
    nodes(&c, cJSON_AddArrayToObject(root, "kernels"), &kernels);
    longest(&c, cJSON_AddArrayToObject(root, "longest"), &bounds);
    roofs(&c, cJSON_AddArrayToObject(root, "roofs"));
    cJSON *list = cJSON_AddArrayToObject(root, "intervals");
    if (json) {
        intervals(&c, &residuals, list, NULL);
        json_print(root, stdout);
    } else {
        (void)printf("One layer of %s on %s, alone on the machine\n\n", c.llm.name,
                     c.soc.machine.name);
        table_print(&kernels, stdout, 0);
        (void)printf(
            "\nLongest prefill kernel by prompt length (chunks of %u rows; what a reactive "
            "arrival waits for at most)\n\n",
            CHUNK_ROWS);
        table_print(&bounds, stdout, 0);
        (void)printf("\n95 %% intervals of these times, from errors on what was left out\n\n");
        intervals(&c, &residuals, list, stdout);
        cJSON_Delete(root);
    }
    table_fini(&kernels);
    table_fini(&bounds);
    conformal_fini(&residuals);
    config_fini(&c);
    return EXIT_OK;
}
