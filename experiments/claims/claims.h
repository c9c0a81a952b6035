/* The published results of the papers, compared with the simulator's.
 *
 * A claims file (experiments/claims/) is data: `quantities`, named things that can be computed (a
 * simulated run, the highest rate a policy sustains, a kernel's cost), and `claims`. Each claim has
 * checks: an expression over the quantities, and the published value.
 *
 * The papers measured one trace of 15 minutes each. Replication k of every run has its own trace,
 * the same for all runs, so an expression has one value per single trace. Two questions follow:
 * where is the mean (t interval), and would one trace show the published value. The range of single
 * traces lies between their quantiles of 2.5 and 97.5 %, of rank p (n + 1). It holds the next trace
 * with probability 95 % for any distribution. With CLAIM_TRACES traces these are the least and the
 * most (38/40). With fewer the range holds less, and more do not widen it.
 *
 *   number  `published` (or `published_low` and `published_high`):
 *           reproduced   all three hold: it meets the range of the single traces; the mean's
 *                        interval lies on its side of `neutral` (where one is given: 0 % or 1x);
 *                        the range is no wider than CLAIM_WIDTH_FACTOR times the effect
 *                        published (its distance from neutral, or from 0). A value without
 *                        spread (a kernel's cost) has `tolerance_frac` (default 0.1) of itself
 *                        instead.
 *           compatible   all but the last: one trace may well show it, and much else. It is not
 *                        decided, and never counts as holding
 *           direction    only the second
 *   order   `above` or `below`:
 *           reproduced   the mean's interval lies there;  direction: only the mean does. With
 *                        `every_trace` (a bound on a maximum) each single trace lies there, and
 *                        there is no direction
 *   else    not reproduced
 *
 * A claim is as good as its worst check; an `informative` check is printed and does not count. A
 * claim from which a parameter was set says `set_by`; then `reproduced` reads `calibrated`.
 * Thresholds that no paper states (a bound of an order, a tolerance) are marked `ours`.
 *
 * A choice that a text leaves open is an interpretation, called *reading* in the files. The file
 * names each with its reason and its change (setup.h). A claim lists the readings that apply, and
 * the one it takes (`take`; "stated", the quantities as they are, unless it says otherwise). Every
 * reading of a claim gets a verdict of its own.
 *
 * Some numbers of a machine file may come from the paper under test. A claims file then names an
 * `independent` machine, which takes fewer from it (its `why` says which). The reading taken gets a
 * verdict there, too. */
#pragma once

#include <cjson/cJSON.h>

#include "experiments/claims/quantities.h"
#include "experiments/run/jobs.h"
#include "experiments/shell/document.h"
#include "sim/stats/stats.h"

#define CLAIMS_MAX_CHECKS 64
#define CLAIM_WIDTH_FACTOR 1.0 /* ours */
#define CLAIM_TRACES 39        /* the fewest whose range holds the next with CLAIM_RANGE_FRAC */
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
    bool ours;        /* its threshold is this project's, not the paper's */
    bool every_trace; /* an order that each single trace must keep */
    /* A headline of its paper: its words, what decides the result, and what the published value
     * would take. NULL: it is none. */
    const char *headline, *decides, *takes;
    /* results */
    double *x; /* owned; one value per replication */
    struct stats_interval mean;
    double least, most;     /* range of the single traces; without spread: mean -+ tolerance */
    double lowest, highest; /* of all single traces */
    double percentile;      /* of the published value (a range's middle) among x; NaN for orders */
    enum claim_verdict verdict;
};

struct claim {
    const char *paper, *id, *where, *statement; /* borrowed from the tree */
    const char *text_setup;                     /* what the text says of the set-up, or NULL */
    const char *set_by, *note, *not_modellable; /* or NULL */
    const char *reading, *why;                  /* of the set-up; why NULL as stated */
    bool taken;                                 /* the reading that the file would take */
    bool independent;   /* the claim before it, on the independent machine */
    struct setup setup; /* what the reading changes */
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
    struct setup independent[CLAIMS_MAX_BOOKS]; /* empty where a file names no such machine */
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

/* Applies the changes of the command line, after every reading. */
int claims_change(struct claims *c, const struct setup *s, struct err *e);

/* Runs every quantity that the claims kept refer to, and judges them. 0; -EINVAL for a bad
 * expression or run (nothing was run); -EIO when runs failed (each an error). */
int claims_run(struct claims *c, const struct quantities_options *o, struct err *e);

/* Whether the row is the reading of its claim that counts: the one taken, or the first where that
 * was not asked for. */
bool claims_counts(const struct claims *c, uint32_t at);
/* The claim on the independent machine, which follows it; or NULL. */
const struct claim *claims_independent(const struct claims *c, uint32_t at);

/* Adds, behind the reading that counts of each claim whose file names an independent machine, the
 * same on that machine. Last before judging: what selects or changes claims comes first. */
int claims_add_independent(struct claims *c, struct err *e);

/* A parameter was set from this claim (from every claim where id is NULL), so it is no test: `why`,
 * borrowed, is its set_by where the file gives none. */
void claims_set_by(struct claims *c, const char *id, const char *why);

/* Does a claim with this verdict hold: reproduced or calibrated? A compatible claim is not decided,
 * and does not hold. */
bool claim_verdict_holds(enum claim_verdict v);

/* Value of the trace that is furthest on the wrong side of an order's bound. */
double claim_worst_trace(const struct claim_check *k);

/* The value of rank p (n + 1) among n > 0 sorted ones, between two of them by a straight line. With
 * this rank the next value lies below it with probability p. */
double claim_ranked(const double *sorted, uint32_t n, double p);

/* Fills means, verdicts and reasons from the checks' n values each: the rules above. Pure. */
void claim_judge(struct claim *c, uint32_t n);

/* Adds a line per claim, then a line per check with `details`; as data an array `name`. Next to
 * each verdict is that on the independent machine, where there is one. */
void claims_document(const struct claims *c, bool details, const char *name, struct document *d);

/* A check as texts of a document: "1.6 to 6.8"; "3.9 [3.1, 4.7]", the mean with its interval. */
const char *claim_published_text(const struct claim_check *k);
const char *claim_simulated_text(const struct claim_check *k);
