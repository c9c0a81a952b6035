/* Describes the state in which a run failed, for the author of its policy: waiting requests, passes
 * without a launch, KV, residents, devices, the last decisions and the refusals. */
#include "sim/base/memory.h"
#include "sim/base/words.h"
#include "sim/core/core.h"
#include "sim/core/kv.h"
#include "sim/core/memory.h"

/* Waiting requests, by what they wait for. */
struct waiting {
    uint64_t prefill, decode, moving, swapped, in_pass;
};

static void put_requests(const struct core *c, FILE *out)
{
    struct waiting w = {0};
    for (const struct full_request *r = c->live_head; r != NULL; r = r->next_live) {
        bool decodes = r->pub->state == REQUEST_STATE_DECODE;
        if (r->pub->pass != NULL) {
            w.in_pass++; /* the other counts are of requests without a pass */
            continue;
        }
        *(r->kv_moving         ? &w.moving
          : r->pub->kv_swapped ? &w.swapped
          : decodes            ? &w.decode
                               : &w.prefill) += 1;
    }
    fprintf(out,
            "  requests: %" PRIu64 " live: %" PRIu64 " wait for prefill, %" PRIu64
            " for decode, %" PRIu64 " with KV on flash, %" PRIu64 " with KV on its way, %" PRIu64
            " in a pass\n",
            c->n_live, w.prefill, w.decode, w.swapped, w.moving, w.in_pass);
    if (c->live_tail != NULL) {
        const struct request *r = c->live_tail->pub;
        fprintf(out,
                "  waits longest: request %u, %s, since %.6g s: %u prompt tokens, %u of its tokens "
                "in KV, %u out\n",
                r->id, words_classes[r->cls], units_s_from_ns(r->arrival_ns), r->input_tokens,
                r->kv_tokens, r->generated_tokens);
    }
}

/* Lists passes without a launch, each at its first request. */
static void put_passes(const struct core *c, FILE *out)
{
    uint64_t idle = 0;
    const struct pass *first = NULL;
    for (const struct full_request *r = c->live_head; r != NULL; r = r->next_live) {
        const struct full_pass *p = core_pass(r->pub->pass);
        for (; p != NULL && p->segments[0].request == r->pub; p = p->after) {
            idle += p->pub->n_launches == 0;
            first = p->pub->n_launches == 0 ? p->pub : first;
        }
    }
    if (first != NULL) {
        fprintf(out, "  formed and on no device: %" PRIu64 " pass%s, as pass %u at op %u of %u\n",
                idle, idle == 1 ? "" : "es", first->id, first->op, first->n_ops);
    }
}

static void put_memory(const struct core *c, FILE *out)
{
    uint64_t ready = 0;
    uint64_t pending = 0;
    uint32_t at = 0;
    for (const struct resident *r; (r = resident_next(c, &at)) != NULL;) {
        *(r->state == RESIDENT_READY ? &ready : &pending) += 1;
    }
    uint64_t block = c->setup->kv_block_tokens;
    fprintf(out,
            "  KV: %" PRIu64 " of %" PRIu64 " tokens free, %" PRIu64
            " of them what finished turns left\n",
            kv_free_tokens(c), c->kv_blocks_total / c->kv_units_most * block,
            (c->kv_blocks_cold + c->kv_blocks_idle) / c->kv_units_most * block);
    fprintf(out,
            "  residents: %" PRIu64 " ready, %" PRIu64 " on their way, %.4g GB next to weights\n",
            ready, pending, c->resident_bytes * 1e-9);
}

static void put_devices(struct core *c, FILE *out)
{
    fputs("  devices:", out);
    const struct machine *m = c->setup->machine;
    for (uint32_t d = 0; d < m->n_devices; d++) {
        fprintf(out, "%s %s %u of %u slot%s free", d == 0 ? "" : ",", m->devices[d].name,
                c->exec_ops->free_slots(c->exec, (uint8_t)d), m->devices[d].inflight_depth,
                text_plural(m->devices[d].inflight_depth));
    }
    fputc('\n', out);
}

static void put_decisions(const struct core *c, FILE *out)
{
    static const char *const kinds[] = {"accepted", "refused"};
    for (int k = 0; k < 2; k++) {
        const struct core_decision *d = &c->last[k];
        if (d->action == NULL) {
            fprintf(out, "  no action was %s\n", kinds[k]);
            continue;
        }
        fprintf(out, "  last action %s: %s at %.6g s", kinds[k], d->action,
                units_s_from_ns(d->at_ns));
        const struct sim_refusal *x = k == 1 ? c->last_refusal : NULL;
        fprintf(out, x != NULL ? ", in %s: %s\n" : "\n", x != NULL ? x->hook : "",
                x != NULL ? x->why : "");
    }
}

static void put_counts(const struct sim_result *r, FILE *out)
{
    for (uint32_t i = 0; i < r->n_refusals; i++) {
        const struct sim_refusal *x = &r->refusals[i];
        fprintf(out, "  refused: %s %" PRIu64 " time%s in %s, first at %.6g s: %s\n", x->action,
                x->n, text_plural(x->n), x->hook, units_s_from_ns(x->first_ns), x->why);
    }
    bool any = false;
    for (int i = 0; i < COUNTER_COUNT; i++) {
        if (r->counters[i] > 0) {
            fprintf(out, "%s %s %" PRIu64, any ? "," : "  counters:", counter_names[i],
                    r->counters[i]);
            any = true;
        }
    }
    fputs(any ? "\n" : "", out);
}

const char *core_says(struct core *c, char buf[CORE_SAYS_BYTES])
{
    OWNED char *text = NULL;
    size_t size = 0;
    FILE *f = memory_stream(&text, &size);
    CORE_HOOK(c, dump, c->sched, f);
    memory_stream_close(f, &text);
    int n = (int)strcspn(text, "\n");
    (void)snprintf(buf, CORE_SAYS_BYTES, "%s%.*s", n > 0 ? "; the policy says: " : "", n, text);
    return buf;
}

void core_dump(struct core *c)
{
    char says[CORE_SAYS_BYTES];
    char *text = NULL;
    size_t size = 0;
    FILE *out = memory_stream(&text, &size);
    put_requests(c, out);
    put_passes(c, out);
    put_memory(c, out);
    put_devices(c, out);
    put_decisions(c, out);
    if (core_says(c, says)[0] != '\0') {
        fprintf(out, "  %s\n", says + strlen("; "));
    }
    put_counts(c->result, out);
    memory_stream_close(out, &text);
    (void)snprintf(c->result->scene, sizeof c->result->scene, "%s", text_visible(text, "\n"));
    free(text);
    if (c->setup->policy->dump != NULL && c->setup->decision_log != NULL) {
        fputs("dump:\n", c->setup->decision_log);
        CORE_HOOK(c, dump, c->sched, c->setup->decision_log);
    }
}

void core_stall(struct core *c)
{
    char says[CORE_SAYS_BYTES];
    core_fail(c, -ETIMEDOUT,
              "stalled: %" PRIu64
              " request%s live (first: request %u), nothing on any device and no event to come%s",
              c->n_live, text_plural(c->n_live), c->live_tail->pub->id, core_says(c, says));
    core_dump(c);
}
