/* The common ground of every file: the standard headers, errors, memory, texts and units.
 *
 * Headers include it, and sources have it from their headers. So the includes of a file name only
 * what it works with. */
#pragma once

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/err.h"
#include "sim/base/scope.h"
#include "sim/base/sort.h"
#include "sim/base/text.h"
#include "sim/base/units.h"
