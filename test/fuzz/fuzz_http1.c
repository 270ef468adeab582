/* fuzz_http1.c - the reader of HTTP/1.1 by itself: bytes read whole and one at a time must give the
 * same requests, and every request that is let through must be framed in one way alone. */
#include <string.h>

#include "fuzz/fuzz.h"
#include "server/http/http1.h"

/* All that was read, as text to compare: heads, bodies, ends and the refusal. */
typedef struct reading {
    srv_http1      h;
    srv_http1_head head;
    weir_buf       all;
} reading;

static void check_head(const srv_http1_head *head)
{
    size_t lengths = 0, codings = 0;
    for (size_t i = 0; i < head->n_fields; i++) {
        const char *name = head->text.data + head->field[i].name;
        const char *value = head->text.data + head->field[i].value;
        lengths += !strcasecmp(name, "content-length");
        codings += !strcasecmp(name, "transfer-encoding");
        MUST(*name && !strpbrk(name, " \t\r\n:") && !strpbrk(value, "\r\n"));
    }
    MUST(lengths + codings <= 1 && (lengths || !head->length));
    MUST(head->minor == 0 || head->host);
    MUST(!strpbrk(head->text.data + head->target, " \t\r\n#"));
    MUST(head->text.len <= SRV_MAX_HEAD + 1);
}

static void note(reading *r, srv_http1_event ev)
{
    switch (ev) {
    case SRV_HTTP1_BEGIN:
        r->h.head = &r->head;
        break;
    case SRV_HTTP1_HEAD:
        check_head(&r->head);
        weir__buf_add(&r->all, r->head.text.data, r->head.text.len);
        weir__buf_printf(&r->all, "[%d %llu %d %d]", r->head.minor,
                         (unsigned long long)r->head.length, r->head.chunked, r->head.keep_alive);
        break;
    case SRV_HTTP1_DATA:
        MUST(r->h.data_len);
        weir__buf_add(&r->all, r->h.data, r->h.data_len);
        break;
    case SRV_HTTP1_END:
        weir__buf_str(&r->all, "[end]");
        srv_http1_head_fini(&r->head);
        r->head = (srv_http1_head){ 0 };
        break;
    case SRV_HTTP1_BAD:
        MUST(r->h.status >= 400 && r->h.why);
        weir__buf_printf(&r->all, "[%d %s]", r->h.status, r->h.why);
        break;
    case SRV_HTTP1_MORE:
        break;
    }
}

static void read_all(reading *r, const char *bytes, size_t size, size_t piece)
{
    while (size && !r->h.status) {
        size_t          n = size < piece ? size : piece;
        const char     *at = bytes, *end = bytes + n;
        srv_http1_event ev;
        do {
            ev = srv_http1_read(&r->h, &at, end);
            note(r, ev);
        } while (ev != SRV_HTTP1_MORE && ev != SRV_HTTP1_BAD);
        MUST(at == end || ev == SRV_HTTP1_BAD);
        bytes += n;
        size -= n;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    reading whole = { 0 }, bytewise = { 0 };
    read_all(&whole, (const char *)data, size, size);
    read_all(&bytewise, (const char *)data, size, 1);
    MUST(whole.all.len == bytewise.all.len);
    MUST(!whole.all.len || !memcmp(whole.all.data, bytewise.all.data, whole.all.len));
    MUST(whole.h.status == bytewise.h.status);
    srv_http1_head_fini(&whole.head);
    srv_http1_head_fini(&bytewise.head);
    weir__buf_fini(&whole.all);
    weir__buf_fini(&bytewise.all);
    return 0;
}
