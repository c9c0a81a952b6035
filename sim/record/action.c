#include "sim/record/action.h"

#include "sim/base/words.h"

/* ---- the table ---- */

#define AT(place, role_, member, log, text)                                                        \
    .field = FIELD(action, member, log, NULL), .role = (role_), .at = (place), .what = (text)
#define OPTION(member, log, words, name)                                                           \
    {                                                                                              \
        .field = FIELD(action, member, log, words), .key = (name), .what = (name)                  \
    }
#define SPAN(member, log, words) OPTION(span.member, #log, words, #member)
#define HOW(member) OPTION(how.member, #member, NULL, #member)
#define KEY(n)                                                                                     \
    {.field = FIELD(action, key.kind, NULL, words_residents),                                      \
     .at = 1,                                                                                      \
     .what = "what kind of resident"},                                                             \
        {AT(2, ARG_VALUE, key.a, NULL, "which resident")},                                         \
    {                                                                                              \
        AT(3, ARG_VALUE, key.b, NULL, "which resident"), .optional = (n) == 3                      \
    }
#define BYTES                                                                                      \
    {                                                                                              \
        AT(4, ARG_VALUE, bytes, "bytes", "bytes")                                                  \
    }
#define PLACE(n)                                                                                   \
    {                                                                                              \
        .field = FIELD(action, place, "to", words_places), .at = (n),                              \
        .what = "where to: memory, cache, flash or nowhere"                                        \
    }

static const struct action_arg form_args[] = {
    {AT(3, ARG_VALUE, fused, "fused", "fused"), .optional = true},
    {AT(1, ARG_NEW, pass, NULL, "the number of the pass")},
    {AT(2, ARG_SEGMENTS, n_segments, NULL, "a pass has segments")},
};
static const struct action_arg cancel_args[] = {{AT(1, ARG_PASS, pass, "pass", "which pass")}};
static const struct action_arg launch_args[] = {
    {AT(1, ARG_NEW, launch, NULL, "the number of the launch")},
    {AT(2, ARG_PASS, pass, "pass", "which pass")},
    {AT(3, ARG_VALUE, device, "device", "which device")},
    LAUNCH_SPEC_FIELDS(SPAN)};
static const struct action_arg preempt_args[] = {
    {AT(1, ARG_LAUNCH, launch, "launch", "which launch")}, PREEMPT_SPEC_FIELDS(HOW)};
static const struct action_arg resident_args[] = {KEY(3)};
static const struct action_arg load_args[] = {KEY(4), BYTES};
static const struct action_arg kv_args[] = {
    {AT(1, ARG_REQUEST, request, "request", "which request")},
    {AT(3, ARG_VALUE, from_token, "from", "from which token"), .optional = true},
    PLACE(2)};
static const struct action_arg kv_session_args[] = {
    {AT(1, ARG_VALUE, session, "session", "which session")}, PLACE(2)};
static const struct action_arg kv_rank_args[] = {
    {AT(1, ARG_REQUEST, request, "request", "which request")},
    {AT(2, ARG_VALUE, rank, "rank", "which rank")}};
static const struct action_arg timer_args[] = {{AT(1, ARG_VALUE, at_ns, "at", "when")}};
static const struct action_arg shed_args[] = {
    {AT(1, ARG_REQUEST, request, "request", "which request")}};
static const struct action_arg graph_args[] = {
    {AT(1, ARG_VALUE, version, "version", "which version")},
    {AT(2, ARG_VALUE, graph.rows, "rows", "how many rows")},
    {AT(3, ARG_VALUE, graph.n_blocks, "blocks", "how many blocks")}};
static const struct action_arg occupy_args[] = {
    {AT(1, ARG_VALUE, device, "device", "which device")},
    {AT(2, ARG_VALUE, at_ns, "until", "until when")}};

#define FORM(id, name, log, args)                                                                  \
    [ACTION_##id] = {(name), (log), (args), sizeof(args) / sizeof((args)[0])}
const struct action_form action_forms[ACTION_KINDS] = {
    FORM(FORM, "form", "form", form_args),
    FORM(CANCEL, "cancel", "cancel", cancel_args),
    FORM(LAUNCH, "launch", "launch", launch_args),
    FORM(PREEMPT, "preempt", "preempt", preempt_args),
    FORM(COMPILE, "compile", "compile", resident_args),
    FORM(LOAD, "load", "load", load_args),
    FORM(MAP, "map", "map", load_args),
    FORM(DROP, "drop", "drop", resident_args),
    FORM(KV, "kv", "kv", kv_args),
    FORM(KV_SESSION, "kv_session", "kv", kv_session_args),
    FORM(KV_RANK, "kv_rank", "kv_rank", kv_rank_args),
    FORM(TIMER, "timer", "timer", timer_args),
    FORM(SHED, "shed", "shed", shed_args),
    FORM(GRAPH, "graph", "graph", graph_args),
    FORM(OCCUPY, "occupy", "occupy", occupy_args),
};

/* ---- decision logs ---- */

/* Logs have arguments as " name=value". A resident's key comes first, as " kind:a:b"; segments come
 * last, each as " request:role:tokens". */

void action_write(FILE *out, const struct action *a)
{
    const struct action_form *form = &action_forms[a->kind];
    const char *between = " ";
    (void)fputs(form->log, out);
    for (uint32_t i = 0; i < form->n_args; i++) {
        const struct field *f = &form->args[i].field;
        if (form->args[i].role == ARG_NEW || form->args[i].role == ARG_SEGMENTS) {
            continue;
        }
        if (f->name == NULL) {
            fprintf(out, "%s%" PRIu64, between, field_u64(a, f));
            between = ":";
        } else if (f->type == FIELD_NUMBER) {
            fprintf(out, " %s=%.17g", f->name, field_number(a, f));
        } else {
            fprintf(out, " %s=%" PRId64, f->name, (int64_t)field_u64(a, f));
        }
    }
    for (uint32_t i = 0; i < a->n_segments; i++) {
        const struct segment *g = &a->segments[i];
        fprintf(out, " %" PRIu32 ":%d:%" PRIu32, g->request == NULL ? UINT32_MAX : g->request->id,
                (int)g->role, g->n_tokens);
    }
}

/* Parses one argument. Returns the end, or NULL if the text has another argument. */
static const char *read_arg(const char *p, struct action *a, const struct field *f)
{
    p += *p == ' ' || *p == ':';
    size_t n = f->name != NULL ? strlen(f->name) : 0;
    if (n > 0 && (strncmp(p, f->name, n) != 0 || p[n++] != '=')) {
        return NULL;
    }
    char *end = NULL;
    if (f->type == FIELD_NUMBER) {
        field_set_number(a, f, strtod(p + n, &end));
    } else {
        field_set(a, f, (uint64_t)strtoll(p + n, &end, 10));
    }
    return end == p + n ? NULL : end;
}

static int read_args(const char *p, struct action *a,
                     const struct request *(*find)(void *of, uint32_t id), void *of)
{
    const struct action_form *form = &action_forms[a->kind];
    for (uint32_t i = 0; i < form->n_args && p != NULL; i++) {
        if (form->args[i].role != ARG_NEW && form->args[i].role != ARG_SEGMENTS) {
            p = read_arg(p, a, &form->args[i].field);
        }
    }
    struct segment *segments = NULL; /* grows with the line: batches have no maximal size */
    uint32_t id = 0;
    uint32_t tokens = 0;
    int role = 0;
    int used = 0;
    for (; p != NULL && a->kind == ACTION_FORM &&
           sscanf(p, " %" SCNu32 ":%d:%" SCNu32 "%n", &id, &role, &tokens, &used) == 3;
         p += used) {
        LIST_ADD(segments, a->n_segments,
                 (struct segment){
                     .request = find(of, id), .role = (enum segment_role)role, .n_tokens = tokens});
    }
    a->segments = segments;
    return p == NULL ? -EPROTO : 0;
}

int action_read(const char *text, struct action *a,
                const struct request *(*find)(void *of, uint32_t id), void *of)
{
    size_t n = strcspn(text, " ");
    for (uint32_t k = 0; k < ACTION_KINDS; k++) {
        const char *log = action_forms[k].log;
        *a = (struct action){.kind = (enum action_kind)k};
        /* Two kinds may have one name in logs; their arguments differ. */
        if (strlen(log) == n && strncmp(log, text, n) == 0 &&
            read_args(text + n, a, find, of) == 0) {
            return 0;
        }
    }
    return -EPROTO;
}

/* ---- performing ---- */

static int form(struct sched *s, const struct action *a, struct action_objects *o)
{
    struct pass_spec spec = {.segments = a->segments,
                             .n_segments = a->n_segments,
                             .fused_layers = a->fused,
                             .policy_data = o->policy_data};
    return sched_pass_form(s, &spec, &o->pass);
}

static int launch(struct sched *s, const struct action *a, struct action_objects *o)
{
    struct launch_spec spec = a->span;
    spec.pass = o->pass;
    spec.device = (uint8_t)a->device;
    return sched_launch(s, &spec, &o->launch);
}

int action_do(struct sched *s, const struct action *a, struct action_objects *o)
{
    struct kv_part part = kv_of(o->request);
    part.from_token = a->from_token;
    switch (a->kind) {
    case ACTION_FORM:
        return form(s, a, o);
    case ACTION_CANCEL:
        return sched_pass_cancel(s, o->pass);
    case ACTION_LAUNCH:
        return launch(s, a, o);
    case ACTION_PREEMPT:
        return sched_preempt(s, o->launch, a->how);
    case ACTION_COMPILE:
        return sched_compile(s, a->key);
    case ACTION_LOAD:
        return sched_load(s, a->key, a->bytes);
    case ACTION_MAP:
        return sched_map(s, a->key, a->bytes);
    case ACTION_DROP:
        return sched_resident_evict(s, a->key);
    case ACTION_KV:
        return sched_kv_move(s, part, a->place);
    case ACTION_KV_SESSION:
        return sched_kv_move(s, kv_of_session(a->session), a->place);
    case ACTION_KV_RANK:
        return sched_kv_rank(s, o->request, a->rank);
    case ACTION_TIMER:
        return sched_set_timer(s, a->at_ns);
    case ACTION_SHED:
        return sched_shed(s, o->request);
    case ACTION_GRAPH:
        return a->version > UINT8_MAX ? -EINVAL : sched_graph(s, (uint8_t)a->version, a->graph);
    case ACTION_OCCUPY:
        return sched_occupy(s, (uint8_t)a->device, a->at_ns);
    case ACTION_KINDS:
        break;
    }
    return -EPROTO;
}
