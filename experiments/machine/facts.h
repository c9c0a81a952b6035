/* Facts of this machine that need no root, for an archive that others will read: the hardware,
 * its firmware and drivers, and its power limits. Every fact is named in a table; nothing else is
 * read, so no serial number, address, user or host name is in it. Words of the machine's free texts
 * that are its host name, or its user's, are replaced. */
#pragma once

#include <cjson/cJSON.h>

#include "experiments/shell/document.h"

/* The environment's XPUSIM_ROOT comes before each path that is read: another machine's files, in
 * tests. */
struct fact {
    char name[48];
    char *text; /* owned */
    bool number;
};

struct facts {
    struct fact *v; /* owned */
    size_t n;
    char *words[4]; /* owned: the names that must not be in any text; NULL: none */
};

/* Reads those of the machine, and of every device that OpenVINO finds: none without the engine. */
void facts_read(struct facts *f);
/* "" where it is not known. */
const char *facts_text(const struct facts *f, const char *name);
/* A table "facts". */
void facts_document(const struct facts *f, struct document *d);
/* As one object, owned by the caller. */
cJSON *facts_json(const struct facts *f);
/* Replaces this user's folder and, on lines that begin with '#', host and user names: in a file
 * that another command wrote. A new text, which the caller frees. */
char *facts_scrub(const struct facts *f, const char *text);
