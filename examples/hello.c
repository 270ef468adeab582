/* hello.c - queue a mail, have it sent. cc hello.c $(pkg-config --cflags --libs weir) */
#include <stdio.h>
#include <weir/weir.h>

static weir_code send_mail(weir_job *job, void *ctx)
{
    (void)ctx;
    printf("sending %s\n", job->data);
    /* if it goes wrong: return weir_job_fail(job, "smtp: %s", why); */
    return weir_job_done(job, "{\"sent\":true}", 0, NULL);
}

int main(void)
{
    weir_error  err;
    weir_queue *q;
    weir_job   *job;
    weir_added  added;
    if (weir_open(&q, "sqlite:jobs.db", NULL, &err) ||
        weir_process(q, "mail", &(weir_pool_config){ .threads = 4, .handler = send_mail }, NULL,
                     &err) ||
        weir_add(q, &(weir_spec){ .type = "mail", .data = "{\"to\":\"ann@example.org\"}",
                                  .priority = WEIR_PRIORITY_HIGH, .attempts = 3 }, &added, &err) ||
        weir_wait(q, added.id, 10000, &job, &err))
        return weir_complain(&err);
    printf("mail is %s: %s\n", weir_state_name(job->state), job->result);
    weir_job_free(job);
    weir_close(q);
    return 0;
}
