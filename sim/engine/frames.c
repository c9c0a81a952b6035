/* The screen: a frame is due every period on one device. It waits until the running kernel ends,
 * because GPUs switch contexts between kernels. Then it has the device to itself, but its traffic
 * shares the DDR. The interrupted launch continues at its next kernel. If a frame is not done when
 * the next one is due, the next one is missed, and the screen shows the old picture again. */
#include "sim/engine/ddr.h"
#include "sim/engine/devices.h"
#include "sim/engine/power.h"
#include "sim/engine/vexec.h"

/* Computed from the number, so that rounding of the period does not accumulate. */
static int64_t due_ns(const struct engine *e, uint64_t number)
{
    const struct frames *f = &e->frames;
    return f->from_ns + (int64_t)llround((double)number * 1e9 / f->per_s);
}

void frames_init(struct engine *e)
{
    const struct sim_frames *s = &e->core.setup->frames;
    e->frames.job = e->frames.next = job_of(EVENT_FRAME, s->device, NULL);
    frames_set(e, s->per_s);
}

void frames_set(struct engine *e, double per_s)
{
    struct frames *f = &e->frames;
    job_wait_over(e, &f->next);
    f->per_s = per_s;
    f->from_ns = e->now_ns;
    f->number = 0;
    if (per_s > 0.0) {
        job_wait(e, &f->next, due_ns(e, f->number));
    }
}

static void report(struct engine *e, enum frame_state to)
{
    CORE_OBSERVE(&e->core, frame, e->now_ns, e->frames.job.device, to, e->frames.due_ns);
}

static void begin(struct engine *e)
{
    struct frames *f = &e->frames;
    SIM_ASSERT(f->phase == FRAMES_WAITING && !f->job.active && f->due_ns <= e->now_ns);
    f->phase = FRAMES_RUNNING;
    ddr_join(e, &f->job);
    job_start(e, &f->job, (double)e->core.setup->frames.device_ns, e->core.setup->frames.bytes);
    report(e, FRAME_STARTED);
}

bool frames_takes(struct engine *e, uint8_t device)
{
    struct frames *f = &e->frames;
    if (f->job.device != device) {
        return false;
    }
    if (f->phase == FRAMES_WAITING) {
        begin(e);
    }
    return true;
}

bool frames_pause(struct engine *e, struct vexec *v)
{
    if (e->frames.phase != FRAMES_WAITING || e->frames.job.device != v->job.device) {
        return false;
    }
    ddr_leave(e, &v->job);
    BECOMES(vexec, v->phase, VEXEC_PAUSED);
    power_device(e, v->job.device);
    begin(e);
    return true;
}

void frames_due(struct engine *e)
{
    struct frames *f = &e->frames;
    int64_t now_due = due_ns(e, f->number);
    SIM_ASSERT(now_due == e->now_ns && due_ns(e, f->number + 1) > now_due);
    f->number++;
    job_wait(e, &f->next, due_ns(e, f->number));
    if (f->phase != FRAMES_IDLE) {
        report(e, FRAME_MISSED);
        return;
    }
    f->phase = FRAMES_WAITING;
    f->due_ns = now_due;
    struct vdevice *d = &e->devices[f->job.device];
    struct vexec *v = d->n_running > 0 ? d->launches[0] : NULL; /* serial device */
    if (v == NULL || v->phase == VEXEC_LEAD) {
        begin(e);
        return;
    }
    if (v->phase != VEXEC_RUNNING) {
        return; /* it is ending; the frame starts after it */
    }
    ddr_touch(e); /* a frame starts a new interval, for which bytes are rounded */
    /* A kernel that starts at this instant does not delay the frame. */
    if (v->kernel_begin_ns == e->now_ns) {
        (void)frames_pause(e, v);
    }
}

void frames_done(struct engine *e)
{
    struct frames *f = &e->frames;
    SIM_ASSERT(f->phase == FRAMES_RUNNING);
    ddr_leave(e, &f->job);
    f->phase = FRAMES_IDLE;
    report(e, FRAME_DONE);
    struct vdevice *d = &e->devices[f->job.device];
    if (d->n_running > 0 && d->launches[0]->phase == VEXEC_PAUSED) {
        struct vexec *v = d->launches[0];
        BECOMES(vexec, v->phase, VEXEC_RUNNING);
        ddr_join(e, &v->job);
        vexec_kernel_begin(e, v);
        power_device(e, f->job.device);
    }
}
