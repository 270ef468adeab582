/* data.c - single members of a job's data, and its values: see weir/data.h. */
#include "weir/data.h"

#include <float.h>
#include <locale.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "core/condition.h"
#include "core/job.h"

typedef weir_json_piece piece;

/* ---- paths ---- */

/* One step of a path: the name of a member, or the number of an element. */
typedef struct step {
    const char *name;               /* NULL: an element */
    size_t      len;
    uint64_t    index;
} step;

/* "[12]" or "[\"a.b\"]"; NULL: it is neither. Else where the path goes on. */
static const char *read_bracket(const char *path, step *out)
{
    const char *s = path + 1;
    *out = (step){ 0 };
    if (*s == '"') {
        const char *end = strstr(s + 1, "\"]");
        out->name = s + 1;
        out->len = end ? (size_t)(end - s - 1) : 0;
        return end ? end + 2 : NULL;
    }
    const char *digits = s;
    for (; *s >= '0' && *s <= '9'; s++) {
        if (s - digits > 9)
            return NULL;
        out->index = out->index * 10 + (uint64_t)(*s - '0');
    }
    return s > digits && *s == ']' ? s + 1 : NULL;
}

static const char *read_step(const char *path, bool first, step *out)
{
    if (*path == '[')
        return read_bracket(path, out);
    if (!first && *path++ != '.')
        return NULL;
    *out = (step){ .name = path, .len = strcspn(path, ".[") };
    return out->len ? path + out->len : NULL;
}

size_t weir__path_wrong(const char *path)
{
    step s;
    for (const char *at = path, *next; *at; at = next) {
        next = read_step(at, at == path, &s);
        if (!next)
            return (size_t)(at - path);
    }
    return SIZE_MAX;
}

/* ---- finding ---- */

static bool is_name(piece name, const char *text, size_t len)
{
    if (!memchr(name.text, '\\', name.len))
        return name.len == len + 2 && !memcmp(name.text + 1, text, len);
    char   small[256], *plain = name.len <= sizeof small ? small : malloc(name.len);
    size_t n = 0;
    bool   same = plain && weir__json_text(name, plain, &n) && n == len && !memcmp(plain, text, n);
    if (plain != small)
        free(plain);
    return same;
}

static bool find_step(piece *value, const step *s)
{
    weir_json_walk w;
    piece          name, next;
    bool           found = false;
    if (!weir__json_open(&w, *value) || w.object != (s->name != NULL))
        return false;
    for (uint64_t i = 0; weir__json_next(&w, &name, &next); i++) {
        if (s->name ? !is_name(name, s->name, s->len) : i != s->index)
            continue;
        *value = next;
        found = true;
        if (!s->name)
            break;
    }
    return found;
}

static const piece nothing;         /* its text is NULL */

static piece find(const weir_job *job, const char *path)
{
    const char *from = path;
    piece       at = { job->data, job->data_len };
    step        s;
    if (!job->data)
        return nothing;
    while (*path) {
        path = read_step(path, path == from, &s);
        if (!path || !find_step(&at, &s))
            return nothing;
    }
    size_t space = strspn(at.text, " \t\r\n");
    at.text += space;
    at.len = (size_t)(weir__json_end((piece){ at.text, at.len - space }) - at.text);
    return at.len ? at : nothing;
}

/* A value is one of the members, whatever its name looks like. */
static piece find_value(const weir_job *job, const char *name)
{
    piece at = { job->values, job->values_len };
    step  s = { .name = name, .len = strlen(name) };
    return job->values && find_step(&at, &s) ? at : nothing;
}

/* ---- numbers ---- */

static locale_t       plain_locale;
static pthread_once_t plain_once = PTHREAD_ONCE_INIT;

static void make_locale(void)
{
    plain_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

/* The text behind a number is never part of one, so strtod() stops where the number does. */
static bool to_number(piece value, double *out)
{
    if (*value.text != '-' && (*value.text < '0' || *value.text > '9'))
        return false;
    pthread_once(&plain_once, make_locale);     /* in another locale, "1.5" may be written "1,5" */
    if (!plain_locale)
        return false;
    *out = strtod_l(value.text, NULL, plain_locale);
    return *out >= -DBL_MAX && *out <= DBL_MAX;
}

static bool to_int(piece value, int64_t *out)
{
    const double LIMIT = 9223372036854775808.0;         /* 2^63 */
    const char  *s = value.text, *end = s + value.len;
    bool         minus = *s == '-';
    uint64_t     n = 0, most = (uint64_t)INT64_MAX + minus;
    for (s += minus; s < end && *s >= '0' && *s <= '9'; s++) {
        unsigned digit = (unsigned)(*s - '0');
        if (n > (most - digit) / 10)
            return false;
        n = n * 10 + digit;
    }
    if (s == end) {
        *out = minus ? (int64_t)(0 - n) : (int64_t)n;
        return value.len > minus;
    }
    double d;
    if (!to_number(value, &d) || d < -LIMIT || d >= LIMIT || d != (double)(int64_t)d)
        return false;
    *out = (int64_t)d;
    return true;
}

static int64_t int_of(piece value, int64_t otherwise)
{
    int64_t n;
    return value.text && to_int(value, &n) ? n : otherwise;
}

int64_t weir_data_int(const weir_job *job, const char *path, int64_t otherwise)
{
    return int_of(find(job, path), otherwise);
}

int64_t weir_value_int(const weir_job *job, const char *name, int64_t otherwise)
{
    return int_of(find_value(job, name), otherwise);
}

static double number_of(piece value, double otherwise)
{
    double d;
    return value.text && to_number(value, &d) ? d : otherwise;
}

double weir_data_number(const weir_job *job, const char *path, double otherwise)
{
    return number_of(find(job, path), otherwise);
}

double weir_value_number(const weir_job *job, const char *name, double otherwise)
{
    return number_of(find_value(job, name), otherwise);
}

static bool bool_of(piece value, bool otherwise)
{
    return !value.text ? otherwise : *value.text == 't' || (*value.text != 'f' && otherwise);
}

bool weir_data_bool(const weir_job *job, const char *path, bool otherwise)
{
    return bool_of(find(job, path), otherwise);
}

bool weir_value_bool(const weir_job *job, const char *name, bool otherwise)
{
    return bool_of(find_value(job, name), otherwise);
}

/* ---- texts ---- */

/* A text that was asked for. The list is only ever added to, at its head, by any thread. */
struct weir__texts {
    struct weir__texts *next;
    const char         *from;       /* where the string begins in the job */
    char                text[];
};

static const char *kept_text(struct weir__texts *t, const char *from)
{
    while (t && t->from != from)
        t = t->next;
    return t ? t->text : NULL;
}

static const char *text_of(weir_job *job, piece value, const char *otherwise)
{
    size_t len;
    if (!value.text || *value.text != '"')
        return otherwise;
    struct weir__texts *first = __atomic_load_n(&job->texts, __ATOMIC_ACQUIRE);
    const char         *text = kept_text(first, value.text);
    if (text)
        return text;
    struct weir__texts *t = malloc(sizeof *t + value.len);
    if (!t || !weir__json_text(value, t->text, &len)) {
        free(t);
        return otherwise;
    }
    t->from = value.text;
    t->next = first;
    while (!__atomic_compare_exchange_n(&job->texts, &t->next, t, true, __ATOMIC_ACQ_REL,
                                        __ATOMIC_ACQUIRE))
        ;
    return t->text;
}

const char *weir_data_text(weir_job *job, const char *path, const char *otherwise)
{
    return text_of(job, find(job, path), otherwise);
}

const char *weir_value_text(weir_job *job, const char *name, const char *otherwise)
{
    return text_of(job, find_value(job, name), otherwise);
}

bool weir_json_valid(const char *text, size_t len)
{
    size_t      where;
    const char *why;
    return weir__json_valid(text, len, WEIR_MAX_DEPTH, &where, &why);
}

void weir__texts_free(struct weir__texts *t)
{
    while (t) {
        struct weir__texts *next = t->next;
        free(t);
        t = next;
    }
}
