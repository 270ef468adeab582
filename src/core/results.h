/* results.h - making what the library gives to its callers: pages, log lines, statistics, reports,
 * explanations and stories. The public release functions rely on these, so make them with nothing
 * else.
 *
 * All strings are copied. NULL or false means out of memory; what was made so far stays valid and
 * is released as usual. A pointer into a growing array is good until the next one is added. */
#ifndef WEIR_CORE_RESULTS_H
#define WEIR_CORE_RESULTS_H

#include "weir/queue.h"

/* A page with room for `cap` jobs and n = 0: set page->job[page->n++] to a job that the page owns
 * from then on (a copy, or one made by the store that weir_job_free() can release). */
weir_page *weir__page_create(size_t cap);

weir_lines *weir__lines_create(void);
bool weir__lines_add(weir_lines *lines, uint64_t n, int64_t at, const char *text, size_t len);

/* Statistics without types; `all` is named "*". weir__stats_add() returns the new type's entry,
 * zero but for its name. weir__stats_sum() adds up the types' numbers in `all` (its settings and
 * `paused` are the caller's to set). weir__stats_cut() leaves the types that a caller sees, with
 * their sum; if there is no memory, *stats is as it was. */
weir_stats      *weir__stats_create(void);
weir_type_stats *weir__stats_add(weir_stats *stats, const char *type);
void             weir__stats_sum(weir_stats *stats);
bool             weir__stats_cut(weir_stats **stats,
                                 bool (*sees)(const void *caller, const char *type),
                                 const void *caller);

weir_report *weir__report_create(void);
bool weir__report_line(weir_report *report, const char *fmt, ...) WEIR_PRINTF(2, 3);

/* The info of a store of this name: all but `store` and `weir` is empty. free(). */
weir_info *weir__info_create(const char *store);

/* Takes over `job`, also when it answers NULL. */
weir_explanation *weir__explanation_create(weir_job *job);
bool weir__explanation_say(weir_explanation *e, const char *why, weir_remedy remedy);
/* Takes over `story`. */
void weir__explanation_set_story(weir_explanation *e, weir_story *story);

weir_story *weir__story_create(void);
bool weir__story_moment(weir_story *s, int64_t at, const char *fmt, ...) WEIR_PRINTF(3, 4);

#endif
