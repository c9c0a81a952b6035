#include "sim/core/ahead.h"

#include "sim/core/kv.h"

/* The live pass with a request's last tokens, or NULL. */
static struct full_pass *last_pass(const struct full_request *r)
{
    struct full_pass *p = core_pass(r->pub->pass);
    while (p != NULL && p->after != NULL) {
        p = p->after;
    }
    return p;
}

static uint32_t end_of(const struct full_pass *p)
{
    return p->segments[0].first_token + p->segments[0].n_tokens;
}

const char *ahead_fault(const struct segment *s)
{
    const struct full_pass *last = last_pass(core_member(s));
    if (last == NULL || last->pub->n_segments != 1 || last->segments[0].role != SEGMENT_PREFILL) {
        return "tokens ahead follow a live pass of the request's prompt alone";
    }
    return s->n_tokens > request_prefill_target(s->request) - end_of(last)
               ? "more tokens than the passes before leave of the prompt"
               : NULL;
}

const char *ahead_take(struct core *c, struct full_pass *p, struct segment *s)
{
    struct full_request *r = core_member(s);
    struct full_pass *last = last_pass(r);
    if (p->pub->n_segments > 0) {
        return AHEAD_ALONE;
    }
    if (kv_reserve(c, r, end_of(last) - r->pub->kv_tokens + s->n_tokens) != 0) {
        return core_no_room;
    }
    s->role = SEGMENT_PREFILL;
    s->first_token = end_of(last);
    p->before = last;
    last->after = p;
    p->pub->overlaps = true;
    last->pub->overlaps = true;
    return NULL;
}

void ahead_give_up(struct core *c, struct full_pass *p, struct full_request *r)
{
    SIM_ASSERT(p->before != NULL && p->after == NULL);
    kv_shrink(c, r, p->segments[0].first_token);
    p->before->after = NULL;
    p->before = NULL;
}

bool ahead_is_early(const struct full_pass *p, uint32_t end)
{
    enum op_kind kind = OP_HEAD;
    uint32_t op = end;
    SIM_ASSERT(p->before != NULL && end > p->pub->op);
    do { /* of the ops that depend on earlier passes, the last one needs most */
        kind = pass_op_kind(p->pub, --op);
    } while (op > p->pub->op && kind != OP_MHA && kind != OP_HEAD);
    const struct full_pass *b = p->before;
    while (b != NULL && kind == OP_MHA && b->pub->op >= op) {
        b = b->before;
    }
    return b != NULL && (kind == OP_MHA || kind == OP_HEAD);
}

struct full_pass *ahead_goes_first(struct full_pass *done)
{
    struct full_pass *p = done->after;
    done->after = NULL;
    p->before = NULL;
    return p->pub->op == p->pub->n_ops && p->pub->n_launches == 0 ? p : NULL;
}
