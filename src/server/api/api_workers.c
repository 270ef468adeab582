/* api_workers.c - GET /v1/workers: who takes jobs, and which they hold. The server keeps the
 * workers that it has seen (workers.h). The jobs of each, and other workers, are in the store's
 * list of active jobs. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/sorted.h"
#include "server/http/inner.h"
#include "server/live/workers.h"

enum {
    MAX_HELD  = 1000,       /* active jobs that are looked at */
    HELD_PAGE = 100         /* in a page, since they come with their data */
};

typedef struct held {
    const char *worker, *type;
    uint64_t    id;
    int64_t     started_at, lease_until;
    bool        shown;
} held;

typedef struct survey {
    weir_query  query;
    weir_page  *page;
    held        held[MAX_HELD];
    size_t      n;
    weir_buf    out;
    const srv_caller *who;  /* sees jobs and workers of its types alone */
    bool        comma;
} survey;

static int by_worker(const void *a, const void *b)
{
    const held *x = a, *y = b;
    int         order = strcmp(x->worker, y->worker);
    return order ? order : x->id < y->id ? -1 : x->id > y->id;
}

static int compare_worker(const void *worker, const void *job)
{
    return strcmp(worker, ((const held *)job)->worker);
}

/* The first that this worker holds, or where it would be. */
static size_t first_of(const survey *s, const char *worker)
{
    return weir__sorted_place(worker, s->held, s->n, sizeof *s->held, compare_worker);
}

/* The types it takes, or only the token's. False: none of them. */
static bool add_types(survey *s, const srv_worker *w)
{
    size_t n = 0;
    weir__buf_str(&s->out, ",\"types\":[");
    for (size_t i = 0; w->types[i]; i++) {
        if (srv_caller_lacks(s->who, w->types[i]))
            continue;
        if (n++)
            weir__buf_char(&s->out, ',');
        weir__json_string(&s->out, w->types[i], strlen(w->types[i]));
    }
    weir__buf_char(&s->out, ']');
    return n || !*s->who->types;
}

static void add_held(survey *s, const held *h)
{
    weir__buf_printf(&s->out, "{\"id\":%" PRIu64 ",\"type\":", h->id);
    weir__json_string(&s->out, h->type, strlen(h->type));
    weir__buf_printf(&s->out, ",\"started_at\":%" PRId64, h->started_at);
    if (h->lease_until)
        weir__buf_printf(&s->out, ",\"lease_until\":%" PRId64, h->lease_until);
    weir__buf_char(&s->out, '}');
}

/* A worker that was never seen has no times. */
static void add_worker(const srv_worker *w, void *ctx)
{
    survey *s = ctx;
    size_t  from = s->out.len;
    weir__buf_str(&s->out, s->comma ? ",{\"name\":" : "{\"name\":");
    weir__json_string(&s->out, w->name, strlen(w->name));
    if (!add_types(s, w)) {
        s->out.len = from;
        return;
    }
    s->comma = true;
    if (w->first_seen_at)
        weir__buf_printf(&s->out, ",\"first_seen_at\":%" PRId64 ",\"last_seen_at\":%" PRId64,
                         w->first_seen_at, w->last_seen_at);
    weir__buf_printf(&s->out, ",\"waiting\":%s,\"jobs\":[", w->waiting ? "true" : "false");
    size_t first = first_of(s, w->name);
    for (size_t i = first; i < s->n && strcmp(s->held[i].worker, w->name) == 0; i++) {
        if (i > first)
            weir__buf_char(&s->out, ',');
        add_held(s, &s->held[i]);
        s->held[i].shown = true;
    }
    weir__buf_str(&s->out, "]}");
}

static void learn_type(const char *types[SRV_WORKER_TYPES + 1], const char *type)
{
    size_t n = 0;
    while (types[n] && strcmp(types[n], type) != 0)
        n++;
    if (n < SRV_WORKER_TYPES)
        types[n] = type;
}

/* Those who hold jobs that they started elsewhere, before this server was there. */
static void add_unseen(survey *s)
{
    for (size_t at = 0, next; at < s->n; at = next) {
        const char *name = s->held[at].worker, *types[SRV_WORKER_TYPES + 1] = { 0 };
        for (next = at; next < s->n && strcmp(s->held[next].worker, name) == 0; next++)
            learn_type(types, s->held[next].type);
        if (!s->held[at].shown)
            add_worker(&(srv_worker){ .name = name, .types = types }, s);
    }
}

static void answer(srv_request *r, survey *s)
{
    qsort(s->held, s->n, sizeof *s->held, by_worker);
    weir__buf_str(&s->out, "{\"workers\":[");
    srv_workers_each(r->server->workers, weir_now(srv_queue(r)), add_worker, s);
    add_unseen(s);
    weir__buf_str(&s->out, "]}");
    srv_reply_json(r, 200, &s->out);
}

static void list_on(srv_request *r);

static void listed(srv_request *r, weir_code code, const weir_error *err)
{
    survey    *s = r->state;
    weir_page *page = s->page;
    if (code) {
        srv_reply_error(r, err);
        return;
    }
    for (size_t i = 0; i < page->n && s->n < MAX_HELD; i++) {
        const weir_job *job = page->job[i];
        if (srv_caller_lacks(s->who, job->type))
            continue;
        char *worker = job->worker ? srv_strndup(r, job->worker, strlen(job->worker)) : NULL;
        char *type = srv_strndup(r, job->type, strlen(job->type));
        if (worker && type)
            s->held[s->n++] = (held){ worker, type, job->id, job->started_at, job->lease_until,
                                      false };
    }
    bool more = page->more && s->n < MAX_HELD;
    s->query.after = page->next;
    weir_page_free(page);
    if (more)
        list_on(r);
    else
        answer(r, s);
}

static void list_on(srv_request *r)
{
    survey      *s = r->state;
    weir_future *f = NULL;
    weir_error   err = { 0 };
    weir_code    rc = weir_list_async(srv_queue(r), &s->query, &s->page, &f, &err);
    srv_await(r, rc, &err, f, listed);
}

static void get_workers(srv_request *r)
{
    survey *s = srv_alloc(r, sizeof *s);
    if (!s) {
        srv_reply_fail(r, WEIR_ENOMEM, NULL, "out of memory");
        return;
    }
    s->who = &r->who;
    s->query = (weir_query){ .state = WEIR_STATE_ACTIVE, .type = srv_caller_only_type(&r->who),
                             .limit = HELD_PAGE };
    r->state = s;
    list_on(r);
}

const srv_route srv_workers_routes[] = {
    { "GET", "/v1/workers", WEIR_ROLE_READ, get_workers, 0, NULL, 0,
      "The workers that this server has seen", NULL, "Workers", 200 },
    { 0 }
};
