#include "experiments/gate/gate_exec.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "experiments/run/worker.h"
#include "sim/base/arena.h"

#define FIXED_ARGUMENTS 18
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

/* Never returns: becomes the binary. */
static _Noreturn void become(const char *binary, const struct gate_group *g, const char *policy,
                             const char *seed, const char *decisions, int out, int err)
{
    const char *args[FIXED_ARGUMENTS + 2 * GATE_MAX_SETS] = {
        binary,
        "run",
        "--json",
        "--quiet",
        "--soc",
        g->soc,
        "--llm",
        g->llm,
        "--policy",
        policy,
        "--seed",
        seed,
        g->trace != NULL ? "--trace" : "--workload",
        g->trace != NULL ? g->trace : g->workload};
    size_t n = 14;
    for (uint32_t i = 0; i < g->n_sets; i++) {
        args[n++] = "--set";
        args[n++] = g->sets[i];
    }
    if (decisions != NULL) {
        args[n++] = "--decisions";
        args[n++] = decisions;
    }
    args[n] = NULL;
    if (dup2(out, STDOUT_FILENO) >= 0 && dup2(err, STDERR_FILENO) >= 0) {
        /* execv takes pointers to non-const for history's sake and changes nothing. */
        union {
            const char **in;
            char **out;
        } list = {.in = args};
        (void)execv(binary, list.out);
    }
    static const char text[] = "cannot be started\n";
    (void)!write(err, text, sizeof text - 1);
    _exit(127);
}

/* The first line of what it said, without the program's name. */
static void take_complaint(FILE *err, char *message, size_t size)
{
    char line[1024] = "";
    rewind(err);
    if (fgets(line, sizeof line, err) == NULL) {
        (void)snprintf(message, size, "it ended without a result");
        return;
    }
    line[strcspn(line, "\n")] = '\0';
    size_t skip = strncmp(line, COMPLAINT, strlen(COMPLAINT)) == 0 ? strlen(COMPLAINT) : 0;
    (void)snprintf(message, size, "%s", line + skip);
}

cJSON *gate_exec(const char *binary, const struct gate_group *g, const char *policy, uint64_t seed,
                 const char *decisions, char *message, size_t size)
{
    message[0] = '\0';
    FILE *out = tmpfile();
    FILE *err = tmpfile();
    pid_t pid = -1;
    if (out != NULL && err != NULL) {
        char seed_text[32];
        (void)snprintf(seed_text, sizeof seed_text, "%" PRIu64, seed);
        (void)fflush(NULL);
        pid_t parent = getpid();
        pid = fork();
        if (pid == 0) {
            worker_become(parent);
            become(binary, g, policy, seed_text, decisions, fileno(out), fileno(err));
        }
    }
    cJSON *tree = NULL;
    int status = -1;
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    if (pid < 0) {
        (void)snprintf(message, size, "cannot start a process: %s", strerror(errno));
    } else if (WIFSIGNALED(status)) {
        (void)snprintf(message, size, "killed by signal %d", WTERMSIG(status));
    } else if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
        size_t n = 0;
        rewind(out);
        char *text = read_all(out, &n);
        tree = cJSON_Parse(text);
        free(text);
        if (tree == NULL) {
            (void)snprintf(message, size, "its result is not JSON");
        }
    } else {
        take_complaint(err, message, size);
    }
    if (out != NULL) {
        (void)fclose(out);
    }
    if (err != NULL) {
        (void)fclose(err);
    }
    return tree;
}
