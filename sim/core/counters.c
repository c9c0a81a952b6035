#include "sim/core/counters.h"

const char *const counter_names[COUNTER_COUNT] = {
#define COUNTER(id, name) name,
#include "sim/core/counters.def"
};

bool counter_is_refusal(enum counter which)
{
    return which <= COUNTER_OUTSIDE_SCHEDULE && which != COUNTER_PASS_NO_MEMORY &&
           which != COUNTER_PASS_CANCELLED;
}
