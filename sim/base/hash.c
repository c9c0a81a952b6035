#include "sim/base/hash.h"

#include "sim/base/input.h"

#define PRIME 0x100000001b3ULL

static uint64_t hash_bytes(uint64_t h, const void *data, size_t n)
{
    const unsigned char *p = data;
    for (size_t i = 0; i < n; i++) {
        h = (h ^ p[i]) * PRIME;
    }
    return h;
}

uint64_t hash_string(uint64_t h, const char *s)
{
    return hash_bytes(h, s, strlen(s) + 1);
}

/* The high bytes of small numbers are 0, and each of these only multiplies by PRIME. */
uint64_t hash_u64(uint64_t h, uint64_t x)
{
    static const uint64_t zeros[9] = {1ULL,
                                      PRIME,
                                      PRIME * PRIME,
                                      PRIME * PRIME * PRIME,
                                      PRIME * PRIME * PRIME * PRIME,
                                      PRIME * PRIME * PRIME * PRIME * PRIME,
                                      PRIME * PRIME * PRIME * PRIME * PRIME * PRIME,
                                      PRIME * PRIME * PRIME * PRIME * PRIME * PRIME * PRIME,
                                      PRIME * PRIME * PRIME * PRIME * PRIME * PRIME * PRIME *
                                          PRIME};
    int n = 8;
    for (; x != 0; x >>= 8) {
        h = (h ^ (x & 0xff)) * PRIME;
        n--;
    }
    return h * zeros[n];
}

/* Each step of hash_u64 changes the low byte of the hash, and then multiplies the whole hash. So
 * the first low byte decides all later ones, and the bits above it only get a constant factor. */
void hash_tail_init(struct hash_tail *t, const uint64_t *x, size_t n)
{
    t->factor = 1;
    for (size_t i = 0; i < 8 * n; i++) {
        t->factor *= PRIME;
    }
    for (uint64_t low = 0; low < 256; low++) {
        uint64_t h = low;
        for (size_t i = 0; i < n; i++) {
            h = hash_u64(h, x[i]);
        }
        t->add[low] = h - low * t->factor;
    }
}

uint64_t hash_file(const char *path)
{
    SCOPED(input_drop) FILE *f = input_try(path);
    if (f == NULL) {
        return 0;
    }
    uint64_t h = HASH_INIT;
    char bytes[4096];
    for (size_t n = 1; n > 0;) {
        n = fread(bytes, 1, sizeof bytes, f);
        h = hash_bytes(h, bytes, n);
    }
    return ferror(f) ? 0 : h;
}
