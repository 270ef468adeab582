/* kue_step.c - the steps of which the requests of Kue's and Vert.x Kue's APIs are made, and their
 * answers. Every answer goes through finish(), which releases what the request held. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/fail.h"
#include "core/history.h"
#include "core/job.h"
#include "server/access/audit.h"
#include "server/api/api.h"
#include "server/kue/kue.h"
#include "server/live/workers.h"

enum { FIRST_LINES = 10, LINES_AT_ONCE = 100 };

/* ---- answers ---- */

static void release(srv_kue *k)
{
    weir_job_free(k->job);
    weir_stats_free(k->stats);
    weir_lines_free(k->lines);
    weir_page_free(k->page);
    k->job = NULL;
    k->stats = NULL;
    k->lines = NULL;
    k->page = NULL;
}

static void finish(srv_request *r, int status)
{
    srv_kue *k = r->state;
    weir_buf body = k->out, pretty = { 0 };
    release(k);
    r->state = NULL;
    if (!k->api->vertx) {
        srv_reply(r, status, "application/json; charset=utf-8", &body);
        return;
    }
    if (body.failed)
        pretty.failed = true;
    else
        srv_json_pretty(&pretty, body.data, body.len);
    weir__buf_fini(&body);
    srv_reply(r, status, "application/json", &pretty);
}

void srv_kue_reply(srv_request *r, int status)
{
    finish(r, status);
}

/* {"NAME":"text"} */
static void reply_text(srv_request *r, int status, const char *name, const char *text)
{
    srv_kue *k = r->state;
    weir__buf_fini(&k->out);
    weir__buf_printf(&k->out, "{\"%s\":", name);
    weir__json_string(&k->out, text, strlen(text));
    weir__buf_char(&k->out, '}');
    finish(r, status);
}

void srv_kue_message(srv_request *r, int status, const char *fmt, ...)
{
    char text[WEIR_ERROR_MAX];
    WEIR__FORMAT(text, fmt);
    reply_text(r, status, "message", text);
}

void srv_kue_error(srv_request *r, int status, const char *fmt, ...)
{
    char text[WEIR_ERROR_MAX];
    WEIR__FORMAT(text, fmt);
    if (status < 400)
        srv_audit_failed(r, 400);
    reply_text(r, status, "error", text);
}

void srv_kue_failed(srv_request *r, const weir_error *err)
{
    weir_error copy = *err;         /* it may be in what is released */
    if (weir_code_may_retry(copy.code))
        srv_reply_header(r, "Retry-After", "1");
    reply_text(r, weir_code_http(copy.code), "error", copy.msg);
}

void srv_kue_empty(srv_request *r, int status)
{
    srv_kue *k = r->state;
    weir__buf_fini(&k->out);
    release(k);
    r->state = NULL;
    srv_reply_empty(r, status);
}

/* ---- does the client accept JSON? ---- */

/* How well a media range fits application/json: 3 itself, 2 "application", 1 anything, 0 not. One
 * with parameters of its own is another type. */
static int fit(const char *range, size_t len)
{
    static const struct {
        const char *range;
        int         fit;
    } fits[] = { { "application/json", 3 }, { "application/*", 2 }, { "*/*", 1 } };
    for (size_t i = 0; i < sizeof fits / sizeof *fits; i++) {
        if (len == strlen(fits[i].range) && !strncasecmp(range, fits[i].range, len))
            return fits[i].fit;
    }
    return 0;
}

static const char *trim(const char *text, size_t *len)
{
    while (*len && (*text == ' ' || *text == '\t'))
        text++, --*len;
    while (*len && (text[*len - 1] == ' ' || text[*len - 1] == '\t'))
        --*len;
    return text;
}

/* Is a parameter a quality? *none: of 0. */
static bool quality(const char *param, size_t len, bool *none)
{
    if (len < 2 || (*param != 'q' && *param != 'Q') || param[1] != '=')
        return false;
    *none = true;
    for (size_t i = 2; i < len; i++)
        *none = *none && (param[i] == '0' || param[i] == '.');
    return true;
}

/* One of the list: how well it fits, and whether it says that it is not wanted. */
static int read_range(const char *text, size_t len, bool *none)
{
    const char *end = text + len, *semi = memchr(text, ';', len);
    size_t      name = semi ? (size_t)(semi - text) : len;
    text = trim(text, &name);
    int how = fit(text, name);
    *none = false;
    while (semi) {
        const char *param = semi + 1;
        semi = memchr(param, ';', (size_t)(end - param));
        size_t n = (size_t)((semi ? semi : end) - param);
        param = trim(param, &n);
        if (n && !quality(param, n, none))
            how = 0;
    }
    return how;
}

bool srv_accepts_json(const char *accept)
{
    int  best = 0;
    bool wanted = false;
    if (!accept)
        return true;
    while (*accept) {
        size_t len = strcspn(accept, ",");
        bool   none;
        int    how = read_range(accept, len, &none);
        if (how > best) {
            best = how;
            wanted = !none;
        }
        accept += len + (accept[len] == ',');
    }
    return wanted;
}

/* ---- steps ---- */

srv_kue *srv_kue_begin(srv_request *r, const srv_kue_api *api)
{
    if (!api->vertx && !srv_accepts_json(srv_header(r, "accept"))) {
        srv_reply_status(r, 404, "route", "%s %s answers with JSON, which the request does not "
                                          "accept", r->method, r->path);
        return NULL;
    }
    srv_kue *k = srv_alloc(r, sizeof *k);
    if (!k) {
        srv_reply_fail(r, WEIR_ENOMEM, NULL, "out of memory");
        return NULL;
    }
    k->api = api;
    r->state = k;
    return k;
}

static void *reader_alloc(void *r, size_t size)
{
    return srv_alloc(r, size);
}

weir_reader srv_kue_reader(srv_request *r)
{
    return (weir_reader){ .alloc = reader_alloc, .ctx = r };
}

uint64_t srv_kue_id(const char *text)
{
    uint64_t id = 0;
    if (*text == '0' || strlen(text) > 15)
        return 0;
    for (; *text; text++) {
        if (*text < '0' || *text > '9')
            return 0;
        id = id * 10 + (uint64_t)(*text - '0');
    }
    return id;
}

/* A job of another type than the token's does not exist. */
static void got_job(srv_request *r, weir_code code, const weir_error *err)
{
    srv_kue *k = r->state;
    if (!code && !srv_may(r, WEIR_ROLE_READ, k->job->type)) {
        code = weir_fail(&k->err, WEIR_ENOENT, "no such job");
        err = &k->err;
    }
    k->then(r, code, err);
}

void srv_kue_get(srv_request *r, uint64_t id, srv_then *then)
{
    srv_kue     *k = r->state;
    weir_future *f = NULL;
    k->then = then;
    weir_code rc = id ? weir_get_async(srv_queue(r), id, &k->job, &f, &k->err)
                      : weir_fail(&k->err, WEIR_ENOENT, "no such job");
    srv_await(r, rc, &k->err, f, got_job);
}

void srv_kue_move(const weir_job *j, weir_state state, weir_change *out)
{
    if (j->state == state)
        return;
    out->state = state;
    /* When Kue would have it promoted: its delay behind its last failure, or its making. */
    if (state == WEIR_STATE_DELAYED && !out->set_delay)
        out->run_at = (j->failed_at ? j->failed_at : j->created_at) + j->delay_ms;
}

/* Did this caller make it active by hand, and nobody change it since? Then the caller has it. */
static bool is_callers_own(srv_request *r, const weir_job *j)
{
    weir_reader in = srv_kue_reader(r);
    weir_items  past = { 0 };
    const char *name = srv_worker_name(r);
    if (j->state != WEIR_STATE_ACTIVE || !name || !j->worker || strcmp(j->worker, name) ||
        !j->history || weir__history_read(&in, j->history, j->history_len, &past) || !past.n)
        return false;
    const weir_history_entry *last = (const weir_history_entry *)past.item + past.n - 1;
    return last->kind == WEIR__HISTORY_SET && last->state == WEIR_STATE_ACTIVE;
}

static void ended(srv_request *r, weir_code code, const weir_error *err)
{
    srv_kue *k = r->state;
    if (!code && k->ended.err.code) {
        code = k->ended.err.code;
        err = &k->ended.err;
    }
    k->then(r, code, err);
}

/* False: that is no end of a delivery. */
static bool end_own(srv_request *r, weir_state state, srv_then *then)
{
    static const struct {
        weir_outcome outcome;
        const char  *text;
        bool         known;
    } ends[WEIR_STATE_COUNT] = {
        [WEIR_STATE_COMPLETE] = { WEIR_OUTCOME_DONE, NULL, true },
        [WEIR_STATE_FAILED]   = { WEIR_OUTCOME_GIVE_UP, WEIR__BY_HAND_TEXT, true },
        [WEIR_STATE_INACTIVE] = { WEIR_OUTCOME_RETURN, NULL, true },
    };
    srv_kue     *k = r->state;
    weir_future *f = NULL;
    if (!ends[state].known || !is_callers_own(r, k->job))
        return false;
    weir_ending end = { .id = k->job->id, .delivery = k->job->delivery,
                        .outcome = ends[state].outcome, .text = ends[state].text };
    k->then = then;
    weir_code rc = weir_finish_async(srv_queue(r), &end, 1, &k->ended, &f, &k->err);
    srv_await(r, rc, &k->err, f, ended);
    return true;
}

void srv_kue_change(srv_request *r, const weir_change *change, srv_then *then)
{
    srv_kue     *k = r->state;
    weir_future *f = NULL;
    weir_change  c = *change;
    if (!c.state && !c.set_priority && !c.set_delay && !c.data && !c.values) {
        then(r, WEIR_OK, NULL);
        return;
    }
    c.from = WEIR_BIT(k->job->state);
    if (c.state == WEIR_STATE_ACTIVE)
        c.worker = srv_worker_name(r);
    weir_code rc = weir_update_async(srv_queue(r), k->job->id, &c, NULL, &f, &k->err);
    srv_await(r, rc, &k->err, f, then);
}

/* A job that this caller has made active, and nobody else since, is ended as its delivery. */
static void set_state(srv_request *r, weir_state state, srv_then *then)
{
    srv_kue    *k = r->state;
    weir_change change = { 0 };
    if (end_own(r, state, then))
        return;
    srv_kue_move(k->job, state, &change);
    srv_kue_change(r, &change, then);
}

bool srv_kue_scope(const srv_request *r, const char *asked, const char **type)
{
    *type = asked ? asked : srv_caller_only_type(&r->who);
    return !asked || !srv_caller_lacks(&r->who, asked);
}

bool srv_kue_unscoped(srv_request *r, const char *asked)
{
    char types[150];
    if (asked || !*r->who.types || srv_caller_only_type(&r->who))
        return false;
    srv_kue_error(r, 403, "this token is for several types of jobs: name one (%s)",
                  srv_caller_types_text(&r->who, types, sizeof types));
    return true;
}

static void state_set(srv_request *r, weir_code code, const weir_error *err)
{
    const srv_kue_api *api = ((srv_kue *)r->state)->api;
    if (code)
        api->failed(r, err);
    else
        srv_kue_message(r, 200, "%s", api->state_set);
}

void srv_kue_put_state(srv_request *r, weir_code code, const weir_error *err)
{
    const srv_kue_api *api = ((srv_kue *)r->state)->api;
    weir_state         state;
    if (code)
        api->failed(r, err);
    else if (api->read_state(r, r->arg[1], &state))
        set_state(r, state, state_set);
}

void srv_kue_remove(srv_request *r, weir_code code, const weir_error *err)
{
    srv_kue     *k = r->state;
    weir_future *f = NULL;
    if (code) {
        k->api->removed(r, code, err);
        return;
    }
    weir_code rc = weir_remove_async(srv_queue(r), k->job->id, &f, &k->err);
    srv_await(r, rc, &k->err, f, k->api->removed);
}

void srv_kue_restart(srv_request *r, weir_code code, const weir_error *err)
{
    srv_kue *k = r->state;
    if (code)
        k->api->restarted(r, code, err);
    else
        set_state(r, WEIR_STATE_INACTIVE, k->api->restarted);
}

/* ---- what both answer alike ---- */

static void get_stats(srv_request *r, const srv_kue_api *api, srv_then *then)
{
    srv_kue     *k = srv_kue_begin(r, api);
    weir_future *f = NULL;
    if (!k)
        return;
    weir_code rc = weir_get_stats_async(srv_queue(r), &k->stats, &f, &k->err);
    srv_await(r, rc, &k->err, f, then);
}

static void got_stats(srv_request *r, weir_code code, const weir_error *err)
{
    static const weir_type_stats nothing;
    srv_kue                     *k = r->state;
    if (code) {
        srv_kue_failed(r, err);
        return;
    }
    k->api->stats(&k->out, srv_own_stats(r, &k->stats) ? &k->stats->all : &nothing);
    srv_kue_reply(r, 200);
}

void srv_kue_get_stats(srv_request *r, const srv_kue_api *api)
{
    get_stats(r, api, got_stats);
}

static void got_types(srv_request *r, weir_code code, const weir_error *err)
{
    srv_kue *k = r->state;
    if (code) {
        srv_kue_failed(r, err);
        return;
    }
    const char *comma = "";
    weir__buf_char(&k->out, '[');
    for (size_t i = 0; i < k->stats->n; i++) {
        const char *type = k->stats->type[i].type;
        if (!srv_may(r, WEIR_ROLE_READ, type))
            continue;
        weir__buf_str(&k->out, comma);
        weir__json_string(&k->out, type, strlen(type));
        comma = ",";
    }
    weir__buf_char(&k->out, ']');
    srv_kue_reply(r, 200);
}

void srv_kue_get_types(srv_request *r, const srv_kue_api *api)
{
    get_stats(r, api, got_types);
}

static void counted(srv_request *r, weir_code code, const weir_error *err)
{
    srv_kue *k = r->state;
    if (code) {
        srv_kue_failed(r, err);
        return;
    }
    weir__buf_printf(&k->out, "{\"count\":%" PRIu64 "}", k->count);
    srv_kue_reply(r, 200);
}

void srv_kue_count(srv_request *r, weir_state state, const char *asked)
{
    srv_kue     *k = r->state;
    const char  *type;
    weir_future *f = NULL;
    if (srv_kue_unscoped(r, asked))
        return;
    if (state == WEIR_STATE_ANY || !srv_kue_scope(r, asked, &type)) {
        counted(r, WEIR_OK, NULL);
        return;
    }
    weir_code rc = weir_count_async(srv_queue(r), state, type, &k->count, &f, &k->err);
    srv_await(r, rc, &k->err, f, counted);
}

/* ---- lists in parts ---- */

void srv_kue_list(srv_request *r, void (*more)(srv_request *r))
{
    srv_kue *k = r->state;
    release(k);
    if (!srv_parts_begin(r, &k->parts, k->api->vertx ? "application/json"
                                                : "application/json; charset=utf-8", more))
        return;
    weir__buf_char(&k->parts.body, '[');
    more(r);
}

void srv_kue_list_item(srv_request *r, weir_buf *item)
{
    srv_kue  *k = r->state;
    weir_buf *out = &k->parts.body;
    size_t    before = out->len;
    weir__buf_str(out, k->api->vertx ? (k->n ? ", " : " ") : k->n ? "," : "");
    if (item->failed)
        out->failed = true;
    else if (k->api->vertx)
        srv_json_pretty(out, item->data, item->len);
    else
        weir__buf_add(out, item->data, item->len);
    weir__buf_fini(item);
    k->n++;
    k->bytes += out->len - before;
}

void srv_kue_list_end(srv_request *r)
{
    srv_kue *k = r->state;
    release(k);
    weir__buf_str(&k->parts.body, k->api->vertx ? " ]" : "]");
    srv_parts_end(r);
}

void srv_kue_list_failed(srv_request *r, const weir_error *err)
{
    release(r->state);
    if (!srv_parts_failed(r))
        srv_kue_failed(r, err);
}

/* ---- log ---- */

static void got_lines(srv_request *r, weir_code code, const weir_error *err)
{
    srv_kue *k = r->state;
    if (code && code != WEIR_ENOENT) {
        srv_kue_list_failed(r, err);
        return;
    }
    size_t n = k->lines ? k->lines->n : 0;
    for (size_t i = 0; i < n; i++) {
        weir_buf    item = { 0 };
        const char *line = k->lines->line[i].text;
        weir__json_string(&item, line, strlen(line));
        srv_kue_list_item(r, &item);
    }
    if (!n) {
        srv_kue_list_end(r);
        return;
    }
    k->count = k->lines->line[n - 1].n;
    release(k);
    srv_parts_go_on(r);
}

static void read_lines(srv_request *r)
{
    srv_kue     *k = r->state;
    weir_future *f = NULL;
    size_t       fit = k->n ? srv_parts_items(k->n, k->bytes) : FIRST_LINES;
    weir_code    rc = weir_logs_async(srv_queue(r), k->id, k->count,
                                      fit < LINES_AT_ONCE ? fit : LINES_AT_ONCE, &k->lines, &f,
                                      &k->err);
    srv_await(r, rc, &k->err, f, got_lines);
}

static void log_of_job(srv_request *r, weir_code code, const weir_error *err)
{
    srv_kue *k = r->state;
    if (code && code != WEIR_ENOENT) {
        srv_kue_failed(r, err);
        return;
    }
    if (code) {                     /* a missing job has an empty log */
        weir__buf_str(&k->out, "[]");
        srv_kue_reply(r, 200);
        return;
    }
    k->id = k->job->id;
    srv_kue_list(r, read_lines);
}

void srv_kue_log(srv_request *r, uint64_t id)
{
    srv_kue_get(r, id, log_of_job);
}
