#include "tests/helpers/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "sim/base/arena.h"

uint32_t fuzz_rounds(void)
{
    const char *text = getenv("FUZZ_ROUNDS");
    return text == NULL ? 500 : (uint32_t)strtoul(text, NULL, 10);
}

uint64_t fuzz_first(void)
{
    const char *text = getenv("XPUSIM_FIRST");
    return text == NULL ? 0 : strtoull(text, NULL, 10);
}

#define PIECES 30
static const char *const pieces[PIECES] = {
    "nan", "inf",   "-1",   "1e308", "1e-320", "99999999999999999999",
    "\"",  "\"\"",  ",",    "\n",    "\r\n",   "{",
    "}",   "[",     "]",    ":",     "null",   "true",
    "\\",  "#",     "\xff", "0x1",   "",       "-",
    "=",   "value", "\t",   "e",     ".",      "1"};

char *fuzz_mutate(struct rng *r, const char *text, size_t n, size_t *out_n)
{
    char *out = xmalloc(2 * n + 512);
    memcpy(out, text, n);
    uint32_t edits = 1 + rng_below(r, 4);
    for (uint32_t i = 0; i < edits && n > 0; i++) {
        size_t at = rng_below(r, (uint32_t)n);
        size_t len = rng_below(r, 12);
        len = at + len > n ? n - at : len;
        switch (rng_below(r, 4)) {
        case 0: {
            const char *piece = pieces[rng_below(r, PIECES)];
            size_t m = strlen(piece);
            memmove(out + at + m, out + at + len, n - at - len);
            memcpy(out + at, piece, m);
            n = n - len + m;
            break;
        }
        case 1:
            memmove(out + at, out + at + len, n - at - len);
            n -= len;
            break;
        case 2:
            memmove(out + at + len, out + at, n - at);
            n += len;
            break;
        default:
            out[at] = (char)rng_below(r, 256);
        }
    }
    if (rng_below(r, 20) == 0) {
        n = n > 0 ? rng_below(r, (uint32_t)n) : 0; /* cut short */
    }
    *out_n = n;
    return out;
}
