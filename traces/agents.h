/* Workloads of agents: clients that send jobs, jobs of turns, turns that start subagents.
 *
 * docs/concepts/agents.md describes the file, docs/schemas/workload.json is its schema. Every
 * number is a draw (draw.h) with its own stream, keyed by the names of client and subagent, by job
 * and turn. So a change of one key, or another client, changes no other number. */
#pragma once

#include "sim/api/trace.h"
#include "sim/base/json.h"
#include "traces/draw.h"

#define AGENTS_MAX_ROWS 1000000u /* requests of a workload; more is a mistake */

enum {
    AGENTS_TURNS,
    AGENTS_PROMPT,
    AGENTS_GROWTH, /* growth of the prompt per turn, with the answer */
    AGENTS_NEW,    /* the same, without the answer */
    AGENTS_ANSWER,
    AGENTS_GAP,
    AGENTS_START,
    AGENTS_PRIORITY,
    AGENTS_TTFT_SLO,
    AGENTS_DEADLINE,
    AGENTS_CANCEL,
    AGENTS_THINK, /* clients only, like the next two */
    AGENTS_EVERY,
    AGENTS_JOBS,
    AGENTS_COUNT, /* of subagents; for a client a constant */
    AGENTS_NUMBERS
};

/* A client, or a subagent. Texts belong to the tree of the file. */
struct agents_job {
    const char *name;
    const char *model;     /* NULL: the default one (client), the parent's (subagent) */
    const char *model_key; /* key path of model: "clients[0].model" */
    struct draw v[AGENTS_NUMBERS];
    int cls; /* enum request_class; -1: the parent's, or proactive in the background */
    bool after_tool;
    uint32_t prefix_group, shared_tokens; /* 0: no shared prompt */
    struct agents_job *subagents;         /* owned */
    uint32_t n_subagents;
    bool same_session;                                    /* client only */
    bool background, before, with_context, ends_with_job; /* subagent only, like all below */
    double probability;
    const cJSON *on_turns; /* numbers; NULL: every turn */
};

struct agents {
    cJSON *tree; /* owned */
    const char *path;
    double duration_s;          /* INFINITY: every client states its number of jobs */
    struct agents_job *clients; /* owned */
    uint32_t n_clients;
    struct draw_column *columns;   /* owned */
    double factor[AGENTS_NUMBERS]; /* on drawn values; 1 after agents_read */
};

/* Takes over the tree of a file. 0 or -EINVAL, with errors that name file and key path; agents_fini
 * is needed in both cases. */
int agents_read(cJSON *tree, const char *path, struct agents *out, struct err *e);
void agents_fini(struct agents *a);

/* Generates a trace of at most max_rows requests. rate_scale divides every_s. 0 or -EINVAL with
 * errors. */
int agents_generate(const struct agents *a, uint64_t seed, double rate_scale, size_t max_rows,
                    struct trace *out, struct err *e);
