/* Finds nodes of a JSON tree by a dotted path, and overrides their values. */
#include "sim/base/json.h"
#include "sim/base/nearest.h"

char *json_label(const cJSON *c)
{
    const cJSON *name = json_member(c, "name");
    const cJSON *runtime = json_member(c, "runtime");
    const cJSON *bits = json_member(c, "weight_bits");
    if (cJSON_IsString(name)) {
        return xstrdup(name->valuestring);
    }
    return cJSON_IsString(runtime) && cJSON_IsNumber(bits)
               ? xformat("%s/%g", runtime->valuestring, bits->valuedouble)
               : NULL;
}

/* The child named by the first step of the path; *len: length of the step. Labels may contain dots,
 * so each is compared as a whole. */
static cJSON *step(cJSON *node, const char *path, size_t *len)
{
    char *end = NULL;
    long i = strtol(path, &end, 10);
    *len = strcspn(path, ".");
    for (cJSON *c = cJSON_IsObject(node) ? node->child : NULL; c != NULL; c = c->next) {
        if (strlen(c->string) == *len && strncmp(c->string, path, *len) == 0) {
            return c;
        }
    }
    if (!cJSON_IsArray(node)) {
        return NULL;
    }
    if (end == path + *len && *len > 0 && i >= 0 && i < cJSON_GetArraySize(node)) {
        return cJSON_GetArrayItem(node, (int)i);
    }
    for (cJSON *c = node->child; c != NULL; c = c->next) {
        OWNED char *label = json_label(c);
        size_t n = label != NULL ? strlen(label) : 0;
        bool here = n > 0 && strncmp(path, label, n) == 0 && (path[n] == '.' || path[n] == '\0');
        if (here) {
            *len = n;
            return c;
        }
    }
    return NULL;
}

cJSON *json_find_element(cJSON *array, const char **path)
{
    size_t len = 0;
    cJSON *c = cJSON_IsArray(array) ? step(array, *path, &len) : NULL;
    *path += len;
    *path += **path == '.';
    return c;
}

/* Sets a quantity's value and makes its kind "assumed". The range is widened to include v. If the
 * file left the quantity out, the range becomes v. */
static cJSON *quantity_value(cJSON *node, double v)
{
    cJSON *value = json_member(node, "value");
    if (!cJSON_IsNumber(value) || !cJSON_HasObjectItem(node, "unit")) {
        return NULL;
    }
    cJSON *low = json_member(node, "low");
    cJSON *high = json_member(node, "high");
    bool left_out = strcmp(json_string(node, "source"), JSON_LEFT_OUT) == 0;
    if (cJSON_IsNumber(low) && (left_out || v < low->valuedouble)) {
        cJSON_SetNumberValue(low, v);
    }
    if (cJSON_IsNumber(high) && (left_out || v > high->valuedouble)) {
        cJSON_SetNumberValue(high, v);
    }
    cJSON *kind = json_member(node, "kind");
    if (cJSON_IsString(kind)) {
        cJSON_SetValuestring(kind, "assumed");
    }
    return value;
}

cJSON *json_find_path(cJSON *root, const char *path, const char **bad)
{
    cJSON *node = root;
    for (const char *p = path; *p != '\0';) {
        size_t len = 0;
        node = step(node, p, &len);
        *bad = p;
        if (node == NULL) {
            return NULL;
        }
        p += len;
        if (*p == '.' && *++p == '\0') {
            *bad = p;
            return NULL;
        }
    }
    return node;
}

/* Lists the names at a node, with a hint at the one that `bad` may mean. */
static char *names_there(const cJSON *node, const char *bad, const char *begins)
{
    SCOPED(text_fini) struct text names = {0};
    OWNED char *word = xformat("%.*s", (int)strcspn(bad, "."), bad);
    struct nearest near;
    nearest_init(&near, word);
    for (const cJSON *c = node != NULL ? node->child : NULL; c != NULL; c = c->next) {
        OWNED char *label = c->string != NULL ? xstrdup(c->string) : json_label(c);
        if (label != NULL) {
            nearest_look(&near, label);
            text_format(&names, "%s%s", names.n > 0 ? ", " : begins, label);
        }
    }
    return xformat("%s%s", text_end(&names), nearest_hint(&near));
}

static int no_such_path(cJSON *root, const char *path, const char *bad, struct err *e)
{
    if (*bad == '\0') {
        return err_add(e, "--set %s: ends in a dot", path);
    }
    bool first = bad == path;
    OWNED char *before = xformat("%.*s", first ? 0 : (int)(bad - path) - 1, path);
    const char *ignored;
    OWNED char *there = names_there(json_find_path(root, before, &ignored), bad,
                                    first ? "; paths begin with " : "; there are ");
    return err_add(e, "--set %s: there is no \"%.*s\" at that place%s", path,
                   (int)strcspn(bad, "."), bad, there);
}

int json_set_path(cJSON *root, const char *path, const char *text, struct err *e)
{
    const char *bad = NULL;
    cJSON *node = json_find_path(root, path, &bad);
    if (node == NULL) {
        return no_such_path(root, path, bad, e);
    }
    const char *takes = cJSON_IsBool(node) ? "true or false"
                        : cJSON_IsNumber(node) || cJSON_IsNumber(json_member(node, "value"))
                            ? "a number, without its unit"
                            : "no value, but its parts do";
    char *end = NULL;
    double v = strtod(text, &end);
    bool is_number = end != text && *end == '\0' && isfinite(v);
    bool is_bool = strcmp(text, "true") == 0 || strcmp(text, "false") == 0;
    if (cJSON_IsObject(node) && is_number) {
        node = quantity_value(node, v);
    }
    if (cJSON_IsNumber(node) && is_number) {
        cJSON_SetNumberValue(node, v);
        return 0;
    }
    if (cJSON_IsBool(node) && is_bool) {
        node->type = strcmp(text, "true") == 0 ? cJSON_True : cJSON_False;
        return 0;
    }
    if (cJSON_IsString(node)) {
        SCOPED(json_drop) cJSON *copy = cJSON_CreateString(text);
        free(node->valuestring);
        node->valuestring = copy->valuestring;
        copy->valuestring = NULL;
        return 0;
    }
    return err_add(e, "--set %s: cannot take \"%s\": it takes %s", path, text, takes);
}
