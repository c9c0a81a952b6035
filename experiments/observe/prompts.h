/* Texts of a trace's prompts. Each begins as the trace says: with the text of the session's last
 * turn and its answer, with that of another request, or with what a group shares. The rest is its
 * own, and no other prompt begins so. */
#pragma once

#include "sim/api/trace.h"

struct prompts {
    const struct trace *t;
    /* Tokens of a prompt of n words: fixed + per_word n. The server's, or one a word. */
    double fixed, per_word;
    struct prompt *sent; /* kept: by row */
    uint32_t *last_turn; /* kept: row of the session's turn before; TRACE_NO_ROW */
};

void prompts_init(struct prompts *p, const struct trace *t);

/* Words in a pattern of eight letters that id chooses. The caller frees. */
char *prompts_words(uint32_t words, uint32_t id);
/* The prompt of a row, whose parents were sent. *tokens: its length by the line above. Borrowed. */
const char *prompts_text(struct prompts *p, uint32_t row, uint32_t *tokens);
/* Adds a piece of a row's answer, of one token until the answer is over. */
void prompts_answer(struct prompts *p, uint32_t row, const char *text);
/* The answer is over, and its pieces had so many tokens. */
void prompts_answered(struct prompts *p, uint32_t row, double tokens_per_piece);
