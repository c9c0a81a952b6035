/* How the process ends early. Without memory, or by a signal, it removes its incomplete files.
 * After a broken requirement it aborts and leaves everything as it is. */
#pragma once

#include <stddef.h>
#include <sys/types.h>

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

/* The exit status of every command whose memory ran out. */
#define EXIT_NO_MEMORY 3

/* Ends the process with a message and EXIT_NO_MEMORY; what it was writing is removed. bytes: what
 * was asked for, 0 when that is not known. */
_Noreturn void out_of_memory(size_t bytes);

/* An incomplete file. */
struct halt_file {
    char *path;  /* owned by the caller; NULL: there is none */
    pid_t owner; /* a forked worker does not remove its parent's */
    struct halt_file *next;
};

/* From now on an early end of this process removes the file; not any more. */
void halt_removes(struct halt_file *file);
void halt_keeps(struct halt_file *file);
/* Removes those of this process. For ends that are no return: a signal handler may call it. */
void halt_remove_all(void);
/* A signal that is not ignored does so before it ends the process. Children that are forked later
 * have the same for their own files. */
void halt_on(const int *signals, size_t n);
/* No signal arrives between the two calls. One thread at a time may hold them. */
void halt_hold(void);
void halt_resume(void);
