/* Prints claims as a document. */
#include "experiments/claims/claims.h"
#include "sim/stats/stats.h"

const char *claim_published_text(const struct claim_check *k)
{
    if (k->kind != CHECK_NUMBER) {
        return document_format("%s %g", k->kind == CHECK_ABOVE ? "above" : "below", k->low);
    }
    return k->low == k->high ? document_format("%g", k->low)
                             : document_format("%g to %g", k->low, k->high);
}

/* The worst trace if that decides; a value without spread has no interval. */
const char *claim_simulated_text(const struct claim_check *k)
{
    return k->every_trace && k->mean.sd > 0.0
               ? document_format("%.4g at worst", claim_worst_trace(k))
           : k->mean.sd > 0.0       ? stats_format(&k->mean)
           : isfinite(k->mean.mean) ? document_format("%.4g", k->mean.mean)
                                    : "-";
}

static struct frame_value published(const struct claim_check *k)
{
    const char *shown = claim_published_text(k);
    return k->kind == CHECK_NUMBER && k->low == k->high ? frame_shown(k->low, shown)
                                                        : frame_value_text(shown);
}

const struct claim *claims_independent(const struct claims *c, uint32_t at)
{
    return at + 1 < c->n && c->v[at + 1].independent ? &c->v[at + 1] : NULL;
}

static const char *check_word(const struct claim_check *k)
{
    return k->informative ? "for information" : claim_verdict_names[k->verdict];
}

/* A check's value and verdict on the independent machine: "26.6, not reproduced". */
static const char *other_text(const struct claim *other, uint32_t check)
{
    const struct claim_check *k = &other->checks[check];
    return document_format("%s, %s", claim_simulated_text(k), check_word(k));
}

static void show_details(const struct claim *c, const struct claim *other, struct document *d)
{
    document_note(d, "%s  %s%s%s\n    %s, %s. %s", c->id, claim_verdict_names[c->verdict],
                  other != NULL ? "; on the independent machine: " : "",
                  other != NULL ? claim_verdict_names[other->verdict] : "", c->paper, c->where,
                  c->statement);
    if (c->why != NULL) {
        document_note(d, "    Reading \"%s\"%s: %s", c->reading,
                      c->taken ? ", the one to take" : "", c->why);
    }
    struct frame *f = document_table(d, 4, "llrrlrll", "", "", "published", "simulated", "",
                                     "percentile", "", other != NULL ? "independent" : "");
    for (uint32_t i = 0; i < c->n_checks; i++) {
        const struct claim_check *k = &c->checks[i];
        bool among = isfinite(k->percentile) && k->mean.sd > 0.0;
        FRAME_ROW(f, "", k->name, published(k), claim_simulated_text(k), k->unit,
                  FRAME_IF(among, document_format("%.0f", k->percentile)), check_word(k),
                  other != NULL ? other_text(other, i) : "");
    }
    document_note(d, "    %s\n", c->reason);
}

static void show_brief(const struct claim *c, const struct claim *other, struct document *d)
{
    const char *reading =
        c->why == NULL ? "" : document_format(" [%s%s]", c->reading, c->taken ? ", taken" : "");
    document_note(d, "%-4s %-23s %-23s  %s%s: %s", c->id, claim_verdict_names[c->verdict],
                  other != NULL ? claim_verdict_names[other->verdict] : "-", c->statement, reading,
                  c->reason);
}

/* The check to print first: the one that decided. */
static const struct claim_check *deciding(const struct claim *c)
{
    const struct claim_check *worst = NULL;
    for (uint32_t i = 0; i < c->n_checks; i++) {
        const struct claim_check *k = &c->checks[i];
        if (!k->informative && (worst == NULL || k->verdict > worst->verdict)) {
            worst = k;
        }
    }
    return worst;
}

static void put_checks(const struct claim *c, const struct claim *other, struct document *d)
{
    const double none = (double)NAN;
    const struct claim_check absent = {.mean = {.mean = none, .low = none, .high = none}};
    struct frame *f = document_data(d, "checks", 0,
                                    "name unit published neutral simulated low high n least most "
                                    "worst percentile every_trace informative ours "
                                    "verdict independent_simulated independent_low "
                                    "independent_high independent_verdict");
    frame_main(f);
    for (uint32_t i = 0; i < c->n_checks; i++) {
        const struct claim_check *k = &c->checks[i];
        const struct claim_check *there = other != NULL ? &other->checks[i] : &absent;
        FRAME_ROW(f, k->name, k->unit, published(k), k->neutral, k->mean.mean, k->mean.low,
                  k->mean.high, k->mean.n, k->least, k->most,
                  k->every_trace ? claim_worst_trace(k) : none, k->percentile, k->every_trace,
                  k->informative, k->ours, claim_verdict_names[k->verdict], there->mean.mean,
                  there->mean.low, there->mean.high,
                  FRAME_IF(other != NULL, claim_verdict_names[there->verdict]));
    }
}

static void put_claim(const struct claim *c, const struct claim *other, bool in_sum,
                      struct document *d)
{
    const struct claim_check *k = deciding(c);
    double none = (double)NAN;
    DOCUMENT_VALUES(d, "id", c->id, "paper", c->paper, "where", c->where, "statement", c->statement,
                    "reading", c->reading, "taken", c->taken, "counts", in_sum, "why",
                    FRAME_IF(c->why != NULL, c->why), "setup",
                    FRAME_IF(c->text_setup != NULL, c->text_setup), "unit",
                    k != NULL ? frame_value_text(k->unit) : FRAME_ABSENT);
    DOCUMENT_VALUES(d, "published", k != NULL ? published(k) : FRAME_NONE, "simulated",
                    k != NULL ? k->mean.mean : none, "low", k != NULL ? k->mean.low : none, "high",
                    k != NULL ? k->mean.high : none, "verdict", claim_verdict_names[c->verdict],
                    "independent_verdict",
                    FRAME_IF(other != NULL, claim_verdict_names[other->verdict]), "set_by",
                    FRAME_IF(c->set_by != NULL, c->set_by), "reason", c->reason);
    put_checks(c, other, d);
}

static void show_count(const char *of, const uint32_t *count, uint32_t n, struct document *d)
{
    const char *line = document_format("%s%u claim%s:", of, n, text_plural(n));
    for (int v = 0; v < CLAIM_VERDICT_COUNT; v++) {
        line =
            document_format("%s%s %u %s", line, v > 0 ? "," : "", count[v], claim_verdict_names[v]);
    }
    document_note(d, "%s", line);
}

void claims_document(const struct claims *c, bool details, const char *name, struct document *d)
{
    uint32_t count[CLAIM_VERDICT_COUNT] = {0};
    uint32_t there[CLAIM_VERDICT_COUNT] = {0};
    uint32_t n = 0;
    uint32_t n_there = 0;
    struct document *list = document_array(d, name);
    for (uint32_t i = 0; i < c->n; i++) {
        const struct claim *one = &c->v[i];
        if (one->independent) {
            continue;
        }
        const struct claim *other = claims_independent(c, i);
        bool in_sum = claims_counts(c, i);
        (details ? show_details : show_brief)(one, other, d);
        put_claim(one, other, in_sum, document_within(list, NULL));
        count[one->verdict] += in_sum;
        n += in_sum;
        if (other != NULL) {
            there[other->verdict] += in_sum;
            n_there += in_sum;
        }
    }
    show_count("", count, n, d);
    if (n_there > 0) {
        show_count("on the independent machine, ", there, n_there, d);
    }
}
