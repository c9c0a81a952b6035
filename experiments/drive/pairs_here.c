#define _POSIX_C_SOURCE 200809L /* fmemopen */
#include "experiments/drive/pairs_here.h"

#include "hwmodels/backends/measure.h"
#include "sim/base/memory.h"

#define REPETITIONS 2 /* the least number with intervals */
#define WINDOW_S 0.04 /* that of `measure --size tiny` */
#define LEAST_S 1e-3
#define TEST_POOL_BYTES ((uint64_t)16 << 20)

/* Tests set XPUSIM_PAIR_WINDOW_S, because they need no exact numbers. Hundreds of windows, repeated
 * while other programs run, and a pool larger than the caches take most of a calibration's time. */
static void set_window(struct measure_options *o)
{
    const char *set = getenv("XPUSIM_PAIR_WINDOW_S");
    double s = set != NULL ? strtod(set, NULL) : 0.0;
    bool shorter = s >= LEAST_S && s < WINDOW_S;
    o->window_s = shorter ? s : WINDOW_S;
    SIM_ASSERT(o->pairs_only == false && o->backend_options.pool_bytes == 0); /* called once */
    o->retries = shorter ? 0 : o->retries;
    o->backend_options.pool_bytes = shorter ? TEST_POOL_BYTES : measure_pool_bytes(o);
}

static int can_be(const struct drive_options *d, const struct machine *m, struct err *why)
{
    if (d->clock == DRIVE_CLOCK_CPU) {
        return err_add(why, "kernels run one after another on --clock cpu");
    }
    if (m->n_devices < 2) {
        return err_add(why, "the machine has one device");
    }
    for (uint32_t i = 0; i < 2; i++) {
        if (strcmp(d->devices[i].name, "CPU") != 0 || d->devices[i].core < 0) {
            return err_add(why,
                           "%s is no processor: `measure --pairs` measures it, and `new-soc "
                           "--pairs` takes its rows",
                           m->devices[i].name);
        }
    }
    return d->devices[0].core == d->devices[1].core
               ? err_add(why, "both devices are on one processor")
               : 0;
}

int pairs_here(const struct drive_options *d, const struct machine *m, struct pairs *out,
               struct err *why)
{
    *out = (struct pairs){.n = 0};
    if (can_be(d, m, why) != 0) {
        return -EINVAL;
    }
    struct measure_options o;
    struct kernel_rows rows = {.n = 0};
    char devices[64];
    /* Each device has a processor of its own, because kernels on one processor would only take
     * turns. */
    SIM_ASSERT(d->devices[0].core >= 0 && d->devices[1].core >= 0 &&
               d->devices[0].core != d->devices[1].core);
    OWNED char *text = NULL;
    size_t n = 0;
    (void)snprintf(devices, sizeof devices, "cpu%d,cpu%d", d->devices[0].core, d->devices[1].core);
    measure_options_init(&o);
    o.devices = devices;
    o.soc = m->name;
    o.source = "drive --calibrate";
    o.size = PLAN_TINY;
    o.repetitions = REPETITIONS;
    set_window(&o);
    o.pairs_only = true;
    o.announce = true;
    FILE *to = memory_stream(&text, &n);
    int rc = measure_run(&o, to, why);
    memory_stream_close(to, &text);
    FILE *in = rc != -EINVAL ? fmemopen(text, n, "r") : NULL;
    rc = in != NULL ? kernel_rows_read_stream(&rows, in, "pairs", why) : -EINVAL;
    rc = rc == 0 ? pairs_make(out, &rows, why) : rc;
    for (uint32_t i = 0; rc == 0 && i < 2; i++) {
        out->devices[i] = xkeep(xstrdup(m->devices[i].name));
    }
    SIM_ASSERT(rc != 0 || out->n > 0);
    return rc == 0 ? 0 : -EINVAL;
}
