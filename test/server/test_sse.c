/* test_sse.c - live events over HTTP: filters, resuming, slow listeners, many listeners. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/http/inner.h"
#include "support/server_rig.h"

/* One who listens: what it was sent, without the chunks around it. */
typedef struct ear {
    int    fd;
    char  *text;
    size_t len, cap;
    size_t left;            /* of this chunk, with the line end behind it */
    char   line[32];        /* the size of the next chunk, as far as it came */
    size_t n_line;
    bool   head, ended;
} ear;

static ear listen_with(web *w, const char *target, const char *headers)
{
    char req[512];
    ear  e = { .fd = web_connect(w) };
    snprintf(req, sizeof req, "GET %s HTTP/1.1\r\nHost: %s\r\n%s\r\n", target, w->host, headers);
    web_send(e.fd, req);
    return e;
}

static void add_text(ear *e, const char *bytes, size_t n)
{
    if (e->len + n + 1 > e->cap) {
        e->cap = 2 * (e->len + n + 1);
        e->text = realloc(e->text, e->cap);
        assert_non_null(e->text);
    }
    memcpy(e->text + e->len, bytes, n);
    e->len += n;
    e->text[e->len] = '\0';
}

/* A byte between chunks. */
static void size_byte(ear *e, char c)
{
    if (e->n_line < sizeof e->line - 1)
        e->line[e->n_line++] = c;
    if (c != '\n')
        return;
    e->line[e->n_line] = '\0';
    e->n_line = 0;
    size_t size = strtoul(e->line, NULL, 16);
    e->ended = size == 0;
    e->left = size + 2;
}

static void feed(ear *e, const char *bytes, size_t n)
{
    if (!e->head) {                     /* kept as text until it has come */
        add_text(e, bytes, n);
        char *end = strstr(e->text, "\r\n\r\n");
        if (!end)
            return;
        assert_memory_equal(e->text, "HTTP/1.1 200", 12);
        assert_non_null(strstr(e->text, "text/event-stream"));
        char  *rest = strdup(end + 4);
        size_t n_rest = e->len - (size_t)(end + 4 - e->text);
        assert_non_null(rest);
        e->len = 0;
        e->text[0] = '\0';
        e->head = true;
        feed(e, rest, n_rest);
        free(rest);
        return;
    }
    while (n && !e->ended) {
        if (!e->left) {
            size_byte(e, *bytes++);
            n--;
            continue;
        }
        size_t some = n < e->left ? n : e->left, text = e->left > 2 ? e->left - 2 : 0;
        add_text(e, bytes, some < text ? some : text);
        e->left -= some;
        bytes += some;
        n -= some;
    }
}

/* Read something. False: it has ended. */
static bool hear(ear *e)
{
    char          part[65536];
    struct pollfd p = { .fd = e->fd, .events = POLLIN };
    if (e->ended)
        return false;
    if (poll(&p, 1, PATIENCE_MS) != 1)
        fail_msg("nothing more is heard after: %s", e->text ? e->text : "");
    ssize_t n = recv(e->fd, part, sizeof part, 0);
    if (n > 0)
        feed(e, part, (size_t)n);
    e->ended = e->ended || n <= 0;
    return n > 0;
}

static void hear_until(ear *e, const char *text)
{
    while (!e->text || !strstr(e->text, text))
        if (!hear(e) && !(e->text && strstr(e->text, text)))
            fail_msg("it ended before %s; it said: %s", text, e->text ? e->text : "");
}

static ear listen_to(web *w, const char *target)
{
    ear e = listen_with(w, target, "");
    hear_until(&e, "\n\n");
    return e;
}

static void ear_close(ear *e)
{
    close(e->fd);
    free(e->text);
}

static size_t times(const char *all, const char *text)
{
    size_t n = 0;
    while (all && (all = strstr(all, text))) {
        all += strlen(text);
        n++;
    }
    return n;
}

/* The id of the last message that was heard. */
static void last_id(const ear *e, char *out, size_t size)
{
    const char *at = NULL;
    for (const char *next = e->text; (next = strstr(next, "id: ")); next += 4)
        if (next == e->text || next[-1] == '\n')
            at = next + 4;
    assert_non_null(at);
    snprintf(out, size, "%.*s", (int)strcspn(at, "\n"), at);
}

static uint64_t do_one(rt *t, const char *type)
{
    weir_job   *job;
    size_t      n;
    uint64_t    id = rt_add_type(t, type);
    const char *types[] = { type, NULL };
    OK(weir_take(t->q, &(weir_taking){ .types = types, .n = 1 }, &job, &n, &t->err));
    assert_int_equal(n, 1);
    assert_int_equal(weir_job_done(job, "{\"a\":\n[1]}", 0, NULL), WEIR_OK);
    weir_job_free(job);
    return id;
}

static srv_counters *counts(web *w)
{
    return &w->s->counters;
}

/* ---- what is sent ---- */

static void a_life_is_told(void **state)
{
    (void)state;
    web w;
    web_start(&w, RT_SQLITE, true, NULL);
    ear e = listen_to(&w, "/v1/events");
    assert_memory_equal(e.text, "retry: 2000\nid: ", 16);
    do_one(&w.t, "mail");
    hear_until(&e, "event: complete");
    hear_until(&e, "]}}\n\n");
    char want[256];
    snprintf(want, sizeof want, "event: start\ndata: {\"event\":\"start\",\"at\":%lld,\"id\":1,"
             "\"type\":\"mail\",\"state\":\"active\",\"attempts\":0,\"progress\":0,\"delivery\":1,"
             "\"text\":\"", (long long)w.t.now);
    assert_non_null(strstr(e.text, want));
    assert_non_null(strstr(e.text, "\"result\":{\"a\": [1]}}\n\n"));
    assert_true(strstr(e.text, "event: enqueue") < strstr(e.text, "event: start"));
    assert_true(strstr(e.text, "event: start") < strstr(e.text, "event: complete"));
    assert_int_equal(times(e.text, "\ndata: "), 3);
    assert_int_equal(counts(&w)->listeners, 1);
    ear_close(&e);
    UNTIL(counts(&w)->listeners == 0);
    web_stop(&w);
}

static void filters_hold(void **state)
{
    (void)state;
    web w;
    web_start(&w, RT_MEM, false, NULL);
    ear all = listen_to(&w, "/v1/events");
    ear type = listen_to(&w, "/v1/events?type=mail");
    ear id = listen_to(&w, "/v1/events?id=2");
    ear kinds = listen_to(&w, "/v1/events?event=start,complete&type=sms");
    do_one(&w.t, "mail");
    do_one(&w.t, "sms");
    do_one(&w.t, "mail");
    rt *t = &w.t;
    OK(weir_pause(t->q, "*", &t->err));
    OK(weir_pause(t->q, "mail", &t->err));
    OK(weir_pause(t->q, "sms", &t->err));
    OK(weir_remove(t->q, 2, &t->err));
    rt_add_type(t, "other");
    hear_until(&all, "\"type\":\"sms\"}");
    hear_until(&type, "event: pause");
    hear_until(&id, "event: remove");
    hear_until(&kinds, "event: complete");
    assert_int_equal(times(type.text, "data: "), 7);
    assert_int_equal(times(type.text, "\"type\":\"mail\""), 7);
    assert_int_equal(times(id.text, "data: "), 4);
    assert_int_equal(times(id.text, "\"id\":2,"), 4);
    assert_int_equal(times(kinds.text, "data: "), 2);
    ear_close(&all);
    ear_close(&type);
    ear_close(&id);
    ear_close(&kinds);
    web_error(&w, 400, "EINVAL", "event: \"nothing\"", "GET", "/v1/events?event=start,nothing",
              NULL);
    web_error(&w, 400, "EINVAL", "id: \"x\"", "GET", "/v1/events?id=x", NULL);
    web_error(&w, 400, "EINVAL", "unknown parameter \"what\"; this route accepts: type", "GET",
              "/v1/events?what=1", NULL);
    web_answer a = web_call(&w, "HEAD", "/v1/events", NULL);
    assert_int_equal(a.status, 200);
    web_free(&a);
    web_stop(&w);
}

static void an_old_client_is_served_too(void **state)
{
    (void)state;
    web   w;
    char *all = NULL;
    web_start(&w, RT_MEM, false, NULL);
    int fd = web_connect(&w);
    web_send(fd, "GET /v1/events HTTP/1.0\r\nHost: localhost\r\n\r\n");
    web_read_until(fd, &all, "\r\n\r\nretry: 2000\n");
    assert_null(strstr(all, "chunked"));
    do_one(&w.t, "mail");
    web_read_until(fd, &all, "event: complete");
    free(all);
    close(fd);
    web_stop(&w);
}

/* ---- resuming ---- */

static void a_listener_goes_on_where_it_was(void **state)
{
    (void)state;
    web  w;
    char id[64], header[96];
    web_start(&w, RT_MEM, false, &(srv_options){ .threads = 2 });
    ear e = listen_to(&w, "/v1/events");
    last_id(&e, id, sizeof id);             /* the greeting has one, too */
    snprintf(header, sizeof header, "Last-Event-ID: %s\r\n", id);
    do_one(&w.t, "mail");
    hear_until(&e, "event: complete");
    hear_until(&e, "]}}\n\n");
    ear from_start = listen_with(&w, "/v1/events", header);
    hear_until(&from_start, "]}}\n\n");
    assert_int_equal(times(from_start.text, "data: "), 3);
    last_id(&e, id, sizeof id);
    snprintf(header, sizeof header, "Last-Event-ID: %s\r\n", id);
    ear_close(&e);
    ear_close(&from_start);
    UNTIL(counts(&w)->listeners == 0);
    do_one(&w.t, "sms");                    /* while nobody listens */
    e = listen_with(&w, "/v1/events?event=start,complete", header);
    hear_until(&e, "]}}\n\n");
    assert_null(strstr(e.text, "event: lost"));
    assert_int_equal(times(e.text, "data: "), 2);
    assert_int_equal(times(e.text, "\"type\":\"sms\""), 2);
    do_one(&w.t, "mail");
    hear_until(&e, "\"type\":\"mail\",\"state\":\"complete\"");
    ear_close(&e);
    web_stop(&w);
}

static void who_has_missed_something_is_told(void **state)
{
    (void)state;
    web w;
    web_start(&w, RT_MEM, false, NULL);
    ear e = listen_to(&w, "/v1/events");
    char own[64], ids[6][96];
    last_id(&e, own, sizeof own);
    char *dash = strchr(own, '-');
    snprintf(ids[0], sizeof ids[0], "00000000-1");                  /* another run */
    snprintf(ids[1], sizeof ids[1], "%.*s-999", (int)(dash - own), own);   /* of the future */
    snprintf(ids[2], sizeof ids[2], "%.*s-", (int)(dash - own), own);
    snprintf(ids[3], sizeof ids[3], "nonsense");
    snprintf(ids[4], sizeof ids[4], "%.*s-99999999999999999999999", (int)(dash - own), own);
    snprintf(ids[5], sizeof ids[5], "%.*s-+1", (int)(dash - own), own);
    for (size_t i = 0; i < 6; i++) {
        char header[128];
        snprintf(header, sizeof header, "Last-Event-ID: %.90s\r\n", ids[i]);
        ear late = listen_with(&w, "/v1/events?event=complete", header);
        hear_until(&late, "event: lost\ndata: {\"event\":\"lost\"");
        do_one(&w.t, "mail");
        hear_until(&late, "event: complete");
        ear_close(&late);
    }
    /* one that is too old */
    for (int i = 0; i < 3; i++) {
        weir_spec *specs = calloc(8000, sizeof *specs);
        assert_non_null(specs);
        for (int k = 0; k < 8000; k++)
            specs[k].type = "mail";
        rt *t = &w.t;
        OK(weir_add_many(t->q, specs, 8000, NULL, NULL, &t->err));
        free(specs);
    }
    /* the server has seen all of them once it has seen this */
    record *fence = record_start(&w.t, &(weir_filter){ .type = "fence" });
    do_one(&w.t, "fence");
    record_until(fence, WEIR_EVENT_COMPLETE, 1);
    record_stop(fence);
    ear last = listen_to(&w, "/v1/events?type=last");
    do_one(&w.t, "last");
    hear_until(&last, "event: complete");
    char header[128];
    snprintf(header, sizeof header, "Last-Event-ID: %s\r\n", own);
    ear late = listen_with(&w, "/v1/events", header);
    hear_until(&late, "event: lost");
    ear_close(&late);
    ear_close(&last);
    ear_close(&e);
    web_stop(&w);
}

/* When nobody has listened for a while the events are let go, and whoever comes again is told. */
static void events_are_not_kept_for_nobody(void **state)
{
    (void)state;
    web  w;
    char id[64], header[96];
    web_start(&w, RT_MEM, false, &(srv_options){ .limits = { .event_keep_ms = 1 } });
    for (int i = 0; i < 2; i++) {
        ear e = listen_to(&w, "/v1/events");
        do_one(&w.t, "mail");
        hear_until(&e, "]}}\n\n");
        last_id(&e, id, sizeof id);
        ear_close(&e);
        UNTIL(counts(&w)->listeners == 0);
        int64_t left = srv_loop_ms();
        UNTIL(srv_loop_ms() > left + 1);
        record *fence = record_start(&w.t, &(weir_filter){ .type = "sms" });
        do_one(&w.t, "sms");
        record_until(fence, WEIR_EVENT_COMPLETE, 1);    /* the server has seen it, too */
        record_stop(fence);
        snprintf(header, sizeof header, "Last-Event-ID: %s\r\n", id);
        e = listen_with(&w, "/v1/events", header);
        hear_until(&e, "event: lost");
        do_one(&w.t, "other");
        hear_until(&e, "\"type\":\"other\",\"state\":\"complete\"");
        assert_null(strstr(e.text, "\"type\":\"mail\""));
        ear_close(&e);
        UNTIL(counts(&w)->listeners == 0);
    }
    web_stop(&w);
}

/* ---- slow ones ---- */

/* More than the ring and all buffers hold, while one does not read. It is dropped, and reads why;
 * another one that reads gets everything. */
static void a_slow_listener_is_dropped(void **state)
{
    (void)state;
    enum { PIECE = 200000, PIECES = 160 };
    web   w;
    char *data = malloc(PIECE + 3);
    assert_non_null(data);
    memset(data, 'x', PIECE + 2);
    data[0] = data[PIECE + 1] = '"';
    data[PIECE + 2] = '\0';
    web_start(&w, RT_MEM, false, NULL);
    rt *t = &w.t;
    ear         slow = listen_to(&w, "/v1/events");
    ear         quick = listen_to(&w, "/v1/events?event=progress");
    weir_job   *job;
    size_t      n;
    const char *types[] = { "mail", NULL };
    rt_add_type(t, "mail");
    OK(weir_take(t->q, &(weir_taking){ .types = types, .n = 1 }, &job, &n, &t->err));
    for (int i = 0; i < PIECES; i++) {
        assert_int_equal(weir_job_progress(job, i, PIECES, data, 0, NULL), WEIR_OK);
        char text[64];
        snprintf(text, sizeof text, "\"progress\":%d,", i * 100 / PIECES);
        quick.len = 0;
        hear_until(&quick, text);
    }
    UNTIL(counts(&w)->listeners_dropped == 1);
    assert_int_equal(counts(&w)->listeners, 1);
    while (hear(&slow))
        ;
    assert_non_null(strstr(slow.text, "event: dropped\ndata: {\"event\":\"dropped\",\"text\":\"too "
                                      "slow"));
    weir_job_done(job, NULL, 0, NULL);
    weir_job_free(job);
    free(data);
    ear_close(&slow);
    ear_close(&quick);
    web_stop(&w);
}

/* One that reads slowly, but reads, gets everything in order. */
static void a_listener_may_be_behind(void **state)
{
    (void)state;
    enum { JOBS = 10000 };
    web        w;
    weir_spec *specs = calloc(JOBS, sizeof *specs);
    int        small = 65536;
    assert_non_null(specs);
    for (int k = 0; k < JOBS; k++)
        specs[k].type = "mail";
    web_start(&w, RT_MEM, false, NULL);
    rt *t = &w.t;
    ear e = { .fd = web_connect(&w) };
    setsockopt(e.fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    web_send(e.fd, "GET /v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n");
    hear_until(&e, "\n\n");
    OK(weir_add_many(t->q, specs, JOBS, NULL, NULL, &t->err));
    ear other = listen_to(&w, "/v1/events?type=last");
    do_one(t, "last");
    hear_until(&other, "event: complete");
    hear_until(&e, "\"type\":\"last\",\"state\":\"complete\"");
    assert_int_equal(times(e.text, "event: enqueue"), JOBS + 1);
    uint64_t before = 0;
    for (const char *at = e.text; (at = strstr(at, "\"event\":\"enqueue\"")); at++) {
        uint64_t id = strtoull(strstr(at, "\"id\":") + 5, NULL, 10);
        assert_int_equal(id, before + 1);
        before = id;
    }
    assert_int_equal(counts(&w)->listeners_dropped, 0);
    free(specs);
    ear_close(&e);
    ear_close(&other);
    web_stop(&w);
}

/* ---- many ---- */

static void a_thousand_hear_the_same(void **state)
{
    (void)state;
    enum { N = 1000, LIVES = 20 };
    web  w;
    ear *e = calloc(N, sizeof *e);
    assert_non_null(e);
    web_start(&w, RT_SQLITE, false, &(srv_options){ .threads = 2 });
    for (int i = 0; i < N; i++)
        e[i] = listen_with(&w, i % 4 ? "/v1/events" : "/v1/events?type=mail", "");
    for (int i = 0; i < N; i++)
        hear_until(&e[i], "\n\n");
    assert_int_equal(counts(&w)->listeners, N);
    for (int i = 0; i < LIVES; i++)
        do_one(&w.t, "mail");
    char last[64];
    snprintf(last, sizeof last, "\"id\":%d,\"type\":\"mail\",\"state\":\"complete\"", LIVES);
    for (int i = 0; i < N; i++) {
        hear_until(&e[i], last);
        assert_int_equal(times(e[i].text, "\nevent: "), 3 * LIVES);
        ear_close(&e[i]);
    }
    UNTIL(counts(&w)->listeners == 0);
    assert_int_equal(counts(&w)->events_sent, 3 * LIVES * N);
    free(e);
    web_stop(&w);
}

static void there_is_a_limit(void **state)
{
    (void)state;
    web w;
    web_start(&w, RT_MEM, false, &(srv_options){ .limits = { .listeners = 2 } });
    ear a = listen_to(&w, "/v1/events"), b = listen_to(&w, "/v1/events");
    web_error(&w, 503, "listeners", "SRV_MAX_LISTENERS", "GET", "/v1/events", NULL);
    assert_int_equal(counts(&w)->listeners_refused, 1);
    ear_close(&a);
    UNTIL(counts(&w)->listeners == 1);
    a = listen_to(&w, "/v1/events");
    ear_close(&a);
    ear_close(&b);
    web_stop(&w);
}

static void a_server_that_stops_says_so(void **state)
{
    (void)state;
    web w;
    web_start(&w, RT_MEM, false, &(srv_options){ .threads = 2 });
    ear a = listen_to(&w, "/v1/events"), b = listen_to(&w, "/v1/events?type=x");
    srv_stop(w.s);
    hear_until(&a, "event: closing\ndata: {\"event\":\"closing\",\"text\":\"the server stops\"}"
                   "\n\n");
    hear_until(&b, "event: closing");
    while (hear(&a))
        ;
    ear_close(&a);
    ear_close(&b);
    web_stop(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_life_is_told),
        cmocka_unit_test(filters_hold),
        cmocka_unit_test(an_old_client_is_served_too),
        cmocka_unit_test(a_listener_goes_on_where_it_was),
        cmocka_unit_test(who_has_missed_something_is_told),
        cmocka_unit_test(events_are_not_kept_for_nobody),
        cmocka_unit_test(a_slow_listener_is_dropped),
        cmocka_unit_test(a_listener_may_be_behind),
        cmocka_unit_test(a_thousand_hear_the_same),
        cmocka_unit_test(there_is_a_limit),
        cmocka_unit_test(a_server_that_stops_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
