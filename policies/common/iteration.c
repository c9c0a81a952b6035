#include "policies/common/iteration.h"

int iteration_init(struct sched *s, const struct iteration_rules *rules, int64_t device)
{
    struct iteration *it = s->state;
    int d = place_device(s->machine, device);
    SIM_ASSERT(rules->joins != NULL && rules->leaves != NULL && rules->compose != NULL);
    SIM_ASSERT(it->batch.n == 0 && iteration_ok(s, it)); /* zeroed state */
    it->rules = rules;
    it->device = (uint8_t)d;
    return d < 0 ? d : 0;
}

void iteration_exit(struct sched *s)
{
    struct iteration *it = s->state;
    batch_fini(&it->batch);
}

/* ---- order ---- */

void iteration_request_arrived(struct sched *s, const struct request *r)
{
    struct iteration *it = s->state;
    SIM_ASSERT(r->state == REQUEST_STATE_QUEUED && r->generated_tokens == 0 && r->pass == NULL);
    it->rules->joins(s, r);
}

void iteration_request_cancelled(struct sched *s, const struct request *r)
{
    struct iteration *it = s->state;
    SIM_ASSERT(r->state == REQUEST_STATE_SHED && r->pass == NULL); /* in no pass */
    it->rules->leaves(s, r);
}

void iteration_part(struct sched *s, const struct pass *p)
{
    const struct iteration *it = s->state;
    const struct iteration_rules *rules = it->rules;
    const struct segment *end = p->segments + p->n_segments;
    SIM_ASSERT(p->state == PASS_STATE_DONE || p->state == PASS_STATE_CANCELLED);
    for (const struct segment *seg = p->segments; seg < end; seg++) {
        const struct request *r = seg->request;
        SIM_ASSERT(r->pass == NULL); /* it may join the next one */
        if (r->state == REQUEST_STATE_FINISHED || r->state == REQUEST_STATE_SHED) {
            rules->leaves(s, r);
        } else if (rules->returns != NULL) {
            rules->returns(s, r);
        }
    }
}

/* Removes a paused pass. The others keep their order, by which iter_resumes breaks ties. */
static void take_paused(struct iteration *it, uint32_t i)
{
    SIM_ASSERT(i < it->n_paused);
    for (it->n_paused--; i < it->n_paused; i++) {
        it->paused[i] = it->paused[i + 1];
    }
}

/* Removes a pass wherever it is. */
static void forget(struct iteration *it, const struct pass *p)
{
    if (it->running.pass == p) {
        SIM_ASSERT(it->running.launch == NULL);
        it->running = (struct iteration_pass){0};
        return;
    }
    uint32_t i = 0;
    while (it->paused[i].pass != p) {
        i++;
        SIM_ASSERT(i < it->n_paused);
    }
    take_paused(it, i);
}

void iteration_pass_done(struct sched *s, const struct pass *p)
{
    struct iteration *it = s->state;
    if (p->state == PASS_STATE_CANCELLED) {
        forget(it, p);
        iteration_part(s, p);
        return;
    }
    SIM_ASSERT(it->running.pass == p && it->running.launch == NULL); /* launch_done came first */
    SIM_ASSERT(it->running.began_ns <= s->now_ns && p->state == PASS_STATE_DONE);
    int64_t elapsed = s->now_ns - it->running.began_ns;
    const struct iteration_rules *rules = it->rules;
    it->running = (struct iteration_pass){0};
    for (uint32_t i = 0; i < p->n_segments && rules->ran != NULL; i++) {
        rules->ran(s, &p->segments[i], elapsed);
    }
    iteration_part(s, p);
}

void iteration_launch_done(struct sched *s, const struct launch *l)
{
    struct iteration *it = s->state;
    if (it->running.launch != l) {
        return;
    }
    SIM_ASSERT(it->running.pass == l->pass && l->state == LAUNCH_STATE_ENDED);
    it->running.launch = NULL;
    if (it->rules->stopped != NULL) {
        it->rules->stopped(s, l);
    }
}

/* ---- compose, make room ---- */

static bool form_batch(struct sched *s, struct iteration *it)
{
    SIM_ASSERT(it->running.pass == NULL && iteration_ok(s, it));
    while (it->batch.n > 0) {
        struct pass *p;
        int rc = batch_form(s, &it->batch, &p);
        if (rc == 0) {
            SIM_ASSERT(p->n_segments == it->batch.n && p->state == PASS_STATE_READY);
            /* Time counts from sched_pass_form. So the elapsed time that rules get includes the
             * host's sampling, as in a scheduler that reads a clock around a step. */
            it->running = (struct iteration_pass){.pass = p, .began_ns = s->now_ns};
            if (it->rules->formed != NULL) {
                it->rules->formed(s);
            }
            return true;
        }
        if (rc != -ENOMEM || it->rules->make_room == NULL || !it->rules->make_room(s)) {
            return false;
        }
    }
    return false;
}

static void form(struct sched *s, struct iteration *it)
{
    do {
        SIM_ASSERT(it->running.pass == NULL);
        it->rules->compose(s);
    } while (!form_batch(s, it) && it->rules->again != NULL && it->rules->again(s));
}

/* ---- stop ---- */

static void maybe_stop(struct sched *s, struct iteration *it)
{
    struct iteration_pass *run = &it->running;
    SIM_ASSERT(run->pass->state == PASS_STATE_RUNNING &&
               run->launch->stop_requested == run->stopping);
    if (run->stopping || run->finish || it->n_paused == ITERATION_MAX_PAUSED ||
        it->rules->outranked == NULL || !it->rules->outranked(s)) {
        return;
    }
    run->stopping = true;
    /* The policy's init refused stops that the device cannot do. */
    (void)sched_preempt(s, run->launch, it->stop);
}

/* Pauses a stopped pass, or cancels it. */
static void put_aside(struct sched *s, struct iteration *it)
{
    struct iteration_pass run = it->running;
    SIM_ASSERT(run.pass != NULL && run.launch == NULL && it->n_paused < ITERATION_MAX_PAUSED);
    run.stopping = false;
    run.aside_ns = s->now_ns;
    it->running = (struct iteration_pass){0};
    if (!it->loses || sched_pass_cancel(s, run.pass) != 0) {
        it->paused[it->n_paused++] = run;
        SIM_ASSERT(it->rules->resumes != NULL && iteration_ok(s, it)); /* it will be resumed */
        return;
    }
    iteration_part(s, run.pass);
    for (uint32_t i = 0; i < run.pass->n_segments && it->rules->lost != NULL; i++) {
        it->rules->lost(s, run.pass->segments[i].request);
    }
}

static void resume(const struct sched *s, struct iteration *it, uint32_t i)
{
    SIM_ASSERT(i < it->n_paused && it->running.pass == NULL && iteration_ok(s, it));
    it->running = it->paused[i];
    it->running.began_ns += s->now_ns - it->running.aside_ns; /* the pause does not count */
    take_paused(it, i);
    SIM_ASSERT(it->running.pass->state == PASS_STATE_READY && iteration_ok(s, it));
}

/* Starts the most urgent of paused passes and a new iteration. A running pass is stopped for a
 * waiting request, never for a paused pass: if keys grow with work, two passes would alternate at
 * every boundary. */
static void choose(struct sched *s, struct iteration *it)
{
    uint32_t which = 0;
    bool resumes = it->n_paused > 0 && it->rules->resumes(s, &which);
    if (resumes) {
        resume(s, it, which);
    } else {
        form(s, it);
    }
    if (it->running.pass == NULL && it->n_paused > 0) {
        /* There is no memory for a new iteration, or no request goes before the paused pass. */
        bool next = it->rules->resumes(s, &which);
        resume(s, it, which);
        it->running.finish = !next;
    }
    SIM_ASSERT(it->running.pass != NULL ||
               it->n_paused == 0); /* paused passes never leave the device idle */
}

void iteration_schedule(struct sched *s)
{
    struct iteration *it = s->state;
    struct iteration_pass *run = &it->running;
    /* If the pass ended in spite of the stop, pass_done has cleared it. Requests that lose work
     * wait again, so refresh keys after this. */
    if (run->pass != NULL && run->launch == NULL && run->stopping &&
        run->pass->state == PASS_STATE_READY) {
        put_aside(s, it);
    }
    if (it->rules->refresh != NULL) {
        it->rules->refresh(s);
    }
    if (run->pass != NULL && run->launch != NULL) {
        maybe_stop(s, it);
        return;
    }
    if (run->pass == NULL) {
        choose(s, it);
    }
    if (run->pass == NULL || run->pass->state != PASS_STATE_READY) {
        return;
    }
    SIM_ASSERT(run->launch == NULL && !run->stopping && iteration_ok(s, it));
    struct launch_spec spec = sched_launch_rest(s, run->pass, it->device, YIELD_PASS);
    if (it->rules->launch != NULL) {
        it->rules->launch(s, &spec);
    }
    (void)sched_launch(s, &spec, &run->launch);
}
