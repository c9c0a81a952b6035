/* The description at the beginning of a result: its kind, its run and its command. Figures and the
 * report page read it (plots/about.h), and name policy, model, machine and workload by it. */
#pragma once

#include "experiments/run/config.h"
#include "experiments/shell/document.h"

struct about {
    const char *kind;                   /* "requests": the word plots/figure.c knows it by */
    const struct config *config;        /* or NULL: no machine */
    const struct config_policy *policy; /* or NULL: none, or several that the result names */
    const struct trace *trace;          /* of the one run; NULL: no run, or many */
    uint64_t seed;
    bool workload; /* many runs of the configuration's */
};

/* As the member "about" of a document. */
void about_document(const struct about *a, struct document *d);
/* As one line of JSON; the caller frees it. */
char *about_text(const struct about *a);
/* As the lines "# key: value" that a CSV begins with, without double quotes, which readers of CSV
 * would look into; the caller frees it. */
char *about_comment(const struct about *a);
