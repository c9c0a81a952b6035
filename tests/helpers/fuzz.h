/* Damaged inputs for parsers. Mutations are drawn from fixed seeds, so a failure repeats;
 * FUZZ_ROUNDS raises their number (1,500 by default). */
#ifndef TESTS_FUZZ_H
#define TESTS_FUZZ_H

#include <stdint.h>

#include "sim/base/err.h"
#include "sim/base/rng.h"

uint32_t fuzz_rounds(void);

/* Pieces that parsers trip over. */
#define FUZZ_PIECES 30
extern const char *const fuzz_pieces[FUZZ_PIECES];

/* One to four edits: replace a span by a piece, delete, duplicate, or flip a byte. Owned by the
 * caller, with room for a terminating zero. */
char *fuzz_mutate(struct rng *r, const char *text, size_t n, size_t *out_n);

/* The damaged file: a parser under test reads it. */
extern char fuzz_path[64];
/* 0, or an error with messages. */
typedef int fuzz_parser(struct err *e);

/* fuzz_rounds() damaged versions of the text: the parser must say 0 or leave a message, and refuse
 * at least a twentieth, or the damage did not reach it. */
void fuzz(const char *text, size_t n, fuzz_parser *p, uint64_t seed);
/* Of the first `most` bytes of a shipped file. */
void fuzz_shipped(const char *relative, fuzz_parser *p, uint64_t seed, size_t most);

#endif
