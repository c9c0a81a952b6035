/* Renames policies in figures, to use a paper's names. */
#include "plots/figure.h"
#include "plots/palette.h"

/* Replaces keys and strings equal to the policy. Returns their number. */
static size_t rename_tree(cJSON *node, const char *from, const char *to)
{
    size_t n = 0;
    if (cJSON_IsString(node) && strcmp(node->valuestring, from) == 0) {
        (void)cJSON_SetValuestring(node, to);
        n++;
    }
    for (cJSON *c = node != NULL ? node->child : NULL; c != NULL; c = c->next) {
        if (c->string != NULL && strcmp(c->string, from) == 0) {
            cJSON_free(c->string);
            c->string = cJSON_malloc(strlen(to) + 1);
            if (c->string == NULL) {
                out_of_memory(strlen(to) + 1);
            }
            memcpy(c->string, to, strlen(to) + 1);
            n++;
        }
        n += rename_tree(c, from, to);
    }
    return n;
}

int figure_rename(struct figure_request *r, const char *text, struct err *e)
{
    const char *eq = strchr(text, '=');
    /* The last '=', because parameters of a policy contain others. */
    for (const char *p = eq; p != NULL; p = strchr(p + 1, '=')) {
        eq = p;
    }
    if (eq == NULL || eq == text || eq[1] == '\0') {
        return err_add(e, "--label %s: must be POLICY=NAME", text);
    }
    OWNED char *from = xformat("%.*s", (int)(eq - text), text);
    size_t n = 0;
    for (size_t i = 0; i < r->n_inputs; i++) {
        struct figure_input *in = &r->inputs[i];
        n += rename_tree(in->tree, from, eq + 1) + rename_tree(in->about, from, eq + 1);
        if (strcmp(in->label, from) == 0) {
            in->label = eq + 1;
            n++;
        }
    }
    if (n == 0) {
        (void)err_add(e, "--label %s: no input has a policy %s", text, from);
    }
    palette_rename(from, eq + 1);
    return n == 0 ? -EINVAL : 0;
}
