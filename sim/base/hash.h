/* FNV-1a over bytes, finished by a 64-bit mixer: fingerprints of configuration and traces.
 * Not cryptographic; equal bytes give equal hashes on every machine. */
#pragma once

#include "sim/base/base.h"

#define HASH_INIT 0xcbf29ce484222325ULL
uint64_t hash_string(uint64_t h, const char *s); /* includes the terminating NUL */
uint64_t hash_u64(uint64_t h, uint64_t x);       /* byte order independent */
uint64_t hash_file(const char *path);            /* of what it holds; 0: cannot be read */

/* The bits of a number, to be hashed or compared. */
static inline uint64_t hash_bits(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* Effect of hash_u64 of a fixed sequence of numbers on any hash: one multiplication, with a table
 * of the effect of its low byte. */
struct hash_tail {
    uint64_t factor;
    uint64_t add[256]; /* by the low byte */
};
void hash_tail_init(struct hash_tail *t, const uint64_t *x, size_t n);
static inline uint64_t hash_tail(const struct hash_tail *t, uint64_t h)
{
    return h * t->factor + t->add[h & 0xff];
}
