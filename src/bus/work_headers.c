/* work_headers.c - the headers of persistent work: the value "headers" of its job, an object of
 * texts. See work_store.h. */
#include "bus/work_store.h"

#include <string.h>

#include "base/json.h"

static const char name[] = "headers";

/* The first of a name counts, as in weir_message_header(). */
static bool is_repeated(const weir_header *h, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (strcmp(h[k].name, h[i].name) == 0)
            return true;
    return false;
}

void weir__work_write_headers(weir_buf *out, const weir_message *m)
{
    size_t             n;
    const weir_header *h = weir_message_headers(m, &n);
    if (!n)
        return;
    weir__buf_printf(out, "{\"%s\":", name);
    for (size_t i = 0; i < n; i++) {
        if (is_repeated(h, i))
            continue;
        weir__buf_char(out, i ? ',' : '{');
        weir__json_string(out, h[i].name, strlen(h[i].name));
        weir__buf_char(out, ':');
        weir__json_string(out, h[i].value, strlen(h[i].value));
    }
    weir__buf_str(out, "}}");
}

/* A text in memory of the work; NULL: it is none, or there is no memory. */
static const char *read_text(work *w, weir_json_piece value)
{
    size_t len;
    char  *to = *value.text == '"' ? weir__arena_alloc(&w->arena, value.len) : NULL;
    return to && weir__json_text(value, to, &len) ? to : NULL;
}

static void read_object(work *w, weir_json_piece object)
{
    weir_json_walk  walk;
    weir_json_piece key, value;
    weir_header    *h = weir__arena_alloc(&w->arena, WEIR_MAX_BUS_HEADERS * sizeof *h);
    if (!h || *object.text != '{' || !weir__json_open(&walk, object))
        return;
    w->headers = h;
    while (w->n_headers < WEIR_MAX_BUS_HEADERS && weir__json_next(&walk, &key, &value)) {
        h[w->n_headers] = (weir_header){ read_text(w, key), read_text(w, value) };
        w->n_headers += h[w->n_headers].name && h[w->n_headers].value;
    }
}

void weir__work_read_headers(work *w)
{
    weir_json_walk  walk;
    weir_json_piece key, value;
    if (!w->job->values ||
        !weir__json_open(&walk, (weir_json_piece){ w->job->values, w->job->values_len }))
        return;
    while (weir__json_next(&walk, &key, &value))
        if (key.len == sizeof name + 1 && memcmp(key.text + 1, name, sizeof name - 1) == 0)
            read_object(w, value);
}
