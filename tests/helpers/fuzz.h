/* Damaging texts. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "sim/base/rng.h"

/* FUZZ_ROUNDS, or 500. */
uint32_t fuzz_rounds(void);
/* XPUSIM_FIRST, or 0: which damage is drawn. */
uint64_t fuzz_first(void);

/* One to four edits: replace a span by a piece that parsers trip over, delete, duplicate, or flip a
 * byte. Owned by the caller. */
char *fuzz_mutate(struct rng *r, const char *text, size_t n, size_t *out_n);
