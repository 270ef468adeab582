/* reply.c - answers: whole ones, errors, and streams. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/fail.h"
#include "server/access/audit.h"
#include "server/http/inner.h"

/* Bodies up to this size are copied behind their head, so that both go out in one piece. */
enum { COPIED = 4096, RETRY_AFTER_S = 1 };

static const struct {
    int         status;
    const char *text;
} statuses[] = {
    { 101, "Switching Protocols" },    { 426, "Upgrade Required" },
    { 200, "OK" },                     { 201, "Created" },
    { 202, "Accepted" },               { 204, "No Content" },
    { 207, "Multi-Status" },           { 304, "Not Modified" },
    { 400, "Bad Request" },            { 401, "Unauthorized" },
    { 403, "Forbidden" },              { 404, "Not Found" },
    { 405, "Method Not Allowed" },     { 406, "Not Acceptable" },
    { 408, "Request Timeout" },        { 409, "Conflict" },
    { 411, "Length Required" },        { 413, "Content Too Large" },
    { 414, "URI Too Long" },           { 415, "Unsupported Media Type" },
    { 417, "Expectation Failed" },     { 421, "Misdirected Request" },
    { 422, "Unprocessable Content" },  { 423, "Locked" },
    { 429, "Too Many Requests" },      { 431, "Request Header Fields Too Large" },
    { 500, "Internal Server Error" },  { 501, "Not Implemented" },
    { 503, "Service Unavailable" },    { 504, "Gateway Timeout" },
    { 505, "HTTP Version Not Supported" },
    { 507, "Insufficient Storage" },
};

const char *srv_status_text(int status)
{
    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++)
        if (statuses[i].status == status)
            return statuses[i].text;
    return "Unknown";
}

/* ---- the head ---- */

static const char *date_of(srv_thread *thread)
{
    int64_t now = srv_loop_ms();
    if (!thread->date_ms || now - thread->date_ms >= 1000) {
        time_t    t = time(NULL);
        struct tm tm;
        gmtime_r(&t, &tm);
        strftime(thread->date, sizeof thread->date, "%a, %d %b %Y %H:%M:%S GMT", &tm);
        thread->date_ms = now;
    }
    return thread->date;
}

/* Nothing that is answered is ever a page, unless the handler says otherwise. */
#define GUARDS                                                                                   \
    "X-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\n"                        \
    "X-Frame-Options: DENY\r\nCross-Origin-Resource-Policy: same-origin\r\n"               \
    "Cross-Origin-Opener-Policy: same-origin\r\n"
#define HSTS "Strict-Transport-Security: max-age=31536000\r\n"

static void add_text(srv_conn *c, const char *text)
{
    evbuffer_add(c->out, text, strlen(text));
}

static void add_head(srv_exchange *x, int status, const char *type, int64_t length)
{
    srv_conn *c = x->r.conn;
    char      head[512];
    int       n = snprintf(head, sizeof head, "HTTP/1.1 %d %s\r\nDate: %s\r\n" GUARDS, status,
                           srv_status_text(status), date_of(c->thread));
    evbuffer_add(c->out, head, (size_t)n);
    if (c->ssl)
        add_text(c, HSTS);
    if (type) {
        n = snprintf(head, sizeof head, "Content-Type: %s\r\n", type);
        evbuffer_add(c->out, head, (size_t)n);
    }
    if (length >= 0)
        n = snprintf(head, sizeof head, "Content-Length: %lld\r\n", (long long)length);
    else
        n = snprintf(head, sizeof head, "%s", x->chunked ? "Transfer-Encoding: chunked\r\n" : "");
    evbuffer_add(c->out, head, (size_t)n);
    if (x->more.len)
        evbuffer_add(c->out, x->more.data, x->more.len);
    if (!x->more.data || !strcasestr(x->more.data, "Cache-Control:"))
        add_text(c, "Cache-Control: no-store\r\n");
    if (!x->more.data || !strcasestr(x->more.data, "Content-Security-Policy:"))
        add_text(c, "Content-Security-Policy: default-src 'none'; frame-ancestors 'none'\r\n");
    if (!x->keep_alive)
        add_text(c, "Connection: close\r\n");
    add_text(c, "\r\n");
}

void srv_reply_header(srv_request *r, const char *name, const char *value)
{
    weir__buf_printf(&((srv_exchange *)r)->more, "%s: %s\r\n", name, value);
}

/* ---- whole answers ---- */

static void free_body(const void *bytes, size_t len, void *ctx)
{
    (void)bytes;
    (void)len;
    free(ctx);
}

static void add_body(srv_conn *c, weir_buf *body)
{
    size_t len;
    if (body->len <= COPIED) {
        evbuffer_add(c->out, body->data, body->len);
        return;
    }
    char *bytes = weir__buf_steal(body, &len);
    if (bytes && evbuffer_add_reference(c->out, bytes, len, free_body, bytes) < 0)
        free(bytes);
}

/* The exchange is over: its connection goes on without it. */
static void end(srv_exchange *x, int status)
{
    srv_conn *c = x->r.conn;
    bool      keep_alive = x->keep_alive;
    srv_metrics_answered(x->r.server->metrics, x->r.route, status);
    if (x->r.server->log)
        srv_access_log_write(x->r.server->log, &(srv_access){
            .peer = c ? c->peer : NULL, .token = x->r.who.name, .method = x->r.method,
            .path = x->r.path, .status = status, .bytes = x->sent,
            .ms = srv_loop_ms() - x->began_ms });
    if (x->r.server->audit)
        srv_audit_answered(&x->r, status);
    srv_exchange_free(x);
    if (c)
        srv_conn_answered(c, keep_alive);
}

void srv_reply(srv_request *r, int status, const char *content_type, weir_buf *body)
{
    srv_exchange *x = (srv_exchange *)r;
    if (body->failed) {
        weir__buf_fini(body);
        srv_reply_fail(r, WEIR_ENOMEM, NULL, "out of memory");
        return;
    }
    if (r->revoked && status < 400 && !strcmp(r->method, "GET")) {
        weir__buf_fini(body);
        srv_reply_status(r, 401, "unauthorized", "the token is not valid any more");
        return;
    }
    if (status < 400 && !strcmp(r->method, "GET") && !srv_answer_fits(r, body))
        return;
    if (r->conn) {
        bool none = status == 204 || status == 304;
        add_head(x, status, content_type, none ? -1 : (int64_t)body->len);
        if (!none && !x->head_only && body->len) {
            x->sent = body->len;
            add_body(r->conn, body);
        }
    }
    weir__buf_fini(body);
    end(x, status);
}

void srv_reply_json(srv_request *r, int status, weir_buf *body)
{
    srv_reply(r, status, SRV_JSON, body);
}

void srv_reply_empty(srv_request *r, int status)
{
    srv_reply(r, status, NULL, &(weir_buf){ 0 });
}

bool srv_gone(const srv_request *r)
{
    return !r->conn || r->conn->ended || r->conn->dead;
}

bool srv_is_cancelled(const srv_request *r)
{
    return srv_gone(r) || atomic_load(&r->server->stopping);
}

void srv_reply_upgrade(srv_request *r, srv_upgrade *u)
{
    srv_exchange *x = (srv_exchange *)r;
    srv_conn     *c = r->conn;
    x->keep_alive = true;
    add_text(c, "HTTP/1.1 101 Switching Protocols\r\n");
    evbuffer_add(c->out, x->more.data, x->more.len);
    add_text(c, "\r\n");
    srv_conn_upgrade(c, u);
    end(x, 101);
}

/* ---- errors ---- */

static void error_json(weir_buf *out, const char *code, const char *message, const char *field)
{
    weir__buf_str(out, "{\"code\":");
    weir__json_string(out, code, strlen(code));
    weir__buf_str(out, ",\"message\":");
    weir__json_string(out, message, strlen(message));
    if (field && *field) {
        weir__buf_str(out, ",\"field\":");
        weir__json_string(out, field, strlen(field));
    }
    weir__buf_char(out, '}');
}

void srv_error_json(weir_buf *out, const weir_error *err)
{
    error_json(out, weir_code_name(err->code), err->msg, err->field);
}

static void reply_error(srv_request *r, int status, const char *code, const char *message,
                        const char *field)
{
    weir_buf body = { 0 };
    const weir_buf *more = &((srv_exchange *)r)->more;
    bool has_it = more->data && strcasestr(more->data, "Retry-After:");
    if ((status == 503 || status == 429) && !has_it) {
        char seconds[16];
        snprintf(seconds, sizeof seconds, "%d", RETRY_AFTER_S);
        srv_reply_header(r, "Retry-After", seconds);
    }
    weir__buf_str(&body, "{\"error\":");
    error_json(&body, code, message, field);
    weir__buf_str(&body, "}");
    if (body.failed) {          /* no memory even for that: an answer without a body */
        weir__buf_fini(&body);
        srv_reply_empty(r, status);
        return;
    }
    srv_reply_json(r, status, &body);
}

void srv_reply_error(srv_request *r, const weir_error *err)
{
    reply_error(r, weir_code_http(err->code), weir_code_name(err->code), err->msg, err->field);
}

void srv_reply_fail(srv_request *r, weir_code code, const char *field, const char *fmt, ...)
{
    char text[WEIR_ERROR_MAX];
    WEIR__FORMAT(text, fmt);
    weir_error err;
    weir_fail(&err, code, "%s", text);
    snprintf(err.field, sizeof err.field, "%s", field ? field : "");
    srv_reply_error(r, &err);
}

void srv_reply_status(srv_request *r, int status, const char *code, const char *fmt, ...)
{
    char text[WEIR_ERROR_MAX];
    WEIR__FORMAT(text, fmt);
    reply_error(r, status, code, text, NULL);
}

/* The error codes of HTTP itself, by status. */
void srv_reply_refused(srv_exchange *x, int status, const char *why)
{
    x->handled = true;
    const char *code = status == 401 ? "unauthorized" : status == 403 ? "forbidden"
                     : x->wrong      ? "EINVAL"                        : "http";
    reply_error(&x->r, status, code, why, x->wrong);
}

/* ---- streams ---- */

void srv_stream_begin(srv_request *r, int status, const char *content_type)
{
    srv_exchange *x = (srv_exchange *)r;
    x->streaming = true;
    if (!r->conn)
        return;
    x->chunked = x->head.minor >= 1;
    if (!x->chunked)
        x->keep_alive = false;
    add_head(x, status, content_type, -1);
    srv_conn_flush(r->conn);
}

bool srv_stream_write(srv_request *r, const void *bytes, size_t len)
{
    srv_exchange *x = (srv_exchange *)r;
    srv_conn     *c = r->conn;
    if (!c || evbuffer_get_length(c->out) > SRV_MAX_BACKLOG)
        return false;
    if (x->head_only || !len)
        return true;
    if (x->chunked)
        evbuffer_add_printf(c->out, "%zx\r\n", len);
    evbuffer_add(c->out, bytes, len);
    x->sent += len;
    if (x->chunked)
        evbuffer_add(c->out, "\r\n", 2);
    srv_conn_flush(c);
    return true;
}

size_t srv_stream_behind(const srv_request *r)
{
    return r->conn ? evbuffer_get_length(r->conn->out) : 0;
}

void srv_stream_end(srv_request *r, bool whole)
{
    srv_exchange *x = (srv_exchange *)r;
    if (!whole)
        x->keep_alive = false;
    else if (r->conn && x->chunked && !x->head_only)
        evbuffer_add(r->conn->out, "0\r\n\r\n", 5);
    end(x, whole ? 200 : 500);
}
