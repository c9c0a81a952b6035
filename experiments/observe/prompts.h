/* Texts of a trace's prompts. Each begins with the prefix that the trace states: the text of the
 * session's last turn and its answer, that of another request, or that of a group. The rest is
 * unique, so no other prompt shares it. */
#pragma once

#include "sim/api/trace.h"

struct prompts {
    const struct trace *t;
    /* Tokens of a prompt of n words: fixed + per_word n. By the server, or one per word. */
    double fixed, per_word;
    struct prompt *sent; /* kept: by row */
    uint32_t *last_turn; /* kept: row of the session's previous turn, or TRACE_NO_ROW */
};

void prompts_init(struct prompts *p, const struct trace *t);

/* Returns words with a pattern of eight letters selected by id. The caller frees them. */
char *prompts_words(uint32_t words, uint32_t id);
/* The prompt of a row, whose parents were sent. *tokens: its computed length. Borrowed. */
const char *prompts_text(struct prompts *p, uint32_t row, uint32_t *tokens);
/* Adds a piece of a row's answer. It counts as one token until prompts_answered. */
void prompts_answer(struct prompts *p, uint32_t row, const char *text);
/* The answer is complete, with this mean number of tokens per piece. */
void prompts_answered(struct prompts *p, uint32_t row, double tokens_per_piece);
