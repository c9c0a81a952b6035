#include "hwmodels/kernel_rows.h"

#include "sim/base/csv_record.h"

#define VERSION_LINE "# xpusim-kernels v1"
#define MAX_VALUE 1e18
#define MAX_REPETITION 1000000u

static const char *const metric_names[] = {"kernel_ms", "co_kernel_ms", "co_slowdown", "compile_ms",
                                           "first_ms",  "power_w",      "busy_frac",   NULL};
static const char *const kind_names[] = {DEVICE_KINDS(DEVICE_KIND_NAME_) NULL};
static const char *const sets[] = {"fit", "held", NULL};

#define OF(member) CSV_MEMBER(struct kernel_row, member)
static const struct csv_field fields[] = {
    {"soc", CSV_TEXT, OF(soc)},
    {"device", CSV_TEXT, OF(device)},
    {"runtime", CSV_TEXT, OF(runtime)},
    {"model", CSV_TEXT, OF(model)},
    {"weight_bits", CSV_WHOLE, OF(weight_bits), .max = 64},
    {"act_bits", CSV_WHOLE, OF(act_bits), .max = 64},
    {"input_tokens", CSV_WHOLE, OF(tokens), .max = UINT32_MAX},
    {"batch", CSV_WHOLE, OF(batch), .max = UINT32_MAX},
    {"metric", CSV_CHOICE, OF(metric), .choices = metric_names},
    {"value", CSV_NUMBER, OF(value), .max = MAX_VALUE},
    {"source", CSV_TEXT, OF(source), .quoted = true},
    {"kind", CSV_CHOICE, OF(kind), .choices = kind_names},
    {"op", CSV_CHOICE, OF(op), .choices = kernel_op_names},
    {"rows", CSV_WHOLE, OF(rows), .max = UINT32_MAX},
    {"flop", CSV_NUMBER, OF(flop), .max = MAX_VALUE, .format = "%.15g"},
    {"bytes", CSV_NUMBER, OF(bytes), .max = MAX_VALUE, .format = "%.15g"},
    {"partner", CSV_TEXT, OF(partner)},
    {"repetition", CSV_WHOLE, OF(repetition), .max = MAX_REPETITION},
    {"samples", CSV_WHOLE, OF(samples), .max = UINT32_MAX},
    {"p10", CSV_NUMBER, OF(p10), .max = MAX_VALUE},
    {"p90", CSV_NUMBER, OF(p90), .max = MAX_VALUE},
    {"foreign_frac", CSV_NUMBER, OF(foreign_frac), .max = 1, .or_empty = true, .format = "%.4f"},
    {"steal_frac", CSV_NUMBER, OF(steal_frac), .max = 1, .or_empty = true, .format = "%.4f"},
    {"set", CSV_CHOICE, OF(held_out), .choices = sets},
    {"flag", CSV_TEXT, OF(flag)},
};
#define N_FIELDS (sizeof fields / sizeof fields[0])

struct kernel_row *kernel_rows_add(struct kernel_rows *r)
{
    static const struct kernel_row blank = {.soc = "",
                                            .device = "",
                                            .runtime = "",
                                            .model = "",
                                            .partner = "",
                                            .source = "",
                                            .flag = ""};
    r->v = xkept_grow(r->v, r->n, sizeof *r->v);
    r->v[r->n] = blank;
    return &r->v[r->n++];
}

void kernel_row_set_spec(struct kernel_row *row, const struct kernel_spec *s)
{
    row->model = kernel_spec_name(s);
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
    csv_record_write_head(out, fields, N_FIELDS);
    (void)fputc('\n', out);
}

void kernel_row_write(FILE *out, const struct kernel_row *r)
{
    csv_record_write(out, fields, N_FIELDS, r);
    (void)fputc('\n', out);
}

/* Checks relations between fields: a trusted time is positive, a co-run names its partner. */
static void check_row(const struct kernel_row *r, const struct csvfile *f, struct err *e)
{
    /* A flagged row may have any value. It is kept to show the value and why it does not count. */
    bool timed = r->metric <= KERNEL_METRIC_SLOWDOWN;
    if (timed && r->flag[0] == '\0' && !(r->value > 0.0)) {
        csvfile_refuse(f, csvfile_column(f, "value"), e, "must be above 0 in a row without a flag");
    }
    bool shared = r->metric == KERNEL_METRIC_CO_MS || r->metric == KERNEL_METRIC_SLOWDOWN;
    if (shared && strchr(r->partner, ':') == NULL) {
        csvfile_refuse(f, csvfile_column(f, "partner"), e, "must be DEVICE:MODEL in a row of %s",
                       metric_names[r->metric]);
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

/* f NULL: it could not be opened, which is already an error. */
static int read_rows(struct kernel_rows *r, struct csvfile *f, const char *path, struct err *e)
{
    size_t before = e->n;
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
    struct csv_record record;
    (void)csv_record_init(&record, f, fields, N_FIELDS, e);
    bool good_head = e->n == before;
    uint32_t first = next_repetition(r);
    size_t rows = r->n;
    while (good_head && csvfile_next(f, e) == 1) {
        struct kernel_row *row = kernel_rows_add(r);
        row->foreign_frac = row->steal_frac = -1.0; /* an empty cell: unknown */
        csv_record_take(&record, row, e);
        check_row(row, f, e);
        row->repetition += first;
    }
    if (e->n == before && r->n == rows) {
        err_add(e, "%s: no rows", path);
    }
    csvfile_close(f);
    return e->n == before ? 0 : -EINVAL;
}

int kernel_rows_read(struct kernel_rows *r, const char *path, struct err *e)
{
    return read_rows(r, csvfile_open(path, e), path, e);
}

int kernel_rows_read_stream(struct kernel_rows *r, FILE *in, const char *path, struct err *e)
{
    return read_rows(r, csvfile_of(in, path, e), path, e);
}
