/* A libcurl without a network, and its own clock: a script says what answers say and when, and
 * nothing takes time but waiting. So an instant of `observe` is exact, and no test of it depends on
 * a machine's load. It is libcurl.so.4, and preloaded for the clock. The variable SCRIPT names the
 * script. SCRIPT.log gets a line for each request: instant, timeout in ms, address, body.
 *
 * KEY is the max_tokens of a request. WORD and FIXED make the tokens of a prompt of n words:
 * WORD * n + FIXED. In a text, \n and \r are escaped. The lines of a script are these:
 *
 *     ask WORD FIXED           what a completion without streaming says of its prompt
 *     tokenize WORD FIXED      what the tokenizer says
 *     data KEY AT_NS TEXT      part of an answer, and when it comes after the request
 *     end KEY AT_NS CODE HTTP  its end, with the code of libcurl and the status
 *
 * The variable METER names a file that is a package's counter: METER_WATTS of them, in uJ modulo
 * METER_UJ.
 */
#include <curl/curl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MS 1000000
#define BEGIN_NS 5000000000

struct piece {
    int64_t at_ns;
    char *text; /* NULL: the end */
    long code, http;
};

struct easy {
    char *url;
    const char *body;
    curl_write_callback on;
    void *to, *own;
    long timeout_ms, http;
    int64_t start_ns;
    int key;
    bool done;
    CURLMsg end;
    struct easy *next;
};

static int64_t now_ns = BEGIN_NS;
static struct easy *running; /* the newest first */

int clock_gettime(clockid_t clock, struct timespec *t)
{
    (void)clock;
    *t = (struct timespec){now_ns / (1000 * MS), now_ns % (1000 * MS)};
    return 0;
}

static FILE *opened(const char *suffix, const char *mode)
{
    char path[4096];
    (void)snprintf(path, sizeof path, "%s%s", getenv("SCRIPT"), suffix);
    FILE *f = fopen(path, mode);
    if (f == NULL) {
        abort();
    }
    return f;
}

/* The counter has what was drawn up to now. */
static void put_meter(void)
{
    const char *path = getenv("METER");
    FILE *f = path != NULL ? fopen(path, "w") : NULL;
    if (f != NULL) {
        int64_t drawn_uj = (now_ns - BEGIN_NS) / 1000 * atoll(getenv("METER_WATTS"));
        (void)fprintf(f, "%lld\n", (long long)(drawn_uj % atoll(getenv("METER_UJ"))));
        (void)fclose(f);
    }
}

static void unescape(char *s)
{
    char *to = s;
    for (; *s != '\0'; s++) {
        bool escaped = s[0] == '\\' && (s[1] == 'n' || s[1] == 'r');
        *to++ = escaped ? (s[1] == 'n' ? '\n' : '\r') : *s;
        s += escaped;
    }
    *to = '\0';
}

/* The earliest piece of an answer behind the instant, or none at INT64_MAX. A timeout ends all. */
static struct piece piece_after(const struct easy *x, int64_t after_ns)
{
    static char line[1 << 16];
    struct piece p = {INT64_MAX, NULL, 0, 0};
    FILE *f = opened("", "r");
    while (fgets(line, sizeof line, f) != NULL) {
        int key;
        int used;
        long long at;
        struct piece q = {0, NULL, 0, 0};
        bool data = sscanf(line, "data %d %lld%n", &key, &at, &used) == 2;
        bool end = sscanf(line, "end %d %lld %ld %ld", &key, &at, &q.code, &q.http) == 4;
        q.at_ns = x->start_ns + at;
        if ((data || end) && key == x->key && q.at_ns > after_ns && q.at_ns < p.at_ns) {
            line[strcspn(line, "\n")] = '\0';
            free(p.text);
            p = q;
            p.text = data ? strdup(line + used + 1) : NULL; /* behind one blank */
        }
    }
    (void)fclose(f);
    int64_t late_ns = x->start_ns + x->timeout_ms * MS;
    if (late_ns > after_ns && p.at_ns > late_ns) {
        free(p.text);
        p = (struct piece){late_ns, NULL, CURLE_OPERATION_TIMEDOUT, 0};
    }
    return p;
}

static void begin(struct easy *x)
{
    const char *tokens = strstr(x->body, "\"max_tokens\":");
    x->key = tokens != NULL ? atoi(tokens + 13) : 0;
    x->start_ns = now_ns;
    FILE *log = opened(".log", "a");
    (void)fprintf(log, "%lld %ld %s %s\n", (long long)(now_ns - BEGIN_NS), x->timeout_ms, x->url,
                  x->body);
    (void)fclose(log);
}

/* ---- what observe calls ---- */

CURLcode curl_global_init(long flags)
{
    (void)flags;
    return CURLE_OK;
}

void curl_global_cleanup(void)
{
}

CURLM *curl_multi_init(void)
{
    return &running;
}

CURLMcode curl_multi_cleanup(CURLM *m)
{
    return m == &running && running == NULL ? CURLM_OK : CURLM_BAD_HANDLE;
}

CURL *curl_easy_init(void)
{
    return calloc(1, sizeof(struct easy));
}

void curl_easy_cleanup(CURL *easy)
{
    free(((struct easy *)easy)->url);
    free(easy);
}

struct curl_slist *curl_slist_append(struct curl_slist *l, const char *text)
{
    (void)text;
    return l;
}

void curl_slist_free_all(struct curl_slist *l)
{
    (void)l;
}

const char *curl_easy_strerror(CURLcode code)
{
    (void)code;
    return "as the script says";
}

#undef curl_easy_setopt
CURLcode curl_easy_setopt(CURL *easy, CURLoption option, ...)
{
    struct easy *x = easy;
    va_list a;
    va_start(a, option);
    switch (option) {
    case CURLOPT_URL:
        x->url = strdup(va_arg(a, char *));
        break;
    case CURLOPT_POSTFIELDS:
        x->body = va_arg(a, char *);
        break;
    case CURLOPT_WRITEFUNCTION:
        x->on = va_arg(a, curl_write_callback);
        break;
    case CURLOPT_WRITEDATA:
        x->to = va_arg(a, void *);
        break;
    case CURLOPT_PRIVATE:
        x->own = va_arg(a, void *);
        break;
    case CURLOPT_TIMEOUT_MS:
        x->timeout_ms = va_arg(a, long);
        break;
    default:
        break;
    }
    va_end(a);
    return CURLE_OK;
}

#undef curl_easy_getinfo
CURLcode curl_easy_getinfo(CURL *easy, CURLINFO info, ...)
{
    struct easy *x = easy;
    va_list a;
    va_start(a, info);
    if (info == CURLINFO_RESPONSE_CODE) {
        *va_arg(a, long *) = x->http;
    } else {
        *va_arg(a, void **) = x->own;
    }
    va_end(a);
    return CURLE_OK;
}

/* A question about the length of a prompt. */
CURLcode curl_easy_perform(CURL *easy)
{
    struct easy *x = easy;
    const char *what = strstr(x->url, "/tokenize") != NULL ? "tokenize %d %d" : "ask %d %d";
    char line[1 << 16];
    char answer[128];
    int word;
    int fixed;
    int words = 0;
    const char *prompt =
        strstr(x->body, *what == 't' ? "\"content\":" : "\"stream\":false") != NULL ? x->body : "";
    for (const char *c = prompt; *c != '\0'; c++) {
        words += *c == ' ';
    }
    words /= *what == 't' ? 2 : 1; /* it is there twice */
    begin(x);
    FILE *f = opened("", "r");
    while (fgets(line, sizeof line, f) != NULL) {
        if (sscanf(line, what, &word, &fixed) == 2) {
            x->http = 200;
            int n = snprintf(answer, sizeof answer,
                             *what == 't' ? "{\"count\":%d}" : "{\"usage\":{\"prompt_tokens\":%d}}",
                             word * words + fixed);
            (void)x->on(answer, 1, (size_t)n, x->to);
        }
    }
    (void)fclose(f);
    return CURLE_OK;
}

CURLMcode curl_multi_add_handle(CURLM *m, CURL *easy)
{
    struct easy *x = easy;
    (void)m;
    begin(x);
    x->next = running;
    running = x;
    return CURLM_OK;
}

CURLMcode curl_multi_remove_handle(CURLM *m, CURL *easy)
{
    struct easy **at = &running;
    (void)m;
    while (*at != easy) {
        at = &(*at)->next;
    }
    *at = (*at)->next;
    return CURLM_OK;
}

/* Each answer's pieces up to now; `seen` is the instant up to which they were given. */
CURLMcode curl_multi_perform(CURLM *m, int *n)
{
    static int64_t seen_ns = BEGIN_NS;
    (void)m;
    *n = 0;
    for (struct easy *x = running; x != NULL; x = x->next) {
        struct piece p;
        for (int64_t at = seen_ns; !x->done; at = p.at_ns) {
            p = piece_after(x, at);
            if (p.at_ns > now_ns) {
                free(p.text);
                break;
            }
            if (p.text != NULL) {
                x->http = 200;
                unescape(p.text);
                (void)x->on(p.text, 1, strlen(p.text), x->to);
                free(p.text);
            } else {
                x->done = true;
                x->http = p.http > 0 ? p.http : x->http;
                x->end = (CURLMsg){
                    .msg = CURLMSG_DONE, .easy_handle = x, .data.result = (CURLcode)p.code};
            }
        }
        *n += !x->done;
    }
    seen_ns = now_ns;
    return CURLM_OK;
}

CURLMsg *curl_multi_info_read(CURLM *m, int *left)
{
    (void)m;
    *left = 0;
    for (struct easy *x = running; x != NULL; x = x->next) {
        if (x->done) {
            return &x->end;
        }
    }
    return NULL;
}

CURLMcode curl_multi_poll(CURLM *m, struct curl_waitfd *fds, unsigned n_fds, int timeout_ms, int *n)
{
    int64_t at_ns = now_ns + (int64_t)timeout_ms * MS;
    (void)m;
    (void)fds;
    (void)n_fds;
    (void)n;
    for (struct easy *x = running; x != NULL; x = x->next) {
        struct piece p = piece_after(x, now_ns);
        free(p.text);
        at_ns = !x->done && p.at_ns < at_ns ? p.at_ns : at_ns;
    }
    now_ns = at_ns;
    put_meter();
    return CURLM_OK;
}
