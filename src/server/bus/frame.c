/* frame.c - the bytes of the bridges: see frame.h. */
#include "server/bus/frame.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "weir/job.h"

/* ---- frames ---- */

int bridge_frame_read(const char *bytes, size_t n, size_t *len)
{
    const unsigned char *b = (const unsigned char *)bytes;
    if (n < BRIDGE_FRAME_HEAD)
        return 0;
    *len = (size_t)b[0] << 24 | (size_t)b[1] << 16 | (size_t)b[2] << 8 | b[3];
    if (*len > BRIDGE_MAX_FRAME)
        return -1;
    return n - BRIDGE_FRAME_HEAD >= *len;
}

size_t bridge_frame_begin(weir_buf *out)
{
    size_t at = out->len;
    weir__buf_add(out, "\0\0\0\0", BRIDGE_FRAME_HEAD);
    return at;
}

void bridge_frame_end(weir_buf *out, size_t begin)
{
    if (out->failed)
        return;
    size_t         len = out->len - begin - BRIDGE_FRAME_HEAD;
    unsigned char *b = (unsigned char *)out->data + begin;
    b[0] = (unsigned char)(len >> 24);
    b[1] = (unsigned char)(len >> 16);
    b[2] = (unsigned char)(len >> 8);
    b[3] = (unsigned char)len;
}

/* ---- SockJS ---- */

typedef void each_message(const char *json, size_t len, void *ctx);

static bool read_string(weir_json_piece string, each_message *each, void *ctx)
{
    size_t len;
    char  *text = *string.text == '"' ? malloc(string.len) : NULL;
    bool   ok = text && weir__json_text(string, text, &len);
    if (ok)
        each(text, len, ctx);
    free(text);
    return ok;
}

bool bridge_sockjs_read(const char *text, size_t len, each_message *each, void *ctx)
{
    size_t          where;
    const char     *why;
    weir_json_walk  w;
    weir_json_piece name, value = { text, len };
    if (!len)
        return true;
    if (!weir__json_valid(text, len, 1, &where, &why))
        return false;
    if (*text == '"')
        return read_string((weir_json_piece){ text, (size_t)(weir__json_end(value) - text) }, each,
                           ctx);
    if (*text != '[' || !weir__json_open(&w, value))
        return false;
    bool ok = true;
    while (ok && weir__json_next(&w, &name, &value))
        ok = read_string(value, each, ctx);
    return ok;
}

/* ---- messages from clients ---- */

/* Reads with a place for texts, which all together are shorter than the message. */
typedef struct reader {
    bridge_message *m;
    char           *at;
    weir_error     *err;
} reader;

static bool names(weir_json_piece name, const char *text)
{
    size_t len = strlen(text);
    return name.len == len + 2 && memcmp(name.text + 1, text, len) == 0;
}

static bool is_null(weir_json_piece v)
{
    return v.len == 4 && memcmp(v.text, "null", 4) == 0;
}

/* A string as text; numbers, true and false as they are written if `any`. */
static weir_code read_text(reader *r, weir_json_piece v, bool any, const char **out)
{
    size_t len = v.len;
    if (is_null(v))
        return WEIR_OK;
    if (*v.text == '"') {
        if (!weir__json_text(v, r->at, &len))
            return weir_fail(r->err, WEIR_EINVAL, "a text has a zero character");
    } else if (any && *v.text != '{' && *v.text != '[') {
        memcpy(r->at, v.text, len);
        r->at[len] = '\0';
    } else {
        return weir_fail(r->err, WEIR_EINVAL, "a member of the message is not a text");
    }
    *out = r->at;
    r->at += len + 1;
    return WEIR_OK;
}

static weir_code read_headers(reader *r, weir_json_piece v)
{
    weir_json_walk  w;
    weir_json_piece name, value;
    weir_code       rc = WEIR_OK;
    if (is_null(v))
        return WEIR_OK;
    if (*v.text != '{' || !weir__json_open(&w, v))
        return weir_fail(r->err, WEIR_EINVAL, "headers: not an object");
    r->m->n_headers = 0;
    while (!rc && weir__json_next(&w, &name, &value)) {
        if (r->m->n_headers == WEIR_MAX_BUS_HEADERS)
            return weir_fail(r->err, WEIR_ELIMIT, "more than %d headers", WEIR_MAX_BUS_HEADERS);
        weir_header *h = &r->m->headers[r->m->n_headers];
        *h = (weir_header){ 0 };
        rc = read_text(r, name, false, &h->name);
        if (!rc)
            rc = read_text(r, value, true, &h->value);
        if (!rc && h->value && *h->name)
            r->m->n_headers++;
    }
    return rc;
}

static weir_code read_code(reader *r, weir_json_piece v)
{
    char *end;
    if (is_null(v))
        return WEIR_OK;
    long code = strtol(v.text, &end, 10);
    if (end != v.text + v.len || code < INT32_MIN || code > INT32_MAX)
        return weir_fail(r->err, WEIR_EINVAL, "failureCode: not a whole number of 32 bits");
    r->m->fails = true;
    r->m->failure_code = (int)code;
    return WEIR_OK;
}

static weir_code read_member(reader *r, weir_json_piece name, weir_json_piece v)
{
    bridge_message *m = r->m;
    if (names(name, "type"))
        return read_text(r, v, false, &m->type);
    if (names(name, "address"))
        return read_text(r, v, false, &m->address);
    if (names(name, "replyAddress"))
        return read_text(r, v, false, &m->reply_address);
    if (names(name, "message"))
        return read_text(r, v, true, &m->text);
    if (names(name, "headers"))
        return read_headers(r, v);
    if (names(name, "failureCode"))
        return read_code(r, v);
    if (names(name, "body")) {
        m->body = v.text;
        m->body_len = v.len;
    }
    return WEIR_OK;
}

weir_code bridge_message_read(bridge_message *out, const char *json, size_t len, weir_error *err)
{
    reader          r = { .m = out, .err = err };
    weir_json_walk  w;
    weir_json_piece name, value;
    size_t          where;
    const char     *why;
    out->room = NULL;
    out->type = out->address = out->reply_address = out->text = out->body = NULL;
    out->body_len = out->n_headers = 0;
    out->fails = false;
    if (!weir__json_valid(json, len, WEIR_MAX_DEPTH + 1, &where, &why))
        return weir_fail(err, why == weir__json_too_deep ? WEIR_ELIMIT : WEIR_EINVAL,
                         "not JSON: %s at byte %zu", why, where);
    while (len && strchr(" \t\r\n", *json)) {
        json++;
        len--;
    }
    if (*json != '{' || !weir__json_open(&w, (weir_json_piece){ json, len }))
        return weir_fail(err, WEIR_EINVAL, "not a JSON object");
    r.at = out->room = malloc(len + 1);
    if (!out->room)
        return weir_fail(err, WEIR_ENOMEM, "message: out of memory");
    weir_code rc = WEIR_OK;
    while (!rc && weir__json_next(&w, &name, &value))
        rc = read_member(&r, name, value);
    return rc;
}

void bridge_message_fini(bridge_message *m)
{
    free(m->room);
    m->room = NULL;
}

const char *bridge_message_header(const bridge_message *m, const char *name)
{
    for (size_t i = 0; i < m->n_headers; i++)
        if (strcmp(m->headers[i].name, name) == 0)
            return m->headers[i].value;
    return NULL;
}

/* ---- messages to clients ---- */

void bridge_write_text(weir_buf *out, const char *name, const char *text)
{
    weir__buf_str(out, ",\"");
    weir__buf_str(out, name);
    weir__buf_str(out, "\":");
    weir__json_string(out, text, strlen(text));
}

void bridge_write_headers(weir_buf *out, const weir_message *m)
{
    size_t             n;
    const weir_header *h = weir_message_headers(m, &n);
    weir__buf_str(out, ",\"headers\":{");
    for (size_t i = 0; i < n; i++) {
        if (i)
            weir__buf_char(out, ',');
        weir__json_string(out, h[i].name, strlen(h[i].name));
        weir__buf_char(out, ':');
        weir__json_string(out, h[i].value, strlen(h[i].value));
    }
    weir__buf_char(out, '}');
}
