/* mail.c - mails that go out later: one after a short delay, by a mail server that is down at
 * first; one in ten minutes, unless somebody promotes it. Delay, priority, promotion, attempts and
 * backoff, and the log that has the story afterwards. */
#include <semaphore.h>
#include <stdio.h>
#include <weir/weir.h>

enum { MINUTE = 60 * 1000 };

static void on_event(const weir_event *event, void *ctx)
{
    if (event->kind == WEIR_EVENT_PROMOTION)
        printf("mail %d is promoted\n", (int)event->id);
    if (event->kind == WEIR_EVENT_COMPLETE)
        sem_post(ctx);
}

/* The server answers from the third try on. job->attempts counts the executions that have ended. */
static weir_code send_mail(weir_job *job, void *ctx)
{
    (void)ctx;
    if (weir_data_bool(job, "server_is_down", false) && job->attempts < 2)
        return weir_job_fail(job, "smtp: connection refused");
    weir_job_log(job, "sent %s to %s", weir_data_text(job, "template", "nothing"),
                 weir_data_text(job, "to", "nobody"));
    return weir_job_done(job, "{\"sent\":true}", 0, NULL);
}

static weir_code print_mail(weir_queue *q, uint64_t id, weir_error *err)
{
    weir_job   *job;
    weir_lines *log;
    weir_code   rc = weir_get(q, id, &job, err);
    if (rc)
        return rc;
    printf("%s: %s after %d attempts\n", weir_data_text(job, "title", "?"),
           weir_state_name(job->state), job->attempts);
    weir_job_free(job);
    if ((rc = weir_logs(q, id, 0, 0, &log, err)))
        return rc;
    for (size_t i = 0; i < log->n; i++)
        printf("  %s\n", log->line[i].text);
    weir_lines_free(log);
    return WEIR_OK;
}

static weir_code send_all(weir_queue *q, sem_t *sent, weir_error *err)
{
    const weir_spec specs[] = {
        { .type = "mail", .delay_ms = 300, .priority = WEIR_PRIORITY_HIGH, .attempts = 5,
          .backoff = { WEIR_BACKOFF_EXPONENTIAL, .delay_ms = 50, .max_ms = MINUTE,
                       .jitter_pct = 20 },
          .data = "{\"title\":\"Account renewal required\",\"to\":\"ann@example.org\","
                  "\"template\":\"renewal-mail\",\"server_is_down\":true}" },
        { .type = "mail", .delay_ms = 10 * MINUTE, .priority = WEIR_PRIORITY_HIGH,
          .data = "{\"title\":\"Account expired\",\"to\":\"ann@example.org\","
                  "\"template\":\"expired-mail\"}" },
    };
    weir_added added[2];
    weir_code  rc = weir_add_many(q, specs, 2, NULL, added, err);
    if (!rc) {
        printf("both mails are %s\n", weir_state_name(added[1].state));
        rc = weir_process(q, "mail", &(weir_pool_config){ .handler = send_mail, .threads = 10 },
                          NULL, err);
    }
    if (!rc) {
        sem_wait(sent);                                  /* the first one */
        rc = weir_promote(q, added[1].id, err);
    }
    if (!rc)
        sem_wait(sent);
    for (int i = 0; !rc && i < 2; i++)
        rc = print_mail(q, added[i].id, err);
    return rc;
}

int main(void)
{
    weir_error     err;
    weir_queue    *q;
    weir_listener *listener = NULL;
    sem_t          sent;
    sem_init(&sent, 0, 0);
    if (weir_open(&q, "sqlite:mail.db", NULL, &err))
        return weir_complain(&err);
    weir_filter filter = { .type = "mail" };
    int         status = 0;
    if (weir_listen(q, &filter, on_event, &sent, &listener, &err) || send_all(q, &sent, &err))
        status = weir_complain(&err);
    weir_unlisten(listener);
    weir_close(q);
    sem_destroy(&sent);
    return status;
}
