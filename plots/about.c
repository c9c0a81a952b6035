#include "plots/about.h"

#include "sim/base/input.h"
#include "sim/base/json.h"

/* Parses "# key: value" lines, up to the first other line. */
static cJSON *of_comments(char *head)
{
    cJSON *about = cJSON_CreateObject();
    char *rest = head;
    for (char *l; (l = strtok_r(rest, "\r\n", &rest)) != NULL && l[0] == '#';) {
        char *colon = strstr(l, ": ");
        if (colon != NULL && l[1] == ' ') {
            *colon = '\0';
            cJSON_AddStringToObject(about, l + 2, colon + 2);
        }
    }
    return about;
}

/* The description of a timeline; NULL for other files. It is in a timeline's first line, so the
 * rest, which can be hundreds of MB, is not parsed. */
static cJSON *of_timeline(char *head)
{
    static const char key[] = "\"otherData\":";
    head[strcspn(head, "\n")] = '\0';
    if (strstr(head, "traceEvents") == NULL) {
        return NULL;
    }
    const char *other = strstr(head, key);
    cJSON *about = other != NULL ? cJSON_Parse(other + sizeof key - 1) : NULL;
    return about != NULL ? about : cJSON_CreateObject();
}

cJSON *about_of(const cJSON *tree)
{
    const cJSON *own = json_member(tree, "about");
    cJSON *about = cJSON_IsObject(own) ? cJSON_Duplicate(own, true) : cJSON_CreateObject();
    const cJSON *points = json_member(tree, "points");
    const cJSON *list = points != NULL ? points : tree;
    const cJSON *first = cJSON_IsArray(list) ? list->child : NULL;
    bool compared = about_is(json_member(first, "about"), "compare");
    if (!cJSON_HasObjectItem(about, "kind")) {
        cJSON_AddStringToObject(about, "kind",
                                !compared        ? "json"
                                : points != NULL ? "compare-suite"
                                                 : "compare-store");
    }
    const cJSON *loads = json_member(tree, "loads");
    if (json_member(loads != NULL ? loads->child : tree, "selection") != NULL) {
        cJSON_ReplaceItemInObject(about, "kind", cJSON_CreateString("selection"));
    }
    return about;
}

cJSON *about_read(const char *path, cJSON **tree, struct err *e)
{
    char head[INPUT_HEAD_BYTES];
    SCOPED(input_drop) FILE *in = input_open_any(path, head, e);
    *tree = NULL;
    if (in == NULL) {
        return NULL;
    }
    const char *kind = "timeline"; /* default */
    cJSON *about = NULL;
    char first = head[strspn(head, " \n\t\r")];
    if (first != '{' && first != '[') {
        kind = strncmp(head, "# xpusim-trace ", 15) == 0 ? "trace" : "table";
        about = of_comments(head);
    } else if ((about = of_timeline(head)) == NULL) {
        *tree = json_read_of(in, path, e);
        about = about_of(*tree);
    }
    if (!cJSON_HasObjectItem(about, "kind")) {
        cJSON_AddStringToObject(about, "kind", kind);
    }
    return about;
}

const char *about_fact(const cJSON *about, const char *key)
{
    const char *v = cJSON_GetStringValue(json_member(about, key));
    return v != NULL ? v : "";
}

bool about_is(const cJSON *about, const char *kinds)
{
    const char *own = about_fact(about, "kind");
    for (const char *p = own; *p != '\0';) {
        size_t n = strcspn(p, " ");
        if (text_list_item(kinds, ' ', p, n) != NULL) {
            return true;
        }
        p += n + (p[n] == ' ');
    }
    return false;
}
