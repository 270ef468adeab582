/* workqueues.c - the work queues of a server: see workqueues.h. */
#include "server/bus/workqueues.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "server/access/file.h"
#include "server/bus/bus_service.h"
#include "server/bus/job_events.h"
#include "server/bus/job_service.h"
#include "server/bus/workqueue_servers.h"

typedef struct one {
    srv_workqueue   is;             /* its texts are its own */
    bool            configured;     /* it is in the settings of the server */
    weir_workqueue *queue;
} one;

struct srv_workqueues {
    weir_bus       *bus;
    weir_queue     *q;
    char           *path;           /* NULL: nothing is kept */
    one            *all[SRV_MAX_WORKQUEUES];        /* with `n` of the thread of `asks`, once
                                                       that runs */
    size_t          n;
    pthread_mutex_t lock;           /* guards what follows */
    srv_loop       *asks;           /* NULL until the first one */
};

/* ---- one of them ---- */

static void close_one(one *o)
{
    weir_workqueue_close(o->queue);
    free((char *)o->is.address);
    free((char *)o->is.collection);
    free(o);
}

/* Where the server itself answers, or publishes. */
static weir_code check_address(const char *address, weir_error *err)
{
    static const char *const whole[] = { SRV_BUS_SERVICE, SRV_JOB_SERVICE };
    static const char *const begin[] = { SRV_JOB_ENDS, SRV_JOB_EVENTS, SRV_WORKQUEUE_SERVERS };
    bool taken = false;
    for (size_t i = 0; i < sizeof whole / sizeof *whole; i++)
        taken |= strcmp(address, whole[i]) == 0;
    for (size_t i = 0; i < sizeof begin / sizeof *begin; i++)
        taken |= strncmp(address, begin[i], strlen(begin[i])) == 0;
    return taken ? weir_fail(err, WEIR_EINVAL, "work queue: the server itself uses the address "
                             "\"%.80s\"; choose another one", address)
                 : WEIR_OK;
}

static weir_code open_one(srv_workqueues *w, const srv_workqueue *is, bool configured, one **out,
                          weir_error *err)
{
    *out = NULL;
    if (check_address(is->address, err))
        return WEIR_EINVAL;
    one *o = *out = calloc(1, sizeof *o);
    if (!o)
        return weir_fail(err, WEIR_ENOMEM, "work queue: out of memory");
    o->is = *is;
    o->configured = configured;
    o->is.address = strdup(is->address);
    o->is.collection = is->collection ? strdup(is->collection) : NULL;
    weir_code rc = o->is.address && (o->is.collection || !is->collection)
                       ? WEIR_OK : weir_fail(err, WEIR_ENOMEM, "work queue: out of memory");
    weir_workqueue_config c = { .address = o->is.address, .queue = is->persist ? w->q : NULL,
                                .process_timeout_ms = is->process_timeout_ms,
                                .timed_out_first = is->timed_out_first,
                                .collection = o->is.collection };
    weir_error why = { 0 };
    if (!rc && (rc = weir_workqueue_open(&o->queue, w->bus, &c, &why)) != WEIR_OK)
        weir_fail(err, rc, "work queue %.80s: %s", is->address, why.msg);
    if (rc) {
        close_one(o);
        *out = NULL;
    }
    return rc;
}

static size_t find(const srv_workqueues *w, const char *address)
{
    size_t i = 0;
    while (i < w->n && strcmp(w->all[i]->is.address, address) != 0)
        i++;
    return i;
}

/* ---- the file ---- */

/* All that are not in the settings, with `fresh`, without `gone`; either may be NULL. */
static weir_code save(srv_workqueues *w, const one *fresh, const one *gone, weir_error *err)
{
    weir_buf    out = { 0 };
    const char *before = "\n{";
    if (!w->path)
        return WEIR_OK;
    weir__buf_str(&out, "{\"work_queues\":[");
    for (size_t i = 0; i < w->n + (fresh != NULL); i++) {
        const one *o = i < w->n ? w->all[i] : fresh;
        if (o->configured || o == gone)
            continue;
        weir__buf_str(&out, before);
        srv_workqueue_write(&out, &o->is);
        weir__buf_char(&out, '}');
        before = ",\n{";
    }
    weir__buf_str(&out, "\n]}\n");
    weir_code rc = out.failed ? weir_fail(err, WEIR_ENOMEM, "%s: out of memory", w->path)
                              : srv_file_replace(w->path, out.data, out.len, err);
    weir__buf_fini(&out);
    return rc;
}

static weir_code open_all(srv_workqueues *w, const srv_workqueue *list, size_t n, bool configured,
                          weir_error *err)
{
    weir_code rc = WEIR_OK;
    for (size_t i = 0; !rc && i < n; i++) {
        one *o = NULL;
        if (find(w, list[i].address) < w->n)    /* the settings hold */
            continue;
        if (w->n == SRV_MAX_WORKQUEUES)
            return weir_fail(err, WEIR_ELIMIT, "more than %d work queues (SRV_MAX_WORKQUEUES)",
                             SRV_MAX_WORKQUEUES);
        rc = open_one(w, &list[i], configured, &o, err);
        if (!rc)
            w->all[w->n++] = o;
    }
    return rc;
}

static weir_code load(srv_workqueues *w, weir_error *err)
{
    weir_buf       text = { 0 };
    weir_arena     arena = { 0 };
    srv_workqueue *list;
    size_t         n;
    weir_error     why = { 0 };
    weir_code      rc = w->path ? srv_file_read(w->path, &text, err) : WEIR_ENOENT;
    if (!rc && (rc = srv_workqueues_parse(text.data, text.len, &arena, &list, &n, &why)))
        weir_fail(err, rc, "%s: %s", w->path, why.msg);
    else if (!rc)
        rc = open_all(w, list, n, false, err);
    else if (rc == WEIR_ENOENT)
        rc = WEIR_OK;
    weir__arena_free(&arena);
    weir__buf_fini(&text);
    return rc;
}

/* ---- all of them ---- */

weir_code srv_workqueues_create(srv_workqueues **out, weir_bus *bus, weir_queue *q,
                                const srv_options *opt, weir_error *err)
{
    srv_workqueues *w = *out = calloc(1, sizeof *w);
    if (!w || (opt->data_dir && asprintf(&w->path, "%s/workqueues.json", opt->data_dir) < 0)) {
        free(w);
        *out = NULL;
        return weir_fail(err, WEIR_ENOMEM, "work queues: out of memory");
    }
    w->bus = bus;
    w->q = q;
    pthread_mutex_init(&w->lock, NULL);
    weir_code rc = open_all(w, opt->bus.workqueues, opt->bus.n_workqueues, true, err);
    if (!rc)
        rc = load(w, err);
    if (rc) {
        srv_workqueues_destroy(w);
        *out = NULL;
    }
    return rc;
}

void srv_workqueues_destroy(srv_workqueues *w)
{
    if (!w)
        return;
    srv_loop_destroy(w->asks);
    for (size_t i = 0; i < w->n; i++)
        close_one(w->all[i]);
    pthread_mutex_destroy(&w->lock);
    free(w->path);
    free(w);
}

/* ---- their numbers ---- */

/* The store's numbers, if one of `n` work queues needs them; else *out is NULL. */
static weir_code read_stats(srv_workqueues *w, one *const *list, size_t n, weir_stats **out,
                            weir_error *err)
{
    *out = NULL;
    for (size_t i = 0; i < n; i++)
        if (list[i]->is.persist)
            return weir_get_stats(w->q, out, err);
    return WEIR_OK;
}

/* Jobs of a persistent work queue that no work queue has taken. */
static uint64_t count_stored(const one *o, const weir_stats *s)
{
    const char *type = o->is.collection ? o->is.collection : o->is.address;
    for (size_t i = 0; o->is.persist && s && i < s->n; i++)
        if (strcmp(s->type[i].type, type) == 0)
            return s->type[i].count[WEIR_STATE_INACTIVE] + s->type[i].count[WEIR_STATE_DELAYED];
    return 0;
}

/* As this server alone sees it. */
static void write_row(weir_buf *out, one *o, const weir_stats *s)
{
    weir_workqueue_stats n;
    weir_workqueue_get_stats(o->queue, &n);
    weir__buf_char(out, '{');
    srv_workqueue_write(out, &o->is);
    weir__buf_printf(out, ",\"configured\":%s,\"waiting\":%" PRIu64
                     ",\"running\":%zu,\"idle\":%zu,\"busy\":%zu,\"done\":%" PRIu64
                     ",\"timed_out\":%" PRIu64 ",\"done_per_second\":%.1f,\"standby\":%s}",
                     o->configured ? "true" : "false", n.waiting + count_stored(o, s), n.running,
                     n.idle, n.busy, n.done, n.timed_out, n.done_per_second,
                     n.standby ? "true" : "false");
}

/* With what the other servers say about it. */
static void show_row(srv_workqueue_ask *ask, weir_json_piece row)
{
    srv_workqueue_merge(&ask->json, srv_workqueue_member(row, "address"), row, &ask->others);
}

void srv_workqueues_list(srv_workqueues *w, srv_workqueue_ask *ask)
{
    weir_stats     *s;
    weir_buf        own = { 0 };
    weir_json_walk  walk;
    weir_json_piece name, row;
    if (read_stats(w, w->all, w->n, &s, &ask->err))
        return;
    for (size_t i = 0; i < w->n; i++) {
        weir__buf_char(&own, i ? ',' : '[');
        write_row(&own, w->all[i], s);
    }
    weir__buf_str(&own, w->n ? "]" : "[]");
    weir_stats_free(s);
    weir_buf       *out = &ask->json;
    weir_json_piece list = { own.data, own.len };
    weir__buf_str(out, "{\"work_queues\":[");
    size_t begin = out->len;
    if (!own.failed && weir__json_open(&walk, list)) {
        while (weir__json_next(&walk, &name, &row)) {
            weir__buf_str(out, out->len > begin ? "," : "");
            show_row(ask, row);
        }
        srv_workqueue_merge_rest(out, list, &ask->others);
    }
    weir__buf_str(out, "]}");
    out->failed |= own.failed;
    weir__buf_fini(&own);
}

static void show_one(srv_workqueues *w, srv_workqueue_ask *ask, one *o)
{
    weir_stats *s;
    weir_buf    own = { 0 };
    if (read_stats(w, &o, 1, &s, &ask->err))
        return;
    write_row(&own, o, s);
    if (!own.failed)
        show_row(ask, (weir_json_piece){ own.data, own.len });
    ask->json.failed |= own.failed;
    weir__buf_fini(&own);
    weir_stats_free(s);
}

weir_code srv_workqueue_unknown(const char *address, weir_error *err)
{
    return weir_fail(err, WEIR_ENOENT, "there is no work queue \"%.80s\"", address);
}

weir_code srv_workqueue_in_settings(weir_error *err)
{
    return weir_fail(err, WEIR_ESTATE, "the work queue is in the settings of the server; take it "
                     "out of its configuration file");
}

void srv_workqueues_get(srv_workqueues *w, srv_workqueue_ask *ask)
{
    size_t   i = find(w, ask->is.address);
    weir_buf address = { 0 };
    if (i < w->n) {
        show_one(w, ask, w->all[i]);
        return;
    }
    weir__json_string(&address, ask->is.address, strlen(ask->is.address));
    if (address.failed ||
        !srv_workqueue_merge(&ask->json, (weir_json_piece){ address.data, address.len },
                             (weir_json_piece){ "", 0 }, &ask->others))
        srv_workqueue_unknown(ask->is.address, &ask->err);
    weir__buf_fini(&address);
}

/* ---- changes ---- */

void srv_workqueues_put(srv_workqueues *w, srv_workqueue_ask *ask)
{
    weir_error *err = &ask->err;
    size_t      i = find(w, ask->is.address);
    one        *o = NULL;
    if (ask->is.collection && !ask->is.persist) {
        weir__fail_field(err, WEIR_EINVAL, "collection", "only a persistent work queue has one; "
                         "add \"persist\":true");
        return;
    }
    if (i < w->n && !srv_workqueue_equal(&w->all[i]->is, &ask->is)) {
        weir_fail(err, WEIR_ESTATE, "the work queue runs with other settings; remove it first");
        return;
    }
    if (i < w->n) {
        show_one(w, ask, w->all[i]);
        return;
    }
    if (w->n == SRV_MAX_WORKQUEUES) {
        weir_fail(err, WEIR_ELIMIT, "more than %d work queues (SRV_MAX_WORKQUEUES)",
                  SRV_MAX_WORKQUEUES);
        return;
    }
    if (open_one(w, &ask->is, false, &o, err))
        return;
    if (save(w, o, NULL, err)) {
        close_one(o);
        return;
    }
    w->all[w->n++] = o;
    ask->made = true;
    show_one(w, ask, o);
}

void srv_workqueues_remove(srv_workqueues *w, srv_workqueue_ask *ask)
{
    size_t i = find(w, ask->is.address);
    one   *o = i < w->n ? w->all[i] : NULL;
    if (!o)
        srv_workqueue_unknown(ask->is.address, &ask->err);
    else if (o->configured)
        srv_workqueue_in_settings(&ask->err);
    else if (!save(w, NULL, o, &ask->err)) {
        memmove(w->all + i, w->all + i + 1, (--w->n - i) * sizeof *w->all);
        close_one(o);
    }
}

void srv_workqueues_finish(srv_workqueue_ask *ask)
{
    weir__buf_fini(&ask->others);
    if (ask->loop)
        srv_loop_post(ask->loop, &ask->done);
    else
        ask->done.run(&ask->done);
}

static void run_ask(weir_inbox_task *task)
{
    srv_workqueue_ask *ask = (srv_workqueue_ask *)task;     /* its first member */
    ask->run(ask->all, ask);
    srv_workqueues_finish(ask);
}

void srv_workqueues_post(srv_workqueues *w, srv_workqueue_ask *ask)
{
    pthread_mutex_lock(&w->lock);
    weir_code rc = w->asks ? WEIR_OK : srv_loop_create(&w->asks, "weir-workqueue", &ask->err);
    pthread_mutex_unlock(&w->lock);
    ask->all = w;
    ask->task.run = run_ask;
    if (rc)
        srv_workqueues_finish(ask);
    else
        srv_loop_post(w->asks, &ask->task);
}
