#include "tests/helpers/madeengines.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "sim/base/base.h"

static const char engine[] =
    "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n#include "
    "\"hwmodels/engines/bench.h\"\n"
    "static void *open_it(uint32_t n, const char *c, char *why)"
    "{ static int it; (void)c; (void)why; return n == 1 ? &it : NULL; }\n"
    "static void close_it(void *b) { (void)b; }\n"
    "static uint32_t devices(void *b, struct engine_bench_device *out, uint32_t cap)\n"
    "{ (void)b; uint32_t n = 0; char list[256]; strcpy(list, getenv(\"CHECK_DEVICES\"));\n"
    "  for (char *w = strtok(list, \" \"); w != NULL && n < cap; w = strtok(NULL, \" \"), n++) {\n"
    "    memset(&out[n], 0, sizeof out[n]); strcpy(out[n].name, w);\n"
    "    out[n].kind = w[0] == 'N' ? DEVICE_KIND_NPU : w[0] == 'G' ? DEVICE_KIND_IGPU\n"
    "                : w[0] == 'D' ? DEVICE_KIND_GPU : DEVICE_KIND_CPU; }\n"
    "  return n; }\n"
    "static uint32_t facts(void *b, const char *d, struct engine_fact *o, uint32_t cap)\n"
    "{ (void)b; uint32_t n = 0; for (; d[0] == 'N' && n < 2 && n < cap; n++) {\n"
    "    sprintf(o[n].name, \"F%u\", n); sprintf(o[n].value, \"%s says %u\", d, n); }\n"
    "  return n; }\n"
    "static const struct engine_bench_ops bench = {.abi = ENGINE_BENCH_ABI, .version = \"1\",\n"
    "  .open = open_it, .close = close_it, .devices = devices, .facts = facts};\n"
    "const struct engine_bench_ops *xpusim_engine_bench(void) { return &bench; }\n"
    "static const struct engine_ops ops = {.abi = ENGINE_ABI, .name = NAME, .version = "
    "\"1.\" NAME};\n"
    "const struct engine_ops *xpusim_engine(void) { return &ops; }\n";

bool madeengines_make(const char *folder, bool openvino, bool ggml)
{
    static const char *const names[] = {"openvino", "ggml"};
    OWNED char *source = xformat("%s/made.c", folder);
    FILE *f = fopen(source, "wb");
    SIM_REQUIRE(f != NULL && fputs(engine, f) >= 0 && fclose(f) == 0, "%s", source);
    bool made = true;
    for (int i = 0; i < 2; i++) {
        OWNED char *command =
            xformat("cc -shared -fPIC -w -I. -DNAME='\"%s\"' -o %s/%s.so %s 2>/dev/null", names[i],
                    folder, names[i], source);
        if (i == 0 ? openvino : ggml) {
            made = made && system(command) == 0;
        }
    }
    (void)unlink(source);
    if (!made) {
        (void)printf("skipped: no compiler makes an engine here\n");
    }
    return made;
}
