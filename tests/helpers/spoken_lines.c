#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "sim/base/json.h"
#include "tests/helpers/spoken.h"
#include "tests/helpers/suite.h"

/* ---- actions as lines ---- */

static int error_of(const char *name)
{
    static const struct {
        const char *name;
        int rc;
    } errors[] = {{"busy", -EBUSY},       {"no_memory", -ENOMEM},    {"missing", -ENOENT},
                  {"already", -EALREADY}, {"not_permitted", -EPERM}, {"invalid", -EINVAL}};
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++) {
        if (strcmp(errors[i].name, name) == 0) {
            return errors[i].rc;
        }
    }
    ck_abort_msg("refused as %s", name);
}

/* Does one action; what the call would return. */
static int speak(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static int speak(const char *fmt, ...)
{
    struct external_run *x = spoken_run(spoken.real);
    char text[1024];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    SCOPED(json_drop) cJSON *actions = cJSON_Parse(text);
    uint32_t before = x->n_refusals;
    const char *wrong = external_act(spoken.real, x, actions);
    ck_assert_msg(wrong == NULL, "%s: %s", text, wrong);
    if (x->n_refusals == before) {
        return 0;
    }
    ck_assert_uint_eq(x->n_refusals, before + 1);
    text_char(&x->refusals, '\0');
    x->refusals.n--;
    char name[32];
    const char *last = strrchr(x->refusals.p, '[');
    ck_assert_int_eq(sscanf(last, "[0,\"%31[a-z_]\"]", name), 1);
    return error_of(name);
}

uint32_t spoken_launch_number(const struct launch *l)
{
    for (uint32_t i = 0; i < spoken.n; i++) {
        if (spoken.things[i].of == l) {
            return spoken.things[i].id;
        }
    }
    ck_abort_msg("a launch without a number");
}

static int say_form(struct sched *s, const struct pass_spec *spec, struct pass **out)
{
    static const char *const roles[] = {"prefill", "decode", "verify"};
    char list[512];
    size_t used = 0;
    for (uint32_t i = 0; i < spec->n_segments; i++) {
        const struct segment *g = &spec->segments[i];
        used += (size_t)snprintf(list + used, sizeof list - used, "%s[%u,\"%s\",%u]",
                                 i > 0 ? "," : "", g->request->id, roles[g->role], g->n_tokens);
    }
    uint32_t id = ++spoken.n_passes;
    int rc = speak("[[\"form\",%u,[%s]%s]]", id, list, spec->fused_layers ? ",true" : "");
    if (rc == 0) {
        *out = spoken_run(spoken.real)->passes[spoken_run(spoken.real)->n_passes - 1]->p;
        (void)spoken_add('p', id, *out);
    }
    (void)s;
    return rc;
}

/* An option that says what the rest of the pass would have is left out. */
static size_t option(char *to, size_t used, const char *name, uint32_t is, uint32_t usual)
{
    return is == usual ? used
                       : used + (size_t)snprintf(to + used, SPOKEN_ROW - used, "%s\"%s\":%u",
                                                 used > 0 ? "," : "", name, is);
}

static int say_launch(struct sched *s, const struct launch_spec *l, const struct launch **out)
{
    static const char *const yields[] = {"kernel", "op", "layer", "pass"};
    const struct device *d = &s->machine->devices[l->device];
    uint32_t id = ++spoken.n_launches;
    char options[SPOKEN_ROW] = "";
    size_t used = option(options, 0, "n_ops", l->n_ops, l->pass->n_ops - l->pass->op);
    used = option(options, used, "rows", l->rows, l->pass->rows_todo);
    used = option(options, used, "chunk_rows", l->chunk_rows, d->chunk_rows);
    used = option(options, used, "graph", l->graph, 0);
    used = option(options, used, "graph_block", l->graph_block, 0);
    used = option(options, used, "inflight", l->inflight, 1);
    if (l->yield != YIELD_PASS) {
        (void)snprintf(options + used, SPOKEN_ROW - used, "%s\"yield\":\"%s\"", used > 0 ? "," : "",
                       yields[l->yield]);
    }
    int rc =
        speak(options[0] == '\0' ? "[[\"launch\",%u,%u,%u%s]]" : "[[\"launch\",%u,%u,%u,{%s}]]", id,
              spoken_pass_number(l->pass), l->device, options);
    if (rc == 0) {
        *out = spoken_run(spoken.real)->launches[spoken_run(spoken.real)->n_launches - 1].l;
        (void)spoken_add('l', id, *out);
    }
    return rc;
}

static int say_cancel(struct sched *s, struct pass *p)
{
    (void)s;
    return speak("[[\"cancel\",%u]]", spoken_pass_number(p));
}

static int say_preempt(struct sched *s, const struct launch *l, struct preempt_spec how)
{
    (void)s;
    return speak("[[\"preempt\",%u,{\"now\":%s,\"discard\":%s,\"drain\":%s}]]",
                 spoken_launch_number(l), spoken_yes(how.now), spoken_yes(how.discard),
                 spoken_yes(how.drain));
}

static int say_resident(const char *what, struct resident_key k)
{
    return speak("[[\"%s\",\"%s\",%u,%u]]", what,
                 k.kind == RESIDENT_GRAPH_BLOCK ? "graph_block" : "compiled_attention", k.a, k.b);
}

static int say_compile(struct sched *s, struct resident_key k)
{
    (void)s;
    return say_resident("compile", k);
}

static int say_drop(struct sched *s, struct resident_key k)
{
    (void)s;
    return say_resident("drop", k);
}

static int say_load(struct sched *s, struct resident_key k, double bytes)
{
    (void)s;
    return speak("[[\"load\",\"graph_block\",%u,%u,%.17g]]", k.a, k.b, bytes);
}

static int say_graph(struct sched *s, uint8_t version, struct graph_shape shape)
{
    (void)s;
    return speak("[[\"graph\",%u,%u,%u]]", version, shape.rows, shape.n_blocks);
}

static int say_kv(struct sched *s, struct kv_part part, enum kv_place to)
{
    static const char *const places[] = {"memory", "cache", "flash", "nowhere"};
    (void)s;
    ck_assert(!part.of_session);
    return speak("[[\"kv\",%u,\"%s\",%u]]", part.request->id, places[to], part.from_token);
}

static int say_shed(struct sched *s, const struct request *r)
{
    (void)s;
    return speak("[[\"shed\",%u]]", r->id);
}

static int say_timer(struct sched *s, int64_t at_ns)
{
    (void)s;
    return speak("[[\"timer\",%lld]]", (long long)at_ns);
}

/* ---- questions as lines ---- */

static const char *ask(const char *question)
{
    struct external_run *x = spoken_run(spoken.real);
    SCOPED(json_drop) cJSON *list = cJSON_Parse(question);
    const char *wrong = external_answer(spoken.real, x, list);
    ck_assert_msg(wrong == NULL, "%s: %s", question, wrong);
    ck_assert_uint_lt(x->line.n, sizeof spoken.answer);
    memcpy(spoken.answer, x->line.p, x->line.n);
    spoken.answer[x->line.n] = '\0';
    return spoken.answer;
}

static enum resident_state ask_resident(struct sched *s, struct resident_key k)
{
    static const char *const states[] = {"absent", "pending", "ready"};
    char text[128];
    (void)s;
    (void)snprintf(text, sizeof text, "[[\"resident\",\"%s\",%u,%u]]",
                   k.kind == RESIDENT_GRAPH_BLOCK ? "graph_block" : "compiled_attention", k.a, k.b);
    (void)ask(text);
    for (int i = 0; i < 3; i++) {
        (void)snprintf(text, sizeof text, "[\"answers\",[\"%s\"]]\n", states[i]);
        if (strcmp(text, spoken.answer) == 0) {
            return (enum resident_state)i;
        }
    }
    ck_abort_msg("%s", spoken.answer);
}

const struct sched_api spoken_api = {
    .size = sizeof(struct sched_api),
    .resident_state = ask_resident,
    .pass_form = say_form,
    .pass_cancel = say_cancel,
    .launch = say_launch,
    .preempt = say_preempt,
    .compile = say_compile,
    .load = say_load,
    .resident_evict = say_drop,
    .graph = say_graph,
    .kv_move = say_kv,
    .set_timer = say_timer,
    .shed = say_shed,
};

/* Estimates of random shapes, also on a device too many, are those of the call. */
static void check_estimate(struct sched *s, struct rng *r)
{
    static const char *const ops[] = {"qkv", "mha", "ffn", "head", "layer"};
    struct work_shape w = {.rows = 1 + rng_below(r, 40), .logit_rows = rng_below(r, 2)};
    w.sequences = 1 + rng_below(r, 3);
    w.prefill_rows = w.rows * rng_below(r, 2);
    w.attn_pairs = w.rows * 100;
    w.kv_read_tokens = w.rows * 10;
    w.max_context_tokens = w.rows + 100;
    uint32_t op = rng_below(r, OP_KIND_COUNT);
    uint8_t device = (uint8_t)rng_below(r, s->machine->n_devices + 1);
    uint32_t rows = rng_below(r, 2) * w.rows;
    uint32_t chunk = rng_below(r, 3) * 128;
    uint32_t form = rng_below(r, 4); /* how many of the members that may be left out are there */
    char more[64] = "";
    if (form > 0) {
        (void)snprintf(more, sizeof more,
                       form == 1   ? ",%u"
                       : form == 2 ? ",%u,%u"
                                   : ",%u,%u,0",
                       rows, chunk);
    }
    struct estimate e = {0};
    bool too_many = form > 0 && op == OP_HEAD && rows > w.logit_rows;
    int rc = form < 2 ? sched_estimate(s, &w, (enum op_kind)op, device, form == 0 ? 0 : rows, &e)
                      : sched_estimate_graph(s, &w, (enum op_kind)op, device, rows, chunk, 0, &e);
    char text[256];
    (void)snprintf(text, sizeof text, "[[\"estimate\",[%u,%u,%u,%u,%llu,%llu,%u%s],\"%s\",%u%s]]",
                   w.rows, w.logit_rows, w.sequences, w.prefill_rows,
                   (unsigned long long)w.attn_pairs, (unsigned long long)w.kv_read_tokens,
                   w.max_context_tokens, rng_below(r, 2) > 0 ? ",0" : "", ops[op], device, more);
    SCOPED(json_drop) cJSON *answer = cJSON_Parse(ask(text));
    const cJSON *it = answer->child->next->child;
    ck_assert(!too_many || rc == -EINVAL); /* a pass has no more rows of a head than logits */
    ck_assert_msg(cJSON_IsArray(it) == (rc == 0), "%s: %s, and %d", text, spoken.answer, rc);
    if (rc != 0) {
        ck_assert_int_eq(error_of(it->valuestring), rc);
        return;
    }
    const double wanted[] = {(double)e.t_ns, e.bytes_per_s, e.flop_per_byte, e.watts};
    ck_assert_int_eq(cJSON_GetArraySize(it), 5);
    for (int i = 0; i < 4; i++) {
        ck_assert_double_eq(cJSON_GetArrayItem(it, i)->valuedouble, wanted[i]);
    }
    ck_assert_int_eq(cJSON_IsTrue(cJSON_GetArrayItem(it, 4)), e.memory_bound);
}

void spoken_check_questions(struct sched *s, struct rng *r)
{
    struct machine_state now = sched_machine_state(s);
    SCOPED(json_drop) cJSON *answer = cJSON_Parse(ask("[[\"machine_state\"]]"));
    const cJSON *it = answer->child->next->child->child;
    const double wanted[] = {now.memory_taken_bytes, now.memory_free_bytes, now.power_limit_watts,
                             now.battery_frac};
    for (int i = 0; i < 4; i++, it = it->next) {
        ck_assert(!isfinite(wanted[i]) || it->valuedouble == wanted[i]);
    }
    ck_assert_int_eq(cJSON_IsTrue(it), now.on_battery);
    check_estimate(s, r);
    for (uint32_t i = 0; i < spoken.n; i++) {
        if (spoken.things[i].kind == 'r' && spoken.things[i].of != NULL) {
            char text[96];
            char reply[64];
            (void)snprintf(text, sizeof text, "[[\"draft\",%u],[\"cached\",%u],[\"oracle\",%u]]",
                           spoken.things[i].id, spoken.things[i].id, spoken.things[i].id);
            (void)snprintf(reply, sizeof reply, "[\"answers\",[%u,%llu,\"not_permitted\"]]\n",
                           sched_draft_tokens(s, spoken.things[i].of),
                           (unsigned long long)sched_kv_cached_tokens(s, spoken.things[i].of));
            ck_assert_str_eq(ask(text), reply);
        }
    }
    ck_assert_str_eq(ask("[[\"draft\",4000000000]]"), "[\"answers\",[\"gone\"]]\n");
}
