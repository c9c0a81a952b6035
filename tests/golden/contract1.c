/* A plug-in has the layout of headers of policy API version 1, in both forms with that number. The
 * second form has presets in its middle. Read as a later policy_ops, its hooks are in the place of
 * other members. It must be refused before anything of it is called. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

typedef void hook(void);

static void called(void)
{
    abort(); /* a hook of the wrong name */
}

struct policy_ops_1 {
    const char *name, *summary;
    uint32_t api_version, flags, needs;
    size_t state_size_bytes, request_state_size_bytes;
    const void *params;
#ifdef PRESETS
    const char *const *presets;
#endif
    hook *init, *exit, *request_arrived, *launch_done, *pass_done, *resident_ready, *kv_moved;
    hook *tool_returned, *request_cancelled, *timer, *memory_pressure, *schedule, *dump;
};

static const struct policy_ops_1 ops = {
    .name = "of-version-1",
    .summary = "a plug-in of version 1",
    .api_version = 1,
    .init = called,
    .exit = called,
    .request_arrived = called,
    .schedule = called,
};

const void *xpusim_policy(void);
const void *xpusim_policy(void)
{
    return &ops;
}
