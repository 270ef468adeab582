/* random.h - random operations for two stores at once, and their answers as text to compare. */
#ifndef WEIR_TEST_RANDOM_H
#define WEIR_TEST_RANDOM_H

#include "support/store_fixture.h"

enum {
    MAX_BATCH = 16,     /* operations in one run() */
    MAX_SPECS = 4,      /* jobs in one ADD (but for a lot) or IMPORT; leases in one RENEW */
    MAX_LOT = 12,       /* jobs that are alike in one ADD */
    MAX_LINES = 3,      /* log lines of a job in an IMPORT */
    MAX_TAKE = 10,
    MAX_HELD = 64,      /* deliveries remembered */
    MAX_MOVED = 8       /* jobs remembered that were imported */
};

/* ---- chance ---- */

typedef struct chance {
    uint64_t state;
} chance;

uint64_t chance_next(chance *c);
size_t   below(chance *c, size_t n);                /* 0 .. n-1 */
bool     one_in(chance *c, size_t n);

/* ---- operations ---- */

/* What the reference has shown so far, so that operations hit jobs that exist. */
typedef struct model {
    struct { uint64_t id; uint32_t delivery; } held[MAX_HELD];    /* taken, maybe ended since */
    size_t   n_held;
    struct { uint64_t id; const char *type; int64_t created_at; } moved[MAX_MOVED];
    size_t   n_moved;               /* ever */
    uint64_t last_id;
} model;

/* An operation as planned, with all it points at; the inputs only. */
typedef struct plan {
    weir_op       op;
    weir_spec     specs[MAX_LOT];
    weir_token    token;
    weir_renewal    leases[MAX_SPECS];
    const char   *types[3];
    weir_settings settings;
    weir_incoming incoming[MAX_SPECS];
    weir_job      jobs[MAX_SPECS];
    weir_line     lines[MAX_SPECS][MAX_LINES];
    weir_trend_row trends[3];
    bool          next_page;        /* LIST: go on where the last page ended, if it did */
} plan;

void plan_op(plan *p, chance *c, const model *m, int64_t now);
/* The end of the i-th of those that are held, alike for all: stores may keep them together. */
void plan_end(plan *p, const model *m, size_t i, int64_t now);
void plan_describe(const plan *p, weir_buf *out);

/* A planned operation on its way through one store, with room for its outputs. */
typedef struct attempt {
    weir_op       op;
    weir_added    added[MAX_LOT];
    weir_imported imported[MAX_SPECS];
    weir_renewal    leases[MAX_SPECS];
    weir_job     *jobs[MAX_TAKE];
    weir_code     refused;             /* by weir__op_check(): never reached the store */
} attempt;

/* Where the last page of a store ended, for next_page. */
typedef struct paging {
    bool       more;
    weir_query query;
} paging;

void attempt_init(attempt *a, const plan *p, const paging *pages);
/* Everything that can be observed of it, as text; then let go of its outputs. */
void attempt_answer(const attempt *a, weir_buf *out);
void attempt_learn(const attempt *a, model *m);
void attempt_page(const attempt *a, paging *pages);
void attempt_free(attempt *a);

#endif
