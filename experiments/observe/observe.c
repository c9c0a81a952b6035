#include "experiments/observe/observe.h"

#include <cjson/cJSON.h>

#include "experiments/observe/curl_api.h"
#include "experiments/observe/prompts.h"
#include "sim/api/request.h"
#include "sim/base/clock.h"
#include "sim/base/json.h"

#define LINE_BYTES 65536
#define POLL_MOST_MS 1000

/* Above the ids of usual traces, so that their prompts get no cached prefix from the probes. */
#define PROBE_ID 0x7fffffffu
static const uint32_t PROBE_WORDS[] = {8, 64};

/* A request that was sent and is not answered. */
struct exchange {
    struct replay *replay;
    uint32_t row;
    CURL *easy;
    char *body;
    char *line; /* the stream's current line */
    size_t n_line;
    bool done;      /* [DONE] was received */
    bool failed;    /* an error was received instead of an event; [DONE] may follow */
    bool impatient; /* its user gives up before the timeout */
    uint32_t texts; /* pieces of text; a server may send several tokens in one */
    uint32_t said;  /* tokens of the answer, by the server's count; 0: unknown */
    int64_t start_ns;
};

/* A request that is due at an instant. */
struct due {
    int64_t at_ns;
    uint32_t row;
};

struct replay {
    const struct observe_options *o;
    const struct trace *t;
    struct observe_row *rows;
    struct curl_api curl;
    CURLM *multi;
    struct curl_slist *headers;
    int64_t epoch_ns;
    struct prompts prompts;
    bool probed;
    CURLcode asked;    /* end of the last request before the replay */
    uint32_t *parents; /* by row: number of unfinished parents; NULL: no request graph */
    int64_t *ready_ns; /* by row: latest end of a finished parent, with its gap */
    struct due *due;   /* waiting, earliest last */
    size_t n_due;
    uint32_t running;
};

static void due_add(struct replay *r, int64_t at_ns, uint32_t row)
{
    size_t i = r->n_due++;
    for (; i > 0 && r->due[i - 1].at_ns < at_ns; i--) {
        r->due[i] = r->due[i - 1];
    }
    r->due[i] = (struct due){at_ns, row};
}

/* ---- requests ---- */

static char *body_text(const struct observe_options *o, const char *model, const char *prompt,
                       uint32_t max_tokens, bool stream)
{
    SCOPED(json_drop)
    cJSON *b =
        JSON_MEMBERS(cJSON_CreateObject(), "model", model, "prompt", FRAME_IF(!o->chat, prompt));
    if (o->chat) {
        cJSON *message = JSON_MEMBERS(cJSON_CreateObject(), "role", "user", "content", prompt);
        cJSON_AddItemToArray(cJSON_AddArrayToObject(b, "messages"), message);
    }
    JSON_MEMBERS(b, "max_tokens", max_tokens, "temperature", 0, "stream", stream, "ignore_eos",
                 (bool)true); /* some servers ignore this */
    if (stream) {
        cJSON_AddBoolToObject(cJSON_AddObjectToObject(b, "stream_options"), "include_usage", true);
    }
    return json_text(b, false);
}

/* ---- answers ---- */

static double seconds_since(const struct exchange *x)
{
    return units_s_from_ns(clock_now_ns() - x->replay->epoch_ns);
}

static bool is_text(const cJSON *x)
{
    return cJSON_IsString(x) && x->valuestring[0] != '\0';
}

/* The text of an event, or NULL. *said: it belongs to the answer; false: to the reasoning before
 * that, whose tokens the server counts, too. */
static const char *text_of(const cJSON *event, bool *said)
{
    static const char *const keys[] = {"content", "reasoning_content", "reasoning"};
    const cJSON *choice = cJSON_GetArrayItem(cJSON_GetObjectItem(event, "choices"), 0);
    const cJSON *delta = cJSON_GetObjectItem(choice, "delta");
    const cJSON *text = cJSON_GetObjectItem(choice, "text");
    *said = true;
    for (size_t i = 0; i < sizeof keys / sizeof keys[0] && !is_text(text); i++) {
        text = cJSON_GetObjectItem(delta, keys[i]);
        *said = i == 0;
    }
    return is_text(text) ? text->valuestring : NULL;
}

/* The server's count `key`: prompt_tokens or completion_tokens. 0: unknown. */
static uint32_t usage_of(const cJSON *event, const char *key)
{
    const cJSON *n = cJSON_GetObjectItem(cJSON_GetObjectItem(event, "usage"), key);
    return cJSON_IsNumber(n) && n->valuedouble >= 1.0 ? (uint32_t)n->valuedouble : 0;
}

static void take_line(struct exchange *x)
{
    struct observe_row *row = &x->replay->rows[x->row];
    x->line[x->n_line] = '\0';
    if (strncmp(x->line, "data:", 5) != 0) {
        return;
    }
    const char *data = x->line + 5 + strspn(x->line + 5, " ");
    if (strncmp(data, "[DONE]", 6) == 0) {
        x->done = true;
        return;
    }
    SCOPED(json_drop) cJSON *event = cJSON_Parse(data);
    const cJSON *error = cJSON_GetObjectItem(event, "error");
    x->failed = x->failed || cJSON_IsObject(error) || is_text(error);
    bool said;
    const char *text = text_of(event, &said);
    if (text != NULL) {
        if (said) {
            prompts_answer(&x->replay->prompts, x->row, text);
        }
        row->last_s = seconds_since(x);
        row->first_s = x->texts == 0 ? row->last_s : row->first_s;
        x->texts++;
    }
    if (usage_of(event, "prompt_tokens") > 0) {
        row->input_tokens = usage_of(event, "prompt_tokens");
        row->count = OBSERVE_COUNT_SERVER;
    }
    if (usage_of(event, "completion_tokens") > 0) {
        x->said = usage_of(event, "completion_tokens");
    }
}

static size_t on_data(char *data, size_t size, size_t n, void *self)
{
    struct exchange *x = self;
    for (size_t i = 0; i < size * n; i++) {
        if (data[i] == '\n') {
            take_line(x);
            x->n_line = 0;
        } else if (data[i] != '\r' && x->n_line + 1 < LINE_BYTES) {
            x->line[x->n_line++] = data[i]; /* a longer line is no token */
        }
    }
    return size * n;
}

/* ---- life of an exchange ---- */

static CURL *request(const struct replay *r, char *url, const char *body, curl_write_callback on,
                     void *self, double timeout_s)
{
    CURL *easy = r->curl.easy_init();
    (void)r->curl.easy_setopt(easy, CURLOPT_URL, url); /* libcurl copies it */
    free(url);
    (void)r->curl.easy_setopt(easy, CURLOPT_POSTFIELDS, body);
    (void)r->curl.easy_setopt(easy, CURLOPT_HTTPHEADER, r->headers);
    (void)r->curl.easy_setopt(easy, CURLOPT_WRITEFUNCTION, on);
    (void)r->curl.easy_setopt(easy, CURLOPT_WRITEDATA, self);
    (void)r->curl.easy_setopt(easy, CURLOPT_PRIVATE, self);
    (void)r->curl.easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    (void)r->curl.easy_setopt(easy, CURLOPT_TCP_NODELAY, 1L);
    long timeout_ms = (long)fmax(1.0, timeout_s * 1e3); /* 0 would mean no timeout */
    (void)r->curl.easy_setopt(easy, CURLOPT_TIMEOUT_MS, timeout_ms);
    return easy;
}

static char *completions(const struct replay *r)
{
    return xformat("%s/%s", r->o->url, r->o->chat ? "chat/completions" : "completions");
}

static const char *model_of(const struct replay *r, uint32_t row)
{
    const struct trace_graph *g = r->t->graph;
    bool named = g != NULL && g->model != NULL && g->model[row] > 0;
    return named ? g->models[g->model[row] - 1].name : r->o->model;
}

static void begin(struct replay *r, uint32_t row)
{
    const struct trace_row *t = &r->t->rows[row];
    uint32_t tokens;
    const char *prompt = prompts_text(&r->prompts, row, &tokens);
    struct exchange *x = xcalloc(1, sizeof *x);
    *x = (struct exchange){.replay = r, .row = row, .start_ns = clock_now_ns()};
    x->line = xmalloc(LINE_BYTES);
    x->body = body_text(r->o, model_of(r, row), prompt, t->output_tokens, true);
    r->rows[row].arrival_s = units_s_from_ns(x->start_ns - r->epoch_ns);
    if (r->probed) {
        r->rows[row].input_tokens = tokens;
        r->rows[row].count = OBSERVE_COUNT_PROBE;
    }
    double patience_s =
        r->t->extras != NULL ? units_s_from_ns(r->t->extras[row].cancel_ns) : (double)INFINITY;
    x->impatient = patience_s < r->o->timeout_s;
    x->easy = request(r, completions(r), x->body, on_data, x, fmin(patience_s, r->o->timeout_s));
    (void)r->curl.multi_add_handle(r->multi, x->easy);
    r->running++;
}

/* ---- lengths of prompts in the server's tokens ---- */

static size_t on_answer(char *data, size_t size, size_t n, void *self)
{
    struct text *answer = self;
    if (answer->n < LINE_BYTES) { /* a longer one is no answer of one token */
        text_add(answer, data, size * n);
    }
    return size * n;
}

/* Sends a request without streaming. The caller deletes the answer. NULL: it is no JSON. */
static cJSON *ask(struct replay *r, char *url, const char *body)
{
    SCOPED(text_fini) struct text answer = {0};
    CURL *easy = request(r, url, body, on_answer, &answer, r->o->timeout_s);
    r->asked = r->curl.easy_perform(easy);
    cJSON *event = cJSON_Parse(text_end(&answer));
    r->curl.easy_cleanup(easy);
    return event;
}

/* Tokens of a prompt by the usage of a completion of one token. 0: unknown. */
static uint32_t ask_usage(struct replay *r, const char *prompt)
{
    OWNED char *body = body_text(r->o, r->o->model, prompt, 1, false);
    SCOPED(json_drop) cJSON *event = ask(r, completions(r), body);
    return usage_of(event, "prompt_tokens");
}

/* Tokens of a prompt by the tokenizer that some servers offer next to /v1: llama.cpp lists the
 * tokens of `content`, vLLM counts those of `prompt`. 0: there is none. */
static uint32_t ask_tokenizer(struct replay *r, const char *prompt)
{
    size_t n = strlen(r->o->url);
    bool versioned = text_ends(r->o->url, "/v1");
    SCOPED(json_drop)
    cJSON *b = JSON_MEMBERS(cJSON_CreateObject(), "model", r->o->model, "content", prompt, "prompt",
                            prompt, "add_special", (bool)true); /* as in a completion */
    OWNED char *body = json_text(b, false);
    char *url = xformat("%.*s/tokenize", (int)(versioned ? n - 3 : n), r->o->url);
    SCOPED(json_drop) cJSON *event = ask(r, url, body);
    const cJSON *count = cJSON_GetObjectItem(event, "count");
    int listed = cJSON_GetArraySize(cJSON_GetObjectItem(event, "tokens"));
    double tokens = cJSON_IsNumber(count) ? count->valuedouble : listed;
    return tokens >= 1.0 ? (uint32_t)tokens : 0;
}

/* Fits a line to the lengths of two prompts. If the server gives no count, a word is one token. */
static void probe(struct replay *r)
{
    static uint32_t (*const ways[])(struct replay *, const char *) = {ask_usage, ask_tokenizer};
    for (size_t i = 0; i < sizeof ways / sizeof ways[0] && !r->probed; i++) {
        uint32_t tokens[2];
        for (int k = 0; k < 2; k++) {
            OWNED char *prompt = prompts_words(PROBE_WORDS[k], PROBE_ID);
            tokens[k] = k == 0 || tokens[0] > 0 ? ways[i](r, prompt) : 0;
        }
        if (tokens[0] > 0 && tokens[1] > tokens[0]) {
            struct prompts *p = &r->prompts;
            p->per_word = (double)(tokens[1] - tokens[0]) / (PROBE_WORDS[1] - PROBE_WORDS[0]);
            p->fixed = tokens[0] - p->per_word * PROBE_WORDS[0];
            r->probed = true;
        }
    }
}

/* Without a connection nothing was sent. */
static bool nobody_there(CURLcode code)
{
    return code == CURLE_COULDNT_CONNECT || code == CURLE_COULDNT_RESOLVE_HOST ||
           code == CURLE_URL_MALFORMAT || code == CURLE_UNSUPPORTED_PROTOCOL;
}

static enum observe_status judge(const struct exchange *x, CURLcode code, long http)
{
    if (nobody_there(code)) {
        return OBSERVE_REFUSED;
    }
    if (code == CURLE_OPERATION_TIMEDOUT) {
        return x->impatient ? OBSERVE_CANCELLED : OBSERVE_TIMEOUT;
    }
    if (http != 200) {
        return http == 0 ? OBSERVE_BROKEN : OBSERVE_HTTP;
    }
    return code != CURLE_OK || !x->done || x->failed ? OBSERVE_BROKEN
           : x->texts == 0                           ? OBSERVE_EMPTY
                                                     : OBSERVE_OK;
}

static int64_t scaled(const struct replay *r, int64_t gap_ns)
{
    return (int64_t)((double)gap_ns * r->o->scale);
}

/* Schedules a later request, unless its session has ended by then. */
static void follow(struct replay *r, int64_t at_ns, uint32_t row)
{
    int64_t until_ns = r->t->extras != NULL ? r->t->extras[row].until_ns : TIME_NEVER_NS;
    if (until_ns == TIME_NEVER_NS || at_ns - r->epoch_ns < scaled(r, until_ns)) {
        due_add(r, at_ns, row);
    }
}

/* Schedules the rows that wait for the end of this one. A user or tool sends the next request even
 * if the answer was an error. In a request graph a row waits for the last of its parents. */
static void go_on(struct replay *r, uint32_t row)
{
    const struct trace_graph *g = r->t->graph;
    const int64_t now = clock_now_ns();
    uint32_t next = r->t->rows[row].next;
    if (g == NULL && next != TRACE_NO_ROW) {
        follow(r, now + scaled(r, r->t->rows[next].arrival_ns), next);
    }
    for (uint32_t i = g != NULL ? g->first[row] : 0; g != NULL && i < g->first[row + 1]; i++) {
        uint32_t child = g->edges[i].row;
        int64_t over_ns = now + scaled(r, g->edges[i].gap_ns);
        r->ready_ns[child] = over_ns > r->ready_ns[child] ? over_ns : r->ready_ns[child];
        if (--r->parents[child] == 0) {
            follow(r, r->ready_ns[child] + scaled(r, r->t->rows[child].arrival_ns), child);
        }
    }
}

static void end(struct replay *r, struct exchange *x, CURLcode code)
{
    long http = 0;
    (void)r->curl.easy_getinfo(x->easy, CURLINFO_RESPONSE_CODE, &http);
    if (code == CURLE_OK && x->n_line > 0) { /* the last line may lack its newline */
        take_line(x);
    }
    r->rows[x->row].http = (int)http;
    uint32_t tokens = x->texts > 0 && x->said > 0 ? x->said : x->texts;
    r->rows[x->row].output_tokens = tokens;
    prompts_answered(&r->prompts, x->row, (double)tokens / fmax(1.0, x->texts));
    r->rows[x->row].status = judge(x, code, http);
    go_on(r, x->row);
    (void)r->curl.multi_remove_handle(r->multi, x->easy);
    r->curl.easy_cleanup(x->easy);
    cJSON_free(x->body);
    free(x->line);
    free(x);
    r->running--;
}

static void loop(struct replay *r)
{
    int64_t told_ns = r->epoch_ns;
    while (r->n_due > 0 || r->running > 0) {
        int64_t now = clock_now_ns();
        if (r->o->each_second != NULL && now - told_ns >= NS_PER_S) {
            r->o->each_second(r->o->ctx);
            told_ns = now;
        }
        while (r->n_due > 0 && r->due[r->n_due - 1].at_ns <= now) {
            begin(r, r->due[--r->n_due].row);
        }
        int still;
        int left;
        (void)r->curl.multi_perform(r->multi, &still);
        for (CURLMsg *m; (m = r->curl.multi_info_read(r->multi, &left)) != NULL;) {
            void *x = NULL;
            CURLcode code = m->data.result;
            (void)r->curl.easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, &x);
            end(r, x, code);
        }
        int64_t wait_ns =
            r->n_due > 0 ? r->due[r->n_due - 1].at_ns - clock_now_ns() : POLL_MOST_MS * NS_PER_MS;
        int wait_ms = wait_ns <= 0 ? 0 : (int)(wait_ns / NS_PER_MS) + 1;
        if (r->n_due > 0 || r->running > 0) {
            (void)r->curl.multi_poll(r->multi, NULL, 0,
                                     wait_ms < POLL_MOST_MS ? wait_ms : POLL_MOST_MS, NULL);
        }
    }
}

static void replay_all(struct replay *r)
{
    r->epoch_ns = clock_now_ns();
    for (size_t i = 0; i < r->t->n; i++) {
        r->rows[i] = (struct observe_row){.status = OBSERVE_UNSENT,
                                          .first_s = (double)NAN,
                                          .last_s = (double)NAN,
                                          .input_tokens = r->t->rows[i].input_tokens};
    }
    for (size_t i = 0; i < r->t->n_first; i++) {
        due_add(r, r->epoch_ns + scaled(r, r->t->rows[i].arrival_ns), (uint32_t)i);
    }
    loop(r);
}

int observe_run(const struct observe_options *o, const struct trace *t, struct observe_row *rows,
                struct err *e)
{
    struct replay r = {.o = o, .t = t, .rows = rows};
    if (curl_api_load(&r.curl, e) != 0) {
        return -1;
    }
    if (r.curl.global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
        return err_add(e, "libcurl does not start");
    }
    r.multi = r.curl.multi_init();
    r.headers = r.curl.slist_append(NULL, "Content-Type: application/json");
    r.due = xkept(xcalloc(t->n + 1, sizeof *r.due));
    prompts_init(&r.prompts, t);
    if (t->graph != NULL) {
        r.parents = xkept(xmalloc((t->n + 1) * sizeof *r.parents));
        r.ready_ns = xkept(xcalloc(t->n + 1, sizeof *r.ready_ns));
        memcpy(r.parents, t->graph->n_parents, t->n * sizeof *r.parents);
    }
    probe(&r);
    int rc = 0;
    if (nobody_there(r.asked)) {
        rc = err_add(e, "--url %s: no server is there: %s", o->url, r.curl.easy_strerror(r.asked));
    } else {
        replay_all(&r);
    }
    r.curl.slist_free_all(r.headers);
    (void)r.curl.multi_cleanup(r.multi);
    r.curl.global_cleanup();
    return rc;
}
