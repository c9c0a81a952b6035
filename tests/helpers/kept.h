/* Keeps all that an observer receives of a run, in lists, for the timeline that
 * tests/oracle/check_timeline_anew.c draws from them. */
#pragma once

#include "experiments/conformance/scenario.h"

enum { KEPT_REQUESTS = 24, KEPT_CHANGES = 1 << 16 };

/* Instants are ns; -1: never. A launch that began: */
struct ran {
    uint32_t id, pass, request, sequences, rows, lane;
    uint8_t device;
    bool reactive;
    const char *name;
    int64_t begin, end, lead, asked, last; /* last: end of its last kernel so far */
    enum launch_outcome outcome;
};
struct computed {
    uint32_t launch; /* place among those that ran */
    int op;
    uint32_t layer, index;
    int64_t begin, end, isolated;
};
struct came {
    bool here;
    enum request_class cls;
    uint32_t session, turn, input, reused, preemptions;
    int64_t begin, end;
    int64_t first; /* end of its first kernel; its begin and track follow */
    int64_t first_begin;
    uint32_t first_track;
};
struct changed { /* of a request, a counter, the machine: the value from an instant on */
    uint32_t of;
    int64_t at;
    double a, b;
    char text[96];
};
struct loaded {
    struct resident_key key;
    int64_t asked;
};
struct list {
    struct changed *v;
    uint32_t n;
};

extern struct kept {
    struct ran *ran; /* launches that began, in that order */
    struct computed *computed;
    struct came came[KEPT_REQUESTS];
    struct list phases, marks, ddr, live, powers, conditions, spans;
    struct loaded waiting[2][64]; /* of the loader, of the compiler */
    uint32_t n_waiting[2], n_ran, n_computed;
    int64_t free_ns[2], frame_begin, run_end;
    double n_live[2];
    int64_t instants[KEPT_CHANGES]; /* at which something happened */
    uint32_t n_instants;
} kept;

/* Begins again, for a run of this machine. */
void kept_forget(const struct machine *m);
/* The observer. It asks for every kernel. */
struct observer *kept_observer(void);
/* One more entry of a list. */
struct changed *kept_add(struct list *l, uint32_t of, int64_t at, double a, double b);
/* The number of a launch's track. */
uint32_t kept_track(const struct ran *r);
