/* kue_spec.c - what is to be added, as Kue's POST /job and Vert.x Kue's PUT /job say it.
 *
 * Both ignore unknown members; if a member is given twice, the last one counts. Kue
 * takes what JavaScript holds for false as not there, and numbers also as text. Values that Kue
 * would store unchecked and fail on later (or evaluate: a backoff that is text) are refused
 * here. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "core/job.h"
#include "server/kue/kue.h"

typedef weir_json_piece piece;

static bool is(piece value, const char *text)
{
    return value.len == strlen(text) && !memcmp(value.text, text, value.len);
}

/* Is it true in JavaScript? All values but false, null, "", 0, -0, 0.0, 0e9 are. */
static bool truthy(piece value)
{
    if (is(value, "false") || is(value, "null") || is(value, "\"\""))
        return false;
    if (*value.text != '-' && (*value.text < '0' || *value.text > '9'))
        return true;
    for (size_t i = 0; i < value.len && value.text[i] != 'e' && value.text[i] != 'E'; i++) {
        if (value.text[i] >= '1' && value.text[i] <= '9')
            return true;
    }
    return false;
}

static bool not_null(piece value)
{
    return !is(value, "null");
}

/* The members of an object that are in the table, if `there` says that they are. */
static weir_code read_members(weir_reader *in, const weir_field *table, piece object,
                              bool (*there)(piece value), void *out)
{
    weir_json_walk w;
    piece          name, value;
    if (!weir__json_open(&w, object) || !w.object)
        return weir__not_a(in, object, "an object");
    while (weir__json_next(&w, &name, &value)) {
        const weir_field *f = table;
        while (f->name && (strlen(f->name) != name.len - 2 ||
                           memcmp(f->name, name.text + 1, name.len - 2) != 0))
            f++;
        if (!f->name || !there(value))
            continue;
        if (f->read(in, f, value, (char *)out + f->offset)) {
            weir_error why = in->err;
            return weir_fail(&in->err, why.code, "%s: %s", f->name, why.msg);
        }
        if (f->given)
            *((bool *)out + f->given) = true;
    }
    return WEIR_OK;
}

/* ---- values ---- */

/* 3 or "3" */
static weir_code as_number(weir_reader *in, const weir_field *f, piece value, void *to)
{
    if (*value.text == '"' && value.len > 2)
        value = (piece){ value.text + 1, value.len - 2 };
    return weir__as_int(in, f, value, to);
}

static weir_code as_number32(weir_reader *in, const weir_field *f, piece value, void *to)
{
    int64_t    n = 0;
    weir_field range = { .min = INT32_MIN, .max = INT32_MAX };
    (void)f;
    weir_code rc = as_number(in, &range, value, &n);
    if (!rc)
        *(int32_t *)to = (int32_t)n;
    return rc;
}

/* Both systems take a length of time below 0 for none. */
static weir_code as_length(weir_reader *in, const weir_field *f, piece value, void *to)
{
    int64_t   n = 0;
    weir_code rc = as_number(in, f, value, &n);
    if (!rc)
        *(int64_t *)to = n > 0 ? n : 0;
    return rc;
}

static weir_code as_true(weir_reader *in, const weir_field *f, piece value, void *to)
{
    (void)in, (void)f;
    *(bool *)to = truthy(value);
    return WEIR_OK;
}

/* "title" or ["title", "to.name"]; weir keeps them as one text. */
static weir_code as_keys(weir_reader *in, const weir_field *f, piece value, void *to)
{
    weir_texts  keys = { 0 };
    const char *one[2] = { 0 };
    weir_code   rc = *value.text == '"' ? weir__as_text(in, f, value, &one[0])
                                        : weir__as_texts(in, f, value, &keys);
    if (rc)
        return rc;
    const char **text = one[0] ? one : keys.text;
    size_t       n = one[0] ? 1 : keys.n, len = 0;
    for (size_t i = 0; i < n; i++) {
        if (!*text[i] || strchr(text[i], ','))
            return weir_fail(&in->err, WEIR_EINVAL, "a key must have a name without a comma");
        len += strlen(text[i]) + 1;
    }
    if (!n)
        return WEIR_OK;
    char *list = in->alloc(in->ctx, len), *at = list;
    if (!list)
        return weir_fail(&in->err, WEIR_ENOMEM, "out of memory");
    for (size_t i = 0; i < n; i++) {
        at = stpcpy(at, text[i]);
        *at++ = i + 1 < n ? ',' : '\0';
    }
    *(const char **)to = list;
    return WEIR_OK;
}

/* ---- backoff ---- */

static weir_code as_kind(weir_reader *in, const weir_field *f, piece value, void *to)
{
    (void)f;
    weir_backoff_kind *kind = to;
    *kind = is(value, "\"fixed\"") ? WEIR_BACKOFF_FIXED
            : is(value, "\"exponential\"") ? WEIR_BACKOFF_EXPONENTIAL : WEIR_BACKOFF_NONE;
    return *kind ? WEIR_OK : weir__not_a(in, value, "\"fixed\" or \"exponential\"");
}

static const weir_field backoff_fields[] = {
    WEIR_FIELD("type", as_kind, offsetof(weir_backoff, kind)),
    WEIR_FIELD("delay", as_length, offsetof(weir_backoff, delay_ms)),
    WEIR_FIELD("maxDelay", as_length, offsetof(weir_backoff, max_ms)),
    { 0 }
};

/* Without a type it is fixed, without a delay the job's own counts: true is both. A text, which Kue
 * would evaluate, is refused. */
static weir_code as_backoff(weir_reader *in, const weir_field *f, piece value, void *to)
{
    (void)f;
    weir_backoff b = { .kind = WEIR_BACKOFF_FIXED };
    if (*value.text == '{') {
        weir_code rc = read_members(in, backoff_fields, value, truthy, &b);
        if (rc)
            return rc;
    } else if (!is(value, "true")) {
        return weir__not_a(in, value, "true or {\"type\":\"fixed\" or \"exponential\",\"delay\":ms,"
                                      "\"maxDelay\":ms}; nothing is evaluated");
    }
    *(weir_backoff *)to = b;
    return WEIR_OK;
}

/* Kue's cap is short by half the delay, and it is one of exponential backoff alone. */
static void kue_cap(weir_spec *s)
{
    weir_backoff *b = &s->backoff;
    int64_t       half = (b->delay_ms ? b->delay_ms : s->delay_ms) / 2;
    if (b->max_ms && b->kind == WEIR_BACKOFF_EXPONENTIAL)
        b->max_ms = b->max_ms - half > 1 ? b->max_ms - half : 1;
    else
        b->max_ms = 0;
}

/* ---- Kue ---- */

typedef struct kue_body {
    weir_spec spec;
    piece     options;
} kue_body;

static const weir_field kue_fields[] = {
    WEIR_FIELD("type", weir__as_text, offsetof(kue_body, spec.type)),
    WEIR_FIELD("data", weir__as_raw, offsetof(kue_body, spec.data)),
    WEIR_FIELD("options", weir__as_raw, offsetof(kue_body, options)),
    { 0 }
};
static const weir_field kue_options[] = {
    WEIR_FIELD("attempts", as_number32, offsetof(weir_spec, attempts)),
    WEIR_FIELD("priority", weir__as_priority, offsetof(weir_spec, priority)),
    WEIR_FIELD("delay", as_length, offsetof(weir_spec, delay_ms)),
    WEIR_FIELD("searchKeys", as_keys, offsetof(weir_spec, search_keys)),
    WEIR_FIELD("backoff", as_backoff, offsetof(weir_spec, backoff)),
    WEIR_FIELD("removeOnComplete", as_true, offsetof(weir_spec, remove_on_complete)),
    WEIR_FIELD("ttl", as_length, offsetof(weir_spec, ttl_ms)),
    { 0 }
};

weir_code srv_kue_spec(weir_reader *in, piece element, weir_spec *out)
{
    kue_body       b = { 0 };
    weir_code      rc = WEIR_OK;
    weir_json_walk w;
    in->err = (weir_error){ 0 };
    if (weir__json_open(&w, element) && w.object)
        rc = read_members(in, kue_fields, element, truthy, &b);
    if (!rc && !b.spec.type)
        rc = weir_fail(&in->err, WEIR_EINVAL, "Must provide job type");
    if (!rc && b.options.text)
        rc = *b.options.text == '{' ? read_members(in, kue_options, b.options, truthy, &b.spec)
                                    : weir_fail(&in->err, WEIR_EINVAL,
                                                "options: must be an object");
    kue_cap(&b.spec);
    if (!rc)
        rc = weir__spec_check(&b.spec, -1, &in->err);
    *out = b.spec;
    return rc;
}

/* ---- Vert.x Kue ---- */

static weir_code as_priority_name(weir_reader *in, const weir_field *f, piece value, void *to)
{
    if (*value.text == '"' && weir__as_priority(in, f, value, to) == WEIR_OK)
        return WEIR_OK;
    in->err = (weir_error){ 0 };
    return weir__not_a(in, value, "LOW, NORMAL, MEDIUM, HIGH or CRITICAL");
}

static weir_code as_object(weir_reader *in, const weir_field *f, piece value, void *to)
{
    return *value.text == '{' ? weir__as_raw(in, f, value, to)
                              : weir__not_a(in, value, "an object");
}

#define BODY(name, how, member, ...) \
    WEIR_FIELD(name, how, offsetof(srv_vertx_body, member), __VA_ARGS__)
#define GIVEN(member) .given = offsetof(srv_vertx_body, member)
static const weir_field vertx_fields[] = {
    BODY("id", weir__as_int, id, .min = -1, .max = INT64_MAX),
    BODY("type", weir__as_text, spec.type, .needed = false),
    BODY("data", as_object, spec.data, GIVEN(data)),
    BODY("priority", as_priority_name, spec.priority, GIVEN(priority)),
    BODY("state", weir__as_state, state, .needed = false),
    BODY("delay", as_length, spec.delay_ms, GIVEN(delay)),
    BODY("max_attempts", as_number32, spec.attempts, GIVEN(attempts)),
    BODY("removeOnComplete", weir__as_bool, spec.remove_on_complete, GIVEN(remove)),
    BODY("ttl", as_length, spec.ttl_ms, GIVEN(ttl)),
    BODY("backoff", as_backoff, spec.backoff, GIVEN(backoff)),
    BODY("address_id", weir__as_text, address, .min = 1, .max = SRV_MAX_ADDRESS),
    { 0 }
};

weir_code srv_vertx_spec(weir_reader *in, piece body, srv_vertx_body *out)
{
    *out = (srv_vertx_body){ 0 };
    in->err = (weir_error){ 0 };
    weir_code rc = read_members(in, vertx_fields, body, not_null, out);
    if (!rc && !out->spec.type && out->id <= 0)
        rc = weir_fail(&in->err, WEIR_EINVAL, SRV_VERTX_NO_TYPE);
    if (!rc && out->spec.type)
        rc = weir__spec_check(&out->spec, -1, &in->err);
    return rc;
}

weir_code srv_vertx_read(weir_reader *in, const weir_field *table, piece object, void *out)
{
    in->err = (weir_error){ 0 };
    return read_members(in, table, object, not_null, out);
}

/* ---- addresses ---- */

/* Vert.x Kue makes none for a job that comes as JSON, and then all of them share the address
 * "null". */
bool srv_make_uuid(char out[SRV_UUID])
{
    unsigned char b[16];
    if (getrandom(b, sizeof b, 0) != (ssize_t)sizeof b)
        return false;
    b[6] = (b[6] & 0x0f) | 0x40;
    b[8] = (b[8] & 0x3f) | 0x80;
    char *at = out;
    for (int i = 0; i < 16; i++)
        at += sprintf(at, i == 4 || i == 6 || i == 8 || i == 10 ? "-%02x" : "%02x", b[i]);
    return true;
}

void srv_vertx_values(weir_buf *out, const char *address)
{
    weir__buf_str(out, "{\"address_id\":");
    weir__json_string(out, address, strlen(address));
    weir__buf_char(out, '}');
}
