/* Where the data files live: $XPUSIM_DATA_DIR, else the source tree the executable was built in,
 * else share/xpusim of the prefix it lies in, else the installed place this build was given. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "sim/base/err.h"

/* Full path of a data file ("hwmodels/soc/x.json") in buf; returns buf. The file need not exist. */
const char *datadir_path(char *buf, size_t size, const char *relative);

/* A shipped file by its name ("hwmodels/soc", ".json"), or a person's by its path: a path has a
 * slash or an ending of letters. Returns buf. */
bool datadir_is_path(const char *name);
const char *datadir_named(char *buf, size_t size, const char *name, const char *folder,
                          const char *ending);

/* 0, or -EINVAL with an error that says where the data was looked for. */
int datadir_check(struct err *e);
