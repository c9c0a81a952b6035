/* `xpusim selftest`: checks that this installation computes correct results. */

#include "experiments/commands/commands.h"
#include "experiments/selftest/selftest.h"

struct options {
    struct option_output output;
    bool controls;
};

static int run(void *values, struct err *e UNUSED)
{
    const struct options *o = values;
    struct document *d = document_new();
    size_t n = o->controls ? controls_count() : selftest_n_closed_forms;
    size_t failed =
        o->controls ? controls_run(d) : selftest_run(selftest_closed_forms, n, o->output.quiet, d);
    document_note(d, "%zu passed, %zu failed", n - failed, failed);
    document_show(d, &o->output);
    return failed == 0 ? EXIT_OK : EXIT_CHECK_FAILED;
}

#define OPTIONS struct options

static const struct option_row rows[] = {
    OPTION_FLAG(OPTIONS, controls, "controls",
                "run negative controls instead: change one mechanism at a time, and check that the "
                "results move as expected"),
};
const struct command cmd_selftest = {
    .name = "selftest",
    .summary = "check this installation against closed forms, in seconds",
    .usage = "[--controls] [--quiet]",
    .about = "Checks closed forms and the laws every run must obey on the shipped machine, in "
             "seconds. Exit 1 when one does not hold.",
    COMMAND_TAKES(OPTION_ROWS(NULL, rows), OPTION_CHILD(option_output_table, output)),
    .run = run,
};
