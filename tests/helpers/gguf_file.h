/* GGUF files, written here by the rules of their format. */
#pragma once

#include <check.h>
#include <stdio.h>

#include "hwmodels/llm_gguf.h"
#include "hwmodels/soc.h"
#include "sim/base/json.h"
#include "tests/helpers/tempfile.h"

enum { U8 = 0, U32 = 4, F32 = 6, BOOL = 7, STRING = 8, ARRAY = 9, U64 = 10 };    /* values */
enum { T_F32 = 0, T_F16 = 1, T_Q4_0 = 2, T_Q8_0 = 8, T_Q4_K = 12, T_Q6_K = 14 }; /* tensors */

static struct text keys, tensors, whole;
static uint64_t n_keys, n_tensors;
static struct err err;

static inline void number(struct text *t, uint64_t v, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        text_char(t, (char)(v >> (8 * i) & 0xff));
    }
}

static inline void string(struct text *t, const char *s)
{
    number(t, strlen(s), 8);
    text_string(t, s);
}

static inline void head_of_key(const char *name, uint32_t kind)
{
    n_keys++;
    string(&keys, name);
    number(&keys, kind, 4);
}

static inline void key_u32(const char *name, uint32_t v)
{
    head_of_key(name, U32);
    number(&keys, v, 4);
}

static inline void key_text(const char *name, const char *v)
{
    head_of_key(name, STRING);
    string(&keys, v);
}

static inline void key_list(const char *name, const uint32_t *v, size_t n)
{
    head_of_key(name, ARRAY);
    number(&keys, U32, 4);
    number(&keys, n, 8);
    for (size_t i = 0; i < n; i++) {
        number(&keys, v[i], 4);
    }
}

static inline void tensor(const char *name, uint32_t type, uint64_t in, uint64_t out,
                          uint64_t experts)
{
    uint32_t dims = experts > 1 ? 3 : out > 1 ? 2 : 1;
    const uint64_t dim[] = {in, out, experts};
    n_tensors++;
    string(&tensors, name);
    number(&tensors, dims, 4);
    for (uint32_t i = 0; i < dims; i++) {
        number(&tensors, dim[i], 8);
    }
    number(&tensors, type, 4);
    number(&tensors, 0, 8);
}

static inline void layer(uint32_t no, const char *name, uint32_t type, uint64_t in, uint64_t out)
{
    OWNED char *full = xformat("blk.%u.%s.weight", no, name);
    tensor(full, type, in, out, 1);
}

static inline void experts(uint32_t no, const char *name, uint32_t type, uint64_t in, uint64_t out)
{
    OWNED char *full = xformat("blk.%u.%s.weight", no, name);
    tensor(full, type, in, out, 8);
}

/* The file's bytes, its magic and version first. */
static inline void finish(uint32_t version)
{
    whole.n = 0;
    text_string(&whole, "GGUF");
    number(&whole, version, 4);
    number(&whole, n_tensors, 8);
    number(&whole, n_keys, 8);
    text_add(&whole, keys.p, keys.n);
    text_add(&whole, tensors.p, tensors.n);
    keys.n = tensors.n = 0;
    n_keys = n_tensors = 0;
}

static inline void put(const char *path, size_t n)
{
    FILE *f = fopen(path, "wb");
    ck_assert(f != NULL && fwrite(whole.p, 1, n, f) == n && fclose(f) == 0);
}

static inline void once(void)
{
    err = (struct err)ERR_INIT;
}

static inline void undo(void)
{
    tempfile_remove();
    text_fini(&keys);
    text_fini(&tensors);
    text_fini(&whole);
    err_fini(&err);
    n_keys = n_tensors = 0;
}

static inline struct llm model_at(const char *path)
{
    struct llm m = {0};
    SCOPED(json_drop) cJSON *tree = llm_gguf_tree(path, "mine", &err);
    ck_assert_msg(tree != NULL && llm_parse(tree, "tree", &m, &err) == 0, "%s",
                  err.n > 0 ? err.lines[0] : "");
    return m;
}

static inline struct llm model(void)
{
    const char *path = tempfile_make(".gguf");
    finish(3);
    put(path, whole.n);
    return model_at(path);
}

static inline void begin(const char *arch, uint32_t heads, uint32_t kv)
{
    key_text("general.architecture", arch);
    key_text("general.name", "Test");
    OWNED char *a = xformat("%s.attention.head_count", arch);
    OWNED char *b = xformat("%s.attention.head_count_kv", arch);
    OWNED char *c = xformat("%s.context_length", arch);
    key_u32(a, heads);
    if (kv > 0) {
        key_u32(b, kv);
    }
    key_u32(c, 4096);
}

/* Attention and FFN of a layer 256 wide with four heads of 64. */
static inline void layer_of(uint32_t no, uint32_t type, uint32_t kv, uint32_t ffn)
{
    layer(no, "attn_norm", T_F32, 256, 1);
    layer(no, "attn_q", type, 256, 256);
    layer(no, "attn_k", type, 256, kv);
    layer(no, "attn_v", type, 256, kv);
    layer(no, "attn_output", type, 256, 256);
    layer(no, "ffn_gate", type, 256, ffn);
    layer(no, "ffn_up", type, 256, ffn);
    layer(no, "ffn_down", T_Q6_K, ffn, 256);
}

/* Two of its heads have keys and values. */
static inline void plain_layer(uint32_t no, uint32_t type)
{
    layer_of(no, type, 128, 512);
}
