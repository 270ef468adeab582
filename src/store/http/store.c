/* store.c - opening and closing the store that is a server elsewhere: see http.h. */
#include "store/http/http.h"

#include <stdlib.h>
#include <string.h>

static void http_close(weir_store *base)
{
    http_store *s = (http_store *)base;
    if (!s)
        return;
    weir__http_events_close(s->events);
    for (int i = 0; i < WEIR_HTTP_LANES; i++) {
        weir__http_post_fini(&s->lane[i].post);
        weir__buf_fini(&s->lane[i].body);
        weir__caller_fini(&s->lane[i].caller);
    }
    pthread_mutex_destroy(&s->lock);
    explicit_bzero(&s->url, sizeof s->url);
    free(s);
}

static weir_code start(http_store *s, const weir_url *url, weir_error *err)
{
    weir_code rc = weir__http_url(url, &s->url, err);
    if (!rc && s->env.durability)
        rc = weir_fail(err, WEIR_EINVAL, "durability: the server decides what it reaches; leave it "
                                         "out");
    if (!rc)
        rc = weir__curl_load(err);
    for (int i = 0; !rc && i < WEIR_HTTP_LANES; i++) {
        rc = weir__caller_init(&s->lane[i].caller, err);
        if (!rc)
            rc = weir__http_post_init(&s->lane[i].post, &s->url, err);
    }
    if (!rc)
        rc = weir__http_handshake(s, err);
    if (!rc)
        rc = weir__http_events_open(&s->events, &s->url, &s->env, err);
    return rc;
}

static weir_code http_open(weir_store **out, const weir_url *url, const weir_env *env,
                           weir_error *err)
{
    http_store *s = calloc(1, sizeof *s);
    if (!s)
        return weir_fail(err, WEIR_ENOMEM, "http: out of memory");
    s->base.ops = url->ops;
    s->base.server_fires = true;
    s->base.lists_all = true;
    s->env = *env;
    s->env.name = NULL;                     /* borrowed only for the call */
    pthread_mutex_init(&s->lock, NULL);
    weir_code rc = start(s, url, err);
    if (rc)
        http_close(&s->base);
    else
        *out = &s->base;
    return rc;
}

static weir_code http_join(weir_store *base, const weir_member *m, weir_error *err)
{
    http_store *s = (http_store *)base;
    return weir__http_member_join(&s->member, &s->url, m, err);
}

static void http_leave(weir_store *base)
{
    http_store *s = (http_store *)base;
    weir__http_member_leave(s->member);
    s->member = NULL;
}

static weir_code http_post_envelope(weir_store *base, const weir_envelope *e, weir_error *err)
{
    return weir__http_member_post(((http_store *)base)->member, e, err);
}

const weir_store_ops weir__http_store = {
    .name = "http",
    .version = WEIR_STORE_OPS_VERSION,
    .options = weir__http_options,
    .open = http_open,
    .close = http_close,
    .run = weir__http_run,
    .join = http_join,
    .leave = http_leave,
    .post = http_post_envelope,
    .bridged = true,
    .lanes = WEIR_HTTP_LANES,
};
