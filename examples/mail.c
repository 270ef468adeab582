/* mail.c - a mail that is to go out a little later, and a mail server that is down at first: delay,
 * attempts and backoff, and the log that tells the story afterwards. */
#include <stdio.h>
#include <weir/weir.h>

/* The server answers from the third try on. job->attempts counts the executions that have ended. */
static weir_code send_mail(weir_job *job, void *ctx)
{
    (void)ctx;
    printf("try %d of %d\n", job->attempts + 1, job->max_attempts);
    if (job->attempts < 2)
        return weir_job_fail(job, "smtp: connection refused");
    weir_job_log(job, "accepted by %s", "mx.example.org");
    return weir_job_done(job, "{\"sent\":true}");
}

static weir_code print_log(weir_queue *q, uint64_t id, weir_error *err)
{
    weir_lines *log;
    weir_code   rc = weir_logs(q, id, 0, 0, &log, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < log->n; i++)
        printf("  %s\n", log->line[i].text);
    weir_lines_release(log);
    return WEIR_OK;
}

static weir_code send_later(weir_queue *q, weir_error *err)
{
    weir_spec spec = {
        .type = "mail",
        .data = "{\"to\":\"ann@example.org\",\"title\":\"Your order\"}",
        .delay_ms = 100,
        .attempts = 5,
        .backoff = { WEIR_EXPONENTIAL, .delay_ms = 50, .max_ms = 60000, .jitter_pct = 20 },
    };
    weir_added added;
    weir_code  rc = weir_add(q, &spec, &added, err);
    if (rc)
        return rc;
    printf("the mail is %s\n", weir_state_name(added.state));

    weir_job *job;
    rc = weir_process(q, "mail", &(weir_pool){ .handler = send_mail }, err);
    if (!rc)
        rc = weir_wait(q, added.id, 20000, &job, err);
    if (rc)
        return rc;
    printf("the mail is %s after %d attempts\n", weir_state_name(job->state), job->attempts);
    weir_job_release(job);
    return print_log(q, added.id, err);
}

int main(void)
{
    weir_error  err;
    weir_queue *q;
    if (weir_open(&q, "sqlite:mail.db", NULL, &err))
        return weir_complain(&err);
    int status = send_later(q, &err) ? weir_complain(&err) : 0;
    weir_close(q);
    return status;
}
