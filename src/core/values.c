/* values.c - the values of a job: see values.h. */
#include "core/values.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/json.h"

typedef weir_json_piece piece;

/* ---- names ---- */

/* Fields of a job in the layouts of Kue and Vert.x Kue, where values are fields beside them. */
static const char *const taken[] = {
    "attempts", "backoff", "created_at", "data", "delay", "duration", "error", "failed_at", "id",
    "max_attempts", "priority", "progress", "progress_data", "promote_at", "removeOnComplete",
    "result", "started_at", "state", "ttl", "type", "updated_at", "workerId", "zid",
};

static bool is_taken(const char *name)
{
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++) {
        if (!strcmp(taken[i], name))
            return true;
    }
    return !strncmp(name, "weir_", 5);
}

static bool is_plain(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c && strchr("_-.:", c));
}

static weir_code WEIR_PRINTF(4, 5) wrong_value(weir_error *err, weir_code code, const char *name,
                                               const char *fmt, ...)
{
    char what[WEIR_ERROR_MAX];
    WEIR__FORMAT(what, fmt);
    weir__fail_field(err, code, name, "%s", what);
    return weir__fail_inside(err, code, "values");
}

/* The name in its quotes, without them. An error begins with "values". */
static weir_code read_name(piece name, char out[WEIR_MAX_VALUE_NAME + 1], weir_error *err)
{
    size_t len = name.len - 2;
    int    shown = (int)weir__utf8_cut(name.text + 1, len, 80);
    for (size_t i = 0; i < len; i++) {
        if (!is_plain(name.text[1 + i]))
            return weir__fail_field(err, WEIR_EINVAL, "values", "\"%.*s\" is not a name of "
                                    "letters, digits, \"_\", \"-\", \".\" and \":\"", shown,
                                    name.text + 1);
    }
    if (!len)
        return weir__fail_field(err, WEIR_EINVAL, "values", "a name is empty");
    if (len > WEIR_MAX_VALUE_NAME)
        return weir__fail_field(err, WEIR_ELIMIT, "values", "a name of %zu bytes, at most %d "
                                "(WEIR_MAX_VALUE_NAME)", len, WEIR_MAX_VALUE_NAME);
    memcpy(out, name.text + 1, len);
    out[len] = '\0';
    if (is_taken(out))
        return wrong_value(err, WEIR_EINVAL, out, "this is the name of a field of every job; "
                                                  "choose another");
    return WEIR_OK;
}

/* ---- limits ---- */

static bool is_address(piece name)
{
    return name.len == sizeof WEIR__ADDRESS + 1 && !memcmp(name.text + 1, WEIR__ADDRESS,
                                                           name.len - 2);
}

/* The counted part of an object so far. */
typedef struct size {
    size_t n, bytes;
} size;

static void count(size *s, piece name, size_t value_len)
{
    if (is_address(name))
        return;
    s->n++;
    s->bytes += name.len + value_len + 2;           /* with its comma or brace, and its colon */
}

static weir_code check_size(const size *s, weir_error *err)
{
    size_t bytes = s->bytes + 1;
    if (s->n > WEIR_MAX_VALUES)
        return weir__fail_field(err, WEIR_ELIMIT, "values", "more than %d (WEIR_MAX_VALUES)",
                                WEIR_MAX_VALUES);
    if (bytes > WEIR_MAX_VALUES_BYTES)
        return weir__fail_field(err, WEIR_ELIMIT, "values", "%zu bytes together, at most %d "
                                "(WEIR_MAX_VALUES_BYTES)", bytes, WEIR_MAX_VALUES_BYTES);
    return WEIR_OK;
}

/* ---- checks ---- */

static weir_code check_value(const char *name, piece value, bool removing, weir_error *err)
{
    char   room[WEIR_MAX_VALUES_BYTES];
    size_t len, most = strcmp(name, WEIR__ADDRESS) ? sizeof room : WEIR__MAX_ADDRESS;
    if (value.len > most)
        return wrong_value(err, WEIR_ELIMIT, name, "%zu bytes, at most %zu", value.len, most);
    if (*value.text == 'n' && !removing)
        return wrong_value(err, WEIR_EINVAL, name, "null is no value");
    if (*value.text == '"' && !weir__json_text(value, room, &len))
        return wrong_value(err, WEIR_EINVAL, name, "a zero byte in it");
    return WEIR_OK;
}

weir_code weir__values_check(const char *json, size_t len, bool removing, weir_error *err)
{
    weir_json_walk w;
    piece          name, value;
    char           plain[WEIR_MAX_VALUE_NAME + 1];
    size           all = { 0 };
    weir_code rc = weir__json_check(json, len, "values", err);
    if (rc)
        return rc;
    if (!weir__json_open(&w, (piece){ json, len }) || !w.object)
        return weir__fail_field(err, WEIR_EINVAL, "values", "not an object");
    while (weir__json_next(&w, &name, &value)) {
        if ((rc = read_name(name, plain, err)) ||
            (rc = check_value(plain, value, removing, err)))
            return rc;
        count(&all, name, value.len);
        if ((rc = check_size(&all, err)))
            return rc;
    }
    return WEIR_OK;
}

weir_code weir__values_one(weir_buf *out, const char *name, const char *value, weir_error *err)
{
    size_t      where, len = name ? strlen(name) : 0;
    const char *why;
    if (!name)
        return weir__fail_field(err, WEIR_EINVAL, "values", "no name given");
    if (value && !weir__json_valid(value, strlen(value), WEIR_MAX_DEPTH - 1, &where, &why))
        return wrong_value(err, WEIR_EINVAL, name, "not JSON at byte %zu: %s", where, why);
    weir__buf_char(out, '{');
    weir__json_string(out, name, len);
    weir__buf_char(out, ':');
    weir__buf_str(out, value ? value : "null");
    weir__buf_char(out, '}');
    return out->failed ? weir_fail(err, WEIR_ENOMEM, "values: out of memory") : WEIR_OK;
}

/* ---- merging ---- */

/* Members of an object by name; a later one takes the place of an earlier one. */
typedef struct member {
    piece name;                     /* in quotes; these have no escapes */
    piece value;
} member;
typedef struct members {
    member of[2 * WEIR__VALUES];
    size_t n;
} members;

static int compare(piece a, piece b)
{
    int d = memcmp(a.text + 1, b.text + 1, (a.len < b.len ? a.len : b.len) - 2);
    return d ? d : (a.len > b.len) - (a.len < b.len);
}

static void set(members *m, piece name, piece value)
{
    size_t at = 0;
    int    d = 1;
    while (at < m->n && (d = compare(m->of[at].name, name)) < 0)
        at++;
    if (at == m->n || d) {
        memmove(&m->of[at + 1], &m->of[at], (m->n - at) * sizeof *m->of);
        m->n++;
    }
    m->of[at] = (member){ name, value };
}

static void set_all(members *m, const char *json, size_t len)
{
    weir_json_walk w;
    piece          name, value;
    if (!json || !weir__json_open(&w, (piece){ json, len }))
        return;
    while (m->n < 2 * WEIR__VALUES && weir__json_next(&w, &name, &value))
        set(m, name, value);
}

/* A value as it is kept. */
static void put_value(weir_buf *out, piece value)
{
    char   room[WEIR_MAX_VALUES_BYTES];
    size_t len;
    if (*value.text == '"' && value.len <= sizeof room && weir__json_text(value, room, &len))
        weir__json_string(out, room, len);
    else
        weir__json_line(out, value.text, value.len);
}

weir_code weir__values_merge(weir_buf *out, const char *old, size_t old_len, const char *change,
                             size_t change_len, weir_error *err)
{
    members m = { .n = 0 };
    size    all = { 0 };
    size_t  n = 0;
    set_all(&m, old, old_len);
    set_all(&m, change, change_len);
    for (size_t i = 0; i < m.n; i++) {
        if (*m.of[i].value.text == 'n')         /* null */
            continue;
        weir__buf_char(out, n++ ? ',' : '{');
        weir__buf_add(out, m.of[i].name.text, m.of[i].name.len);
        weir__buf_char(out, ':');
        size_t before = out->len;
        put_value(out, m.of[i].value);
        count(&all, m.of[i].name, out->len - before);
    }
    if (n)
        weir__buf_char(out, '}');
    return out->failed ? weir_fail(err, WEIR_ENOMEM, "values: out of memory")
                       : check_size(&all, err);
}

bool weir__job_values(weir_job *j, weir_buf *room)
{
    weir_error err;
    if (!j->values)
        return true;
    weir_code rc = weir__values_merge(room, NULL, 0, j->values, j->values_len, &err);
    j->values = room->len ? room->data : NULL;
    j->values_len = room->len;
    return rc != WEIR_ENOMEM;
}

/* ---- one by one ---- */

/* A text that is JSON, and more than a null? *value is it, without the space around it. */
static bool is_json(const char *text, size_t len, piece *value)
{
    size_t      where;
    const char *why;
    if (!weir__json_valid(text, len, WEIR_MAX_DEPTH - 1, &where, &why))
        return false;
    while (len && strchr(" \t\r\n", *text)) {
        text++;
        len--;
    }
    *value = (piece){ text, len };
    value->len = (size_t)(weir__json_end(*value) - text);
    return *text != 'n';
}

bool weir__values_split(const char *json, size_t len, weir_value out[], size_t *n, weir_buf *room)
{
    weir_json_walk w;
    piece          name, value, plain;
    *n = 0;
    if (!weir__buf_reserve(room, len + 1))          /* so that nothing in it moves */
        return false;
    weir__json_open(&w, (piece){ json, len });
    while (*n < WEIR__VALUES && weir__json_next(&w, &name, &value)) {
        weir_value *v = &out[(*n)++];
        char       *at = room->data + room->len;
        size_t      chars;
        *v = (weir_value){ name.text + 1, at, name.len - 2, value.len };
        weir__buf_add(room, value.text, value.len);
        if (*value.text != '"' || !weir__json_text(value, at, &chars))
            continue;
        if (is_json(at, chars, &plain)) {
            memcpy(at, value.text, value.len);      /* with its quotes */
            continue;
        }
        v->len = chars;
        room->len -= value.len - chars;
    }
    return true;
}

static int by_name(const void *a, const void *b)
{
    const weir_value *x = a, *y = b;
    int d = memcmp(x->name, y->name, x->name_len < y->name_len ? x->name_len : y->name_len);
    return d ? d : (x->name_len > y->name_len) - (x->name_len < y->name_len);
}

void weir__values_join(weir_buf *out, weir_value *values, size_t n)
{
    piece value;
    if (n > 1)
        qsort(values, n, sizeof *values, by_name);
    for (size_t i = 0; i < n; i++) {
        weir__buf_char(out, i ? ',' : '{');
        weir__json_string(out, values[i].name, values[i].name_len);
        weir__buf_char(out, ':');
        if (is_json(values[i].text, values[i].len, &value))
            put_value(out, value);
        else
            weir__json_string(out, values[i].text, values[i].len);
    }
    if (n)
        weir__buf_char(out, '}');
}
