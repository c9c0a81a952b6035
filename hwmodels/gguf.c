#include "hwmodels/gguf.h"

#include <string.h>

#include "sim/base/input.h"
#include "sim/base/json.h"

#define MAX_KEYS 100000u
#define MAX_TENSORS 1000000u
#define MAX_TEXT 65536u /* longer ones are skipped */
#define MAX_LIST 4096u  /* longer ones are skipped */
#define MAX_SKIP (UINT64_C(1) << 32)
#define MAX_PARTS 1000u
#define MAX_DIM (UINT64_C(1) << 40)

/* Types of weights by number: weights of a block, its bytes, bits of a weight without scales
 * (ggml-org/ggml, include/ggml.h and src/ggml-common.h). */
static const struct {
    uint32_t type, weights, bytes, bits;
} types[] = {
    {0, 1, 4, 32},     {1, 1, 2, 16},     {2, 32, 18, 4},    {3, 32, 20, 4},    {6, 32, 22, 5},
    {7, 32, 24, 5},    {8, 32, 34, 8},    {9, 32, 40, 8},    {10, 256, 84, 2},  {11, 256, 110, 3},
    {12, 256, 144, 4}, {13, 256, 176, 5}, {14, 256, 210, 6}, {15, 256, 292, 8}, {16, 256, 66, 2},
    {17, 256, 74, 2},  {18, 256, 98, 3},  {19, 256, 50, 1},  {20, 32, 18, 4},   {21, 256, 110, 3},
    {22, 256, 82, 2},  {23, 256, 136, 4}, {24, 1, 1, 8},     {25, 1, 2, 16},    {26, 1, 4, 32},
    {27, 1, 8, 32},    {28, 1, 8, 32},    {29, 256, 56, 1},  {30, 1, 2, 16},    {34, 256, 54, 1},
    {35, 256, 66, 2},  {39, 32, 17, 4},   {40, 64, 36, 4},   {41, 128, 18, 1},
};

struct stream {
    FILE *f;
    const char *path;
    struct err *e;
    bool failed;
};

static void fail(struct stream *s, const char *what)
{
    if (!s->failed) {
        (void)err_add(s->e, "%s: %s", s->path, what);
    }
    s->failed = true;
}

static void take(struct stream *s, void *to, size_t n)
{
    if (!s->failed && fread(to, 1, n, s->f) != n) {
        fail(s, "ends before its list of tensors does");
    }
    if (s->failed) {
        memset(to, 0, n);
    }
}

static void skip(struct stream *s, uint64_t n)
{
    char rest[4096];
    if (n > MAX_SKIP) {
        fail(s, "has a value of over 4 GiB: no GGUF file, or a damaged one");
    }
    while (!s->failed && n > 0) {
        size_t some = n < sizeof rest ? (size_t)n : sizeof rest;
        take(s, rest, some);
        n -= some;
    }
}

/* Files are little-endian. */
static uint64_t whole(struct stream *s, size_t bytes)
{
    unsigned char b[8];
    uint64_t v = 0;
    take(s, b, bytes);
    for (size_t i = 0; i < bytes; i++) {
        v |= (uint64_t)b[i] << (8 * i);
    }
    return v;
}

/* Reads a text of at most `most` bytes; "" for a longer one. The caller frees it. */
static char *text_of(struct stream *s, uint64_t most)
{
    uint64_t n = whole(s, 8);
    if (n > most) {
        skip(s, n);
        return xstrdup("");
    }
    char *text = xmalloc((size_t)n + 1);
    take(s, text, (size_t)n);
    text[n] = '\0';
    return text;
}

enum { U8, I8, U16, I16, U32, I32, F32, BOOL, STRING, ARRAY, U64, I64, F64, KINDS };

static double number_from(struct stream *s, uint32_t kind)
{
    static const size_t size[KINDS] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
    uint64_t bits = whole(s, size[kind]);
    float single;
    double twice;
    uint32_t low = (uint32_t)bits;
    memcpy(&single, &low, sizeof single);
    memcpy(&twice, &bits, sizeof twice);
    switch (kind) {
    case I8:
        return (int8_t)bits;
    case I16:
        return (int16_t)bits;
    case I32:
        return (int32_t)bits;
    case I64:
        return (double)(int64_t)bits;
    case F32:
        return (double)single;
    case F64:
        return twice;
    default:
        return (double)bits;
    }
}

static cJSON *list_of(struct stream *s)
{
    uint32_t kind = (uint32_t)whole(s, 4);
    uint64_t n = whole(s, 8);
    cJSON *list = cJSON_CreateArray();
    if (kind >= KINDS || kind == ARRAY) {
        fail(s, "has a list of a kind that no GGUF file has");
    }
    for (uint64_t i = 0; i < n && !s->failed; i++) {
        if (kind == STRING) {
            skip(s, whole(s, 8));
        } else {
            double v = number_from(s, kind);
            if (n <= MAX_LIST) {
                cJSON_AddItemToArray(list, cJSON_CreateNumber(v));
            }
        }
    }
    return list;
}

static void take_key(struct stream *s, cJSON *keys)
{
    OWNED char *name = text_of(s, MAX_TEXT);
    uint32_t kind = (uint32_t)whole(s, 4);
    cJSON *value = NULL;
    if (kind >= KINDS) {
        fail(s, "has a value of a kind that no GGUF file has");
    } else if (kind == STRING) {
        OWNED char *text = text_of(s, MAX_TEXT);
        value = cJSON_CreateString(text);
    } else {
        value = kind == ARRAY ? list_of(s) : cJSON_CreateNumber(number_from(s, kind));
    }
    if (s->failed || json_member(keys, name) != NULL) { /* a split model repeats some */
        cJSON_Delete(value);
    } else {
        (void)cJSON_AddItemToObject(keys, name, value);
    }
}

static void take_tensor(struct stream *s, struct gguf *g)
{
    OWNED char *name = text_of(s, GGUF_NAME_BYTES - 1);
    struct gguf_tensor t = {.dim = {1, 1, 1, 1}, .weights = 1.0};
    (void)snprintf(t.name, sizeof t.name, "%s", name);
    uint32_t dims = (uint32_t)whole(s, 4);
    if (name[0] == '\0' || dims > GGUF_MAX_DIMS) {
        fail(s, "has a tensor of no name or of over four dimensions: damaged");
    }
    for (uint32_t i = 0; i < dims && !s->failed; i++) {
        t.dim[i] = whole(s, 8);
        t.weights *= (double)t.dim[i];
        if (t.dim[i] == 0 || t.dim[i] > MAX_DIM) {
            fail(s, "has a tensor without elements or beyond all memory: damaged");
        }
    }
    uint32_t type = (uint32_t)whole(s, 4);
    (void)whole(s, 8); /* offset of its weights */
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        if (types[i].type == type) {
            t.bytes = t.weights * types[i].bytes / types[i].weights;
            t.bits = types[i].bits;
        }
    }
    if (t.bits == 0 && !s->failed) {
        (void)err_add(s->e, "%s: tensor %s: type %u of weights is not known", s->path, t.name,
                      type);
        s->failed = true;
    }
    if (!s->failed) {
        LIST_ADD(g->tensors, g->n, t);
    }
}

static int read_part(const char *path, struct gguf *g, struct err *e)
{
    SCOPED(input_drop) FILE *f = input_open(path, e);
    if (f == NULL) {
        return -EINVAL;
    }
    struct stream s = {f, path, e, false};
    char magic[4];
    if (fread(magic, 1, sizeof magic, f) != sizeof magic || memcmp(magic, "GGUF", 4) != 0) {
        fail(&s, "is no GGUF file");
    }
    uint64_t version = whole(&s, 4);
    uint64_t tensors = whole(&s, 8);
    uint64_t keys = whole(&s, 8);
    if (version != 2 && version != 3) {
        fail(&s, "is a GGUF file of another version than 2 or 3, or of a big-endian machine");
    } else if (tensors > MAX_TENSORS || keys > MAX_KEYS) {
        fail(&s, "has more keys or tensors than any model: damaged");
    }
    for (uint64_t i = 0; i < keys && !s.failed; i++) {
        take_key(&s, g->keys);
    }
    for (uint64_t i = 0; i < tensors && !s.failed; i++) {
        take_tensor(&s, g);
    }
    return s.failed ? -EINVAL : 0;
}

/* The path of part `no`, from 1, of "dir/m-00001-of-00003.gguf"; NULL: another kind of name. */
static char *part_path(const char *path, uint32_t no)
{
    size_t n = strlen(path);
    size_t tail = strlen("-00001-of-00003.gguf");
    if (n < tail || strncmp(path + n - tail, "-00001-of-", 10) != 0) {
        return NULL;
    }
    return xformat("%.*s-%05u%s", (int)(n - tail), path, no, path + n - tail + 6);
}

static int by_name(const void *a, const void *b)
{
    const struct gguf_tensor *x = a, *y = b;
    return strcmp(x->name, y->name);
}

int gguf_read(const char *path, struct gguf *out, struct err *e)
{
    *out = (struct gguf){.keys = cJSON_CreateObject()};
    int rc = read_part(path, out, e);
    const cJSON *count = json_member(out->keys, "split.count");
    double parts = cJSON_IsNumber(count) ? count->valuedouble : 1.0;
    for (uint32_t i = 2; rc == 0 && i <= parts; i++) {
        OWNED char *next = i > MAX_PARTS ? NULL : part_path(path, i);
        rc = next == NULL ? err_add(e, "%s: is not the first of %g parts by its name", path, parts)
                          : read_part(next, out, e);
    }
    if (out->n > 0) {
        qsort(out->tensors, out->n, sizeof out->tensors[0], by_name);
    }
    for (size_t i = 1; rc == 0 && i < out->n; i++) {
        if (by_name(&out->tensors[i - 1], &out->tensors[i]) == 0) {
            rc = err_add(e, "%s: has two tensors %s", path, out->tensors[i].name);
        }
    }
    return rc;
}

void gguf_fini(struct gguf *g)
{
    cJSON_Delete(g->keys);
    free(g->tensors);
    *g = (struct gguf){0};
}

bool gguf_is(const char *path)
{
    SCOPED(input_drop) FILE *f = input_try(path);
    char magic[4] = "";
    return f != NULL && fread(magic, 1, sizeof magic, f) == sizeof magic &&
           memcmp(magic, "GGUF", 4) == 0;
}
