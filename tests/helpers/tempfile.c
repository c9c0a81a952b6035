#include "tests/helpers/tempfile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/base/halt.h"

static char path[64];

const char *tempfile_make(const char *suffix)
{
    (void)snprintf(path, sizeof path, "/tmp/xpusim-check-XXXXXX");
    int fd = mkstemp(path);
    /* No ck_assert: the campaign makes files as well, and runs no test. */
    SIM_REQUIRE(fd >= 0 && close(fd) == 0, "no file can be made in /tmp");
    tempfile_remove();
    return strcat(path, suffix);
}

void tempfile_put(const char *text)
{
    FILE *f = fopen(path, "wb");
    SIM_REQUIRE(f != NULL && fputs(text, f) >= 0 && fclose(f) == 0, "%s cannot be written", path);
}

void tempfile_remove(void)
{
    (void)remove(path);
}
