/* --clock wall: every device's thread runs its launches without the host, which sleeps until one of
 * them ends or an event is due. */
#include <time.h>

#include "sim/drive/drive_impl.h"

static void run_launch(struct job *j)
{
    struct real_launch *r = (struct real_launch *)j;
    struct drive *d = r->drive;
    SIM_ASSERT(d->wall && r->n_log == 0 && !r->over && launch_position_ok(r));
    r->begin_ns = drive_wall_ns(d);
    r->outcome = LAUNCH_OUTCOME_DONE;
    while (!launch_done(r)) {
        int64_t took;
        int64_t now = drive_wall_ns(d);
        SIM_ASSERT(now >= r->begin_ns);
        d->devices[r->l->pub->device].lane.began_ns = now + d->epoch_ns;
        j->status = launch_kernel(r, now, &took);
        if (j->status == -ECANCELED) {
            j->status = 0;
            r->lost_ns = took;
            r->outcome = LAUNCH_OUTCOME_RESET;
            break;
        }
        if (j->status != 0) {
            break;
        }
        if (!launch_done(r) && atomic_load(&r->kill) != 0) {
            r->outcome = LAUNCH_OUTCOME_RESET; /* between kernels: no work is lost */
            break;
        }
        if (!launch_done(r) && atomic_load(&r->stop) != 0 && launch_may_yield(r)) {
            r->outcome = LAUNCH_OUTCOME_YIELDED;
            break;
        }
    }
    r->end_ns = drive_wall_ns(d);
    SIM_ASSERT(r->end_ns >= r->begin_ns);
    SIM_ASSERT(j->status != 0 || launch_done(r) == (r->outcome == LAUNCH_OUTCOME_DONE));
}

void wallclock_launch(struct drive *d, struct real_device *v, struct real_launch *r)
{
    r->job.run = run_launch;
    SIM_ASSERT(drive_on_host(d) && v->live[v->n_live - 1] == r); /* the newest is the last */
    if (v->n_live == 1) {
        core_launch_started(&d->core, r->l, 0);
        core_kernel_started(&d->core, r->l);
    }
    lane_post(&v->lane, &r->job);
}

static void end_now(struct drive *d, struct real_launch *r, enum launch_outcome outcome)
{
    SIM_ASSERT(!r->over && r->n_log == 0 && r->rows_done == 0); /* its thread has not seen it */
    r->over = true;
    r->outcome = outcome;
    r->begin_ns = r->end_ns = drive_wall_ns(d);
    drive_lock(d);
    r->job.next = d->done.head; /* the host itself will handle it */
    d->done.head = &r->job;
    d->done.tail = d->done.tail == NULL ? &r->job : d->done.tail;
    SIM_ASSERT(lane_list_ok(&d->done));
    drive_unlock(d);
}

void wallclock_stop(struct drive *d, struct real_device *v, struct real_launch *r)
{
    SIM_ASSERT(drive_on_host(d) && r->l->pub->stop_requested);
    SIM_ASSERT((r->how.now ? r->asked_now_ns : r->asked_ns) >= r->submit_ns);
    if (lane_withdraw(&v->lane, &r->job)) {
        bool queued = r->l->pub->state == LAUNCH_STATE_QUEUED;
        end_now(d, r, queued ? LAUNCH_OUTCOME_WITHDRAWN : LAUNCH_OUTCOME_YIELDED);
    } else if (r->how.now) {
        atomic_store(&r->kill, 1);
        if (v->engine->interrupt != NULL) {
            v->engine->interrupt(v->handle);
        }
    } else {
        atomic_store(&r->stop, 1);
    }
}

bool wallclock_wait(struct drive *d)
{
    struct core *c = &d->core;
    SIM_ASSERT(drive_on_host(d) && d->instant.head == NULL); /* the last instant handled all */
    int64_t before_ns = d->now_ns;
    drive_lock(d);
    for (;;) {
        int64_t now = drive_wall_ns(d);
        bool due = !eventq_empty(&d->queue) && eventq_peek(&d->queue)->time_ns <= now;
        const struct lane *w = lane_hung(d);
        if (w != NULL) {
            core_fail(c, -ETIMEDOUT, "%s: its work does not come back, after %.0f s", w->name,
                      units_s_from_ns(w == &d->compiler ? d->compile_ns : d->hang_ns));
        } else if (now > d->limit_ns) {
            core_fail(c, -ETIMEDOUT, "given up after %.0f s of real time",
                      units_s_from_ns(d->limit_ns));
        }
        if (c->result->status != 0 || due || d->done.head != NULL || drive_interrupted(d)) {
            SIM_ASSERT(lane_list_ok(&d->done));
            d->instant = d->done;
            d->done = (struct job_list){NULL, NULL};
            break;
        }
        int64_t at = now + DRIVE_LOOK_NS;
        if (!eventq_empty(&d->queue) && eventq_peek(&d->queue)->time_ns < at) {
            at = eventq_peek(&d->queue)->time_ns;
        }
        struct timespec until = d->host->after(at - now);
        drive_wait(d, &d->ended, &until);
    }
    drive_unlock(d);
    d->now_ns = drive_wall_ns(d); /* read after the end of all jobs of this instant */
    SIM_ASSERT(d->now_ns >= before_ns);
    return c->result->status == 0;
}

/* Removes and returns the lane's next job, because its end may free its memory. */
static struct job *take(struct job_list *all, const struct lane *w)
{
    struct job **at = &all->head;
    while (*at != NULL && (*at)->lane != w) {
        at = &(*at)->next;
    }
    struct job *j = *at;
    if (j != NULL) {
        *at = j->next;
    }
    return j;
}

struct job *wallclock_ended(struct drive *d)
{
    struct job *j = NULL;
    for (uint32_t turn = 0; turn < d->machine->n_devices + 2 && j == NULL; turn++) {
        j = take(&d->instant, turn < d->machine->n_devices    ? &d->devices[turn].lane
                              : turn == d->machine->n_devices ? &d->loader
                                                              : &d->compiler);
    }
    SIM_ASSERT(j != NULL || d->instant.head == NULL); /* each job was of one of these lanes */
    return j;
}
