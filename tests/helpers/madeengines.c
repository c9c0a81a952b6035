#include "tests/helpers/madeengines.h"

#include <stdio.h>
#include <stdlib.h>

#include "sim/base/base.h"

#define SOURCE "tests/helpers/engines/made.c"

bool madeengines_make(const char *folder, bool openvino, bool ggml)
{
    static const char *const names[] = {"openvino", "ggml"};
    bool made = true;
    for (int i = 0; i < 2; i++) {
        OWNED char *command =
            xformat("cc -shared -fPIC -w -I. -DNAME='\"%s\"' -o %s/%s.so " SOURCE " 2>/dev/null",
                    names[i], folder, names[i]);
        if (i == 0 ? openvino : ggml) {
            made = made && system(command) == 0;
        }
    }
    if (!made) {
        (void)printf("skipped: no compiler makes an engine here\n");
    }
    return made;
}
