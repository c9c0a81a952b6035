#include "tests/helpers/madetrace.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#include "sim/base/datadir.h"

void madetrace(const char *spec, uint64_t seed, struct trace *out)
{
    struct err err = ERR_INIT;
    int rc = trace_generate(spec, seed, 1.0, out, &err);
    ck_assert_msg(rc == 0, "%s: %s", spec, err.n > 0 ? err.lines[0] : "no message");
    err_fini(&err);
}

struct table table_read(const char *name, const char *form, int fields)
{
    char relative[200], line[1000];
    (void)snprintf(relative, sizeof relative, "traces/datasets/%s.csv", name);
    FILE *f = fopen(datadir_path(relative), "r");
    ck_assert_msg(f != NULL, "%s", relative);
    struct table d = {calloc(20000, sizeof *d.v), 0};
    while (fgets(line, sizeof line, f) != NULL) {
        uint32_t *v = d.v[d.n];
        d.n += sscanf(line, form, &v[0], &v[1], &v[2], &v[3]) == fields; /* not headers */
    }
    ck_assert_int_eq(fclose(f), 0);
    return d;
}
