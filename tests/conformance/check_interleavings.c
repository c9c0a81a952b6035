/* Real execution on a virtual host (tests/helpers/virtual.h). Each seed draws a machine, requests,
 * a policy, a fault and one interleaving of all threads. Every run must keep the rules of
 * tests/helpers/liverun_check.c. A seed repeats its run exactly.
 *
 * XPUSIM_RUNS sets the number of seeds, and XPUSIM_FIRST the first one. XPUSIM_FIRST=SEED
 * XPUSIM_RUNS=1 XPUSIM_SHOW=1 shows one of them. */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/helpers/liverun.h"
#include "tests/helpers/suite.h"

enum { PART = 2500, WHOLE = 12000 };
#define BLOCK 500 /* seeds of one process */

static uint64_t env_number(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text != NULL ? strtoull(text, NULL, 10) : otherwise;
}

static int blocks(void)
{
    return (int)((suite_runs(PART, WHOLE) + BLOCK - 1) / BLOCK);
}

static uint64_t present;

static void say_seed(int number)
{
    char text[64];
    int n = snprintf(text, sizeof text, "seed %" PRIu64 ": signal %d\n", present, number);
    (void)!write(STDERR_FILENO, text, (size_t)n);
    (void)signal(number, SIG_DFL);
    (void)raise(number);
}

START_TEST(what_must_hold_holds_in_every_interleaving)
{
    uint64_t first = env_number("XPUSIM_FIRST", 0) + (uint64_t)_i * BLOCK;
    uint64_t left = suite_runs(PART, WHOLE) - (uint64_t)_i * BLOCK;
    struct liverun_sums sums = {0};
    uint32_t bad = 0;
    (void)signal(SIGABRT, say_seed);
    (void)signal(SIGSEGV, say_seed);
    for (uint64_t i = 0; i < BLOCK && i < left; i++) {
        struct liverun run;
        present = first + i;
        liverun_run(present, &run);
        liverun_add(&sums, &run);
        if (run.finding[0] != '\0') {
            printf("XPUSIM_FIRST=%" PRIu64 " XPUSIM_RUNS=1: %s\n  %s\n", present, run.what,
                   run.finding);
            bad++;
        } else if (getenv("XPUSIM_SHOW") != NULL) {
            printf("%" PRIu64 ": %s\n", present, run.what);
        }
    }
    liverun_print(&sums);
    (void)fflush(stdout); /* a failed test does not flush it */
    ck_assert_uint_eq(bad, 0);
}
END_TEST

static const struct suite_row suite[] = {
    CASE("all", .timeout_s = 600),
    LOOP_OVER(what_must_hold_holds_in_every_interleaving, blocks),
};
SUITE_MAIN("interleavings", suite)
