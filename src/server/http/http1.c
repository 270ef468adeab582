/* http1.c - requests from bytes: see http1.h. One function per state, called with at least one byte
 * (but for DONE); each takes as many bytes as belong to its element. */
#include "server/http/http1.h"

#include <string.h>

#include "server/http/http1_field.h"

void srv_http1_head_fini(srv_http1_head *head)
{
    weir__buf_fini(&head->text);
}

/* ---- bytes ---- */

enum { IN_TOKEN = 1, IN_TARGET = 2, IN_VALUE = 4, IS_BLANK = 8 };
enum { T = IN_TOKEN | IN_TARGET | IN_VALUE, V = IN_TARGET | IN_VALUE, B = IN_VALUE | IS_BLANK };

/* Which bytes may be part of what. Bytes of 0x80 and above: of values only (obs-text). */
static const uint8_t classes[256] = {
    ['\t'] = B, [' '] = B,
    ['!'] = T, ['"'] = V, ['#'] = IN_TOKEN | IN_VALUE, ['$'] = T, ['%'] = T, ['&'] = T,
    ['\''] = T, ['('] = V, [')'] = V, ['*'] = T, ['+'] = T, [','] = V, ['-'] = T, ['.'] = T,
    ['/'] = V,
    ['0' ... '9'] = T, [':'] = V, [';'] = V, ['<'] = V, ['='] = V, ['>'] = V, ['?'] = V,
    ['@'] = V, ['A' ... 'Z'] = T, ['['] = V, ['\\'] = V, [']'] = V, ['^'] = T, ['_'] = T,
    ['`'] = T, ['a' ... 'z'] = T, ['{'] = V, ['|'] = T, ['}'] = V, ['~'] = T,
    [0x80 ... 0xff] = IN_VALUE,
};

static bool is(char c, unsigned class)
{
    return classes[(unsigned char)c] & class;
}

static const char *skip(const char *at, const char *end, unsigned class)
{
    while (at < end && is(*at, class))
        at++;
    return at;
}

enum {
    START, START_LF, METHOD, TARGET, VERSION, LINE_LF, LINE, NAME, BEFORE_VALUE, VALUE, HEAD_LF,
    DATA, DATA_CR, DATA_LF, SIZE, EXTENSION, SIZE_LF, DONE, BAD, N_STATES
};

static srv_http1_event bad(srv_http1 *h, int status, const char *why)
{
    h->state = BAD;
    h->status = status;
    h->why = why;
    return SRV_HTTP1_BAD;
}

static srv_http1_event go(srv_http1 *h, uint8_t state)
{
    h->state = state;
    h->count = 0;
    return SRV_HTTP1_MORE;
}

/* One byte that must be this one. */
static srv_http1_event expect(srv_http1 *h, const char **at, char c, uint8_t next, const char *why)
{
    return *(*at)++ == c ? go(h, next) : bad(h, 400, why);
}

/* Append to the text of the head. */
static srv_http1_event add(srv_http1 *h, const char *bytes, size_t n)
{
    weir_buf *text = &h->head->text;
    if (text->len + n > SRV_MAX_HEAD)
        return bad(h, 431, "the headers are larger than 16384 bytes (SRV_MAX_HEAD)");
    weir__buf_add(text, bytes, n);
    return text->failed ? bad(h, 503, "out of memory") : SRV_HTTP1_MORE;
}

/* Append the bytes of this class to the text of the head. */
static srv_http1_event add_run(srv_http1 *h, const char **at, const char *end, unsigned class)
{
    const char *from = *at;
    *at = skip(from, end, class);
    return add(h, from, (size_t)(*at - from));
}

#define NO_LF "a CR is not followed by LF; a line must end with CR LF"

/* ---- the request line ---- */

static srv_http1_event read_start(srv_http1 *h, const char **at, const char *end)
{
    (void)end;
    if (**at == '\r' && !h->after_empty) {
        ++*at;
        return go(h, START_LF);
    }
    if (!is(**at, IN_TOKEN))
        return bad(h, 400, "the request does not begin with a method");
    *h = (srv_http1){ .state = METHOD };
    return SRV_HTTP1_BEGIN;
}

static srv_http1_event read_start_lf(srv_http1 *h, const char **at, const char *end)
{
    (void)end;
    h->after_empty = true;
    return expect(h, at, '\n', START, NO_LF);
}

static srv_http1_event read_method(srv_http1 *h, const char **at, const char *end)
{
    const weir_buf *text = &h->head->text;
    const char     *stop = skip(*at, end, IN_TOKEN);
    if (text->len + (size_t)(stop - *at) > SRV_MAX_METHOD)
        return bad(h, 501, "the method is not supported");
    srv_http1_event ev = add(h, *at, (size_t)(stop - *at));
    *at = stop;
    if (ev || stop == end)
        return ev;
    if (*(*at)++ != ' ')
        return bad(h, 400, "the method is not followed by one blank and a target");
    ev = add(h, "", 1);
    h->head->target = (uint32_t)text->len;
    return ev ? ev : go(h, TARGET);
}

static srv_http1_event read_target(srv_http1 *h, const char **at, const char *end)
{
    const weir_buf *text = &h->head->text;
    const char     *stop = skip(*at, end, IN_TARGET);
    if (text->len - h->head->target + (size_t)(stop - *at) > SRV_MAX_TARGET)
        return bad(h, 414, "the target is longer than 8192 bytes (SRV_MAX_TARGET)");
    srv_http1_event ev = add(h, *at, (size_t)(stop - *at));
    *at = stop;
    if (ev || stop == end)
        return ev;
    if (text->len == h->head->target)
        return bad(h, 400, "the request line has no target behind one blank");
    char c = *(*at)++;
    if (c == '\r')
        return bad(h, 505, "the request line has no version; this server speaks HTTP/1.1");
    if (c != ' ')
        return bad(h, 400, "the target has a character in it that must be written as %XX");
    ev = add(h, "", 1);
    return ev ? ev : go(h, VERSION);
}

/* "HTTP/1.1" and CR, one byte after the other: they are nine. */
static srv_http1_event read_version(srv_http1 *h, const char **at, const char *end)
{
    static const char form[] = "HTTP/0.0\r";
    for (; *at < end && h->count < sizeof form - 1; ++*at, h->count++) {
        char c = **at, wanted = form[h->count];
        if (wanted == '0' ? c < '0' || c > '9' : c != wanted)
            return bad(h, 400, "the request line does not end with HTTP/1.1 and CR LF");
        if (h->count == 5)
            h->major = c - '0';
        else if (h->count == 7)
            h->head->minor = c - '0';
    }
    if (h->count < sizeof form - 1)
        return SRV_HTTP1_MORE;
    if (h->major != 1 || h->head->minor > 1)
        return bad(h, 505, "unknown version; this server speaks HTTP/1.1 and 1.0");
    return go(h, LINE_LF);
}

/* ---- fields ---- */

static srv_http1_event read_line_lf(srv_http1 *h, const char **at, const char *end)
{
    (void)end;
    return expect(h, at, '\n', LINE, NO_LF);
}

static srv_http1_event read_line(srv_http1 *h, const char **at, const char *end)
{
    (void)end;
    srv_http1_head *head = h->head;
    if (**at == '\r') {
        ++*at;
        return go(h, HEAD_LF);
    }
    if (is(**at, IS_BLANK))
        return bad(h, 400, "a line of the headers begins with a blank; a header is on one line");
    if (!is(**at, IN_TOKEN))
        return bad(h, 400, "the name of a header has a character in it that is not allowed");
    if (head->n_fields == SRV_MAX_HEADERS)
        return bad(h, 431, "there are more than 100 headers (SRV_MAX_HEADERS)");
    head->field[head->n_fields++].name = (uint32_t)head->text.len;
    return go(h, NAME);
}
_Static_assert(SRV_MAX_HEAD == 16384 && SRV_MAX_TARGET == 8192 && SRV_MAX_HEADERS == 100,
               "texts say so");

static srv_http1_event read_name(srv_http1 *h, const char **at, const char *end)
{
    srv_http1_head *head = h->head;
    srv_http1_event ev = add_run(h, at, end, IN_TOKEN);
    if (ev || *at == end)
        return ev;
    if (*(*at)++ != ':')
        return bad(h, 400, "the name of a header has a character in it that is not allowed");
    uint32_t name = head->field[head->n_fields - 1].name;
    h->known = srv_http1_field_find(head->text.data + name, head->text.len - name);
    ev = add(h, "", 1);
    head->field[head->n_fields - 1].value = (uint32_t)head->text.len;
    return ev ? ev : go(h, BEFORE_VALUE);
}

static srv_http1_event read_before_value(srv_http1 *h, const char **at, const char *end)
{
    const char *from = *at;
    *at = skip(from, end, IS_BLANK);
    h->count += (uint32_t)(*at - from);
    if (h->count > SRV_MAX_HEAD)
        return bad(h, 431, "the headers are larger than 16384 bytes (SRV_MAX_HEAD)");
    return *at == end ? SRV_HTTP1_MORE : go(h, VALUE);
}

static void drop_blanks(weir_buf *text, size_t from)
{
    while (text->len > from && is(text->data[text->len - 1], IS_BLANK))
        text->len--;
}

static srv_http1_event read_value(srv_http1 *h, const char **at, const char *end)
{
    srv_http1_head *head = h->head;
    srv_http1_event ev = add_run(h, at, end, IN_VALUE);
    if (ev || *at == end)
        return ev;
    if (*(*at)++ != '\r')
        return bad(h, 400, "the value of a header has a control character in it");
    const srv_field *field = &head->field[head->n_fields - 1];
    drop_blanks(&head->text, field->value);
    ev = add(h, "", 1);
    if (ev)
        return ev;
    const char *why = NULL;
    int status = srv_http1_field_read(head, h->known, head->text.data + field->value,
                                      h->trailers, &why);
    if (status)
        return bad(h, status, why);
    if (h->trailers)
        head->text.len = h->kept;
    return go(h, LINE_LF);
}

/* The empty line behind the fields, or behind the trailers. */
static srv_http1_event read_head_lf(srv_http1 *h, const char **at, const char *end)
{
    (void)end;
    srv_http1_head *head = h->head;
    if (*(*at)++ != '\n')
        return bad(h, 400, NO_LF);
    if (h->trailers)
        return go(h, DONE);
    const char *why = srv_http1_fields_check(head);
    if (why)
        return bad(h, 400, why);
    h->left = head->length;
    h->kept = head->text.len;
    go(h, head->chunked ? SIZE : h->left ? DATA : DONE);
    return SRV_HTTP1_HEAD;
}

/* ---- the body ---- */

static srv_http1_event read_data(srv_http1 *h, const char **at, const char *end)
{
    size_t n = (size_t)(end - *at);
    if (n > h->left)
        n = (size_t)h->left;
    h->data = *at;
    h->data_len = n;
    *at += n;
    h->left -= n;
    if (!h->left)
        go(h, h->head->chunked ? DATA_CR : DONE);
    return SRV_HTTP1_DATA;
}

static srv_http1_event read_data_cr(srv_http1 *h, const char **at, const char *end)
{
    (void)end;
    return expect(h, at, '\r', DATA_LF, "the data of a chunk is not followed by CR LF");
}

static srv_http1_event read_data_lf(srv_http1 *h, const char **at, const char *end)
{
    (void)end;
    return expect(h, at, '\n', SIZE, "the data of a chunk is not followed by CR LF");
}

static int hex(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static srv_http1_event read_size(srv_http1 *h, const char **at, const char *end)
{
    if (!h->count)
        h->left = 0;
    for (int digit; *at < end && (digit = hex(**at)) >= 0; ++*at) {
        if (++h->count > SRV_MAX_CHUNK_DIGITS)
            return bad(h, 400, "the size of a chunk has more than 15 digits");
        h->left = h->left << 4 | (uint64_t)digit;
    }
    if (*at == end)
        return SRV_HTTP1_MORE;
    char c = *(*at)++;
    if (!h->count || (c != '\r' && c != ';'))
        return bad(h, 400, "the size of a chunk is not a hexadecimal number with CR LF or ; "
                           "behind it");
    return go(h, c == '\r' ? SIZE_LF : EXTENSION);
}
_Static_assert(SRV_MAX_CHUNK_DIGITS == 15, "the text above says so; 16 would overflow");

static srv_http1_event read_extension(srv_http1 *h, const char **at, const char *end)
{
    const char *from = *at;
    *at = skip(from, end, IN_VALUE);
    h->extensions += (uint32_t)(*at - from);
    if (h->extensions > SRV_MAX_EXTENSIONS)
        return bad(h, 400, "the chunk extensions are larger than 4096 bytes (SRV_MAX_EXTENSIONS)");
    if (*at == end)
        return SRV_HTTP1_MORE;
    return expect(h, at, '\r', SIZE_LF, "a chunk extension has a control character in it");
}
_Static_assert(SRV_MAX_EXTENSIONS == 4096, "the text above says so");

static srv_http1_event read_size_lf(srv_http1 *h, const char **at, const char *end)
{
    (void)end;
    h->trailers = !h->left;
    return expect(h, at, '\n', h->left ? DATA : LINE, NO_LF);
}

static srv_http1_event read_done(srv_http1 *h, const char **at, const char *end)
{
    (void)at, (void)end;
    go(h, START);
    return SRV_HTTP1_END;
}

static srv_http1_event read_bad(srv_http1 *h, const char **at, const char *end)
{
    (void)h, (void)at, (void)end;
    return SRV_HTTP1_BAD;
}

/* ---- all of it ---- */

typedef srv_http1_event state_fn(srv_http1 *h, const char **at, const char *end);

static state_fn *const states[N_STATES] = {
    [START] = read_start,
    [START_LF] = read_start_lf,
    [METHOD] = read_method,
    [TARGET] = read_target,
    [VERSION] = read_version,
    [LINE_LF] = read_line_lf,
    [LINE] = read_line,
    [NAME] = read_name,
    [BEFORE_VALUE] = read_before_value,
    [VALUE] = read_value,
    [HEAD_LF] = read_head_lf,
    [DATA] = read_data,
    [DATA_CR] = read_data_cr,
    [DATA_LF] = read_data_lf,
    [SIZE] = read_size,
    [EXTENSION] = read_extension,
    [SIZE_LF] = read_size_lf,
    [DONE] = read_done,
    [BAD] = read_bad,
};

srv_http1_event srv_http1_read(srv_http1 *h, const char **at, const char *end)
{
    srv_http1_event ev = SRV_HTTP1_MORE;
    while (!ev && (*at < end || h->state >= DONE))
        ev = states[h->state](h, at, end);
    return ev;
}
