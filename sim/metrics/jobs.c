#include "sim/metrics/jobs.h"

struct job_member {
    uint32_t job;
    bool background;
};

void jobs_init(struct jobs *j, const struct trace *t)
{
    *j = (struct jobs){.v = NULL};
    j->members.record_bytes = sizeof(struct job_member);
    const struct trace_graph *g = t != NULL ? t->graph : NULL;
    if (g == NULL) {
        return;
    }
    j->v = xcalloc(g->n_jobs + 1, sizeof *j->v);
    for (size_t i = 0; i < t->n; i++) {
        struct job_member *m = map_add(&j->members, t->rows[i].request_id);
        *m = (struct job_member){g->job[i], g->background[i]};
        j->v[g->job[i]].left += g->background[i] ? 0 : 1;
    }
}

void jobs_fini(struct jobs *j)
{
    map_fini(&j->members);
    free(j->v);
}

void jobs_arrived(struct jobs *j, const struct request *r)
{
    const struct job_member *m = j->v != NULL ? map_record(&j->members, r->id) : NULL;
    if (m != NULL && !j->v[m->job].begun) {
        j->v[m->job].begun = true;
        j->v[m->job].first_arrival_ns = r->arrival_ns;
        j->v[m->job].cls = (uint8_t)r->cls;
    }
}

const struct job *jobs_left(struct jobs *j, const struct request *r, bool finished)
{
    const struct job_member *m = j->v != NULL ? map_record(&j->members, r->id) : NULL;
    if (m == NULL || m->background) {
        return NULL;
    }
    struct job *x = &j->v[m->job];
    SIM_ASSERT(x->begun && x->left > 0);
    x->left--;
    x->broken = x->broken || !finished;
    if (x->left > 0 || x->broken) {
        return NULL;
    }
    j->n_complete++;
    return x;
}
