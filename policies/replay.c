#include "policies/replay.h"

#include "sim/base/hash.h"
#include "sim/base/input.h"
#include "sim/base/map.h"
#include "sim/record/action.h"

struct line {
    uint64_t epoch;
    char *text; /* the action and its arguments */
    int result;
};

struct replay {
    struct policy_ops ops;
    char name[64];
    char drafter[64]; /* that the recorded policy named, or empty */
    const char *drafters[2];
    struct policy_param params[2]; /* the drafter's, where it named one */
    struct line *lines;
    size_t n;
    uint64_t hash;
};

struct replay_state {
    size_t next;
    /* Objects by id, as in logs: a faithful replay gives the same ids. */
    struct map requests, passes, launches;
};

static void set(struct map *of, uint32_t id, const void *object)
{
    *(const void **)map_add(of, id) = object;
}

static const void *get(const struct map *of, uint32_t id)
{
    const void *const *object = map_record(of, id);
    return object != NULL ? *object : NULL;
}

static void on_arrived(struct sched *s, const struct request *r)
{
    struct replay_state *st = s->state;
    set(&st->requests, r->id, r);
}

static const struct request *find_request(void *of, uint32_t id)
{
    return get(of, id);
}

static int act(struct sched *s, const struct line *line)
{
    struct replay_state *st = s->state;
    struct action a;
    if (action_read(line->text, &a, find_request, &st->requests) != 0) {
        return -EPROTO;
    }
    struct action_objects o = {
        .request = get(&st->requests, a.request),
        .pass = (struct pass *)(uintptr_t)get(&st->passes, a.pass),
        .launch = get(&st->launches, a.launch),
    };
    int rc = action_do(s, &a, &o);
    if (rc == 0 && a.kind == ACTION_FORM) {
        set(&st->passes, o.pass->id, o.pass);
    }
    if (rc == 0 && a.kind == ACTION_LAUNCH) {
        set(&st->launches, o.launch->id, o.launch);
    }
    free((void *)(uintptr_t)a.segments);
    return rc;
}

static void replay_actions(struct sched *s)
{
    struct replay_state *st = s->state;
    const struct replay *r = s->context;
    /* By epoch, not by time: an action belongs to the call of schedule that decided it. */
    for (; st->next < r->n && r->lines[st->next].epoch <= s->epoch; st->next++) {
        const struct line *line = &r->lines[st->next];
        /* An action whose epoch has passed, or whose result differs, is a mismatch. The replay
         * continues, so the count shows how much it diverges. */
        if (line->epoch < s->epoch || act(s, line) != line->result) {
            (void)sched_note(s, "replay_mismatch", 1);
        }
    }
}

/* A stalled replay may be due to a log that lost its end. */
static void replay_dump(struct sched *s, FILE *out)
{
    const struct replay_state *st = s->state;
    const struct replay *r = s->context;
    if (st->next == r->n) {
        (void)fprintf(out, "the log has ended, with %zu decision%s\n", r->n, text_plural(r->n));
    }
}

static void replay_exit(struct sched *s)
{
    struct replay_state *st = s->state;
    const struct replay *r = s->context;
    /* The run ended before the log. */
    if (st->next < r->n) {
        (void)sched_note(s, "replay_mismatch", r->n - st->next);
    }
    map_fini(&st->requests);
    map_fini(&st->passes);
    map_fini(&st->launches);
}

/* Epoch 0 has the declarations of the policy's init. */
static int replay_init(struct sched *s)
{
    /* Create the counter, so that a faithful replay reports 0. */
    (void)sched_note(s, "replay_mismatch", 0);
    if (s->context == NULL) {
        return -EINVAL;
    }
    replay_actions(s);
    return 0;
}

static void nothing(struct sched *s UNUSED, const struct request *r UNUSED)
{
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
        return 0; /* an action in a hook, which was refused */
    }
    r->lines = xgrow(r->lines, r->n, sizeof *r->lines);
    struct line *line = &r->lines[r->n++];
    line->epoch = epoch;
    /* The last '=' of a line is before the result. */
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
            rc = sscanf(text, "policy %63s flags=%u drafter=%63s", r->name, &flags, r->drafter) >= 2
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
    /* The drafter decides how many tokens a verification gives. */
    r->drafters[0] = r->drafter;
    r->params[0] = (struct policy_param)POLICY_CHOICE("drafter", 0, r->drafters, "as recorded");
    /* With the recorded policy's flags, because polling costs energy. */
    r->ops = (struct policy_ops){.name = r->name,
                                 .summary = "replays a decision log",
                                 .contract = POLICY_CONTRACT,
                                 .flags = flags,
                                 .state_size_bytes = sizeof(struct replay_state),
                                 .params = r->drafter[0] != '\0' ? r->params : NULL,
                                 .init = replay_init,
                                 .exit = replay_exit,
                                 .request_arrived = on_arrived,
                                 .request_cancelled = nothing,
                                 .schedule = replay_actions,
                                 .dump = replay_dump};
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
