/* The protocol between a study's workers and its parent. */
#pragma once

#include "experiments/run/pool.h"
#include "experiments/run/study.h"

/* Prefix of a configuration's hash in pool_wanted; other keys are fingerprints. */
#define STUDY_ASKS_CONFIGURATION "configuration "

/* A run as a worker sends it. */
struct study_record {
    struct store_run run; /* texts are empty without a store */
    const char *tree;     /* its configuration; "" unless the parent wants it */
    size_t n;             /* number of values */
    double *values;
    const char *names; /* concatenated, each NUL-terminated */
    size_t names_bytes;
    void *observed; /* written by the cell's observer_write */
    size_t observed_bytes;
};

/* In the worker: runs the cell of this number. */
void study_work(const struct study_stream *s, uint64_t index, struct pool_worker *w,
                struct job_result *out);

/* In the parent: decodes a record, which points into data. */
void study_record_read(void *data, size_t size, struct study_record *out);
