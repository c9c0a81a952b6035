/* Actions of a policy as data.
 *
 * One table says which arguments an action has, what a decision log calls them, and where a line
 * of the protocol of programs has them. The log, its replay and policies in other processes all
 * use that table. A new member of a launch or a stop is a row below its struct in sim/api. */
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

/* One action. The members that its kind has no argument for are not read. */
struct action {
    enum action_kind kind;
    uint32_t request, session, pass, launch; /* numbers; UINT32_MAX or 0: none */
    const struct segment *segments;          /* borrowed */
    uint32_t n_segments;
    bool fused;
    uint32_t device;
    struct launch_spec span; /* its pass and device are those above */
    struct preempt_spec how;
    struct resident_key key;
    double bytes;
    enum kv_place place;
    uint32_t from_token, rank;
    uint32_t version;
    struct graph_shape graph;
    int64_t at_ns;
};

/* The objects that its numbers mean, for action_do; NULL: there is none. */
struct action_objects {
    const struct request *request;
    struct pass *pass;           /* set by ACTION_FORM */
    const struct launch *launch; /* set by ACTION_LAUNCH */
    void *policy_data;           /* of a pass that is formed */
};

enum arg_role {
    ARG_VALUE,
    ARG_REQUEST, /* these three: the number of one that there is */
    ARG_PASS,
    ARG_LAUNCH,
    ARG_NEW,     /* a number that the program gives what this action makes; no log has it */
    ARG_SEGMENTS /* [request, role, tokens] each */
};

/* One argument, in the order of the log. */
struct action_arg {
    struct field field; /* of struct action; .name is the log's */
    enum arg_role role;
    uint8_t at;       /* place in a line of the protocol, from 1; 0: a member of the object at its
                         end, where it is called `key` */
    bool optional;    /* a line may end before it */
    const char *key;  /* with at = 0 */
    const char *what; /* that a malformed line lacks */
};

struct action_form {
    const char *name, *log; /* in the protocol and in a decision log */
    const struct action_arg *args;
    uint32_t n_args;
};
extern const struct action_form action_forms[ACTION_KINDS];

/* Writes the action's name and arguments, without an end of line. */
void action_write(FILE *out, const struct action *a);

/* Reads what action_write wrote. Segments are those of `find`, which gives the request of a number
 * or NULL; the caller frees a->segments. 0, or -EPROTO where the text is no action. */
int action_read(const char *text, struct action *a,
                const struct request *(*find)(void *of, uint32_t id), void *of);

/* Performs the action through the policy's calls, and returns what the call returns. */
int action_do(struct sched *s, const struct action *a, struct action_objects *o);
