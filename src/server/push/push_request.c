/* push_request.c - one job as an HTTP request, and what its answer means. */
#include "server/push/push_inner.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/job.h"
#include "server/push/netguard.h"
#include "weir/weir.h"

/* ---- what is sent ---- */

/* ",v2=HEX" behind *n bytes of `out`. */
static bool add_signature(char out[PUSH_SIGNATURE], int *n, const char *secret, const weir_buf *b)
{
    unsigned char mac[EVP_MAX_MD_SIZE];
    unsigned      len = 0;
    if (b->failed || !HMAC(EVP_sha256(), secret, (int)strlen(secret),
                           (const unsigned char *)b->data, b->len, mac, &len))
        return false;
    *n += snprintf(out + *n, PUSH_SIGNATURE - (size_t)*n, ",v2=");
    for (unsigned i = 0; i < len; i++)
        *n += snprintf(out + *n, PUSH_SIGNATURE - (size_t)*n, "%02x", mac[i]);
    return true;
}

/* All that identifies the job, a line each; numbers and the type as in the headers. These have no
 * line ends, so that no part can pass for another. */
bool push_sign(char out[PUSH_SIGNATURE], const srv_push_target *t, int64_t at, const char *type,
               const weir_job *job)
{
    weir_buf b = { 0 };
    weir__buf_printf(&b, "v2\n%" PRId64 "\n%" PRIu64 "\n%" PRIu32 "\n%" PRIu64 "\n%s\n", at,
                     job->id, job->delivery, (uint64_t)job->attempts + 1, type);
    weir__buf_add(&b, job->data, job->data_len);
    int  n = snprintf(out, PUSH_SIGNATURE, "t=%" PRId64, at);
    bool ok = add_signature(out, &n, t->secret, &b) &&
              (!t->old_secret || add_signature(out, &n, t->old_secret, &b));
    weir__buf_fini(&b);
    return ok;
}

static void header(push_request *r, bool *ok, const char *name, const char *value)
{
    weir_buf line = { 0 };
    weir__buf_str(&line, name);
    weir__buf_str(&line, ": ");
    weir__buf_str(&line, value);
    struct curl_slist *more = line.failed ? NULL : weir__curl.slist_append(r->headers, line.data);
    weir__buf_fini(&line);
    if (more)
        r->headers = more;
    *ok = *ok && more;
}

static void number_header(push_request *r, bool *ok, const char *name, uint64_t n)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRIu64, n);
    header(r, ok, name, text);
}

/* A type may have any character; a header may not. As in a URL: what is not plain becomes %XX. */
static void plain_type(weir_buf *out, const char *type)
{
    for (; *type; type++) {
        unsigned char c = (unsigned char)*type;
        weir__buf_printf(out, c > ' ' && c < 0x7f && c != '%' ? "%c" : "%%%02X", c);
    }
}

static bool set_headers(push_request *r, const srv_push_target *t, const weir_job *job,
                        int64_t now)
{
    weir_buf type = { 0 };
    char     signature[PUSH_SIGNATURE];
    int64_t  at = now / 1000;
    plain_type(&type, job->type);
    bool ok = !type.failed && push_sign(signature, t, at, type.data, job);
    if (!ok) {
        weir__buf_fini(&type);
        return false;
    }
    header(r, &ok, "Content-Type", "application/json");
    number_header(r, &ok, "Weir-Job-Id", job->id);
    header(r, &ok, "Weir-Job-Type", type.data);
    weir__buf_fini(&type);
    number_header(r, &ok, "Weir-Delivery", job->delivery);
    number_header(r, &ok, "Weir-Attempt", (uint64_t)job->attempts + 1);
    number_header(r, &ok, "Weir-Timestamp", (uint64_t)at);
    header(r, &ok, "Weir-Signature", signature);
    char trace[WEIR_TRACEPARENT_LEN + 1];
    if (weir_job_trace(job, trace))
        header(r, &ok, WEIR_TRACEPARENT, trace);
    header(r, &ok, "Expect", "");       /* libcurl's own is not sent then */
    return ok;
}

/* ---- what happens meanwhile ---- */

/* This is the very address that will be connected to. So a name that had another address when it
 * was registered does not help, nor does a name with several. */
static curl_socket_t open_socket(void *ctx, curlsocktype purpose, struct curl_sockaddr *a)
{
    push_request *r = ctx;
    const char   *kind = r->guarded ? srv_not_public(&a->addr) : NULL;
    (void)purpose;
    if (!kind)
        return socket(a->family, a->socktype | SOCK_CLOEXEC, a->protocol);
    const void *bytes = a->family == AF_INET6
                            ? (const void *)&((struct sockaddr_in6 *)(void *)&a->addr)->sin6_addr
                            : (const void *)&((struct sockaddr_in *)(void *)&a->addr)->sin_addr;
    r->refused = kind;
    if (!inet_ntop(a->family, bytes, r->refused_addr, sizeof r->refused_addr))
        r->refused_addr[0] = '\0';
    return CURL_SOCKET_BAD;
}

static size_t got_bytes(char *bytes, size_t one, size_t n, void *ctx)
{
    push_request *r = ctx;
    (void)one;                                          /* is 1 */
    r->too_long = r->too_long || r->body.len + n > WEIR_MAX_DATA;
    if (r->too_long)
        return 0;
    weir__buf_add(&r->body, bytes, n);
    return r->body.failed ? 0 : n;
}

#define SET(option, value) (ok = ok && !weir__curl.easy_setopt(r->easy, (option), (value)))

bool push_request_init(push_request *r, const srv_push_target *t, const weir_job *job, int64_t now,
                       bool guarded)
{
    *r = (push_request){ .timeout_ms = t->timeout_ms, .guarded = guarded };
    r->easy = weir__curl.easy_init();
    bool ok = r->easy && set_headers(r, t, job, now);
    SET(CURLOPT_URL, t->url);
    SET(CURLOPT_PROTOCOLS_STR, "http,https");
    SET(CURLOPT_PROXY, "");                             /* whatever the environment says */
    SET(CURLOPT_FOLLOWLOCATION, 0L);
    SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    SET(CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    SET(CURLOPT_USERAGENT, "weir/" WEIR_VERSION);
    SET(CURLOPT_HTTPHEADER, r->headers);
    SET(CURLOPT_POSTFIELDS, job->data);
    SET(CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)job->data_len);
    SET(CURLOPT_TIMEOUT_MS, (long)t->timeout_ms);
    SET(CURLOPT_CONNECTTIMEOUT_MS, (long)PUSH_CONNECT_MS);
    SET(CURLOPT_FRESH_CONNECT, weir__job_is_suspect(job) ? 1L : 0L);    /* is not sent twice */
    SET(CURLOPT_NOSIGNAL, 1L);
    SET(CURLOPT_QUICK_EXIT, 1L);                        /* do not wait for a slow name server */
    SET(CURLOPT_OPENSOCKETFUNCTION, open_socket);
    SET(CURLOPT_OPENSOCKETDATA, r);
    SET(CURLOPT_WRITEFUNCTION, got_bytes);
    SET(CURLOPT_WRITEDATA, r);
    SET(CURLOPT_ERRORBUFFER, r->error);
    SET(CURLOPT_PRIVATE, r);
    return ok;
}

void push_request_fini(push_request *r)
{
    weir__curl.easy_cleanup(r->easy);
    weir__curl.slist_free_all(r->headers);
    weir__buf_fini(&r->body);
    *r = (push_request){ 0 };
}

/* ---- what it means ---- */

static void fail(push_verdict *v, const char *text)
{
    v->fate = PUSH_FAIL;
    weir__buf_str(&v->text, text);
}

/* Did the receiver break off? Then it has died, and perhaps of this job. libcurl sends a request
 * again when a kept connection broke: if that connection fails, the target died as well. */
static bool broke_off(CURLcode rc)
{
    return rc == CURLE_GOT_NOTHING || rc == CURLE_RECV_ERROR || rc == CURLE_SEND_ERROR ||
           rc == CURLE_PARTIAL_FILE || rc == CURLE_COULDNT_CONNECT ||
           rc == CURLE_COULDNT_RESOLVE_HOST || rc == CURLE_SSL_CONNECT_ERROR;
}

/* No whole answer. If the request was never sent, the job is not at fault; if it was, the job may
 * have been done. */
static void judge_trouble(push_request *r, CURLcode rc, push_verdict *v)
{
    weir_error why;
    curl_off_t sent_at = 0;
    weir__curl.easy_getinfo(r->easy, CURLINFO_PRETRANSFER_TIME_T, &sent_at);
    const char *text = *r->error ? r->error : weir__curl.easy_strerror(rc);
    if (!sent_at) {
        v->fate = PUSH_RETURN;
        v->effect = PUSH_BACK_OFF;
        if (r->refused)
            weir_fail(&v->why, WEIR_EUNAVAIL, "%s is not a public address (%s), and the server "
                      "does not run with --push-private", r->refused_addr, r->refused);
        else
            weir_fail(&v->why, WEIR_EUNAVAIL, "%s", text);
    } else if (broke_off(rc)) {
        v->fate = PUSH_LOST;
        v->effect = PUSH_BACK_OFF;
        weir_fail(&v->why, WEIR_EUNAVAIL, "%s", text);
    } else if (rc == CURLE_OPERATION_TIMEDOUT) {
        weir_fail(&why, WEIR_EJOB, "no answer within %" PRId64 " ms", r->timeout_ms);
        fail(v, why.msg);
    } else {
        weir_fail(&why, WEIR_EJOB, "no answer: %s", text);
        fail(v, why.msg);
    }
}

/* Any JSON as it is, any other text as a JSON string. */
static void judge_result(push_request *r, push_verdict *v)
{
    if (!r->body.len)
        return;
    if (weir__json_valid(r->body.data, r->body.len, WEIR_MAX_DEPTH, NULL, NULL)) {
        v->text = r->body;
        r->body = (weir_buf){ 0 };
        return;
    }
    weir__json_string(&v->text, r->body.data, r->body.len);
    if (v->text.len > WEIR_MAX_DATA) {
        weir__buf_clear(&v->text);
        r->too_long = true;
    }
}

/* "HTTP 500: the first line of the body". */
static void judge_failure(push_request *r, long status, push_verdict *v)
{
    const char *text = r->body.data ? r->body.data : "";
    size_t      len = strcspn(text, "\r\n");
    char        number[32];
    if (status >= 300 && status < 400) {
        text = "redirects are not followed";
        len = strlen(text);
    }
    snprintf(number, sizeof number, "HTTP %ld%s", status, len ? ": " : "");
    fail(v, number);
    weir__buf_add(&v->text, text, weir__utf8_cut(text, len, PUSH_MAX_LINE));
}

/* It asks to be left alone for a while: a number of seconds, or a date. */
static bool judge_busy(push_request *r, long status, push_verdict *v)
{
    struct curl_header *asked;
    curl_off_t          seconds = 0;
    if (weir__curl.easy_header(r->easy, "Retry-After", 0, CURLH_HEADER, -1, &asked) != CURLHE_OK)
        return false;
    weir__curl.easy_getinfo(r->easy, CURLINFO_RETRY_AFTER, &seconds);
    v->fate = PUSH_RETURN;
    v->effect = PUSH_BACK_OFF;
    v->wait_ms = seconds > PUSH_MAX_RETRY_MS / 1000 ? PUSH_MAX_RETRY_MS
                 : seconds > 0                          ? seconds * 1000
                                                        : PUSH_BACKOFF_MS;
    weir_fail(&v->why, WEIR_EUNAVAIL, "HTTP %ld with Retry-After", status);
    return true;
}

static void judge_answer(push_request *r, long status, push_verdict *v)
{
    if (status == 202) {
        v->fate = PUSH_LATER;
    } else if (status >= 200 && status < 300) {
        if (!r->too_long)
            judge_result(r, v);
        if (r->too_long) {
            fail(v, "the answer is longer than ");
            weir__buf_printf(&v->text, "%d bytes", WEIR_MAX_DATA);
        }
    } else if (status == 410) {
        v->fate = PUSH_RETURN;
        v->effect = PUSH_GONE;
        weir_fail(&v->why, WEIR_ENOENT, "HTTP 410: the target is gone; put it again to go on");
    } else if ((status != 429 && status != 503) || !judge_busy(r, status, v)) {
        judge_failure(r, status, v);
    }
}

void push_judge(push_request *r, CURLcode rc, push_verdict *v)
{
    long status = 0;
    weir__curl.easy_getinfo(r->easy, CURLINFO_RESPONSE_CODE, &status);
    if (rc && !r->too_long)
        judge_trouble(r, rc, v);
    else
        judge_answer(r, status, v);
    if (v->text.failed)                 /* there is nothing to say: so it is done again */
        v->fate = PUSH_RETURN;
}
