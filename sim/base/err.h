/* Errors of outside input, collected: a file's errors are all reported at once.
 *
 * Every loader takes a `struct err *` and appends one line per problem, each naming file and place
 * (line, or key path) and the accepted form. Functions return 0 or -errno; the caller prints the
 * lines and exits with status 2. An err object never frees anything of its user.
 */
#pragma once

#include <stddef.h>
#include <stdio.h>

#define ERR_MAX_LINES 50 /* further ones are counted, not stored */

struct err {
    char *lines[ERR_MAX_LINES]; /* owned, NUL-terminated, without newline */
    size_t n;                   /* errors seen; may exceed ERR_MAX_LINES */
};

#define ERR_INIT                                                                                   \
    {                                                                                              \
        {NULL}, 0                                                                                  \
    }

/* Appends one formatted line. Always returns -EINVAL, so that `return err_add(...)` reads well. */
int err_add(struct err *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Returns NULL instead. */
void *err_null(struct err *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Writes "xpusim: error: LINE" for each, and a count of those not stored. */
void err_print(const struct err *e, FILE *out);

/* Frees the lines; the object is then empty and can be used again. */
void err_fini(struct err *e);

/* When to use which. SIM_REQUIRE checks what a caller must guarantee (an argument, an order of
 * calls). It is in every build, because it is cheap and the mistake is the caller's. SIM_ASSERT
 * checks what the code itself relies on. Only builds that test compile it in (SIM_DEBUG: the
 * sanitizers, `make clang`, `make fuzz`, `make campaign`). So an assertion may walk a whole
 * structure or be in the hottest loop. It must change nothing. */

/* A precondition. A broken one is a bug of the caller inside this program, so the message names the
 * place and the process ends. */
#define SIM_REQUIRE(cond, ...)                                                                     \
    do {                                                                                           \
        if (!(cond)) {                                                                             \
            sim_require_failed(__FILE__, __LINE__, __func__, #cond, __VA_ARGS__);                  \
        }                                                                                          \
    } while (0)

_Noreturn void sim_require_failed(const char *file, int line, const char *func, const char *cond,
                                  const char *fmt, ...) __attribute__((format(printf, 5, 6)));

/* An invariant. Also where it is not checked it must compile, and what it names counts as used. */
#ifdef SIM_DEBUG
#define SIM_ASSERT(cond) SIM_REQUIRE(cond, "an invariant is broken")
#else
#define SIM_ASSERT(cond) ((void)(0 && (cond)))
#endif
