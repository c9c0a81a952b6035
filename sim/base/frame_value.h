/* A value of a frame or document, made from any C type, and macros that make rows of values. */
#pragma once

#include "sim/base/base.h"

enum frame_value_kind {
    FRAME_VALUE_NUMBER,
    FRAME_VALUE_TEXT,
    FRAME_VALUE_FLAG,
    FRAME_VALUE_NULL,   /* applies, but has no value: null in JSON */
    FRAME_VALUE_ABSENT, /* does not apply: JSON leaves out its key, its cell is blank */
};

struct frame_value {
    enum frame_value_kind kind;
    double number;
    const char *text; /* borrowed; of a number: how it is printed, or NULL */
};

static inline struct frame_value frame_value_number(double x)
{
    enum frame_value_kind kind = isfinite(x) ? FRAME_VALUE_NUMBER : FRAME_VALUE_NULL;
    return (struct frame_value){.kind = kind, .number = x};
}

static inline struct frame_value frame_value_u64(uint64_t x)
{
    return (struct frame_value){.kind = FRAME_VALUE_NUMBER, .number = (double)x};
}

static inline struct frame_value frame_value_i64(int64_t x)
{
    return (struct frame_value){.kind = FRAME_VALUE_NUMBER, .number = (double)x};
}

static inline struct frame_value frame_value_flag(bool x)
{
    return (struct frame_value){.kind = FRAME_VALUE_FLAG, .number = x ? 1.0 : 0.0};
}

static inline struct frame_value frame_value_text(const char *x)
{
    enum frame_value_kind kind = x != NULL ? FRAME_VALUE_TEXT : FRAME_VALUE_NULL;
    return (struct frame_value){.kind = kind, .number = (double)NAN, .text = x};
}

static inline struct frame_value frame_value_same(struct frame_value x)
{
    return x;
}

/* A number that is printed as the caller's text: an interval, a count with its unit. */
static inline struct frame_value frame_shown(double x, const char *text)
{
    struct frame_value v = frame_value_number(x);
    v.text = text;
    return v;
}

#define FRAME_VALUE(x)                                                                             \
    _Generic((x),                                                                                  \
        struct frame_value: frame_value_same,                                                      \
        bool: frame_value_flag,                                                                    \
        char *: frame_value_text,                                                                  \
        const char *: frame_value_text,                                                            \
        uint64_t: frame_value_u64,                                                                 \
        int64_t: frame_value_i64,                                                                  \
        default: frame_value_number)(x)
#define FRAME_NONE ((struct frame_value){.kind = FRAME_VALUE_NULL, .number = (double)NAN})
#define FRAME_ABSENT ((struct frame_value){.kind = FRAME_VALUE_ABSENT, .number = (double)NAN})
/* x if it applies, else absent. x is evaluated in both cases. */
#define FRAME_IF(applies, x) ((applies) ? FRAME_VALUE(x) : FRAME_ABSENT)

/* At most 20 values, at most 10 pairs. */
#define FRAME_COUNT(...)                                                                           \
    FRAME_COUNT_(__VA_ARGS__, 20, 19, 18, 17, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2,  \
                 1, 0)
#define FRAME_COUNT_(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, count, ...) count
#define FRAME_VALUES(...) FRAME_JOIN(FRAME_V, FRAME_COUNT(__VA_ARGS__))(__VA_ARGS__)
#define FRAME_PAIRS(...) FRAME_JOIN(FRAME_P, FRAME_COUNT(__VA_ARGS__))(__VA_ARGS__)
#define FRAME_JOIN(a, b) FRAME_JOIN_(a, b)
#define FRAME_JOIN_(a, b) a##b
#define FRAME_V1(x) FRAME_VALUE(x)
#define FRAME_V2(x, ...) FRAME_VALUE(x), FRAME_V1(__VA_ARGS__)
#define FRAME_V3(x, ...) FRAME_VALUE(x), FRAME_V2(__VA_ARGS__)
#define FRAME_V4(x, ...) FRAME_VALUE(x), FRAME_V3(__VA_ARGS__)
#define FRAME_V5(x, ...) FRAME_VALUE(x), FRAME_V4(__VA_ARGS__)
#define FRAME_V6(x, ...) FRAME_VALUE(x), FRAME_V5(__VA_ARGS__)
#define FRAME_V7(x, ...) FRAME_VALUE(x), FRAME_V6(__VA_ARGS__)
#define FRAME_V8(x, ...) FRAME_VALUE(x), FRAME_V7(__VA_ARGS__)
#define FRAME_V9(x, ...) FRAME_VALUE(x), FRAME_V8(__VA_ARGS__)
#define FRAME_V10(x, ...) FRAME_VALUE(x), FRAME_V9(__VA_ARGS__)
#define FRAME_V11(x, ...) FRAME_VALUE(x), FRAME_V10(__VA_ARGS__)
#define FRAME_V12(x, ...) FRAME_VALUE(x), FRAME_V11(__VA_ARGS__)
#define FRAME_V13(x, ...) FRAME_VALUE(x), FRAME_V12(__VA_ARGS__)
#define FRAME_V14(x, ...) FRAME_VALUE(x), FRAME_V13(__VA_ARGS__)
#define FRAME_V15(x, ...) FRAME_VALUE(x), FRAME_V14(__VA_ARGS__)
#define FRAME_V16(x, ...) FRAME_VALUE(x), FRAME_V15(__VA_ARGS__)
#define FRAME_V17(x, ...) FRAME_VALUE(x), FRAME_V16(__VA_ARGS__)
#define FRAME_V18(x, ...) FRAME_VALUE(x), FRAME_V17(__VA_ARGS__)
#define FRAME_V19(x, ...) FRAME_VALUE(x), FRAME_V18(__VA_ARGS__)
#define FRAME_V20(x, ...) FRAME_VALUE(x), FRAME_V19(__VA_ARGS__)
#define FRAME_P2(name, x)                                                                          \
    {                                                                                              \
        name, FRAME_VALUE(x)                                                                       \
    }
#define FRAME_P4(name, x, ...) {name, FRAME_VALUE(x)}, FRAME_P2(__VA_ARGS__)
#define FRAME_P6(name, x, ...) {name, FRAME_VALUE(x)}, FRAME_P4(__VA_ARGS__)
#define FRAME_P8(name, x, ...) {name, FRAME_VALUE(x)}, FRAME_P6(__VA_ARGS__)
#define FRAME_P10(name, x, ...) {name, FRAME_VALUE(x)}, FRAME_P8(__VA_ARGS__)
#define FRAME_P12(name, x, ...) {name, FRAME_VALUE(x)}, FRAME_P10(__VA_ARGS__)
#define FRAME_P14(name, x, ...) {name, FRAME_VALUE(x)}, FRAME_P12(__VA_ARGS__)
#define FRAME_P16(name, x, ...) {name, FRAME_VALUE(x)}, FRAME_P14(__VA_ARGS__)
#define FRAME_P18(name, x, ...) {name, FRAME_VALUE(x)}, FRAME_P16(__VA_ARGS__)
#define FRAME_P20(name, x, ...) {name, FRAME_VALUE(x)}, FRAME_P18(__VA_ARGS__)
