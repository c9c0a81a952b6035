/* A workload in memory: the requests that arrive, including what is hidden from policies.
 *
 * First turns come first, sorted by (arrival, row); `next` links the later turns of a session. In a
 * request graph the rows without parents come first. Only the core reads this; a policy sees struct
 * request.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TRACE_NO_ROW UINT32_MAX
#define TRACE_LAST_NS 1000000000000000000LL /* 31 years: arrival plus all gaps of a session */

struct trace_row {
    int64_t arrival_ns; /* first turn: instant; later turn or row with parents: gap */
    uint32_t request_id;
    uint32_t session_id;
    uint32_t input_tokens;
    uint32_t output_tokens; /* >= 1 */
    uint32_t prefix_tokens; /* prompt tokens that KV of the session's previous turn can serve; with
                               trace_graph.source: that are from that stream */
    uint32_t max_output_tokens; /* >= output_tokens */
    uint32_t next;              /* row of the session's next turn, or TRACE_NO_ROW */
    uint16_t turn;              /* from 0 */
    uint8_t cls;                /* enum request_class */
    bool after_tool;            /* the gap is a tool call, not a user's pause */
};

/* Optional columns, in an array parallel to the rows when any row uses one. Durations count from
 * the request's arrival; TIME_NEVER_NS where absent. */
struct trace_extra {
    int64_t ttft_slo_ns, tbt_slo_ns, deadline_ns, cancel_ns;
    int64_t until_ns; /* an instant; the session ends before a later turn due at or after it */
    uint32_t client_id;
    uint32_t prefix_group; /* in a request graph: group whose text begins the prompt; 0: none */
    int32_t priority;
    uint32_t text; /* index + 1 in trace.texts; 0: its tokens are unknown */
};

/* Drafters. Each finds where the text's last tokens occurred before, and drafts what followed. */
enum trace_drafter {
    TRACE_LOOKUP,     /* matches at most TRACE_LOOKUP_TOKENS tokens (prompt lookup, Saxena 2023) */
    TRACE_SUFFIX,     /* matches as many tokens as possible (suffix automaton, SAM decoding) */
    TRACE_CALIBRATED, /* TRACE_SUFFIX, else what the model expects next (sd.npu 3.3) */
    TRACE_DRAFTERS
};
/* The match before an output token: the longest suffix of the text so far that occurred earlier, in
 * the text or in an earlier answer. */
struct trace_match {
    const uint32_t *draft; /* tokens after its first occurrence; NULL: no match, so no draft */
    uint32_t left;         /* number of these, up to the end of the text so far or of the answer */
    uint32_t length;       /* tokens that match */
    uint32_t right; /* leading tokens of draft that are right, at most TRACE_MOST_RIGHT; hidden */
};
#define TRACE_MOST_RIGHT 255 /* no draft is longer */
/* Tokens of a request. Equal numbers are equal tokens. */
struct trace_text {
    const uint32_t *tokens; /* n_context of the prompt, then n_output of the answer */
    /* One match for each output token. NULL for TRACE_CALIBRATED without `calibration`. */
    const struct trace_match *matches[TRACE_DRAFTERS];
    const struct calibration *calibration; /* owned by the file's texts; or NULL */
    uint32_t n_context, n_output;          /* both >= 1 */
};
/* Texts of a file, shared by all traces made from it. */
struct trace_texts {
    struct trace_text *texts;
    uint32_t n;
    uint32_t holders; /* reference count */
    uint64_t hash;
    struct trace_texts *tokens_of; /* reference to the owner of the tokens; NULL: itself */
};

/* A request graph: a row may start after several others (a join), and several may start after one
 * (a fork). A row with parents arrives at max over parents (end + gap of the edge) + arrival_ns.
 * The previous turn of its session is one of the parents. A job is a connected component, where
 * edges to rows with starts_job do not connect. A parent that is shed or cancelled has ended. */
struct trace_edge {
    uint32_t row; /* the child */
    int64_t gap_ns;
};
/* A model that rows name. A run binds it to one of its models (experiments/run/models.h). */
struct trace_model {
    const char *name;
    const char *where; /* file and line of its first use, for errors */
    uint8_t is;        /* index in the run's models; 0: the default one */
};
struct trace_graph {
    uint32_t *first; /* owned, n + 1: children of row i are edges[first[i] .. first[i + 1]) */
    struct trace_edge *edges; /* owned */
    uint32_t *n_parents;      /* owned, n */
    uint32_t *job;            /* owned, n: job number, from 0 in the order of first rows */
    uint32_t *ends_with;      /* owned, n: the row whose end cancels this one, or TRACE_NO_ROW */
    bool *background;         /* owned, n: nobody waits for it; its job may complete without it */
    bool *starts_job;         /* owned, n: its parents belong to an earlier job of its client */
    uint32_t n_jobs;
    /* Content of prompts: a prompt's first prefix_tokens tokens are the first ones of a stream, and
     * the rest are unique. Stream i < n is the prompt of row i followed by its answer. Stream n + g
     * is the shared text of group g. No row is its own source, directly or indirectly. */
    uint32_t *source; /* owned, n: the stream of row i, or TRACE_NO_ROW. NULL: not stated */
    uint32_t n_groups;
    /* Row i uses models[model[i] - 1]; 0: the default model. All turns of a session use the same
     * model. */
    uint32_t *model;            /* owned, n; NULL: no row names one */
    struct trace_model *models; /* owned */
    uint32_t n_models;
};

/* The run's model of a row. */
static inline uint8_t trace_graph_model(const struct trace_graph *g, uint32_t row)
{
    return g != NULL && g->model != NULL && g->model[row] > 0 ? g->models[g->model[row] - 1].is : 0;
}

#define MACHINE_SETS_MEMORY 1u
#define MACHINE_SETS_POWER_LIMIT 2u
#define MACHINE_SETS_FRAMES 4u
#define MACHINE_SETS_SOURCE 8u
#define MACHINE_SETS_BATTERY 16u
#define MACHINE_SETS_WINDOW 32u

/* An event of the machine: the members that it sets hold from then on. */
struct machine_event {
    int64_t at_ns;
    int64_t every_ns, until_ns; /* period, and its last instant; every_ns 0: once */
    uint32_t sets;              /* MACHINE_SETS_ bits */
    double memory_bytes;        /* memory that other programs hold */
    double power_limit_watts;   /* of the package; 0: none */
    double frames_per_s;        /* frames that the screen draws; 0: none */
    double battery_j;           /* charge */
    double battery_full_j;      /* >= battery_j */
    bool on_battery, background_window;
};

struct trace {
    struct machine_event *machine; /* owned; n_machine of them, in no order of time */
    uint32_t n_machine;
    struct trace_graph *graph;  /* owned; NULL: only chains of turns */
    struct trace_row *rows;     /* owned; first turns first, in arrival order. NULL: packed */
    struct trace_extra *extras; /* owned; NULL or n entries */
    struct trace_texts *texts;  /* reference; NULL: only lengths are known */
    size_t n;
    size_t n_first; /* first turns: rows[0 .. n_first) */
    /* First turns, or none, were generated at a rate in [0, made_ns). 0: they were not, as in
     * recordings, closed loops and traces of a given number of requests. */
    int64_t made_ns;
    uint64_t hash; /* of all rows: part of every fingerprint */
    /* Packed form: n requests equal to this one, each in its own session, except that arrivals
     * differ and ids are indices. It takes a fifth of the memory, for millions of requests. */
    struct trace_row like;
    int64_t *arrivals_ns; /* owned; NULL if rows are given */
};

/* A row of any trace, packed or not. To get an array of all rows, see traces/traces.h. */
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

/* The tokens of a request; NULL: unknown. */
static inline const struct trace_text *trace_text_at(const struct trace *t, uint32_t row)
{
    uint32_t text = t->texts != NULL && t->extras != NULL ? t->extras[row].text : 0;
    return text > 0 ? &t->texts->texts[text - 1] : NULL;
}

void trace_fini(struct trace *t);
