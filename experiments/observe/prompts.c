#include "experiments/observe/prompts.h"

#include "sim/base/base.h"
#include "sim/base/rng.h"

#define GROUP_ID 0x80000000u /* of the first group; above the ids of usual traces */
#define WORD_BYTES 2

struct prompt {
    char *text;         /* owned; NULL: not sent */
    struct text answer; /* received so far */
    uint32_t words;     /* of the text; an answer in it counts words_of its tokens */
    uint32_t answer_tokens;
};

void prompts_init(struct prompts *p, const struct trace *t)
{
    *p = (struct prompts){.t = t, .per_word = 1.0};
    p->sent = xkept(xcalloc(t->n + 1, sizeof *p->sent));
    p->last_turn = xkept(xmalloc((t->n + 1) * sizeof *p->last_turn));
    for (size_t i = 0; i < t->n; i++) {
        p->last_turn[i] = TRACE_NO_ROW;
    }
    for (size_t i = 0; i < t->n; i++) {
        if (t->rows[i].next != TRACE_NO_ROW) {
            p->last_turn[t->rows[i].next] = (uint32_t)i;
        }
    }
}

/* Words of one letter: each is a token in usual vocabularies, and up to four in others. */
char *prompts_words(uint32_t words, uint32_t id)
{
    static const char usual[] = "aioeuyst";
    char *text = xmalloc(WORD_BYTES * (size_t)words + 1);
    for (uint32_t i = 0; i < words; i++) {
        text[WORD_BYTES * i] = usual[rng_mix64(((uint64_t)id << 32) + i) % 8];
        text[WORD_BYTES * i + 1] = ' ';
    }
    text[WORD_BYTES * (size_t)words] = '\0';
    return text;
}

static uint32_t words_of(const struct prompts *p, double tokens)
{
    double words = round(tokens / p->per_word);
    return words > 0.0 ? (uint32_t)words : 0;
}

/* The row or group whose text begins a row's prompt, or TRACE_NO_ROW. */
static uint32_t source_of(const struct prompts *p, uint32_t row)
{
    const struct trace_graph *g = p->t->graph;
    if (p->t->rows[row].prefix_tokens == 0) {
        return TRACE_NO_ROW;
    }
    return g != NULL && g->source != NULL ? g->source[row] : p->last_turn[row];
}

/* Bytes of a share of a text, down to a whole character of UTF-8. */
static size_t cut(const char *text, double share)
{
    size_t n = (size_t)(fmin(1.0, share) * (double)strlen(text));
    while (n > 0 && ((unsigned char)text[n] & 0xC0) == 0x80) {
        n--;
    }
    return n;
}

/* Adds at most that many words of a row (stream < n) or group. Returns how many it added. */
static uint32_t add_stream(const struct prompts *p, uint32_t stream, uint32_t words,
                           struct text *to)
{
    if (stream >= p->t->n) {
        OWNED char *shared = prompts_words(words, GROUP_ID + stream - (uint32_t)p->t->n);
        text_add(to, shared, strlen(shared));
        return words;
    }
    const struct prompt *s = &p->sent[stream];
    if (s->text == NULL) { /* not sent */
        return 0;
    }
    if (words < s->words) {
        text_add(to, s->text, cut(s->text, (double)words / s->words));
        return words;
    }
    uint32_t left = words - s->words;
    uint32_t answered = words_of(p, s->answer_tokens);
    text_add(to, s->text, strlen(s->text));
    if (s->answer.n > 0 && answered > 0) {
        OWNED char *answer = xformat("%.*s", (int)s->answer.n, s->answer.p);
        text_add(to, answer, cut(answer, (double)left / answered));
    }
    return s->words + (left < answered ? left : answered);
}

const char *prompts_text(struct prompts *p, uint32_t row, uint32_t *tokens)
{
    const struct trace_row *t = &p->t->rows[row];
    struct prompt *s = &p->sent[row];
    struct text text = {0};
    uint32_t all = words_of(p, t->input_tokens - p->fixed);
    uint32_t stream = source_of(p, row);
    all = all > 0 ? all : 1;
    if (stream != TRACE_NO_ROW) {
        uint32_t prefix = words_of(p, t->prefix_tokens - p->fixed);
        s->words = add_stream(p, stream, prefix < all ? prefix : all, &text);
    }
    if (s->words < all) {
        OWNED char *own = prompts_words(all - s->words, t->request_id);
        text_add(&text, own, strlen(own));
        s->words = all;
    }
    s->text = text_end(&text);
    *tokens = (uint32_t)round(p->fixed + p->per_word * s->words);
    return s->text;
}

void prompts_answer(struct prompts *p, uint32_t row, const char *text)
{
    text_add(&p->sent[row].answer, text, strlen(text));
    p->sent[row].answer_tokens++;
}

void prompts_answered(struct prompts *p, uint32_t row, double tokens_per_piece)
{
    struct prompt *s = &p->sent[row];
    s->answer_tokens = (uint32_t)round(s->answer_tokens * tokens_per_piece);
}
