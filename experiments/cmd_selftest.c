/* `xpusim selftest`: does this installation compute what it should? */
#include <getopt.h>
#include <stdio.h>

#include "experiments/commands.h"
#include "experiments/selftest.h"

static const char help[] =
    "usage: xpusim selftest [--quiet]\n"
    "\n"
    "Checks closed forms and the laws every run must obey on the shipped machine, in seconds.\n"
    "Exit status 1 when one does not hold.\n";

int cmd_selftest(int argc, char **argv)
{
    static const struct option longs[] = {
        {"quiet", no_argument, NULL, 'q'}, {"help", no_argument, NULL, 'h'}, {NULL, 0, NULL, 0}};
    bool quiet = false;
    optind = 1;
    for (int c; (c = getopt_long(argc, argv, "hq", longs, NULL)) != -1;) {
        if (c == 'h') {
            (void)fputs(help, stdout);
            return EXIT_OK;
        }
        if (c != 'q') {
            return EXIT_BAD_INPUT;
        }
        quiet = true;
    }
    if (optind < argc) {
        (void)fprintf(stderr, "xpusim: error: %s: not an option\n", argv[optind]);
        return EXIT_BAD_INPUT;
    }
    size_t failed = selftest_run(selftest_closed_forms, selftest_n_closed_forms, quiet);
    (void)printf("%zu passed, %zu failed\n", selftest_n_closed_forms - failed, failed);
    return failed == 0 ? EXIT_OK : EXIT_CHECK_FAILED;
}
