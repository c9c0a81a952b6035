/* Messages between a run and the process of its plug-in (external.h). */
#pragma once

#include <stdatomic.h>

#include "policies/external/external.h"
#include "policies/external/external_impl.h"
#include "sim/base/json.h"
#include "sim/record/action.h"

/* The hooks, in the order of policy_ops. */
#define HOST_HOOKS(X)                                                                              \
    X(init)                                                                                        \
    X(exit)                                                                                        \
    X(request_arrived)                                                                             \
    X(launch_done)                                                                                 \
    X(pass_done)                                                                                   \
    X(resident_ready)                                                                              \
    X(kv_moved)                                                                                    \
    X(request_cancelled)                                                                           \
    X(schedule)                                                                                    \
    X(dump)
#define HOST_HOOK_(name) HOST_##name,

enum hosted_what {
    HOST_HOOKS(HOST_HOOK_) /* from the parent: run the hook */
    HOST_DONE,             /* to the parent: the hook has returned */
    HOST_ACT,              /* to the parent, as are all below: a call, which it answers */
    HOST_FLUSH,            /* no call; perform the late calls */
    HOST_NOTE,
    HOST_ESTIMATE,
    HOST_RESIDENT,
    HOST_ORACLE,
    HOST_DRAFT,
    HOST_PROMPT,
    HOST_CACHED,
    HOST_GIVE_UP
};

/* Address space of each region; memory is allocated on use. */
#define HOST_REGION_BYTES ((size_t)1 << 30)
#define HOST_SEGMENTS 65536u /* of one pass */
#define HOST_TEXT 16384u
#define HOST_LATE 64u
#define HOST_NEWS 64u
/* How often a waiting side checks whether the other one still lives. */
#define HOST_LOOK_NS 20000000

/* A call that needs no answer: the parent performs it before it handles the next message. */
enum hosted_late_kind { HOST_LATE_TIMER, HOST_LATE_NOTE, HOST_LATE_LAUNCH };
struct hosted_late {
    enum hosted_late_kind kind;
    int64_t at_ns;
    uint64_t add;
    char counter[32];
    struct launch_spec launch;
};

/* A call of launch_done or pass_done that is sent, and run, before the next hook. */
struct hosted_news {
    const struct launch *launch; /* NULL: pass_done */
    const struct pass *pass;
};

struct hosted_message {
    enum hosted_what what;
    int64_t result;
    struct sched *sched; /* the run's; the process copies it */
    /* Arguments of a hook or of a call. */
    const struct request *request;
    const struct pass *pass;
    const struct launch *launch;
    struct resident_key key;
    /* Results of calls that change only with a message, so that no call need ask for them. */
    uint64_t kv_free_tokens, kv_capacity_tokens;
    uint32_t free_slots[MACHINE_MAX_DEVICES];
    struct machine_state conditions;
    /* HOST_ACT */
    struct action action;
    struct action_objects objects;
    /* HOST_ESTIMATE */
    struct work_shape shape;
    struct estimate estimate;
    uint32_t op, device, rows, chunk_rows, graph, tokens;
    /* Calls that need no answer. */
    bool again, steady;
    int64_t until_ns;
    uint64_t left_out;
    uint32_t n_late, n_text;
    /* To the process: number of `news`, and the launch of the last late call. */
    uint32_t n_news;
    const struct launch *launched;
};

enum hosted_side { HOST_PARENT, HOST_CHILD };

/* Shared data, at the begin of the region that the process may write. */
struct hosted_letter {
    _Atomic uint32_t turn; /* enum hosted_side: which side may use the rest */
    _Atomic uint32_t asleep[2];
    struct hosted_message m;
    struct hosted_late late[HOST_LATE];
    struct hosted_news news[HOST_NEWS];
    char text[HOST_TEXT];
    struct segment segments[HOST_SEGMENTS];
};

/* A policy in such a process. */
struct hosted {
    struct external external; /* first, because it is cast */
    struct arena_source memory[2];
    /* State of a run: */
    struct process process;
    bool running, failed;
    uint32_t n_news;
    const struct launch *launched; /* of the last late call */
    /* For POLICY_F_SLEEPS, since the last call of schedule: passes reached their sampling;
     * something happened that the policy does not sleep through. timers: it has set one. */
    bool sampled, awake, timers;
    struct machine_state conditions; /* at the last call of schedule */
    int fd[2];                       /* memfd of each region */
    char *region;                    /* both regions; NULL: none */
    size_t used[2];
    uint32_t given;   /* number of blocks that arenas hold */
    uint8_t *objects; /* per 16 bytes of the first region: enum hosted_object at that address */
};
enum hosted_object { HOST_NOTHING, HOST_REQUEST, HOST_PASS, HOST_LAUNCH };

static inline struct hosted_letter *hosted_letter_of(char *region)
{
    return (struct hosted_letter *)(void *)(region + HOST_REGION_BYTES);
}

/* Waits up to HOST_LOOK_NS. Returns whether it is the turn of `me`. */
bool hosted_wait(struct hosted_letter *l, enum hosted_side me);
void hosted_give_turn(struct hosted_letter *l, enum hosted_side to);
void hosted_hooks(struct policy_ops *o, uint32_t there);
