/* A sweep as a Slurm job array: one task per shard, and a job that merges when all have ended. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "experiments/sweep/sweep.h"

#define SLURM_MAX_OPTIONS 32

struct slurm_options {
    uint32_t tasks;
    uint32_t jobs;                          /* worker processes, and processors, per task */
    const char *options[SLURM_MAX_OPTIONS]; /* of sbatch: "--partition=long" */
    uint32_t n_options;
    bool submit;                       /* else the scripts are written only */
    const struct sweep_options *sweep; /* borrowed; handed on, as `yes` is */
    bool yes;
};

/* Writes STORE.slurm/array.sh and merge.sh and submits both. It prints the job numbers, and what to
 * do when a task fails, on stderr. Each task keeps its shard in STORE.slurm/shard-I.db, so that a
 * task submitted again runs only what it had not. The merge into `store` fails with a message
 * unless every shard is finished. 0, or -EINVAL with an error added: a path that cannot be written,
 * sbatch that is not there or refuses. */
int sweep_slurm(const char *spec, const char *store, const struct slurm_options *opt,
                struct err *e);
