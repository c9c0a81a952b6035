/* A workload in memory: what arrives, in order, with everything hidden from policies.
 *
 * Rows are sorted: first turns by (arrival, row), and every session's turns are linked by `next`.
 * In a request graph the rows without parents come first.
 * Only the core reads this; a policy sees struct request.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TRACE_NO_ROW UINT32_MAX
#define TRACE_LAST_NS 1000000000000000000LL /* 31 years: arrival and gaps of a session together */

struct trace_row {
    int64_t arrival_ns; /* first turn: instant; later turn, or row with parents: gap after them */
    uint32_t request_id;
    uint32_t session_id;
    uint32_t input_tokens;
    uint32_t output_tokens;     /* >= 1 */
    uint32_t prefix_tokens;     /* prompt tokens a cache of the session's last request can serve;
                                 * of a trace with `source`: that it begins with (below) */
    uint32_t max_output_tokens; /* >= output_tokens */
    uint32_t next;              /* row of the session's next turn, or TRACE_NO_ROW */
    uint16_t turn;              /* from 0 */
    uint8_t cls;                /* enum request_class */
    bool after_tool;            /* the gap is a tool call, not a person */
};

/* Optional columns, in an array parallel to the rows when any row uses one. Durations count from
 * the request's arrival; TIME_NEVER_NS where absent. */
struct trace_extra {
    int64_t ttft_slo_ns, tbt_slo_ns, deadline_ns, cancel_ns;
    int64_t
        until_ns; /* an instant: a later turn due then or after never arrives, its session ends */
    uint32_t client_id;
    uint32_t
        prefix_group; /* in a request graph: whose shared text the prompt begins with; 0 none */
    int32_t priority;
    uint32_t text; /* of the trace's texts, from 1; 0: its tokens are not known */
};

/* Drafters that look up what followed when the text last ended so. */
enum trace_drafter {
    TRACE_LOOKUP,     /* at most TRACE_LOOKUP_TOKENS tokens match (prompt lookup, Saxena 2023) */
    TRACE_SUFFIX,     /* as many as possible match (suffix automaton, SAM decoding) */
    TRACE_CALIBRATED, /* the same, or else what the model expects after such a token (sd.npu 3.3) */
    TRACE_DRAFTERS
};
/* Before an output token: the longest end of the text so far that has occurred before, in the text
 * or in an earlier answer. */
struct trace_match {
    const uint32_t *draft; /* what followed its first occurrence; NULL: none, so nothing to draft */
    uint32_t left;         /* tokens that did: up to the end of the text so far, or of the answer */
    uint32_t length;       /* of the match */
    uint32_t right;        /* tokens of it that the output has, up to TRACE_MOST_RIGHT: hidden */
};
#define TRACE_MOST_RIGHT 255 /* no draft is longer */
/* Tokens of a request. Equal numbers are equal tokens. */
struct trace_text {
    const uint32_t *tokens; /* n_context of the prompt, then n_output of the answer */
    /* Before each output token. Those of TRACE_CALIBRATED are NULL where nobody knows what the
     * model expects. */
    const struct trace_match *matches[TRACE_DRAFTERS];
    const struct calibration *calibration; /* its owner is the text of the file; or NULL */
    uint32_t n_context, n_output;          /* both >= 1 */
};
/* Texts of a file, shared by the traces that have requests of it. */
struct trace_texts {
    struct trace_text *texts;
    uint32_t n;
    uint32_t holders; /* the last one frees it */
    uint64_t hash;
    struct trace_texts *tokens_of; /* held: who owns the tokens; NULL: they are its own */
};

/* A request graph: a row may start after several others (a join), and several may start after one
 * (a fork). A row with parents arrives at max over parents (end + gap of the edge) + arrival_ns.
 * The previous turn of its session is one of the parents. A job is all that hangs together, up to
 * rows that start another one. A parent that is shed or cancelled has ended too. */
struct trace_edge {
    uint32_t row; /* of the child */
    int64_t gap_ns;
};
/* A model that rows name. A run binds it to one of its own (experiments/run/models.h). */
struct trace_model {
    const char *name;
    const char *where; /* the place that named it first, for errors */
    uint8_t is;        /* of the run's models; 0: the default one */
};
struct trace_graph {
    uint32_t *first; /* owned, n + 1: children of row i are edges[first[i] .. first[i + 1]) */
    struct trace_edge *edges; /* owned */
    uint32_t *n_parents;      /* owned, n */
    uint32_t *job;            /* owned, n: from 0, by the first row of each */
    uint32_t *ends_with; /* owned, n: the row that cancels this one when it ends; TRACE_NO_ROW */
    bool *background;    /* owned, n: nobody waits for it; no part of its job's completion */
    bool *starts_job;    /* owned, n: its parents belong to an earlier job of its client */
    uint32_t n_jobs;
    /* Content of prompts: a prompt's first prefix_tokens tokens are those of a stream, and the rest
     * is its own. Stream i < n is the prompt of row i and then its answer. Stream n + g is the
     * shared text of group g. No stream begins with itself. */
    uint32_t *source; /* owned, n: the stream of row i, TRACE_NO_ROW: none. NULL: not stated */
    uint32_t n_groups;
    /* Models: that of row i is models[model[i] - 1]; 0: the default one. All turns of a session
     * have the same. */
    uint32_t *model;            /* owned, n; NULL: no row names one */
    struct trace_model *models; /* owned */
    uint32_t n_models;
};

/* The run's model of a row. */
static inline uint8_t trace_graph_model(const struct trace_graph *g, uint32_t row)
{
    return g != NULL && g->model != NULL && g->model[row] > 0 ? g->models[g->model[row] - 1].is : 0;
}

/* Members that an event of the machine sets. */
#define MACHINE_SETS_MEMORY 1u
#define MACHINE_SETS_POWER_LIMIT 2u
#define MACHINE_SETS_FRAMES 4u
#define MACHINE_SETS_SOURCE 8u
#define MACHINE_SETS_BATTERY 16u
#define MACHINE_SETS_WINDOW 32u

/* An event of the machine: the members that it sets hold from then on. */
struct machine_event {
    int64_t at_ns;
    int64_t every_ns, until_ns; /* again so often, up to that instant; every_ns 0: once */
    uint32_t sets;              /* MACHINE_SETS_ bits */
    double memory_bytes;        /* that other programs hold */
    double power_limit_watts;   /* of the package; 0: none */
    double frames_per_s;        /* that the screen draws; 0: none */
    double battery_j;           /* charge */
    double battery_full_j;      /* >= battery_j */
    bool on_battery, background_window;
};

struct trace {
    struct machine_event *machine; /* owned; n_machine of them, in no order of time */
    uint32_t n_machine;
    struct trace_graph *graph;  /* owned; NULL: chains of turns alone */
    struct trace_row *rows;     /* owned; first turns first, in arrival order. NULL: packed */
    struct trace_extra *extras; /* owned; NULL or n entries */
    struct trace_texts *texts;  /* held; NULL: lengths alone are known */
    size_t n;
    size_t n_first; /* first turns: rows[0 .. n_first) */
    /* First turns were made at a rate, in [0, made_ns), of which they need not fill all. 0: not so,
     * as in recordings, closed loops and a number of requests. */
    int64_t made_ns;
    uint64_t hash; /* of all rows: part of every fingerprint */
    /* Packed: n requests like this one, each a session of its own; their arrivals differ, and ids
     * are places. A fifth of the memory, for millions of requests. */
    struct trace_row like;
    int64_t *arrivals_ns; /* owned; NULL where there are rows */
};

/* A row of any trace. A simulation reads rows through this; others may ask for all rows
 * (traces/traces.h). */
static inline struct trace_row trace_row_at(const struct trace *t, uint32_t row)
{
    if (t->rows != NULL) {
        return t->rows[row];
    }
    struct trace_row r = t->like;
    r.arrival_ns = t->arrivals_ns[row];
    r.request_id = row;
    r.session_id = row;
    return r;
}

/* The tokens of a request; NULL: only how many they are. */
static inline const struct trace_text *trace_text_at(const struct trace *t, uint32_t row)
{
    uint32_t text = t->texts != NULL && t->extras != NULL ? t->extras[row].text : 0;
    return text > 0 ? &t->texts->texts[text - 1] : NULL;
}

void trace_fini(struct trace *t);
