/* api_log.c - what is said of a job while it runs: its log, its progress and its values. */
#include <string.h>

#include "server/api.h"
#include "server/body.h"

enum { LINES = 100 };

/* ---- GET /v1/jobs/{id}/log ---- */

typedef struct reading {
    weir_lines *lines;
    int64_t     limit;
} reading;

static void lines_read(srv_request *r, weir_code code, const weir_error *err)
{
    const reading *l = r->state;
    weir_buf       body = { 0 };
    if (srv_failed(r, code, err))
        return;
    const weir_line *line = l->lines->line;
    size_t           n = l->lines->n;
    weir__buf_str(&body, "{\"lines\":[");
    for (size_t i = 0; i < n; i++) {
        weir__buf_str(&body, i ? ",{\"n\":" : "{\"n\":");
        weir__buf_uint(&body, line[i].n);
        weir__buf_str(&body, ",\"at\":");
        weir__buf_int(&body, line[i].at);
        weir__buf_str(&body, ",\"text\":");
        weir__json_string(&body, line[i].text, strlen(line[i].text));
        weir__buf_char(&body, '}');
    }
    weir__buf_str(&body, "],\"next\":");
    if (n == (size_t)l->limit)          /* there may be more */
        weir__buf_uint(&body, line[n - 1].n);
    else
        weir__buf_str(&body, "null");
    weir__buf_char(&body, '}');
    weir_lines_release(l->lines);
    srv_reply_json(r, 200, &body);
}

static void read_it(srv_request *r, uint64_t id)
{
    weir_error   err = { 0 };
    weir_future *f = NULL;
    int64_t      after = 0;
    reading     *l;
    if (!SRV_STATE(r, l))
        return;
    l->limit = LINES;
    if (!srv_query_int(r, "after", 0, (int64_t)WEIR_MAX_ID, &after) ||
        !srv_query_int(r, "limit", 1, WEIR_MAX_PAGE, &l->limit))
        return;
    weir_code rc = weir_logs_async(srv_queue(r), id, (uint64_t)after, (size_t)l->limit, &l->lines,
                                   &f, &err);
    srv_await(r, rc, &err, f, lines_read);
}

static void read_log(srv_request *r)
{
    srv_on_job(r, WEIR_ROLE_READ, read_it);
}

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

static void said(srv_request *r, weir_code code, const weir_error *err)
{
    if (!srv_failed(r, code, err))
        srv_reply_empty(r, 204);
}

static void write_it(srv_request *r, uint64_t id)
{
    weir_error   err = { 0 };
    weir_future *f = NULL;
    entry        e = { 0 };
    if (!srv_body(r, entry_fields, &e))
        return;
    weir_code rc = weir_log_by_async(srv_queue(r), id, e.delivery, e.text, strlen(e.text), &f,
                                     &err);
    srv_await(r, rc, &err, f, said);
}

static void write_log(srv_request *r)
{
    srv_on_job(r, WEIR_ROLE_WORK, write_it);
}

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
    srv_await(r, rc, &err, f, said);
}

static void note_progress(srv_request *r)
{
    srv_on_job(r, WEIR_ROLE_WORK, note_it);
}

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
    weir_code   rc = weir_update_async(srv_queue(r), id, &change, &f, &err);
    srv_await(r, rc, &err, f, said);
}

static void set_values(srv_request *r)
{
    srv_on_job(r, WEIR_ROLE_WORK, set_them);
}

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
