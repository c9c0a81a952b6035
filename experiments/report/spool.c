#include "experiments/report/spool.h"

void spool_init(struct spool *s, const char *columns)
{
    *s = (struct spool){.columns = columns, .width = 1, .file = tmpfile()};
    SIM_REQUIRE(s->file != NULL, "temporary files");
    for (const char *c = columns; *c != '\0'; c++) {
        s->width += *c == ' ';
    }
    SIM_REQUIRE(s->width <= SPOOL_MAX_COLUMNS, "a spool of few columns");
}

void spool_row(struct spool *s, const int64_t *v)
{
    size_t n = fwrite(v, sizeof *v, s->width, s->file);
    SIM_REQUIRE(n == s->width, "room for temporary files");
    s->n++;
}

/* Reads the file, and writes one column. */
static void put_column(const struct spool *s, size_t column, FILE *out)
{
    int64_t v[SPOOL_MAX_COLUMNS];
    int64_t last = 0;
    rewind(s->file);
    for (uint64_t row = 0; row < s->n && fread(v, sizeof *v, s->width, s->file) == s->width;
         row++) {
        (void)fprintf(out, "%s%" PRId64, row + column > 0 ? "," : "", v[column] - last);
        last = v[column];
    }
}

void spool_write(struct spool *s, const char *name, FILE *out)
{
    (void)fprintf(out, "\"%s\":{\"columns\":[\"", name);
    for (const char *c = s->columns; *c != '\0'; c++) {
        if (*c == ' ') {
            (void)fputs("\",\"", out);
        } else {
            (void)fputc(*c, out);
        }
    }
    (void)fprintf(out, "\"],\"rows\":%" PRIu64 ",\"delta\":\"", s->n);
    for (size_t i = 0; i < s->width; i++) {
        put_column(s, i, out);
    }
    (void)fputs("\"}", out);
}
