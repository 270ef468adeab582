/* fields.c - the members of a JSON object, read into a struct by a table.
 *
 * A reader of a value says only what is wrong with it. The name is put in front on the way out,
 * level by level, so that what is right pays nothing for it. */
#include "core/fields.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/near.h"
#include "core/job.h"

typedef weir_json_piece piece;

enum { SHOWN = 60, BLOCK = 4096 };

/* ---- what was wrong, and where ---- */

weir_code weir__not_a(weir_reader *in, piece value, const char *wanted)
{
    value.len = (size_t)(weir__json_end(value) - value.text);
    size_t shown = weir__utf8_cut(value.text, value.len, SHOWN);
    return weir_fail(&in->err, WEIR_EINVAL, "%.*s%s is not %s", (int)shown, value.text,
                     shown < value.len ? "..." : "", wanted);
}

static weir_code no_memory(weir_reader *in)
{
    return weir_fail(&in->err, WEIR_ENOMEM, "out of memory");
}

/* "delivery" in the third of "jobs" becomes "[3].delivery", then "jobs[3].delivery". */
static weir_code at(weir_reader *in, const char *name, size_t len)
{
    char        rest[WEIR_FIELD_MAX], *field = in->err.field;
    const char *dot = *field && *field != '[' ? "." : "";
    size_t      shown = weir__utf8_cut(name, len, SHOWN);
    memcpy(rest, field, sizeof rest);
    int n = snprintf(field, sizeof rest, "%.*s%s", (int)shown, name, dot);
    snprintf(field + n, sizeof rest - (size_t)n, "%s", rest);
    return in->err.code;
}

static weir_code at_index(weir_reader *in, size_t i)
{
    char text[32];
    int  n = snprintf(text, sizeof text, "[%zu]", i);
    return at(in, text, (size_t)n);
}

static weir_code unknown(weir_reader *in, const weir_field *table, piece name)
{
    char      known[WEIR_ERROR_MAX - 80] = "";      /* all of them if there is room, or none */
    char      typed[SHOWN + 1] = "";
    weir_near guess = { .typed = typed };
    size_t    n = 0;
    snprintf(typed, sizeof typed, "%.*s", (int)name.len - 2, name.text + 1);
    for (const weir_field *f = table; f->name; f++) {
        weir__near_try(&guess, f->name);
        if (n < sizeof known)
            n += (size_t)snprintf(known + n, sizeof known - n, "%s%s", n ? ", " : "", f->name);
    }
    if (guess.best)
        weir_fail(&in->err, WEIR_EINVAL, "unknown member; did you mean \"%s\"?", guess.best);
    else
        weir_fail(&in->err, WEIR_EINVAL, "unknown member%s%s",
                  n < sizeof known ? "; this object accepts: " : "",
                  n < sizeof known ? known : "");
    return at(in, name.text + 1, name.len - 2);
}

/* ---- memory ---- */

struct weir__block {
    struct weir__block *next;
    max_align_t         bytes[];
};

void *weir__arena_alloc(void *arena, size_t size)
{
    weir_arena         *a = arena;
    struct weir__block *b = size < SIZE_MAX - sizeof *b ? calloc(1, sizeof *b + size) : NULL;
    if (!b)
        return NULL;
    b->next = a->blocks;
    a->blocks = b;
    return b->bytes;
}

void weir__arena_free(weir_arena *a)
{
    while (a->blocks) {
        struct weir__block *next = a->blocks->next;
        free(a->blocks);
        a->blocks = next;
    }
}

/* Texts share blocks, so that many jobs need few allocations. */
static char *text_room(weir_reader *in, size_t size)
{
    if (size > BLOCK / 2)
        return in->alloc(in->ctx, size);
    if (size > in->left) {
        in->room = in->alloc(in->ctx, BLOCK);
        in->left = in->room ? BLOCK : 0;
        if (!in->room)
            return NULL;
    }
    char *room = in->room;
    in->room += size;
    in->left -= size;
    return room;
}

/* An array that grows: twice as long each time it is full (at 0, 1, 2, 4 ... elements). */
static void *grown(weir_reader *in, void *array, size_t n, size_t size)
{
    if (n & (n - 1))
        return array;
    void *more = in->alloc(in->ctx, (n ? 2 * n : 1) * size);
    if (more && n)
        memcpy(more, array, n * size);
    return more;
}

/* ---- numbers ---- */

static weir_code read_int(weir_reader *in, piece value, int64_t min, int64_t max, int64_t *out)
{
    const char *s = value.text, *end = s + value.len;
    bool        minus = s < end && *s == '-', over = false;
    uint64_t    n = 0, most = minus ? (uint64_t)INT64_MAX + 1 : (uint64_t)INT64_MAX;
    s += minus;
    for (const char *from = s; s < end; s++) {
        unsigned digit = (unsigned)(unsigned char)*s - '0';
        if (digit > 9)
            return weir__not_a(in, value, *from >= '0' && *from <= '9'
                               ? "a whole number (write it in digits alone)" : "a whole number");
        over = over || n > (most - digit) / 10;
        n = n * 10 + digit;
    }
    int64_t v = minus ? (int64_t)(0 - n) : (int64_t)n;
    if (over || v < min || v > max)
        return weir_fail(&in->err, WEIR_EINVAL, "%.*s, must be between %" PRId64 " and %" PRId64,
                         (int)(value.len < SHOWN ? value.len : SHOWN), value.text, min, max);
    *out = v;
    return WEIR_OK;
}

/* Within what the entry of the table says, if it says anything. */
static weir_code read_number(weir_reader *in, const weir_field *f, piece value, int64_t min,
                             int64_t max, int64_t *out)
{
    bool said = f->min || f->max;
    return read_int(in, value, said ? f->min : min, said ? f->max : max, out);
}

weir_code weir__as_int(weir_reader *in, const weir_field *f, piece value, void *to)
{
    return read_number(in, f, value, INT64_MIN, INT64_MAX, to);
}

weir_code weir__as_int32(weir_reader *in, const weir_field *f, piece value, void *to)
{
    int64_t   n = 0;
    weir_code rc = read_number(in, f, value, INT32_MIN, INT32_MAX, &n);
    if (!rc)
        *(int32_t *)to = (int32_t)n;
    return rc;
}

weir_code weir__as_number(weir_reader *in, const weir_field *f, piece value, void *to)
{
    uint64_t n = 0;
    (void)f;
    for (size_t i = 0; i < value.len; i++) {
        unsigned digit = (unsigned)(unsigned char)value.text[i] - '0';
        if (digit > 9 || n > (UINT64_MAX - digit) / 10)
            return weir__not_a(in, value, "a whole number");
        n = n * 10 + digit;
    }
    *(uint64_t *)to = n;
    return WEIR_OK;
}

weir_code weir__as_any_delivery(weir_reader *in, const weir_field *f, piece value,
                                void *to)
{
    uint64_t n = 0;
    if (weir__as_number(in, f, value, &n))
        return in->err.code;
    if (n > UINT32_MAX)
        return weir__not_a(in, value, "a delivery number");
    *(uint32_t *)to = (uint32_t)n;
    return WEIR_OK;
}

weir_code weir__as_id(weir_reader *in, const weir_field *f, piece value, void *to)
{
    int64_t   n = 0;
    weir_code rc = read_number(in, f, value, 1, INT64_MAX, &n);
    if (!rc)
        *(uint64_t *)to = (uint64_t)n;
    return rc;
}

weir_code weir__as_delivery(weir_reader *in, const weir_field *f, piece value, void *to)
{
    int64_t   n = 0;
    weir_code rc = read_number(in, f, value, 1, UINT32_MAX, &n);
    if (!rc)
        *(uint32_t *)to = (uint32_t)n;
    return rc;
}

weir_code weir__as_moment(weir_reader *in, const weir_field *f, piece value, void *to)
{
    return read_number(in, f, value, 0, WEIR__MAX_AT, to);
}

/* ---- texts ---- */

static bool is(piece value, const char *text)
{
    return value.len == strlen(text) && !memcmp(value.text, text, value.len);
}

/* A short text that names something, into memory of the stack. NULL: it is none of them. */
static const char *short_text(piece value, char *room, size_t size)
{
    size_t len;
    return *value.text == '"' && value.len <= size && weir__json_text(value, room, &len) ? room
                                                                                         : NULL;
}

weir_code weir__as_text(weir_reader *in, const weir_field *f, piece value, void *to)
{
    size_t len;
    if (*value.text != '"')
        return weir__not_a(in, value, "a text");
    char *text = text_room(in, value.len);
    if (!text)
        return no_memory(in);
    if (!weir__json_text(value, text, &len))
        return weir_fail(&in->err, WEIR_EINVAL, "a zero byte in it");
    if (len < (size_t)f->min)
        return weir_fail(&in->err, WEIR_EINVAL, "empty");
    if (f->max && len > (size_t)f->max)
        return weir_fail(&in->err, WEIR_ELIMIT, "%zu bytes, at most %" PRId64, len, f->max);
    *(const char **)to = text;
    return WEIR_OK;
}

weir_code weir__as_type(weir_reader *in, const weir_field *f, piece value, void *to)
{
    weir_code rc = weir__as_text(in, f, value, to);
    if (rc)
        return rc;
    weir_error why;
    rc = weir__type_check(*(const char **)to, "", &why);
    return rc ? weir_fail(&in->err, rc, "%s", why.msg) : WEIR_OK;
}

weir_code weir__as_ms(weir_reader *in, const weir_field *f, piece value, void *to)
{
    char        room[40];
    const char *text = short_text(value, room, sizeof room);
    int64_t     ms = 0, max = f->max ? f->max : WEIR_MAX_MS;
    if (*value.text != '"')
        return read_number(in, f, value, 0, WEIR_MAX_MS, to);
    if (!text)
        return weir__not_a(in, value, "a length of time, like 250ms, 5s, 1m30s or 2h");
    weir_code rc = weir_duration_parse(text, &ms, &in->err);
    if (!rc && (ms < f->min || ms > max))
        rc = weir_fail(&in->err, WEIR_EINVAL, "%s, must be between %" PRId64 " and %" PRId64 " ms",
                       text, f->min, max);
    if (!rc)
        *(int64_t *)to = ms;
    return rc;
}

weir_code weir__as_bool(weir_reader *in, const weir_field *f, piece value, void *to)
{
    (void)f;
    if (!is(value, "true") && !is(value, "false"))
        return weir__not_a(in, value, "true or false");
    *(bool *)to = *value.text == 't';
    return WEIR_OK;
}

/* The words of an enum. parse() is the parser of the enum, and writes one. */
static weir_code as_word(weir_reader *in, piece value, bool (*parse)(const char *text, void *to),
                         const char *words, void *to)
{
    char        room[16];
    const char *text = short_text(value, room, sizeof room);
    return text && parse(text, to) ? WEIR_OK : weir__not_a(in, value, words);
}

static bool parse_state(const char *text, void *to)
{
    return weir_state_parse(text, to);
}

static bool parse_sort(const char *text, void *to)
{
    return weir_sort_parse(text, to);
}

weir_code weir__as_state(weir_reader *in, const weir_field *f, piece value, void *to)
{
    (void)f;
    return as_word(in, value, parse_state,
                   "inactive, delayed, active, complete, failed or cancelled", to);
}

weir_code weir__as_sort(weir_reader *in, const weir_field *f, piece value, void *to)
{
    (void)f;
    return as_word(in, value, parse_sort,
                   "id, created, started, ended, took, attempts or priority", to);
}

weir_code weir__as_priority(weir_reader *in, const weir_field *f, piece value, void *to)
{
    char        room[16];
    const char *text = short_text(value, room, sizeof room);
    if (*value.text != '"')
        return weir__as_int32(in, f, value, to);
    return text && weir_priority_parse(text, to)
               ? WEIR_OK : weir__not_a(in, value, "low, normal, medium, high, critical or a "
                                                  "number");
}

/* ---- raw pieces, parts ---- */

weir_code weir__as_raw(weir_reader *in, const weir_field *f, piece value, void *to)
{
    (void)in, (void)f;
    const char **text = to;
    *text = value.text;
    *(size_t *)(void *)(text + 1) = value.len;
    return WEIR_OK;
}
_Static_assert(offsetof(weir_json_piece, len) == sizeof(char *) &&
                   offsetof(weir_spec, data_len) == offsetof(weir_spec, data) + sizeof(char *),
               "weir__as_raw() sets both");

static weir_code read_backoff_kind(weir_reader *in, const weir_field *f, piece value, void *to)
{
    (void)f;
    weir_backoff_kind *kind = to;
    *kind = is(value, "\"exponential\"") ? WEIR_BACKOFF_EXPONENTIAL
            : is(value, "\"fixed\"")     ? WEIR_BACKOFF_FIXED
            : is(value, "\"linear\"")    ? WEIR_BACKOFF_LINEAR : WEIR_BACKOFF_NONE;
    return *kind || is(value, "\"none\"")
               ? WEIR_OK : weir__not_a(in, value, "\"fixed\", \"linear\", \"exponential\" or "
                                                  "\"none\"");
}

weir_code weir__as_backoff(weir_reader *in, const weir_field *f, piece value, void *to)
{
    static const weir_field fields[] = {
        WEIR_FIELD("type", read_backoff_kind, offsetof(weir_backoff, kind), .needed = true),
        WEIR_FIELD("delay", weir__as_ms, offsetof(weir_backoff, delay_ms)),
        WEIR_FIELD("maxDelay", weir__as_ms, offsetof(weir_backoff, max_ms)),
        WEIR_FIELD("jitter", weir__as_int32, offsetof(weir_backoff, jitter_pct), .max = 100),
        { 0 }
    };
    char        room[80];
    const char *text = short_text(value, room, sizeof room);
    if (text)
        return weir_backoff_parse(text, to, &in->err);
    if (*value.text != '{')
        return weir__not_a(in, value, "an object, or a text like \"exponential:1s:60s\"");
    weir_field part = *f;
    part.fields = fields;
    return weir__as_object(in, &part, value, to);
}

static bool is_named(const weir_field *f, piece name)
{
    return !strncmp(f->name, name.text + 1, name.len - 2) && !f->name[name.len - 2];
}

/* Texts of weir have the order of the table: compare with the next entry first, then with the
 * entries behind it. */
static const weir_field *find(const weir_field *table, const weir_field *next, piece name)
{
    const weir_field *f = next;
    while (f->name && !is_named(f, name))
        f++;
    if (f->name)
        return f;
    for (f = table; f < next && !is_named(f, name); f++)
        continue;
    return f < next ? f : NULL;
}

/* A value of which only the start was known; the walk goes on behind it. */
static piece whole(weir_json_walk *w, piece value)
{
    w->at = weir__json_end(value);
    return (piece){ value.text, (size_t)(w->at - value.text) };
}

weir_code weir__as_object(weir_reader *in, const weir_field *part, piece value, void *to)
{
    const weir_field *table = part->fields, *next = table;
    weir_json_walk    w;
    piece             name, one;
    uint64_t          seen = 0;
    if (!weir__json_open(&w, value) || !w.object)
        return weir__not_a(in, value, "an object");
    while (weir__json_begin(&w, &name, &one)) {
        const weir_field *f = find(table, next, name);
        if (!f && in->lenient) {
            whole(&w, one);
            continue;
        }
        if (!f)
            return unknown(in, table, name);
        next = f + 1;
        if (!f->inside)
            one = whole(&w, one);
        assert(f - table < 64);
        uint64_t bit = UINT64_C(1) << (f - table);
        if (seen & bit)
            weir_fail(&in->err, WEIR_EINVAL, "is given twice");
        if ((seen & bit) || f->read(in, f, one, (char *)to + f->offset))
            return at(in, f->name, strlen(f->name));
        seen |= bit;
        if (f->given)
            *((bool *)to + f->given) = true;
        if (f->inside)
            w.at = in->end;
    }
    in->end = name.text + 1;
    for (const weir_field *f = table; f->name; f++) {
        if (f->needed && !(seen >> (f - table) & 1)) {
            weir_fail(&in->err, WEIR_EINVAL, "missing");
            return at(in, f->name, strlen(f->name));
        }
    }
    return WEIR_OK;
}

/* ---- lists ---- */

weir_code weir__read_list(weir_reader *in, const weir_field *f, piece value, size_t size,
                          weir_field_read *read, void **array, size_t *n)
{
    static const weir_field one_of_it = { 0 };
    weir_json_walk          w;
    piece                   none, one;
    if (!weir__json_open(&w, value) || w.object)
        return weir__not_a(in, value, "a list");
    *n = 0;
    while (weir__json_begin(&w, &none, &one)) {
        if (!f->inside)
            one = whole(&w, one);
        if (f->max && *n == (size_t)f->max)
            return weir_fail(&in->err, WEIR_ELIMIT, "more than %" PRId64 " of them", f->max);
        *array = grown(in, *array, *n, size);
        if (!*array)
            return no_memory(in);
        if (read(in, read == weir__as_object ? f : &one_of_it, one, (char *)*array + *n * size))
            return at_index(in, *n);
        ++*n;
        if (f->inside)
            w.at = in->end;
    }
    in->end = none.text + 1;
    if (*n < (size_t)f->min)
        return weir_fail(&in->err, WEIR_EINVAL, "%zu of them, at least %" PRId64, *n, f->min);
    return WEIR_OK;
}

weir_code weir__as_texts(weir_reader *in, const weir_field *f, piece value, void *to)
{
    weir_texts *t = to;
    void       *list = NULL;
    weir_code   rc = weir__read_list(in, f, value, sizeof *t->text, weir__as_text, &list, &t->n);
    if (!rc && !(list = grown(in, list, t->n, sizeof *t->text)))
        rc = no_memory(in);
    t->text = list;
    if (!rc)
        t->text[t->n] = NULL;
    return rc;
}

weir_code weir__as_ids(weir_reader *in, const weir_field *f, piece value, void *to)
{
    weir_ids *ids = to;
    void     *list = NULL;
    weir_code rc = weir__read_list(in, f, value, sizeof *ids->id, weir__as_id, &list, &ids->n);
    ids->id = list;
    return rc;
}

weir_code weir__as_list(weir_reader *in, const weir_field *f, piece value, void *to)
{
    weir_items *items = to;
    items->item = NULL;
    return weir__read_list(in, f, value, f->size, weir__as_object, &items->item, &items->n);
}

weir_code weir__as_states(weir_reader *in, const weir_field *f, piece value, void *to)
{
    weir_json_walk w;
    piece          none, one;
    weir_state     state;
    uint32_t       bits = 0;
    if (!weir__json_open(&w, value)) {
        if (weir__as_state(in, f, value, &state))
            return in->err.code;
        *(uint32_t *)to = WEIR_BIT(state);
        return WEIR_OK;
    }
    if (w.object)
        return weir__not_a(in, value, "a list of states");
    for (size_t i = 0; weir__json_next(&w, &none, &one); i++) {
        if (weir__as_state(in, f, one, &state))
            return at_index(in, i);
        bits |= WEIR_BIT(state);
    }
    if (!bits)
        return weir_fail(&in->err, WEIR_EINVAL, "no state in it");
    *(uint32_t *)to = bits;
    return WEIR_OK;
}

/* ---- all of it ---- */

weir_code weir__read_check(weir_reader *in, const char *text, size_t len, int depth)
{
    size_t      where;
    const char *why;
    in->err = (weir_error){ 0 };
    bool valid = in->shallow =
        weir__json_valid(text, len, depth < WEIR_MAX_DEPTH ? depth : WEIR_MAX_DEPTH, &where, &why);
    if (!valid && why == weir__json_too_deep && depth > WEIR_MAX_DEPTH)
        valid = weir__json_valid(text, len, depth, &where, &why);
    if (valid)
        return WEIR_OK;
    if (why == weir__json_too_deep)
        return weir_fail(&in->err, WEIR_ELIMIT, "%s at byte %zu, at most %d levels", why, where,
                         depth);
    return weir_fail(&in->err, WEIR_EINVAL, "not JSON at byte %zu: %s", where, why);
}

/* The name goes in front of what is wrong. */
static weir_code named(weir_reader *in, weir_code rc)
{
    if (rc && *in->err.field)
        weir__fail_field(&in->err, rc, in->err.field, "%s", in->err.msg);
    return rc;
}

weir_code weir__read(weir_reader *in, const weir_field *table, piece object, void *out)
{
    in->err = (weir_error){ 0 };
    return named(in, weir__as_object(in, &(weir_field){ .fields = table }, object, out));
}
