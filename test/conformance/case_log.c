/* case_log.c - the log of a job, and searching in data, error and log. */
#include "conformance/conformance.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void lines_are_numbered_from_one(fixture *f)
{
    uint64_t id = add(f, "a");
    int64_t  updated_at = get(f, id)->updated_at;
    CHECK_INT(logs(f, id, 0, 0)->n, 0);
    f->now += 10;
    log_line(f, id, "one");
    f->now += 10;
    log_line(f, id, "two");
    const weir_lines *l = logs(f, id, 0, 0);
    CHECK_INT(l->n, 2);
    CHECK_INT(l->line[0].n, 1);
    CHECK_INT(l->line[1].n, 2);
    CHECK_STR(l->line[0].text, "one");
    CHECK_STR(l->line[1].text, "two");
    CHECK_INT(l->line[0].at, f->now - 10);
    CHECK_INT(l->line[1].at, f->now);
    CHECK_INT(get(f, id)->updated_at, updated_at);
}

static void lines_after_a_number(fixture *f)
{
    uint64_t id = add(f, "a");
    for (int i = 0; i < 5; i++)
        log_line(f, id, "x");
    const weir_lines *l = logs(f, id, 3, 0);
    CHECK_INT(l->n, 2);
    CHECK_INT(l->line[0].n, 4);
    l = logs(f, id, 1, 2);
    CHECK_INT(l->n, 2);
    CHECK_INT(l->line[1].n, 3);
    CHECK_INT(logs(f, id, 5, 0)->n, 0);
    CHECK_INT(logs(f, id, 99, 0)->n, 0);
}

static void any_text_is_kept(fixture *f)
{
    uint64_t    id = add(f, "a");
    const char *odd = "caf\xc3\xa9\t'\"%s\\\r\n<b>";
    log_line(f, id, odd);
    log_line(f, id, "");
    CHECK_STR(logs(f, id, 0, 0)->line[0].text, odd);
    CHECK_STR(logs(f, id, 0, 0)->line[1].text, "");
}

static void long_lines_are_cut(fixture *f)
{
    char *text = malloc(WEIR_MAX_TEXT + 10);
    memset(text, 'x', WEIR_MAX_TEXT + 9);
    text[WEIR_MAX_TEXT + 9] = '\0';
    memcpy(text + WEIR_MAX_TEXT - 1, "\xc3\xa9", 2);             /* no character is cut in two */
    uint64_t  id = add(f, "a");
    weir_code rc = log_line(f, id, text);
    free(text);
    CHECK_INT(rc, WEIR_OK);
    CHECK_INT(strlen(logs(f, id, 0, 0)->line[0].text), WEIR_MAX_TEXT - 1);
}

static void the_oldest_lines_go(fixture *f)
{
    enum { MORE = 25, LOT = 500 };
    uint64_t id = add(f, "a");
    weir_op *ops = calloc(LOT, sizeof *ops), *at[LOT];
    for (size_t done = 0; done < WEIR_MAX_LOG + MORE; done += LOT) {
        size_t n = WEIR_MAX_LOG + MORE - done < LOT ? WEIR_MAX_LOG + MORE - done : LOT;
        for (size_t i = 0; i < n; i++) {
            ops[i] = (weir_op){ .kind = WEIR_OP_LOG, .now_ms = f->now,
                                .u.log = { .id = id, .text = "x", .len = 1 } };
            at[i] = &ops[i];
        }
        run_batch(f, at, n);
    }
    free(ops);
    const weir_lines *l = logs(f, id, 0, 10);
    CHECK_INT(l->n, 10);
    CHECK_INT(l->line[0].n, MORE + 1);
    CHECK_INT(logs(f, id, WEIR_MAX_LOG + MORE - 1, 0)->n, 1);
    l = logs(f, id, 0, 0);
    CHECK_INT(l->n, WEIR_MAX_PAGE);
}

static void logs_of_finished_jobs(fixture *f)
{
    uint64_t id = add(f, "a");
    finish(f, take(f, "a"));
    CHECK_INT(log_line(f, id, "afterthought"), WEIR_OK);
    CHECK_INT(logs(f, id, 0, 0)->n, 1);
}

static void a_log_survives_a_retry(fixture *f)
{
    uint64_t id = add(f, "a");
    fail_job(f, take(f, "a"), "x");
    retry_job(f, id);
    log_line(f, id, "again");
    CHECK_INT(logs(f, id, 0, 0)->n, 2);
    CHECK_INT(logs(f, id, 0, 0)->line[1].n, 2);
}

/* ---- search ---- */

static uint64_t searchable(fixture *f, const char *type, const char *data)
{
    return add_spec(f, &(weir_spec){ .type = type, .data = data, .search = true, .attempts = 9 });
}

static const char *found(fixture *f, const char *words)
{
    return listed(f, &(weir_query){ .search = words });
}

static void words_in_data(fixture *f)
{
    searchable(f, "a", "{\"to\":\"ann@example.org\",\"subject\":\"Hello World\",\"n\":42}");
    searchable(f, "b", "{\"to\":\"bob@example.org\",\"list\":[\"hello\",true]}");
    add_spec(f, &(weir_spec){ .type = "a", .data = "{\"to\":\"hello\"}" });      /* not indexed */
    CHECK_STR(found(f, "hello"), "1 2");
    CHECK_STR(found(f, "HELLO"), "1 2");
    CHECK_STR(found(f, "hello world"), "1");
    CHECK_STR(found(f, "world hello"), "1");
    CHECK_STR(found(f, "example ann"), "1");
    CHECK_STR(found(f, "42"), "1");
    CHECK_STR(found(f, "true"), "2");
    CHECK_STR(found(f, "subject"), "1");
    CHECK_STR(found(f, "worlds"), "");
    CHECK_STR(found(f, "wor"), "");
    CHECK_STR(found(f, "wor*"), "1");
    CHECK_STR(found(f, "ex* bo*"), "2");
}

static void queries_of_no_words_find_nothing(fixture *f)
{
    searchable(f, "a", "{\"x\":\"y\"}");
    CHECK_STR(found(f, ""), "");
    CHECK_STR(found(f, "  -- \"' "), "");
    CHECK_STR(found(f, "*"), "");
}

static void odd_queries_are_only_words(fixture *f)
{
    searchable(f, "a", "{\"x\":\"one two OR near\"}");
    CHECK_STR(found(f, "one OR nothing"), "");
    CHECK_STR(found(f, "one OR two"), "1");
    CHECK_STR(found(f, "\"two one\""), "1");
    CHECK_STR(found(f, "one AND two"), "");
    CHECK_STR(found(f, "NEAR(one two)"), "1");
    CHECK_STR(found(f, "x:one"), "1");
    CHECK_STR(found(f, "one -two"), "1");
    CHECK_STR(found(f, "^one + (two"), "1");
}

static void words_beyond_ascii(fixture *f)
{
    searchable(f, "a", "{\"x\":\"caf\xc3\xa9 na\xc3\xafve \xe6\x97\xa5\xe6\x9c\xac\"}");
    searchable(f, "a", "{\"x\":\"caf\\u00e9 cafe\"}");
    CHECK_STR(found(f, "caf\xc3\xa9"), "1 2");
    CHECK_STR(found(f, "cafe"), "2");
    CHECK_STR(found(f, "\xe6\x97\xa5\xe6\x9c\xac"), "1");
    CHECK_STR(found(f, "na\xc3\xaf*"), "1");
}

static void only_the_chosen_members(fixture *f)
{
    add_spec(f, &(weir_spec){ .type = "a", .search = true, .search_keys = "to, customer.name",
                              .data = "{\"to\":\"ann\",\"secret\":\"word\","
                                      "\"customer\":{\"name\":\"carl\",\"tax\":\"nine\"}}" });
    CHECK_STR(found(f, "ann"), "1");
    CHECK_STR(found(f, "carl"), "1");
    CHECK_STR(found(f, "word"), "");
    CHECK_STR(found(f, "nine"), "");
    CHECK_STR(found(f, "customer"), "");
}

static void words_in_error_and_log(fixture *f)
{
    uint64_t id = searchable(f, "a", "{}");
    searchable(f, "b", "{}");
    fail_job(f, take(f, "a"), "connection refused");
    CHECK_STR(found(f, "refused"), "1");
    log_line(f, id, "trying elsewhere");
    CHECK_STR(found(f, "elsewhere"), "1");
    CHECK_STR(found(f, "elsewhere refused"), "1");
    finish(f, take(f, "a"));
    CHECK_STR(found(f, "refused"), "1");         /* the error is gone, its line is still there */
    remove_job(f, id);
    CHECK_STR(found(f, "elsewhere"), "");
}

static void new_data_is_found_instead_of_old(fixture *f)
{
    uint64_t id = searchable(f, "a", "{\"x\":\"before\"}");
    log_line(f, id, "logged");
    CHECK_INT(update(f, id, &(weir_change){ .data = "{\"x\":\"after\"}" }), WEIR_OK);
    CHECK_STR(found(f, "before"), "");
    CHECK_STR(found(f, "after logged"), "1");
}

static void search_with_state_type_and_pages(fixture *f)
{
    for (int i = 0; i < 6; i++)
        add_spec(f, &(weir_spec){ .type = i % 2 ? "odd" : "even", .data = "[\"word\"]",
                                  .search = true, .priority = -i });
    CHECK_STR(found(f, "word"), "1 2 3 4 5 6");
    CHECK_STR(listed(f, &(weir_query){ .search = "word", .type = "odd" }), "2 4 6");
    CHECK_INT(update(f, 6, &(weir_change){ .set_delay = true, .delay_ms = 500 }), WEIR_OK);
    CHECK_STR(listed(f, &(weir_query){ .search = "word", .state = WEIR_STATE_DELAYED }), "6");
    CHECK_STR(listed(f, &(weir_query){ .search = "word", .state = WEIR_STATE_INACTIVE,
                                       .descending = true }), "5 4 3 2 1");
    weir_query       q = { .search = "word", .limit = 4 };
    const weir_page *page = list(f, &q);
    CHECK(page->more);
    CHECK_STR(ids_of(f, page), "1 2 3 4");
    q.after = page->next;
    CHECK_STR(listed(f, &q), "5 6");
}

static void a_type_can_be_set_to_be_searched(fixture *f)
{
    add_spec(f, &(weir_spec){ .type = "a", .data = "[\"word\"]" });
    CHECK_INT(configure(f, "a", &(weir_settings){ .search = true }), WEIR_OK);
    CHECK(get(f, add_spec(f, &(weir_spec){ .type = "a", .data = "[\"word\"]" }))->search);
    add_spec(f, &(weir_spec){ .type = "b", .data = "[\"word\"]" });
    CHECK_STR(found(f, "word"), "2");
    CHECK_INT(configure(f, "*", &(weir_settings){ .search = true }), WEIR_OK);
    add_spec(f, &(weir_spec){ .type = "b", .data = "[\"word\"]" });
    CHECK_STR(found(f, "word"), "2 4");
}

const conformance_case cases_log[] = {
    CASE(lines_are_numbered_from_one),
    CASE(lines_after_a_number),
    CASE(any_text_is_kept),
    CASE(long_lines_are_cut),
    CASE(the_oldest_lines_go),
    CASE(logs_of_finished_jobs),
    CASE(a_log_survives_a_retry),
    CASE(words_in_data),
    CASE(queries_of_no_words_find_nothing),
    CASE(odd_queries_are_only_words),
    CASE(words_beyond_ascii),
    CASE(only_the_chosen_members),
    CASE(words_in_error_and_log),
    CASE(new_data_is_found_instead_of_old),
    CASE(search_with_state_type_and_pages),
    CASE(a_type_can_be_set_to_be_searched),
    { 0 },
};
