#include <cjson/cJSON.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include "sim/base/arena.h"
#include "sim/base/hash.h"
#include "sim/base/input.h"
#include "sim/base/units.h"
#include "traces/import.h"

static double number(const cJSON *o, const char *key, double min, double max, const char *path,
                     unsigned long long line, struct err *e)
{
    const cJSON *c = cJSON_GetObjectItemCaseSensitive(o, key);
    if (!cJSON_IsNumber(c) || !(c->valuedouble >= min && c->valuedouble <= max)) {
        err_add(e, "%s:%llu: %s: must be a number from %g to %g", path, line, key, min, max);
        return min;
    }
    return c->valuedouble;
}

static uint64_t tokens(const cJSON *o, const char *key, double min, const char *path,
                       unsigned long long line, struct err *e)
{
    double v = number(o, key, min, IMPORT_MAX_TOKENS, path, line, e);
    if (v != floor(v)) {
        err_add(e, "%s:%llu: %s: must be a whole number", path, line, key);
    }
    return (uint64_t)v;
}

/* ---- blocks that came before ---- */

#define BLOCK_TOKENS 512 /* of a hash (the trace's description) */

struct hashes {
    double *v; /* owned; open addressing, a power of two; NAN: free */
    size_t n, cap;
};

/* True when the hash is new. */
static bool hashes_add(struct hashes *h, double id)
{
    if (2 * h->n >= h->cap) {
        struct hashes bigger = {NULL, 0, h->cap == 0 ? 1024 : 2 * h->cap};
        bigger.v = xmalloc(bigger.cap * sizeof *bigger.v);
        for (size_t i = 0; i < bigger.cap; i++) {
            bigger.v[i] = (double)NAN;
        }
        for (size_t i = 0; i < h->cap; i++) {
            (void)(!isnan(h->v[i]) && hashes_add(&bigger, h->v[i]));
        }
        free(h->v);
        *h = bigger;
    }
    uint64_t bits;
    memcpy(&bits, &id, sizeof bits);
    size_t i = hash_u64(HASH_INIT, bits) & (h->cap - 1);
    while (!isnan(h->v[i]) && h->v[i] != id) {
        i = (i + 1) & (h->cap - 1);
    }
    bool is_new = isnan(h->v[i]);
    h->v[i] = id;
    h->n += is_new;
    return is_new;
}

/* Tokens of the leading blocks that an earlier request had. */
static uint64_t known_prefix(struct hashes *h, const cJSON *ids, uint64_t input_tokens)
{
    uint64_t known = 0;
    bool leading = true;
    const cJSON *id;
    cJSON_ArrayForEach(id, ids)
    {
        bool is_new = !cJSON_IsNumber(id) || hashes_add(h, id->valuedouble);
        leading = leading && !is_new;
        known += leading ? BLOCK_TOKENS : 0;
    }
    return known < input_tokens ? known : input_tokens;
}

static void line_read(struct import *im, struct hashes *seen, const char *text, size_t n,
                      const char *path, unsigned long long line, struct err *e)
{
    cJSON *o = memchr(text, '\0', n) == NULL ? cJSON_ParseWithOpts(text, NULL, true) : NULL;
    if (!cJSON_IsObject(o)) {
        err_add(e, "%s:%llu: must be one JSON object", path, line);
        cJSON_Delete(o);
        return;
    }
    double t_ms = number(o, "timestamp", 0.0, IMPORT_MAX_S * 1e3, path, line, e);
    uint64_t input = tokens(o, "input_length", 1.0, path, line, e);
    uint64_t output = tokens(o, "output_length", 0.0, path, line, e);
    uint64_t known = known_prefix(seen, cJSON_GetObjectItemCaseSensitive(o, "hash_ids"), input);
    im->lost.prefix_tokens += output > 0 ? known : 0;
    import_add(im, units_ns_from_ms(t_ms), input, output, REQUEST_CLASS_REACTIVE);
    cJSON_Delete(o);
}

void import_mooncake(struct import *im, const char *path, struct err *e)
{
    FILE *in = input_open(path, e);
    if (in == NULL) {
        return;
    }
    struct input_line l = {0};
    struct hashes seen = {0};
    while (e->n < ERR_MAX_LINES && input_next(in, path, &l, e) == 1) {
        if (l.text[strspn(l.text, " \t\r\n")] != '\0') {
            line_read(im, &seen, l.text, l.n, path, l.number, e);
        }
    }
    free(l.text);
    free(seen.v);
    (void)fclose(in);
}
