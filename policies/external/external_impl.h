/* Internals of policies/external. */
#pragma once

#include "policies/external/external.h"
#include "policies/external/process.h"
#include "policies/external/zygote.h"
#include "sim/api/policy.h"
#include "sim/base/json.h"
#include "sim/base/version.h"
#include "sim/base/words.h"
#include "sim/record/field.h"

#define EXTERNAL_STRING_(x) #x
#define EXTERNAL_STRING(x) EXTERNAL_STRING_(x)
/* The first line of every conversation, from the simulator. */
#define EXTERNAL_HELLO                                                                             \
    "{\"xpusim\":\"" XPUSIM_VERSION "\",\"protocol\":" EXTERNAL_STRING(EXTERNAL_PROTOCOL) "}\n"

/* A program that sends more lines within a millisecond of simulated time asks, syncs or sets timers
 * in an endless loop. A line may have any number of actions or questions. */
#define EXTERNAL_MAX_LINES 20000
#define EXTERNAL_LINES_NS 1000000

#define EXTERNAL_LIMIT_S 30.0 /* for an answer; default of policies and users */

/* An external policy that has been asked for its description. */
struct external {
    struct policy_ops ops; /* first, because sched.policy points to it */
    struct external *next;
    char *spec;
    char *argv[6]; /* command line; NULL-terminated */
    struct jail jail;
    struct zygote zygote; /* unused for a command */
    pid_t ran_in;         /* the last process of the simulator that ran it */
    bool confined;        /* runs in a jail; else it is not confined */
    bool python;          /* a class of a Python file */
    bool hosted;          /* a plug-in (hosted.h); spec is its file */
    double limit_s;
    uint64_t content;  /* hash of its file at the start; 0: no file */
    bool usable;       /* whether it gave a valid description */
    bool sleeps;       /* no schedule needed if launches ended and nothing else happened */
    bool steady;       /* calls sched_steady without an end */
    uint32_t n_params; /* its own; limit_s follows */
    struct policy_param params[65];
    const char *ablations[64]; /* owned; NULL-terminated */
};

/* Values of the members that are sent when they change, in the order of the protocol. */
struct facts {
    uint64_t v[16];
};
struct facts external_request_facts(const struct request *r);

/* Rows for the members of one list of sim/api. */
struct fields {
    const struct field *rows;
    uint32_t n;
};
extern const struct fields external_arrival, external_shape, external_estimate,
    external_machine_state;
/* Appends the members' values, with a comma before each unless the text is empty or ends in '['. */
void external_write(struct text *t, const void *of, const struct fields *fields);

/* The facts of a changing object that were sent last. */
struct told_pass {
    uint32_t id; /* number that the program gave it */
    bool whole;  /* its constant members were sent */
    struct pass *p;
    struct facts told;
};
struct told_launch {
    uint32_t id;
    bool whole;
    const struct launch *l;
    struct facts told;
};

/* Sets argv from the specification. Owned by x. Returns 0, or -EINVAL with an error. */
int external_command(struct external *x, struct err *e);
/* The present hash of its file; 0 without one. */
uint64_t external_content(const struct external *x);
#define EXTERNAL_CHANGED                                                                           \
    "its file was changed after this command began: the runs would be of two policies; give the "  \
    "command again"
/* Members of a description, in the format that programs write. Types by enum param_type. */
extern const char *const external_param_types[];
void external_add_param(cJSON *o, const char *name, const struct policy_param *p, double value);
/* All external policies. Never freed, because results use their strings. */
extern struct external *external_loaded;
/* The usable policy of that specification (n bytes), or NULL. */
struct external *external_known(const char *spec, size_t n);
/* Adds a new policy, and takes over its specification. */
void external_begin(struct external *x, char *spec);
/* The absolute path, because the program may work in another folder. The caller frees it. */
char *external_real_name(const char *path);

/* State of a run. */
struct external_run {
    struct process process;
    const struct request **requests; /* live ones, by ascending id */
    uint32_t n_requests;
    struct told_pass **passes; /* live ones, in order of forming; each is its pass's policy_data */
    uint32_t n_passes;
    struct told_launch *launches;
    uint32_t n_launches;
    size_t cap_requests, cap_passes, cap_launches;
    /* Contents of the next message. */
    struct text events, changed_requests, changed_passes, changed_launches, refusals;
    uint32_t n_refusals;
    struct text line;                /* the line to send */
    uint64_t epoch;                  /* of the last message */
    struct machine_state conditions; /* at the last call of schedule */
    bool awake;                      /* something happened that `sleeps` does not cover */
    bool timers;                     /* a timer was set: no event is sent when it is due */
    bool again;                      /* ask again at this instant after an action */
    bool failed;
    int64_t lines_since_ns; /* start of the interval of n_lines */
    uint32_t n_lines;
};

/* Starts the program and reads its description into x. Returns 0, or -EINVAL with an error. */
int external_ask(struct external *x, struct err *e);

/* If `name` is a script that starts Python, as with pyenv: the path of the real interpreter, as the
 * jail lacks the script's files. Else a copy of `name`. The caller frees it. */
char *external_interpreter(const char *name);
/* The zygote for the runs of this process, started at the second run: a start costs more than many
 * runs. NULL: start a program per run. */
struct zygote *external_zygote(struct external *e, double limit_s);
#define EXTERNAL_FORKS "--fork-runs" /* last argument of a zygote */

/* external_jail.c: the jail of a program. argv: of a Python interpreter or a shell. Its lists are
 * never freed. */
struct jail external_jail(char *const argv[], bool python);
/* These files and folders, and those of LD_LIBRARY_PATH, as `reads` of a jail. */
const char *const *external_reads(const char *const *paths);
/* The jail of a run; NULL: not confined. */
static inline const struct jail *external_confines(const struct external *x)
{
    return x->confined ? &x->jail : NULL;
}

/* Whether conditions changed. An event of the machine calls only `schedule`. */
static inline bool external_conditions_differ(const struct machine_state *a,
                                              const struct machine_state *b)
{
    return a->memory_taken_bytes != b->memory_taken_bytes ||
           a->power_limit_watts != b->power_limit_watts || a->on_battery != b->on_battery ||
           a->background_window != b->background_window;
}

/* external.c: sets the hooks of an external policy. */
void external_hooks(struct policy_ops *o);

/* external_tell.c: from structs to lines. The first line of a run. */
void external_tell_init(struct sched *s, struct external_run *x);
/* The line "schedule" or "result": all changes since the last one. */
void external_tell(struct sched *s, struct external_run *x, const char *what);
/* Removes ended objects. The next line still has their last changes. */
void external_bury(struct external_run *x);

/* external_act.c: from lines to actions. Both return NULL, or the error in the line. */
const char *external_act(struct sched *s, struct external_run *x, const cJSON *actions);
/* Writes the answers to x->line. */
const char *external_answer(struct sched *s, struct external_run *x, const cJSON *questions);
