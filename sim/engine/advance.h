/* Moving jobs through time (advance.c). */
#pragma once

#include "sim/engine/ddr.h"

void advance_init(struct engine *e);
/* Moves kernels over their boundaries, as far as only their launches take notice and they come
 * before that instant. Time moves to the last one. */
void advance(struct engine *e, int64_t before_ns);
/* Brings e->behind, which is not NULL, up to the present instant. */
void advance_behind(struct engine *e);
/* To be called before jobs change or their state is looked at. */
static inline void advance_notice(struct engine *e)
{
    if (e->behind != NULL) {
        advance_behind(e);
    }
}
