/* The skeleton of iteration-level batchers on one device: one pass at a time, and the next one when
 * its tokens are out. A policy supplies the four rules in which systems differ:
 *
 *   order      where requests wait: joins, leaves, ran
 *   compose    requests of the next iteration and their tokens, as if KV had room
 *   make room  what is evicted if it has none
 *   stop       whether a running pass stops for a waiting request, what becomes of its work,
 *              and when it continues
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
    int64_t began_ns;            /* when it was formed, plus the time for which it was paused */
    int64_t aside_ns;            /* when it was paused */
    int64_t ran_ns;              /* for rules: device time of its ended launches */
    double key;                  /* for rules: its urgency */
    bool stopping;               /* a stop was requested */
    bool finish;                 /* must run to its end, because no other request can run */
};

/* All but joins, leaves and compose may be NULL. */
struct iteration_rules {
    /* order */
    void (*joins)(struct sched *s, const struct request *r);  /* a request arrived */
    void (*leaves)(struct sched *s, const struct request *r); /* a request finished or was shed */
    /* A request took part in an iteration that ran for elapsed_ns; before `leaves`. */
    void (*ran)(struct sched *s, const struct segment *seg, int64_t elapsed_ns);
    /* A request continues after an iteration, or after its pass was cancelled. */
    void (*returns)(struct sched *s, const struct request *r);

    /* compose: fills the batch; an empty batch means that there is nothing to do */
    void (*compose)(struct sched *s);
    void (*formed)(struct sched *s); /* the batch has become a pass */
    /* No pass could be formed. Returns true to compose once more. */
    bool (*again)(struct sched *s);

    /* make room: the batch lacks memory. Returns true if memory was freed or the batch made
     * smaller; so each call must do one of these. NULL: false. */
    bool (*make_room)(struct sched *s);

    /* stop */
    void (*refresh)(struct sched *s); /* called before every decision */
    /* Changes a launch, for instance its yield point. */
    void (*launch)(struct sched *s, struct launch_spec *spec);
    bool (*outranked)(struct sched *s); /* whether to stop the pass. NULL: never */
    void (*stopped)(struct sched *s, const struct launch *l); /* a launch of the pass ended */
    void (*lost)(struct sched *s, const struct request *r);   /* its pass was cancelled */
    /* Chooses the paused pass to continue, and returns whether it goes before a new iteration. */
    bool (*resumes)(struct sched *s, uint32_t *which);
};

struct iteration {
    const struct iteration_rules *rules;
    struct batch batch; /* under construction */
    struct iteration_pass running;
    struct iteration_pass paused[ITERATION_MAX_PAUSED]; /* in order of their stops */
    uint32_t n_paused;
    struct preempt_spec stop; /* how to stop a pass */
    bool loses;               /* stopped passes are cancelled; KV of earlier iterations stays */
    uint8_t device;
};

/* Each pass is running, paused or waiting to resume, and only one of these. */
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

/* device: the parameter's value. -ENODEV if the machine lacks it. */
int iteration_init(struct sched *s, const struct iteration_rules *rules, int64_t device);
void iteration_exit(struct sched *s);
void iteration_request_arrived(struct sched *s, const struct request *r);
void iteration_request_cancelled(struct sched *s, const struct request *r);
void iteration_launch_done(struct sched *s, const struct launch *l);
void iteration_pass_done(struct sched *s, const struct pass *p);
void iteration_schedule(struct sched *s);

/* Calls `leaves` for finished requests of a pass, and `returns` for the others. */
void iteration_part(struct sched *s, const struct pass *p);

#define ITERATION_HOOKS                                                                            \
    .request_arrived = iteration_request_arrived,                                                  \
    .request_cancelled = iteration_request_cancelled, .launch_done = iteration_launch_done,        \
    .pass_done = iteration_pass_done, .schedule = iteration_schedule
