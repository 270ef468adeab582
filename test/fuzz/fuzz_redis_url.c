/* fuzz_redis_url.c - Redis URLs: the first byte, a digit, picks the scheme, the rest follows it. */
#include <string.h>

#include "fuzz/fuzz.h"
#include "store/redis/link/link.h"

static const char *const schemes[] = { "redis",     "redis+unix",     "redis+sentinel",
                                       "redis+kue", "redis+kue+unix", "redis+kue+sentinel",
                                       "rediss",    "rediss+kue",     "rediss+sentinel",
                                       "rediss+kue+sentinel" };

enum { N_SCHEMES = sizeof schemes / sizeof *schemes };

/* Cut off what is before the first `c`; the end of the text when there is none. */
static char *cut_at(char **rest, char c)
{
    char *part = *rest, *end = strchr(part, c);
    *rest = end ? end + 1 : part + strlen(part);
    if (end)
        *end = '\0';
    return part;
}

static bool known(const char *const *names, const char *name)
{
    while (*names && strcmp(*names, name) != 0)
        names++;
    return *names;
}

static void check_good(const redis_url *r, bool kue)
{
    bool several = r->way == REDIS_CLUSTER || r->way == REDIS_SENTINEL;
    MUST(r->n_places >= 1 && r->n_places <= WEIR_REDIS_MAX_NODES && (several || r->n_places == 1));
    for (size_t i = 0; i < r->n_places; i++) {
        MUST(*r->place[i].host && strlen(r->place[i].host) < sizeof r->place[i].host);
        MUST(r->way == REDIS_UNIX ? !r->place[i].port && *r->place[i].host == '/'
                                  : r->place[i].port > 0 && r->place[i].port < 65536);
    }
    MUST(!r->primary[0] == (r->way != REDIS_SENTINEL));
    MUST(!*r->user || *r->password || *r->password_file);
    MUST(!*r->cert == !*r->key && (r->tls || !*r->cert));
    MUST(r->db >= 0 && (r->way != REDIS_CLUSTER || !r->db));
    MUST(*r->prefix && strlen(r->prefix) <= WEIR_REDIS_MAX_PREFIX);
    MUST(r->partitions <= WEIR_REDIS_MAX_PARTITIONS);
    MUST(r->timeout_ms >= 100 && r->timeout_ms <= 600000);
    MUST(r->kue == kue && (kue || !r->vertx));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!size || size > WEIR_MAX_URL)
        return 0;
    weir_url  u = { .scheme = schemes[(uint8_t)(data[0] - '0') % N_SCHEMES] };
    bool      kue = strstr(u.scheme, "kue");
    memcpy(u.text, data + 1, size - 1);
    char *text = u.text;
    u.rest = cut_at(&text, '?');
    while (*text && u.n_options < WEIR_MAX_URL_OPTIONS) {
        char *value = cut_at(&text, '&'), *name = cut_at(&value, '=');
        if (!known(kue ? weir__kue_options : weir__redis_options, name))
            continue;
        u.option[u.n_options].name = name;
        u.option[u.n_options++].value = value;
    }

    redis_url  r;
    weir_error err = { 0 };
    if (!weir__redis_url(&u, &r, &err)) {
        check_good(&r, kue);
        return 0;
    }
    MUST(err.code == WEIR_EINVAL && err.msg[0] && strlen(err.msg) < WEIR_ERROR_MAX);
    for (const char *s = err.msg; *s; s++)
        MUST((unsigned char)*s >= 0x20 && *s != 0x7f);
    return 0;
}
