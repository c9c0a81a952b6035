/* The machine around the devices: who else uses the processor, energy and busy counters, and what
 * the machine is. Everything is read from folders that an option can replace; what cannot be read
 * is "unknown", never a guess. */
#pragma once

#include "hwmodels/backends/backend.h"

#define HOST_PROC_DIR "/proc"
#define HOST_RAPL_DIR "/sys/class/powercap"
#define HOST_ACCEL_DIR "/sys/class/accel"
#define HOST_MAX_ZONES 8
#define HOST_LINE_BYTES 160
#define HOST_MAX_LINES 8

/* Processor time of the whole machine, in ticks since boot, and of this process. */
struct host_times {
    bool valid;
    double busy_ticks, steal_ticks, all_ticks;
    double own_s;
};

struct host_times host_times_read(const char *proc_dir);
/* Shares between two readings; -1 where unknown (unreadable, or no tick between them). */
struct backend_host host_times_shares(const struct host_times *from, const struct host_times *to);

/* Intel RAPL through sysfs powercap: the package zones, whose counters wrap. */
struct host_energy {
    uint32_t n;
    struct {
        char path[256];
        double max_uj, last_uj; /* range before it wraps; last reading */
    } zones[HOST_MAX_ZONES];
};

/* Finds readable package zones (intel-rapl:N whose name starts with "package"). n = 0: none. */
void host_energy_init(struct host_energy *h, const char *rapl_dir);
/* Joules since the last call (or init) over all packages; -1 when there are none or one fails. A
 * counter that wrapped once is corrected; call at least every minute. */
double host_energy_joules(struct host_energy *h);

/* The folder to read: the kernel's, or what XPUSIM_RAPL_DIR names. */
const char *host_rapl_dir(void);
/* One sentence: joules and mean watts of the package meter, or why there are none (joules below 0).
 * The caller frees it. */
char *host_energy_text(double joules, double seconds);

/* Busy time of the first NPU in microseconds (npu_busy_time_us, Linux 6.10+); -1 unknown. */
double host_npu_busy_us(const char *accel_dir);

/* Lines for the head of a file: processor, kernel, governor, caches, memory. Returns how many. */
size_t host_describe(const char *proc_dir, char lines[HOST_MAX_LINES][HOST_LINE_BYTES]);
double host_memory_bytes(const char *proc_dir); /* 0 unknown */
/* Last-level cache of the first processor; 0 unknown. */
double host_cache_bytes(void);
