#pragma once

#include "experiments/run/config.h"
#include "experiments/shell/document.h"

/* Adds time, DDR demand and intensity of each op on each device, for a prefill of 256 tokens and a
 * decode step at a context of 1024. 0 or -EINVAL. */
int list_kernels(const struct config_options *o, struct document *d, struct err *e);
