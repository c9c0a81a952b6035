/* One machine that is left out, made from one sibling (leave_sibling.c), and its rows
 * (leave_machine.c). */
#pragma once

#include "experiments/validation/leave_machine.h"
#include "experiments/validation/update.h"

/* A fit of an entry in which no left out machine has a row: that of the next machine, too. */
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
    const struct points *points; /* that fits take */
    const struct points *judged; /* that are predicted */
    const struct soc *truth, *sibling;
    uint8_t device;               /* of the sibling, and of what is made of it */
    bool valid[SOC_MAX_RUNTIMES]; /* entries that the sibling measured */
    struct soc_runtime roofline[SOC_MAX_RUNTIMES];
    struct conformal table;  /* without the machine; v is owned */
    struct soc *made;        /* the catalogue's */
    cJSON *tree;             /* owned: its file */
    struct update_row *rows; /* owned: of the machine */
    double *sheet_half;      /* [n], owned: of each row by data sheet alone */
    size_t n;
    uint32_t measured;
    struct leave_rows *out;
    struct entry_fits *fits;
};

/* The table of errors without the machine, into p->table. */
void leave_table_without(struct pair *p);
/* The machine, as `new-soc` makes it from the sibling's data sheet and a fit without its rows. 0
 * where there is one; it is the last of the catalogue then. */
int leave_make(struct pair *p, struct err *e);
