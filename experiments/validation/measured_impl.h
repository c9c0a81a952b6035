/* Declarations shared by the readers of measured rows. */
#pragma once

#include <cjson/cJSON.h>

#include "experiments/validation/measured.h"
#include "sim/base/csvfile.h"

/* Keys of the command line; missing ones are NULL or 0. The texts are kept. */
struct measured_keys {
    const char *file;
    const char *device, *runtime, *model;
    uint32_t bits, batch;
    const char *soc; /* borrowed */
};

/* Adds row p, with values of the keys where given. Texts of p may be NULL; `place` is kept. */
void measured_add(struct measured *m, const struct measured_keys *k, const struct point *p,
                  const char *place);

/* Reads a benchmark file (measured_bench.c). Returns 0, or -EINVAL with errors. */
int measured_read_file(const char *path, const struct measured_keys *k, struct measured *out,
                       struct err *e);

/* The destination of a file's rows; everything is borrowed. */
struct measured_sink {
    const char *path;
    const struct measured_keys *keys;
    struct measured *out;
    struct err *e;
};

/* Sets the metric of p, and adds it as a row. */
void measured_put(struct measured_sink *s, struct point *p, enum point_metric metric, double tokens,
                  double value, const char *place);

/* Read output of llama-bench (measured_llama.c). Return 0, or -EINVAL with errors. */
int measured_llama_json(struct measured_sink *s, const cJSON *root);
int measured_llama_csv(struct measured_sink *s, struct csvfile *f);
int measured_llama_markdown(struct measured_sink *s, FILE *f);
