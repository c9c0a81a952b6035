/* The long campaign: random runs over everything (tests/helpers/randomrun.h), each tried every way
 * that must not matter (trial.h), for hours. A run that shows something is made small, and written
 * as a command and a trace.
 *
 *   campaign HOURS FOLDER [FIRST]
 *   campaign write N FOLDER FIRST     the commands and traces of N runs alone, for against.py
 *
 * Exit 1 with findings. One process, beside its one worker. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>

#include "experiments/diff/shrink.h"
#include "sim/base/arena.h"
#include "sim/base/clock.h"
#include "tests/helpers/trial.h"
#include "traces/traces.h"

#define BATCH 100
#define SHRINK_TESTS 300 /* a thing to leave out each */
#define CAUSES 400

/* ---- making a run small ---- */

static bool shows(const struct randomrun *run)
{
    struct trial t;
    trials_run(run, 1, 1, &t);
    return t.outcome == TRIAL_FINDING;
}

static bool shows_sets(void *ctx, const bool *keep, size_t n)
{
    static struct randomrun less;
    const struct randomrun *run = ctx;
    less = *run;
    less.n_sets = 0;
    for (size_t i = 0; i < n; i++) {
        if (keep[i]) {
            memcpy(less.sets[less.n_sets++], run->sets[i], sizeof run->sets[0]);
        }
    }
    return shows(&less);
}

static void shrink_sets(struct randomrun *run)
{
    bool keep[RANDOMRUN_MAX_SETS];
    memset(keep, true, sizeof keep);
    struct shrink s = {run, shows_sets, SHRINK_TESTS};
    (void)shrink_run(&s, keep, run->n_sets);
    uint32_t n = 0;
    for (uint32_t i = 0; i < run->n_sets; i++) {
        if (keep[i]) {
            memmove(run->sets[n++], run->sets[i], sizeof run->sets[0]);
        }
    }
    run->n_sets = n;
}

static void shrink_params(struct randomrun *run)
{
    static struct randomrun less;
    for (char *at; (at = strrchr(run->policy, ',')) != NULL || (at = strchr(run->policy, ':'));) {
        less = *run; /* all but the last; stops at the first that matters */
        less.policy[at - run->policy] = '\0';
        if (!shows(&less)) {
            return;
        }
        *run = less;
    }
}

/* Whole sessions: keep[] of a request whose session loses one is what is left of them all. */
struct requests {
    struct randomrun *run;
    const struct trace *all;
};

static int subset(const struct trace *all, const bool *keep, struct trace *out)
{
    bool *rows = xcalloc(all->n + 1, sizeof *rows);
    for (size_t i = 0; i < all->n_first; i++) { /* element i is the session of first turn i */
        for (uint32_t row = (uint32_t)i; keep[i] && row != TRACE_NO_ROW;
             row = trace_row_at(all, row).next) {
            rows[row] = true;
        }
    }
    int rc = trace_subset(all, rows, out);
    free(rows);
    return rc;
}

static bool shows_requests(void *ctx, const bool *keep, size_t n)
{
    (void)n;
    static struct randomrun less;
    const struct requests *q = ctx;
    struct trace t;
    if (subset(q->all, keep, &t) != 0) {
        return false;
    }
    less = *q->run;
    less.rows = &t;
    bool it_does = t.n > 0 && shows(&less);
    trace_fini(&t);
    return it_does;
}

/* Writes FOLDER/NUMBER.csv and .sh. */
static void write_case(struct randomrun *run, uint64_t number, const char *folder, const char *what)
{
    static struct config c;
    static struct config_policy p;
    static char text[RANDOMRUN_TEXT_BYTES];
    struct trace all;
    struct trace small = {0};
    struct err e = ERR_INIT;
    char csv[512];
    char script[512];
    (void)snprintf(csv, sizeof csv, "%s/%llu.csv", folder, (unsigned long long)number);
    (void)snprintf(script, sizeof script, "%s/%llu.sh", folder, (unsigned long long)number);
    if (!randomrun_load(run, &c, &p, &all)) {
        return;
    }
    bool *keep = xmalloc(all.n_first + 1);
    memset(keep, true, all.n_first + 1);
    struct requests q = {run, &all};
    if (shows_requests(&q, keep, all.n_first)) {
        struct shrink s = {&q, shows_requests, SHRINK_TESTS};
        (void)shrink_run(&s, keep, all.n_first);
    }
    (void)subset(&all, keep, &small);
    (void)trace_write(csv, &small, &e);
    run->trace = csv;
    FILE *f = fopen(script, "w");
    if (f != NULL) {
        (void)fprintf(
            f, "# %s\n# next to itself with --set sim.collapse=false, and again\n%s --json\n", what,
            randomrun_text(run, text));
        (void)fclose(f);
    }
    printf("finding %llu: %s\n  %s: %zu requests\n", (unsigned long long)number, what, script,
           small.n);
    run->trace = NULL;
    free(keep);
    trace_fini(&small);
    trace_fini(&all);
    config_fini(&c);
    err_fini(&e);
}

/* Writes FOLDER/NUMBER.csv, and prints its command, of each run whose parts go together. */
static int write_commands(uint64_t n, const char *folder, uint64_t first)
{
    static struct randomrun run;
    static struct config c;
    static struct config_policy p;
    static char text[RANDOMRUN_TEXT_BYTES];
    int rc = 0;
    for (uint64_t i = 0; i < n && rc == 0; i++) {
        struct trace packed;
        struct trace t = {0};
        struct err e = ERR_INIT;
        char csv[512];
        randomrun_make(&run, first + i);
        if (!randomrun_load(&run, &c, &p, &packed)) {
            continue;
        }
        bool *keep = xmalloc(packed.n_first + 1);
        memset(keep, true, packed.n_first + 1);
        (void)snprintf(csv, sizeof csv, "%s/%llu.csv", folder, (unsigned long long)(first + i));
        run.trace = csv;
        rc = subset(&packed, keep, &t) != 0 ? -1 : trace_write(csv, &t, &e);
        if (rc == 0) {
            puts(randomrun_text(&run, text));
        } else {
            err_print(&e, stderr);
        }
        run.trace = NULL;
        free(keep);
        trace_fini(&t);
        trace_fini(&packed);
        config_fini(&c);
        err_fini(&e);
    }
    return rc == 0 && fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* ---- why runs fail ---- */

struct cause {
    char text[96];
    uint64_t n, example;
};
static struct cause causes[CAUSES];
static size_t n_causes;

/* A message without its numbers: runs that fail for one reason are one row; of those that get
 * nowhere, a row per policy. */
static void count_cause(const char *message, const char *policy, uint64_t number)
{
    char text[96] = "";
    size_t n = 0;
    if (strstr(message, "stalled") != NULL || strstr(message, "livelock") != NULL) {
        n = (size_t)snprintf(text, 40, "%.*s: ", (int)strcspn(policy, ":"), policy);
    }
    const char *colon = strstr(message, "event ");
    const char *at = colon != NULL && strchr(colon, ':') != NULL ? strchr(colon, ':') + 2 : message;
    for (; *at != '\0' && n + 1 < sizeof text; at++) {
        bool digit = *at >= '0' && *at <= '9';
        if (!digit) {
            text[n++] = *at;
        } else if (n == 0 || text[n - 1] != 'N') {
            text[n++] = 'N';
        }
    }
    text[n] = '\0';
    for (size_t i = 0; i < n_causes; i++) {
        if (strcmp(causes[i].text, text) == 0) {
            causes[i].n++;
            return;
        }
    }
    if (n_causes < CAUSES) {
        causes[n_causes] = (struct cause){.n = 1, .example = number};
        memcpy(causes[n_causes++].text, text, sizeof text);
    }
}

static int by_count(const void *a, const void *b)
{
    const struct cause *x = a;
    const struct cause *y = b;
    return x->n != y->n ? (x->n < y->n ? 1 : -1) : strcmp(x->text, y->text);
}

static double cpu_hours(void)
{
    return (clock_processor_s(RUSAGE_SELF) + clock_processor_s(RUSAGE_CHILDREN)) / 3600.0;
}

static void print_table(uint64_t first, uint64_t n, const uint64_t count[TRIAL_OUTCOMES])
{
    qsort(causes, n_causes, sizeof causes[0], by_count);
    for (size_t i = 0; i < n_causes; i++) {
        printf("%8llu  %s (run %llu)\n", (unsigned long long)causes[i].n, causes[i].text,
               (unsigned long long)causes[i].example);
    }
    printf("%llu random runs from %llu on, each up to four ways, %.3f CPU hours: %llu alike, %llu "
           "fail "
           "alike, %llu too long, %llu do not go together, %llu findings\n",
           (unsigned long long)n, (unsigned long long)first, cpu_hours(),
           (unsigned long long)count[TRIAL_SAME], (unsigned long long)count[TRIAL_FAILED_ALIKE],
           (unsigned long long)count[TRIAL_TOO_LONG], (unsigned long long)count[TRIAL_NOT_LOADED],
           (unsigned long long)count[TRIAL_FINDING]);
}

int main(int argc, char **argv)
{
    static struct randomrun runs[BATCH];
    static struct trial trials[BATCH];
    uint64_t count[TRIAL_OUTCOMES] = {0};
    if (argc == 5 && strcmp(argv[1], "write") == 0) {
        return write_commands(strtoull(argv[2], NULL, 10), argv[3], strtoull(argv[4], NULL, 10));
    }
    double hours = argc > 2 ? strtod(argv[1], NULL) : 0.0;
    if (!(hours > 0.0) || (mkdir(argv[2], 0755) != 0 && errno != EEXIST)) {
        (void)fprintf(stderr, "usage: campaign HOURS FOLDER [FIRST]\n");
        return 2;
    }
    time_t begin = time(NULL);
    uint64_t first = argc > 3 ? strtoull(argv[3], NULL, 10) : (uint64_t)begin << 20;
    uint64_t n = 0;
    for (; difftime(time(NULL), begin) < hours * 3600.0; n += BATCH) {
        for (uint32_t i = 0; i < BATCH; i++) {
            randomrun_make(&runs[i], first + n + i);
        }
        trials_run(runs, BATCH, 1, trials);
        for (uint32_t i = 0; i < BATCH; i++) {
            uint64_t number = first + n + i;
            count[trials[i].outcome]++;
            if (trials[i].outcome == TRIAL_FINDING) {
                shrink_params(&runs[i]);
                shrink_sets(&runs[i]);
                write_case(&runs[i], number, argv[2], trials[i].message);
                (void)fflush(stdout);
            } else if (trials[i].message[0] != '\0') {
                count_cause(trials[i].message, runs[i].policy, number);
            }
        }
    }
    print_table(first, n, count);
    return count[TRIAL_FINDING] == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
