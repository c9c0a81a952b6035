/* Between a study's two sides: what a worker asks, and what it sends of a run. */
#pragma once

#include "experiments/run/pool.h"
#include "experiments/run/study.h"

/* Before the hash of a configuration; other questions are fingerprints. */
#define STUDY_ASKS_CONFIGURATION "configuration "

/* A run on its way to the parent. */
struct study_record {
    struct store_run run; /* texts are empty where nobody keeps it */
    const char *tree;     /* its configuration; "" unless it was asked for */
    size_t n;             /* values */
    double *values;
    const char *names; /* one after the other, each with its zero */
    size_t names_bytes;
    void *observed; /* by the cell */
    size_t observed_bytes;
};

/* In the worker: the cell of this number. */
void study_work(const struct study_stream *s, uint64_t index, struct pool_worker *w,
                struct job_result *out);

/* In the parent: the record in what a worker sent, which it points into. */
void study_record_read(void *data, size_t size, struct study_record *out);
