/* The version every result carries. The revision comes from the build (git describe), so that
 * results of different sources never mix; "unknown" when built outside a repository. */
#pragma once

#define XPUSIM_VERSION "1.0.0"

#ifndef XPUSIM_REVISION
#define XPUSIM_REVISION "unknown"
#endif
