/* fuzz_push.c - push targets. The first byte picks: the file that keeps them, or the URL of one. */
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/curl.h"
#include "fuzz/fuzz.h"
#include "server/push/netguard.h"
#include "server/push/push_targets.h"

static void check_error(const weir_error *err)
{
    MUST(err->code && err->msg[0] && strlen(err->msg) < WEIR_ERROR_MAX);
}

static void same(const srv_push_target *a, const srv_push_target *b)
{
    MUST(!strcmp(a->name, b->name) && !strcmp(a->url, b->url) && !strcmp(a->secret, b->secret));
    MUST(a->types.n == b->types.n && !a->types.text[a->types.n]);
    for (size_t i = 0; i < a->types.n; i++)
        MUST(!strcmp(a->types.text[i], b->types.text[i]));
    MUST(a->concurrency == b->concurrency && a->timeout_ms == b->timeout_ms);
    MUST(a->later_ms == b->later_ms && a->paused == b->paused);
}

/* What is good stays as it is when it is written and read again. */
static void a_file(const char *text, size_t len)
{
    srv_push_target       *got[SRV_PUSH_MAX_TARGETS], *again[SRV_PUSH_MAX_TARGETS];
    const srv_push_target *all[SRV_PUSH_MAX_TARGETS];
    size_t                 n, n_again;
    weir_error             err = { 0 };
    if (srv_push_parse(text, len, got, &n, &err)) {
        check_error(&err);
        MUST(n == 0);
        return;
    }
    MUST(n <= SRV_PUSH_MAX_TARGETS);
    weir_buf out = { 0 };
    for (size_t i = 0; i < n; i++) {
        all[i] = got[i];
        MUST(!srv_push_check(got[i], NULL));
        MUST(got[i]->concurrency >= 1 && got[i]->concurrency <= SRV_PUSH_MAX_CONCURRENCY);
        MUST(got[i]->types.n >= 1 && got[i]->types.n <= WEIR_MAX_TAKE_TYPES);
        MUST(strlen(got[i]->secret) >= SRV_PUSH_MIN_SECRET);
    }
    srv_push_write(&out, all, n);
    MUST(!srv_push_parse(out.data, out.len, again, &n_again, &err) && n_again == n);
    for (size_t i = 0; i < n; i++) {
        same(got[i], again[i]);
        free(got[i]);
        free(again[i]);
    }
    weir__buf_fini(&out);
}

/* What is let through is a URL of the web, without a user, and not to an address of our own. */
static void a_url(const char *text)
{
    const char     *types[] = { "x", NULL };
    srv_push_target t = { .name = "x", .types = { types, 1 }, .url = text };
    weir_error      err = { 0 };
    if (srv_push_check(&t, &err)) {
        check_error(&err);
        MUST(!strcmp(err.field, "url"));
        return;
    }
    MUST(!strncasecmp(text, "http:", 5) || !strncasecmp(text, "https:", 6));
    CURLU *u = weir__curl.url();
    char  *host = NULL, *user = NULL;
    MUST(u && !weir__curl.url_set(u, CURLUPART_URL, text, 0));
    MUST(weir__curl.url_get(u, CURLUPART_USER, &user, 0) == CURLUE_NO_USER);
    MUST(!weir__curl.url_get(u, CURLUPART_HOST, &host, 0));
    MUST(!srv_push_check_public(&t, &err) == !srv_host_not_public(host));
    weir__curl.free(host);
    weir__curl.url_cleanup(u);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!size)
        return 0;
    char *text = strndup((const char *)data + 1, size - 1);
    MUST(text);
    if (data[0] % 2)
        a_file(text, strlen(text));
    else
        a_url(text);
    free(text);
    return 0;
}
