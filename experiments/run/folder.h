/* The data files of a folder. */
#pragma once

#include "sim/base/base.h"

/* Calls `see` for every .json and .csv file, in the order of names, with its path and its name
 * without the ending. Returns 0, or -EINVAL with an error from the folder or from `see`. */
int folder_each(const char *folder,
                void (*see)(void *ctx, const char *path, const char *name, struct err *e),
                void *ctx, struct err *e);
