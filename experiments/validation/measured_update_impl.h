/* The state of an update, for its report. */
#pragma once

#include "experiments/validation/measured_update.h"
#include "experiments/validation/update.h"

struct measured_work {
    struct catalog *c;
    const struct soc *soc; /* the catalogue's */
    cJSON *tree;
    struct measured *m;
    const struct measured_like *like; /* NULL: the tree alone */
    struct document *d;
    struct err *e;
    struct update_row *rows; /* owned; one per measured point */
};

/* The entry's object in the file's tree. */
cJSON *measured_entry_tree(const struct measured_work *w, uint8_t device, uint32_t runtime);
/* Whether some rows belong to the entry. */
bool measured_has_rows(const struct update_row *rows, size_t n, uint32_t runtime);

/* Adds tables of the report (measured_report.c). `prior` and `u` are the states before and after
 * the update with `rows`, all of one device. The tree has the new values. */
void measured_put_numbers(const struct measured_work *w, const struct update *prior,
                          const struct update *u, const struct update_row *rows, size_t n);
struct frame *measured_errors_table(struct document *d);
/* Adds an entry's rows to that table: standard deviations of ln by phase, before and after. */
void measured_put_errors(const struct measured_work *w, const struct update *u, uint32_t runtime,
                         const double before[UPDATE_PHASES], const double after[UPDATE_PHASES],
                         struct frame *f);
void measured_put_next(const struct measured_work *w, const struct update *u,
                       const struct update_row *rows, size_t n);
