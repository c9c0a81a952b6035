#include "traces/texts.h"

#include "sim/base/datadir.h"
#include "sim/base/hash.h"
#include "sim/base/input.h"
#include "sim/base/json.h"
#include "sim/base/map.h"
#include "sim/base/suffix.h"

#define MOST_TOKENS 10000000u /* in a context or an output, as in a trace's row */

enum form { FORM_OPEN, FORM_WORDS, FORM_NUMBERS };

struct reader {
    const char *path;
    uint64_t line;
    struct err *e;
    enum form form;
    struct map words; /* words seen in the file, numbered, by hash */
    uint32_t *tokens; /* of the line; owned, until a text takes them */
    size_t n, cap;
};

/* ---- words ---- */

static bool is_letter(unsigned char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c >= 128;
}

static bool is_space(unsigned char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Bytes of the first word of a text. */
static size_t word_length(const char *text)
{
    size_t n = text[0] == ' ' && is_letter((unsigned char)text[1]) ? 1 : 0;
    if (is_letter((unsigned char)text[n])) {
        while (is_letter((unsigned char)text[n])) {
            n++;
        }
        return n;
    }
    while (is_space((unsigned char)text[n])) {
        n++;
    }
    return n > 0 ? n : 1;
}

/* ---- a line ---- */

static void refuse(const struct reader *r, const char *key, const char *what)
{
    (void)err_add(r->e, "%s:%llu: %s: %s", r->path, (unsigned long long)r->line, key, what);
}

static void token_add(struct reader *r, uint32_t token)
{
    r->tokens = xroom(r->tokens, r->n + 1, &r->cap, sizeof *r->tokens);
    r->tokens[r->n++] = token;
}

static void read_words(struct reader *r, const char *text)
{
    while (*text != '\0') {
        size_t n = word_length(text);
        OWNED char *word = xformat("%.*s", (int)n, text);
        token_add(r, (uint32_t)map_number(&r->words, hash_string(HASH_INIT, word)));
        text += n;
    }
}

static void read_numbers(struct reader *r, const char *key, const cJSON *list)
{
    for (const cJSON *c = list->child; c != NULL; c = c->next) {
        double v = cJSON_IsNumber(c) ? c->valuedouble : -1.0;
        if (!(v >= 0.0 && v <= UINT32_MAX) || v != floor(v)) {
            refuse(r, key, "must hold whole numbers from 0 to 4294967295");
            return;
        }
        token_add(r, (uint32_t)v);
    }
}

/* Adds the tokens of a member to the line's. Returns their number. */
static uint32_t member_read(struct reader *r, const cJSON *o, const char *key)
{
    const cJSON *c = json_member(o, key);
    enum form form = cJSON_IsString(c) ? FORM_WORDS : cJSON_IsArray(c) ? FORM_NUMBERS : FORM_OPEN;
    size_t before = r->n;
    if (form == FORM_OPEN) {
        refuse(r, key, "must be a text, or a list of token numbers");
        return 0;
    }
    if (r->form != FORM_OPEN && form != r->form) {
        refuse(r, key,
               form == FORM_WORDS ? "is a text in a file of token numbers"
                                  : "has token numbers in a file of texts");
        return 0;
    }
    r->form = form;
    if (form == FORM_WORDS) {
        read_words(r, c->valuestring);
    } else {
        read_numbers(r, key, c);
    }
    size_t n = r->n - before;
    if (n == 0 || n > MOST_TOKENS) {
        refuse(r, key, n == 0 ? "has no token" : "has over 10000000 tokens");
    }
    return (uint32_t)n;
}

/* ---- matches ---- */

/* A token of an answer, and the number of tokens from it to the end. */
struct answer_place {
    const uint32_t *token;
    uint32_t left;
};

/* The answers that a user has received, one after the other. */
struct answers {
    struct suffix *seen; /* owned */
    struct answer_place *place;
    size_t n, cap;
};

/* Adds an answer. `apart`, which is no token, separates it from the next. */
static void answers_add(struct answers *a, const struct trace_text *t, uint32_t apart)
{
    const uint32_t *answer = t->tokens + t->n_context;
    a->place = xroom(a->place, a->n + t->n_output + 1, &a->cap, sizeof *a->place);
    for (uint32_t i = 0; i <= t->n_output; i++) {
        suffix_add(a->seen, i < t->n_output ? answer[i] : apart);
        a->place[a->n++] = (struct answer_place){answer + i, t->n_output - i};
    }
}

/* Number of tokens of the draft that the output repeats from position p. */
static uint32_t right_tokens(const struct trace_text *t, const struct trace_match *m, uint32_t p)
{
    uint32_t end = t->n_context + t->n_output;
    uint32_t n = 0;
    while (n < TRACE_MOST_RIGHT && n < m->left && p + n < end && m->draft[n] == t->tokens[p + n]) {
        n++;
    }
    return n;
}

/* The match for position p: in the text itself, or in an earlier answer if that is longer. */
static struct trace_match match_at(const struct trace_text *t, uint32_t p, struct suffix_match own,
                                   const struct answers *a, struct suffix_match earlier)
{
    struct trace_match m = {0};
    if (earlier.length > own.length && a->place[earlier.at].left > 0) {
        m = (struct trace_match){a->place[earlier.at].token, a->place[earlier.at].left,
                                 earlier.length, 0};
    } else if (own.length > 0) {
        m = (struct trace_match){t->tokens + own.at, p - own.at, own.length, 0};
    }
    m.right = right_tokens(t, &m, p);
    return m;
}

/* Finds the matches for each output position, using only the tokens before it. a: answers before
 * this request, or NULL. */
static void find_matches(struct trace_text *t, const struct answers *a)
{
    static const uint32_t most[TRACE_DRAFTERS] = {TRACE_LOOKUP_TOKENS, UINT32_MAX, UINT32_MAX};
    const int n_drafters = t->calibration != NULL ? TRACE_DRAFTERS : TRACE_CALIBRATED;
    struct trace_match *m[TRACE_DRAFTERS];
    struct suffix *seen = suffix_new();
    struct suffix_cursor end = {0};
    for (int d = 0; d < n_drafters; d++) {
        m[d] = xcalloc(t->n_output, sizeof *m[d]);
        t->matches[d] = m[d];
    }
    for (uint32_t p = 0; p + 1 < t->n_context + t->n_output; p++) {
        suffix_add(seen, t->tokens[p]);
        if (a != NULL) {
            suffix_follow(a->seen, &end, t->tokens[p]);
        }
        for (int d = 0; d < n_drafters && p + 1 >= t->n_context; d++) {
            struct suffix_match earlier = {0};
            if (a != NULL) {
                earlier = suffix_followed(a->seen, end, most[d]);
            }
            struct trace_match *at = &m[d][p + 1 - t->n_context];
            *at = match_at(t, p + 1, suffix_longest(seen, most[d]), a, earlier);
            if (d == TRACE_CALIBRATED && calibration_drafts(t->calibration, t->tokens[p], at)) {
                at->right = right_tokens(t, at, p + 1);
            }
        }
    }
    suffix_free(seen);
}

/* ---- a file ---- */

static void line_read(struct reader *r, const char *text, struct trace_texts *out)
{
    OWNED char *where = xformat("%s:%llu", r->path, (unsigned long long)r->line);
    size_t before = r->e->n;
    SCOPED(json_drop) cJSON *o = json_read_text(text, where, r->e);
    if (o != NULL && !cJSON_IsObject(o)) {
        refuse(r, "line", "must be an object with context and output");
    }
    struct trace_text t = {0};
    r->n = 0;
    if (cJSON_IsObject(o)) {
        t.n_context = member_read(r, o, "context");
        t.n_output = member_read(r, o, "output");
    }
    struct calibration *next = NULL;
    if (r->e->n == before && json_member(o, "next") != NULL) {
        next = r->form == FORM_NUMBERS
                   ? calibration_read(json_member(o, "next"), r->tokens, t.n_context, t.n_output,
                                      where, &out->hash, r->e)
                   : NULL;
        if (r->form != FORM_NUMBERS) {
            refuse(r, "next", "is of token numbers, and this file has texts");
        }
    }
    if (r->e->n > before) {
        calibration_free(next);
        return;
    }
    t.calibration = next;
    for (size_t i = 0; i < r->n; i++) {
        out->hash = hash_u64(out->hash, r->tokens[i]);
    }
    out->hash = hash_u64(out->hash, ((uint64_t)t.n_context << 32) | t.n_output);
    t.tokens = r->tokens; /* the text owns them now */
    r->tokens = NULL;
    r->cap = 0;
    find_matches(&t, NULL);
    LIST_ADD(out->texts, out->n, t);
}

static bool is_blank(const char *text)
{
    while (is_space((unsigned char)*text)) {
        text++;
    }
    return *text == '\0';
}

struct trace_texts *texts_read(const char *name, struct err *e)
{
    const char *path = datadir_named(name, "traces/texts", ".jsonl");
    size_t before = e->n;
    SCOPED(input_drop) FILE *in = input_open_any(path, NULL, e);
    struct reader r = {.path = path, .e = e};
    struct input_line line = {0};
    struct trace_texts *out = xcalloc(1, sizeof *out);
    *out = (struct trace_texts){.holders = 1, .hash = HASH_INIT};
    while (in != NULL && e->n < ERR_MAX_LINES && input_next(in, path, &line, e) == 1) {
        r.line = line.number;
        if (!is_blank(line.text)) {
            line_read(&r, line.text, out);
        }
    }
    if (e->n == before && out->n == 0) {
        (void)err_add(e, "%s: no texts", path);
    }
    free(line.text);
    free(r.tokens);
    map_fini(&r.words);
    if (e->n > before) {
        texts_release(out);
        return NULL;
    }
    return out;
}

/* A number that is not a token of any text. */
static uint32_t number_unused(const struct trace_texts *t)
{
    uint32_t number = UINT32_MAX;
    bool used = true;
    while (used) {
        used = false;
        for (uint32_t i = 0; i < t->n && !used; i++) {
            const struct trace_text *x = &t->texts[i];
            for (uint32_t k = 0; k < x->n_context + x->n_output && !used; k++) {
                used = x->tokens[k] == number;
            }
        }
        number -= used;
    }
    return number;
}

struct trace_texts *texts_after_answers(struct trace_texts *base, const uint32_t *number,
                                        uint32_t n, uint32_t users)
{
    struct trace_texts *out = xcalloc(1, sizeof *out);
    *out = (struct trace_texts){
        .texts = xcalloc(n, sizeof *out->texts), .n = n, .holders = 1, .tokens_of = base};
    base->holders++;
    out->hash = hash_u64(hash_u64(base->hash, n), users);
    uint32_t apart = number_unused(base);
    for (uint32_t user = 0; user < users && user < n; user++) {
        struct answers a = {.seen = suffix_new()};
        for (uint64_t i = user; i < n; i += users) {
            const struct trace_text *t = &base->texts[number[i]];
            out->texts[i] = (struct trace_text){.tokens = t->tokens,
                                                .calibration = t->calibration,
                                                .n_context = t->n_context,
                                                .n_output = t->n_output};
            find_matches(&out->texts[i], &a);
            answers_add(&a, t, apart);
        }
        suffix_free(a.seen);
        free(a.place);
    }
    return out;
}

void texts_release(struct trace_texts *t)
{
    if (t == NULL || --t->holders > 0) {
        return;
    }
    for (uint32_t i = 0; i < t->n; i++) {
        if (t->tokens_of == NULL) {
            free((void *)t->texts[i].tokens);
            calibration_free((struct calibration *)t->texts[i].calibration);
        }
        for (int d = 0; d < TRACE_DRAFTERS; d++) {
            free((void *)t->texts[i].matches[d]);
        }
    }
    texts_release(t->tokens_of);
    free(t->texts);
    free(t);
}
