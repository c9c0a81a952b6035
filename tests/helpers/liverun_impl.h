/* Inside liverun.h: the present run, and its parts. */
#pragma once

#include <signal.h>

#include "sim/base/rng.h"
#include "sim/drive/drive.h"
#include "tests/helpers/liverun.h"
#include "tests/helpers/liverun_watch.h"
#include "tests/helpers/scenario.h"
#include "tests/helpers/virtual.h"
#include "tests/helpers/virtual_engine.h"

#define MOST_REQUESTS 8
#define HANG_S 2.0
#define COMPILE_S 5.0

struct chosen_policy {
    const char *name, *params; /* NULL: wild */
    bool compiles;             /* it wants an engine with residents, */
    bool attention;            /* and attention among them */
};
struct draw {
    uint64_t seed;
    struct rng rng;
    const struct chosen_policy *policy;
    bool wall;
    enum live_fault fault;
    struct virtual_faults host;
    struct virtual_engine_setup engine;
    struct scenario_request requests[MOST_REQUESTS];
    int64_t cancel_ns[MOST_REQUESTS];
    uint32_t n_requests, dies_in;
    double limit_s;
};

/* The present run: one at a time. */
struct liverun_now {
    struct draw draw;
    struct scenario scenario;
    struct livewatch watch;
    struct drive_options options;
    struct drive_report report;
    struct virtual_result host;
    struct trace_extra extras[MOST_REQUESTS];
    int32_t right[MOST_REQUESTS][VIRTUAL_MOST_TOKENS];
    char *tokens;
    size_t tokens_bytes;
    struct liverun *out;
    volatile sig_atomic_t interrupt;
};
extern struct liverun_now now;

/* liverun_draw.c */
void liverun_draw(uint64_t seed); /* now.draw */
void liverun_prepare(void);       /* and what is made of it */
const char *liverun_fault_name(enum live_fault f);

/* liverun_check.c */
void liverun_finding(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void liverun_look_inside(void); /* when all threads but the host's have ended */
void liverun_check(void);       /* after the run */
