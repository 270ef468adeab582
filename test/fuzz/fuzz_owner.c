/* fuzz_owner.c - the file that says which process owns a store: "PID\nNAME\n". */
#include <ctype.h>
#include <string.h>

#include "fuzz/fuzz.h"
#include "store/sqlite/outside.h"

#define BELONGS "jobs.db belongs to "
enum { SHOWN = 60 };

/* Who it is, in the words of the message. */
static const char *who(const char *bytes, size_t n, weir_error *err)
{
    MUST(weir__sq_taken(bytes, n, "/some/where/jobs.db", err) == WEIR_EBUSY);
    MUST(err->code == WEIR_EBUSY && strlen(err->msg) < WEIR_ERROR_MAX);
    for (const char *s = err->msg; *s; s++)
        MUST((unsigned char)*s >= 0x20 && *s != 0x7f);
    MUST(!strncmp(err->msg, BELONGS, strlen(BELONGS)));
    return err->msg + strlen(BELONGS);
}

/* A process has a number; what has none is not named. */
static void any_bytes(const char *bytes, size_t n)
{
    weir_error  err;
    const char *s = who(bytes, n, &err);
    if (!strncmp(s, "another process: ", 17))
        return;
    MUST(!strncmp(s, "process ", 8));
    s += 8;
    size_t digits = strspn(s, "0123456789");
    MUST(digits && digits <= 10 && digits < n && !memcmp(s, bytes, digits));
    MUST(bytes[digits] == '\n' && s[digits] == ' ' && s[digits + 1] == '(');
    const char *advice = strrchr(s, ')');       /* however long the name is */
    MUST(advice && !strcmp(advice, "): stop it or wait for it; reading works meanwhile"));
}

/* A name that can be shown as it is, is, from its beginning. */
static void as_written(const char *name, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!isprint((unsigned char)name[i]))
            return;
    char       mark[256], want[256];
    weir_error err;
    int        len = snprintf(mark, sizeof mark, "4711\n%.*s\n", (int)(n < 200 ? n : 200), name);
    snprintf(want, sizeof want, "process 4711 (%.*s): stop it",
             n > SHOWN ? SHOWN : n ? (int)n : 1, n ? name : "?");
    MUST(!strncmp(who(mark, (size_t)len, &err), want, strlen(want)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *bytes = size ? (const char *)data : "";
    any_bytes(bytes, size);
    as_written(bytes, size);
    return 0;
}
