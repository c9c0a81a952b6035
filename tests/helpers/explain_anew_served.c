/* The price of a work: what each member's own tokens took, and who shares the rest. */
#include "tests/helpers/explain_anew_impl.h"

/* Isolated time of an op's kernels, priced one by one, of so many tokens of a segment or of the
 * whole pass. */
static int64_t price(const struct hwmodel *m, const struct begun *g, enum op_kind op,
                     const struct work_shape *w)
{
    int64_t ns = 0;
    uint32_t left = op == OP_HEAD ? w->logit_rows : w->rows;
    bool in_chunks = g->chunk_rows > 0 && op != OP_MHA && (left > 1 || g->graph > 0);
    while (left > 0) {
        uint32_t rows = in_chunks && left > g->chunk_rows ? g->chunk_rows : left;
        struct kernel_query k = {.device = g->device,
                                 .graph = g->graph,
                                 .op = op,
                                 .rows = rows,
                                 .padded_rows = in_chunks ? g->chunk_rows : rows,
                                 .shape = w};
        struct kernel_cost cost;
        hwmodel_kernel(m, &k, &cost);
        ns += cost.t_ns;
        left -= rows;
    }
    return ns;
}

static struct work_shape alone(const struct segment *s)
{
    struct work_shape w = {.rows = s->n_tokens, .sequences = 1};
    bool prompt = s->role == SEGMENT_PREFILL;
    w.prefill_rows = prompt ? s->n_tokens : 0;
    for (uint32_t i = 1; i <= s->n_tokens; i++) {
        w.attn_pairs += s->first_token + i;
    }
    w.max_context_tokens = s->first_token + s->n_tokens;
    w.kv_read_tokens = w.max_context_tokens;
    bool ends = w.max_context_tokens == request_prefill_target(s->request);
    w.logit_rows = prompt ? ends : s->n_tokens;
    return w;
}

/* A launch's part: what its kernels computed, by op. */
static void settle_launch(const struct hwmodel *m, const struct begun *g, const struct pass *p,
                          const uint32_t *lost_below, const int64_t *op_ns, struct settled *out)
{
    for (uint32_t i = 0; i < p->n_segments; i++) {
        const struct segment *s = &p->segments[i];
        struct work_shape own = alone(s);
        int64_t sum = 0;
        for (int op = 0; op < OP_KIND_COUNT; op++) {
            int64_t all_ns = price(m, g, (enum op_kind)op, &p->shape);
            int64_t own_ns = price(m, g, (enum op_kind)op, &own);
            bool part = p->n_segments > 1 && own_ns < all_ns;
            double share = part ? (double)own_ns / (double)all_ns : 1.0;
            sum += (int64_t)((double)op_ns[op] * share + 0.5);
        }
        out->own[i] += sum;
        uint32_t first = p->n_segments > 1 ? s->first_token : g->first_token;
        bool lost = first < lost_below[s->request->id] && s->role != SEGMENT_DRAFT;
        out->again[i] += lost ? sum : 0;
    }
}

/* Adds up a work's launches, from the last of its ends back to the first of its begins. */
void explain_anew_settle(const struct served *of, const struct pass *p, uint64_t work, int64_t end,
                         struct settled *out)
{
    for (int64_t to = end;;) {
        const struct begun *last = NULL;
        for (size_t i = 0; i < of->n; i++) {
            const struct begun *g = &of->begun[i];
            bool before = g->work == work && g->begin < to;
            last = before && (last == NULL || g->end > last->end) ? g : last;
        }
        if (last == NULL) {
            return;
        }
        int64_t op_ns[OP_KIND_COUNT] = {0};
        for (size_t i = 0; i < last->n_pieces; i++) {
            const struct piece *x = &last->pieces[i];
            int64_t part = (x->end < to ? x->end : to) - x->begin;
            if (part > 0) {
                double share = (double)part / (double)(x->end - x->begin);
                int64_t slow_ns = x->end <= to ? x->slow : (int64_t)((double)x->slow * share);
                out->ns[x->slowed] += slow_ns;
                out->ns[x->cause] += part - slow_ns;
                op_ns[x->op] += x->cause == EXPLAIN_COMPUTE ? part - slow_ns : 0;
            }
        }
        settle_launch(of->model, last, p, of->lost_below, op_ns, out);
        to = last->begin;
    }
}

/* Those who shared a pass with a member, in proportion to what their tokens took: of running sums,
 * rounded down, so that nothing is lost. */
void explain_anew_charge(int64_t *shared_ns, const struct pass *p, uint32_t i,
                         const struct settled *x)
{
    int64_t shared = x->ns[EXPLAIN_COMPUTE] - x->own[i];
    double others = 0.0;
    for (uint32_t k = 0; k < p->n_segments; k++) {
        others += k != i ? (double)x->own[k] : 0.0;
    }
    double sum = 0.0;
    int64_t before = 0;
    for (uint32_t k = 0; k < p->n_segments && shared > 0; k++) {
        if (k != i) {
            sum += (double)x->own[k];
            int64_t upto = sum < others ? (int64_t)((double)shared * sum / others) : shared;
            shared_ns[p->segments[k].request->id] += upto - before;
            before = upto;
        }
    }
}
