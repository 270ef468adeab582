/* errors.h - failed jobs in groups of the same error. Errors are the same when their masks are:
 * their first lines, in which what varies from job to job has become "*".
 *
 *   weir_error_groups *g;
 *   weir_get_errors(q, NULL, &g, &err);
 *   for (size_t i = 0; i < g->n; i++)
 *       printf("%6" PRIu64 " %s: %s\n", g->group[i].count, g->group[i].type, g->group[i].error);
 *   weir_error_groups_free(g); */
#ifndef WEIR_ERRORS_H
#define WEIR_ERRORS_H

#include "weir/queue.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    WEIR_MAX_ERROR_MASK   = 200,            /* bytes of a mask; more is cut */
    WEIR_MAX_ERROR_GROUPS = 200,            /* groups in an answer */
    WEIR_MAX_ERROR_JOBS   = 10000,          /* failed jobs that are looked at ... */
    WEIR_MAX_ERROR_BYTES  = 64 * 1024 * 1024    /* ... and their bytes */
};

/* Write the mask of an error (NULL: "") to `out`: its first line that is not empty, in which "*" is
 * written for quoted strings (the quotes stay), addresses (of mail, the Internet, behind the scheme
 * of a URL), UUIDs, hexadecimal numbers, ids of letters and digits, and all other numbers. Returns
 * its length. */
WEIR_API size_t weir_mask_error(const char *error, char out[WEIR_MAX_ERROR_MASK + 1]);

typedef struct weir_error_group {
    const char *type;
    const char *error;          /* the mask */
    uint64_t    count;          /* failed jobs that have it, of those that were looked at */
    int64_t     first_at;       /* when the first of them failed, and the last */
    int64_t     last_at;
    uint64_t    example;        /* the job that failed last */
    void       *reserved[WEIR_RESERVED];
} weir_error_group;

typedef struct weir_error_groups {
    weir_error_group *group;    /* the largest first */
    size_t            n;
    uint64_t          looked;   /* failed jobs that were looked at, the last to fail first */
    uint64_t          others;   /* jobs among them that are in no group: of further groups than
                                   WEIR_MAX_ERROR_GROUPS */
    bool              more;     /* there are older failed jobs: the look ended at
                                   WEIR_MAX_ERROR_JOBS or WEIR_MAX_ERROR_BYTES */
} weir_error_groups;

/* Group the failed jobs of a type (NULL: of all). Several reads, one after the other: jobs may move
 * on meanwhile. *out belongs to the caller: weir_error_groups_free(). Errors: WEIR_EINVAL. */
WEIR_API weir_code weir_get_errors(weir_queue *q, const char *type, weir_error_groups **out,
                                   weir_error *err);
WEIR_API weir_code weir_get_errors_async(weir_queue *q, const char *type, weir_error_groups **out,
                                         weir_future **f, weir_error *err);
WEIR_API void weir_error_groups_free(weir_error_groups *groups);

/* As one JSON object: what GET /v1/errors answers (docs/http.md). The caller frees it with free().
 * NULL when out of memory. */
WEIR_API char *weir_error_groups_json(const weir_error_groups *groups, size_t *out_len);

#ifdef __cplusplus
}
#endif
#endif
