/* test_metrics.c - /metrics: that it can be read, that its numbers are right, and that it stays
 * small; /readyz beside it. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/live/metrics.h"
#include "support/server_rig.h"

/* ---- the grammar of the text format, version 0.0.4 ---- */

typedef struct family {
    char name[100], kind[16];
} family;

static const char *past_name(const char *p, const char *text)
{
    if (!isalpha((unsigned char)*p) && *p != '_')
        fail_msg("a name is missing: %s", text);
    while (isalnum((unsigned char)*p) || *p == '_' || *p == ':')
        p++;
    return p;
}

static const char *past_labels(const char *p, const char *text)
{
    for (p++; *p != '}'; p += *p == ',') {
        p = past_name(p, text);
        if (p[0] != '=' || p[1] != '"')
            fail_msg("no value: %s", text);
        for (p += 2; *p != '"'; p++) {
            if (*p == '\\' && !strchr("\\\"n", *++p))
                fail_msg("not escaped: %s", text);
            if (!*p)
                fail_msg("no end: %s", text);
        }
        p++;
        if (*p != ',' && *p != '}')
            fail_msg("neither , nor }: %s", text);
    }
    return p + 1;
}

static void check_sample(const char *text, const family *f)
{
    static const char *const endings[] = { "", "_bucket", "_sum", "_count" };
    const char *end = past_name(text, text), *p = end;
    size_t      len = strlen(f->name);
    bool        ours = false;
    for (int i = 0; i < (strcmp(f->kind, "histogram") == 0 ? 4 : 1); i++)
        ours |= strncmp(text, f->name, len) == 0 &&
                (size_t)(end - text) == len + strlen(endings[i]) &&
                strncmp(text + len, endings[i], strlen(endings[i])) == 0;
    if (!ours)
        fail_msg("not of the family %s: %s", f->name, text);
    if (*p == '{')
        p = past_labels(p, text);
    char *rest;
    if (*p != ' ' || isnan(strtod(p + 1, &rest)) || rest == p + 1 || *rest)
        fail_msg("no number: %s", text);
}

/* Every family has its two lines and comes once, every sample is of the family above it, and no two
 * samples are the same. */
static void check_text(const char *body)
{
    char   *copy = strdup(body), *rest = copy, seen[200][100];
    size_t  n_seen = 0, n = 0;
    family  f = { 0 };
    char  **keys = calloc(100000, sizeof *keys);
    assert_int_equal(body[strlen(body) - 1], '\n');
    for (char *line; (line = strsep(&rest, "\n")) && *line;) {
        if (strncmp(line, "# HELP ", 7) == 0) {
            assert_int_equal(sscanf(line, "# HELP %99s", f.name), 1);
            for (size_t i = 0; i < n_seen; i++)
                if (strcmp(seen[i], f.name) == 0)
                    fail_msg("twice: %s", f.name);
            strcpy(seen[n_seen++], f.name);
        } else if (strncmp(line, "# TYPE ", 7) == 0) {
            char name[100];
            assert_int_equal(sscanf(line, "# TYPE %99s %15s", name, f.kind), 2);
            assert_string_equal(name, f.name);
            bool total = strlen(name) > 6 && strcmp(name + strlen(name) - 6, "_total") == 0;
            assert_int_equal(total, strcmp(f.kind, "counter") == 0);
        } else {
            check_sample(line, &f);
            *strrchr(line, ' ') = 0;
            keys[n++] = line;
        }
    }
    for (size_t i = 0; i < n; i++)
        for (size_t j = n < 3000 ? i + 1 : n; j < n; j++)
            if (strcmp(keys[i], keys[j]) == 0)
                fail_msg("twice: %s", keys[i]);
    free(keys);
    free(copy);
    if (system("command -v promtool >/dev/null 2>&1") == 0) {
        FILE *tool = popen("promtool check metrics >/dev/null", "w");
        fputs(body, tool);
        assert_int_equal(pclose(tool), 0);
    }
}

static char *scrape(web *w)
{
    web_answer a = web_call(w, "GET", "/metrics", NULL);
    assert_int_equal(a.status, 200);
    assert_string_equal(web_header(&a, "Content-Type"),
                        "text/plain; version=0.0.4; charset=utf-8");
    check_text(a.body);
    char *body = a.body;
    a.body = NULL;
    web_free(&a);
    return body;
}

/* The number of a sample; -1: it is not there. */
static double sample(const char *body, const char *name)
{
    char line[300];
    snprintf(line, sizeof line, "\n%s ", name);
    const char *at = strstr(body, line);
    return at ? strtod(at + strlen(line), NULL) : -1;
}

static void expect(const char *body, const char *name, double value)
{
    if (fabs(sample(body, name) - value) > 1e-9)
        fail_msg("%s is %g, not %g", name, sample(body, name), value);
}

/* ---- cases ---- */

static weir_job *take_one(rt *t, const char *type)
{
    const char *types[] = { type, NULL };
    weir_job   *job = NULL;
    size_t      n;
    assert_int_equal(weir_take(t->q, &(weir_taking){ .types = types, .n = 1 }, &job, &n, &t->err),
                     WEIR_OK);
    assert_int_equal(n, 1);
    return job;
}

/* The events of the histograms come on a thread of their own. */
static char *scrape_until(web *w, const char *name, double value)
{
    for (int64_t waited = 0;; waited += 10) {
        char *body = scrape(w);
        if (sample(body, name) == value)
            return body;
        if (waited > PATIENCE_MS)
            fail_msg("%s is not %g:\n%s", name, value, body);
        free(body);
        usleep(10000);
    }
}

static void numbers(void **state)
{
    (void)state;
    web w;
    web_start(&w, RT_MEM, true, NULL);
    char *body = scrape(&w);
    expect(body, "weir_jobs_added_total", 0);
    expect(body, "weir_http_connections", 1);
    expect(body, "weir_http_requests_running", 1);
    expect(body, "weir_event_listeners", 0);
    assert_true(sample(body, "weir_store_batch_size_count") >= 1);
    free(body);

    rt_add_type(&w.t, "mail");
    rt_add_type(&w.t, "mail");
    rt_add(&w.t, &(weir_spec){ .type = "mail", .delay_ms = 100000 });
    rt_add_type(&w.t, "odd \"one\" \\ here");
    rt_later(&w.t, 1500);
    weir_job *job = take_one(&w.t, "mail");
    rt_later(&w.t, 40);
    assert_int_equal(weir_job_done(job, NULL, 0, NULL), WEIR_OK);
    weir_job_free(job);
    job = take_one(&w.t, "mail");
    rt_later(&w.t, 400);
    assert_int_equal(weir_job_fail(job, "no"), WEIR_EJOB);
    weir_job_free(job);

    body = scrape_until(&w, "weir_job_duration_seconds_count{type=\"mail\"}", 2);
    expect(body, "weir_jobs{type=\"mail\",state=\"delayed\"}", 1);
    expect(body, "weir_jobs{type=\"mail\",state=\"complete\"}", 1);
    expect(body, "weir_jobs{type=\"mail\",state=\"failed\"}", 1);
    expect(body, "weir_jobs{type=\"odd \\\"one\\\" \\\\ here\",state=\"inactive\"}", 1);
    expect(body, "weir_jobs_added_total", 4);
    expect(body, "weir_executions_completed_total{type=\"mail\"}", 1);
    expect(body, "weir_executions_failed_total{type=\"mail\"}", 1);
    expect(body, "weir_work_seconds_total{type=\"mail\"}", 0.04);
    expect(body, "weir_oldest_waiting_seconds{type=\"mail\"}", 0);
    expect(body, "weir_oldest_waiting_seconds{type=\"odd \\\"one\\\" \\\\ here\"}", 1.94);
    expect(body, "weir_job_wait_seconds_count{type=\"mail\"}", 2);
    expect(body, "weir_job_wait_seconds_sum{type=\"mail\"}", 3.04);
    expect(body, "weir_job_wait_seconds_bucket{type=\"mail\",le=\"1.000\"}", 0);
    expect(body, "weir_job_wait_seconds_bucket{type=\"mail\",le=\"2.500\"}", 2);
    expect(body, "weir_job_wait_seconds_bucket{type=\"mail\",le=\"+Inf\"}", 2);
    expect(body, "weir_job_duration_seconds_bucket{type=\"mail\",le=\"0.025\"}", 0);
    expect(body, "weir_job_duration_seconds_bucket{type=\"mail\",le=\"0.050\"}", 1);
    expect(body, "weir_job_duration_seconds_bucket{type=\"mail\",le=\"0.500\"}", 2);
    expect(body, "weir_job_duration_seconds_sum{type=\"mail\"}", 0.44);
    free(body);
    web_stop(&w);
}

static void requests_are_counted(void **state)
{
    (void)state;
    web w;
    web_start(&w, RT_MEM, false, NULL);
    for (int i = 0; i < 3; i++) {
        web_answer a = web_call(&w, "GET", "/healthz", NULL);
        web_free(&a);
        a = web_call(&w, "GET", "/no/such/place/0123456789", NULL);
        assert_int_equal(a.status, 404);
        web_free(&a);
    }
    web_answer a = web_call(&w, "GET", "/healthz?x=1", NULL);
    web_free(&a);
    char *body = scrape(&w);
    expect(body, "weir_http_requests_total{method=\"GET\",route=\"/healthz\",status=\"200\"}", 3);
    expect(body, "weir_http_requests_total{method=\"GET\",route=\"/healthz\",status=\"400\"}", 1);
    expect(body, "weir_http_requests_total{method=\"\",route=\"\",status=\"404\"}", 3);
    assert_null(strstr(body, "0123456789"));
    free(body);
    web_stop(&w);
}

/* However many types there are, the answer has an end. */
static void types_without_number(void **state)
{
    (void)state;
    enum { N = SRV_METRIC_TYPES + 50 };
    web w;
    web_start(&w, RT_MEM, false, NULL);
    free(scrape(&w));
    char type[32];
    for (int i = 0; i < N; i++) {
        snprintf(type, sizeof type, "t%04d", i);
        rt_add_type(&w.t, type);
        weir_job *job = take_one(&w.t, type);
        assert_int_equal(weir_job_done(job, NULL, 0, NULL), WEIR_OK);
        weir_job_free(job);
    }
    char *body = scrape_until(&w, "weir_job_duration_seconds_count{type=\"\"}", 50);
    expect(body, "weir_jobs{type=\"t0199\",state=\"complete\"}", 1);
    expect(body, "weir_jobs{type=\"t0200\",state=\"complete\"}", -1);
    expect(body, "weir_jobs{type=\"\",state=\"complete\"}", 50);
    expect(body, "weir_executions_completed_total{type=\"\"}", 50);
    expect(body, "weir_job_wait_seconds_count{type=\"\"}", 50);
    free(body);
    web_stop(&w);
}

static void ready(void **state)
{
    (void)state;
    web w;
    web_start(&w, RT_SQLITE, false, NULL);
    json_t *j = web_json(&w, 200, "GET", "/readyz", NULL);
    assert_true(json_is_true(json_object_get(j, "ok")));
    json_decref(j);
    web_stop(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers),
        cmocka_unit_test(requests_are_counted),
        cmocka_unit_test(types_without_number),
        cmocka_unit_test(ready),
    };
    return cmocka_run_group_tests_name("metrics", tests, NULL, NULL);
}
