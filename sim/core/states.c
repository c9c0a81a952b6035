#include "sim/core/consistent.h"

#define TO(state) (1u << (state))

bool request_may_become(enum request_state from, enum request_state to)
{
    static const unsigned next[] = {
        [REQUEST_STATE_QUEUED] = TO(REQUEST_STATE_DECODE) | TO(REQUEST_STATE_SHED),
        /* Its KV may be dropped, and then its prompt is to be computed again. */
        [REQUEST_STATE_DECODE] =
            TO(REQUEST_STATE_QUEUED) | TO(REQUEST_STATE_FINISHED) | TO(REQUEST_STATE_SHED),
        [REQUEST_STATE_FINISHED] = 0,
        [REQUEST_STATE_SHED] = 0,
    };
    return (next[from] & TO(to)) != 0;
}

bool pass_may_become(enum pass_state from, enum pass_state to)
{
    static const unsigned next[] = {
        [PASS_STATE_READY] = TO(PASS_STATE_RUNNING) | TO(PASS_STATE_CANCELLED),
        [PASS_STATE_RUNNING] = TO(PASS_STATE_READY) | TO(PASS_STATE_DONE),
        [PASS_STATE_DONE] = 0,
        [PASS_STATE_CANCELLED] = 0,
    };
    return (next[from] & TO(to)) != 0;
}

bool launch_may_become(enum launch_state from, enum launch_state to)
{
    static const unsigned next[] = {
        [LAUNCH_STATE_QUEUED] = TO(LAUNCH_STATE_RUNNING) | TO(LAUNCH_STATE_ENDED),
        /* One that continues (core_pass_goes_on) is submitted once more. */
        [LAUNCH_STATE_RUNNING] = TO(LAUNCH_STATE_ENDED) | TO(LAUNCH_STATE_QUEUED),
        [LAUNCH_STATE_ENDED] = 0,
    };
    return (next[from] & TO(to)) != 0;
}

bool resident_may_become(enum resident_state from, enum resident_state to)
{
    static const unsigned next[] = {
        [RESIDENT_ABSENT] = TO(RESIDENT_PENDING),
        [RESIDENT_PENDING] = TO(RESIDENT_READY) | TO(RESIDENT_ABSENT),
        [RESIDENT_READY] = TO(RESIDENT_ABSENT),
    };
    return (next[from] & TO(to)) != 0;
}

bool cold_may_become(enum cold_state from, enum cold_state to)
{
    static const unsigned next[] = {
        [COLD_CACHED] = TO(COLD_PINNED) | TO(COLD_MOVING) | TO(COLD_GONE),
        [COLD_PINNED] = TO(COLD_CACHED) | TO(COLD_MOVING) | TO(COLD_GONE),
        [COLD_MOVING] = TO(COLD_SWAPPED) | TO(COLD_GONE),
        [COLD_SWAPPED] = TO(COLD_GONE),
        [COLD_GONE] = TO(COLD_CACHED),
    };
    return (next[from] & TO(to)) != 0;
}
