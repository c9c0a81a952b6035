#include "sim/base/words.h"

#include <string.h>

#include "sim/base/text.h"

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

char *words_list(const char *const *words, const char *last)
{
    struct text t = {0};
    for (int i = 0; words[i] != NULL; i++) {
        text_item(&t, words[i + 1] == NULL ? last : ", ", words[i]);
    }
    return text_end(&t);
}
