/* schedule.h - jobs that are added again and again: schedules with an expression in the manner of
 * cron, in any time zone. docs/time.md is the guide.
 *
 *     weir_schedule_put(q, &(weir_schedule){ .name = "report", .when = "30 6 * * 1",
 *                                            .zone = "Europe/Berlin",
 *                                            .job = { .type = "report" } }, &err);
 *
 * A schedule is kept in the store. Each of its firings adds one job, whatever the number of
 * processes that have the store open. Moments (`..._at`) are milliseconds since 1970-01-01 UTC.
 * Time zones are read from the system's tzdata. All functions are safe from any thread. */
#ifndef WEIR_SCHEDULE_H
#define WEIR_SCHEDULE_H

#include "weir/queue.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    WEIR_MAX_SCHEDULE_NAME = 100,    /* bytes */
    WEIR_MAX_WHEN = 256,             /* bytes of an expression */
    WEIR_MAX_EXCEPT = 8 * 1024,      /* bytes of the dates to leave out */
    WEIR_MAX_FIRINGS = 1000,         /* firings in one call of weir_schedule_next(), or that are
                                        made up for */
    WEIR_MISSED_LIMIT = 100,         /* if missed_limit is 0 */
    WEIR_MAX_FIRED = 20              /* recent firings that a schedule remembers */
};

/* A policy for firings for which no process was there (more than a minute late). */
typedef enum weir_missed_kind {
    WEIR_MISSED_ONCE = 0,            /* one job for all of them */
    WEIR_MISSED_SKIP,                /* none */
    WEIR_MISSED_ALL                  /* one for each, the oldest first, up to missed_limit */
} weir_missed_kind;

/* A policy if the job of the last firing has not ended. */
typedef enum weir_overlap_kind {
    WEIR_OVERLAP_ALLOW = 0,          /* add another */
    WEIR_OVERLAP_SKIP,               /* leave this firing out */
    WEIR_OVERLAP_QUEUE,              /* add another, but at most one waits */
    WEIR_OVERLAP_REPLACE             /* cancel it and add another */
} weir_overlap_kind;

/* The outcome of a firing. */
typedef enum weir_firing_kind {
    WEIR_FIRING_DONE = 0,                  /* a job was added */
    WEIR_FIRING_BY_HAND,              /* by weir_schedule_fire() or weir_schedule_backfill() */
    WEIR_FIRING_MISSED,              /* left out: no process was there */
    WEIR_FIRING_RUNNING,             /* left out: the job before it was still running */
    WEIR_FIRING_WAITING,             /* left out: the job before it had not started */
    WEIR_FIRING_REFUSED              /* the job could not be added */
} weir_firing_kind;

/* "once", "allow", "fired"; and back. */
WEIR_API const char *weir_missed_name(weir_missed_kind kind);
WEIR_API bool weir_missed_parse(const char *text, weir_missed_kind *out);
WEIR_API const char *weir_overlap_name(weir_overlap_kind kind);
WEIR_API bool weir_overlap_parse(const char *text, weir_overlap_kind *out);
WEIR_API const char *weir_firing_name(weir_firing_kind kind);
WEIR_API bool weir_firing_parse(const char *text, weir_firing_kind *out);

typedef struct weir_firing {
    int64_t          at;             /* the time that the expression names */
    int64_t          done_at;
    weir_firing_kind outcome;
    uint64_t         job;            /* 0: none */
    void            *reserved[WEIR_RESERVED];
} weir_firing;

/* Schedules whose names begin with this are kept by weir itself: they can be read and removed; a
 * put, a pause, a fire or a backfill is refused (WEIR_EINVAL). */
#define WEIR_OWN_SCHEDULE "weir/"

typedef struct weir_schedule {
    const char *name;
    const char *when;                /* "30 6 * * 1", "@daily", "every 90m" */
    const char *zone;                /* an IANA name; NULL: "UTC" */
    bool        day_or_weekday;      /* if the day and the weekday are both restricted, one of them
                                        is enough, as in Vixie cron; else both must match */
    weir_spec   job;                 /* what a firing adds. The job's values say which: "schedule",
                                        its name, and "scheduled_at" */
    int64_t     start_at, end_at;    /* no firing before, or after; 0: none. An interval counts
                                        from the start, or else from the first put */
    const char *except;              /* dates in its zone on which it does not fire:
                                        "2026-12-25,2026-12-26" */
    int64_t     jitter_ms;           /* fire up to this much later, always by the same amount */
    weir_missed_kind  missed;
    int32_t           missed_limit;  /* of WEIR_MISSED_ALL; 0: WEIR_MISSED_LIMIT */
    weir_overlap_kind overlap;
    bool        paused;
    bool        own;                 /* set by the calls that read it: WEIR_OWN_SCHEDULE */

    /* Set by the store; weir_schedule_put() ignores these. */
    int64_t     created_at;
    int64_t     next_at;             /* the next firing, without jitter; 0: there is none */
    int64_t     last_at;             /* the last firing that added a job, ... */
    uint64_t    last_job;            /* ... and that job; 0: none yet */
    int64_t     fired;               /* how many have */
    int32_t     caught_up;           /* missed firings that were made up for, just now */
    uint64_t    series, turn;        /* number its firings, so that each is decided once: the turn
                                        counts on with each, and when its times change; the series
                                        is that of another if the name was free meanwhile */
    weir_firing history[WEIR_MAX_FIRED];    /* the oldest first */
    size_t      n_history;
    void       *reserved[WEIR_RESERVED];
} weir_schedule;

/* ---- without a store ---- */

/* The first firings after `after_ms`, at most `max` (WEIR_MAX_FIRINGS), earlier ones first. *n is
 * smaller than `max` if the schedule ends. WEIR_EINVAL: the expression or the zone is wrong; the
 * message says where. An interval without start_at counts from created_at, or else from
 * `after_ms`. */
WEIR_API weir_code weir_schedule_next(const weir_schedule *s, int64_t after_ms, int64_t *out,
                                      size_t max, size_t *n, weir_error *err);

/* The schedule in plain words: "at 06:30 on Monday (Europe/Berlin)". *out is the caller's:
 * free(). */
WEIR_API weir_code weir_schedule_words(const weir_schedule *s, char **out, weir_error *err);

/* When it fires next, or why not, and what became of its last firing, as seen at `now_ms`: "It
 * fires next on Monday 2026-11-23 06:30 Europe/Berlin (in 2 d 4 h). The last run was skipped,
 * because job 7 of the one before was still running." *out is the caller's: free(). */
WEIR_API weir_code weir_schedule_explain(const weir_schedule *s, int64_t now_ms, char **out,
                                         weir_error *err);

/* ---- in a store ---- */

/* Add a schedule, or change the one of this name, which keeps its history. */
WEIR_API weir_code weir_schedule_put(weir_queue *q, const weir_schedule *s, weir_error *err);
WEIR_API weir_code weir_schedule_put_async(weir_queue *q, const weir_schedule *s, weir_future **f,
                                           weir_error *err);

/* WEIR_ENOENT: there is none. Its jobs stay. */
WEIR_API weir_code weir_schedule_remove(weir_queue *q, const char *name, weir_error *err);
WEIR_API weir_code weir_schedule_remove_async(weir_queue *q, const char *name, weir_future **f,
                                              weir_error *err);

/* A schedule that is paused does not fire. After a pause, it goes on with the next firing. */
WEIR_API weir_code weir_schedule_pause(weir_queue *q, const char *name, bool paused,
                                       weir_error *err);
WEIR_API weir_code weir_schedule_pause_async(weir_queue *q, const char *name, bool paused,
                                             weir_future **f, weir_error *err);

/* Add its job now; the firings of its expression stay as they are. `id` may be NULL. */
WEIR_API weir_code weir_schedule_fire(weir_queue *q, const char *name, uint64_t *id,
                                      weir_error *err);
WEIR_API weir_code weir_schedule_fire_async(weir_queue *q, const char *name, uint64_t *id,
                                            weir_future **f, weir_error *err);

/* Add a job for each firing that the expression names from `from_at` up to, but not at, `to_at`:
 * *n jobs (`n` may be NULL), at most WEIR_MAX_FIRINGS; more are refused with WEIR_ELIMIT. The same
 * span again within WEIR_TOKEN_MS adds nothing, and *n is 0, so that a call whose answer was lost
 * can be repeated. WEIR_EINVAL: the span is empty, or ends in the future. */
WEIR_API weir_code weir_schedule_backfill(weir_queue *q, const char *name, int64_t from_at,
                                          int64_t to_at, size_t *n, weir_error *err);
WEIR_API weir_code weir_schedule_backfill_async(weir_queue *q, const char *name, int64_t from_at,
                                                int64_t to_at, size_t *n, weir_future **f,
                                                weir_error *err);

typedef struct weir_schedules {
    size_t         n;
    weir_schedule *schedule;
    bool           more;             /* there are others behind these */
} weir_schedules;

/* The schedules behind the name `after` (NULL: from the first on) in the order of names, at most
 * `limit` (0: WEIR_MAX_PAGE). A NUL follows data and values of their jobs. *out is the caller's:
 * weir_schedules_free(). */
WEIR_API weir_code weir_schedules_list(weir_queue *q, const char *after, size_t limit,
                                       weir_schedules **out, weir_error *err);
WEIR_API weir_code weir_schedules_list_async(weir_queue *q, const char *after, size_t limit,
                                             weir_schedules **out, weir_future **f,
                                             weir_error *err);
/* One schedule, as a list. WEIR_ENOENT: there is none. */
WEIR_API weir_code weir_schedule_get(weir_queue *q, const char *name, weir_schedules **out,
                                     weir_error *err);
WEIR_API weir_code weir_schedule_get_async(weir_queue *q, const char *name, weir_schedules **out,
                                           weir_future **f, weir_error *err);
WEIR_API void weir_schedules_free(weir_schedules *list);

/* ---- from store to store ---- */

/* Put a schedule as it was in another store: with its history and its next firing. If a schedule of
 * this name exists, nothing changes and *existed is true (`existed` may be NULL); a parked one is
 * replaced. Without created_at it is a new one. */
WEIR_API weir_code weir_schedule_import(weir_queue *q, const weir_schedule *s, bool *existed,
                                        weir_error *err);
WEIR_API weir_code weir_schedule_import_async(weir_queue *q, const weir_schedule *s, bool *existed,
                                              weir_future **f, weir_error *err);

/* A parked schedule does not fire: its next firing is WEIR_PARKED_AT and what it was, until
 * weir_schedule_unpark(). *out is what another store is to have, parked as well: a firing that has
 * begun is in its history and not its next one. To move a schedule: park it, import it, remove it,
 * unpark it in the other store; each step can be repeated. WEIR_ENOENT: there is none; WEIR_EBUSY:
 * it fires on a server within WEIR_PARK_MS: pause it, or try again. */
enum { WEIR_PARK_MS = 5000 };
WEIR_API weir_code weir_schedule_park(weir_queue *q, const char *name, weir_schedules **out,
                                      weir_error *err);
WEIR_API weir_code weir_schedule_park_async(weir_queue *q, const char *name, weir_schedules **out,
                                            weir_future **f, weir_error *err);
/* Let a parked schedule fire again. A schedule that is not parked does not change. */
WEIR_API weir_code weir_schedule_unpark(weir_queue *q, const char *name, weir_error *err);
WEIR_API weir_code weir_schedule_unpark_async(weir_queue *q, const char *name, weir_future **f,
                                               weir_error *err);

/* A schedule with its history as a JSON object, and back. The text is the caller's: free(); NULL:
 * no memory. The list has one schedule: weir_schedules_free(). */
WEIR_API char *weir_schedule_json(const weir_schedule *s, size_t *len);
WEIR_API weir_code weir_schedule_parse(const char *text, size_t len, weir_schedules **out,
                                       weir_error *err);

#ifdef __cplusplus
}
#endif
#endif
