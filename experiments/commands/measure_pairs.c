/* Makes a document of pairs of co-running kernels (hwmodels/pairs.h). */
#include "experiments/commands/measure_print.h"

#define GB 1e-9
#define NOTHING 0.01 /* a negligible slowdown */

static const char *interval(const struct pairs_mean *m, const char *format)
{
    const char *value = document_format(format, m->value);
    return isnan(m->low) ? value
                         : document_format("%s [%s, %s]", value, document_format(format, m->low),
                                           document_format(format, m->high));
}

/* Whether a pair is printed: it is surely slowed, or above the cap. Data has all pairs. */
static bool is_slowed(const struct pairs_cell *c)
{
    return c->above || c->slowdown.low > 1.0 + NOTHING;
}

static void put_cells(const struct pairs *p, struct document *d)
{
    static const struct frame_column columns[] = {
        {.name = "device", .kind = FRAME_TEXT, .title = "victim"},
        {.name = "kernel", .kind = FRAME_TEXT, .title = ""},
        {.name = "culprit_device", .kind = FRAME_TEXT, .title = "next to"},
        {.name = "culprit", .kind = FRAME_TEXT, .title = ""},
        {.name = "slowdown", .title = "takes times as long", .format = "%.3f"},
        {.name = "asked", .title = "both ask, GB/s", .unit = "GB/s", .format = "%.1f"},
        {.name = "both", .title = "both get", .unit = "GB/s", .format = "%.1f"},
        {.name = "above", .kind = FRAME_FLAG, .title = "above the cap"},
    };
    struct frame *shown = DOCUMENT_FRAME(d, "slowed", 0, columns);
    struct frame *all = document_data(d, "pairs", 0,
                                      "device kernel culprit_device culprit slowdown low high n "
                                      "asked_gbs both_gbs above");
    size_t others = 0;
    for (size_t i = 0; i < p->n; i++) {
        const struct pairs_cell *c = &p->cells[i];
        const struct pairs_side *v = &c->victim;
        const struct pairs_side *x = &c->culprit;
        const struct pairs_mean *m = &c->slowdown;
        double asked = GB * (v->alone_bytes_per_s + x->alone_bytes_per_s);
        double both = GB * (v->both_bytes_per_s + x->both_bytes_per_s);
        if (is_slowed(c)) {
            FRAME_ROW(shown, v->device, v->model, x->device, x->model,
                      frame_shown(m->value, interval(m, "%.3f")), asked, both, c->above);
        }
        others += !is_slowed(c);
        FRAME_ROW(all, v->device, v->model, x->device, x->model, m->value, m->low, m->high, m->n,
                  asked, both, c->above);
    }
    document_note(d,
                  "%zu other pair%s: below the cap, and not slowed by more than %.0f %% for sure",
                  others, text_plural(others), 100.0 * NOTHING);
}

static void put_losses(const struct pairs *p, struct document *d)
{
    static const struct frame_column columns[] = {
        {.name = "device", .kind = FRAME_TEXT, .title = "victim below the cap"},
        {.name = "kernel", .kind = FRAME_TEXT, .title = ""},
        {.name = "loss", .title = "loss", .format = "%.3f"},
        {.name = "low", .only_data = true},
        {.name = "high", .only_data = true},
        {.name = "n", .title = "pairs measured", .format = "%.0f"},
    };
    struct frame *f = DOCUMENT_FRAME(d, "losses", 0, columns);
    for (size_t i = 0; i < p->n_losses; i++) {
        const struct pairs_loss *l = &p->losses[i];
        FRAME_ROW(f, l->device, l->model, frame_shown(l->frac.value, interval(&l->frac, "%.3f")),
                  l->frac.low, l->frac.high, l->frac.n);
    }
}

static void put_verdict(const struct pairs *p, struct document *d)
{
    double most = GB * p->most_bytes_per_s;
    double asked = GB * p->asked_bytes_per_s;
    document_note(d, "%s", "");
    if (p->saturated) {
        document_note(
            d,
            "ddr.peak: %.1f GB/s reach these two devices together; the pair that asks for "
            "most would take %.1f.",
            most, asked);
    } else {
        document_note(d,
                      "ddr.peak: at least %.1f GB/s. No pair asks for more than %.1f, so this "
                      "machine's pair does not show the cap, nor how the devices would share it.",
                      most, asked);
    }
    if (p->share.n > 0) {
        document_note(d, "Above the cap %s gets %s of it, in %u pair%s with both slowed.",
                      p->devices[0], interval(&p->share, "%.2f"), p->share.n,
                      text_plural(p->share.n));
    } else if (p->saturated) {
        document_note(d, "No pair above the cap slows both devices: their weights do not show.");
    }
    document_note(d,
                  "%zu of %zu observation%s had fewer than %d samples in which both kernels ran.",
                  p->left_out, p->rows, text_plural(p->rows), PAIRS_MIN_SAMPLES);
}

void measure_pairs_document(const struct pairs *p, struct document *d)
{
    DOCUMENT_VALUES(d, "most_gbs", GB * p->most_bytes_per_s, "asked_gbs", GB * p->asked_bytes_per_s,
                    "saturated", p->saturated, "share", p->share.value, "left_out", p->left_out,
                    "observations", p->rows);
    put_cells(p, d);
    document_note(d, "%s", "");
    put_losses(p, d);
    put_verdict(p, d);
}
