/* `xpusim selftest`: does this installation compute what it should? */
#include <getopt.h>
#include <stdio.h>

#include "experiments/commands/commands.h"
#include "experiments/selftest/controls.h"
#include "experiments/selftest/selftest.h"

static const char help[] =
    "usage: xpusim selftest [--controls] [--quiet]\n"
    "\n"
    "Checks closed forms and the laws every run must obey on the shipped machine, in seconds.\n"
    "Exit status 1 when one does not hold.\n"
    "\n"
    "  --controls   negative controls instead: change one mechanism at a time and see whether the\n"
    "               results move the way it says\n";

int cmd_selftest(int argc, char **argv)
{
    static const struct option longs[] = {{"controls", no_argument, NULL, 'c'},
                                          {"quiet", no_argument, NULL, 'q'},
                                          {"help", no_argument, NULL, 'h'},
                                          {NULL, 0, NULL, 0}};
    bool quiet = false;
    bool controls = false;
    optind = 1;
    for (int c; (c = getopt_long(argc, argv, "hq", longs, NULL)) != -1;) {
        if (c == 'h') {
            (void)fputs(help, stdout);
            return EXIT_OK;
        }
        if (c == 'c') {
            controls = true;
        } else if (c == 'q') {
            quiet = true;
        } else {
            return EXIT_BAD_INPUT;
        }
    }
    if (optind < argc) {
        (void)fprintf(stderr, "xpusim: error: %s: not an option\n", argv[optind]);
        return EXIT_BAD_INPUT;
    }
    if (controls) {
        size_t wrong = controls_run(stdout);
        (void)printf("%zu passed, %zu failed\n", controls_count() - wrong, wrong);
        return wrong == 0 ? EXIT_OK : EXIT_CHECK_FAILED;
    }
    size_t failed = selftest_run(selftest_closed_forms, selftest_n_closed_forms, quiet);
    (void)printf("%zu passed, %zu failed\n", selftest_n_closed_forms - failed, failed);
    return failed == 0 ? EXIT_OK : EXIT_CHECK_FAILED;
}
