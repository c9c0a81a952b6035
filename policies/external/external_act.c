/* What an external policy says: its actions, and its questions. A line that does not have the form
 * of the protocol ends the run; an action that the contract refuses, or that names what is gone, is
 * refused by name and the policy is told. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "policies/external/external_impl.h"

/* Never an errno of the contract: the action named what has ended, or was never accepted. */
#define GONE (-4096)

/* The members of an array, one after the other. The first that is not what it should be is
 * remembered, and nothing is read after it. */
struct args {
    const cJSON *at;
    const char *wrong; /* NULL: nothing so far */
};

static const cJSON *next(struct args *a)
{
    const cJSON *it = a->wrong == NULL ? a->at : NULL;
    a->at = it == NULL ? NULL : it->next;
    return it;
}

/* Limits come before every cast: a double beyond an integer's range has no defined value there, and
 * beyond 2^53 not every whole number is one. */
static double number(struct args *a, double min, double max, bool whole, const char *wrong)
{
    const cJSON *it = next(a);
    double v = cJSON_IsNumber(it) ? it->valuedouble : (double)NAN;
    if (!(v >= min && v <= max) || (whole && v != floor(v))) {
        a->wrong = a->wrong == NULL ? wrong : a->wrong;
        return min;
    }
    return v;
}

static uint32_t whole(struct args *a, const char *wrong)
{
    return (uint32_t)number(a, 0.0, UINT32_MAX, true, wrong);
}

static bool yes(struct args *a, const char *wrong)
{
    const cJSON *it = next(a);
    if (it != NULL && !cJSON_IsBool(it)) {
        a->wrong = wrong;
    }
    return cJSON_IsTrue(it);
}

static int word(struct args *a, const char *const *list, const char *wrong)
{
    const cJSON *it = next(a);
    int w = cJSON_IsString(it) ? words_find(list, it->valuestring) : -1;
    if (w < 0) {
        a->wrong = a->wrong == NULL ? wrong : a->wrong;
    }
    return w < 0 ? 0 : w;
}

/* ---- who is meant ---- */

static const struct request *find_request(const struct external_run *x, uint32_t id)
{
    uint32_t low = 0;
    uint32_t high = x->n_requests;
    while (low < high) {
        uint32_t mid = (low + high) / 2;
        if (x->requests[mid]->id < id) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    return low < x->n_requests && x->requests[low]->id == id ? x->requests[low] : NULL;
}

static struct told_pass *find_pass(const struct external_run *x, uint32_t id)
{
    /* From the newest: a pass is mostly launched in the line that formed it, and what ended is
     * gone, so that few stand before it. */
    for (uint32_t i = x->n_passes; i-- > 0;) {
        if (x->passes[i]->id == id) {
            return x->passes[i];
        }
    }
    return NULL;
}

static const struct launch *find_launch(const struct external_run *x, uint32_t id)
{
    for (uint32_t i = x->n_launches; i-- > 0;) {
        if (x->launches[i].id == id) {
            return x->launches[i].l;
        }
    }
    return NULL;
}

static struct resident_key key_of(struct args *a)
{
    struct resident_key k;
    k.kind = (enum resident_kind)word(a, external_residents, "what kind of resident");
    k.a = whole(a, "which resident");
    k.b = a->at != NULL && cJSON_IsNumber(a->at) ? whole(a, "which resident") : 0;
    return k;
}

/* ---- actions ---- */

/* Each reads what follows its name, acts unless something is wrong with that, and returns what the
 * contract does. */
typedef int act(struct sched *s, struct external_run *x, struct args *a);

static int form_segments(struct sched *s, struct external_run *x, struct pass_spec *spec,
                         struct told_pass *told)
{
    /* The core gives this back with pass_done, which names the pass by the program's number. */
    spec->policy_data = told;
    int rc = sched_pass_form(s, spec, &told->p);
    if (rc != 0) {
        free(told);
        return rc;
    }
    x->passes = xroom(x->passes, x->n_passes + 1, &x->cap_passes, sizeof told);
    x->passes[x->n_passes++] = told;
    return 0;
}

/* pass, [[request, role, tokens], ...], fused? */
static int act_form(struct sched *s, struct external_run *x, struct args *a)
{
    uint32_t id = whole(a, "the number of the pass");
    const cJSON *list = next(a);
    int n = cJSON_IsArray(list) ? cJSON_GetArraySize(list) : 0;
    /* 0 says of a request that it is in no pass, so no pass may be called so. */
    if (a->wrong == NULL && (n == 0 || id == 0 || find_pass(x, id) != NULL)) {
        a->wrong = n == 0 ? "a pass has segments" : "the number of the pass is not new";
    }
    struct segment *segments = xcalloc((size_t)n + 1, sizeof *segments);
    bool gone = false;
    uint32_t k = 0;
    const cJSON *it = NULL;
    for (it = n > 0 ? list->child : NULL; it != NULL && a->wrong == NULL; it = it->next) {
        struct args seg = {.at = cJSON_IsArray(it) ? it->child : NULL};
        segments[k].request = find_request(x, whole(&seg, "the request of a segment"));
        segments[k].role = (enum segment_role)word(&seg, external_roles, "the role of a segment");
        segments[k].n_tokens = whole(&seg, "the tokens of a segment");
        /* A request that ended meanwhile refuses the pass and not the run: the program decided on
         * what it was told last. The rest of the line is read all the same, so that what is
         * malformed is found. */
        gone = gone || segments[k++].request == NULL;
        a->wrong = seg.wrong;
    }
    struct pass_spec spec = {.segments = segments, .n_segments = k};
    spec.fused_layers = a->at != NULL && yes(a, "fused");
    int rc = GONE;
    if (a->wrong == NULL && !gone) {
        struct told_pass *told = xcalloc(1, sizeof *told);
        told->id = id;
        rc = form_segments(s, x, &spec, told);
    }
    free(segments);
    return rc;
}

static int act_cancel(struct sched *s, struct external_run *x, struct args *a)
{
    struct told_pass *p = find_pass(x, whole(a, "which pass"));
    return a->wrong != NULL || p == NULL ? GONE : sched_pass_cancel(s, p->p);
}

/* One member of the object of a launch. */
static void launch_option(struct launch_spec *spec, const cJSON *it, struct args *a)
{
    struct args v = {.at = it};
    const char *key = it->string;
    if (strcmp(key, "n_ops") == 0) {
        spec->n_ops = whole(&v, "n_ops");
    } else if (strcmp(key, "rows") == 0) {
        spec->rows = whole(&v, "rows");
    } else if (strcmp(key, "yield") == 0) {
        spec->yield = (enum yield_point)word(&v, external_yields, "yield");
    } else if (strcmp(key, "chunk_rows") == 0) {
        spec->chunk_rows = whole(&v, "chunk_rows");
    } else if (strcmp(key, "graph") == 0) {
        spec->graph = (uint8_t)number(&v, 0.0, UINT8_MAX, true, "graph");
    } else if (strcmp(key, "graph_block") == 0) {
        spec->graph_block = whole(&v, "graph_block");
    } else if (strcmp(key, "inflight") == 0) {
        spec->inflight = whole(&v, "inflight");
    } else {
        a->wrong = "a launch has n_ops, rows, yield, chunk_rows, graph, graph_block, inflight";
    }
    a->wrong = a->wrong == NULL ? v.wrong : a->wrong;
}

/* launch, pass, device, {what is not as usual}? */
static int act_launch(struct sched *s, struct external_run *x, struct args *a)
{
    uint32_t id = whole(a, "the number of the launch");
    struct told_pass *p = find_pass(x, whole(a, "which pass"));
    uint32_t device = whole(a, "which device");
    if (a->wrong == NULL && (id == 0 || find_launch(x, id) != NULL)) {
        a->wrong = "the number of the launch is not new";
    }
    if (a->wrong == NULL && device >= s->machine->n_devices) {
        a->wrong = "there is no such device";
    }
    if (a->wrong != NULL || p == NULL) {
        return GONE;
    }
    /* Options change the launch that most want, of all that is left of a pass; so programs in other
     * languages need not know how many ops and rows that is. */
    struct launch_spec spec = sched_launch_rest(s, p->p, (uint8_t)device, YIELD_PASS);
    const cJSON *options = next(a);
    const cJSON *it = cJSON_IsObject(options) ? options->child : NULL;
    for (; it != NULL && a->wrong == NULL; it = it->next) {
        launch_option(&spec, it, a);
    }
    if (a->wrong != NULL) {
        return GONE;
    }
    const struct launch *l = NULL;
    int rc = sched_launch(s, &spec, &l);
    if (rc == 0) {
        x->launches = xroom(x->launches, x->n_launches + 1, &x->cap_launches, sizeof *x->launches);
        x->launches[x->n_launches++] = (struct told_launch){.id = id, .l = l};
    }
    return rc;
}

/* launch, {now, discard, drain}? */
static int act_preempt(struct sched *s, struct external_run *x, struct args *a)
{
    const struct launch *l = find_launch(x, whole(a, "which launch"));
    const cJSON *how = next(a);
    struct preempt_spec spec = {
        .now = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(how, "now")),
        .discard = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(how, "discard")),
        .drain = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(how, "drain"))};
    if (how != NULL && !cJSON_IsObject(how)) {
        a->wrong = "how to stop: {now, discard, drain}";
    }
    return a->wrong != NULL || l == NULL ? GONE : sched_preempt(s, l, spec);
}

static int act_compile(struct sched *s, struct external_run *x, struct args *a)
{
    (void)x;
    struct resident_key k = key_of(a);
    return a->wrong != NULL ? GONE : sched_compile(s, k);
}

static int act_load(struct sched *s, struct external_run *x, struct args *a)
{
    (void)x;
    struct resident_key k = key_of(a);
    double bytes = number(a, 0.0, 1e15, false, "bytes");
    return a->wrong != NULL ? GONE : sched_load(s, k, bytes);
}

static int act_map(struct sched *s, struct external_run *x, struct args *a)
{
    (void)x;
    struct resident_key k = key_of(a);
    double bytes = number(a, 0.0, 1e15, false, "bytes");
    return a->wrong != NULL ? GONE : sched_map(s, k, bytes);
}

/* version, rows, blocks */
static int act_graph(struct sched *s, struct external_run *x, struct args *a)
{
    (void)x;
    uint32_t version = whole(a, "which version");
    struct graph_shape shape = {.rows = whole(a, "how many rows")};
    shape.n_blocks = whole(a, "how many blocks");
    return a->wrong != NULL      ? GONE
           : version > UINT8_MAX ? -EINVAL
                                 : sched_graph(s, (uint8_t)version, shape);
}

static int act_resident_evict(struct sched *s, struct external_run *x, struct args *a)
{
    (void)x;
    struct resident_key k = key_of(a);
    return a->wrong != NULL ? GONE : sched_resident_evict(s, k);
}

static const char *const places[] = {"memory", "cache", "flash", "nowhere", NULL};

/* request, place, from_token? */
static int act_kv_request(struct sched *s, struct external_run *x, struct args *a)
{
    const struct request *r = find_request(x, whole(a, "which request"));
    enum kv_place to = (enum kv_place)word(a, places, "where to: memory, cache, flash or nowhere");
    struct kv_part part = kv_of(r);
    part.from_token = a->at != NULL ? whole(a, "from which token") : 0;
    return a->wrong != NULL || r == NULL ? GONE : sched_kv_move(s, part, to);
}

/* session, place */
static int act_kv_session(struct sched *s, struct external_run *x, struct args *a)
{
    (void)x;
    struct kv_part part = kv_of_session(whole(a, "which session"));
    enum kv_place to = (enum kv_place)word(a, places, "where to: memory, cache, flash or nowhere");
    return a->wrong != NULL ? GONE : sched_kv_move(s, part, to);
}

static int act_timer(struct sched *s, struct external_run *x, struct args *a)
{
    x->timers = true;
    double at = number(a, 0.0, 9e18, true, "when");
    return a->wrong != NULL ? GONE : sched_set_timer(s, (int64_t)at);
}

static int act_shed(struct sched *s, struct external_run *x, struct args *a)
{
    const struct request *r = find_request(x, whole(a, "which request"));
    return a->wrong != NULL || r == NULL ? GONE : sched_shed(s, r);
}

static int act_note(struct sched *s, struct external_run *x, struct args *a)
{
    (void)x;
    const cJSON *name = next(a);
    double add = number(a, 0.0, 9e15, true, "how many");
    if (a->wrong != NULL || !cJSON_IsString(name)) {
        a->wrong = "the name of a counter, and how many";
        return GONE;
    }
    return sched_note(s, name->valuestring, (uint64_t)add);
}

static const char *const names[] = {"form",  "cancel", "launch", "preempt", "compile",
                                    "load",  "map",    "drop",   "kv",      "kv_session",
                                    "timer", "shed",   "note",   "graph",   NULL};
static act *const acts[] = {act_form,       act_cancel,     act_launch, act_preempt,
                            act_compile,    act_load,       act_map,    act_resident_evict,
                            act_kv_request, act_kv_session, act_timer,  act_shed,
                            act_note,       act_graph};

static void refuse(struct sched *s, struct external_run *x, uint32_t index, int rc)
{
    struct text *t = &x->refusals;
    text_string(t, t->n > 0 ? ",[" : "[");
    text_u64(t, index);
    text_string(t, ",\"");
    text_string(t, rc == GONE ? "gone" : external_error(rc));
    text_string(t, "\"]");
    x->n_refusals++;
    /* Refused by name and counted, so that a metric shows a program that lives in the past. */
    if (rc == GONE) { /* the core counts what it refuses itself */
        (void)sched_note(s, "refused_gone", 1);
    }
}

const char *external_act(struct sched *s, struct external_run *x, const cJSON *actions)
{
    uint32_t index = 0;
    if (!cJSON_IsArray(actions)) {
        return "actions come in an array";
    }
    for (const cJSON *it = actions->child; it != NULL; it = it->next, index++) {
        struct args a = {.at = cJSON_IsArray(it) ? it->child : NULL};
        int which = word(&a, names, "no such action");
        int rc = a.wrong == NULL ? acts[which](s, x, &a) : GONE;
        if (a.wrong == NULL && a.at != NULL) {
            a.wrong = "more than the action has";
        }
        if (a.wrong != NULL) {
            return a.wrong;
        }
        /* The actions after a refused one are tried: each stands for itself, and what built on it
         * is refused as gone. */
        if (rc != 0) {
            refuse(s, x, index, rc);
        }
    }
    return NULL;
}

/* ---- questions ---- */

/* [shape], op, device, rows?, chunk_rows?, graph?; without chunk_rows those of the device */
static void answer_estimate(struct sched *s, struct args *a, struct text *t)
{
    const cJSON *shape = next(a);
    struct args w = {.at = cJSON_IsArray(shape) ? shape->child : NULL};
    struct work_shape ws;
    ws.rows = whole(&w, "rows of a shape");
    ws.logit_rows = whole(&w, "logit_rows of a shape");
    ws.sequences = whole(&w, "sequences of a shape");
    ws.prefill_rows = whole(&w, "prefill_rows of a shape");
    ws.attn_pairs = (uint64_t)number(&w, 0.0, 9e15, true, "attn_pairs of a shape");
    ws.kv_read_tokens = (uint64_t)number(&w, 0.0, 9e15, true, "kv_read_tokens of a shape");
    ws.max_context_tokens = whole(&w, "max_context_tokens of a shape");
    a->wrong = a->wrong == NULL ? w.wrong : a->wrong;
    int op = word(a, words_ops, "which op");
    uint8_t device = (uint8_t)number(a, 0.0, UINT8_MAX, true, "which device");
    uint32_t rows = a->at != NULL ? whole(a, "rows") : 0;
    bool usual = a->at == NULL;
    uint32_t chunk = usual ? 0 : whole(a, "chunk_rows");
    uint8_t graph = a->at != NULL ? (uint8_t)number(a, 0.0, UINT8_MAX, true, "graph") : 0;
    struct estimate e;
    if (a->wrong != NULL) {
        return;
    }
    int rc = usual ? sched_estimate(s, &ws, (enum op_kind)op, device, rows, &e)
                   : sched_estimate_graph(s, &ws, (enum op_kind)op, device, rows, chunk, graph, &e);
    /* An answer with an error's name instead of numbers: a shape that no device takes is a fact
     * that a policy may ask for, not a mistake in its line. */
    if (rc != 0) {
        text_char(t, '"');
        text_string(t, external_error(rc));
        text_char(t, '"');
        return;
    }
    text_char(t, '[');
    text_ns(t, e.t_ns);
    text_char(t, ',');
    text_double(t, e.bytes_per_s);
    text_char(t, ',');
    text_double(t, e.flop_per_byte);
    text_char(t, ',');
    text_double(t, e.watts);
    text_char(t, ',');
    text_bool(t, e.memory_bound);
    text_char(t, ']');
}

static void answer_one(struct sched *s, struct external_run *x, const char *what, struct args *a,
                       struct text *t)
{
    static const char *const states[] = {"absent", "pending", "ready"};
    if (strcmp(what, "estimate") == 0) {
        answer_estimate(s, a, t);
    } else if (strcmp(what, "resident") == 0) {
        struct resident_key k = key_of(a);
        text_char(t, '"');
        text_string(t, states[a->wrong == NULL ? sched_resident_state(s, k) : RESIDENT_ABSENT]);
        text_char(t, '"');
    } else if (strcmp(what, "draft") == 0 || strcmp(what, "oracle") == 0) {
        const struct request *r = find_request(x, whole(a, "which request"));
        /* Hidden lengths are given to those that declared the flag `oracle` alone; the core
         * decides, as for policies in C. */
        int64_t tokens = r == NULL        ? GONE
                         : what[0] == 'd' ? (int64_t)sched_draft_tokens(s, r)
                                          : sched_oracle_output_tokens(s, r);
        if (tokens < 0) {
            text_string(t, tokens == GONE ? "\"gone\"" : "\"not_permitted\"");
        } else {
            text_u64(t, (uint64_t)tokens);
        }
    } else {
        a->wrong = "no such question";
    }
}

const char *external_answer(struct sched *s, struct external_run *x, const cJSON *questions)
{
    struct text *t = &x->line;
    t->n = 0;
    text_string(t, "[\"answers\",[");
    if (!cJSON_IsArray(questions)) {
        return "questions come in an array";
    }
    for (const cJSON *it = questions->child; it != NULL; it = it->next) {
        struct args a = {.at = cJSON_IsArray(it) ? it->child : NULL};
        const cJSON *what = next(&a);
        if (!cJSON_IsString(what)) {
            return "a question is an array that begins with its name";
        }
        text_string(t, it == questions->child ? "" : ",");
        answer_one(s, x, what->valuestring, &a, t);
        if (a.wrong == NULL && a.at != NULL) {
            a.wrong = "more than the question has";
        }
        if (a.wrong != NULL) {
            return a.wrong;
        }
    }
    text_string(t, "]]\n");
    return NULL;
}
