/* Strict numbers on the command line, and exit statuses. */
#pragma once

#include "sim/base/base.h"

/* For every command. */
#define EXIT_OK 0
#define EXIT_CHECK_FAILED 1 /* a run ended with an error, or a check failed */
#define EXIT_BAD_INPUT 2    /* malformed file, option or usage */
#define EXIT_SIGNAL 128 /* plus the signal's number: ended by it; partial results are written \ */
/* EXIT_NO_MEMORY 3: sim/base/arena.h */

/* A finite number in [min, max] that fills the whole text. 0 or -EINVAL with an error that names
 * the option and the range. */
int cli_number(const char *option, const char *text, double min, double max, double *out,
               struct err *e);
/* Like cli_number, for a whole number of digits only. */
int cli_count(const char *option, const char *text, uint32_t min, uint32_t max, uint32_t *out,
              struct err *e);
/* A whole number up to RNG_SEED_MAX, digits only. */
int cli_seed(const char *option, const char *text, uint64_t *out, struct err *e);
/* "0.5,0.9,1.3": at most max_n numbers into out; *n receives how many. */
int cli_number_list(const char *option, const char *text, double min, double max, double *out,
                    uint32_t max_n, uint32_t *n, struct err *e);
/* Quotes a word for a shell: unchanged if `plainly` and it needs no quotes, else in single quotes.
 * buf has room for 4 * strlen(text) + 3 bytes. Returns buf. */
const char *cli_word(const char *text, bool plainly, char *buf);
