/* test_tokens.c - the file of tokens: added, found, taken away, and what is wrong with one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "support/web_tokens.h"

static srv_caller who(const char *name, const char *roles, const char *type)
{
    srv_caller c = { 0 };
    assert_true(srv_roles_parse(roles, &c.roles));
    snprintf(c.name, sizeof c.name, "%s", name);
    snprintf(c.types, sizeof c.types, "%s", type);
    return c;
}

static void add(const char *name, const char *roles, const char *type, char *text)
{
    weir_error err;
    srv_caller c = who(name, roles, type);
    if (srv_tokens_add(guard.file, &c, 1700000000000, text, &err))
        fail_msg("%s", err.msg);
}

static void roles(void **state)
{
    (void)state;
    static const struct { const char *text; unsigned bits; const char *back; } cases[] = {
        { "read", WEIR_ROLE_READ, "read" },
        { "produce", WEIR_ROLE_PRODUCE | WEIR_ROLE_READ, "produce" },
        { "work", WEIR_ROLE_WORK | WEIR_ROLE_READ, "work" },
        { "admin", WEIR_ROLE_ALL, "admin" },
        { "produce,work", WEIR_ROLE_PRODUCE | WEIR_ROLE_WORK | WEIR_ROLE_READ, "work,produce" },
        { "read,admin", WEIR_ROLE_ALL, "admin" },
    };
    char     text[64];
    unsigned bits;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_true(srv_roles_parse(cases[i].text, &bits));
        assert_int_equal(bits, cases[i].bits);
        assert_string_equal(srv_roles_text(bits, text, sizeof text), cases[i].back);
    }
    static const char *const wrong[] = { "", "root", "read,", ",read", "read, work", "Read" };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_false(srv_roles_parse(wrong[i], &bits));

    srv_caller c = who("a", "produce", "mail");
    assert_true(srv_caller_may(&c, WEIR_ROLE_PRODUCE, "mail"));
    assert_true(srv_caller_may(&c, WEIR_ROLE_READ | WEIR_ROLE_ADMIN, "mail"));
    assert_false(srv_caller_may(&c, WEIR_ROLE_PRODUCE, "sms"));
    assert_false(srv_caller_may(&c, WEIR_ROLE_PRODUCE, NULL));
    assert_false(srv_caller_may(&c, WEIR_ROLE_WORK, "mail"));
    c = who("a", "admin", "");
    assert_true(srv_caller_may(&c, WEIR_ROLE_WORK, NULL));
}

static void a_life(void **state)
{
    (void)state;
    weir_error  err;
    srv_tokens  t;
    struct stat st;
    char        one[SRV_TOKEN_TEXT], two[SRV_TOKEN_TEXT];

    assert_int_equal(srv_tokens_read(&t, guard.file, &err), WEIR_OK);
    assert_int_equal(t.n, 0);
    assert_null(srv_tokens_find(&t, "wtk_"));
    add("ci", "produce", "mail \"quoted\"", one);
    add("boss", "admin", "", two);
    assert_string_not_equal(one, two);
    assert_int_equal(strlen(one), SRV_TOKEN_TEXT - 1);
    assert_int_equal(strncmp(one, "wtk_", 4), 0);
    assert_int_equal(strspn(one + 4, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                     "0123456789-_"), 43);

    assert_int_equal(stat(guard.file, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_int_equal(srv_tokens_read(&t, guard.file, &err), WEIR_OK);
    assert_int_equal(t.n, 2);
    const srv_token *found = srv_tokens_find(&t, one);
    assert_non_null(found);
    assert_string_equal(found->who.name, "ci");
    assert_string_equal(found->who.types, "mail \"quoted\"");
    assert_int_equal(found->who.roles, WEIR_ROLE_PRODUCE | WEIR_ROLE_READ);
    assert_true(found->created_at == 1700000000000);
    assert_int_equal(srv_tokens_find(&t, two)->who.roles, WEIR_ROLE_ALL);
    one[10] = one[10] == 'x' ? 'y' : 'x';
    assert_null(srv_tokens_find(&t, one));
    two[SRV_TOKEN_TEXT - 2] = 0;
    assert_null(srv_tokens_find(&t, two));
    srv_tokens_fini(&t);

    srv_caller again = who("ci", "read", "");
    assert_int_equal(srv_tokens_add(guard.file, &again, 0, one, &err), WEIR_ESTATE);
    assert_string_equal(one, "");
    assert_int_equal(srv_tokens_remove(guard.file, "nobody", &err), WEIR_ENOENT);
    assert_int_equal(srv_tokens_remove(guard.file, "ci", &err), WEIR_OK);
    assert_int_equal(srv_tokens_read(&t, guard.file, &err), WEIR_OK);
    assert_int_equal(t.n, 1);
    assert_string_equal(t.token[0].who.name, "boss");
    srv_tokens_fini(&t);
    assert_int_equal(srv_tokens_remove(guard.file, "boss", &err), WEIR_OK);
    assert_int_equal(srv_tokens_read(&t, guard.file, &err), WEIR_OK);
    assert_int_equal(t.n, 0);
}

static void several_types(void **state)
{
    (void)state;
    srv_caller c = who("a", "work", "mail");
    char       text[SRV_TOKEN_TEXT], long_name[WEIR_MAX_TYPE + 1];
    weir_error err;
    srv_tokens t;
    assert_string_equal(srv_caller_only_type(&c), "mail");
    assert_true(srv_caller_add_type(&c, "sms"));
    assert_null(srv_caller_only_type(&c));
    assert_true(srv_caller_may(&c, WEIR_ROLE_WORK, "mail"));
    assert_true(srv_caller_may(&c, WEIR_ROLE_WORK, "sms"));
    assert_false(srv_caller_may(&c, WEIR_ROLE_WORK, "mails"));
    assert_false(srv_caller_may(&c, WEIR_ROLE_WORK, NULL));
    assert_string_equal(srv_caller_types_text(&c, text, sizeof text), "mail, sms");
    assert_int_equal(srv_tokens_add(guard.file, &c, 1, text, &err), WEIR_OK);
    assert_int_equal(srv_tokens_read(&t, guard.file, &err), WEIR_OK);
    assert_memory_equal(t.token[0].who.types, "mail\0sms\0", 10);
    srv_tokens_fini(&t);
    assert_false(srv_caller_add_type(&c, ""));
    for (int i = 2; i < SRV_MAX_TOKEN_TYPES; i++)
        assert_true(srv_caller_add_type(&c, "x"));
    assert_false(srv_caller_add_type(&c, "x"));
    c = who("a", "work", "");
    memset(long_name, 'x', sizeof long_name);
    long_name[WEIR_MAX_TYPE] = 0;
    int n = 0;
    while (srv_caller_add_type(&c, long_name))
        n++;
    assert_int_equal(n, SRV_TYPES_TEXT / (WEIR_MAX_TYPE + 1));
}

static void rotation(void **state)
{
    (void)state;
    char       first[SRV_TOKEN_TEXT], second[SRV_TOKEN_TEXT], third[SRV_TOKEN_TEXT];
    weir_error err;
    srv_tokens t;
    add("other", "read", "", third);
    add("ci", "produce", "mail", first);
    assert_int_equal(srv_tokens_rotate(guard.file, "nobody", 5, 9, 0, second, &err), WEIR_ENOENT);
    assert_int_equal(srv_tokens_rotate(guard.file, "ci", 5, 9, 100, second, &err), WEIR_OK);
    assert_int_equal(srv_tokens_read(&t, guard.file, &err), WEIR_OK);
    assert_int_equal(t.n, 3);
    assert_true(srv_tokens_find(&t, first)->who.expires_at == 9);
    const srv_token *fresh = srv_tokens_find(&t, second);
    assert_true(fresh->who.expires_at == 100 && fresh->created_at == 5);
    assert_int_equal(fresh->who.roles, WEIR_ROLE_PRODUCE | WEIR_ROLE_READ);
    assert_string_equal(fresh->who.types, "mail");
    srv_tokens_fini(&t);
    /* once more: the oldest is gone, the second ends no later than it would have */
    assert_int_equal(srv_tokens_rotate(guard.file, "ci", 6, 500, SRV_NEVER_EXPIRES, third, &err),
                     WEIR_OK);
    assert_int_equal(srv_tokens_read(&t, guard.file, &err), WEIR_OK);
    assert_int_equal(t.n, 3);
    assert_null(srv_tokens_find(&t, first));
    assert_true(srv_tokens_find(&t, second)->who.expires_at == 100);
    assert_true(srv_tokens_find(&t, third)->who.expires_at == 0);
    srv_tokens_fini(&t);
    assert_int_equal(srv_tokens_remove(guard.file, "ci", &err), WEIR_OK);
    assert_int_equal(srv_tokens_read(&t, guard.file, &err), WEIR_OK);
    assert_int_equal(t.n, 1);
    srv_tokens_fini(&t);
    srv_caller late = who("late", "read", "");
    late.expires_at = 7;
    assert_int_equal(srv_tokens_add(guard.file, &late, 7, third, &err), WEIR_EINVAL);
}

static void write_file(const char *text, mode_t mode)
{
    FILE *out = fopen(guard.file, "w");
    fputs(text, out);
    fclose(out);
    chmod(guard.file, mode);
}

static int64_t expiry_after_rotation(int64_t now, int64_t expires_at)
{
    char       text[SRV_TOKEN_TEXT];
    weir_error err;
    srv_tokens t;
    assert_int_equal(srv_tokens_rotate(guard.file, "ci", now, now, expires_at, text, &err),
                     WEIR_OK);
    assert_int_equal(srv_tokens_read(&t, guard.file, &err), WEIR_OK);
    int64_t at = srv_tokens_find(&t, text)->who.expires_at;
    srv_tokens_fini(&t);
    return at;
}

static void rotation_keeps_how_long_a_token_is_valid(void **state)
{
    (void)state;
    char       text[SRV_TOKEN_TEXT];
    weir_error err;
    srv_caller c = who("ci", "read", "");
    c.expires_at = 1100;
    assert_int_equal(srv_tokens_add(guard.file, &c, 1000, text, &err), WEIR_OK);
    assert_true(expiry_after_rotation(1050, 0) == 1150);
    assert_true(expiry_after_rotation(1060, 0) == 1160);
    assert_true(expiry_after_rotation(2000, 0) == 2100);        /* it has expired meanwhile */
    assert_true(expiry_after_rotation(2010, 2050) == 2050);
    assert_true(expiry_after_rotation(2020, 0) == 2060);
    assert_true(expiry_after_rotation(2030, SRV_NEVER_EXPIRES) == 0);
    assert_true(expiry_after_rotation(2040, 0) == 0);
}

/* Somebody has written the file by hand. */
static void rotation_of_a_token_of_unknown_age(void **state)
{
    (void)state;
    static const char file[] =
        "{\"tokens\":[{\"name\":\"ci\",\"roles\":[\"read\"],\"expires_at\":5000,\"sha256\":"
        "\"00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff\"}]}";
    write_file(file, 0600);
    assert_true(expiry_after_rotation(1000, 0) == 5000);
}

static void uses_are_kept(void **state)
{
    (void)state;
    char       one[SRV_TOKEN_TEXT], two[SRV_TOKEN_TEXT];
    weir_error err;
    srv_tokens t;
    add("one", "read", "", one);
    add("two", "read", "", two);
    assert_int_equal(srv_tokens_read(&t, guard.file, &err), WEIR_OK);
    srv_tokens_read_uses(&t, guard.file);                     /* no file yet */
    t.token[1].used_at = 1700000000000;
    assert_int_equal(srv_tokens_write_uses(&t, guard.file, &err), WEIR_OK);
    srv_tokens_fini(&t);
    assert_int_equal(srv_tokens_remove(guard.file, "one", &err), WEIR_OK);
    assert_int_equal(srv_tokens_read(&t, guard.file, &err), WEIR_OK);
    srv_tokens_read_uses(&t, guard.file);
    assert_true(t.token[0].used_at == 1700000000000);
    t.token[0].used_at = 1700000000001;
    srv_tokens_read_uses(&t, guard.file);                     /* the later one stays */
    assert_true(t.token[0].used_at == 1700000000001);
    srv_tokens_fini(&t);
}

static void the_secret_is_not_in_the_file(void **state)
{
    (void)state;
    char token[SRV_TOKEN_TEXT], text[2000];
    add("ci", "read", "", token);
    FILE  *in = fopen(guard.file, "r");
    size_t n = fread(text, 1, sizeof text - 1, in);
    text[n] = 0;
    fclose(in);
    assert_non_null(strstr(text, "\"ci\""));
    assert_null(strstr(text, token));
    assert_null(strstr(text, token + 4));
}

static void names_that_are_wrong(void **state)
{
    (void)state;
    static const char *const names[] = { "", "a b", "a/b", "\x1b[1m", "\xc3\xa4" };
    char       token[SRV_TOKEN_TEXT];
    weir_error err;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        srv_caller c = { .roles = WEIR_ROLE_READ };
        strcpy(c.name, names[i]);
        assert_int_equal(srv_tokens_add(guard.file, &c, 0, token, &err), WEIR_EINVAL);
    }
    srv_caller c = who("ok", "read", "bad\ntype");
    assert_int_equal(srv_tokens_add(guard.file, &c, 0, token, &err), WEIR_EINVAL);
    assert_int_equal(access(guard.file, F_OK), -1);
}

static void files_that_are_wrong(void **state)
{
    (void)state;
    static const char hash[] = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
    static const struct { const char *text, *part; } cases[] = {
        { "", "line 1" },
        { "{", "line 1" },
        { "[]", "has no list \"tokens\"" },
        { "{\"tokens\":{}}", "has no list \"tokens\"" },
        { "{\"tokens\":[1]}", "tokens[0] is not right" },
        { "{\"tokens\":[{\"name\":\"a\",\"roles\":[\"read\"],\"sha256\":\"00\"}]}", "tokens[0]" },
        { "{\"tokens\":[{\"name\":\"a\",\"roles\":[],\"sha256\":\"%s\"}]}", "tokens[0]" },
        { "{\"tokens\":[{\"name\":\"a\",\"roles\":[\"god\"],\"sha256\":\"%s\"}]}", "tokens[0]" },
        { "{\"tokens\":[{\"name\":\"a\",\"types\":5,\"roles\":[\"read\"],\"sha256\":\"%s\"}]}",
          "tokens[0] is not right" },
        { "{\"tokens\":[{\"name\":\"a\",\"types\":[],\"roles\":[\"read\"],\"sha256\":\"%s\"}]}",
          "tokens[0] is not right" },
        { "{\"tokens\":[{\"name\":\"a\",\"expires_at\":\"x\",\"roles\":[\"read\"],"
          "\"sha256\":\"%s\"}]}", "tokens[0] is not right" },
        { "{\"tokens\":[{\"name\":\"a\",\"type\":\"mail\",\"roles\":[\"read\"],"
          "\"sha256\":\"%s\"}]}", "tokens[0]" },
        { "{\"tokens\":[{\"name\":\"a b\",\"roles\":[\"read\"],\"sha256\":\"%s\"}]}", "tokens[0]" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char       text[500];
        weir_error err = { 0 };
        srv_tokens t;
        const char *at = strstr(cases[i].text, "%s");
        snprintf(text, sizeof text, "%.*s%s%s", at ? (int)(at - cases[i].text) : 499, cases[i].text,
                 at ? hash : "", at ? at + 2 : "");
        write_file(text, 0600);
        assert_int_equal(srv_tokens_read(&t, guard.file, &err), WEIR_EINVAL);
        srv_tokens_fini(&t);
        if (!strstr(err.msg, cases[i].part) || !strstr(err.msg, guard.file))
            fail_msg("%s: %s", text, err.msg);
        char       token[SRV_TOKEN_TEXT];
        srv_caller c = who("new", "read", "");      /* what was not understood is not overwritten */
        assert_int_equal(srv_tokens_add(guard.file, &c, 0, token, &err), WEIR_EINVAL);
    }
    weir_error err;
    srv_tokens t;
    write_file("{\"tokens\":[]}", 0660);
    assert_int_equal(srv_tokens_read(&t, guard.file, &err), WEIR_EINVAL);
    assert_non_null(strstr(err.msg, "chmod go-w"));
    unlink(guard.file);
    assert_int_equal(symlink("/etc/passwd", guard.file), 0);
    assert_int_equal(srv_tokens_read(&t, guard.file, &err), WEIR_EIO);
}

/* Root makes tokens for the user that the server runs as. */
static void the_owner_of_the_directory(void **state)
{
    (void)state;
    enum { NOBODY = 65534 };
    struct stat st;
    char        token[SRV_TOKEN_TEXT];
    if (geteuid() != 0)
        skip();
    assert_int_equal(chown(guard.dir, NOBODY, NOBODY), 0);
    add("one", "read", "", token);
    add("two", "read", "", token);
    assert_int_equal(stat(guard.file, &st), 0);
    assert_int_equal(st.st_uid, NOBODY);
    assert_int_equal(st.st_mode & 0777, 0600);
}

/* Changes at once from several processes: none is lost. */
static void all_at_once(void **state)
{
    (void)state;
    enum { N = 8 };
    for (int i = 0; i < N; i++) {
        if (fork() == 0) {
            char       token[SRV_TOKEN_TEXT];
            srv_caller c = { .roles = WEIR_ROLE_READ };
            snprintf(c.name, sizeof c.name, "t%d", i);
            _exit(srv_tokens_add(guard.file, &c, 0, token, NULL) ? 1 : 0);
        }
    }
    for (int i = 0; i < N; i++) {
        int status;
        wait(&status);
        assert_int_equal(status, 0);
    }
    weir_error err;
    srv_tokens t;
    assert_int_equal(srv_tokens_read(&t, guard.file, &err), WEIR_OK);
    assert_int_equal(t.n, N);
    srv_tokens_fini(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(roles),
        cmocka_unit_test_setup_teardown(a_life, guard_setup, guard_teardown),
        cmocka_unit_test_setup_teardown(several_types, guard_setup, guard_teardown),
        cmocka_unit_test_setup_teardown(rotation, guard_setup, guard_teardown),
        cmocka_unit_test_setup_teardown(rotation_keeps_how_long_a_token_is_valid, guard_setup,
                                        guard_teardown),
        cmocka_unit_test_setup_teardown(rotation_of_a_token_of_unknown_age, guard_setup,
                                        guard_teardown),
        cmocka_unit_test_setup_teardown(uses_are_kept, guard_setup, guard_teardown),
        cmocka_unit_test_setup_teardown(the_secret_is_not_in_the_file, guard_setup, guard_teardown),
        cmocka_unit_test_setup_teardown(names_that_are_wrong, guard_setup, guard_teardown),
        cmocka_unit_test_setup_teardown(files_that_are_wrong, guard_setup, guard_teardown),
        cmocka_unit_test_setup_teardown(the_owner_of_the_directory, guard_setup, guard_teardown),
        cmocka_unit_test_setup_teardown(all_at_once, guard_setup, guard_teardown),
    };
    return cmocka_run_group_tests_name("tokens", tests, NULL, NULL);
}
