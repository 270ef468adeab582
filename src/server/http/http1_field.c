/* http1_field.c - the fields that frame a request: see http1_field.h. */
#include "server/http/http1_field.h"

#include <arpa/inet.h>
#include <string.h>

/* ---- Host ---- */

static bool is_port(const char *text, size_t len)
{
    long port = 0;
    if (len > 5)
        return false;
    for (size_t i = 0; i < len; i++) {
        if (text[i] < '0' || text[i] > '9')
            return false;
        port = port * 10 + text[i] - '0';
    }
    return port <= 65535;
}

/* The characters of a host name: RFC 3986, reg-name; '%' only as part of %XX. */
static bool is_name(const char *text, size_t len)
{
    static const char hex[] = "0123456789abcdefABCDEF";
    for (size_t i = 0; i < len; i++) {
        char c = text[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (c == '%' && (len - i < 3 || !memchr(hex, text[i + 1], sizeof hex - 1) ||
                         !memchr(hex, text[i + 2], sizeof hex - 1)))
            return false;
        if (!letter && (!c || !strchr("-._~!$&'()*+,;=%", c)))
            return false;
    }
    return len > 0;
}

bool srv_http1_is_host(const char *text, size_t len)
{
    const char *close = len && *text == '[' ? memchr(text, ']', len) : NULL;
    const char *end = close ? close + 1 : memchr(text, ':', len);
    size_t      host = end ? (size_t)(end - text) : len;
    if (host < len && (text[host] != ':' || !is_port(text + host + 1, len - host - 1)))
        return false;
    if (!close)
        return is_name(text, host);
    char            inside[INET6_ADDRSTRLEN];
    struct in6_addr address;
    if (host < 2 || host - 2 >= sizeof inside)
        return false;
    memcpy(inside, text + 1, host - 2);
    inside[host - 2] = '\0';
    return inet_pton(AF_INET6, inside, &address) == 1;
}

static int read_host(srv_http1_head *head, const char *value, const char **why)
{
    if (head->host) {
        *why = "the header Host is given more than once";
        return 400;
    }
    if (!srv_http1_is_host(value, strlen(value))) {
        *why = "the header Host is not a name or address with or without a port";
        return 400;
    }
    head->host = (uint32_t)(value - head->text.data);
    return 0;
}

/* ---- the length of the body ---- */

static int read_length(srv_http1_head *head, const char *value, const char **why)
{
    enum { DIGITS = 18 };
    size_t len = strlen(value);
    if (head->has_length) {
        *why = "the header Content-Length is given more than once";
        return 400;
    }
    if (!len || strspn(value, "0123456789") != len) {
        *why = "the header Content-Length is not one decimal number";
        return 400;
    }
    if (len > DIGITS) {
        *why = "the body is larger than any that is allowed";
        return 413;
    }
    head->has_length = true;
    for (; *value; value++)
        head->length = head->length * 10 + (uint64_t)(*value - '0');
    return 0;
}

/* The next element of a comma-separated list, without blanks around it; *at moves behind it. */
static size_t element(const char **at, const char **out)
{
    *at += strspn(*at, " \t,");
    *out = *at;
    *at += strcspn(*at, ",");
    size_t len = (size_t)(*at - *out);
    while (len && ((*out)[len - 1] == ' ' || (*out)[len - 1] == '\t'))
        len--;
    return len;
}

static bool names(const char *text, size_t len, const char *word)
{
    return len == strlen(word) && strncasecmp(text, word, len) == 0;
}

/* "chunked", once and last; the server supports no coding before it. */
static int read_coding(srv_http1_head *head, const char *value, const char **why)
{
    size_t      n = 0, chunked = 0;
    bool        last = false;
    const char *coding, *at = value;
    for (size_t len; (len = element(&at, &coding)); n++) {
        last = names(coding, len, "chunked");
        chunked += last;
    }
    if (head->chunked || !last || chunked > 1 || (n == 1 && strcasecmp(value, "chunked") != 0)) {
        *why = "the header Transfer-Encoding is not 'chunked', once";
        return 400;
    }
    if (n > 1) {
        *why = "the header Transfer-Encoding has an unsupported coding; only 'chunked' is "
               "supported";
        return 501;
    }
    head->chunked = true;
    return 0;
}

static int read_connection(srv_http1_head *head, const char *value, const char **why)
{
    (void)why;
    const char *option;
    for (size_t len; (len = element(&value, &option));) {
        head->close = head->close || names(option, len, "close");
        head->keep = head->keep || names(option, len, "keep-alive");
    }
    return 0;
}

/* ---- all of them ---- */

static const struct {
    const char *name;
    size_t      len;
    int       (*read)(srv_http1_head *head, const char *value, const char **why);
} fields[] = {
    { "", 0, NULL },
    { "host", 4, read_host },
    { "content-length", 14, read_length },
    { "transfer-encoding", 17, read_coding },
    { "connection", 10, read_connection },
};
enum { N_FIELDS = sizeof fields / sizeof *fields };

uint8_t srv_http1_field_find(const char *name, size_t len)
{
    for (uint8_t i = 1; i < N_FIELDS; i++)
        if (fields[i].len == len && strncasecmp(fields[i].name, name, len) == 0)
            return i;
    return 0;
}

int srv_http1_field_read(srv_http1_head *head, uint8_t known, const char *value, bool trailer,
                         const char **why)
{
    if (!known)
        return 0;
    if (trailer) {
        *why = "a trailer has a header that belongs before the body";
        return 400;
    }
    return fields[known].read(head, value, why);
}

const char *srv_http1_fields_check(srv_http1_head *head)
{
    if (!head->host && head->minor)
        return "the header Host is missing";
    if (head->chunked && head->has_length)
        return "both Content-Length and Transfer-Encoding say how long the body is";
    if (head->chunked && !head->minor)
        return "HTTP/1.0 has no Transfer-Encoding";
    head->keep_alive = !head->close && (head->minor || head->keep);
    return NULL;
}
