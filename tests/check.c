/* Main of the test programs: `check tests/unit/check_rng.c` runs the suite of that file, `check`
 * all of them in turn. */
#include <stdio.h>

#include "tests/helpers/suite.h"

int main(int argc, char **argv)
{
    if (argc > 2) {
        fprintf(stderr, "usage: %s [tests/FOLDER/check_NAME.c]\n", argv[0]);
        return 2;
    }
    return suite_main(argv[1]);
}
