/* test_runtime_threads.c - a queue starts a thread when it needs the thread, not before: a program
 * that opens a queue, adds a job and closes the queue starts none. */
#include "support/runtime_fixture.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

/* How many threads of this process have a name that begins so. A sanitizer has threads, too, but
 * not with names of ours. */
static size_t threads(const char *name)
{
    size_t         n = 0;
    DIR           *dir = opendir("/proc/self/task");
    struct dirent *d;
    assert_non_null(dir);
    while ((d = readdir(dir))) {
        char path[300], comm[32] = "";
        snprintf(path, sizeof path, "/proc/self/task/%s/comm", d->d_name);
        FILE *f = *d->d_name == '.' ? NULL : fopen(path, "r");
        if (!f)
            continue;
        if (fgets(comm, sizeof comm, f))
            comm[strcspn(comm, "\n")] = 0;
        fclose(f);
        n += strncmp(comm, name, strlen(name)) == 0;
    }
    closedir(dir);
    return n;
}

static void add_and_get(weir_queue *q)
{
    weir_added added;
    weir_job  *job;
    assert_int_equal(weir_add(q, &(weir_spec){ .type = "mail" }, &added, NULL), WEIR_OK);
    assert_int_equal(weir_get(q, added.id, &job, NULL), WEIR_OK);
    weir_job_free(job);
}

static void ignore_event(const weir_event *ev, void *ctx)
{
    (void)ev, (void)ctx;
}

static void ignore_end(weir_code rc, const weir_error *err, void *ctx)
{
    (void)rc, (void)err, (void)ctx;
}

static weir_code done_at_once(weir_job *job, void *ctx)
{
    (void)job, (void)ctx;
    return WEIR_OK;
}

/* Each of these on a queue of its own: which thread does it start? */
static void start_nothing(weir_queue *q)
{
    add_and_get(q);
}

static void start_listener(weir_queue *q)
{
    weir_listener *l;
    assert_int_equal(weir_listen(q, NULL, ignore_event, NULL, &l, NULL), WEIR_OK);
    weir_unlisten(l);
}

static void start_async(weir_queue *q)
{
    weir_future *f;
    assert_int_equal(weir_add_async(q, &(weir_spec){ .type = "mail" }, NULL, &f, NULL), WEIR_OK);
    assert_int_equal(weir_future_wait(f, PATIENCE_MS, NULL), WEIR_OK);
    weir_future_free(f);
}

static void start_then(weir_queue *q)
{
    weir_future *f;
    assert_int_equal(weir_add_async(q, &(weir_spec){ .type = "mail" }, NULL, &f, NULL), WEIR_OK);
    weir_future_then(f, ignore_end, NULL);
    assert_int_equal(weir_future_wait(f, PATIENCE_MS, NULL), WEIR_OK);
    UNTIL(threads("weir-callback") == 1);
    weir_future_free(f);
}

static void start_delayed(weir_queue *q)
{
    weir_spec spec = { .type = "mail", .delay_ms = 3600000 };
    assert_int_equal(weir_add(q, &spec, NULL, NULL), WEIR_OK);
}

static void start_pool(weir_queue *q)
{
    weir_pool_config pool = { .handler = done_at_once, .threads = 2 };
    assert_int_equal(weir_process(q, "idle", &pool, NULL, NULL), WEIR_OK);
}

static const struct {
    void       (*start)(weir_queue *q);
    size_t       callback, batch, timer;
} cases[] = {
    { start_nothing, 0, 0, 0 },
    { start_listener, 1, 0, 0 },
    { start_async, 0, 1, 0 },
    { start_then, 1, 1, 0 },
    { start_delayed, 0, 0, 1 },
    { start_pool, 0, 1, 0 },
};

/* The owner of a file serves other processes, on a thread of its own from the start. */
static void check_case(size_t i, const char *url)
{
    size_t      served = strncmp(url, "sqlite:", 7) == 0;
    weir_queue *q;
    assert_int_equal(weir_open(&q, url, NULL, NULL), WEIR_OK);
    add_and_get(q);
    UNTIL(threads("weir-share") == served);
    assert_int_equal(threads("weir-"), served);
    cases[i].start(q);
    assert_int_equal(threads("weir-callback"), cases[i].callback);
    assert_int_equal(threads("weir-batch"), cases[i].batch);
    assert_int_equal(threads("weir-timer"), cases[i].timer);
    weir_close(q);
    UNTIL(!threads("weir-"));           /* a thread may be seen for a moment after its end */
}

static void a_queue_in_memory_starts_threads_when_it_needs_them(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_case(i, "mem:");
}

static void a_queue_in_a_file_starts_threads_when_it_needs_them(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char dir[TEMPDIR_MAX], url[TEMPDIR_MAX + 64];
        assert_true(tempdir_make(dir));
        snprintf(url, sizeof url, "sqlite:%s/jobs.db?durability=os", dir);
        check_case(i, url);
        tempdir_remove(dir);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_queue_in_memory_starts_threads_when_it_needs_them),
        cmocka_unit_test(a_queue_in_a_file_starts_threads_when_it_needs_them),
    };
    return cmocka_run_group_tests_name("runtime_threads", tests, NULL, NULL);
}
