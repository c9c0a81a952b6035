/* The parts that kernel times (roofline.c) and their lower bounds (roofline_floor.c) share. */
#pragma once

#include "hwmodels/roofline.h"

static inline bool roofline_has_attention(enum op_kind op)
{
    return op == OP_MHA || op == OP_LAYER;
}

/* Launches of a kernel. A fused layer has the runtime's share of the launches of its ops. */
static inline double roofline_launches(const struct roofline *r, uint8_t device, enum op_kind op,
                                       bool one_row)
{
    const struct soc_runtime *p = r->runtime[device];
    double n = r->ops[op].prims + (one_row ? p->further_launches * r->ops[op].further : 0.0);
    return op == OP_LAYER ? n * p->fused_launch_frac : n;
}

/* Lower bounds of kernel times for each model (hwmodel_ops.floor). */
void roofline_floor_extended(const struct hwmodel *m, uint8_t device, enum op_kind op, bool one_row,
                             struct kernel_floor *out);
void roofline_floor_roofline(const struct hwmodel *m, uint8_t device, enum op_kind op, bool one_row,
                             struct kernel_floor *out);
void roofline_floor_table(const struct hwmodel *m, uint8_t device, enum op_kind op, bool one_row,
                          struct kernel_floor *out);
