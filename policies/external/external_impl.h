/* Inside of policies/external. */
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
/* The first line of every conversation. */
#define EXTERNAL_HELLO                                                                             \
    "{\"xpusim\":\"" XPUSIM_VERSION "\",\"protocol\":" EXTERNAL_STRING(EXTERNAL_PROTOCOL) "}\n"

/* A program that says more lines than this within a millisecond of simulated time asks, syncs or
 * sets timers for ever. A line may hold any number of actions or questions. */
#define EXTERNAL_MAX_LINES 20000
#define EXTERNAL_LINES_NS 1000000

#define EXTERNAL_LIMIT_S 30.0 /* for an answer, where neither policy nor user says otherwise */

/* A program that was asked what it is. */
struct external {
    struct policy_ops ops; /* stays first: sched.policy points here */
    struct external *next;
    char *spec;
    char *argv[6]; /* how it is started; NULL-terminated */
    struct jail jail;
    struct zygote zygote; /* not of a command */
    pid_t ran_in;         /* the process that has run it */
    bool confined;        /* by it; else nothing confines the program */
    bool python;          /* a class of a Python file */
    bool hosted;          /* a plug-in (hosted.h); spec is its file */
    double limit_s;
    uint64_t content;  /* hash of its file when it was asked; 0: none that can be watched */
    bool usable;       /* else it was asked in vain */
    bool sleeps;       /* it need not be asked when launches ended and nothing else happened */
    bool steady;       /* sched_steady, for good */
    uint32_t n_params; /* its own; limit_s follows */
    struct policy_param params[65];
    const char *ablations[64]; /* owned; NULL-terminated */
};

/* Values of the members that are reported when they change, in the order of the protocol. */
struct facts {
    uint64_t v[16];
};
struct facts external_request_facts(const struct request *r);

/* Rows of one list of sim/api. */
struct fields {
    const struct field *rows;
    uint32_t n;
};
extern const struct fields external_arrival, external_shape, external_estimate,
    external_machine_state;
/* Adds the members' values to the text, a comma before each but the first of a text that begins. */
void external_write(struct text *t, const void *of, const struct fields *fields);

/* The last report of something that changes. */
struct told_pass {
    uint32_t id; /* the process's number */
    bool whole;  /* its constant members were reported */
    struct pass *p;
    struct facts told;
};
struct told_launch {
    uint32_t id;
    bool whole;
    const struct launch *l;
    struct facts told;
};

/* The command line of its specification. Owned by x. 0 or -EINVAL with an error. */
int external_command(struct external *x, struct err *e);
/* The hash of its file now. */
uint64_t external_content(const struct external *x);
#define EXTERNAL_CHANGED                                                                           \
    "its file was changed after this command began: the runs would be of two policies; give the "  \
    "command again"
/* Members of a description, as programs write them and this process reads them. Types by enum
 * param_type. */
extern const char *const external_param_types[];
void external_add_param(cJSON *o, const char *name, const struct policy_param *p, double value);
/* All of them; results keep using their strings. */
extern struct external *external_loaded;
/* One of that specification (n bytes) which can be used, or NULL. */
struct external *external_known(const char *spec, size_t n);
/* Adds a new one, and takes its specification over. */
void external_begin(struct external *x, char *spec);
/* From the root on: the program works in another folder. The caller frees it. */
char *external_real_name(const char *path);

/* A run. */
struct external_run {
    struct process process;
    const struct request **requests; /* live ones by id */
    uint32_t n_requests;
    struct told_pass **passes; /* live ones, in the order of forming; each is its policy_data */
    uint32_t n_passes;
    struct told_launch *launches;
    uint32_t n_launches;
    size_t cap_requests, cap_passes, cap_launches;
    /* Contents of the next message. */
    struct text events, changed_requests, changed_passes, changed_launches, refusals;
    uint32_t n_refusals;
    struct text line;                /* being written */
    uint64_t epoch;                  /* of the last message */
    struct machine_state conditions; /* at the last call */
    bool awake;                      /* something happened that it does not sleep through */
    bool timers;                     /* it has set one: no event reports when it is due */
    bool again; /* it wants to be asked again at an instant at which it acted */
    bool failed;
    int64_t lines_since_ns; /* what n_lines counts */
    uint32_t n_lines;
};

/* Starts the program, and fills what it says that it is. 0 or -EINVAL with an error. */
int external_ask(struct external *x, struct err *e);

/* The interpreter of Python itself where `name` is a script that finds it, as pyenv's are: what
 * such a script reads is not in the jail. Else the name. The caller frees it. */
char *external_interpreter(const char *name);
/* The process that forks for the runs of this process, from the second one on: starting a program
 * costs more than many a run. NULL: each is started. */
struct zygote *external_zygote(struct external *e, double limit_s);
#define EXTERNAL_FORKS "--fork-runs" /* the last argument of such a process */

/* external_jail.c: what a program sees. argv as it is started: of an interpreter of Python, or of a
 * shell. All that it points to lives as long as the process. */
struct jail external_jail(char *const argv[], bool python);
/* These files and folders, and those of LD_LIBRARY_PATH, as a jail reads them. */
const char *const *external_reads(const char *const *paths);
/* NULL: the program is not confined. */
static inline const struct jail *external_confines(const struct external *x)
{
    return x->confined ? &x->jail : NULL;
}

/* An event of the machine calls no hook: `schedule` comes, and the conditions have changed. */
static inline bool external_conditions_differ(const struct machine_state *a,
                                              const struct machine_state *b)
{
    return a->memory_taken_bytes != b->memory_taken_bytes ||
           a->power_limit_watts != b->power_limit_watts || a->on_battery != b->on_battery ||
           a->background_window != b->background_window;
}

/* external.c: the hooks of a policy that is another process. */
void external_hooks(struct policy_ops *o);

/* external_tell.c: from structs to lines. */
void external_tell_init(struct sched *s, struct external_run *x);
/* "schedule" or "result": everything that changed since the last one. */
void external_tell(struct sched *s, struct external_run *x, const char *what);
/* Forgets what has ended; an end that was not reported yet will be. */
void external_bury(struct external_run *x);

/* external_act.c: from lines to actions. Both return NULL, or what is wrong with the line. */
const char *external_act(struct sched *s, struct external_run *x, const cJSON *actions);
/* Writes the answers as a line. */
const char *external_answer(struct sched *s, struct external_run *x, const cJSON *questions);
