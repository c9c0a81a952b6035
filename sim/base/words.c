#include "sim/base/words.h"

#include <stdio.h>
#include <string.h>

const char *const words_classes[] = {"reactive", "proactive", NULL};
const char *const words_request_states[] = {"queued", "decode", "finished", "shed", NULL};
const char *const words_ops[] = {"qkv", "mha", "ffn", "head", "layer", NULL};

int words_find(const char *const *words, const char *word)
{
    for (int i = 0; word != NULL && words[i] != NULL; i++) {
        if (strcmp(words[i], word) == 0) {
            return i;
        }
    }
    return -1;
}

const char *words_list(const char *const *words, const char *last, char *buf, size_t size)
{
    size_t n = 0;
    buf[0] = '\0';
    for (int i = 0; words[i] != NULL && n < size; i++) {
        const char *between = i == 0 ? "" : words[i + 1] == NULL ? last : ", ";
        n += (size_t)snprintf(buf + n, size - n, "%s%s", between, words[i]);
    }
    return buf;
}
