/* Compares the published results of the papers with the simulator's.
 *
 * A claims file (experiments/claims/) is data: `quantities`, named things that can be computed (a
 * simulated run, the highest rate a policy sustains, a kernel's cost), and `claims`. Each claim has
 * checks: an expression over the quantities, and the published value.
 *
 * The papers measured one trace of 15 minutes each. Replication k of every run has its own trace,
 * the same for all runs, so an expression has one value per single trace. The checks ask two
 * questions: where is the mean (t interval), and could one trace give the published value? The
 * range of single traces lies between their quantiles of 2.5 and 97.5 %, of rank p (n + 1). It
 * contains the value of one more trace with probability 95 % for any distribution. With
 * CLAIM_TRACES traces the quantiles are minimum and maximum (38/40). With fewer traces the
 * probability is lower; with more the range does not grow.
 *
 *   number  `published` (or `published_low` and `published_high`):
 *           reproduced   all three hold: the published value lies in the range of the single
 *                        traces; the mean's interval lies on the same side of `neutral` (if given:
 *                        0 % or 1x); the range is no wider than CLAIM_WIDTH_FACTOR times the
 *                        published effect (its distance from neutral, or from 0). A value without
 *                        spread (a kernel's cost) has the range +- `tolerance_frac` (default 0.1).
 *           compatible   all but the last: one trace could give the value, but also very different
 *                        ones. The check is not decided, and never counts as holding
 *           direction    only the second
 *   order   `above` or `below`:
 *           reproduced   the mean's interval is on that side;  direction: only the mean is. With
 *                        `every_trace` (a bound on a maximum) each single trace is, and there is
 *                        no direction
 *   else    not reproduced
 *
 * A claim has the verdict of its worst check; an `informative` check is printed and does not count.
 * If a parameter was set from the claim, `set_by` names it, and `calibrated` replaces `reproduced`.
 * Thresholds that no paper states (a bound of an order, a tolerance) are marked `ours`.
 *
 * A choice that a text leaves open is an interpretation, called *reading* in the files. The file
 * has the reason and the change (setup.h) of each. A claim lists the readings that apply, and the
 * one that counts (`take`; the default "stated" is the quantities unchanged). Every reading of a
 * claim has its own verdict.
 *
 * Some numbers of a machine file may come from the paper under test. A claims file then names an
 * `independent` machine with fewer of these numbers (listed in its `why`). The taken reading gets a
 * second verdict on it. */
#pragma once

#include <cjson/cJSON.h>

#include "experiments/claims/quantities.h"
#include "experiments/run/jobs.h"
#include "experiments/shell/document.h"
#include "sim/stats/stats.h"

#define CLAIMS_MAX_CHECKS 64
#define CLAIM_WIDTH_FACTOR 1.0 /* ours */
#define CLAIM_TRACES 39        /* fewest traces for a range of probability CLAIM_RANGE_FRAC */
#define CLAIM_RANGE_FRAC 0.95

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
    bool ours;        /* the threshold is this project's, not the paper's */
    bool every_trace; /* the order must hold in each single trace */
    /* For a headline of its paper: its text, what decides the result, and what would have to change
     * for the published value. NULL: not a headline. */
    const char *headline, *decides, *takes;
    /* results */
    double *x; /* owned; one value per replication */
    struct stats_interval mean;
    double least, most;     /* range of single traces; without spread: mean -+ tolerance */
    double lowest, highest; /* of all single traces */
    double percentile;      /* of the published value (a range's middle) among x; NaN for orders */
    enum claim_verdict verdict;
};

struct claim {
    const char *paper, *id, *where, *statement; /* borrowed from the tree */
    const char *text_setup;                     /* the paper's text on the set-up, or NULL */
    const char *set_by, *note, *not_modellable; /* or NULL */
    const char *reading, *why;                  /* of the set-up; why is NULL for "stated" */
    bool taken;                                 /* the reading that counts by the file */
    bool independent;   /* repeats the claim before it on the independent machine */
    struct setup setup; /* changes of this reading */
    uint32_t scope;     /* of its quantities (quantities_setup) */
    struct claim_check checks[CLAIMS_MAX_CHECKS];
    uint32_t n_checks;
    uint32_t book;
    enum claim_verdict verdict;
    char reason[512];
};

#define CLAIMS_MAX_BOOKS 8

struct claims {
    struct quantities books[CLAIMS_MAX_BOOKS];  /* one per file */
    cJSON *trees[CLAIMS_MAX_BOOKS];             /* owned */
    struct setup independent[CLAIMS_MAX_BOOKS]; /* empty if the file names none */
    uint32_t n_books;
    struct claim *v; /* owned; in the order of the files; readings of a claim are adjacent */
    uint32_t n;
};

/* Reads one file and adds its claims. Errors name file and key path. claims_fini in every case. */
int claims_read(struct claims *c, const char *path, struct err *e);
void claims_fini(struct claims *c);

/* Keeps the claims whose id is among ids (all when n is 0); an unknown id is an error. */
int claims_select(struct claims *c, const char *const *ids, uint32_t n, struct err *e);

/* Keeps one reading of each claim: the taken one for "taken", else that of this name if the claim
 * has it. "all" keeps all. A name that no claim has is an error. */
int claims_choose(struct claims *c, const char *reading, struct err *e);

/* Applies the changes of the command line on top of every reading. */
int claims_change(struct claims *c, const struct setup *s, struct err *e);

/* Runs every quantity that the kept claims need, and sets their verdicts. Returns 0; -EINVAL for a
 * bad expression or run (nothing was run); -EIO if runs failed (an error each). */
int claims_run(struct claims *c, const struct quantities_options *o, struct err *e);

/* Whether the row is the reading that counts for its claim: the taken one, or the first if that was
 * not selected. */
bool claims_counts(const struct claims *c, uint32_t at);
/* The row after it, if that is the same claim on the independent machine; else NULL. */
const struct claim *claims_independent(const struct claims *c, uint32_t at);

/* For each claim whose file names an independent machine, adds a copy of the counting reading on
 * that machine, after it. Call it after all functions that select or change claims. */
int claims_add_independent(struct claims *c, struct err *e);

/* Declares that a parameter was set from this claim (id NULL: from every claim), so the claim is no
 * test. `why`, borrowed, becomes set_by unless the file has one. */
void claims_set_by(struct claims *c, const char *id, const char *why);

/* Whether a claim with this verdict holds: reproduced or calibrated. A compatible claim is not
 * decided, so it does not hold. */
bool claim_verdict_holds(enum claim_verdict v);

/* Value of the trace furthest on the wrong side of an order's bound. */
double claim_worst_trace(const struct claim_check *k);

/* The value of rank p (n + 1) among n > 0 sorted ones, linearly interpolated. A further value lies
 * below it with probability p. */
double claim_ranked(const double *sorted, uint32_t n, double p);

/* Fills means, verdicts and reasons from the n values of each check, by the rules above. Pure. */
void claim_judge(struct claim *c, uint32_t n);

/* Adds a line per claim, then a line per check with `details`; as data an array `name`. Next to
 * each verdict is that on the independent machine, if there is one. */
void claims_document(const struct claims *c, bool details, const char *name, struct document *d);

/* A check as texts of a document: "1.6 to 6.8"; "3.9 [3.1, 4.7]", the mean with its interval. */
const char *claim_published_text(const struct claim_check *k);
const char *claim_simulated_text(const struct claim_check *k);
