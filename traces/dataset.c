/* Token lengths of real requests. Rows are sampled as a whole, which keeps input and output
 * together. */
#include "sim/base/csvfile.h"
#include "sim/base/datadir.h"
#include "sim/base/map.h"
#include "sim/base/words.h"
#include "traces/traces.h"

static const char *const shipped[] = {"bfcl",           "bfcl_multiturn",
                                      "cnn_dailymail",  "droidtask_ui",
                                      "lmsys_chat",     "mtrag",
                                      "mtrag_append",   "proactive_mixed",
                                      "proactivebench", "proactivebench_models",
                                      "reactive_mixed", "samsum",
                                      "specbench_rag",  "specbench_summary",
                                      "tweet_reply",    NULL};

void dataset_fini(struct dataset *d)
{
    free(d->rows);
    *d = (struct dataset){0};
}

/* The column that groups rows into conversations, which has one of several names; or -1. */
static int session_column(const struct csvfile *f)
{
    static const char *const names[] = {"session_id", "conversation_id", "task_id"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        int c = csvfile_column(f, names[i]);
        if (c >= 0) {
            return c;
        }
    }
    return -1;
}

static void rows_read(struct csvfile *f, const char *path, struct dataset *out, int in, int outp,
                      struct err *e)
{
    int prefix = csvfile_column(f, "prefix_tokens");
    int session = session_column(f);
    int model = csvfile_column(f, "model_id");
    int tool = csvfile_column(f, "after_tool");
    uint64_t last = UINT64_MAX;
    SCOPED(map_fini) struct map seen = {0};
    while (e->n < ERR_MAX_LINES && csvfile_next(f, e) == 1) {
        out->rows = xgrow(out->rows, out->n, sizeof *out->rows);
        struct dataset_row *r = &out->rows[out->n++];
        *r = (struct dataset_row){0};
        r->input_tokens = (uint32_t)csvfile_u64(f, in, 1, 10000000, e);
        r->output_tokens = (uint32_t)csvfile_u64(f, outp, 1, 10000000, e);
        if (prefix >= 0) {
            r->prefix_tokens = (uint32_t)csvfile_u64(f, prefix, 0, r->input_tokens, e);
        }
        if (tool >= 0) {
            r->after_tool = csvfile_u64(f, tool, 0, 1, e) == 1;
        }
        if (session >= 0) {
            uint64_t key = csvfile_u64(f, session, 0, 1000000, e);
            /* A task answered by several models is a conversation with each. */
            key += model >= 0 ? csvfile_u64(f, model, 0, 1000, e) * 10000000u : 0;
            if (key != last && map_find(&seen, key) != MAP_NONE) {
                csvfile_refuse(f, session, e,
                               "\"%s\" is there again: its rows must follow each other",
                               csvfile_text(f, session));
            }
            if (key != last) {
                out->n_sessions++;
                last = key;
                map_put(&seen, key, out->n_sessions);
            }
            r->session = out->n_sessions;
            bool first = out->n < 2 || out->rows[out->n - 2].session != r->session;
            r->turn = first ? 0 : out->rows[out->n - 2].turn + 1;
            if (first) {
                /* The source's cache may have had a prefix before the conversation; our first turns
                 * have none. */
                r->prefix_tokens = 0;
            }
            if (r->turn >= UINT16_MAX) {
                err_add(e, "%s:%llu: conversation of over %d turns", path,
                        (unsigned long long)csvfile_line(f), UINT16_MAX);
                break;
            }
        }
    }
}

/* Cache of shipped data sets: workers make hundreds of traces from the same two. */
#define KEPT 4
static struct kept {
    const char *name; /* pointer into `shipped`, or NULL */
    struct dataset data;
} kept[KEPT];

static void copy_of(const struct dataset *d, struct dataset *out)
{
    *out = *d;
    out->rows = xmalloc(d->n * sizeof *out->rows);
    /* A copy, because the caller frees its rows. */
    memcpy(out->rows, d->rows, d->n * sizeof *out->rows);
}

static bool find_kept(const char *name, struct dataset *out)
{
    for (int i = 0; i < KEPT; i++) {
        if (kept[i].name != NULL && kept[i].name == name) {
            copy_of(&kept[i].data, out);
            return true;
        }
    }
    return false;
}

static void keep(const char *name, const struct dataset *d)
{
    for (int i = 0; i < KEPT && name != NULL; i++) {
        if (kept[i].name == NULL) {
            kept[i].name = name;
            copy_of(d, &kept[i].data);
            return;
        }
    }
}

int dataset_load(const char *name, struct dataset *out, struct err *e)
{
    *out = (struct dataset){0};
    int place = words_find(shipped, name);
    const char *known = place >= 0 ? shipped[place] : NULL;
    if (known != NULL && find_kept(known, out)) {
        return 0;
    }
    size_t before = e->n;
    const char *path = datadir_named(name, "traces/datasets", ".csv");
    SCOPED(csvfile_drop) struct csvfile *f = csvfile_open(path, e);
    if (f == NULL) {
        SCOPED(text_fini) struct text all = {0};
        for (int i = 0; shipped[i] != NULL; i++) {
            text_item(&all, " ", shipped[i]);
        }
        return err_add(e, "dataset \"%s\": shipped ones are %s", name, text_end(&all));
    }
    int in = csvfile_require(f, "input_tokens", e);
    int outp = csvfile_require(f, "output_tokens", e);
    if (e->n == before) {
        rows_read(f, path, out, in, outp, e);
    }
    if (e->n == before && out->n == 0) {
        err_add(e, "%s: no rows", path);
    }
    if (e->n != before) {
        dataset_fini(out);
        return -EINVAL;
    }
    keep(known, out);
    return 0;
}
