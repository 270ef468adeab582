/* post.c - one request to the server and its answer, over a connection that is kept: see http.h. */
#include "store/http/http.h"

#include <stdio.h>
#include <string.h>

#include "base/keepalive.h"
#include "core/fields.h"

enum { KEPT_ROOM = 1024 * 1024 };       /* bytes of an answer's memory that is kept for the next */

/* ---- handles ---- */

/* A peer that is gone without a word is found out: by what it does not acknowledge, and by probes
 * while nothing is under way. */
static int on_socket(void *ctx, curl_socket_t fd, curlsocktype purpose)
{
    const http_url *url = ctx;
    int             seconds = (int)(url->timeout_ms / 1000);
    if (purpose != CURLSOCKTYPE_IPCXN)
        return CURL_SOCKOPT_OK;
    if (seconds < 1)
        seconds = 1;
    weir__keepalive_set(fd, seconds, seconds, (unsigned)url->timeout_ms);
    return CURL_SOCKOPT_OK;
}

static struct curl_slist *make_headers(const http_url *url, const char *accept)
{
    char line[WEIR_HTTP_MAX_TOKEN + 64];
    snprintf(line, sizeof line, "Accept: %s", accept);
    struct curl_slist *list = weir__curl.slist_append(NULL, line), *more = list;
    const char *const  always[] = { "Content-Type: application/json", "Expect:" };
    for (size_t i = 0; more && i < sizeof always / sizeof *always; i++)
        more = weir__curl.slist_append(list, always[i]);
    if (more && *url->token) {
        snprintf(line, sizeof line, "Authorization: Bearer %s", url->token);
        more = weir__curl.slist_append(list, line);
    }
    if (more)
        return list;
    weir__curl.slist_free_all(list);
    return NULL;
}

CURL *weir__http_handle(const http_url *url, struct curl_slist **headers, const char *accept)
{
    *headers = NULL;
    CURL *c = weir__curl.easy_init();
    if (!c)
        return NULL;
    *headers = make_headers(url, accept);
    bool ok = *headers && !weir__curl.easy_setopt(c, CURLOPT_HTTPHEADER, *headers) &&
              !weir__curl.easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https") &&
              !weir__curl.easy_setopt(c, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1) &&
              !weir__curl.easy_setopt(c, CURLOPT_PROXY, "") &&
              !weir__curl.easy_setopt(c, CURLOPT_NOSIGNAL, 1L) &&
              !weir__curl.easy_setopt(c, CURLOPT_FOLLOWLOCATION, 0L) &&
              !weir__curl.easy_setopt(c, CURLOPT_CONNECTTIMEOUT_MS, (long)url->timeout_ms) &&
              !weir__curl.easy_setopt(c, CURLOPT_SOCKOPTFUNCTION, on_socket) &&
              !weir__curl.easy_setopt(c, CURLOPT_SOCKOPTDATA, url) &&
              (!*url->ca || !weir__curl.easy_setopt(c, CURLOPT_CAINFO, url->ca));
    if (ok)
        return c;
    weir__curl.slist_free_all(*headers);
    *headers = NULL;
    weir__curl.easy_cleanup(c);
    return NULL;
}

static size_t on_answer(char *bytes, size_t size, size_t n, void *ctx)
{
    http_post *p = ctx;
    if ((int64_t)(p->answer.len + n) > WEIR_HTTP_MAX_ANSWER)
        return 0;
    weir__buf_add(&p->answer, bytes, size * n);
    return p->answer.failed ? 0 : size * n;
}

weir_code weir__http_post_init(http_post *p, const http_url *url, weir_error *err)
{
    char target[sizeof url->base + 16];
    *p = (http_post){ .url = url };
    p->curl = weir__http_handle(url, &p->headers, "application/json");
    snprintf(target, sizeof target, "%s/v1/batch", url->base);
    if (p->curl && !weir__curl.easy_setopt(p->curl, CURLOPT_URL, target) &&
        !weir__curl.easy_setopt(p->curl, CURLOPT_ERRORBUFFER, p->why) &&
        !weir__curl.easy_setopt(p->curl, CURLOPT_WRITEFUNCTION, on_answer) &&
        !weir__curl.easy_setopt(p->curl, CURLOPT_WRITEDATA, p) &&
        !weir__curl.easy_setopt(p->curl, CURLOPT_LOW_SPEED_LIMIT, 1L) &&
        !weir__curl.easy_setopt(p->curl, CURLOPT_POST, 1L))
        return WEIR_OK;
    return weir_fail(err, WEIR_ENOMEM, "http: out of memory");
}

void weir__http_post_fini(http_post *p)
{
    if (p->curl)
        weir__curl.easy_cleanup(p->curl);
    if (p->headers)
        weir__curl.slist_free_all(p->headers);
    weir__buf_fini(&p->answer);
    *p = (http_post){ 0 };
}

/* ---- a request ---- */

weir_code weir__http_trouble(const http_url *url, CURLcode rc, const char *why, weir_error *err)
{
    weir_code   code = WEIR_EUNAVAIL;
    const char *text = *why ? why : weir__curl.easy_strerror(rc);
    if (rc == CURLE_PEER_FAILED_VERIFICATION || rc == CURLE_SSL_CACERT_BADFILE)
        return weir_fail(err, WEIR_EINVAL, "%s: %s; with a CA of your own add ?ca=FILE", url->base,
                         text);
    if (rc == CURLE_OUT_OF_MEMORY)
        code = WEIR_ENOMEM;
    return weir_fail(err, code, "%s: %s", url->base, text);
}

weir_code weir__http_post_run(http_post *p, const weir_buf *body, int64_t silence_ms,
                              weir_error *err)
{
    if (p->answer.cap > KEPT_ROOM)
        weir__buf_fini(&p->answer);
    weir__buf_clear(&p->answer);
    p->why[0] = '\0';
    p->status = 0;
    weir__curl.easy_setopt(p->curl, CURLOPT_POSTFIELDS, body->data);
    weir__curl.easy_setopt(p->curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)body->len);
    weir__curl.easy_setopt(p->curl, CURLOPT_LOW_SPEED_TIME, (long)((silence_ms + 999) / 1000));
    CURLcode rc = weir__curl.easy_perform(p->curl);
    long     bytes = 0;
    weir__curl.easy_getinfo(p->curl, CURLINFO_REQUEST_SIZE, &bytes);
    p->sent = bytes > 0;
    if (rc == CURLE_WRITE_ERROR)
        return weir_fail(err, WEIR_ENOMEM, "%s: no memory for an answer of more than %zu bytes",
                         p->url->base, p->answer.len);
    if (rc == CURLE_OPERATION_TIMEDOUT && p->sent)
        return weir_fail(err, WEIR_EUNAVAIL, "%s: no answer within the timeout", p->url->base);
    if (rc)
        return weir__http_trouble(p->url, rc, p->why, err);
    weir__curl.easy_getinfo(p->curl, CURLINFO_RESPONSE_CODE, &p->status);
    weir__buf_add(&p->answer, "", 0);           /* so that there is a NUL */
    return p->answer.failed ? weir_fail(err, WEIR_ENOMEM, "http: out of memory") : WEIR_OK;
}

/* ---- refusals ---- */

/* The meaning of a status, for answers without a code. */
static weir_code code_of(long status)
{
    switch (status) {
    case 403: return WEIR_EREADONLY;
    case 413: return WEIR_ELIMIT;
    case 429:
    case 503: return WEIR_EUNAVAIL;
    default:  return status >= 500 ? WEIR_EIO : WEIR_EINVAL;
    }
}

weir_code weir__http_refusal(const http_url *url, long status, const char *text, size_t len,
                             weir_error *err)
{
    weir_error said;
    weir_code  code = code_of(status);
    if (weir__batch_error(text, len, &said)) {
        if (status == 401)
            return weir_fail(err, WEIR_EINVAL, "%s: %s (WEIR_TOKEN, or ?token= in the URL)",
                             url->base, said.msg);
        return weir_fail(err, said.code ? said.code : code, "%s: %s", url->base, said.msg);
    }
    if (status >= 500)
        return weir_fail(err, code, "%s: the server answers with status %ld", url->base, status);
    return weir_fail(err, code, "%s: status %ld; this is not a weir server", url->base, status);
}
