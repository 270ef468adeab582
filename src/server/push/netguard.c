/* netguard.c - see netguard.h. The tables are the IANA registries of special-purpose addresses, and
 * further addresses that clouds answer on. */
#include "server/push/netguard.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

typedef struct net {
    uint8_t     prefix[16];
    uint8_t     bits;
    const char *kind;
} net;

static const net v4_nets[] = {
    { { 0 },               8, "unspecified" },
    { { 10 },              8, "private" },
    { { 100, 64 },        10, "shared" },               /* of carriers; some clouds' metadata */
    { { 127 },             8, "loopback" },
    { { 168, 63, 129, 16 }, 32, "metadata" },           /* Azure's, in the middle of the world */
    { { 169, 254 },       16, "link-local" },           /* 169.254.169.254: metadata */
    { { 172, 16 },        12, "private" },
    { { 192, 0, 0 },      24, "reserved" },
    { { 192, 0, 2 },      24, "documentation" },
    { { 192, 88, 99 },    24, "reserved" },             /* 6to4 relays of old */
    { { 192, 168 },       16, "private" },
    { { 198, 18 },        15, "reserved" },             /* benchmarks between devices */
    { { 198, 51, 100 },   24, "documentation" },
    { { 203, 0, 113 },    24, "documentation" },
    { { 224 },             4, "multicast" },
    { { 255, 255, 255, 255 }, 32, "broadcast" },
    { { 240 },             4, "reserved" },
};

static const net v6_nets[] = {
    { { 0 },                                               128, "unspecified" },
    { { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1 },  128, "loopback" },
    { { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff },         96, "IPv4-mapped" },
    { { 0xfc },                                              7, "private" },
    { { 0xfe, 0x80 },                                       10, "link-local" },
    { { 0xfe, 0xc0 },                                       10, "private" },      /* site-local */
    { { 0xff },                                              8, "multicast" },
    { { 0x20, 0x01, 0x0d, 0xb8 },                           32, "documentation" },
    { { 0x20, 0x01, 0, 0 },                                 23, "reserved" },     /* Teredo ... */
    { { 0x20, 0x02 },                                       16, "6to4" },         /* hides IPv4 */
    { { 0x3f, 0xff },                                       20, "documentation" },
};

/* All that is given out to the world is in here, but for what the table above takes out. */
static const net v6_world = { { 0x20 }, 3, NULL };
/* An IPv4 address in its last bytes, for networks that have IPv6 alone. */
static const net v6_nat64 = { { 0, 0x64, 0xff, 0x9b }, 96, NULL };

static bool in_net(const uint8_t *addr, const net *n)
{
    size_t  whole = n->bits / 8u;
    uint8_t mask = (uint8_t)(0xff00u >> n->bits % 8u);
    return !memcmp(addr, n->prefix, whole) &&
           (!mask || (addr[whole] & mask) == (n->prefix[whole] & mask));
}

static const char *look_up(const uint8_t *addr, const net *nets, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (in_net(addr, &nets[i]))
            return nets[i].kind;
    }
    return NULL;
}

static const char *v4_not_public(const uint8_t *addr)
{
    return look_up(addr, v4_nets, sizeof v4_nets / sizeof *v4_nets);
}

static const char *v6_not_public(const uint8_t *addr)
{
    const char *kind = look_up(addr, v6_nets, sizeof v6_nets / sizeof *v6_nets);
    if (kind)
        return kind;
    if (in_net(addr, &v6_nat64))
        return v4_not_public(addr + 12);
    return in_net(addr, &v6_world) ? NULL : "reserved";
}

const char *srv_not_public(const struct sockaddr *addr)
{
    /* Copied out, since it may lie in a struct of another type. */
    if (addr->sa_family == AF_INET) {
        struct sockaddr_in in;
        memcpy(&in, addr, sizeof in);
        return v4_not_public((const uint8_t *)&in.sin_addr);
    }
    if (addr->sa_family == AF_INET6) {
        struct sockaddr_in6 in;
        memcpy(&in, addr, sizeof in);
        return v6_not_public(in.sin6_addr.s6_addr);
    }
    return "unknown";
}

static bool is_localhost(const char *host, size_t len)
{
    static const char name[] = "localhost";
    size_t            n = sizeof name - 1;
    if (len && host[len - 1] == '.')
        len--;
    return len >= n && !strncasecmp(host + len - n, name, n) &&
           (len == n || host[len - n - 1] == '.');
}

const char *srv_host_not_public(const char *host)
{
    uint8_t addr[16];
    char    inner[INET6_ADDRSTRLEN];
    size_t  len = strlen(host);
    if (is_localhost(host, len))
        return "loopback";
    if (inet_pton(AF_INET, host, addr) == 1)
        return v4_not_public(addr);
    if (*host != '[')
        return NULL;
    size_t n = strcspn(host + 1, "]%");          /* a zone is no part of the address */
    if (n >= sizeof inner)
        return "unknown";
    memcpy(inner, host + 1, n);
    inner[n] = '\0';
    return inet_pton(AF_INET6, inner, addr) == 1 ? v6_not_public(addr) : "unknown";
}
