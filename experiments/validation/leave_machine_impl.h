/* A left-out machine that is made from a sibling (leave_sibling.c), and its rows (leave_choice.c).
 */
#pragma once

#include "experiments/validation/leave_machine.h"
#include "experiments/validation/update.h"

/* A fit of an entry without rows of any left-out machine, so further machines can use it. */
struct entry_fit {
    const struct soc *sibling;
    uint8_t device;
    uint32_t runtime;
    bool fitted;
    struct soc_runtime roofline;
};

struct entry_fits {
    struct entry_fit *v; /* owned */
    size_t n;
};

/* One machine, one sibling, one device. */
struct pair {
    struct catalog *c;
    const struct points *points; /* for fits */
    const struct points *judged; /* to predict */
    const struct soc *truth, *sibling;
    uint8_t device;               /* of the sibling and of the made machine */
    bool valid[SOC_MAX_RUNTIMES]; /* entries with measurements of the sibling */
    struct soc_runtime roofline[SOC_MAX_RUNTIMES];
    struct conformal table;  /* without the machine; v is owned */
    struct soc *made;        /* owned by the catalogue */
    cJSON *tree;             /* owned; its file */
    struct update_row *rows; /* owned: of the machine */
    double *sheet_half;      /* [n], owned: of each row by data sheet only */
    struct update prior;     /* owned */
    size_t n;
    uint32_t measured;
    struct leave_rows *out;
    struct entry_fits *fits;
};

/* Fills p->table with the errors without the machine. */
void leave_table_without(struct pair *p);
/* Makes the machine like `new-soc`, from the sibling's data sheet and a fit without its rows.
 * Returns 0 if it exists; it is then the last of the catalogue. */
int leave_make(struct pair *p, struct err *e);

/* Fills p->rows with those to predict; the made machine is the last of the catalogue. */
void leave_collect(struct pair *p);
/* Predicts with each choice of measured models known, and fills p->prior. Returns 0, or -EINVAL. */
int leave_try_all(struct pair *p, struct err *e);
/* Predicts each choice once more with the average of all pairs' copies of a kind of device. */
int leave_try_averages(struct catalog *c, struct pair *pair, size_t n, struct err *e);
