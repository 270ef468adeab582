/* test_redis_url.c - what Redis URLs mean, and what is said of bad ones; slots, SHA-1, RESP. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "store/redis/link/link.h"
#include "store/redis/link/sha1.h"

/* Cut as weir__url_parse() does, but for %XX in options; it knows nothing of stores. */
static void cut(const char *text, weir_url *u)
{
    *u = (weir_url){ 0 };
    snprintf(u->text, sizeof u->text, "%s", text);
    u->scheme = strtok(u->text, ":");
    u->rest = strtok(NULL, "?");
    if (!u->rest)
        u->rest = "";
    for (char *name; u->n_options < WEIR_MAX_URL_OPTIONS && (name = strtok(NULL, "="));) {
        char *value = strtok(NULL, "&");
        u->option[u->n_options].name = name;
        u->option[u->n_options++].value = value ? value : "";
    }
}

static redis_url good(const char *text)
{
    weir_url   u;
    redis_url  r;
    weir_error err = { 0 };
    cut(text, &u);
    if (weir__redis_url(&u, &r, &err))
        fail_msg("%s: %s", text, err.msg);
    return r;
}

static void one_server(void **state)
{
    (void)state;
    redis_url r = good("redis://localhost");
    assert_int_equal(r.way, REDIS_ONE);
    assert_int_equal(r.n_places, 1);
    assert_string_equal(r.place[0].host, "localhost");
    assert_int_equal(r.place[0].port, 6379);
    assert_int_equal(r.db, 0);
    assert_string_equal(r.user, "");
    assert_string_equal(r.password, "");
    assert_string_equal(r.prefix, "weir");
    assert_int_equal(r.partitions, 0);
    assert_false(r.kue || r.vertx || r.allow_eviction);
    assert_int_equal(r.timeout_ms, 5000);

    r = good("redis://10.0.0.7:7000/3?prefix=shop&partitions=16&timeout=250ms&allow-eviction=1");
    assert_string_equal(r.place[0].host, "10.0.0.7");
    assert_int_equal(r.place[0].port, 7000);
    assert_int_equal(r.db, 3);
    assert_string_equal(r.prefix, "shop");
    assert_int_equal(r.partitions, 16);
    assert_true(r.allow_eviction);
    assert_int_equal(r.timeout_ms, 250);

    r = good("redis://[::1]:7000/");
    assert_string_equal(r.place[0].host, "::1");
    assert_int_equal(r.place[0].port, 7000);
    r = good("redis://[fe80::1%25eth0]");
    assert_string_equal(r.place[0].host, "fe80::1%25eth0");
    assert_int_equal(r.place[0].port, 6379);
    r = good("rediss://h?cacert=/ca.pem&cadir=/ca&cert=/c.pem&key=/k.pem&servername=redis.example");
    assert_true(r.tls);
    assert_string_equal(r.cacert, "/ca.pem");
    assert_string_equal(r.cadir, "/ca");
    assert_string_equal(r.cert, "/c.pem");
    assert_string_equal(r.key, "/k.pem");
    assert_string_equal(r.servername, "redis.example");
    r = good("redis://ann@h?password-file=/p&replicas=2");
    assert_false(r.tls);
    assert_string_equal(r.user, "ann");
    assert_string_equal(r.password_file, "/p");
    assert_int_equal(r.replicas, 2);
    r = good("redis://h?cluster=0&allow-eviction=0");
    assert_int_equal(r.way, REDIS_ONE);
    assert_false(r.allow_eviction);
}

static void users_and_passwords(void **state)
{
    (void)state;
    redis_url r = good("redis://ann:secret@h:1");
    assert_string_equal(r.user, "ann");
    assert_string_equal(r.password, "secret");
    r = good("redis://:p%40%2f%3aw@h");
    assert_string_equal(r.user, "");
    assert_string_equal(r.password, "p@/:w");
    r = good("redis://ann:a:b@c@h");
    assert_string_equal(r.password, "a:b@c");
    assert_string_equal(r.place[0].host, "h");
    r = good("redis+unix://ann:secret@/run/redis.sock");
    assert_string_equal(r.password, "secret");
    assert_string_equal(r.place[0].host, "/run/redis.sock");
}

static void sockets_clusters_and_sentinels(void **state)
{
    (void)state;
    redis_url r = good("redis+unix:///run/a%20b/redis.sock?prefix=x");
    assert_int_equal(r.way, REDIS_UNIX);
    assert_string_equal(r.place[0].host, "/run/a b/redis.sock");
    assert_int_equal(r.place[0].port, 0);
    assert_string_equal(r.prefix, "x");

    r = good("redis://a:1,b,c:3?cluster=1&partitions=256");
    assert_int_equal(r.way, REDIS_CLUSTER);
    assert_int_equal(r.n_places, 3);
    assert_string_equal(r.place[1].host, "b");
    assert_int_equal(r.place[1].port, 6379);
    assert_int_equal(r.place[2].port, 3);
    assert_int_equal(r.partitions, 256);

    r = good("redis+sentinel://s1,s2:26380/my-master/2");
    assert_int_equal(r.way, REDIS_SENTINEL);
    assert_int_equal(r.n_places, 2);
    assert_int_equal(r.place[0].port, 26379);
    assert_int_equal(r.place[1].port, 26380);
    assert_string_equal(r.primary, "my-master");
    assert_int_equal(r.db, 2);
    assert_string_equal(good("redis+sentinel://s/my%2Fmaster").primary, "my/master");
}

static void kue(void **state)
{
    (void)state;
    redis_url r = good("redis+kue://h/1");
    assert_true(r.kue);
    assert_false(r.vertx);
    assert_int_equal(r.way, REDIS_ONE);
    assert_string_equal(r.prefix, "q");
    assert_int_equal(r.db, 1);
    r = good("redis+kue+unix:///s?profile=vertx");
    assert_true(r.kue && r.vertx);
    assert_int_equal(r.way, REDIS_UNIX);
    assert_string_equal(r.prefix, "vertx_kue");
    r = good("redis+kue+sentinel://s/m?profile=kue&prefix={q}");
    assert_true(r.kue);
    assert_int_equal(r.way, REDIS_SENTINEL);
    assert_string_equal(r.prefix, "{q}");
}

#define LONG_50 "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
#define LONG_300 LONG_50 LONG_50 LONG_50 LONG_50 LONG_50 LONG_50

static void bad_ones(void **state)
{
    (void)state;
    static const struct {
        const char *url, *msg;
    } cases[] = {
        { "redis:h", "\"//\" must follow the scheme, such as redis://localhost" },
        { "redis:/h", "\"//\" must follow the scheme, such as redis://localhost" },
        { "redis://", "\"\": a host must have 1 to 255 bytes" },
        { "redis://:1", "\":1\": a host must have 1 to 255 bytes" },
        { "redis://" LONG_300,
          "\"" LONG_50 "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\": a host must have 1 to 255 bytes" },
        { "redis://a b", "\"a b\" is not a host" },
        { "redis://[::1", "\"[::1\": \"]\" is missing" },
        { "redis://[::1]7", "host ::1: the port must be 1 to 65535" },
        { "redis://h:", "host h: the port must be 1 to 65535" },
        { "redis://h:0", "host h: the port must be 1 to 65535" },
        { "redis://h:65536", "host h: the port must be 1 to 65535" },
        { "redis://h:-1", "host h: the port must be 1 to 65535" },
        { "redis://::1", "\"::1\": a host must have 1 to 255 bytes" },
        { "redis://h/x", "\"/x\": the database must be a number from 0" },
        { "redis://h/-1", "\"/-1\": the database must be a number from 0" },
        { "redis://h/1/", "\"/1/\": the database must be a number from 0" },
        { "redis://h/99999999999999999999",
          "\"/99999999999999999999\": the database must be a number from 0" },
        { "redis://ann@h", "the part before \"@\" must be USER:PASSWORD or :PASSWORD, or USER "
                           "with password-file=" },
        { "redis://ann:@h", "the part before \"@\" must be USER:PASSWORD or :PASSWORD" },
        { "redis://@h", "the part before \"@\" must be USER:PASSWORD or :PASSWORD" },
        { "redis://ann:%@h", "the password must be at most 255 bytes, with %XX (two hex digits, "
                             "not 00) for special characters" },
        { "redis://ann:%4@h", "the password must be at most 255 bytes, with %XX (two hex digits, "
                              "not 00) for special characters" },
        { "redis://ann:a%00b@h", "the password must be at most 255 bytes, with %XX (two hex "
                                 "digits, not 00) for special characters" },
        { "redis://" LONG_50 LONG_50 LONG_50 ":x@h",
          "the user must be at most 127 bytes, with %XX (two hex digits, not 00) for special "
          "characters" },
        { "redis://ann:" LONG_300 "@h", "the password must be at most 255 bytes, with %XX (two hex "
                                        "digits, not 00) for special characters" },
        { "redis://ann:a/b@h", "\"/\" before \"@\": in a password it is written %2F" },
        { "redis://a,b", "several hosts: add ?cluster=1 for a cluster, or ask sentinels with "
                         "redis+sentinel" },
        { "redis+kue://a,b", "several hosts: redis+kue has one, or several sentinels "
                             "(redis+kue+sentinel)" },
        { "redis://a,,b?cluster=1", "\"\": a host must have 1 to 255 bytes" },
        { "redis://a/1?cluster=1", "a cluster has database 0 alone, not 1" },
        { "redis+sentinel://a/m?cluster=1", "cluster=1 goes with redis:// or rediss://, not with "
                                            "redis+sentinel" },
        { "redis+unix:///s?cluster=1", "cluster=1 goes with redis:// or rediss://, not with "
                                       "redis+unix" },
        { "redis+unix://s", "the path of the socket must be absolute: redis+unix:///PATH" },
        { "redis+unix:///", "the path of the socket must be absolute: redis+unix:///PATH" },
        { "redis+kue+unix://s", "the path of the socket must be absolute: redis+kue+unix:///PATH" },
        { "redis+unix:///" LONG_50 LONG_50 "xxxxxxxx",
          "the path of the socket must be at most 107 bytes, with %XX (two hex digits, not 00) "
          "for special characters" },
        { "redis+sentinel://a", "the name of the primary is missing or too long: "
                                "redis+sentinel://HOST:PORT,HOST:PORT/NAME" },
        { "redis+sentinel://a//1", "the name of the primary is missing or too long: "
                                   "redis+sentinel://HOST:PORT,HOST:PORT/NAME" },
        { "redis+kue+sentinel://a", "the name of the primary is missing or too long: "
                                    "redis+kue+sentinel://HOST:PORT,HOST:PORT/NAME" },
        { "redis+sentinel://a/m/x", "\"/x\": the database must be a number from 0" },
        { "redis://h?prefix=", "prefix=, must be 1 to 64 visible ASCII characters without braces" },
        { "redis://h?prefix={a}",
          "prefix={a}, must be 1 to 64 visible ASCII characters without braces" },
        { "redis+kue://h?prefix=a b", "prefix=a b, must be 1 to 64 visible ASCII characters" },
        { "redis://h?prefix=" LONG_50 "xxxxxxxxxxxxxxx",
          "prefix=" LONG_50 "xxxxxxxxxxxxxxx, must be 1 to 64 visible ASCII characters without "
          "braces" },
        { "redis://h?partitions=0", "partitions=0, must be 1 to 256" },
        { "redis://h?partitions=257", "partitions=257, must be 1 to 256" },
        { "redis://h?partitions=1x", "partitions=1x, must be 1 to 256" },
        { "redis://h?timeout=1", "timeout=1, must be between 100ms and 10m, such as 5s" },
        { "redis+kue://h?promotion=9ms",
          "promotion=9ms, must be between 10ms and 10m, such as 200ms" },
        { "redis://h?timeout=1h", "timeout=1h, must be between 100ms and 10m, such as 5s" },
        { "redis://h?timeout=soon", "timeout=soon, must be between 100ms and 10m, such as 5s" },
        { "redis://h?cluster=yes", "cluster=yes, must be 0 or 1" },
        { "redis://h?allow-eviction=2", "allow-eviction=2, must be 0 or 1" },
        { "redis://ann:x@h?password-file=/p", "a password and password-file=: leave one of them "
                                              "out" },
        { "redis://h?cacert=/ca.pem", "cacert= needs TLS: begin with rediss" },
        { "rediss://h?cert=/c.pem", "cert= and key= go together" },
        { "rediss://h?servername=", "servername=, must be 1 to 255 bytes" },
        { "redis://h?replicas=65", "replicas=65, must be 0 to 64" },
        { "redis://h?replicas=one", "replicas=one, must be 0 to 64" },
        { "redis+kue://h?profile=bull", "profile=bull, must be kue or vertx" },
        { "redisx://h", "redisx is no scheme of Redis" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        weir_url   u;
        redis_url  r;
        weir_error err = { 0 };
        cut(cases[i].url, &u);
        if (weir__redis_url(&u, &r, &err) != WEIR_EINVAL)
            fail_msg("%s was taken", cases[i].url);
        assert_memory_equal(err.msg, "store URL: ", 11);
        assert_string_equal(err.msg + 11, cases[i].msg);
    }
}

static void not_more_hosts_than_fit(void **state)
{
    (void)state;
    char text[1024] = "redis://h";
    for (int i = 1; i < WEIR_REDIS_MAX_NODES; i++)
        strcat(text, ",h");
    size_t end = strlen(text);
    strcpy(text + end, "?cluster=1");
    assert_int_equal(good(text).n_places, WEIR_REDIS_MAX_NODES);
    strcpy(text + end, ",h?cluster=1");
    weir_url   u;
    redis_url  r;
    weir_error err;
    cut(text, &u);
    assert_int_equal(weir__redis_url(&u, &r, &err), WEIR_EINVAL);
    assert_string_equal(err.msg, "store URL: more than 64 hosts");
}

static void no_password_in_an_error(void **state)
{
    (void)state;
    static const char *const urls[] = {
        "redis://ann:hush@",      "redis://ann:hush@h:x",     "redis://:hush@h/x",
        "redis://ann:hush%@h",    "redis://ann:hush@a b",     "redis://ann:hush@a,b",
        "redis+unix://a:hush@s",  "redis://a:hu/sh@h",        "redis+sentinel://:hush@s",
        "redis://a:hush@h/1?cluster=1", "redis://a:hush",
    };
    for (size_t i = 0; i < sizeof urls / sizeof *urls; i++) {
        weir_url   u;
        redis_url  r;
        weir_error err;
        cut(urls[i], &u);
        assert_int_equal(weir__redis_url(&u, &r, &err), WEIR_EINVAL);
        assert_null(strstr(err.msg, "hush"));
    }
}

/* ---- slots, SHA-1, RESP ---- */

static void slots_are_those_of_redis(void **state)
{
    (void)state;
    static const struct {
        const char *key;
        uint32_t    slot;
    } cases[] = {       /* as CLUSTER KEYSLOT says */
        { "123456789", 12739 }, { "foo", 12182 },         { "{foo}:x", 12182 },
        { "", 0 },              { "a{foo}{bar}", 12182 }, { "{}foo", 9500 },
        { "{foo", 13308 },      { "foo{{bar}}", 4015 },   { "{weir:0}:jobs", 14230 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(weir__redis_slot(cases[i].key, strlen(cases[i].key)), cases[i].slot);
}

static void sha1_is_sha1(void **state)
{
    (void)state;
    char text[130], sha[41];
    weir__sha1_hex("", 0, sha);
    assert_string_equal(sha, "da39a3ee5e6b4b0d3255bfef95601890afd80709");
    weir__sha1_hex("abc", 3, sha);
    assert_string_equal(sha, "a9993e364706816aba3e25717850c26c9cd0d89d");
    memset(text, 'a', sizeof text);
    /* around the ends of a block, where the padding changes */
    static const struct {
        size_t      len;
        const char *sha;
    } cases[] = {
        { 55, "c1c8bbdc22796e28c0e15163d20899b65621d65a" },
        { 56, "c2db330f6083854c99d4b5bfb6e8f29f201be699" },
        { 63, "03f09f5b158a7a8cdad920bddc29b81c18a551f5" },
        { 64, "0098ba824b5c16427bd7a1122a5a442a25ec644d" },
        { 65, "11655326c708d70319be2610e8a57d9a5b959d3b" },
        { 119, "ee971065aaa017e0632a8ca6c77bb3bf8b1dfc56" },
        { 120, "f34c1488385346a55709ba056ddd08280dd4c6d6" },
        { 128, "ad5b3fdbcb526778c2839d2f151ea753995e26a0" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        weir__sha1_hex(text, cases[i].len, sha);
        assert_string_equal(sha, cases[i].sha);
    }
    redis_library l = { .label = "x", .source = "abc", .len = 3 };
    weir__library_init(&l);
    assert_string_equal(l.name, "weir_x_a9993e364706");
    assert_string_equal(l.head, "#!lua name=weir_x_a9993e364706\n"
                                "local NAME = 'weir_x_a9993e364706'\n");
}

static void commands_are_resp(void **state)
{
    (void)state;
    redis_call c = { 0 };
    weir__resp_array(&c.command, 5);
    weir__resp_text(&c.command, "SET");
    weir__resp_bytes(&c.command, "a\0b", 3);
    weir__resp_int(&c.command, 0);
    weir__resp_int(&c.command, INT64_MIN);
    weir__resp_int(&c.command, INT64_MAX);
    static const char expected[] = "*5\r\n$3\r\nSET\r\n$3\r\na\0b\r\n$1\r\n0\r\n"
                                   "$20\r\n-9223372036854775808\r\n$19\r\n9223372036854775807\r\n";
    assert_false(c.command.failed);
    assert_int_equal(c.command.len, sizeof expected - 1);
    assert_memory_equal(c.command.data, expected, sizeof expected - 1);
    weir__call_reset(&c);
    assert_int_equal(c.command.len, 0);
    weir__call_fini(&c);
    assert_null(c.command.data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_server),
        cmocka_unit_test(users_and_passwords),
        cmocka_unit_test(sockets_clusters_and_sentinels),
        cmocka_unit_test(kue),
        cmocka_unit_test(bad_ones),
        cmocka_unit_test(not_more_hosts_than_fit),
        cmocka_unit_test(no_password_in_an_error),
        cmocka_unit_test(slots_are_those_of_redis),
        cmocka_unit_test(sha1_is_sha1),
        cmocka_unit_test(commands_are_resp),
    };
    return cmocka_run_group_tests_name("redis_url", tests, NULL, NULL);
}
