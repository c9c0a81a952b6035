/* An engine of plain loops in single precision: the meaning of sim/api/engine.h, and faults on
 * request. Rows are computed one by one, so every cut of them gives the same bits. */
#pragma once

#include "sim/api/engine.h"

#define PLAIN_MAX_LAYERS 8

/* State of a layer of a graph version; the head is the layer after the last. */
struct plain_graph {
    uint32_t prepared_rows;
    bool there;
};

/* Faults to insert. A kernel's number counts all kernels from 1; 0: none. One run at a time. */
struct plain_faults {
    uint32_t fail_kernel; /* returns -EIO: "made to fail" */
    uint32_t late_kernel; /* takes 50 ms more */
    uint32_t hang_kernel; /* does not return */
    bool fail_open, fail_device, fail_compile;
    uint32_t slow_us; /* added to each kernel, in steps that look at k->stop */
    /* Counts and states that the engine has recorded. */
    _Atomic uint32_t kernels, compiles, drops, loads, unloads, cancelled;
    struct plain_graph graphs[3][PLAIN_MAX_LAYERS + 1]; /* by version */
};

extern struct plain_faults plain_faults;
extern const struct engine_ops plain_engine;          /* interrupts; nothing to compile */
extern const struct engine_ops plain_engine_compiles; /* attention is compiled, graphs are loaded */
