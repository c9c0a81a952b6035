#include "experiments/sweep/sweep_slurm.h"

#include <sys/stat.h>
#include <unistd.h>

#include "experiments/shell/cli.h"
#include "sim/base/output.h"

#define PATH_BYTES 4096
#define QUOTED_BYTES (4 * PATH_BYTES)

struct places {
    char program[PATH_BYTES], here[PATH_BYTES], store[PATH_BYTES];
    char folder[PATH_BYTES]; /* STORE.slurm */
};

static int absolute(const char *path, char *out, struct err *e)
{
    char here[PATH_BYTES];
    if (getcwd(here, sizeof here) == NULL) {
        return err_add(e, "current folder: %s", strerror(errno));
    }
    int n = path[0] == '/' ? snprintf(out, PATH_BYTES, "%s", path)
                           : snprintf(out, PATH_BYTES, "%s/%s", here, path);
    /* #SBATCH lines cannot quote these characters, and % begins a pattern such as %a. */
    if (n >= PATH_BYTES - 64 || strpbrk(out, "\"\n\\%") != NULL) {
        return err_add(e, "%s: too long for a path, or holds \" \\ %% or a line break", path);
    }
    SIM_ASSERT(out[0] == '/');
    return 0;
}

static int find_places(const char *store, struct places *p, struct err *e)
{
    /* The program that runs: argv and PATH may name another one on the node. */
    ssize_t n = readlink("/proc/self/exe", p->program, sizeof p->program - 1);
    if (n <= 0) {
        return err_add(e, "cannot find this program's own path: %s", strerror(errno));
    }
    p->program[n] = '\0';
    SIM_ASSERT(p->program[0] == '/'); /* a task starts in another folder */
    if (absolute(".", p->here, e) != 0 || absolute(store, p->store, e) != 0) {
        return -EINVAL;
    }
    n = snprintf(p->folder, sizeof p->folder, "%.*s.slurm", PATH_BYTES - 10, p->store);
    if (mkdir(p->folder, 0777) != 0 && errno != EEXIST) {
        return err_add(e, "%s: %s", p->folder, strerror(errno));
    }
    return n > 0 ? 0 : -EINVAL;
}

static struct output *create_script(const struct places *p, const char *name, struct err *e)
{
    char path[PATH_BYTES + 16];
    (void)snprintf(path, sizeof path, "%s/%s", p->folder, name);
    SIM_ASSERT(strlen(path) == strlen(p->folder) + 1 + strlen(name)); /* not truncated */
    struct output *out = output_open(path, e);
    if (out != NULL) {
        (void)fputs("#!/bin/sh\n", output_stream(out));
    }
    return out;
}

static void put_options(const struct slurm_options *o, FILE *f)
{
    for (uint32_t i = 0; i < o->n_options; i++) {
        /* One line each. */
        SIM_ASSERT(o->options[i][0] == '-' && strchr(o->options[i], '\n') == NULL);
        (void)fprintf(f, "#SBATCH %s\n", o->options[i]);
    }
}

static void put_words(const struct slurm_command *c, FILE *f)
{
    for (uint32_t i = 0; i < c->n_words; i++) {
        OWNED char *q = xmalloc(4 * strlen(c->words[i]) + 3);
        const char *word = cli_word(c->words[i], false, q);
        SIM_ASSERT(strlen(word) <= 4 * strlen(c->words[i]) + 2);
        (void)fprintf(f, " %s", word);
    }
}

static int write_array(const struct places *p, const struct slurm_options *o,
                       const struct slurm_command *c, struct err *e)
{
    SIM_ASSERT(o->tasks > 0 && o->shards <= 1); /* the tasks are the shards */
    char q[QUOTED_BYTES];
    struct output *out = create_script(p, "array.sh", e);
    if (out == NULL) {
        return -EINVAL;
    }
    FILE *f = output_stream(out);
    (void)fprintf(f,
                  "#SBATCH --job-name=xpusim\n#SBATCH --array=0-%" PRIu32
                  "\n#SBATCH --cpus-per-task=%" PRIu32 "\n#SBATCH --output=\"%s/shard-%%a.log\"\n",
                  o->tasks - 1, c->jobs, p->folder);
    put_options(o, f);
    (void)fprintf(f, "cd %s || exit 2\n", cli_word(p->here, false, q));
    (void)fprintf(f, "exec %s", cli_word(p->program, false, q));
    put_words(c, f);
    (void)fprintf(f, " \\\n    --store %s/shard-\"$SLURM_ARRAY_TASK_ID\".db",
                  cli_word(p->folder, false, q));
    (void)fprintf(f, " --shard \"$SLURM_ARRAY_TASK_ID\"/%" PRIu32 " --jobs %" PRIu32 "\n", o->tasks,
                  c->jobs);
    return output_close(out, true, e);
}

static int write_merge(const struct places *p, const struct slurm_options *o,
                       const struct slurm_command *c, struct err *e)
{
    SIM_ASSERT(o->tasks > 0); /* without tasks there is nothing to merge */
    char q[QUOTED_BYTES];
    struct output *out = create_script(p, "merge.sh", e);
    if (out == NULL) {
        return -EINVAL;
    }
    FILE *f = output_stream(out);
    (void)fprintf(f, "#SBATCH --job-name=xpusim-merge\n#SBATCH --output=\"%s/merge.log\"\n",
                  p->folder);
    put_options(o, f);
    (void)fprintf(f, "exec %s merge%s", cli_word(p->program, false, q),
                  c->complete ? " --complete" : "");
    (void)fprintf(f, " -o %s", cli_word(p->store, false, q));
    for (uint32_t i = 0; i < o->tasks; i++) {
        (void)fprintf(f, " \\\n    %s/shard-%" PRIu32 ".db", cli_word(p->folder, false, q), i);
    }
    (void)fputc('\n', f);
    return output_close(out, true, e);
}

/* Submits a script, and writes the job's number to `id`. */
static int submit(const struct places *p, const char *options, const char *script, char id[64],
                  struct err *e)
{
    char q[QUOTED_BYTES];
    char command[QUOTED_BYTES + 256];
    (void)snprintf(command, sizeof command, "sbatch --parsable %s %s/%s", options,
                   cli_word(p->folder, false, q), script);
    SIM_ASSERT(strlen(command) < sizeof command - 1); /* not truncated */
    (void)fflush(NULL);
    FILE *f = popen(command, "r");
    if (f == NULL) {
        return err_add(e, "cannot run sbatch: %s", strerror(errno));
    }
    id[0] = '\0';
    bool got = fgets(id, 64, f) != NULL;
    int status = pclose(f);
    id[strcspn(id, ";\n")] = '\0'; /* "NUMBER" or "NUMBER;CLUSTER" */
    if (status != 0 || !got || strspn(id, "0123456789") == 0) {
        return err_add(e, "sbatch did not take %s/%s%s", p->folder, script,
                       status == 127 << 8 ? ": there is no sbatch here" : "");
    }
    return 0;
}

int sweep_slurm(const char *store, const struct slurm_options *opt, const struct slurm_command *c,
                struct err *e)
{
    struct places p;
    char array[64];
    char merge[64];
    char after[128];
    if (find_places(store, &p, e) != 0 || write_array(&p, opt, c, e) != 0 ||
        write_merge(&p, opt, c, e) != 0) {
        return -EINVAL;
    }
    if (opt->scripts_only) {
        (void)fprintf(stderr, "xpusim: %s/array.sh and merge.sh written\n", p.folder);
        return 0;
    }
    if (submit(&p, "", "array.sh", array, e) != 0) {
        return -EINVAL;
    }
    /* The merge starts after any end of the tasks: after a failure it reports the missing
     * shards. */
    (void)snprintf(after, sizeof after, "--dependency=afterany:%s", array);
    if (submit(&p, after, "merge.sh", merge, e) != 0) {
        return -EINVAL;
    }
    (void)fprintf(stderr,
                  "xpusim: array job %s (%" PRIu32 " tasks), merge job %s; logs in %s\n"
                  "xpusim: when a task fails: sbatch --array=TASK array.sh there, then sbatch "
                  "merge.sh; or the same command again. Finished runs are not repeated.\n",
                  array, opt->tasks, merge, p.folder);
    return 0;
}

void slurm_word(struct slurm_command *c, const char *word)
{
    if (word != NULL) {
        SIM_REQUIRE(c->n_words < SLURM_MAX_WORDS, "too many words for a Slurm task");
        c->words[c->n_words++] = word;
    }
}

/* ---- options ---- */

static int take_shard(void *target, const struct option_row *row UNUSED, const char *arg,
                      struct err *e)
{
    struct slurm_options *o = target;
    char *end = NULL;
    char *end2 = NULL;
    unsigned long i = strtoul(arg, &end, 10);
    unsigned long n = *end == '/' ? strtoul(end + 1, &end2, 10) : 0;
    if (arg[0] < '0' || arg[0] > '9' || n == 0 || end[1] < '0' || end[1] > '9' || *end2 != '\0' ||
        n > 1000000 || i > n) {
        return err_add(e, "--shard %s: must be I/N with I from 0 to N - 1, as in 0/4", arg);
    }
    o->shard = (uint32_t)(i % n);
    o->shards = (uint32_t)n;
    SIM_ASSERT(o->shard < o->shards);
    return 0;
}

static int take_option(void *target, const struct option_row *row UNUSED, const char *arg,
                       struct err *e)
{
    struct slurm_options *o = target;
    if (o->n_options == SLURM_MAX_OPTIONS || arg[0] != '-' || strchr(arg, '\n') != NULL) {
        return err_add(e, "--slurm-option %s: must be an option of sbatch; at most %d", arg,
                       SLURM_MAX_OPTIONS);
    }
    o->options[o->n_options++] = arg;
    return 0;
}

static void init(void *target)
{
    ((struct slurm_options *)target)->shards = 1;
}

int slurm_refuse_alone(const struct slurm_options *o, struct err *e)
{
    bool alone = o->tasks == 0 && (o->scripts_only || o->n_options > 0);
    return alone ? err_add(e, "--slurm-scripts and --slurm-option go with --slurm TASKS") : 0;
}

#define OPTIONS struct slurm_options

static const struct option_row rows[] = {
    OPTION_OWN(take_shard, "shard", "I/N",
               "run only every Nth run, beginning with I = 0 (or number them 1/N to N/N); "
               "`xpusim merge` combines the stores"),
    OPTION_COUNT(OPTIONS, tasks, "slurm", "TASKS", NULL, 1, 100000,
                 "submit a job array of TASKS shards, and a job that merges them into STORE.db, "
                 "instead of running here; --jobs is the number of processors per task"),
    OPTION_OWN_LIST(take_option, "slurm-option", "OPT",
                    "option of both jobs, as --slurm-option=--partition=long; repeated"),
    OPTION_FLAG(OPTIONS, scripts_only, "slurm-scripts",
                "with --slurm: write the scripts (STORE.db.slurm/) without submitting"),
};
const struct option_table slurm_option_table = OPTION_TABLE_INIT("Several machines", rows, init);
