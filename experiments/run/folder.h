/* The data files of a folder. */
#pragma once

#include "sim/base/base.h"

/* Calls see for every .json and .csv file, in the order of their names: with its path, and its name
 * without that ending. 0 or -EINVAL with an error, of the folder or added by see. */
int folder_each(const char *folder,
                void (*see)(void *ctx, const char *path, const char *name, struct err *e),
                void *ctx, struct err *e);
