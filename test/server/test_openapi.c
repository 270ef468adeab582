/* test_openapi.c - the document about the routes: it is right JSON, it has every route and no
 * other, all it refers to is there, and what it lists is served. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/http/inner.h"
#include "support/server_rig.h"

static json_t *document(web *w)
{
    json_t *doc = web_json(w, 200, "GET", "/v1/openapi.json", NULL);
    assert_string_equal(json_string_value(json_object_get(doc, "openapi")), "3.1.0");
    return doc;
}

static json_t *operation_of(json_t *doc, const srv_route *r)
{
    char    method[16] = "";
    json_t *item = json_object_get(json_object_get(doc, "paths"), r->path);
    for (size_t i = 0; r->method[i]; i++)
        method[i] = (char)tolower((unsigned char)r->method[i]);
    return json_object_get(item, method);
}

static void every_route_and_no_other(void **state)
{
    (void)state;
    static const srv_api apis[] = { SRV_API_KUE, SRV_API_VERTX };
    for (size_t a = 0; a < 2; a++) {
        web w;
        web_start(&w, RT_MEM, false, &(srv_options){ .api = apis[a] });
        json_t     *doc = document(&w), *item;
        size_t      routes = 0, operations = 0;
        const char *path;
        for (const srv_route *const *t = srv_routes; *t; t++)
            for (const srv_route *r = *t; r->method; r++) {
                if (r->flags & SRV_PLAIN || !srv_route_serves(r, apis[a]))
                    continue;
                routes++;
                json_t *op = operation_of(doc, r);
                if (!op)
                    fail_msg("%s %s is not in the document", r->method, r->path);
                if (!r->about || !r->status)
                    fail_msg("%s %s says nothing about itself", r->method, r->path);
                assert_int_equal(json_object_get(op, "requestBody") != NULL, r->body != NULL);
            }
        json_object_foreach(json_object_get(doc, "paths"), path, item)
            operations += json_object_size(item);
        assert_int_equal(operations, routes);
        json_decref(doc);
        web_stop(&w);
    }
}

/* Walk all of it: each $ref leads somewhere, each operation has a name of its own. */
static void walk(json_t *doc, json_t *at, json_t *names)
{
    const char *key;
    json_t     *value;
    size_t      i;
    json_array_foreach(at, i, value)
        walk(doc, value, names);
    json_object_foreach(at, key, value) {
        if (strcmp(key, "$ref") == 0) {
            char    text[200], *rest = text, *part;
            json_t *to = doc;
            snprintf(text, sizeof text, "%s", json_string_value(value));
            assert_string_equal(strsep(&rest, "/"), "#");
            while ((part = strsep(&rest, "/")))
                to = json_object_get(to, part);
            if (!to)
                fail_msg("%s leads nowhere", json_string_value(value));
        } else if (strcmp(key, "operationId") == 0) {
            if (json_object_get(names, json_string_value(value)))
                fail_msg("twice: %s", json_string_value(value));
            json_object_set_new(names, json_string_value(value), json_true());
        }
        walk(doc, value, names);
    }
}

static void references_lead_somewhere(void **state)
{
    (void)state;
    web w;
    web_start(&w, RT_MEM, false, NULL);
    json_t *doc = document(&w), *names = json_object();
    walk(doc, doc, names);
    assert_true(json_object_size(names) > 5);
    json_decref(names);
    json_decref(doc);
    web_stop(&w);
}

/* Ask for it, and read as much of the answer as it takes to know that it is one of the route. */
static void ask(web *w, const srv_route *r, uint64_t id)
{
    char  target[400] = "", request[600], *all = NULL;
    int   status, fd = web_connect(w);
    for (const char *p = r->path; *p; p++) {
        size_t n = strlen(target);
        if (*p != '{') {
            snprintf(target + n, sizeof target - n, "%c", *p);
            continue;
        }
        if (strncmp(p, "{id}", 4) == 0)
            snprintf(target + n, sizeof target - n, "%llu", (unsigned long long)id);
        else
            snprintf(target + n, sizeof target - n, "x");
        p = strchr(p, '}');
    }
    for (const srv_param *q = r->query; q && q->name; q++)      /* nobody is to wait for long */
        if (q->kind == SRV_P_MS || strcmp(q->name, "when") == 0)
            snprintf(target + strlen(target), sizeof target - strlen(target), "%c%s=%s",
                     strchr(target, '?') ? '&' : '?', q->name,
                     q->kind == SRV_P_MS ? "1ms" : "@daily");
    snprintf(request, sizeof request, "%s %s HTTP/1.1\r\nHost: %s\r\n%s\r\n%s", r->method, target,
             w->host, r->body ? "Content-Type: application/json\r\nContent-Length: 2\r\n" : "",
             r->body ? "{}" : "");
    web_send(fd, request);
    web_read_until(fd, &all, "\r\n\r\n");
    assert_int_equal(sscanf(all, "HTTP/1.1 %d", &status), 1);
    if (status == 404)
        web_read_until(fd, &all, "}");
    if (status == 405 || status == 500 || status == 501 || strstr(all, "unknown path"))
        fail_msg("%s %s: %s", r->method, target, all);
    if (!r->body && !strstr(r->path, "{") && status / 100 != 2)
        fail_msg("%s %s: %s", r->method, target, all);
    free(all);
    close(fd);
}

static void what_is_listed_is_served(void **state)
{
    (void)state;
    web w;
    web_start(&w, RT_MEM, false, NULL);
    for (const srv_route *const *t = srv_routes; *t; t++)
        for (const srv_route *r = *t; r->method; r++)
            if (!(r->flags & SRV_PLAIN) && srv_route_serves(r, SRV_API_KUE))
                ask(&w, r, rt_add_type(&w.t, "mail"));
    web_stop(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_route_and_no_other),
        cmocka_unit_test(references_lead_somewhere),
        cmocka_unit_test(what_is_listed_is_served),
    };
    return cmocka_run_group_tests_name("openapi", tests, NULL, NULL);
}
