/* llm-npu's order of subgraphs against the paper's (llm.npu, arXiv 2407.05858, 3.4). The paper's
 * order is computed here from its equations 2 to 5, on the same kernel times and without the
 * engine. The last test also prints how much faster that order is than all chunks together, which
 * is the table of policies/README.md. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/run/runner.h"
#include "sim/base/units.h"
#include "tests/helpers/randomrun.h"
#include "tests/helpers/suite.h"
#include "traces/traces.h"

enum { MAX_CHUNKS = 32, MAX_LAYERS = 64 };
enum part { QKV, ATTENTION, FFN, PARTS }; /* subgraphs of a layer; attention is the CPU's */

static const char *const machines[] = {"core-ultra-5-125h", "core-ultra-7-258v", "ryzen-ai-xdna2",
                                       "snapdragon-8gen3", "snapdragon-8elite"};
static const uint32_t prompts[] = {512, 1024, 2048, 4096};
enum {
    N_MACHINES = sizeof machines / sizeof machines[0],
    N_PROMPTS = sizeof prompts / sizeof prompts[0]
};

/* The kernel times of one prompt, in ns. */
struct prompt {
    uint32_t chunks, layers;
    int64_t part[PARTS][MAX_CHUNKS];
    int64_t whole_attention, head; /* attention of all chunks in one kernel */
    /* The host's time before each kernel, and after the head. A change of processor has a barrier:
     * before attention, FFN and head. A QKV has none, since it follows an FFN or nothing. */
    int64_t lead[PARTS], head_lead, sample;
};

static int64_t kernel_ns(const struct config *c, uint8_t device, enum op_kind op, uint32_t first,
                         uint32_t rows)
{
    uint64_t n = rows;
    struct work_shape w = {.rows = rows,
                           .logit_rows = 1,
                           .sequences = 1,
                           .prefill_rows = rows,
                           .attn_pairs = n * first + n * (n + 1) / 2,
                           .kv_read_tokens = first + rows,
                           .max_context_tokens = first + rows};
    uint32_t chunk = c->soc.machine.devices[device].chunk_rows;
    bool padded = chunk > 0 && op != OP_MHA && op != OP_HEAD;
    struct kernel_query q = {.device = device,
                             .op = op,
                             .rows = op == OP_HEAD ? 1 : rows,
                             .padded_rows = op == OP_HEAD ? 1
                                            : padded      ? chunk
                                                          : rows,
                             .shape = &w};
    struct kernel_cost cost;
    c->truth.model.ops->kernel(&c->truth.model, &q, &cost);
    return cost.t_ns;
}

static int64_t lead_ns(const struct config *c, uint8_t device, bool barrier)
{
    const struct machine *m = &c->soc.machine;
    return m->schedule_ns + m->devices[device].submit_ns + m->devices[device].completion_ns +
           (barrier ? m->sync_ns : 0);
}

static struct prompt prompt_of(const struct config *c, uint32_t tokens)
{
    uint8_t npu = (uint8_t)machine_find(&c->soc.machine, DEVICE_KIND_NPU);
    uint8_t cpu = (uint8_t)machine_find(&c->soc.machine, DEVICE_KIND_CPU);
    uint32_t chunk = c->soc.machine.devices[npu].chunk_rows;
    struct prompt p = {.chunks = (tokens + chunk - 1) / chunk, .layers = c->llm.n_layers};
    ck_assert(p.chunks <= MAX_CHUNKS && p.layers <= MAX_LAYERS);
    for (uint32_t i = 0; i < p.chunks; i++) {
        uint32_t first = i * chunk;
        uint32_t rows = tokens - first < chunk ? tokens - first : chunk;
        p.part[QKV][i] = kernel_ns(c, npu, OP_QKV, first, rows);
        p.part[ATTENTION][i] = kernel_ns(c, cpu, OP_MHA, first, rows);
        p.part[FFN][i] = kernel_ns(c, npu, OP_FFN, first, rows);
    }
    p.whole_attention = kernel_ns(c, cpu, OP_MHA, 0, tokens);
    p.head = kernel_ns(c, cpu, OP_HEAD, tokens - 1, 1);
    p.lead[QKV] = lead_ns(c, npu, false);
    p.lead[ATTENTION] = p.head_lead = lead_ns(c, cpu, true);
    p.lead[FFN] = lead_ns(c, npu, true);
    p.sample = c->soc.machine.sample_ns_per_token;
    return p;
}

/* ---- the paper's order ---- */

/* The next subgraph of a chunk. */
struct next {
    uint32_t layer;
    enum part part;
    bool runs;
};

struct order {
    const struct prompt *p;
    struct next of[MAX_CHUNKS]; /* layer == layers: the chunk is done */
};

/* By eq. 2 and 3, attention of a chunk needs the QKV of all chunks before it. Any other part needs
 * its own chunk only. */
static bool ready(const struct order *o, uint32_t i)
{
    const struct next *n = &o->of[i];
    if (n->layer == o->p->layers || n->runs) {
        return false;
    }
    for (uint32_t k = 0; n->part == ATTENTION && k < i; k++) {
        const struct next *before = &o->of[k];
        if (before->layer < n->layer || (before->layer == n->layer && before->part == QKV)) {
            return false;
        }
    }
    return true;
}

static void step(struct next *n)
{
    n->layer += n->part == FFN;
    n->part = n->part == FFN ? QKV : (enum part)(n->part + 1);
    n->runs = false;
}

/* Returns C of eq. 5: the time of the work that the other processor can do once the subgraph is
 * done, and could not before. For a subgraph on the NPU it is negative. */
static int64_t contribution(const struct order *o, uint32_t i)
{
    struct order after = *o;
    bool on_cpu = o->of[i].part == ATTENTION;
    int64_t ns = 0;
    step(&after.of[i]);
    for (uint32_t k = 0; k < o->p->chunks; k++) {
        bool other = (after.of[k].part == ATTENTION) != on_cpu;
        if (other && ready(&after, k) && (k == i || !ready(o, k))) {
            ns += o->p->part[after.of[k].part][k];
        }
    }
    return on_cpu ? ns : -ns;
}

/* Returns the ready subgraph of a processor with the largest C, the first chunk among equals, or -1
 * where none is ready. */
static int choose(const struct order *o, bool cpu)
{
    int best = -1;
    int64_t most = 0;
    for (uint32_t i = 0; i < o->p->chunks; i++) {
        if ((o->of[i].part == ATTENTION) == cpu && ready(o, i)) {
            int64_t c = contribution(o, i);
            if (best < 0 || c > most) {
                best = (int)i;
                most = c;
            }
        }
    }
    return best;
}

/* Returns the time to the first token, with one subgraph at a time on each processor (eq. 4). */
static int64_t out_of_order_ns(const struct prompt *p)
{
    struct order o = {.p = p};
    int64_t now = 0;
    int running[2] = {-1, -1}; /* NPU, CPU */
    int64_t end[2] = {0, 0};
    for (;;) {
        for (int d = 0; d < 2; d++) {
            if (running[d] < 0 && (running[d] = choose(&o, d == 1)) >= 0) {
                struct next *n = &o.of[running[d]];
                n->runs = true;
                end[d] = now + p->lead[n->part] + p->part[n->part][running[d]];
            }
        }
        int first = running[0] < 0 ? 1 : running[1] < 0 || end[0] <= end[1] ? 0 : 1;
        if (running[first] < 0) {
            return now + p->head_lead + p->head + p->sample;
        }
        now = end[first];
        step(&o.of[running[first]]);
        running[first] = -1;
    }
}

/* ---- both ---- */

/* Returns the time of all chunks of an op and then the next op (order=together), without the
 * host. */
static int64_t together_ns(const struct prompt *p)
{
    int64_t layer = p->whole_attention;
    for (uint32_t i = 0; i < p->chunks; i++) {
        layer += p->part[QKV][i] + p->part[FFN][i];
    }
    return layer * p->layers + p->head;
}

/* Returns a time that no order can beat. Each processor has its work. The CPU's begins after a QKV,
 * and is followed by an FFN. */
static int64_t least_ns(const struct prompt *p)
{
    int64_t work[2] = {0, p->part[QKV][0] + p->part[FFN][p->chunks - 1]};
    for (uint32_t i = 0; i < p->chunks; i++) {
        work[0] += p->layers * (p->part[QKV][i] + p->part[FFN][i]);
        work[1] += p->layers * p->part[ATTENTION][i];
    }
    return (work[0] > work[1] ? work[0] : work[1]) + p->head;
}

static struct config config;

/* Returns the time to the first token in a run of the policy, in ns. */
static int64_t simulated_ns(const char *soc, uint32_t tokens, const char *order, bool contention)
{
    static struct config_policy policy;
    static struct randomrun run;
    struct trace t;
    struct trace one;
    struct trace_builder b;
    struct err e = ERR_INIT;
    struct runner_result r;
    struct runner_options opt = {0};
    struct trace_row row = {.input_tokens = tokens, .output_tokens = 1, .max_output_tokens = 1};
    trace_builder_init(&b);
    trace_builder_add(&b, &row, NULL);
    ck_assert_int_eq(trace_build(&b, true, "one", &one, &e), 0);
    run = (struct randomrun){.soc = soc, .llm = "qwen2.5-1.5b", .seed = 1, .rows = &one};
    (void)snprintf(run.policy, sizeof run.policy, "llm-npu:in_progress=1,outlier_frac=0,order=%s",
                   order);
    /* Annotations are exact, as those of the prediction are. */
    (void)snprintf(run.sets[run.n_sets++], sizeof run.sets[0], "sim.annotation.sigma_prefill=0");
    if (!contention) {
        (void)snprintf(run.sets[run.n_sets++], sizeof run.sets[0], "sim.contention=none");
    }
    ck_assert(randomrun_load(&run, &config, &policy, &t));
    ck_assert_int_eq(runner_run(&config, &policy, &t, 1, &opt, &r, &e), 0);
    int64_t ns = units_ns_from_s(metric_list_find(&r.metrics, "reactive.ttft_s.mean")->value);
    runner_result_fini(&r);
    trace_fini(&t);
    trace_fini(&one);
    return ns;
}

/* Two chunks have QKV of 4, attention of 10 and 14 and FFN of 8, in one layer with a head of 1. The
 * QKV of chunk 1 has C = 0, since its attention also waits for chunk 0. That of chunk 0 has C =
 * -10. So chunk 1 comes first: QKV 0-4 and 4-8. Attention takes 8-18 and 18-32, FFN 18-26 and
 * 32-40, and the head 40-41.
 *
 * All chunks together take 8 + 24 + 16 + 1 = 49. The other order of the two QKV would end at 37,
 * the bound, since the paper's rule is a heuristic. */
START_TEST(the_order_is_that_of_two_chunks_by_hand)
{
    struct prompt p = {.chunks = 2, .layers = 1, .whole_attention = 24, .head = 1};
    const int64_t part[PARTS][2] = {{4, 4}, {10, 14}, {8, 8}};
    for (int k = 0; k < PARTS; k++) {
        memcpy(p.part[k], part[k], sizeof part[k]);
    }
    ck_assert_int_eq(out_of_order_ns(&p), 41);
    ck_assert_int_eq(together_ns(&p), 49);
    ck_assert_int_eq(least_ns(&p), 4 + 24 + 8 + 1);
}
END_TEST

static double s_of(int64_t ns)
{
    return (double)ns / 1e9;
}

/* Compares one machine and prompt, and prints its row of the table. Returns together's time over
 * that of the paper's order, with contention. */
static double compare(const char *soc, uint32_t tokens)
{
    int64_t run = simulated_ns(soc, tokens, "chunks", true);
    config_fini(&config);
    int64_t together = simulated_ns(soc, tokens, "together", true);
    config_fini(&config);
    int64_t alone = simulated_ns(soc, tokens, "chunks", false);
    struct prompt p = prompt_of(&config, tokens);
    config_fini(&config);
    printf(
        "llm-npu, %s, %u tokens: in the paper's order %.3f s, without contention %.3f, predicted "
        "%.3f; any order %.3f; together %.3f (%.2f times)\n",
        soc, tokens, s_of(run), s_of(alone), s_of(out_of_order_ns(&p)), s_of(least_ns(&p)),
        s_of(together), (double)together / (double)run);
    /* Metrics are seconds in a double, so less than a microsecond is rounded. */
    ck_assert_int_lt(llabs(alone - out_of_order_ns(&p)), 1000);
    ck_assert_int_le(least_ns(&p), alone);
    ck_assert_int_le(alone, run + 1000);
    /* A single prompt has one kernel at a time here, so there is no contention. */
    ck_assert(together >= together_ns(&p) && together < together_ns(&p) + 30000000);
    return (double)together / (double)run;
}

/* Where kernels do not slow each other, the policy must take the time of the paper's order, to the
 * rounding. */
START_TEST(a_prompt_runs_in_the_papers_order)
{
    double most = 0.0;
    for (int m = 0; m < N_MACHINES; m++) {
        for (int k = 0; k < N_PROMPTS; k++) {
            double times = compare(machines[m], prompts[k]);
            most = times > most ? times : most;
        }
    }
    printf("at most %.3f times as fast\n", most);
}
END_TEST

static const struct suite_row suite[] = {
    CASE("llm-npu's order", .timeout_s = 60),
    TEST(the_order_is_that_of_two_chunks_by_hand),
    TEST(a_prompt_runs_in_the_papers_order),
};
SUITE_MAIN("llm_npu_order", suite)
