/* Inside the timeline: its state, and the machine's half (timeline_machine.c). */
#ifndef SIM_METRICS_TIMELINE_IMPL_H
#define SIM_METRICS_TIMELINE_IMPL_H

#include "sim/metrics/idmap.h"
#include "sim/metrics/timeline.h"
#include "sim/metrics/trace_events.h"

enum timeline_phase { PHASE_QUEUED, PHASE_PREFILL, PHASE_DECODE, PHASE_RECOMPUTE };

struct timeline_request {
    uint8_t phase;
    bool reactive;
    bool drawn; /* its first kernel is */
    uint32_t preemptions;
};

/* What runs on one lane of a device. */
struct timeline_lane {
    bool used; /* its track has a name */
    uint32_t launch_id;
    bool running;
    bool has_newcomers;  /* some request of it has no kernel yet */
    int64_t lead_end_ns; /* or TIME_NEVER_NS when the lead is drawn */
    int64_t last_ns;     /* end of what was drawn last */
    int64_t asked_ns;    /* a preemption not drawn yet, or TIME_NEVER_NS */
};

/* Values of one instant are written when time has moved on, and only if they differ. */
struct timeline_counter {
    const char *name;
    const char *keys[2]; /* the second may be NULL */
    double value[2], written[2];
    int64_t at_ns;
    bool pending, any;
};

struct timeline_channel { /* FIFO, head first */
    struct timeline_item {
        struct resident_key key;
        int64_t since_ns;
    } * v;
    size_t n, cap;
    int64_t free_ns; /* when the item before the head was through */
};

struct timeline {
    struct trace_events out;
    struct observer observer;
    const struct machine *machine;
    struct idmap requests;
    struct timeline_lane lanes[MACHINE_MAX_DEVICES][TIMELINE_LANES];
    struct timeline_channel loader, compiler;
    struct timeline_counter ddr, live, watts[OBSERVER_DOMAINS];
    char watts_names[OBSERVER_DOMAINS][32];
    int64_t ddr_end_ns, frame_begin_ns;
    bool has_frames;
    uint32_t n_live[REQUEST_CLASS_COUNT];
};

void timeline_track_name(struct timeline *t, uint32_t pid, uint32_t tid, const char *name,
                         uint32_t order);
void timeline_instant(struct timeline *t, uint32_t pid, uint32_t tid, int64_t now_ns,
                      const char *name);
void timeline_counter_set(struct timeline *t, struct timeline_counter *c, int64_t now_ns, double a,
                          double b);

/* timeline_machine.c */
void timeline_machine_begin(struct timeline *t);
void timeline_launch_started(void *self, int64_t now_ns, const struct launch *l, int64_t lead_ns);
void timeline_launch_ended(void *self, int64_t now_ns, const struct launch *l, int64_t solo_ns,
                           int64_t lost_ns);
void timeline_preempt_asked(void *self, int64_t now_ns, const struct launch *l);
void timeline_frame(void *self, int64_t now_ns, uint8_t device, enum frame_state to,
                    int64_t due_ns);
void timeline_kernel(void *self, const struct kernel_record *k);
void timeline_resident(void *self, int64_t now_ns, struct resident_key key, enum resident_state to);
/* The run is over: closes what is open. */
void timeline_machine_end(struct timeline *t, int64_t now_ns);

#endif
