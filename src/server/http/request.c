/* request.c - a request's memory, what was asked, and waiting for the library. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/job.h"
#include "server/http/inner.h"

/* ---- memory ---- */

enum { PART = 4000 };       /* small pieces share blocks of this size */

struct srv_part {
    struct srv_part *next;
    size_t           used, size;
    max_align_t      bytes[];
};

srv_exchange *srv_exchange_create(srv_conn *c)
{
    srv_exchange *x = calloc(1, sizeof *x);
    if (!x)
        return NULL;
    x->r.server = c->server;
    x->r.loop = c->thread->loop;
    x->r.conn = c;
    x->r.body = "";
    x->began_ms = srv_loop_ms();
    atomic_fetch_add(&c->server->n_exchanges, 1);
    return x;
}

void srv_exchange_free(srv_exchange *x)
{
    if (!x)
        return;
    srv_timer_unset(&x->timer);
    for (struct srv_part *p = x->parts; p;) {
        struct srv_part *next = p->next;
        free(p);
        p = next;
    }
    atomic_fetch_sub(&x->r.server->bodies, x->reserved);
    srv_share_end(x);
    srv_http1_head_fini(&x->head);
    weir__buf_fini(&x->body);
    weir__buf_fini(&x->more);
    atomic_fetch_sub(&x->r.server->n_exchanges, 1);
    free(x);
}

void *srv_alloc(srv_request *r, size_t size)
{
    srv_exchange    *x = (srv_exchange *)r;
    struct srv_part *p = x->parts;
    if (size > SIZE_MAX / 2)
        return NULL;
    size = (size + sizeof(max_align_t) - 1) / sizeof(max_align_t) * sizeof(max_align_t);
    if (!p || p->size - p->used < size) {
        size_t room = size > PART ? size : PART;
        p = malloc(sizeof *p + room);
        if (!p)
            return NULL;
        p->used = 0;
        p->size = room;
        /* a large piece has its block for itself, and the last one stays in use */
        if (x->parts && room > PART) {
            p->next = x->parts->next;
            x->parts->next = p;
        } else {
            p->next = x->parts;
            x->parts = p;
        }
    }
    void *bytes = (char *)p->bytes + p->used;
    p->used += size;
    return memset(bytes, 0, size);
}

char *srv_strndup(srv_request *r, const char *text, size_t len)
{
    char *copy = srv_alloc(r, len + 1);
    if (copy)
        memcpy(copy, text, len);
    return copy;
}

weir_queue *srv_queue(const srv_request *r)
{
    return r->server->q;
}

const srv_options *srv_settings(const srv_request *r)
{
    return &r->server->opt;
}

struct srv_push *srv_pusher(const srv_request *r)
{
    return r->server->push;
}

/* ---- what was asked ---- */

const char *srv_field_value(const srv_exchange *x, const char *name, size_t *count)
{
    const char *found = NULL;
    *count = 0;
    const srv_http1_head *head = &x->head;
    for (size_t i = 0; i < head->n_fields; i++)
        if (!strcasecmp(head->text.data + head->field[i].name, name) && !(*count)++)
            found = head->text.data + head->field[i].value;
    return found;
}

const char *srv_header(const srv_request *r, const char *name)
{
    size_t count;
    return srv_field_value((const srv_exchange *)r, name, &count);
}

const char *srv_query(const srv_request *r, const char *name)
{
    for (size_t i = 0; i < r->n_query; i++)
        if (!strcmp(r->query[i].name, name))
            return r->query[i].value;
    return NULL;
}

static bool whole(const char *text, int64_t *out)
{
    char *end;
    if (!*text || strspn(text, "-0123456789") != strlen(text) || strlen(text) > 18)
        return false;
    *out = strtoll(text, &end, 10);
    return end != text && !*end;
}

bool srv_query_int(srv_request *r, const char *name, int64_t min, int64_t max, int64_t *out)
{
    const char *text = srv_query(r, name);
    int64_t     n;
    if (!text)
        return true;
    if (whole(text, &n) && n >= min && n <= max) {
        *out = n;
        return true;
    }
    srv_reply_fail(r, WEIR_EINVAL, name,
                   "%s: \"%.60s\" is not a whole number between %" PRId64 " and %" PRId64, name,
                   text, min, max);
    return false;
}

bool srv_query_ms(srv_request *r, const char *name, int64_t max_ms, int64_t *out)
{
    const char *text = srv_query(r, name);
    int64_t     ms;
    if (!text)
        return true;
    if (weir_duration_parse(text, &ms, NULL) == WEIR_OK && ms <= max_ms) {
        *out = ms;
        return true;
    }
    srv_reply_fail(r, WEIR_EINVAL, name,
                   "%s: \"%.60s\" is not a length of time such as 250ms or 3s, at most %" PRId64
                   " ms", name, text, max_ms);
    return false;
}

bool srv_query_bool(srv_request *r, const char *name, bool *out)
{
    const char *text = srv_query(r, name);
    if (!text)
        return true;
    *out = !strcmp(text, "true") || !strcmp(text, "1");
    if (*out || !strcmp(text, "false") || !strcmp(text, "0"))
        return true;
    srv_reply_fail(r, WEIR_EINVAL, name, "%s: \"%.60s\" is neither true nor false", name, text);
    return false;
}

bool srv_query_states(srv_request *r, const char *name, uint32_t *out)
{
    enum { LONGEST = 16 };
    const char *text = srv_query(r, name);
    for (bool more = text; more;) {
        char       word[LONGEST];
        size_t     n = strcspn(text, ",");
        weir_state state;
        snprintf(word, sizeof word, "%.*s", n < LONGEST ? (int)n : LONGEST, text);
        if (!weir_state_parse(word, &state)) {
            srv_reply_fail(r, WEIR_EINVAL, name, "%s: \"%.*s\" is not inactive, delayed, active, "
                           "complete, failed or cancelled", name, n < 60 ? (int)n : 60, text);
            return false;
        }
        *out |= WEIR_BIT(state);
        more = text[n];
        text += n + more;
    }
    return true;
}

/* A length of time counts back from now. */
bool srv_query_past(srv_request *r, const char *name, int64_t *out)
{
    const char *text = srv_query(r, name);
    int64_t     ms, now = weir_now(srv_queue(r));
    if (!text)
        return true;
    if (whole(text, out) && *out > 0 && *out <= WEIR__MAX_AT)
        return true;
    if (!whole(text, out) && !weir_duration_parse(text, &ms, NULL) && ms < now) {
        *out = now - ms;
        return true;
    }
    srv_reply_fail(r, WEIR_EINVAL, name, "%s: \"%.60s\" is neither a time, in milliseconds since "
                   "1970, nor how long ago, such as 90m or 2h", name, text);
    return false;
}

bool srv_query_priority(srv_request *r, const char *name, bool *given, int32_t *out)
{
    const char *text = srv_query(r, name);
    *given = text != NULL;
    if (!text || weir_priority_parse(text, out))
        return true;
    srv_reply_fail(r, WEIR_EINVAL, name,
                   "%s: \"%.60s\" is not low, normal, medium, high, critical or a number", name,
                   text);
    return false;
}

bool srv_arg_id(srv_request *r, size_t i, uint64_t *out)
{
    int64_t n;
    if (whole(r->arg[i], &n) && n > 0 && (uint64_t)n <= WEIR_MAX_ID) {
        *out = (uint64_t)n;
        return true;
    }
    srv_reply_fail(r, WEIR_EINVAL, "id", "id: \"%.60s\" is not the id of a job", r->arg[i]);
    return false;
}

/* ---- who asks ---- */

bool srv_may(const srv_request *r, unsigned role, const char *type)
{
    return srv_caller_may(&r->who, role, type);
}

bool srv_allow(srv_request *r, unsigned role, const char *type)
{
    if (srv_may(r, role, type))
        return true;
    char types[150];
    if (!type && *r->who.types)
        srv_reply_status(r, 403, "forbidden", "this token is for jobs of the type %s alone",
                         srv_caller_types_text(&r->who, types, sizeof types));
    else
        srv_reply_status(r, 403, "forbidden", "this token may not do that%s%.130s",
                         type ? " to jobs of the type " : "", type ? type : "");
    return false;
}

/* ---- waiting ---- */

/* One of several calls. */
struct srv_joined {
    struct srv_joined *next;
    srv_exchange      *x;
    weir_future       *f;
    weir_error        *out;
};

static void run_then(weir_inbox_task *task)
{
    srv_exchange *x = (srv_exchange *)((char *)task - offsetof(srv_exchange, task));
    srv_then     *then = x->then;
    x->then = NULL;
    srv_give_up(&x->r);
    for (struct srv_joined *j = x->joined; j; j = j->next)
        weir_future_free(j->f);
    x->joined = NULL;
    then(&x->r, x->err.code, &x->err);
}

/* The last that is done brings the request back to its loop. */
static void one_done(srv_exchange *x)
{
    if (atomic_fetch_sub(&x->pending, 1) == 1) {
        x->task.run = run_then;
        srv_loop_post(x->r.loop, &x->task);
    }
}

static void call_done(weir_code code, const weir_error *err, void *ctx)
{
    srv_exchange *x = ctx;
    x->err.code = code;
    if (err)
        x->err = *err;
    one_done(x);
}

void srv_await(srv_request *r, weir_code started, const weir_error *err, weir_future *f,
               srv_then *then)
{
    srv_exchange *x = (srv_exchange *)r;
    if (started) {
        then(r, started, err);
        return;
    }
    x->err = (weir_error){ 0 };
    x->then = then;
    x->future = f;
    atomic_store(&x->pending, 1);
    weir_future_then(f, call_done, x);
}

void srv_give_up(srv_request *r)
{
    srv_exchange *x = (srv_exchange *)r;
    weir_future  *f = x->future;
    x->future = NULL;
    weir_future_free(f);
}

static void joined_done(weir_code code, const weir_error *err, void *ctx)
{
    struct srv_joined *j = ctx;
    j->out->code = code;
    if (err)
        *j->out = *err;
    one_done(j->x);
}

void srv_gather(srv_request *r, srv_then *then)
{
    srv_exchange *x = (srv_exchange *)r;
    x->err = (weir_error){ 0 };
    x->then = then;
    atomic_store(&x->pending, 1);
}

void srv_join(srv_request *r, weir_code started, weir_future *f, weir_error *out)
{
    srv_exchange *x = (srv_exchange *)r;
    if (started)
        return;         /* the call has said why in `out` */
    struct srv_joined *j = srv_alloc(r, sizeof *j);
    if (!j) {
        /* without memory for a callback, the loop has to wait this once: what the call fills must
         * not go away before it is done */
        weir_future_wait(f, WEIR_FOREVER, out);
        weir_future_free(f);
        return;
    }
    *j = (struct srv_joined){ x->joined, x, f, out };
    x->joined = j;
    atomic_fetch_add(&x->pending, 1);
    weir_future_then(f, joined_done, j);
}

void srv_gathered(srv_request *r)
{
    one_done((srv_exchange *)r);
}

static void timer_over(void *ctx)
{
    srv_exchange *x = ctx;
    x->after(&x->r);
}

void srv_after(srv_request *r, int64_t ms, void (*run)(srv_request *r))
{
    srv_exchange *x = (srv_exchange *)r;
    x->after = run;
    if (srv_timer_set(&x->timer, r->loop, ms, timer_over, x))
        run(r);         /* no memory for a timer: at once is better than never */
}

void srv_not_after(srv_request *r)
{
    srv_timer_unset(&((srv_exchange *)r)->timer);
}
