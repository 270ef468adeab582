/* tcp_client.c - see tcp_client.h. */
#include "support/tcp_client.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/server_rig.h"

int tcp_dial(const char *address)
{
    struct sockaddr_in to = { .sin_family = AF_INET,
                              .sin_port = htons((uint16_t)atoi(strchr(address, ':') + 1)) };
    inet_pton(AF_INET, "127.0.0.1", &to.sin_addr);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    return fd;
}

void tcp_put_head(char *to, size_t len)
{
    for (int i = 0; i < 4; i++)
        to[i] = (char)(len >> (24 - 8 * i));
}

void tcp_tell(int fd, const char *json)
{
    size_t len = strlen(json);
    char  *frame = malloc(len + 4);
    tcp_put_head(frame, len);
    memcpy(frame + 4, json, len);
    web_send_bytes(fd, frame, len + 4);
    free(frame);
}

bool tcp_read(int fd, char *to, size_t n)
{
    while (n) {
        struct pollfd p = { .fd = fd, .events = POLLIN };
        assert_int_equal(poll(&p, 1, PATIENCE_MS), 1);
        ssize_t got = read(fd, to, n);
        if (got <= 0)
            return false;
        to += got;
        n -= (size_t)got;
    }
    return true;
}

/* The next message, as text (free()); NULL: the server has closed the connection. */
char *tcp_next(int fd)
{
    unsigned char head[4];
    if (!tcp_read(fd, (char *)head, 4))
        return NULL;
    size_t len = (size_t)head[0] << 24 | (size_t)head[1] << 16 | (size_t)head[2] << 8 | head[3];
    char  *text = malloc(len + 1);
    assert_true(tcp_read(fd, text, len));
    text[len] = '\0';
    return text;
}

void tcp_expect(int fd, const char *json)
{
    char *text = tcp_next(fd);
    assert_non_null(text);
    assert_string_equal(text, json);
    free(text);
}

/* All that was sent before has been handled when the pong comes. */
void tcp_sync(int fd)
{
    tcp_tell(fd, "{\"type\":\"ping\"}");
    tcp_expect(fd, "{\"type\":\"pong\"}");
}

/* The reply address that the next message has, without it. */
char *tcp_next_request(int fd, char reply[WEIR_REPLY_ADDRESS])
{
    static const char member[] = ",\"replyAddress\":\"";
    char             *text = tcp_next(fd), *at = text ? strstr(text, member) : NULL;
    assert_non_null(at);
    char  *end = strchr(at + sizeof member - 1, '"');
    size_t len = (size_t)(end - at) - (sizeof member - 1);
    assert_true(len < WEIR_REPLY_ADDRESS);
    memcpy(reply, at + sizeof member - 1, len);
    reply[len] = '\0';
    memmove(at, end + 1, strlen(end + 1) + 1);
    return text;
}
