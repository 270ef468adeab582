/* mem.h - how the mem store keeps its jobs. Private to src/store/mem.
 *
 * The truth is each mem_job.j; the trees and tables around it say the same again in an order that
 * is quick to look up, and weir__mem_check() compares them. All of these live inside the jobs, so
 * moving a job never allocates. An operation therefore plans first (allocates all it needs, and may
 * fail), then applies, which cannot fail. */
#ifndef WEIR_STORE_MEM_MEM_H
#define WEIR_STORE_MEM_MEM_H

#include "base/clock.h"
#include "base/named.h"
#include "core/job_fields.h"
#include "core/tick.h"
#include "store/mem/table.h"
#include "store/mem/tree.h"
#include "store/outbox.h"
#include "store/store.h"

#define CONTAINER(ptr, type, member) ((type *)(void *)((char *)(ptr) - offsetof(type, member)))

/* A string of a job that may be replaced. Memory that an event points to must outlive the batch. So
 * replaced memory goes to the store's trash and is freed later. */
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
    tree            in[WEIR_STATE_COUNT];        /* its jobs in a state, by (rank, id) */
    weir_type_stats stats;                  /* counters, paused, own settings; count[] is in[].n */
    bool            known;                  /* a job was added, or it was configured */
    bool            has_settings;
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
    int64_t          ttl_until;             /* active; INT64_MAX: none */
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

typedef struct mem_schedule {       /* schedule.c */
    weir_named        named;
    tree_node         in_due;               /* rank: due_at; not in if that is INT64_MAX */
    weir_schedule_row row;                  /* name and record are in bytes */
    char              bytes[];
} mem_schedule;

typedef struct mem_trend {          /* trend.c */
    weir_trend_row row;                     /* type and record are in bytes */
    char           bytes[];
} mem_trend;

typedef struct mem_trend_slot {
    size_t      n, cap;
    mem_trend **at;                         /* by type */
} mem_trend_slot;

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
    weir_names  schedules;
    tree        schedules_due;
    uint64_t    last_version;               /* of a schedule */
    weir_map    trends[WEIR_TREND_STEPS];   /* slot + 1 to mem_trend_slot */
    int64_t     trends_first[WEIR_TREND_STEPS];     /* slots before it were removed */
    mem_job    *active;
    uint64_t    last_id;
    uint64_t    serial;
    weir_agenda agenda;
    weir_clock_watch clock;
    weir_outbox out;                        /* events of this batch */
    mem_text   *trash;
    mem_job    *trash_jobs;
} mem_store;

/* One entry for each kind of operation; a kind without one does not link. */
#define X(kind, member) weir_code weir__mem_##member(mem_store *s, weir_op *op);
WEIR_OPS(X)
#undef X

/* ---- finding ---- */

mem_job  *weir__mem_find(const mem_store *s, uint64_t id);
mem_type *weir__mem_type(const mem_store *s, const char *name);            /* NULL: not there */
mem_type *weir__mem_type_make(mem_store *s, const char *name);             /* NULL: no memory */
mem_job  *weir__mem_holder(const mem_store *s, const mem_type *t, const char *unique);

/* Settings that hold for a type, and what it keeps of jobs in a state. */
const weir_settings *weir__mem_settings(const mem_store *s, const mem_type *t);
weir_kept            weir__mem_kept(const mem_store *s, const mem_type *t, weir_state state);

/* ---- changing: plan, apply, then undo or settle ----
 *
 *     mem_change c;
 *     weir__mem_change(&c, m);
 *     weir__job_...(&c.after, ..., &c.e);
 *     if (!weir__mem_plan(s, &c))              out of memory: nothing is left to release
 *     weir__mem_apply(s, &c);                  cannot fail, and can be undone
 *     weir__mem_settle(s, &c, now); */

typedef struct mem_change {
    mem_job     *m;
    weir_job     before, after;
    weir_effects e;
    uint32_t     planned;       /* texts of `after` that are copies, as in e.texts */
    mem_line    *line;          /* new log line; owned until settled */
} mem_change;

void weir__mem_change(mem_change *c, mem_job *m);
/* Copy the texts that are new; room for the events. */
bool weir__mem_plan(mem_store *s, mem_change *c);
void weir__mem_apply(mem_store *s, mem_change *c);
void weir__mem_undo(mem_store *s, mem_change *c);
void weir__mem_settle(mem_store *s, mem_change *c, int64_t now);

/* The job is in its place: counters, what is due, events (there is room for them). */
void weir__mem_follow(mem_store *s, mem_job *m, const weir_effects *e, int64_t now);

/* A string of a job's; NULL when out of memory. */
char *weir__mem_text(const char *text, size_t len);
void  weir__mem_text_free(char *text);

/* Somebody set the wall clock: lengths of time go on as they were. Cannot fail. */
void weir__mem_clock_set(mem_store *s, int64_t step_ms);

/* Put a job where its numbers say it belongs, or take it out. */
void weir__mem_index(mem_store *s, mem_job *m);
void weir__mem_unindex(mem_store *s, mem_job *m);

/* A job with all texts of `like`, and its values in the form that stores keep. It is in no tree or
 * table yet. NULL: no memory. */
mem_job *weir__mem_job_create(mem_type *t, const weir_job *like);
/* Put a new one in, with the id it has. */
void weir__mem_job_put(mem_store *s, mem_job *m);

/* Remove a job, with its event. False: out of memory. */
bool weir__mem_remove_job(mem_store *s, mem_job *m, int64_t now);

/* Take a job out without a word; its memory goes at the end of the batch. */
void weir__mem_forget(mem_store *s, mem_job *m);
void weir__mem_job_free(mem_job *m);

/* Append a line; its text is cut to WEIR_MAX_TEXT. */
mem_line *weir__mem_line(const char *text, size_t len);         /* NULL: no memory */
void      weir__mem_line_add(mem_job *m, mem_line *line, int64_t now);
void      weir__mem_line_put(mem_job *m, mem_line *line);       /* its number and time are set */

/* ---- tokens ---- */

/* If the token of an add is remembered, answer or refuse the add. */
weir_code  weir__mem_token_look(const mem_store *s, weir_op *op, bool *again);
/* Room to remember it, to be put once it is done, or free()d. NULL: no memory. */
mem_token *weir__mem_token_create(const weir_op_add *a);
void       weir__mem_token_put(mem_store *s, mem_token *t, const weir_added *added, int64_t now);
/* Forget up to `limit` that were used before or at that time; answers how many. */
size_t     weir__mem_tokens_forget(mem_store *s, int64_t until, size_t limit);
void       weir__mem_tokens_fini(mem_store *s);

void       weir__mem_schedules_fini(mem_store *s);
void       weir__mem_trends_fini(mem_store *s);

#endif
