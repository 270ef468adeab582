/* cluster_frame.c - writing and reading the frames of a cluster: see cluster_frame.h. */
#include "bus/cluster_frame.h"

/* ---- what is in a frame of each kind, in this order ---- */

enum {
    HAS_VERSION = 1, HAS_PART = 2, HAS_TO = 4, HAS_NUMBER = 8, HAS_HOPS = 16, HAS_ADDRESS = 32,
    HAS_CONTENT = 64, HAS_FAILURE = 128, HAS_ENTRIES = 256
};

static const unsigned has[FRAME_KINDS] = {
    [FRAME_HELLO] = HAS_VERSION,
    [FRAME_ADDRESSES] = HAS_VERSION | HAS_PART | HAS_ENTRIES,
    [FRAME_CHANGES] = HAS_VERSION | HAS_ENTRIES,
    [FRAME_PUBLISH] = HAS_ADDRESS | HAS_CONTENT,
    [FRAME_SEND] = HAS_NUMBER | HAS_HOPS | HAS_ADDRESS | HAS_CONTENT,
    [FRAME_REPLY] = HAS_TO | HAS_NUMBER | HAS_CONTENT,
    [FRAME_FAIL] = HAS_TO | HAS_FAILURE,
    [FRAME_ALIVE] = HAS_VERSION,
};

/* ---- writing ---- */

static void put_number(weir_buf *out, uint64_t n, int bytes)
{
    char le[8];
    for (int i = 0; i < bytes; i++)
        le[i] = (char)(n >> 8 * i);
    weir__buf_add(out, le, (size_t)bytes);
}

static void put_text(weir_buf *out, const char *text, size_t len)
{
    put_number(out, len, 4);
    weir__buf_add(out, text, len);
    weir__buf_char(out, '\0');
}

static void put_string(weir_buf *out, const char *text)
{
    put_text(out, text, strlen(text));
}

static void put_content(weir_buf *out, const weir_content *c)
{
    put_text(out, c->body, c->body_len);
    put_number(out, c->n_headers, 4);
    for (size_t i = 0; i < c->n_headers; i++) {
        put_string(out, c->headers[i].name);
        put_string(out, c->headers[i].value);
    }
}

void weir__frame_write(weir_buf *out, const bus_frame *f)
{
    unsigned what = has[f->kind];
    weir__buf_char(out, 'W');
    weir__buf_char(out, 'B');
    put_number(out, WEIR_FRAME_VERSION, 1);
    put_number(out, f->kind, 1);
    weir__buf_add(out, f->from, WEIR_PROCESS - 1);
    if (what & HAS_VERSION)
        put_number(out, f->version, 8);
    if (what & HAS_PART)
        put_number(out, f->part, 1);
    if (what & HAS_TO)
        put_number(out, f->to, 8);
    if (what & HAS_NUMBER) {
        put_number(out, f->number, 8);
        put_number(out, f->timeout_ms, 4);
    }
    if (what & HAS_HOPS)
        put_number(out, f->hops, 1);
    if (what & HAS_ADDRESS)
        put_string(out, f->address);
    if (what & HAS_CONTENT)
        put_content(out, &f->content);
    if (what & HAS_FAILURE) {
        put_number(out, f->failure, 4);
        put_number(out, (uint32_t)f->code, 4);
        put_string(out, f->text);
    }
}

void weir__frame_write_entry(weir_buf *out, const bus_entry *e)
{
    put_number(out, e->n, 4);
    put_number(out, e->prefix, 1);
    put_string(out, e->address);
}

/* ---- reading ---- */

typedef struct reader {
    const char *at, *end;
    bool        bad;
} reader;

static const char *get_bytes(reader *r, size_t n)
{
    const char *at = r->at;
    if (r->bad || (size_t)(r->end - r->at) < n) {
        r->bad = true;
        return NULL;
    }
    r->at += n;
    return at;
}

static uint64_t get_number(reader *r, int bytes)
{
    const unsigned char *at = (const unsigned char *)get_bytes(r, (size_t)bytes);
    uint64_t             n = 0;
    for (int i = 0; at && i < bytes; i++)
        n |= (uint64_t)at[i] << 8 * i;
    return n;
}

static const char *get_text(reader *r, size_t *len)
{
    *len = (size_t)get_number(r, 4);
    const char *text = get_bytes(r, *len);
    const char *nul = text ? get_bytes(r, 1) : NULL;
    if (nul && !*nul)
        return text;
    r->bad = true;
    return "";
}

/* A text without a NUL in it. */
static const char *get_string(reader *r)
{
    size_t      len;
    const char *text = get_text(r, &len);
    r->bad = r->bad || strlen(text) != len;
    return r->bad ? "" : text;
}

static void get_content(reader *r, bus_frame *f)
{
    weir_content *c = &f->content;
    c->body = get_text(r, &c->body_len);
    c->n_headers = (size_t)get_number(r, 4);
    c->headers = f->headers;
    r->bad = r->bad || !c->body_len || c->n_headers > WEIR_MAX_BUS_HEADERS;
    for (size_t i = 0; !r->bad && i < c->n_headers; i++) {
        f->headers[i].name = get_string(r);
        f->headers[i].value = get_string(r);
    }
}

static bool get_entry(reader *r, bus_entry *out)
{
    out->n = (uint32_t)get_number(r, 4);
    out->prefix = get_number(r, 1);
    out->address = get_string(r);
    r->bad = r->bad || !*out->address || strlen(out->address) > WEIR_MAX_BUS_ADDRESS;
    return !r->bad;
}

/* All of them are looked at once, so that a frame is taken whole or not at all. */
static void check_entries(reader *r, bus_frame *f)
{
    bus_entry e;
    f->entries = r->at;
    f->end = r->end;
    while (!r->bad && r->at < r->end)
        get_entry(r, &e);
}

bool weir__frame_next_entry(bus_frame *f, bus_entry *out)
{
    reader r = { .at = f->entries, .end = f->end };
    if (!f->entries || r.at == r.end || !get_entry(&r, out))
        return false;
    f->entries = r.at;
    return true;
}

static void get_parts(reader *r, bus_frame *f)
{
    unsigned what = has[f->kind];
    if (what & HAS_VERSION)
        f->version = get_number(r, 8);
    if (what & HAS_PART)
        f->part = (uint8_t)get_number(r, 1);
    if (what & HAS_TO)
        f->to = get_number(r, 8);
    if (what & HAS_NUMBER) {
        f->number = get_number(r, 8);
        f->timeout_ms = (uint32_t)get_number(r, 4);
    }
    if (what & HAS_HOPS)
        f->hops = (uint8_t)get_number(r, 1);
    if (what & HAS_ADDRESS)
        f->address = get_string(r);
    if (what & HAS_CONTENT)
        get_content(r, f);
    if (what & HAS_FAILURE) {
        f->failure = (uint32_t)get_number(r, 4);
        f->code = (int32_t)get_number(r, 4);
        f->text = get_string(r);
        r->bad = r->bad || f->failure == WEIR_FAILURE_NONE || f->failure >= WEIR_FAILURE_COUNT;
    }
    if (what & HAS_ENTRIES)
        check_entries(r, f);
}

bool weir__frame_read(const char *bytes, size_t len, bus_frame *out)
{
    reader   r = { .at = bytes, .end = bytes + len };
    uint64_t magic = get_number(&r, 2), version = get_number(&r, 1), kind = get_number(&r, 1);
    const char *from = get_bytes(&r, WEIR_PROCESS - 1);
    if (r.bad || magic != ('W' | 'B' << 8) || version != WEIR_FRAME_VERSION || !kind ||
        kind >= FRAME_KINDS)
        return false;
    *out = (bus_frame){ .kind = (bus_frame_kind)kind };
    memcpy(out->from, from, WEIR_PROCESS - 1);
    get_parts(&r, out);
    return !r.bad && r.at == r.end && strlen(out->from) == WEIR_PROCESS - 1;
}
