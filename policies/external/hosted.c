/* The hooks of a policy whose code runs in another process. */
#define _GNU_SOURCE
#include "policies/external/hosted_impl.h"

static struct hosted *own(const struct sched *s)
{
    return (struct hosted *)(uintptr_t)s->policy;
}

static void fail(struct sched *s, struct hosted *h, const char *why)
{
    h->failed = true;
    sched_give_up(s, why);
    process_end(&h->process);
}

/* ---- known objects ---- */

static uint8_t *object_at(const struct hosted *h, const void *p)
{
    uintptr_t at = (uintptr_t)p - (uintptr_t)h->region;
    return at < HOST_REGION_BYTES && at % 16 == 0 ? &h->objects[at / 16] : NULL;
}

static void know(const struct hosted *h, const void *p, enum hosted_object what)
{
    uint8_t *known = object_at(h, p);
    SIM_ASSERT(known != NULL);
    *known = (uint8_t)what;
}

/* NULL is known, because the core refuses it. */
static bool is_known(const struct hosted *h, const void *p, enum hosted_object what)
{
    const uint8_t *known = object_at(h, p);
    return p == NULL || (known != NULL && *known == what);
}

/* ---- calls ---- */

/* Checks what the core does not: the process of a plug-in may write any bytes. */
static bool makes_sense(const struct hosted *h, const struct action *a,
                        const struct action_objects *o)
{
    bool fine = a->kind < ACTION_KINDS && is_known(h, o->request, HOST_REQUEST) &&
                is_known(h, o->pass, HOST_PASS) && is_known(h, o->launch, HOST_LAUNCH) &&
                (uint32_t)a->key.kind <= RESIDENT_WEIGHTS && (uint32_t)a->place <= KV_NOWHERE &&
                (uint32_t)a->span.yield <= YIELD_PASS && a->n_segments <= HOST_SEGMENTS &&
                a->device <= UINT8_MAX && a->version <= UINT8_MAX;
    for (uint32_t i = 0; fine && a->kind == ACTION_FORM && i < a->n_segments; i++) {
        const struct segment *g = &a->segments[i];
        fine = is_known(h, g->request, HOST_REQUEST) && (uint32_t)g->role <= SEGMENT_AHEAD;
    }
    return fine;
}

static bool act(struct sched *s, struct hosted *h, struct action *a, struct action_objects *o,
                int64_t *result)
{
    h->timers = h->timers || a->kind == ACTION_TIMER || a->kind == ACTION_OCCUPY;
    const struct hosted_letter *l = hosted_letter_of(h->region);
    bool forms = a->kind == ACTION_FORM && a->n_segments <= HOST_SEGMENTS;
    size_t bytes = forms ? a->n_segments * sizeof *l->segments : 0;
    OWNED struct segment *segments = xmalloc(bytes);
    memcpy(segments, l->segments, bytes); /* the process can change its copy at any time */
    a->segments = segments;
    bool fine = makes_sense(h, a, o);
    *result = fine ? action_do(s, a, o) : 0;
    if (fine && *result == 0 && a->kind == ACTION_FORM) {
        know(h, o->pass, HOST_PASS);
    } else if (fine && *result == 0 && a->kind == ACTION_LAUNCH) {
        know(h, o->launch, HOST_LAUNCH);
    }
    return fine;
}

static void copy_text(const struct hosted *h, const struct hosted_message *m, char text[HOST_TEXT])
{
    uint32_t n = m->n_text < HOST_TEXT ? m->n_text : HOST_TEXT - 1;
    memcpy(text, hosted_letter_of(h->region)->text, n);
    text[n] = '\0';
}

/* Answers a call. False if the message is invalid. */
static bool answer(struct sched *s, struct hosted *h, struct hosted_message *m)
{
    char text[HOST_TEXT];
    if (!is_known(h, m->request, HOST_REQUEST)) {
        return false;
    }
    switch (m->what) {
    case HOST_ACT:
        return act(s, h, &m->action, &m->objects, &m->result);
    case HOST_FLUSH:
        return true;
    case HOST_NOTE:
        copy_text(h, m, text);
        m->result = sched_note(s, text, m->left_out);
        return true;
    case HOST_ESTIMATE:
        m->result =
            m->op < OP_KIND_COUNT && m->device <= UINT8_MAX
                ? sched_estimate_graph(s, &m->shape, (enum op_kind)m->op, (uint8_t)m->device,
                                       m->rows, m->chunk_rows, (uint8_t)m->graph, &m->estimate)
                : -EINVAL;
        return true;
    case HOST_RESIDENT:
        m->result = sched_resident_state(s, m->key);
        return true;
    case HOST_ORACLE:
        m->result = m->request != NULL ? sched_oracle_output_tokens(s, m->request) : -EPERM;
        return true;
    case HOST_DRAFT:
        m->result = m->request != NULL ? sched_draft_tokens(s, m->request) : 0;
        return true;
    case HOST_PROMPT:
        m->result = (int64_t)sched_prompt_hash(s, m->request, m->tokens);
        return true;
    case HOST_CACHED:
        m->result = (int64_t)sched_kv_cached_tokens(s, m->request);
        return true;
    case HOST_GIVE_UP:
        copy_text(h, m, text);
        sched_give_up(s, text);
        return true;
    default:
        return false;
    }
}

/* Performs a late launch. False if it fails, which the process ruled out. */
static bool launch_late(struct sched *s, struct hosted *h, const struct launch_spec *spec)
{
    struct action a = {.kind = ACTION_LAUNCH, .span = *spec, .device = spec->device};
    struct action_objects o = {.pass = spec->pass};
    int64_t result = 0;
    bool fine = act(s, h, &a, &o, &result) && result == 0;
    h->launched = o.launch;
    return fine;
}

static bool do_late(struct sched *s, struct hosted *h, const struct hosted_message *m)
{
    const struct hosted_letter *l = hosted_letter_of(h->region);
    bool fine = true;
    for (uint32_t i = 0; i < m->n_late && i < HOST_LATE && fine; i++) {
        struct hosted_late late = l->late[i];
        late.counter[sizeof late.counter - 1] = '\0';
        if (late.kind == HOST_LATE_LAUNCH) {
            fine = launch_late(s, h, &late.launch);
        } else if (late.kind == HOST_LATE_NOTE) {
            (void)sched_note(s, late.counter, late.add);
        } else {
            h->timers = true;
            (void)sched_set_timer(s, late.at_ns);
        }
    }
    if (m->again) {
        sched_again(s);
    }
    if (m->steady) {
        sched_steady(s, m->until_ns, m->left_out);
    }
    return fine;
}

/* ---- conversation ---- */

/* Passes the turn and waits for it. False: the run has ended. */
static bool turn(struct sched *s, struct hosted *h)
{
    struct hosted_letter *l = hosted_letter_of(h->region);
    int64_t deadline_ns = 0;
    process_together(&h->process);
    hosted_give_turn(l, HOST_CHILD);
    while (!hosted_wait(l, HOST_PARENT)) {
        deadline_ns = deadline_ns == 0 ? process_deadline_ns(&h->process) : deadline_ns;
        if (process_has_ended(&h->process, deadline_ns)) {
            fail(s, h, h->process.failure);
            return false;
        }
    }
    return true;
}

static void tell_facts(struct sched *s, const struct hosted *h, struct hosted_message *m)
{
    m->sched = s;
    m->launched = h->launched;
    m->kv_free_tokens = sched_kv_free_tokens(s);
    m->kv_capacity_tokens = sched_kv_capacity_tokens(s);
    for (uint32_t d = 0; d < s->machine->n_devices; d++) {
        m->free_slots[d] = sched_device_free_slots(s, (uint8_t)d);
    }
    m->conditions = sched_machine_state(s);
}

/* Runs a hook, and answers its calls. Returns the hook's result. */
static int converse(struct sched *s, struct hosted_message *m)
{
    struct hosted *h = own(s);
    struct hosted_letter *l = hosted_letter_of(h->region);
    m->n_news = h->n_news;
    h->n_news = 0;
    while (h->running && !h->failed) {
        tell_facts(s, h, m);
        m->again = m->steady = false;
        m->n_late = m->n_text = 0;
        l->m = *m;
        if (!turn(s, h)) {
            break;
        }
        *m = l->m; /* a copy, so that checked values are used */
        m->n_news = 0;
        bool fine = do_late(s, h, m);
        if (fine && m->what == HOST_DONE) {
            return (int)m->result;
        }
        if (!fine || !answer(s, h, m)) {
            fail(s, h, "asked for what there is not, or what it never was given");
        }
    }
    return -EIO;
}

/* ---- hooks ---- */

static void hear(struct sched *s, struct hosted_message m)
{
    own(s)->awake = true;
    (void)converse(s, &m);
}

/* Delays a hook until the next message if the policy allows it (POLICY_F_LATE). Its arguments do
 * not change until a pass is formed or launched. */
static void news(struct sched *s, struct hosted_message m)
{
    struct hosted *h = own(s);
    if ((s->policy->flags & POLICY_F_LATE) == 0 || !h->running || h->n_news == HOST_NEWS) {
        hear(s, m);
        return;
    }
    hosted_letter_of(h->region)->news[h->n_news++] = (struct hosted_news){m.launch, m.pass};
    bool sampled = m.launch != NULL && m.launch->pass->op == m.launch->pass->n_ops;
    h->sampled = h->sampled || sampled;
    h->awake = h->awake || !sampled;
}

static int hosted_init(struct sched *s)
{
    struct hosted *h = own(s);
    if (h->region == NULL || h->given == 0) {
        sched_give_up(s, "it runs in a process of its own, and this run gave it no memory");
        return -EIO;
    }
    struct jail jail = h->external.jail;
    jail.keeps = 2;
    jail.kept[0] = h->fd[0];
    jail.kept[1] = h->fd[1];
    char address[32];
    (void)snprintf(address, sizeof address, "%p", (void *)h->region);
    char *argv[] = {h->external.argv[0], h->external.argv[1], h->external.argv[2], address, NULL};
    h->failed = h->sampled = h->awake = h->timers = false;
    h->n_news = 0;
    if (external_content(&h->external) != h->external.content) {
        sched_give_up(s, EXTERNAL_CHANGED);
        return -EIO;
    }
    struct zygote *z = external_zygote(&h->external, EXTERNAL_LIMIT_S);
    h->running =
        (z != NULL && process_start_of(&h->process, z, address, h->fd, EXTERNAL_LIMIT_S) == 0) ||
        process_start(&h->process, argv, &jail, EXTERNAL_LIMIT_S) == 0;
    if (!h->running) {
        sched_give_up(s, h->process.failure);
        return -EIO;
    }
    return converse(s, &(struct hosted_message){.what = HOST_init});
}

static void hosted_exit(struct sched *s)
{
    struct hosted *h = own(s);
    if (h->running) {
        (void)converse(s, &(struct hosted_message){.what = HOST_exit});
        process_end(&h->process);
    }
    h->running = false;
}

static void hosted_request_arrived(struct sched *s, const struct request *r)
{
    know(own(s), r, HOST_REQUEST);
    hear(s, (struct hosted_message){.what = HOST_request_arrived, .request = r});
}

static void hosted_launch_done(struct sched *s, const struct launch *l)
{
    news(s, (struct hosted_message){.what = HOST_launch_done, .launch = l});
}

static void hosted_pass_done(struct sched *s, const struct pass *p)
{
    news(s, (struct hosted_message){.what = HOST_pass_done, .pass = p});
}

static void hosted_resident_ready(struct sched *s, struct resident_key key)
{
    hear(s, (struct hosted_message){.what = HOST_resident_ready, .key = key});
}

static void hosted_kv_moved(struct sched *s, const struct request *r)
{
    hear(s, (struct hosted_message){.what = HOST_kv_moved, .request = r});
}

static void hosted_request_cancelled(struct sched *s, const struct request *r)
{
    hear(s, (struct hosted_message){.what = HOST_request_cancelled, .request = r});
}

/* Skips calls through which the policy sleeps (POLICY_F_SLEEPS). An event of the machine calls no
 * hook, but changes the conditions. */
static void hosted_schedule(struct sched *s)
{
    struct hosted *h = own(s);
    const struct machine_state now = sched_machine_state(s);
    bool sleeps = (s->policy->flags & POLICY_F_SLEEPS) != 0 && h->sampled && !h->awake &&
                  !h->timers && !external_conditions_differ(&h->conditions, &now);
    h->sampled = h->awake = false;
    h->conditions = now;
    if (sleeps) {
        return;
    }
    (void)converse(s, &(struct hosted_message){.what = HOST_schedule});
}

static void hosted_dump(struct sched *s, FILE *out)
{
    struct hosted_message m = {.what = HOST_dump};
    char text[HOST_TEXT];
    if (converse(s, &m) == 0) {
        copy_text(own(s), &m, text);
        (void)fputs(text, out);
    }
}

void hosted_hooks(struct policy_ops *o, uint32_t there)
{
#define TAKE(name) o->name = (there & (1u << HOST_##name)) != 0 ? hosted_##name : NULL;
    HOST_HOOKS(TAKE)
    if ((o->flags & POLICY_F_SLEEPS) != 0) {
        o->launch_done = hosted_launch_done;
    }
    o->init = hosted_init; /* always: they start and end the process */
    o->exit = hosted_exit;
}
