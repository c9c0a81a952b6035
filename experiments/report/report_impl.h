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

/* A mean with its interval, as the terminal has it: "7.51 [6.88, 8.15]". */
void report_put_mean(FILE *out, const cJSON *metric);
/* A difference that the comparison shows: not one that Holm's correction took back, nor of one run.
 */
bool report_is_shown(const char *verdict);
/* Prints the paired difference to the baseline: with its interval and as a percentage where it is
 * shown, else the verdict. A difference below `relevance` is marked as not relevant. */
void report_put_change(FILE *out, const cJSON *metric, const cJSON *base, double relevance_frac);
/* "overloaded in 5 of 20" of a policy; 0 where it is not said. */
unsigned report_overloaded(const cJSON *tree, const char *policy, unsigned *runs);
/* And so many of its runs ended with an empty battery. */
unsigned report_battery_empty(const cJSON *tree, const char *policy, unsigned *runs);

/* ---- report_tables.c ---- */

void report_write_headline_table(const cJSON *tree, FILE *out);
void report_write_all_metrics(const cJSON *tree, FILE *out);
/* Prints the result of `compare --uncertainty`, if there is one. */
void report_write_uncertainty(const cJSON *tree, FILE *out);
/* How far to trust a hardware model, and every number of it. */
void report_write_hardware(const cJSON *part, FILE *out);
/* Date and command of the run, its seeds. */
void report_write_again(const struct report_input *in, FILE *out);

/* ---- report_drive.c ---- */

/* Is this what `drive --compare` writes? */
bool report_is_drive(const cJSON *tree);
void report_write_drive(const cJSON *tree, FILE *out);

/* ---- report_headline.c ---- */

/* The policy that is best by the primary metric, against the baseline; who is overloaded. */
void report_write_headline(const cJSON *tree, FILE *out);

/* ---- report_live.c ---- */

/* The runs and comparisons among the files as data of the live page, with what a reader without
 * JavaScript sees of the runs. */
void report_write_live(const struct report_page *page, const struct figure_request *all, FILE *out);
/* "openvino-cb, agent-xpu-v2 on MODEL on SOC" of the first file of runs; false: there is none. */
bool report_put_runs(const struct figure_request *all, FILE *out);
