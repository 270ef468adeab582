/* curl.h - libcurl, loaded when it is first needed. It brings some thirty libraries along: loading
 * them takes longer than most commands run, and few of them speak HTTP.
 *
 * Call weir__curl_load() first, from any thread. From then on weir__curl has the functions, under
 * their names without "curl_". */
#ifndef WEIR_BASE_CURL_H
#define WEIR_BASE_CURL_H

#include <curl/curl.h>
#include "weir/error.h"

#define WEIR_CURL_LIBRARY "libcurl.so.4"

#define WEIR_CURL_FUNCTIONS(X) \
    X(easy_cleanup) X(easy_getinfo) X(easy_header) X(easy_init) X(easy_perform) X(easy_recv) \
    X(easy_send) X(easy_setopt) X(easy_strerror) X(free) X(global_init) X(multi_add_handle) \
    X(multi_cleanup) X(multi_info_read) X(multi_init) X(multi_perform) X(multi_poll) \
    X(multi_remove_handle) X(multi_wakeup) X(slist_append) X(slist_free_all) X(url) \
    X(url_cleanup) X(url_get) X(url_set) X(url_strerror)

typedef struct weir_curl {
#define MEMBER(name) __typeof__(curl_##name) *name;
    WEIR_CURL_FUNCTIONS(MEMBER)
#undef MEMBER
} weir_curl;

extern weir_curl weir__curl;        /* all NULL until weir__curl_load() has returned WEIR_OK */

/* Loads the library and makes it ready, once; it stays. WEIR_EINVAL: it is not installed, or lacks
 * a function; the message says which. */
weir_code weir__curl_load(weir_error *err);

#endif
