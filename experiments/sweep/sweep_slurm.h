/* Runs a command as a Slurm job array: one task per shard, then a job that merges them. */
#pragma once

#include "experiments/shell/options.h"

#define SLURM_MAX_OPTIONS 32
#define SLURM_MAX_WORDS 300

struct slurm_options {
    uint32_t tasks;                         /* 0: run here */
    uint32_t shard, shards;                 /* run i belongs to shard i % shards */
    const char *options[SLURM_MAX_OPTIONS]; /* for sbatch: "--partition=long" */
    uint32_t n_options;
    bool scripts_only;
};
/* --shard, --slurm, --slurm-option, --slurm-scripts. */
extern const struct option_table slurm_option_table;

/* Refuses options of sbatch or scripts without --slurm, with which everything would run here.
 * Returns 0, or -EINVAL with an error. */
int slurm_refuse_alone(const struct slurm_options *o, struct err *e);

/* The command of the tasks: "sweep", "FILE.json", "--policy", "edf". It must accept --store,
 * --shard and --jobs, and its paths are relative to the current folder. */
struct slurm_command {
    const char *words[SLURM_MAX_WORDS]; /* borrowed */
    uint32_t n_words;
    uint32_t jobs; /* worker processes and processors per task */
    bool complete; /* the merge checks that every run of the experiment exists */
};
/* Adds a word; NULL: none. */
void slurm_word(struct slurm_command *c, const char *word);

/* Writes STORE.slurm/array.sh and merge.sh and submits both. Prints the job numbers, and advice for
 * failed tasks, on stderr. Each task keeps its shard in STORE.slurm/shard-I.db, so a resubmitted
 * task makes only its missing runs. The merge into `store` fails with a message unless every shard
 * is finished. Returns 0, or -EINVAL with an error: a path that cannot be written, or sbatch is
 * missing or refuses. */
int sweep_slurm(const char *store, const struct slurm_options *opt, const struct slurm_command *c,
                struct err *e);
