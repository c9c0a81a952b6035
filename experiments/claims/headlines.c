#include "experiments/claims/headlines.h"

#include <gsl/gsl_sort.h>

int claims_headlines(struct claims *c, struct err *e)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < c->n; i++) {
        struct claim *one = &c->v[i];
        uint32_t n = 0;
        for (uint32_t k = 0; k < one->n_checks; k++) {
            if (one->checks[k].headline != NULL) {
                one->checks[n++] = one->checks[k];
            }
        }
        one->n_checks = n;
        if (n > 0) {
            c->v[kept++] = *one;
        }
    }
    c->n = kept;
    return kept > 0 ? 0 : err_add(e, "--headline: none of these claims has a headline");
}

uint32_t headline_range(const struct claim_check *file, const struct claim_check *drawn,
                        uint32_t machines, double *low, double *high)
{
    OWNED double *v = xcalloc(machines + 1, sizeof *v);
    uint32_t n = 0;
    for (uint32_t i = 0; i < machines; i++) {
        double sum = 0.0;
        for (uint32_t t = 0; t < QUANTITIES_MACHINE_TRACES; t++) {
            sum += drawn->x[i * QUANTITIES_MACHINE_TRACES + t] - file->x[t];
        }
        double x = file->mean.mean + sum / QUANTITIES_MACHINE_TRACES;
        if (isfinite(x)) {
            v[n++] = x;
        }
    }
    *low = *high = (double)NAN;
    if (n > 0) {
        gsl_sort(v, 1, n);
        *low = claim_ranked(v, n, (1.0 - CLAIM_RANGE_FRAC) / 2.0);
        *high = claim_ranked(v, n, (1.0 + CLAIM_RANGE_FRAC) / 2.0);
    }
    return n;
}

/* Verdicts on both machines; one text if they are equal. */
static const char *verdict_text(const struct claim_check *k, const struct claim_check *other)
{
    const char *here = claim_verdict_names[k->verdict];
    const char *there = other != NULL ? claim_verdict_names[other->verdict] : here;
    return here == there ? here : document_format("%s; independent: %s", here, there);
}

struct row {
    const struct claim *claim;
    const struct claim_check *check, *other, *drawn; /* other, drawn: NULL for none */
    uint32_t machines;
};

static void put_row(const struct row *r, struct frame *f)
{
    const struct claim_check *k = r->check;
    double low = (double)NAN;
    double high = (double)NAN;
    uint32_t n = r->drawn != NULL ? headline_range(k, r->drawn, r->machines, &low, &high) : 0;
    const char *here = claim_simulated_text(k);
    const char *there = r->other != NULL ? claim_simulated_text(r->other) : here;
    const struct stats_interval none = {
        .mean = (double)NAN, .low = (double)NAN, .high = (double)NAN};
    const struct stats_interval *far = r->other != NULL ? &r->other->mean : &none;
    const char *published = claim_published_text(k);
    bool shown = n > 0;
    const struct frame_value texts[] = {FRAME_VALUES(
        r->claim->id, r->claim->paper, k->name, k->headline, k->unit,
        document_format("%s %s", published, k->unit), there, r->other != NULL ? here : "-",
        FRAME_IF(shown, document_format("%.3g to %.3g", low, high)), verdict_text(k, r->other))};
    const struct frame_value data[] = {FRAME_VALUES(
        frame_shown(0.5 * (k->low + k->high), published), k->mean.mean, k->mean.low, k->mean.high,
        far->mean, far->low, far->high, n, low, high, claim_verdict_names[k->verdict],
        FRAME_IF(r->other != NULL, claim_verdict_names[r->other->verdict]), k->decides, k->takes)};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        frame_cell(f, texts[i]);
    }
    for (size_t i = 0; i < sizeof data / sizeof data[0]; i++) {
        frame_cell(f, data[i]);
    }
}

/* This check in the drawn claims. */
static const struct claim_check *drawn_of(const struct claims *drawn, const struct claim *one,
                                          uint32_t check)
{
    for (uint32_t i = 0; drawn != NULL && i < drawn->n; i++) {
        if (strcmp(drawn->v[i].id, one->id) == 0 &&
            strcmp(drawn->v[i].reading, one->reading) == 0) {
            return &drawn->v[i].checks[check];
        }
    }
    return NULL;
}

void headlines_document(const struct claims *c, const struct claims *drawn, uint32_t machines,
                        bool reasons, struct document *d)
{
    const bool data = true;
    const struct frame_column columns[] = {
        {.name = "id", .title = "claim", .kind = FRAME_TEXT},
        {.name = "paper", .kind = FRAME_TEXT},
        {.name = "check", .kind = FRAME_TEXT, .only_data = data},
        {.name = "headline", .kind = FRAME_TEXT},
        {.name = "unit", .kind = FRAME_TEXT, .only_data = data},
        {.name = "", .title = "published", .kind = FRAME_TEXT, .only_text = true},
        {.name = "", .title = "independent machine", .kind = FRAME_TEXT, .only_text = true},
        {.name = "", .title = "anchored machine", .kind = FRAME_TEXT, .only_text = true},
        {.name = "", .title = "drawn machines", .kind = FRAME_TEXT, .only_text = true},
        {.name = "", .title = "verdict", .kind = FRAME_TEXT, .only_text = true},
        {.name = "published", .kind = FRAME_ANY, .only_data = data},
        {.name = "simulated", .only_data = data},
        {.name = "low", .only_data = data},
        {.name = "high", .only_data = data},
        {.name = "independent_simulated", .only_data = data},
        {.name = "independent_low", .only_data = data},
        {.name = "independent_high", .only_data = data},
        {.name = "machines", .only_data = data},
        {.name = "machines_low", .only_data = data},
        {.name = "machines_high", .only_data = data},
        {.name = "verdict", .kind = FRAME_TEXT, .only_data = data},
        {.name = "independent_verdict", .kind = FRAME_TEXT, .only_data = data},
        {.name = "decides", .title = "what decides", .kind = FRAME_TEXT, .only_data = !reasons},
        {.name = "takes", .title = "what it would take", .kind = FRAME_TEXT, .only_data = !reasons},
    };
    struct frame *f = DOCUMENT_FRAME(d, "", 0, columns);
    for (uint32_t i = 0; i < c->n; i++) {
        const struct claim *one = &c->v[i];
        const struct claim *other = claims_independent(c, i);
        for (uint32_t k = 0; k < one->n_checks && !one->independent; k++) {
            struct row r = {.claim = one,
                            .check = &one->checks[k],
                            .other = other != NULL ? &other->checks[k] : NULL,
                            .drawn = drawn_of(drawn, one, k),
                            .machines = machines};
            put_row(&r, f);
        }
    }
}
