#include "tests/helpers/scenario.h"

#include <stdlib.h>

#include "tests/helpers/suite.h"

void scenario_agent_xpu(struct scenario *sc, double decode_layer_ms)
{
    scenario_cost(sc, NPU, OP_QKV, 4, 0, 5);
    scenario_cost(sc, NPU, OP_FFN, 8, 0, 5);
    scenario_cost(sc, IGPU, OP_QKV, 0, 4.0 / 256, 5);
    scenario_cost(sc, IGPU, OP_FFN, 0, 8.0 / 256, 5);
    scenario_cost(sc, IGPU, OP_MHA, 10, 0, 5);
    scenario_cost(sc, IGPU, OP_HEAD, 1, 0, 5);
    scenario_cost(sc, IGPU, OP_LAYER, decode_layer_ms, 0, 5);
}

void scenario_batching(struct scenario *sc)
{
    scenario_cost(sc, IGPU, OP_QKV, 0, 0.01, 5);
    scenario_cost(sc, IGPU, OP_FFN, 0, 0.02, 5);
    scenario_cost(sc, IGPU, OP_MHA, 1, 0, 5);
    scenario_cost(sc, IGPU, OP_HEAD, 1, 0, 5);
    scenario_cost(sc, IGPU, OP_LAYER, 2, 0, 5);
}

void scenario_check(struct scenario *sc, const struct scenario_request *requests, uint32_t n)
{
    int rc = scenario_run(sc, requests, n, true);
    if (rc != 0 || getenv("SHOW") != NULL) {
        scenario_print(sc, stdout);
    }
    ck_assert_msg(rc == 0, "%s", sc->result.message);
    ck_assert(sc->result.audit.clean);
}

void scenario_tokens_at(const struct scenario *sc, uint32_t request, uint32_t n, const double *ms)
{
    const struct scenario_record *r = &sc->records[request];
    ck_assert_uint_eq(r->tokens_n, n);
    for (uint32_t i = 0; i < n; i++) {
        ck_assert_msg(r->token_ns[i] == MS(ms[i]), "request %u token %u at %.3f ms, not %.3f",
                      request, i, units_ms_from_ns(r->token_ns[i]), ms[i]);
    }
}

const struct scenario_kernel *scenario_kernel_find(const struct scenario *sc, uint32_t from,
                                                   uint32_t request, int device, enum op_kind op)
{
    for (uint32_t i = from; i < sc->n_kernels; i++) {
        const struct scenario_kernel *k = &sc->kernels[i];
        if (k->request == request && (device < 0 || k->device == device) && k->op == op) {
            return k;
        }
    }
    return NULL;
}

void scenario_print(const struct scenario *sc, FILE *out)
{
    static const char *const ops[] = {"qkv", "mha", "ffn", "head", "layer"};
    for (uint32_t i = 0; i < sc->trace.n; i++) {
        const struct scenario_record *r = &sc->records[i];
        fprintf(out, "request %u: arrival %.3f start %.3f first %.3f finish %.3f ms, %u tokens\n",
                i, units_ms_from_ns(r->arrival_ns), units_ms_from_ns(r->start_ns),
                units_ms_from_ns(r->first_token_ns), units_ms_from_ns(r->finish_ns), r->generated);
    }
    for (uint32_t i = 0; i < sc->n_kernels; i++) {
        const struct scenario_kernel *k = &sc->kernels[i];
        fprintf(out, "%10.3f..%10.3f ms %s pass %u request %u %s layer %u rows %u\n",
                units_ms_from_ns(k->begin_ns), units_ms_from_ns(k->end_ns),
                sc->machine.devices[k->device].name, k->pass, k->request, ops[k->op], k->layer,
                k->rows);
    }
    if (sc->result.status != 0) {
        fprintf(out, "error: %s\n", sc->result.message);
    }
}
