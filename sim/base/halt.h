/* Early ends of the process. Out of memory, or on a signal, it removes its incomplete files. After
 * a failed requirement it aborts and leaves all files as they are. */
#pragma once

#include <stddef.h>
#include <sys/types.h>

/* SIM_REQUIRE checks what a caller must guarantee (an argument, an order of calls). Every build has
 * it, because it is cheap and the mistake is the caller's. SIM_ASSERT checks what the code itself
 * relies on. Only test builds have it (SIM_DEBUG: the sanitizers, `make clang`, `make fuzz`, `make
 * campaign`). So an assertion may walk a whole structure or be in the hottest loop. It must have no
 * side effects. */

/* A precondition. A violation is a bug of the caller in this program, so the message has the source
 * line, and the process aborts. */
#define SIM_REQUIRE(cond, ...)                                                                     \
    do {                                                                                           \
        if (!(cond)) {                                                                             \
            sim_require_failed(__FILE__, __LINE__, __func__, #cond, __VA_ARGS__);                  \
        }                                                                                          \
    } while (0)

_Noreturn void sim_require_failed(const char *file, int line, const char *func, const char *cond,
                                  const char *fmt, ...) __attribute__((format(printf, 5, 6)));

/* An invariant. Without SIM_DEBUG it is still compiled, so that its variables count as used. */
#ifdef SIM_DEBUG
#define SIM_ASSERT(cond) SIM_REQUIRE(cond, "an invariant is broken")
#else
#define SIM_ASSERT(cond) ((void)(0 && (cond)))
#endif

/* Exit status of every command that runs out of memory. */
#define EXIT_NO_MEMORY 3

/* Removes incomplete files, and ends the process with a message and EXIT_NO_MEMORY. bytes: the size
 * that was requested; 0 if unknown. */
_Noreturn void out_of_memory(size_t bytes);

/* An incomplete file. */
struct halt_file {
    char *path;  /* owned by the caller; NULL: no file */
    pid_t owner; /* a forked worker does not remove its parent's files */
    struct halt_file *next;
};

/* Adds the file to those that an early end of this process removes, or takes it out again. */
void halt_removes(struct halt_file *file);
void halt_keeps(struct halt_file *file);
/* Removes the registered files of this process. Async-signal-safe. */
void halt_remove_all(void);
/* Installs handlers that remove the files and then end the process. Ignored signals stay ignored.
 * Later forked children inherit the handlers, for their own files. */
void halt_on(const int *signals, size_t n);
/* Block all signals between the two calls. Not thread-safe: one thread at a time. */
void halt_hold(void);
void halt_resume(void);
