/* Prediction intervals of times (hwmodels/conformal.h) for the machine and the model of a
 * configuration. */
#pragma once

#include "experiments/run/config.h"
#include "hwmodels/conformal.h"

/* The 95 % interval, normal in ln, of an entry that was updated from a few rows of its machine
 * (fit.error_sd of its file). Returns false if there is none. */
bool interval_measured(const struct soc_runtime *entry, const struct conformal_query *q,
                       struct conformal_interval *out);

/* The shipped table, read once per process; NULL with errors. */
const struct conformal *interval_table(struct err *e);

/* The 95 % interval of the time, on one device, of a prefill of `tokens`, or of a decode token
 * after that many. An entry without calibration gets the error of transfers between SoCs.
 */
struct conformal_interval interval_of(const struct conformal *t, const struct soc *soc,
                                      uint8_t device, const struct soc_runtime *entry,
                                      const struct llm *llm, bool prefill, uint32_t tokens);

/* Describes the error of a device of a machine made from a sibling: "igpu, made from
 * core-ultra-7-155h by data sheet: ...", or that no transfer of its kind was measured. The caller
 * frees it. */
char *interval_transfer_text(const struct conformal *t, const struct soc *soc, uint8_t device);
/* Whether the file was made from a sibling, and this device has not been calibrated since. */
bool interval_is_transfer(const struct soc *soc, uint8_t device);

/* "x 0.81 to 1.24 (model not measured: 143 left-out rows of igpu; nearest measured x 1.1 away)".
 * The caller frees it. */
char *interval_text(const struct conformal_interval *x);
