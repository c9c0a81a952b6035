/* Makes the file of an unmeasured machine from that of a similar chip (sibling).
 *
 * Every number is copied, marked assumed, and names its origin. The parts of a kernel's time get
 * the range of the errors of predictions from one SoC to another (hwmodels/residuals.csv, rows
 * whose SoC was left out):
 *   rates and attention   that of prompts
 *   bandwidths            that of decoding
 *   launch and fill       that of short prompts
 * Datasheet numbers that the caller knows replace the similar chip's. Bandwidths scale with the
 * memory's, except for NPUs (soc_resize_bandwidth). Rates, fills and the rate of attention scale
 * with the device's peak, and the rows of a fill with its cores (soc_resize). */
#pragma once

#include <cjson/cJSON.h>

#include "hwmodels/conformal.h"

struct soc_sibling_peak {
    const char *device; /* name in the file, borrowed */
    double tflop_per_s;
    uint32_t cores; /* 0: the sibling's */
};

struct soc_sibling {
    const char *name, *like; /* names of the new machine, and of the sibling as given by the user */
    const char *family;      /* of the new machine; NULL: the sibling's; "": none */
    double ddr_peak_gbs;     /* 0: the sibling's */
    double memory_gb;        /* 0: the sibling's */
    const struct soc_sibling_peak *peaks;
    uint32_t n_peaks;
};

/* The new file as a tree (cJSON_Delete), or NULL with errors. `sibling` is a tree that soc_parse
 * accepts; it is not changed. */
cJSON *soc_sibling_tree(const cJSON *sibling, const struct soc_sibling *o,
                        const struct conformal *t, struct err *e);
