#include "hwmodels/soc.h"

#include <ctype.h>

#include "sim/base/datadir.h"
#include "sim/base/json.h"

const char *soc_path(const char *name)
{
    return datadir_named(name, "hwmodels/soc", ".json");
}

const char *llm_path(const char *name)
{
    return datadir_named(name, "hwmodels/llm", ".json");
}

struct soc_format soc_format_of_width(uint32_t weight_bits)
{
    if (weight_bits >= 16) {
        return (struct soc_format){weight_bits / 8.0, weight_bits / 8.0, 2.0};
    }
    if (weight_bits == 8) {
        return (struct soc_format){1.01, 1.01, 1.0};
    }
    /* group-wise scales and zero points: 20 bits per 128 weights, and some layers of 8 bits */
    return (struct soc_format){weight_bits / 8.0 + 0.06, 1.01, 1.0};
}

/* How well an entry's name matches a runtime: its length; 0: not. */
static size_t covers(const char *entry, const char *runtime)
{
    size_t n = strlen(entry);
    /* "openvino-2025" matches "openvino-2025.1", but not "openvino-20251": after the match there
     * must be a dot, a dash or the end. */
    if (strncmp(entry, runtime, n) != 0 || strchr(".-", runtime[n]) == NULL) {
        return 0;
    }
    return n + (runtime[n] == '\0'); /* strchr also finds the end: equal names */
}

double soc_table_factor(const struct soc_table *t, double rows)
{
    if (t->n == 0) {
        return 1.0;
    }
    uint32_t i = 0;
    while (i < t->n && t->rows[i] < rows) {
        i++;
    }
    if (i == 0 || i == t->n) {
        return t->factor[i == 0 ? 0 : t->n - 1];
    }
    double share = log(rows / t->rows[i - 1]) / log(t->rows[i] / t->rows[i - 1]);
    return t->factor[i - 1] + share * (t->factor[i] - t->factor[i - 1]);
}

struct soc_supply soc_supply_of(const struct soc *soc)
{
    bool battery = soc->supply.efficiency_frac == 0.0;
    for (uint32_t i = 0; i < soc->machine.n_devices; i++) {
        battery = battery && soc->devices[i].meter == SOC_METER_BATTERY;
    }
    return battery ? (struct soc_supply){1.0, 0.0} : soc->supply;
}

#define USUAL_ROWS 1024.0
#define USUAL_COLUMNS 4096.0

static double filling(double row_fill, double width_fill)
{
    return (1.0 + row_fill / USUAL_ROWS) * (1.0 + width_fill / USUAL_COLUMNS);
}

struct soc_resize soc_resize(double row_fill, double width_fill, double peak, double cores)
{
    struct soc_resize x = {.row_fill = peak / cores, .width_fill = peak};
    x.rate = peak * filling(row_fill * x.row_fill, width_fill * x.width_fill) /
             filling(row_fill, width_fill);
    return x;
}

double soc_resize_bandwidth(enum device_kind kind, double ddr)
{
    return kind == DEVICE_KIND_NPU ? 1.0 : ddr;
}

int soc_share_read(double *npu, struct err *e)
{
    size_t before = e->n;
    const char *path = datadir_path("hwmodels/shares.json");
    SCOPED(json_drop) cJSON *tree = json_read_file(path, e);
    if (tree != NULL) {
        struct json_obj o = json_root(tree, path, e);
        *npu = json_get_quantity(&o, "npu", "1", 0.01, 1.0).value;
        json_done(&o);
    }
    return e->n == before ? 0 : -EINVAL;
}

double soc_share_of_ddr(enum device_kind kind, double own, double npu)
{
    return kind == DEVICE_KIND_NPU ? fmax(own, npu) : 1.0;
}

double soc_cores_ratio(const struct soc_device *a, const struct soc_device *b)
{
    return a->cores > 0 && b->cores > 0 ? (double)b->cores / a->cores : 1.0;
}

/* A runtime's name in parts: "x-2026.1dev-static" is version 2026.1 of toolchain "x" in the build
 * "-static". Letters after the numbers are not part of the version. */
struct version {
    size_t toolchain; /* length of its name; 0: the name states no version */
    double number;    /* 2026.01 */
    const char *build;
};

static struct version version_of(const char *runtime)
{
    struct version v = {0};
    const char *at = runtime;
    while (*at != '\0' && !(*at == '-' && isdigit((unsigned char)at[1]))) {
        at++;
    }
    if (*at == '\0') {
        return v;
    }
    v.toolchain = (size_t)(at - runtime);
    char *end = NULL;
    for (double unit = 1.0; unit > 1e-5 && (end == NULL || *end == '.'); unit *= 0.01) {
        v.number += unit * (double)strtoul(at + 1, &end, 10);
        at = end;
    }
    v.build = at + strcspn(at, "-");
    return v;
}

bool soc_runtime_versioned(const char *runtime)
{
    return version_of(runtime).toolchain > 0;
}

/* Distance of versions; infinite for different toolchains or builds. */
static double versions_apart(const char *a, const char *b)
{
    struct version x = version_of(a);
    struct version y = version_of(b);
    bool one = x.toolchain > 0 && x.toolchain == y.toolchain && strncmp(a, b, x.toolchain) == 0 &&
               strcmp(x.build, y.build) == 0;
    return one ? fabs(x.number - y.number) : (double)INFINITY;
}

/* Length of the words that two toolchains' names begin with in common: 9 of "llama.cpp-rocm-8038"
 * and "llama.cpp-vulkan". */
static size_t words_shared(const char *a, const char *b)
{
    struct version x = version_of(a);
    struct version y = version_of(b);
    size_t na = x.toolchain > 0 ? x.toolchain : strlen(a);
    size_t nb = y.toolchain > 0 ? y.toolchain : strlen(b);
    size_t shared = 0;
    for (size_t i = 0; i <= na && i <= nb; i++) {
        bool ends = (i == na || a[i] == '-') && (i == nb || b[i] == '-');
        shared = ends ? i : shared;
        if (i == na || i == nb || a[i] != b[i]) {
            break;
        }
    }
    return shared;
}

/* Only entries of the model's width count, since bits decide how much is read from memory.
 * Preference: the requested name, its nearest version, the most words of its toolchain, the usual
 * name. Without an entry for the width, the default is used. */
uint32_t soc_runtime_find(const struct soc_device *d, const char *runtime, uint32_t weight_bits,
                          enum soc_match *match)
{
    enum { OTHER_NAME = 1, USUAL, WORDS, VERSION, NAME };
    const char *usual = d->runtimes[d->fallback].runtime;
    uint32_t best = d->fallback;
    double best_score = 0.0;
    int best_rank = 0;
    for (uint32_t i = 0; i < d->n_runtimes; i++) {
        const struct soc_runtime *r = &d->runtimes[i];
        if (r->weight_bits != weight_bits) {
            continue;
        }
        bool is_usual = strcmp(r->runtime, usual) == 0;
        int rank = is_usual ? USUAL : OTHER_NAME;
        double score = 0.0;
        if (runtime != NULL) {
            double cover = (double)covers(r->runtime, runtime);
            double apart = versions_apart(r->runtime, runtime);
            double words = (double)words_shared(r->runtime, runtime);
            rank = cover > 0.0 ? NAME : isfinite(apart) ? VERSION : words > 0.0 ? WORDS : rank;
            score = rank == NAME      ? cover
                    : rank == VERSION ? -apart
                    : rank == WORDS   ? words + (is_usual ? 0.5 : 0.0)
                                      : 0.0;
        }
        if (rank > best_rank || (rank == best_rank && score > best_score)) {
            best = i;
            best_rank = rank;
            best_score = score;
        }
    }
    *match = best_rank == NAME || (runtime == NULL && best_rank > 0) ? SOC_MATCH_EXACT
             : best_rank == VERSION                                  ? SOC_MATCH_VERSION
                                                                     : SOC_MATCH_OTHER;
    return best;
}

static void curve_reserve(struct soc_curve *c, double time_left, double rate_left)
{
    /* If other programs use a share of the device's time, compute, memory and launches take longer.
     * The share of its rate that they use slows compute further. */
    c->flop_per_s *= time_left * rate_left;
    c->bytes_per_s *= time_left;
    c->launch_s /= time_left;
}

void soc_reserve(struct soc_device *d, double time_frac, double rate_frac)
{
    for (uint32_t i = 0; i < d->n_runtimes; i++) {
        curve_reserve(&d->runtimes[i].many, 1.0 - time_frac, 1.0 - rate_frac);
        curve_reserve(&d->runtimes[i].one, 1.0 - time_frac, 1.0 - rate_frac);
    }
}
