/* test_shares.c - what one caller may have of the server: requests, connections, listeners, waits
 * and memory, by token and by address; and answers that their clients do not read. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "op/op.h"
#include "server/http/inner.h"
#include "server/access/tokens.h"
#include "support/server_rig.h"

/* ---- the table by itself ---- */

static const int64_t few[SRV_SHARES] = { 10, 2, 1, 1, 1000, 1000 };

static void addresses_are_told_apart(void **state)
{
    (void)state;
    weir_error  err;
    srv_quotas *qs;
    assert_int_equal(srv_quotas_create(&qs, few, &err), WEIR_OK);
    static const char *const local[] = { "127.0.0.1:1", "127.9.9.9:1", "[::1]:1",
                                         "[::ffff:127.0.0.1]:1", "unix", "" };
    for (size_t i = 0; i < sizeof local / sizeof *local; i++)
        assert_null(srv_quota_of_address(qs, local[i]));
    static const struct { const char *a, *b; bool same; } pairs[] = {
        { "10.0.0.1:1", "10.0.0.1:2", true },
        { "10.0.0.1:1", "10.0.0.2:1", false },
        { "10.0.0.1:1", "[::ffff:10.0.0.1]:1", true },
        { "[2001:db8::1]:1", "[2001:db8:0:0:ffff::2]:9", true },
        { "[2001:db8::1]:1", "[2001:db8:0:1::1]:1", false },
    };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        srv_quota *a = srv_quota_of_address(qs, pairs[i].a);
        srv_quota *b = srv_quota_of_address(qs, pairs[i].b);
        assert_non_null(a);
        assert_int_equal(a == b, pairs[i].same);
        srv_quota_unref(a);
        srv_quota_unref(b);
    }
    srv_quotas_destroy(qs);
}

static void requests_are_paced(void **state)
{
    (void)state;
    weir_error  err;
    srv_quotas *qs;
    assert_int_equal(srv_quotas_create(&qs, few, &err), WEIR_OK);
    srv_quota *q = srv_quota_of_token(qs, "ci"), *other = srv_quota_of_token(qs, "other");
    for (int i = 0; i < 10; i++)
        assert_int_equal(srv_quota_request(q, 5000), 0);
    int64_t wait = srv_quota_request(q, 5000);
    assert_true(wait > 0 && wait <= 101);
    assert_int_equal(srv_quota_request(other, 5000), 0);
    assert_int_equal(srv_quota_request(q, 5000 + wait), 0);
    assert_true(srv_quota_request(q, 5000 + wait) > 0);
    for (int i = 0; i < 10; i++)                /* a second of rest pays for ten, never more */
        assert_int_equal(srv_quota_request(q, 60000), 0);
    assert_true(srv_quota_request(q, 60000) > 0);
    srv_quota_unref(q);
    srv_quota_unref(other);
    srv_quotas_destroy(qs);
}

static void the_table_does_not_grow(void **state)
{
    (void)state;
    enum { MANY = SRV_MAX_QUOTAS + 100 };
    weir_error  err;
    srv_quotas *qs;
    srv_quota **held = calloc(MANY, sizeof *held);
    char        name[32], text[WEIR_ERROR_MAX];
    assert_non_null(held);
    assert_int_equal(srv_quotas_create(&qs, few, &err), WEIR_OK);
    for (int i = 0; i < 3 * MANY; i++) {        /* those that use nothing make room */
        snprintf(name, sizeof name, "brief-%d", i);
        srv_quota *q = srv_quota_of_token(qs, name);
        assert_true(srv_quota_is_token(q, name));
        srv_quota_unref(q);
    }
    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "long-%d", i);
        held[i] = srv_quota_of_token(qs, name);
        assert_int_equal(srv_quota_is_token(held[i], name), i < SRV_MAX_QUOTAS);
    }
    assert_ptr_equal(held[MANY - 1], held[MANY - 2]);   /* the last share one */
    assert_true(srv_quota_take(held[MANY - 1], SRV_SHARE_LISTENERS, 1));
    assert_false(srv_quota_take(held[MANY - 2], SRV_SHARE_LISTENERS, 1));
    assert_non_null(strstr(srv_quota_text(held[0], SRV_SHARE_LISTENERS, text, sizeof text),
                           "token long-0 is over its share of this server (caller-listeners: 1)"));
    for (int i = 0; i < MANY; i++)
        srv_quota_unref(held[i]);
    srv_quotas_destroy(qs);
    free(held);
}

/* ---- a real server with tokens ---- */

static char dir[TEMPDIR_MAX], file[TEMPDIR_MAX + 16];
static char one[SRV_TOKEN_TEXT + 40], two[SRV_TOKEN_TEXT + 40];     /* headers */
static web  w;

static void add_token(const char *name, char *header)
{
    weir_error err;
    char       text[SRV_TOKEN_TEXT];
    srv_caller c = { .roles = WEIR_ROLE_ALL };
    snprintf(c.name, sizeof c.name, "%s", name);
    assert_int_equal(srv_tokens_add(file, &c, 1, text, &err), WEIR_OK);
    snprintf(header, SRV_TOKEN_TEXT + 40, "Authorization: Bearer %s\r\n", text);
}

static void start(srv_limits limits)
{
    assert_true(tempdir_make(dir));
    snprintf(file, sizeof file, "%s/tokens.json", dir);
    add_token("one", one);
    add_token("two", two);
    web_start(&w, RT_MEM, false, &(srv_options){ .tokens_file = file, .limits = limits,
                                                 .threads = 1 });
}

static void stop(void)
{
    web_stop(&w);
    tempdir_remove(dir);
}

static web_answer call(const char *token, const char *method, const char *target, const char *body)
{
    return web_call_with(&w, method, target, token, body);
}

static void says(const char *token, int status, const char *part, const char *method,
                 const char *target, const char *body)
{
    web_answer a = call(token, method, target, body);
    if (a.status != status || !strstr(a.body, part))
        fail_msg("%s %s: %d, not %d: %.300s", method, target, a.status, status, a.body);
    web_free(&a);
}

static void metric_is(const char *line)
{
    web_answer a = call(two, "GET", "/metrics", NULL);
    if (!strstr(a.body, line))
        fail_msg("not in /metrics: %s", line);
    web_free(&a);
}

/* A connection that sends this with the token, and is left open. */
static int ask(const char *token, const char *line, const char *body)
{
    char text[1024];
    int  fd = web_connect(&w);
    snprintf(text, sizeof text, "%s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %zu\r\n"
             "Content-Type: application/json\r\n%s\r\n%s", line, strlen(body), token, body);
    web_send(fd, text);
    return fd;
}

static void one_token_is_paced_and_others_are_not(void **state)
{
    (void)state;
    start((srv_limits){ .caller = { [SRV_SHARE_RATE] = 1 } });
    web_answer a = { 0 };
    for (int i = 0; i < 100 && a.status != 429; i++) {
        web_free(&a);
        a = call(one, "GET", "/v1/stats", NULL);
    }
    assert_int_equal(a.status, 429);
    assert_non_null(strstr(a.body, "the token one is over its share of this server "
                                   "(caller-rate: 1)"));
    const char *after = web_header(&a, "Retry-After");
    assert_true(after && atoi(after) >= 1);
    web_free(&a);
    says(NULL, 200, "ok", "GET", "/healthz", NULL);     /* without a token there is no such limit */
    metric_is("weir_http_over_share_total{limit=\"caller-rate\"} ");
    stop();
}

static void one_token_has_its_share_of_connections(void **state)
{
    (void)state;
    start((srv_limits){ .caller = { [SRV_SHARE_CONNECTIONS] = 2 } });
    int fd[2];
    for (int i = 0; i < 2; i++) {
        fd[i] = ask(one, "GET /v1/stats", "");
        web_answer a = web_read(fd[i]);
        assert_int_equal(a.status, 200);
        web_free(&a);
    }
    says(one, 429, "caller-connections: 2", "GET", "/v1/stats", NULL);
    says(two, 200, "", "GET", "/v1/stats", NULL);
    close(fd[0]);
    for (bool in = false; !in;) {               /* its place is free soon */
        web_answer a = call(one, "GET", "/v1/stats", NULL);
        in = a.status == 200;
        web_free(&a);
    }
    close(fd[1]);
    stop();
}

static void one_token_has_its_share_of_listeners_and_waits(void **state)
{
    (void)state;
    static const char take[] = "{\"types\":[\"t\"],\"wait\":60000}";
    start((srv_limits){ .caller = { [SRV_SHARE_LISTENERS] = 1, [SRV_SHARE_WAITS] = 1 } });
    char *all = NULL;
    int   listener = ask(one, "GET /v1/events", "");
    web_read_until(listener, &all, "retry:");
    says(one, 429, "caller-listeners: 1", "GET", "/v1/events", NULL);
    int waits = ask(one, "POST /v1/take", take);
    while (!atomic_load(&w.s->counters.takes_waiting))
        usleep(1000);
    says(one, 429, "caller-waits: 1", "POST", "/v1/take", take);
    says(one, 200, "[]", "POST", "/v1/take", "{\"types\":[\"t\"]}");
    close(listener);
    close(waits);
    for (bool in = false; !in;) {
        int fd = ask(one, "GET /v1/events", "");
        web_free(&(web_answer){ .head = all });
        all = NULL;
        web_read_until(fd, &all, "\r\n\r\n");
        in = strstr(all, " 200 ") != NULL;
        close(fd);
    }
    free(all);
    while (atomic_load(&w.s->counters.takes_waiting))
        usleep(1000);
    says(one, 200, "[]", "POST", "/v1/take", "{\"types\":[\"t\"],\"wait\":1}");
    stop();
}

static void one_token_has_its_share_of_bodies(void **state)
{
    (void)state;
    start((srv_limits){ .caller = { [SRV_SHARE_BODIES] = 1024 * 1024 } });
    char *body = malloc(2 * 1024 * 1024);
    assert_non_null(body);
    memset(body, ' ', 1200 * 1024);
    strcpy(body + 1200 * 1024, "{\"type\":\"t\"}");
    says(one, 429, "caller-bodies: 1 MiB", "POST", "/v1/jobs", body);
    says(one, 201, "", "POST", "/v1/jobs", "{\"type\":\"t\"}");
    says(one, 201, "", "POST", "/v1/jobs", body + 400 * 1024);
    free(body);
    stop();
}

/* ---- answers that are not read ---- */

enum { LARGE = 1000 * 1000, JOBS = 16 };

static void add_large_jobs(void)
{
    char *data = malloc(LARGE + 3);
    assert_non_null(data);
    memset(data, 'x', LARGE + 2);
    data[0] = data[LARGE + 1] = '"';
    data[LARGE + 2] = '\0';
    for (int i = 0; i < JOBS; i++)
        rt_add(&w.t, &(weir_spec){ .type = "large", .data = data });
    free(data);
}

/* A client with a small window that asks for a page of about 16 MB. */
static int ask_for(const char *token, const char *target)
{
    int small = 64 * 1024, fd = web_connect(&w);
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    char text[300];
    snprintf(text, sizeof text, "GET %s HTTP/1.1\r\nHost: localhost\r\n%s\r\n", target, token);
    web_send(fd, text);
    return fd;
}

static int ask_for_page(const char *token)
{
    return ask_for(token, "/v1/jobs?type=large");
}

enum { CLIENTS = 30 };

static void pages_cost_a_part_each(const char *target, int n_clients)
{
    int fd[CLIENTS];
    for (int i = 0; i < n_clients; i++)
        fd[i] = ask_for(one, target);
    for (int i = 0; i < n_clients; i++) {         /* until each has been sent something */
        struct pollfd p = { .fd = fd[i], .events = POLLIN };
        assert_int_equal(poll(&p, 1, PATIENCE_MS), 1);
        assert_true(atomic_load(&w.s->answers) < (size_t)n_clients * 3 * LARGE);    /* two jobs */
    }
    web_answer a = web_read(fd[0]);             /* a client that reads gets all of it */
    assert_int_equal(a.status, 200);
    if (a.len <= (size_t)JOBS * LARGE)
        fail_msg("%zu bytes: %.100s", a.len, a.body + a.len - 100);
    assert_string_equal(a.body + a.len - 13, ",\"next\":null}");
    web_free(&a);
    for (int i = 0; i < n_clients; i++)
        close(fd[i]);
    while (atomic_load(&w.s->answers))          /* and all is given back */
        usleep(1000);
}

static void pages_that_nobody_reads_cost_a_part_each(void **state)
{
    (void)state;
    start((srv_limits){ .caller = { [SRV_SHARE_ANSWERS] = SRV_MAX_ANSWERS } });
    add_large_jobs();
    pages_cost_a_part_each("/v1/jobs?type=large", CLIENTS);
    stop();
}

/* PUT or POST something with text of LARGE bytes, JOBS times. */
static void put_large(const char *method, const char *target, const char *begin, const char *end)
{
    char *body = malloc(LARGE + 200);
    assert_non_null(body);
    for (int i = 0; i < JOBS; i++) {
        char   path[100];
        size_t n = (size_t)snprintf(body, 200, begin, i);
        memset(body + n, 'x', LARGE);
        strcpy(body + n + LARGE, end);
        snprintf(path, sizeof path, target, i);
        web_answer a = call(one, method, path, body);
        if (a.status >= 300)
            fail_msg("%s %s: %d %.300s", method, path, a.status, a.body);
        web_free(&a);
    }
    free(body);
}

static void tasks_and_schedules_that_nobody_reads_cost_a_part_each(void **state)
{
    (void)state;
    start((srv_limits){ .caller = { [SRV_SHARE_ANSWERS] = SRV_MAX_ANSWERS } });
    put_large("POST", "/v1/tasks", "{\"service\":\"s\",\"classifier\":\"c\",\"id\":\"t%d\","
              "\"relative_id\":\"r\",\"run_at\":4102444800000,\"attachment\":\"", "\"}");
    pages_cost_a_part_each("/v1/tasks?limit=1000", 4);
    says(one, 413, "SRV_MAX_PAGE", "GET", "/v1/tasks?classifier=c&relative_ids=r,q&limit=1000",
         NULL);
    put_large("PUT", "/v1/schedules/s%d", "{\"when\":\"0 0 1 1 *\",\"job\":{\"type\":\"t%d\","
              "\"data\":\"", "\"}}");
    pages_cost_a_part_each("/v1/schedules?limit=1000", CLIENTS);
    stop();
}

/* ---- batches ---- */

/* {"ops":[OP,OP,...]} */
static char *batch_of(const char *op, int n)
{
    char *text = malloc((strlen(op) + 1) * (size_t)n + 20), *end = text;
    assert_non_null(text);
    end += sprintf(end, "{\"ops\":[");
    for (int i = 0; i < n; i++)
        end += sprintf(end, "%s%s", i ? "," : "", op);
    strcpy(end, "]}");
    return text;
}

static int count(const char *text, const char *part)
{
    int n = 0;
    for (const char *at = text; (at = strstr(at, part)); at += strlen(part))
        n++;
    return n;
}

/* How much is answered to a batch of N operations; some of them are refused, unless all fit. */
static void batch_is_bounded(const char *op, int n, const char *answered, bool all_fit)
{
    char      *body = batch_of(op, n);
    web_answer a = call(one, "POST", "/v1/batch", body);
    assert_int_equal(a.status, 200);
    if (a.len > (size_t)SRV_MAX_BATCH_ANSWER + SRV_MAX_PAGE)
        fail_msg("%d times %s: %zu bytes", n, op, a.len);
    int refused = count(a.body, "{\"error\":{\"code\":\"ELIMIT\"");
    assert_int_equal(count(a.body, "SRV_MAX_BATCH_ANSWER"), refused);
    if (all_fit ? refused : !refused || refused == n)
        fail_msg("%s: %d of %d refused, %zu bytes", op, refused, n, a.len);
    assert_int_equal(count(a.body, answered), n - refused);
    assert_int_equal(atomic_load(&w.s->answers), 0);
    web_free(&a);
    free(body);
}

/* Records of trends with all buckets, of the last 500 minutes; and what asks for them. */
static void put_large_trends(char get[200])
{
    enum { SLOTS = 500 };
    long long now = weir_now(w.t.q) / 60000;
    char *body = malloc((size_t)SLOTS * WEIR_TREND_MAX_BYTES + 100), *end = body;
    assert_non_null(body);
    end += sprintf(end, "{\"ops\":[{\"op\":\"trend_put\",\"rows\":[");
    for (int i = 0; i < SLOTS; i++) {
        end += sprintf(end, "%s{\"step\":\"1m\",\"slot\":%lld,\"type\":\"\","
                       "\"record\":\"added=1", i ? "," : "", now - i);
        for (int k = 0; k < WEIR_TREND_BUCKETS; k++)
            end += sprintf(end, " w%d=1000000000", k);
        for (int k = 0; k < WEIR_TREND_BUCKETS; k++)
            end += sprintf(end, " r%d=1000000000", k);
        end += sprintf(end, "\"}");
    }
    strcpy(end, "]}]}");
    says(one, 200, "\"answers\":[{}]", "POST", "/v1/batch", body);
    free(body);
    snprintf(get, 200, "{\"op\":\"trend_get\",\"type\":\"\",\"step\":\"1m\",\"from\":%lld,"
             "\"n\":1440}", now - 1000);
}

/* Each operation that reads, asked often for a lot. */
static void a_batch_reads_so_much_and_no_more(void **state)
{
    (void)state;
    char trends[200];
    const struct {
        const char *request, *answered;
        int         n;
        bool        all_fit;
    } reads[WEIR_OP_COUNT] = {
        [WEIR_OP_GET] = { "{\"op\":\"get\",\"id\":1}", "\"job\":{", 1000, false },
        [WEIR_OP_LIST] = { "{\"op\":\"list\",\"limit\":1000}", "\"jobs\":[", 30, false },
        [WEIR_OP_LOGS] = { "{\"op\":\"logs\",\"id\":1}", "\"lines\":[", 30, false },
        [WEIR_OP_SCHEDULES] = { "{\"op\":\"schedules\"}", "\"schedules\":[", 30, false },
        [WEIR_OP_TREND_GET] = { trends, "\"rows\":[", 30, false },
        [WEIR_OP_STATS] = { "{\"op\":\"stats\"}", "\"all\":{", 1000, true },
        [WEIR_OP_INFO] = { "{\"op\":\"info\"}", "\"engine\":", 1000, true },
        [WEIR_OP_CHECK] = { "{\"op\":\"check\"}", "\"mended\":", 30, true },
    };
    start((srv_limits){ 0 });
    add_large_jobs();
    put_large_trends(trends);
    put_large("PUT", "/v1/schedules/s%d", "{\"when\":\"0 0 1 1 *\",\"job\":{\"type\":\"t%d\","
              "\"data\":\"", "\"}}");
    for (int i = 0; i < 100; i++) {
        char line[60 * 1024 + 1];
        memset(line, 'x', sizeof line - 1);
        line[sizeof line - 1] = '\0';
        assert_int_equal(weir_log(w.t.q, 1, 0, line, 0, &w.t.err), WEIR_OK);
    }
    for (int kind = 0; kind < WEIR_OP_COUNT; kind++) {
        if (weir__op_writes(&(weir_op){ .kind = (weir_op_kind)kind }))
            continue;
        if (!reads[kind].request)
            fail_msg("%s reads, and is not tried here", weir__op_rows[kind]->name);
        batch_is_bounded(reads[kind].request, reads[kind].n, reads[kind].answered,
                         reads[kind].all_fit);
    }
    stop();
}

/* A small page of many jobs is whole, and one of large jobs ends early. */
static void lists_in_a_batch_end_early(void **state)
{
    (void)state;
    start((srv_limits){ 0 });
    for (int i = 0; i < 300; i++)
        rt_add(&w.t, &(weir_spec){ .type = "small" });
    char      *body = batch_of("{\"op\":\"list\",\"type\":\"small\",\"limit\":299}", 2);
    web_answer a = call(one, "POST", "/v1/batch", body);
    assert_int_equal(count(a.body, "\"type\":\"small\""), 2 * 299);
    assert_int_equal(count(a.body, "\"next\":{\"rank\":0,\"id\":299}"), 2);
    web_free(&a);
    free(body);
    add_large_jobs();
    add_large_jobs();
    a = call(one, "POST", "/v1/batch",
             "{\"ops\":[{\"op\":\"list\",\"type\":\"large\",\"limit\":1000},"
             "{\"op\":\"stats\"}]}");
    int n = count(a.body, "\"type\":\"large\"") - 1;        /* and once in the statistics */
    assert_true(n > JOBS && n < 2 * JOBS);
    assert_int_equal(count(a.body, "\"next\":{"), 1);
    web_free(&a);
    stop();
}

/* What is not read of batches is counted, and writes go on when there is no room for reads. */
static void batches_that_nobody_reads_have_a_budget(void **state)
{
    (void)state;
    enum { SOME = 12, BUDGET = 16 * 1024 * 1024 };
    start((srv_limits){ .caller = { [SRV_SHARE_ANSWERS] = BUDGET } });
    add_large_jobs();
    char *body = batch_of("{\"op\":\"list\"}", 2);
    int   fd[SOME];
    for (int n = 0; n < SOME; n++) {             /* each leaves all but its first bytes */
        int small = 64 * 1024;
        fd[n] = ask(one, "POST /v1/batch", body);
        setsockopt(fd[n], SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
        char head[13] = "";
        assert_int_equal(recv(fd[n], head, 12, MSG_WAITALL), 12);
        assert_true(atomic_load(&w.s->answers) < (size_t)2 * BUDGET);
    }
    for (int n = 0; n < SOME; n++)
        close(fd[n]);
    while (atomic_load(&w.s->answers))
        usleep(1000);
    atomic_fetch_add(&w.s->answers, SRV_MAX_ANSWERS);
    says(one, 503, "SRV_MAX_ANSWERS", "POST", "/v1/batch", body);
    says(one, 200, "ELIMIT", "POST", "/v1/batch",
         "{\"ops\":[{\"op\":\"list\"},{\"op\":\"add\",\"jobs\":[{\"type\":\"new\"}]}]}");
    says(one, 200, "\"state\":\"inactive\"", "POST", "/v1/batch",
         "{\"ops\":[{\"op\":\"list\"},{\"op\":\"add\",\"jobs\":[{\"type\":\"new\"}]}]}");
    assert_int_equal(atomic_fetch_sub(&w.s->answers, SRV_MAX_ANSWERS), SRV_MAX_ANSWERS);
    free(body);
    stop();
}

static void unread_answers_have_a_budget(void **state)
{
    (void)state;
    start((srv_limits){ .answers = 4 * LARGE, .caller = { [SRV_SHARE_ANSWERS] = LARGE } });
    add_large_jobs();
    int           fd = ask_for_page(one);       /* a caller that is alone may be over its share */
    struct pollfd p = { .fd = fd, .events = POLLIN };
    assert_int_equal(poll(&p, 1, PATIENCE_MS), 1);
    while (!atomic_load(&w.s->answers))
        usleep(1000);
    says(one, 429, "caller-answers: 0 MiB", "GET", "/v1/jobs", NULL);
    says(one, 429, "caller-answers: 0 MiB", "GET", "/v1/jobs/1", NULL);
    says(two, 200, "xxx", "GET", "/v1/jobs/1", NULL);
    web_answer a = web_read(fd);
    assert_int_equal(a.status, 200);
    assert_true(a.len > (size_t)JOBS * LARGE);
    web_free(&a);
    close(fd);
    stop();
    start((srv_limits){ .answers = LARGE });
    add_large_jobs();
    fd = ask_for_page(one);
    while (atomic_load(&w.s->answers) < LARGE)
        usleep(1000);
    says(NULL, 200, "ok", "GET", "/healthz", NULL);
    says(two, 503, "SRV_MAX_ANSWERS", "GET", "/v1/jobs/1", NULL);
    a = web_read(fd);
    assert_int_equal(a.status, 200);
    assert_true(a.len > (size_t)JOBS * LARGE);
    web_free(&a);
    close(fd);
    says(two, 200, "xxx", "GET", "/v1/jobs/1", NULL);
    metric_is("weir_http_answers_refused_total 1\n");
    stop();
}

/* An answer that has begun is not cut off when others take the room: its next part waits. */
static void parts_wait_for_room(void **state)
{
    (void)state;
    start((srv_limits){ 0 });
    add_large_jobs();
    char  *all = malloc((size_t)(JOBS + 1) * LARGE);
    size_t len = 0;
    assert_non_null(all);
    int           fd = ask_for_page(one);
    struct pollfd p = { .fd = fd, .events = POLLIN };
    assert_int_equal(poll(&p, 1, PATIENCE_MS), 1);
    atomic_fetch_add(&w.s->answers, SRV_MAX_ANSWERS);
    while (!atomic_load(&w.s->counters.answers_delayed)) {
        ssize_t n = recv(fd, all + len, LARGE, MSG_DONTWAIT);
        len += n > 0 ? (size_t)n : 0;
        assert_true(len < (size_t)JOBS * LARGE);
    }
    atomic_fetch_sub(&w.s->answers, SRV_MAX_ANSWERS);
    while (len < 5 || memcmp(all + len - 5, "0\r\n\r\n", 5) != 0) {
        ssize_t n = recv(fd, all + len, LARGE, 0);
        assert_true(n > 0);
        len += (size_t)n;
    }
    assert_true(len > (size_t)JOBS * LARGE);
    free(all);
    close(fd);
    stop();
}

static void readers_that_are_too_slow_are_closed(void **state)
{
    (void)state;
    start((srv_limits){ .answer_ms = 100, .write_ms = 10000 });
    add_large_jobs();
    int  fd = ask_for_page(one);
    char some[512];
    do {                                        /* it takes a little, again and again */
        assert_true(recv(fd, some, sizeof some, 0) > 0);
        usleep(2000);
    } while (atomic_load(&w.s->n_conns));
    close(fd);
    stop();
}

/* ---- tokens that are taken away ---- */

static void a_token_that_is_gone_ends_streams_and_waits(void **state)
{
    (void)state;
    start((srv_limits){ 0 });
    weir_error err;
    char      *all = NULL, *others = NULL;
    int        listener = ask(one, "GET /v1/events", ""), other = ask(two, "GET /v1/events", "");
    int        waits = ask(one, "POST /v1/take", "{\"types\":[\"t\"],\"wait\":60000}");
    web_read_until(listener, &all, "retry:");
    web_read_until(other, &others, "retry:");
    while (!atomic_load(&w.s->counters.takes_waiting))
        usleep(1000);
    assert_int_equal(srv_tokens_remove(file, "one", &err), WEIR_OK);
    web_read_until(listener, &all, "event: revoked");       /* without any request or signal */
    web_answer a = web_read(waits);
    assert_int_equal(a.status, 401);
    web_free(&a);
    assert_true(web_closed(waits));
    rt_add(&w.t, &(weir_spec){ .type = "t" });
    web_read_until(other, &others, "event: enqueue");       /* others go on */
    assert_null(strstr(all, "enqueue"));
    says(two, 200, "\"type\":\"t\"", "POST", "/v1/take", "{\"types\":[\"t\"]}");
    metric_is("weir_http_callers_revoked_total 2\n");
    free(all);
    free(others);
    close(listener);
    close(other);
    close(waits);
    stop();
}

static char noticed[400];

static void notice(const char *text, void *ctx)
{
    assert_ptr_equal(ctx, noticed);
    snprintf(noticed, sizeof noticed, "%s", text);
}

static void tokens_that_cannot_be_read_leave_those_from_before(void **state)
{
    (void)state;
    assert_true(tempdir_make(dir));
    snprintf(file, sizeof file, "%s/tokens.json", dir);
    add_token("two", two);
    web_start(&w, RT_MEM, false, &(srv_options){ .tokens_file = file, .notice = notice,
                                                 .notice_ctx = noticed, .threads = 1 });
    FILE *out = fopen(file, "w");
    assert_non_null(out);
    fputs("{ nonsense", out);
    fclose(out);
    weir_error err;
    assert_int_equal(srv_reload(w.s, &err), WEIR_EINVAL);
    says(two, 200, "", "GET", "/v1/stats", NULL);
    metric_is("weir_reload_failures_total 1\n");
    out = fopen(file, "w");                     /* and without a signal */
    fputs("{ more nonsense", out);
    fclose(out);
    while (srv_guard_failures(w.s->guard) < 2) {
        says(two, 200, "", "GET", "/v1/stats", NULL);
        usleep(10000);
    }
    says(two, 200, "", "GET", "/v1/stats", NULL);
    assert_non_null(strstr(noticed, "those from before stay valid: "));
    stop();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses_are_told_apart),
        cmocka_unit_test(requests_are_paced),
        cmocka_unit_test(the_table_does_not_grow),
        cmocka_unit_test(one_token_is_paced_and_others_are_not),
        cmocka_unit_test(one_token_has_its_share_of_connections),
        cmocka_unit_test(one_token_has_its_share_of_listeners_and_waits),
        cmocka_unit_test(one_token_has_its_share_of_bodies),
        cmocka_unit_test(pages_that_nobody_reads_cost_a_part_each),
        cmocka_unit_test(tasks_and_schedules_that_nobody_reads_cost_a_part_each),
        cmocka_unit_test(a_batch_reads_so_much_and_no_more),
        cmocka_unit_test(lists_in_a_batch_end_early),
        cmocka_unit_test(batches_that_nobody_reads_have_a_budget),
        cmocka_unit_test(unread_answers_have_a_budget),
        cmocka_unit_test(parts_wait_for_room),
        cmocka_unit_test(readers_that_are_too_slow_are_closed),
        cmocka_unit_test(a_token_that_is_gone_ends_streams_and_waits),
        cmocka_unit_test(tokens_that_cannot_be_read_leave_those_from_before),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
