#define _POSIX_C_SOURCE 200809L /* open_memstream */
#include "tests/helpers/said.h"

#include <check.h>
#include <cjson/cJSON.h>
#include <unistd.h>

#include "sim/base/base.h"

char *said_text(const struct document *d)
{
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    document_put(d, "text", f);
    (void)fclose(f);
    char *to = text;
    for (const char *p = text; *p != '\0'; p++) {
        if (*p == ' ' && (to == text || to[-1] == ' ' || to[-1] == '\n')) {
            continue;
        }
        to -= *p == '\n' && to > text && to[-1] == ' ';
        *to++ = *p;
    }
    *to = '\0';
    return text;
}

char *said_json(const struct document *d)
{
    cJSON *tree = document_json(d);
    char *text = cJSON_PrintUnformatted(tree);
    cJSON_Delete(tree);
    return text;
}

void said_is(const struct document *d, const char *text, const char *json)
{
    if (text != NULL) {
        OWNED char *is = said_text(d);
        ck_assert_str_eq(is, text);
    }
    if (json != NULL) {
        OWNED char *is = said_json(d);
        ck_assert_str_eq(is, json);
    }
}

static FILE *caught[2];
static int kept[2];

void said_catch(void)
{
    (void)fflush(NULL);
    for (int i = 0; i < 2; i++) {
        caught[i] = tmpfile();
        ck_assert_ptr_nonnull(caught[i]);
        kept[i] = dup(1 + i);
        ck_assert(dup2(fileno(caught[i]), 1 + i) == 1 + i);
    }
}

void said_caught(char **out, char **err)
{
    (void)fflush(NULL);
    char **const to[] = {out, err};
    for (int i = 0; i < 2; i++) {
        (void)dup2(kept[i], 1 + i);
        (void)close(kept[i]);
        (void)fseek(caught[i], 0, SEEK_END);
        size_t n = (size_t)ftell(caught[i]);
        rewind(caught[i]);
        if (to[i] != NULL) {
            *to[i] = xcalloc(n + 1, 1);
            ck_assert_uint_eq(fread(*to[i], 1, n, caught[i]), n);
        }
        (void)fclose(caught[i]);
    }
}
