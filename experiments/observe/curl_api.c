#include "experiments/observe/curl_api.h"

#include "sim/base/library.h"

#define CURL_FUNCTION(name) {"curl_" #name, &a->name},

int curl_api_load(struct curl_api *a, struct err *e)
{
    static const struct library libcurl = {
        {"libcurl.so.4", "libcurl-gnutls.so.4"}, .missing = "observe: there is no libcurl",
        .remedy = "install Debian's libcurl4",   .lacks = "observe: libcurl lacks",
        .needs = "version 7.66 is needed",
    };
    const struct library_function functions[] = {CURL_FUNCTIONS(CURL_FUNCTION)};
    size_t n = sizeof functions / sizeof functions[0];
    return library_open(&libcurl, functions, n, e) != NULL ? 0 : -1;
}
