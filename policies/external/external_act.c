/* Lines of an external policy: its actions and its questions. A line that breaks the protocol ends
 * the run. If the contract refuses an action, or its object has ended, the next message has a named
 * error. */
#include "policies/external/external_impl.h"
#include "sim/record/action.h"

/* Not an errno of the contract: the action's object has ended, or was never accepted. */
#define GONE (-4096)

/* A cursor over the members of an array. After the first wrong one it records the error, and reads
 * nothing more. */
struct args {
    const cJSON *at;
    const char *wrong; /* NULL: no error so far */
};

static const cJSON *next(struct args *a)
{
    const cJSON *it = a->wrong == NULL ? a->at : NULL;
    a->at = it == NULL ? NULL : it->next;
    return it;
}

/* Checks limits before the cast: a double outside an integer's range has no defined value there,
 * and above 2^53 some integers are missing. */
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

/* Reads the value of a member, within the limits of its type. */
static void read_value(struct args *a, void *of, const struct field *f, const char *what)
{
    /* Above 2^53 some integers are missing; instants stay below that. */
    double max = f->type == FIELD_U8    ? UINT8_MAX
                 : f->type == FIELD_U32 ? UINT32_MAX
                 : f->type == FIELD_U64 ? 9e15
                                        : 9e18;
    if (f->words != NULL) {
        field_set(of, f, (uint64_t)word(a, f->words, what));
    } else if (f->type == FIELD_FLAG) {
        field_set(of, f, yes(a, what));
    } else if (f->type == FIELD_NUMBER) {
        field_set_number(of, f, number(a, 0.0, 1e15, false, what));
    } else {
        field_set(of, f, (uint64_t)number(a, 0.0, max, true, what));
    }
}

/* ---- look-up of objects ---- */

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
    /* Searches from the newest pass. Most passes are launched in the line that forms them, and
     * ended passes are removed, so the search is short. */
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
    k.kind = (enum resident_kind)word(a, words_residents, "what kind of resident");
    k.a = whole(a, "which resident");
    k.b = a->at != NULL && cJSON_IsNumber(a->at) ? whole(a, "which resident") : 0;
    return k;
}

/* ---- actions ---- */

/* Reads [[request, role, tokens], ...] for the action; the caller frees it. An ended request
 * refuses the pass but not the run, because the program may not know of the end yet. Reading
 * continues to the end of the line, to find malformed parts. */
static struct segment *read_segments(const struct external_run *x, struct args *a,
                                     struct action *act, bool *gone)
{
    const cJSON *list = next(a);
    int n = cJSON_IsArray(list) ? cJSON_GetArraySize(list) : 0;
    struct segment *segments = xcalloc((size_t)n + 1, sizeof *segments);
    a->wrong = a->wrong == NULL && n == 0 ? "a pass has segments" : a->wrong;
    const cJSON *it = NULL;
    for (it = n > 0 ? list->child : NULL; it != NULL && a->wrong == NULL; it = it->next) {
        struct args seg = {.at = cJSON_IsArray(it) ? it->child : NULL};
        struct segment *g = &segments[act->n_segments++];
        g->request = find_request(x, whole(&seg, "the request of a segment"));
        g->role = (enum segment_role)word(&seg, words_roles, "the role of a segment");
        g->n_tokens = whole(&seg, "the tokens of a segment");
        *gone = *gone || g->request == NULL;
        a->wrong = seg.wrong;
    }
    act->segments = segments;
    return segments;
}

/* Reads the object at the end of an action, whose members are the keys of the table. */
static void read_options(struct args *a, struct action *act, const struct action_form *form)
{
    const cJSON *options = a->wrong == NULL ? next(a) : NULL;
    if (options != NULL && !cJSON_IsObject(options)) {
        a->wrong = "options are an object";
    }
    const cJSON *it = cJSON_IsObject(options) ? options->child : NULL;
    for (; it != NULL && a->wrong == NULL; it = it->next) {
        struct args v = {.at = it};
        const struct action_arg *arg = NULL;
        for (uint32_t i = 0; i < form->n_args && arg == NULL; i++) {
            const char *key = form->args[i].key;
            arg = key != NULL && strcmp(key, it->string) == 0 ? &form->args[i] : NULL;
        }
        if (arg != NULL) {
            read_value(&v, act, &arg->field, arg->what);
        }
        a->wrong = arg == NULL ? "the action has no such option" : v.wrong;
    }
}

/* Finds the object of a program's number. False: none, or it has ended. */
static bool find_object(const struct external_run *x, struct args *a, const struct action *act,
                        enum arg_role role, struct action_objects *o)
{
    const struct told_pass *p = NULL;
    switch (role) {
    case ARG_REQUEST:
        o->request = find_request(x, act->request);
        return o->request != NULL;
    case ARG_PASS:
        p = find_pass(x, act->pass);
        o->pass = p != NULL ? p->p : NULL;
        return p != NULL;
    case ARG_LAUNCH:
        o->launch = find_launch(x, act->launch);
        return o->launch != NULL;
    case ARG_NEW:
        /* 0 means "in no pass" in a request, so no pass may have that number. */
        if (act->kind == ACTION_FORM ? act->pass == 0 || find_pass(x, act->pass) != NULL
                                     : act->launch == 0 || find_launch(x, act->launch) != NULL) {
            a->wrong = a->wrong == NULL ? "the number of what it makes is not new" : a->wrong;
        }
        return true;
    case ARG_VALUE:
    case ARG_SEGMENTS:
        break;
    }
    return true;
}

static const struct action_arg *arg_at(const struct action_form *form, uint32_t place)
{
    for (uint32_t i = 0; i < form->n_args; i++) {
        if (form->args[i].at == place) {
            return &form->args[i];
        }
    }
    return NULL;
}

/* Performs a valid action, and stores the new object with the program's number. */
static int perform(struct sched *s, struct external_run *x, const struct action *act,
                   struct action_objects *o)
{
    /* pass_done gets this as policy_data, and sends the program's number of the pass. */
    struct told_pass *told = act->kind == ACTION_FORM ? xcalloc(1, sizeof *told) : NULL;
    o->policy_data = told;
    x->timers = x->timers || act->kind == ACTION_TIMER || act->kind == ACTION_OCCUPY;
    int rc = action_do(s, act, o);
    if (rc == 0 && told != NULL) {
        *told = (struct told_pass){.id = act->pass, .p = o->pass};
        x->passes = xroom(x->passes, x->n_passes + 1, &x->cap_passes, sizeof told);
        x->passes[x->n_passes++] = told;
        return 0;
    }
    free(told);
    if (rc == 0 && act->kind == ACTION_LAUNCH) {
        x->launches = xroom(x->launches, x->n_launches + 1, &x->cap_launches, sizeof *x->launches);
        x->launches[x->n_launches++] = (struct told_launch){.id = act->launch, .l = o->launch};
        /* Send the pass in any case. A launch that is stopped in the same line leaves it unchanged,
         * but the program believes that it is running. */
        find_pass(x, act->pass)->told.v[0] = UINT64_MAX;
    }
    return rc;
}

/* Reads an action's arguments, and performs it if they are valid. Returns the contract's result. */
static int act(struct sched *s, struct external_run *x, struct args *a, enum action_kind kind)
{
    const struct action_form *form = &action_forms[kind];
    struct action act = {.kind = kind};
    struct action_objects o = {.request = NULL};
    OWNED struct segment *segments = NULL;
    bool gone = false;
    const struct action_arg *arg = NULL;
    for (uint32_t place = 1; (arg = arg_at(form, place)) != NULL; place++) {
        if (arg->optional && a->at == NULL) {
            break;
        }
        if (arg->role == ARG_SEGMENTS) {
            segments = read_segments(x, a, &act, &gone);
        } else {
            read_value(a, &act, &arg->field, arg->what);
        }
        gone = !find_object(x, a, &act, arg->role, &o) || gone;
    }
    if (kind == ACTION_LAUNCH && a->wrong == NULL && act.device >= s->machine->n_devices) {
        a->wrong = "there is no such device";
    }
    /* The default is the most common launch, of all that is left of the pass, so that programs need
     * not know its ops and rows. Options change it. */
    if (kind == ACTION_LAUNCH && a->wrong == NULL && !gone) {
        act.span = sched_launch_rest(s, o.pass, (uint8_t)act.device, YIELD_PASS);
    }
    if (kind == ACTION_LAUNCH || kind == ACTION_PREEMPT) {
        read_options(a, &act, form);
    }
    return a->wrong == NULL && !gone ? perform(s, x, &act, &o) : GONE;
}

static int act_note(struct sched *s, struct args *a)
{
    const cJSON *name = next(a);
    double add = number(a, 0.0, 9e15, true, "how many");
    if (a->wrong != NULL || !cJSON_IsString(name)) {
        a->wrong = "the name of a counter, and how many";
        return GONE;
    }
    return sched_note(s, name->valuestring, (uint64_t)add);
}

/* A note is not in the table, because it is no action and not logged. */
static int act_by_name(struct sched *s, struct external_run *x, struct args *a)
{
    const cJSON *name = next(a);
    for (uint32_t k = 0; k < ACTION_KINDS && cJSON_IsString(name); k++) {
        if (strcmp(action_forms[k].name, name->valuestring) == 0) {
            return act(s, x, a, (enum action_kind)k);
        }
    }
    if (cJSON_IsString(name) && strcmp(name->valuestring, "note") == 0) {
        return act_note(s, a);
    }
    a->wrong = "no such action";
    return GONE;
}

static const char *error_name(int rc)
{
    switch (-rc) {
    case EBUSY:
        return "busy";
    case ENOMEM:
        return "no_memory";
    case ENOENT:
        return "missing";
    case EALREADY:
        return "already";
    case EPERM:
        return "not_permitted";
    default:
        return "invalid";
    }
}

static void refuse(struct sched *s, struct external_run *x, uint32_t index, int rc)
{
    struct text *t = &x->refusals;
    text_format(t, "%s[%" PRIu32 ",\"%s\"]", t->n > 0 ? "," : "", index,
                rc == GONE ? "gone" : error_name(rc));
    x->n_refusals++;
    /* Counted, so that a metric shows programs that act on outdated facts. */
    if (rc == GONE) { /* the core counts its own refusals */
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
        int rc = act_by_name(s, x, &a);
        if (a.wrong == NULL && a.at != NULL) {
            a.wrong = "more than the action has";
        }
        if (a.wrong != NULL) {
            return a.wrong;
        }
        /* After a refused action the later ones are still tried. Those that need its object are
         * refused as gone. */
        if (rc != 0) {
            refuse(s, x, index, rc);
        }
    }
    return NULL;
}

/* ---- questions ---- */

/* Answers [shape], op, device, rows?, chunk_rows?, graph?; default chunk_rows: the device's. */
static void answer_estimate(struct sched *s, struct args *a, struct text *t)
{
    const cJSON *shape = next(a);
    struct args w = {.at = cJSON_IsArray(shape) ? shape->child : NULL};
    struct work_shape ws = {0};
    /* The last three members (from the model on) may be left out. */
    for (uint32_t i = 0; i < external_shape.n && (w.at != NULL || i + 3 < external_shape.n); i++) {
        read_value(&w, &ws, &external_shape.rows[i], "the numbers of a shape");
    }
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
    /* On error, the answer is its name instead of numbers: that no device takes a shape is a fact
     * to ask for, not a mistake in the line. */
    if (rc != 0) {
        text_format(t, "\"%s\"", error_name(rc));
        return;
    }
    text_char(t, '[');
    external_write(t, &e, &external_estimate);
    text_char(t, ']');
}

static void answer_one(struct sched *s, struct external_run *x, const char *what, struct args *a,
                       struct text *t)
{
    static const char *const states[] = {"absent", "pending", "ready"};
    if (strcmp(what, "estimate") == 0) {
        answer_estimate(s, a, t);
    } else if (strcmp(what, "machine_state") == 0) {
        const struct machine_state now = sched_machine_state(s);
        text_char(t, '[');
        external_write(t, &now, &external_machine_state);
        text_char(t, ']');
    } else if (strcmp(what, "resident") == 0) {
        struct resident_key k = key_of(a);
        text_format(t, "\"%s\"",
                    states[a->wrong == NULL ? sched_resident_state(s, k) : RESIDENT_ABSENT]);
    } else if (strcmp(what, "draft") == 0 || strcmp(what, "cached") == 0 ||
               strcmp(what, "oracle") == 0) {
        const struct request *r = find_request(x, whole(a, "which request"));
        /* Only policies with the flag `oracle` get hidden lengths; the core decides, as for
         * policies in C. */
        int64_t tokens = r == NULL        ? GONE
                         : what[0] == 'd' ? (int64_t)sched_draft_tokens(s, r)
                         : what[0] == 'c' ? (int64_t)sched_kv_cached_tokens(s, r)
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
