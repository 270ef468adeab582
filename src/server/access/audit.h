/* audit.h - who changed what: an entry for each action of a caller that changes something.
 *
 * Administrative actions are recorded unless the log is off; what producers and workers do (add,
 * take, finish) only with "audit": "all". The newest entries are in memory, within
 * SRV_AUDIT_ENTRIES and SRV_AUDIT_BYTES. Each is also a line of JSON in audit.log in the data
 * directory, for its owner alone. At SRV_AUDIT_FILE bytes the file becomes audit.log.1, in place of
 * the one before; a server that starts reads both. Any thread. */
#ifndef WEIR_SERVER_AUDIT_H
#define WEIR_SERVER_AUDIT_H

#include "base/buf.h"
#include "server/http/request.h"

enum {
    SRV_AUDIT_ENTRIES = 10000,                  /* in memory */
    SRV_AUDIT_BYTES   = 8 * 1024 * 1024,        /* of them */
    SRV_AUDIT_FILE    = 16 * 1024 * 1024,       /* then the file is put aside */
    SRV_AUDIT_IDS     = 100,                    /* of jobs in an entry; `count` has all */
    SRV_AUDIT_TEXT    = 300                     /* bytes of path or detail */
};

typedef struct srv_audit srv_audit;

/* `dir` NULL: in memory alone. `file_limit` 0: SRV_AUDIT_FILE. On success *out belongs to the
 * caller: srv_audit_destroy(). Errors: as opening the file. */
weir_code srv_audit_create(srv_audit **out, const char *dir, size_t file_limit, weir_error *err);
void srv_audit_destroy(srv_audit *a);           /* NULL is fine */

/* Which actions are recorded. Strings are copied; NULL: not known. */
typedef struct srv_audit_item {
    int64_t         at;
    const char     *token;          /* its name; "": a caller without one, on loopback */
    const char     *address;
    const char     *action;         /* "job.retry" */
    const char     *path;
    const char     *detail;         /* for people: "filter: state failed" */
    int             status;         /* of the answer, as of HTTP */
    uint64_t        count;          /* jobs that it changed; 0 when it failed */
    const uint64_t *ids;            /* the first SRV_AUDIT_IDS of the named jobs */
    size_t          n_ids;
} srv_audit_item;

/* If an entry cannot be written, it is in memory only: a full disk must not stop the server. */
void srv_audit_record(srv_audit *a, const srv_audit_item *item);

/* Which entries; {0}: all. */
typedef struct srv_audit_query {
    const char *token, *action;     /* `action`: also the part before the dot, "job" */
    uint64_t    id;
    int64_t     since;
    uint64_t    before;             /* numbers below this; 0: from the newest on */
    size_t      limit;
} srv_audit_query;

/* Write the entries as JSON objects with commas between, the newest first. Returns `before` of the
 * next page; 0: this is the last. */
uint64_t srv_audit_list(srv_audit *a, const srv_audit_query *q, weir_buf *out);

/* ---- requests ---- */

/* Is this request recorded? Handlers ask before they collect what to say. */
bool srv_audited(const srv_request *r);
/* Name a job that it concerned, and say more; does nothing if it is not recorded. */
void srv_audit_id(srv_request *r, uint64_t id);
void srv_audit_detail(srv_request *r, const char *fmt, ...) WEIR_PRINTF(2, 3);
/* It failed with this status, whatever the answer's own is: Kue answers 200 to some mistakes. The
 * first call counts. */
void srv_audit_failed(srv_request *r, int status);
/* It changed nothing (a dry run), or recorded for itself what it did. */
void srv_audit_skip(srv_request *r);
/* Record an action of this request besides the request itself. */
void srv_audit_also(srv_request *r, srv_audit_item *item);
/* The request is answered. */
void srv_audit_answered(srv_request *r, int status);

/* The name of what a route does, "job.retry"; NULL: it is not recorded in this
 * mode. `kue_get`: Kue's GET that changes a job is served. */
const char *srv_audit_action(const srv_route *route, srv_audit_mode mode, bool kue_get);

#endif
