#include "sim/base/words.h"

#include "sim/base/base.h"

const char *const words_classes[] = {"reactive", "proactive", NULL};
const char *const words_request_states[] = {"queued", "decode", "finished", "shed", NULL};
const char *const words_ops[] = {"qkv", "mha", "ffn", "head", "layer", NULL};
const char *const words_sharing[] = {"serial", "time_shared", NULL};
const char *const words_roles[] = {"prefill", "decode", "verify", "draft", "ahead", NULL};
const char *const words_yields[] = {"kernel", "op", "layer", "pass", NULL};
const char *const words_residents[] = {"compiled_attention", "graph_block", "weights", NULL};
const char *const words_places[] = {"memory", "cache", "flash", "nowhere", NULL};
const char *const words_pass_states[] = {"ready", "running", "done", "cancelled", NULL};
const char *const words_launch_states[] = {"queued", "running", "ended", NULL};
const char *const words_outcomes[] = {"done", "yielded", "withdrawn", "reset", NULL};

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
