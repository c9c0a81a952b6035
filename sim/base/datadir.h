/* The folder of the data files, the first that exists of:
 *   $XPUSIM_DATA_DIR
 *   the source tree the executable was built in
 *   share/xpusim of the executable's prefix
 *   the installed place this build was given
 */
#pragma once

#include "sim/base/base.h"

/* Full path of a data file ("hwmodels/soc/x.json"), which need not exist. Nobody frees it: a
 * process names few files, again and again, and keeps each path once until it ends; equal ones are
 * one pointer. */
const char *datadir_path(const char *relative);

/* A data file that is built: next to the executable, or else as datadir_path. Kept like those. */
const char *datadir_built(const char *name);

/* datadir_named: path of a shipped file by its name ("hwmodels/soc", ".json"), kept in the same
 * way, or of a user's file by its path. A path has a slash or an ending of letters. */
bool datadir_is_path(const char *name);
const char *datadir_named(const char *name, const char *folder, const char *ending);

/* Path of a user's file that the file `of` names: next to that one if it is there, else the
 * name. Nobody frees it. */
const char *datadir_next_to(const char *of, const char *name);

/* 0, or -EINVAL with an error that says where the data was looked for. */
int datadir_check(struct err *e);
/* A program by its path or through PATH; NULL: there is none. The caller frees it. */
char *program_find(const char *name);
