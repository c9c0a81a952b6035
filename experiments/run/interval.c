#include "experiments/run/interval.h"

#include "hwmodels/spread.h"
#include "hwmodels/transfers.h"
#include "sim/base/datadir.h"

#define NORMAL_95 1.959964

const struct conformal *interval_table(struct err *e)
{
    static struct conformal shipped;
    bool there =
        shipped.v != NULL || conformal_read(datadir_path(CONFORMAL_TABLE), &shipped, e) == 0;
    return there ? &shipped : NULL;
}

bool interval_measured(const struct soc_runtime *entry, const struct conformal_query *q,
                       struct conformal_interval *out)
{
    double sd = entry->error_sd[q->weights < SPREAD_SMALL_WEIGHTS][q->phase] *
                conformal_mixture(q->mixture, q->phase);
    *out = (struct conformal_interval){.low_factor = exp(-NORMAL_95 * sd),
                                       .high_factor = exp(NORMAL_95 * sd),
                                       .n = entry->measured_rows,
                                       .pool = CONFORMAL_MEASURED};
    return sd > 0.0;
}

struct conformal_interval interval_of(const struct conformal *t, const struct soc *soc,
                                      uint8_t device, const struct soc_runtime *entry,
                                      const struct llm *llm, bool prefill, uint32_t tokens)
{
    struct conformal_query q = {.soc = soc->machine.name,
                                .family = soc->family,
                                .kind = soc->machine.devices[device].kind,
                                .phase = conformal_phase_of(prefill, tokens),
                                .weights = llm->body_weights + llm->head_weights,
                                .tokens = tokens,
                                .mixture = llm->n_experts > 0,
                                .left = entry->start.given ? CONFORMAL_MODEL : CONFORMAL_SOC};
    struct conformal_interval own;
    return interval_measured(entry, &q, &own) ? own : conformal_of(t, &q, CONFORMAL_LEVEL);
}

char *interval_text(const struct conformal_interval *x)
{
    return x->n == 0 ? xstrdup("none: nothing like it was measured")
           : strcmp(x->pool, CONFORMAL_MEASURED) == 0
               ? xformat("x %.2f to %.2f (%zu row%s measured on this machine)", x->low_factor,
                         x->high_factor, x->n, text_plural(x->n))
               : xformat("x %.2f to %.2f (%s not measured: %zu left-out row%s of %s; nearest "
                         "measured x %.2g away)",
                         x->low_factor, x->high_factor, conformal_left_names[x->left], x->n,
                         text_plural(x->n), x->pool, exp(x->distance));
}

bool interval_is_transfer(const struct soc *soc, uint8_t device)
{
    const struct soc_device *d = &soc->devices[device];
    const struct soc_runtime *r = &d->runtimes[d->fallback];
    return soc->like[0] != '\0' && !r->start.given && r->measured_rows == 0;
}

/* Transfers of the sibling if there are any, else all of that kind of device. */
static struct transfer_error transfers(const struct conformal *t, const struct soc *soc,
                                       uint8_t device, enum conformal_phase phase)
{
    struct transfer_query q = {
        .from = soc->like, .kind = soc->machine.devices[device].kind, .phase = phase};
    struct transfer_error x = transfer_error_of(t, &q);
    q.from = NULL;
    return x.n > 0 ? x : transfer_error_of(t, &q);
}

/* ", 21 % in the median in prefill (4 to 60 % by pair)"; "" without a row. */
static void put_phase(const struct transfer_error *x, const char *phase, struct text *t)
{
    if (x->n > 0) {
        text_item(t, ", ", "");
        text_format(t, "%.0f %% in the median in %s (%.0f to %.0f %% by pair)",
                    100.0 * x->median_frac, phase, 100.0 * x->least_frac, 100.0 * x->most_frac);
    }
}

char *interval_transfer_text(const struct conformal *t, const struct soc *soc, uint8_t device)
{
    SCOPED(text_fini) struct text how_far = {0};
    struct transfer_error x = transfers(t, soc, device, CONFORMAL_PREFILL);
    put_phase(&x, "prefill", &how_far);
    x = transfers(t, soc, device, CONFORMAL_DECODE);
    put_phase(&x, "decode", &how_far);
    return xformat("%s: made from %s by data sheet; %s%s", soc->machine.devices[device].name,
                   soc->like,
                   how_far.n > 0 ? "on measured machines such transfers were off by "
                                 : "no measured machines say how far off such transfers are",
                   text_end(&how_far));
}
