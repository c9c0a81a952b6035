/* The functions of libcurl that `observe` uses, loaded only by that command. If the program were
 * linked with libcurl, its thirty libraries would delay the start of every command by 5 ms. */
#pragma once

#include <curl/curl.h>

#include "sim/base/base.h"

/* Without the prefix curl_; types are those of <curl/curl.h>. */
#define CURL_FUNCTIONS(F)                                                                          \
    F(easy_cleanup)                                                                                \
    F(easy_getinfo)                                                                                \
    F(easy_init)                                                                                   \
    F(easy_perform)                                                                                \
    F(easy_setopt)                                                                                 \
    F(easy_strerror)                                                                               \
    F(global_cleanup)                                                                              \
    F(global_init)                                                                                 \
    F(multi_add_handle)                                                                            \
    F(multi_cleanup)                                                                               \
    F(multi_info_read)                                                                             \
    F(multi_init)                                                                                  \
    F(multi_perform)                                                                               \
    F(multi_poll)                                                                                  \
    F(multi_remove_handle)                                                                         \
    F(slist_append)                                                                                \
    F(slist_free_all)

#define CURL_MEMBER(name) __typeof__(curl_##name) *name;
struct curl_api {
    CURL_FUNCTIONS(CURL_MEMBER)
};
#undef CURL_MEMBER

/* Loads libcurl, with any TLS library. It is never unloaded, because TLS libraries do not support
 * that. Returns -1 with an error if there is none, or it lacks a function. The newest one needed,
 * curl_multi_poll, came with 7.66. */
int curl_api_load(struct curl_api *a, struct err *e);
