/* What the papers published, held against what the simulator says.
 *
 * A claims file (experiments/claims/) is data: `quantities`, named things that can be computed (a
 * simulated run, the highest rate a policy sustains, a kernel's cost), and `claims`, each with
 * checks: an expression over the quantities and what was published about it.
 *
 * The papers measured one trace of 15 minutes each. Replication k of every run has its own trace,
 * the same for all runs, so an expression has one value per single trace, and two questions can be
 * told apart: what is its mean (t interval), and is the published value what one trace may well
 * show. The range of 39 single traces holds the next one with probability 95 %, whatever their
 * distribution (38/40), so 39 is the default number.
 *
 *   number  `published` (or `published_low` and `published_high`):
 *           reproduced   it meets the range of the single traces, the mean's interval lies on its
 *                        side of `neutral` (where one is given: 0 % or 1x), and the range is no
 *                        wider than CLAIM_WIDTH_FACTOR times the effect published (its distance
 *                        from neutral, or from 0). What has no spread (a kernel's cost) has
 *                        `tolerance_frac` (default 0.1) of itself instead.
 *           compatible   all but the last: one trace may well show it, and much else; not decided
 *           direction    only the second
 *   order   `above` or `below`:
 *           reproduced   the mean's interval lies there;  direction: only the mean does
 *   else    not reproduced
 *
 * A claim is as good as its worst check; an `informative` check is printed and does not count. A
 * claim from which a parameter was set says `set_by`; then `reproduced` reads `calibrated`.
 * Thresholds that no paper states (a bound of an order, a tolerance) are marked `ours`.
 *
 * What a text leaves open of a claim's set-up is a *reading*: the file names each with the reason
 * for it and what it changes (setup.h), a claim lists those that apply and which one it would take
 * (`take`; "stated", the quantities as they are, unless it says otherwise). Every reading of a
 * claim is judged as a claim of its own.
 */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdio.h>

#include "experiments/claims/quantities.h"
#include "experiments/run/jobs.h"
#include "experiments/shell/document.h"
#include "sim/base/err.h"
#include "sim/stats/stats.h"

#define CLAIMS_MAX_CHECKS 64
#define CLAIM_WIDTH_FACTOR 1.0 /* ours */

enum claim_verdict {
    CLAIM_REPRODUCED,
    CLAIM_CALIBRATED,
    CLAIM_COMPATIBLE,
    CLAIM_DIRECTION,
    CLAIM_NOT_REPRODUCED,
    CLAIM_NOT_MODELLABLE,
    CLAIM_VERDICT_COUNT
};
extern const char *const claim_verdict_names[];

enum check_kind { CHECK_NUMBER, CHECK_ABOVE, CHECK_BELOW };

struct claim_check {
    const char *name, *unit, *value; /* borrowed from the tree; value: an expression */
    enum check_kind kind;
    double low, high; /* published; equal for one number; the bound of an order */
    double neutral;   /* NaN: none */
    double tolerance_frac;
    bool informative;
    bool ours; /* its threshold is this project's, not the paper's */
    /* results */
    double *x; /* owned; one value per replication */
    struct stats_interval mean;
    double least, most; /* of the single traces; of what has no spread: mean -+ tolerance */
    double percentile;  /* of the published value (a range's middle) among x; NaN for orders */
    enum claim_verdict verdict;
};

struct claim {
    const char *paper, *id, *where, *statement; /* borrowed from the tree */
    const char *text_setup;                     /* what the text says of the set-up, or NULL */
    const char *set_by, *note, *not_modellable; /* or NULL */
    const char *reading, *why;                  /* of the set-up; why NULL as stated */
    bool taken;                                 /* the reading that the file would take */
    struct setup setup;                         /* what the reading changes */
    uint32_t scope;                             /* of its quantities (quantities_setup) */
    struct claim_check checks[CLAIMS_MAX_CHECKS];
    uint32_t n_checks;
    uint32_t book;
    enum claim_verdict verdict;
    char reason[512];
};

#define CLAIMS_MAX_BOOKS 8

struct claims {
    struct quantities books[CLAIMS_MAX_BOOKS]; /* one per file */
    cJSON *trees[CLAIMS_MAX_BOOKS];            /* owned */
    uint32_t n_books;
    struct claim *v; /* owned; in the order of the files, a claim's readings together */
    uint32_t n;
};

/* Reads one file and adds its claims. Errors name file and key path. claims_fini in every case. */
int claims_read(struct claims *c, const char *path, struct err *e);
void claims_fini(struct claims *c);

/* Keeps the claims whose id is among ids (all when n is 0); an id that no claim has is an error. */
int claims_select(struct claims *c, const char *const *ids, uint32_t n, struct err *e);

/* Keeps one reading of each claim: "taken", or the one of that name where a claim has it; all of
 * "all". A name that no claim has is an error. */
int claims_choose(struct claims *c, const char *reading, struct err *e);

/* What the command line changes, on top of every reading. */
int claims_change(struct claims *c, const struct setup *s, struct err *e);

/* Asks for every quantity that the claims kept refer to, and judges them; ctx: struct claims_run.
 */
struct claims_run {
    struct claims *claims; /* borrowed, as options and e */
    const struct quantities_options *options;
    struct err *e;
    int rc; /* 0; -EINVAL for a bad expression or run (nothing was run); -EIO when runs failed (each
               an error) */
    struct quantities_rounds *rounds; /* owned, while it is judging */
};
study_judge claims_judge;

/* Fills means, verdicts and reasons from the checks' n values each: the rules above. Pure. */
void claim_judge(struct claim *c, uint32_t n);

/* Adds a line per claim, then a line per check with `details`; as data an array `name`. */
void claims_document(const struct claims *c, bool details, const char *name, struct document *d);
