/* Rows of a CSV file as structs, by one table of their columns: it reads, checks and writes them.
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
    CSV_TEXT,    /* const char *, kept (xkeep): of `min` bytes at least */
    CSV_NUMBER,  /* double */
    CSV_WHOLE,   /* bool or an unsigned integer of up to 32 bits */
    CSV_SIGNED,  /* int32_t */
    CSV_SECONDS, /* int64_t, ns: plain decimals exactly; TIME_NEVER_NS is an empty cell */
    CSV_MS,      /* milliseconds, read as a time */
    CSV_CHOICE   /* as CSV_WHOLE, or an enum: the index of the text among `choices` */
};

struct csv_field {
    const char *column;
    enum csv_kind kind;
    size_t at, size;            /* of the member: CSV_MEMBER */
    double min, max;            /* in the unit of the column */
    const char *const *choices; /* NULL ends them */
    bool or_empty;      /* an empty cell leaves the member as it is; a number below 0 is one */
    bool or_missing;    /* the same, and the whole column may be missing */
    const char *format; /* of a number that is written, one double: "%.9g" when NULL */
    bool quoted;        /* a text that is in quotes even where it need not be */
};
#define CSV_MEMBER(type, member) .at = offsetof(type, member), .size = sizeof(((type *)0)->member)

/* The fields of one open file. */
struct csv_record {
    struct csvfile *f;              /* borrowed */
    const struct csv_field *fields; /* borrowed, at most CSV_MAX_FIELDS */
    size_t n;
    int columns[CSV_MAX_FIELDS]; /* -1: missing */
};

/* Finds the columns: 0, or -EINVAL with an error for each that is missing. */
int csv_record_init(struct csv_record *r, struct csvfile *f, const struct csv_field *fields,
                    size_t n, struct err *e);
/* Sets the members of *out from the current row, with an error for each cell that is wrong. */
void csv_record_take(const struct csv_record *r, void *out, struct err *e);

/* A whole file of rows. */
struct csv_table {
    const struct csv_field *fields;
    size_t n_fields, row_bytes;
    const void *blank; /* a row before its cells are read; NULL: zeros */
    /* Refuses a row whose cells are right but do not go together, or NULL. */
    void (*check)(void *row, const struct csvfile *f, struct err *e);
    const char *holds; /* "points": to have none is an error; NULL: it is none */
};
#define CSV_TABLE(rows_, row_bytes_, ...)                                                          \
    {                                                                                              \
        .fields = (rows_), .n_fields = sizeof(rows_) / sizeof(rows_)[0],                           \
        .row_bytes = (row_bytes_), __VA_ARGS__                                                     \
    }
/* Returns all n rows, which are kept (xkept); NULL with errors, which name every wrong cell. */
void *csv_table_read(const struct csv_table *t, const char *path, size_t *n, struct err *e);

/* Writes a text as a cell: in quotes where it has commas, quotes or ends of lines, or is `quoted`.
 */
void csv_write_text(FILE *out, const char *text, bool quoted);
/* Some columns' names, and their cells of a row; neither ends the line. */
void csv_record_write_head(FILE *out, const struct csv_field *fields, size_t n);
void csv_record_write(FILE *out, const struct csv_field *fields, size_t n, const void *row);
