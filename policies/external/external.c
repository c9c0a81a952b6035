/* A policy in another process. At each call of schedule, the simulator sends a line with the facts
 * that changed, and receives a line with the actions to perform. The process is started for a run
 * and ends with it, so that runs cannot affect each other. */
#include "policies/external/external_impl.h"
#include "sim/base/json.h"

#include <unistd.h>

#define SHOWN_BYTES 120 /* of a malformed line, in an error */

static struct external *own(const struct sched *s)
{
    return (struct external *)(uintptr_t)s->policy;
}

/* ---- failure of a run ---- */

static void fail(struct sched *s, struct external_run *x, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

static void fail(struct sched *s, struct external_run *x, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    OWNED char *why = xvformat(fmt, ap);
    va_end(ap);
    /* The run has its error now. A later failure of the process must not replace it. */
    x->failed = true;
    (void)snprintf(x->process.failure, sizeof x->process.failure, "failed"); /* no grace period */
    sched_give_up(s, why);
    process_end(&x->process);
}

static void fail_nonsense(struct sched *s, struct external_run *x, const char *what,
                          const char *line)
{
    /* Usually this is a print() left in a program, which needs a remedy other than that of a
     * malformed answer. */
    if (line[0] == '[' || line[0] == '{') {
        fail(s, x, "answered nonsense: %s: %.*s", what, SHOWN_BYTES, line);
    } else {
        fail(s, x,
             "wrote to standard output, which carries the protocol (print to standard error): "
             "%.*s",
             SHOWN_BYTES, line);
    }
}

/* ---- conversation ---- */

static bool say(struct sched *s, struct external_run *x)
{
    if (process_send(&x->process, x->line.p, x->line.n) != 0) {
        fail(s, x, "%s", x->process.failure);
    }
    return !x->failed;
}

/* Returns the next line of the process; NULL if the run failed. */
static char *next_line(struct sched *s, struct external_run *x)
{
    if (s->now_ns - x->lines_since_ns >= EXTERNAL_LINES_NS) {
        x->lines_since_ns = s->now_ns;
        x->n_lines = 0;
    }
    if (++x->n_lines > EXTERNAL_MAX_LINES) {
        fail(s, x,
             "wrote more than %d lines within a millisecond of simulated time: it asks, syncs or "
             "sets timers for ever",
             EXTERNAL_MAX_LINES);
        return NULL;
    }
    char *line = process_receive(&x->process);
    if (line == NULL) {
        fail(s, x, "%s", x->process.failure);
    }
    return line;
}

/* Handles one line of the process. Returns true if the process will send another. */
static bool hear(struct sched *s, struct external_run *x)
{
    char *line = next_line(s, x);
    if (line == NULL) {
        return false;
    }
    /* A second line would be taken for the next answer, and all later answers would be shifted. */
    if (process_unasked(&x->process) > 0) {
        fail(s, x, "wrote more than one line where one answers: %.*s", SHOWN_BYTES, line);
        return false;
    }
    SCOPED(json_drop) cJSON *tree = cJSON_Parse(line);
    const cJSON *kind = cJSON_IsArray(tree) ? tree->child : NULL;
    const cJSON *what = kind != NULL ? kind->next : NULL;
    const char *name = cJSON_IsString(kind) ? kind->valuestring : "";
    const char *wrong = NULL;
    bool more = false;
    if (strcmp(name, "do") == 0 || strcmp(name, "sync") == 0) {
        more = name[0] == 's';
        wrong = external_act(s, x, what);
        x->again = what == NULL || !cJSON_IsFalse(what->next);
        /* Writes the answer to a sync into the line, which say() sends below. */
        if (more && wrong == NULL) {
            external_tell(s, x, "result");
        }
    } else if (strcmp(name, "ask") == 0) {
        more = true;
        wrong = external_answer(s, x, what);
    } else if (strcmp(name, "error") == 0 && cJSON_IsString(what)) {
        fail(s, x, "%s", what->valuestring);
    } else {
        wrong = "a line is [\"do\", ...], [\"sync\", ...], [\"ask\", ...] or [\"error\", text]";
    }
    if (wrong != NULL && !x->failed) {
        fail_nonsense(s, x, wrong, line);
    }
    return more && !x->failed && say(s, x);
}

/* Sends x->line, and handles lines of the process until it is done. */
static void talk(struct sched *s, struct external_run *x)
{
    if (say(s, x)) {
        while (hear(s, x)) {
        }
    }
}

/* ---- hooks ---- */

/* Starts the process of a run. */
static int start(struct external *e, struct process *p, double limit_s)
{
    struct zygote *z = e->python && e->confined ? external_zygote(e, limit_s) : NULL;
    return z != NULL && process_start_of(p, z, "", NULL, limit_s) == 0
               ? 0
               : process_start(p, e->argv, external_confines(e), limit_s);
}

static int external_init(struct sched *s)
{
    struct external_run *x = s->state;
    struct external *e = own(s);
    /* In order of precedence: the user's limit, the program's, the protocol's. */
    double given = s->params->v[e->n_params];
    double limit_s = given > 0.0 ? given : e->limit_s;
    if (start(e, &x->process, limit_s) != 0) {
        fail(s, x, "%s", x->process.failure);
        return -EIO;
    }
    static const char hello[] = EXTERNAL_HELLO;
    if (process_send(&x->process, hello, sizeof hello - 1) != 0 ||
        process_receive(&x->process) == NULL) {
        fail(s, x, "%s", x->process.failure);
        return -EIO;
    }
    if (e->steady) {
        sched_steady(s, TIME_NEVER_NS, 0);
    }
    if (external_content(e) != e->content) { /* checked after the program has read it */
        fail(s, x, "%s", EXTERNAL_CHANGED);
        return -EIO;
    }
    external_tell_init(s, x);
    talk(s, x);
    return x->failed ? -EIO : 0;
}

static void external_exit(struct sched *s)
{
    struct external_run *x = s->state;
    process_end(&x->process);
    for (uint32_t i = 0; i < x->n_passes; i++) {
        free(x->passes[i]);
    }
    free(x->requests);
    free(x->passes);
    free(x->launches);
    text_fini(&x->events);
    text_fini(&x->changed_requests);
    text_fini(&x->changed_passes);
    text_fini(&x->changed_launches);
    text_fini(&x->refusals);
    text_fini(&x->line);
}

static void event(struct external_run *x, const char *name)
{
    /* A program with `sleeps` does nothing if launches ended and nothing else happened. */
    x->awake = x->awake || strcmp(name, "launch_done") != 0;
    text_format(&x->events, "%s[\"%s\"", x->events.n > 0 ? "," : "", name);
}

static void external_request_arrived(struct sched *s, const struct request *r)
{
    struct external_run *x = s->state;
    struct facts *told = r->own;
    x->requests = xroom(x->requests, x->n_requests + 1, &x->cap_requests, sizeof r);
    uint32_t at = x->n_requests++;
    /* Sorted by id, for find_request. Nearly the order of arrival: only a later turn of a session,
     * which arrives after the one before has ended, moves further to the front. */
    for (; at > 0 && x->requests[at - 1]->id > r->id; at--) {
        x->requests[at] = x->requests[at - 1];
    }
    x->requests[at] = r;
    /* The arrival event has all of these facts; later messages have changes only. */
    *told = external_request_facts(r);
    event(x, "arrived");
    external_write(&x->events, r, &external_arrival);
    text_char(&x->events, ']');
}

static void external_request_cancelled(struct sched *s, const struct request *r)
{
    struct external_run *x = s->state;
    event(x, "cancelled");
    text_next_u64(&x->events, r->id);
    text_char(&x->events, ']');
}

static void external_launch_done(struct sched *s, const struct launch *l)
{
    struct external_run *x = s->state;
    for (uint32_t i = 0; i < x->n_launches; i++) {
        if (x->launches[i].l == l) {
            event(x, "launch_done");
            text_next_u64(&x->events, x->launches[i].id);
            text_string(&x->events, ",\"");
            text_string(&x->events, words_outcomes[l->outcome]);
            text_string(&x->events, "\"]");
        }
    }
}

static void external_pass_done(struct sched *s, const struct pass *p)
{
    struct external_run *x = s->state;
    const struct told_pass *told = p->policy_data;
    event(x, "pass_done");
    text_next_u64(&x->events, told->id);
    text_string(&x->events, ",[");
    for (uint32_t i = 0; i < p->n_segments; i++) {
        text_string(&x->events, i > 0 ? "," : "");
        text_u64(&x->events, p->segments[i].emitted_tokens);
    }
    text_string(&x->events, "]]");
}

static void external_resident_ready(struct sched *s, struct resident_key key)
{
    struct external_run *x = s->state;
    event(x, "resident_ready");
    text_format(&x->events, ",\"%s\",%" PRIu32 ",%" PRIu32 "]", words_residents[key.kind], key.a,
                key.b);
}

static void external_kv_moved(struct sched *s, const struct request *r)
{
    struct external_run *x = s->state;
    event(x, "kv_moved");
    text_next_u64(&x->events, r->id);
    text_char(&x->events, ']');
}

/* Asks the process at a new instant, unless it sleeps through all that happened. Asks again at the
 * same instant as long as it acts and wants that (`again`), or if there is an event or a refusal to
 * send. */
static void external_schedule(struct sched *s)
{
    struct external_run *x = s->state;
    const struct machine_state now = sched_machine_state(s);
    x->awake = external_conditions_differ(&x->conditions, &now) || x->awake;
    x->conditions = now;
    bool ask = s->epoch != x->epoch || x->again || x->events.n > 0 || x->n_refusals > 0;
    /* The next message has the events of this call, so a sleeping process misses no event. A call
     * without an event may have any cause, so the process is asked. */
    bool slept = own(s)->sleeps && !x->awake && !x->timers && x->events.n > 0;
    if (slept) {
        external_bury(x);
        return;
    }
    x->epoch = s->epoch;
    sched_again(s);
    if (ask && !x->failed) {
        x->awake = false;
        external_tell(s, x, "schedule");
        talk(s, x);
    }
    external_bury(x);
}

bool external_is_limit(const struct policy_ops *ops, const struct policy_param *p)
{
    return ops->schedule == external_schedule &&
           p == &ops->params[((const struct external *)(const void *)ops)->n_params];
}

double external_shorten(const struct policy_ops *ops, struct policy_params *p, double took_s)
{
    if (ops->schedule != external_schedule) {
        return 0.0;
    }
    const struct external *e = (const struct external *)(const void *)ops;
    double *given = &p->v[e->n_params];
    double limit_s = *given > 0.0 ? *given : e->limit_s;
    double shorter_s = ceil(fmax(EXTERNAL_LIMIT_S, took_s) / 10.0);
    if (took_s < limit_s || shorter_s >= limit_s) {
        return 0.0;
    }
    *given = shorter_s;
    return shorter_s;
}

static void external_dump(struct sched *s, FILE *out)
{
    const struct external_run *x = s->state;
    fprintf(out, "known to %s, by number: requests %u, passes %u, launches %u\n", own(s)->spec,
            x->n_requests, x->n_passes, x->n_launches);
}

void external_hooks(struct policy_ops *o)
{
    o->state_size_bytes = sizeof(struct external_run);
    o->request_state_size_bytes = sizeof(struct facts);
    o->init = external_init;
    o->exit = external_exit;
    o->request_arrived = external_request_arrived;
    o->request_cancelled = external_request_cancelled;
    o->launch_done = external_launch_done;
    o->pass_done = external_pass_done;
    o->resident_ready = external_resident_ready;
    o->kv_moved = external_kv_moved;
    o->schedule = external_schedule;
    o->dump = external_dump;
}
