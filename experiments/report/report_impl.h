/* What the parts of the report page share. */
#ifndef EXPERIMENTS_REPORT_REPORT_IMPL_H
#define EXPERIMENTS_REPORT_REPORT_IMPL_H

#include <cjson/cJSON.h>
#include <stdio.h>

#include "experiments/report/report.h"
#include "experiments/shell/markup.h"
#include "sim/metrics/metric_table.h"

/* ---- report_text.c ---- */

const char *report_text_of(const cJSON *o, const char *key); /* "" when there is none */
double report_number_of(const cJSON *o, const char *key);    /* NaN when there is none */
const cJSON *report_metric_of(const cJSON *policy, const char *name);
/* A mean with its half-width, in the digits the interval leaves. */
void report_put_mean(FILE *out, const cJSON *metric);
/* The paired difference to the baseline, relative, with its interval. */
void report_put_change(FILE *out, const cJSON *metric, const cJSON *base);

/* ---- report_tables.c ---- */

void report_write_headline_table(const cJSON *tree, FILE *out);
void report_write_all_metrics(const cJSON *tree, FILE *out);
/* What `compare --uncertainty` found; nothing where it was not asked. */
void report_write_uncertainty(const cJSON *tree, FILE *out);
void report_write_hardware(const cJSON *tree, FILE *out);
void report_write_again(const struct report_input *in, FILE *out);

/* ---- report_drive.c ---- */

/* Is this what `drive --compare` writes? */
bool report_is_drive(const cJSON *tree);
void report_write_drive(const cJSON *tree, FILE *out);

#endif
