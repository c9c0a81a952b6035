/* Runs to look at: simulates policies with everything recorded that the live page shows, as one
 * document (docs/schemas/view.json). */
#pragma once

#include "experiments/run/config.h"
#include "experiments/shell/options.h"

struct view_runs {
    const struct config_options *config;
    const struct option_texts *policies;
    double time_limit_s;
    double from_s, to_s; /* window in which every kernel is recorded; to_s 0: none */
    bool recompute;      /* with what the page needs to compare the policies itself */
};

/* The document: {about, version, runs: [{policy, about, result, schedule}], differences: [{a, b,
 * differs, ..}], recompute: {arguments, files}}. Every policy runs once, on the same requests;
 * those from outside in a process of their own. Returns the exit status; errors of runs are on
 * stderr. Nothing useful is written unless it is 0. */
int view_runs_write(const struct view_runs *v, FILE *out, struct err *e);
