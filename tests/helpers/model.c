#include "tests/helpers/model.h"

#include <stdio.h>

#include "sim/base/err.h"
#include "sim/base/halt.h"
#include "sim/base/json.h"

void model_init(struct model *m, const char *llm, const char *form)
{
    struct err e = ERR_INIT;
    cJSON *s = json_read_file(soc_path("core-ultra-5-125h-siblings"), &e);
    cJSON *l = json_read_file(llm_path(llm), &e);
    (void)soc_parse(s, "soc", &m->soc, &e);
    (void)llm_parse(l, "llm", &m->llm, &e);
    err_print(&e, stderr);
    SIM_REQUIRE(e.n == 0, "shipped files load");
    cJSON_Delete(s);
    cJSON_Delete(l);
    roofline_init(&m->r, hwmodel_find(form), &m->soc, &m->llm);
}

struct work_shape model_prefill(uint64_t tokens)
{
    return (struct work_shape){.rows = (uint32_t)tokens,
                               .logit_rows = 1,
                               .sequences = 1,
                               .prefill_rows = (uint32_t)tokens,
                               .attn_pairs = tokens * (tokens + 1) / 2,
                               .kv_read_tokens = tokens,
                               .max_context_tokens = (uint32_t)tokens};
}

struct work_shape model_decode(uint32_t sequences, uint64_t context)
{
    return (struct work_shape){.rows = sequences,
                               .logit_rows = sequences,
                               .sequences = sequences,
                               .attn_pairs = sequences * context,
                               .kv_read_tokens = sequences * context,
                               .max_context_tokens = (uint32_t)context};
}

struct kernel_cost model_cost(const struct model *m, int device, enum op_kind op,
                              const struct work_shape *w, uint32_t rows, uint32_t padded_rows)
{
    struct kernel_query q = {
        .device = (uint8_t)device, .op = op, .rows = rows, .padded_rows = padded_rows, .shape = w};
    struct kernel_cost c;
    hwmodel_kernel(&m->r.model, &q, &c);
    return c;
}
