/* Messages between a run and the process of its plug-in (external.h). */
#pragma once

#include <stdatomic.h>

#include "policies/external/external.h"
#include "policies/external/external_impl.h"
#include "sim/base/json.h"
#include "sim/record/action.h"

/* Hooks, in the order of policy_ops. */
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
    HOST_HOOKS(HOST_HOOK_) /* to the process */
    HOST_DONE,             /* from it: the hook has returned */
    HOST_ACT,              /* these are calls, and answers to them */
    HOST_FLUSH,            /* only what is late */
    HOST_NOTE,
    HOST_ESTIMATE,
    HOST_RESIDENT,
    HOST_ORACLE,
    HOST_DRAFT,
    HOST_PROMPT,
    HOST_CACHED,
    HOST_GIVE_UP
};

/* Address space of each region; memory is taken as it is used. */
#define HOST_REGION_BYTES ((size_t)1 << 30)
#define HOST_SEGMENTS 65536u /* of a pass */
#define HOST_TEXT 16384u
#define HOST_LATE 64u
#define HOST_NEWS 64u
/* After so long a side looks whether the other one is still there. */
#define HOST_LOOK_NS 20000000

/* A call that nothing waits for: it is done with the next message, before it. */
enum hosted_late_kind { HOST_LATE_TIMER, HOST_LATE_NOTE, HOST_LATE_LAUNCH };
struct hosted_late {
    enum hosted_late_kind kind;
    int64_t at_ns;
    uint64_t add;
    char counter[32];
    struct launch_spec launch;
};

/* launch_done or pass_done that waits for the next message and is run before it. */
struct hosted_news {
    const struct launch *launch; /* NULL: of the pass */
    const struct pass *pass;
};

struct hosted_message {
    enum hosted_what what;
    int64_t result;
    struct sched *sched; /* the run's, which the process copies */
    /* Arguments of a hook, or of a question. */
    const struct request *request;
    const struct pass *pass;
    const struct launch *launch;
    struct resident_key key;
    /* Answers that change only when something happens: nobody asks for them. */
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
    /* Calls that nothing waits for. */
    bool again, steady;
    int64_t until_ns;
    uint64_t left_out;
    uint32_t n_late, n_text;
    /* To the process: news, and the last launch that it did not wait for. */
    uint32_t n_news;
    const struct launch *launched;
};

enum hosted_side { HOST_PARENT, HOST_CHILD };

/* At the begin of the region that the process may write. */
struct hosted_letter {
    _Atomic uint32_t turn; /* enum hosted_side: who may touch the rest */
    _Atomic uint32_t asleep[2];
    struct hosted_message m;
    struct hosted_late late[HOST_LATE];
    struct hosted_news news[HOST_NEWS];
    char text[HOST_TEXT];
    struct segment segments[HOST_SEGMENTS];
};

/* A policy in such a process. */
struct hosted {
    struct external external; /* stays first */
    struct arena_source memory[2];
    /* A run: */
    struct process process;
    bool running, failed;
    uint32_t n_news;
    const struct launch *launched; /* the last one of those that are late */
    /* For POLICY_F_SLEEPS: since the last call of schedule passes went to the host, and something
     * happened that it does not sleep through. It has asked for an instant. */
    bool sampled, awake, timers;
    struct machine_state conditions; /* at the last call */
    int fd[2];                       /* of the regions */
    char *region;                    /* both; NULL: none */
    size_t used[2];
    uint32_t given;   /* blocks that arenas hold */
    uint8_t *objects; /* by 16 bytes of the first region: what lies there, enum hosted_object */
};
enum hosted_object { HOST_NOTHING, HOST_REQUEST, HOST_PASS, HOST_LAUNCH };

static inline struct hosted_letter *hosted_letter_of(char *region)
{
    return (struct hosted_letter *)(void *)(region + HOST_REGION_BYTES);
}

/* True: it is my turn. */
bool hosted_wait(struct hosted_letter *l, enum hosted_side me);
void hosted_give_turn(struct hosted_letter *l, enum hosted_side to);
void hosted_hooks(struct policy_ops *o, uint32_t there);
