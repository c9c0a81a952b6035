#include "tests/helpers/drawn.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/base/memory.h"
#include "tests/helpers/suite.h"

struct figure_request drawn_request;
struct figure_data drawn_data;
struct err drawn_err;

#define MOST_FILES 80

static char folder[] = "/tmp/xpusim-check-drawn-XXXXXX";
static char *kept[MOST_FILES]; /* what inputs borrow */
static size_t n_kept;
static char said[8192];

static const char *keep(char *text)
{
    SIM_REQUIRE(n_kept < MOST_FILES, "more than %d files of a test", MOST_FILES);
    kept[n_kept++] = text;
    return text;
}

void drawn_setup(void)
{
    memcpy(folder + sizeof folder - 7, "XXXXXX", 6);
    SIM_REQUIRE(mkdtemp(folder) != NULL, "no folder can be made in /tmp");
    drawn_err = (struct err)ERR_INIT;
    drawn_request = (struct figure_request){0};
    figure_data_init(&drawn_data);
}

void drawn_teardown(void)
{
    figure_data_fini(&drawn_data);
    err_fini(&drawn_err);
    for (size_t i = 0; i < n_kept; i++) {
        const char *slash = strchr(kept[i], '/');
        (void)(slash != NULL && remove(slash) != 0);
        free(kept[i]);
    }
    n_kept = 0;
    (void)rmdir(folder);
}

const char *drawn_file(const char *name, const char *text)
{
    char *path = xformat("%s/%s", folder, name);
    FILE *f = fopen(path, "wb");
    SIM_REQUIRE(f != NULL && fputs(text, f) >= 0 && fclose(f) == 0, "%s cannot be written", path);
    return keep(path);
}

void drawn_input(const char *label, const char *name, const char *text)
{
    const char *path = drawn_file(name, text);
    const char *input = label[0] != '\0' ? keep(xformat("%s%s", label, path)) : path;
    ck_assert_msg(figure_input_add(&drawn_request, input, &drawn_err) == 0, "%s", drawn_errors());
}

const char *drawn_vars(void)
{
    memory_stream_flush(drawn_data.vars);
    return drawn_data.vars_text;
}

const char *drawn_errors(void)
{
    size_t at = 0;
    said[0] = '\0';
    for (size_t i = 0; i < drawn_err.n && i < ERR_MAX_LINES; i++) {
        const char *rest = drawn_err.lines[i];
        for (const char *p; (p = strstr(rest, folder)) != NULL; rest = p + strlen(folder) + 1) {
            at += (size_t)snprintf(said + at, sizeof said - at, "%.*s", (int)(p - rest), rest);
        }
        at += (size_t)snprintf(said + at, sizeof said - at, "%s\n", rest);
        SIM_REQUIRE(at < sizeof said, "errors of more than %zu bytes", sizeof said);
    }
    return said;
}

/* The next cell of a row ends at a tab or a line's end. */
static void compare_near(const char *is, const char *want)
{
    const char *a = is;
    const char *b = want;
    while (*a != '\0' && *b != '\0') {
        size_t n = strcspn(a, "\t\n");
        size_t m = strcspn(b, "\t\n");
        char *end_a;
        char *end_b;
        double x = strtod(a, &end_a);
        double y = strtod(b, &end_b);
        bool number = n > 0 && m > 0 && end_a == a + n && end_b == b + m;
        bool equal = number ? fabs(x - y) <= 1e-9 * fabs(y) || (isnan(x) && isnan(y))
                            : n == m && memcmp(a, b, n) == 0;
        ck_assert_msg(equal && a[n] == b[m], "%s\nis not\n%s\nat %.20s", is, want, a);
        a += n + (a[n] != '\0');
        b += m + (b[m] != '\0');
    }
    ck_assert_msg(*a == *b, "%s\nis longer or shorter than\n%s", is, want);
}

static void drawn(const char *figure, const char *tsv, const char *vars,
                  void (*compare)(const char *is, const char *want))
{
    figure_data_fini(&drawn_data);
    figure_data_init(&drawn_data);
    int rc = figure_prepare(figure_find(figure), &drawn_request, &drawn_data, &drawn_err);
    ck_assert_msg(rc == 0, "%s", drawn_errors());
    drawn_request = (struct figure_request){0};
    memory_stream_flush(drawn_data.tsv);
    compare(drawn_data.tsv_text, tsv);
    size_t blocks = 1;
    for (const char *p = tsv; (p = strstr(p, "\n\n\n")) != NULL; p++) {
        blocks++;
    }
    ck_assert_uint_eq(drawn_data.blocks, blocks);
    if (vars != NULL) {
        const char *all = drawn_vars();
        const char *subject = strstr(all, "subject = ");
        ck_assert_ptr_nonnull(subject);
        OWNED char *own = xformat("%.*s", (int)(subject - all), all);
        ck_assert_str_eq(own, vars);
    }
}

static void compare_text(const char *is, const char *want)
{
    ck_assert_str_eq(is, want);
}

void drawn_is(const char *figure, const char *tsv, const char *vars)
{
    drawn(figure, tsv, vars, compare_text);
}

void drawn_near(const char *figure, const char *tsv, const char *vars)
{
    drawn(figure, tsv, vars, compare_near);
}

void drawn_refused(const char *figure, const char *errors)
{
    /* A page leaves out a figure whose metric is not there, and refuses one that is wrong. */
    int status = strstr(errors, ": no metric ") != NULL ? -ENODATA : -EINVAL;
    figure_data_fini(&drawn_data);
    figure_data_init(&drawn_data);
    ck_assert_int_eq(figure_prepare(figure_find(figure), &drawn_request, &drawn_data, &drawn_err),
                     status);
    drawn_request = (struct figure_request){0};
    ck_assert_str_eq(drawn_errors(), errors);
    err_fini(&drawn_err);
}
