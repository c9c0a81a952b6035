/* Reads values of JSON files. Errors name file, place and key. */
#include "sim/base/input.h"
#include "traces/import_json.h"

#define DOCUMENT_BYTES ((size_t)1 << 30)

void import_refuse(const struct import_place *p, const char *key, const char *what)
{
    (void)err_add(p->e, "%s:%s%llu: %s: %s", p->path, p->what, p->number, key, what);
}

double import_number(const cJSON *c, const char *key, double min, double max,
                     const struct import_place *p)
{
    if (!cJSON_IsNumber(c) || !(c->valuedouble >= min && c->valuedouble <= max)) {
        OWNED char *range = xformat("must be a number from %g to %g", min, max);
        import_refuse(p, key, range);
        return min;
    }
    return c->valuedouble;
}

uint64_t import_tokens(const cJSON *c, const char *key, double min, const struct import_place *p)
{
    double v = import_number(c, key, min, IMPORT_MAX_TOKENS, p);
    if (v != floor(v)) {
        import_refuse(p, key, "must be a whole number");
    }
    return (uint64_t)v;
}

uint64_t import_tokens_or_none(const cJSON *o, const char *key, const struct import_place *p)
{
    const cJSON *c = json_member(o, key);
    return c == NULL || cJSON_IsNull(c) ? 0 : import_tokens(c, key, 0.0, p);
}

/* OTLP writes 64-bit integers as strings. */
uint64_t import_integer(const cJSON *c, const char *key, double min, double max,
                        const struct import_place *p)
{
    if (!cJSON_IsString(c)) {
        return (uint64_t)import_number(c, key, min, max, p);
    }
    char *end = NULL;
    unsigned long long v = strtoull(c->valuestring, &end, 10);
    if (c->valuestring[0] < '0' || c->valuestring[0] > '9' || *end != '\0' || (double)v < min ||
        (double)v > max) {
        return (uint64_t)import_number(NULL, key, min, max, p);
    }
    return v;
}

int64_t import_ns(const cJSON *c, const char *key, const struct import_place *p)
{
    return (int64_t)import_integer(c, key, 0.0, IMPORT_MAX_NS, p);
}

cJSON *import_document(FILE *in, const char *path, struct err *e)
{
    OWNED char *text = input_text_of(in, path, DOCUMENT_BYTES, e);
    const char *end = text;
    cJSON *o = text == NULL ? NULL : cJSON_ParseWithOpts(text, &end, true);
    if (text != NULL && o == NULL) {
        unsigned long long line = 1;
        for (const char *c = text; c < end; c++) {
            line += *c == '\n';
        }
        (void)err_add(e, "%s:%llu: malformed JSON", path, line);
    }
    (void)fclose(in);
    return o;
}

void import_values(struct import *im, FILE *in, const char *path, import_line_fn *each,
                   struct err *e)
{
    OWNED char *text = input_text_of(in, path, DOCUMENT_BYTES, e);
    (void)fclose(in);
    struct import_place p = {path, "", 1, e};
    const char *at = text;
    const char *counted = text;
    while (text != NULL && e->n == 0 && *(at += strspn(at, " \t\r\n")) != '\0') {
        const char *end = at;
        SCOPED(json_drop) cJSON *o = cJSON_ParseWithOpts(at, &end, false);
        for (; counted < at; counted++) {
            p.number += *counted == '\n';
        }
        if (o == NULL) {
            (void)err_add(e, "%s:%llu: malformed JSON", path, p.number);
        } else {
            each(im, o, &p);
        }
        at = end;
    }
}
