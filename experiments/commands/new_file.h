/* Writes files that are a starting point for the user. They never replace existing ones. */
#pragma once

#include <cjson/cJSON.h>

#include "experiments/shell/options.h"

/* Names of machines and models: letters, digits and . _ - +, at most 63. 0 or -EINVAL. */
int new_file_name_check(const char *command, const char *name, struct err *e);
/* Writes the tree to `output`, or to NAME.json if that is NULL. Returns the path, which the caller
 * frees, or NULL with an error: the file exists, or cannot be written. */
char *new_file_write(const char *output, const char *name, const cJSON *tree, struct err *e);

/* Copies files of the folder `from` of the program's data into `dir`, which is created if missing:
 * all of them or none. names ends with NULL. Returns 0, or -EINVAL with an error: a file exists, or
 * cannot be written. */
int new_folder_copy(const char *dir, const char *from, const char *const *names, struct err *e);

/* The output option, for a struct with a member `output`. */
#define NEW_FILE_OUTPUT(T)                                                                         \
    OPTION_OUTPUT(T, output, "FILE", NULL,                                                         \
                  "where to (default: NAME.json); never over a file that is there")
