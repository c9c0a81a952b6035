/* Internals of the timeline: its state, and the machine's tracks (timeline_machine.c). */
#pragma once

#include "sim/base/map.h"
#include "sim/metrics/timeline.h"
#include "sim/metrics/trace_events.h"

enum timeline_phase { PHASE_QUEUED, PHASE_PREFILL, PHASE_DECODE, PHASE_RECOMPUTE };

struct timeline_request {
    uint8_t phase;
    bool reactive;
    bool drawn; /* its first kernel was drawn, or need not be */
    uint32_t preemptions;
    uint32_t session, turn, input_tokens, reused_tokens;
};

/* The launch on one lane of a device. */
struct timeline_lane {
    bool used; /* its track has been named */
    bool running;
    uint32_t launch_id, pass_id, request, sequences, rows;
    bool reactive;
    const char *name;
    int64_t lead_ns;
    bool has_newcomers;  /* a request of its pass has had no kernel yet */
    int64_t lead_end_ns; /* TIME_NEVER_NS: the lead is drawn */
    int64_t last_ns;     /* end of the last drawn slice */
    int64_t asked_ns; /* when a preemption was requested that is not drawn yet, or TIME_NEVER_NS */
};

/* A counter. The last value of an instant is written, if it has changed. With cells it is the mean
 * of each cell. */
struct timeline_counter {
    const char *name;
    const char *keys[2];                 /* the second may be NULL */
    double value[2], written[2], sum[2]; /* sum: integral in the cell of at_ns */
    int64_t at_ns, cell_ns;              /* cell_ns 0: no cells */
    bool any;
};

struct timeline_channel { /* FIFO, head first */
    struct timeline_item {
        struct resident_key key;
        int64_t since_ns;
    } * v;
    size_t n;
    int64_t free_ns; /* when the item before the head ended */
};

struct timeline {
    struct trace_events out;
    struct observer observer;
    const struct machine *machine;
    struct timeline_options o;
    bool begun, ended; /* state of the window */
    struct map requests;
    struct timeline_lane lanes[MACHINE_MAX_DEVICES][TIMELINE_LANES];
    struct timeline_channel loader, compiler;
    struct timeline_counter ddr, live, watts[OBSERVER_DOMAINS];
    char watts_names[OBSERVER_DOMAINS][32];
    int64_t ddr_end_ns, frame_begin_ns;
    bool has_frames, has_conditions; /* the track has been named */
    char conditions[96];             /* since conditions_ns; "": no event yet */
    int64_t conditions_ns;
    uint32_t n_live[REQUEST_CLASS_COUNT];
};

/* Called first in every hook: opens and closes the window. */
struct timeline *timeline_at(void *self, int64_t now_ns);

/* timeline_machine.c */
void timeline_launch_started(void *self, int64_t now_ns, const struct launch *l, int64_t lead_ns);
void timeline_launch_ended(void *self, int64_t now_ns, const struct launch *l, int64_t isolated_ns,
                           int64_t lost_ns);
void timeline_preempt_asked(void *self, int64_t now_ns, const struct launch *l);
void timeline_frame(void *self, int64_t now_ns, uint8_t device, enum frame_state to,
                    int64_t due_ns);
void timeline_kernel(void *self, const struct kernel_record *k);
void timeline_resident(void *self, int64_t now_ns, struct resident_key key, enum resident_state to);
/* timeline_conditions.c */
void timeline_conditions(void *self, int64_t now_ns, const struct machine_state *now);
void timeline_conditions_end(struct timeline *t, int64_t now_ns);

/* Writes names of tracks and running launches at the begin of the window. */
void timeline_machine_show(struct timeline *t, int64_t now_ns);
/* Closes open slices at the end of the run or the window. `name` is for the time since the last
 * kernel. */
void timeline_machine_end(struct timeline *t, int64_t now_ns, const char *name);
