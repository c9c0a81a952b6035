/* What a real run says about itself. */
#include <math.h>
#include <stdlib.h>

#include "sim/drive/drive_impl.h"

void drive_times_add(struct drive_times *t, int64_t ns)
{
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
}

struct drive_times drive_times_screened(const struct drive_times *t)
{
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
    return out;
}

/* Observers hear of kernels when their launch ends: only then may the host look. What one takes
 * alone nobody knows. */
static void observe_kernel(struct drive *d, const struct launch *l, const struct drive_kernel *k,
                           uint32_t index)
{
    struct kernel_record rec = {.launch = l,
                                .op = (enum op_kind)k->op,
                                .layer = k->layer,
                                .index = index,
                                .begin_ns = k->begin_ns,
                                .end_ns = k->begin_ns + k->ns,
                                .solo_ns = k->ns};
    if (!k->stopped) {
        CORE_OBSERVE(&d->core, kernel, &rec);
    }
}

void report_launch(struct drive *d, const struct real_launch *r)
{
    struct drive_report *out = d->report;
    const struct launch *l = r->l->pub;
    if (r->n_log > 0 && r->on_idle && d->wall) {
        drive_times_add(&out->submit, r->begin_ns - r->submit_ns);
    }
    if (r->asked_ns > 0 && !r->over && r->outcome != LAUNCH_OUTCOME_DONE) {
        drive_times_add(r->outcome == LAUNCH_OUTCOME_RESET ? &out->reset : &out->stop[l->yield],
                        (d->wall ? r->end_ns : d->now_ns) - r->asked_ns);
    }
    out->kernels =
        xroom(out->kernels, out->n_kernels + r->n_log, &out->cap_kernels, sizeof *out->kernels);
    for (uint32_t i = 0; i < r->n_log; i++) {
        out->busy_ns[l->device] += r->log[i].ns;
        out->kernels[out->n_kernels++] = r->log[i];
        observe_kernel(d, l, &r->log[i], i);
    }
}

void report_resident(struct drive *d, const struct service_job *j)
{
    struct drive_report *out = d->report;
    out->residents = xgrow(out->residents, out->n_residents, sizeof *out->residents);
    out->residents[out->n_residents++] =
        (struct drive_resident_time){.work = j->work, .size = j->size, .ns = j->took_ns};
}

void drive_report_fini(struct drive_report *r)
{
    free(r->kernels);
    free(r->residents);
    *r = (struct drive_report){0};
}
