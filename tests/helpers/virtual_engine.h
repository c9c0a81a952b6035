/* An engine for the virtual host (virtual.h). Its kernels take virtual time, and compute a hash
 * instead of a sum of products: of all that the contract (sim/api/engine.h) says they read. So a
 * kernel that is left out, runs too early, on other rows or on other KV gives other tokens.
 * virtual_tokens computes the right ones by plain loops.
 *
 * The engine reports (virtual_finding) what an executor must not do:
 *   two kernels on one device at once, or on another thread than the device's
 *   inputs that change while a kernel reads them
 *   graphs and attention that a kernel uses while they are not there
 *   a device that is closed while it is in use */
#pragma once

#include "sim/api/engine.h"
#include "sim/api/trace.h"

extern const struct engine_ops virtual_engine;          /* kernels look at `stop` by themselves */
extern const struct engine_ops virtual_engine_deaf;     /* they look when they are interrupted */
extern const struct engine_ops virtual_engine_compiles; /* as the first, with residents */

/* Kinds of faults; numbers count calls of their kind from 1. */
enum virtual_kind {
    VIRTUAL_KERNEL,
    VIRTUAL_RESIDENT,
    VIRTUAL_OPEN,
    VIRTUAL_DEVICE_OPEN,
    VIRTUAL_DEVICE_CLOSE,
    VIRTUAL_KINDS
};
enum virtual_fate { VIRTUAL_FINE, VIRTUAL_SLOW, VIRTUAL_FAILS, VIRTUAL_HANGS };

struct virtual_engine_setup {
    uint64_t seed; /* of durations, which depend on nothing else than what is done */
    enum virtual_kind kind;
    enum virtual_fate fate; /* of the calls of that kind from `first` on */
    uint32_t first, n;      /* and how many */
    int64_t slow_ns;        /* what is slow takes so much longer */
    int64_t kernel_ns;      /* an upper bound of other kernels */
};

/* Counts of the present run. */
struct virtual_engine_seen {
    uint32_t calls[VIRTUAL_KINDS];
    uint32_t cancelled, open, devices; /* stopped kernels; engines and devices that are open */
    int64_t fated_ns;                  /* when the first fault began */
    bool fated;                        /* the fault happened */
    const struct engine_kv *kv;        /* the executor's */
};
extern struct virtual_engine_setup virtual_engine_setup;
extern struct virtual_engine_seen virtual_engine_seen;

/* Called before an engine closes, when all threads but the caller's have ended. NULL: nobody. */
extern void (*virtual_engine_closing)(void);

void virtual_engine_reset(const struct virtual_engine_setup *setup);
/* A model for it. */
void virtual_model(struct llm *l);
/* The tokens of every row of a trace, without an executor: out[row][i] is output token i. */
#define VIRTUAL_MOST_TOKENS 16
void virtual_tokens(const struct trace *t, const struct llm *l,
                    int32_t (*out)[VIRTUAL_MOST_TOKENS]);
