/* member.c - the connection of an event bus to the server: over HTTP, upgraded to the frames of its
 * TCP bridge (docs/bus.md). A frame is the length of a JSON message (4 bytes, big-endian), then the
 * message; an envelope is one message. */
#include "store/http/http.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "store/remote/member.h"

enum {
    MAX_ANSWER = 16 * 1024,             /* bytes of the answer to the upgrade */
    PING_MS = 10 * 1000,                /* a ping is sent ... */
    SILENCE_MS = 35 * 1000,             /* ... and the server has not answered three of them */
    LAST_MS = 200                       /* to send the last messages */
};

struct http_member {
    weir_remote_member base;            /* first: see member.h */
    const http_url    *url;

    CURL              *curl;            /* the thread's, as what follows */
    char               why[CURL_ERROR_SIZE];
    int                fd;
    int64_t            read_ms;
};

/* ---- posting ---- */

static void put_frame(weir_buf *out, const char *bytes, size_t len)
{
    char head[4];
    for (int i = 0; i < 4; i++)
        head[i] = (char)(len >> (24 - 8 * i));
    weir__buf_add(out, head, sizeof head);
    weir__buf_add(out, bytes, len);
}

weir_code weir__http_member_post(http_member *m, const weir_envelope *e, weir_error *err)
{
    weir_buf *out;
    weir_code rc = weir__sendbuf_begin(&m->base.out, &out, m->url->base,
                                       "no connection to its event bus", err);
    if (rc)
        return rc;
    put_frame(out, e->bytes, e->len);
    return weir__sendbuf_end(&m->base.out, err);
}

static bool send_bytes(void *ctx, const char *bytes, size_t len, size_t *n)
{
    CURLcode rc = weir__curl.easy_send(((http_member *)ctx)->curl, bytes, len, n);
    return !rc || rc == CURLE_AGAIN;
}

/* Send what can be sent. False: the connection is gone. */
static bool send_some(http_member *m)
{
    return weir__sendbuf_send(&m->base.out, send_bytes, m);
}

/* ---- what comes ---- */

/* Received bytes, behind the bytes of `in`. False: the connection is gone. *some: there were. */
static bool read_some(http_member *m, bool *some)
{
    size_t n = 0;
    *some = false;
    if (!weir__buf_reserve(&m->base.in, WEIR_MEMBER_CHUNK))
        return false;
    CURLcode rc = weir__curl.easy_recv(m->curl, m->base.in.data + m->base.in.len,
                                       WEIR_MEMBER_CHUNK, &n);
    if (rc == CURLE_AGAIN)
        return true;
    if (rc || !n)
        return false;
    m->base.in.len += n;
    m->read_ms = weir__monotonic_ms();
    *some = true;
    return true;
}

/* Hand in the frames that are whole. False: this is no server of ours. */
static bool take_frames(http_member *m)
{
    size_t at = 0;
    while (m->base.in.len - at >= 4) {
        const unsigned char *b = (const unsigned char *)m->base.in.data + at;
        size_t len = (size_t)b[0] << 24 | (size_t)b[1] << 16 | (size_t)b[2] << 8 | b[3];
        if (len > WEIR_MAX_ENVELOPE + WEIR_MEMBER_CHUNK)
            return false;
        if (m->base.in.len - at - 4 < len)
            break;
        m->base.is.arrived(m->base.is.ctx, m->base.in.data + at + 4, len);
        at += 4 + len;
    }
    weir__member_consume(&m->base, at);
    return true;
}

static bool receive_all(http_member *m)
{
    bool some = true;
    while (some)
        if (!read_some(m, &some) || !take_frames(m))
            return false;
    return true;
}

/* ---- a connection ---- */

static bool wait_for(http_member *m, short events, weir_deadline until)
{
    struct pollfd p[2] = { { .fd = m->fd, .events = events },
                           { .fd = m->base.out.wake, .events = POLLIN } };
    int           n;
    do
        n = poll(p, 2, (int)weir__deadline_left_ms(until));
    while (n < 0 && errno == EINTR);
    return n > 0 && !p[1].revents;
}

static void write_upgrade(const http_member *m, weir_buf *out)
{
    const char *host = strstr(m->url->base, "://") + 3;
    size_t      len = strcspn(host, "/");
    weir__buf_printf(out, "GET %s/eventbus/tcp HTTP/1.1\r\nHost: %.*s\r\n"
                     "Connection: Upgrade\r\nUpgrade: weir-bus\r\n", host + len, (int)len, host);
    if (*m->url->token)
        weir__buf_printf(out, "Authorization: Bearer %s\r\n", m->url->token);
    weir__buf_str(out, "\r\n");
}

/* The server's answer to the upgrade, up to the empty line; the rest stays in `in`. */
static weir_code read_upgrade(http_member *m, weir_deadline until, weir_error *why)
{
    char *end = NULL;
    bool  some;
    int   status = 0;
    while (!end && m->base.in.len < MAX_ANSWER) {
        if (!read_some(m, &some) || (!some && !wait_for(m, POLLIN, until)))
            return weir_fail(why, WEIR_EUNAVAIL, "%s: no answer from its event bus", m->url->base);
        m->base.in.data[m->base.in.len] = '\0';
        end = strstr(m->base.in.data, "\r\n\r\n");
    }
    if (!end || sscanf(m->base.in.data, "HTTP/1.%*d %d", &status) != 1 || status != 101)
        return weir_fail(why, status == 404 ? WEIR_EVERSION : WEIR_EUNAVAIL,
                         "%s: its event bus answers with status %d", m->url->base, status);
    m->base.in.len -= (size_t)(end + 4 - m->base.in.data);
    memmove(m->base.in.data, end + 4, m->base.in.len);
    return WEIR_OK;
}

static weir_code connect_to_bus(http_member *m, weir_error *why)
{
    weir_deadline until = weir__deadline_in(m->url->timeout_ms);
    curl_socket_t fd;
    CURLcode      rc = weir__curl.easy_perform(m->curl);
    if (rc || (rc = weir__curl.easy_getinfo(m->curl, CURLINFO_ACTIVESOCKET, &fd)) != CURLE_OK)
        return weir__http_trouble(m->url, rc, m->why, why);
    m->fd = (int)fd;
    write_upgrade(m, &m->base.out.out);     /* no post comes before the connection is live */
    while (weir__sendbuf_waits(&m->base.out))
        if (!send_some(m) || (weir__sendbuf_waits(&m->base.out) && !wait_for(m, POLLOUT, until)))
            return weir_fail(why, WEIR_EUNAVAIL, "%s: the connection was lost", m->url->base);
    return read_upgrade(m, until, why);
}

/* Until the connection or the feed ends. */
static void run_connection(http_member *m, weir_feed *f)
{
    static const char ping[] = "{\"type\":\"ping\"}";
    int64_t           pinged_ms = m->read_ms = weir__monotonic_ms();
    bool              ok = take_frames(m);
    while (ok && !weir__feed_stopping(f)) {
        struct pollfd p[2] = { { .fd = m->fd, .events = POLLIN },
                               { .fd = m->base.out.wake, .events = POLLIN } };
        int64_t now = weir__monotonic_ms();
        if (now >= pinged_ms + PING_MS) {
            pinged_ms = now;
            weir__http_member_post(m, &(weir_envelope){ .bytes = ping, .len = sizeof ping - 1 },
                                   NULL);
        }
        p[0].events |= weir__sendbuf_waits(&m->base.out) ? POLLOUT : 0;
        if (poll(p, 2, (int)(pinged_ms + PING_MS - now)) < 0 && errno != EINTR)
            break;
        if (p[1].revents)
            weir__sendbuf_woken(&m->base.out);
        ok = send_some(m) && receive_all(m) && weir__monotonic_ms() < m->read_ms + SILENCE_MS;
    }
    weir_deadline until = weir__deadline_in(LAST_MS);
    while (ok && (ok = send_some(m)) && weir__sendbuf_waits(&m->base.out))
        ok = wait_for(m, POLLOUT, until);
}

static weir_code make_handle(http_member *m, struct curl_slist **headers, weir_error *why)
{
    m->curl = weir__http_handle(m->url, headers, "*/*");
    m->why[0] = '\0';
    if (m->curl && !weir__curl.easy_setopt(m->curl, CURLOPT_URL, m->url->base) &&
        !weir__curl.easy_setopt(m->curl, CURLOPT_ERRORBUFFER, m->why) &&
        !weir__curl.easy_setopt(m->curl, CURLOPT_CONNECT_ONLY, 1L))
        return WEIR_OK;
    return weir_fail(why, WEIR_ENOMEM, "http: out of memory");
}

static void receive(void *ctx, weir_feed *f, weir_error *why)
{
    http_member       *m = ctx;
    struct curl_slist *headers = NULL;
    weir__sendbuf_woken(&m->base.out);      /* what is left of the last connection */
    weir__sendbuf_set_live(&m->base.out, false);
    weir__buf_clear(&m->base.in);
    weir_code rc = weir__feed_stopping(f) ? WEIR_ECLOSED : make_handle(m, &headers, why);
    if (!rc && !connect_to_bus(m, why)) {
        weir__sendbuf_set_live(&m->base.out, true);
        weir__feed_live(f);
        m->base.is.lost(m->base.is.ctx);
        run_connection(m, f);
        weir__sendbuf_set_live(&m->base.out, false);
        m->base.is.gone(m->base.is.ctx, "");
        weir_fail(why, WEIR_EUNAVAIL, "%s: the connection to its event bus was lost",
                  m->url->base);
    }
    weir__curl.easy_cleanup(m->curl);
    weir__curl.slist_free_all(headers);
    m->curl = NULL;
}

static const weir_feed_source source = { .thread = "weir-member", .receive = receive,
                                         .wake = weir__member_wake };

/* ---- joining and leaving ---- */

void weir__http_member_leave(http_member *m)
{
    if (!m)
        return;
    weir__member_stop(&m->base);
    free(m);
}

weir_code weir__http_member_join(http_member **out, const http_url *url, const weir_member *is,
                                 weir_error *err)
{
    http_member *m = *out = calloc(1, sizeof *m);
    if (!m)
        return weir_fail(err, WEIR_ENOMEM, "bus: out of memory");
    m->url = url;
    weir_code rc = weir__member_start(&m->base, is, &source, url->timeout_ms, err);
    if (rc) {
        weir__http_member_leave(m);
        *out = NULL;
    }
    return rc;
}
