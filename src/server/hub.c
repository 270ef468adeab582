/* hub.c - the queue's events on their way to those who listen over HTTP: see hub.h. */
#include "server/hub.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/buf.h"
#include "core/event_json.h"

enum { KEPT_TEXT = 64 * 1024 };     /* bytes of memory kept to write the next event into */

struct srv_hub {
    weir_queue     *q;
    int64_t         keep_ms;
    char            run[9];
    weir_buf        text;           /* the callback thread's */
    pthread_mutex_t lock;           /* guards what follows */
    weir_listener  *ear;            /* NULL: not listening */
    srv_desk       *desks;
    int64_t         quiet_ms;       /* since when there is no desk */
    srv_news      **ring;           /* seq is at seq % SRV_EVENT_RING; NULL: not listening */
    uint64_t        first, last;    /* numbers in the ring; last + 1 == first: none */
    size_t          bytes;
};

weir_code srv_hub_create(srv_hub **out, weir_queue *q, int64_t keep_ms, weir_error *err)
{
    uint32_t run = 0;
    srv_hub *h = *out = calloc(1, sizeof *h);
    if (!h)
        return weir_fail(err, WEIR_ENOMEM, "events: out of memory");
    ssize_t n = getrandom(&run, sizeof run, 0);
    (void)n;            /* so few bytes always come */
    snprintf(h->run, sizeof h->run, "%08" PRIx32, run);
    h->q = q;
    h->keep_ms = keep_ms;
    h->first = 1;
    pthread_mutex_init(&h->lock, NULL);
    return WEIR_OK;
}

void srv_news_unref(srv_news *n)
{
    if (atomic_fetch_sub(&n->refs, 1) == 1)
        free(n);
}

/* ---- the ring; lock held ---- */

static void drop_first(srv_hub *h)
{
    srv_news *n = h->ring[h->first++ % SRV_EVENT_RING];
    h->bytes -= n->len;
    srv_news_unref(n);
}

static void push(srv_hub *h, srv_news *n)
{
    while (h->first <= h->last && (h->last - h->first + 1 >= SRV_EVENT_RING ||
                                   h->bytes + n->len > SRV_EVENT_BYTES))
        drop_first(h);
    h->ring[n->seq % SRV_EVENT_RING] = n;
    h->last = n->seq;
    h->bytes += n->len;
}

/* Something is missing here: drop all, and leave a number out, so that whoever wants to read on
 * from an older one is told. */
static void leave_gap(srv_hub *h)
{
    while (h->first <= h->last)
        drop_first(h);
    h->last++;
    h->first = h->last + 1;
}

/* ---- what the queue tells ---- */

static srv_news *news_of(const char *type, const weir_buf *text)
{
    size_t    room = type ? strlen(type) + 1 : 0;
    srv_news *n = text->failed ? NULL : malloc(sizeof *n + room + text->len);
    if (!n)
        return NULL;
    *n = (srv_news){ .refs = 1, .len = text->len };
    if (type)
        n->type = memcpy(n->room, type, room);
    n->bytes = memcpy(n->room + room, text->data, text->len);
    return n;
}

static void head(srv_hub *h, uint64_t seq, const char *name)
{
    weir__buf_clear(&h->text);
    weir__buf_printf(&h->text, "id: %s-%" PRIu64 "\nevent: %s\ndata: ", h->run, seq, name);
}

static srv_news *make_event(srv_hub *h, uint64_t seq, const weir_event *ev)
{
    weir_event plain = *ev;
    plain.missed = 0;
    head(h, seq, weir_event_name(ev->kind));
    weir__event_json(&h->text, &plain);
    weir__buf_str(&h->text, "\n\n");
    srv_news *n = news_of(ev->type, &h->text);
    if (n) {
        n->seq = seq;
        n->kind = ev->kind;
        n->id = ev->id;
    }
    return n;
}

static srv_news *make_lost(srv_hub *h, uint64_t seq, uint32_t missed)
{
    head(h, seq, "lost");
    weir__buf_printf(&h->text, "{\"event\":\"lost\",\"missed\":%" PRIu32 "}\n\n", missed);
    srv_news *n = news_of(NULL, &h->text);
    if (n) {
        n->seq = seq;
        n->lost = true;
    }
    return n;
}

static void tell_desks(srv_hub *h)
{
    for (srv_desk *d = h->desks; d; d = d->next)
        if (!d->posted) {
            d->posted = true;
            srv_loop_post(d->loop, &d->task);
        }
}

/* Nobody has listened for a while: end it. From inside its own function, so that nobody waits. */
static bool stop_if_quiet(srv_hub *h)
{
    if (h->desks || srv_loop_ms() - h->quiet_ms <= h->keep_ms)
        return false;
    weir_unlisten(h->ear);
    h->ear = NULL;
    leave_gap(h);
    free(h->ring);
    h->ring = NULL;
    return true;
}

/* On the queue's callback thread. */
static void on_event(const weir_event *ev, void *ctx)
{
    srv_hub *h = ctx;
    pthread_mutex_lock(&h->lock);
    bool     stopped = stop_if_quiet(h);
    uint64_t seq = h->last + 1;
    pthread_mutex_unlock(&h->lock);
    if (stopped)
        return;
    srv_news *lost = ev->missed ? make_lost(h, seq++, ev->missed) : NULL;
    srv_news *n = make_event(h, seq, ev);
    if (h->text.cap > KEPT_TEXT)
        weir__buf_fini(&h->text);
    pthread_mutex_lock(&h->lock);
    if (lost)
        push(h, lost);
    if (n)
        push(h, n);
    if (!n || (ev->missed && !lost))
        leave_gap(h);
    tell_desks(h);
    pthread_mutex_unlock(&h->lock);
}

/* ---- those who read ---- */

/* Lock held. */
static weir_code begin_to_listen(srv_hub *h, weir_error *err)
{
    if (h->ear)
        return WEIR_OK;
    h->ring = calloc(SRV_EVENT_RING, sizeof(srv_news *));
    if (!h->ring)
        return weir_fail(err, WEIR_ENOMEM, "events: out of memory");
    weir_code rc = weir_listen(h->q, NULL, on_event, h, &h->ear, err);
    if (rc) {
        free(h->ring);
        h->ring = NULL;
    }
    return rc;
}

weir_code srv_hub_enter(srv_hub *h, srv_desk *d, weir_error *err)
{
    pthread_mutex_lock(&h->lock);
    weir_code rc = begin_to_listen(h, err);
    if (!rc) {
        d->next = h->desks;
        h->desks = d;
    }
    pthread_mutex_unlock(&h->lock);
    return rc;
}

void srv_hub_leave(srv_hub *h, srv_desk *d)
{
    pthread_mutex_lock(&h->lock);
    srv_desk **at = &h->desks;
    while (*at != d)
        at = &(*at)->next;
    *at = d->next;
    if (!h->desks)
        h->quiet_ms = srv_loop_ms();
    pthread_mutex_unlock(&h->lock);
}

size_t srv_hub_read(srv_hub *h, srv_desk *d, uint64_t seq, srv_news **out, size_t max, size_t bytes,
                    bool *gone)
{
    size_t n = 0, sum = 0;
    pthread_mutex_lock(&h->lock);
    *gone = seq + 1 < h->first;
    while (!*gone && n < max && seq + 1 + n <= h->last) {
        srv_news *next = h->ring[(seq + 1 + n) % SRV_EVENT_RING];
        sum += next->len;
        if (n && sum > bytes)
            break;
        atomic_fetch_add(&next->refs, 1);
        out[n++] = next;
    }
    if (d && !n)
        d->posted = false;
    pthread_mutex_unlock(&h->lock);
    return n;
}

void srv_hub_range(srv_hub *h, uint64_t *first, uint64_t *last)
{
    pthread_mutex_lock(&h->lock);
    *first = h->first;
    *last = h->last;
    pthread_mutex_unlock(&h->lock);
}

const char *srv_hub_run(const srv_hub *h)
{
    return h->run;
}

void srv_hub_destroy(srv_hub *h)
{
    if (!h)
        return;
    weir_unlisten(h->ear);
    while (h->ring && h->first <= h->last)
        drop_first(h);
    free(h->ring);
    weir__buf_fini(&h->text);
    pthread_mutex_destroy(&h->lock);
    free(h);
}
