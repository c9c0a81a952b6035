/* A file without one of its columns is refused by whoever reads it. Other columns of a file are
 * ignored (sim/base/csv_record.h), so a column that a reader forgot would be read as zeros. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hwmodels/corun.h"
#include "sim/base/arena.h"
#include "tests/helpers/readers.h"
#include "tests/helpers/suite.h"

enum { LINES = 60 };

static int read_corun(const char *path, struct err *e)
{
    struct corun_points p;
    int rc = corun_read(path, &p, e);
    return rc;
}

static const struct reader corun = {.name = "corun", .file = read_corun};

static const struct {
    const char *reader; /* NULL: the one above */
    const char *file;
    const char *not_needed; /* columns that may be missing */
} files[] = {
    {"kernel-rows", "hwmodels/measured/two-core-xeon-vm.csv", ""},
    {"points", "hwmodels/points/reference.csv", " source "},
    {NULL, "hwmodels/points/corun.csv", ""},
    {"residuals", "hwmodels/residuals.csv", " runtime weight_bits batch mixture source "},
    {"acceptance", "hwmodels/speculation/acceptance.csv", ""},
    {"ablation", "hwmodels/speculation/ablation.csv", ""},
    {"rejections", "hwmodels/speculation/rejection_causes.csv", ""},
    {"trace", "experiments/gate/crowd.csv",
     " max_output_tokens client_id priority gap_kind prefix_group ttft_slo_ms tbt_slo_ms "
     "deadline_s cancel_s until_s "},
    {"measured-run", "hwmodels/runs/vllm-rtx-4090-llama-3.1-8b.csv", ""},
};

/* Returns the first lines of a file. */
static char *text_of(const char *name)
{
    size_t n = 0;
    char *text = NULL;
    FILE *f = fopen(name, "r");
    ck_assert_msg(f != NULL, "%s", name);
    ck_assert(getdelim(&text, &n, '\0', f) > 0);
    (void)fclose(f);
    char *end = text;
    for (int i = 0; i < LINES && end != NULL; i++) {
        end = strchr(end + 1, '\n');
    }
    if (end != NULL) {
        end[1] = '\0';
    }
    return text;
}

/* The end of the cell that begins there: its comma, or the end of the line. */
static const char *cell_end(const char *p)
{
    for (bool quoted = false; *p != '\0' && *p != '\n' && (quoted || *p != ','); p++) {
        quoted ^= *p == '"';
    }
    return p;
}

/* The text, which ends with a line, without a column in the lines that are no comments; its name in
 * `name`, or NULL where there are not so many. The caller frees it. */
static char *without(const char *text, uint32_t column, char name[64])
{
    char *out = xmalloc(strlen(text) + 1);
    size_t n = 0;
    bool found = false;
    for (const char *p = text; *p != '\0';) {
        if (*p == '#') {
            size_t line = strcspn(p, "\n") + 1;
            memcpy(out + n, p, line);
            n += line;
            p += line;
            continue;
        }
        uint32_t kept = 0;
        for (uint32_t k = 0;; k++) {
            const char *end = cell_end(p);
            if (k != column) {
                n += (size_t)sprintf(out + n, "%s%.*s", kept++ > 0 ? "," : "", (int)(end - p), p);
            } else if (!found) {
                found = true;
                (void)snprintf(name, 64, "%.*s", (int)(end - p), p);
            }
            p = *end == '\0' ? end : end + 1;
            if (*end != ',') {
                break;
            }
        }
        out[n++] = '\n';
    }
    out[n] = '\0';
    if (!found) {
        free(out);
        return NULL;
    }
    return out;
}

START_TEST(a_file_without_a_column_is_refused)
{
    const struct reader *r = files[_i].reader != NULL ? reader_find(files[_i].reader) : &corun;
    char *text = text_of(files[_i].file);
    char name[64];
    uint32_t n = 0;
    ck_assert_int_eq(reader_try(r, text, strlen(text)), 0);
    for (char *less; (less = without(text, n, name)) != NULL; n++) {
        bool refused = reader_try(r, less, strlen(less)) != 0;
        char word[80];
        (void)snprintf(word, sizeof word, " %s ", name);
        bool needed = strstr(files[_i].not_needed, word) == NULL;
        ck_assert_msg(refused == needed, "%s without %s is %s", files[_i].file, name,
                      refused ? "refused" : "taken");
        free(less);
    }
    ck_assert_uint_ge(n, 4);
    free(text);
    readers_fini();
}
END_TEST

static const struct suite_row suite[] = {
    LOOP(a_file_without_a_column_is_refused, sizeof files / sizeof files[0]),
};
SUITE_MAIN("csv columns", suite)
