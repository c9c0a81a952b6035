#include "experiments/run/other_binary.h"

#include <unistd.h>

#include "experiments/run/jobs.h"

#define FIXED_ARGUMENTS 20
#define READ_BYTES 65536
#define COMPLAINT "xpusim: error: "

/* The stream's whole text, owned. */
static char *read_all(FILE *f, size_t *n)
{
    size_t cap = READ_BYTES;
    char *text = xmalloc(cap + 1);
    *n = 0;
    for (size_t got = 1; got > 0;) {
        if (*n == cap) {
            cap *= 2;
            text = xrealloc(text, cap + 1);
        }
        got = fread(text + *n, 1, cap - *n, f);
        *n += got;
    }
    text[*n] = '\0';
    return text;
}

/* A run of another binary, and where its two streams go. */
struct other_run {
    const char *binary;
    const struct config_options *options;
    const char *policy, *seed, *decisions;
    FILE *out, *err;
};

/* In a worker process: it becomes the binary, so this does not return. */
static void become(void *ctx, uint32_t index, struct job_result *r)
{
    const struct other_run *l = ctx;
    const struct config_options *o = l->options;
    (void)index;
    (void)r;
    const char *args[FIXED_ARGUMENTS + 2 * CONFIG_MAX_SETS] = {
        l->binary,
        "run",
        "--json",
        "--quiet",
        "--soc",
        o->soc,
        "--llm",
        o->llm,
        "--policy",
        l->policy,
        "--seed",
        l->seed,
        o->trace != NULL ? "--trace" : "--workload",
        o->trace != NULL ? o->trace : o->workload};
    size_t n = 14;
    for (uint32_t i = 0; i < o->n_sets; i++) {
        args[n++] = "--set";
        args[n++] = o->sets[i];
    }
    if (o->machine != NULL) {
        args[n++] = "--machine";
        args[n++] = o->machine;
    }
    if (l->decisions != NULL) {
        args[n++] = "--decisions";
        args[n++] = l->decisions;
    }
    args[n] = NULL;
    if (dup2(fileno(l->out), STDOUT_FILENO) >= 0 && dup2(fileno(l->err), STDERR_FILENO) >= 0) {
        /* execv takes pointers to non-const for history's sake and changes nothing. */
        union {
            const char **in;
            char **out;
        } list = {.in = args};
        (void)execv(l->binary, list.out);
    }
    static const char text[] = "cannot be started\n";
    (void)!write(fileno(l->err), text, sizeof text - 1);
    _exit(127);
}

/* The first line of what it said, without the program's name. False when it said nothing. */
static bool take_complaint(FILE *err, char *message, size_t size)
{
    char line[1024] = "";
    rewind(err);
    if (fgets(line, sizeof line, err) == NULL) {
        return false;
    }
    line[strcspn(line, "\n")] = '\0';
    size_t skip = strncmp(line, COMPLAINT, strlen(COMPLAINT)) == 0 ? strlen(COMPLAINT) : 0;
    (void)snprintf(message, size, "%s", line + skip);
    return true;
}

/* Runs it. NULL with a message when it failed. */
static cJSON *result_of(struct other_run *l, char *message, size_t size)
{
    struct job_result r;
    struct jobs j = {.n = 1, .parallel = 1, .ctx = l, .run = become};
    jobs_run(&j, &r);
    free(r.data);
    size_t n = 0;
    rewind(l->out);
    OWNED char *text = read_all(l->out, &n);
    cJSON *tree = r.exit_status == 0 ? cJSON_Parse(text) : NULL;
    if (tree == NULL && r.exit_status == 0 && n > 0) {
        (void)snprintf(message, size, "its result is not JSON");
    } else if (tree == NULL && !take_complaint(l->err, message, size)) {
        (void)snprintf(message, size, "%s", r.message);
    }
    return tree;
}

cJSON *other_binary_run(const char *binary, const struct config_options *o, const char *policy,
                        uint64_t seed, const char *decisions, char *message, size_t size)
{
    char seed_text[32];
    (void)snprintf(seed_text, sizeof seed_text, "%" PRIu64, seed);
    struct other_run l = {binary, o, policy, seed_text, decisions, tmpfile(), tmpfile()};
    cJSON *tree = NULL;
    message[0] = '\0';
    if (l.out != NULL && l.err != NULL) {
        tree = result_of(&l, message, size);
    } else {
        (void)snprintf(message, size, "no temporary file: %s", strerror(errno));
    }
    if (l.out != NULL) {
        (void)fclose(l.out);
    }
    if (l.err != NULL) {
        (void)fclose(l.err);
    }
    return tree;
}
