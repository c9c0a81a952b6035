/* The description at the beginning of a result: its kind, its run and its command. Figures and the
 * report page read it (plots/about.h), and name policy, model, machine and workload by it. */
#pragma once

#include "experiments/run/config.h"
#include "experiments/shell/document.h"

struct about {
    const char *kind;                   /* "requests": the key of plots/figure.c */
    const struct config *config;        /* NULL: no machine */
    const struct config_policy *policy; /* NULL: none, or several, which the result names */
    const struct trace *trace;          /* of the run; NULL: no run, or many */
    uint64_t seed;
    bool workload; /* many runs of the configuration's workload */
};

/* Adds it to a document as the member "about". */
void about_document(const struct about *a, struct document *d);
/* Returns it as one line of JSON; the caller frees it. */
char *about_text(const struct about *a);
/* Returns it as lines "# key: value" for the top of a CSV file, without double quotes, which CSV
 * readers interpret; the caller frees it. */
char *about_comment(const struct about *a);
