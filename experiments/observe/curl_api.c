#include "experiments/observe/curl_api.h"

#include <dlfcn.h>
#include <string.h>

/* dlsym returns an object pointer; POSIX lets it be read as a function pointer this way. */
static int find(void *handle, const char *name, void *function, struct err *e)
{
    void *symbol = dlsym(handle, name);
    if (symbol == NULL) {
        return err_add(e, "observe: libcurl lacks %s: version 7.66 is needed", name);
    }
    memcpy(function, &symbol, sizeof symbol);
    return 0;
}

#define CURL_FIND(name) rc |= find(handle, "curl_" #name, &a->name, e);

int curl_api_load(struct curl_api *a, struct err *e)
{
    static const char *const names[] = {"libcurl.so.4", "libcurl-gnutls.so.4"};
    int rc = 0;
    void *handle = NULL;
    for (size_t i = 0; i < sizeof names / sizeof names[0] && handle == NULL; i++) {
        handle = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    }
    if (handle == NULL) {
        return err_add(e, "observe: there is no libcurl (%s): install Debian's libcurl4",
                       dlerror());
    }
    CURL_FUNCTIONS(CURL_FIND)
    return rc != 0 ? -1 : 0;
}
