/* workqueue_servers.c - see workqueue_servers.h. */
#include "server/bus/workqueue_servers.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bus/process.h"
#include "server/bus/bus_service.h"

enum { ANSWER_MS = 3000 };              /* for another server */

struct srv_workqueue_servers {
    weir_bus       *bus;
    srv_workqueues *own;
    pthread_mutex_t lock;               /* guards the next one */
    srv_loop       *loop;               /* NULL until the first question that others share */
};

/* ---- rows ---- */

static bool is(weir_json_piece name, const char *text)
{
    size_t len = strlen(text);
    return name.len == len + 2 && memcmp(name.text + 1, text, len) == 0;
}

static bool same(weir_json_piece a, weir_json_piece b)
{
    return a.len == b.len && memcmp(a.text, b.text, a.len) == 0;
}

weir_json_piece srv_workqueue_member(weir_json_piece row, const char *name)
{
    weir_json_walk  w;
    weir_json_piece key, value;
    if (row.len && weir__json_open(&w, row))
        while (weir__json_next(&w, &key, &value))
            if (is(key, name))
                return value;
    return (weir_json_piece){ "", 0 };
}

static bool is_true(weir_json_piece row, const char *name)
{
    return *srv_workqueue_member(row, name).text == 't';
}

/* Steps through the rows of all other servers: [{"work_queues":[ROW,...]},...]. */
typedef struct rows {
    weir_json_walk servers, list;
    bool           some, in_list;
} rows;

static rows begin_rows(const weir_buf *others)
{
    rows r = { .some = false };
    r.some = others->len && weir__json_open(&r.servers,
                                            (weir_json_piece){ others->data, others->len });
    return r;
}

static bool next_row(rows *r, weir_json_piece *out)
{
    weir_json_piece name, server;
    while (r->some) {
        if (r->in_list && weir__json_next(&r->list, &name, out))
            return true;
        r->some = weir__json_next(&r->servers, &name, &server);
        weir_json_piece list = { "", 0 };
        if (r->some)
            list = srv_workqueue_member(server, "work_queues");
        r->in_list = list.len && weir__json_open(&r->list, list);
    }
    return false;
}

static void write_row(weir_buf *out, weir_json_piece row, bool standby, size_t servers)
{
    weir_json_walk  w;
    weir_json_piece name, value;
    char            before = '{';
    weir__json_open(&w, row);
    while (weir__json_next(&w, &name, &value)) {
        if (is(name, "standby") || is(name, "servers"))
            continue;
        weir__buf_char(out, before);
        weir__buf_add(out, name.text, name.len);
        weir__buf_char(out, ':');
        weir__buf_add(out, value.text, value.len);
        before = ',';
    }
    weir__buf_printf(out, ",\"standby\":%s,\"servers\":%zu}", standby ? "true" : "false", servers);
}

bool srv_workqueue_merge(weir_buf *out, weir_json_piece address, weir_json_piece own,
                         const weir_buf *others)
{
    weir_json_piece best = own, row;
    bool            standby = !own.len || is_true(own, "standby"), served = !standby;
    size_t          n = own.len > 0;
    rows            r = begin_rows(others);
    while (next_row(&r, &row)) {
        if (!same(srv_workqueue_member(row, "address"), address))
            continue;
        n++;
        if (!served) {
            served = !is_true(row, "standby");
            best = served || !best.len ? row : best;
        }
    }
    if (n)
        write_row(out, best, standby, n);
    return n;
}

static bool is_in(weir_json_piece list, weir_json_piece address)
{
    weir_json_walk  w;
    weir_json_piece name, row;
    if (list.len && weir__json_open(&w, list))
        while (weir__json_next(&w, &name, &row))
            if (same(srv_workqueue_member(row, "address"), address))
                return true;
    return false;
}

/* Is a row with this address before `end` among the rows of the others? */
static bool is_before(const weir_buf *others, weir_json_piece address, const char *end)
{
    rows            r = begin_rows(others);
    weir_json_piece row;
    while (next_row(&r, &row) && row.text < end)
        if (same(srv_workqueue_member(row, "address"), address))
            return true;
    return false;
}

void srv_workqueue_merge_rest(weir_buf *out, weir_json_piece own, const weir_buf *others)
{
    static const weir_json_piece none = { "", 0 };
    rows            r = begin_rows(others);
    weir_json_piece row;
    while (next_row(&r, &row)) {
        weir_json_piece address = srv_workqueue_member(row, "address");
        if (is_in(own, address) || is_before(others, address, row.text))
            continue;
        weir__buf_str(out, out->data[out->len - 1] == '[' ? "" : ",");
        srv_workqueue_merge(out, address, none, others);
    }
}

/* ---- asking the others ---- */

static void add_name(void *ctx, const char *process)
{
    weir__buf_add(ctx, process, strlen(process) + 1);
}

/* An action of another server; *out is freed by the caller. */
static weir_code call(srv_workqueue_servers *s, const char *process, const char *action,
                      const char *args, weir_reply *out, weir_error *err)
{
    char name[sizeof SRV_WORKQUEUE_SERVERS + 64];
    snprintf(name, sizeof name, SRV_WORKQUEUE_SERVERS "%s", process);
    return weir_service_call(s->bus, name, action, args, ANSWER_MS, out, err);
}

/* It has ended meanwhile: what it had is gone with it. */
static bool is_gone(weir_code rc)
{
    return rc == WEIR_ENOENT || rc == WEIR_ELOST;
}

static weir_code no_answer(weir_error *err)
{
    return weir_fail(err, WEIR_EUNAVAIL, "another server of the bus does not answer; try again "
                     "later");
}

/* The lists of these servers, in an array. Servers that do not answer are left out, unless all are
 * needed. */
static weir_code ask_for_lists(srv_workqueue_servers *s, const weir_buf *names, bool all,
                               weir_buf *out, weir_error *err)
{
    for (size_t at = 0; at < names->len; at += strlen(names->data + at) + 1) {
        weir_reply reply;
        size_t     len;
        weir_code  rc = call(s, names->data + at, "workQueues", "{}", &reply, NULL);
        if (rc && all && !is_gone(rc))
            return no_answer(err);
        if (rc)
            continue;
        const char *body = weir_message_body(reply.message, &len);
        weir__buf_str(out, out->len ? "," : "[");
        weir__buf_add(out, body, len);
        weir_message_free(reply.message);
    }
    if (out->len)
        weir__buf_char(out, ']');
    return out->failed ? weir_fail(err, WEIR_ENOMEM, "work queues: out of memory") : WEIR_OK;
}

static weir_json_piece write_address(weir_buf *out, const char *address)
{
    weir__json_string(out, address, strlen(address));
    return (weir_json_piece){ out->failed ? "" : out->data, out->len };
}

static bool same_settings(weir_json_piece settings, weir_json_piece row)
{
    static const char *const names[] = { "process_timeout", "persist", "timed_out_first",
                                         "collection" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!same(srv_workqueue_member(settings, names[i]), srv_workqueue_member(row, names[i])))
            return false;
    return true;
}

/* The settings are the settings of the others, if they have any. */
static weir_code check_put(srv_workqueue_ask *ask, weir_error *err)
{
    weir_buf        settings = { 0 }, text = { 0 };
    weir_json_piece address = write_address(&text, ask->is.address), row;
    rows            r = begin_rows(&ask->others);
    bool            differs = false;
    weir__buf_char(&settings, '{');
    srv_workqueue_write(&settings, &ask->is);
    weir__buf_char(&settings, '}');
    while (!settings.failed && next_row(&r, &row))
        differs |= same(srv_workqueue_member(row, "address"), address) &&
                   !same_settings((weir_json_piece){ settings.data, settings.len }, row);
    weir__buf_fini(&settings);
    weir__buf_fini(&text);
    return differs ? weir_fail(err, WEIR_ESTATE, "another server runs the work queue with other "
                               "settings; remove it first")
                   : WEIR_OK;
}

/* Stop it on all servers, this one among them. */
static weir_code remove_all(srv_workqueue_servers *s, srv_workqueue_ask *ask, const weir_buf *names,
                            weir_error *err)
{
    weir_buf        text = { 0 }, args = { 0 };
    weir_json_piece address = write_address(&text, ask->is.address), row;
    rows            r = begin_rows(&ask->others);
    size_t          found = 0;
    weir_code       rc = WEIR_OK;
    while (!rc && next_row(&r, &row))
        if (same(srv_workqueue_member(row, "address"), address)) {
            found++;
            rc = is_true(row, "configured") ? srv_workqueue_in_settings(err) : WEIR_OK;
        }
    if (!found)
        rc = srv_workqueue_unknown(ask->is.address, err);
    weir__buf_str(&args, "{\"address\":");
    weir__buf_add(&args, address.text, address.len);
    weir__buf_char(&args, '}');
    if (!rc && args.failed)
        rc = weir_fail(err, WEIR_ENOMEM, "work queues: out of memory");
    for (size_t at = 0; !rc && at < names->len; at += strlen(names->data + at) + 1) {
        weir_reply reply;
        rc = call(s, names->data + at, "removeWorkQueue", args.data, &reply, NULL);
        if (rc == WEIR_EREPLY && reply.code == weir_code_http(WEIR_ENOENT))
            rc = WEIR_OK;               /* this one does not run it */
        else if (rc == WEIR_EREPLY)
            weir_fail(err, WEIR_ESTATE, "%s", reply.text);
        else if (rc)
            rc = is_gone(rc) ? WEIR_OK : no_answer(err);
        weir_message_free(reply.message);
    }
    weir__buf_fini(&text);
    weir__buf_fini(&args);
    return rc;
}

/* On the thread of the loop. */
static void run_ask(weir_inbox_task *task)
{
    srv_workqueue_ask     *ask = (srv_workqueue_ask *)task;     /* its first member */
    srv_workqueue_servers *s = ask->servers;
    bool                   put = ask->run == srv_workqueues_put;
    bool                   removes = ask->run == srv_workqueues_remove;
    weir_buf               names = { 0 };
    weir__bus_processes(s->bus, SRV_BUS_SERVICE, add_name, &names);
    if (removes)
        add_name(&names, weir__bus_process(s->bus));
    weir_code rc = names.failed ? weir_fail(&ask->err, WEIR_ENOMEM, "work queues: out of memory")
                                : ask_for_lists(s, &names, put || removes, &ask->others, &ask->err);
    if (!rc && put)
        rc = check_put(ask, &ask->err);
    if (!rc && removes)
        rc = remove_all(s, ask, &names, &ask->err);
    weir__buf_fini(&names);
    if (rc || removes)
        srv_workqueues_finish(ask);
    else
        srv_workqueues_post(s->own, ask);
}

static void count_name(void *ctx, const char *process)
{
    (void)process;
    ++*(size_t *)ctx;
}

void srv_workqueue_servers_post(srv_workqueue_servers *s, srv_workqueue_ask *ask)
{
    size_t others = 0;
    weir__bus_processes(s->bus, SRV_BUS_SERVICE, count_name, &others);
    if (!others) {
        srv_workqueues_post(s->own, ask);
        return;
    }
    pthread_mutex_lock(&s->lock);
    weir_code rc = s->loop ? WEIR_OK : srv_loop_create(&s->loop, "weir-wq-servers", &ask->err);
    pthread_mutex_unlock(&s->lock);
    ask->servers = s;
    ask->task.run = run_ask;
    if (rc)
        srv_workqueues_finish(ask);
    else
        srv_loop_post(s->loop, &ask->task);
}

/* ---- the beginning and the end ---- */

weir_code srv_workqueue_servers_create(srv_workqueue_servers **out, weir_bus *bus,
                                       srv_workqueues *own, weir_error *err)
{
    srv_workqueue_servers *s = *out = calloc(1, sizeof *s);
    if (!s)
        return weir_fail(err, WEIR_ENOMEM, "work queues: out of memory");
    s->bus = bus;
    s->own = own;
    pthread_mutex_init(&s->lock, NULL);
    return WEIR_OK;
}

void srv_workqueue_servers_destroy(srv_workqueue_servers *s)
{
    if (!s)
        return;
    srv_loop_destroy(s->loop);
    pthread_mutex_destroy(&s->lock);
    free(s);
}
