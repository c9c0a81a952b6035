/* Estimates from the points the error that no kernel-time model can avoid.
 *
 *   twins     rows of one SoC, device, exact runtime version, width, phase and length (within 2 %)
 *             whose models have the same shape (layers, hidden size, heads, FFN; vocabulary within
 *             10 %): so the arithmetic is the same. Errors against their geometric mean are the
 *             least that a model can have which only knows shapes.
 *   versions  rows of one SoC, device, model, width, phase and length under different versions of
 *             one toolchain ("openvino-2024.6" and "openvino-2025.4"). The factor between them is
 *             the error if a table does not state its version, or a version was not measured. */
#pragma once

#include "experiments/validation/predict.h"

struct noise_floor {
    size_t twins, twin_groups;
    double twin_median_frac, twin_p90_frac; /* |row / centre - 1|; NaN: no twins */
    size_t versions;                        /* pairs */
    double version_median, version_p90;     /* larger over smaller; NaN: no pairs */
};

/* Computes it for the latency rows on one kind of device in one phase. Cost: rows^2. */
struct noise_floor noise_floor_of(const struct catalog *c, const struct points *points,
                                  enum device_kind kind, enum conformal_phase phase);
