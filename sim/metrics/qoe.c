/* Quality of experience (Andes, arXiv 2404.16283): the progress of a reader, compared with a reader
 * whose first token comes when expected and who never waits for another.
 *
 * Token i of an answer is expected at e_i = arrival + ttft + i / speed. The reader begins it at c_i
 * = max(its time, c_(i-1) + 1 / speed), and the first one not before e_0, so tokens that come
 * earlier than they are read have no effect. A token takes 1 / speed to read. Both curves are areas
 * over time until the last one has been read, so that the quality is
 *
 *     1 - sum(c_i - e_i) / sum(end - e_i - 1 / (2 speed)),   end = c_last + 1 / speed */
#include "sim/metrics/metrics_impl.h"

static int64_t token_ns(const struct metrics *m)
{
    return units_ns_from_s(1.0 / m->opt.asked.reader.tokens_per_s);
}

/* Adds a token that comes at out_ns. */
static inline void read_token(struct reading *g, int64_t arrival_ns, int64_t out_ns,
                              int64_t ttft_ns, int64_t each_ns)
{
    int64_t expected_ns = arrival_ns + ttft_ns + (int64_t)g->tokens * each_ns;
    int64_t ready_ns = g->tokens == 0 ? expected_ns : g->read_ns + each_ns;
    g->read_ns = out_ns > ready_ns ? out_ns : ready_ns;
    SIM_ASSERT(g->read_ns >= expected_ns);
    g->late_ns += g->read_ns - expected_ns;
    g->tokens++;
}

void qoe_tokens(struct metrics *m, int64_t now_ns, const struct pass *p)
{
    const int64_t ttft_ns = units_ns_from_s(m->opt.asked.reader.ttft_s);
    const int64_t each_ns = token_ns(m);
    for (uint32_t i = 0; i < p->n_segments; i++) {
        const struct segment *s = &p->segments[i];
        struct live *v = metrics_live(m, s->request);
        for (uint32_t k = 0; v != NULL && k < s->emitted_tokens; k++) {
            read_token(&v->reading, s->request->arrival_ns, now_ns, ttft_ns, each_ns);
        }
    }
}

void qoe_repeated(struct metrics *m, const struct repeat_record *r)
{
    const int64_t ttft_ns = units_ns_from_s(m->opt.asked.reader.ttft_s);
    const int64_t each_ns = token_ns(m);
    const struct pass *p = r->launch->pass;
    int64_t out_ns = r->begin_ns;
    for (uint32_t k = 0; k < r->n; k++) {
        out_ns += r->gap_ns[k];
        for (uint32_t i = 0; i < p->n_segments; i++) {
            struct live *v = metrics_live(m, p->segments[i].request);
            if (v != NULL) {
                read_token(&v->reading, v->request->arrival_ns, out_ns, ttft_ns, each_ns);
            }
        }
    }
}

double qoe_of(const struct metrics *m, const struct live *v)
{
    if (v == NULL || v->reading.tokens == 0) {
        return METRIC_UNDEFINED;
    }
    const struct reading *g = &v->reading;
    const double each = (double)token_ns(m);
    const double n = g->tokens;
    int64_t first_ns = v->request->arrival_ns + units_ns_from_s(m->opt.asked.reader.ttft_s);
    double all_ns = (double)(g->read_ns - first_ns) + each;
    double expected = n * (all_ns - each * (n - 1.0) / 2.0 - each / 2.0);
    return 1.0 - (double)g->late_ns / expected;
}
