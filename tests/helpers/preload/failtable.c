#define _GNU_SOURCE
#include "failtable.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define HANGS_S 60

static bool same_file(const char *a, const char *b)
{
    static char x[1 << 16];
    static char y[1 << 16];
    int f = open(a, O_RDONLY | O_CLOEXEC);
    int g = open(b, O_RDONLY | O_CLOEXEC);
    bool same = f >= 0 && g >= 0;
    for (ssize_t n = 1; same && n > 0;) {
        n = read(f, x, sizeof x);
        same = n >= 0 && read(g, y, sizeof y) == n && memcmp(x, y, (size_t)n) == 0;
    }
    (void)close(f);
    (void)close(g);
    return same;
}

/* The next entry of a folder that is neither . nor .. */
static const char *next_name(DIR *d)
{
    for (const struct dirent *e; (e = readdir(d)) != NULL;) {
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0) {
            return e->d_name;
        }
    }
    return NULL;
}

static void empty(const char *folder)
{
    char path[512];
    DIR *d = opendir(folder);
    for (const char *name; d != NULL && (name = next_name(d)) != NULL;) {
        (void)snprintf(path, sizeof path, "%s/%s", folder, name);
        (void)unlink(path);
    }
    if (d != NULL) {
        (void)closedir(d);
    }
}

/* Is every file of folder a in b, with the same bytes? */
static bool all_in(const char *a, const char *b)
{
    char x[512];
    char y[512];
    bool all = true;
    DIR *d = opendir(a);
    for (const char *name; d != NULL && (name = next_name(d)) != NULL;) {
        (void)snprintf(x, sizeof x, "%s/%s", a, name);
        (void)snprintf(y, sizeof y, "%s/%s", b, name);
        all = all && same_file(x, y);
    }
    if (d != NULL) {
        (void)closedir(d);
    }
    return d != NULL && all;
}

static void first_line(char *line, int n)
{
    FILE *f = fopen("stderr", "r");
    if (f == NULL || fgets(line, n, f) == NULL) {
        line[0] = '\0';
    }
    line[strcspn(line, "\n")] = '\0';
    if (f != NULL) {
        (void)fclose(f);
    }
}

static bool right(int status, const char *said)
{
    if (!WIFEXITED(status)) {
        return false;
    }
    switch (WEXITSTATUS(status)) {
    case 0:
        return same_file("stdout", "want.stdout") && all_in("out", "want") && all_in("want", "out");
    case 3:
        return strstr(said, "out of memory") != NULL && all_in("out", "want");
    default:
        return false;
    }
}

static int run(int (*program)(unsigned long k), unsigned long k)
{
    pid_t pid = fork();
    if (pid == 0) {
        struct rlimit limit = {HANGS_S, HANGS_S};
        int out = open("stdout", O_WRONLY | O_CREAT | O_TRUNC, 0666);
        int err = open("stderr", O_WRONLY | O_CREAT | O_TRUNC, 0666);
        if (out < 0 || err < 0 || dup2(out, 1) < 0 || dup2(err, 2) < 0 || close(out) != 0 ||
            close(err) != 0 || setrlimit(RLIMIT_CPU, &limit) != 0) {
            _exit(99);
        }
        (void)alarm(10 * HANGS_S);
        exit(program(k));
    }
    int status = -1;
    (void)waitpid(pid, &status, 0);
    return status;
}

/* Runs and checks one. Returns its exit status, or prints it and returns -1 when it is wrong. */
static int one(int (*program)(unsigned long k), unsigned long k)
{
    char said[256];
    empty("out");
    empty("scratch");
    int status = run(program, k);
    first_line(said, sizeof said);
    if (right(status, said)) {
        return WEXITSTATUS(status);
    }
    const char *name = getenv("FM_NAME");
    printf("memory: %s, allocation %lu: %s %d: %s\n", name != NULL ? name : "", k,
           WIFEXITED(status) ? "exit" : "signal",
           WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status), said);
    (void)fflush(stdout);
    return -1;
}

int failtable(const char *range, int (*program)(unsigned long k), const unsigned long *most)
{
    unsigned long first;
    unsigned long last;
    unsigned long step;
    if (sscanf(range, "%lu:%lu:%lu", &first, &last, &step) != 3 || step == 0) {
        (void)fprintf(stderr, "FM_TABLE is FIRST:LAST:STEP\n");
        return 2;
    }
    if (one(program, 0) != 0) {
        return 2;
    }
    unsigned long allocations = *most;
    unsigned long beyond = allocations + allocations / 10 + 10;
    last = last < beyond ? last : beyond;
    unsigned long count[3] = {0}; /* wrong, same, exit 3 */
    unsigned long tried = 0;
    for (unsigned long k = first; k <= last; k += step, tried++) {
        int status = one(program, k);
        count[status < 0 ? 0 : status == 0 ? 1 : 2]++;
    }
    printf("%lu %lu %lu %lu %lu\n", allocations, tried, count[1], count[2], count[0]);
    (void)fflush(stdout);
    return count[0] == 0 ? 0 : 1;
}
