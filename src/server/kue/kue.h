/* kue.h - the shared parts of Kue's API (api_kue.c) and Vert.x Kue's (api_vertx.c): jobs as each
 * shows and reads them, ranges by rank, the steps of a request.
 *
 * Errors that Kue has are answered as Kue does, with its text and status 200. Other errors (the
 * life cycle forbids it, the store is away) have the status of their code and Kue's shape,
 * {"error":"text"}. Vert.x Kue has the same shape, pretty-printed. */
#ifndef WEIR_SERVER_KUE_H
#define WEIR_SERVER_KUE_H

#include "server/http/body.h"
#include "server/http/parts.h"

enum {
    SRV_KUE_MAX_RANGE  = 10000,             /* jobs in one answer */
    SRV_KUE_MAX_REACH  = 100000,            /* ranks between a range and the nearer end */
    SRV_KUE_MAX_SORTED = 1000,              /* jobs of a list that is put into Kue's order, ... */
    SRV_KUE_MAX_SORTED_BYTES = 64 * 1024 * 1024     /* ... and bytes of them that are read for it */
};

/* ---- kue_json.c: jobs as JSON ---- */

/* As Kue shows it: its order of members, numbers of the hash as text. `id` is what stood in the
 * path, which Kue repeats as text; NULL: the id as a number, as in lists. */
void srv_kue_job(weir_buf *out, const weir_job *job, const char *id);

/* As Vert.x Kue shows it: by name, upper case, 0 for never; with `error`, which it forgets. */
void srv_vertx_job(weir_buf *out, const weir_job *job);
const char *srv_vertx_priority(int32_t priority);       /* "HIGH"; the nearest that has a name */

/* The value address_id of a job, as JSON; NULL: it has none. */
const char *srv_vertx_address(const weir_job *job, size_t *len);

/* Valid JSON without white space; and as Jackson prints it, which Vert.x Kue uses. */
void srv_json_compact(weir_buf *out, const char *json, size_t len);
void srv_json_pretty(weir_buf *out, const char *json, size_t len);

/* ---- kue_spec.c: what is to be added ---- */

/* An element of the body of Kue's POST /job. Zero, false, null and "" count as missing, and members
 * that Kue has not are ignored, as in Kue. A wrong value is refused: in->err has the reason,
 * "attempts: ...". Texts are in memory of the reader. */
weir_code srv_kue_spec(weir_reader *in, weir_json_piece element, weir_spec *out);

#define SRV_VERTX_NO_TYPE "Job type cannot be null"
enum { SRV_MAX_ADDRESS = 200 };             /* bytes of an address_id */

/* The body of Vert.x Kue's PUT /job: a job with the names of srv_vertx_job(). */
typedef struct srv_vertx_body {
    int64_t     id;                         /* over 0: the job to change */
    weir_state  state;                      /* WEIR_STATE_ANY: not given */
    weir_spec   spec;                       /* type may be NULL */
    const char *address;                    /* address_id; NULL: not given */
    bool        data, priority, attempts, delay, ttl, backoff, remove;   /* given */
} srv_vertx_body;
weir_code srv_vertx_spec(weir_reader *in, weir_json_piece body, srv_vertx_body *out);

/* Read an object by a table. Members that the table has not and null are passed over. */
weir_code srv_vertx_read(weir_reader *in, const weir_field *table, weir_json_piece object,
                         void *out);

enum { SRV_UUID = 37 };                     /* bytes, with the NUL */
/* A random UUID, as Vert.x Kue gives each job for its address. False: no random numbers. */
bool srv_make_uuid(char out[SRV_UUID]);
/* {"address_id":"..."}, the value that keeps it. */
void srv_vertx_values(weir_buf *out, const char *address);

/* ---- kue_step.c: the steps of a request ---- */

/* The jobs of `state` and `type` (WEIR_STATE_ANY, NULL: all) between the ranks in `arg`, and in
 * the order behind them if the path has one. */
typedef void srv_kue_range_fn(srv_request *r, weir_state state, const char *type,
                              const char *const *arg);

/* The differences of the two APIs in requests that both have. */
typedef struct srv_kue_api {
    bool              vertx;                /* prints JSON as Vert.x Kue does */
    const char       *state_set;            /* the answer to PUT /job/ID/state/STATE */
    srv_kue_range_fn *range;
    srv_then         *removed, *restarted;  /* answer to what became of the change */
    /* The JSON of /stats. */
    void            (*stats)(weir_buf *out, const weir_type_stats *all);
    /* Answer to a change that failed. */
    void            (*failed)(srv_request *r, const weir_error *err);
    /* False: it was answered. */
    bool            (*read_state)(srv_request *r, const char *text, weir_state *out);
} srv_kue_api;

/* The data of a request; r->state points to it. All of it is released with the answer. */
typedef struct srv_kue {
    const srv_kue_api *api;
    srv_then    *then;                      /* what follows a step */
    weir_error   err;
    weir_job    *job;
    weir_stats  *stats;
    weir_lines  *lines;
    weir_page   *page;
    weir_added   added;
    weir_ended   ended;
    uint64_t     count;
    void        *own;                       /* the handler's */
    weir_buf     out;                       /* the answer */

    /* a list: a log or a range */
    srv_parts    parts;
    size_t       n, bytes;                  /* items in the answer so far, and their bytes */
    uint64_t     id;                        /* of the job whose log it is */

    /* a range */
    weir_query   query;
    int64_t      from, to;                  /* ranks, both included; below 0: from the end */
    bool         desc;
    bool         sorted;                    /* by priority and id, as Kue's sets are */
    size_t       skip, want;
    struct srv_kue_range *range;            /* kue_range.c */
} srv_kue;

/* Starts a request. NULL: it was answered, since there is no memory, or (Kue) since the client
 * does not accept JSON: then the route is unknown. */
srv_kue *srv_kue_begin(srv_request *r, const srv_kue_api *api);

/* An id as Kue's keys have it, 12 and not 012 or +12; 0: it is none. */
uint64_t srv_kue_id(const char *text);

/* The job with this id, if there is one and the caller may see it: then(), or with WEIR_ENOENT. */
void srv_kue_get(srv_request *r, uint64_t id, srv_then *then);

/* The call that brings a job into a state, none if it is in it already. */
void srv_kue_move(const weir_job *job, weir_state state, weir_change *out);

/* Change k->job, which was got and must still be in the same state: then(). */
void srv_kue_change(srv_request *r, const weir_change *change, srv_then *then);

/* A caller with a token for one type sees only that type. Returns the type to ask for, or NULL for
 * all of them. False: it may not see any that it asked for. */
bool srv_kue_scope(const srv_request *r, const char *asked, const char **type);
/* Is the token for several types, and none was named? True: it was answered with 403. */
bool srv_kue_unscoped(srv_request *r, const char *asked);

/* Requests in whole: /stats, of the types that the caller sees; /job/types. */
void srv_kue_get_stats(srv_request *r, const srv_kue_api *api);
void srv_kue_get_types(srv_request *r, const srv_kue_api *api);

/* Bring the job that was got into the state of r->arg[1], make it inactive, or remove it; answer
 * with what became of it. */
srv_then srv_kue_put_state, srv_kue_restart, srv_kue_remove;

/* The answers to /jobs/TYPE/STATE/stats and /job/ID/log, in whole. */
void srv_kue_count(srv_request *r, weir_state state, const char *type);
void srv_kue_log(srv_request *r, uint64_t id);

/* A list that is sent in parts: begin it, append items, end it. From its begin on, more() and these
 * are the only ones to answer. */
void srv_kue_list(srv_request *r, void (*more)(srv_request *r));
void srv_kue_list_item(srv_request *r, weir_buf *item);     /* JSON; takes its bytes */
void srv_kue_list_end(srv_request *r);
void srv_kue_list_failed(srv_request *r, const weir_error *err);

/* Answer with k->out. */
void srv_kue_reply(srv_request *r, int status);
void srv_kue_message(srv_request *r, int status, const char *fmt, ...) WEIR_PRINTF(3, 4);
void srv_kue_error(srv_request *r, int status, const char *fmt, ...) WEIR_PRINTF(3, 4);
void srv_kue_failed(srv_request *r, const weir_error *err);     /* the status of its code */
void srv_kue_empty(srv_request *r, int status);

/* A reader of the body whose texts live as long as the request. */
weir_reader srv_kue_reader(srv_request *r);

/* Does an Accept header (NULL: none) take application/json? */
bool srv_accepts_json(const char *accept);

/* ---- kue_range.c: jobs by rank ---- */

typedef struct srv_kue_place {
    uint64_t id;
    int32_t  priority;
} srv_kue_place;

/* Ranks of a list of `count`, as ZRANGE has them: below 0 from the end. False: there is nothing
 * between them. */
bool srv_kue_ranks(uint64_t count, int64_t *from, int64_t *to);
/* Is the order of weir's list the order of Kue's set? */
bool srv_kue_same_order(weir_state state, const char *type);
/* The whole list is there: leave those between the ranks, in Kue's order. Returns how many. */
size_t srv_kue_cut(srv_kue_place *place, size_t n, int64_t from, int64_t to);
/* Sort by id, and each once. Returns how many. */
size_t srv_kue_sort(srv_kue_place *place, size_t n, bool desc);

/* Answers with the jobs of `state` and `type` (WEIR_STATE_ANY, NULL: all) between two ranks, as
 * ZRANGE counts them, by id. */
void srv_kue_range(srv_request *r, weir_state state, const char *type, int64_t from, int64_t to,
                   bool desc);

/* A request with ranks, whose path may begin with {type} and {state}. If the state is unknown,
 * answers with no jobs, else calls api->range() with the arguments behind these. */
void srv_kue_get_range(srv_request *r, const srv_kue_api *api);

#endif
