/* store_fixture.c - stores for tests: opening, the clock, the record of events. The operations are
 * in store_ops.c. */
#include "support/store_fixture.h"

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/queue.h"
#include "server/server.h"
#include "support/redis_rig.h"

size_t store_urls(int argc, char **argv, char ***out)
{
    static const char *const usual[] = { TEST_STORES };
    const char              *listed = getenv("WEIR_TEST_STORES");
    size_t                   n = 0;
    if (argc > 1) {
        *out = calloc((size_t)argc, sizeof **out);
        for (int i = 1; i < argc; i++)
            (*out)[n++] = argv[i];
        return n;
    }
    if (listed && *listed) {
        /* One block: the pointers, then the text they point into. */
        size_t room = strlen(listed) + 1;
        *out = calloc(1, room * sizeof **out + room);
        char *text = memcpy(*out + room, listed, room);
        for (char *url = strtok(text, ","); url; url = strtok(NULL, ","))
            (*out)[n++] = url;
        return n;
    }
    *out = calloc(sizeof usual / sizeof *usual, sizeof **out);
    for (; n < sizeof usual / sizeof *usual; n++)
        (*out)[n] = (char *)usual[n];
    return n;
}

/* ---- what the store is given ---- */

static int64_t fixture_now(void *ctx)
{
    return ((fixture *)ctx)->now;
}

static int64_t fixture_steady(void *ctx)
{
    return ((fixture *)ctx)->now - ((fixture *)ctx)->stepped;
}

/* Each event is a line in f->events, its fields separated by tabs. */
static void fixture_emit(void *ctx, const weir_event *e, size_t n)
{
    fixture *f = ctx;
    for (; n > 0; n--, e++) {
        weir__buf_printf(&f->events, "%s %" PRIu64 "\t %s %s %d %d %u", weir_event_name(e->kind),
                         e->id, e->type ? e->type : "-", weir_state_name(e->state), e->attempts,
                         e->progress, e->delivery);
        if (e->text) {
            weir__buf_char(&f->events, ' ');
            weir__buf_add(&f->events, e->text, e->text_len);
        }
        weir__buf_char(&f->events, '\n');
        f->n_events++;
    }
}

static void fixture_due(void *ctx, int64_t at)
{
    fixture *f = ctx;
    f->n_due++;
    if (at < f->due)
        f->due = at;
}

/* Over a line that is cut, they come when they come, on another thread. */
static void ignore_events(void *ctx, const weir_event *e, size_t n)
{
    (void)ctx;
    (void)e;
    (void)n;
}

static void ignore_due(void *ctx, int64_t at)
{
    (void)ctx;
    (void)at;
}

/* ---- open and close ---- */

/* Opening has one try: over a line that is cut it needs several. */
static weir_code open_store(fixture *f)
{
    int tries = f->env.emit == ignore_events ? 100 : 1;
    f->due = INT64_MAX;
    weir_code rc = WEIR_EUNAVAIL;
    for (; rc == WEIR_EUNAVAIL && tries > 0; tries--)
        rc = weir__store_open(&f->store, f->url, &f->env, &f->err);
    if (rc)
        fprintf(stderr, "# %s: %s\n", f->url, f->err.msg);
    return rc;
}

/* Open f->url for others. The timer of the queue is stopped: the clock stands still until the test
 * turns it, and then the test says TICK. */
static bool open_served(fixture *f, weir_queue **out)
{
    weir_options opt = { .name = "test", .now = fixture_now, .steady = fixture_steady,
                         .now_ctx = f };
    weir_error   err;
    if (weir_open(out, f->url, &opt, &err)) {
        fprintf(stderr, "# %s: %s\n", f->url, err.msg);
        return false;
    }
    weir__timer_close(&(*out)->timer);
    return true;
}

/* The life of the process that owns f->url: until nobody has the other end of the pipe. It shares
 * the fixture, with its clock, but none of the descriptors of the test. */
static _Noreturn void be_owner(fixture *f, int pipe_end, int ready)
{
    weir_queue *q;
    char        byte;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(pipe_end, STDIN_FILENO);
    dup2(ready, STDOUT_FILENO);
    close_range(3, ~0u, 0);
    if (!open_served(f, &q) || write(STDOUT_FILENO, "x", 1) != 1)
        _exit(1);
    while (read(STDIN_FILENO, &byte, 1) > 0)
        continue;
    weir_close(q);
    _exit(0);
}

/* Have f->url owned by another process. */
static bool own(fixture *f)
{
    int  down[2], up[2];
    char byte;
    if (pipe2(down, O_CLOEXEC) || pipe2(up, O_CLOEXEC))
        return false;
    fflush(NULL);
    pid_t pid = fork();
    if (!pid)
        be_owner(f, down[0], up[1]);
    f->owner = pid;             /* not by the child, which shares it */
    close(down[0]);
    close(up[1]);
    bool ok = f->owner > 0 && read(up[0], &byte, 1) == 1;
    close(up[0]);
    f->owner_pipe = down[1];
    return ok;
}

static void end_owner(fixture *f)
{
    int status = 0;
    if (f->owner <= 0)
        return;
    close(f->owner_pipe);
    if (waitpid(f->owner, &status, 0) != f->owner || status)
        fprintf(stderr, "# the owner of %s ended with status %#x\n", f->url, (unsigned)status);
    assert_int_equal(status, 0);
}

/* Serve f->url: it becomes the server's address. */
static bool serve(fixture *f)
{
    srv_options  how = { .listen = "127.0.0.1:0", .threads = 1 };
    weir_error   err;
    if (!open_served(f, &f->served))
        return false;
    if (srv_start(&f->server, f->served, &how, &err)) {
        fprintf(stderr, "# serving %s: %s\n", f->url, err.msg);
        return false;
    }
    snprintf(f->url, sizeof f->url, "%s", srv_address(f->server));
    return true;
}

fixture *fixture_open(const char *url)
{
    enum { PREFIX = sizeof "served:" - 1 };
    fixture *f = mmap(NULL, sizeof *f, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (f == MAP_FAILED)
        return NULL;
    bool is_served = !strncmp(url, "served:", PREFIX), is_shared = !strncmp(url, "shared:", PREFIX);
    url += is_served || is_shared ? PREFIX : 0;
    const char *at = strstr(url, ":@/") ? strchr(url, '@') : NULL;
    if ((at && !tempdir_make(f->dir)) ||
        (rig_is_shared(url) && !rig_shared_url(url, f->url, sizeof f->url))) {
        munmap(f, sizeof *f);
        return NULL;
    }
    if (at)
        snprintf(f->url, sizeof f->url, "%.*s%s%s", (int)(at - url), url, f->dir, at + 1);
    else if (!f->url[0])
        snprintf(f->url, sizeof f->url, "%s", url);
    f->now = FIXTURE_START;
    f->partitions = has_partitions(f->url);
    f->env = (weir_env){
        .name = "test",
        .test_clock = true,
        .now = fixture_now,
        .emit = fixture_emit,
        .due = fixture_due,
        .ctx = f,
    };
    if (rig_is_cut(url)) {
        f->env.emit = ignore_events;
        f->env.due = ignore_due;
    }
    if ((is_served && !serve(f)) || (is_shared && !own(f)) || open_store(f)) {
        fixture_close(f);
        return NULL;
    }
    return f;
}

fixture *fixture_open_sqlite(void)
{
    fixture *f = fixture_open("sqlite:@/jobs.db?durability=os");
    assert_non_null(f);
    return f;
}

void fixture_shut(fixture *f)
{
    f->store->ops->close(f->store);
    f->store = NULL;
}

weir_code fixture_open_again(fixture *f)
{
    return weir__store_open(&f->store, f->url, &f->env, &f->err);
}

void release_held(fixture *f)
{
    while (f->n_held > 0) {
        f->n_held--;
        f->held[f->n_held].release(f->held[f->n_held].thing);
    }
}

void fixture_close(fixture *f)
{
    if (!f)
        return;
    release_held(f);
    free(f->held);
    free(f->ids);
    if (f->store)
        f->store->ops->close(f->store);
    if (f->server)
        srv_stop(f->server);
    srv_destroy(f->server);
    weir_close(f->served);
    end_owner(f);
    weir__buf_fini(&f->events);
    tempdir_remove(f->dir);
    munmap(f, sizeof *f);
}

bool persistent(const fixture *f)
{
    return strncmp(f->url, "mem:", 4) != 0;
}

bool looks_around(const fixture *f)
{
    return strncmp(f->url, "redis+kue", 9) == 0;
}

/* Through the queue of somebody else? */
static bool through_queue(const fixture *f)
{
    return f->served || f->owner > 0;
}

bool asks_for_ticks(const fixture *f)
{
    return !through_queue(f);
}

bool keeps_bytes(const fixture *f)
{
    return !through_queue(f);
}

bool owned(const fixture *f)
{
    return !through_queue(f) && strncmp(f->url, "sqlite:", 7) == 0;
}

weir_code reopen(fixture *f)
{
    f->store->ops->close(f->store);
    f->store = NULL;
    return open_store(f);
}

/* ---- the record of events ---- */

static void free_thing(void *thing)
{
    free(thing);
}

static const char *hold_text(fixture *f, weir_buf *b)
{
    if (!b->data)
        weir__buf_str(b, "");
    char *text = weir__buf_steal(b, NULL);
    if (!text)
        text = calloc(1, 1);
    if (f->n_held == f->cap_held) {
        f->cap_held = f->cap_held ? f->cap_held * 2 : 64;
        f->held = realloc(f->held, f->cap_held * sizeof *f->held);
    }
    f->held[f->n_held].thing = text;
    f->held[f->n_held++].release = free_thing;
    return text;
}

static const char *event_text(fixture *f, bool in_full)
{
    weir_buf    out = { 0 };
    const char *line = f->events.len ? f->events.data : "";
    while (*line) {
        const char *end = strchr(line, '\n'), *tab = strchr(line, '\t');
        if (out.len)
            weir__buf_str(&out, ", ");
        const char *space = strchr(line, ' ');
        weir__buf_printf(&out, "%.*s %" PRIu64, (int)(space - line), line,
                         id_from_store(f, strtoull(space, NULL, 10)));
        if (in_full)
            weir__buf_add(&out, tab + 1, (size_t)(end - tab - 1));
        line = end + 1;
    }
    weir__buf_clear(&f->events);
    f->n_events = 0;
    return hold_text(f, &out);
}

const char *events(fixture *f)
{
    return event_text(f, false);
}

const char *events_in_full(fixture *f)
{
    return event_text(f, true);
}

const char *ids_of(fixture *f, const weir_page *page)
{
    weir_buf out = { 0 };
    for (size_t i = 0; page && i < page->n; i++)
        weir__buf_printf(&out, "%s%" PRIu64, i ? " " : "", page->job[i]->id);
    return hold_text(f, &out);
}

const char *listed(fixture *f, const weir_query *query)
{
    return ids_of(f, list(f, query));
}

/* ---- is all well? ---- */

static uint64_t length_of(fixture *f, weir_state state, const char *type)
{
    weir_query q = { .state = state, .type = type, .limit = WEIR_MAX_PAGE, .ids_only = true };
    uint64_t   n = 0;
    for (;;) {
        const weir_page *page = list(f, &q);
        assert_non_null(page);
        n += page->n;
        if (!page->more)
            return n;
        q.after = page->next;
    }
}

void check_all_is_well(fixture *f)
{
    const weir_report *r = check(f, false);
    assert_non_null(r);
    for (size_t i = 0; i < r->n; i++)
        fprintf(stderr, "# check: %s\n", r->line[i]);
    assert_int_equal(r->n, 0);
    const weir_stats *s = stats(f);
    assert_non_null(s);
    uint64_t sum = 0;
    for (size_t i = 0; i < s->n; i++) {
        for (int st = 0; st < WEIR_STATE_COUNT; st++)
            assert_int_equal(s->type[i].count[st],
                             length_of(f, (weir_state)st, s->type[i].type));
        sum += s->type[i].count[WEIR_STATE_ANY];
    }
    assert_int_equal(sum, s->all.count[WEIR_STATE_ANY]);
    assert_int_equal(sum, r->jobs);
    for (int st = 0; st < WEIR_STATE_COUNT; st++)
        assert_int_equal(s->all.count[st], length_of(f, (weir_state)st, NULL));
}
