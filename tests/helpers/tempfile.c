#include "tests/helpers/tempfile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/helpers/suite.h"

static char path[64];

const char *tempfile_make(const char *suffix)
{
    (void)snprintf(path, sizeof path, "/tmp/xpusim-check-XXXXXX");
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(close(fd), 0);
    tempfile_remove();
    return strcat(path, suffix);
}

void tempfile_put(const char *text)
{
    FILE *f = fopen(path, "wb");
    ck_assert_ptr_nonnull(f);
    ck_assert_int_ge(fputs(text, f), 0);
    ck_assert_int_eq(fclose(f), 0);
}

void tempfile_remove(void)
{
    (void)remove(path);
}
