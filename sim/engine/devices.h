/* Virtual devices (devices.c), and the graphics user that takes one (frames.c). */
#pragma once

#include "sim/engine/engine.h"

extern const struct executor_ops engine_ops; /* executor.c */
/* The core's launch and stop. */
void device_launch(void *exec, struct full_launch *l);
int device_stop(void *exec, struct full_launch *l, struct preempt_spec how);
/* The lead of a launch is over, or its forced end is due. */
void device_event(struct engine *e, struct vexec *v);
/* A kernel of it has ended. */
void device_kernel_ended(struct engine *e, struct vexec *v);
/* The launch's lead begins now, and its first kernel then. */
void device_begin(struct engine *e, struct vexec *v, int64_t begin_ns);

/* A launch whose iterations ran starts over with the next one. */
void device_restart(struct engine *e, struct vexec *v, int64_t lead_ns);
/* The launch leaves the device, as far as it has come. */
void device_end(struct engine *e, struct vexec *v);
/* Takes a launch that has ended off its device. The core is not notified. */
void device_leave(struct engine *e, struct vexec *v);

void frames_init(struct engine *e);
/* So many from now on, the first at once; 0: none. */
void frames_set(struct engine *e, double per_s);
/* The next frame is due; the one that runs is done. */
void frames_due(struct engine *e);
void frames_done(struct engine *e);
/* True when a frame has the device; one that waits for it starts now. */
bool frames_takes(struct engine *e, uint8_t device);
static inline bool frames_take(struct engine *e, uint8_t device)
{
    return e->frames.phase != FRAMES_IDLE && frames_takes(e, device);
}

/* Events of the machine (machine.c). Refuses those that the machine cannot have: 0, or -EINVAL with
 * the run's message. */
int machine_init(struct engine *e);
void machine_event(struct engine *e, uint32_t number);

/* At a kernel boundary: true when a waiting frame takes the device and v is paused. */
bool frames_pause(struct engine *e, struct vexec *v);
