#include "experiments/run/interval.h"

#include <math.h>

#include "sim/base/datadir.h"

int interval_table_read(struct conformal *out, struct err *e)
{
    char file[4096];
    return conformal_read(datadir_path(file, sizeof file, CONFORMAL_TABLE), out, e);
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
                                .soc_out = !entry->start.given};
    return conformal_of(t, &q, CONFORMAL_LEVEL);
}

const char *interval_text(const struct conformal_interval *x, char *buf, size_t size)
{
    if (x->n == 0) {
        (void)snprintf(buf, size, "none: nothing like it was measured");
    } else {
        (void)snprintf(buf, size,
                       "x %.2f to %.2f (%zu left-out rows of %s; nearest measured x %.2g away)",
                       x->low_factor, x->high_factor, x->n, x->pool, exp(x->distance));
    }
    return buf;
}
