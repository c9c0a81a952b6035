#include "tests/helpers/said.h"

#include <check.h>
#include <cjson/cJSON.h>

#include "sim/base/base.h"
#include "tests/helpers/commanded.h"

char *said_text(const struct document *d)
{
    return shown_text(d, "text");
}

char *said_json(const struct document *d)
{
    cJSON *tree = document_json(d);
    char *text = cJSON_PrintUnformatted(tree);
    cJSON_Delete(tree);
    return text;
}

void shown_is(const struct document *d, const char *text, const char *json)
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

static struct hearing hearing;

void said_catch(void)
{
    hearing_begin(&hearing);
}

void said_caught(char **out, char **err)
{
    struct said s = hearing_end(&hearing);
    char *texts[] = {s.out, s.err};
    char **const to[] = {out, err};
    for (int i = 0; i < 2; i++) {
        if (to[i] != NULL) {
            *to[i] = texts[i];
        } else {
            free(texts[i]);
        }
    }
}
