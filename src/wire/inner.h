/* inner.h - one entry for each kind of operation: how it is asked for, and how it is answered. */
#ifndef WEIR_WIRE_INNER_H
#define WEIR_WIRE_INNER_H

#include "wire/wire.h"

typedef struct wire_taking {
    weir_texts  types;
    int64_t     n, lease_ms;
    const char *worker;
    bool        busy;
} wire_taking;

/* An operation while it is read: members with a place in it go there, the others beside it. */
typedef struct wire_asked {
    weir_op         op;
    weir_json_piece name;
    wire_taking     take;               /* of take, and `next` of finish */
    bool            has_take;
    weir_items      items;              /* jobs */
    weir_token      once;
    bool            has_once;
    int64_t         limit;
    weir_json_piece raw;                /* result, data */
    const char     *text;
    bool            has_error, release, lost;
    weir_settings   settings;
    bool            has_settings;
} wire_asked;

/* An answer while it is read. */
typedef struct wire_told {
    weir_op        *op;                 /* whose it is */
    weir_error      err;                /* code WEIR_OK: it has none */
    bool            failed;
    weir_items      items;
    weir_texts      texts;
    weir_ids        ids;
    weir_page      *page;               /* jobs: released by whoever reads the answer */
    const char     *durability;
    weir_state      state, old_state;
    int64_t         changed, next_at, mended;
    uint64_t        count, last_id;
    weir_cursor     next;
    bool            more, suspect_waits;
    weir_type_stats all;
    weir_read_job   job;
} wire_told;

typedef struct wire_kind {
    void            (*ask)(weir_buf *out, const weir_op *op);       /* members, each with a comma */
    const weir_field *asked;                                        /* into wire_asked */
    weir_code       (*read)(weir_reader *in, wire_asked *a);        /* NULL: that was all */
    void            (*answer)(weir_buf *out, const weir_op *op);    /* members, each with a comma */
    const weir_field *told;                                         /* into wire_told */
    weir_code       (*take)(weir_reader *in, wire_told *t);         /* NULL: that was all */
} wire_kind;

#define X(kind, member, writes) extern const wire_kind weir__wire_op_##member;
WEIR_OPS(X)
#undef X

#define ASKED(member) offsetof(wire_asked, member)
#define ASKED_OP(member) offsetof(wire_asked, op.u.member)
#define TOLD(member) offsetof(wire_told, member)
/* Of every kind. */
#define FIELD_OP WEIR_FIELD("op", weir__as_raw, ASKED(name))
#define FIELD_ERROR WEIR_FIELD("error", weir__wire_as_error, TOLD(err), .given = TOLD(failed))

/* ---- writing; `name` has its comma, quotes and colon ---- */

void weir__wire_int(weir_buf *out, const char *name, int64_t n);
void weir__wire_id(weir_buf *out, const char *name, uint64_t id);
void weir__wire_text(weir_buf *out, const char *name, const char *text, size_t len);
void weir__wire_state(weir_buf *out, const char *name, weir_state state);   /* none for WEIR_ANY */
void weir__wire_flag(weir_buf *out, const char *name, bool flag);           /* none for false */
void weir__wire_raw(weir_buf *out, const char *name, const char *json, size_t len);
void weir__wire_fault(weir_buf *out, const weir_error *err);        /* ,"error":{...} */

/* The comma between elements. */
static inline void weir__wire_next(weir_buf *out, size_t i)
{
    if (i)
        weir__buf_char(out, ',');
}

/* ---- reading ---- */

/* Zeroed room for n things, at least one; NULL: in->err is set. */
void *weir__wire_room(weir_reader *in, size_t n, size_t size);
weir_code weir__wire_nonsense(weir_reader *in, const char *what);   /* an answer that cannot be */

weir_field_read weir__wire_as_number;       /* uint64_t, any */
weir_field_read weir__wire_as_delivery;     /* uint32_t, also 0 */
weir_field_read weir__wire_as_error;        /* weir_error */
weir_field_read weir__wire_as_page;         /* a list of jobs: weir_page * */

/* ---- jobs ---- */

void weir__wire_spec(weir_buf *out, const weir_spec *spec);
void weir__wire_jobs(weir_buf *out, weir_job *const *jobs, size_t n);       /* ,"jobs":[...] */
void weir__wire_settings(weir_buf *out, const weir_settings *settings);     /* ,"settings":{...} */
extern const weir_field weir__wire_settings_fields[];                       /* into weir_settings */
void weir__wire_lines(weir_buf *out, const char *name, const weir_line *lines, size_t n);

/* What weir__job_json() leaves out because it is the default. */
static inline void weir__wire_job_init(weir_job *j)
{
    if (!j->max_lost)
        j->max_lost = WEIR_DEFAULT_MAX_LOST;
}

#endif
