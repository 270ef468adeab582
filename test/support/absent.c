/* absent.c - in place of the rigs and the server in a build that leaves some of them out: no
 * store of a test is one of theirs. */
#include <stdlib.h>

#include "server/server.h"
#include "support/redis_rig.h"

bool rig_is_cut(const char *url)
{
    (void)url;
    return false;
}

bool rig_shared_url(const char *url, char *out, size_t size)
{
    (void)url;
    (void)size;
    *out = 0;
    return false;           /* the test cannot open its store, and fails */
}

weir_code srv_start(srv_server **out, weir_queue *q, const srv_options *opt, weir_error *err)
{
    (void)q;
    (void)opt;
    *out = NULL;
    return weir_fail(err, WEIR_EINVAL, "this weir was built without a server");
}

const char *srv_address(const srv_server *s)
{
    (void)s;
    abort();
}

void srv_stop(srv_server *s)
{
    (void)s;
}

void srv_destroy(srv_server *s)
{
    (void)s;
}
