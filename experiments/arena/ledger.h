/* The ledger of a campaign: one line per judgement, in a file that only grows.
 *
 * A search over a thousand candidates finds one that is only lucky. The ledger counts candidates,
 * and the last judgement divides its level by their number. With it, the sealed split is used only
 * once for each candidate.
 *
 * Columns: split (public or sealed), suite (its hash), policy, code (hash of a plug-in's file or
 * program; 0 of a shipped policy), score, p, regressions, passes. Several processes may append. */
#pragma once

#include "sim/base/base.h"

struct ledger_entry {
    bool sealed;
    const char *suite;  /* hash */
    const char *policy; /* with its parameters */
    uint64_t code;
    double score, p;
    uint32_t regressions;
    bool passes;
};

struct ledger_count {
    uint32_t candidates; /* distinct ones, in either split */
    uint32_t sealed;     /* judgements of the sealed split */
    bool seen;           /* the candidate `about` is among them */
    bool seen_sealed;    /* it was also judged on this sealed split */
};

/* Counts the lines of a file; a missing file is an empty campaign. 0, or -EINVAL with an error. */
int ledger_read(const char *path, const struct ledger_entry *about, struct ledger_count *out,
                struct err *e);
/* Appends a line, and a heading to a new file. 0, or -EINVAL with an error. */
int ledger_append(const char *path, const struct ledger_entry *l, struct err *e);
