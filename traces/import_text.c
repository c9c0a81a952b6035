#include "traces/import_text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/json.h"

uint64_t import_text_characters(const char *s)
{
    uint64_t n = 0;
    for (; *s != '\0'; s++) {
        n += ((unsigned char)*s & 0xc0) != 0x80; /* UTF-8: not a byte that goes on */
    }
    return n;
}

static const char *response_of(const cJSON *r)
{
    return cJSON_IsString(r) ? r->valuestring : json_string(r, "response");
}

uint64_t import_text_sent(const char *payload)
{
    cJSON *o = cJSON_Parse(payload);
    uint64_t n = import_text_characters(json_string(o, "prompt"));
    const cJSON *m;
    const cJSON *part;
    cJSON_ArrayForEach(m, cJSON_GetObjectItemCaseSensitive(o, "messages"))
    {
        n += import_text_characters(json_string(m, "content"));
        cJSON_ArrayForEach(part, cJSON_GetObjectItemCaseSensitive(m, "content"))
        {
            n += import_text_characters(json_string(part, "text"));
        }
    }
    cJSON_Delete(o);
    return n;
}

uint64_t import_text_pieces(const cJSON *responses)
{
    static const char *const keys[] = {"\"content\":", "\"text\":"};
    uint64_t n = 0;
    const cJSON *r;
    cJSON_ArrayForEach(r, responses)
    {
        for (int k = 0; k < 2; k++) {
            const char *at = response_of(r);
            while ((at = strstr(at, keys[k])) != NULL) {
                at += strlen(keys[k]);
                at += strspn(at, " ");
                /* Empty pieces, a stream's first and last, hold no token. */
                n += at[0] == '"' && at[1] != '"';
            }
        }
    }
    return n;
}

double import_text_usage(const cJSON *responses, const char *key)
{
    double found = (double)NAN;
    const cJSON *r;
    cJSON_ArrayForEach(r, responses)
    {
        const char *text = response_of(r);
        const char *at = strstr(text, key);
        if (at != NULL) {
            at += strlen(key);
            at += strspn(at, "\": ");
            found = at[0] >= '0' && at[0] <= '9' ? strtod(at, NULL) : found;
        }
    }
    return found;
}
