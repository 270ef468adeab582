/* test_http_store.c - the http store when the line to the server is bad, and when the server goes:
 * what was answered is true all the same, nothing is done twice, and events are told once. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "redis/load.h"
#include "server/access/tokens.h"
#include "support/child.h"
#include "support/proxy.h"
#include "support/server_rig.h"

enum { URL_MAX = 600, CUTS = 100 };

static uint64_t seed;

static int port_of(const web *w)
{
    return atoi(strrchr(w->host, ':') + 1);
}

static load *load_over(proxy *p, const char *query, const load_options *opt)
{
    char url[URL_MAX];
    snprintf(url, sizeof url, "http://127.0.0.1:%d?%s", proxy_port(p), query);
    return load_start(url, opt);
}

/* ---- a bad line ---- */

static void cut_at_random(const char *query, uint32_t after, const load_options *opt,
                          bool all_answered)
{
    web w;
    web_start(&w, RT_SQLITE, false, NULL);
    proxy *p = proxy_start_to(port_of(&w), seed);
    assert_non_null(p);
    load *l = load_over(p, query, opt);
    load_until_acked(l, 50);
    proxy_cut_after(p, after);
    for (uint64_t n; (n = proxy_cuts(p)) < CUTS;)
        UNTIL(proxy_cuts(p) > n);           /* the next one: a busy machine needs long for all */
    proxy_cut_after(p, 0);
    if (all_answered) {
        assert_int_equal(load_answers(l, WEIR_EUNKNOWN), 0);
        assert_int_equal(load_answers(l, WEIR_EUNAVAIL), 0);
    }
    load_to_the_end(l);
    proxy_stop(p);
    web_stop(&w);
}

/* There is time to repeat what was cut: nobody notices. */
static void cut_now_and_then(void **state)
{
    (void)state;
    cut_at_random("timeout=30s", 20000, &(load_options){ .lease_ms = 3000 }, true);
}

static void cut_with_prefetch(void **state)
{
    (void)state;
    cut_at_random("timeout=30s", 20000, &(load_options){ .lease_ms = 2000, .prefetch = 4 }, true);
}

/* Hardly anything gets through, and there is little time. */
static void cut_all_the_time(void **state)
{
    (void)state;
    cut_at_random("timeout=100ms", 2500, &(load_options){ .lease_ms = 2000 }, false);
}

static void a_line_that_hangs(void **state)
{
    (void)state;
    web w;
    web_start(&w, RT_MEM, false, NULL);
    proxy *p = proxy_start_to(port_of(&w), seed);
    assert_non_null(p);
    load *l = load_over(p, "timeout=300ms", &(load_options){ .lease_ms = 2000 });
    load_through_hangs(l, p, 3);
    load_to_the_end(l);
    proxy_stop(p);
    web_stop(&w);
}

/* ---- a server that goes ---- */

/* What it serves stays: only the run is another. */
static void a_server_that_is_started_anew(void **state)
{
    (void)state;
    enum { ROUNDS = 6 };
    rt          box, *t = &box;
    srv_server *s;
    rt_open(t, RT_MEM, false);
    OK(srv_start(&s, t->q, &(srv_options){ .listen = "127.0.0.1:0" }, &t->err));
    proxy *p = proxy_start_to(atoi(strrchr(srv_address(s), ':') + 1), seed);
    assert_non_null(p);
    load *l = load_over(p, "timeout=30s", &(load_options){ .lease_ms = 2000 });
    for (int i = 0; i < ROUNDS; i++) {
        load_until_acked(l, 50);
        proxy_cut_after(p, 5000);
        load_until_acked(l, 20);
        srv_stop(s);
        srv_destroy(s);
        proxy_cut_all(p);
        OK(srv_start(&s, t->q, &(srv_options){ .listen = "127.0.0.1:0" }, &t->err));
        proxy_turn(p, atoi(strrchr(srv_address(s), ':') + 1));
        proxy_cut_after(p, 0);
    }
    assert_int_equal(load_answers(l, WEIR_EUNKNOWN), 0);    /* adds can always be repeated */
    load_to_the_end(l);
    proxy_stop(p);
    srv_stop(s);
    srv_destroy(s);
    rt_check_and_close(t);
}

/* The role of a child: serve the file in a directory, at a port, until it is told to end. */
static int serve(const char *dir, const char *port)
{
    char        url[TEMPDIR_MAX + 40], listen[40], line[80];
    weir_queue *q;
    srv_server *s;
    weir_error  err;
    snprintf(url, sizeof url, "sqlite:%s/jobs.db?durability=os", dir);
    snprintf(listen, sizeof listen, "127.0.0.1:%s", port);
    if (weir_open(&q, url, &(weir_options){ .wait_owner_ms = 20000 }, &err) ||
        srv_start(&s, q, &(srv_options){ .listen = listen }, &err)) {
        child_print("failed: %s", err.msg);
        return 1;
    }
    child_print("port %s", strrchr(srv_address(s), ':') + 1);
    while (child_told(line, sizeof line))
        continue;
    srv_stop(s);
    srv_destroy(s);
    weir_close(q);
    return 0;
}

static void note_port(const char *line, void *ctx)
{
    if (!strncmp(line, "port ", 5))
        snprintf(ctx, 16, "%s", line + 5);
}

static child *start_server(const char *dir, char port[16])
{
    child *c = child_start("serve", dir, port, NULL);
    child_until(c, "port ", 1);
    child_each(c, note_port, port);
    return c;
}

static void a_server_that_is_killed(void **state)
{
    (void)state;
    enum { KILLS = 6 };
    char dir[TEMPDIR_MAX], url[URL_MAX], port[16] = "0";
    assert_true(tempdir_make(dir));
    child *c = start_server(dir, port);
    snprintf(url, sizeof url, "http://127.0.0.1:%s?timeout=60s", port);
    load *l = load_start(url, &(load_options){ .lease_ms = 2000 });
    for (int i = 0; i < KILLS; i++) {
        load_until_acked(l, 100);
        child_kill9(c);
        child_free(c);
        c = start_server(dir, port);
    }
    assert_int_equal(load_answers(l, WEIR_EUNKNOWN), 0);
    assert_int_equal(load_answers(l, WEIR_EUNAVAIL), 0);
    load_to_the_end(l);
    child_end(c);
    tempdir_remove(dir);
}

/* ---- events ---- */

static void on_event(const weir_event *event, void *ctx)
{
    _Atomic uint32_t *seen = ctx;
    if (event->kind == WEIR_EVENT_ENQUEUE)
        atomic_fetch_add(&seen[event->id], 1);
}

static void events_are_told_once(void **state)
{
    (void)state;
    enum { N = 2000, ROUNDS = 10 };
    static _Atomic uint32_t seen[N + 1];
    web            w;
    rt             box, *t = &box;
    char           url[URL_MAX];
    weir_listener *listener;
    web_start(&w, RT_MEM, false, NULL);
    proxy *p = proxy_start_to(port_of(&w), seed);
    snprintf(url, sizeof url, "http://127.0.0.1:%d?timeout=30s", proxy_port(p));
    rt_open(t, url, false);
    OK(weir_listen(t->q, NULL, on_event, seen, &listener, &t->err));
    for (int i = 0; i < N; i++) {
        rt_add(i % 2 ? t : &w.t, &(weir_spec){ .type = "a" });      /* ours, and another's */
        if (i % (N / ROUNDS) == 0)
            proxy_cut_all(p);
    }
    for (int i = 1; i <= N; i++)
        UNTIL(atomic_load(&seen[i]) > 0);
    for (int i = 1; i <= N; i++)
        assert_int_equal(seen[i], 1);
    weir_unlisten(listener);
    rt_close(t);
    proxy_stop(p);
    web_stop(&w);
}

/* The connection is cut behind the head of the answer, when its first id has not come, and within
 * a message, when its id has come and its data has not. */
static void a_cut_loses_no_event(void **state)
{
    (void)state;
    enum { N = 2 };
    static _Atomic uint32_t seen[N + 1];
    web            w;
    rt             box, *t = &box;
    char           url[URL_MAX];
    weir_listener *listener;
    web_start(&w, RT_MEM, false, NULL);
    proxy *p = proxy_start_to(port_of(&w), seed);
    snprintf(url, sizeof url, "http://127.0.0.1:%d?timeout=30s", proxy_port(p));
    proxy_cut_behind(p, "retry: ");
    rt_open(t, url, false);
    OK(weir_listen(t->q, NULL, on_event, seen, &listener, &t->err));
    rt_add_type(&w.t, "a");
    UNTIL(atomic_load(&seen[1]) > 0);
    proxy_cut_behind(p, "\nevent: enqueue\n");
    rt_add_type(&w.t, "a");
    UNTIL(atomic_load(&seen[2]) > 0);
    assert_int_equal(proxy_cuts(p), 2);
    assert_int_equal(seen[1], 1);
    assert_int_equal(seen[2], 1);
    weir_unlisten(listener);
    rt_close(t);
    proxy_stop(p);
    web_stop(&w);
}

static size_t errors_about(record *r, const char *part)
{
    size_t n = 0;
    pthread_mutex_lock(&r->lock);
    for (size_t i = 0; i < r->n; i++)
        n += r->event[i].kind == WEIR_EVENT_ERROR && strstr(r->text[i], part);
    pthread_mutex_unlock(&r->lock);
    return n;
}

/* When the server is gone, an ERROR event says so, once. When another server is there, one says
 * that events may have been missed. */
static void a_gap_is_told(void **state)
{
    (void)state;
    rt          box, *t = &box, client, *far = &client;
    srv_server *s;
    char        url[URL_MAX];
    rt_open(t, RT_MEM, false);
    OK(srv_start(&s, t->q, &(srv_options){ .listen = "127.0.0.1:0" }, &t->err));
    proxy *p = proxy_start_to(atoi(strrchr(srv_address(s), ':') + 1), seed);
    snprintf(url, sizeof url, "http://127.0.0.1:%d?timeout=30s", proxy_port(p));
    rt_open(far, url, false);
    record *trouble = record_start(far, &(weir_filter){ .events = WEIR_BIT(WEIR_EVENT_ERROR) });
    srv_stop(s);
    srv_destroy(s);
    record_until(trouble, WEIR_EVENT_ERROR, 1);
    assert_int_equal(errors_about(trouble, "http://127.0.0.1:"), 1);
    OK(srv_start(&s, t->q, &(srv_options){ .listen = "127.0.0.1:0" }, &t->err));
    proxy_turn(p, atoi(strrchr(srv_address(s), ':') + 1));
    record_until(trouble, WEIR_EVENT_ERROR, 2);
    assert_int_equal(errors_about(trouble, "missed"), 1);
    record_stop(trouble);
    rt_close(far);
    proxy_stop(p);
    srv_stop(s);
    srv_destroy(s);
    rt_check_and_close(t);
}

/* ---- opening ---- */

static void opens(const char *url, weir_code code, const char *part)
{
    weir_queue *q;
    weir_error  err = { 0 };
    weir_code   rc = weir_open(&q, url, NULL, &err);
    if (rc != code || (part && !strstr(err.msg, part)))
        fail_msg("%s: %s: %s", url, weir_code_name(rc), err.msg);
    assert_null(strstr(err.msg, "s3cret"));
    weir_close(q);
}

static void what_is_wrong_with_the_url(void **state)
{
    (void)state;
    opens("http:x", WEIR_EINVAL, "write http://HOST:7340");
    opens("http://", WEIR_EINVAL, "the host is missing");
    opens("http://:7340", WEIR_EINVAL, "the host is missing");
    opens("http://a:b@h:7340", WEIR_EINVAL, "before the host");
    opens("http://h:0", WEIR_EINVAL, "the port must be between 1 and 65535");
    opens("http://h:70000", WEIR_EINVAL, "the port must be between 1 and 65535");
    opens("http://[::1:7", WEIR_EINVAL, "\"]\" is missing");
    opens("http://h h/", WEIR_EINVAL, "is not the name of a host");
    opens("http://h/a b", WEIR_EINVAL, "in the path");
    opens("http://h?timeout=1ms", WEIR_EINVAL, "must be between 100ms and 1h");
    opens("http://h?ca=x", WEIR_EINVAL, "ca is for https:// alone");
    opens("http://h?token=s3cret%0d%0aX:y", WEIR_EINVAL, "a token has neither blanks");
    opens("http://h?token=s3cret&wat=1", WEIR_EINVAL, "unknown option \"wat\"");
    opens("http://127.0.0.1:1?token=s3cret", WEIR_EUNAVAIL, "http://127.0.0.1:1: ");
    opens("http://127.0.0.1:1?durability=disk", WEIR_EINVAL, "the server decides");
}

static void what_is_wrong_with_the_server(void **state)
{
    (void)state;
    char dir[TEMPDIR_MAX], file[TEMPDIR_MAX + 16], url[URL_MAX], text[SRV_TOKEN_TEXT];
    web  w;
    assert_true(tempdir_make(dir));
    snprintf(file, sizeof file, "%s/tokens.json", dir);
    srv_caller reader = { .roles = WEIR_ROLE_READ, .name = "reader" };
    assert_int_equal(srv_tokens_add(file, &reader, 1, text, NULL), WEIR_OK);
    web_start(&w, RT_MEM, false, &(srv_options){ .tokens_file = file });
    snprintf(url, sizeof url, "http://%s", w.host);
    opens(url, WEIR_EINVAL, "WEIR_TOKEN");
    snprintf(url, sizeof url, "http://%s?token=wtk_s3cret", w.host);
    opens(url, WEIR_EINVAL, "WEIR_TOKEN");
    snprintf(url, sizeof url, "http://%s/elsewhere?token=%s", w.host, text);
    opens(url, WEIR_EINVAL, "http://");
    snprintf(url, sizeof url, "http://%s", w.host);
    setenv("WEIR_TOKEN", text, 1);
    rt box, *t = &box;
    rt_open(t, url, false);
    assert_int_equal(weir_add(t->q, &(weir_spec){ .type = "a" }, NULL, &t->err), WEIR_EREADONLY);
    assert_non_null(strstr(t->err.msg, "add: the token reader may not do this"));
    assert_int_equal(rt_count(t, WEIR_STATE_ANY), 0);
    rt_close(t);
    unsetenv("WEIR_TOKEN");
    web_stop(&w);
    tempdir_remove(dir);
}

static void open_for_reading(void **state)
{
    (void)state;
    web         w;
    char        url[URL_MAX];
    rt          box, *t = &box;
    weir_queue *q;
    web_start(&w, RT_MEM, false, NULL);
    snprintf(url, sizeof url, "http://%s/", w.host);
    rt_open(t, url, false);
    uint64_t id = rt_add(t, &(weir_spec){ .type = "a", .data = "{\n\"x\":1e99}" });
    OK(weir_open(&q, url, &(weir_options){ .read_only = true }, &t->err));
    weir_job *job;
    OK(weir_get(q, id, &job, &t->err));
    assert_string_equal(job->data, "{\n\"x\":1e99}");
    weir_job_free(job);
    weir_report *report;
    OK(weir_check(q, false, &report, &t->err));
    weir_report_free(report);
    assert_int_equal(weir_add(q, &(weir_spec){ .type = "a" }, NULL, &t->err), WEIR_EREADONLY);
    assert_int_equal(weir_check(q, true, &report, &t->err), WEIR_EREADONLY);
    weir_close(q);
    rt_close(t);
    web_stop(&w);
}

/* A page with all that the server gives of it, and those behind it. */
static void all_jobs_arrive(rt *t, size_t n, size_t bytes)
{
    weir_query q = { .limit = n };
    size_t     got = 0;
    for (bool more = true; more;) {
        weir_page *page;
        OK(weir_list(t->q, &q, &page, &t->err));
        for (size_t i = 0; i < page->n; i++) {
            assert_int_equal(page->job[i]->id, ++got);
            assert_int_equal(page->job[i]->data_len, bytes);
        }
        assert_true(page->n > 0 && page->n < n);    /* SRV_MAX_PAGE */
        q.after = page->next;
        more = page->more;
        weir_page_free(page);
    }
    assert_int_equal(got, n);
}

enum { LINES = 600 };

/* The server refuses so many lines at once (SRV_MAX_BATCH_ANSWER); they are asked for again. */
static void a_long_log_arrives(rt *t)
{
    char       *line = malloc(WEIR_MAX_TEXT + 1);
    weir_lines *lines;
    assert_non_null(line);
    memset(line, 'x', WEIR_MAX_TEXT);
    line[WEIR_MAX_TEXT] = '\0';
    for (int i = 0; i < LINES; i++)
        OK(weir_log(t->q, 1, 0, line, 0, &t->err));
    OK(weir_logs(t->q, 1, 0, 0, &lines, &t->err));
    assert_int_equal(lines->n, LINES);
    for (size_t i = 0; i < LINES; i++)
        assert_int_equal(lines->line[i].n, i + 1);
    weir_lines_free(lines);
    free(line);
}

/* A page of schedules that the server refuses to send at once is asked for in steps. */
static void a_page_of_large_schedules_arrives(rt *t, const char *data, int n)
{
    weir_schedules *list;
    for (int i = 0; i < n; i++) {
        char name[20];
        snprintf(name, sizeof name, "s%02d", i);
        OK(weir_schedule_put(t->q, &(weir_schedule){ .name = name, .when = "@yearly",
                                                     .job = { .type = "a", .data = data } },
                             &t->err));
    }
    OK(weir_schedules_list(t->q, NULL, 0, &list, &t->err));
    assert_int_equal(list->n, n);
    assert_int_equal(list->schedule[n - 1].job.data_len, strlen(data));
    weir_schedules_free(list);
}

/* What threads ask for at once and is too much for one answer comes in several. */
static void many_reads_arrive(rt *t)
{
    enum { READS = 60 };
    weir_future *f[READS];
    weir_job    *job[READS];
    for (size_t i = 0; i < READS; i++)
        OK(weir_get_async(t->q, i % 40 + 1, &job[i], &f[i], &t->err));
    for (size_t i = 0; i < READS; i++) {
        OK(weir_future_wait(f[i], WEIR_FOREVER, &t->err));
        assert_int_equal(job[i]->id, i % 40 + 1);
        weir_job_free(job[i]);
        weir_future_free(f[i]);
    }
}

/* A lot that is too much for one request, or one answer, goes in several. */
static void what_is_much_arrives(void **state)
{
    (void)state;
    enum { N = 40, BIG = 1000 * 1000 };
    web       w;
    char      url[URL_MAX];
    rt        box, *t = &box;
    weir_spec specs[N];
    char     *data = malloc(BIG + 1);
    assert_non_null(data);
    memset(data, 'x', BIG);
    data[0] = data[BIG - 1] = '"';
    data[BIG] = '\0';
    web_start(&w, RT_MEM, false, NULL);
    snprintf(url, sizeof url, "http://%s?timeout=60s", w.host);
    rt_open(t, url, false);
    for (int i = 0; i < N; i++)
        specs[i] = (weir_spec){ .type = "a", .data = data, .data_len = BIG };
    OK(weir_add_many(t->q, specs, N, NULL, NULL, &t->err));
    all_jobs_arrive(t, N, BIG);
    many_reads_arrive(t);
    a_long_log_arrives(t);
    a_page_of_large_schedules_arrives(t, data, N);
    rt_close(t);
    web_stop(&w);
    free(data);
}

int main(int argc, char **argv)
{
    if (child_role(argc, argv))
        return serve(argv[3], argv[4]);
    const char *given = getenv("WEIR_TEST_SEED");
    seed = given ? strtoull(given, NULL, 10) : 1794804839;
    unsetenv("WEIR_TOKEN");
    cmocka_set_test_filter(argc > 1 ? argv[1] : NULL);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_wrong_with_the_url),
        cmocka_unit_test(what_is_wrong_with_the_server),
        cmocka_unit_test(open_for_reading),
        cmocka_unit_test(what_is_much_arrives),
        cmocka_unit_test(events_are_told_once),
        cmocka_unit_test(a_cut_loses_no_event),
        cmocka_unit_test(a_gap_is_told),
        cmocka_unit_test(cut_now_and_then),
        cmocka_unit_test(cut_with_prefetch),
        cmocka_unit_test(cut_all_the_time),
        cmocka_unit_test(a_line_that_hangs),
        cmocka_unit_test(a_server_that_is_started_anew),
        cmocka_unit_test(a_server_that_is_killed),
    };
    return cmocka_run_group_tests_name("http store", tests, NULL, NULL);
}
