/* sglang-lpm: order of the queue, and admission. */
#include "policies/sglang_lpm/sglang_lpm.h"

#define LPM_MOST_OUTPUT 4096 /* most tokens reserved for an answer */

/* Tokens and rows that are left for admissions. */
struct lpm_left {
    double total; /* KV minus reservations for answers */
    double now;   /* KV */
    uint32_t rows;
};

static struct lpm_request *own(const struct request *r)
{
    return r->own;
}

/* ---- the queue ---- */

/* Visits requests in the order of the queue, as SGLang fills its second radix tree. */
static void mark_in_batch(struct sched *s, const struct request *const *v, uint32_t n)
{
    uint32_t tokens = (uint32_t)param_int(s, LPM_THRESHOLD);
    for (uint32_t i = 0; i < n; i++) {
        struct lpm_request *x = own(v[i]);
        x->behind = false;
        x->begins = x->begins == 0 ? sched_prompt_hash(s, v[i], tokens) : x->begins;
        for (uint32_t j = 0; j < i && v[i]->kv_tokens <= tokens && x->begins != 0; j++) {
            const struct lpm_request *y = own(v[j]);
            x->behind =
                x->behind || (!y->behind && v[j]->kv_tokens <= tokens && y->begins == x->begins);
        }
    }
}

static bool goes_before(const struct request *x, const struct request *y)
{
    bool equal = own(x)->behind == own(y)->behind;
    return equal ? !own(x)->behind && x->kv_tokens > y->kv_tokens : own(y)->behind;
}

/* Keeps the order in the queue, so that the next sort is nearly done. */
static void arrange(struct sched *s, struct reqq *waiting)
{
    const struct request *v[LPM_MOST];
    uint32_t n = 0;
    if (param_int(s, LPM_POLICY) == LPM_FCFS || waiting->n < 2 ||
        waiting->n > (uint32_t)param_int(s, LPM_MAX_SORTED)) {
        return;
    }
    for (const struct request *r = waiting->head; r != NULL; r = reqq_next(r)) {
        own(r)->behind = false;
        v[n++] = r;
    }
    if (param_bool(s, LPM_IN_BATCH)) {
        mark_in_batch(s, v, n);
    }
    for (uint32_t i = 1; i < n; i++) {
        const struct request *r = v[i];
        uint32_t to = i;
        for (; to > 0 && goes_before(r, v[to - 1]); to--) {
            v[to] = v[to - 1];
        }
        v[to] = r;
    }
    for (uint32_t i = 0; i < n; i++) {
        reqq_remove(v[i]);
        reqq_push(waiting, v[i]);
    }
}

/* ---- admission ---- */

uint32_t lpm_limit(struct sched *s, const struct request *r)
{
    uint64_t capacity = sched_kv_capacity_tokens(s);
    uint64_t room = capacity > r->input_tokens + 2u ? capacity - r->input_tokens - 2 : 0;
    return room < r->max_output_tokens ? (uint32_t)room : r->max_output_tokens;
}

uint32_t lpm_may_produce(struct sched *s, const struct request *r, uint32_t so_far)
{
    uint32_t most = lpm_limit(s, r);
    uint32_t left = most > so_far ? most - so_far : 0;
    return left < LPM_MOST_OUTPUT ? left : LPM_MOST_OUTPUT;
}

/* SGLang counts whole pages, and requires a budget of whole pages. A budget below one page counts
 * tokens. */
static uint32_t page(const struct sched *s)
{
    return param_int(s, LPM_BUDGET) < s->kv_block_tokens ? 1 : s->kv_block_tokens;
}

static uint32_t paged(const struct sched *s, uint32_t rows)
{
    return (rows + page(s) - 1) / page(s) * page(s);
}

static void take(const struct sched *s, struct lpm_left *left, uint32_t rows, uint32_t later)
{
    const uint32_t pages = paged(s, rows);
    left->total -= (double)pages + later;
    left->now -= pages;
    left->rows = left->rows > pages ? left->rows - pages : 0;
}

static void begin(struct sched *s, struct lpm *v, const struct request *r, uint32_t rows,
                  struct lpm_left *left)
{
    bool whole = rows == request_prefill_left(r);
    batch_put(&v->it.batch, r, SEGMENT_PREFILL, rows);
    reqq_remove(r);
    reqq_push(&v->begun, r);
    take(s, left, rows, whole ? lpm_may_produce(s, r, 0) : 0);
}

/* Continues the cut prompt, even without KV for its answer. */
static void go_on(struct sched *s, struct lpm *v, struct lpm_left *left)
{
    const struct request *r = v->cut;
    uint32_t most = left->rows;
    if (left->total >= 1 && left->total < most) {
        most = (uint32_t)left->total;
    }
    uint32_t rows = request_prefill_left(r) < most ? request_prefill_left(r) : most;
    if (rows > 0) {
        v->cut = NULL;
        begin(s, v, r, rows, left);
    }
}

/* Admits a request. False: no more admissions in this step. */
static bool admit(struct sched *s, struct lpm *v, const struct request *r, struct lpm_left *left)
{
    const uint64_t runs = v->running.n + v->ended;
    const uint32_t rows = request_prefill_left(r);
    if (v->full || v->it.batch.n + runs >= (uint64_t)param_int(s, LPM_MAX_SEQS)) {
        v->full = true;
        return false;
    }
    /* Its prefix counts as free until it runs. */
    uint64_t cached = blocks_prompt_tokens(s, r) - rows;
    uint64_t all = cached + rows + lpm_may_produce(s, r, r->generated_tokens);
    if ((double)all >= left->total && v->it.batch.n + runs > 0) {
        v->full = true;
        return false;
    }
    uint32_t n = paged(s, rows) > left->rows ? left->rows / page(s) * page(s) : rows;
    if (n == 0 || !batch_takes(&v->it.batch, r)) {
        return false;
    }
    left->total -= (double)cached;
    left->now -= (double)cached;
    begin(s, v, r, n, left);
    v->full = left->total <= 0 || left->now <= 0;
    return !v->full && left->rows > 0;
}

/* Adds a decode of each running request to a step with prompts. */
static void mix(struct lpm *v)
{
    const struct request *r = v->running.head;
    v->ended = 0;
    v->ended_tokens = 0;
    while (r != NULL) {
        const struct request *next = reqq_next(r);
        if (batch_takes(&v->it.batch, r)) {
            batch_put(&v->it.batch, r, SEGMENT_DECODE, 1);
            reqq_remove(r);
            reqq_push(&v->begun, r);
        }
        r = next;
    }
}

void lpm_add_prompts(struct sched *s, struct lpm *v)
{
    const uint32_t mixed = param_bool(s, LPM_MIXED) ? v->running.n + v->ended : 0;
    const uint32_t budget = (uint32_t)param_int(s, LPM_BUDGET);
    uint64_t later = v->ended_tokens;
    for (const struct request *r = v->running.head; r != NULL; r = reqq_next(r)) {
        later += lpm_may_produce(s, r, r->generated_tokens);
    }
    double now = (double)sched_kv_free_tokens(s) - mixed;
    struct lpm_left left = {.total = now - v->ratio * (double)later,
                            .now = now,
                            .rows = budget > mixed ? budget - mixed : 0};
    arrange(s, &v->waiting);
    if (v->cut != NULL) {
        go_on(s, v, &left);
    }
    const struct request *r = v->waiting.head;
    while (r != NULL) {
        const struct request *next = reqq_next(r);
        r = admit(s, v, r, &left) ? next : NULL;
    }
    if (v->it.batch.n > 0 && mixed > 0) {
        mix(v);
    }
    v->begun_n = v->it.batch.n;
}
