#include "experiments/drive/bench.h"

#define N(a) (sizeof(a) / sizeof(a)[0])

/* Rows per pass of the first prompt. Small and large passes alternate, so that both meet short and
 * long prefixes. */
static const uint16_t pieces[] = {
    64, 2, 8,  32, 16, 96,  4, 24, 3, 48, 12, 6,  128, 1,  2, 8,  32, 16, 64, 4,
    24, 3, 48, 12, 6,  128, 1, 2,  8, 32, 16, 80, 4,   24, 3, 48, 12, 6,  1,
};
/* Tokens of the other prompts, each computed in one pass. */
static const uint16_t prompts[] = {20, 40, 60, 72, 130, 256, 520};
#define REQUESTS (1 + N(prompts))

/* A decode pass after the prompts: requests first to first + n - 1 together, or one request with
 * fused layers. */
struct batch {
    uint8_t first, n;
    bool fused;
};
static const struct batch batches[] = {
    {0, 8, 0}, {0, 1, 1}, {0, 6, 0}, {7, 1, 1}, {0, 4, 0}, {6, 1, 1}, {0, 3, 0}, {5, 1, 1},
    {0, 2, 0}, {3, 1, 1}, {1, 7, 0}, {0, 1, 1}, {2, 4, 0}, {7, 1, 1}, {4, 4, 0}, {6, 1, 1},
    {5, 3, 0}, {1, 1, 1}, {6, 2, 0}, {0, 1, 0}, {7, 1, 0}, {4, 1, 0}, {1, 1, 0}, {0, 8, 0},
    {1, 2, 0}, {0, 1, 1}, {1, 5, 0}, {2, 1, 1}, {0, 5, 0}, {4, 1, 1},
};

/* ---- the policy ---- */

struct bench {
    const struct request *requests[REQUESTS];
    uint32_t n, step;
    bool running;
};

static void arrived(struct sched *s, const struct request *r)
{
    struct bench *b = s->state;
    /* The tables assume that requests arrive in the order of the trace. */
    SIM_ASSERT(b->n < REQUESTS && r->id == b->n);
    b->requests[b->n++] = r;
}

static void pass_done(struct sched *s, const struct pass *p)
{
    struct bench *b = s->state;
    SIM_ASSERT(b->running && p->n_launches == 0 && p->n_segments > 0); /* one pass at a time */
    b->running = false;
}

/* Fills the segments of the current step. Returns how many there are. */
static uint32_t step_segments(const struct bench *b, struct segment *out, bool *fused)
{
    const uint32_t prefills = N(pieces) + N(prompts);
    SIM_ASSERT(b->n == REQUESTS && b->step < prefills + N(batches));
    *fused = false;
    if (b->step < prefills) {
        uint32_t of = b->step < N(pieces) ? 0 : b->step - (uint32_t)N(pieces) + 1;
        out[0] = (struct segment){.request = b->requests[of],
                                  .role = SEGMENT_PREFILL,
                                  .n_tokens = of == 0 ? pieces[b->step] : prompts[of - 1]};
        /* The last piece ends its prompt, and every other prompt is one piece. */
        SIM_ASSERT((out[0].n_tokens == request_prefill_left(b->requests[of])) ==
                   (b->step + 1 >= N(pieces)));
        return 1;
    }
    const struct batch *x = &batches[b->step - prefills];
    *fused = x->fused;
    SIM_ASSERT(x->first + x->n <= (int)REQUESTS && (!x->fused || x->n == 1));
    for (uint32_t i = 0; i < x->n; i++) {
        SIM_ASSERT(b->requests[x->first + i]->state == REQUEST_STATE_DECODE);
        out[i] = (struct segment){
            .request = b->requests[x->first + i], .role = SEGMENT_DECODE, .n_tokens = 1};
    }
    return x->n;
}

static void schedule(struct sched *s)
{
    struct bench *b = s->state;
    struct segment segments[REQUESTS];
    struct pass_spec spec = {.segments = segments};
    struct pass *p;
    if (b->running || b->n < REQUESTS || b->step == N(pieces) + N(prompts) + N(batches)) {
        return;
    }
    spec.n_segments = step_segments(b, segments, &spec.fused_layers);
    if (sched_pass_form(s, &spec, &p) != 0) {
        sched_give_up(s, "no room for the bench's sequences");
        return;
    }
    struct launch_spec l = sched_launch_rest(s, p, (uint8_t)param_int(s, 0), YIELD_PASS);
    b->running = true;
    b->step++;
    int rc = sched_launch(s, &l, NULL);
    SIM_ASSERT(rc == 0); /* the device runs nothing else */
}

static const struct policy_param params[] = {
    POLICY_INT("device", 0, 0, MACHINE_MAX_DEVICES - 1, "number of the device"),
    {.name = NULL},
};

static const struct policy_ops bench_ops = {
    .name = "bench",
    .summary = "kernels that a calibration lacks",
    .contract = POLICY_CONTRACT,
    .state_size_bytes = sizeof(struct bench),
    .params = params,
    .request_arrived = arrived,
    .pass_done = pass_done,
    .schedule = schedule,
};

/* ---- running it ---- */

static uint32_t tokens_of(uint32_t request)
{
    SIM_ASSERT(request < REQUESTS);
    uint32_t n = request > 0 ? prompts[request - 1] : 0;
    for (size_t i = 0; request == 0 && i < N(pieces); i++) {
        n += pieces[i];
    }
    return n;
}

/* Output tokens of a request: one of its prompt, and one of each batch that has it. */
static uint32_t answers_of(uint32_t request)
{
    uint32_t n = 1;
    for (size_t i = 0; i < N(batches); i++) {
        n += request >= batches[i].first && request < (uint32_t)batches[i].first + batches[i].n;
    }
    SIM_ASSERT(n > 1 && n <= 1 + N(batches)); /* every request decodes */
    return n;
}

/* For assertions: counts output tokens by prompts and batches instead of by requests. */
static size_t tokens_by_batch(void)
{
    size_t n = REQUESTS;
    for (size_t i = 0; i < N(batches); i++) {
        n += batches[i].n;
    }
    return n;
}

double bench_tokens(void)
{
    double n = 0.0;
    for (uint32_t i = 0; i < REQUESTS; i++) {
        n += answers_of(i);
    }
    SIM_ASSERT(n == (double)tokens_by_batch());
    return n;
}

static void trace_fill(struct trace *t)
{
    *t = (struct trace){.rows = xcalloc(REQUESTS, sizeof *t->rows), .n = REQUESTS};
    t->n_first = t->n;
    for (uint32_t i = 0; i < REQUESTS; i++) {
        SIM_ASSERT(tokens_of(i) > 0);
        t->rows[i] = (struct trace_row){.request_id = i,
                                        .session_id = i,
                                        .input_tokens = tokens_of(i),
                                        .output_tokens = answers_of(i),
                                        .max_output_tokens = answers_of(i),
                                        .next = TRACE_NO_ROW,
                                        .cls = REQUEST_CLASS_PROACTIVE};
    }
}

bool bench_suits(const struct machine *m, uint8_t device)
{
    return !m->devices[device].static_attention;
}

int bench_execute(const struct drive_options *o, const struct config *c, uint8_t device,
                  struct real_run *out, struct err *e)
{
    OWNED struct config *first = xmalloc(sizeof *first);
    struct config_policy p = {.ops = &bench_ops, .params_text = "", .label = "bench"};
    struct runner_options opt = {0};
    SCOPED(trace_fini) struct trace t;
    *first = *c; /* borrows all members, so it is never freed as a configuration */
    first->llm.n_layers = c->llm.n_layers < BENCH_LAYERS ? c->llm.n_layers : BENCH_LAYERS;
    p.params = (struct policy_params){.n = 1, .v = {device}};
    trace_fill(&t);
    SIM_ASSERT(bench_suits(&c->soc.machine, device) && device < c->soc.machine.n_devices);
    SIM_ASSERT(first->llm.n_layers > 0 && first->llm.n_layers <= c->llm.n_layers);
    return real_execute(o, first, &p, &t, 1, &opt, NULL, out, e);
}
