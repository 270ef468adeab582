/* trends.c - see trends.h. Events come somewhat late and out of order, so the last MINUTES minutes
 * of a type stay open. A minute that makes room for a new one is added to its hour; the record of
 * an hour is that and its open minutes. */
#include "server/live/trends.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/grow.h"
#include "base/named.h"
#include "base/thread.h"
#include "runtime/ops.h"
#include "server/live/chart.h"

enum { MINUTES = 3, HOURS = 2, MINUTE_MS = 60000, HOUR_MINUTES = 60 };

typedef struct slot {
    int64_t    at;                  /* minute or hour since 1970 */
    bool       dirty;               /* not in the store as it is */
    weir_trend t;
} slot;

typedef struct trend {              /* of a type, or of the queue */
    weir_named named;
    slot       minute[MINUTES];     /* by minute % MINUTES */
    slot       hour[HOURS];         /* minutes that are not open any more, by hour % HOURS */
    char       type[WEIR_MAX_TYPE + 1];
} trend;

struct srv_trends {
    weir_queue     *q;
    pthread_t       thread;
    pthread_mutex_t lock;           /* guards what follows */
    pthread_cond_t  wake;
    bool            stopping, started;
    bool            idle;           /* nothing is dirty and no job waits: the thread sleeps */
    int64_t         last_minute;    /* of an event */
    weir_names      types;
    trend          *queue;          /* also in types, as "" */
};

/* ---- counting; with the lock ---- */

/* NULL: no memory, or there are too many types. */
static trend *trend_of(srv_trends *s, const char *type)
{
    trend *t = weir__names_get(&s->types, type);
    if (t || s->types.n >= WEIR_TREND_TYPES || strlen(type) > WEIR_MAX_TYPE)
        return t;
    t = calloc(1, sizeof *t);
    if (!t)
        return NULL;
    strcpy(t->type, type);
    if (!weir__names_put(&s->types, &t->named, t->type)) {
        free(t);
        return NULL;
    }
    return t;
}

static void fold(trend *t, const slot *minute)
{
    int64_t at = minute->at / HOUR_MINUTES;
    slot   *hour = &t->hour[at % HOURS];
    if (hour->at > at)
        return;
    if (hour->at < at) {
        weir__trend_clear(&hour->t);
        hour->at = at;
    }
    weir__trend_follow(&hour->t, &minute->t);
}

/* NULL: it is too old. */
static slot *open_minute(trend *t, int64_t minute)
{
    slot *m = &t->minute[minute % MINUTES];
    if (m->at > minute)
        return NULL;
    if (m->at < minute) {
        if (m->at)
            fold(t, m);
        weir__trend_clear(&m->t);
        m->at = minute;
        m->dirty = false;
    }
    return m;
}

static void count(trend *t, int64_t minute, const weir_event *e, int64_t ms)
{
    slot *m = t ? open_minute(t, minute) : NULL;
    if (!m)
        return;
    srv_chart_count(&m->t, e, ms);
    m->dirty = true;
}

void srv_trends_note(srv_trends *s, const weir_event *e, int64_t ms)
{
    int64_t minute = e->at / MINUTE_MS;
    if (minute <= 0)
        return;
    pthread_mutex_lock(&s->lock);
    if (minute > s->last_minute) {          /* by a clock that is ahead of ours, perhaps */
        int64_t now = weir_now(s->q) / MINUTE_MS;
        minute = minute > now + 1 ? now : minute;
        s->last_minute = minute > s->last_minute ? minute : s->last_minute;
    }
    count(s->queue, minute, e, ms);
    count(trend_of(s, e->type), minute, e, ms);
    if (s->idle) {
        s->idle = false;
        pthread_cond_signal(&s->wake);
    }
    pthread_mutex_unlock(&s->lock);
}

static void hour_of(const trend *t, int64_t at, weir_trend *out)
{
    weir__trend_clear(out);
    if (t->hour[at % HOURS].at == at)
        *out = t->hour[at % HOURS].t;
    for (int64_t m = at * HOUR_MINUTES; m < (at + 1) * HOUR_MINUTES; m++)   /* in their order */
        if (t->minute[m % MINUTES].at == m)
            weir__trend_follow(out, &t->minute[m % MINUTES].t);
}

void srv_trends_join(srv_trends *s, const char *type, weir_trend_step step, int64_t at,
                     weir_trend *to)
{
    weir_trend   own;
    pthread_mutex_lock(&s->lock);
    const trend *t = weir__names_get(&s->types, type);
    weir__trend_clear(&own);
    if (t && step == WEIR_TREND_HOUR)
        hour_of(t, at, &own);
    else if (t && t->minute[at % MINUTES].at == at)
        own = t->minute[at % MINUTES].t;
    pthread_mutex_unlock(&s->lock);
    weir__trend_join(to, &own);
}

/* ---- reading what is there ---- */

static weir_trend_rows *read_rows(srv_trends *s, int64_t from, size_t n)
{
    weir_op op = { .kind = WEIR_OP_TREND_GET,
                   .u.trend_get = { .step = WEIR_TREND_MINUTE, .from = from, .n = n } };
    weir_future *f = NULL;
    if (weir__ops_run_async(s->q, &op, 1, &f, NULL))
        return NULL;
    weir_future_wait(f, WEIR_FOREVER, NULL);
    weir_future_free(f);
    return op.err.code ? NULL : op.u.trend_get.rows;
}

/* A minute of an earlier server: if it is open here, it goes on; others belong to their hour. */
static void take_over(srv_trends *s, const weir_trend_row *row, int64_t first_open)
{
    slot old = { .at = row->slot };
    pthread_mutex_lock(&s->lock);
    trend *t = trend_of(s, row->type);
    if (t && !weir__trend_read(&old.t, row->record, NULL)) {
        slot *m = row->slot >= first_open ? open_minute(t, row->slot) : NULL;
        if (m) {
            weir_trend own = m->t;
            m->t = old.t;
            weir__trend_follow(&m->t, &own);
        } else {
            fold(t, &old);
        }
    }
    pthread_mutex_unlock(&s->lock);
}

static void read_this_hour(srv_trends *s)
{
    int64_t now = weir_now(s->q) / MINUTE_MS, open = now - MINUTES + 1;
    int64_t from = now / HOUR_MINUTES * HOUR_MINUTES;
    for (from = from < open ? from : open; from <= now; from += WEIR_MAX_TREND_TOGETHER) {
        weir_trend_rows *rows = read_rows(s, from > 0 ? from : 0, WEIR_MAX_TREND_TOGETHER);
        for (size_t i = 0; rows && i < rows->n; i++)
            if (rows->row[i].slot <= now)
                take_over(s, &rows->row[i], open);
        weir__trend_rows_free(rows);
    }
}

/* ---- writing ---- */

typedef struct list {
    size_t          n, cap;
    weir_trend_row *row;
    bool            failed;
} list;

static void add_row(list *l, const char *type, weir_trend_step step, int64_t at,
                    const weir_trend *t)
{
    char   record[WEIR_TREND_MAX_BYTES];
    size_t len = weir__trend_write(t, record) + 1;
    bool   room = weir__grow(&l->row, &l->cap, l->n + 1, sizeof *l->row);
    char  *copy = room ? malloc(len + strlen(type) + 1) : NULL;
    if (!copy) {
        l->failed = true;
        return;
    }
    memcpy(copy, record, len);
    strcpy(copy + len, type);
    l->row[l->n++] = (weir_trend_row){ .type = copy + len, .record = copy, .step = step,
                                       .slot = at };
}

static void list_free(list *l)
{
    for (size_t i = 0; i < l->n; i++)
        free((char *)l->row[i].record);
    free(l->row);
}

/* With the lock. Rows of what is dirty up to and with that minute. */
static void gather(trend *t, int64_t last, list *l)
{
    int64_t hours[HOURS] = { -1, -1 };
    for (int i = 0; i < MINUTES; i++) {
        slot *m = &t->minute[i];
        if (!m->dirty || m->at > last)
            continue;
        m->dirty = false;
        hours[m->at / HOUR_MINUTES % HOURS] = m->at / HOUR_MINUTES;
        add_row(l, t->type, WEIR_TREND_MINUTE, m->at, &m->t);
    }
    for (int i = 0; i < HOURS; i++) {
        weir_trend sum;
        if (hours[i] < 0)
            continue;
        hour_of(t, hours[i], &sum);
        add_row(l, t->type, WEIR_TREND_HOUR, hours[i], &sum);
    }
}

/* A record that the store refuses is lost: it is of a minute, and the next write repeats the
 * hour. */
static void write_rows(srv_trends *s, const list *l)
{
    for (size_t at = 0; at < l->n; at += WEIR_MAX_TREND_PUT) {
        size_t  n = l->n - at < WEIR_MAX_TREND_PUT ? l->n - at : WEIR_MAX_TREND_PUT;
        weir_op op = { .kind = WEIR_OP_TREND_PUT,
                       .u.trend_put = { .rows = l->row + at, .n = n } };
        weir_future *f = NULL;
        if (weir__ops_run_async(s->q, &op, 1, &f, NULL))
            return;
        weir_future_wait(f, WEIR_FOREVER, NULL);
        weir_future_free(f);
    }
}

/* With the lock. How many jobs wait at the end of this minute; nothing, if nothing happened and
 * none does. */
static bool gauge(srv_trends *s, const weir_type_stats *stats, const char *type, int64_t minute,
                  int64_t now)
{
    uint64_t waits = stats->count[WEIR_STATE_INACTIVE];
    trend   *t = waits ? trend_of(s, type) : weir__names_get(&s->types, type);
    slot    *m = t && (waits || t->minute[minute % MINUTES].at == minute) ? open_minute(t, minute)
                                                                         : NULL;
    if (m) {
        int64_t age = waits && stats->oldest_at ? now - stats->oldest_at : 0;
        m->t.gauge[WEIR_TREND_BACKLOG] = (int64_t)waits;
        m->t.gauge[WEIR_TREND_OLDEST] = age > 0 ? age : 0;
        m->dirty = true;
    }
    return waits > 0;
}

static bool measure(srv_trends *s, int64_t minute, int64_t now)
{
    weir_stats *stats = NULL;
    if (weir_get_stats(s->q, &stats, NULL))
        return true;                        /* not known: look again */
    pthread_mutex_lock(&s->lock);
    bool waits = gauge(s, &stats->all, "", minute, now);
    for (size_t i = 0; i < stats->n; i++)
        gauge(s, &stats->type[i], stats->type[i].type, minute, now);
    pthread_mutex_unlock(&s->lock);
    weir_stats_free(stats);
    return waits;
}

/* Write what is dirty up to and with that minute. */
static void write_until(srv_trends *s, int64_t minute)
{
    list   l = { 0 };
    size_t pos = 0;
    pthread_mutex_lock(&s->lock);
    for (trend *t = weir__names_next(&s->types, &pos, NULL); t;
         t = weir__names_next(&s->types, &pos, t))
        gather(t, minute, &l);
    pthread_mutex_unlock(&s->lock);
    write_rows(s, &l);
    list_free(&l);
}

/* ---- the thread ---- */

/* With the lock. */
static bool is_dirty(srv_trends *s)
{
    for (int i = 0; i < MINUTES; i++)
        if (s->queue->minute[i].dirty)
            return true;
    return false;
}

/* Until the next minute was over for SRV_TREND_LATE_MS. */
static void sleep_until_due(srv_trends *s, bool waits)
{
    pthread_mutex_lock(&s->lock);
    s->idle = !waits && !is_dirty(s);
    while (s->idle && !s->stopping)
        pthread_cond_wait(&s->wake, &s->lock);
    s->idle = false;
    int64_t now = weir_now(s->q);
    int64_t ms = MINUTE_MS - (now - SRV_TREND_LATE_MS) % MINUTE_MS;
    weir_deadline until = weir__deadline_in(ms);
    while (!s->stopping && weir__cond_wait_until(&s->wake, &s->lock, until))
        ;
    pthread_mutex_unlock(&s->lock);
}

static void *run(void *arg)
{
    srv_trends *s = arg;
    bool        waits = true, stopping = false;
    read_this_hour(s);
    while (!stopping) {
        sleep_until_due(s, waits);
        pthread_mutex_lock(&s->lock);
        stopping = s->stopping;
        pthread_mutex_unlock(&s->lock);
        int64_t now = weir_now(s->q), minute = now / MINUTE_MS - !stopping;
        waits = measure(s, minute, now);
        write_until(s, stopping ? INT64_MAX : minute);
    }
    return NULL;
}

weir_code srv_trends_create(srv_trends **out, weir_queue *q, weir_error *err)
{
    srv_trends *s = calloc(1, sizeof *s);
    *out = NULL;
    if (!s)
        return weir_fail(err, WEIR_ENOMEM, "trends: out of memory");
    s->q = q;
    pthread_mutex_init(&s->lock, NULL);
    weir__cond_init(&s->wake);
    s->queue = trend_of(s, "");
    weir_code rc = s->queue ? weir__thread_start(&s->thread, run, s, "weir-trends", err)
                            : weir_fail(err, WEIR_ENOMEM, "trends: out of memory");
    s->started = !rc;
    if (rc)
        srv_trends_destroy(s);
    else
        *out = s;
    return rc;
}

void srv_trends_destroy(srv_trends *s)
{
    size_t pos = 0;
    if (!s)
        return;
    pthread_mutex_lock(&s->lock);
    s->stopping = true;
    pthread_cond_signal(&s->wake);
    pthread_mutex_unlock(&s->lock);
    if (s->started)
        pthread_join(s->thread, NULL);
    for (trend *t = weir__names_next(&s->types, &pos, NULL), *next; t; t = next) {
        next = weir__names_next(&s->types, &pos, t);
        free(t);
    }
    weir__names_fini(&s->types);
    pthread_cond_destroy(&s->wake);
    pthread_mutex_destroy(&s->lock);
    free(s);
}
