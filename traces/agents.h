/* Workloads of agents: clients that send jobs, jobs of turns, turns that start subagents.
 *
 * docs/concepts/agents.md describes the file, docs/schemas/workload.json is its schema. Every
 * number is a draw (draw.h) with a stream of its own, keyed by the names of client and subagent, by
 * job and turn. So a change of one key, or another client, leaves every other number as it was. */
#pragma once

#include "sim/api/trace.h"
#include "sim/base/json.h"
#include "traces/draw.h"

#define AGENTS_MAX_ROWS 1000000u /* requests of a workload; more is a mistake */

enum {
    AGENTS_TURNS,
    AGENTS_PROMPT,
    AGENTS_GROWTH, /* of the prompt from turn to turn, the answer included */
    AGENTS_NEW,    /* the same, besides the answer */
    AGENTS_ANSWER,
    AGENTS_GAP,
    AGENTS_START,
    AGENTS_PRIORITY,
    AGENTS_TTFT_SLO,
    AGENTS_DEADLINE,
    AGENTS_CANCEL,
    AGENTS_THINK, /* of clients: these three */
    AGENTS_EVERY,
    AGENTS_JOBS,
    AGENTS_COUNT, /* of subagents; of a client a constant */
    AGENTS_NUMBERS
};

/* A client, or a subagent. Texts belong to the tree of the file. */
struct agents_job {
    const char *name;
    const char *model;     /* NULL: of a client the default one, of a subagent its parent's */
    const char *model_key; /* where it says so: "clients[0].model" */
    struct draw v[AGENTS_NUMBERS];
    int cls; /* enum request_class; -1: as its parent's, or proactive in the background */
    bool after_tool;
    uint32_t prefix_group, shared_tokens; /* 0: no shared prompt */
    struct agents_job *subagents;         /* owned */
    uint32_t n_subagents;
    bool same_session;                                    /* of a client */
    bool background, before, with_context, ends_with_job; /* of a subagent, from here on */
    double probability;
    const cJSON *on_turns; /* numbers; NULL: every turn */
};

struct agents {
    cJSON *tree; /* owned */
    const char *path;
    double duration_s;          /* INFINITY: every client says how many jobs it has */
    struct agents_job *clients; /* owned */
    uint32_t n_clients;
    struct draw_column *columns;   /* owned */
    double factor[AGENTS_NUMBERS]; /* on what is drawn; 1 after agents_read */
};

/* Takes the tree of a file. 0 or -EINVAL, with errors that name file and key path; agents_fini is
 * needed in both cases. */
int agents_read(cJSON *tree, const char *path, struct agents *out, struct err *e);
void agents_fini(struct agents *a);

/* rate_scale divides every_s. At most max_rows requests. 0 or -EINVAL with errors. */
int agents_generate(const struct agents *a, uint64_t seed, double rate_scale, size_t max_rows,
                    struct trace *out, struct err *e);
