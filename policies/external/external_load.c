#define _DEFAULT_SOURCE /* realpath */
/* From a specification to a policy: how the program is started, and what it says it is. */
#include <unistd.h>

#include "policies/external/hosted_impl.h"
#include "sim/base/datadir.h"
#include "sim/base/hash.h"
#include "sim/base/json.h"

#define EXEC "exec:"
#define PYTHON "python:"
#define KEY_LETTERS "abcdefghijklmnopqrstuvwxyz0123456789_"
#define MAX_PARAMS 63 /* of its own: limit_s is one more */

/* ---- specifications ---- */

/* "key=" */
static bool is_params(const char *text)
{
    size_t n = strspn(text, KEY_LETTERS);
    return n > 0 && text[n] == '=';
}

size_t external_spec_length(const char *spec)
{
    if (text_begins(spec,
                    EXEC)) { /* a command may hold colons: the last one with a key behind it */
        const char *colon = strrchr(spec + strlen(EXEC) - 1, ':');
        bool params = colon > spec + strlen(EXEC) && (is_params(colon + 1) || colon[1] == '\0');
        return params ? (size_t)(colon - spec) : strlen(spec);
    }
    if (!text_begins(spec, PYTHON)) {
        return 0;
    }
    /* A file's name and a class have no colons; so everything behind the second one is parameters,
     * of whatever form, and errors in them are told as such. */
    size_t n = strlen(PYTHON) + strcspn(spec + strlen(PYTHON), ":"); /* the file */
    return spec[n] == ':' ? n + 1 + strcspn(spec + n + 1, ":") : n;
}

char *external_file(const char *spec)
{
    bool python = text_begins(spec, PYTHON);
    const char *file = spec + strlen(python ? PYTHON : EXEC);
    size_t len = strcspn(file, python ? ":" : " :");
    /* found in PATH: part of the system, not of the experiment */
    bool of_system = !python && memchr(file, '/', len) == NULL;
    return of_system ? NULL : xformat("%.*s", (int)len, file);
}

char *external_real_name(const char *path)
{
    char *real = realpath(path, NULL);
    return real != NULL ? real : xstrdup(path);
}

/* The command line of a specification. Owned by x. */
static int command_line(struct external *x, struct err *e)
{
    if (text_begins(x->spec, EXEC)) {
        const char *command = x->spec + strlen(EXEC);
        if (command[strspn(command, " ")] == '\0') {
            return err_add(e, "--policy %s: a command is missing: exec:./program arguments",
                           x->spec);
        }
        /* The shell becomes the program: the process that is waited for and killed is the policy
         * itself and not a shell that leaves it behind. */
        size_t first = strcspn(command, " ");
        char *word = xformat("%.*s", (int)first, command);
        if (text_begins(word, "python") && jail_works(NULL)) {
            char *real = external_interpreter(word);
            free(word);
            word = real;
        }
        char *line = xformat("exec %s%s", word, command + first);
        free(word);
        x->argv[0] = xstrdup("/bin/sh");
        x->argv[1] = xstrdup("-c");
        x->argv[2] = line;
        return 0;
    }
    const char *file = x->spec + strlen(PYTHON);
    x->python = true;
    const char *colon = strchr(file, ':');
    if (colon == NULL || colon == file || colon[1] == '\0') {
        return err_add(e, "--policy %s: must be python:FILE.py:CLASS", x->spec);
    }
    const char *python = getenv("XPUSIM_PYTHON");
    python = python != NULL && *python != '\0' ? python : "python3";
    x->argv[0] = jail_works(NULL) ? external_interpreter(python) : xstrdup(python);
    x->argv[1] = external_real_name(datadir_path("policies/python"));
    /* Asked here, so that the error is one line about the specification and not what an interpreter
     * prints. */
    OWNED char *program = external_file(x->spec);
    if (access(program, R_OK) != 0) {
        return err_add(e, "--policy %s: cannot read: %s", program, strerror(errno));
    }
    x->argv[2] = external_real_name(program);
    x->argv[3] = xstrdup(colon + 1);
    return 0;
}

/* ---- what a program says it is ---- */

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

int external_texts(struct json_obj *o, const char *key, const char *const **out)
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
        p->max = external_texts(o, "choices", &p->choices) - 1;
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
        return; /* its parameters are those of its file, wherever it runs */
    }
    char *help = xformat("wall clock for one answer of the process, its start included, s; 0: %g",
                         x->limit_s);
    x->params[x->n_params] = (struct policy_param)POLICY_NUMBER("limit_s", 0, 0, 1e6, help);
}

static void description_of(struct external *x, const cJSON *tree, const char *place, struct err *e)
{
    struct json_obj o = json_root(tree, place, e);
    uint32_t version = json_get_u32(&o, "protocol", 0, UINT32_MAX);
    /* Nothing else of it is read: the other members may mean something else there. */
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
        hosted_members(x, &o);
    }
    params_of(x, &o);
    json_done(&o);
}

uint64_t external_content(const struct external *x)
{
    OWNED char *path = x->hosted ? xstrdup(x->spec) : external_file(x->spec);
    return path != NULL ? hash_file(path) : 0;
}

int external_ask(struct external *x, struct err *e)
{
    struct process p;
    static const char hello[] = EXTERNAL_HELLO;
    size_t before = e->n;
    char *line = NULL;
    /* The protocol's limit: the program's own is what it is being asked for. */
    if (process_start(&p, x->argv, external_confines(x), EXTERNAL_LIMIT_S) == 0) {
        (void)process_send(&p, hello, sizeof hello - 1); /* it may have said it and gone */
        line = process_receive(&p);
    }
    SCOPED(json_drop) cJSON *tree = line != NULL ? cJSON_Parse(line) : NULL;
    const cJSON *error = json_member(tree, "error");
    if (line == NULL && strstr(p.failure, "no such program") != NULL &&
        text_begins(x->spec, PYTHON)) {
        (void)err_add(e,
                      "--policy %s: %s was not found: install it (Debian: python3), or name an "
                      "interpreter in XPUSIM_PYTHON",
                      x->spec, x->argv[0]);
    } else if (line == NULL) {
        (void)err_add(e, "--policy %s: %s before it said what it is", x->spec, p.failure);
    } else if (cJSON_IsString(error)) {
        /* A plug-in's file is named already. */
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
    /* Before the program is asked: an edit between the two is then seen by the first run, where it
     * would be missed the other way round. */
    x->content = external_content(x);
    x->ops.contract = (struct policy_contract)POLICY_CONTRACT;
    x->next = external_loaded;
    external_loaded = x;
}

const struct policy_ops *external_load(const char *spec, struct err *e)
{
    size_t n = external_spec_length(spec);
    /* Once a specification, though every run of a study names it: the program is started to be
     * asked, and metrics and tables hold the strings of its parameters. One that was asked in vain
     * is asked again; its error belongs to each who names it. */
    struct external *x = external_known(spec, n);
    if (x != NULL) {
        return &x->ops;
    }
    x = xcalloc(1, sizeof *x);
    external_begin(x, xformat("%.*s", (int)n, spec));
    external_hooks(&x->ops);
    x->usable = command_line(x, e) == 0;
    if (x->usable) {
        const char *why = NULL;
        x->confined = jail_works(&why);
        static bool said;
        if (!x->confined && !said) {
            said = true;
            (void)fprintf(stderr, "xpusim: note: programs run without a jail: %s\n", why);
        }
        x->jail = external_jail(x->argv, text_begins(x->spec, PYTHON));
        x->usable = external_ask(x, e) == 0;
    }
    return x->usable ? &x->ops : NULL;
}
