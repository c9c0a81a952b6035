/* Cleanup at the end of a scope: a local's declaration names its destructor. Every exit from the
 * scope calls it, in reverse order of declaration.
 *
 *     OWNED char *name = xformat("%u", n);
 *     SCOPED(text_fini) struct text t = {0};
 *
 * Initialise the local before the first exit. It must not outlive its scope. */
#pragma once

#include <stdlib.h>
#include <string.h>

/* Calls fini(&object) at the end of the scope. */
#define SCOPED(fini) __attribute__((cleanup(fini)))
/* A pointer that is freed at the end of the scope; may be NULL. */
#define OWNED SCOPED(scope_free)

static inline void scope_free(void *pointer)
{
    void *owned;
    memcpy(&owned, pointer, sizeof owned);
    free(owned);
}
