/* The `sim` object of the configuration, one row per setting: from it come the default in the tree,
 * the reader with its range, and `xpusim list setting`. A further setting is a member of struct
 * config_sim and a row of the table. */
#pragma once

#include "experiments/run/config.h"
#include "sim/base/json.h"

enum setting_kind {
    SETTING_NUMBER, /* double */
    SETTING_COUNT,  /* uint32_t */
    SETTING_FLAG,   /* bool */
    SETTING_TEXT,   /* const char *, borrowed from the tree */
    SETTING_CHOICE, /* int: the index among choices */
};

struct setting {
    const char *path; /* below `sim`: "power.limit". Rows of one object follow each other */
    const char *unit; /* "1" of shares and factors; "" of what is no quantity */
    const char *help;
    const char *text;           /* the default of a text */
    const char *const *choices; /* NULL-terminated; of a choice */
    double preset;              /* the default of all others; of a choice the index */
    double min, max;            /* of numbers and counts */
    size_t offset;              /* in struct config_sim */
    enum setting_kind kind;
};

/* All of them, in the order of the tree. */
const struct setting *config_sim_table(size_t *n);

/* A new tree of all defaults; the caller owns it. */
cJSON *config_sim_to_json(void);
/* Reads and checks every key. Texts borrow from the tree. */
void config_sim_parse(struct json_obj o, struct config_sim *out);
