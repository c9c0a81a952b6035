/* `xpusim validate`: predictions against what was measured. */
#include <stdio.h>
#include <string.h>

#include "experiments/commands/commands.h"
#include "experiments/validation/validate_points.h"
#include "experiments/validation/validate_run.h"

static const char help[] =
    "usage: xpusim validate --points FILE ...    published measurements against predictions\n"
    "       xpusim validate --run FILE ...       a measured serving run against its replay\n"
    "\n"
    "With --help behind --points or --run: the options of each.\n";

/* Whether some argument is `name` or starts with "name=". */
static int asks_for(int argc, char **argv, const char *name)
{
    size_t n = strlen(name);
    for (int i = 1; i < argc; i++) {
        if (strncmp(argv[i], name, n) == 0 && (argv[i][n] == '\0' || argv[i][n] == '=')) {
            return 1;
        }
    }
    return 0;
}

int cmd_validate(int argc, char **argv)
{
    if (asks_for(argc, argv, "--run")) {
        return validate_run_command(argc, argv);
    }
    if (asks_for(argc, argv, "--points")) {
        return validate_points_command(argc, argv);
    }
    if (asks_for(argc, argv, "--help") || asks_for(argc, argv, "-h")) {
        (void)fputs(help, stdout);
        return EXIT_OK;
    }
    (void)fprintf(stderr, "xpusim: error: say what to validate: --points FILE or --run FILE\n%s",
                  help);
    return EXIT_BAD_INPUT;
}
