/* --clock cpu: kernels really run, one at a time, on their device's thread while the host waits. On
 * the virtual clock each takes its measured processor time. */
#include "sim/drive/drive_impl.h"

static void run_one(struct job *j)
{
    struct real_launch *r = (struct real_launch *)j;
    SIM_ASSERT(!r->drive->wall && r->begin_ns >= 0 && r->kernel_begin_ns >= r->begin_ns);
    j->status = launch_kernel(r, r->kernel_begin_ns, &r->end_ns);
}

/* Runs the kernel now; its virtual end is in the future. */
static void begin_kernel(struct drive *d, struct real_launch *r)
{
    struct lane *w = &d->devices[r->l->pub->device].lane;
    SIM_ASSERT(!r->over && r->event == EVENTQ_NONE && !launch_done(r));
    r->kernel_begin_ns = d->now_ns;
    int rc = lane_call(w, &r->job, r->drive->hang_ns);
    if (rc != 0) {
        bool hangs = rc == -ETIMEDOUT || rc == -EINTR;
        if (rc == -ECANCELED && d->interrupted_ns > 0) {
            r->over = true; /* the run is interrupted, which is not an error */
        } else {
            core_fail(&d->core, hangs ? rc : -EIO, "device %s: %s", w->name, lane_why(&r->job, rc));
        }
        return;
    }
    SIM_ASSERT(r->end_ns > 0 && r->n_log > 0 && r->log[r->n_log - 1].ns == r->end_ns);
    r->event = drive_later(d, d->now_ns + r->end_ns, DRIVE_EVENT_STEP, r->l->pub->device,
                           (uint64_t)(uintptr_t)r);
}

void cpuclock_start(struct drive *d, struct real_device *v)
{
    struct real_launch *r = v->live[0];
    SIM_ASSERT(v->n_live > 0 && !r->over && r->l->pub->state == LAUNCH_STATE_QUEUED);
    r->job.run = run_one;
    int64_t ready = r->l->pub->submit_ns + core_launch_lead_ns(&d->core, r->l->pub);
    int64_t begin = ready > d->now_ns ? ready : d->now_ns;
    SIM_ASSERT(r->n_log == 0 && r->event == EVENTQ_NONE && r->l->pub->submit_ns <= d->now_ns);
    core_launch_started(&d->core, r->l, begin - d->now_ns);
    r->begin_ns = -1;
    r->event = drive_later(d, begin, DRIVE_EVENT_STEP, r->l->pub->device, (uint64_t)(uintptr_t)r);
}

static void end_at(struct drive *d, struct real_launch *r, enum launch_outcome outcome,
                   int64_t at_ns)
{
    SIM_ASSERT(!r->over && at_ns >= d->now_ns && outcome != LAUNCH_OUTCOME_DONE);
    if (r->event != EVENTQ_NONE) {
        eventq_cancel(&d->queue, r->event);
    }
    r->over = true;
    r->outcome = outcome;
    r->event = drive_later(d, at_ns, DRIVE_EVENT_STEP, r->l->pub->device, (uint64_t)(uintptr_t)r);
}

bool cpuclock_step(struct drive *d, struct real_launch *r)
{
    /* Only the first launch of a device runs; the others end because of a stop. */
    SIM_ASSERT(r->event != EVENTQ_NONE && r->l->exec == r);
    SIM_ASSERT(r->over || d->devices[r->l->pub->device].live[0] == r);
    SIM_ASSERT(r->over || r->begin_ns < 0 || r->n_log > 0);
    r->event = EVENTQ_NONE;
    if (r->over) {
        return true;
    }
    if (r->begin_ns < 0) {
        r->begin_ns = d->now_ns;
        core_kernel_started(&d->core, r->l);
    } else if (launch_done(r)) {
        return true;
    } else if (atomic_load(&r->stop) != 0 && launch_may_yield(r)) {
        r->outcome = LAUNCH_OUTCOME_YIELDED;
        return true;
    }
    begin_kernel(d, r);
    return false;
}

/* Undoes a kernel whose virtual end is in the future. Its inputs are unchanged. */
static void undo_kernel(struct drive *d, struct real_launch *r)
{
    SIM_ASSERT(r->n_log > 0 && r->kernel_rows > 0 && r->event != EVENTQ_NONE);
    SIM_ASSERT(r->log[r->n_log - 1].begin_ns == r->kernel_begin_ns &&
               r->log[r->n_log - 1].ns == r->end_ns && !r->log[r->n_log - 1].stopped);
    if (r->in_span == 0 && r->at_span == 0) {
        r->op--;
        const struct launch *l = r->l->pub;
        uint32_t rows = r->op == l->op_begin ? l->rows : pass_op_rows(l->pass, r->op);
        r->rows_done = rows - r->kernel_rows;
    } else {
        r->rows_done -= r->kernel_rows;
    }
    r->isolated_ns -= r->end_ns;
    SIM_ASSERT(r->isolated_ns >= 0 && r->op >= r->l->pub->op_begin && r->n_log > 0);
    r->lost_ns = d->now_ns - r->kernel_begin_ns;
    SIM_ASSERT(r->lost_ns >= 0 && r->lost_ns <= r->end_ns && !launch_done(r));
    r->log[r->n_log - 1].stopped = true;
}

void cpuclock_stop(struct drive *d, struct real_device *v, struct real_launch *r)
{
    /* Each kind of stop occurs once: the core refuses a second one, or the launch is over. */
    SIM_ASSERT(!r->over && (r->how.now ? r->asked_now_ns : r->asked_ns) == d->now_ns);
    if (r != v->live[0]) {
        SIM_ASSERT(r->n_log == 0 && r->event == EVENTQ_NONE); /* waiting, without an event */
        end_at(d, r, LAUNCH_OUTCOME_WITHDRAWN, d->now_ns);
    } else if (r->begin_ns < 0) {
        end_at(d, r, LAUNCH_OUTCOME_YIELDED, d->now_ns);
    } else if (r->how.now) {
        undo_kernel(d, r);
        end_at(d, r, LAUNCH_OUTCOME_RESET,
               d->now_ns + d->machine->devices[r->l->pub->device].reset_ns);
    } else {
        atomic_store(&r->stop, 1);
    }
}

bool cpuclock_wait(struct drive *d)
{
    if (eventq_empty(&d->queue)) {
        return false;
    }
    SIM_ASSERT(eventq_peek(&d->queue)->time_ns >= d->now_ns);
    d->now_ns = eventq_peek(&d->queue)->time_ns;
    return true;
}
