#include "experiments/report/spool.h"

#include <inttypes.h>
#include <string.h>

#include "sim/base/err.h"

void spool_init(struct spool *s, const char *columns)
{
    *s = (struct spool){.columns = columns, .width = 1, .file = tmpfile()};
    SIM_REQUIRE(s->file != NULL, "temporary files");
    for (const char *c = columns; *c != '\0'; c++) {
        s->width += *c == ' ';
    }
    SIM_REQUIRE(s->width <= SPOOL_MAX_COLUMNS, "a spool of few columns");
}

void spool_fini(struct spool *s)
{
    if (s->file != NULL) {
        (void)fclose(s->file);
    }
    *s = (struct spool){.file = NULL};
}

void spool_row(struct spool *s, const int64_t *v)
{
    for (size_t i = 0; i < s->width; i++) {
        (void)fprintf(s->file, "%s%" PRId64, s->n + i > 0 ? "," : "", v[i] - s->last[i]);
        s->last[i] = v[i];
    }
    s->n++;
}

void spool_write(struct spool *s, const char *name, FILE *out)
{
    char block[65536];
    (void)fprintf(out, "\"%s\":{\"columns\":[\"", name);
    for (const char *c = s->columns; *c != '\0'; c++) {
        if (*c == ' ') {
            (void)fputs("\",\"", out);
        } else {
            (void)fputc(*c, out);
        }
    }
    (void)fprintf(out, "\"],\"rows\":%" PRIu64 ",\"delta\":\"", s->n);
    rewind(s->file);
    for (size_t n; (n = fread(block, 1, sizeof block, s->file)) > 0;) {
        (void)fwrite(block, 1, n, out);
    }
    (void)fputs("\"}", out);
}
