/* mem.h - how the mem store keeps its jobs. Private to src/store/mem.
 *
 * The truth is each mem_job.j; the trees and tables around it say the same again in an order that
 * is quick to look up, and weir__mem_check() compares them. All of these live inside the jobs, so
 * moving a job never allocates. An operation therefore plans first (allocates all it needs, and may
 * fail), then applies, which cannot fail. */
#ifndef WEIR_STORE_MEM_MEM_H
#define WEIR_STORE_MEM_MEM_H

#include "base/clock.h"
#include "core/job.h"
#include "core/job_fields.h"
#include "store/mem/table.h"
#include "store/mem/tree.h"
#include "store/store.h"

#define CONTAINER(ptr, type, member) ((type *)(void *)((char *)(ptr) - offsetof(type, member)))

/* A string of a job that may be replaced. What an event points at must outlive the batch, so what
 * is replaced goes to the store's trash instead of being freed at once. */
typedef struct mem_text {
    struct mem_text *next;          /* in the trash */
    char             s[];
} mem_text;

typedef struct mem_line {           /* of a job's log */
    struct mem_line *next;
    uint64_t         n;
    int64_t          at;
    char             s[];
} mem_line;

typedef struct mem_type {
    table_link      link;
    tree            all;                    /* its jobs, by id (rank 0) */
    tree            in[WEIR_STATES];        /* its jobs in a state, by (rank, id) */
    weir_type_stats stats;                  /* counters, paused, own settings; count[] is in[].n */
    bool            known;                  /* a job was added, or it was configured */
    bool            own_settings;
    uint64_t        seen;                   /* serial of the last take that looked at it */
    char            name[];
} mem_type;

typedef struct mem_job {
    weir_job         j;                     /* type points at type->name */
    mem_type        *type;
    table_link       by_id, by_unique;      /* by_unique: while it holds its key */
    tree_node        in_all, in_state;
    tree_node        in_due;                /* rank 0: not in */
    struct mem_job  *prev, *next;           /* active ones; next: also picked ones, trash */
    int64_t          ttl_until;             /* active; 0: none */
    mem_line        *first, *last;          /* the log */
    uint64_t         n_lines;
    char            *new_worker;            /* between planning and doing a take */
    bool             data_apart;            /* data was replaced: a mem_text, not in bytes[] */
    char             bytes[];               /* texts that add gave, and data */
} mem_job;

typedef struct mem_token {          /* an add that carried a token: token.c */
    table_link link;
    tree_node  by_time;                     /* rank: when it was done */
    uint64_t   number, digest;
    char      *key;                         /* behind added[] */
    size_t     n;
    weir_added added[];
} mem_token;

typedef struct mem_store {
    weir_store  base;
    weir_env    env;
    table       jobs, unique, types;
    mem_type  **by_name;                    /* all types but "*", in order of name */
    size_t      n_types, cap_types;
    mem_type   *star;                       /* "*": the default settings and the pause of all */
    tree        due;                        /* waiting jobs by (weir__job_due(), id) */
    table       tokens;
    tree        tokens_by_time;
    uint64_t    last_token;
    mem_job    *active;
    uint64_t    last_id;
    uint64_t    serial;
    /* Nothing of that sort is due before: may be early, never late. */
    int64_t     active_at, keep_at;
    weir_clock_watch clock;
    int64_t     announced, wanted;          /* told to env->due(); to be told at the end of run() */
    weir_event *events;                     /* of this batch */
    size_t      n_events, cap_events;
    mem_text   *trash;
    mem_job    *trash_jobs;
} mem_store;

/* One entry for each kind of operation; a kind without one does not link. */
#define X(kind, member, writes) weir_code weir__mem_##member(mem_store *s, weir_op *op);
WEIR_OPS(X)
#undef X

/* ---- finding ---- */

mem_job  *weir__mem_find(const mem_store *s, uint64_t id);
mem_type *weir__mem_type(const mem_store *s, const char *name);            /* NULL: not there */
mem_type *weir__mem_type_make(mem_store *s, const char *name);             /* NULL: no memory */
mem_job  *weir__mem_holder(const mem_store *s, const mem_type *t, const char *unique);

/* Settings that hold for a type, and what of them is about jobs that ended so. */
const weir_settings *weir__mem_settings(const mem_store *s, const mem_type *t);
const weir_keep     *weir__mem_keep(const mem_store *s, const mem_type *t, weir_state state);

/* ---- changing: plan, apply, then undo or settle ---- */

typedef struct mem_change {
    mem_job  *m;
    weir_job  before, after;
    char     *text;             /* new result, error or data; owned until settled */
    char     *history;          /* new; owned until settled */
    char     *values;           /* new; owned until settled */
    mem_line *line;             /* new log line; owned until settled */
    bool      gone;             /* removed instead of kept as `after` */
} mem_change;

weir_code weir__mem_plan_fail(mem_change *c, mem_job *m, const char *text, size_t len, int64_t now);
weir_code weir__mem_plan_exceed(mem_change *c, mem_job *m, int64_t now);
weir_code weir__mem_plan_release(mem_change *c, mem_job *m, int64_t now);
weir_code weir__mem_plan_lose(mem_change *c, mem_job *m, int64_t now);
weir_code weir__mem_plan_expire(mem_change *c, mem_job *m, int64_t now);
weir_code weir__mem_plan_promote(mem_change *c, mem_job *m, int64_t now);
/* Whatever was planned: the job keeps what is in `past`, which is empty after. */
weir_code weir__mem_plan_past(mem_change *c, weir_buf *past);
void      weir__mem_apply(mem_store *s, mem_change *c);
void      weir__mem_undo(mem_store *s, mem_change *c);
void      weir__mem_settle(mem_store *s, mem_change *c, int64_t now);
void      weir__mem_drop(mem_change *c);        /* a plan that was not applied */

/* A string of a job's; NULL when out of memory. */
char *weir__mem_text(const char *text, size_t len);
void  weir__mem_text_free(char *text);

/* Somebody set the wall clock: lengths of time go on as they were. Cannot fail. */
void weir__mem_clock_set(mem_store *s, int64_t step_ms);

/* Put a job where its numbers say it belongs, or take it out. */
void weir__mem_index(mem_store *s, mem_job *m);
void weir__mem_unindex(mem_store *s, mem_job *m);

/* A job and the strings that stay with it, in no tree or table yet; NULL: no memory. The others
 * (result, error, progress data, worker, history, values) are to be set by the caller. */
mem_job *weir__mem_job_create(mem_type *t, const weir_job *j);
/* Give it the values of j, in the form that stores keep. False: no memory. */
bool weir__mem_job_values(mem_job *m, const weir_job *j);
/* Put a new one in, with the id it has. */
void weir__mem_job_put(mem_store *s, mem_job *m);

/* A finished one came: what is over what its type keeps is due now, or once it is old enough. */
void weir__mem_want_retention(mem_store *s, const mem_job *m);

/* Take a job out for good; its memory goes at the end of the batch. */
void weir__mem_forget(mem_store *s, mem_job *m);
void weir__mem_job_free(mem_job *m);

/* Append a line; its text as "PREFIX | TEXT", cut to WEIR_MAX_TEXT. */
mem_line *weir__mem_line(const char *prefix, const char *text, size_t len);    /* NULL: no memory */
void      weir__mem_line_add(mem_job *m, mem_line *line, int64_t now);
void      weir__mem_line_put(mem_job *m, mem_line *line);       /* its number and time are set */

/* ---- tokens ---- */

/* Is an add that has a token one that is remembered (then it is answered), or to be refused? */
weir_code  weir__mem_token_look(const mem_store *s, weir_op *op, bool *again);
/* Room to remember it, to be put once it is done, or free()d. NULL: no memory. */
mem_token *weir__mem_token_create(const weir_op_add *a);
void       weir__mem_token_put(mem_store *s, mem_token *t, const weir_added *added, int64_t now);
/* Forget up to `limit` of the old ones; answers when to come again. */
int64_t    weir__mem_tokens_tick(mem_store *s, size_t limit, int64_t now);
void       weir__mem_tokens_fini(mem_store *s);

/* ---- telling ---- */

bool weir__mem_room(mem_store *s, size_t events);   /* so that as many weir__mem_tell() work */
void weir__mem_tell(mem_store *s, weir_event_kind kind, const weir_job *j, bool gone,
                    const char *text, size_t len, int64_t now);
void weir__mem_tell_failed(mem_store *s, const weir_job *j, int64_t now);
void weir__mem_tell_lost(mem_store *s, const weir_job *j, int64_t now);
void weir__mem_want(mem_store *s, int64_t at);

#endif
