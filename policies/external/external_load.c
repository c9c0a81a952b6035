/* From a specification to a policy: reads the program's description. */
#include "policies/external/hosted_impl.h"
#include "sim/base/json.h"

#define MAX_PARAMS 63 /* its own; limit_s is added */

static const char *const flag_names[] = {"oracle", "busy_poll", NULL};
static const char *const need_names[] = {
    "spans",   "row_split", "kernel_yields",
    "compile", "load",      "kv_move",
    "reset",   "verify",    DEVICE_KINDS(DEVICE_KIND_NAME_) NULL};
static const uint32_t needs[] = {CAP_SPANS, CAP_ROW_SPLIT, CAP_YIELD_KERNEL, CAP_COMPILE,
                                 CAP_LOAD,  CAP_KV_MOVE,   CAP_RESET,        CAP_VERIFY};
#define N_NEEDS (sizeof needs / sizeof needs[0])

static uint32_t bits_of(struct external *x, struct json_obj *o, const char *key, int most,
                        const char *const *names)
{
    uint32_t bits = 0;
    const cJSON *it = NULL;
    bool is_needs = names == need_names;
    if (json_has(o, key)) {
        (void)json_get_array_size(o, key, 0, most);
    }
    cJSON_ArrayForEach (it, json_member(o->node, key)) {
        int i = words_find(names, cJSON_IsString(it) ? it->valuestring : NULL);
        if (i < 0) {
            (void)err_add(o->err, "--policy %s: it names a %s that there is not: %s", x->spec,
                          is_needs ? "need" : "flag",
                          cJSON_IsString(it) ? it->valuestring : "not a text");
        } else if (!is_needs) {
            bits |= 1u << i; /* POLICY_F_ORACLE, POLICY_F_BUSY_POLL */
        } else {
            bits |= (size_t)i < N_NEEDS ? needs[i] : CAP_DEVICE((uint32_t)i - (uint32_t)N_NEEDS);
        }
    }
    return bits;
}

/* Reads a list of strings; returns their number. Never freed. */
static int texts_of(struct json_obj *o, const char *key, const char *const **out)
{
    const cJSON *list = json_member(o->node, key);
    int n = json_get_array_size(o, key, 1, 64);
    const char **texts = xcalloc((size_t)n + 1, sizeof *texts);
    for (int i = 0; i < n; i++) {
        const cJSON *it = cJSON_GetArrayItem(list, i);
        texts[i] = xstrdup(cJSON_IsString(it) ? it->valuestring : "");
    }
    *out = texts;
    return n;
}

static void param_of(struct policy_param *p, struct json_obj *o)
{
    p->name = xstrdup(json_get_string(o, "name"));
    p->type = (enum param_type)json_get_choice(o, "type", external_param_types);
    p->help = xstrdup(json_string_or(o, "help", ""));
    switch (p->type) {
    case PARAM_CHOICE:
        p->max = texts_of(o, "choices", &p->choices) - 1;
        p->def = p->max >= 0.0 ? json_get_choice(o, "default", p->choices) : 0.0;
        break;
    case PARAM_BOOL:
        p->def = json_get_bool(o, "default") ? 1.0 : 0.0;
        p->max = 1.0;
        break;
    case PARAM_INT:
    case PARAM_NUMBER:
        p->min = json_get_number(o, "min", -1e300, 1e300);
        p->max = json_get_number(o, "max", p->min, 1e300);
        p->def = json_get_number(o, "default", p->min, p->max);
        break;
    }
    json_done(o);
}

static void params_of(struct external *x, struct json_obj *o)
{
    int most = x->hosted ? MAX_PARAMS + 1 : MAX_PARAMS;
    int n = json_has(o, "params") ? json_get_array_size(o, "params", 0, most) : 0;
    for (int i = 0; i < n; i++) {
        struct json_obj p = json_array_object(o, "params", i);
        param_of(&x->params[x->n_params++], &p);
    }
    x->ops.params = x->params;
    if (x->hosted) {
        return; /* a plug-in has the parameters of its file only */
    }
    x->params[x->n_params] = (struct policy_param)POLICY_NUMBER(
        "limit_s", x->limit_s, 0, 1e6,
        "wall clock for one answer of the process, its start included, s; 0: the default");
}

/* Members of a description that only plug-ins have. */
static void plugin_of(struct external *x, struct json_obj *o)
{
    x->ops.flags = json_get_u32(o, "flag_bits", 0, UINT32_MAX);
    x->ops.needs = json_get_u32(o, "need_bits", 0, UINT32_MAX);
    x->ops.state_size_bytes = json_get_u32(o, "state_bytes", 0, UINT32_MAX);
    x->ops.request_state_size_bytes = json_get_u32(o, "request_state_bytes", 0, UINT32_MAX);
    hosted_hooks(&x->ops, json_get_u32(o, "hooks", 0, UINT32_MAX));
    if (json_has(o, "presets")) {
        (void)texts_of(o, "presets", &x->ops.presets);
    }
}

static void description_of(struct external *x, const cJSON *tree, const char *place, struct err *e)
{
    struct json_obj o = json_root(tree, place, e);
    uint32_t version = json_get_u32(&o, "protocol", 0, UINT32_MAX);
    /* In another version the other members may have other meanings. */
    if (version != EXTERNAL_PROTOCOL) {
        (void)err_add(e, "--policy %s: it speaks version %u of the protocol, this xpusim %u",
                      x->spec, version, EXTERNAL_PROTOCOL);
        return;
    }
    x->ops.name = xstrdup(json_get_string(&o, "name"));
    x->ops.summary = xstrdup(json_get_string(&o, "summary"));
    x->ops.flags = bits_of(x, &o, "flags", 8, flag_names);
    x->ops.needs = bits_of(x, &o, "needs", 32, need_names);
    x->sleeps = json_flag(&o, "sleeps");
    x->steady = json_flag(&o, "steady");
    if (json_has(&o, "ablations")) {
        uint32_t n = json_get_strings(&o, "ablations", 1, MAX_PARAMS, x->ablations);
        for (uint32_t i = 0; i < n; i++) {
            x->ablations[i] = xstrdup(x->ablations[i]);
        }
        x->ops.ablations = x->ablations;
    }
    x->limit_s = json_number_or(&o, "limit_s", 1e-3, 1e6, x->limit_s);
    if (x->hosted) {
        plugin_of(x, &o);
    }
    params_of(x, &o);
    json_done(&o);
}

int external_ask(struct external *x, struct err *e)
{
    struct process p;
    static const char hello[] = EXTERNAL_HELLO;
    size_t before = e->n;
    char *line = NULL;
    /* The protocol's limit, because the program's own is not known yet. */
    if (process_start(&p, x->argv, external_confines(x), EXTERNAL_LIMIT_S) == 0) {
        (void)process_send(&p, hello, sizeof hello - 1); /* it may have answered and exited */
        line = process_receive(&p);
    }
    SCOPED(json_drop) cJSON *tree = line != NULL ? cJSON_Parse(line) : NULL;
    const cJSON *error = json_member(tree, "error");
    bool missing = line == NULL && strstr(p.failure, "no such program") != NULL;
    if (missing && x->python) {
        (void)err_add(e,
                      "--policy %s: %s was not found: install it (Debian: python3), or name an "
                      "interpreter in XPUSIM_PYTHON",
                      x->spec, x->argv[0]);
    } else if (missing) {
        (void)err_add(e, "--policy %s: there is no such program", x->spec);
    } else if (line == NULL) {
        (void)err_add(e, "--policy %s: %s before it said what it is", x->spec, p.failure);
    } else if (cJSON_IsString(error)) {
        /* A plug-in's error names the file already. */
        (void)err_add(e, x->hosted ? "%.0s%s" : "--policy %s: %s", x->spec, error->valuestring);
    } else if (!cJSON_IsObject(tree)) {
        (void)err_add(e,
                      "--policy %s: its first line must be what it is, as an object of JSON "
                      "(docs/policy-protocol.md): %.80s",
                      x->spec, line);
    } else {
        OWNED char *place = xformat("--policy %s: its description", x->spec);
        description_of(x, tree, place, e);
    }
    process_end(&p);
    return e->n > before ? -EINVAL : 0;
}

struct external *external_loaded;

struct external *external_known(const char *spec, size_t n)
{
    struct external *x = external_loaded;
    while (x != NULL && (!x->usable || strncmp(x->spec, spec, n) != 0 || x->spec[n] != '\0')) {
        x = x->next;
    }
    return x;
}

void external_begin(struct external *x, char *spec)
{
    x->spec = spec;
    x->limit_s = EXTERNAL_LIMIT_S;
    /* Before the program is asked, so that the first run detects an edit made between the two. */
    x->content = external_content(x);
    x->ops.contract = (struct policy_contract)POLICY_CONTRACT;
    x->next = external_loaded;
    external_loaded = x;
}

const struct policy_ops *external_load(const char *spec, struct err *e)
{
    size_t n = external_spec_length(spec);
    /* One policy per specification, though every run of a study names it: a start is slow, and
     * metrics and tables use its strings. Failed ones are asked again, because each caller needs
     * the error. */
    struct external *x = external_known(spec, n);
    if (x != NULL) {
        return &x->ops;
    }
    x = xcalloc(1, sizeof *x);
    external_begin(x, xformat("%.*s", (int)n, spec));
    external_hooks(&x->ops);
    x->usable = external_command(x, e) == 0;
    if (x->usable) {
        const char *why = NULL;
        x->confined = jail_works(&why);
        static bool said;
        if (!x->confined && !said) {
            said = true;
            (void)fprintf(stderr, "xpusim: note: programs run without a jail: %s\n", why);
        }
        x->jail = external_jail(x->argv, x->python);
        x->usable = external_ask(x, e) == 0;
    }
    return x->usable ? &x->ops : NULL;
}
