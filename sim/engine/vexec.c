/* The position of a launch among its kernels. A kernel is two pieces of work of one job: DDR
 * traffic, and then computation, which needs no DDR. */
#include "sim/engine/vexec.h"
#include "sim/core/kernels.h"
#include "sim/engine/ddr.h"

/* A repeated launch goes back to its lead (device_restart). */
const unsigned after_vexec[] = {
    [VEXEC_QUEUED] = 1u << VEXEC_LEAD | 1u << VEXEC_ENDING,
    [VEXEC_LEAD] = 1u << VEXEC_LEAD | 1u << VEXEC_RUNNING | 1u << VEXEC_PAUSED | 1u << VEXEC_ENDING,
    [VEXEC_RUNNING] = 1u << VEXEC_PAUSED | 1u << VEXEC_ENDING | 1u << VEXEC_LEAD,
    [VEXEC_PAUSED] = 1u << VEXEC_RUNNING | 1u << VEXEC_ENDING,
    [VEXEC_ENDING] = 0,
};

static void compute(struct engine *e, struct vexec *v)
{
    job_start_at(e, &v->job, (double)v->compute_ns, 0.0);
    v->compute_ns = 0;
}

void vexec_kernel_begin(struct engine *e, struct vexec *v)
{
    const struct kernel_cost *c = vexec_kernel(v->kernels, v->k);
    SIM_ASSERT(v->op < v->l->pub->op_end && v->k < v->kernels->n && v->phase == VEXEC_RUNNING);
    v->kernel_begin_ns = e->now_ns;
    core_kernel_started(&e->core, v->l);
    int64_t skip_ns = vexec_skip_ns(v);
    v->compute_ns = c->t_ns - (skip_ns > c->load_ns ? skip_ns : c->load_ns);
    if (skip_ns == 0) {
        job_start_at(e, &v->job, (double)c->load_ns, vexec_demand(c));
    } else if (skip_ns < c->load_ns) {
        double left_ns = (double)(c->load_ns - skip_ns);
        job_start(e, &v->job, left_ns, c->bytes * (left_ns / (double)c->load_ns));
    } else {
        compute(e, v);
    }
}

static void report_kernel(struct engine *e, const struct vexec *v)
{
    const struct kernel_cost *c = vexec_kernel(v->kernels, v->k);
    const struct pass *p = v->l->pub->pass;
    struct kernel_record rec = {
        .launch = v->l->pub,
        .op = v->kind,
        .layer = pass_op_layer(p, v->op),
        .index = v->k,
        .begin_ns = v->kernel_begin_ns,
        .end_ns = e->now_ns,
        .isolated_ns = c->t_ns - vexec_skip_ns(v),
        .bytes = c->bytes,
    };
    CORE_OBSERVE(&e->core, kernel, &rec);
}

bool vexec_kernel_ends(struct engine *e, struct vexec *v)
{
    v->job.end_ns = TIME_NEVER_NS;
    if (v->op == v->l->pub->op_end) {
        return true; /* counted by vexec_jump */
    }
    job_progress(e, &v->job);
    SIM_ASSERT(v->job.left_ns < 1.0); /* end_ns was rounded up */
    if (v->compute_ns > 0) {
        compute(e, v);
        return false;
    }
    v->job.left_ns = 0.0;
    vexec_book_present(e, v);
    if (e->kernels_seen) {
        report_kernel(e, v);
    }
    vexec_next(v);
    return true;
}

/* Rows that the present op has left in this launch, including those of the present kernel. */
static uint32_t rows_left(const struct vexec *v)
{
    const struct launch *l = v->l->pub;
    uint32_t rows = v->op == l->op_begin ? l->rows : pass_op_rows(l->pass, v->op);
    SIM_ASSERT(v->k == 0 || rows > v->k * l->chunk_rows);
    return rows - v->k * l->chunk_rows;
}

void vexec_suspend(struct engine *e, struct vexec *v)
{
    struct job *j = &v->job;
    int64_t isolated_ns = vexec_kernel(v->kernels, v->k)->t_ns;
    double left = (double)(isolated_ns - vexec_skip_ns(v));
    if (v->phase != VEXEC_PAUSED) {
        job_progress(e, j);
        left = j->left_ns + (double)v->compute_ns;
    }
    SIM_ASSERT(left >= 0.0 && left <= (double)isolated_ns);
    double done = 1.0 - left / (double)isolated_ns;
    struct full_pass *p = core_pass(v->l->pub->pass);
    struct begun *b = &p->begun[v->job.device];
    p->begun_on |= 1u << v->job.device;
    *b = (struct begun){done < 0.0 ? 0.0 : done, v->op, rows_left(v)};
    v->isolated_ns += units_round(b->frac * (double)isolated_ns); /* minus skip_ns already */
    v->slowed_ns += v->job.slowed_ns;
    v->skip_ns = 0;
}

void vexec_continue(struct vexec *v)
{
    struct full_pass *p = core_pass(v->l->pub->pass);
    const struct begun *b = &p->begun[v->job.device];
    uint32_t on = 1u << v->job.device;
    bool same = (p->begun_on & on) != 0 && b->op == v->op && b->rows == rows_left(v);
    p->begun_on &= ~on; /* no other launch may continue it */
    v->skip_ns = 0;
    v->isolated_ns = 0;
    if (!same) {
        return;
    }
    int64_t isolated_ns = vexec_kernel(v->first, 0)->t_ns;
    v->skip_ns = units_round(b->frac * (double)isolated_ns);
    v->skip_ns =
        v->skip_ns < isolated_ns ? v->skip_ns : isolated_ns - 1; /* at least 1 ns is left */
    SIM_ASSERT(v->skip_ns >= 0 && b->frac >= 0.0 && b->frac <= 1.0);
    v->isolated_ns = -v->skip_ns; /* counted by the suspended launch */
}

/* ---- many kernels at once ---- */

/* Moves over kernels of the present op that end within left_ns. Returns their total time. */
static int64_t over_kernels(struct vexec *v, int64_t left_ns)
{
    const struct kernel_run *r = v->kernels;
    uint32_t k = r->n - 1;
    if (v->k < k) {
        int64_t fit = left_ns / r->full.t_ns;
        k = fit < k - v->k ? v->k + (uint32_t)fit : k;
    }
    int64_t ns = (int64_t)(k - v->k) * r->full.t_ns;
    if (k + 1 == r->n && ns + r->last.t_ns <= left_ns) {
        ns += r->last.t_ns;
        k++;
    }
    vexec_book(v, v->kernels, v->k, k, 1);
    v->k = k;
    if (k == r->n) {
        vexec_next_op(v);
    }
    return ns;
}

/* Moves over whole ops that end within left_ns, without HEAD, from the present one on, which is not
 * the launch's first. Returns their total time. */
static int64_t over_ops(struct vexec *v, int64_t left_ns)
{
    const struct launch *l = v->l->pub;
    const struct layer_ops *layer = &l->pass->layer;
    const uint32_t end = l->op_end - vexec_has_head(l);
    /* Any layer->n consecutive ops take layer_ns, so divide. */
    uint32_t layers = (end - v->op) / layer->n;
    int64_t fit = layers > 0 ? left_ns / v->layer_ns : 0;
    layers = fit < layers ? (uint32_t)fit : layers;
    int64_t ns = layers * v->layer_ns;
    uint32_t op = v->op + layers * layer->n;
    uint32_t more = 0; /* remaining ops, less than a layer */
    for (uint32_t i = 0; i < layer->n; i++) {
        struct kernel_run *r = v->run[layer->kind[(v->place + i) % layer->n]];
        bool fits = more == i && op < end && ns + kernel_run_total_ns(r) <= left_ns;
        if (fits) {
            ns += kernel_run_total_ns(r);
            op++;
            more++;
        }
        if (layers + fits > 0) { /* else the launch may have no such op */
            vexec_book(v, r, 0, r->n, layers + fits);
        }
    }
    vexec_enter(v, op, (v->place + more) % layer->n);
    return ns;
}

int64_t vexec_jump(struct vexec *v, int64_t left_ns)
{
    const struct launch *l = v->l->pub;
    int64_t ns = 0;
    SIM_ASSERT(v->op < l->op_end && left_ns >= 0);
    if (v->op == l->op_begin || v->k > 0) {
        ns = over_kernels(v, left_ns);
    }
    if (v->op > l->op_begin && v->k == 0 && v->op < l->op_end) {
        ns += over_ops(v, left_ns - ns);
    }
    return ns + (v->op < l->op_end ? over_kernels(v, left_ns - ns) : 0);
}
