#include "experiments/report/live.h"

#include <zlib.h>

#include "experiments/shell/markup.h"
#include "sim/base/datadir.h"
#include "sim/base/input.h"
#include "sim/base/json.h"
#include "sim/base/words.h"

#define READ_BYTES 65536

/* The page never shows these members. A comparison over load has only the means of a few
 * metrics. */
static const char *const unseen[] = {"config",     "seeds",  "n",        "p",         "p_holm",
                                     "ratio",      "diff",   "diff_low", "diff_high", "ratio_low",
                                     "ratio_high", "method", "counters", NULL};
const char *const live_load_metrics[] = {
    "reactive.e2e_s.mean",        "reactive.e2e_s.p90",   "reactive.ttft_s.mean",
    "reactive.ttft_s.p90",        "proactive.e2e_s.mean", "proactive.ttft_s.mean",
    "all.throughput_req_per_min", "energy_j_per_token",   NULL};

static bool is_seen(const cJSON *c, bool load)
{
    if (c->string == NULL || words_find(unseen, c->string) >= 0 ||
        strncmp(c->string, "truncated.", 10) == 0) {
        return c->string == NULL;
    }
    bool metric = load && cJSON_IsObject(c) && cJSON_HasObjectItem(c, "mean");
    return metric ? words_find(live_load_metrics, c->string) >= 0
                  : !load || strcmp(c->string, "verdict") != 0;
}

/* Copies the members that the page shows. */
static cJSON *copy_seen(const cJSON *from, bool load)
{
    cJSON *to = cJSON_Duplicate(from, false);
    SIM_REQUIRE(to != NULL, "memory");
    for (const cJSON *c = from->child; c != NULL; c = c->next) {
        if (is_seen(c, load)) {
            cJSON *copy = copy_seen(c, load);
            if (c->string != NULL) {
                cJSON_AddItemToObject(to, c->string, copy);
            } else {
                cJSON_AddItemToArray(to, copy);
            }
        }
    }
    return to;
}

static void put_base64(FILE *out, const unsigned char *v, size_t n)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < n; i += 3) {
        size_t k = n - i < 3 ? n - i : 3;
        unsigned long bits = (unsigned long)v[i] << 16 |
                             (k > 1 ? (unsigned long)v[i + 1] << 8 : 0) | (k > 2 ? v[i + 2] : 0);
        for (size_t d = 0; d < 4; d++) {
            (void)fputc(d <= k ? digits[bits >> (18 - 6 * d) & 63] : '=', out);
        }
    }
}

/* Writes bytes, deflated and in base64, and the end of their element. */
static void put_packed(FILE *out, const void *bytes, size_t n)
{
    uLongf packed = compressBound((uLong)n);
    OWNED unsigned char *v = xmalloc(packed);
    int rc = compress2(v, &packed, bytes, (uLong)n, 9);
    SIM_REQUIRE(rc == Z_OK, "zlib");
    put_base64(out, v, packed);
    (void)fputs("</script>\n", out);
}

void live_write(FILE *out, const char *kind, const char *name, const cJSON *tree)
{
    SCOPED(json_drop) cJSON *copy = copy_seen(tree, strcmp(kind, "load") == 0);
    OWNED char *text = json_text(copy, false);
    markup_format(
        out, "<script type=\"text/plain\" class=xpusim-data data-kind=\"%s\" data-name=\"%s\">",
        kind, name);
    put_packed(out, text, strlen(text));
}

unsigned char *live_simulator(size_t *n, struct err *e)
{
    SCOPED(input_drop) FILE *f = input_try(datadir_built("xpusim.wasm"));
    if (f == NULL) {
        return err_null(e,
                        "a page that computes needs the simulator for pages, which is not built: "
                        "`make wasm` (docs/live-page.md)");
    }
    unsigned char *v = NULL;
    size_t cap = 0;
    *n = 0;
    for (size_t got = 1; got > 0; *n += got) {
        v = xroom(v, *n + READ_BYTES, &cap, 1);
        got = fread(v + *n, 1, READ_BYTES, f);
    }
    return v;
}

void live_write_simulator(FILE *out, const unsigned char *v, size_t n)
{
    (void)fputs("<script type=\"text/plain\" id=xpusim-simulator>", out);
    put_packed(out, v, n);
}
