/* The keys of the parts of a SoC file (soc_fields.c), for its reader (soc_parse.c). */
#pragma once

#include "hwmodels/soc.h"
#include "sim/base/json_fields.h"

/* A row of a runtime's table, as it is read. */
struct soc_table_row {
    uint32_t rows;
    double factor;
};

extern const struct json_fields soc_device_keys, soc_dvfs_keys, soc_numbers_keys, soc_runtime_keys,
    soc_start_keys, soc_step_keys, soc_table_keys;
