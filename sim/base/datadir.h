/* The folder of the data files. In order of preference:
 *   $XPUSIM_DATA_DIR, if set
 *   the source tree that holds the executable, or share/xpusim of its prefix
 *   the folder that was given at build time (XPUSIM_DATADIR) */
#pragma once

#include "sim/base/base.h"

/* Full path of a data file ("hwmodels/soc/x.json"), which need not exist. Never freed: each path is
 * stored once until the process ends (xkeep). */
const char *datadir_path(const char *relative);

/* Path of a generated data file: next to the executable if it exists there, else as datadir_path.
 * Never freed. */
const char *datadir_built(const char *name);

/* datadir_named returns the path of a shipped file for its name ("hwmodels/soc", ".json"), and a
 * user's path unchanged. A name is a path if it has a slash or an extension of letters. Never
 * freed. */
bool datadir_is_path(const char *name);
const char *datadir_named(const char *name, const char *folder, const char *ending);

/* Resolves a file name that occurs in the user's file `of`: next to `of` if it exists there, else
 * the name itself. Never freed. */
const char *datadir_next_to(const char *of, const char *name);

/* 0, or -EINVAL with an error that names the folder without data. */
int datadir_check(struct err *e);
/* Finds a program by its path or through PATH. NULL if PATH has none. The caller frees it. */
char *program_find(const char *name);
