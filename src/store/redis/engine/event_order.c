/* event_order.c - emits events and due times, of this process and of others, in the order in which
 * they happened. Every message of a partition has a number. A message of this process's calls comes
 * with the answer, and over the subscriber, too. Messages of other processes come over the
 * subscriber alone. A message that arrives before one with a lower number is pending until that has
 * come. While the next number is unknown (unsynced), messages of our own calls are emitted at once.
 *
 * The subscriber brings all messages of a partition, and each number is one more than the last. If
 * one is not, the queue is another: Redis was emptied, or has a copy from another time. The order
 * begins anew there. Numbers begin at the time of day in microseconds, so numbers of a new queue
 * are not mistaken for numbers of the old queue. */
#include "store/redis/engine/engine.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

enum { MAX_PENDING = 4096, MAX_NOTES = 1000 };

/* ---- emitting ---- */

static void announce_due(redis_store *s, int64_t at)
{
    if (at < 0)
        at = INT64_MIN;
    else
        at -= atomic_load(&s->ahead_ms);
    if (at >= s->events.due_announced)
        return;
    s->events.due_announced = at;
    s->env.due(s->env.ctx, at);
}

static bool room_for(redis_store *s, size_t n)
{
    return weir__grow(&s->events.list, &s->events.cap_list, n, sizeof *s->events.list);
}

/* Copy a text behind the others; the place is good until the buffer grows, so it is reserved
 * before. */
static const char *keep(weir_buf *strings, mp_slice text)
{
    if (!text.at)
        return NULL;
    size_t at = strings->len;
    weir__buf_add(strings, text.at, text.len);
    weir__buf_add(strings, "", 1);
    return strings->data + at;
}

/* Types of one event after the other are often the same: then so is the pointer. */
static const char *keep_type(weir_buf *strings, mp_slice text, const char *before)
{
    if (before && strlen(before) == text.len && !memcmp(before, text.at, text.len))
        return before;
    return keep(strings, text);
}

/* Events of jobs whose ids follow each other. */
static bool put_run(redis_store *s, mp_reader *r, size_t *k, weir_event first)
{
    int64_t count = weir__mp_read_int(r), step = weir__mp_read_int(r);
    if (r->bad || count < 1 || count > WEIR_MAX_ADD || step < 1 || !room_for(s, *k + (size_t)count))
        return false;
    for (; count > 0; count--, first.id += (uint64_t)step)
        s->events.list[(*k)++] = first;
    return true;
}

/* Events of jobs that differ in id and text. */
static bool put_list(redis_store *s, mp_reader *r, size_t *k, weir_event e, int64_t count)
{
    if (count < 1 || count > r->end - r->at || !room_for(s, *k + (size_t)count))
        return false;
    for (; count > 0; count--) {
        e.id = (uint64_t)weir__mp_read_int(r);
        mp_slice text = weir__mp_read_text(r);
        e.text = keep(&s->events.strings, text);
        e.text_len = text.len;
        s->events.list[(*k)++] = e;
    }
    return !r->bad;
}

/* Events may share what `before` points at. False: not an event. */
static bool put_event(redis_store *s, mp_reader *r, size_t *k, int64_t at, const char **type)
{
    weir_buf  *strings = &s->events.strings;
    int64_t    kind = weir__mp_read_int(r);
    weir_event e = { .kind = (weir_event_kind)(kind % REDIS_RUN_OF), .at = at };
    e.state = (weir_state)weir__mp_read_int(r);
    e.type = *type = keep_type(strings, weir__mp_read_text(r), *type);
    e.attempts = (int32_t)weir__mp_read_int(r);
    e.progress = (int32_t)weir__mp_read_int(r);
    e.delivery = (uint32_t)weir__mp_read_int(r);
    mp_slice text = weir__mp_read_text(r);
    e.text = keep(strings, text);
    e.text_len = text.len;
    e.id = (uint64_t)weir__mp_read_int(r);
    if (r->bad || (unsigned)e.kind >= WEIR_EVENT_COUNT || (unsigned)e.state >= WEIR_STATE_COUNT)
        return false;
    if (kind >= REDIS_LIST_OF)
        return put_list(s, r, k, e, (int64_t)e.id);
    if (kind >= REDIS_RUN_OF)
        return put_run(s, r, k, e);
    if (!room_for(s, *k + 1))
        return false;
    s->events.list[(*k)++] = e;
    return true;
}

void weir__redis_id_seen(redis_store *s, uint32_t part, uint64_t id)
{
    _Atomic uint64_t *last = &s->events.order[part].last_id;
    uint64_t          was = atomic_load(last);
    while (was < id && !atomic_compare_exchange_weak(last, &was, id)) {}
}

/* The last n of the k events, which are of one kind and type. The last of the new jobs has the
 * highest id. */
static void note_events(redis_store *s, uint32_t part, size_t k, size_t n)
{
    const weir_event *e = &s->events.list[k - n];
    weir__redis_id_seen(s, part, s->events.list[k - 1].id);
    if (e->kind == WEIR_EVENT_ENQUEUE)
        weir__backlog_grew(s, part, e->type, n);
    else if (e->kind == WEIR_EVENT_RESUME)
        weir__backlog_forget_all(s);
}

/* No text takes more room in `strings` than in the message, where it has a head. */
static void emit_events(redis_store *s, uint32_t part, mp_reader *r, int64_t at)
{
    const char *type = NULL;
    size_t      k = 0;
    weir__buf_clear(&s->events.strings);
    bool        ok = weir__buf_reserve(&s->events.strings, (size_t)(r->end - r->at));
    while (ok && r->at < r->end) {
        size_t before = k;
        ok = put_event(s, r, &k, at, &type);
        if (k > before)
            note_events(s, part, k, k - before);
    }
    if (k)
        s->env.emit(s->env.ctx, s->events.list, k);
}

/* Its head, and where its events begin. False: it is no message. */
static bool read_head(mp_reader *r, int64_t *number, int64_t *at, mp_slice *origin, int64_t *due)
{
    size_t n = weir__mp_read_array(r);
    *number = weir__mp_read_int(r);
    *at = weir__mp_read_int(r);
    *origin = weir__mp_read_text(r);
    *due = weir__mp_read_int(r);
    return !r->bad && n == 4;
}

static void emit_message(redis_store *s, const redis_order *o, const char *bytes, size_t len)
{
    mp_reader r = weir__mp_reader(bytes, len);
    mp_slice  origin;
    int64_t   number, at, due;
    if (!read_head(&r, &number, &at, &origin, &due))
        return;
    if (r.at < r.end)
        emit_events(s, (uint32_t)(o - s->events.order), &r, at);
    if (due)
        announce_due(s, due);
}

/* ---- order ---- */

static void add_pending(redis_order *o, int64_t number, const char *bytes, size_t len)
{
    redis_pending **at = &o->pending;
    while (*at && (*at)->number < number)
        at = &(*at)->next;
    if (*at && (*at)->number == number)
        return;
    redis_pending *h = malloc(sizeof *h + len);
    if (!h)
        return;
    *h = (redis_pending){ .next = *at, .number = number, .len = len };
    memcpy(h->bytes, bytes, len);
    *at = h;
    o->n_pending++;
}

/* Emit pending messages in order: up to the first missing number, or `all`. */
static void emit_pending(redis_store *s, redis_order *o, bool all)
{
    while (o->pending && (all || o->pending->number <= o->next)) {
        redis_pending *h = o->pending;
        o->pending = h->next;
        o->n_pending--;
        if (h->number >= o->next) {
            emit_message(s, o, h->bytes, h->len);
            o->next = h->number + 1;
        }
        free(h);
    }
}

static void in_order(redis_store *s, redis_order *o, int64_t number, const char *bytes, size_t len)
{
    if (number < o->next)
        return;
    if (number == o->next) {
        o->next++;
        emit_message(s, o, bytes, len);
    } else {
        add_pending(o, number, bytes, len);
    }
    emit_pending(s, o, o->n_pending > MAX_PENDING);
    pthread_cond_broadcast(&s->events.advanced);
}

static bool number_of(const char *bytes, size_t len, int64_t *number, mp_slice *origin)
{
    mp_reader r = weir__mp_reader(bytes, len);
    int64_t   at, due;
    return read_head(&r, number, &at, origin, &due);
}

void weir__redis_events_of_call(redis_store *s, uint32_t part, const char *message, size_t len)
{
    redis_order *o = &s->events.order[part];
    mp_slice     origin;
    int64_t      number;
    if (!number_of(message, len, &number, &origin))
        return;
    pthread_mutex_lock(&s->events.lock);
    if (o->unsynced) {
        o->delivered[o->n_delivered++ % REDIS_DELIVERED] = number;
        emit_message(s, o, message, len);
    } else {
        in_order(s, o, number, message, len);
    }
    pthread_mutex_unlock(&s->events.lock);
}

void weir__redis_events_wait(redis_store *s, uint32_t part, int64_t number)
{
    enum { A_MOMENT_MS = 500 };
    const redis_order *o = &s->events.order[part];
    weir_deadline      until = weir__deadline_in(A_MOMENT_MS);
    pthread_mutex_lock(&s->events.lock);
    while (!o->unsynced && o->next <= number)
        if (!weir__cond_wait_until(&s->events.advanced, &s->events.lock, until))
            break;
    pthread_mutex_unlock(&s->events.lock);
}

void weir__due_begin(redis_store *s)
{
    pthread_mutex_lock(&s->events.lock);
    s->events.due_announced = INT64_MAX;
    pthread_mutex_unlock(&s->events.lock);
}

void weir__due_end(redis_store *s, int64_t at)
{
    pthread_mutex_lock(&s->events.lock);
    if (at < s->events.due_announced)
        s->events.due_announced = at;
    pthread_mutex_unlock(&s->events.lock);
}

void weir__due_announce(redis_store *s, int64_t at)
{
    pthread_mutex_lock(&s->events.lock);
    announce_due(s, at);
    pthread_mutex_unlock(&s->events.lock);
}

/* ---- the subscriber ---- */

/* Jobs that Kue has ended or removed: the next TICK passes them to the script. Those beyond
 * MAX_NOTES are left out; the script finds them by itself, later. */
static void note(redis_store *s, const weir_event *event)
{
    weir_buf *b = &s->events.notes;
    if ((event->kind != WEIR_EVENT_COMPLETE && event->kind != WEIR_EVENT_FAILED &&
         event->kind != WEIR_EVENT_REMOVE) || s->events.n_notes == MAX_NOTES || b->failed)
        return;
    weir__resp_int(b, (int64_t)event->id);
    weir__resp_text(b, event->type ? event->type : "");
    s->events.n_notes++;
}

void weir__redis_events_foreign_step(redis_lane *l, redis_task *t, uint32_t part)
{
    redis_store *s = l->top;
    pthread_mutex_lock(&s->events.lock);
    if (s->events.n_notes && !s->events.notes.failed) {
        weir_buf *b = weir__step(l, t, part, 'X', 2 * s->events.n_notes);
        weir__buf_add(b, s->events.notes.data, s->events.notes.len);
    }
    weir__buf_clear(&s->events.notes);
    s->events.notes.failed = false;
    s->events.n_notes = 0;
    pthread_mutex_unlock(&s->events.lock);
}

static void receive_kue(redis_store *s, const char *message, size_t len)
{
    weir_event event;
    weir_buf   strings = { 0 };
    if (s->layout->read_foreign(message, len, &event, &strings)) {
        event.at = s->env.now(s->env.ctx);
        note(s, &event);
        s->env.emit(s->env.ctx, &event, 1);
    }
    weir__buf_fini(&strings);
}

static bool is_ours(const redis_store *s, mp_slice origin)
{
    size_t len = strlen(s->mark);
    return origin.len > len && !memcmp(origin.at, s->mark, len);
}

/* Was this message of our own emitted while the order was unsynced? */
static bool was_delivered(const redis_order *o, int64_t number)
{
    for (uint32_t i = 0; i < REDIS_DELIVERED; i++) {
        if (o->delivered[i] == number)
            return true;
    }
    return false;
}

/* Does this number, which the subscriber brings, not follow from the last? Before it has brought
 * any, those up to `next` may have been on their way when that was read. */
static bool is_elsewhere(const redis_order *o, int64_t number)
{
    return !o->unsynced && (o->received ? number != o->received + 1 : number > o->next);
}

/* Nothing that is known of the partition counts any more. Pending messages stay: their numbers are
 * new ones, since all old ones have come. */
static void begin_anew(redis_store *s, uint32_t part, int64_t number)
{
    static const char text[] = "redis: the queue was emptied or replaced while it was in use; jobs "
                               "that it had may be gone";
    weir_event e = { .kind = WEIR_EVENT_ERROR, .at = s->env.now(s->env.ctx), .text = text,
                     .text_len = sizeof text - 1 };
    s->events.order[part].next = number;
    weir__backlog_forget(s, part);
    s->env.emit(s->env.ctx, &e, 1);
    if (s->env.lost)
        s->env.lost(s->env.ctx);
}

static void receive(void *ctx, size_t channel, const char *message, size_t len)
{
    redis_store *s = ctx;
    mp_slice     origin;
    int64_t      number;
    pthread_mutex_lock(&s->events.lock);
    if (channel >= s->n_parts) {
        receive_kue(s, message, len);
    } else if (number_of(message, len, &number, &origin)) {
        redis_order *o = &s->events.order[channel];
        if (is_elsewhere(o, number))
            begin_anew(s, (uint32_t)channel, number);
        if (o->unsynced)
            o->next = number;
        o->unsynced = false;
        o->received = number;
        if (is_ours(s, origin) && was_delivered(o, number)) {
            if (number >= o->next)
                o->next = number + 1;
            emit_pending(s, o, false);
        } else {
            in_order(s, o, number, message, len);
        }
    }
    pthread_mutex_unlock(&s->events.lock);
}

/* Messages may have been missed. Messages of our own calls are emitted at once until the next
 * message gives the number, and env.lost() says that waiting callers must look for themselves. */
static void lost(void *ctx, size_t channel)
{
    redis_store *s = ctx;
    pthread_mutex_lock(&s->events.lock);
    if (channel < s->n_parts) {
        redis_order *o = &s->events.order[channel];
        emit_pending(s, o, true);
        o->unsynced = true;
        o->received = 0;
        weir__backlog_forget(s, (uint32_t)channel);
    }
    if (s->env.lost)
        s->env.lost(s->env.ctx);
    pthread_mutex_unlock(&s->events.lock);
}

weir_code weir__redis_events_open(redis_store *s, weir_error *err)
{
    size_t n = s->n_parts + (s->layout->foreign ? 2 : 0);
    s->events.due_announced = INT64_MAX;
    s->events.order = calloc(s->n_parts, sizeof *s->events.order);
    s->channels = calloc(n, sizeof *s->channels);
    if (!s->channels || !s->events.order)
        return weir_fail(err, WEIR_ENOMEM, "redis: out of memory");
    for (uint32_t i = 0; i < s->n_parts; i++) {
        s->channels[i] = (redis_channel){ s->part[i].channel, s->layout->sharded };
        s->events.order[i].unsynced = true;
    }
    if (s->layout->foreign) {           /* in this order: see redis_layout.presence_channel */
        s->channels[s->n_parts] = (redis_channel){ s->foreign, false };
        s->channels[s->n_parts + 1] = (redis_channel){ s->presence_channel, false };
    }
    return weir__subscriber_open(&s->subscriber, &s->url, s->channels, n, receive, lost, s, err);
}

void weir__redis_events_close(redis_store *s)
{
    weir__subscriber_close(s->subscriber);
    for (uint32_t i = 0; s->events.order && i < s->n_parts; i++) {
        while (s->events.order[i].pending) {
            redis_pending *h = s->events.order[i].pending;
            s->events.order[i].pending = h->next;
            free(h);
        }
    }
    free(s->events.order);
    free(s->channels);
    free(s->events.list);
    weir__buf_fini(&s->events.strings);
    weir__buf_fini(&s->events.notes);
}

void weir__redis_events_sync(redis_store *s, uint32_t part, int64_t next)
{
    pthread_mutex_lock(&s->events.lock);
    redis_order *o = &s->events.order[part];
    if (o->unsynced) {
        o->unsynced = false;
        o->next = next;
    }
    pthread_mutex_unlock(&s->events.lock);
}
