/* Members of the structs of sim/api as rows of a table: name, type, offset.
 *
 * Below a struct whose members are logged or sent to another process, sim/api lists them:
 * PREEMPT_SPEC_FIELDS(X), for example. FIELD() makes a row of a listed member; its type is taken
 * from the declaration. Two lines make a table:
 *
 *   #define X(member) FIELD(device, member, #member, NULL)
 *   static const struct field device_fields[] = {DEVICE_FIELDS(X, W)}; */
#pragma once

#include "sim/base/base.h"

struct pass;

enum field_type {
    FIELD_U8,
    FIELD_U32, /* and enums */
    FIELD_U64,
    FIELD_I32,
    FIELD_NS, /* int64_t: an instant or a duration; TIME_NEVER_NS: none */
    FIELD_NUMBER,
    FIELD_FLAG,
    FIELD_TEXT, /* char[] */
    FIELD_PASS  /* const struct pass * */
};

struct field {
    const char *name;
    enum field_type type;
    size_t offset;
    const char *const *words; /* names of an enum's values, in order; NULL: not an enum */
};

#define FIELD_TYPE(value)                                                                          \
    _Generic((value),                                                                              \
        bool: FIELD_FLAG,                                                                          \
        uint8_t: FIELD_U8,                                                                         \
        uint32_t: FIELD_U32,                                                                       \
        uint64_t: FIELD_U64,                                                                       \
        int32_t: FIELD_I32,                                                                        \
        int64_t: FIELD_NS,                                                                         \
        double: FIELD_NUMBER,                                                                      \
        char *: FIELD_TEXT,                                                                        \
        const struct pass *: FIELD_PASS)
#define FIELD(S, member, name_, words_)                                                            \
    {                                                                                              \
        .name = (name_), .type = FIELD_TYPE(((struct S *)NULL)->member),                           \
        .offset = offsetof(struct S, member), .words = (words_)                                    \
    }

/* The value of an integer or boolean member. */
static inline uint64_t field_u64(const void *of, const struct field *f)
{
    const char *at = (const char *)of + f->offset;
    switch (f->type) {
    case FIELD_U8:
        return *(const uint8_t *)at;
    case FIELD_FLAG:
        return *(const bool *)at;
    case FIELD_U32:
        return *(const uint32_t *)(const void *)at;
    case FIELD_I32:
        return (uint64_t)(int64_t) * (const int32_t *)(const void *)at;
    case FIELD_NS:
        return (uint64_t) * (const int64_t *)(const void *)at;
    case FIELD_PASS:
        return (uintptr_t) * (const struct pass *const *)(const void *)at;
    default:
        return *(const uint64_t *)(const void *)at;
    }
}

static inline double field_number(const void *of, const struct field *f)
{
    return *(const double *)(const void *)((const char *)of + f->offset);
}

/* Sets a U8, U32, U64 or boolean member. The value must fit. */
static inline void field_set(void *of, const struct field *f, uint64_t v)
{
    char *at = (char *)of + f->offset;
    switch (f->type) {
    case FIELD_U8:
        *(uint8_t *)at = (uint8_t)v;
        break;
    case FIELD_FLAG:
        *(bool *)at = v != 0;
        break;
    case FIELD_U32:
        *(uint32_t *)(void *)at = (uint32_t)v;
        break;
    default:
        *(uint64_t *)(void *)at = v;
    }
}

static inline void field_set_number(void *of, const struct field *f, double v)
{
    *(double *)(void *)((char *)of + f->offset) = v;
}
