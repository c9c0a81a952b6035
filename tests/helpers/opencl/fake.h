/* A driver of OpenCL that computes nothing: it notes what it is asked, fails where a test wants it,
 * and says what the test wrote of devices and times. A shared object of its own, which the backend
 * loads by its path. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FAKE_PLATFORMS = 3, FAKE_DEVICES = 12, FAKE_ARGS = 12, FAKE_LAUNCHES = 64, FAKE_KINDS = 8 };

enum fake_kind {
    FAKE_DEVICE, /* sub-devices only: what release must balance */
    FAKE_CONTEXT,
    FAKE_QUEUE,
    FAKE_PROGRAM,
    FAKE_KERNEL,
    FAKE_BUFFER,
    FAKE_EVENT
};

#define FAKE_UNSAID 0xFFFFFFFFu /* of `unified`: the driver does not know the question */

struct fake_device {
    uint64_t type; /* 2 CPU, 4 GPU, 8 accelerator */
    uint32_t units, unified, n_parts;
    size_t group_max;
    uint64_t most_bytes; /* of one buffer */
    const char *name, *driver;
};

struct fake_object {
    enum fake_kind kind;
    struct fake_device *device;
    bool part;      /* a unit of a device */
    uint8_t *bytes; /* buffers */
    size_t size;
    char text[64]; /* kernels: name; programs: options of the build */
    uint64_t args[FAKE_ARGS];
    size_t arg_sizes[FAKE_ARGS];
    uint64_t start_ns, end_ns; /* events */
};

struct fake_launch {
    char name[64];
    uint32_t dims;
    size_t global[2], local[2];
    bool has_local;
    uint64_t args[FAKE_ARGS];
    size_t arg_sizes[FAKE_ARGS];
};

struct fake_opencl {
    uint32_t n_platforms, n_devices[FAKE_PLATFORMS];
    struct fake_device devices[FAKE_PLATFORMS][FAKE_DEVICES];
    const char *fails; /* a function that fails, " once" behind it or always */
    uint32_t works;    /* but not in its first calls */
    const char *log;   /* of a build */
    int32_t live[FAKE_KINDS];
    uint32_t n_launches, n_polls, n_pending;    /* polls that still find a launch running */
    int32_t failed_status;                      /* of events, once nothing is pending */
    struct fake_launch launches[FAKE_LAUNCHES]; /* the last ones, number i at i % so many */
    uint64_t device_ns, launch_ns;              /* its clock; a launch takes so long */
    void (*run)(const struct fake_object *kernel, size_t workers); /* instead of computing */
};
