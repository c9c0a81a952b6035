/* A trace replayed against a server that speaks OpenAI's completions with streaming: when the first
 * and the last token of each request came, and how many. */
#pragma once

#include "sim/api/trace.h"
#include "sim/base/base.h"

enum observe_status {
    OBSERVE_OK,        /* answered, with at least one token, to the end of the stream */
    OBSERVE_REFUSED,   /* no connection */
    OBSERVE_HTTP,      /* answered with another status than 200 */
    OBSERVE_TIMEOUT,   /* not through in time */
    OBSERVE_BROKEN,    /* the stream ended before its end, or with an error in it */
    OBSERVE_EMPTY,     /* a whole stream without a token */
    OBSERVE_CANCELLED, /* by its user, after the trace's cancel_s */
    OBSERVE_UNSENT,    /* due after the trace's until_s, or after one that was */
    OBSERVE_STATUS_COUNT
};
extern const char *const observe_status_names[OBSERVE_STATUS_COUNT]; /* "ok", "refused", ... */

/* Source of a prompt's token count. */
enum observe_count {
    OBSERVE_COUNT_UNKNOWN, /* nobody: input_tokens is the trace's number */
    OBSERVE_COUNT_SERVER,  /* the server, in the stream of this request */
    OBSERVE_COUNT_PROBE,   /* the server, for two prompts before the replay: a line through both */
    OBSERVE_COUNT_COUNT
};
extern const char *const observe_count_names[OBSERVE_COUNT_COUNT]; /* "unknown", ... */

struct observe_options {
    const char *url;   /* up to and including "/v1" */
    const char *model; /* its name at the server */
    double timeout_s;  /* of one request */
    double scale;      /* arrivals times this; > 0 */
    bool chat;         /* chat/completions instead of completions */
    /* Called each second or two of the replay. NULL: nothing. */
    void (*each_second)(void *ctx);
    void *ctx;
};

/* One request; instants in seconds from the first arrival. */
struct observe_row {
    enum observe_status status;
    int http;                          /* status line, 0: none */
    double arrival_s, first_s, last_s; /* first, last: NaN without a token */
    uint32_t input_tokens;             /* as the server counts, else as asked */
    enum observe_count count;          /* of input_tokens */
    uint32_t output_tokens;            /* as the server counts, else pieces of text; 0: no text */
};

/* Asks the server first, without streaming, how many tokens two prompts have: by a completion's
 * usage, else by its tokenizer. Where it answers, prompts are as long for the server as the trace
 * says (at least a word). Prompts begin as the trace says (prompts.h), so the server's caches find
 * what the trace's would.
 *
 * Then sends every request at its time; a later turn its gap after the response before it, and a
 * request of a graph after the last of its parents. Users cancel when the trace says so, and
 * sessions end at its until_s, which is scaled. A trace in which requests cancel others is not
 * replayed. rows: one per row of the trace. 0, or -EINVAL with an error: libcurl does not work, or
 * nobody is at the address when the replay would begin. A server that refuses, breaks or is silent
 * later is rows, not an error. */
int observe_run(const struct observe_options *o, const struct trace *t, struct observe_row *rows,
                struct err *e);

/* The file that `validate --run` reads (its rows are those with status ok), with columns of the
 * trace's ids and classes. It has no rows of what was not sent. */
void observe_write(const struct observe_options *o, const struct trace *t,
                   const struct observe_row *rows, FILE *out);
