#include "experiments/validation/transfer_table.h"

#include <gsl/gsl_sort.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "hwmodels/transfers.h"
#include "sim/api/device.h"
#include "sim/base/arena.h"

#define MAX_PAIRS 256

/* Of one kind of device, of a family (NULL: of all): rows, median and P90 by phase. */
static void put_left_out(const struct conformal *c, enum device_kind kind, const char *family,
                         double *scratch, FILE *out)
{
    (void)fprintf(out, "  %-4s  %-20s", device_kind_names()[kind], family != NULL ? family : "all");
    for (int phase = CONFORMAL_PREFILL; phase <= CONFORMAL_DECODE; phase++) {
        size_t n = 0;
        for (size_t i = 0; i < c->n; i++) {
            const struct conformal_row *r = &c->v[i];
            bool counts = phase != CONFORMAL_DECODE || r->tokens >= CONFORMAL_SHORT_TOKENS;
            if (!r->soc_out && counts && r->kind == kind && (int)r->phase == phase &&
                (family == NULL || strcmp(family, r->family) == 0)) {
                scratch[n++] = 100.0 * fabs(expm1(r->ln_error));
            }
        }
        gsl_sort(scratch, 1, n);
        if (n > 0) { /* nearest ranks */
            (void)fprintf(out, "  %4zu %7.1f %6.1f", n, scratch[(n + 1) / 2 - 1],
                          scratch[(9 * n + 9) / 10 - 1]);
        } else {
            (void)fprintf(out, "  %4s %7s %6s", "-", "", "");
        }
    }
    (void)fputc('\n', out);
}

static bool first_of(const struct conformal *c, size_t i, bool of_kind)
{
    const struct conformal_row *r = &c->v[i];
    for (size_t j = 0; j < i; j++) {
        const struct conformal_row *s = &c->v[j];
        if (!s->soc_out && s->kind == r->kind && (of_kind || strcmp(s->family, r->family) == 0)) {
            return false;
        }
    }
    return !r->soc_out;
}

void left_out_table_print(const struct conformal *c, FILE *out)
{
    double *scratch = xmalloc((c->n + 1) * sizeof *scratch);
    (void)fprintf(out,
                  "models left out: |error| in %%, median and P90\n  %-4s  %-20s  %4s %7s %6s  %4s "
                  "%7s %6s  %4s %7s %6s\n",
                  "", "family", "rows", "prefill", "P90", "rows", "short", "P90", "rows", "decode",
                  "P90");
    for (size_t i = 0; i < c->n; i++) {
        if (first_of(c, i, true)) {
            put_left_out(c, c->v[i].kind, NULL, scratch, out);
        }
        if (first_of(c, i, false)) {
            put_left_out(c, c->v[i].kind, c->v[i].family, scratch, out);
        }
    }
    free(scratch);
}

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
