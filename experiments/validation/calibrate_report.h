/* Reports a calibration, and writes it into a SoC file. */
#pragma once

#include <cjson/cJSON.h>

#include "experiments/shell/document.h"
#include "experiments/validation/calibrate.h"
#include "sim/base/portable.h"

/* Errors of one kind of rows: |predicted / measured - 1|. */
struct calibrate_error {
    size_t n;
    double median, p90; /* NaN without rows */
};

#define CALIBRATE_MIN_PROMPT 100 /* tokens; shorter prompts are a separate kind */

enum calibrate_kind {
    CALIBRATE_PREFILL,
    CALIBRATE_DECODE,
    CALIBRATE_SHORT_PREFILL,
    CALIBRATE_N_KINDS
};

struct calibrate_entry {
    struct calibrate_set set;
    struct calibrate_fit fit;
    bool fitted; /* else `refusal` has the reason */
    char refusal[256];
    double sigma[2]; /* robust sd of ln error: prefill, decode (NaN without rows) */
    struct calibrate_error seen[CALIBRATE_N_KINDS], unseen[CALIBRATE_N_KINDS]; /* leave-one-out */
    size_t leave_refused;              /* models without which too few rows remain */
    uint32_t rows_max, context_max;    /* validity envelope */
    const struct conformal *residuals; /* the catalogue's */
};

/* Collects the rows of a runtime entry, fits it, leaves out each model, and fills the summary.
 * Entries without rows have set.n == 0. calibrate_set_fini is needed for out->set in every case. */
void calibrate_entry_make(const struct catalog *c, const struct points *points,
                          const struct soc *soc, uint8_t device, uint32_t runtime,
                          struct calibrate_entry *out);

void calibrate_entry_document(const struct calibrate_entry *e, struct document *d);

/* By parameter: SI units per unit of a SoC file, and that unit. */
extern const double calibrate_file_unit[CALIBRATE_N_PARAMS];
extern const char *const calibrate_unit_names[CALIBRATE_N_PARAMS];
/* The entry in its SoC. */
const struct soc_runtime *calibrate_entry_runtime(const struct calibrate_entry *e);

/* Writes the result into the entry's object of a SoC file's tree: values with twice their standard
 * error as range, provenance, validity envelope, residuals. */
void calibrate_entry_write(const struct calibrate_entry *e, const char *points_name,
                           cJSON *runtime);
/* Rounds to four digits, more than the accuracy of any of these. */
static inline double calibrate_rounded(double v)
{
    return portable_digits(v, 4);
}
