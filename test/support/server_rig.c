/* server_rig.c - see server_rig.h. */
#include "support/server_rig.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

void web_start(web *w, const char *url, bool test_clock, const srv_options *opt)
{
    srv_options o = opt ? *opt : (srv_options){ 0 };
    memset(w, 0, sizeof *w);
    rt_open(&w->t, url, test_clock);
    if (!o.listen)
        o.listen = "127.0.0.1:0";
    rt *t = &w->t;
    OK(srv_start(&w->s, t->q, &o, &t->err));
    const char *host = strstr(srv_address(w->s), "://") + 3;
    snprintf(w->host, sizeof w->host, "%s", host);
}

void web_stop(web *w)
{
    srv_stop(w->s);
    srv_destroy(w->s);
    rt_check_and_close(&w->t);
}

/* ---- bytes ---- */

int web_connect(web *w)
{
    struct sockaddr_in to = { .sin_family = AF_INET };
    const char        *port = strrchr(w->host, ':') + 1;
    to.sin_port = htons((uint16_t)atoi(port));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    return fd;
}

void web_send_bytes(int fd, const void *bytes, size_t n)
{
    const char *at = bytes;
    while (n) {
        ssize_t sent = send(fd, at, n, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent <= 0)
            return;         /* it hung up: what it said before will be read */
        at += sent;
        n -= (size_t)sent;
    }
}

void web_send(int fd, const char *text)
{
    web_send_bytes(fd, text, strlen(text));
}

/* Read up to n bytes; 0 at the end (also when it was reset). */
static size_t take(int fd, char *to, size_t n)
{
    struct pollfd p = { .fd = fd, .events = POLLIN };
    for (;;) {
        int ready = poll(&p, 1, PATIENCE_MS);
        if (ready == 0)
            fail_msg("the server says nothing");
        ssize_t got = ready < 0 ? -1 : recv(fd, to, n, 0);
        if (got < 0 && errno == EINTR)
            continue;
        return got > 0 ? (size_t)got : 0;
    }
}

static void must_have(const void *p)
{
    if (!p)
        fail_msg("out of memory");
}

static char *read_head(int fd)
{
    char  *head = calloc(1, 65536);
    size_t n = 0;
    must_have(head);
    while (n < 65535 && take(fd, head + n, 1)) {
        n++;
        if (n >= 4 && !memcmp(head + n - 4, "\r\n\r\n", 4))
            return head;
    }
    free(head);
    return NULL;
}

/* The body has room for a power of two of bytes: a large one is not copied for each part. */
static void add(web_answer *a, const char *bytes, size_t n)
{
    size_t had = 64, cap = 64;
    while (had <= a->len)
        had *= 2;
    while (cap <= a->len + n)
        cap *= 2;
    if (!a->body || cap > had)
        a->body = realloc(a->body, cap);
    must_have(a->body);
    memcpy(a->body + a->len, bytes, n);
    a->len += n;
    a->body[a->len] = '\0';
}

/* n bytes, or to the end of the connection. */
static void read_bytes(int fd, web_answer *a, size_t n)
{
    char part[16384];
    while (n) {
        size_t got = take(fd, part, n < sizeof part ? n : sizeof part);
        if (!got)
            return;
        add(a, part, got);
        n -= got;
    }
}

static void read_chunks(int fd, web_answer *a)
{
    for (;;) {
        char   line[32] = { 0 };
        size_t n = 0;
        while (n < sizeof line - 1 && take(fd, line + n, 1) && line[n] != '\n')
            n++;
        size_t size = strtoul(line, NULL, 16);
        if (n == 0)
            return;
        read_bytes(fd, a, size);
        char end[2];
        take(fd, end, 1);
        take(fd, end + 1, 1);
        if (!size)
            return;
    }
}

web_answer web_read(int fd)
{
    web_answer a = { .head = read_head(fd) };
    if (!a.head)
        return a;
    a.status = atoi(a.head + 9);
    if (a.status == 100) {
        free(a.head);
        return web_read(fd);
    }
    add(&a, "", 0);
    const char *length = web_header(&a, "Content-Length");
    if (length)
        read_bytes(fd, &a, strtoul(length, NULL, 10));
    else if (web_header(&a, "Transfer-Encoding"))
        read_chunks(fd, &a);
    else if (a.status != 204)
        read_bytes(fd, &a, SIZE_MAX);
    return a;
}

void web_read_until(int fd, char **all, const char *text)
{
    size_t n = *all ? strlen(*all) : 0;
    while (!*all || !strstr(*all, text)) {
        *all = realloc(*all, n + 4097);
        must_have(*all);
        size_t got = take(fd, *all + n, 4096);
        n += got;
        (*all)[n] = '\0';
        if (!got && !strstr(*all, text))
            fail_msg("the server hung up before %s; it said: %s", text, *all);
    }
}

bool web_closed(int fd)
{
    char one;
    return take(fd, &one, 1) == 0;
}

void web_free(web_answer *a)
{
    free(a->head);
    free(a->body);
    *a = (web_answer){ 0 };
}

const char *web_header(const web_answer *a, const char *name)
{
    static _Thread_local char value[1024];
    size_t                    len = strlen(name);
    for (const char *at = strstr(a->head, "\r\n"); at; at = strstr(at, "\r\n")) {
        at += 2;
        if (!strncasecmp(at, name, len) && at[len] == ':') {
            at += len + 1 + strspn(at + len + 1, " ");
            snprintf(value, sizeof value, "%.*s", (int)strcspn(at, "\r\n"), at);
            return value;
        }
    }
    return NULL;
}

/* ---- whole calls ---- */

web_answer web_call_with(web *w, const char *method, const char *target, const char *headers,
                         const char *body)
{
    int    fd = web_connect(w);
    size_t size = strlen(target) + (headers ? strlen(headers) : 0) + 512;
    char  *head = malloc(size);
    must_have(head);
    int n = snprintf(head, size, "%s %s HTTP/1.1\r\nHost: %s\r\n%s", method, target, w->host,
                     headers ? headers : "");
    if (body && !(headers && strcasestr(headers, "Content-Type:")))
        n += snprintf(head + n, size - (size_t)n, "Content-Type: application/json\r\n");
    if (body)
        n += snprintf(head + n, size - (size_t)n, "Content-Length: %zu\r\n", strlen(body));
    snprintf(head + n, size - (size_t)n, "Connection: close\r\n\r\n");
    web_send(fd, head);
    if (body)
        web_send(fd, body);
    web_answer a = web_read(fd);
    close(fd);
    free(head);
    return a;
}

web_answer web_call(web *w, const char *method, const char *target, const char *body)
{
    return web_call_with(w, method, target, NULL, body);
}

json_t *web_json(web *w, int status, const char *method, const char *target, const char *body)
{
    web_answer   a = web_call(w, method, target, body);
    json_error_t why;
    if (a.status != status)
        fail_msg("%s %s: status %d, not %d: %s", method, target, a.status, status,
                 a.body ? a.body : "(nothing)");
    json_t *json = json_loadb(a.body, a.len, JSON_DECODE_ANY, &why);
    if (!json)
        fail_msg("%s %s: not JSON: %s", method, target, a.body);
    web_free(&a);
    return json;
}

void web_says(web *w, int status, const char *part, const char *method, const char *target,
              const char *body)
{
    web_answer a = web_call(w, method, target, body);
    if (a.status != status || !strstr(a.body ? a.body : "", part))
        fail_msg("%s %s: %d %.400s, not %d with %s", method, target, a.status,
                 a.body ? a.body : "", status, part);
    web_free(&a);
}

void web_error(web *w, int status, const char *code, const char *part, const char *method,
               const char *target, const char *body)
{
    json_t     *json = web_json(w, status, method, target, body);
    json_t     *e = json_object_get(json, "error");
    const char *message = json_string_value(json_object_get(e, "message"));
    assert_string_equal(json_string_value(json_object_get(e, "code")), code);
    if (!message || !strstr(message, part))
        fail_msg("%s %s: the message is not about \"%s\": %s", method, target, part,
                 message ? message : "(none)");
    json_decref(json);
}
