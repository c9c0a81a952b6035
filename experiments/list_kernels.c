/* `xpusim list kernels`: what the cost model says of one layer. */
#include "experiments/list_kernels.h"

#include "experiments/commands.h"
#include "experiments/table.h"

#define PREFILL_ROWS 256u    /* the chunk of agent-xpu-v2 */
#define DECODE_CONTEXT 1024u /* tokens */

static const char *const op_names[] = {"QKV", "MHA", "FFN", "HEAD"};

static struct kernel_cost kernel_cost_of(const struct config *c, uint8_t device, enum op_kind op,
                                         bool prefill)
{
    struct work_shape w = {.rows = 1,
                           .logit_rows = 1,
                           .sequences = 1,
                           .attn_pairs = DECODE_CONTEXT,
                           .kv_read_tokens = DECODE_CONTEXT,
                           .max_context_tokens = DECODE_CONTEXT};
    if (prefill) {
        w.rows = w.prefill_rows = PREFILL_ROWS;
        w.attn_pairs = PREFILL_ROWS * (PREFILL_ROWS + 1) / 2;
        w.kv_read_tokens = w.max_context_tokens = PREFILL_ROWS;
    }
    uint32_t rows = op == OP_HEAD ? 1 : w.rows;
    uint32_t chunk = c->soc.machine.devices[device].chunk_rows;
    bool padded = chunk > 0 && op != OP_MHA && op != OP_HEAD;
    struct kernel_query q = {.device = device,
                             .op = op,
                             .rows = rows,
                             .padded_rows = padded ? (rows + chunk - 1) / chunk * chunk : rows,
                             .shape = &w};
    struct kernel_cost cost;
    hwmodel_kernel(&c->truth.model, &q, &cost);
    return cost;
}

int list_kernels(const struct config_options *o, bool json, struct err *e)
{
    struct config c;
    if (config_load(&c, o, e) != 0) {
        config_fini(&c);
        return EXIT_BAD_INPUT;
    }
    cJSON *rows = cJSON_CreateArray();
    struct table t;
    table_init(&t, "lllrrr");
    static const char *const titles[] = {"device", "op", "work", "ms", "GB/s", "flop/byte"};
    for (size_t i = 0; i < sizeof titles / sizeof titles[0]; i++) {
        table_cell(&t, "%s", titles[i]);
    }
    for (uint32_t i = 0; i < c.soc.machine.n_devices * 8; i++) {
        uint8_t device = (uint8_t)(i / 8);
        bool prefill = i % 8 < 4;
        struct kernel_cost k = kernel_cost_of(&c, device, (enum op_kind)(i % 4), prefill);
        double seconds = (double)k.t_ns / 1e9;
        const char *work = prefill ? "prefill 256" : "decode at 1024";
        cJSON *row = cJSON_CreateObject();
        cJSON_AddStringToObject(row, "device", c.soc.machine.devices[device].name);
        cJSON_AddStringToObject(row, "op", op_names[i % 4]);
        cJSON_AddStringToObject(row, "work", work);
        cJSON_AddNumberToObject(row, "time_s", seconds);
        cJSON_AddNumberToObject(row, "bytes_per_s", k.bytes / seconds);
        cJSON_AddNumberToObject(row, "flop_per_byte", k.flop / k.bytes);
        cJSON_AddItemToArray(rows, row);
        table_cell(&t, "%s", c.soc.machine.devices[device].name);
        table_cell(&t, "%s", op_names[i % 4]);
        table_cell(&t, "%s", work);
        table_cell(&t, "%.3f", seconds * 1e3);
        table_cell(&t, "%.1f", k.bytes / seconds / 1e9);
        table_cell(&t, "%.1f", k.flop / k.bytes);
    }
    if (json) {
        char *text = cJSON_Print(rows);
        (void)printf("%s\n", text);
        cJSON_free(text);
    } else {
        table_print(&t, stdout, 0);
    }
    cJSON_Delete(rows);
    table_fini(&t);
    config_fini(&c);
    return EXIT_OK;
}
