/* Memory of a scope: a local says at its declaration how it is freed, and every way out of its
 * scope frees it, the last one declared first.
 *
 *     OWNED char *name = xformat("%u", n);
 *     SCOPED(text_fini) struct text t = {0};
 *
 * It has a value before the first way out. A local that outlives its scope is not declared so. */
#pragma once

#include <stdlib.h>
#include <string.h>

/* fini(&object) at the end of the scope. */
#define SCOPED(fini) __attribute__((cleanup(fini)))
/* A pointer that free() frees; NULL is one. */
#define OWNED SCOPED(scope_free)

static inline void scope_free(void *pointer)
{
    void *owned;
    memcpy(&owned, pointer, sizeof owned);
    free(owned);
}
