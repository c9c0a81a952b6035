#include "sim/core/consistent.h"

#define TO(state) (1u << (state))

const unsigned after_request[] = {
    [REQUEST_STATE_QUEUED] =
        TO(REQUEST_STATE_QUEUED) | TO(REQUEST_STATE_DECODE) | TO(REQUEST_STATE_SHED),
    /* Its KV may be dropped, and then its prompt is to be computed again. */
    [REQUEST_STATE_DECODE] =
        TO(REQUEST_STATE_QUEUED) | TO(REQUEST_STATE_FINISHED) | TO(REQUEST_STATE_SHED),
    [REQUEST_STATE_FINISHED] = 0,
    [REQUEST_STATE_SHED] = 0,
};

const unsigned after_pass[] = {
    [PASS_STATE_READY] = TO(PASS_STATE_RUNNING) | TO(PASS_STATE_CANCELLED),
    [PASS_STATE_RUNNING] = TO(PASS_STATE_RUNNING) | TO(PASS_STATE_READY) | TO(PASS_STATE_DONE),
    [PASS_STATE_DONE] = 0,
    [PASS_STATE_CANCELLED] = 0,
};

const unsigned after_launch[] = {
    [LAUNCH_STATE_QUEUED] =
        TO(LAUNCH_STATE_QUEUED) | TO(LAUNCH_STATE_RUNNING) | TO(LAUNCH_STATE_ENDED),
    /* One that continues (core_pass_goes_on) is submitted once more. */
    [LAUNCH_STATE_RUNNING] = TO(LAUNCH_STATE_ENDED) | TO(LAUNCH_STATE_QUEUED),
    [LAUNCH_STATE_ENDED] = 0,
};

const unsigned after_resident[] = {
    [RESIDENT_ABSENT] = TO(RESIDENT_PENDING),
    [RESIDENT_PENDING] = TO(RESIDENT_READY) | TO(RESIDENT_ABSENT),
    [RESIDENT_READY] = TO(RESIDENT_ABSENT),
};

const unsigned after_cold[] = {
    [COLD_CACHED] = TO(COLD_PINNED) | TO(COLD_MOVING),
    [COLD_PINNED] = TO(COLD_CACHED) | TO(COLD_MOVING),
    [COLD_MOVING] = TO(COLD_SWAPPED),
    [COLD_SWAPPED] = 0,
};
