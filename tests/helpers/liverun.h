/* One run of the real executor on a virtual host, drawn and checked by its seed. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* A fault of the run. */
enum live_fault {
    LIVE_NONE,
    LIVE_SLOW,      /* a call of the engine takes long, though not as long as to count as hanging */
    LIVE_FAILS,     /* it returns an error */
    LIVE_HANGS,     /* it does not return */
    LIVE_STOP,      /* SIGINT before an operation */
    LIVE_STOP_SLOW, /* SIGINT while kernels are long */
    LIVE_LIMIT,     /* the time is over */
    LIVE_DIES,      /* the policy's process dies */
    LIVE_DISK,      /* the disk is full when KV is written */
    LIVE_NO_FILE,   /* or when the swap file is opened */
    LIVE_NO_THREAD,
    LIVE_CLOCK_JUMPS, /* forward */
    LIVE_CLOCK_BACK,
    LIVE_FAULTS
};

struct liverun {
    enum live_fault fault;
    bool happened; /* the fault did */
    int status;
    uint64_t operations, switches, interleavings;
    uint64_t history;  /* hash of all that observers saw, with its instants */
    char what[256];    /* the run in words */
    char finding[512]; /* what does not hold; "": nothing */
};

void liverun_run(uint64_t seed, struct liverun *out);

struct liverun_sums {
    uint64_t runs, interleavings, operations, switches;
    uint64_t drawn[LIVE_FAULTS], happened[LIVE_FAULTS], failed[LIVE_FAULTS];
};
void liverun_add(struct liverun_sums *s, const struct liverun *r);
void liverun_print(const struct liverun_sums *s);
