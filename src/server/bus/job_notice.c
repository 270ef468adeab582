/* job_notice.c - what Vert.x Kue publishes about one event of a job: see job_notice.h. */
#include "server/bus/job_notice.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "server/bus/job_events.h"
#include "server/kue/kue.h"

bool job_notice_fails(const weir_event *event)
{
    return event->kind == WEIR_EVENT_FAILED_ATTEMPT || event->kind == WEIR_EVENT_FAILED;
}

bool job_notice_removes(const weir_event *event)
{
    return event->kind == WEIR_EVENT_COMPLETE && event->state == WEIR_STATE_ANY;
}

/* The message that is published about one event. */
typedef struct notice {
    const weir_event *event;
    weir_job          job;          /* as it was after the event; borrows all texts */
    bool              known;        /* false: only id and type of `job` are set */
    char              address[SRV_MAX_ADDRESS + 1];
    weir_buf          body;
    job_publish_fn   *publish;
    void             *ctx;
    size_t            too_long;     /* addresses; they were left out */
} notice;

static void publish(notice *n, const char *event, bool for_all)
{
    char to[WEIR_MAX_BUS_ADDRESS + 1];
    int  len = for_all ? snprintf(to, sizeof to, SRV_JOB_EVENTS "workers.%s%s",
                                  strcmp(event, "error") == 0 ? "" : "job_", event)
                       : snprintf(to, sizeof to, SRV_JOB_EVENTS "job.%s.%s.%s", event,
                                  n->address, n->job.type);
    if (len >= (int)sizeof to)
        n->too_long++;
    else if (!n->body.failed)
        n->publish(n->ctx, to, n->body.data, n->body.len);
}

static void begin(notice *n)
{
    weir__buf_clear(&n->body);
}

static void write_message(notice *n)
{
    weir__buf_str(&n->body, "\"message\":");
    weir__json_string(&n->body, n->event->text ? n->event->text : "", n->event->text_len);
    weir__buf_char(&n->body, '}');
}

/* {"id":7,"message":"..."} for each failure, before what becomes of the job. */
static void publish_error(notice *n)
{
    begin(n);
    weir__buf_printf(&n->body, "{\"id\":%" PRIu64 ",", n->job.id);
    write_message(n);
    publish(n, "error", false);
    publish(n, "error", true);
}

/* If a job was removed before it was read, only the event's own members are published. */
static void write_job(notice *n)
{
    if (n->known) {
        srv_vertx_job(&n->body, &n->job);
        return;
    }
    weir__buf_printf(&n->body, "{\"id\":%" PRIu64 ",\"type\":", n->job.id);
    weir__json_string(&n->body, n->job.type, strlen(n->job.type));
    weir__buf_char(&n->body, '}');
}

/* {"extra":...,"job":{...}}; of a failure `extra` has its message. */
static void write_job_and_extra(notice *n)
{
    begin(n);
    weir__buf_str(&n->body, "{\"extra\":");
    if (job_notice_fails(n->event)) {
        weir__buf_char(&n->body, '{');
        write_message(n);
    } else {
        weir__buf_str(&n->body, "null");
    }
    weir__buf_str(&n->body, ",\"job\":");
    write_job(n);
    weir__buf_char(&n->body, '}');
}

static void publish_progress(notice *n)
{
    begin(n);
    weir__buf_int(&n->body, n->event->progress);
    publish(n, "progress", false);
}

static void publish_remove(notice *n)
{
    begin(n);
    weir__buf_printf(&n->body, "{\"id\":%" PRIu64 "}", n->job.id);
    publish(n, "remove", false);
}

static void publish_job(notice *n)
{
    weir_event_kind kind = n->event->kind;
    const char     *name = weir_event_name(kind);
    write_job_and_extra(n);
    publish(n, name, true);
    if (!job_notice_fails(n->event)) {
        begin(n);
        write_job(n);
    }
    publish(n, name, false);
}

static void publish_all(notice *n)
{
    weir_event_kind kind = n->event->kind;
    if (job_notice_fails(n->event))
        publish_error(n);
    if (kind == WEIR_EVENT_REMOVE || job_notice_removes(n->event))
        publish_remove(n);
    if (kind == WEIR_EVENT_PROGRESS)
        publish_progress(n);
    else if (kind != WEIR_EVENT_REMOVE)
        publish_job(n);
}

static void find_address(notice *n)
{
    size_t      len = 0;
    const char *value = n->known ? srv_vertx_address(&n->job, &len) : NULL;
    char        text[6 * SRV_MAX_ADDRESS + 3];
    if (value && *value == '"' && len < sizeof text &&
        weir__json_text((weir_json_piece){ value, len }, text, &len) && len <= SRV_MAX_ADDRESS)
        strcpy(n->address, text);
    else
        snprintf(n->address, sizeof n->address, "%" PRIu64, n->job.id);
}

/* The job was read a moment later: show it as the event left it. */
static void as_it_was(notice *n)
{
    const weir_event *event = n->event;
    weir_job         *j = &n->job;
    bool              done = event->kind == WEIR_EVENT_COMPLETE;
    if (event->state != WEIR_STATE_ANY)
        j->state = event->state;
    else if (done)
        j->state = WEIR_STATE_COMPLETE;
    j->attempts = event->attempts;
    j->progress = event->progress;
    j->result = done ? event->text : NULL;
    j->result_len = done ? event->text_len : 0;
}

size_t job_notice_publish(const weir_event *event, const weir_job *job, job_publish_fn *publish_fn,
                          void *ctx)
{
    notice n = { .event = event, .known = job, .publish = publish_fn, .ctx = ctx };
    if (job)
        n.job = *job;
    n.job.id = event->id;
    n.job.type = event->type;
    as_it_was(&n);
    find_address(&n);
    publish_all(&n);
    weir__buf_fini(&n.body);
    return n.too_long;
}
