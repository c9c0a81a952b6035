/* Replays a trace against a server with OpenAI's completions API and streaming. Records the
 * instants of each request's first and last token, and the number of tokens. */
#pragma once

#include "sim/api/trace.h"
#include "sim/base/base.h"

enum observe_status {
    OBSERVE_OK,        /* a complete stream with at least one token */
    OBSERVE_REFUSED,   /* no connection */
    OBSERVE_HTTP,      /* a status other than 200 */
    OBSERVE_TIMEOUT,   /* not complete in time */
    OBSERVE_BROKEN,    /* the stream was cut, or contained an error */
    OBSERVE_EMPTY,     /* a complete stream without a token */
    OBSERVE_CANCELLED, /* by its user, after the trace's cancel_s */
    OBSERVE_UNSENT,    /* due after the trace's until_s, or after an unsent request */
    OBSERVE_STATUS_COUNT
};
extern const char *const observe_status_names[OBSERVE_STATUS_COUNT]; /* "ok", "refused", ... */

/* Source of a prompt's token count. */
enum observe_count {
    OBSERVE_COUNT_UNKNOWN, /* not counted: input_tokens is the trace's number */
    OBSERVE_COUNT_SERVER,  /* by the server, in the stream of this request */
    OBSERVE_COUNT_PROBE,   /* by a line through the server's counts of two earlier prompts */
    OBSERVE_COUNT_COUNT
};
extern const char *const observe_count_names[OBSERVE_COUNT_COUNT]; /* "unknown", ... */

struct observe_options {
    const char *url;   /* up to and including "/v1" */
    const char *model; /* its name at the server */
    double timeout_s;  /* of one request */
    double scale;      /* arrivals times this; > 0 */
    bool chat;         /* chat/completions instead of completions */
    /* Called every second or two during the replay, or NULL. */
    void (*each_second)(void *ctx);
    void *ctx;
};

/* One request; instants in seconds from the first arrival. */
struct observe_row {
    enum observe_status status;
    int http;                          /* status line, 0: none */
    double arrival_s, first_s, last_s; /* first, last: NaN without a token */
    uint32_t input_tokens;             /* as counted by the server, else as requested */
    enum observe_count count;          /* of input_tokens */
    uint32_t output_tokens;            /* by the server's count, else pieces of text; 0: no text */
};

/* First asks the server, without streaming, for the token counts of two prompts: by a completion's
 * usage, else by its tokenizer. With an answer, prompts have the trace's length in the server's
 * tokens (at least a word). Prompts share prefixes as in the trace (prompts.h), so the server's
 * caches have the same hits.
 *
 * Then sends every request at its arrival time; a later turn after its gap from the previous
 * response, and a request of a graph after the last of its parents. Requests are cancelled as in
 * the trace, and sessions end at its until_s, scaled. A trace in which requests cancel others is
 * not replayed. rows: one per row of the trace. Returns 0, or -EINVAL with an error: libcurl does
 * not work, or there is no server at the start of the replay. Later failures of the server are only
 * in the rows. */
int observe_run(const struct observe_options *o, const struct trace *t, struct observe_row *rows,
                struct err *e);

/* Writes the file for `validate --run` (which uses rows with status ok), with the trace's ids and
 * classes as columns. Unsent requests have no row. */
void observe_write(const struct observe_options *o, const struct trace *t,
                   const struct observe_row *rows, FILE *out);
