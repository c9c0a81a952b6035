#include "tests/helpers/suite.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policies/registry.h"
#include "sim/base/base.h"

static struct suite_file *files;

void suite_add(struct suite_file *file)
{
    file->next = files;
    files = file;
}

/* Check writes into a file wherever an assertion holds, to name the last one before a crash. In
 * loops of millions that was most of a test's time: here a line is written when it is reached
 * first. The linker puts this before Check's own (--wrap, Makefile); a failed assertion does not
 * come by. */
void __real__mark_point(const char *file, int line);
void __wrap__mark_point(const char *file, int line);
void __wrap__mark_point(const char *file, int line)
{
    static struct {
        const char *file;
        int line;
    } reached[1024];
    size_t i = (size_t)line % (sizeof reached / sizeof reached[0]);
    if (reached[i].file != file || reached[i].line != line) {
        reached[i].file = file;
        reached[i].line = line;
        __real__mark_point(file, line);
    }
}

int suite_main(const char *file)
{
    int status = EXIT_SUCCESS;
    bool found = false;
    for (struct suite_file *f = files; f != NULL; f = f->next) {
        if (file == NULL || strcmp(f->file, file) == 0) {
            found = true;
            status = f->run() != EXIT_SUCCESS ? EXIT_FAILURE : status;
        }
    }
    if (!found) {
        fprintf(stderr, "no tests of a file '%s' here\n", file == NULL ? "" : file);
        return 2;
    }
    return status;
}

int suite_policies(void)
{
    size_t n;
    (void)policy_list(&n);
    return (int)n;
}

bool suite_whole(void)
{
    const char *s = getenv("WHOLE");
    return s != NULL && s[0] != '\0';
}

bool suite_sanitized(void)
{
    const char *s = getenv("SANITIZED");
    return s != NULL && s[0] != '\0';
}

uint32_t suite_runs(uint32_t part, uint32_t whole)
{
    const char *s = getenv("XPUSIM_RUNS");
    return s != NULL ? (uint32_t)strtoul(s, NULL, 10) : suite_whole() ? whole : part;
}

double suite_near(double is, double want, const char *what, int line)
{
    bool near = isnan(want) ? isnan(is) : fabs(is - want) <= 1e-9 * fabs(want) + 1e-15;
    ck_assert_msg(near, "line %d: %s is %.12g, worked out %.12g", line, what, is, want);
    return want;
}

void suite_keep(const void *p, size_t bytes)
{
    static void *kept[256];
    static size_t n;
    ck_assert_uint_lt(n, sizeof kept / sizeof *kept);
    kept[n++] = memcpy(xmalloc(bytes), p, bytes);
}

int suite_run(const char *name, const struct suite_row *rows, size_t n_rows)
{
    const char *only = getenv("SUITE_ONLY"); /* the name of one test: that one alone */
    Suite *s = suite_create(name);
    TCase *c = NULL;
    for (size_t i = 0; i < n_rows; i++) {
        const struct suite_row *r = &rows[i];
        if (c == NULL || r->test == NULL) {
            c = tcase_create(r->test == NULL ? r->name : name);
            suite_add_tcase(s, c);
        }
        if (r->test != NULL && only != NULL && strcmp(r->test->name, only) != 0) {
            continue;
        }
        if (r->test != NULL) {
            tcase_add_loop_test(c, r->test, 0, r->count != NULL ? r->count() : r->n);
            continue;
        }
        if (r->setup != NULL || r->teardown != NULL) {
            tcase_add_checked_fixture(c, r->setup, r->teardown);
        }
        if (r->once != NULL) {
            tcase_add_unchecked_fixture(c, r->once, NULL);
        }
        if (r->timeout_s > 0.0) {
            tcase_set_timeout(c, r->timeout_s);
        }
    }
    SRunner *run = srunner_create(s);
    srunner_run_all(run, CK_NORMAL);
    int failed = srunner_ntests_failed(run);
    srunner_free(run);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
