#include "tests/helpers/rules.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "policies/registry.h"
#include "sim/base/arena.h"
#include "tests/helpers/suite.h"
#include "traces/traces.h"

struct scenario sc;

static const struct rule_row *rows;

void rules_machine(uint32_t layers)
{
    scenario_init(&sc);
    sc.llm.n_layers = layers;
    scenario_cost(&sc, -1, OP_QKV, 0, 0.01, 5);
    scenario_cost(&sc, -1, OP_FFN, 0, 0.02, 5);
    scenario_cost(&sc, -1, OP_MHA, 1, 0, 5);
    scenario_cost(&sc, -1, OP_HEAD, 1, 0, 5);
    scenario_cost(&sc, -1, OP_LAYER, 2, 0, 5);
}

struct trace_extra *rules_extra(uint32_t request)
{
    if (sc.trace.extras == NULL) {
        sc.trace.extras = xcalloc(SCENARIO_MAX_REQUESTS, sizeof *sc.trace.extras);
        for (uint32_t i = 0; i < SCENARIO_MAX_REQUESTS; i++) {
            sc.trace.extras[i] = trace_extra_none();
            sc.trace.extras[i].client_id = 1000 + i;
        }
    }
    return &sc.trace.extras[request];
}

void rules_graph(const char *text)
{
    char path[] = "/tmp/rules-XXXXXX";
    struct err e = ERR_INIT;
    int fd = mkstemp(path);
    ck_assert(fd >= 0);
    ck_assert(dprintf(fd, "# xpusim-trace v2\n%s\n", text) > 0);
    (void)close(fd);
    int rc = trace_read(path, &sc.trace, &e);
    (void)unlink(path);
    ck_assert_msg(rc == 0, "%s", e.n > 0 ? e.lines[0] : "");
    err_fini(&e);
}

/* Is the key of this "key=value" among those of the list? */
static bool overridden(const char *pair, const char *list)
{
    size_t n = strcspn(pair, "=") + 1;
    for (const char *p = list; p != NULL && *p != '\0'; p = strchr(p, ',')) {
        p += *p == ',';
        if (strncmp(p, pair, n) == 0) {
            return true;
        }
    }
    return false;
}

void rules_run(const char *policy, const char *own, const char *extra,
               const struct scenario_request *q, uint32_t n)
{
    char list[256];
    char params[512];
    (void)snprintf(list, sizeof list, "%s", own);
    (void)snprintf(params, sizeof params, "%s", extra);
    if (strncmp(extra, "policy=", 7) == 0) {
        policy = extra + 7;
        params[0] = '\0';
    }
    for (char *save = NULL, *p = strtok_r(list, ",", &save); p != NULL;
         p = strtok_r(NULL, ",", &save)) {
        if (!overridden(p, extra)) {
            size_t end = strlen(params);
            (void)snprintf(params + end, sizeof params - end, "%s%s", end > 0 ? "," : "", p);
        }
    }
    scenario_policy(&sc, policy_find(policy), params);
    sc.observer.wants_kernels = true;
    int rc = q == NULL ? scenario_again(&sc) : scenario_run(&sc, q, n, true);
    if (rc != 0 || getenv("SHOW") != NULL) {
        printf("%s:%s\n", policy, params);
        scenario_print(&sc, stdout);
    }
    ck_assert_msg(rc == 0, "%s", sc.result.message);
    ck_assert(sc.result.audit.clean);
}

bool rules_tokens_at(uint32_t request, uint32_t n, const double *ms)
{
    bool same = sc.records[request].tokens_n >= n;
    for (uint32_t i = 0; same && i < n; i++) {
        same = sc.records[request].token_ns[i] == MS(ms[i]);
    }
    return same;
}

bool rules_starts(uint32_t request, double ms)
{
    return sc.records[request].start_ns == MS(ms);
}

bool rules_finishes(uint32_t request, double ms)
{
    return sc.records[request].finish_ns == MS(ms);
}

uint32_t rules_most_rows(int device)
{
    uint32_t most = 0;
    for (uint32_t i = 0; i < sc.n_kernels; i++) {
        const struct scenario_kernel *k = &sc.kernels[i];
        most = k->device == device && k->op == OP_QKV && k->rows > most ? k->rows : most;
    }
    return most;
}

static bool listed(const char *list, const char *word)
{
    size_t n = strlen(word);
    for (const char *p = strstr(list, word); p != NULL; p = strstr(p + 1, word)) {
        if ((p == list || p[-1] == ' ') && (p[n] == '\0' || p[n] == ' ')) {
            return true;
        }
    }
    return false;
}

START_TEST(scenario_holds)
{
    ck_assert_msg(rows[_i].holds(""), "%s", rows[_i].name);
    scenario_fini(&sc);
}
END_TEST

START_TEST(disabling_a_rule_fails_exactly_its_scenarios)
{
    char list[512];
    (void)snprintf(list, sizeof list, "%s", rows[_i].switches);
    for (char *save = NULL, *p = strtok_r(list, " ", &save); p != NULL;
         p = strtok_r(NULL, " ", &save)) {
        bool holds = rows[_i].holds(p);
        scenario_fini(&sc);
        ck_assert_msg(holds == !listed(rows[_i].breaks, p), "%s with %s %s", rows[_i].name, p,
                      holds ? "still holds" : "fails");
    }
}
END_TEST

int rules_suite(const char *suite, const struct rule_row *all, int n)
{
    rows = all;
    const struct suite_row tests[] = {
        LOOP(scenario_holds, n),
        LOOP(disabling_a_rule_fails_exactly_its_scenarios, n),
    };
    return suite_run(suite, tests, sizeof tests / sizeof tests[0]);
}
