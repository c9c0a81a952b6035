#include "experiments/validation/transfer_table.h"

#include "hwmodels/transfers.h"
#include "sim/api/device.h"

#define MAX_PAIRS 256

static void put_cell(const struct transfer_error *x, FILE *out)
{
    if (x->n == 0) {
        (void)fprintf(out, "  %4s %7s %6s %6s", "-", "", "", "");
    } else {
        (void)fprintf(out, "  %4zu %7.0f %6.0f %+6.0f", x->n, 100.0 * x->median_frac,
                      100.0 * x->p90_frac, 100.0 * x->bias_frac);
    }
}

static void put_row(const struct conformal *c, const char *from, const char *to,
                    enum device_kind kind, enum transfer_kin kin, FILE *out)
{
    struct transfer_query q = {.from = from, .to = to, .kind = kind, .kin = kin};
    for (int i = 0; i < 2; i++) {
        q.phase = i == 0 ? CONFORMAL_PREFILL : CONFORMAL_DECODE;
        struct transfer_error x = transfer_error_of(c, &q);
        put_cell(&x, out);
    }
    (void)fputc('\n', out);
}

void transfer_table_print(const struct conformal *c, FILE *out)
{
    struct transfer_pair pairs[MAX_PAIRS];
    size_t n = transfer_pairs(c, pairs, MAX_PAIRS);
    (void)fprintf(
        out,
        "a machine made from a sibling by data sheet: |error| in %% of rows of the second "
        "by the fit of the first\n  %-4s  %-20s %-20s %-6s  %4s %7s %6s %6s  %4s %7s %6s "
        "%6s\n",
        "", "made from", "machine", "family", "rows", "prefill", "P90", "bias", "rows", "decode",
        "P90", "bias");
    for (size_t i = 0; i < n && i < MAX_PAIRS; i++) {
        const struct transfer_pair *p = &pairs[i];
        (void)fprintf(out, "  %-4s  %-20s %-20s %-6s", device_kind_names()[p->kind], p->from, p->to,
                      p->within_family ? "same" : "other");
        put_row(c, p->from, p->to, p->kind, TRANSFER_ANY, out);
    }
    static const char *const kin[] = {"all pairs", "of one family", "of other families"};
    for (int kind = 0; device_kind_names()[kind] != NULL; kind++) {
        for (int k = TRANSFER_ANY; k <= TRANSFER_ACROSS_FAMILIES; k++) {
            struct transfer_query q = {.kind = (enum device_kind)kind,
                                       .phase = CONFORMAL_DECODE,
                                       .kin = (enum transfer_kin)k};
            if (transfer_error_of(c, &q).n > 0) {
                (void)fprintf(out, "  %-4s  %-48s", device_kind_names()[kind], kin[k]);
                put_row(c, NULL, NULL, (enum device_kind)kind, (enum transfer_kin)k, out);
            }
        }
    }
}
