/* Engines made for a test: shared objects that are found as "openvino" and "ggml", and run nothing.
 */
#pragma once

#include <stdbool.h>

/* Compiles them into a folder. "openvino" has the devices that the environment's CHECK_DEVICES
 * names, by blanks: NPU.., GPU.. (integrated), D.. (a card), else processors. An NPU has the facts
 * F0 and F1: its name, "says" and the number. False: there is no compiler, which is said. */
bool madeengines_make(const char *folder, bool openvino, bool ggml);
