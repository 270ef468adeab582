/* spec.c - what a task is to be: checks, defaults, and its job. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "core/job.h"
#include "task/inner.h"

/* ---- checks ---- */

static weir_code check_text(const char *text, size_t max, const char *limit, const char *field,
                            weir_error *err)
{
    size_t len = strlen(text);
    if (len > max)
        return weir__fail_field(err, WEIR_ELIMIT, field, "%zu bytes, at most %zu (%s)", len, max,
                                limit);
    if (!weir__utf8_valid(text, len))
        return weir__fail_field(err, WEIR_EINVAL, field, "not valid UTF-8");
    return WEIR_OK;
}

weir_code weir__task_text_check(const char *text, const char *field, weir_error *err)
{
    return text ? check_text(text, WEIR_MAX_TASK_TEXT, "WEIR_MAX_TASK_TEXT", field, err) : WEIR_OK;
}

weir_code weir__task_id_check(const char *id, const char *field, weir_error *err)
{
    if (!id || !*id)
        return weir__fail_field(err, WEIR_EINVAL, field, "%s", id ? "empty" : "missing");
    return check_text(id, WEIR_MAX_TASK_ID, "WEIR_MAX_TASK_ID", field, err);
}

static weir_code check_service(const char *service, weir_error *err)
{
    if (!service || !*service)
        return weir__fail_field(err, WEIR_EINVAL, "service", "%s; it names who does the task",
                                service ? "empty" : "missing");
    if (strchr(service, '@'))
        return weir__fail_field(err, WEIR_EINVAL, "service", "\"@\" is not allowed; give the "
                                "version as a member of its own");
    return weir__task_text_check(service, "service", err);
}

static weir_code check_texts(const weir_task_spec *s, weir_error *err)
{
    const struct { const char *text, *field; } texts[] = {
        { s->classifier, "classifier" }, { s->relative_id, "relative_id" }, { s->name, "name" },
        { s->var1, "var1" }, { s->var2, "var2" }, { s->var3, "var3" },
        { s->result_store, "result_store" }, { s->zone, "zone" },
    };
    weir_code rc = check_service(s->service, err);
    for (size_t i = 0; !rc && i < sizeof texts / sizeof *texts; i++)
        rc = weir__task_text_check(texts[i].text, texts[i].field, err);
    return !rc && s->id ? weir__task_id_check(s->id, "id", err) : rc;
}

static size_t attachment_len(const weir_task_spec *s)
{
    return s->attachment_len ? s->attachment_len : s->attachment ? strlen(s->attachment) : 0;
}

static weir_code check_rest(const weir_task_spec *s, weir_error *err)
{
    size_t      where;
    const char *why;
    if (WEIR__CHECK_RESERVED(s, err))
        return WEIR_EINVAL;
    if (s->attachment &&
        !weir__json_valid(s->attachment, attachment_len(s), WEIR_MAX_DEPTH - 1, &where, &why))
        return weir__fail_field(err, WEIR_EINVAL, "attachment", "not JSON: %s at byte %zu", why,
                                where);
    if (s->version < 0)
        return weir__fail_field(err, WEIR_EINVAL, "version", "%lld, must be at least 0",
                                (long long)s->version);
    if (s->timeout_ms < 0 || s->timeout_ms > WEIR_MAX_MS)
        return weir__fail_field(err, WEIR_EINVAL, "timeout_ms", "%lld, must be 0 to %lld "
                                "(WEIR_MAX_MS)", (long long)s->timeout_ms, (long long)WEIR_MAX_MS);
    if (s->run_at < 0)
        return weir__fail_field(err, WEIR_EINVAL, "run_at", "%lld, must be a moment after 1970",
                                (long long)s->run_at);
    if (s->zone && !s->schedule)
        return weir__fail_field(err, WEIR_EINVAL, "zone", "there is no schedule");
    return WEIR_OK;
}

/* The field of an error as a task names it, not its job or its schedule. */
static weir_code say_member(weir_code rc, weir_error *err)
{
    static const struct { const char *theirs, *ours; } names[] = {
        { "type", "service" }, { "data", "attachment" }, { "when", "schedule" },
    };
    for (size_t i = 0; err && i < sizeof names / sizeof *names; i++) {
        size_t n = strlen(names[i].theirs);
        if (strcmp(err->field, names[i].theirs) != 0)
            continue;
        if (strncmp(err->msg, names[i].theirs, n) == 0 && err->msg[n] == ':')
            return weir__fail_field(err, rc, names[i].ours, "%s", err->msg + n + 2);
        strcpy(err->field, names[i].ours);
        break;
    }
    return rc;
}

weir_code weir__task_next(const weir_task_spec *spec, int64_t created_at, int64_t after,
                          int64_t *out, weir_error *err)
{
    weir_schedule s = { .when = spec->schedule, .zone = spec->zone, .created_at = created_at };
    size_t        n;
    *out = 0;
    weir_code rc = weir_schedule_next(&s, after, out, 1, &n, err);
    return rc ? say_member(rc, err) : WEIR_OK;
}

/* ---- the index ---- */

static uint64_t hash(uint64_t h, const char *text)
{
    for (; *text; text++)
        h = (h ^ (unsigned char)*text) * UINT64_C(1099511628211);       /* FNV-1a */
    return (h ^ 0xff) * UINT64_C(1099511628211);        /* 0xff: not in UTF-8 */
}

static task_word word(char letter, uint64_t h)
{
    task_word w;
    snprintf(w.text, sizeof w.text, "%c%016llx", letter, (unsigned long long)h);
    return w;
}

#define HASH_START UINT64_C(14695981039346656037)

task_word weir__task_word_id(const char *id)
{
    return word('t', hash(HASH_START, id));
}

task_word weir__task_word_classifier(const char *classifier)
{
    return word('c', hash(HASH_START, classifier));
}

task_word weir__task_word_relative(const char *classifier, const char *relative_id)
{
    return word('r', hash(hash(HASH_START, classifier), relative_id));
}

/* ---- its job ---- */

void weir__task_type(char out[TASK_TYPE_ROOM], const char *service, int64_t version)
{
    if (version)
        snprintf(out, TASK_TYPE_ROOM, "%s@%lld", service, (long long)version);
    else
        snprintf(out, TASK_TYPE_ROOM, "%s", service);
}

int64_t weir__task_type_version(const char *type, const char *service)
{
    size_t      len = strlen(service);
    const char *digits = type + len + 1;
    if (strncmp(type, service, len) != 0 || (type[len] && type[len] != '@'))
        return -1;
    if (!type[len])
        return 0;
    size_t n = strspn(digits, "0123456789");
    return n && n <= 18 && !digits[n] ? strtoll(digits, NULL, 10) : -1;
}

static void add_text(weir_buf *b, const char *name, const char *text)
{
    if (!text)
        return;
    weir__buf_printf(b, ",\"%s\":", name);
    weir__json_string(b, text, strlen(text));
}

static void write_data(weir_buf *b, const weir_task_spec *s, const char *id)
{
    const char *classifier = s->classifier ? s->classifier : "default";
    weir__buf_str(b, "{\"task\":");
    weir__json_string(b, id, strlen(id));
    add_text(b, "classifier", classifier);
    add_text(b, "relative_id", s->relative_id);
    add_text(b, "name", s->name ? s->name : s->service);
    if (s->attachment) {
        weir__buf_str(b, ",\"attachment\":");
        weir__buf_add(b, s->attachment, attachment_len(s));
    }
    add_text(b, "var1", s->var1);
    add_text(b, "var2", s->var2);
    add_text(b, "var3", s->var3);
    add_text(b, "result_store", s->result_store ? s->result_store : "direct");
    if (s->version)
        weir__buf_printf(b, ",\"version\":%lld", (long long)s->version);
    add_text(b, "schedule", s->schedule);
    add_text(b, "zone", s->schedule && !s->zone ? "UTC" : s->zone);
    weir__buf_printf(b, ",\"index\":\"%s %s %s", TASK_WORD_ALL, weir__task_word_id(id).text,
                     weir__task_word_classifier(classifier).text);
    if (s->relative_id)
        weir__buf_printf(b, " %s", weir__task_word_relative(classifier, s->relative_id).text);
    weir__buf_str(b, "\"}");
}

weir_spec weir__task_job(const task_draft *d, const weir_task_spec *spec)
{
    return (weir_spec){ .type = d->type, .data = d->data.data, .data_len = d->data.len,
                        .ttl_ms = spec->timeout_ms, .run_at = d->run_at, .search_keys = "index" };
}

weir_code weir__task_draft(task_draft *d, const weir_task_spec *spec, int64_t now, weir_error *err)
{
    *d = (task_draft){ .run_at = spec->run_at };
    weir_code rc = check_texts(spec, err);
    if (!rc)
        rc = check_rest(spec, err);
    if (!rc && spec->schedule) {
        int64_t next;
        if ((rc = weir__task_next(spec, now, now, &next, err)))
            return rc;
        if (!d->run_at)
            d->run_at = next;
    }
    if (rc)
        return rc;
    if (spec->id)
        memcpy(d->id, spec->id, strlen(spec->id) + 1);
    else
        weir__task_new_id(d->id);
    weir__task_type(d->type, spec->service, spec->version);
    write_data(&d->data, spec, d->id);
    if (d->data.failed)
        return weir_fail(err, WEIR_ENOMEM, "task: out of memory");
    weir_spec job = weir__task_job(d, spec);
    rc = weir__spec_check(&job, -1, err);
    return rc ? say_member(rc, err) : WEIR_OK;
}
