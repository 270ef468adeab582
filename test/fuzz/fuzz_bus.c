/* fuzz_bus.c - what clients of the bridges send: frames of both kinds, and the messages in them.
 * Frames read from all bytes and from a part of them must agree; a message that is accepted has
 * texts without surprises and a body that is JSON. */
#include <string.h>

#include "base/json.h"
#include "fuzz/fuzz.h"
#include "server/bus/frame.h"

static void check_message(const char *json, size_t len)
{
    bridge_message m;
    weir_error     err;
    size_t         where;
    const char    *why;
    if (!bridge_message_read(&m, json, len, &err)) {
        const char *texts[] = { m.type, m.address, m.reply_address, m.text };
        for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
            MUST(!texts[i] || weir__utf8_valid(texts[i], strlen(texts[i])));
        for (size_t i = 0; i < m.n_headers; i++)
            MUST(*m.headers[i].name && weir__utf8_valid(m.headers[i].value,
                                                        strlen(m.headers[i].value)));
        MUST(!m.body || weir__json_valid(m.body, m.body_len, 200, &where, &why));
    }
    bridge_message_fini(&m);
}

static void check_one(const char *json, size_t len, void *ctx)
{
    ++*(size_t *)ctx;
    check_message(json, len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    const char *bytes = (const char *)data;
    size_t      at = 0, len, part;
    int         whole;
    while ((whole = bridge_frame_read(bytes + at, n - at, &len)) > 0) {
        MUST(bridge_frame_read(bytes + at, BRIDGE_FRAME_HEAD + len, &part) == 1 && part == len);
        MUST(bridge_frame_read(bytes + at, BRIDGE_FRAME_HEAD + len - 1, &part) == 0);
        check_message(bytes + at + BRIDGE_FRAME_HEAD, len);
        at += BRIDGE_FRAME_HEAD + len;
    }
    check_message(bytes, n);
    size_t messages = 0;
    bool frame = bridge_sockjs_read(bytes, n, check_one, &messages);
    MUST(!frame || !n || *bytes == '"' || *bytes == '[');
    return 0;
}
