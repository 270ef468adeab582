/* test_base.c - errors, buffers, cutting text, arrays, the map, names, lists, rings, deadlines. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/list.h"
#include "base/heap.h"
#include "base/inbox.h"
#include "base/fail.h"
#include "base/grow.h"
#include "base/map.h"
#include "base/named.h"
#include "base/rate.h"
#include "base/ring.h"
#include "base/sorted.h"
#include "weir/error.h"

/* ---- errors ---- */

static void fail_writes_code_and_message(void **state)
{
    (void)state;
    weir_error err;
    assert_int_equal(weir_fail(&err, WEIR_ENOENT, "job %d", 7), WEIR_ENOENT);
    assert_int_equal(err.code, WEIR_ENOENT);
    assert_string_equal(err.msg, "job 7");
    assert_int_equal(weir_fail(NULL, WEIR_EIO, "nobody asks"), WEIR_EIO);
    weir_fail(&err, WEIR_EIO, "%s", "");
    assert_string_equal(err.msg, "input or output error");
}

static void fail_keeps_the_message_one_line(void **state)
{
    (void)state;
    weir_error err;
    weir_fail(&err, WEIR_EINVAL, "a\nb\x1b[0m\x7f\t%s", "\xc3\xa9");
    assert_string_equal(err.msg, "a?b?[0m??\xc3\xa9");
}

static void fail_may_quote_its_own_message(void **state)
{
    (void)state;
    weir_error err;
    weir_fail(&err, WEIR_EINVAL, "type: empty");
    weir_fail(&err, err.code, "jobs[3].%s", err.msg);
    assert_string_equal(err.msg, "jobs[3].type: empty");
}

static void an_error_names_its_field(void **state)
{
    (void)state;
    weir_error err;
    char       longer[2 * WEIR_FIELD_MAX];
    assert_int_equal(weir__fail_field(&err, WEIR_ELIMIT, "n", "%d, at most %d", 7, 5), WEIR_ELIMIT);
    assert_string_equal(err.msg, "n: 7, at most 5");
    assert_string_equal(err.field, "n");
    weir__fail_inside(&err, err.code, "[%d]", 3);
    weir__fail_inside(&err, err.code, "jobs");
    assert_string_equal(err.msg, "jobs[3].n: 7, at most 5");
    assert_string_equal(err.field, "jobs[3].n");
    weir_fail(&err, WEIR_ELIMIT, "too many");
    assert_string_equal(err.field, "");
    assert_int_equal(weir__fail_inside(&err, err.code, "jobs[%d]", 3), WEIR_ELIMIT);
    assert_string_equal(err.msg, "jobs[3]: too many");
    assert_string_equal(err.field, "jobs[3]");
    memset(longer, 'x', sizeof longer);
    longer[sizeof longer - 1] = '\0';
    weir__fail_field(&err, WEIR_EINVAL, longer, "missing");
    assert_int_equal(strlen(err.field), WEIR_FIELD_MAX - 1);
    weir__fail_inside(&err, WEIR_EINVAL, "values");
    assert_memory_equal(err.field, "values.xxx", 10);
    assert_int_equal(strlen(err.field), WEIR_FIELD_MAX - 1);
    assert_int_equal(weir__fail_field(NULL, WEIR_EINVAL, "n", "missing"), WEIR_EINVAL);
    assert_int_equal(weir__fail_inside(NULL, WEIR_EINVAL, "jobs"), WEIR_EINVAL);
}

static void fail_cuts_between_characters(void **state)
{
    (void)state;
    char text[600];
    for (size_t lead = 0; lead < 3; lead++) {
        size_t n = lead;
        memset(text, 'x', lead);
        while (n + 2 < sizeof text) {
            text[n++] = '\xc3';
            text[n++] = '\xa9';
        }
        text[n] = '\0';
        weir_error err;
        weir_fail(&err, WEIR_EINVAL, "%s", text);
        size_t len = strlen(err.msg);
        assert_in_range(len, WEIR_ERROR_MAX - 2, WEIR_ERROR_MAX - 1);
        assert_int_equal((len - lead) % 2, 0);
    }
}

static void every_code_has_its_meaning(void **state)
{
    (void)state;
    for (int c = 0; c < WEIR_CODE_COUNT; c++) {
        assert_true(strlen(weir_code_name((weir_code)c)) > 0);
        assert_true(strlen(weir_code_text((weir_code)c)) > 0);
        assert_in_range(weir_code_http((weir_code)c), 200, 599);
        assert_in_range(weir_code_exit((weir_code)c), 0, 125);
    }
    assert_string_equal(weir_code_name(WEIR_ESTALE), "ESTALE");
    assert_int_equal(weir_code_http(WEIR_ENOENT), 404);
    assert_int_equal(weir_code_exit(WEIR_EINVAL), 2);
    assert_true(weir_code_may_retry(WEIR_EUNAVAIL));
    assert_false(weir_code_may_retry(WEIR_EINVAL));
    assert_string_equal(weir_code_name((weir_code)999), "UNKNOWN");
    assert_string_equal(weir_code_name((weir_code)-1), "UNKNOWN");
}

/* ---- buffers ---- */

static void buf_grows_and_ends_with_nul(void **state)
{
    (void)state;
    weir_buf b = { 0 };
    for (int i = 0; i < 1000; i++) {
        weir__buf_char(&b, (char)('a' + i % 26));
        assert_int_equal(b.data[b.len], '\0');
    }
    assert_int_equal(b.len, 1000);
    weir__buf_clear(&b);
    assert_int_equal(b.len, 0);
    weir__buf_printf(&b, "%s=%d;", "n", 12);
    weir__buf_int(&b, INT64_MIN);
    weir__buf_char(&b, ' ');
    weir__buf_int(&b, 0);
    weir__buf_char(&b, ' ');
    weir__buf_int(&b, INT64_MAX);
    weir__buf_add(&b, NULL, 0);
    assert_string_equal(b.data, "n=12;-9223372036854775808 0 9223372036854775807");
    weir__buf_fini(&b);
    assert_null(b.data);
}

static void buf_gives_its_bytes_away(void **state)
{
    (void)state;
    weir_buf b = { 0 };
    size_t   len = 99;
    char    *s = weir__buf_steal(&b, &len);
    assert_string_equal(s, "");
    assert_int_equal(len, 0);
    free(s);
    weir__buf_str(&b, "abc");
    s = weir__buf_steal(&b, &len);
    assert_string_equal(s, "abc");
    assert_int_equal(len, 3);
    assert_null(b.data);
    free(s);
}

static void buf_remembers_that_it_failed(void **state)
{
    (void)state;
    weir_buf b = { 0 };
    weir__buf_str(&b, "abc");
    assert_false(weir__buf_reserve(&b, SIZE_MAX - 1));
    weir__buf_str(&b, "def");
    assert_true(b.failed);
    assert_int_equal(b.len, 3);
    size_t len = 99;
    assert_null(weir__buf_steal(&b, &len));
    assert_int_equal(len, 0);
    assert_false(b.failed);
}

static void cut_never_splits_a_character(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t      max, keep;
    } cases[] = {
        { "abc", 5, 3 },          { "abc", 3, 3 },           { "abc", 2, 2 },
        { "abc", 0, 0 },          { "a\xc3\xa9", 2, 1 },     { "a\xc3\xa9z", 3, 3 },
        { "\xe2\x82\xac", 1, 0 }, { "\xe2\x82\xac", 2, 0 },  { "x\xf0\x9f\x98\x80", 4, 1 },
        { "\x80\x80\x80\x80\x80\x80", 5, 5 },                /* not UTF-8: as it is */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(weir__utf8_cut(cases[i].text, strlen(cases[i].text), cases[i].max),
                         cases[i].keep);
}

/* ---- arrays ---- */

static void an_array_grows_and_keeps_its_elements(void **state)
{
    (void)state;
    int   *array = NULL;
    size_t cap = 0, moves = 0;
    for (int i = 0; i < 1000; i++) {
        size_t before = cap;
        assert_true(weir__grow(&array, &cap, (size_t)i + 1, sizeof *array));
        assert_true(cap > (size_t)i);
        moves += cap != before;
        array[i] = i;
    }
    for (int i = 0; i < 1000; i++)
        assert_int_equal(array[i], i);
    assert_in_range(moves, 1, 10);
    assert_true(weir__grow(&array, &cap, 5000, sizeof *array));
    assert_true(cap >= 5000);
    int *same = array;
    assert_false(weir__grow(&array, &cap, SIZE_MAX / 2, sizeof *array));
    assert_ptr_equal(array, same);
    assert_int_equal(array[999], 999);
    free(array);
}

static int compare_int(const void *key, const void *element)
{
    return *(const int *)key - *(const int *)element;
}

static void a_sorted_array_has_a_place_for_each_key(void **state)
{
    (void)state;
    const int array[] = { 10, 20, 20, 30 };
    const struct {
        int    key;
        size_t place;
    } want[] = { { 9, 0 }, { 10, 0 }, { 11, 1 }, { 20, 1 }, { 21, 3 }, { 30, 3 }, { 31, 4 } };
    for (size_t i = 0; i < sizeof want / sizeof *want; i++)
        assert_int_equal(weir__sorted_place(&want[i].key, array, 4, sizeof *array, compare_int),
                         want[i].place);
    assert_int_equal(weir__sorted_place(&want[0].key, NULL, 0, sizeof *array, compare_int), 0);
}

/* ---- the map ---- */

static void map_starts_empty(void **state)
{
    (void)state;
    weir_map m = { 0 };
    size_t   pos = 0;
    assert_null(weir__map_get(&m, 1));
    assert_null(weir__map_remove(&m, 1));
    assert_false(weir__map_next(&m, &pos, NULL, NULL));
    weir__map_fini(&m);
}

static uint64_t next_random(uint64_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return *seed;
}

/* Against the simplest model there is: an array. */
static void map_agrees_with_an_array(void **state)
{
    (void)state;
    enum { KEYS = 700, STEPS = 200000 };
    static char here[KEYS], other[KEYS];
    void       *model[KEYS] = { 0 };
    weir_map    m = { 0 };
    uint64_t    seed = 88172645463325252;
    size_t      n = 0;
    for (int step = 0; step < STEPS; step++) {
        uint64_t r = next_random(&seed);
        /* Waves: mostly puts, then mostly removals. */
        bool     put = r % 8 < (step / 5000 % 2 ? 2u : 6u);
        size_t   k = (r >> 8) % KEYS;
        uint64_t key = k % 2 ? k + 1 : (k + 1) << 40;
        assert_ptr_equal(weir__map_get(&m, key), model[k]);
        if (put) {
            void *value = r >> 40 & 1 ? &here[k] : &other[k];
            n += !model[k];
            model[k] = value;
            assert_true(weir__map_put(&m, key, value));
        } else {
            n -= !!model[k];
            assert_ptr_equal(weir__map_remove(&m, key), model[k]);
            model[k] = NULL;
        }
        assert_int_equal(m.n, n);
        assert_true(m.used >= m.n && m.used < m.cap);
    }
    assert_true(m.cap <= 4 * KEYS);
    weir__map_fini(&m);
}

static void map_walk_may_remove_what_it_sees(void **state)
{
    (void)state;
    enum { N = 5000 };
    static char seen[N + 1];
    weir_map    m = { 0 };
    memset(seen, 0, sizeof seen);
    for (uint64_t k = 1; k <= N; k++)
        assert_true(weir__map_put(&m, k, &seen[k]));
    size_t   pos = 0, n = 0;
    uint64_t key;
    void    *value;
    while (weir__map_next(&m, &pos, &key, &value)) {
        assert_ptr_equal(value, &seen[key]);
        assert_int_equal(seen[key], 0);
        seen[key] = 1;
        n++;
        if (key % 3)
            assert_ptr_equal(weir__map_remove(&m, key), value);
    }
    assert_int_equal(n, N);
    assert_int_equal(m.n, N / 3);
    for (uint64_t k = 1; k <= N; k++)
        assert_true(!weir__map_get(&m, k) == (k % 3 != 0));
    weir__map_fini(&m);
}

/* ---- names ---- */

typedef struct thing {
    weir_named named;
    int        n;
    char       name[];
} thing;

static void a_new_thing_has_its_name_and_is_found_by_it(void **state)
{
    (void)state;
    weir_names names = { 0 };
    thing     *apart = WEIR__NAMED_NEW(thing, "mail"), *in = WEIR__NAMES_ADD(&names, thing, "mail");
    assert_non_null(apart);
    assert_string_equal(apart->name, "mail");
    assert_int_equal(apart->n, 0);
    assert_non_null(in);
    assert_string_equal(in->name, "mail");
    assert_ptr_equal(weir__names_get(&names, "mail"), in);
    assert_null(weir__names_get(&names, "post"));
    weir__names_fini(&names);
    free(apart);
    free(in);
}

/* ---- lists ---- */

typedef struct item {
    int       n;
    weir_link link;
} item;

/* "123", and the same backwards. */
static void assert_list(weir_dlist *l, const char *want)
{
    size_t at = 0, len = strlen(want);
    WEIR_EACH(item, it, l, link)
        assert_int_equal(it->n, want[at++] - '0');
    assert_int_equal(at, len);
    for (weir_link *k = l->last; k; k = k->prev)
        assert_int_equal(WEIR_OF(k, item, link)->n, want[--at] - '0');
    assert_int_equal(at, 0);
}

static void list_keeps_its_order_both_ways(void **state)
{
    (void)state;
    weir_dlist l = { 0 };
    item       it[5] = { { .n = 1 }, { .n = 2 }, { .n = 3 }, { .n = 4 }, { .n = 5 } };
    assert_list(&l, "");
    weir__list_append(&l, &it[1].link);
    weir__list_insert(&l, NULL, &it[0].link);
    weir__list_append(&l, &it[4].link);
    weir__list_insert(&l, &it[1].link, &it[2].link);
    weir__list_insert(&l, &it[2].link, &it[3].link);
    assert_list(&l, "12345");
    WEIR_EACH(item, at, &l, link)
        if (at->n % 2)
            weir__list_remove(&l, &at->link);
    assert_list(&l, "24");
    weir__list_remove(&l, &it[3].link);
    weir__list_remove(&l, &it[1].link);
    assert_list(&l, "");
    assert_null(l.first);
}

/* ---- rings ---- */

static void push_entry(weir_ring *r, size_t size)
{
    weir_ring_entry *e = calloc(1, sizeof *e);
    assert_non_null(e);
    e->refs = 1;
    e->size = size;
    weir__ring_push(r, e);
}

/* The numbers after `number`, as "3 4 5", or "gone". */
static const char *numbers_after(const weir_ring *r, uint64_t number, size_t max, size_t bytes)
{
    static char      text[200];
    weir_ring_entry *some[8];
    bool             gone;
    size_t           n = weir__ring_read(r, number, some, max, bytes, &gone), len = 0;
    text[0] = '\0';
    for (size_t i = 0; i < n; i++) {
        len += (size_t)snprintf(text + len, sizeof text - len, "%s%d", i ? " " : "",
                                (int)some[i]->number);
        weir__ring_unref(some[i]);
    }
    return gone ? "gone" : text;
}

static void ring_gives_what_comes_after_a_number(void **state)
{
    (void)state;
    weir_ring r = { 0 };
    assert_true(weir__ring_begin(&r, 4, 100));
    assert_string_equal(numbers_after(&r, 0, 8, 100), "");
    for (int i = 0; i < 3; i++)
        push_entry(&r, 10);
    assert_string_equal(numbers_after(&r, 0, 8, 100), "1 2 3");
    assert_string_equal(numbers_after(&r, 1, 1, 100), "2");
    assert_string_equal(numbers_after(&r, 0, 8, 20), "1 2");
    assert_string_equal(numbers_after(&r, 0, 8, 1), "1");
    assert_string_equal(numbers_after(&r, 3, 8, 100), "");
    for (int i = 0; i < 2; i++)
        push_entry(&r, 10);
    assert_string_equal(numbers_after(&r, 0, 8, 100), "gone");
    assert_string_equal(numbers_after(&r, 1, 8, 100), "2 3 4 5");
    push_entry(&r, 1000);                       /* more than all bytes: it alone is kept */
    assert_string_equal(numbers_after(&r, 4, 8, 100), "gone");
    assert_string_equal(numbers_after(&r, 5, 8, 100), "6");
    weir__ring_end(&r);
}

static void ring_says_what_was_missed(void **state)
{
    (void)state;
    weir_ring r = { 0 };
    assert_true(weir__ring_begin(&r, 4, 100));
    push_entry(&r, 10);
    weir__ring_gap(&r);
    assert_string_equal(numbers_after(&r, 1, 8, 100), "gone");
    push_entry(&r, 10);
    assert_string_equal(numbers_after(&r, 2, 8, 100), "3");
    weir__ring_end(&r);
    assert_true(weir__ring_begin(&r, 4, 100));
    assert_string_equal(numbers_after(&r, 3, 8, 100), "gone");
    weir_ring_entry *kept;
    bool             gone;
    push_entry(&r, 10);
    assert_int_equal(weir__ring_read(&r, 4, &kept, 1, 100, &gone), 1);
    weir__ring_end(&r);
    assert_int_equal(kept->number, 5);          /* a reader's own reference */
    weir__ring_unref(kept);
}

/* ---- clocks ---- */

static void a_deadline_comes_once_and_never_when_negative(void **state)
{
    (void)state;
    assert_int_equal(weir__deadline_left_ms(weir__deadline_in(0)), 0);
    assert_int_equal(weir__deadline_left_ms(weir__deadline_in(-1)), -1);
    assert_int_equal(weir__deadline_left_ms(weir__deadline_in(INT64_MAX)), -1);
    weir_deadline d = weir__deadline_in(60000);
    assert_in_range(weir__deadline_left_ms(d), 1, 60000);
}

static void a_wait_ends_at_its_deadline(void **state)
{
    (void)state;
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t  cond;
    weir__cond_init(&cond);
    pthread_mutex_lock(&lock);
    int64_t       begun = weir__monotonic_ns();
    weir_deadline d = weir__deadline_in(2);
    while (weir__cond_wait_until(&cond, &lock, d))
        ;
    assert_true(weir__monotonic_ns() - begun >= 2000000);
    assert_int_equal(weir__deadline_left_ms(d), 0);
    pthread_mutex_unlock(&lock);
    pthread_cond_destroy(&cond);
}

/* In the order of their times, whatever was removed in between. */
static void a_rate_is_the_mean_of_the_last_seconds(void **state)
{
    (void)state;
    enum { SPAN = WEIR_RATE_SPAN_MS };
    const int64_t begin = 1000 * SPAN;
    weir_rate     r = { 0 };
    assert_true(weir__rate_get(&r, begin) == 0);
    for (int i = 0; i < 2 * SPAN; i += 10)                  /* 100 a second */
        weir__rate_add(&r, begin + i, 1);
    assert_true(weir__rate_get(&r, begin + 2 * SPAN) == 100);
    assert_true(weir__rate_get(&r, begin + 2 * SPAN + SPAN / 2) == 50);    /* none any more */
    assert_true(weir__rate_get(&r, begin + 3 * SPAN) == 0);
    weir__rate_add(&r, begin + 3 * SPAN, 10);
    assert_true(weir__rate_get(&r, begin + 3 * SPAN) == 2);
    assert_true(weir__rate_get(&r, begin + 100 * SPAN) == 0);
}

static void heap_gives_what_is_due_first(void **state)
{
    (void)state;
    enum { N = 200 };
    weir_heap      h = { 0 };
    weir_heap_node node[N] = { 0 };
    unsigned       random = 1;
    for (int i = 0; i < N; i++) {
        random = random * 1103515245 + 12345;
        node[i].due = random >> 16 & 63;
        assert_true(weir__heap_put(&h, &node[i]));
    }
    for (int i = 0; i < N; i += 3)
        weir__heap_remove(&h, &node[i]);
    weir__heap_remove(&h, &node[0]);                /* it is in no heap: nothing happens */
    int64_t         last = 0;
    size_t          n = 0;
    weir_heap_node *first;
    for (; (first = weir__heap_first(&h)); n++) {
        assert_true(first->due >= last);
        assert_int_not_equal((first - node) % 3, 0);
        last = first->due;
        weir__heap_remove(&h, first);
    }
    assert_int_equal(n, N - (N + 2) / 3);
    weir__heap_fini(&h);
}

/* ---- inbox ---- */

typedef struct note {
    weir_inbox_task task;          /* first */
    weir_inbox  *in;
    char        *log;           /* gets `letter` when it runs */
    char         letter;
    struct note *posts;         /* NULL: none; posted when it runs */
    bool         woke;          /* what that post returned */
} note;

static void run_note(weir_inbox_task *task)
{
    note *n = (note *)task;
    strncat(n->log, &n->letter, 1);
    if (n->posts)
        n->woke = weir__inbox_post(n->in, &n->posts->task);
}

static void an_inbox_runs_tasks_in_order(void **state)
{
    (void)state;
    weir_inbox in;
    char       log[8] = "";
    weir__inbox_init(&in);
    note c = { .task.run = run_note, .log = log, .letter = 'c' };
    note a = { .task.run = run_note, .log = log, .letter = 'a', .in = &in, .posts = &c };
    note b = { .task.run = run_note, .log = log, .letter = 'b' };
    assert_true(weir__inbox_post(&in, &a.task));
    assert_false(weir__inbox_post(&in, &b.task));       /* the owner was woken already */
    assert_false(weir__inbox_is_empty(&in));
    weir__inbox_run(&in, 8);
    assert_string_equal(log, "abc");
    assert_false(a.woke);                               /* the owner was awake */
    assert_true(weir__inbox_is_empty(&in));
    assert_true(weir__inbox_post(&in, &b.task));        /* it may sleep now */
    weir__inbox_fini(&in);
}

static void an_inbox_leaves_what_is_posted_in_the_last_round(void **state)
{
    (void)state;
    weir_inbox in;
    char       log[8] = "";
    weir__inbox_init(&in);
    note b = { .task.run = run_note, .log = log, .letter = 'b' };
    note a = { .task.run = run_note, .log = log, .letter = 'a', .in = &in, .posts = &b };
    weir__inbox_post(&in, &a.task);
    weir__inbox_run(&in, 1);
    assert_string_equal(log, "a");
    assert_true(a.woke);                                /* so the owner comes back for it */
    weir__inbox_run(&in, 1);
    assert_string_equal(log, "ab");
    weir__inbox_fini(&in);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fail_writes_code_and_message),
        cmocka_unit_test(fail_keeps_the_message_one_line),
        cmocka_unit_test(fail_may_quote_its_own_message),
        cmocka_unit_test(an_error_names_its_field),
        cmocka_unit_test(fail_cuts_between_characters),
        cmocka_unit_test(every_code_has_its_meaning),
        cmocka_unit_test(buf_grows_and_ends_with_nul),
        cmocka_unit_test(buf_gives_its_bytes_away),
        cmocka_unit_test(buf_remembers_that_it_failed),
        cmocka_unit_test(cut_never_splits_a_character),
        cmocka_unit_test(an_array_grows_and_keeps_its_elements),
        cmocka_unit_test(a_sorted_array_has_a_place_for_each_key),
        cmocka_unit_test(map_starts_empty),
        cmocka_unit_test(map_agrees_with_an_array),
        cmocka_unit_test(map_walk_may_remove_what_it_sees),
        cmocka_unit_test(a_new_thing_has_its_name_and_is_found_by_it),
        cmocka_unit_test(list_keeps_its_order_both_ways),
        cmocka_unit_test(a_rate_is_the_mean_of_the_last_seconds),
        cmocka_unit_test(heap_gives_what_is_due_first),
        cmocka_unit_test(ring_gives_what_comes_after_a_number),
        cmocka_unit_test(ring_says_what_was_missed),
        cmocka_unit_test(an_inbox_runs_tasks_in_order),
        cmocka_unit_test(an_inbox_leaves_what_is_posted_in_the_last_round),
        cmocka_unit_test(a_deadline_comes_once_and_never_when_negative),
        cmocka_unit_test(a_wait_ends_at_its_deadline),
    };
    return cmocka_run_group_tests_name("base", tests, NULL, NULL);
}
