/* Tiles of an NPU: contexts on disjoint tiles run side by side.
 *
 * The number of tiles of a context is fixed when its model is compiled (Intel, throughput mode) or
 * when its hardware context is created (XDNA, by columns). So the tiles of a device are divided for
 * a whole run, and each partition is a separate device. Partitions contend for the DDR. */
#include "hwmodels/soc.h"

static void curve_share(struct soc_curve *c, double share, double rate)
{
    c->flop_per_s *= rate;
    c->bytes_per_s *= share;
}

static void runtime_share(struct soc_runtime *r, double share)
{
    /* Models a partition as the same number of narrower tiles, because single tiles were not
     * measured. */
    struct soc_resize x = soc_resize(r->fill_rows, r->width_fill, share, 1.0);
    curve_share(&r->many, share, x.rate);
    curve_share(&r->one, share, x.rate);
    r->fill_rows *= x.row_fill;
    r->width_fill *= x.width_fill;
    /* Attention has no fill: its rate, a fraction of those above, is the device's times `share`. */
    r->attention_frac *= share / x.rate;
    r->decode_attention_frac *= share / x.rate;
    r->special_attention_frac *= share / x.rate;
    r->recurrence_frac *= share / x.rate;
    r->kv_columns = (uint32_t)ceil(r->kv_columns * share);
}

static void device_share(struct device *d, struct soc_device *sd, double share)
{
    d->idle_watts *= share;
    d->decode_watts *= share;
    d->prefill_watts *= share;
    d->ddr_weight *= share;
    sd->peak_flop_per_s *= share;
    sd->kernels.budget_bytes *= share;
    for (uint32_t i = 0; i < sd->n_runtimes; i++) {
        runtime_share(&sd->runtimes[i], share);
    }
}

static bool can_divide(const struct soc *soc, uint32_t index, const char *file, struct err *e)
{
    const struct soc_device *sd = &soc->devices[index];
    size_t before = e->n;
    bool measured = false;
    for (uint32_t i = 0; i < sd->n_runtimes; i++) {
        measured = measured || sd->runtimes[i].ops.given;
    }
    if (sd->tiles % sd->partitions != 0) {
        err_add(e, "%s: devices[%u].partitions: %u tile%s cannot be divided into %u equal parts",
                file, index, sd->tiles, text_plural(sd->tiles), sd->partitions);
    }
    if (soc->machine.n_devices + sd->partitions - 1 > MACHINE_MAX_DEVICES) {
        err_add(e, "%s: devices[%u].partitions: a machine has at most %d devices", file, index,
                MACHINE_MAX_DEVICES);
    }
    if (measured || sd->exchange.cards > 0) {
        err_add(e, "%s: devices[%u].partitions: %s", file, index,
                measured ? "its kernels were measured on all tiles" : "it has several cards");
    }
    return e->n == before;
}

static void divide(struct soc *soc, uint32_t index)
{
    struct machine *m = &soc->machine;
    uint32_t n = soc->devices[index].partitions;
    uint32_t behind = m->n_devices - index - 1;
    memmove(&m->devices[index + n], &m->devices[index + 1], behind * sizeof m->devices[0]);
    memmove(&soc->devices[index + n], &soc->devices[index + 1], behind * sizeof soc->devices[0]);
    m->n_devices += n - 1;
    device_share(&m->devices[index], &soc->devices[index], 1.0 / n);
    soc->devices[index].tiles /= n;
    soc->devices[index].partitions = 1;
    for (uint32_t i = n; i-- > 0;) {
        struct device *d = &m->devices[index + i];
        int bytes = (int)sizeof d->name - 4; /* for a dash, a number and the end */
        char whole[sizeof d->name];
        memcpy(whole, m->devices[index].name, sizeof whole);
        *d = m->devices[index];
        snprintf(d->name, sizeof d->name, "%.*s-%u", bytes, whole, (i + 1) % 10);
        soc->devices[index + i] = soc->devices[index];
    }
}

void soc_partition(struct soc *soc, const char *file, struct err *e)
{
    for (uint32_t d = soc->machine.n_devices; d-- > 0;) {
        if (soc->devices[d].partitions > 1 && can_divide(soc, d, file, e)) {
            divide(soc, d);
        }
    }
    for (uint32_t d = 0; d < soc->machine.n_devices; d++) {
        soc->machine.devices[d].index = (uint8_t)d;
    }
}
