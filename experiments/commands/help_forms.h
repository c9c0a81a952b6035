/* Man pages and completions from the tables of the commands. */
#pragma once

#include <stdio.h>

#include "experiments/shell/options.h"

/* A man page of section 1; c NULL: of xpusim itself, which lists the commands. */
void help_man(const struct command *c, FILE *out);
/* shell: "bash", "zsh" or "fish". */
void help_completion(const char *shell, FILE *out);
