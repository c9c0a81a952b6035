/* The kernels that a calibration's trace may lack, on each device alone: 1 to 48 rows, ends of
 * prompts behind long prefixes, prompts of many lengths, batches over contexts of many. A policy
 * asks for them, so they are logged, screened and fitted as those of any run.
 *
 * The model keeps only its first layers, which take as long as the others: seconds. */
#pragma once

#include "experiments/drive/real.h"

#define BENCH_LAYERS 4

/* Devices whose attention is compiled for one length have none. */
bool bench_suits(const struct machine *m, uint8_t device);
double bench_tokens(void); /* that come out of one run */
/* Runs them on one device. Returns out->status; real_run_fini in every case. */
int bench_execute(const struct drive_options *o, const struct config *c, uint8_t device,
                  struct real_run *out, struct err *e);
