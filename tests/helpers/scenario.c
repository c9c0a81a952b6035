#include "tests/helpers/scenario.h"

#include <stdlib.h>

#include "tests/helpers/suite.h"

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
