/* A virtual host for the real executor (sim/drive/host.h). Threads are coroutines of the calling
 * thread, of which one runs at a time. At each operation on threads or clocks the seed chooses the
 * next one to run, so a seed repeats its interleaving exactly. Time is virtual. It passes while
 * everybody waits or sleeps, and a little in every operation.
 *
 * POSIX leaves some things open, and the seed uses that freedom: any waiter may be woken, a wait
 * may end for no reason, and a thread may lose its processor for a while.
 *
 * Misuse is a finding: a lock twice, an unlock by another thread, a wait without the lock, a thread
 * that is neither joined nor detached, and a host in which all wait for each other. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sim/drive/host.h"

extern const struct drive_host virtual_host;

#define VIRTUAL_THREADS 8
#define VIRTUAL_OPEN_FILE 1000000 /* the descriptor of a swap file */

struct virtual_faults {
    uint64_t at;             /* operation, from 1, before which it happens; 0: never */
    void (*happen)(void);    /* for instance a signal; NULL: nothing */
    int64_t jump_ns;         /* the clock jumps forward; < 0: it goes back (sim/base/clock.h) */
    uint32_t full_at;        /* number, from 1, of the write that finds the disk full; 0: none */
    bool no_file, no_thread; /* no swap file; the last thread cannot be created */
};

struct virtual_result {
    uint64_t operations; /* on threads and clocks */
    uint64_t switches;   /* to another thread */
    int64_t happened_ns; /* when the fault did; -1: it did not */
    int64_t end_ns;      /* when main returned */
    char finding[256];   /* the first; "": none */
};

/* Runs main on a new virtual host until it has returned and no thread is left. Threads that main
 * left behind then continue, so that one that hangs (virtual_hang) comes back later than all
 * others expect. After a finding, threads are given up where they are. */
void virtual_run(uint64_t seed, const struct virtual_faults *faults, void (*main)(void *),
                 void *arg, struct virtual_result *out);

/* For the parts of a run that are inside a host: engines and observers. */
int64_t virtual_now_ns(void);
/* The calling thread; 0 is main. */
uint32_t virtual_thread(void);
/* The calling thread computes for so long. Returns early, with what is left, when it is woken by
 * the object's address. */
int64_t virtual_compute(const void *on, int64_t ns);
void virtual_wake(const void *on);
/* The calling thread computes until main has returned. */
void virtual_hang(void);
/* Notes what is wrong; the first counts. */
void virtual_finding(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
