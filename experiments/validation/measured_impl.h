/* Readers of measured rows, and what they share. */
#pragma once

#include <cjson/cJSON.h>

#include "experiments/validation/measured.h"
#include "sim/base/csvfile.h"

/* Keys of the command line; what is not given is NULL or 0. Nobody frees the texts. */
struct measured_keys {
    const char *file;
    const char *device, *runtime, *model;
    uint32_t bits, batch;
    const char *soc; /* borrowed */
};

/* A row with the keys' values over those of `p`, whose texts may be NULL; `place` is kept. */
void measured_add(struct measured *m, const struct measured_keys *k, const struct point *p,
                  const char *place);

/* Benchmarks as files (measured_bench.c). 0 or -EINVAL with errors. */
int measured_read_file(const char *path, const struct measured_keys *k, struct measured *out,
                       struct err *e);

/* Where a file's rows go; all borrowed. */
struct measured_sink {
    const char *path;
    const struct measured_keys *keys;
    struct measured *out;
    struct err *e;
};

/* Adds a row of `p` with this metric. */
void measured_put(struct measured_sink *s, struct point *p, enum point_metric metric, double tokens,
                  double value, const char *place);

/* Output of llama-bench (measured_llama.c). 0 or -EINVAL with errors. */
int measured_llama_json(struct measured_sink *s, const cJSON *root);
int measured_llama_csv(struct measured_sink *s, struct csvfile *f);
int measured_llama_markdown(struct measured_sink *s, FILE *f);
