#include "hwmodels/backends/host.h"

#include <dirent.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "sim/base/clock.h"
#include "sim/base/input.h"

#define CPU_DIR "/sys/devices/system/cpu/cpu0"

/* Reads the first line of a file, without its newline; false: it cannot be read. */
static bool first_line(const char *path, char *buf, size_t size)
{
    SCOPED(input_drop) FILE *f = input_try(path);
    if (f == NULL || fgets(buf, (int)size, f) == NULL) {
        return false;
    }
    buf[strcspn(buf, "\r\n")] = '\0';
    return true;
}

static bool read_number(const char *path, double *out)
{
    char line[64];
    char *end;
    if (!first_line(path, line, sizeof line)) {
        return false;
    }
    *out = strtod(line, &end);
    return end != line && *out >= 0.0;
}

/* ---- other load ---- */

struct host_times host_times_read(const char *proc_dir)
{
    struct host_times t = {.valid = false};
    char path[256];
    char line[512];
    double v[8] = {0.0}; /* user nice system idle iowait irq softirq steal */
    (void)snprintf(path, sizeof path, "%.200s/stat", proc_dir);
    if (!first_line(path, line, sizeof line) ||
        sscanf(line, "cpu %lf %lf %lf %lf %lf %lf %lf %lf", &v[0], &v[1], &v[2], &v[3], &v[4],
               &v[5], &v[6], &v[7]) < 4) {
        return t;
    }
    t.valid = true;
    /* Waiting for a disk is idle. Time stolen by the host of a virtual machine is counted
     * separately, because no process of this machine used it. */
    t.busy_ticks = v[0] + v[1] + v[2] + v[5] + v[6];
    t.steal_ticks = v[7];
    t.all_ticks = t.busy_ticks + v[3] + v[4] + v[7];
    t.own_s = 1e-9 * (double)clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    return t;
}

struct backend_host host_times_shares(const struct host_times *from, const struct host_times *to)
{
    struct backend_host h = {-1.0, -1.0};
    double all = to->all_ticks - from->all_ticks;
    if (!from->valid || !to->valid || !(all > 0.0)) {
        return h;
    }
    double own = (to->own_s - from->own_s) * (double)sysconf(_SC_CLK_TCK);
    /* times are in whole ticks, so one tick may be rounding */
    double foreign = (to->busy_ticks - from->busy_ticks - own - 1.0) / all;
    h.foreign_frac = foreign < 0.0 ? 0.0 : foreign > 1.0 ? 1.0 : foreign;
    h.steal_frac = (to->steal_ticks - from->steal_ticks) / all;
    h.steal_frac = h.steal_frac < 0.0 ? 0.0 : h.steal_frac;
    return h;
}

/* ---- counters ---- */

void host_energy_init(struct host_energy *h, const char *rapl_dir)
{
    memset(h, 0, sizeof *h);
    for (int i = 0; i < HOST_MAX_ZONES; i++) {
        char path[256];
        char name[64];
        double max_uj;
        (void)snprintf(path, sizeof path, "%.200s/intel-rapl:%d/name", rapl_dir, i);
        if (!first_line(path, name, sizeof name) || strncmp(name, "package", 7) != 0) {
            continue;
        }
        (void)snprintf(path, sizeof path, "%.200s/intel-rapl:%d/max_energy_range_uj", rapl_dir, i);
        if (!read_number(path, &max_uj)) {
            continue;
        }
        (void)snprintf(h->zones[h->n].path, sizeof h->zones[h->n].path,
                       "%.200s/intel-rapl:%d/energy_uj", rapl_dir, i);
        h->zones[h->n].max_uj = max_uj;
        if (read_number(h->zones[h->n].path, &h->zones[h->n].last_uj)) {
            h->n++;
        }
    }
}

double host_energy_joules(struct host_energy *h)
{
    double sum_uj = 0.0;
    for (uint32_t i = 0; i < h->n; i++) {
        double now_uj;
        if (!read_number(h->zones[i].path, &now_uj)) {
            return -1.0;
        }
        double used_uj = now_uj - h->zones[i].last_uj;
        /* The counter wraps around, at most once between two readings. */
        sum_uj += used_uj < 0.0 ? used_uj + h->zones[i].max_uj : used_uj;
        h->zones[i].last_uj = now_uj;
    }
    return h->n > 0 ? sum_uj / 1e6 : -1.0;
}

const char *host_rapl_dir(void)
{
    const char *dir = getenv("XPUSIM_RAPL_DIR");
    return dir != NULL ? dir : HOST_RAPL_DIR;
}

char *host_energy_text(double joules, double seconds)
{
    return joules < 0.0
               ? xformat("no energy was measured: no package counter (RAPL) can be read in %s",
                         host_rapl_dir())
               : xformat("this machine's package drew %.1f J in %.2f s, %.1f W in the mean "
                         "(RAPL, all that ran on it)",
                         joules, seconds, joules / seconds);
}

double host_npu_busy_us(const char *accel_dir)
{
    DIR *d = opendir(accel_dir);
    double busy_us = -1.0;
    if (d == NULL) {
        return busy_us;
    }
    for (struct dirent *f; busy_us < 0.0 && (f = readdir(d)) != NULL;) {
        char path[512];
        (void)snprintf(path, sizeof path, "%.200s/%.200s/device/npu_busy_time_us", accel_dir,
                       f->d_name);
        if (f->d_name[0] == '.' || !read_number(path, &busy_us)) {
            busy_us = -1.0;
        }
    }
    (void)closedir(d);
    return busy_us;
}

/* ---- facts of the machine ---- */

/* Reads the value after "KEY <blanks>:" in the first line that starts with key. False: none. */
static bool keyed_line(const char *proc_dir, const char *file, const char *key, char *buf,
                       size_t size)
{
    char path[256];
    char line[512];
    (void)snprintf(path, sizeof path, "%.200s/%s", proc_dir, file);
    SCOPED(input_drop) FILE *f = input_try(path);
    bool found = false;
    while (f != NULL && !found && fgets(line, sizeof line, f) != NULL) {
        const char *colon = strchr(line, ':');
        if (colon != NULL && strncmp(line, key, strlen(key)) == 0) {
            colon += 1 + strspn(colon + 1, " \t");
            (void)snprintf(buf, size, "%.*s", (int)strcspn(colon, "\r\n"), colon);
            found = true;
        }
    }
    return found;
}

double host_memory_bytes(const char *proc_dir)
{
    char text[64];
    return keyed_line(proc_dir, "meminfo", "MemTotal", text, sizeof text)
               ? strtod(text, NULL) * 1024.0
               : 0.0;
}

double host_cache_bytes(void)
{
    double best = 0.0;
    for (int i = 0; i < 8; i++) {
        char path[256];
        char text[64];
        (void)snprintf(path, sizeof path, CPU_DIR "/cache/index%d/size", i);
        if (first_line(path, text, sizeof text)) {
            char *end;
            double v = strtod(text, &end);
            v *= *end == 'K' ? 1024.0 : *end == 'M' ? 1048576.0 : 1.0;
            best = v > best ? v : best;
        }
    }
    return best;
}

size_t host_describe(const char *proc_dir, char lines[HOST_MAX_LINES][HOST_LINE_BYTES])
{
    char text[128];
    struct utsname u;
    size_t n = 0;
    if (keyed_line(proc_dir, "cpuinfo", "model name", text, sizeof text)) {
        (void)snprintf(lines[n++], HOST_LINE_BYTES, "processor: %s, %ld cores", text,
                       sysconf(_SC_NPROCESSORS_ONLN));
    }
    if (uname(&u) == 0) {
        (void)snprintf(lines[n++], HOST_LINE_BYTES, "system: %.40s %.60s", u.sysname, u.release);
    }
    bool governed = first_line(CPU_DIR "/cpufreq/scaling_governor", text, sizeof text);
    (void)snprintf(lines[n++], HOST_LINE_BYTES, "governor: %s", governed ? text : "unknown");
    (void)snprintf(lines[n++], HOST_LINE_BYTES, "last-level cache: %.0f KB, memory: %.0f MB",
                   host_cache_bytes() / 1024.0, host_memory_bytes(proc_dir) / 1048576.0);
    return n;
}
