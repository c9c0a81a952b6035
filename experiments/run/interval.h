/* How sure the predicted times of a configuration are: intervals of hwmodels/conformal.h for its
 * machine and its model. */
#pragma once

#include "experiments/run/config.h"
#include "hwmodels/conformal.h"

/* The interval of an entry that a few rows of its machine updated (fit.error_sd of its file):
 * normal in ln, 95 %. False: it has none. */
bool interval_measured(const struct soc_runtime *entry, const struct conformal_query *q,
                       struct conformal_interval *out);

/* The shipped table, read once a process; NULL with errors. */
const struct conformal *interval_table(struct err *e);

/* 95 % interval of the time of a prefill of `tokens`, or of a token of decode behind as many, on
 * one device. An entry that no calibration has fitted gets what transfers between SoCs are off by.
 */
struct conformal_interval interval_of(const struct conformal *t, const struct soc *soc,
                                      uint8_t device, const struct soc_runtime *entry,
                                      const struct llm *llm, bool prefill, uint32_t tokens);

/* How far off a machine made from a sibling is, of one device: "igpu, made from core-ultra-7-155h
 * by data sheet: ...". Without measured transfers of its kind it says so. The caller frees it. */
char *interval_transfer_text(const struct conformal *t, const struct soc *soc, uint8_t device);
/* True when the file was made from a sibling and no calibration has fitted this device since. */
bool interval_is_transfer(const struct soc *soc, uint8_t device);

/* "x 0.81 to 1.24 (model not measured: 143 left-out rows of igpu; nearest measured x 1.1 away)".
 * The caller frees it. */
char *interval_text(const struct conformal_interval *x);
