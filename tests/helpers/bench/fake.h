/* A library of kernels that notes what it is asked, as a shared object of its own that is found by
 * its folder. */
#pragma once

#include "hwmodels/engines/bench.h"

struct fake_kernel {
    char device[16];
    struct kernel_spec spec;
    uint32_t copies;
    const void *weights;
    uint32_t turns[16], n_turns;
};

struct fake_bench {
    uint32_t abi; /* 0: the right one */
    bool no_open, no_prepare, fails;
    uint32_t n_threads, n_devices, n_open, n_kernels;
    char cache[300];
    struct engine_bench_device devices[20];
    struct fake_kernel *last;
};
