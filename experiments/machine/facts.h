/* Facts of this machine that can be read without root, for an archive to share: hardware, firmware,
 * drivers and power limits. Only the facts of a table are read, so there are no serial numbers,
 * addresses, user or host names. The host's and user's names are replaced in free texts. */
#pragma once

#include <cjson/cJSON.h>

#include "experiments/shell/document.h"

/* The environment variable XPUSIM_ROOT is a prefix of all paths that are read, so tests can use the
 * files of another machine. */
struct fact {
    char name[48];
    char *text; /* owned */
    bool number;
};

struct facts {
    struct fact *v; /* owned */
    size_t n;
    char *words[4]; /* owned: names to replace in all texts; NULL: none */
};

/* Reads the facts of the machine, and of every device of OpenVINO if the engine is available. */
void facts_read(struct facts *f);
/* The text of a fact; "": unknown. */
const char *facts_text(const struct facts *f, const char *name);
/* Adds a table "facts". */
void facts_document(const struct facts *f, struct document *d);
/* The facts as one object, owned by the caller. */
cJSON *facts_json(const struct facts *f);
/* Replaces this user's folder and, on lines that begin with '#', host and user names, in a file of
 * another command. Returns a new text, which the caller frees. */
char *facts_scrub(const struct facts *f, const char *text);
