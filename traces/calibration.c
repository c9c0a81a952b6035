#include "traces/texts.h"

#include "sim/base/base.h"
#include "sim/base/hash.h"
#include "sim/base/map.h"

#define PATH_TOKENS 40 /* the automaton's longest draft */
#define SURE_TOKENS 2  /* text matches of this length precede calibration */

/* A token of the context, and the most likely token after it. */
struct node {
    uint32_t token, best;
    double probability;
    uint32_t n_path;
    uint32_t path[PATH_TOKENS]; /* the draft after this token */
};

struct calibration {
    struct node *nodes;  /* owned */
    struct map by_token; /* owned */
};

static const struct node *find(const struct calibration *c, uint32_t token)
{
    size_t at = map_find(&c->by_token, token);
    return at != MAP_NONE ? &c->nodes[at] : NULL;
}

/* Keeps the occurrence of a token with the highest probability; of equal ones the first. */
static void node_add(struct calibration *c, const struct node *node)
{
    size_t before = c->by_token.n;
    size_t at = map_number(&c->by_token, node->token);
    if (at == before || node->probability > c->nodes[at].probability) {
        c->nodes[at] = *node;
    }
}

/* Appends the most likely tokens, until one is not in the context or repeats in the path. */
static void walk(const struct calibration *c, struct node *from)
{
    bool ends = false;
    for (const struct node *at = from; at != NULL && !ends && from->n_path < PATH_TOKENS;) {
        uint32_t token = at->best;
        ends = token == from->token;
        for (uint32_t i = 0; i < from->n_path && !ends; i++) {
            ends = from->path[i] == token;
        }
        from->path[from->n_path++] = token;
        at = find(c, token);
    }
}

/* A pair [token, probability]. */
static bool pair_read(const cJSON *pair, uint32_t *token, double *probability)
{
    const cJSON *t = cJSON_IsArray(pair) ? pair->child : NULL;
    const cJSON *p = t != NULL ? t->next : NULL;
    if (!cJSON_IsNumber(t) || !cJSON_IsNumber(p) || p->next != NULL) {
        return false;
    }
    *token = t->valuedouble >= 0.0 && t->valuedouble <= UINT32_MAX ? (uint32_t)t->valuedouble : 0;
    *probability = p->valuedouble;
    return (double)*token == t->valuedouble && *probability > 0.0 && *probability <= 1.0;
}

/* Reads the entry of node->token; its probability stays 0 if unknown. False if malformed. */
static bool entry_read(const cJSON *entry, struct node *node, uint64_t *hash)
{
    bool good = cJSON_IsArray(entry);
    double before = 1.0;
    for (const cJSON *x = good ? entry->child : NULL; x != NULL && good; x = x->next) {
        uint32_t next = 0;
        double probability = 0.0;
        good = pair_read(x, &next, &probability) && probability <= before;
        if (x == entry->child) {
            node->best = next;
            node->probability = probability;
        }
        before = probability;
        *hash = hash_u64(*hash, ((uint64_t)next << 32) ^ (uint64_t)llround(probability * 1e9));
    }
    return good;
}

struct calibration *calibration_read(const cJSON *next, const uint32_t *tokens, uint32_t n_context,
                                     uint32_t n_output, const char *where, uint64_t *hash,
                                     struct err *e)
{
    uint32_t wanted = n_context + n_output - 1;
    if (!cJSON_IsArray(next) || (uint32_t)cJSON_GetArraySize(next) != wanted) {
        return err_null(e, "%s: next: must have an entry for each of the %u tokens but the last",
                        where, wanted + 1);
    }
    struct calibration *c = xcalloc(1, sizeof *c);
    c->nodes = xcalloc(n_context, sizeof *c->nodes);
    uint32_t i = 0;
    for (const cJSON *entry = next->child; entry != NULL; entry = entry->next, i++) {
        struct node node = {.token = tokens[i]};
        if (!entry_read(entry, &node, hash)) {
            (void)err_add(e,
                          "%s: next[%u]: must be pairs [token, probability], the likeliest first",
                          where, i);
            calibration_free(c);
            return NULL;
        }
        /* A drafter does not know the answer's tokens in advance. */
        if (i < n_context && node.probability > 0.0) {
            node_add(c, &node);
        }
    }
    for (size_t k = 0; k < c->by_token.n; k++) {
        walk(c, &c->nodes[k]);
    }
    return c;
}

void calibration_free(struct calibration *c)
{
    if (c != NULL) {
        map_fini(&c->by_token);
        free(c->nodes);
        free(c);
    }
}

bool calibration_drafts(const struct calibration *c, uint32_t last, struct trace_match *m)
{
    const struct node *node = m->length < SURE_TOKENS ? find(c, last) : NULL;
    if (node != NULL) {
        *m = (struct trace_match){node->path, node->n_path, 1, 0};
    }
    return node != NULL;
}
