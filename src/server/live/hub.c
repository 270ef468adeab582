/* hub.c - the queue's events on their way to those who listen over HTTP: see hub.h. */
#include "server/live/hub.h"

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
    weir_listener  *listener;            /* NULL: not listening */
    srv_reader     *readers;
    int64_t         quiet_ms;       /* since when there is no reader */
    weir_ring       ring;
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
    h->ring.first = 1;
    pthread_mutex_init(&h->lock, NULL);
    return WEIR_OK;
}

/* ---- events of the queue ---- */

static srv_frame *frame_of(const char *type, const weir_buf *text)
{
    size_t    room = type ? strlen(type) + 1 : 0;
    srv_frame *n = text->failed ? NULL : malloc(sizeof *n + room + text->len);
    if (!n)
        return NULL;
    *n = (srv_frame){ .entry = { .refs = 1, .size = text->len }, .len = text->len };
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

static srv_frame *make_event(srv_hub *h, uint64_t seq, const weir_event *ev)
{
    weir_event plain = *ev;
    plain.missed = 0;
    head(h, seq, weir_event_name(ev->kind));
    weir__event_json(&h->text, &plain);
    weir__buf_str(&h->text, "\n\n");
    srv_frame *n = frame_of(ev->type, &h->text);
    if (n) {
        n->kind = ev->kind;
        n->id = ev->id;
    }
    return n;
}

static srv_frame *make_lost(srv_hub *h, uint64_t seq, uint32_t missed)
{
    head(h, seq, "lost");
    weir__buf_printf(&h->text, "{\"event\":\"lost\",\"missed\":%" PRIu32 "}\n\n", missed);
    srv_frame *n = frame_of(NULL, &h->text);
    if (n)
        n->lost = true;
    return n;
}

static void post_to_readers(srv_hub *h)
{
    for (srv_reader *d = h->readers; d; d = d->next)
        if (!d->posted) {
            d->posted = true;
            srv_loop_post(d->loop, &d->task);
        }
}

/* Nobody has listened for a while: end it. From inside its own function, so that nobody waits. */
static bool stop_if_quiet(srv_hub *h)
{
    if (h->readers || srv_loop_ms() - h->quiet_ms <= h->keep_ms)
        return false;
    weir_unlisten(h->listener);
    h->listener = NULL;
    weir__ring_end(&h->ring);
    return true;
}

/* On the queue's callback thread. */
static void on_event(const weir_event *ev, void *ctx)
{
    srv_hub *h = ctx;
    pthread_mutex_lock(&h->lock);
    bool     stopped = stop_if_quiet(h);
    uint64_t seq = h->ring.last + 1;
    pthread_mutex_unlock(&h->lock);
    if (stopped)
        return;
    srv_frame *lost = ev->missed ? make_lost(h, seq++, ev->missed) : NULL;
    srv_frame *n = make_event(h, seq, ev);
    if (h->text.cap > KEPT_TEXT)
        weir__buf_fini(&h->text);
    pthread_mutex_lock(&h->lock);
    if (lost)
        weir__ring_push(&h->ring, &lost->entry);
    if (n)
        weir__ring_push(&h->ring, &n->entry);
    if (!n || (ev->missed && !lost))
        weir__ring_gap(&h->ring);
    post_to_readers(h);
    pthread_mutex_unlock(&h->lock);
}

/* ---- those who read ---- */

/* Lock held. */
static weir_code begin_to_listen(srv_hub *h, weir_error *err)
{
    if (h->listener)
        return WEIR_OK;
    if (!weir__ring_begin(&h->ring, SRV_EVENT_RING, SRV_EVENT_BYTES))
        return weir_fail(err, WEIR_ENOMEM, "events: out of memory");
    weir_code rc = weir_listen(h->q, NULL, on_event, h, &h->listener, err);
    if (rc)
        weir__ring_end(&h->ring);
    return rc;
}

weir_code srv_hub_enter(srv_hub *h, srv_reader *d, weir_error *err)
{
    pthread_mutex_lock(&h->lock);
    weir_code rc = begin_to_listen(h, err);
    if (!rc) {
        d->next = h->readers;
        h->readers = d;
    }
    pthread_mutex_unlock(&h->lock);
    return rc;
}

void srv_hub_leave(srv_hub *h, srv_reader *d)
{
    pthread_mutex_lock(&h->lock);
    srv_reader **at = &h->readers;
    while (*at != d)
        at = &(*at)->next;
    *at = d->next;
    if (!h->readers)
        h->quiet_ms = srv_loop_ms();
    pthread_mutex_unlock(&h->lock);
}

size_t srv_hub_read(srv_hub *h, srv_reader *d, uint64_t seq, srv_frame **out, size_t max,
                    size_t bytes, bool *gone)
{
    weir_ring_entry *some[SRV_MAX_READ];
    pthread_mutex_lock(&h->lock);
    size_t n = weir__ring_read(&h->ring, seq, some, max < SRV_MAX_READ ? max : SRV_MAX_READ, bytes,
                               gone);
    if (d && !n)
        d->posted = false;
    pthread_mutex_unlock(&h->lock);
    for (size_t i = 0; i < n; i++)
        out[i] = (srv_frame *)some[i];
    return n;
}

void srv_hub_range(srv_hub *h, uint64_t *first, uint64_t *last)
{
    pthread_mutex_lock(&h->lock);
    *first = h->ring.first;
    *last = h->ring.last;
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
    weir_unlisten(h->listener);
    weir__ring_end(&h->ring);
    weir__buf_fini(&h->text);
    pthread_mutex_destroy(&h->lock);
    free(h);
}
