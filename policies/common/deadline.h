/* Deadlines of requests, for edf and llf (clauses.md E.9). */
#pragma once

#include "policies/common/iter.h"

enum { DEADLINE_TTFT = ITER_PARAM_COUNT, DEADLINE_TBT, DEADLINE_PROACTIVE, DEADLINE_PARAM_COUNT };

#define DEADLINE_PARAMS                                                                            \
    [DEADLINE_TTFT] =                                                                              \
        POLICY_NUMBER("ttft_slo_s", 2, 0, 1e6,                                                     \
                      "reactive first-token deadline where the trace has none, s (ours)"),         \
    [DEADLINE_TBT] =                                                                               \
        POLICY_NUMBER("tbt_slo_s", 0.2, 0, 1e6,                                                    \
                      "reactive per-token deadline where the trace has none, s (ours)"),           \
    [DEADLINE_PROACTIVE] =                                                                         \
        POLICY_NUMBER("proactive_s", 600, 0, 1e9,                                                  \
                      "deadline of proactive requests, s after arrival (E.9: 10 min)")

/* The instant by which the request should produce its next token. */
static inline int64_t deadline_ns(const struct sched *s, const struct request *r)
{
    if (r->cls == REQUEST_CLASS_PROACTIVE || r->deadline_ns != TIME_NEVER_NS) {
        return r->deadline_ns != TIME_NEVER_NS
                   ? r->deadline_ns
                   : r->arrival_ns + units_ns_from_s(param_number(s, DEADLINE_PROACTIVE));
    }
    SIM_ASSERT(r->arrival_ns <= s->now_ns);
    if (r->first_token_ns == TIME_NEVER_NS) {
        int64_t slo = r->ttft_slo_ns != TIME_NEVER_NS
                          ? r->ttft_slo_ns
                          : units_ns_from_s(param_number(s, DEADLINE_TTFT));
        return r->arrival_ns + slo;
    }
    int64_t slo = r->tbt_slo_ns != TIME_NEVER_NS ? r->tbt_slo_ns
                                                 : units_ns_from_s(param_number(s, DEADLINE_TBT));
    /* The limit on TBT counts from the newest token. */
    SIM_ASSERT(slo >= 0 && r->first_token_ns <= r->last_token_ns && r->last_token_ns <= s->now_ns);
    return r->last_token_ns + slo;
}
