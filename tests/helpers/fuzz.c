#include "tests/helpers/fuzz.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/base/arena.h"
#include "sim/base/datadir.h"

char fuzz_path[64];

uint32_t fuzz_rounds(void)
{
    const char *text = getenv("FUZZ_ROUNDS");
    return text == NULL ? 1500 : (uint32_t)strtoul(text, NULL, 10);
}

static char *slurp(const char *file, size_t *n)
{
    FILE *f = fopen(file, "rb");
    ck_assert_msg(f != NULL, "%s", file);
    char *text = xmalloc(1 << 20);
    *n = fread(text, 1, (1 << 20) - 1, f);
    fclose(f);
    return text;
}

const char *const fuzz_pieces[FUZZ_PIECES] = {
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
            const char *piece = fuzz_pieces[rng_below(r, FUZZ_PIECES)];
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

static void write_file(const char *text, size_t n)
{
    FILE *f = fopen(fuzz_path, "wb");
    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(fwrite(text, 1, n, f), n);
    fclose(f);
}

void fuzz(const char *text, size_t n, fuzz_parser *p, uint64_t seed)
{
    struct rng r;
    rng_init(&r, seed);
    (void)snprintf(fuzz_path, sizeof fuzz_path, "fuzz-%ld.tmp", (long)getpid());
    uint32_t refused = 0;
    for (uint32_t i = 0; i < fuzz_rounds(); i++) {
        size_t m;
        char *bad = fuzz_mutate(&r, text, n, &m);
        write_file(bad, m);
        struct err e = ERR_INIT;
        int rc = p(&e);
        ck_assert_msg((rc == 0) == (e.n == 0), "round %u: result %d with %zu messages", i, rc, e.n);
        refused += rc != 0;
        err_fini(&e);
        free(bad);
    }
    (void)remove(fuzz_path);
    ck_assert_uint_gt(refused, fuzz_rounds() / 20); /* the damage did reach the parser */
}

void fuzz_shipped(const char *relative, fuzz_parser *p, uint64_t seed, size_t most)
{
    char file[4096];
    size_t n;
    char *text = slurp(datadir_path(file, sizeof file, relative), &n);
    fuzz(text, n < most ? n : most, p, seed);
    free(text);
}
