/* Chooses the device of a policy that runs on one device. */
#pragma once

#include <errno.h>

#include "sim/api/policy.h"
#include "sim/base/base.h"

/* Choices of a `device` parameter, in the order of place_device. */
static const char *const place_choices[] = {"auto", DEVICE_KINDS(DEVICE_KIND_NAME_) NULL};

/* Index of the chosen device; auto takes the iGPU, else the first device that can run whole passes.
 * Returns -ENODEV when the machine has none of that kind. Returns -EPERM when it runs only compiled
 * attention of one prompt length, so that no decode could ever run there. */
static inline int place_device(const struct machine *m, int64_t choice)
{
    SIM_ASSERT(choice >= 0 && choice + 1 < (int64_t)(sizeof place_choices / sizeof *place_choices));
    int d = machine_find(m, choice == 0 ? DEVICE_KIND_IGPU : (enum device_kind)(choice - 1));
    for (uint32_t i = 0; choice == 0 && d < 0 && i < m->n_devices; i++) {
        d = m->devices[i].static_attention ? -1 : (int)i;
    }
    if (d < 0) {
        return -ENODEV;
    }
    SIM_ASSERT(choice == 0 || m->devices[d].kind == (enum device_kind)(choice - 1));
    return m->devices[d].static_attention ? -EPERM : d;
}

/* Launches the rest of a pass on one device. */
static inline int place_whole(struct sched *s, struct pass *p, uint8_t device,
                              enum yield_point yield)
{
    SIM_ASSERT(p->n_launches == 0 && p->op < p->n_ops); /* it is READY */
    struct launch_spec spec = sched_launch_rest(s, p, device, yield);
    return sched_launch(s, &spec, NULL);
}

/* For policies that divide prompts into static chunks of an NPU. Returns 0, or -EINVAL with a
 * message if the NPU has dynamic shapes. */
static inline int place_needs_chunks(struct sched *s, int npu)
{
    if (s->machine->devices[npu].chunk_rows > 0) {
        return 0;
    }
    sched_give_up(s, "it divides prompts into static chunks of the NPU, and this NPU takes any "
                     "number of rows (its runtime has chunk_rows 0; where the SoC file has "
                     "another one, take it, as on ryzen-ai-max-395: `--set "
                     "soc.devices.npu.runtime=fastflowlm`)");
    return -EINVAL;
}
