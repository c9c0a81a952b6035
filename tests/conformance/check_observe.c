/* xpusim observe runs against a server of our own on the loopback, which answers, refuses, breaks
 * off and is silent as its requests ask. */
#include <arpa/inet.h>
#include <math.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "experiments/observe/observe.h"
#include "tests/helpers/suite.h"
#include "traces/measured.h"

/* max_tokens makes the server send so many tokens, or do one of these. */
enum { ASK_503 = 1001, ASK_SILENCE, ASK_BREAK, ASK_NOTHING, ASK_GARBAGE, ASK_CUT_LINES, ASK_LEAVE };

static int listener;
static char url[4096];

/* These are the tokens of a word, and those around all words, of a server that counts prompts
 * without streaming. It never counts them in a stream. With 0 it does not count. */
static int per_word, around;
static atomic_uint longest; /* the longest prompt that was streamed, in tokens */

static void say(int fd, const char *text)
{
    if (write(fd, text, strlen(text)) < 0) {
        perror("test server");
    }
}

static void token(int fd, const char *text)
{
    char line[256];
    (void)snprintf(line, sizeof line, "data: {\"choices\": [{\"text\": \"%s\"}]}\n\n", text);
    say(fd, line);
}

static void answer(int fd, int ask)
{
    static const char head[] = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
                               "Connection: close\r\n\r\n";
    switch (ask) {
    case ASK_503:
        say(fd, "HTTP/1.1 503 Busy\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        return;
    case ASK_SILENCE:
        (void)sleep(3);
        return;
    case ASK_BREAK:
        say(fd, head);
        token(fd, "a");
        token(fd, "b");
        return; /* no end of the stream */
    case ASK_NOTHING:
        say(fd, head);
        say(fd, "data: {\"choices\": []}\n\ndata: [DONE]\n\n");
        return;
    case ASK_GARBAGE:
        say(fd, head);
        say(fd, ": a comment\ndata: {\"choices\": 7\ndata:\nnonsense\n\n");
        token(fd, "a");
        say(fd, "data: [DONE]\n\n");
        return;
    case ASK_CUT_LINES:
        say(fd, head);
        say(fd, "data: {\"choi");
        say(fd, "ces\": [{\"text\": \"x\"}]}\r");
        say(fd, "\n\r\ndata: {\"choices\": [], \"usage\": {\"prompt_tokens\": 77}}\n\ndata: [DO");
        say(fd, "NE]\n\n");
        return;
    case ASK_LEAVE: /* the next request finds no server */
        (void)shutdown(listener, SHUT_RDWR);
        (void)close(listener);
        ask = 1;
        __attribute__((fallthrough));
    default:
        say(fd, head);
        for (int i = 0; i < ask; i++) {
            token(fd, "t");
        }
        token(fd, ""); /* the last event of many servers has no text */
        say(fd, "data: [DONE]\n\n");
    }
}

/* Counts the words of the prompt. A blank follows each. */
static unsigned prompt_words(const char *request)
{
    const char *p = strstr(request, "\"prompt\":");
    p = p == NULL ? "" : strchr(p + 9, '"') + 1;
    unsigned n = 0;
    for (; *p != '\0' && *p != '"'; p++) {
        n += *p == ' ';
    }
    return n;
}

static void count_prompt(int fd, unsigned tokens)
{
    char text[256];
    (void)snprintf(text, sizeof text,
                   "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"
                   "{\"choices\": [{\"text\": \"t\"}], \"usage\": {\"prompt_tokens\": %u}}",
                   tokens);
    say(fd, text);
}

/* Reads a whole request, then does what it asks. */
static void *serve_one(void *arg)
{
    int fd = (int)(intptr_t)arg;
    static const size_t size = 1u << 20;
    char *buf = calloc(1, size);
    size_t n = 0;
    size_t want = size;
    while (n < want && n + 1 < size) {
        ssize_t got = read(fd, buf + n, size - 1 - n);
        if (got <= 0) {
            break;
        }
        n += (size_t)got;
        const char *end = strstr(buf, "\r\n\r\n");
        const char *length = strstr(buf, "Content-Length: ");
        if (end != NULL && length != NULL) {
            want = (size_t)(end - buf) + 4 + strtoul(length + 16, NULL, 10);
        }
    }
    const char *ask = strstr(buf, "\"max_tokens\":");
    const char *whole = strstr(buf, "/completions HTTP/1.1\r\n");
    unsigned tokens = (unsigned)per_word * prompt_words(buf) + (unsigned)around;
    if (per_word > 0 && strstr(buf, "\"stream\":false") != NULL) {
        count_prompt(fd, tokens);
    } else {
        longest = tokens > longest ? tokens : longest;
        answer(fd, ask == NULL || whole == NULL ? ASK_503 : atoi(ask + 13));
    }
    (void)close(fd);
    free(buf);
    return NULL;
}

static void *serve(void *arg)
{
    (void)arg;
    for (;;) {
        int fd = accept(listener, NULL, NULL);
        pthread_t t;
        if (fd < 0 || pthread_create(&t, NULL, serve_one, (void *)(intptr_t)fd) != 0) {
            return NULL;
        }
        pthread_detach(t);
    }
}

static void server_start(void)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof a;
    listener = socket(AF_INET, SOCK_STREAM, 0);
    ck_assert_int_eq(bind(listener, (struct sockaddr *)&a, sizeof a), 0);
    ck_assert_int_eq(listen(listener, 64), 0);
    ck_assert_int_eq(getsockname(listener, (struct sockaddr *)&a, &size), 0);
    (void)snprintf(url, sizeof url, "http://127.0.0.1:%d/v1", ntohs(a.sin_port));
    pthread_t t;
    ck_assert_int_eq(pthread_create(&t, NULL, serve, NULL), 0);
    pthread_detach(t);
}

enum { MAX_ROWS = 32 };
static struct trace_row trace_rows[MAX_ROWS];
static struct observe_row seen[MAX_ROWS];
static struct trace trace = {.rows = trace_rows};

static void ask(uint32_t output_tokens)
{
    uint32_t i = (uint32_t)trace.n++;
    trace.n_first++;
    trace_rows[i] = (struct trace_row){.arrival_ns = (int64_t)i * 2000000,
                                       .request_id = i,
                                       .session_id = i,
                                       .input_tokens = 10 + i,
                                       .output_tokens = output_tokens,
                                       .next = TRACE_NO_ROW};
}

static void observe(double timeout_s)
{
    struct err e = ERR_INIT;
    struct observe_options o = {.url = url, .model = "m", .timeout_s = timeout_s, .scale = 1.0};
    ck_assert_int_eq(observe_run(&o, &trace, seen, &e), 0);
    err_fini(&e);
}

START_TEST(every_kind_of_answer_is_a_row)
{
    static const struct {
        uint32_t ask;
        enum observe_status status;
        uint32_t tokens;
    } cases[] = {
        {5, OBSERVE_OK, 5},
        {1, OBSERVE_OK, 1},
        {ASK_503, OBSERVE_HTTP, 0},
        {40, OBSERVE_OK, 40},
        {ASK_BREAK, OBSERVE_BROKEN, 2},
        {ASK_NOTHING, OBSERVE_EMPTY, 0},
        {ASK_GARBAGE, OBSERVE_OK, 1},
        {ASK_CUT_LINES, OBSERVE_OK, 1},
        {ASK_SILENCE, OBSERVE_TIMEOUT, 0},
    };
    const size_t n = sizeof cases / sizeof cases[0];
    server_start();
    for (size_t i = 0; i < n; i++) {
        ask(cases[i].ask);
    }
    observe(1.5);
    for (size_t i = 0; i < n; i++) {
        ck_assert_msg(seen[i].status == cases[i].status, "request %zu: %s", i,
                      observe_status_names[seen[i].status]);
        ck_assert_uint_eq(seen[i].output_tokens, cases[i].tokens);
        if (cases[i].tokens > 0) {
            ck_assert_double_ge(seen[i].first_s, seen[i].arrival_s);
            ck_assert_double_ge(seen[i].last_s, seen[i].first_s);
        } else {
            ck_assert(isnan(seen[i].first_s));
        }
    }
    ck_assert_int_eq(seen[2].http, 503);
    ck_assert_uint_eq(seen[7].input_tokens, 77); /* as the server counts */
    ck_assert_int_eq(seen[7].count, OBSERVE_COUNT_SERVER);
    ck_assert_uint_eq(seen[0].input_tokens, 10); /* it did not say */
    ck_assert_int_eq(seen[0].count, OBSERVE_COUNT_UNKNOWN);
}
END_TEST

START_TEST(what_was_seen_can_be_validated_against)
{
    char path[64];
    (void)snprintf(path, sizeof path, "/tmp/xpusim-observe-%ld.csv", (long)getpid());
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    struct observe_options o = {.url = url, .model = "m"};
    struct measured_run run;
    struct err e = ERR_INIT;
    server_start();
    ask(5);
    ask(ASK_503);
    ask(ASK_BREAK);
    ask(7);
    observe(5.0);
    observe_write(&o, &trace, seen, f);
    (void)fclose(f);
    ck_assert_msg(measured_run_read(path, &run, &e) == 0, "%s", e.n > 0 ? e.lines[0] : "");
    ck_assert_uint_eq(run.trace.n, 2); /* only the answered ones */
    ck_assert_uint_eq(run.trace.rows[0].output_tokens, 5);
    ck_assert_uint_eq(run.trace.rows[1].output_tokens, 7);
    ck_assert_uint_eq(run.ids[1], 3);
    ck_assert_uint_eq(run.n_prompts_unknown, 2);
    trace_fini(&run.trace);
    (void)unlink(path);
}
END_TEST

/* A word is four tokens there, and a prompt has four more. 200 tokens are 49 words. 10 are one and
 * a half, so two: 12 tokens. Without the question the server would have had 804 and 44. */
START_TEST(a_server_is_asked_how_long_prompts_are)
{
    server_start();
    per_word = around = 4;
    ask(5);
    ask(5);
    trace_rows[1].input_tokens = 200;
    observe(5.0);
    per_word = around = 0;
    ck_assert_uint_eq(seen[0].input_tokens, 12);
    ck_assert_uint_eq(seen[1].input_tokens, 200);
    ck_assert_uint_eq(longest, 200);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(seen[i].status, OBSERVE_OK);
        ck_assert_int_eq(seen[i].count, OBSERVE_COUNT_PROBE);
    }
}
END_TEST

/* The second turn comes when the listener of the first is closed. */
START_TEST(a_server_that_leaves_is_rows_too)
{
    server_start();
    ask(ASK_LEAVE);
    ask(6);
    trace.n_first = 1;
    trace_rows[0].next = 1;
    observe(2.0);
    ck_assert_int_eq(seen[0].status, OBSERVE_OK);
    ck_assert_int_eq(seen[1].status, OBSERVE_REFUSED);
}
END_TEST

/* There is no listener, no such name or no address, and none of them takes a trace's time. */
START_TEST(where_no_server_is_nothing_is_replayed)
{
    server_start();
    (void)shutdown(listener, SHUT_RDWR);
    (void)close(listener);
    ask(5);
    trace_rows[0].arrival_ns = (int64_t)1000 * 1000 * 1000 * 1000; /* the case has 60 s */
    const char *const urls[] = {url, "http://nobody.invalid/v1", "nothing://127.0.0.1/v1", ""};
    for (size_t i = 0; i < sizeof urls / sizeof urls[0]; i++) {
        struct err e = ERR_INIT;
        struct observe_options o = {.url = urls[i], .model = "m", .timeout_s = 5, .scale = 1.0};
        ck_assert_int_eq(observe_run(&o, &trace, seen, &e), -EINVAL);
        ck_assert_ptr_nonnull(strstr(e.lines[0], "no server is there"));
        err_fini(&e);
    }
}
END_TEST

START_TEST(an_address_of_any_length_is_asked_whole)
{
    server_start();
    size_t n = strlen(url);
    memset(url + n, 'x', 3000);
    url[n + 3000] = '\0';
    ask(5);
    observe(5.0);
    ck_assert_int_eq(seen[0].status, OBSERVE_OK);
}
END_TEST

/* The second turn begins its gap of 100 ms after the first one's last token. */
START_TEST(a_later_turn_waits_for_the_response_before)
{
    server_start();
    ask(5);
    ask(6);
    trace.n_first = 1;
    trace_rows[0].next = 1;
    trace_rows[1].arrival_ns = 100000000;
    observe(5.0);
    ck_assert_int_eq(seen[1].status, OBSERVE_OK);
    ck_assert_double_ge(seen[1].arrival_s, seen[0].last_s + 0.1);
}
END_TEST

static const struct suite_row suite[] = {
    CASE("all", .timeout_s = 60),
    TEST(every_kind_of_answer_is_a_row),
    TEST(what_was_seen_can_be_validated_against),
    TEST(a_server_is_asked_how_long_prompts_are),
    TEST(a_server_that_leaves_is_rows_too),
    TEST(where_no_server_is_nothing_is_replayed),
    TEST(an_address_of_any_length_is_asked_whole),
    TEST(a_later_turn_waits_for_the_response_before),
};
SUITE_MAIN("observe", suite)
