#include "policies/replay.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/hash.h"
#include "sim/base/input.h"

struct line {
    uint64_t epoch;
    char *text; /* the action and its arguments */
    int result;
};

struct replay {
    struct policy_ops ops;
    char name[64];
    struct line *lines;
    size_t n;
    uint64_t hash;
};

/* Objects by number: logs name them so, and numbers are handed out in the same order again. */
struct index {
    const void **at;
    size_t cap;
};

struct replay_state {
    size_t next;
    struct index requests, passes, launches;
};

static void index_set(struct index *x, size_t id, const void *p)
{
    if (id >= x->cap) {
        size_t cap = x->cap == 0 ? 256 : x->cap * 2;
        while (cap <= id) {
            cap *= 2;
        }
        x->at = xrealloc(x->at, cap * sizeof *x->at);
        for (size_t i = x->cap; i < cap; i++) {
            x->at[i] = NULL;
        }
        x->cap = cap;
    }
    x->at[id] = p;
}

static const void *index_get(const struct index *x, size_t id)
{
    return id < x->cap ? x->at[id] : NULL;
}

static void on_arrived(struct sched *s, const struct request *r)
{
    struct replay_state *st = s->state;
    index_set(&st->requests, r->id, r);
}

static int do_form(struct sched *s, const char *args)
{
    struct replay_state *st = s->state;
    struct pass_spec spec = {.segments = NULL};
    int fused = 0;
    int used = 0;
    if (sscanf(args, "fused=%d%n", &fused, &used) != 1) {
        return -EPROTO;
    }
    spec.fused_layers = fused != 0;
    unsigned id;
    int role;
    unsigned tokens;
    struct segment *segments = NULL; /* as many as the line has: a batch has no largest size */
    for (const char *p = args + used; sscanf(p, " %u:%d:%u%n", &id, &role, &tokens, &used) == 3;
         p += used) {
        segments = xgrow(segments, spec.n_segments, sizeof *segments);
        segments[spec.n_segments++] = (struct segment){.request = index_get(&st->requests, id),
                                                       .role = (enum segment_role)role,
                                                       .n_tokens = tokens};
    }
    spec.segments = segments;
    struct pass *pass = NULL;
    int rc = sched_pass_form(s, &spec, &pass);
    free(segments);
    if (rc == 0) {
        index_set(&st->passes, pass->id, pass);
    }
    return rc;
}

static int do_launch(struct sched *s, const char *args)
{
    struct replay_state *st = s->state;
    unsigned pass;
    unsigned device;
    unsigned graph;
    int yield;
    struct launch_spec spec = {0};
    if (sscanf(args,
               "pass=%u device=%u ops=%" SCNu32 " rows=%" SCNu32 " yield=%d chunk=%" SCNu32
               " graph=%u block=%" SCNu32 " inflight=%" SCNu32,
               &pass, &device, &spec.n_ops, &spec.rows, &yield, &spec.chunk_rows, &graph,
               &spec.graph_block, &spec.inflight) != 9) {
        return -EPROTO;
    }
    spec.pass = (struct pass *)(uintptr_t)index_get(&st->passes, pass);
    spec.device = (uint8_t)device;
    spec.yield = (enum yield_point)yield;
    spec.graph = (uint8_t)graph;
    const struct launch *l = NULL;
    int rc = sched_launch(s, &spec, &l);
    if (rc == 0) {
        index_set(&st->launches, l->id, l);
    }
    return rc;
}

static int do_resident(struct sched *s, const char *verb, const char *args)
{
    int kind;
    struct resident_key key;
    double bytes = 0.0;
    int got = sscanf(args, "%d:%" SCNu32 ":%" SCNu32 " bytes=%lf", &kind, &key.a, &key.b, &bytes);
    if (got < 3) {
        return -EPROTO;
    }
    key.kind = (enum resident_kind)kind;
    if (strcmp(verb, "compile") == 0) {
        return sched_compile(s, key);
    }
    if (strcmp(verb, "map") == 0) {
        return sched_map(s, key, bytes);
    }
    return strcmp(verb, "load") == 0 ? sched_load(s, key, bytes) : sched_resident_evict(s, key);
}

static int do_rest(struct sched *s, const char *verb, const char *args)
{
    struct replay_state *st = s->state;
    unsigned a = 0;
    unsigned from = 0;
    int to = 0;
    int now = 0;
    int discard = 0;
    int drain = 0;
    int64_t at = 0;
    struct graph_shape shape;
    if (strcmp(verb, "graph") == 0 && sscanf(args, "version=%u rows=%" SCNu32 " blocks=%" SCNu32,
                                             &a, &shape.rows, &shape.n_blocks) == 3) {
        return sched_graph(s, (uint8_t)a, shape);
    }
    if (strcmp(verb, "preempt") == 0 &&
        sscanf(args, "launch=%u now=%d discard=%d drain=%d", &a, &now, &discard, &drain) == 4) {
        struct preempt_spec how = {.now = now != 0, .discard = discard != 0, .drain = drain != 0};
        return sched_preempt(s, index_get(&st->launches, a), how);
    }
    if (strcmp(verb, "cancel") == 0 && sscanf(args, "pass=%u", &a) == 1) {
        return sched_pass_cancel(s, (struct pass *)(uintptr_t)index_get(&st->passes, a));
    }
    if (strcmp(verb, "kv") == 0 && sscanf(args, "request=%u from=%u to=%d", &a, &from, &to) == 3) {
        struct kv_part part = {.request = index_get(&st->requests, a), .from_token = from};
        return sched_kv_move(s, part, (enum kv_place)to);
    }
    if (strcmp(verb, "kv") == 0 && sscanf(args, "session=%u to=%d", &a, &to) == 2) {
        return sched_kv_move(s, kv_of_session(a), (enum kv_place)to);
    }
    if (strcmp(verb, "shed") == 0 && sscanf(args, "request=%u", &a) == 1) {
        return sched_shed(s, index_get(&st->requests, a));
    }
    if (strcmp(verb, "timer") == 0 && sscanf(args, "at=%" SCNd64, &at) == 1) {
        return sched_set_timer(s, at);
    }
    return -EPROTO;
}

static int act(struct sched *s, const struct line *line)
{
    char verb[16];
    int used = 0;
    if (sscanf(line->text, "%15s %n", verb, &used) != 1) {
        return -EPROTO;
    }
    const char *args = line->text + used;
    if (strcmp(verb, "form") == 0) {
        return do_form(s, args);
    }
    if (strcmp(verb, "launch") == 0) {
        return do_launch(s, args);
    }
    if (strcmp(verb, "compile") == 0 || strcmp(verb, "load") == 0 || strcmp(verb, "map") == 0 ||
        strcmp(verb, "drop") == 0) {
        return do_resident(s, verb, args);
    }
    return do_rest(s, verb, args);
}

static void replay_actions(struct sched *s)
{
    struct replay_state *st = s->state;
    const struct replay *r = s->context;
    /* By epoch and not by time: what a log says belongs to the call of schedule that it was decided
     * in. */
    for (; st->next < r->n && r->lines[st->next].epoch <= s->epoch; st->next++) {
        const struct line *line = &r->lines[st->next];
        /* An instant that has passed without its action is a mismatch, and so is an action that was
         * refused then and is not now. The replay goes on: the count says how far it went astray.
         */
        if (line->epoch < s->epoch || act(s, line) != line->result) {
            (void)sched_note(s, "replay_mismatch", 1);
        }
    }
}

static void replay_exit(struct sched *s)
{
    struct replay_state *st = s->state;
    if (st == NULL) {
        return;
    }
    const struct replay *r = s->context;
    /* What is left was never due: the run ended before the log did. */
    if (st->next < r->n) {
        (void)sched_note(s, "replay_mismatch", r->n - st->next);
    }
    free(st->requests.at);
    free(st->passes.at);
    free(st->launches.at);
}

/* Epoch 0 is what the policy declared in its own init. */
static int replay_init(struct sched *s)
{
    /* Counted from zero, so that a faithful replay reports the number too. */
    (void)sched_note(s, "replay_mismatch", 0);
    if (s->context == NULL) {
        return -EINVAL;
    }
    replay_actions(s);
    return 0;
}

static void nothing(struct sched *s, const struct request *r)
{
    (void)s;
    (void)r;
}

static int read_line(struct replay *r, const char *path, unsigned long number, char *text,
                     struct err *e)
{
    uint64_t epoch;
    int64_t at;
    int used = 0;
    char *equals = strrchr(text, '=');
    if (sscanf(text, "%" SCNu64 " %" SCNd64 " %n", &epoch, &at, &used) != 2 || used == 0 ||
        equals == NULL || equals == text) {
        return err_add(e, "%s:%lu: not a line of a decision log", path, number);
    }
    if (strstr(text, " in=") != NULL) {
        return 0; /* asked for in a hook, and refused: nothing came of it */
    }
    r->lines = xgrow(r->lines, r->n, sizeof *r->lines);
    struct line *line = &r->lines[r->n++];
    line->epoch = epoch;
    /* The last equals sign of a line is before the result. */
    line->result = atoi(equals + 1);
    *equals = '\0';
    line->text = xstrdup(text + used);
    return 0;
}

struct replay *replay_read(const char *path, struct err *e)
{
    FILE *in = input_open(path, e);
    if (in == NULL) {
        return NULL;
    }
    struct replay *r = xcalloc(1, sizeof *r);
    r->hash = HASH_INIT;
    struct input_line l = {0};
    unsigned flags = 0;
    int rc = 0;
    int got = 0;
    while (rc == 0 && (got = input_next(in, path, &l, e)) == 1) {
        char *text = l.text;
        text[strcspn(text, "\n")] = '\0';
        r->hash = hash_string(r->hash, text);
        if (l.number == 1) {
            rc = sscanf(text, "policy %63s flags=%u", r->name, &flags) == 2
                     ? 0
                     : err_add(e, "%s:1: must start with \"policy NAME flags=N\"", path);
        } else {
            rc = read_line(r, path, (unsigned long)l.number, text, e);
        }
    }
    free(l.text);
    (void)fclose(in);
    rc = got < 0 ? got : rc;
    if (rc == 0 && r->name[0] == '\0') {
        rc = err_add(e, "%s: empty", path);
    }
    if (rc != 0) {
        replay_free(r);
        return NULL;
    }
    /* Under the recorded policy's own name and flags: a policy that polls pays for it in energy. */
    r->ops = (struct policy_ops){.name = r->name,
                                 .summary = "replays a decision log",
                                 .contract = POLICY_CONTRACT,
                                 .flags = flags,
                                 .state_size_bytes = sizeof(struct replay_state),
                                 .init = replay_init,
                                 .exit = replay_exit,
                                 .request_arrived = on_arrived,
                                 .request_cancelled = nothing,
                                 .schedule = replay_actions};
    return r;
}

void replay_free(struct replay *r)
{
    for (size_t i = 0; r != NULL && i < r->n; i++) {
        free(r->lines[i].text);
    }
    if (r != NULL) {
        free(r->lines);
    }
    free(r);
}

uint64_t replay_hash(const struct replay *r)
{
    return r->hash;
}

const struct policy_ops *replay_policy(const struct replay *r)
{
    return &r->ops;
}
