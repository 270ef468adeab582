/* test_netguard.c - which addresses are out in the world, and which are not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>

#include "server/push/netguard.h"

/* The address, and its kind (NULL: public). The first and last of each range, and their outer
 * neighbours. */
static const struct { const char *addr, *kind; } v4[] = {
    { "0.0.0.0", "unspecified" }, { "0.255.255.255", "unspecified" }, { "1.0.0.0", NULL },
    { "1.1.1.1", NULL }, { "8.8.8.8", NULL }, { "9.255.255.255", NULL },
    { "10.0.0.0", "private" }, { "10.255.255.255", "private" }, { "11.0.0.0", NULL },
    { "100.63.255.255", NULL }, { "100.64.0.0", "shared" }, { "100.100.100.200", "shared" },
    { "100.127.255.255", "shared" }, { "100.128.0.0", NULL },
    { "126.255.255.255", NULL }, { "127.0.0.0", "loopback" }, { "127.0.0.1", "loopback" },
    { "127.255.255.255", "loopback" }, { "128.0.0.0", NULL },
    { "168.63.129.15", NULL }, { "168.63.129.16", "metadata" }, { "168.63.129.17", NULL },
    { "169.253.255.255", NULL }, { "169.254.0.0", "link-local" },
    { "169.254.169.254", "link-local" }, { "169.254.255.255", "link-local" },
    { "169.255.0.0", NULL },
    { "172.15.255.255", NULL }, { "172.16.0.0", "private" }, { "172.31.255.255", "private" },
    { "172.32.0.0", NULL },
    { "191.255.255.255", NULL }, { "192.0.0.0", "reserved" }, { "192.0.0.192", "reserved" },
    { "192.0.1.0", NULL }, { "192.0.2.1", "documentation" }, { "192.0.3.0", NULL },
    { "192.88.98.255", NULL }, { "192.88.99.1", "reserved" }, { "192.88.100.0", NULL },
    { "192.167.255.255", NULL }, { "192.168.0.0", "private" }, { "192.168.255.255", "private" },
    { "192.169.0.0", NULL },
    { "198.17.255.255", NULL }, { "198.18.0.0", "reserved" }, { "198.19.255.255", "reserved" },
    { "198.20.0.0", NULL }, { "198.51.100.7", "documentation" }, { "198.51.101.0", NULL },
    { "203.0.112.255", NULL }, { "203.0.113.7", "documentation" }, { "203.0.114.0", NULL },
    { "223.255.255.255", NULL }, { "224.0.0.0", "multicast" }, { "239.255.255.255", "multicast" },
    { "240.0.0.0", "reserved" }, { "255.255.255.254", "reserved" },
    { "255.255.255.255", "broadcast" },
};

static const struct { const char *addr, *kind; } v6[] = {
    { "::", "unspecified" }, { "::1", "loopback" }, { "::2", "reserved" },
    { "::7f00:1", "reserved" }, { "::8.8.8.8", "reserved" },
    { "::ffff:127.0.0.1", "IPv4-mapped" }, { "::ffff:10.0.0.1", "IPv4-mapped" },
    { "::ffff:8.8.8.8", "IPv4-mapped" }, { "::fffe:8.8.8.8", "reserved" },
    { "64:ff9b::127.0.0.1", "loopback" }, { "64:ff9b::169.254.169.254", "link-local" },
    { "64:ff9b::10.1.2.3", "private" }, { "64:ff9b::8.8.8.8", NULL },
    { "64:ff9b:1::8.8.8.8", "reserved" }, { "100::1", "reserved" },
    { "1fff:ffff::1", "reserved" }, { "2000::1", NULL },
    { "2001::1", "reserved" }, { "2001:0:7f00:1::", "reserved" }, { "2001:1ff::1", "reserved" },
    { "2001:200::1", NULL }, { "2001:4860:4860::8888", NULL },
    { "2001:db7:ffff::1", NULL }, { "2001:db8::1", "documentation" }, { "2001:db9::1", NULL },
    { "2002:7f00:1::", "6to4" }, { "2002:808:808::1", "6to4" }, { "2003::1", NULL },
    { "2606:4700:4700::1111", NULL }, { "2a00:1450::1", NULL }, { "3ffe::1", NULL },
    { "3fff::1", "documentation" }, { "3fff:1000::1", NULL },
    { "4000::1", "reserved" }, { "5f00::1", "reserved" },
    { "fbff::1", "reserved" }, { "fc00::1", "private" }, { "fd00:ec2::254", "private" },
    { "fdff:ffff::1", "private" }, { "fe00::1", "reserved" },
    { "fe80::1", "link-local" }, { "febf::1", "link-local" }, { "fec0::1", "private" },
    { "feff::1", "private" }, { "ff02::1", "multicast" },
    { "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "multicast" },
};

static void same_kind(const char *what, const char *got, const char *want)
{
    if (!got != !want || (got && strcmp(got, want) != 0))
        fail_msg("%s is %s, not %s", what, got ? got : "public", want ? want : "public");
}

static void every_v4_range_ends_where_it_should(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof v4 / sizeof *v4; i++) {
        struct sockaddr_in a = { .sin_family = AF_INET };
        assert_int_equal(inet_pton(AF_INET, v4[i].addr, &a.sin_addr), 1);
        same_kind(v4[i].addr, srv_not_public((struct sockaddr *)&a), v4[i].kind);
        same_kind(v4[i].addr, srv_host_not_public(v4[i].addr), v4[i].kind);
    }
}

static void every_v6_range_ends_where_it_should(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof v6 / sizeof *v6; i++) {
        struct sockaddr_in6 a = { .sin6_family = AF_INET6 };
        char                host[64];
        assert_int_equal(inet_pton(AF_INET6, v6[i].addr, &a.sin6_addr), 1);
        same_kind(v6[i].addr, srv_not_public((struct sockaddr *)&a), v6[i].kind);
        snprintf(host, sizeof host, "[%s]", v6[i].addr);
        same_kind(host, srv_host_not_public(host), v6[i].kind);
        snprintf(host, sizeof host, "[%s%%25eth0]", v6[i].addr);
        same_kind(host, srv_host_not_public(host), v6[i].kind);
    }
}

/* No IPv4 address gets through in the clothes of IPv6 if it would not get through by itself. */
static void an_inner_v4_is_looked_at(void **state)
{
    (void)state;
    static const uint8_t clothes[][12] = {
        { 0 },                                              /* ::a.b.c.d */
        { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff },       /* ::ffff:a.b.c.d */
        { 0, 0x64, 0xff, 0x9b },                            /* 64:ff9b::a.b.c.d */
    };
    for (size_t i = 0; i < sizeof v4 / sizeof *v4; i++) {
        for (size_t k = 0; v4[i].kind && k < sizeof clothes / sizeof *clothes; k++) {
            struct sockaddr_in6 a = { .sin6_family = AF_INET6 };
            memcpy(&a.sin6_addr, clothes[k], 12);
            inet_pton(AF_INET, v4[i].addr, (char *)&a.sin6_addr + 12);
            assert_non_null(srv_not_public((struct sockaddr *)&a));
        }
    }
}

static void names_of_this_machine_are_known(void **state)
{
    (void)state;
    static const char *const own[] = { "localhost", "LOCALHOST", "localhost.", "a.localhost",
                                       "a.b.LocalHost.", "[::1]", "127.0.0.1" };
    static const char *const others[] = { "example.org", "localhost.example.org", "mylocalhost",
                                          "local", "host", "a", "" };
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        same_kind(own[i], srv_host_not_public(own[i]), "loopback");
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        same_kind(others[i], srv_host_not_public(others[i]), NULL);
}

static void what_is_no_address_is_refused(void **state)
{
    (void)state;
    struct sockaddr_un file = { .sun_family = AF_UNIX };
    struct sockaddr    none = { .sa_family = AF_UNSPEC };
    same_kind("a file", srv_not_public((struct sockaddr *)&file), "unknown");
    same_kind("nothing", srv_not_public(&none), "unknown");
    same_kind("[", srv_host_not_public("["), "unknown");
    same_kind("[]", srv_host_not_public("[]"), "unknown");
    same_kind("[x]", srv_host_not_public("[x]"), "unknown");
    same_kind("long", srv_host_not_public("[1:2:3:4:5:6:7:8:9:1:2:3:4:5:6:7:8:9:1:2:3:4:5:6:7]"),
              "unknown");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_v4_range_ends_where_it_should),
        cmocka_unit_test(every_v6_range_ends_where_it_should),
        cmocka_unit_test(an_inner_v4_is_looked_at),
        cmocka_unit_test(names_of_this_machine_are_known),
        cmocka_unit_test(what_is_no_address_is_refused),
    };
    return cmocka_run_group_tests_name("netguard", tests, NULL, NULL);
}
