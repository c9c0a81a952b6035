/* A fake NPU, for tests on machines without one: OpenVINO's device CPU, which refuses what an NPU
 * refuses (OpenVINO's page "NPU Device", and the plug-in's README):
 *   shapes that are not static: by the plug-in where they have no bound
 *   properties that the plug-in does not have
 *   compilers that are not there, the driver's or the plug-in's
 * A request of a compiled model only takes its own shape, which the device CPU ensures. No
 * inference can be cancelled (the engine does not try it on an NPU).
 *
 * XPUSIM_FAKE_NPU lists its features, separated by commas: driver, plugin (its compilers), and
 * slow=MS, the least time of a compilation. It computes in full precision, and its speed is not
 * that of an NPU. */
#include <time.h>

#include "hwmodels/engines/openvino_device.h"

#if __has_include(<openvino/c/openvino.h>) /* without its headers this file is empty */

#define MS_PER_S 1000

static const char *settings(void)
{
    return getenv("XPUSIM_FAKE_NPU");
}

bool fake_npu(void)
{
    return settings() != NULL;
}

/* The text after a word in XPUSIM_FAKE_NPU, or NULL. */
static const char *setting(const char *word)
{
    size_t n = strlen(word);
    for (const char *at = settings(); at != NULL && *at != '\0'; at += *at == ',') {
        size_t item = strcspn(at, ",");
        if (item >= n && strncmp(at, word, n) == 0 && (item == n || at[n] == '=')) {
            return at + n;
        }
        at += item;
    }
    return NULL;
}

static bool refuse(char *why, size_t size, const char *what, const char *name)
{
    (void)snprintf(why, size, "fake NPU: %s%s", what, name);
    return false;
}

static bool check_property(const ov_property_t *p, char *why, size_t size)
{
    if (strcmp(p->key, "CACHE_DIR") == 0) {
        return true;
    }
    if (strcmp(p->key, "NPU_COMPILER_TYPE") != 0) {
        return refuse(why, size, "unsupported configuration key: ", p->key);
    }
    if (strcmp(p->value, "DRIVER") == 0) {
        return setting("driver") != NULL || refuse(why, size, "the driver has no compiler", "");
    }
    if (strcmp(p->value, "PLUGIN") == 0) {
        return setting("plugin") != NULL ||
               refuse(why, size, "libopenvino_intel_npu_compiler_loader.so is not there", "");
    }
    return refuse(why, size, "unsupported compiler type: ", p->value);
}

bool fake_npu_compile(const ov_core_t *core, const ov_model_t *model, size_t n,
                      const ov_property_t *properties, ov_compiled_model_t **out, char *why,
                      size_t size)
{
    ov_property_t cache = {0};
    for (size_t i = 0; i < n; i++) {
        if (!check_property(&properties[i], why, size)) {
            return false;
        }
        cache = strcmp(properties[i].key, "CACHE_DIR") == 0 ? properties[i] : cache;
    }
    if (ov_model_is_dynamic(model)) {
        return refuse(why, size, "upper bounds were not specified", "");
    }
    const char *slow = setting("slow");
    if (slow != NULL && *slow == '=') {
        long ms = strtol(slow + 1, NULL, 10);
        struct timespec t = {ms / MS_PER_S, ms % MS_PER_S * NS_PER_MS};
        (void)nanosleep(&t, NULL);
    }
    return ov_core_compile_model_props(core, model, "CPU", cache.key != NULL, &cache, out) == OK ||
           refuse(why, size, "OpenVINO's CPU: ", ov_get_last_err_msg());
}

#endif
