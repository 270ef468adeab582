/* api_log.c - what is said of a job while it runs: its log, its progress and its values. */
#include <string.h>

#include "server/api/api.h"
#include "server/http/body.h"
#include "server/http/parts.h"

enum { LINES = 100, FIRST = 10, AT_ONCE = 100 };

/* ---- GET /v1/jobs/{id}/log ---- */

/* A log may be large: it is read and sent in parts, and a page ends early at SRV_MAX_PAGE. */
typedef struct reading {
    srv_parts   parts;
    uint64_t    id, after;
    size_t      n, left;            /* lines so far, and lines still to read */
    size_t      asked;
    size_t      bytes;              /* of the page so far */
    weir_lines *lines;
} reading;

static void add_line(weir_buf *out, const weir_line *line, bool first)
{
    weir__buf_str(out, first ? "{\"n\":" : ",{\"n\":");
    weir__buf_uint(out, line->n);
    weir__buf_str(out, ",\"at\":");
    weir__buf_int(out, line->at);
    weir__buf_str(out, ",\"text\":");
    weir__json_string(out, line->text, strlen(line->text));
    weir__buf_char(out, '}');
}

static void lines_read(srv_request *r, weir_code code, const weir_error *err)
{
    reading  *l = r->state;
    weir_buf *out = &l->parts.body;
    size_t    before = out->len;
    if (srv_part_failed(r, code, err))
        return;
    size_t n = l->lines->n;
    for (size_t i = 0; i < n; i++)
        add_line(out, &l->lines->line[i], !l->n++);
    if (n)
        l->after = l->lines->line[n - 1].n;
    weir_lines_free(l->lines);
    l->left -= n;
    l->bytes += out->len - before;
    if (n == l->asked && l->left && l->bytes < SRV_MAX_PAGE) {
        srv_parts_go_on(r);
        return;
    }
    weir__buf_str(out, "],\"next\":");
    if (n == l->asked)                  /* there may be more */
        weir__buf_uint(out, l->after);
    else
        weir__buf_str(out, "null");
    weir__buf_char(out, '}');
    srv_parts_end(r);
}

static void read_part(srv_request *r)
{
    reading     *l = r->state;
    weir_error   err = { 0 };
    weir_future *f = NULL;
    size_t       fit = l->n ? srv_parts_items(l->n, l->bytes) : FIRST;
    l->asked = fit < AT_ONCE ? fit : AT_ONCE;
    if (l->asked > l->left)
        l->asked = l->left;
    weir_code rc = weir_logs_async(srv_queue(r), l->id, l->after, l->asked, &l->lines, &f, &err);
    srv_await(r, rc, &err, f, lines_read);
}

static void read_it(srv_request *r, uint64_t id)
{
    int64_t  after = 0, limit = LINES;
    reading *l;
    if (!SRV_STATE(r, l) || !srv_query_int(r, "after", 0, (int64_t)WEIR_MAX_ID, &after) ||
        !srv_query_int(r, "limit", 1, WEIR_MAX_PAGE, &limit) ||
        !srv_parts_begin(r, &l->parts, SRV_JSON, read_part))
        return;
    l->id = id;
    l->after = (uint64_t)after;
    l->left = (size_t)limit;
    weir__buf_str(&l->parts.body, "{\"lines\":[");
    read_part(r);
}

SRV_ON_JOB(read_log, WEIR_ROLE_READ, read_it)

/* ---- POST /v1/jobs/{id}/log ---- */

typedef struct entry {
    const char *text;
    uint32_t    delivery;
} entry;

static const weir_field entry_fields[] = {
    WEIR_FIELD("text", weir__as_text, offsetof(entry, text), .needed = true),
    WEIR_FIELD("delivery", weir__as_delivery, offsetof(entry, delivery)),
    { 0 }
};

static void write_it(srv_request *r, uint64_t id)
{
    weir_error   err = { 0 };
    weir_future *f = NULL;
    entry        e = { 0 };
    if (!srv_body(r, entry_fields, &e))
        return;
    weir_code rc = weir_log_async(srv_queue(r), id, e.delivery, e.text, strlen(e.text), &f, &err);
    srv_await(r, rc, &err, f, srv_reply_done);
}

SRV_ON_JOB(write_log, WEIR_ROLE_WORK, write_it)

/* ---- POST /v1/jobs/{id}/progress ---- */

typedef struct progress {
    uint32_t        delivery;
    int64_t         done, total;
    weir_json_piece data;
} progress;

#define AT(member) offsetof(progress, member)
static const weir_field progress_fields[] = {
    WEIR_FIELD("delivery", weir__as_delivery, AT(delivery), .needed = true),
    WEIR_FIELD("done", weir__as_int, AT(done), .needed = true, .min = 0, .max = INT64_MAX),
    WEIR_FIELD("total", weir__as_int, AT(total), .needed = true, .min = 1, .max = INT64_MAX),
    WEIR_FIELD("data", weir__as_raw, AT(data)),
    { 0 }
};
#undef AT

static void note_it(srv_request *r, uint64_t id)
{
    weir_error   err = { 0 };
    weir_future *f = NULL;
    progress     p = { 0 };
    if (!srv_body(r, progress_fields, &p))
        return;
    weir_code rc = weir_progress_async(srv_queue(r), id, p.delivery,
                                       weir__percent(p.done, p.total), p.data.text, p.data.len, &f,
                                       &err);
    srv_await(r, rc, &err, f, srv_reply_done);
}

SRV_ON_JOB(note_progress, WEIR_ROLE_WORK, note_it)

/* ---- POST /v1/jobs/{id}/values ---- */

typedef struct setting {
    weir_json_piece values;
    uint32_t        delivery;
} setting;

static const weir_field setting_fields[] = {
    WEIR_FIELD("values", weir__as_raw, offsetof(setting, values), .needed = true),
    WEIR_FIELD("delivery", weir__as_delivery, offsetof(setting, delivery)),
    { 0 }
};

static void set_them(srv_request *r, uint64_t id)
{
    weir_error   err = { 0 };
    weir_future *f = NULL;
    setting      s = { .delivery = 0 };
    if (!srv_body(r, setting_fields, &s))
        return;
    weir_change change = { .values = s.values.text, .values_len = s.values.len,
                           .delivery = s.delivery };
    weir_code   rc = weir_update_async(srv_queue(r), id, &change, NULL, &f, &err);
    srv_await(r, rc, &err, f, srv_reply_done);
}

SRV_ON_JOB(set_values, WEIR_ROLE_WORK, set_them)

/* ---- routes ---- */

static const srv_param log_query[] = {
    { "after", SRV_P_INT, "lines after this number; \"next\" of the page before" },
    { "limit", SRV_P_INT, "lines in the page, 1 to 1000 (100)" },
    { 0 }
};

const srv_route srv_log_routes[] = {
    { "GET", "/v1/jobs/{id}/log", WEIR_ROLE_READ, read_log, 0, log_query, 0,
      "The log of a job, oldest line first", NULL, "LogPage", 200 },
    { "POST", "/v1/jobs/{id}/log", WEIR_ROLE_WORK, write_log, SRV_MAX_SMALL_BODY, NULL, 0,
      "Add a line to the log of a job", "LogLine", NULL, 204 },
    { "POST", "/v1/jobs/{id}/progress", WEIR_ROLE_WORK, note_progress, SRV_MAX_SMALL_BODY, NULL, 0,
      "Say how far a delivery of a job is; extends its ttl", "Progress", NULL, 204 },
    { "POST", "/v1/jobs/{id}/values", WEIR_ROLE_WORK, set_values, SRV_MAX_SMALL_BODY, NULL, 0,
      "Set values of a job, in any state; null removes one", "ValuesChange", NULL, 204 },
    { 0 }
};
