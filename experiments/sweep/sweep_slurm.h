/* Runs of a command as a Slurm job array: one task per shard, and a job that merges when all have
 * ended. */
#pragma once

#include "experiments/shell/options.h"

#define SLURM_MAX_OPTIONS 32
#define SLURM_MAX_WORDS 300

struct slurm_options {
    uint32_t tasks;         /* 0: here */
    uint32_t shard, shards; /* this one of so many: run number i belongs to i % shards */
    const char *options[SLURM_MAX_OPTIONS]; /* of sbatch: "--partition=long" */
    uint32_t n_options;
    bool scripts_only;
};
/* --shard, --slurm, --slurm-option, --slurm-scripts. */
extern const struct option_table slurm_option_table;

/* Options of sbatch or of scripts, and no --slurm: the command would run everything here. 0 or
 * -EINVAL with an error. */
int slurm_refuse_alone(const struct slurm_options *o, struct err *e);

/* The tasks run a command: "sweep", "FILE.json", "--policy", "edf". It takes --store, --shard and
 * --jobs, and its paths are relative to the current folder. */
struct slurm_command {
    const char *words[SLURM_MAX_WORDS]; /* borrowed */
    uint32_t n_words;
    uint32_t jobs; /* worker processes, and processors, per task */
    bool complete; /* the merge checks that every run of its experiment is there */
};
/* Adds a word; NULL: none. */
void slurm_word(struct slurm_command *c, const char *word);

/* Writes STORE.slurm/array.sh and merge.sh and submits both. It prints the job numbers, and what to
 * do when a task fails, on stderr. Each task keeps its shard in STORE.slurm/shard-I.db, so that a
 * task submitted again runs only what it had not. The merge into `store` fails with a message
 * unless every shard is finished. 0, or -EINVAL with an error added: a path that cannot be written,
 * sbatch that is not there or refuses. */
int sweep_slurm(const char *store, const struct slurm_options *opt, const struct slurm_command *c,
                struct err *e);
