/* row.h - what the files op_NAME.c share: how to make a row, and the pieces that many rows use. */
#ifndef WEIR_OP_ROW_H
#define WEIR_OP_ROW_H

#include "base/fail.h"
#include "op/copy.h"
#include "op/op.h"

/* Every row gives every member, in this order: a missing member does not compile. The pieces
 * weir__op_no_... say that an operation has nothing of a sort. */
#define WEIR_OP_ROW(name_, lane_, scope_, slow_, role_, writes_, steps_, action_, detail_, job_,  \
                     each_, type_, data_, token_, repeat_, take_, most_, result_, cut_, check_,   \
                     copy_, clear_, release_, size_, write_request_, request_, read_request_,     \
                     write_answer_, answer_, read_answer_)                                        \
    { .name = name_, .lane = lane_, .scope = scope_, .slow = slow_, .role = role_,                \
      .writes = writes_, .steps = steps_, .action = action_, .detail = detail_, .job = job_,      \
      .each = each_, .type = type_, .data = data_, .token = token_, .repeat = repeat_,            \
      .take = take_, .most = most_, .result = result_, .cut = cut_, .check = check_,              \
      .copy = copy_, .clear = clear_, .release = release_, .size = size_,                         \
      .write_request = write_request_, .request = request_, .read_request = read_request_,        \
      .write_answer = write_answer_, .answer = answer_, .read_answer = read_answer_ }

#define X(kind, member) extern const weir_op_row weir__row_##member;
WEIR_OPS(X)
#undef X

/* ---- pieces of rows ---- */

unsigned weir__role_read(const weir_op *op);
unsigned weir__role_produce(const weir_op *op);
unsigned weir__role_work(const weir_op *op);
unsigned weir__role_admin(const weir_op *op);
bool weir__op_always(const weir_op *op);
bool weir__op_never(const weir_op *op);

extern const weir_steps weir__op_no_steps[];
const char *weir__op_no_action(const weir_op *op);
const char *weir__op_no_detail(const weir_op *op);
uint64_t *weir__op_no_job(weir_op *op, size_t i);
const char **weir__op_no_type(weir_op *op, size_t i);
const char *const *weir__op_no_data(const weir_op *op, size_t i);
const weir_token **weir__op_no_token(weir_op *op);
extern const weir_repeat weir__repeat_always[];
extern const weir_repeat weir__repeat_never[];
extern const weir_repeat weir__repeat_token[];  /* with a token */
void weir__ask_job(weir_op *question, uint64_t id);     /* for weir_repeat.ask() */
const weir_op_take *weir__op_no_take(const weir_op *op);
size_t weir__op_no_jobs(const weir_op *op);
bool weir__op_no_result(const weir_op *op, size_t i, uint64_t *id);
bool weir__op_no_cut(weir_op *op, weir_sees *sees, const void *caller);
weir_code weir__op_no_check(weir_op *op, weir_error *err);
void weir__op_no_copy(weir_copier *c, weir_op *op);
void weir__op_no_output(weir_op *op);
enum { WEIR__OP_SIZE = 256 };                   /* JSON of a request without long texts */
size_t weir__op_small(const weir_op *op);
size_t weir__op_with_bytes(const weir_op *op);  /* and what copy() copies */
void weir__op_no_members(weir_buf *out, const weir_op *op);
extern const weir_field weir__op_no_answer[];   /* only the error */
weir_code weir__op_read(weir_reader *in, op_request *r);            /* the table reads it all */
weir_code weir__op_answered(weir_reader *in, op_answer *a);         /* likewise */

/* ---- checks ---- */

/* Zero becomes `preset`; more than WEIR_MAX_PAGE is refused. */
weir_code weir__check_limit(size_t *limit, size_t preset, const char *field, weir_error *err);
weir_code weir__check_lease(int64_t *lease_ms, weir_error *err);
weir_code weir__check_worker(const char *worker, weir_error *err);
/* JSON that may be missing. */
weir_code weir__check_json(const char *json, size_t *len, const char *field, weir_error *err);
/* Text for people: any bytes up to a NUL, cut when it is too long. */
void weir__cut_text(const char *text, size_t *len);

/* ---- a take: of TAKE, and the next one of FINISH ---- */

weir_code weir__take_check(weir_op_take *t, weir_error *err);
void weir__take_copy(weir_copier *c, weir_op_take *t);
void weir__take_free(weir_op_take *t);
void weir__take_write(weir_buf *out, const weir_op_take *t);            /* without the comma */
void weir__take_write_answer(weir_buf *out, const weir_op_take *t);

typedef struct op_take_request {
    weir_texts  types;
    int64_t     n, lease_ms;
    const char *worker, *when;
    bool        busy;
} op_take_request;
#define WEIR__TAKE_REQUEST(base)                                                                  \
    WEIR_FIELD("n", weir__as_int, (base) + offsetof(op_take_request, n), .min = 1,                \
               .max = WEIR_MAX_PAGE),                                                             \
    WEIR_FIELD("lease", weir__as_ms, (base) + offsetof(op_take_request, lease_ms)),               \
    WEIR_FIELD("worker", weir__as_text, (base) + offsetof(op_take_request, worker),               \
               .needed = true),                                                                   \
    WEIR_FIELD("when", weir__as_text, (base) + offsetof(op_take_request, when)),                  \
    WEIR_FIELD("busy", weir__as_bool, (base) + offsetof(op_take_request, busy)),                  \
    WEIR_FIELD("types", weir__as_texts, (base) + offsetof(op_take_request, types),                \
               .needed = true, .max = WEIR_MAX_TAKE_TYPES)
#define WEIR__TAKE_ANSWER                                                                         \
    WEIR_FIELD("jobs", weir__as_page, ANSWER(page), .inside = true),                              \
    WEIR_FIELD("suspect_waits", weir__as_bool, ANSWER(suspect_waits))
weir_code weir__take_read(weir_reader *in, const op_take_request *from, weir_op_take *to);
void weir__take_read_answer(op_answer *a, weir_op_take *to);

/* ---- rows of trends: of TREND_PUT and TREND_GET ---- */

typedef struct op_trend_row {           /* while it is read */
    weir_trend_row row;
    const char    *step;
} op_trend_row;
extern const weir_field weir__trend_row_fields[];                   /* into op_trend_row */
void weir__trend_put_rows(weir_buf *out, const weir_trend_row *rows, size_t n);  /* ,"rows":[...] */
weir_code weir__trend_read_row(weir_reader *in, const op_trend_row *from, weir_trend_row *out);

/* ---- requests and answers while they are read ---- */

/* Members with a place in the operation go there, the others beside it. */
struct op_request {
    weir_op         op;
    weir_json_piece name;
    op_take_request take;               /* of take, and `next` of finish */
    bool            has_take;
    weir_items      items;              /* jobs */
    weir_token      once;
    bool            has_once;
    int64_t         limit;
    weir_texts      texts;              /* types of list */
    weir_json_piece raw;                /* result, data */
    const char     *text;
    bool            has_error, final, returned, lost;
    weir_settings   settings;
    bool            has_settings;
    bool            has_due, has_version;
};

struct op_answer {
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
    uint64_t        version;
    uint64_t        count, last_id;
    weir_cursor     next;
    bool            more, suspect_waits;
    weir_type_stats all;
    struct {
        const char *store, *place, *engine, *weir, *owner;
        int64_t     owner_pid, peers, used, limit;
    }               info;
    weir_read_job   job;
};

#define REQUEST(member) offsetof(op_request, member)
#define REQUEST_OP(member) offsetof(op_request, op.u.member)
#define ANSWER(member) offsetof(op_answer, member)
/* Of every operation. */
#define FIELD_OP WEIR_FIELD("op", weir__as_raw, REQUEST(name))
#define FIELD_ERROR WEIR_FIELD("error", weir__as_error, ANSWER(err), .given = ANSWER(failed))

/* By its name; NULL or another word: WEIR_DURABILITY_NONE. */
weir_durability weir__durability_read(const char *name);

/* Zeroed room for n things, at least one; NULL: in->err is set. */
void *weir__read_room(weir_reader *in, size_t n, size_t size);
weir_code weir__read_no_memory(weir_reader *in);
weir_code weir__read_nonsense(weir_reader *in, const char *what);   /* an answer that cannot be */

weir_field_read weir__as_error;         /* weir_error */
weir_field_read weir__as_page;          /* a list of jobs: weir_page * of an op_answer */

/* ---- writing; `name` has its comma, quotes and colon ---- */

void weir__put_int(weir_buf *out, const char *name, int64_t n);
void weir__put_id(weir_buf *out, const char *name, uint64_t id);
void weir__put_text(weir_buf *out, const char *name, const char *text, size_t len);
/* `before` is `,"name":[`; bits WEIR_BIT(state); nothing for 0. */
void weir__put_states(weir_buf *out, const char *before, uint32_t states);
void weir__put_state(weir_buf *out, const char *name, weir_state state);  /* none for _ANY */
void weir__put_flag(weir_buf *out, const char *name, bool flag);            /* none for false */
void weir__put_raw(weir_buf *out, const char *name, const char *json, size_t len);
void weir__put_error(weir_buf *out, const weir_error *err);                 /* ,"error":{...} */
void weir__put_spec(weir_buf *out, const weir_spec *spec);
void weir__put_jobs(weir_buf *out, weir_job *const *jobs, size_t n);        /* ,"jobs":[...] */
void weir__put_lines(weir_buf *out, const char *name, const weir_line *lines, size_t n);
void weir__put_settings(weir_buf *out, const weir_settings *settings);      /* ,"settings":{...} */
extern const weir_field weir__settings_fields[];                            /* into weir_settings */

/* The comma between elements. */
static inline void weir__put_next(weir_buf *out, size_t i)
{
    if (i)
        weir__buf_char(out, ',');
}

/* The defaults that weir__job_json() leaves out. */
static inline void weir__read_job_defaults(weir_job *j)
{
    if (!j->max_lost)
        j->max_lost = WEIR_DEFAULT_MAX_LOST;
}

#endif
