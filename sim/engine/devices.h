/* Virtual devices (devices.c), and frames of the screen on one of them (frames.c). */
#pragma once

#include "sim/engine/engine.h"

extern const struct executor_ops engine_ops; /* executor.c */
/* executor_ops.launch and stop. */
void device_launch(void *exec, struct full_launch *l);
int device_stop(void *exec, struct full_launch *l, struct preempt_spec how);
/* Handles the end of a launch's lead, or its forced end. */
void device_event(struct engine *e, struct vexec *v);
/* Handles the end of a kernel. */
void device_kernel_ended(struct engine *e, struct vexec *v);
/* Restarts a launch for the next iteration, after repeat_run. */
void device_restart(struct engine *e, struct vexec *v, int64_t lead_ns);
/* Removes an ended launch from its device, without notifying the core. */
void device_leave(struct engine *e, struct vexec *v);

void frames_init(struct engine *e);
/* Sets the frame rate from now on; the first frame is due at once. 0: no frames. */
void frames_set(struct engine *e, double per_s);
/* Handle the instants at which the next frame is due, and at which the running one is done. */
void frames_due(struct engine *e);
void frames_done(struct engine *e);
/* Starts a frame that waits for the device. Returns whether a frame has the device. */
bool frames_takes(struct engine *e, uint8_t device);
static inline bool frames_take(struct engine *e, uint8_t device)
{
    return e->frames.phase != FRAMES_IDLE && frames_takes(e, device);
}

/* Events of the machine (machine.c). machine_init returns -EINVAL with the run's message if the
 * machine cannot have one of them. */
int machine_init(struct engine *e);
void machine_event(struct engine *e, uint32_t number);

/* At a kernel boundary: pauses v if a frame waits for its device. Returns whether it did. */
bool frames_pause(struct engine *e, struct vexec *v);
