/* Declarations shared by the parts of the report page. */
#pragma once

#include <cjson/cJSON.h>

#include "experiments/report/report.h"
#include "experiments/shell/markup.h"
#include "plots/about.h"
#include "sim/base/json.h"
#include "sim/metrics/metric_table.h"

/* ---- report_page.c ---- */

/* Calls put for every {text} of the skeleton but {css} and {js}. */
void report_page_put(const struct report_page *p,
                     void (*put)(void *ctx, const char *what, FILE *out), void *ctx, FILE *out);

/* ---- report_text.c ---- */

/* Prints a mean with its interval as on the terminal: "7.51 [6.88, 8.15]". */
void report_put_mean(FILE *out, const cJSON *metric);
/* Whether a difference is significant: also after Holm's correction, and not of a single run. */
bool report_is_shown(const char *verdict);
/* Prints the paired difference to the baseline: with its interval and as a percentage if it is
 * significant, else the verdict. A difference below `relevance` is marked as not relevant. */
void report_put_change(FILE *out, const cJSON *metric, const cJSON *base, double relevance_frac);
/* Number of a policy's overloaded runs, as 5 in "overloaded in 5 of 20"; 0: not stated. */
unsigned report_overloaded(const cJSON *tree, const char *policy, unsigned *runs);
/* Number of its runs that ended with an empty battery. */
unsigned report_battery_empty(const cJSON *tree, const char *policy, unsigned *runs);

/* ---- report_tables.c ---- */

void report_write_headline_table(const cJSON *tree, FILE *out);
void report_write_all_metrics(const cJSON *tree, FILE *out);
/* Prints the result of `compare --uncertainty`, if there is one. */
void report_write_uncertainty(const cJSON *tree, FILE *out);
/* Prints the errors of a hardware model, and all its numbers. */
void report_write_hardware(const cJSON *part, FILE *out);
/* Prints date, command and seeds of the run. */
void report_write_again(const struct report_input *in, FILE *out);

/* ---- report_drive.c ---- */

/* Whether it is the output of `drive --compare`. */
bool report_is_drive(const cJSON *tree);
void report_write_drive(const cJSON *tree, FILE *out);

/* ---- report_headline.c ---- */

/* Prints the best policy by the primary metric, against the baseline, and overloaded policies. */
void report_write_headline(const cJSON *tree, FILE *out);

/* ---- report_live.c ---- */

/* Writes the runs and comparisons among the files as data of the live page, and a text for readers
 * without JavaScript. */
void report_write_live(const struct report_page *page, const struct figure_request *all, FILE *out);
/* Prints "openvino-cb, agent-xpu-v2 on MODEL on SOC" for the first file of runs; false: there is
 * none. */
bool report_put_runs(const struct figure_request *all, FILE *out);
