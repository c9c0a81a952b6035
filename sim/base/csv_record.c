#include "sim/base/csv_record.h"

int csv_record_init(struct csv_record *r, struct csvfile *f, const struct csv_field *fields,
                    size_t n, struct err *e)
{
    SIM_REQUIRE(n <= CSV_MAX_FIELDS, "room for every column");
    *r = (struct csv_record){.f = f, .fields = fields, .n = n};
    size_t before = e->n;
    for (size_t i = 0; i < n; i++) {
        r->columns[i] = fields[i].or_missing ? csvfile_column(f, fields[i].column)
                                             : csvfile_require(f, fields[i].column, e);
    }
    return e->n == before ? 0 : -EINVAL;
}

/* ---- reading ---- */

static const char *text_of(struct csvfile *f, int column, const struct csv_field *c, struct err *e)
{
    const char *text = csvfile_text(f, column);
    SIM_ASSERT(c->min <= 1.0); /* min of a text is 1 if it must not be empty */
    if (c->min > 0.0 && text[0] == '\0') {
        csvfile_refuse(f, column, e, "must not be empty");
    }
    return xkeep(xstrdup(text));
}

static int32_t signed_of(struct csvfile *f, int column, const struct csv_field *c, struct err *e)
{
    double v = csvfile_number(f, column, c->min, c->max, e);
    if (v != (int32_t)v) {
        csvfile_refuse(f, column, e, "\"%s\" must be a whole number", csvfile_text(f, column));
    }
    return (int32_t)v;
}

static int64_t unit_ns(const struct csv_field *c)
{
    return c->kind == CSV_SECONDS ? NS_PER_S : NS_PER_MS;
}

/* Plain decimals are parsed as integers. A double would not give instants beyond 104 days (2^53 ns)
 * exactly. */
static int64_t time_ns(struct csvfile *f, int column, const struct csv_field *c, struct err *e)
{
    int64_t place = unit_ns(c);
    double v = csvfile_number(f, column, c->min, c->max, e);
    const char *text = csvfile_text(f, column);
    size_t whole_n = strspn(text, "0123456789");
    const char *frac = text + whole_n + (text[whole_n] == '.');
    size_t frac_n = strspn(frac, "0123456789");
    if (frac[frac_n] != '\0' || frac_n > (c->kind == CSV_SECONDS ? 9 : 6) || !(v > 0.0)) {
        return llround(v * (double)place); /* exponents, more digits than ns, or refused values */
    }
    int64_t t = (int64_t)strtoull(text, NULL, 10) * place;
    for (size_t i = 0; i < frac_n; i++) {
        place /= 10;
        t += (frac[i] - '0') * place;
    }
    return t;
}

static void put_whole(void *member, size_t size, uint32_t v)
{
    unsigned char byte = (unsigned char)v;
    uint16_t two = (uint16_t)v;
    memcpy(member, size == 1 ? (void *)&byte : size == 2 ? (void *)&two : (void *)&v, size);
}

static uint32_t whole_of(const void *member, size_t size)
{
    unsigned char byte;
    uint16_t two;
    uint32_t four;
    memcpy(size == 1 ? (void *)&byte : size == 2 ? (void *)&two : (void *)&four, member, size);
    return size == 1 ? byte : size == 2 ? two : four;
}

void csv_record_take(const struct csv_record *r, void *out, struct err *e)
{
    for (size_t i = 0; i < r->n; i++) {
        const struct csv_field *c = &r->fields[i];
        int col = r->columns[i];
        char *member = (char *)out + c->at;
        if ((c->or_empty || c->or_missing) && csvfile_empty(r->f, col)) {
            continue;
        }
        switch (c->kind) {
        case CSV_TEXT:
            memcpy(member, &(const char *){text_of(r->f, col, c, e)}, c->size);
            break;
        case CSV_NUMBER:
            memcpy(member, &(double){csvfile_number(r->f, col, c->min, c->max, e)}, c->size);
            break;
        case CSV_WHOLE:
            put_whole(member, c->size,
                      (uint32_t)csvfile_u64(r->f, col, (uint64_t)c->min, (uint64_t)c->max, e));
            break;
        case CSV_SIGNED:
            memcpy(member, &(int32_t){signed_of(r->f, col, c, e)}, c->size);
            break;
        case CSV_SECONDS:
        case CSV_MS:
            memcpy(member, &(int64_t){time_ns(r->f, col, c, e)}, c->size);
            break;
        case CSV_CHOICE:
            put_whole(member, c->size, (uint32_t)csvfile_choice(r->f, col, c->choices, e));
            break;
        }
    }
}

void *csv_table_read(const struct csv_table *t, const char *path, size_t *n, struct err *e)
{
    *n = 0;
    size_t before = e->n;
    SCOPED(csvfile_drop) struct csvfile *f = csvfile_open(path, e);
    struct csv_record r;
    if (f == NULL || csv_record_init(&r, f, t->fields, t->n_fields, e) != 0) {
        return NULL;
    }
    char *rows = xkept_grow(NULL, 0, t->row_bytes);
    while (csvfile_next(f, e) > 0) {
        rows = xkept_grow(rows, *n, t->row_bytes);
        char *row = rows + (*n)++ * t->row_bytes;
        if (t->blank != NULL) {
            memcpy(row, t->blank, t->row_bytes);
        } else {
            memset(row, 0, t->row_bytes);
        }
        size_t errors = e->n;
        csv_record_take(&r, row, e);
        if (t->check != NULL && e->n == errors) {
            t->check(row, f, e);
        }
    }
    if (e->n == before && *n == 0 && t->holds != NULL) {
        (void)err_add(e, "%s: holds no %s", path, t->holds);
    }
    *n = e->n == before ? *n : 0;
    return e->n == before ? rows : NULL;
}

/* ---- writing ---- */

void csv_record_write_head(FILE *out, const struct csv_field *fields, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        (void)fprintf(out, "%s%s", i > 0 ? "," : "", fields[i].column);
    }
}

void csv_write_text(FILE *out, const char *text, bool quoted)
{
    if (!quoted && strpbrk(text, ",\"\n\r") == NULL) {
        (void)fputs(text, out);
        return;
    }
    (void)fputc('"', out);
    for (const char *end; (end = strchr(text, '"')) != NULL; text = end + 1) {
        (void)fprintf(out, "%.*s\"\"", (int)(end - text), text);
    }
    (void)fprintf(out, "%s\"", text);
}

/* Writes all digits, without trailing zeros. */
static void write_time(FILE *out, const struct csv_field *c, int64_t t_ns)
{
    int64_t unit = unit_ns(c);
    char text[40];
    int n = snprintf(text, sizeof text, "%lld.%0*lld", (long long)(t_ns / unit),
                     c->kind == CSV_SECONDS ? 9 : 6, (long long)(t_ns % unit));
    while (text[n - 1] == '0') {
        n--;
    }
    n -= text[n - 1] == '.';
    (void)fprintf(out, "%.*s", t_ns == TIME_NEVER_NS ? 0 : n, text);
}

static void write_cell(FILE *out, const struct csv_field *c, const void *member)
{
    const char *text = NULL;
    double number = 0.0;
    int64_t t_ns = 0;
    int32_t whole = 0;
    switch (c->kind) {
    case CSV_TEXT:
        memcpy(&text, member, sizeof text);
        csv_write_text(out, text, c->quoted);
        break;
    case CSV_NUMBER:
        memcpy(&number, member, sizeof number);
        if (!c->or_empty || number >= 0.0) {
            (void)fprintf(out, c->format != NULL ? c->format : "%.9g", number);
        }
        break;
    case CSV_WHOLE:
        (void)fprintf(out, "%u", whole_of(member, c->size));
        break;
    case CSV_SIGNED:
        memcpy(&whole, member, sizeof whole);
        (void)fprintf(out, "%d", whole);
        break;
    case CSV_SECONDS:
    case CSV_MS:
        memcpy(&t_ns, member, sizeof t_ns);
        write_time(out, c, t_ns);
        break;
    case CSV_CHOICE:
        (void)fputs(c->choices[whole_of(member, c->size)], out);
        break;
    }
}

void csv_record_write(FILE *out, const struct csv_field *fields, size_t n, const void *row)
{
    for (size_t i = 0; i < n; i++) {
        (void)fputs(i > 0 ? "," : "", out);
        write_cell(out, &fields[i], (const char *)row + fields[i].at);
    }
}
