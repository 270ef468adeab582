/* workqueue.c - a work queue on the bus, its three addresses: see weir/workqueue.h, and work.h for
 * the inside. */
#include "bus/work.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/json.h"
#include "base/thread.h"

void weir_workqueue_get_stats(weir_workqueue *q, weir_workqueue_stats *out)
{
    pthread_mutex_lock(&q->lock);
    *out = q->stats;
    out->done_per_second = weir__rate_get(&q->rate, weir__coarse_ms());
    pthread_mutex_unlock(&q->lock);
}

/* ---- answers of the queue itself ---- */

static void answer(weir_message *m, const char *body)
{
    if (weir_message_expects_reply(m))
        weir_message_reply(m, &(weir_content){ .body = body }, NULL);
}

static void report(weir_workqueue *q, const char *accepted, const char *body)
{
    if (*accepted)
        weir_bus_send(q->bus, accepted, &(weir_content){ .body = body }, NULL);
}

void weir__work_accept(weir_workqueue *q, const char *accepted)
{
    report(q, accepted, "{\"status\":\"accepted\"}");
}

void weir__work_refuse(weir_workqueue *q, weir_message *m, const char *accepted, const char *text)
{
    weir_buf b = { 0 };
    weir__buf_str(&b, "{\"status\":\"error\",\"message\":");
    weir__json_string(&b, text, strlen(text));
    weir__buf_char(&b, '}');
    const char *body = b.failed ? "{\"status\":\"error\",\"message\":\"out of memory\"}" : b.data;
    report(q, accepted, body);
    answer(m, body);
    weir__buf_fini(&b);
}

/* A member of the body that is a text; false: it is missing, or too long for an address. */
static bool read_address(const weir_message *m, const char *name,
                         char out[WEIR_MAX_BUS_ADDRESS + 1])
{
    weir_json_walk  w;
    weir_json_piece key, value;
    size_t          len, n = strlen(name);
    const char     *body = weir_message_body(m, &len);
    body += strspn(body, " \t\r\n");
    if (*body != '{' || !weir__json_open(&w, (weir_json_piece){ body, len }))
        return false;
    while (weir__json_next(&w, &key, &value))
        if (key.len == n + 2 && memcmp(key.text + 1, name, n) == 0)
            return *value.text == '"' && value.len > 2 && value.len <= WEIR_MAX_BUS_ADDRESS &&
                   weir__json_text(value, out, &len);
    return false;
}

/* ---- the three addresses ---- */

static void accept_work(weir_message *m, void *ctx)
{
    weir_workqueue *q = ctx;
    char            to[WEIR_MAX_BUS_ADDRESS + 1];
    size_t          size;
    if (!read_address(m, "accepted_reply", to) && !read_address(m, "accepted-reply", to))
        *to = '\0';
    if (q->store) {
        weir__work_store_add(q, m, to);
        return;
    }
    weir_message_body(m, &size);
    bool  full = q->stats.waiting + q->stats.running >= WEIR_WORK_MESSAGES ||
                 q->bytes + size > WEIR_WORK_BYTES;
    work *w = full ? NULL : weir__work_create(q, m, NULL);
    if (!w) {
        weir__work_refuse(q, m, to, full ? "the work queue is full" : "out of memory");
        return;
    }
    weir_message_keep(m);
    weir__work_accept(q, to);
    weir__work_enqueue(q, w, false);
    weir__work_dispatch(q);
}

static const char *const endings[] = { "", ".register", ".unregister" };    /* of the addresses */

/* A processor there would have its work sent to the queue again, and so on. */
static bool is_own(const weir_workqueue *q, const char *address)
{
    size_t len = strlen(q->address);
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
        if (strncmp(address, q->address, len) == 0 && strcmp(address + len, endings[i]) == 0)
            return true;
    return false;
}

static void add_processor(weir_message *m, void *ctx)
{
    weir_workqueue *q = ctx;
    char            address[WEIR_MAX_BUS_ADDRESS + 1];
    if (!read_address(m, "processor", address)) {
        answer(m, "{\"status\":\"error\",\"message\":\"processor must be specified\"}");
        return;
    }
    if (is_own(q, address)) {
        answer(m, "{\"status\":\"error\",\"message\":\"this is an address of the work queue; a "
                  "processor needs one of its own\"}");
        return;
    }
    slot *s = weir__work_room_for_slot(q) ? weir__work_make_slot(q, address) : NULL;
    if (!s) {
        answer(m, "{\"status\":\"error\",\"message\":\"too many processors\"}");
        return;
    }
    weir__work_add_slot(q, s);
    weir__work_publish_slot(q, true, address);
    answer(m, "{\"status\":\"ok\"}");
    weir__work_dispatch(q);
}

static void remove_processor(weir_message *m, void *ctx)
{
    weir_workqueue *q = ctx;
    char            address[WEIR_MAX_BUS_ADDRESS + 1];
    if (!read_address(m, "processor", address)) {
        answer(m, "{\"status\":\"error\",\"message\":\"processor must be specified\"}");
        return;
    }
    weir__work_remove_slot(q, address);
    answer(m, "{\"status\":\"ok\"}");
    weir__work_dispatch(q);
}

weir_code weir__work_consume(weir_workqueue *q, weir_error *err)
{
    static weir_message_fn *const serve[] = { accept_work, add_processor, remove_processor };
    char      name[2 * WEIR_MAX_BUS_ADDRESS];
    weir_code rc = WEIR_OK;
    for (size_t i = 0; !rc && i < 3; i++) {
        snprintf(name, sizeof name, "%.*s%s", WEIR_MAX_BUS_ADDRESS, q->address, endings[i]);
        rc = weir_bus_consume(&q->consumer[i], q->bus, &(weir_consumer_config){
            .address = name, .handler = serve[i], .ctx = q, .mailbox = q->mb }, err);
    }
    for (size_t i = 0; rc && i < 3; i++) {
        weir_consumer_close(q->consumer[i]);
        q->consumer[i] = NULL;
    }
    return rc;
}

/* ---- running ---- */

enum { RUN_AT_ONCE = 64 };                  /* arrivals that a thread of others handles at a time */

/* The mailbox's `wake`. The bus calls it once until a run has found the mailbox empty, so that only
 * one thread runs it. */
static void run_here(void *ctx)
{
    weir_workqueue *q = ctx;
    bool            left;
    weir__mailbox_run(q->mb, RUN_AT_ONCE, 0, &left);
    if (!left)
        return;
    pthread_mutex_lock(&q->lock);
    q->handed_over = true;
    pthread_cond_signal(&q->changed);
    pthread_mutex_unlock(&q->lock);
}

static void *run_busy(void *ctx)
{
    weir_workqueue *q = ctx;
    pthread_mutex_lock(&q->lock);
    while (!q->closing) {
        if (!q->handed_over) {
            pthread_cond_wait(&q->changed, &q->lock);
            continue;
        }
        bool left;
        q->handed_over = false;             /* once it is empty, others run it, and may set this */
        pthread_mutex_unlock(&q->lock);
        weir__mailbox_run(q->mb, RUN_AT_ONCE, 0, &left);
        pthread_mutex_lock(&q->lock);
        q->handed_over |= left;
    }
    pthread_mutex_unlock(&q->lock);
    return NULL;
}

static weir_code start(weir_workqueue *q, weir_error *err)
{
    if (q->store)
        return weir__mailbox_start(q->mb, "weir-work", err);
    weir_code rc = weir__thread_start(&q->thread, run_busy, q, "weir-work", err);
    q->threaded = !rc;
    return rc;
}

static void stop(weir_workqueue *q)
{
    pthread_mutex_lock(&q->lock);
    q->closing = true;
    pthread_cond_signal(&q->changed);
    pthread_mutex_unlock(&q->lock);
    if (q->threaded)
        pthread_join(q->thread, NULL);
}

/* ---- the beginning and the end ---- */

/* Addresses that have another meaning. */
static weir_code check_address(const char *address, weir_error *err)
{
    size_t len = address ? strlen(address) : 0;
    if (!len)
        return weir_fail(err, WEIR_EINVAL, "work queue: the address is missing");
    if (weir__bus_reserved(address))
        return weir_fail(err, WEIR_EINVAL, "work queue: processes of the bus use \"%.80s\"; choose "
                         "another address", address);
    for (size_t i = 1; i < sizeof endings / sizeof *endings; i++) {
        size_t n = strlen(endings[i]);
        if (len >= n && strcmp(address + len - n, endings[i]) == 0)
            return weir_fail(err, WEIR_EINVAL, "work queue: \"%.80s\" ends in %s, where processors "
                             "of another one turn to; choose another address", address,
                             endings[i]);
    }
    return WEIR_OK;
}

/* Offer to serve the address. */
static weir_code join_group(weir_workqueue *q, weir_error *err)
{
    char name[2 * WEIR_MAX_BUS_ADDRESS];
    snprintf(name, sizeof name, "%.*s.unregister", WEIR_MAX_BUS_ADDRESS, q->address);
    weir_code rc = weir__content_check(name, &(weir_content){ 0 }, err);
    q->stats.standby = true;
    return rc ? rc : weir__leader_join(&q->leader, q->bus, &(leader_config){
        .name = q->address, .mailbox = q->mb, .turn = weir__work_turn,
        .group = weir__work_take_group, .ctx = q }, err);
}

weir_code weir_workqueue_open(weir_workqueue **out, weir_bus *b,
                              const weir_workqueue_config *config, weir_error *err)
{
    const char *address = config->address;
    *out = NULL;
    if (WEIR__CHECK_RESERVED(config, err))
        return WEIR_EINVAL;
    if (check_address(address, err))
        return WEIR_EINVAL;
    weir_workqueue *q = calloc(1, sizeof *q);
    if (!q)
        return weir_fail(err, WEIR_ENOMEM, "work queue: out of memory");
    q->bus = b;
    q->address = strdup(address);
    q->timeout_ms = config->process_timeout_ms > 0 ? config->process_timeout_ms
                                                   : WEIR_WORK_TIMEOUT_MS;
    q->timed_out_first = config->timed_out_first;
    pthread_mutex_init(&q->lock, NULL);
    weir__cond_init(&q->changed);
    weir_mailbox_config mc = { .wake = config->queue ? NULL : run_here, .ctx = q };
    weir_code           rc = q->address ? weir_mailbox_create(&q->mb, b, &mc, err)
                                        : weir_fail(err, WEIR_ENOMEM, "work queue: out of memory");
    q->vanish = (vanish_watch){ .mailbox = q->mb, .fn = weir__work_vanished, .ctx = q };
    weir__vanish_start(b, &q->vanish);
    if (!rc && config->queue)
        rc = weir__work_store_open(q, config, err);
    if (!rc)
        rc = join_group(q, err);
    if (!rc)
        rc = start(q, err);
    if (rc) {
        weir_workqueue_close(q);
        return rc;
    }
    weir__leader_wait(q->leader);
    *out = q;
    return WEIR_OK;
}

void weir_workqueue_close(weir_workqueue *q)
{
    if (!q)
        return;
    if (q->store)
        weir__work_store_stop(q);
    stop(q);
    weir__leader_stop(q->leader);
    weir__vanish_stop(q->bus, &q->vanish);
    weir_mailbox_destroy(q->mb);            /* from here on nothing of it runs */
    weir__work_drop_all(q);
    if (q->store)
        weir__work_store_free(q);
    weir__leader_free(q->leader);
    free(q->address);
    pthread_cond_destroy(&q->changed);
    pthread_mutex_destroy(&q->lock);
    free(q);
}
