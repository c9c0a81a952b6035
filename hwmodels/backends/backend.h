/* Devices that run kernels, behind one interface.
 *
 * A backend enumerates devices, opens them, prepares kernels and runs them asynchronously. Each
 * device has one queue, in submission order. Tickets name launches; they count up from 1 per
 * device. Stamps are kept for the last BACKEND_MAX_INFLIGHT tickets. One controlling thread makes
 * every call. Only `wait`, `idle` and `prepare` take long, and `wait` returns by its timeout
 * regardless of the device.
 *
 * Time is the backend's own clock (`now_ns`): the host's monotonic clock for real devices, a
 * virtual one for `sim`. Libraries that only some machines have are loaded when a backend starts.
 * Their absence is an error that names the Debian package, never a crash. */
#pragma once

#include "hwmodels/kernel_spec.h"
#include "sim/api/device.h"

#define BACKEND_MAX_INFLIGHT 1024
#define BACKEND_MAX_DEVICES 16
#define BACKEND_MAX_WIDTHS 4

struct simdev_truth; /* simdev.h */

struct backend_options {
    uint64_t pool_bytes;   /* weights rotate through this much memory per device */
    const char *library;   /* blas, opencl: the file to load (borrowed); NULL: the usual one */
    uint32_t gemm_variant; /* opencl: 0 the faster one, 1 tiled, 2 blocked */
    const struct simdev_truth *truth; /* what `sim` simulates (borrowed); NULL elsewhere */
};

struct backend_info {
    char name[16];        /* "cpu0": what --devices takes */
    char description[96]; /* hardware and driver */
    enum device_kind kind;
    uint32_t n_widths;
    uint32_t weight_bits[BACKEND_MAX_WIDTHS]; /* of its matrix products */
    uint32_t kv_bits;                         /* of its attention; 0 none */
    uint32_t act_bits;
};

struct backend_prep {
    double compile_s; /* 0 where nothing is compiled; -1: compiled in an earlier run */
    bool cached;      /* launches find their weights in a cache: times say nothing of memory */
    char note[64];    /* which variant was chosen, and the like */
};

/* Instants of one launch, on the backend's clock. */
struct backend_stamps {
    int64_t submit_ns, start_ns, end_ns;
    int64_t cpu_ns; /* processor time the worker spent on it; -1 unknown */
};

struct backend_counters {
    bool busy_valid;
    int64_t busy_ns; /* counts up while the device works */
};

/* Shares of all processor time since the previous call; < 0 unknown. */
struct backend_host {
    double foreign_frac, steal_frac;
};

struct backend;        /* one running backend */
struct backend_device; /* one open device */
struct backend_kernel; /* one prepared kernel of one device */

struct backend_ops {
    const char *name;
    const char *summary;
    bool virtual_time; /* no real device: devices can be closed in any state */
    /* Loads what is needed. NULL with errors added when it cannot work here. */
    struct backend *(*start)(const struct backend_options *o, struct err *e);
    void (*stop)(struct backend *b); /* after all devices are closed */
    /* Fills at most cap devices; returns how many there are. */
    uint32_t (*enumerate)(struct backend *b, struct backend_info *out, uint32_t cap);
    struct backend_device *(*open)(struct backend *b, uint32_t index, struct err *e);
    /* Ends a device whose queue is empty. A real device that did not answer in time must not be
     * closed but left alone: what hangs inside a driver cannot be ended safely. */
    void (*close)(struct backend_device *d);
    bool (*supports)(const struct backend_device *d, const struct kernel_spec *s);
    /* Compiles and allocates. NULL with errors added. Released while nothing of it is queued. */
    struct backend_kernel *(*prepare)(struct backend_device *d, const struct kernel_spec *s,
                                      struct backend_prep *out, struct err *e);
    void (*release)(struct backend_kernel *k);
    /* Queues one launch and returns its ticket; -EAGAIN: the queue is full; -EIO: refused. */
    int64_t (*submit)(struct backend_kernel *k);
    /* Until the launch is done: 0, -ETIMEDOUT, -ECANCELED (withdrawn), -EIO (failed). */
    int (*wait)(struct backend_device *d, int64_t ticket, int64_t timeout_ns);
    /* Stamps of a launch that is done. 0 or -EINVAL. A device with a clock of its own is placed on
     * the host's by the launches waited for so far. So compare stamps that were read after the last
     * wait. */
    int (*stamps)(struct backend_device *d, int64_t ticket, struct backend_stamps *out);
    /* Withdraws a launch and all after it that have not started: returns the last ticket that
     * stays, or -ENOTSUP. */
    int64_t (*cancel)(struct backend_device *d, int64_t ticket);
    void (*counters)(struct backend_device *d, struct backend_counters *out);
    /* NULL: the host's monotonic clock */
    int64_t (*now_ns)(struct backend *b);
    void (*idle)(struct backend *b, int64_t span_ns); /* lets time pass */
    /* Optional: its own account of the host; NULL: the system's (host.h). */
    void (*host)(struct backend *b, struct backend_host *out);
    /* Optional, for tests: computes y from given data, at once. Products: x[rows*k], w[n*k] of the
     * spec's width with y[rows*n]; attention: x queries [rows][heads][head_dim], w K then V (K, V
     * [sequence][kv_head][key][dim]), y like x; streams: w input, y output or y[0] a checksum.
     * Integer weights have the scale 1/64. 0 or -ENOTSUP. */
    int (*compute)(struct backend_kernel *k, const float *x, const void *w, float *y);
};

struct backend {
    const struct backend_ops *ops;
    struct backend_options options;
    void *state;
};

/* The scale of integer weights everywhere: no table of scales is read, so W and Q stay simple. */
#define BACKEND_INT_SCALE (1.0f / 64.0f)

/* The sorted, NULL-terminated list of all backends. */
const struct backend_ops *const *backend_list(void);
const struct backend_ops *backend_find(const char *name); /* NULL: none of that name */

/* The backend's clock, and letting time pass on it. */
int64_t backend_now_ns(struct backend *b);
void backend_idle(struct backend *b, int64_t span_ns);

extern const struct backend_ops backend_blas, backend_native, backend_opencl, backend_openvino,
    backend_sim;
