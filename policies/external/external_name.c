/* The words of the protocol, in the order of the enums of sim/api. */
#include <errno.h>

#include "policies/external/external_impl.h"

const char *const external_roles[] = {"prefill", "decode", "verify", NULL};
const char *const external_yields[] = {"kernel", "op", "layer", "pass", NULL};
const char *const external_residents[] = {"compiled_attention", "graph_block", NULL};
const char *const external_pass_states[] = {"ready", "running", "done", "cancelled", NULL};
const char *const external_launch_states[] = {"queued", "running", "ended", NULL};
const char *const external_outcomes[] = {"done", "yielded", "withdrawn", "reset", NULL};

const char *external_error(int rc)
{
    switch (-rc) {
    case EBUSY:
        return "busy";
    case ENOMEM:
        return "no_memory";
    case ENOENT:
        return "missing";
    case EALREADY:
        return "already";
    case EPERM:
        return "not_permitted";
    default:
        return "invalid";
    }
}
