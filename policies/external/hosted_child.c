/* The process of a plug-in: the calls of the contract as messages, and hooks as they come. */
#define _GNU_SOURCE /* MAP_FIXED_NOREPLACE */
#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include "policies/external/hosted_impl.h"
#include "sim/base/hash.h"
#include "sim/base/memory.h"

#define MEMO 4096 /* estimates that are remembered; a power of two */
#define MOST_COUNTERS 16

/* The one run of this process. */
static struct {
    const struct policy_ops *ops;
    struct hosted_letter *letter;
    struct sched sched;    /* the run's, with calls that lead here */
    enum hosted_what hook; /* that is running */
    bool news;             /* it was late */
    bool columns;          /* a pass may have some of them done, which nothing shows */
    /* A launch that is among the late calls. */
    struct {
        bool waits;
        uint8_t device;
        const struct launch **out; /* NULL, or in the policy's state */
    } launch;
    int parent; /* a pipe from it: closed when the run is over */
    int open;   /* a pipe to it: closed when this process has ended */
    struct memo {
        struct work_shape shape;
        uint32_t op, device, rows, chunk_rows, graph;
        bool there;
        struct estimate is;
    } memo[MEMO];
    char counters[MOST_COUNTERS][sizeof(((struct hosted_late *)NULL)->counter)];
    uint32_t n_counters;
} host;

/* ---- turns ---- */

static void wait_for_turn(void)
{
    while (!hosted_wait(host.letter, HOST_CHILD)) {
        struct pollfd parent = {.fd = host.parent};
        if (poll(&parent, 1, 0) != 0) {
            _exit(EXIT_SUCCESS); /* it has closed its end: the run is over */
        }
    }
}

static void give_turn(void)
{
    hosted_give_turn(host.letter, HOST_PARENT);
}

/* What was late is done. */
static void settle(void)
{
    if (host.launch.waits && host.launch.out != NULL) {
        *host.launch.out = host.letter->m.launched;
    }
    host.launch.waits = false;
}

static int64_t ask(enum hosted_what what)
{
    struct hosted_message *m = &host.letter->m;
    m->what = what;
    give_turn();
    wait_for_turn();
    settle();
    m->n_late = m->n_text = 0;
    m->again = m->steady = false;
    return m->result;
}

static struct hosted_message *question(void)
{
    struct hosted_message *m = &host.letter->m;
    m->request = NULL;
    return m;
}

static void text(const char *of)
{
    struct hosted_message *m = question();
    size_t n = strlen(of);
    m->n_text = n < HOST_TEXT ? (uint32_t)n : HOST_TEXT - 1;
    memcpy(host.letter->text, of, m->n_text);
}

/* Room for one more call that nothing waits for. */
static struct hosted_late *late(void)
{
    struct hosted_message *m = &host.letter->m;
    if (m->n_late == HOST_LATE) {
        (void)question();
        (void)ask(HOST_FLUSH);
    }
    return &host.letter->late[m->n_late++];
}

/* ---- questions ---- */

/* Equal questions have equal answers, for a run. */
static int call_estimate_graph(struct sched *s, const struct work_shape *shape, enum op_kind op,
                               uint8_t device, uint32_t rows, uint32_t chunk_rows, uint8_t graph,
                               struct estimate *out)
{
    (void)s;
    uint64_t h = hash_u64(HASH_INIT, ((uint64_t)shape->rows << 32) | shape->logit_rows);
    h = hash_u64(h, shape->attn_pairs ^ (shape->kv_read_tokens << 20));
    h = hash_u64(h, ((uint64_t)rows << 32) | ((uint64_t)op << 8) | device);
    struct memo *known = &host.memo[h % MEMO];
    if (known->there && memcmp(&known->shape, shape, sizeof *shape) == 0 && known->op == op &&
        known->device == device && known->rows == rows && known->chunk_rows == chunk_rows &&
        known->graph == graph) {
        *out = known->is;
        return 0;
    }
    struct hosted_message *m = question();
    m->shape = *shape;
    m->op = op;
    m->device = device;
    m->rows = rows;
    m->chunk_rows = chunk_rows;
    m->graph = graph;
    int rc = (int)ask(HOST_ESTIMATE);
    if (rc == 0) {
        *out = m->estimate;
        *known = (struct memo){*shape, op, device, rows, chunk_rows, graph, true, m->estimate};
    }
    return rc;
}

static enum resident_state call_resident_state(struct sched *s, struct resident_key key)
{
    (void)s;
    question()->key = key;
    return (enum resident_state)ask(HOST_RESIDENT);
}

static uint64_t call_kv_free_tokens(struct sched *s)
{
    (void)s;
    return host.letter->m.kv_free_tokens;
}

static uint64_t call_kv_capacity_tokens(struct sched *s)
{
    (void)s;
    return host.letter->m.kv_capacity_tokens;
}

static uint32_t call_device_free_slots(struct sched *s, uint8_t device)
{
    if (host.launch.waits && host.launch.device == device) {
        (void)question();
        (void)ask(HOST_FLUSH);
    }
    return device < s->machine->n_devices ? host.letter->m.free_slots[device] : 0;
}

static struct machine_state call_machine_state(struct sched *s)
{
    (void)s;
    return host.letter->m.conditions;
}

static int64_t call_oracle_output_tokens(struct sched *s, const struct request *r)
{
    (void)s;
    question()->request = r;
    return ask(HOST_ORACLE);
}

static uint32_t call_draft_tokens(struct sched *s, const struct request *r)
{
    (void)s;
    question()->request = r;
    return (uint32_t)ask(HOST_DRAFT);
}

static uint64_t call_prompt_hash(struct sched *s, const struct request *r, uint32_t tokens)
{
    (void)s;
    struct hosted_message *m = question();
    m->request = r;
    m->tokens = tokens;
    return (uint64_t)ask(HOST_PROMPT);
}

/* ---- actions ---- */

static const struct action_objects nothing;

/* For the simulator schedule has begun by now: a late hook is refused here. */
static int act(struct action a, struct action_objects o)
{
    struct hosted_message *m = question();
    m->action = a;
    m->objects = o;
    return host.news ? -EPERM : (int)ask(HOST_ACT);
}

static int call_pass_form(struct sched *s, const struct pass_spec *spec, struct pass **out)
{
    (void)s;
    if (spec->n_segments > HOST_SEGMENTS) {
        return -EINVAL;
    }
    if (spec->n_segments > 0) {
        memcpy(host.letter->segments, spec->segments, spec->n_segments * sizeof *spec->segments);
    }
    int rc = act((struct action){.kind = ACTION_FORM,
                                 .n_segments = spec->n_segments,
                                 .fused = spec->fused_layers},
                 (struct action_objects){.policy_data = spec->policy_data});
    if (rc == 0) {
        *out = host.letter->m.objects.pass;
    }
    return rc;
}

static int call_pass_cancel(struct sched *s, struct pass *p)
{
    (void)s;
    return act((struct action){.kind = ACTION_CANCEL}, (struct action_objects){.pass = p});
}

static bool in_state(const void *p)
{
    return (uintptr_t)p - (uintptr_t)host.letter < HOST_REGION_BYTES;
}

/* The first launch of a whole new pass, on a device that takes it: nothing can refuse that. */
static bool need_not_wait(struct sched *s, const struct launch_spec *l, const struct launch **out)
{
    const struct pass *p = l->pass;
    return (host.ops->flags & POLICY_F_LATE) != 0 && host.hook == HOST_schedule &&
           !host.launch.waits && !host.columns && (out == NULL || in_state(out)) &&
           l->device < s->machine->n_devices && !s->machine->devices[l->device].static_attention &&
           host.letter->m.free_slots[l->device] > 0 && p != NULL && p->state == PASS_STATE_READY &&
           p->segments[0].role != SEGMENT_AHEAD && p->op == 0 && p->n_launches == 0 &&
           l->n_ops == p->n_ops && l->rows == p->shape.rows && p->rows_todo == l->rows &&
           l->yield != YIELD_KERNEL && l->yield <= YIELD_PASS && l->inflight == 1 &&
           l->graph == 0 && l->columns == 0;
}

static int call_launch(struct sched *s, const struct launch_spec *spec, const struct launch **out)
{
    host.columns = host.columns || spec->columns > 0;
    if (need_not_wait(s, spec, out)) {
        *late() = (struct hosted_late){.kind = HOST_LATE_LAUNCH, .launch = *spec};
        host.launch.waits = true;
        host.launch.device = spec->device;
        host.launch.out = out;
        return 0;
    }
    int rc = act((struct action){.kind = ACTION_LAUNCH, .span = *spec, .device = spec->device},
                 (struct action_objects){.pass = spec->pass});
    if (rc == 0 && out != NULL) {
        *out = host.letter->m.objects.launch;
    }
    return rc;
}

static int call_preempt(struct sched *s, const struct launch *l, struct preempt_spec how)
{
    (void)s;
    return act((struct action){.kind = ACTION_PREEMPT, .how = how},
               (struct action_objects){.launch = l});
}

static int call_compile(struct sched *s, struct resident_key key)
{
    (void)s;
    return act((struct action){.kind = ACTION_COMPILE, .key = key}, nothing);
}

static int call_load(struct sched *s, struct resident_key key, double bytes)
{
    (void)s;
    return act((struct action){.kind = ACTION_LOAD, .key = key, .bytes = bytes}, nothing);
}

static int call_map(struct sched *s, struct resident_key key, double bytes)
{
    (void)s;
    return act((struct action){.kind = ACTION_MAP, .key = key, .bytes = bytes}, nothing);
}

static int call_resident_evict(struct sched *s, struct resident_key key)
{
    (void)s;
    return act((struct action){.kind = ACTION_DROP, .key = key}, nothing);
}

static int call_graph(struct sched *s, uint8_t version, struct graph_shape shape)
{
    (void)s;
    return act((struct action){.kind = ACTION_GRAPH, .version = version, .graph = shape}, nothing);
}

static int call_kv_move(struct sched *s, struct kv_part part, enum kv_place to)
{
    (void)s;
    struct action a = {.kind = ACTION_KV, .from_token = part.from_token, .place = to};
    if (part.of_session) {
        a = (struct action){.kind = ACTION_KV_SESSION, .session = part.session_id, .place = to};
    }
    return act(a, (struct action_objects){.request = part.request});
}

static int call_kv_rank(struct sched *s, const struct request *r, uint32_t rank)
{
    (void)s;
    return act((struct action){.kind = ACTION_KV_RANK, .rank = rank},
               (struct action_objects){.request = r});
}

/* In schedule one that is not past is accepted, and nobody waits for the answer. */
static int call_set_timer(struct sched *s, int64_t at_ns)
{
    if (host.hook == HOST_schedule && at_ns >= s->now_ns) {
        *late() = (struct hosted_late){.kind = HOST_LATE_TIMER, .at_ns = at_ns};
        return 0;
    }
    return act((struct action){.kind = ACTION_TIMER, .at_ns = at_ns}, nothing);
}

static int call_occupy(struct sched *s, uint8_t device, int64_t until_ns)
{
    (void)s;
    return act((struct action){.kind = ACTION_OCCUPY, .device = device, .at_ns = until_ns},
               nothing);
}

static int call_shed(struct sched *s, const struct request *r)
{
    (void)s;
    return act((struct action){.kind = ACTION_SHED}, (struct action_objects){.request = r});
}

/* A counter that was accepted once is accepted again. */
static int call_note(struct sched *s, const char *counter, uint64_t add)
{
    (void)s;
    for (uint32_t i = 0; i < host.n_counters; i++) {
        if (strcmp(host.counters[i], counter) == 0) {
            struct hosted_late *l = late();
            *l = (struct hosted_late){.kind = HOST_LATE_NOTE, .add = add};
            memcpy(l->counter, host.counters[i], sizeof l->counter);
            return 0;
        }
    }
    text(counter);
    host.letter->m.left_out = add;
    int rc = (int)ask(HOST_NOTE);
    if (rc == 0 && host.n_counters < MOST_COUNTERS) {
        (void)snprintf(host.counters[host.n_counters++], sizeof host.counters[0], "%s", counter);
    }
    return rc;
}

static void call_again(struct sched *s)
{
    (void)s;
    host.letter->m.again = true;
}

static void call_steady(struct sched *s, int64_t until_ns, uint64_t left_out)
{
    (void)s;
    struct hosted_message *m = &host.letter->m;
    m->steady = true;
    m->until_ns = until_ns;
    m->left_out = left_out;
}

static void call_give_up(struct sched *s, const char *why)
{
    (void)s;
    text(why);
    (void)ask(HOST_GIVE_UP);
}

static const struct sched_api calls = {
    .size = sizeof(struct sched_api),
#define CALL(result, name, parameters, arguments) .name = call_##name,
#define TELL(name, parameters, arguments) .name = call_##name,
#include "sim/api/calls.def"
#undef CALL
#undef TELL
};

/* ---- hooks ---- */

static void dump(struct sched *s)
{
    OWNED char *all = NULL;
    size_t n = 0;
    FILE *f = memory_stream(&all, &n);
    host.ops->dump(s, f);
    memory_stream_close(f, &all);
    text(all);
}

/* Also where the policy has no such hook: its ends are what a policy sleeps through. */
static void launch_done(struct sched *s, const struct launch *l)
{
    if (host.ops->launch_done != NULL) {
        host.ops->launch_done(s, l);
    }
}

static void run_news(struct sched *s, uint32_t n)
{
    host.news = true;
    for (uint32_t i = 0; i < n && i < HOST_NEWS; i++) {
        struct hosted_news of = host.letter->news[i];
        host.hook = of.launch != NULL ? HOST_launch_done : HOST_pass_done;
        if (of.launch != NULL) {
            launch_done(s, of.launch);
        } else {
            host.ops->pass_done(s, of.pass);
        }
    }
    host.news = false;
}

static int run_hook(struct sched *s, const struct hosted_message *m)
{
    const struct policy_ops *o = host.ops;
    switch (m->what) {
    case HOST_init:
        return o->init != NULL ? o->init(s) : 0;
    case HOST_exit:
        if (o->exit != NULL) {
            o->exit(s);
        }
        break;
    case HOST_request_arrived:
        o->request_arrived(s, m->request);
        break;
    case HOST_launch_done:
        launch_done(s, m->launch);
        break;
    case HOST_pass_done:
        o->pass_done(s, m->pass);
        break;
    case HOST_resident_ready:
        o->resident_ready(s, m->key);
        break;
    case HOST_kv_moved:
        o->kv_moved(s, m->request);
        break;
    case HOST_request_cancelled:
        o->request_cancelled(s, m->request);
        break;
    case HOST_schedule:
        o->schedule(s);
        break;
    case HOST_dump:
        dump(s);
        break;
    default:
        _exit(EXIT_FAILURE);
    }
    return 0;
}

/* The regions are descriptors 3 and 4. */
static char *map_regions(const char *address)
{
    const size_t bytes = HOST_REGION_BYTES;
    char *at = (char *)(uintptr_t)strtoull(address, NULL, 0); /* NOLINT */
    char *shown = mmap(at, bytes, PROT_READ, MAP_SHARED | MAP_FIXED_NOREPLACE, 3, 0);
    char *state =
        mmap(at + bytes, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED_NOREPLACE, 4, 0);
    if (shown != at || state != at + bytes) {
        (void)fprintf(stderr, "xpusim: error: the memory of the run cannot be mapped\n");
        _exit(EXIT_FAILURE);
    }
    (void)close(3);
    (void)close(4);
    return at;
}

char *hosted_address(const char *given)
{
    return strcmp(given, EXTERNAL_FORKS) == 0 ? zygote_serve() : xstrdup(given);
}

_Noreturn void hosted_serve(const struct policy_ops *ops, const char *address)
{
    host.ops = ops;
    host.letter = hosted_letter_of(map_regions(address));
    /* What the plug-in prints goes to standard error. The parent sees by the pipe, which stays
     * open, that this process is there. */
    host.parent = dup(STDIN_FILENO);
    host.open = dup(STDOUT_FILENO);
    (void)close(STDIN_FILENO);
    (void)dup2(STDERR_FILENO, STDOUT_FILENO);
    for (;;) {
        wait_for_turn();
        struct hosted_message *m = &host.letter->m;
        settle();
        const struct hosted_message now = *m; /* what late hooks ask takes its place */
        host.sched = *m->sched;
        host.sched.api = &calls;
        host.sched.policy = ops;
        host.sched.context = NULL;
        run_news(&host.sched, now.n_news);
        host.hook = now.what;
        m->result = run_hook(&host.sched, &now);
        m->what = HOST_DONE;
        give_turn();
        if (host.hook == HOST_exit) {
            _exit(EXIT_SUCCESS);
        }
    }
}
