/* Contents of a schedule other than launches: requests, kernels of a window, and the machine's
 * signals in cells of a millisecond, of made-up events. And how a document is packed into a
 * page. */
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "experiments/conformance/scenario.h"
#include "experiments/report/live.h"
#include "experiments/report/schedule.h"
#include "sim/base/json.h"
#include "sim/base/scope.h"
#include "tests/helpers/suite.h"

static struct scenario sc;
static struct schedule *schedule;
static struct observer *o;
static struct trace trace;
static struct trace_row rows[3];
static struct trace_graph graph;
static uint32_t jobs[3] = {4, 5, 5};
static struct request one, two, three;

static void setup(void)
{
    struct schedule_options options = {.from_ns = 100, .to_ns = 200};
    scenario_init(&sc);
    sc.machine.idle_watts = 2.25;
    sc.machine.ddr_peak_bytes_per_s = 5e9;
    for (uint32_t d = 0; d < sc.machine.n_devices; d++) {
        sc.machine.devices[d].idle_watts = 0.5 + d;
    }
    memset(rows, 0, sizeof rows);
    rows[0].request_id = 0;
    rows[1].request_id = 1;
    rows[2].request_id = 2;
    graph = (struct trace_graph){.job = jobs};
    trace = (struct trace){.rows = rows, .n = 3, .n_first = 3, .graph = &graph};
    schedule = schedule_new(&sc.machine, &trace, &options);
    o = schedule_observer(schedule);
    one = (struct request){.id = 0,
                           .session_id = 11,
                           .turn = 12,
                           .client_id = 13,
                           .cls = REQUEST_CLASS_REACTIVE,
                           .model = 1,
                           .input_tokens = 14,
                           .generated_tokens = 15,
                           .reused_tokens = 16,
                           .preemptions = 17,
                           .arrival_ns = 18,
                           .first_service_ns = 19,
                           .first_token_ns = 20};
    two = (struct request){.id = 1,
                           .session_id = 21,
                           .cls = REQUEST_CLASS_PROACTIVE,
                           .first_service_ns = TIME_NEVER_NS,
                           .first_token_ns = TIME_NEVER_NS};
    three = (struct request){.id = 2};
}

static void teardown(void)
{
    scenario_fini(&sc);
}

static cJSON *written(int64_t end_ns)
{
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    o->run_ended(o->self, end_ns);
    schedule_write(schedule, f);
    (void)fclose(f);
    cJSON *tree = cJSON_Parse(text);
    free(text);
    ck_assert_ptr_nonnull(tree);
    return tree;
}

/* A column's values, of the differences that are written; -1 rows: there is none. */
static int column(const cJSON *tree, const char *table, const char *name, long long *v, int most)
{
    const cJSON *t = cJSON_GetObjectItem(tree, table);
    const cJSON *names = cJSON_GetObjectItem(t, "columns");
    int n = cJSON_GetObjectItem(t, "rows")->valueint;
    int width = cJSON_GetArraySize(names);
    const char *at = cJSON_GetObjectItem(t, "delta")->valuestring;
    ck_assert_int_le(n, most);
    for (int c = 0; c < width; c++) {
        long long last = 0;
        for (int i = 0; i < n; i++) {
            char *next;
            last += strtoll(at, &next, 10);
            v[i] = last;
            at = *next == ',' ? next + 1 : next;
        }
        if (strcmp(cJSON_GetArrayItem(names, c)->valuestring, name) == 0) {
            return n;
        }
    }
    return -1;
}

static void has(const cJSON *tree, const char *table, const char *name, int n, const long long *v)
{
    long long is[16];
    ck_assert_msg(column(tree, table, name, is, 16) == n, "%s of %s", name, table);
    for (int i = 0; i < n; i++) {
        ck_assert_msg(is[i] == v[i], "%s of %s, row %d: %lld is not %lld", name, table, i, is[i],
                      v[i]);
    }
}

#define HAS(table, name, ...)                                                                      \
    has(tree, table, name, (int)(sizeof((long long[]){__VA_ARGS__}) / sizeof(long long)),          \
        (const long long[]){__VA_ARGS__})

/* In the order of the trace, each with what it was when it left; what is not there is -1; who never
 * left is counted. */
START_TEST(requests_have_what_they_left_with)
{
    o->request_arrived(o->self, 0, &one);
    o->request_arrived(o->self, 1, &two);
    o->request_arrived(o->self, 2, &three);
    o->request_shed(o->self, 30, &two);
    o->request_finished(o->self, 40, &one);
    cJSON *tree = written(50);
    HAS("requests", "request_id", 0, 1);
    HAS("requests", "session_id", 11, 21);
    HAS("requests", "turn", 12, 0);
    HAS("requests", "client_id", 13, 0);
    HAS("requests", "job", 4, 5);
    HAS("requests", "class", REQUEST_CLASS_REACTIVE, REQUEST_CLASS_PROACTIVE);
    HAS("requests", "model", 1, 0);
    HAS("requests", "finished", 1, 0);
    HAS("requests", "input_tokens", 14, 0);
    HAS("requests", "output_tokens", 15, 0);
    HAS("requests", "reused_tokens", 16, 0);
    HAS("requests", "preemptions", 17, 0);
    HAS("requests", "arrival_ns", 18, 0);
    HAS("requests", "first_service_ns", 19, -1);
    HAS("requests", "first_token_ns", 20, -1);
    HAS("requests", "end_ns", 40, 30);
    HAS("requests", "blockers", 0, 0);
    ck_assert_int_eq(cJSON_GetObjectItem(tree, "unfinished")->valueint, 1);
    ck_assert_int_eq(cJSON_GetObjectItem(tree, "end_ns")->valueint, 50);
    ck_assert_double_eq(cJSON_GetObjectItem(tree, "ddr_peak_bytes_per_s")->valuedouble, 5e9);
    ck_assert_double_eq(cJSON_GetObjectItem(tree, "idle_watts")->valuedouble, 2.25);
    const cJSON *devices = cJSON_GetObjectItem(tree, "devices");
    ck_assert_int_eq(cJSON_GetArraySize(devices), (int)sc.machine.n_devices);
    for (uint32_t d = 0; d < sc.machine.n_devices; d++) {
        ck_assert_str_eq(cJSON_GetArrayItem(devices, (int)d)->valuestring,
                         sc.machine.devices[d].name);
    }
    cJSON_Delete(tree);
}
END_TEST

START_TEST(without_a_graph_there_are_no_jobs)
{
    trace.graph = NULL;
    o->request_arrived(o->self, 0, &three);
    o->request_finished(o->self, 40, &three);
    cJSON *tree = written(50);
    HAS("requests", "request_id", 2);
    HAS("requests", "job", -1);
    cJSON_Delete(tree);
}
END_TEST

/* From 100 on and before 200, each with its own numbers. */
START_TEST(kernels_of_the_window_are_kept)
{
    struct launch l = {.device = 1};
    static const int64_t begins[] = {99, 100, 150, 199, 200};
    for (int i = 0; i < 5; i++) {
        struct kernel_record k = {.launch = &l,
                                  .op = OP_MHA,
                                  .layer = 7 + (uint32_t)i,
                                  .begin_ns = begins[i],
                                  .end_ns = 300 + i,
                                  .isolated_ns = 60 + i};
        o->kernel(o->self, &k);
    }
    cJSON *tree = written(400);
    HAS("kernels", "device", 1, 1, 1);
    HAS("kernels", "op", OP_MHA, OP_MHA, OP_MHA);
    HAS("kernels", "layer", 8, 9, 10);
    HAS("kernels", "begin_ns", 100, 150, 199);
    HAS("kernels", "end_ns", 301, 302, 303);
    HAS("kernels", "isolated_ns", 61, 62, 63);
    ck_assert_int_eq(cJSON_GetObjectItem(tree, "kernels_from_ns")->valueint, 100);
    ck_assert_int_eq(cJSON_GetObjectItem(tree, "kernels_to_ns")->valueint, 200);
    cJSON_Delete(tree);
}
END_TEST

/* There are four cells of a millisecond. Requests 0 and 1 hold 0 + 100 tokens from 1 ms, 40 + 150
 * from 2 ms, 40 + 30 from 2.5 ms, 0 + 30 from 3 ms and none from 3.5 ms. */
START_TEST(tokens_and_requests_are_cells)
{
    struct segment both[2] = {{.request = &one}, {.request = &two}};
    struct pass pass = {.segments = both, .n_segments = 2};
    o->request_arrived(o->self, 0, &one);
    two.kv_tokens = 100;
    o->request_arrived(o->self, MS(1), &two);
    one.kv_tokens = 40;
    two.kv_tokens = 150;
    o->tokens(o->self, MS(2), &pass);
    two.kv_tokens = 30;
    o->kv_lost(o->self, MS(2.5), &two, 120);
    o->request_finished(o->self, MS(3), &one);
    o->request_shed(o->self, MS(3.5), &two);
    cJSON *tree = written(MS(4));
    HAS("cells", "kv_tokens", 0, 100, (190 + 70) / 2, 30 / 2);
    HAS("cells", "live_reactive_hundredths", 100, 100, 100, 0);
    HAS("cells", "live_proactive_hundredths", 0, 100, 100, 50);
    ck_assert_int_eq(cJSON_GetObjectItem(tree, "cell_ns")->valueint, (int)MS(1));
    cJSON_Delete(tree);
}
END_TEST

/* The second interval is said to begin before the first ended: what is counted is counted. */
START_TEST(memory_and_power_are_cells)
{
    const uint8_t last = (uint8_t)(sc.machine.n_devices - 1);
    o->power(o->self, 0, OBSERVER_DOMAIN_HOST, POWER_PHASE_IDLE, 1.5);
    o->ddr(o->self, MS(1), 1, MS(1), 2e9, 1e9);
    o->power(o->self, MS(1), last, POWER_PHASE_DECODE, 7.5);
    o->ddr(o->self, MS(2.5), 1, MS(2), 4e9, 3e9);
    o->power(o->self, MS(3), OBSERVER_DOMAIN_COMPILER, POWER_PHASE_COMPILE, 3.25);
    cJSON *tree = written(MS(4));
    HAS("cells", "ddr_demand_mb_per_s", 2000, 4000, 2000, 0);
    HAS("cells", "ddr_carried_mb_per_s", 1000, 3000, 1500, 0);
    HAS("cells", "compiler_mw", 0, 0, 0, 3250);
    HAS("cells", "host_mw", 1500, 1500, 1500, 1500);
    for (uint8_t d = 0; d <= last; d++) {
        char name[64];
        (void)snprintf(name, sizeof name, "%s_mw", sc.machine.devices[d].name);
        long long idle = 500 + 1000 * d;
        HAS("cells", name, idle, d == last ? 7500 : idle, d == last ? 7500 : idle,
            d == last ? 7500 : idle);
    }
    cJSON_Delete(tree);
}
END_TEST

/* Every set of a launch, numbered as they came, and of whom it is. */
START_TEST(members_are_those_of_a_pass)
{
    struct segment all[3] = {{.request = &three}, {.request = &one}, {.request = &two}};
    struct pass first = {.segments = all, .n_segments = 3};
    struct pass second = {.segments = &all[1], .n_segments = 1};
    struct launch l = {.id = 1, .pass = &first, .device = 0};
    o->launch_started(o->self, 0, &l, 0);
    o->launch_ended(o->self, 5, &l, 5, 0);
    l = (struct launch){.id = 2, .pass = &second, .device = 0};
    o->launch_started(o->self, 6, &l, 0);
    o->launch_ended(o->self, 9, &l, 3, 0);
    cJSON *tree = written(10);
    HAS("launches", "set", 0, 1);
    HAS("members", "set", 0, 0, 0, 1);
    long long v[4];
    ck_assert_int_eq(column(tree, "members", "request_id", v, 4), 4);
    ck_assert(v[0] + v[1] + v[2] == 3 && v[0] != v[1] && v[1] != v[2] && v[0] != v[2]);
    ck_assert(v[3] == 0);
    cJSON_Delete(tree);
}
END_TEST

/* ---- packed ---- */

/* Decodes base64 text up to '<', by the alphabet's definition. */
static size_t plain(const char *text, unsigned char *out)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    size_t n = 0;
    for (; *text != '<'; text += 4) {
        unsigned long bits = 0;
        int given = 0;
        for (int i = 0; i < 4; i++) {
            const char *d = text[i] == '=' ? NULL : strchr(digits, text[i]);
            ck_assert(text[i] == '=' ? i >= 2 : d != NULL && given == i);
            bits = bits << 6 | (d != NULL ? (unsigned long)(d - digits) : 0);
            given += d != NULL;
        }
        for (int i = 0; i + 1 < given; i++) {
            out[n++] = (unsigned char)(bits >> (16 - 8 * i) & 255);
        }
    }
    ck_assert_str_eq(text, "</script>\n");
    return n;
}

static void is_packed(const char *page, const char *head, const void *want, size_t n)
{
    static unsigned char packed[8192], got[8192];
    ck_assert(strncmp(page, head, strlen(head)) == 0);
    size_t size = plain(page + strlen(head), packed);
    uLongf m = sizeof got;
    ck_assert_int_eq(uncompress(got, &m, packed, (uLong)size), Z_OK);
    ck_assert_uint_eq(m, n);
    ck_assert_mem_eq(got, want, n);
}

/* Lengths of all remainders: base64 ends in none, one or two fillers. */
START_TEST(bytes_are_packed_whole)
{
    unsigned char bytes[48];
    for (size_t i = 0; i < sizeof bytes; i++) {
        bytes[i] = (unsigned char)(i * 151 + 7);
    }
    for (size_t n = 1; n <= sizeof bytes; n++) {
        char *page = NULL;
        size_t size;
        FILE *f = open_memstream(&page, &size);
        live_write_simulator(f, bytes, n);
        (void)fclose(f);
        is_packed(page, "<script type=\"text/plain\" id=xpusim-simulator>", bytes, n);
        free(page);
    }
}
END_TEST

/* Values that the page never shows are left out at every depth. A comparison over load also loses
 * the verdict, and each mean that is none of the few metrics. Whole numbers have all their digits.
 */
START_TEST(a_page_has_what_it_shows)
{
    static const char document[] =
        "{\"config\":{\"a\":1},\"cells\":[{\"n\":3,\"x\":[1,2,3],\"verdict\":\"v\",\"seeds\":[4]},"
        "{\"reactive.ttft_s.p90\":{\"mean\":1,\"n\":2,\"low\":0.5},\"reactive.wait_s.mean\":"
        "{\"mean\":2},\"named\":{\"low\":4},\"energy_j_per_token\":{\"mean\":5,\"p\":1}}],"
        "\"truncated.of\":1,\"truncated\":true,\"counters\":{},\"p_holm\":1,\"end\":["
        "9007199254740991]}";
    static const struct {
        const char *kind, *want;
    } all[] = {
        {"view",
         "{\"cells\":[{\"x\":[1,2,3],\"verdict\":\"v\"},{\"reactive.ttft_s.p90\":{\"mean\":1,"
         "\"low\":0.5},\"reactive.wait_s.mean\":{\"mean\":2},\"named\":{\"low\":4},"
         "\"energy_j_per_token\":{\"mean\":5}}],\"truncated\":true,\"end\":[9007199254740991]}"},
        {"load", "{\"cells\":[{\"x\":[1,2,3]},{\"reactive.ttft_s.p90\":{\"mean\":1,\"low\":0.5},"
                 "\"named\":{\"low\":4},\"energy_j_per_token\":{\"mean\":5}}],"
                 "\"truncated\":true,\"end\":[9007199254740991]}"},
    };
    cJSON *tree = cJSON_Parse(document);
    for (size_t i = 0; i < 2; i++) {
        char *page = NULL;
        size_t size;
        char head[200];
        FILE *f = open_memstream(&page, &size);
        live_write(f, all[i].kind, "a<b", tree);
        (void)fclose(f);
        (void)snprintf(head, sizeof head,
                       "<script type=\"text/plain\" class=xpusim-data data-kind=\"%s\" "
                       "data-name=\"a&lt;b\">",
                       all[i].kind);
        is_packed(page, head, all[i].want, strlen(all[i].want));
        free(page);
    }
    cJSON_Delete(tree);
}
END_TEST

static const struct suite_row suite[] = {
    CASE("signals of a schedule", .setup = setup, .teardown = teardown),
    TEST(requests_have_what_they_left_with),
    TEST(without_a_graph_there_are_no_jobs),
    TEST(kernels_of_the_window_are_kept),
    TEST(tokens_and_requests_are_cells),
    TEST(memory_and_power_are_cells),
    TEST(members_are_those_of_a_pass),
    CASE("packed"),
    TEST(bytes_are_packed_whole),
    TEST(a_page_has_what_it_shows),
};
SUITE_MAIN("signals of a schedule", suite)
