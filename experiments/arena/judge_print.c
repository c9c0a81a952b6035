/* A judgement as a document. */
#include "experiments/arena/judge.h"

#include "sim/base/portable.h"

void judge_document_suite(const struct suite *s, const char *split, uint32_t replications,
                          const char *reference, struct document *d)
{
    uint32_t scored = 0;
    for (uint32_t i = 0; i < s->n_points; i++) {
        scored += s->points[i].scored ? 1 : 0;
    }
    DOCUMENT_VALUES(d, "suite", s->spec.name, "split", split, "hash",
                    document_format("%s", s->hash), "frozen", suite_is_frozen(s), "points",
                    s->n_points, "scored_points", scored, "replications", replications, "reference",
                    reference);
    document_note(d,
                  "%s [%s], %s split: %" PRIu32 " point%s, %" PRIu32 " scored; %" PRIu32
                  " replication%s; reference %s",
                  s->spec.name, s->hash, split, s->n_points, text_plural(s->n_points), scored,
                  replications, text_plural(replications), reference);
    if (s->recorded[0] == '\0') {
        document_note(d,
                      "note: the suite's file states no hash. With \"hash\": \"%s\" in its "
                      "\"suite\" later judgements warn of changes",
                      s->hash);
    } else if (!suite_is_frozen(s)) {
        document_note(d,
                      "warning: the suite was frozen as [%s]: machines, models or generators "
                      "are others now, and scores do not compare with the archive's",
                      s->recorded);
    }
}

static void put_cells(const struct suite *s, const struct judge_result *r,
                      const struct certificate *c, struct document *d)
{
    static const struct frame_column columns[] = {
        {.name = "point", .kind = FRAME_TEXT, .heading = true},
        {.name = "metric", .kind = FRAME_TEXT},
        {.name = "value", .format = "%.4g"},
        {.name = "reference", .format = "%.4g"},
        {.name = "gain", .title = "better by", .format = "%.3f", .unit = "times"},
        {.name = "gain_low", .title = "from", .format = "%.3f"},
        {.name = "gain_high", .title = "to", .format = "%.3f"},
        {.name = "best", .title = "best known", .format = "%.4g"},
        {.name = "p_worse", .title = "p of a loss", .format = "%.2g", .only_data = true},
        {.name = "p_holm", .title = "p (Holm)", .format = "%.2g"},
        {.name = "scored", .kind = FRAME_FLAG, .only_data = true},
        {.name = "lost", .format = "%.0f", .only_data = true},
    };
    struct frame *f = DOCUMENT_FRAME(d, "cells", 2, columns);
    frame_main(f);
    for (uint32_t i = 0; i < s->n_points * s->spec.n_patterns; i++) {
        const struct score_cell *x = &r->cells[i];
        const struct suite_point *p = &s->points[i / s->spec.n_patterns];
        FRAME_ROW(f, p->name, s->spec.patterns[i % s->spec.n_patterns], r->means[i],
                  r->reference_means[i], portable_exp(x->gain.mean), portable_exp(x->gain.low),
                  portable_exp(x->gain.high), c != NULL ? c->rows[i].best : (double)NAN, x->p_worse,
                  x->p_holm, p->scored, x->lost);
    }
}

static void put_regressions(const struct suite *s, const struct judge_result *r, struct document *d)
{
    struct frame *f = document_data(d, "significant_regressions", 0, "name ratio");
    for (uint32_t i = 0; i < s->n_points * s->spec.n_patterns; i++) {
        if (!r->cells[i].regression) {
            continue;
        }
        const char *name = document_format("%s.%s", s->points[i / s->spec.n_patterns].name,
                                           s->spec.patterns[i % s->spec.n_patterns]);
        double ratio = portable_exp(-r->cells[i].gain.mean);
        FRAME_ROW(f, name, ratio);
        if (r->cells[i].lost > 0) {
            document_note(d,
                          "  regression: %s, failed or left requests in %" PRIu32 " replication%s",
                          name, r->cells[i].lost, text_plural(r->cells[i].lost));
        } else {
            document_note(d, "  regression: %s, %.3f times worse (p %.2g)", name, ratio,
                          r->cells[i].p_holm);
        }
    }
}

void judge_document(const struct suite *s, const char *policy, const struct judge_result *r,
                    const struct certificate *c, struct document *d)
{
    const struct stats_interval *g = &r->score.gain;
    DOCUMENT_VALUES(d, "policy", policy, "score", portable_exp(g->mean), "p_better",
                    r->score.p_better, "headroom_left", expm1(r->headroom), "failed_runs",
                    r->n_failed);
    DOCUMENT_VALUES(document_within(d, "interval"), "low", portable_exp(g->low), "high",
                    portable_exp(g->high));
    document_heading(d, "%s", policy);
    document_note(d, "score %.4f [%.4f, %.4f], p %.2g; %" PRIu32 " significant regression%s",
                  portable_exp(g->mean), portable_exp(g->low), portable_exp(g->high),
                  r->score.p_better, r->score.regressions, text_plural(r->score.regressions));
    if (isfinite(r->headroom)) {
        document_note(d, "the best known is %.1f %% better still", 100.0 * expm1(r->headroom));
    }
    put_regressions(s, r, d);
    put_cells(s, r, c, d);
}
