/* test_push_targets.c - what a push target may be, and the file that keeps them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/access/file.h"
#include "server/push/push_targets.h"
#include "support/tempdir.h"

#define SECRET "0123456789abcdef"

static void check(const char *name, const char *type, const char *url, const char *field,
                  const char *part)
{
    const char     *types[] = { type, NULL };
    srv_push_target t = srv_push_defaults;
    weir_error      err = { 0 };
    t.name = name;
    t.types = (weir_texts){ types, 1 };
    t.url = url;
    t.secret = SECRET;
    weir_code rc = srv_push_check(&t, &err);
    if (!part) {
        if (rc)
            fail_msg("%s, %s, %s: %s", name, type, url, err.msg);
        return;
    }
    if (rc != WEIR_EINVAL || strcmp(err.field, field) || !strstr(err.msg, part))
        fail_msg("%s, %s, %s: %s: %s", name, type, url, err.field, rc ? err.msg : "accepted");
}

static void what_is_wrong_is_said(void **state)
{
    (void)state;
    char long_name[SRV_PUSH_MAX_NAME + 2];
    memset(long_name, 'x', sizeof long_name - 1);
    long_name[sizeof long_name - 1] = '\0';
    check("mail", "mail", "https://example.org/jobs", NULL, NULL);
    check("Mail-1_a.b", "über uns", "http://example.org:8080/a?b=c", NULL, NULL);
    check("x", "x", "http://[2001:4860:4860::8888]/", NULL, NULL);
    check("", "mail", "https://example.org", "name", "0 bytes");
    check(long_name, "mail", "https://example.org", "name", "65 bytes");
    check("a b", "mail", "https://example.org", "name", "letters");
    check("a/b", "mail", "https://example.org", "name", "letters");
    check("mail", "", "https://example.org", "types", "empty");
    check("mail", "*", "https://example.org", "types", "name the types");
    check("mail", "mail", "ftp://example.org", "url", "https://");
    check("mail", "mail", "file:///etc/passwd", "url", "https://");
    check("mail", "mail", "gopher://example.org", "url", "https://");
    check("mail", "mail", "https://me@example.org", "url", "user or password");
    check("mail", "mail", "https://me:pass@example.org", "url", "user or password");
    check("mail", "mail", "example.org", "url", "");
    check("mail", "mail", "https://", "url", "");
    check("mail", "mail", "https://a b/", "url", "");
    check("mail", "mail", "https://example.org:99999/", "url", "");
    check("mail", "mail", "https://example.org/\r\nX: y", "url", "");
}

/* Whatever way it is written. */
static void own_addresses_are_known(void **state)
{
    (void)state;
    static const struct { const char *url; bool public; } urls[] = {
        { "https://example.org/", true }, { "http://8.8.8.8/", true },
        { "http://127.0.0.1/", false }, { "http://127.1/", false }, { "http://2130706433/", false },
        { "http://0x7f.1/", false }, { "http://0177.0.0.1/", false }, { "http://0/", false },
        { "http://localhost:8080/", false }, { "http://x.localhost/", false },
        { "http://[::1]/", false }, { "http://[::ffff:127.0.0.1]/", false },
        { "http://[fe80::1%25eth0]/", false }, { "http://169.254.169.254/latest", false },
        { "http://10.0.0.1/", false }, { "http://%6cocalhost/", false },
    };
    for (size_t i = 0; i < sizeof urls / sizeof *urls; i++) {
        srv_push_target t = { .url = urls[i].url };
        weir_error      err = { 0 };
        weir_code       rc = srv_push_check_public(&t, &err);
        if (!rc != urls[i].public || (rc && !strstr(err.msg, "push-private")))
            fail_msg("%s: %s", urls[i].url, rc ? err.msg : "is let through");
    }
}

static void a_file_comes_back_as_it_was(void **state)
{
    (void)state;
    const char     *types[] = { "mail", "sms \"quoted\"", NULL };
    srv_push_target a = { .name = "a", .types = { types, 2 }, .secret = SECRET,
                          .url = "https://example.org/\xc3\xa9", .concurrency = 7,
                          .timeout_ms = 1234, .later_ms = 5678, .paused = true };
    srv_push_target b = srv_push_defaults;
    b.name = "b";
    b.types = (weir_texts){ types, 1 };
    b.url = "http://example.org";
    b.secret = "secret with \\ and \" in it";
    b.old_secret = "the one before it";
    const srv_push_target *both[] = { &a, &b };
    weir_buf               out = { 0 };
    srv_push_write(&out, both, 2);
    srv_push_target *back[SRV_PUSH_MAX_TARGETS];
    size_t           n;
    weir_error       err = { 0 };
    if (srv_push_parse(out.data, out.len, back, &n, &err))
        fail_msg("%s", err.msg);
    assert_int_equal(n, 2);
    assert_string_equal(back[0]->name, "a");
    assert_int_equal(back[0]->types.n, 2);
    assert_string_equal(back[0]->types.text[1], types[1]);
    assert_null(back[0]->types.text[2]);
    assert_string_equal(back[0]->url, a.url);
    assert_string_equal(back[0]->secret, SECRET);
    assert_int_equal(back[0]->concurrency, 7);
    assert_int_equal(back[0]->timeout_ms, 1234);
    assert_int_equal(back[0]->later_ms, 5678);
    assert_true(back[0]->paused);
    assert_string_equal(back[1]->secret, b.secret);
    assert_string_equal(back[1]->old_secret, b.old_secret);
    assert_null(back[0]->old_secret);
    assert_false(back[1]->paused);
    free(back[0]);
    free(back[1]);
    weir__buf_fini(&out);
}

#define ONE "\"types\":[\"x\"],\"url\":\"https://example.org\""

static void a_bad_file_is_refused_whole(void **state)
{
    (void)state;
    static const struct { const char *text, *part; } bad[] = {
        { "", "JSON" },
        { "[]", "object" },
        { "{}", "missing" },
        { "{\"targets\":{}}", "list" },
        { "{\"targets\":[],\"x\":1}", "unknown member" },
        { "{\"targets\":[{\"name\":\"a\"," ONE "}]}", "targets[0].secret: missing" },
        { "{\"targets\":[{\"name\":\"a\"," ONE ",\"secret\":\"short\"}]}", "at least 16" },
        { "{\"targets\":[{\"name\":\"a/b\"," ONE ",\"secret\":\"" SECRET "\"}]}",
          "targets[0].name: " },
        { "{\"targets\":[{\"name\":\"a\"," ONE ",\"secret\":\"" SECRET "\"},"
          "{\"name\":\"a\"," ONE ",\"secret\":\"" SECRET "\"}]}",
          "targets[1].name: a is given twice" },
        { "{\"targets\":[{\"name\":\"a\"," ONE ",\"secret\":\"" SECRET "\",\"timeout\":0}]}",
          "between" },
        { "{\"targets\":[{\"name\":\"a\"," ONE ",\"secret\":\"" SECRET "\",\"concurrency\":1.5}]}",
          "whole number" },
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        srv_push_target *out[SRV_PUSH_MAX_TARGETS];
        size_t           n = 99;
        weir_error       err = { 0 };
        weir_code        rc = srv_push_parse(bad[i].text, strlen(bad[i].text), out, &n, &err);
        if (!rc || n || !strstr(err.msg, bad[i].part))
            fail_msg("%s: %s", bad[i].text, rc ? err.msg : "accepted");
    }
}

static void files_are_replaced_whole(void **state)
{
    (void)state;
    char        dir[TEMPDIR_MAX], path[TEMPDIR_MAX + 32], fresh[TEMPDIR_MAX + 32];
    weir_buf    in = { 0 };
    weir_error  err;
    struct stat st;
    assert_true(tempdir_make(dir));
    snprintf(path, sizeof path, "%s/x.json", dir);
    snprintf(fresh, sizeof fresh, "%s/x.json.new", dir);
    assert_int_equal(srv_file_read(path, &in, &err), WEIR_ENOENT);
    assert_non_null(strstr(err.msg, path));
    assert_int_equal(symlink("/dev/null", fresh), 0);      /* what a crash, or a rogue, left */
    assert_int_equal(srv_file_replace(path, "one", 3, &err), WEIR_OK);
    assert_int_equal(srv_file_replace(path, "two", 3, &err), WEIR_OK);
    assert_int_equal(srv_file_read(path, &in, &err), WEIR_OK);
    assert_string_equal(in.data, "two");
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_int_not_equal(lstat(fresh, &st), 0);
    snprintf(path, sizeof path, "%s/none/x.json", dir);
    assert_int_equal(srv_file_replace(path, "one", 3, &err), WEIR_EIO);
    weir__buf_fini(&in);
    tempdir_remove(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_wrong_is_said),
        cmocka_unit_test(own_addresses_are_known),
        cmocka_unit_test(a_file_comes_back_as_it_was),
        cmocka_unit_test(a_bad_file_is_refused_whole),
        cmocka_unit_test(files_are_replaced_whole),
    };
    return cmocka_run_group_tests_name("push_targets", tests, NULL, NULL);
}
