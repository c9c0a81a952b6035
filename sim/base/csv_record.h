/* Reads, checks and writes the rows of a CSV file as structs, by a table of their columns.
 *
 *     #define OF(member) CSV_MEMBER(struct cause, member)
 *     static const struct csv_field fields[] = {
 *         {"cause", CSV_TEXT, OF(name), .min = 1},
 *         {"share_frac", CSV_NUMBER, OF(share), .max = 1},
 *         {"reusable", CSV_WHOLE, OF(reusable), .max = 1}};
 *
 * Other columns of the file are ignored. */
#pragma once

#include "sim/base/csvfile.h"

#define CSV_MAX_FIELDS 32

enum csv_kind {
    CSV_TEXT,    /* const char *, never freed (xkeep); min 1: must not be empty */
    CSV_NUMBER,  /* double */
    CSV_WHOLE,   /* bool or an unsigned integer of up to 32 bits */
    CSV_SIGNED,  /* int32_t */
    CSV_SECONDS, /* int64_t, ns; plain decimals are exact; TIME_NEVER_NS: an empty cell */
    CSV_MS,      /* int64_t, ns; the file has milliseconds */
    CSV_CHOICE   /* as CSV_WHOLE, or an enum: index of the text in `choices` */
};

struct csv_field {
    const char *column;
    enum csv_kind kind;
    size_t at, size;            /* of the member, from CSV_MEMBER */
    double min, max;            /* in the unit of the column */
    const char *const *choices; /* ends with NULL */
    bool or_empty; /* an empty cell leaves the member as it is; numbers below 0 are written empty */
    bool or_missing;    /* as or_empty, and the whole column may be missing */
    const char *format; /* printf format of a CSV_NUMBER, of one double; NULL: "%.9g" */
    bool quoted;        /* always quote the text */
};
#define CSV_MEMBER(type, member) .at = offsetof(type, member), .size = sizeof(((type *)0)->member)

/* Columns of one open file. */
struct csv_record {
    struct csvfile *f;              /* borrowed */
    const struct csv_field *fields; /* borrowed, at most CSV_MAX_FIELDS */
    size_t n;
    int columns[CSV_MAX_FIELDS]; /* -1: missing */
};

/* Finds the columns. Returns 0, or -EINVAL with an error for each missing column. */
int csv_record_init(struct csv_record *r, struct csvfile *f, const struct csv_field *fields,
                    size_t n, struct err *e);
/* Sets the members of *out from the current row. Adds an error for each wrong cell. */
void csv_record_take(const struct csv_record *r, void *out, struct err *e);

/* Description of a file that is read as a whole. */
struct csv_table {
    const struct csv_field *fields;
    size_t n_fields, row_bytes;
    const void *blank; /* initial value of each row; NULL: zeros */
    /* Adds an error if the valid cells of a row contradict each other. May be NULL. */
    void (*check)(void *row, const struct csvfile *f, struct err *e);
    const char *holds; /* name of the rows, "points", if a file must have some; or NULL */
};
#define CSV_TABLE(rows_, row_bytes_, ...)                                                          \
    {                                                                                              \
        .fields = (rows_), .n_fields = sizeof(rows_) / sizeof(rows_)[0],                           \
        .row_bytes = (row_bytes_), __VA_ARGS__                                                     \
    }
/* Returns all n rows, never freed (xkept). Returns NULL with an error for every wrong cell. */
void *csv_table_read(const struct csv_table *t, const char *path, size_t *n, struct err *e);

/* Writes a text as a cell. Quotes it if it has commas, quotes or line ends, or if `quoted` is
 * set. */
void csv_write_text(FILE *out, const char *text, bool quoted);
/* Write the column names, or one row's cells, without a line end. */
void csv_record_write_head(FILE *out, const struct csv_field *fields, size_t n);
void csv_record_write(FILE *out, const struct csv_field *fields, size_t n, const void *row);
