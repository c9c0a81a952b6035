/* Internals of the explanation: waiting requests (explain_wait.c) and passes on devices
 * (explain_pass.c). */
#pragma once

#include "sim/base/map.h"
#include "sim/metrics/explain.h"

/* Waits are summed for every device, until one serves the request. */
struct explain_wait {
    int64_t ns[EXPLAIN_CAUSE_COUNT];
};

struct explain_in_way {
    uint32_t request_id;
    enum request_class cls;
    int64_t tail_ns[MACHINE_MAX_DEVICES], queue_ns[MACHINE_MAX_DEVICES]; /* of the present wait */
    int64_t tail_sum_ns, queue_sum_ns, shared_sum_ns;
};

struct explain_live {
    const struct request *request;
    int64_t since_ns; /* explained up to here; in service, up to its start */
    bool served, sampled;
    bool evicted; /* KV dropped and not served since */
    /* State at the last event. */
    bool in_pass, decodes, swapped;
    bool left_out; /* since its last service a batch of decodes was formed without it */
    uint32_t prefill_target, preemptions;
    uint32_t kv_before_loss; /* tokens below this position had KV before */
    int64_t ns[EXPLAIN_CAUSE_COUNT];
    struct explain_wait wait[MACHINE_MAX_DEVICES];
    struct explain_in_way *in_way; /* owned */
    size_t n_in_way;
};

/* A time interval of one launch. */
struct explain_piece {
    int64_t begin_ns, end_ns;
    int64_t slow_ns;               /* kernels: actual - isolated */
    enum explain_cause cause;      /* cause of the rest */
    enum explain_cause slow_cause; /* cause of slow_ns */
    enum op_kind op;               /* kernels (cause: compute) */
};

struct explain_launch {
    uint32_t id, first_request, first_token;
    uint64_t work_id; /* of its pass, or of all passes of one prompt (explain_pass.c) */
    enum request_class first_class;
    uint8_t device, graph;
    uint32_t chunk_rows;
    bool running, stopping;
    bool has_class[REQUEST_CLASS_COUNT];
    bool throttled; /* at some time during the present kernel */
    bool shared;    /* another launch ran during the present kernel */
    int64_t start_ns, lead_end_ns, end_ns, last_ns;
    struct explain_piece *v; /* owned */
    size_t n;
};

struct explain {
    struct observer observer;
    const struct machine *machine;
    const struct hwmodel **models; /* owned; indexed by model */
    size_t n_models;               /* 0: no costs */
    uint32_t only;
    bool until_first_token;
    struct map live;
    /* Launches on devices, oldest first; ended ones stay until no launch of their work runs. */
    struct explain_launch *launches;
    size_t n_launches;
    struct resident_key *pending; /* residents that are PENDING */
    size_t n_pending, cap_pending;
    uint32_t loading;                            /* graph blocks among them */
    int64_t frame_since_ns[MACHINE_MAX_DEVICES]; /* TIME_NEVER_NS: no frame on it */
    uint32_t prompt_devices;                     /* bit set of devices that have run a prefill */
    uint8_t last_device;                         /* of the last launch that started */
    double speed;                                /* due to power limits */
    double step[MACHINE_MAX_DEVICES];            /* speed of the device's frequency step */
    uint32_t sampling;                           /* passes that the host samples for */
    struct explanation *done;
    size_t n_done;
};

/* Isolated time of one launch's kernels, by op. */
struct explain_work {
    const struct explain_launch *launch;
    int64_t ns[OP_KIND_COUNT];
};

/* explain_wait.c */
struct explain_live *explain_live_find(const struct explain *x, uint32_t id);
/* Stores the state of its request until the next event. */
void explain_look_at(struct explain_live *v);
/* Adds the time since the last event to the waits of all waiting requests. */
void explain_advance(struct explain *x, int64_t now_ns);
/* The device serves the request from now on: its wait was for this device. */
void explain_wait_settle(struct explain_live *v, uint8_t device);

/* The entry of v for a request that delays it; adds it if it is missing. */
struct explain_in_way *explain_in_way_of(struct explain_live *v, uint32_t request_id,
                                         enum request_class cls);

/* explain_share.c: divides n works into the time that each segment's tokens take themselves. own_ns
 * has room for all segments. */
void explain_share(const struct explain *x, const struct pass *p, const struct explain_work *works,
                   size_t n, int64_t *own_ns);
/* Charges shared_ns of segment i to the other segments, in proportion to their own_ns. */
void explain_share_charge(struct explain_live *v, const struct pass *p, uint32_t i,
                          int64_t shared_ns, const int64_t *own_ns);

/* explain_pass.c */
void explain_launch_started(void *self, int64_t now_ns, const struct launch *l, int64_t lead_ns);
void explain_launch_ended(void *self, int64_t now_ns, const struct launch *l, int64_t isolated_ns,
                          int64_t lost_ns);
void explain_frame(void *self, int64_t now_ns, uint8_t device, enum frame_state to, int64_t due_ns);
void explain_speed(void *self, int64_t now_ns, double speed);
void explain_step(void *self, int64_t now_ns, uint8_t device, double speed);
void explain_kernel(void *self, const struct kernel_record *k);
void explain_preempt_asked(void *self, int64_t now_ns, const struct launch *l);
