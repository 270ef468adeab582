/* case_input.c - bad input gets a clear error that names the member, and changes nothing. */
#include "conformance/conformance.h"

#include <stdlib.h>
#include <string.h>

static void refused(fixture *f, const weir_spec *spec, weir_code want, const char *names)
{
    CHECK_INT(try_add(f, spec, NULL), want);
    if (!strstr(f->err.msg, names))
        print_error("\"%s\" does not name %s\n", f->err.msg, names);
    CHECK(strstr(f->err.msg, names));
    CHECK_INT(count(f, WEIR_STATE_ANY, NULL), 0);
    CHECK_INT(stats(f)->n, 0);
    CHECK_INT(f->n_events, 0);
}

static void bad_types(fixture *f)
{
    char type[WEIR_MAX_TYPE + 2];
    memset(type, 't', sizeof type);
    type[WEIR_MAX_TYPE + 1] = '\0';
    refused(f, &(weir_spec){ 0 }, WEIR_EINVAL, "type");
    refused(f, &(weir_spec){ .type = "" }, WEIR_EINVAL, "type");
    refused(f, &(weir_spec){ .type = "a\nb" }, WEIR_EINVAL, "type");
    refused(f, &(weir_spec){ .type = "a\xc2\x9b" }, WEIR_EINVAL, "type");
    refused(f, &(weir_spec){ .type = "a\xe2\x80\xae" }, WEIR_EINVAL, "type");
    refused(f, &(weir_spec){ .type = "a\xff" }, WEIR_EINVAL, "type");
    refused(f, &(weir_spec){ .type = "*" }, WEIR_EINVAL, "type");
    refused(f, &(weir_spec){ .type = type }, WEIR_ELIMIT, "type");
    type[WEIR_MAX_TYPE] = '\0';
    add(f, type);
}

static void bad_data(fixture *f)
{
    refused(f, &(weir_spec){ .type = "a", .data = "{" }, WEIR_EINVAL, "data");
    refused(f, &(weir_spec){ .type = "a", .data = "" }, WEIR_EINVAL, "data");
    refused(f, &(weir_spec){ .type = "a", .data = "nope" }, WEIR_EINVAL, "data");
    refused(f, &(weir_spec){ .type = "a", .data = "\"\xc3\"" }, WEIR_EINVAL, "data");
    char *big = malloc(WEIR_MAX_DATA + 2);
    memset(big, ' ', WEIR_MAX_DATA + 1);
    big[0] = '1';
    big[WEIR_MAX_DATA + 1] = '\0';
    weir_code rc = try_add(f, &(weir_spec){ .type = "a", .data = big }, NULL);
    free(big);
    CHECK_INT(rc, WEIR_ELIMIT);
    CHECK_INT(count(f, WEIR_STATE_ANY, NULL), 0);
}

static void bad_numbers(fixture *f)
{
    refused(f, &(weir_spec){ .type = "a", .delay_ms = -1 }, WEIR_EINVAL, "delay_ms");
    refused(f, &(weir_spec){ .type = "a", .delay_ms = WEIR_MAX_MS + 1 }, WEIR_ELIMIT, "delay_ms");
    refused(f, &(weir_spec){ .type = "a", .delay_ms = 1, .run_at = 1 }, WEIR_EINVAL, "run_at");
    refused(f, &(weir_spec){ .type = "a", .ttl_ms = -1 }, WEIR_EINVAL, "ttl_ms");
    refused(f, &(weir_spec){ .type = "a", .attempts = -1 }, WEIR_EINVAL, "attempts");
    refused(f, &(weir_spec){ .type = "a", .attempts = WEIR_MAX_ATTEMPTS + 1 }, WEIR_ELIMIT,
            "attempts");
    refused(f, &(weir_spec){ .type = "a", .max_lost = -1 }, WEIR_EINVAL, "max_lost");
    refused(f, &(weir_spec){ .type = "a", .deadline_at = -1 }, WEIR_EINVAL, "deadline_at");
    refused(f, &(weir_spec){ .type = "a", .backoff = { .kind = (weir_backoff_kind)9 } },
            WEIR_EINVAL, "backoff");
    refused(f, &(weir_spec){ .type = "a", .backoff = { .jitter_pct = 101 } }, WEIR_EINVAL,
            "jitter_pct");
}

static void bad_keys(fixture *f)
{
    char key[WEIR_MAX_UNIQUE + 2];
    memset(key, 'k', sizeof key);
    key[WEIR_MAX_UNIQUE + 1] = '\0';
    refused(f, &(weir_spec){ .type = "a", .unique = key }, WEIR_ELIMIT, "unique");
    refused(f, &(weir_spec){ .type = "a", .unique = "" }, WEIR_EINVAL, "unique");
    key[WEIR_MAX_UNIQUE] = '\0';
    CHECK_INT(try_add(f, &(weir_spec){ .type = "a", .unique = key }, NULL), WEIR_OK);
}

static void bad_results_leave_the_job_running(fixture *f)
{
    uint64_t        id = add(f, "a");
    const weir_job *job = take(f, "a");
    CHECK_INT(finish_with(f, job, "not json"), WEIR_EINVAL);
    CHECK(strstr(f->err.msg, "result"));
    CHECK_STATE(f, id, WEIR_STATE_ACTIVE);
    CHECK_INT(progress(f, job, 5, "{"), WEIR_EINVAL);
    CHECK_INT(progress(f, job, -1, NULL), WEIR_EINVAL);
    CHECK_INT(get(f, id)->progress, 0);
    CHECK_INT(finish(f, job), WEIR_OK);
}

static void bad_changes(fixture *f)
{
    uint64_t id = add(f, "a");
    CHECK_INT(update(f, id, &(weir_change){ .data = "{" }), WEIR_EINVAL);
    CHECK_INT(update(f, id, &(weir_change){ .set_delay = true, .delay_ms = -1 }), WEIR_EINVAL);
    CHECK_INT(update(f, id, &(weir_change){ .state = (weir_state)44 }), WEIR_EINVAL);
    CHECK_INT(update(f, id, &(weir_change){ .state = WEIR_STATE_DELAYED }), WEIR_EINVAL);
    CHECK_STATE(f, id, WEIR_STATE_INACTIVE);
}

static void bad_settings(fixture *f)
{
    CHECK_INT(configure(f, "", &(weir_settings){ 0 }), WEIR_EINVAL);
    CHECK_INT(configure(f, "a", &(weir_settings){ .keep_failed = { .count = -1 } }), WEIR_EINVAL);
    CHECK_INT(configure(f, "a", &(weir_settings){ .keep_complete = { .age_ms = -2 } }),
              WEIR_EINVAL);
    CHECK_INT(stats(f)->n, 0);
}

static void bad_takes(fixture *f)
{
    const char *type = "a", *star = "*";
    weir_job   *job = NULL;
    weir_op     op = { .kind = WEIR_OP_TAKE,
                       .u.take = { .types = &type, .n_types = 1, .worker = "w", .jobs = &job } };
    CHECK_INT(run(f, &op), WEIR_EINVAL);
    op.u.take.n = WEIR_MAX_PAGE + 1;
    CHECK_INT(run(f, &op), WEIR_ELIMIT);
    op.u.take.n = 1;
    op.u.take.lease_ms = -5;
    CHECK_INT(run(f, &op), WEIR_EINVAL);
    op.u.take.lease_ms = 0;
    op.u.take.types = &star;
    CHECK_INT(run(f, &op), WEIR_EINVAL);
    op.u.take.types = &type;
    op.u.take.n_types = 0;
    CHECK_INT(run(f, &op), WEIR_EINVAL);
}

static void bad_lists(fixture *f)
{
    CHECK(!list(f, &(weir_query){ .state = (weir_state)44 }));
    CHECK_INT(f->err.code, WEIR_EINVAL);
    CHECK(!list(f, &(weir_query){ .type = "" }));
    CHECK(!list(f, &(weir_query){ .search = "\xff" }));
    CHECK_INT(f->err.code, WEIR_EINVAL);
}

const conformance_case cases_input[] = {
    CASE(bad_types),
    CASE(bad_data),
    CASE(bad_numbers),
    CASE(bad_keys),
    CASE(bad_results_leave_the_job_running),
    CASE(bad_changes),
    CASE(bad_settings),
    CASE(bad_takes),
    CASE(bad_lists),
    { 0 },
};
