/* fuzz_bus_client.c - what a server sends to a program that uses its bus (bus/client.c). A message
 * that is read has texts without surprises, a body that is JSON, and headers within their limit. */
#include <string.h>

#include "base/json.h"
#include "bus/client_message.h"
#include "fuzz/fuzz.h"

static void check_text(const char *text)
{
    MUST(!text || weir__utf8_valid(text, strlen(text)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    weir_arena     arena = { 0 };
    weir_reader    in = { .alloc = weir__arena_alloc, .ctx = &arena };
    client_message m = { 0 };
    size_t         where;
    const char    *why;
    char          *text = malloc(n ? n : 1);     /* the sanitizer sees every byte behind it */
    MUST(text);
    memcpy(text, data, n);
    if (weir__client_read(&in, text, n, &m)) {
        const char *texts[] = { m.type, m.address, m.reply_address, m.source, m.failure, m.error,
                                m.text };
        MUST(m.type);
        for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
            check_text(texts[i]);
        MUST(m.content.n_headers <= WEIR_MAX_BUS_HEADERS);
        for (size_t i = 0; i < m.content.n_headers; i++) {
            check_text(m.header[i].name);
            check_text(m.header[i].value);
        }
        MUST(!m.content.body ||
             weir__json_valid(m.content.body, m.content.body_len, WEIR_MAX_DEPTH + 2, &where,
                              &why));
    }
    free(text);
    weir__arena_free(&arena);
    return 0;
}
