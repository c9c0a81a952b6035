/* A launch that co-runs with one other job. A decode batch meets the same few prefill kernels again
 * and again, so durations of co-running pieces are cached. */
#include "sim/base/hash.h"
#include "sim/engine/ddr.h"
#include "sim/engine/vexec.h"

/* A piece of work: the DDR traffic of a kernel, or its computation. */
struct piece {
    uint64_t key[4];        /* bytes, isolated ns, the other job's demand, both devices */
    double demand;          /* demand of the piece */
    double demands, shares; /* sums over both jobs */
    double rate, others_rate;
    int64_t lasts_ns;
    uint64_t passed; /* intervals not reported yet */
};

/* The sort of a piece: kind of op, full or last kernel, traffic or computation. The cache has one
 * piece for each pair of sorts of the two jobs. */
#define SORTS (OP_KIND_COUNT * 4)
struct coruns {
    struct piece pieces[2][SORTS + 1][SORTS]; /* [launch's index in e->jobs][other's][launch's] */
};

void corun_init(struct engine *e)
{
    e->coruns = arena_alloc(&e->core.arena, sizeof *e->coruns);
}

static inline uint32_t sort_of(const struct vexec *v, bool computes)
{
    return v->kind * 4u + (v->k + 1 == v->kernels->n ? 2u : 0u) + computes;
}

static inline void report(struct engine *e, struct piece *x)
{
    ddr_report(e, x->passed, x->lasts_ns, x->demands, x->shares);
    x->passed = 0;
}

void corun_report(struct engine *e)
{
    for (uint32_t i = 0; i < 2 * (SORTS + 1) * SORTS; i++) {
        report(e, &e->coruns->pieces[i % 2][i / 2 / SORTS][i / 2 % SORTS]);
    }
}

/* Computes an entry. Equal demands have equal shares. Not inline, to save registers of the caller.
 */
__attribute__((noinline)) static void fill(struct engine *e, struct piece *x, const uint64_t key[4])
{
    const uint32_t i = key[3] & 1;
    double bytes, demand[2];
    memcpy(&bytes, &key[0], sizeof bytes);
    memcpy(&demand[1 - i], &key[2], sizeof demand[1 - i]);
    /* Equals vexec_demand. */
    demand[i] = bytes > 0.0 ? bytes / units_s_from_ns((int64_t)key[1]) : 0.0;
    report(e, x);
    if (demand[i] != x->demand || x->key[2] != key[2] || x->key[3] != key[3]) {
        struct ddr_sums sums;
        double rate[2];
        ddr_share_out(e, demand, &sums, rate);
        *x = (struct piece){.demand = demand[i],
                            .demands = sums.demand,
                            .shares = sums.share,
                            .rate = rate[i],
                            .others_rate = rate[1 - i]};
    }
    SIM_ASSERT(x->rate > 0.0);
    double ns = (double)key[1] / x->rate;
    memcpy(x->key, key, sizeof x->key);
    x->lasts_ns = ns < (double)TIME_LAST_NS ? units_ceil(ns) : TIME_LAST_NS;
}

/* Moves to the launch's next piece: computation, or the next kernel. Returns its ns. */
static inline uint64_t go_on(struct engine *e, struct vexec *v, int64_t now_ns, uint64_t *bytes)
{
    const int64_t ns = v->compute_ns;
    if (ns > 0) {
        *bytes = 0;
        v->compute_ns = 0;
        return (uint64_t)ns;
    }
    vexec_book_present(e, v);
    vexec_next(v);
    const struct kernel_cost *c = vexec_kernel(v->kernels, v->k);
    v->kernel_begin_ns = now_ns;
    v->compute_ns = c->t_ns - c->load_ns;
    *bytes = hash_bits(c->bytes);
    return (uint64_t)c->load_ns;
}

/* Starts the piece now. */
static void begin(struct engine *e, struct job *j, const struct piece *x)
{
    j->left_ns = (double)x->key[1];
    j->demand_bytes_per_s = x->demand;
    j->rate = x->rate;
    j->updated_ns = e->now_ns;
    j->end_ns = e->now_ns + x->lasts_ns;
    e->ddr_since_ns = e->now_ns;
    e->ddr_demand = x->demands;
    e->ddr_share = x->shares;
}

void corun_step(struct engine *e, struct vexec *v, struct job *other, bool passes,
                int64_t before_ns)
{
    const uint32_t i = &v->job == e->jobs[1];
    const uint32_t others =
        other->exec == NULL ? SORTS : sort_of(other->exec, other->demand_bytes_per_s == 0.0);
    struct piece *pieces = e->coruns->pieces[i][others];
    const uint64_t demand = hash_bits(other->demand_bytes_per_s);
    const uint64_t devices =
        (uint64_t)e->jobs[0]->device << 9 | (uint64_t)e->jobs[1]->device << 1 | i;
    double left_ns = other->left_ns, rate = other->rate;
    int64_t updated_ns = other->updated_ns;
    int64_t now_ns = v->job.end_ns;
    struct piece *x;
    e->now_ns = now_ns;
    ddr_report(e, 1, now_ns - e->ddr_since_ns, e->ddr_demand, e->ddr_share);
    for (;;) {
        bool computes = v->compute_ns > 0;
        uint64_t bytes;
        uint64_t ns = go_on(e, v, now_ns, &bytes);
        x = &pieces[sort_of(v, computes)];
        if (((x->key[0] ^ bytes) | (x->key[1] ^ ns) | (x->key[2] ^ demand) |
             (x->key[3] ^ devices)) != 0) {
            fill(e, x, (uint64_t[]){bytes, ns, demand, devices});
        }
        if (x->others_rate != rate) { /* like job_progress */
            double done = (double)(now_ns - updated_ns) * rate;
            left_ns -= done < left_ns ? done : left_ns;
            updated_ns = now_ns;
            rate = x->others_rate;
        }
        int64_t end_ns = now_ns + x->lasts_ns;
        /* With a margin, because the other job's end is rounded. */
        bool first = left_ns * (1.0 - 1e-9) > (double)(end_ns - updated_ns) * rate + 1.0;
        if (end_ns >= before_ns || !first || !passes || (v->compute_ns == 0 && vexec_at_last(v))) {
            break;
        }
        now_ns = end_ns;
        x->passed++;
    }
    e->now_ns = now_ns;
    begin(e, &v->job, x);
    other->left_ns = left_ns;
    other->rate = rate;
    other->updated_ns = updated_ns;
    other->end_ns = job_end_ns(other);
}
