#include "sim/base/suffix.h"

#include "sim/base/map.h"

#define NONE UINT32_MAX

/* A class of substrings that end at the same places. */
struct state {
    uint32_t length;    /* of the longest substring */
    uint32_t link;      /* class of the longest suffix that also ends elsewhere */
    uint32_t first_end; /* end of the first occurrence */
    uint32_t edges;     /* first edge of a list, or NONE */
};

struct edge {
    uint32_t number, to;
    uint32_t next; /* next edge of the same state, or NONE */
};

struct suffix {
    struct state *states; /* owned */
    struct edge *edges;   /* owned */
    size_t n_states, cap_states, n_edges, cap_edges;
    struct map places; /* owned; index of the edge of a state and a number */
    uint32_t last, n;
};

static uint32_t state_add(struct suffix *s, struct state x)
{
    s->states = xroom(s->states, s->n_states + 1, &s->cap_states, sizeof *s->states);
    s->states[s->n_states] = x;
    return (uint32_t)s->n_states++;
}

static uint64_t key_of(uint32_t from, uint32_t number)
{
    return ((uint64_t)from << 32) | number;
}

static struct edge *edge_of(const struct suffix *s, uint32_t from, uint32_t number)
{
    size_t i = map_find(&s->places, key_of(from, number));
    return i == MAP_NONE ? NULL : &s->edges[i];
}

static void edge_add(struct suffix *s, uint32_t from, uint32_t number, uint32_t to)
{
    s->edges = xroom(s->edges, s->n_edges + 1, &s->cap_edges, sizeof *s->edges);
    s->edges[s->n_edges] = (struct edge){number, to, s->states[from].edges};
    s->states[from].edges = (uint32_t)s->n_edges;
    map_put(&s->places, key_of(from, number), s->n_edges++);
}

struct suffix *suffix_new(void)
{
    struct suffix *s = xcalloc(1, sizeof *s);
    s->last = state_add(s, (struct state){.link = NONE, .edges = NONE});
    return s;
}

void suffix_free(struct suffix *s)
{
    if (s != NULL) {
        free(s->states);
        free(s->edges);
        map_fini(&s->places);
        free(s);
    }
}

/* Makes a new class of the part of class q that `from` reaches by the number. */
static uint32_t split(struct suffix *s, uint32_t from, uint32_t number, uint32_t q)
{
    uint32_t part = state_add(s, (struct state){.length = s->states[from].length + 1,
                                                .link = s->states[q].link,
                                                .first_end = s->states[q].first_end,
                                                .edges = NONE});
    for (uint32_t i = s->states[q].edges; i != NONE; i = s->edges[i].next) {
        edge_add(s, part, s->edges[i].number, s->edges[i].to);
    }
    s->states[q].link = part;
    for (uint32_t p = from; p != NONE; p = s->states[p].link) {
        struct edge *e = edge_of(s, p, number);
        if (e == NULL || e->to != q) {
            break;
        }
        e->to = part;
    }
    return part;
}

void suffix_add(struct suffix *s, uint32_t number)
{
    SIM_REQUIRE(s->n < 1u << 30, "a sequence of over 2^30 numbers");
    uint32_t all = state_add(
        s, (struct state){.length = s->n + 1, .link = 0, .first_end = s->n, .edges = NONE});
    s->n++;
    uint32_t p = s->last;
    while (p != NONE && edge_of(s, p, number) == NULL) {
        edge_add(s, p, number, all);
        p = s->states[p].link;
    }
    if (p != NONE) {
        uint32_t q = edge_of(s, p, number)->to;
        bool whole = s->states[q].length == s->states[p].length + 1;
        s->states[all].link = whole ? q : split(s, p, number, q);
    }
    s->last = all;
}

/* The first occurrence of a substring of class `at`, or of its last `most` numbers. */
static struct suffix_match match_of(const struct suffix *s, uint32_t at, uint32_t length,
                                    uint32_t most)
{
    if (at == NONE || at == 0 || most == 0) {
        return (struct suffix_match){0};
    }
    while (s->states[s->states[at].link].length >= most) {
        at = s->states[at].link;
    }
    return (struct suffix_match){length < most ? length : most, s->states[at].first_end + 1};
}

struct suffix_match suffix_longest(const struct suffix *s, uint32_t most)
{
    /* The whole sequence occurs once; its longest suffix that also ends earlier is its link. */
    uint32_t at = s->states[s->last].link;
    return match_of(s, at, at == NONE ? 0 : s->states[at].length, most);
}

void suffix_follow(const struct suffix *s, struct suffix_cursor *c, uint32_t number)
{
    const struct edge *e = edge_of(s, c->state, number);
    while (e == NULL && c->state != 0) {
        c->state = s->states[c->state].link;
        c->length = s->states[c->state].length;
        e = edge_of(s, c->state, number);
    }
    if (e != NULL) {
        c->state = e->to;
        c->length++;
    }
}

struct suffix_match suffix_followed(const struct suffix *s, struct suffix_cursor c, uint32_t most)
{
    return match_of(s, c.state, c.length, most);
}
