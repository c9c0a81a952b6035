/* `xpusim new-llm NAME --hf config.json`: makes a model file from a published configuration, or
 * from a GGUF file of llama.cpp. */
#include "experiments/commands/commands.h"
#include "experiments/commands/list.h"
#include "experiments/commands/new_file.h"
#include "hwmodels/llm_gguf.h"
#include "hwmodels/llm_hf.h"
#include "hwmodels/soc.h"
#include "sim/base/json.h"

struct options {
    struct option_texts names;
    const char *hf, *gguf, *output, *bits;
};

static cJSON *tree_of(const struct options *o, struct err *e)
{
    uint32_t bits = o->bits == NULL ? 0 : (uint32_t)strtoul(o->bits, NULL, 10);
    if (o->gguf != NULL) {
        cJSON *tree = llm_gguf_tree(o->gguf, o->names.v[0], e);
        if (tree != NULL && bits > 0) {
            llm_tree_width(tree, bits);
        }
        return tree;
    }
    SCOPED(json_drop) cJSON *root = json_read_file(o->hf, e);
    if (root != NULL && !llm_hf_is(root)) {
        (void)err_add(e, "%s: no config.json of Hugging Face: it has no model_type", o->hf);
    }
    return e->n == 0 ? llm_hf_tree(root, o->hf, o->names.v[0], bits, e) : NULL;
}

static void tell(const char *path, const struct llm *m)
{
    OWNED char *sums = list_llm_text(m);
    (void)printf("%s\n%s\nnext: xpusim run --llm %s\n", path, sums, path);
}

static int run(void *values, struct err *e)
{
    const struct options *o = values;
    struct llm m;
    if ((o->hf == NULL) == (o->gguf == NULL)) {
        (void)err_add(e,
                      "new-llm: --hf FILE, the config.json of the model, or --gguf FILE is needed");
    }
    SCOPED(json_drop)
    cJSON *tree =
        e->n > 0 || new_file_name_check("new-llm", o->names.v[0], e) != 0 ? NULL : tree_of(o, e);
    OWNED char *path = tree != NULL && llm_parse(tree, o->names.v[0], &m, e) == 0
                           ? new_file_write(o->output, o->names.v[0], tree, e)
                           : NULL;
    if (path != NULL) {
        tell(path, &m);
    }
    return e->n == 0 ? EXIT_OK : -EINVAL;
}

static const char *const widths[] = {"4", "8", "16", NULL};

#define OPTIONS struct options

static const struct option_row rows[] = {
    OPTION_TEXT(OPTIONS, hf, "hf", "FILE", NULL, "config.json of the model on Hugging Face"),
    OPTION_TEXT(OPTIONS, gguf, "gguf", "FILE", NULL,
                "model file of llama.cpp; of a split one the first part"),
    OPTION_CHOICE(OPTIONS, bits, "bits", "N", NULL, widths,
                  "width of the weights, in the format of the shipped models (default: as the "
                  "model is stored: quantization_config, dtype, types of tensors)"),
    NEW_FILE_OUTPUT(OPTIONS),
};
const struct command cmd_new_llm = {
    .name = "new-llm",
    .summary = "write a model file from a Hugging Face config.json or a GGUF file",
    .usage = "NAME --hf config.json | --gguf FILE [--bits N] [-o FILE]",
    .about =
        "Writes an LLM file that runs. Its shape comes from the config.json of the model, or from "
        "the tensors of its GGUF file, and the bytes of its weights are those stored, or those of "
        "--bits. A property that an LLM file cannot represent is refused with its key or tensor. "
        "`--llm config.json` reads the same directly.",
    .operands = {"NAME", 1, 1, offsetof(OPTIONS, names)},
    COMMAND_TAKES(OPTION_ROWS(NULL, rows)),
    .run = run,
};
