/* FNV-1a over bytes, finished by a 64-bit mixer: fingerprints of configuration and traces.
 * Not cryptographic; equal bytes give equal hashes on every machine. */
#pragma once

#include "sim/base/base.h"

#define HASH_INIT 0xcbf29ce484222325ULL
uint64_t hash_string(uint64_t h, const char *s); /* includes the terminating NUL */
uint64_t hash_u64(uint64_t h, uint64_t x);       /* independent of byte order */
uint64_t hash_file(const char *path);            /* of the contents; 0: cannot be read */

/* The bit pattern of a number, to hash or compare. */
static inline uint64_t hash_bits(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* Precomputed effect of hash_u64 of a fixed sequence of numbers on any hash: one multiplication,
 * and a table indexed by the hash's low byte. */
struct hash_tail {
    uint64_t factor;
    uint64_t add[256]; /* indexed by the low byte */
};
void hash_tail_init(struct hash_tail *t, const uint64_t *x, size_t n);
static inline uint64_t hash_tail(const struct hash_tail *t, uint64_t h)
{
    return h * t->factor + t->add[h & 0xff];
}
