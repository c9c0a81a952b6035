#include "experiments/commands/measure_summary.h"

#include <string.h>
#include <sys/stat.h>

#include "experiments/shell/cli.h"
#include "hwmodels/kernel_rows.h"

#define ENOUGH_FRAC 0.5

static const struct {
    const char *flag, *why;
} reasons[] = {
    {"foreign_cpu", "others used the processor"},
    {"steal", "the hypervisor took the processor away"},
    {"lost_core", "the kernel's thread did not have its core"},
    {"spikes", "two speeds in one window"},
    {"few_samples", "too slow for the window: a larger --window-s"},
    {"unscreened", "nothing says who else used the processor, or the window is too short"},
    {"in_cache", "weights stay in the processor's cache: a larger --size"},
    {"deadline", "not finished by the deadline"},
    {"not_prepared", "the device refused the kernel"},
    {"failed", "the kernel failed"},
};
#define N_REASONS (sizeof reasons / sizeof reasons[0])

int measure_summary(const char *path, FILE *out, struct err *e)
{
    struct stat st;
    struct kernel_rows rows;
    size_t n[N_REASONS] = {0};
    size_t timed = 0;
    size_t trusted = 0;
    if (stat(path, &st) != 0 || !S_ISREG(st.st_mode)) {
        return EXIT_OK;
    }
    kernel_rows_init(&rows);
    if (kernel_rows_read(&rows, path, e) != 0) {
        kernel_rows_fini(&rows);
        return EXIT_CHECK_FAILED;
    }
    for (size_t i = 0; i < rows.n; i++) {
        const struct kernel_row *r = &rows.v[i];
        if (r->metric != KERNEL_METRIC_MS && r->metric != KERNEL_METRIC_CO_MS) {
            continue;
        }
        timed++;
        trusted += r->flag[0] == '\0';
        for (size_t k = 0; k < N_REASONS; k++) {
            n[k] += strcmp(reasons[k].flag, r->flag) == 0;
        }
    }
    kernel_rows_fini(&rows);
    (void)fprintf(out, "%s: %zu of %zu times can be trusted\n", path, trusted, timed);
    for (size_t k = 0; k < N_REASONS; k++) {
        if (n[k] > 0) {
            (void)fprintf(out, "  %5zu %-12s %s\n", n[k], reasons[k].flag, reasons[k].why);
        }
    }
    bool enough = (double)trusted >= ENOUGH_FRAC * (double)timed;
    if (!enough) {
        (void)fprintf(out, "too few for a fit to rely on: measure again on an idle machine\n");
    }
    return enough ? EXIT_OK : EXIT_CHECK_FAILED;
}
