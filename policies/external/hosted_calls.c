/* Calls of the contract in the process of a plug-in, each of which is a message to the run. */
#include <poll.h>
#include <unistd.h>

#include "policies/external/hosted_child.h"
#include "sim/base/hash.h"

#define MEMO 4096 /* cached estimates; a power of two */
#define MOST_COUNTERS 16

struct hosted_here hosted_here;

static struct memo {
    struct work_shape shape;
    uint32_t op, device, rows, chunk_rows, graph;
    bool there;
    struct estimate is;
} memo[MEMO];
static char counters[MOST_COUNTERS][sizeof(((struct hosted_late *)NULL)->counter)];
static uint32_t n_counters;

/* ---- turns ---- */

void hosted_listen(void)
{
    while (!hosted_wait(hosted_here.letter, HOST_CHILD)) {
        struct pollfd parent = {.fd = hosted_here.parent};
        if (poll(&parent, 1, 0) != 0) {
            _exit(EXIT_SUCCESS); /* closed by the parent: the run is over */
        }
    }
    /* The parent has performed the late calls. */
    if (hosted_here.launch.waits && hosted_here.launch.out != NULL) {
        *hosted_here.launch.out = hosted_here.letter->m.launched;
    }
    hosted_here.launch.waits = false;
}

int64_t hosted_ask(enum hosted_what what)
{
    struct hosted_message *m = &hosted_here.letter->m;
    m->what = what;
    hosted_give_turn(hosted_here.letter, HOST_PARENT);
    hosted_listen();
    m->n_late = m->n_text = 0;
    m->again = m->steady = false;
    return m->result;
}

/* ---- messages ---- */

static struct hosted_message *question(void)
{
    struct hosted_message *m = &hosted_here.letter->m;
    m->request = NULL;
    return m;
}

void hosted_text(const char *of)
{
    struct hosted_message *m = question();
    size_t n = strlen(of);
    m->n_text = n < HOST_TEXT ? (uint32_t)n : HOST_TEXT - 1;
    memcpy(hosted_here.letter->text, of, m->n_text);
}

/* Returns room for another late call. */
static struct hosted_late *late(void)
{
    struct hosted_message *m = &hosted_here.letter->m;
    if (m->n_late == HOST_LATE) {
        (void)question();
        (void)hosted_ask(HOST_FLUSH);
    }
    return &hosted_here.letter->late[m->n_late++];
}

/* ---- calls without effect ---- */

/* Cached, because equal arguments give equal results within a run. */
static int call_estimate_graph(struct sched *s UNUSED, const struct work_shape *shape,
                               enum op_kind op, uint8_t device, uint32_t rows, uint32_t chunk_rows,
                               uint8_t graph, struct estimate *out)
{
    uint64_t h = hash_u64(HASH_INIT, ((uint64_t)shape->rows << 32) | shape->logit_rows);
    h = hash_u64(h, shape->attn_pairs ^ (shape->kv_read_tokens << 20));
    h = hash_u64(h, ((uint64_t)rows << 32) | ((uint64_t)op << 8) | device);
    struct memo *known = &memo[h % MEMO];
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
    int rc = (int)hosted_ask(HOST_ESTIMATE);
    if (rc == 0) {
        *out = m->estimate;
        *known = (struct memo){*shape, op, device, rows, chunk_rows, graph, true, m->estimate};
    }
    return rc;
}

static enum resident_state call_resident_state(struct sched *s UNUSED, struct resident_key key)
{
    question()->key = key;
    return (enum resident_state)hosted_ask(HOST_RESIDENT);
}

static uint64_t call_kv_free_tokens(struct sched *s UNUSED)
{
    return hosted_here.letter->m.kv_free_tokens;
}

static uint64_t call_kv_capacity_tokens(struct sched *s UNUSED)
{
    return hosted_here.letter->m.kv_capacity_tokens;
}

static uint32_t call_device_free_slots(struct sched *s, uint8_t device)
{
    if (hosted_here.launch.waits && hosted_here.launch.device == device) {
        (void)question();
        (void)hosted_ask(HOST_FLUSH);
    }
    return device < s->machine->n_devices ? hosted_here.letter->m.free_slots[device] : 0;
}

static struct machine_state call_machine_state(struct sched *s UNUSED)
{
    return hosted_here.letter->m.conditions;
}

static int64_t call_oracle_output_tokens(struct sched *s UNUSED, const struct request *r)
{
    question()->request = r;
    return hosted_ask(HOST_ORACLE);
}

static uint32_t call_draft_tokens(struct sched *s UNUSED, const struct request *r)
{
    question()->request = r;
    return (uint32_t)hosted_ask(HOST_DRAFT);
}

static uint64_t call_prompt_hash(struct sched *s UNUSED, const struct request *r, uint32_t tokens)
{
    struct hosted_message *m = question();
    m->request = r;
    m->tokens = tokens;
    return (uint64_t)hosted_ask(HOST_PROMPT);
}

static uint64_t call_kv_cached_tokens(struct sched *s UNUSED, const struct request *r)
{
    question()->request = r;
    return (uint64_t)hosted_ask(HOST_CACHED);
}

/* ---- actions ---- */

static const struct action_objects nothing;

/* In the simulator, `schedule` has begun when a late hook runs, so this refuses its actions. */
static int act(struct action a, struct action_objects o)
{
    struct hosted_message *m = question();
    m->action = a;
    m->objects = o;
    return hosted_here.news ? -EPERM : (int)hosted_ask(HOST_ACT);
}

static int call_pass_form(struct sched *s UNUSED, const struct pass_spec *spec, struct pass **out)
{
    if (spec->n_segments > HOST_SEGMENTS) {
        return -EINVAL;
    }
    if (spec->n_segments > 0) {
        memcpy(hosted_here.letter->segments, spec->segments,
               spec->n_segments * sizeof *spec->segments);
    }
    int rc = act((struct action){.kind = ACTION_FORM,
                                 .n_segments = spec->n_segments,
                                 .fused = spec->fused_layers},
                 (struct action_objects){.policy_data = spec->policy_data});
    if (rc == 0) {
        *out = hosted_here.letter->m.objects.pass;
    }
    return rc;
}

static int call_pass_cancel(struct sched *s UNUSED, struct pass *p)
{
    return act((struct action){.kind = ACTION_CANCEL}, (struct action_objects){.pass = p});
}

static bool in_state(const void *p)
{
    return (uintptr_t)p - (uintptr_t)hosted_here.letter < HOST_REGION_BYTES;
}

/* Whether a launch cannot be refused: the first launch of a whole new pass, on a free device. */
static bool need_not_wait(struct sched *s, const struct launch_spec *l, const struct launch **out)
{
    const struct pass *p = l->pass;
    return (hosted_here.ops->flags & POLICY_F_LATE) != 0 && hosted_here.hook == HOST_schedule &&
           !hosted_here.launch.waits && !hosted_here.columns && (out == NULL || in_state(out)) &&
           l->device < s->machine->n_devices && !s->machine->devices[l->device].static_attention &&
           hosted_here.letter->m.free_slots[l->device] > 0 && p != NULL &&
           p->state == PASS_STATE_READY && p->segments[0].role != SEGMENT_AHEAD && p->op == 0 &&
           p->n_launches == 0 && l->n_ops == p->n_ops && l->rows == p->shape.rows &&
           p->rows_todo == l->rows && l->yield != YIELD_KERNEL && l->yield <= YIELD_PASS &&
           l->inflight == 1 && l->graph == 0 && l->columns == 0;
}

static int call_launch(struct sched *s, const struct launch_spec *spec, const struct launch **out)
{
    hosted_here.columns = hosted_here.columns || spec->columns > 0;
    if (need_not_wait(s, spec, out)) {
        *late() = (struct hosted_late){.kind = HOST_LATE_LAUNCH, .launch = *spec};
        hosted_here.launch.waits = true;
        hosted_here.launch.device = spec->device;
        hosted_here.launch.out = out;
        return 0;
    }
    int rc = act((struct action){.kind = ACTION_LAUNCH, .span = *spec, .device = spec->device},
                 (struct action_objects){.pass = spec->pass});
    if (rc == 0 && out != NULL) {
        *out = hosted_here.letter->m.objects.launch;
    }
    return rc;
}

static int call_preempt(struct sched *s UNUSED, const struct launch *l, struct preempt_spec how)
{
    return act((struct action){.kind = ACTION_PREEMPT, .how = how},
               (struct action_objects){.launch = l});
}

static int call_compile(struct sched *s UNUSED, struct resident_key key)
{
    return act((struct action){.kind = ACTION_COMPILE, .key = key}, nothing);
}

static int call_load(struct sched *s UNUSED, struct resident_key key, double bytes)
{
    return act((struct action){.kind = ACTION_LOAD, .key = key, .bytes = bytes}, nothing);
}

static int call_map(struct sched *s UNUSED, struct resident_key key, double bytes)
{
    return act((struct action){.kind = ACTION_MAP, .key = key, .bytes = bytes}, nothing);
}

static int call_resident_evict(struct sched *s UNUSED, struct resident_key key)
{
    return act((struct action){.kind = ACTION_DROP, .key = key}, nothing);
}

static int call_graph(struct sched *s UNUSED, uint8_t version, struct graph_shape shape)
{
    return act((struct action){.kind = ACTION_GRAPH, .version = version, .graph = shape}, nothing);
}

static int call_kv_move(struct sched *s UNUSED, struct kv_part part, enum kv_place to)
{
    struct action a = {.kind = ACTION_KV, .from_token = part.from_token, .place = to};
    if (part.of_session) {
        a = (struct action){.kind = ACTION_KV_SESSION, .session = part.session_id, .place = to};
    }
    return act(a, (struct action_objects){.request = part.request});
}

static int call_kv_rank(struct sched *s UNUSED, const struct request *r, uint32_t rank)
{
    return act((struct action){.kind = ACTION_KV_RANK, .rank = rank},
               (struct action_objects){.request = r});
}

/* In schedule a timer that is not past cannot be refused, so the call is late. */
static int call_set_timer(struct sched *s, int64_t at_ns)
{
    if (hosted_here.hook == HOST_schedule && at_ns >= s->now_ns) {
        *late() = (struct hosted_late){.kind = HOST_LATE_TIMER, .at_ns = at_ns};
        return 0;
    }
    return act((struct action){.kind = ACTION_TIMER, .at_ns = at_ns}, nothing);
}

static int call_occupy(struct sched *s UNUSED, uint8_t device, int64_t until_ns)
{
    return act((struct action){.kind = ACTION_OCCUPY, .device = device, .at_ns = until_ns},
               nothing);
}

static int call_shed(struct sched *s UNUSED, const struct request *r)
{
    return act((struct action){.kind = ACTION_SHED}, (struct action_objects){.request = r});
}

/* A counter that was accepted before cannot be refused, so the call is late. */
static int call_note(struct sched *s UNUSED, const char *counter, uint64_t add)
{
    for (uint32_t i = 0; i < n_counters; i++) {
        if (strcmp(counters[i], counter) == 0) {
            struct hosted_late *l = late();
            *l = (struct hosted_late){.kind = HOST_LATE_NOTE, .add = add};
            memcpy(l->counter, counters[i], sizeof l->counter);
            return 0;
        }
    }
    hosted_text(counter);
    hosted_here.letter->m.left_out = add;
    int rc = (int)hosted_ask(HOST_NOTE);
    if (rc == 0 && n_counters < MOST_COUNTERS) {
        (void)snprintf(counters[n_counters++], sizeof counters[0], "%s", counter);
    }
    return rc;
}

static void call_again(struct sched *s UNUSED)
{
    hosted_here.letter->m.again = true;
}

static void call_steady(struct sched *s UNUSED, int64_t until_ns, uint64_t left_out)
{
    struct hosted_message *m = &hosted_here.letter->m;
    m->steady = true;
    m->until_ns = until_ns;
    m->left_out = left_out;
}

static void call_give_up(struct sched *s UNUSED, const char *why)
{
    hosted_text(why);
    (void)hosted_ask(HOST_GIVE_UP);
}

const struct sched_api hosted_calls = {
    .size = sizeof(struct sched_api),
#define CALL(result, name, parameters, arguments) .name = call_##name,
#define TELL(name, parameters, arguments) .name = call_##name,
#include "sim/api/calls.def"
#undef CALL
#undef TELL
};
