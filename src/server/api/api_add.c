/* api_add.c - POST /v1/jobs: one job, or up to WEIR_MAX_ADD of them in one call.
 *
 * The valid jobs of a list are added together, in their order and with one commit. Each invalid job
 * is refused by itself, and its place in the answer has the reason. A request with an
 * Idempotency-Key can be repeated when its answer did not come: the store remembers what was
 * answered. */
#include <inttypes.h>
#include <string.h>

#include "runtime/ops.h"
#include "runtime/trace.h"
#include "server/api/api.h"
#include "server/access/audit.h"
#include "server/http/body.h"
#include "server/access/once.h"

enum { MAX_KEY = 255 };     /* bytes of an Idempotency-Key */

/* An element that is not added. */
typedef struct refused {
    struct refused *next;
    size_t          at;
    bool            forbidden;          /* the token may not */
    weir_error      err;
} refused;

typedef struct adding {
    bool        bulk;                   /* the body is a list */
    int64_t     wait_ms;                /* -1: do not wait */
    size_t      n;                      /* elements */
    weir_spec  *spec;                   /* the valid ones */
    weir_added *added;
    size_t      n_specs;
    refused    *first, **last;          /* the others, in their order */
    bool        once;                   /* there is an Idempotency-Key: */
    char        key[WEIR_MAX_TOKEN + 1];
    weir_token  token;
    weir_op     op;
    weir__add_trace trace;
} adding;

/* ---- the answer ---- */

static void added_json(weir_buf *out, const weir_added *a)
{
    srv_id_state_json(out, a->id, a->state);
    weir__buf_str(out, a->existed ? ",\"existed\":true" : ",\"existed\":false");
}

static void durability_json(weir_buf *out, weir_durability d)
{
    weir__buf_str(out, ",\"durability\":\"");
    weir__buf_str(out, weir_durability_name(d));
    weir__buf_char(out, '"');
}

static void refused_json(weir_buf *out, const refused *e)
{
    weir__buf_str(out, "{\"error\":");
    if (e->forbidden)
        srv_forbidden_json(out, e->err.msg, "type");
    else
        srv_error_json(out, &e->err);
    weir__buf_char(out, '}');
}

static void reply_bulk(srv_request *r, const adding *a)
{
    weir_buf       body = { 0 };
    const refused *e = a->first;
    size_t         k = 0;
    weir__buf_reserve(&body, a->n * 64);
    weir__buf_str(&body, "{\"results\":[");
    for (size_t i = 0; i < a->n; i++) {
        if (i)
            weir__buf_char(&body, ',');
        if (e && e->at == i) {
            refused_json(&body, e);
            e = e->next;
        } else {
            added_json(&body, &a->added[k++]);
            weir__buf_char(&body, '}');
        }
    }
    weir__buf_str(&body, "],\"added\":");
    weir__buf_uint(&body, a->n_specs);
    weir__buf_str(&body, ",\"refused\":");
    weir__buf_uint(&body, a->n - a->n_specs);
    if (a->n_specs)
        durability_json(&body, a->added[0].durability);
    weir__buf_char(&body, '}');
    srv_reply_json(r, a->first ? 207 : 201, &body);
}

static void reply_one(srv_request *r)
{
    const weir_added *added = ((adding *)r->state)->added;
    weir_buf          body = { 0 };
    added_json(&body, added);
    durability_json(&body, added->durability);
    weir__buf_char(&body, '}');
    srv_reply_json(r, added->existed ? 200 : 201, &body);
}

static void were_added(srv_request *r, weir_code code, const weir_error *err)
{
    adding *a = r->state;
    if (!code) {
        code = a->op.err.code;
        err = &a->op.err;
    }
    weir__add_trace_end(&a->trace, code ? NULL : a->added, code ? err : NULL);
    for (size_t i = 0; !code && i < a->n_specs && srv_audited(r); i++)
        srv_audit_id(r, a->added[i].id);
    if (code == WEIR_EINVAL && a->once)         /* the jobs themselves are right */
        srv_reply_fail(r, WEIR_ESTATE, "Idempotency-Key",
                       "Idempotency-Key: it was used before with another body; repeat a request "
                       "with the same body, or use a new key");
    else if (code)
        srv_reply_error(r, err);
    else if (a->bulk)
        reply_bulk(r, a);
    else if (a->wait_ms >= 0)       /* a job may be removed before it is waited for */
        srv_reply_ended(r, a->added->id, a->wait_ms,
                        a->spec->remove_on_complete ? reply_one : NULL);
    else
        reply_one(r);
}

/* ---- what is asked for ---- */

static bool no_memory(srv_request *r)
{
    srv_reply_fail(r, WEIR_ENOMEM, NULL, "out of memory");
    return false;
}

/* False: out of memory. */
static bool refuse(srv_request *r, adding *a, size_t at, const weir_error *err, bool forbidden)
{
    refused *e = srv_alloc(r, sizeof *e);
    if (!e)
        return false;
    *e = (refused){ .at = at, .err = *err, .forbidden = forbidden };
    *a->last = e;
    a->last = &e->next;
    return true;
}

/* One element of the list: among those to be added, or refused. False: it was answered. */
static bool read_element(srv_request *r, adding *a, weir_reader *in, weir_json_piece one, size_t at)
{
    weir_spec *spec = &a->spec[a->n_specs];
    weir_code  rc = weir__read_spec(in, one, spec);
    bool       kept = true;
    if (rc == WEIR_ENOMEM)
        return no_memory(r);
    if (rc) {
        kept = refuse(r, a, at, &in->err, false);
    } else if (!srv_may(r, WEIR_ROLE_PRODUCE, spec->type)) {
        weir_fail(&in->err, WEIR_EREADONLY, "this token may not add jobs of the type %s",
                  spec->type);
        kept = refuse(r, a, at, &in->err, true);
    } else {
        a->n_specs++;
    }
    return kept || no_memory(r);
}

static bool make_room(srv_request *r, adding *a, size_t n)
{
    a->n = n;
    a->spec = srv_alloc(r, n * sizeof *a->spec);
    a->added = srv_alloc(r, n * sizeof *a->added);
    return (a->spec && a->added) || no_memory(r);
}

static bool read_bulk(srv_request *r, adding *a, weir_reader *in, weir_json_piece all)
{
    weir_json_walk  w, count;
    weir_json_piece none, one;
    size_t          n = 0;
    weir__json_open(&w, all);
    count = w;
    while (n <= WEIR_MAX_ADD && weir__json_next(&count, &none, &one))
        n++;
    if (!n || n > WEIR_MAX_ADD) {
        srv_reply_fail(r, n ? WEIR_ELIMIT : WEIR_EINVAL, NULL,
                       "body: a list of 1 to %d jobs (WEIR_MAX_ADD), this has %s", WEIR_MAX_ADD,
                       n ? "more" : "none");
        return false;
    }
    if (!make_room(r, a, n))
        return false;
    for (size_t i = 0; weir__json_next(&w, &none, &one); i++)
        if (!read_element(r, a, in, one, i))
            return false;
    return true;
}

static bool read_one(srv_request *r, adding *a, weir_reader *in, weir_json_piece all)
{
    if (!make_room(r, a, 1))
        return false;
    if (weir__read_spec(in, all, a->spec)) {
        srv_body_refuse(r, in);
        return false;
    }
    a->n_specs = 1;
    return srv_allow(r, WEIR_ROLE_PRODUCE, a->spec->type);
}

static bool read_jobs(srv_request *r, adding *a)
{
    weir_reader     in;
    weir_json_piece all;
    weir_json_walk  w;
    if (!srv_query_ms(r, "wait", SRV_MAX_WAIT_MS, &a->wait_ms) || !srv_body_open(r, &in, &all))
        return false;
    a->bulk = weir__json_open(&w, all) && !w.object;
    if (a->bulk && a->wait_ms >= 0) {
        srv_reply_fail(r, WEIR_EINVAL, "wait", "wait: only for one job, this is a list");
        return false;
    }
    return a->bulk ? read_bulk(r, a, &in, all) : read_one(r, a, &in, all);
}

/* The key is the caller's. By the digest of the body a repetition is recognised. */
static bool read_key(srv_request *r, adding *a)
{
    const char *key = srv_header(r, "Idempotency-Key");
    if (!key)
        return true;
    size_t size = strlen(key);
    if (!size || size > MAX_KEY) {
        srv_reply_fail(r, size ? WEIR_ELIMIT : WEIR_EINVAL, "Idempotency-Key",
                       "Idempotency-Key: %zu bytes, must be 1 to %d", size, MAX_KEY);
        return false;
    }
    a->token = (weir_token){ .key = a->key, .number = 1 };
    if (!srv_once_key(r, "http", key, a->key) ||
        !srv_once_digest(r->body, r->body_len, &a->token.digest))
        return no_memory(r);
    a->once = true;
    return true;
}

static void add_jobs(srv_request *r)
{
    weir_error   err = { 0 };
    weir_future *f = NULL;
    adding      *a;
    if (!srv_allow_own(r, WEIR_ROLE_PRODUCE) || !SRV_STATE(r, a))
        return;
    a->last = &a->first;
    a->wait_ms = -1;
    if (!read_key(r, a) || !read_jobs(r, a))
        return;
    if (!a->n_specs) {
        reply_bulk(r, a);
        return;
    }
    a->op = (weir_op){ .kind = WEIR_OP_ADD, .u.add = {
        .specs = a->spec, .n = a->n_specs, .out = a->added, .token = a->once ? &a->token : NULL,
        .checked = true } };
    weir__add_trace_begin(&a->trace, &a->op.u.add);
    weir_code rc = weir__ops_check(srv_queue(r), &a->op, &err);
    if (!rc)
        rc = weir__ops_run_async(srv_queue(r), &a->op, 1, &f, &err);
    if (rc) {                                   /* not the key's fault: see were_added() */
        weir__add_trace_end(&a->trace, NULL, &err);
        srv_reply_error(r, &err);
    } else
        srv_await(r, rc, &err, f, were_added);
}

static const srv_param add_query[] = {
    { "wait", SRV_P_MS, "one job: answer when it has ended (200, with the job), or after this time "
                        "(202, with the job as it is); at most 60s" },
    { 0 }
};

const srv_route srv_add_routes[] = {
    { "POST", "/v1/jobs", WEIR_ROLE_PRODUCE, add_jobs, SRV_MAX_BODY, add_query, 0,
      "Add a job, or a list of up to 10,000 with an answer for each", "Specs", "Added", 201 },
    { 0 }
};
