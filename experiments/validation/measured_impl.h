/* Readers of measured rows, and what they share. */
#pragma once

#include "experiments/validation/measured.h"

/* Keys of the command line; what is not given is empty or 0. */
struct measured_keys {
    char *file; /* owned */
    char device[16], runtime[64], model[POINT_TEXT_BYTES];
    uint32_t bits, batch;
    const char *soc; /* borrowed */
};

/* A row with the keys' values over those of `p`; `place` is kept. */
void measured_add(struct measured *m, const struct measured_keys *k, const struct point *p,
                  const char *place);

/* Benchmarks as files (measured_bench.c). 0 or -EINVAL with errors. */
int measured_read_file(const char *path, const struct measured_keys *k, struct measured *out,
                       struct err *e);
/* Sets a text of a point, cut at its room. */
void measured_text(char *to, size_t size, const char *from);
