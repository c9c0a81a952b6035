/* Actions of a policy as data.
 *
 * One table has each action's arguments, their names in a decision log, and their positions in a
 * line of the protocol of external policies. The log, its replay and policies in other processes
 * use it. A new member of struct launch_spec or preempt_spec is a row below it in sim/api. */
#pragma once

#include "sim/api/policy.h"
#include "sim/record/field.h"

enum action_kind {
    ACTION_FORM,
    ACTION_CANCEL,
    ACTION_LAUNCH,
    ACTION_PREEMPT,
    ACTION_COMPILE,
    ACTION_LOAD,
    ACTION_MAP,
    ACTION_DROP,
    ACTION_KV,
    ACTION_KV_SESSION,
    ACTION_KV_RANK,
    ACTION_TIMER,
    ACTION_SHED,
    ACTION_GRAPH,
    ACTION_OCCUPY,
    ACTION_KINDS
};

/* One action. Only the members that are arguments of its kind are used. */
struct action {
    enum action_kind kind;
    uint32_t request, session, pass, launch; /* numbers; UINT32_MAX or 0: none */
    const struct segment *segments;          /* borrowed */
    uint32_t n_segments;
    bool fused;
    uint32_t device;
    struct launch_spec span; /* without `pass` and `device`, which are above */
    struct preempt_spec how;
    struct resident_key key;
    double bytes;
    enum kv_place place;
    uint32_t from_token, rank;
    uint32_t version;
    struct graph_shape graph;
    int64_t at_ns;
};

/* The objects with the numbers of an action, for action_do; NULL: none. */
struct action_objects {
    const struct request *request;
    struct pass *pass;           /* set by ACTION_FORM */
    const struct launch *launch; /* set by ACTION_LAUNCH */
    void *policy_data;           /* for the pass to form */
};

enum arg_role {
    ARG_VALUE,
    ARG_REQUEST, /* this and the next two: the number of an existing object */
    ARG_PASS,
    ARG_LAUNCH,
    ARG_NEW,     /* number that an external policy assigns to the new object; not in logs */
    ARG_SEGMENTS /* a list of [request, role, tokens] */
};

/* One argument. Arguments are in the order of the log. */
struct action_arg {
    struct field field; /* member of struct action; .name is its name in logs */
    enum arg_role role;
    uint8_t at;    /* position in a line of the protocol, from 1; 0: the member `key` of the object
                      at the end of the line */
    bool optional; /* the line may end before it */
    const char *key;  /* if at is 0 */
    const char *what; /* what a malformed line lacks, for messages */
};

struct action_form {
    const char *name, *log; /* names in the protocol and in a decision log */
    const struct action_arg *args;
    uint32_t n_args;
};
extern const struct action_form action_forms[ACTION_KINDS];

/* Writes the action's name and arguments, without an end of line. */
void action_write(FILE *out, const struct action *a);

/* Parses a line of action_write. `find` maps a number to a request, or NULL. The caller frees
 * a->segments. Returns 0, or -EPROTO if the text is not an action. */
int action_read(const char *text, struct action *a,
                const struct request *(*find)(void *of, uint32_t id), void *of);

/* Performs the action through the policy's calls, and returns the call's result. */
int action_do(struct sched *s, const struct action *a, struct action_objects *o);
