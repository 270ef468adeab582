/* fuzz_guard.c - the headers that decide who gets in: Host, Origin, Sec-Fetch-Site, Authorization
 * and the address of the client, a line each. Whatever they say, nobody gets into a closed server
 * without its token, and no page of another site into an open one. */
#include <string.h>
#include <unistd.h>

#include "fuzz/fuzz.h"
#include "server/access/guard.h"

static srv_guard *opened, *closed;

static void end(void)
{
    srv_guard_destroy(opened);
    srv_guard_destroy(closed);
}

static void begin(void)
{
    static const char *const origins[] = { "https://jobs.example.org", NULL };
    static const char tokens[] = "{\"tokens\":[{\"name\":\"a\",\"roles\":[\"admin\"],\"sha256\":\""
                                 "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
                                 "\"}]}";
    static char        file[] = "/tmp/weir-fuzz-XXXXXX";
    static srv_options open_to_all = { .origins = origins };
    static srv_options one_token = { .origins = origins, .tokens_file = file };
    weir_error err;
    int        fd = mkstemp(file);
    MUST(fd >= 0 && write(fd, tokens, sizeof tokens - 1) == sizeof tokens - 1);
    MUST(!srv_guard_create(&opened, &open_to_all, "127.0.0.1:7340", true, &err));
    MUST(!srv_guard_create(&closed, &one_token, "0.0.0.0:7340", false, &err));
    close(fd);
    unlink(file);           /* and with it the token: nobody can have the right one */
    atexit(end);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const srv_route route = { .method = "POST", .path = "/x", .roles = WEIR_ROLE_PRODUCE };
    char        text[2048], *line[5] = { 0 }, *rest = text;
    srv_caller  who;
    srv_refusal no;
    if (!opened)
        begin();
    if (size >= sizeof text)
        return 0;
    memcpy(text, data, size);
    text[size] = 0;
    for (int i = 0; i < 5 && rest; i++)
        line[i] = strsep(&rest, "\n");
    for (int i = 0; i < 5; i++)
        if (line[i] && strcmp(line[i], "-") == 0)
            line[i] = NULL;
    srv_head head = { .route = &route, .method = "POST", .host = line[0], .origin = line[1],
                      .fetch_site = line[2], .authorization = line[3],
                      .peer = line[4] ? line[4] : "127.0.0.1:1" };
    bool in = srv_guard_admit(opened, &head, 0, &who, &no);
    MUST(in ? who.roles == WEIR_ROLE_ALL : no.status == 403 && *no.why);
    if (in && head.fetch_site && strcmp(head.fetch_site, "cross-site") == 0)
        MUST(srv_guard_shares(opened, head.origin));
    MUST(!srv_guard_admit(closed, &head, 0, &who, &no));
    MUST((no.status == 401 || no.status == 403 || no.status == 429) && *no.why);
    return 0;
}
