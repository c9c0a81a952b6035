#include "tests/helpers/randomtrace.h"

#include <math.h>
#include <string.h>

#include "sim/api/request.h"
#include "sim/base/rng.h"
#include "sim/base/units.h"
#include "traces/traces.h"

#define MAX_SESSIONS 24
#define MAX_TURNS 6

/* How one trace is: drawn once, so that traces differ and not only requests. */
struct manner {
    double gap_s, input, output; /* means; lengths are log-uniform around them */
    double burst_frac, later_frac, tool_frac;
    double cancel_frac, slo_frac, until_frac, prefix_frac, group_frac, priority_frac;
};

static double between(struct rng *r, double low, double high)
{
    return low * pow(high / low, rng_uniform(r));
}

static bool chance(struct rng *r, double frac)
{
    return rng_uniform(r) < frac;
}

/* Half of the traces know nothing of it. */
static double share(struct rng *r)
{
    return rng_below(r, 2) == 0 ? 0.0 : rng_uniform(r);
}

static struct manner manner_of(struct rng *r)
{
    return (struct manner){.gap_s = between(r, 0.01, 10),
                           .input = between(r, 20, 1500),
                           .output = between(r, 2, 120),
                           .burst_frac = share(r),
                           .later_frac = share(r) * 0.8,
                           .tool_frac = rng_uniform(r),
                           .cancel_frac = share(r),
                           .slo_frac = share(r),
                           .until_frac = share(r) * 0.3,
                           .prefix_frac = rng_uniform(r),
                           .group_frac = share(r),
                           .priority_frac = share(r)};
}

static struct trace_extra extra_of(struct rng *r, const struct manner *m, uint32_t session)
{
    struct trace_extra x = trace_extra_none();
    x.client_id = session;
    if (chance(r, m->cancel_frac)) {
        x.cancel_ns = units_ns_from_s(between(r, 1e-3, 60));
    }
    if (chance(r, m->slo_frac)) {
        x.ttft_slo_ns = units_ns_from_s(between(r, 0.01, 20));
        x.tbt_slo_ns = units_ns_from_s(between(r, 0.01, 2));
        x.deadline_ns = rng_below(r, 2) ? units_ns_from_s(between(r, 0.1, 60)) : TIME_NEVER_NS;
    }
    if (chance(r, m->until_frac)) {
        x.until_ns = units_ns_from_s(between(r, 1, 60));
    }
    x.prefix_group = chance(r, m->group_frac) ? 1 + rng_below(r, 3) : 0;
    x.priority = chance(r, m->priority_frac) ? (int32_t)rng_below(r, 7) - 3 : 0;
    return x;
}

static uint32_t length(struct rng *r, double mean)
{
    return 1 + (uint32_t)between(r, mean / 10, mean * 3);
}

/* Lets a prompt begin with the text of its group, or like a request before it, of these lengths. */
static struct trace_node content_of(struct rng *r, struct trace_row *row, uint32_t group,
                                    const uint32_t *lengths)
{
    struct trace_node node = trace_node_none();
    uint32_t most = group > 0 ? 1000 : row->turn > 0 ? row->prefix_tokens : 0;
    if (group == 0 && row->request_id > 0 && chance(r, 0.4)) {
        node.prefix_of = rng_below(r, row->request_id);
        most = lengths[node.prefix_of];
    }
    row->prefix_tokens = most > 0 ? rng_below(r, most + 1) : 0;
    row->input_tokens += row->turn == 0 ? row->prefix_tokens : 0;
    row->prefix_tokens =
        row->prefix_tokens < row->input_tokens ? row->prefix_tokens : row->input_tokens;
    return node;
}

void randomtrace_make(struct trace *out, uint64_t number)
{
    struct rng r;
    struct err e = ERR_INIT;
    struct trace_builder b;
    rng_init(&r, rng_key(number, RNG_TEST, 2, 0));
    trace_builder_init(&b);
    struct manner m = manner_of(&r);
    uint32_t sessions = 1 + rng_below(&r, MAX_SESSIONS);
    uint32_t id = 0;
    double t = 0.0;
    struct rng content; /* of its own: other traces are as they were */
    rng_init(&content, rng_key(number, RNG_TEST, 3, 0));
    bool shares = rng_below(&content, 3) == 0;
    uint32_t lengths[MAX_SESSIONS * MAX_TURNS];
    for (uint32_t s = 0; s < sessions; s++) {
        t += chance(&r, m.burst_frac) ? 0.0 : rng_exponential(&r, m.gap_s);
        uint8_t cls = rng_below(&r, 2) ? REQUEST_CLASS_REACTIVE : REQUEST_CLASS_PROACTIVE;
        uint32_t before = 0;
        for (uint16_t turn = 0; turn == 0 || (turn < MAX_TURNS && chance(&r, m.later_frac));
             turn++) {
            struct trace_row row = {
                .request_id = id++,
                .session_id = s,
                .turn = turn,
                .cls = cls,
                .next = TRACE_NO_ROW,
                .arrival_ns = units_ns_from_s(turn == 0 ? t : rng_exponential(&r, m.gap_s)),
                .after_tool = turn > 0 && chance(&r, m.tool_frac),
                .input_tokens = before + length(&r, m.input),
                .output_tokens = length(&r, m.output)};
            row.prefix_tokens = chance(&r, m.prefix_frac) ? before : before / 2;
            row.max_output_tokens =
                rng_below(&r, 2) ? row.output_tokens : trace_default_limit(row.output_tokens);
            struct trace_extra x = extra_of(&r, &m, s);
            struct trace_node node = trace_node_none();
            if (shares) {
                node = content_of(&content, &row, x.prefix_group, lengths);
            }
            trace_builder_add(&b, &row, &x);
            if (shares) {
                trace_builder_node(&b, &node);
            }
            before = row.input_tokens + row.output_tokens;
            lengths[row.request_id] = before;
        }
    }
    int rc = trace_build(&b, false, "random", out, &e);
    SIM_REQUIRE(rc == 0, "%s", e.lines[0]);
    trace_builder_fini(&b);
}
