#include "sim/base/nearest.h"

#include "sim/base/base.h"

#include <ctype.h>

/* Edit distance of two words, ignoring case; keeps one row of the matrix. */
static size_t distance(const char *a, const char *b)
{
    size_t row[NEAREST_NAME_BYTES];
    size_t nb = strnlen(b, NEAREST_NAME_BYTES - 1);
    for (size_t j = 0; j <= nb; j++) {
        row[j] = j;
    }
    for (size_t i = 1; a[i - 1] != '\0'; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= nb; j++) {
            size_t change =
                diagonal + (tolower((unsigned char)a[i - 1]) != tolower((unsigned char)b[j - 1]));
            diagonal = row[j];
            size_t insert = row[j - 1] + 1;
            size_t remove = row[j] + 1;
            row[j] = change < insert ? change : insert;
            row[j] = row[j] < remove ? row[j] : remove;
        }
    }
    return row[nb];
}

void nearest_init(struct nearest *n, const char *word)
{
    *n = (struct nearest){.word = word};
    n->least = strlen(word) / 3 + 2; /* edits: at most a third of the letters, plus one */
}

void nearest_look(struct nearest *n, const char *name)
{
    size_t d = distance(n->word, name);
    if (d < n->least) {
        n->least = d;
        (void)snprintf(n->best, sizeof n->best, "%s", name);
    }
}

const char *nearest_hint(struct nearest *n)
{
    n->hint[0] = '\0';
    if (n->best[0] != '\0') {
        (void)snprintf(n->hint, sizeof n->hint, "; did you mean %s?", n->best);
    }
    return n->hint;
}
