/* heard.c - events and due times, our own and those of other processes, in the order in which they
 * happened. Every message of a partition has a number. Our own come back with the answer of the
 * call, those of others over the ear (which hears ours, too); one that comes before the one before
 * it is held. While nothing is heard, our own are told at once. */
#include "store/redis/engine.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_HELD = 4096, MAX_NOTES = 1000 };

/* ---- telling ---- */

static void want(redis_store *s, int64_t at)
{
    if (at < 0)
        at = INT64_MIN;
    else
        at -= atomic_load(&s->ahead_ms);
    if (at >= s->heard.told)
        return;
    s->heard.told = at;
    s->env.due(s->env.ctx, at);
}

static bool room_for(redis_store *s, size_t n)
{
    if (n <= s->heard.cap_events)
        return true;
    size_t      cap = n < 64 ? 64 : 2 * n;
    weir_event *more = realloc(s->heard.events, cap * sizeof *more);
    if (!more)
        return false;
    s->heard.events = more;
    s->heard.cap_events = cap;
    return true;
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
        s->heard.events[(*k)++] = first;
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
        e.text = keep(&s->heard.strings, text);
        e.text_len = text.len;
        s->heard.events[(*k)++] = e;
    }
    return !r->bad;
}

/* Events may share what `before` points at. False: not an event. */
static bool put_event(redis_store *s, mp_reader *r, size_t *k, int64_t at, const char **type)
{
    weir_buf  *strings = &s->heard.strings;
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
    if (r->bad || (unsigned)e.kind >= WEIR_EVENT_KINDS || (unsigned)e.state >= WEIR_STATES)
        return false;
    if (kind >= REDIS_LIST_OF)
        return put_list(s, r, k, e, (int64_t)e.id);
    if (kind >= REDIS_RUN_OF)
        return put_run(s, r, k, e);
    if (!room_for(s, *k + 1))
        return false;
    s->heard.events[(*k)++] = e;
    return true;
}

/* Those at the end of the events, n of one kind and type. */
static void note_where(redis_store *s, uint32_t part, size_t k, size_t n)
{
    const weir_event *e = &s->heard.events[k - n];
    if (e->kind == WEIR_EVENT_ENQUEUE)
        weir__where_told(s, part, e->type, n);
    else if (e->kind == WEIR_EVENT_RESUME)
        weir__where_resumed(s);
}

/* No text takes more room in `strings` than in the message, where it has a head. */
static void tell(redis_store *s, uint32_t part, mp_reader *r, int64_t at)
{
    const char *type = NULL;
    size_t      k = 0;
    weir__buf_clear(&s->heard.strings);
    bool        ok = weir__buf_reserve(&s->heard.strings, (size_t)(r->end - r->at));
    while (ok && r->at < r->end) {
        size_t before = k;
        ok = put_event(s, r, &k, at, &type);
        if (k > before)
            note_where(s, part, k, k - before);
    }
    if (k)
        s->env.emit(s->env.ctx, s->heard.events, k);
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

static void tell_message(redis_store *s, const redis_order *o, const char *bytes, size_t len)
{
    mp_reader r = weir__mp_reader(bytes, len);
    mp_slice  origin;
    int64_t   number, at, due;
    if (!read_head(&r, &number, &at, &origin, &due))
        return;
    if (r.at < r.end)
        tell(s, (uint32_t)(o - s->heard.order), &r, at);
    if (due)
        want(s, due);
}

/* ---- order ---- */

static void hold(redis_order *o, int64_t number, const char *bytes, size_t len)
{
    redis_held **at = &o->held;
    while (*at && (*at)->number < number)
        at = &(*at)->next;
    if (*at && (*at)->number == number)
        return;
    redis_held *h = malloc(sizeof *h + len);
    if (!h)
        return;
    *h = (redis_held){ .next = *at, .number = number, .len = len };
    memcpy(h->bytes, bytes, len);
    *at = h;
    o->n_held++;
}

/* Tell what is held, in order; up to the first that is missing, unless `all`. */
static void tell_held(redis_store *s, redis_order *o, bool all)
{
    while (o->held && (all || o->held->number <= o->next)) {
        redis_held *h = o->held;
        o->held = h->next;
        o->n_held--;
        if (h->number >= o->next) {
            tell_message(s, o, h->bytes, h->len);
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
        tell_message(s, o, bytes, len);
    } else {
        hold(o, number, bytes, len);
    }
    tell_held(s, o, o->n_held > MAX_HELD);
    pthread_cond_broadcast(&s->heard.moved);
}

static bool number_of(const char *bytes, size_t len, int64_t *number, mp_slice *origin)
{
    mp_reader r = weir__mp_reader(bytes, len);
    int64_t   at, due;
    return read_head(&r, number, &at, origin, &due);
}

void weir__heard_own(redis_store *s, uint32_t part, const char *message, size_t len)
{
    redis_order *o = &s->heard.order[part];
    mp_slice     origin;
    int64_t      number;
    if (!number_of(message, len, &number, &origin))
        return;
    pthread_mutex_lock(&s->heard.lock);
    if (o->deaf) {
        o->told[o->n_told++ % REDIS_TOLD] = number;
        tell_message(s, o, message, len);
    } else {
        in_order(s, o, number, message, len);
    }
    pthread_mutex_unlock(&s->heard.lock);
}

void weir__heard_until(redis_store *s, uint32_t part, int64_t number)
{
    enum { A_MOMENT_MS = 500 };
    const redis_order *o = &s->heard.order[part];
    weir_deadline      until = weir__deadline_in(A_MOMENT_MS);
    pthread_mutex_lock(&s->heard.lock);
    while (!o->deaf && o->next <= number)
        if (!weir__cond_wait_until(&s->heard.moved, &s->heard.lock, until))
            break;
    pthread_mutex_unlock(&s->heard.lock);
}

void weir__due_begin(redis_store *s)
{
    pthread_mutex_lock(&s->heard.lock);
    s->heard.told = INT64_MAX;
    pthread_mutex_unlock(&s->heard.lock);
}

void weir__due_end(redis_store *s, int64_t at)
{
    pthread_mutex_lock(&s->heard.lock);
    if (at < s->heard.told)
        s->heard.told = at;
    pthread_mutex_unlock(&s->heard.lock);
}

void weir__heard_want(redis_store *s, int64_t at)
{
    pthread_mutex_lock(&s->heard.lock);
    want(s, at);
    pthread_mutex_unlock(&s->heard.lock);
}

/* ---- the ear ---- */

/* What others have ended or removed, to be told to the script with the next TICK. What is too much
 * is left out: the script finds it, later. */
static void note(redis_store *s, const weir_event *event)
{
    weir_buf *b = &s->heard.notes;
    if ((event->kind != WEIR_EVENT_COMPLETE && event->kind != WEIR_EVENT_FAILED &&
         event->kind != WEIR_EVENT_REMOVE) || s->heard.n_notes == MAX_NOTES || b->failed)
        return;
    weir__resp_int(b, (int64_t)event->id);
    weir__resp_text(b, event->type ? event->type : "");
    s->heard.n_notes++;
}

void weir__heard_step(redis_lane *l, redis_task *t, uint32_t part)
{
    redis_store *s = l->top;
    pthread_mutex_lock(&s->heard.lock);
    if (s->heard.n_notes && !s->heard.notes.failed) {
        weir_buf *b = weir__step(l, t, part, 'X', 2 * s->heard.n_notes);
        weir__buf_add(b, s->heard.notes.data, s->heard.notes.len);
    }
    weir__buf_clear(&s->heard.notes);
    s->heard.notes.failed = false;
    s->heard.n_notes = 0;
    pthread_mutex_unlock(&s->heard.lock);
}

static void hear_kue(redis_store *s, const char *message, size_t len)
{
    weir_event event;
    weir_buf   strings = { 0 };
    if (s->layout->hear(message, len, &event, &strings)) {
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

/* One of our own that was told while we were deaf? */
static bool is_told(const redis_order *o, int64_t number)
{
    for (uint32_t i = 0; i < REDIS_TOLD; i++) {
        if (o->told[i] == number)
            return true;
    }
    return false;
}

static void hear(void *ctx, size_t channel, const char *message, size_t len)
{
    redis_store *s = ctx;
    mp_slice     origin;
    int64_t      number;
    pthread_mutex_lock(&s->heard.lock);
    if (channel >= s->n_parts) {
        hear_kue(s, message, len);
    } else if (number_of(message, len, &number, &origin)) {
        redis_order *o = &s->heard.order[channel];
        if (o->deaf)
            o->next = number;
        o->deaf = false;
        if (is_ours(s, origin) && is_told(o, number)) {
            if (number >= o->next)
                o->next = number + 1;
            tell_held(s, o, false);
        } else {
            in_order(s, o, number, message, len);
        }
    }
    pthread_mutex_unlock(&s->heard.lock);
}

/* Something may have been missed: our own are told at once until the next message says where we
 * are, and whoever waits for something has to look. */
static void lost(void *ctx, size_t channel)
{
    redis_store *s = ctx;
    pthread_mutex_lock(&s->heard.lock);
    if (channel < s->n_parts) {
        redis_order *o = &s->heard.order[channel];
        tell_held(s, o, true);
        o->deaf = true;
        weir__where_missed(s, (uint32_t)channel);
    }
    if (s->env.lost)
        s->env.lost(s->env.ctx);
    pthread_mutex_unlock(&s->heard.lock);
}

weir_code weir__heard_open(redis_store *s, weir_error *err)
{
    size_t n = s->n_parts + (s->layout->foreign ? 2 : 0);
    s->heard.told = INT64_MAX;
    s->heard.order = calloc(s->n_parts, sizeof *s->heard.order);
    s->channels = calloc(n, sizeof *s->channels);
    if (!s->channels || !s->heard.order)
        return weir_fail(err, WEIR_ENOMEM, "redis: out of memory");
    for (uint32_t i = 0; i < s->n_parts; i++) {
        s->channels[i] = (redis_channel){ s->part[i].channel, s->layout->sharded };
        s->heard.order[i].deaf = true;
    }
    if (s->layout->foreign) {           /* in this order: see redis_layout.ears */
        s->channels[s->n_parts] = (redis_channel){ s->foreign, false };
        s->channels[s->n_parts + 1] = (redis_channel){ s->ears, false };
    }
    return weir__ear_open(&s->ear, &s->url, s->channels, n, hear, lost, s, err);
}

void weir__heard_close(redis_store *s)
{
    weir__ear_close(s->ear);
    for (uint32_t i = 0; s->heard.order && i < s->n_parts; i++) {
        while (s->heard.order[i].held) {
            redis_held *h = s->heard.order[i].held;
            s->heard.order[i].held = h->next;
            free(h);
        }
    }
    free(s->heard.order);
    free(s->channels);
    free(s->heard.events);
    weir__buf_fini(&s->heard.strings);
    weir__buf_fini(&s->heard.notes);
}

/* From which number on we hear everything: we are subscribed, and know the last one. */
void weir__heard_from(redis_store *s, uint32_t part, int64_t next)
{
    pthread_mutex_lock(&s->heard.lock);
    redis_order *o = &s->heard.order[part];
    if (o->deaf) {
        o->deaf = false;
        o->next = next;
    }
    pthread_mutex_unlock(&s->heard.lock);
}
