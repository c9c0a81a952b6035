/* An observer of a real run: whether what happens may happen, and a hash of all of it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sim/core/run.h"

#define LIVEWATCH_LAUNCHES 8192
#define LIVEWATCH_REQUESTS 64

struct livewatch {
    struct observer observer;
    const struct machine *machine;
    bool jumps; /* so does the clock */
    bool wall;  /* all ends of an instant are together: those of launches first, by device */
    int64_t now_ns;
    int64_t ended_ns, resident_ns; /* the last launch's end, and the last resident */
    uint8_t ended_device;
    uint64_t history;
    uint8_t launches[LIVEWATCH_LAUNCHES];  /* by id: 1 submitted, 2 started, 3 ended */
    uint32_t running[MACHINE_MAX_DEVICES]; /* launch that has started and not ended; 0: none */
    int64_t free_ns[MACHINE_MAX_DEVICES];  /* end of the device's last kernel */
    int64_t asked_ns[LIVEWATCH_LAUNCHES];  /* to stop; 0: not */
    int64_t begin_ns[LIVEWATCH_LAUNCHES];  /* of the first kernel, on the processor's clock */
    uint32_t pass_of[LIVEWATCH_LAUNCHES];  /* by launch */
    bool on_idle[LIVEWATCH_LAUNCHES];      /* by launch: its device had no other one */
    uint32_t live[MACHINE_MAX_DEVICES];    /* launches that were submitted and have not ended */
    uint32_t rows[LIVEWATCH_LAUNCHES];     /* by pass, once its tokens are out: of all its ops */
    uint8_t requests[LIVEWATCH_REQUESTS];  /* by id: 1 arrived, 2 left */
    uint32_t tokens[LIVEWATCH_REQUESTS];
    uint32_t arrived, left, ends;
};

/* The observer is w->observer. Reports by virtual_finding. The machine must live on. */
void livewatch_init(struct livewatch *w, const struct machine *machine, bool wall, bool jumps);
