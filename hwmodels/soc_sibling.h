/* A machine without measurements, as a file made from a similar chip's file.
 *
 * Every number is copied, marked assumed, and names its origin. The parts of a kernel's time get
 * the range that predictions from one SoC to another had where both are published
 * (hwmodels/residuals.csv, rows whose SoC was left out):
 *   rates and attention   that of prompts
 *   bandwidths            that of decoding
 *   launch and fill       that of short prompts
 * Datasheet numbers that the caller knows replace the similar chip's. Bandwidths follow the
 * memory's, but for NPUs (soc_resize_bandwidth). Rates, fills and the rate of attention follow the
 * device's peak, and the rows of a fill its cores (soc_resize). */
#pragma once

#include <cjson/cJSON.h>

#include "hwmodels/conformal.h"

struct soc_sibling_peak {
    const char *device; /* name in the file, borrowed */
    double tflop_per_s;
    uint32_t cores; /* 0: as many as the sibling has */
};

struct soc_sibling {
    const char *name, *like; /* of the new machine; of the sibling, as the user said it */
    const char *family;      /* of the new machine; NULL: the sibling's, "" none */
    double ddr_peak_gbs;     /* 0: the sibling's */
    double memory_gb;        /* 0: the sibling's */
    const struct soc_sibling_peak *peaks;
    uint32_t n_peaks;
};

/* The new file as a tree (cJSON_Delete), or NULL with errors. `sibling` is a tree that soc_parse
 * takes, and stays as it is. */
cJSON *soc_sibling_tree(const cJSON *sibling, const struct soc_sibling *o,
                        const struct conformal *t, struct err *e);
