/* A policy of another process without the process: what messages and facts must say, and its
 * calls as lines of the protocol. Both are written again from docs/policy-protocol.md. A test adds
 * each thing that rows are about, has messages checked, and gives a policy `spoken_api` as what it
 * may call. */
#pragma once

#include "policies/external/external_impl.h"
#include "sim/base/rng.h"

enum { SPOKEN_ROW = 256, SPOKEN_MOST = 512 };

/* A thing that rows are about, and its row in the message that had it last. */
struct spoken_thing {
    char kind; /* 'r', 'p', 'l' */
    uint32_t id;
    const void *of; /* NULL: it has ended, and `now` is its last row */
    char now[SPOKEN_ROW], reported[SPOKEN_ROW];
    bool whole; /* its first row was reported */
    bool seen;  /* in the message that is being read */
};

struct spoken {
    struct external external;
    struct policy_ops hooks; /* as they are */
    struct sched *real;
    struct sched lines; /* the same run, whose calls are lines */
    struct spoken_thing things[SPOKEN_MOST];
    uint32_t n, n_passes, n_launches;
    char events[1 << 16]; /* since the last message */
    char answer[4096];
    bool nonsense; /* it was tried */
};

extern struct spoken spoken; /* large: one per process, tests run forked */

/* ---- spoken_rows.c: what messages and facts must say ---- */

struct external_run *spoken_run(const struct sched *s);
void spoken_time(char *to, int64_t ns); /* 24 bytes */
const char *spoken_yes(bool is);
uint32_t spoken_pass_number(const struct pass *p); /* 0: it has none */
/* The row of a thing as it is now, without what is reported once. */
void spoken_row(const struct spoken_thing *t, char row[SPOKEN_ROW]);
struct spoken_thing *spoken_add(char kind, uint32_t id, const void *of);
/* Rows as they are now; a first one has what is reported once. */
void spoken_look(void);
/* The message of this name has what changed since the last one, and nothing else. */
void spoken_check_message(struct sched *s, const char *what);
void spoken_check_init(struct sched *s);

/* ---- spoken_lines.c: actions and questions as lines ---- */

extern const struct sched_api spoken_api;

uint32_t spoken_launch_number(const struct launch *l);
/* Answers of `s` are those of its calls; what is asked is drawn from `r`. */
void spoken_check_questions(struct sched *s, struct rng *r);
