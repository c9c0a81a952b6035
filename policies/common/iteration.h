/* The skeleton of every iteration-level batcher on one device: one pass at a time, and when its
 * tokens are out the next one. Systems differ in four rules, which a policy supplies:
 *
 *   order      who waits where: joins, leaves, ran
 *   compose    whom the next iteration takes, with how many tokens, as if their KV had room
 *   make room  what gives way when it has none
 *   stop       whether a running pass ends early for somebody who waits, what becomes of its work,
 *              and when a stopped one goes on
 *
 * The state of such a policy begins with a struct iteration.
 */
#pragma once

#include "policies/common/batch.h"
#include "policies/common/place.h"
#include "sim/api/policy.h"

#define ITERATION_MAX_PAUSED 16

struct iteration_pass {
    struct pass *pass;           /* NULL: none */
    const struct launch *launch; /* NULL: not on the device */
    int64_t began_ns;            /* when it was formed; later by as long as it was aside */
    int64_t aside_ns;            /* since when it is among those paused */
    int64_t ran_ns;              /* the policy's: on the device, in launches that ended */
    double key;                  /* the policy's: how urgent it is */
    bool stopping;               /* it was asked to stop */
    bool finish;                 /* continues because nothing else can: it runs to its end */
};

/* Only joins, leaves and compose must be there. */
struct iteration_rules {
    /* order */
    void (*joins)(struct sched *s, const struct request *r);  /* it arrived */
    void (*leaves)(struct sched *s, const struct request *r); /* it is over: finished or shed */
    /* It took part in an iteration that ran for elapsed_ns, over or not; before leaves. */
    void (*ran)(struct sched *s, const struct segment *seg, int64_t elapsed_ns);
    /* The request continues after an iteration, or after a pass that was given up. */
    void (*returns)(struct sched *s, const struct request *r);

    /* compose: fills the batch; empty: nothing to do */
    void (*compose)(struct sched *s);
    void (*formed)(struct sched *s); /* the batch is a pass now */
    /* No batch could be formed: true to compose once more, another way. */
    bool (*again)(struct sched *s);

    /* make room: memory is short for the batch. True: something gave way, or the batch has become
     * smaller; each call must take something away. NULL: never. */
    bool (*make_room)(struct sched *s);

    /* stop */
    void (*refresh)(struct sched *s);                          /* before every decision */
    void (*launch)(struct sched *s, struct launch_spec *spec); /* where it yields, for instance */
    bool (*outranked)(struct sched *s);                        /* stop it now? NULL: never */
    void (*stopped)(struct sched *s, const struct launch *l);  /* a launch of it ended */
    void (*lost)(struct sched *s, const struct request *r);    /* its pass was given up */
    /* The stopped pass to continue with, and whether it goes before a new iteration. */
    bool (*resumes)(struct sched *s, uint32_t *which);
};

struct iteration {
    const struct iteration_rules *rules;
    struct batch batch; /* under construction */
    struct iteration_pass running;
    struct iteration_pass paused[ITERATION_MAX_PAUSED]; /* the last was stopped last */
    uint32_t n_paused;
    struct preempt_spec stop; /* how a pass is asked to */
    bool loses;               /* a stopped pass is given up: KV of earlier iterations stays */
    uint8_t device;
};

/* A pass is on the device, or aside in order of its stop, or awaits its turn; and in one place. */
static inline bool iteration_ok(const struct sched *s, const struct iteration *it)
{
    const struct iteration_pass *run = &it->running;
    if (it->n_paused > ITERATION_MAX_PAUSED || run->began_ns > s->now_ns ||
        (run->pass == NULL && (run->launch != NULL || run->stopping || run->finish)) ||
        (run->launch != NULL &&
         (run->launch->pass != run->pass || run->launch->device != it->device))) {
        return false;
    }
    for (uint32_t i = 0; i < it->n_paused; i++) {
        const struct iteration_pass *p = &it->paused[i];
        if (p->pass == NULL || p->pass == run->pass || p->pass->state != PASS_STATE_READY ||
            p->launch != NULL || p->stopping || p->began_ns > p->aside_ns ||
            p->aside_ns > s->now_ns || (i > 0 && p->aside_ns < it->paused[i - 1].aside_ns)) {
            return false;
        }
    }
    return true;
}

/* device: the parameter's value. -ENODEV without it. */
int iteration_init(struct sched *s, const struct iteration_rules *rules, int64_t device);
void iteration_exit(struct sched *s);
void iteration_request_arrived(struct sched *s, const struct request *r);
void iteration_request_cancelled(struct sched *s, const struct request *r);
void iteration_launch_done(struct sched *s, const struct launch *l);
void iteration_pass_done(struct sched *s, const struct pass *p);
void iteration_schedule(struct sched *s);

/* Its requests that are over leave, the others return. */
void iteration_part(struct sched *s, const struct pass *p);

#define ITERATION_HOOKS                                                                            \
    .request_arrived = iteration_request_arrived,                                                  \
    .request_cancelled = iteration_request_cancelled, .launch_done = iteration_launch_done,        \
    .pass_done = iteration_pass_done, .schedule = iteration_schedule
