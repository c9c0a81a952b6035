#include <cjson/cJSON.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include "sim/base/units.h"
#include "traces/import.h"

static double number(const cJSON *o, const char *key, double min, double max, const char *path,
                     unsigned long long line, struct err *e)
{
    const cJSON *c = cJSON_GetObjectItemCaseSensitive(o, key);
    if (!cJSON_IsNumber(c) || !(c->valuedouble >= min && c->valuedouble <= max)) {
        err_add(e, "%s:%llu: %s: must be a number from %g to %g", path, line, key, min, max);
        return min;
    }
    return c->valuedouble;
}

static uint64_t tokens(const cJSON *o, const char *key, double min, const char *path,
                       unsigned long long line, struct err *e)
{
    double v = number(o, key, min, IMPORT_MAX_TOKENS, path, line, e);
    if (v != floor(v)) {
        err_add(e, "%s:%llu: %s: must be a whole number", path, line, key);
    }
    return (uint64_t)v;
}

static void line_read(struct import *im, const char *text, size_t n, const char *path,
                      unsigned long long line, struct err *e)
{
    cJSON *o = memchr(text, '\0', n) == NULL ? cJSON_ParseWithOpts(text, NULL, true) : NULL;
    if (!cJSON_IsObject(o)) {
        err_add(e, "%s:%llu: must be one JSON object", path, line);
        cJSON_Delete(o);
        return;
    }
    double t_ms = number(o, "timestamp", 0.0, IMPORT_MAX_S * 1e3, path, line, e);
    uint64_t input = tokens(o, "input_length", 1.0, path, line, e);
    uint64_t output = tokens(o, "output_length", 0.0, path, line, e);
    import_add(im, units_ns_from_ms(t_ms), input, output, REQUEST_CLASS_REACTIVE);
    cJSON_Delete(o);
}

void import_mooncake(struct import *im, const char *path, struct err *e)
{
    FILE *in = fopen(path, "r");
    if (in == NULL) {
        err_add(e, "%s: %s", path, strerror(errno));
        return;
    }
    char *text = NULL;
    size_t cap = 0;
    ssize_t n;
    for (unsigned long long line = 1; e->n < ERR_MAX_LINES && (n = getline(&text, &cap, in)) >= 0;
         line++) {
        if (text[strspn(text, " \t\r\n")] != '\0' || memchr(text, '\0', (size_t)n) != NULL) {
            line_read(im, text, (size_t)n, path, line, e);
        }
    }
    if (ferror(in) != 0) {
        err_add(e, "%s: %s", path, strerror(errno));
    }
    free(text);
    (void)fclose(in);
}
