/* main.c - uses the toy operation and the toy field, built against a tree that has them. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "core/job.h"
#include "op/batch.h"
#include "weir/weir.h"

/* There and back as JSON. */
static int json_keeps_it(void)
{
    weir_op     op = { .kind = WEIR_OP_TOUCH, .u.touch.id = 42 };
    weir_arena  arena = { 0 };
    weir_reader in = { .alloc = weir__arena_alloc, .ctx = &arena };
    weir_batch  batch;
    weir_buf    text = { 0 };
    weir__batch_begin(&text, "0123456789abcdef0123456789abcdef", 1, "");
    weir__batch_add(&text, &op);
    weir__batch_end(&text);
    int ok = !weir__batch_read(&in, text.data, text.len, &batch) && batch.n == 1 &&
             batch.op[0].kind == WEIR_OP_TOUCH && batch.op[0].u.touch.id == 42;
    weir__buf_fini(&text);
    weir__arena_free(&arena);
    return ok;
}

static int the_field_is_kept(weir_queue *q, uint64_t id)
{
    weir_job  *job;
    weir_error err;
    if (weir_get(q, id, &job, &err))
        return 0;
    weir_buf json = { 0 };
    weir__job_json(&json, job);
    weir__buf_char(&json, '\0');
    int ok = job->toy == 7 && strstr(json.data, "\"toy\":7");
    weir__buf_fini(&json);
    weir_job_free(job);
    return ok;
}

/* A text that a transition gives the job is kept, through an end, an update and another take. */
static int the_text_is_kept(weir_queue *q)
{
    static const char *const types[] = { "mail", NULL };
    weir_taking how = { .types = types, .n = 1, .lease_ms = 30000, .remote = true };
    weir_job   *job;
    size_t      n;
    weir_ended  ended;
    weir_error  err;
    if (weir_take(q, &how, &job, &n, &err) || n != 1)
        return 0;
    weir_ending end = { .id = job->id, .delivery = job->delivery, .outcome = WEIR_OUTCOME_FAIL,
                        .text = "no", .len = 2 };
    uint64_t    id = job->id;
    weir_job_free(job);
    if (weir_finish(q, &end, 1, &ended, &err) || ended.err.code ||
        weir_update(q, id, &(weir_change){ .state = WEIR_STATE_INACTIVE }, NULL, &err) ||
        weir_take(q, &how, &job, &n, &err) || n != 1)
        return 0;
    int ok = job->toy_note && !strcmp(job->toy_note, "noted");
    weir_job_free(job);
    if (weir_get(q, id, &job, &err))
        return 0;
    ok = ok && job->toy_note && !strcmp(job->toy_note, "noted");
    weir_job_free(job);
    return ok;
}

int main(int argc, char **argv)
{
    weir_error  err;
    weir_queue *q;
    for (int i = 1; i < argc; i++) {
        weir_added added;
        if (weir_open(&q, argv[i], NULL, &err) ||
            weir_add(q, &(weir_spec){ .type = "mail", .toy = 7 }, &added, &err))
            return weir_complain(&err);
        printf("%s: job %s, no job %s, json %s, field %s", argv[i],
               weir_code_name(weir_touch(q, added.id, NULL)),
               weir_code_name(weir_touch(q, 1000, NULL)),
               json_keeps_it() ? "kept" : "lost", the_field_is_kept(q, added.id) ? "kept" : "lost");
        printf(", text %s\n", the_text_is_kept(q) ? "kept" : "lost");
        weir_close(q);
    }
    return 0;
}
