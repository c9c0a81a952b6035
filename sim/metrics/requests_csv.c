/* One record per request, written as CSV. */
#include "sim/base/words.h"
#include "sim/metrics/metrics_impl.h"

static const char header[] =
    "request_id,session_id,turn,class,arrival_s,start_s,first_token_s,finish_s,input_tokens,"
    "output_tokens,ttft_s,e2e_s,tpot_s,preemptions,state,prefill_pending_s,prefill_suspended_s,"
    "decode_pending_s,client_id,reused_tokens,recomputed_tokens\n";

void records_add(struct metrics *m, const struct request *r, const struct live *v, bool finished,
                 int64_t now_ns)
{
    LIST_ADD(m->records, m->n_records,
             (struct request_record){
                 .request_id = r->id,
                 .session_id = r->session_id,
                 .turn = r->turn,
                 .client_id = r->client_id,
                 .cls = (uint8_t)r->cls,
                 .state = (uint8_t)(finished ? REQUEST_STATE_FINISHED : r->state),
                 .input_tokens = r->input_tokens,
                 .output_tokens = r->generated_tokens,
                 .reused_tokens = r->reused_tokens,
                 .recomputed_tokens = v != NULL ? v->recomputed_tokens : 0,
                 .preemptions = r->preemptions,
                 .arrival_ns = r->arrival_ns,
                 .start_ns = r->first_service_ns,
                 .first_token_ns = r->first_token_ns,
                 .last_token_ns = r->last_token_ns,
                 .finish_ns = finished ? now_ns : TIME_NEVER_NS,
                 .suspended_ns = v != NULL ? v->suspended_ns : 0,
                 .decode_pending_ns = v != NULL ? v->decode_pending_ns : 0,
             });
}

/* Writes a difference of instants, exact to the nanosecond; empty if one is TIME_NEVER_NS. */
static void put_time(FILE *f, int64_t to_ns, int64_t from_ns)
{
    if (to_ns == TIME_NEVER_NS || from_ns == TIME_NEVER_NS) {
        (void)fputc(',', f);
        return;
    }
    int64_t ns = to_ns - from_ns;
    (void)fprintf(f, "%lld.%09lld,", ns / NS_PER_S, ns % NS_PER_S);
}

static void put_record(FILE *f, const struct request_record *r)
{
    (void)fprintf(f, "%" PRIu32 ",%" PRIu32 ",%" PRIu32 ",%s,", r->request_id, r->session_id,
                  r->turn, words_classes[r->cls]);
    put_time(f, r->arrival_ns, 0);
    put_time(f, r->start_ns, 0);
    put_time(f, r->first_token_ns, 0);
    put_time(f, r->finish_ns, 0);
    (void)fprintf(f, "%" PRIu32 ",%" PRIu32 ",", r->input_tokens, r->output_tokens);
    put_time(f, r->first_token_ns, r->arrival_ns);
    put_time(f, r->finish_ns, r->arrival_ns);
    if (r->state == REQUEST_STATE_FINISHED && r->output_tokens > 1) {
        (void)fprintf(f, "%.9f",
                      units_s_from_ns(r->last_token_ns - r->first_token_ns) /
                          ((double)r->output_tokens - 1.0));
    }
    (void)fprintf(f, ",%" PRIu32 ",%s,", r->preemptions, words_request_states[r->state]);
    put_time(f, r->start_ns, r->arrival_ns);
    put_time(f, r->suspended_ns, 0);
    put_time(f, r->decode_pending_ns, 0);
    (void)fprintf(f, "%" PRIu32 ",%" PRIu32 ",%" PRIu32 "\n", r->client_id, r->reused_tokens,
                  r->recomputed_tokens);
}

SORT_BY(by_id, struct request_record, SORT_UP(request_id))

void metrics_requests_write(struct metrics *m, const char *about, FILE *out)
{
    SIM_REQUIRE(m->opt.records, "metrics without records cannot write them");
    if (m->n_records > 0) {
        qsort(m->records, m->n_records, sizeof *m->records, by_id);
    }
    if (about != NULL) {
        (void)fputs(about, out);
    }
    (void)fputs(header, out);
    for (size_t i = 0; i < m->n_records; i++) {
        put_record(out, &m->records[i]);
    }
}
