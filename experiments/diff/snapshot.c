#include "experiments/diff/snapshot.h"

#include "sim/base/memory.h"
#include "sim/base/words.h"

/* Live requests or launches, in order of arrival or submission. */
struct live {
    const void **v; /* owned array */
    size_t n;
};

struct snapshot {
    struct observer observer;
    const struct machine *machine;
    FILE *log;
    long offset;
    long heading; /* bytes of the heading line; -1 before the first event */
    int64_t since_ns, at_ns;
    bool reached; /* the decision has taken effect, so the text is final */
    struct live requests, launches;
    char *text; /* owned */
    size_t size;
};

/* ---- rendering ---- */

static void put_request(FILE *f, const struct request *r)
{
    (void)fprintf(f,
                  "request %" PRIu32 " (%s, %s): prompt %" PRIu32 ", kv %" PRIu32
                  ", generated %" PRIu32 ", preempted %" PRIu32,
                  r->id, words_classes[r->cls], words_request_states[r->state], r->input_tokens,
                  r->kv_tokens, r->generated_tokens, r->preemptions);
    if (r->pass != NULL) {
        (void)fprintf(f, ", in pass %" PRIu32 " at op %" PRIu32 " of %" PRIu32, r->pass->id,
                      r->pass->op, r->pass->n_ops);
    }
    (void)fputc('\n', f);
}

static void put_launch(FILE *f, const struct machine *m, const struct launch *l)
{
    (void)fprintf(f,
                  "launch on %s: pass %" PRIu32 ", ops %" PRIu32 " to %" PRIu32 ", rows %" PRIu32
                  ", submitted at %.9f s%s%s\n",
                  m->devices[l->device].name, l->pass->id, l->op_begin, l->op_end, l->rows,
                  units_s_from_ns(l->submit_ns),
                  l->state == LAUNCH_STATE_RUNNING ? ", running" : ", waiting",
                  l->stop_requested ? ", asked to stop" : "");
}

/* Replaces the text by the present state. */
static void render(struct snapshot *s, int64_t now_ns)
{
    free(s->text);
    s->text = NULL;
    FILE *f = memory_stream(&s->text, &s->size);
    for (size_t i = 0; i < s->requests.n; i++) {
        put_request(f, s->requests.v[i]);
    }
    for (size_t i = 0; i < s->launches.n; i++) {
        put_launch(f, s->machine, s->launches.v[i]);
    }
    memory_stream_close(f, &s->text);
    s->at_ns = now_ns;
}

/* Bytes of decisions written so far. */
static long written(struct snapshot *s)
{
    if (s->heading < 0) { /* the first event comes before any decision */
        s->heading = ftell(s->log);
    }
    return ftell(s->log) - s->heading;
}

/* Renders the state after an event that precedes the decision. */
static void event(struct snapshot *s, int64_t now_ns)
{
    long w = written(s);
    if (now_ns >= s->since_ns && w <= s->offset && !s->reached) {
        render(s, now_ns);
    }
}

/* Renders the state after an action that precedes the decision. An action is reported before its
 * line is written, so one that is reported at `offset` is the decision itself. */
static void action(struct snapshot *s, int64_t now_ns)
{
    long w = written(s);
    s->reached |= w >= s->offset;
    if (now_ns >= s->since_ns && w < s->offset) {
        render(s, now_ns);
    }
}

/* ---- live requests and launches ---- */

static void live_remove(struct live *l, const void *x)
{
    for (size_t i = 0; i < l->n; i++) {
        if (l->v[i] == x) {
            memmove(&l->v[i], &l->v[i + 1], (l->n - i - 1) * sizeof *l->v);
            l->n--;
            return;
        }
    }
}

static void request_arrived(void *self, int64_t now_ns, const struct request *r)
{
    struct snapshot *s = self;
    LIST_ADD(s->requests.v, s->requests.n, r);
    event(s, now_ns);
}

static void request_gone(void *self, int64_t now_ns, const struct request *r)
{
    struct snapshot *s = self;
    live_remove(&s->requests, r);
    event(s, now_ns);
}

static void launch_submitted(void *self, int64_t now_ns, const struct launch *l)
{
    struct snapshot *s = self;
    LIST_ADD(s->launches.v, s->launches.n, l);
    action(s, now_ns);
}

static void launch_ended(void *self, int64_t now_ns, const struct launch *l,
                         int64_t isolated_ns UNUSED, int64_t lost_ns UNUSED)
{
    struct snapshot *s = self;
    live_remove(&s->launches, l);
    event(s, now_ns);
}

static void launch_started(void *self, int64_t now_ns, const struct launch *l UNUSED,
                           int64_t lead_ns UNUSED)
{
    event(self, now_ns);
}

static void pass_formed(void *self, int64_t now_ns, const struct pass *p UNUSED)
{
    action(self, now_ns);
}

/* Also for the tokens of a pass, whose end comes later. */
static void pass_over(void *self, int64_t now_ns, const struct pass *p UNUSED)
{
    event(self, now_ns);
}

/* ---- public ---- */

struct snapshot *snapshot_new(const struct machine *machine, FILE *log, long offset,
                              int64_t since_ns)
{
    struct snapshot *s = xcalloc(1, sizeof *s);
    *s = (struct snapshot){
        .machine = machine, .log = log, .offset = offset, .heading = -1, .since_ns = since_ns};
    s->observer = (struct observer){.self = s,
                                    .request_arrived = request_arrived,
                                    .tokens = pass_over,
                                    .request_finished = request_gone,
                                    .request_shed = request_gone,
                                    .pass_formed = pass_formed,
                                    .pass_done = pass_over,
                                    .launch_submitted = launch_submitted,
                                    .launch_started = launch_started,
                                    .launch_ended = launch_ended};
    return s;
}

void snapshot_free(struct snapshot *s)
{
    if (s != NULL) {
        free(s->requests.v);
        free(s->launches.v);
        free(s->text);
        free(s);
    }
}

struct observer *snapshot_observer(struct snapshot *s)
{
    return &s->observer;
}

const char *snapshot_text(const struct snapshot *s)
{
    return s->text != NULL ? s->text : "";
}
