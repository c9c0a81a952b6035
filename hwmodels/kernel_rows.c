#include "hwmodels/kernel_rows.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/api/device.h"
#include "sim/base/arena.h"
#include "sim/base/csvfile.h"

#define VERSION_LINE "# xpusim-kernels v1"
#define MAX_VALUE 1e18
#define MAX_REPETITION 1000000u

static const char *const metric_names[KERNEL_METRIC_COUNT] = {
    "kernel_ms", "co_kernel_ms", "co_slowdown", "compile_ms", "first_ms", "power_w", "busy_frac"};

void kernel_rows_init(struct kernel_rows *r)
{
    memset(r, 0, sizeof *r);
}

void kernel_rows_fini(struct kernel_rows *r)
{
    free(r->v);
    memset(r, 0, sizeof *r);
}

struct kernel_row *kernel_rows_add(struct kernel_rows *r)
{
    r->v = xgrow(r->v, r->n, sizeof *r->v);
    struct kernel_row *row = &r->v[r->n++];
    memset(row, 0, sizeof *row);
    return row;
}

void kernel_row_set_spec(struct kernel_row *row, const struct kernel_spec *s)
{
    (void)kernel_spec_name(s, row->model, sizeof row->model);
    row->op = s->op;
    row->weight_bits = s->weight_bits;
    row->act_bits = s->act_bits;
    row->rows = s->rows;
    row->tokens = kernel_op_is_attention(s->op) ? s->context_tokens
                  : kernel_op_is_product(s->op) ? s->rows
                                                : 0;
    row->batch = s->op == KERNEL_DECODE ? s->rows : 1;
    row->held_out = s->held_out;
    row->flop = kernel_spec_flop(s);
    row->bytes = kernel_spec_bytes(s);
}

void kernel_rows_write_head(FILE *out, double memory_bytes, const char *const *about, size_t n)
{
    (void)fprintf(out, VERSION_LINE " memory_bytes=%.0f\n", memory_bytes);
    for (size_t i = 0; i < n; i++) {
        (void)fprintf(out, "# %s\n", about[i]);
    }
    (void)fprintf(out, "soc,device,runtime,model,weight_bits,act_bits,input_tokens,batch,metric,"
                       "value,source,kind,op,rows,flop,bytes,partner,repetition,samples,p10,p90,"
                       "foreign_frac,steal_frac,set,flag\n");
}

/* Text that may hold commas and quotes. */
static void write_quoted(FILE *out, const char *text)
{
    (void)fputc('"', out);
    for (; *text != '\0'; text++) {
        if (*text == '"') {
            (void)fputc('"', out);
        }
        (void)fputc(*text, out);
    }
    (void)fputc('"', out);
}

/* Unknown shares are empty fields, like everything unknown in the reference points. */
static void write_share(FILE *out, double share)
{
    if (share >= 0.0) {
        (void)fprintf(out, "%.4f", share);
    }
    (void)fputc(',', out);
}

void kernel_row_write(FILE *out, const struct kernel_row *r)
{
    (void)fprintf(out, "%s,%s,%s,%s,%" PRIu32 ",%" PRIu32 ",%" PRIu32 ",%" PRIu32 ",%s,%.9g,",
                  r->soc, r->device, r->runtime, r->model, r->weight_bits, r->act_bits, r->tokens,
                  r->batch, metric_names[r->metric], r->value);
    write_quoted(out, r->source);
    (void)fprintf(out, ",%s,%s,%" PRIu32 ",%.15g,%.15g,%s,%" PRIu32 ",%" PRIu32 ",%.9g,%.9g,",
                  r->kind, kernel_op_name(r->op), r->rows, r->flop, r->bytes, r->partner,
                  r->repetition, r->samples, r->p10, r->p90);
    write_share(out, r->foreign_frac);
    write_share(out, r->steal_frac);
    (void)fprintf(out, "%s,%s\n", r->held_out ? "held" : "fit", r->flag);
}

enum column {
    COL_SOC,
    COL_DEVICE,
    COL_RUNTIME,
    COL_MODEL,
    COL_WBITS,
    COL_ABITS,
    COL_TOKENS,
    COL_BATCH,
    COL_METRIC,
    COL_VALUE,
    COL_SOURCE,
    COL_KIND,
    COL_OP,
    COL_ROWS,
    COL_FLOP,
    COL_BYTES,
    COL_PARTNER,
    COL_REP,
    COL_SAMPLES,
    COL_P10,
    COL_P90,
    COL_FOREIGN,
    COL_STEAL,
    COL_SET,
    COL_FLAG,
    COLUMN_COUNT
};
static const char *const column_names[COLUMN_COUNT] = {
    "soc",      "device",       "runtime",    "model",   "weight_bits",
    "act_bits", "input_tokens", "batch",      "metric",  "value",
    "source",   "kind",         "op",         "rows",    "flop",
    "bytes",    "partner",      "repetition", "samples", "p10",
    "p90",      "foreign_frac", "steal_frac", "set",     "flag"};

static void take_text(struct csvfile *f, const int *col, enum column c, char *out, size_t size,
                      const char *path, struct err *e)
{
    const char *text = csvfile_text(f, col[c]);
    if (strlen(text) >= size) {
        err_add(e, "%s:%" PRIu64 ": column %s: longer than %zu bytes", path, csvfile_line(f),
                column_names[c], size - 1);
        return;
    }
    memcpy(out, text, strlen(text) + 1);
}

static uint32_t take_u32(struct csvfile *f, const int *col, enum column c, uint32_t max,
                         struct err *e)
{
    return (uint32_t)csvfile_u64(f, col[c], 0, max, e);
}

/* A name from a list of accepted ones; 0 and an error otherwise. */
static int take_name(struct csvfile *f, const int *col, enum column c, const char *const *names,
                     int n, const char *path, struct err *e)
{
    const char *text = csvfile_text(f, col[c]);
    for (int i = 0; i < n; i++) {
        if (strcmp(text, names[i]) == 0) {
            return i;
        }
    }
    err_add(e, "%s:%" PRIu64 ": column %s: \"%s\" is not known", path, csvfile_line(f),
            column_names[c], text);
    return 0;
}

static void take_row(struct csvfile *f, const int *col, struct kernel_row *r, const char *path,
                     struct err *e)
{
    static const char *const sets[] = {"fit", "held"};
    take_text(f, col, COL_SOC, r->soc, sizeof r->soc, path, e);
    take_text(f, col, COL_DEVICE, r->device, sizeof r->device, path, e);
    take_text(f, col, COL_RUNTIME, r->runtime, sizeof r->runtime, path, e);
    take_text(f, col, COL_MODEL, r->model, sizeof r->model, path, e);
    take_text(f, col, COL_PARTNER, r->partner, sizeof r->partner, path, e);
    take_text(f, col, COL_SOURCE, r->source, sizeof r->source, path, e);
    take_text(f, col, COL_FLAG, r->flag, sizeof r->flag, path, e);
    int kind = take_name(f, col, COL_KIND, device_kind_names(), DEVICE_KIND_COUNT, path, e);
    (void)snprintf(r->kind, sizeof r->kind, "%s", device_kind_names()[kind]);
    r->metric = (enum kernel_metric)take_name(f, col, COL_METRIC, metric_names, KERNEL_METRIC_COUNT,
                                              path, e);
    int op = kernel_op_find(csvfile_text(f, col[COL_OP]));
    if (op < 0) {
        err_add(e, "%s:%" PRIu64 ": column op: \"%s\" is not known", path, csvfile_line(f),
                csvfile_text(f, col[COL_OP]));
    }
    r->op = op < 0 ? KERNEL_READ : (enum kernel_op)op;
    r->weight_bits = take_u32(f, col, COL_WBITS, 64, e);
    r->act_bits = take_u32(f, col, COL_ABITS, 64, e);
    r->tokens = take_u32(f, col, COL_TOKENS, UINT32_MAX, e);
    r->batch = take_u32(f, col, COL_BATCH, UINT32_MAX, e);
    r->rows = take_u32(f, col, COL_ROWS, UINT32_MAX, e);
    r->repetition = take_u32(f, col, COL_REP, MAX_REPETITION, e);
    r->samples = take_u32(f, col, COL_SAMPLES, UINT32_MAX, e);
    r->held_out = take_name(f, col, COL_SET, sets, 2, path, e) == 1;
    r->flop = csvfile_number(f, col[COL_FLOP], 0.0, MAX_VALUE, e);
    r->bytes = csvfile_number(f, col[COL_BYTES], 0.0, MAX_VALUE, e);
    r->value = csvfile_number(f, col[COL_VALUE], 0.0, MAX_VALUE, e);
    r->p10 = csvfile_number(f, col[COL_P10], 0.0, MAX_VALUE, e);
    r->p90 = csvfile_number(f, col[COL_P90], 0.0, MAX_VALUE, e);
    r->foreign_frac = csvfile_empty(f, col[COL_FOREIGN])
                          ? -1.0
                          : csvfile_number(f, col[COL_FOREIGN], 0.0, 1.0, e);
    r->steal_frac =
        csvfile_empty(f, col[COL_STEAL]) ? -1.0 : csvfile_number(f, col[COL_STEAL], 0.0, 1.0, e);
}

/* What no single field can get wrong: a trusted time is positive, a shared one names its partner.
 */
static void check_row(const struct kernel_row *r, const char *path, uint64_t line, struct err *e)
{
    bool timed = r->metric <= KERNEL_METRIC_SLOWDOWN;
    if (timed && r->flag[0] == '\0' && !(r->value > 0.0)) {
        err_add(e, "%s:%" PRIu64 ": column value: must be above 0 in a row without a flag", path,
                line);
    }
    bool shared = r->metric == KERNEL_METRIC_CO_MS || r->metric == KERNEL_METRIC_SLOWDOWN;
    if (shared && strchr(r->partner, ':') == NULL) {
        err_add(e, "%s:%" PRIu64 ": column partner: must be DEVICE:MODEL in a row of %s", path,
                line, metric_names[r->metric]);
    }
}

static uint32_t next_repetition(const struct kernel_rows *r)
{
    uint32_t next = 0;
    for (size_t i = 0; i < r->n; i++) {
        next = r->v[i].repetition >= next ? r->v[i].repetition + 1 : next;
    }
    return next;
}

int kernel_rows_read(struct kernel_rows *r, const char *path, struct err *e)
{
    size_t before = e->n;
    struct csvfile *f = csvfile_open(path, e);
    if (f == NULL) {
        return -EINVAL;
    }
    if (strncmp(csvfile_comment(f), VERSION_LINE, strlen(VERSION_LINE)) != 0) {
        err_add(e, "%s: the first line must be \"%s\" (written by `xpusim measure`)", path,
                VERSION_LINE);
    }
    const char *memory = strstr(csvfile_comment(f), "memory_bytes=");
    double memory_bytes = memory != NULL ? strtod(memory + strlen("memory_bytes="), NULL) : 0.0;
    r->memory_bytes = memory_bytes >= 0.0 && memory_bytes < MAX_VALUE ? memory_bytes : 0.0;
    int col[COLUMN_COUNT];
    for (int i = 0; i < COLUMN_COUNT; i++) {
        col[i] = csvfile_require(f, column_names[i], e);
    }
    bool good_head = e->n == before;
    uint32_t first = next_repetition(r);
    size_t rows = r->n;
    while (good_head && csvfile_next(f, e) == 1) {
        struct kernel_row *row = kernel_rows_add(r);
        take_row(f, col, row, path, e);
        check_row(row, path, csvfile_line(f), e);
        row->repetition += first;
    }
    if (e->n == before && r->n == rows) {
        err_add(e, "%s: no rows", path);
    }
    csvfile_close(f);
    return e->n == before ? 0 : -EINVAL;
}
