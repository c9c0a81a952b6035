#include "plots/about.h"

#include <stdlib.h>
#include <string.h>

#include "sim/base/input.h"
#include "sim/base/json.h"

static FILE *open_quietly(const char *path)
{
    struct err ignored = ERR_INIT;
    FILE *f = input_open_any(path, NULL, &ignored);
    err_fini(&ignored);
    return f;
}

static int first_character(FILE *f)
{
    int c = fgetc(f);
    while (c == ' ' || c == '\n' || c == '\t' || c == '\r') {
        c = fgetc(f);
    }
    return c;
}

bool about_looks_like_json(const char *path)
{
    FILE *f = open_quietly(path);
    bool yes = f != NULL && first_character(f) == '{';
    if (f != NULL) {
        (void)fclose(f);
    }
    return yes;
}

/* "# key: value" lines, up to the first that is none. */
static void read_comments(FILE *f, cJSON *about)
{
    struct input_line l = {0};
    struct err ignored = ERR_INIT;
    while (input_next(f, "", &l, &ignored) == 1 && l.text[0] == '#') {
        char *colon = strstr(l.text, ": ");
        if (colon != NULL && l.text[1] == ' ') {
            *colon = '\0';
            colon[2 + strcspn(colon + 2, "\r\n")] = '\0';
            cJSON_AddStringToObject(about, l.text + 2, colon + 2);
        }
    }
    free(l.text);
    err_fini(&ignored);
}

/* A timeline is too long to be parsed for this: all of it stands in the first line. */
static cJSON *of_timeline(const char *path)
{
    static const char key[] = "\"otherData\":";
    struct input_line l = {0};
    struct err ignored = ERR_INIT;
    cJSON *about = NULL;
    FILE *f = open_quietly(path);
    if (f != NULL && input_next(f, path, &l, &ignored) == 1 &&
        strstr(l.text, "traceEvents") != NULL) {
        const char *other = strstr(l.text, key);
        about = other != NULL ? cJSON_Parse(other + sizeof key - 1) : NULL;
        about = about != NULL ? about : cJSON_CreateObject();
    }
    if (f != NULL) {
        (void)fclose(f);
    }
    free(l.text);
    err_fini(&ignored);
    return about;
}

static cJSON *of_json(const char *path)
{
    cJSON *about = of_timeline(path);
    if (about != NULL) {
        cJSON_AddStringToObject(about, "kind", "timeline"); /* where it is not said */
        return about;
    }
    struct err ignored = ERR_INIT;
    cJSON *root = json_read_file(path, &ignored);
    about = cJSON_DetachItemFromObjectCaseSensitive(root, "about");
    cJSON_Delete(root);
    err_fini(&ignored);
    return cJSON_IsObject(about) ? about : (cJSON_Delete(about), cJSON_CreateObject());
}

cJSON *about_read(const char *path)
{
    if (about_looks_like_json(path)) {
        cJSON *about = of_json(path);
        if (!cJSON_HasObjectItem(about, "kind")) {
            cJSON_AddStringToObject(about, "kind", "json");
        }
        return about;
    }
    cJSON *about = cJSON_CreateObject();
    FILE *f = open_quietly(path);
    if (f != NULL) {
        read_comments(f, about);
        (void)fclose(f);
        if (!cJSON_HasObjectItem(about, "kind")) {
            cJSON_AddStringToObject(about, "kind", "table");
        }
    }
    return about;
}

const char *about_fact(const cJSON *about, const char *key)
{
    const char *v = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(about, key));
    return v != NULL ? v : "";
}

static bool has_word(const char *words, const char *word, size_t n)
{
    for (const char *p = words; *p != '\0';) {
        size_t m = strcspn(p, " ");
        if (m == n && memcmp(p, word, n) == 0) {
            return true;
        }
        p += m + (p[m] == ' ');
    }
    return false;
}

bool about_is(const cJSON *about, const char *kinds)
{
    const char *own = about_fact(about, "kind");
    for (const char *p = own; *p != '\0';) {
        size_t n = strcspn(p, " ");
        if (has_word(kinds, p, n)) {
            return true;
        }
        p += n + (p[n] == ' ');
    }
    return false;
}
