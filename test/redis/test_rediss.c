/* test_rediss.c - Redis over TLS: a server that is who it should be is used like any other, and one
 * that is not is refused with the reason. Passwords in files. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "redis/load.h"
#include "support/certs.h"
#include "support/redis_rig.h"

enum { URL_MAX = 900 };

#define LOCAL "IP:127.0.0.1,DNS:localhost"

static rig *start(const rig_options *opt)
{
    rig *r = rig_start(opt);
    assert_non_null(r);
    return r;
}

static void works(const char *url)
{
    rt box, *t = &box;
    rt_open(t, url, false);
    rt_add_type(t, "a");
    rt_check_and_close(t);
}

/* ---- who the server is ---- */

static void by_address_and_by_name(void **state)
{
    (void)state;
    char url[URL_MAX], small[URL_MAX];
    rig *r = start(&(rig_options){ .tls = LOCAL, .password = "pa55word" });
    works(rig_url(r, "rediss", NULL, url, sizeof url));
    works(rig_url(r, "rediss+kue", "prefix=q2", small, sizeof small));
    snprintf(url, sizeof url, "rediss://:pa55word@localhost:%d?cacert=%s/ca.pem", r->port, r->dir);
    works(url);
    rig_free(r);
}

static void another_name(void **state)
{
    (void)state;
    char url[URL_MAX];
    rig *r = start(&(rig_options){ .tls = "DNS:redis.example" });
    rt_refused(rig_url(r, "rediss", NULL, url, sizeof url), WEIR_EINVAL, "it is not for 127.0.0.1");
    works(rig_url(r, "rediss", "servername=redis.example", url, sizeof url));
    rt_refused(rig_url(r, "rediss", "servername=redis.exampl", url, sizeof url), WEIR_EINVAL,
            "it is not for redis.exampl (servername=");
    rig_free(r);
}

static void another_ca(void **state)
{
    (void)state;
    char url[URL_MAX], dir[TEMPDIR_MAX];
    rig *r = start(&(rig_options){ .tls = LOCAL });
    assert_true(tempdir_make(dir));
    assert_true(certs_make(dir, "some", LOCAL, false));
    snprintf(url, sizeof url, "rediss://127.0.0.1:%d?cacert=%s/ca.pem", r->port, dir);
    rt_refused(url, WEIR_EINVAL, "cacert=");
    snprintf(url, sizeof url, "rediss://127.0.0.1:%d", r->port);       /* that of the system */
    rt_refused(url, WEIR_EINVAL, "its certificate is refused");
    snprintf(url, sizeof url, "rediss://127.0.0.1:%d?cacert=%s/none.pem", r->port, dir);
    rt_refused(url, WEIR_EINVAL, "none.pem");
    tempdir_remove(dir);
    rig_free(r);
}

static void expired(void **state)
{
    (void)state;
    char url[URL_MAX];
    rig *r = start(&(rig_options){ .tls = LOCAL, .tls_expired = true });
    rt_refused(rig_url(r, "rediss", NULL, url, sizeof url), WEIR_EINVAL, "certificate has expired");
    rig_free(r);
}

/* ---- who we are ---- */

static void a_certificate_of_ours(void **state)
{
    (void)state;
    char url[URL_MAX], query[2 * TEMPDIR_MAX + 64];
    rig *r = start(&(rig_options){ .tls = LOCAL, .config = "tls-auth-clients yes\n" });
    rt_refused(rig_url(r, "rediss", NULL, url, sizeof url), WEIR_EINVAL, "cert= and key=");
    assert_true(certs_make(r->dir, "weir", "DNS:weir", false));
    snprintf(query, sizeof query, "cert=%s/weir.pem&key=%s/weir.key", r->dir, r->dir);
    works(rig_url(r, "rediss", query, url, sizeof url));
    snprintf(query, sizeof query, "cert=%s/weir.pem&key=%s/server.key", r->dir, r->dir);
    rt_refused(rig_url(r, "rediss", query, url, sizeof url), WEIR_EINVAL, "server.key");
    snprintf(query, sizeof query, "cert=%s/weir.pem", r->dir);
    rt_refused(rig_url(r, "rediss", query, url, sizeof url), WEIR_EINVAL, "go together");
    rig_free(r);
}

static void write_password(const char *path, const char *text, mode_t mode)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
    assert_int_equal(chmod(path, mode), 0);
}

static void a_password_in_a_file(void **state)
{
    (void)state;
    char url[URL_MAX], file[TEMPDIR_MAX + 16];
    rig *r = start(&(rig_options){ .password = "pa55word" });
    snprintf(file, sizeof file, "%s/password", r->dir);
    snprintf(url, sizeof url, "redis+unix://%s?password-file=%s", r->socket, file);
    rt_refused(url, WEIR_EINVAL, "No such file");
    write_password(file, "pa55word\n", 0600);
    works(url);
    write_password(file, "pa55word", 0640);
    works(url);
    write_password(file, "pa55word\n", 0644);
    rt_refused(url, WEIR_EINVAL, "chmod 600");
    write_password(file, "\n", 0600);
    rt_refused(url, WEIR_EINVAL, "the first line");
    write_password(file, "wrong\n", 0600);
    rt_refused(url, WEIR_EINVAL, "WRONGPASS");
    write_password(file, "pa55word\n", 0600);
    assert_true(rig_do(r, "ACL SETUSER ann on >pa55word ~* &* +@all"));
    snprintf(url, sizeof url, "redis+unix://ann@%s?password-file=%s", r->socket, file);
    works(url);
    rig_free(r);
}

/* ---- ports ---- */

static void the_wrong_port(void **state)
{
    (void)state;
    char url[URL_MAX];
    rig *r = start(&(rig_options){ .tls = LOCAL });
    rt_refused(rig_url(r, "redis", "timeout=2s", url, sizeof url), WEIR_EUNAVAIL, "127.0.0.1");
    rig_free(r);
    r = start(&(rig_options){ .tcp = true });
    assert_true(certs_make(r->dir, "some", LOCAL, false));
    weir_queue *q;
    weir_error  err;
    weir_code   rc = weir_open(&q, rig_url(r, "rediss", "timeout=1s", url, sizeof url), NULL, &err);
    assert_int_not_equal(rc, WEIR_OK);
    if (!strstr(err.msg, "TLS"))
        fail_msg("%s", err.msg);
    rig_free(r);
}

/* ---- trouble ---- */

static void restarts_under_load(void **state)
{
    (void)state;
    enum { ROUNDS = 4 };
    char  url[URL_MAX];
    rig  *r = start(&(rig_options){ .tls = LOCAL, .aof = true });
    load *l = load_start(rig_url(r, "rediss", NULL, url, sizeof url),
                         &(load_options){ .lease_ms = 3000 });
    for (int i = 0; i < ROUNDS; i++) {
        load_until_acked(l, 50);
        load_until_begun(l, 20);
        if (i % 2) {
            rig_kill9(r);
            assert_true(rig_begin(r) && rig_ready(r));
        } else {
            assert_true(rig_do(r, "CLIENT KILL TYPE normal"));
            assert_true(rig_do(r, "CLIENT KILL TYPE pubsub"));
        }
    }
    load_until_acked(l, 50);
    load_drain(l);
    load_verify(l, 0, 0);
    load_free(l);
    rig_free(r);
}

static weir_code count(weir_job *job, void *ctx)
{
    gate_up(ctx);
    return job->data_len > 800000 ? WEIR_OK : WEIR_EINVAL;
}

/* More than fits into the socket, both ways; and an event wakes the worker. */
static void large_data(void **state)
{
    (void)state;
    enum { SIZE = 900000 };
    char  url[URL_MAX], *data = malloc(SIZE + 3);
    rig  *r = start(&(rig_options){ .tls = LOCAL });
    gate  done = GATE_INIT;
    rt    box, other, *t = &box;
    assert_non_null(data);
    memset(data, 'x', SIZE + 2);
    data[0] = data[SIZE + 1] = '"';
    data[SIZE + 2] = 0;
    rt_open(t, rig_url(r, "rediss", NULL, url, sizeof url), false);
    rt_open(&other, url, false);
    OK(weir_process(t->q, "a", &(weir_pool_config){ .handler = count, .ctx = &done }, NULL,
                    &t->err));
    for (int i = 1; i <= 3; i++) {
        rt_add(&other, &(weir_spec){ .type = "a", .data = data });
        gate_wait(&done, i);
    }
    rt_until_count(t, WEIR_STATE_COMPLETE, 3);
    free(data);
    rt_close(&other);
    rt_check_and_close(t);
    rig_free(r);
}

/* ---- clusters and sentinels ---- */

static bool is_up(const rig *r)
{
    redisReply *reply = rig_command(r, "CLUSTER INFO");
    bool        up = reply && reply->str && strstr(reply->str, "cluster_state:ok");
    freeReplyObject(reply);
    return up;
}

static void a_cluster(void **state)
{
    (void)state;
    char url[URL_MAX];
    rig *r = start(&(rig_options){ .tls = LOCAL, .cluster = true });
    assert_true(rig_do(r, "CLUSTER ADDSLOTSRANGE 0 16383"));
    UNTIL(is_up(r));
    works(rig_url(r, "rediss", "cluster=1&partitions=4", url, sizeof url));
    rig_free(r);
}

static void a_sentinel(void **state)
{
    (void)state;
    char config[TEMPDIR_MAX + 128], url[URL_MAX];
    rig *r = start(&(rig_options){ .tls = LOCAL });
    snprintf(config, sizeof config, "sentinel monitor mymaster 127.0.0.1 %d 1\n"
                                    "tls-ca-cert-file %s/ca.pem\n", r->port, r->dir);
    rig *s = start(&(rig_options){ .tls = LOCAL, .sentinel = true, .config = config });
    /* Each has a CA of its own; the URL names both. */
    snprintf(url, sizeof url, "cat %s/ca.pem %s/ca.pem > %s/both.pem", r->dir, s->dir, r->dir);
    assert_int_equal(system(url), 0);
    snprintf(url, sizeof url, "rediss+sentinel://127.0.0.1:%d/mymaster?cacert=%s/both.pem", s->port,
             r->dir);
    works(url);
    rig_free(s);
    rig_free(r);
}

int main(int argc, char **argv)
{
    cmocka_set_test_filter(argc > 1 ? argv[1] : NULL);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(by_address_and_by_name),
        cmocka_unit_test(another_name),
        cmocka_unit_test(another_ca),
        cmocka_unit_test(expired),
        cmocka_unit_test(a_certificate_of_ours),
        cmocka_unit_test(a_password_in_a_file),
        cmocka_unit_test(the_wrong_port),
        cmocka_unit_test(restarts_under_load),
        cmocka_unit_test(large_data),
        cmocka_unit_test(a_cluster),
        cmocka_unit_test(a_sentinel),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
