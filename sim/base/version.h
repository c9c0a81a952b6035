/* The version in every result. The revision comes from the build (git describe), so that results of
 * different sources are not mixed; "unknown" if built outside a repository. */
#pragma once

#define XPUSIM_VERSION "1.0.0"

#ifndef XPUSIM_REVISION
#define XPUSIM_REVISION "unknown"
#endif
