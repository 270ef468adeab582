/* curl.c - loading libcurl: see curl.h. */
#include "base/curl.h"

#include <dlfcn.h>
#include <pthread.h>

weir_curl             weir__curl;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static weir_error     failure;          /* of the first attempt */

static void find(void *library, const char *name, void *member)
{
    *(void **)member = dlsym(library, name);
    if (!*(void **)member && !failure.code)
        weir_fail(&failure, WEIR_EINVAL, "%s has no function %s; install a newer libcurl",
                  WEIR_CURL_LIBRARY, name);
}

static void load(void)
{
    weir_curl found;
    void     *library = dlopen(WEIR_CURL_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        weir_fail(&failure, WEIR_EINVAL, "http needs libcurl, which cannot be loaded: %s; "
                  "install it (Debian: libcurl4)", dlerror());
        return;
    }
#define FIND(name) find(library, "curl_" #name, &found.name);
    WEIR_CURL_FUNCTIONS(FIND)
#undef FIND
    if (!failure.code && found.global_init(CURL_GLOBAL_DEFAULT))
        weir_fail(&failure, WEIR_ENOMEM, "libcurl: out of memory");
    if (!failure.code)
        weir__curl = found;
}

weir_code weir__curl_load(weir_error *err)
{
    pthread_once(&once, load);
    if (failure.code && err)
        *err = failure;
    return failure.code;
}
