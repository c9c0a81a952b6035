/* Writes observed requests as a CSV file. */
#include "experiments/observe/observe.h"
#include "sim/api/request.h"

const char *const observe_status_names[OBSERVE_STATUS_COUNT] = {
    "ok", "refused", "http", "timeout", "broken", "empty", "cancelled", "unsent"};

const char *const observe_count_names[OBSERVE_COUNT_COUNT] = {"unknown", "server", "probe"};

void observe_write(const struct observe_options *o, const struct trace *t,
                   const struct observe_row *rows, FILE *out)
{
    (void)fprintf(out, "# xpusim-run v1\n# observed at %s, model %s\n", o->url, o->model);
    (void)fprintf(out, "request_id,arrival_s,input_tokens,output_tokens,ttft_s,e2e_s,class,asked,"
                       "http,status,prompt_count,prefix_tokens\n");
    for (size_t i = 0; i < t->n; i++) {
        const struct observe_row *r = &rows[i];
        const struct trace_row *row = &t->rows[i];
        if (r->status == OBSERVE_UNSENT) {
            continue;
        }
        (void)fprintf(out, "%u,%.6f,%u,%u,", row->request_id, r->arrival_s, r->input_tokens,
                      r->output_tokens);
        if (r->output_tokens > 0) {
            (void)fprintf(out, "%.6f,%.6f,", r->first_s - r->arrival_s, r->last_s - r->arrival_s);
        } else {
            (void)fprintf(out, ",,");
        }
        (void)fprintf(out, "%s,%u,%d,%s,%s,%u\n",
                      row->cls == REQUEST_CLASS_REACTIVE ? "reactive" : "proactive",
                      row->output_tokens, r->http, observe_status_names[r->status],
                      observe_count_names[r->count], row->prefix_tokens);
    }
}
