/* The error that no kernel-time model can avoid, estimated from the points themselves.
 *
 *   twins     rows of one SoC, device, exact runtime version, width, phase and length (within 2 %)
 *             whose models have the same shape (layers, hidden size, heads, FFN; vocabulary within
 *             10 %): the same arithmetic. Errors against their common centre, the geometric mean,
 *             are the best that anything could do which sees shapes only.
 *   versions  rows of one SoC, device, model, width, phase and length under different versions of
 *             one toolchain ("openvino-2024.6" and "openvino-2025.4"). The factor between them is
 *             lost where a table does not say its version, or a version was not measured.
 */
#pragma once

#include "experiments/validation/predict.h"

struct noise_floor {
    size_t twins, twin_groups;
    double twin_median_frac, twin_p90_frac; /* |row / centre - 1|; NaN without */
    size_t versions;                        /* pairs */
    double version_median, version_p90;     /* the larger over the smaller; NaN without */
};

/* Computes it for the latency rows on one kind of device in one phase. Cost: rows^2. */
struct noise_floor noise_floor_of(const struct catalog *c, const struct points *points,
                                  enum device_kind kind, enum conformal_phase phase);
