/* The report of a real run: its times, kernels and residents. */
#include "sim/drive/drive_impl.h"

/* Octaves sum up to the totals: exactly for n, within rounding for sums. */
static bool times_ok(const struct drive_times *t)
{
    uint64_t n = 0;
    double sum_ns = 0.0;
    for (int i = 0; i < DRIVE_OCTAVES; i++) {
        n += t->octave[i].n;
        sum_ns += t->octave[i].sum_ns;
    }
    return n == t->n && fabs(sum_ns - t->sum_ns) <= 1e-9 * t->sum_ns &&
           t->max_ns <= t->sum_ns * (1.0 + 1e-9) &&
           t->sum_sq <= t->max_ns * t->sum_ns * (1.0 + 1e-9);
}

void drive_times_add(struct drive_times *t, int64_t ns)
{
    SIM_ASSERT(ns >= 0);
    double x = (double)ns;
    t->n++;
    t->sum_ns += x;
    t->sum_sq += x * x;
    t->max_ns = x > t->max_ns ? x : t->max_ns;
    int i = ns > 0 ? ilogb(x) : 0;
    i = i < DRIVE_OCTAVES ? i : DRIVE_OCTAVES - 1;
    t->octave[i].n++;
    t->octave[i].sum_ns += x;
    t->octave[i].sum_sq += x * x;
    SIM_ASSERT(i == 0 || x >= ldexp(1.0, i));
    SIM_ASSERT(x < ldexp(2.0, i) || i + 1 == DRIVE_OCTAVES);
    SIM_ASSERT(times_ok(t));
}

struct drive_times drive_times_screened(const struct drive_times *t)
{
    SIM_ASSERT(times_ok(t));
    struct drive_times out = {0};
    uint64_t below = 0;
    int last = DRIVE_OCTAVES;
    for (int i = 0; i < DRIVE_OCTAVES && i <= last; i++) {
        out.n += t->octave[i].n;
        out.sum_ns += t->octave[i].sum_ns;
        out.sum_sq += t->octave[i].sum_sq;
        below += t->octave[i].n;
        last = last == DRIVE_OCTAVES && 2 * below > t->n ? i + 3 : last;
    }
    SIM_ASSERT(out.n <= t->n && 2 * out.n >= t->n); /* all up to the median */
    return out;
}

/* Notifies observers of a kernel after its launch has ended, because the host may read the times
 * only then. The isolated time of a real kernel is unknown; the record has the measured one. */
static void observe_kernel(struct drive *d, const struct launch *l, const struct drive_kernel *k,
                           uint32_t index)
{
    SIM_ASSERT(k->launch == l->id && k->ns > 0 && k->device == l->device);
    struct kernel_record rec = {.launch = l,
                                .op = (enum op_kind)k->op,
                                .layer = k->layer,
                                .index = index,
                                .begin_ns = k->begin_ns,
                                .end_ns = k->begin_ns + k->ns,
                                .isolated_ns = k->ns};
    if (!k->stopped) {
        CORE_OBSERVE(&d->core, kernel, &rec);
    }
}

/* Records the sequences of a kernel's rows. Layers of one launch share the list. */
static void name_segments(struct drive_report *out, const struct pass *p, struct drive_kernel *k)
{
    if (k->op != OP_MHA && k->op != OP_LAYER) {
        return;
    }
    for (size_t i = out->n_kernels; i-- > 0 && out->kernels[i].launch == k->launch;) {
        const struct drive_kernel *like = &out->kernels[i];
        SIM_ASSERT(like->shape_rows == p->shape.rows);
        if (like->n_segments > 0 && like->row0 == k->row0 && like->rows == k->rows) {
            k->segment0 = like->segment0;
            k->n_segments = like->n_segments;
            return;
        }
    }
    out->segments = xroom(out->segments, out->n_segments + p->n_segments, &out->cap_segments,
                          sizeof *out->segments);
    k->segment0 = (uint32_t)out->n_segments;
    uint32_t rows = 0;
    uint32_t row = 0;
    for (uint32_t i = 0; i < p->n_segments; i++) {
        const struct segment *s = &p->segments[i];
        uint32_t end = row + s->n_tokens;
        uint32_t from = row > k->row0 ? row : k->row0;
        uint32_t to = end < k->row0 + k->rows ? end : k->row0 + k->rows;
        if (to > from) {
            out->segments[out->n_segments++] = (struct drive_segment){
                to - from, s->first_token + (to - row), s->role == SEGMENT_PREFILL};
            rows += to - from;
        }
        row = end;
    }
    k->n_segments = (uint32_t)out->n_segments - k->segment0;
    SIM_ASSERT(row == p->shape.rows && rows == k->rows); /* each row is in one sequence */
}

/* isolated_ns is the sum of the launch's kernels, except a stopped one. */
static bool log_ok(const struct real_launch *r)
{
    int64_t isolated_ns = 0;
    for (uint32_t i = 0; i < r->n_log; i++) {
        SIM_ASSERT(!r->log[i].stopped || i + 1 == r->n_log);
        isolated_ns += r->log[i].stopped ? 0 : r->log[i].ns;
    }
    return isolated_ns == r->isolated_ns && r->n_log <= r->cap_log;
}

void report_launch(struct drive *d, const struct real_launch *r)
{
    struct drive_report *out = d->report;
    const struct launch *l = r->l->pub;
    SIM_ASSERT(drive_on_host(d) && log_ok(r) && r->lost_ns >= 0);
    if (r->n_log > 0 && r->on_idle && d->wall) {
        drive_times_add(&out->submit, r->begin_ns - r->submit_ns);
    }
    bool reset = r->outcome == LAUNCH_OUTCOME_RESET;
    int64_t asked_ns = reset ? r->asked_now_ns : r->asked_ns;
    if (asked_ns > 0 && !r->over && r->outcome != LAUNCH_OUTCOME_DONE) {
        drive_times_add(reset ? &out->reset : &out->stop[l->yield],
                        (d->wall ? r->end_ns : d->now_ns) - asked_ns);
    }
    out->kernels =
        xroom(out->kernels, out->n_kernels + r->n_log, &out->cap_kernels, sizeof *out->kernels);
    for (uint32_t i = 0; i < r->n_log; i++) {
        out->busy_ns[l->device] += r->log[i].ns;
        name_segments(out, l->pass, &r->log[i]);
        bool attends = r->log[i].op == OP_MHA || r->log[i].op == OP_LAYER;
        SIM_ASSERT(attends == (r->log[i].n_segments > 0));
        out->kernels[out->n_kernels++] = r->log[i];
        observe_kernel(d, l, &r->log[i], i);
    }
}

void report_resident(struct drive *d, const struct service_job *j)
{
    struct drive_report *out = d->report;
    SIM_ASSERT(j->took_ns >= 0 && j->size > 0.0);
    LIST_ADD(out->residents, out->n_residents,
             (struct drive_resident_time){.work = j->work, .size = j->size, .ns = j->took_ns});
}

void drive_report_fini(struct drive_report *r)
{
    free(r->kernels);
    free(r->segments);
    free(r->residents);
    *r = (struct drive_report){0};
}
