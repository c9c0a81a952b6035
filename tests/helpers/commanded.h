/* A command, run in the process of a test as the program runs it, and what it printed. */
#pragma once

#include "experiments/commands/commands.h"

struct said {
    int status;
    char *out, *err; /* owned */
};

/* Words follow the command's name and end with NULL. */
struct said commanded(const struct command *c, const char *const *words);
#define COMMANDED(command_, ...) commanded(&(command_), (const char *const[]){__VA_ARGS__, NULL})
void said_fini(struct said *s);

/* All that is printed between the two calls; the status is 0. */
struct hearing {
    FILE *files[2];
    int kept[2];
};
void hearing_begin(struct hearing *h);
struct said hearing_end(struct hearing *h);

/* It ended so, and printed these texts alone. NULL: any text. */
void said_is(const struct said *s, int status, const char *out, const char *err);
/* A refusal of one line, "xpusim: error: " before it, with nothing printed. */
void said_refused(const struct said *s, const char *why);

/* A text with blanks once, and none at the ends of lines; as people see a document. Owned. */
char *squeezed(const char *text);
struct document;
char *shown_text(const struct document *d, const char *form);

/* A folder of the test's own, which is the working folder until it is left and removed. */
void folder_enter(void);
const char *folder_path(void);
void folder_leave(void);
void folder_put(const char *name, const char *text);
char *folder_text(const char *name); /* owned */
