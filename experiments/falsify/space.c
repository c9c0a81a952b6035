#include "experiments/falsify/space.h"

#include "experiments/run/models.h"
#include "experiments/shell/cli.h"
#include "sim/base/json.h"
#include "sim/base/portable.h"
#include "sim/base/words.h"
#include "traces/traces.h"

#define NOMINAL_WITHIN 1e-12 /* a coordinate this near is the nominal one */

/* Bounds of the workload. Rates are from one at which requests hardly meet to about twice what the
 * machine of the papers serves. Lengths are a quarter to four times those of the data sets. Bounds
 * of the machine cover the differences between neighbouring products. */
#define WORKLOAD(name_, low_, high_, help_)                                                        \
    {                                                                                              \
        .name = (name_), .low = (low_), .high = (high_), .logarithmic = true, .help = (help_)      \
    }
#define AGENTS(name_, low_, high_, help_)                                                          \
    {                                                                                              \
        .name = (name_), .low = (low_), .high = (high_), .logarithmic = true, .help = (help_),     \
        .agents = true, .nominal = 1.0                                                             \
    }
#define MACHINE(name_, low_, high_, help_)                                                         \
    {                                                                                              \
        .name = (name_), .low = (low_), .high = (high_), .logarithmic = true, .help = (help_),     \
        .machine = true, .nominal = 1.0                                                            \
    }

static const struct space_axis known[] = {
    WORKLOAD("reactive_per_min", 0.25, 12, "reactive sessions per minute"),
    WORKLOAD("proactive_per_min", 0.25, 24, "proactive sessions per minute"),
    WORKLOAD("burst", 1, 8, "rate within bursts over the mean rate"),
    WORKLOAD("reactive_input_scale", 0.25, 4, "factor on reactive prompts"),
    WORKLOAD("proactive_input_scale", 0.25, 4, "factor on proactive prompts"),
    WORKLOAD("reactive_output_scale", 0.25, 4, "factor on reactive outputs"),
    WORKLOAD("proactive_output_scale", 0.25, 4, "factor on proactive outputs"),
    {.name = "sessions", .high = 1, .whole = true, .help = "1: whole conversations with prefixes"},
    AGENTS("rate", 0.25, 8, "factor on how often jobs start"),
    AGENTS("turns", 0.5, 2, "factor on the turns of jobs"),
    AGENTS("prompt", 0.25, 4, "factor on prompts and what they grow by"),
    AGENTS("answer", 0.25, 4, "factor on answers"),
    AGENTS("gap", 0.25, 4, "factor on the gaps between turns"),
    MACHINE("kv", 0.1, 1, "factor on the KV tokens that memory leaves"),
    MACHINE("ddr", 0.5, 2, "factor on the DDR's peak and all engines' bandwidths"),
    MACHINE("npu_rate", 0.25, 4, "factor on the NPU's flop/s"),
    MACHINE("igpu_rate", 0.5, 2, "factor on the iGPU's flop/s"),
};
#define N_KNOWN (sizeof known / sizeof known[0])

const struct space_axis *space_axis_known(uint32_t n)
{
    return n < N_KNOWN ? &known[n] : NULL;
}

static int axis_of(const struct space *s, const char *name, size_t length)
{
    for (uint32_t i = 0; i < s->n; i++) {
        if (strlen(s->axis[i].name) == length && strncmp(s->axis[i].name, name, length) == 0) {
            return (int)i;
        }
    }
    return -1;
}

/* ---- the workload's text ---- */

/* Parses "mixed:a=1,b=2". Values of axes become nominal, and other keys are kept. workload_text
 * derives active_share from burst. */
static int read_workload(struct space *s, const char *spec, struct err *e)
{
    bool mixed = strcmp(spec, "mixed") == 0 || strncmp(spec, "mixed:", 6) == 0;
    if (!mixed && !trace_workload_has_factors(spec)) {
        return err_add(e,
                       "--over workload: the workload must be mixed[:key=value,...] or one of "
                       "agents, whose keys are varied; \"%s\" is not",
                       spec);
    }
    const char *json = strstr(spec, ".json");
    size_t head = json != NULL ? (size_t)(json - spec) + 5 : strcspn(spec, ":");
    s->head = xkeep(xformat("%.*s", (int)head, spec));
    const char *part = spec[head] == ':' ? spec + head + 1 : "";
    struct text keys = {0};
    while (*part != '\0') {
        size_t length = strcspn(part, ",");
        size_t name = strcspn(part, "=,");
        int axis = axis_of(s, part, name);
        if (axis >= 0 && part[name] == '=') {
            s->axis[axis].nominal = strtod(part + name + 1, NULL);
            s->axis[axis].given = true;
        } else if (strncmp(part, "active_share", name) != 0) {
            text_item(&keys, ",", "");
            text_add(&keys, part, length);
        }
        part += length + (part[length] == ',' ? 1 : 0);
    }
    s->keys = xkeep(text_end(&keys));
    return 0;
}

/* ---- the machine's numbers ---- */

static void add_number(struct space *s, const char *path, const cJSON *quantity, int axis)
{
    const cJSON *v = json_member(quantity, "value");
    if (axis < 0 || !cJSON_IsNumber(v)) {
        return;
    }
    if (s->n_numbers < CONFIG_MAX_SETS) {
        s->number[s->n_numbers] =
            (struct space_number){xkeep(xstrdup(path)), v->valuedouble, (uint32_t)axis};
    }
    s->n_numbers++; /* space_init reports an excess */
}

/* Adds the rates and bandwidths of a runtime entry and of its nested one_row object. */
static void add_entry(struct space *s, const cJSON *entry, const char *path, int rate, int ddr)
{
    const cJSON *q;
    cJSON_ArrayForEach (q, entry) {
        OWNED char *at = xformat("%s.%s", path, q->string);
        if (strcmp(q->string, "rate") == 0) {
            add_number(s, at, q, rate);
        } else if (strcmp(q->string, "bandwidth") == 0) {
            add_number(s, at, q, ddr);
        } else if (strcmp(q->string, "one_row") == 0) {
            add_entry(s, q, at, rate, ddr);
        }
    }
}

static void find_numbers(struct space *s, const struct config *c)
{
    const cJSON *soc = json_member(c->tree, "soc");
    int ddr = axis_of(s, "ddr", 3);
    add_number(s, "soc.ddr.peak", json_member(json_member(soc, "ddr"), "peak"), ddr);
    const cJSON *devices = json_member(soc, "devices");
    for (uint32_t d = 0; d < c->soc.machine.n_devices; d++) {
        const struct device *dev = &c->soc.machine.devices[d];
        int rate = dev->kind == DEVICE_KIND_NPU    ? axis_of(s, "npu_rate", 8)
                   : dev->kind == DEVICE_KIND_IGPU ? axis_of(s, "igpu_rate", 9)
                                                   : -1;
        const cJSON *runtimes = json_member(cJSON_GetArrayItem(devices, (int)d), "runtimes");
        for (int k = 0; k < cJSON_GetArraySize(runtimes); k++) {
            OWNED char *path = xformat("soc.devices.%s.runtimes.%d", dev->name, k);
            add_entry(s, cJSON_GetArrayItem(runtimes, k), path, rate, ddr);
        }
    }
}

/* Whether the axis changes anything on this machine. */
static bool moves_something(const struct space *s, uint32_t axis)
{
    bool any = !s->axis[axis].machine || strcmp(s->axis[axis].name, "kv") == 0;
    for (uint32_t i = 0; i < s->n_numbers; i++) {
        any = any || s->number[i].axis == axis;
    }
    return any;
}

static void drop_idle_axes(struct space *s)
{
    for (uint32_t i = s->n; i-- > 0;) {
        if (!moves_something(s, i)) {
            memmove(&s->axis[i], &s->axis[i + 1], (s->n - i - 1) * sizeof s->axis[0]);
            s->n--;
            for (uint32_t k = 0; k < s->n_numbers; k++) {
                s->number[k].axis -= s->number[k].axis > i ? 1 : 0;
            }
        }
    }
}

/* KV tokens that the first run has room for. The memory of a runtime depends on its prompts. */
static double kv_tokens_left(const struct config_options *o, const struct config *c)
{
    SCOPED(err_fini) struct err none = ERR_INIT; /* its runs have the errors */
    SCOPED(trace_fini) struct trace t = {0};
    if (c->sim.kv_capacity_tokens > 0) {
        return c->sim.kv_capacity_tokens;
    }
    (void)config_trace(o, config_seed(o->seed, 0), CONFIG_AS_WRITTEN, &t, &none);
    double usable = c->soc.machine.memory_bytes * c->soc.machine.memory_usable_frac;
    double weights = (double)c->sim.weight_copies * c->llm.weight_bytes;
    return (usable - weights - models_runtime_bytes(c, &t)) / c->llm.kv_bytes_per_token;
}

int space_init(struct space *s, const struct config_options *o, const struct config *c,
               const char *over, struct err *e)
{
    memset(s, 0, sizeof *s);
    s->options = o;
    s->keys = "";
    s->head = "mixed";
    static const char *const forms[] = {"workload", "machine", "workload,machine",
                                        "machine,workload", NULL};
    bool workload = strstr(over, "workload") != NULL;
    bool machine = strstr(over, "machine") != NULL;
    if (words_find(forms, over) < 0) {
        return err_add(e, "--over %s: must be workload, machine or workload,machine", over);
    }
    const char *spec = o->workload != NULL ? o->workload : CONFIG_DEFAULT_WORKLOAD;
    bool agents = trace_workload_has_factors(spec);
    for (uint32_t i = 0; i < N_KNOWN; i++) {
        bool kv = strcmp(known[i].name, "kv") == 0;
        if (kv && c->n_more > 0) {
            continue; /* the KV left depends on which models are loaded */
        }
        if (known[i].machine ? machine : workload && known[i].agents == agents) {
            s->axis[s->n] = known[i];
            if (!known[i].machine && !agents) {
                (void)trace_workload_default(known[i].name, &s->axis[s->n].nominal);
            }
            s->n++;
        }
    }
    if (workload && read_workload(s, spec, e) != 0) {
        return -EINVAL;
    }
    s->kv_tokens = kv_tokens_left(o, c);
    find_numbers(s, c);
    if (o->n_sets + s->n_numbers + 1 > CONFIG_MAX_SETS) { /* 1 for KV */
        return err_add(e,
                       "--over machine: %u numbers of the machine vary and --set states %u; "
                       "together at most %d",
                       s->n_numbers + 1, o->n_sets, CONFIG_MAX_SETS);
    }
    drop_idle_axes(s);
    for (uint32_t i = 0; i < s->n; i++) {
        struct space_axis *a = &s->axis[i];
        a->low = fmin(a->low, a->nominal > 0.0 || !a->logarithmic ? a->nominal : a->low);
        a->high = fmax(a->high, a->nominal);
    }
    return 0;
}

/* ---- points ---- */

static double coordinate(const struct space_axis *a, double value)
{
    double v = value < a->low ? a->low : value;
    return a->logarithmic ? log(v / a->low) / log(a->high / a->low)
                          : (v - a->low) / (a->high - a->low);
}

struct space_point space_nominal(const struct space *s)
{
    struct space_point p = {{0.0}};
    for (uint32_t i = 0; i < s->n; i++) {
        p.u[i] = coordinate(&s->axis[i], s->axis[i].nominal);
    }
    return p;
}

double space_value(const struct space *s, const struct space_point *p, uint32_t axis)
{
    const struct space_axis *a = &s->axis[axis];
    double u = p->u[axis];
    if (fabs(u - coordinate(a, a->nominal)) < NOMINAL_WITHIN) {
        return a->nominal;
    }
    double v = a->logarithmic ? a->low * pow(a->high / a->low, u) : a->low + u * (a->high - a->low);
    v = a->whole ? floor(v + 0.5) : portable_digits(v, 2);
    return fmin(fmax(v, a->low), a->high);
}

bool space_is_nominal(const struct space *s, const struct space_point *p, uint32_t axis)
{
    return space_value(s, p, axis) == s->axis[axis].nominal;
}

static const char *workload_text(const struct space *s, const struct space_point *p)
{
    SCOPED(text_fini) struct text t = {0};
    text_string(&t, s->keys);
    for (uint32_t i = 0; i < s->n; i++) {
        const struct space_axis *a = &s->axis[i];
        double v = space_value(s, p, i);
        if (a->machine || (!a->given && space_is_nominal(s, p, i))) {
            continue;
        }
        text_item(&t, ",", a->name);
        text_format(&t, "=%g", v);
        if (strcmp(a->name, "burst") == 0 && v > 1.0) {
            /* rounded down, because burst x active_share must not exceed 1 */
            text_format(&t, ",active_share=%g", floor(1e4 / v) / 1e4);
        }
    }
    return xkeep(xformat("%s%s%s", s->head, t.n > 0 ? ":" : "", text_end(&t)));
}

static void add_set(struct config_options *o, const char *path, double value)
{
    config_options_set(o, xkeep(xformat("%s=%.6g", path, value)));
}

void space_options(const struct space *s, const struct space_point *p, struct config_options *out)
{
    *out = *s->options;
    bool workload = false;
    for (uint32_t i = 0; i < s->n; i++) {
        workload = workload || !s->axis[i].machine;
        if (strcmp(s->axis[i].name, "kv") == 0 && !space_is_nominal(s, p, i)) {
            add_set(out, "sim.kv_capacity_tokens", floor(s->kv_tokens * space_value(s, p, i)));
        }
    }
    if (workload) {
        out->workload = workload_text(s, p);
    }
    for (uint32_t i = 0; i < s->n_numbers; i++) {
        const struct space_number *x = &s->number[i];
        if (!space_is_nominal(s, p, x->axis)) {
            add_set(out, x->path, x->value * space_value(s, p, x->axis));
        }
    }
}

char *space_command(const struct space *s, const struct space_point *p)
{
    struct config_options o;
    struct config_word words[CONFIG_MAX_WORDS];
    struct text t = {0};
    space_options(s, p, &o);
    uint32_t n = config_options_words(&o, words);
    for (uint32_t i = 0; i < n; i++) {
        OWNED char *value = xmalloc(4 * strlen(words[i].value) + 3);
        text_format(&t, "%s--%s %s", i > 0 ? " " : "", words[i].option,
                    cli_word(words[i].value, true, value));
    }
    return text_end(&t);
}
