/* jobs.c - the jobs and types of a mem store: finding them, moving them between states, keeping
 * every tree and table in step, and gathering the events of a batch. */
#include "store/mem/mem.h"

#include <stdlib.h>
#include <string.h>

#include "core/values.h"

/* ---- finding ---- */

mem_job *weir__mem_find(const mem_store *s, uint64_t id)
{
    table_link *l = weir__table_find(&s->jobs, id);
    return l ? CONTAINER(l, mem_job, by_id) : NULL;
}

mem_type *weir__mem_type(const mem_store *s, const char *name)
{
    for (table_link *l = weir__table_find(&s->types, weir__table_hash(0, name)); l;
         l = weir__table_more(l)) {
        mem_type *t = CONTAINER(l, mem_type, link);
        if (!strcmp(t->name, name))
            return t;
    }
    return NULL;
}

static size_t type_place(const mem_store *s, const char *name)
{
    size_t low = 0, high = s->n_types;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (strcmp(s->by_name[mid]->name, name) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

mem_type *weir__mem_type_make(mem_store *s, const char *name)
{
    mem_type *t = weir__mem_type(s, name);
    if (t)
        return t;
    if (s->n_types == s->cap_types) {
        size_t     cap = s->cap_types ? s->cap_types * 2 : 16;
        mem_type **more = realloc(s->by_name, cap * sizeof(mem_type *));
        if (!more)
            return NULL;
        s->by_name = more;
        s->cap_types = cap;
    }
    size_t len = strlen(name) + 1;
    t = calloc(1, sizeof *t + len);
    if (!t)
        return NULL;
    memcpy(t->name, name, len);
    t->stats.type = t->name;
    weir__table_add(&s->types, &t->link, weir__table_hash(0, name));
    if (strcmp(name, "*") != 0) {
        size_t at = type_place(s, name);
        memmove(s->by_name + at + 1, s->by_name + at, (s->n_types - at) * sizeof(mem_type *));
        s->by_name[at] = t;
        s->n_types++;
    }
    return t;
}

static uint64_t unique_hash(const mem_type *t, const char *unique)
{
    return weir__table_hash(t->link.hash, unique);
}

mem_job *weir__mem_holder(const mem_store *s, const mem_type *t, const char *unique)
{
    for (table_link *l = weir__table_find(&s->unique, unique_hash(t, unique)); l;
         l = weir__table_more(l)) {
        mem_job *m = CONTAINER(l, mem_job, by_unique);
        if (m->type == t && !strcmp(m->j.unique, unique))
            return m;
    }
    return NULL;
}

const weir_settings *weir__mem_settings(const mem_store *s, const mem_type *t)
{
    return t->own_settings ? &t->stats.settings : &s->star->stats.settings;
}

const weir_keep *weir__mem_keep(const mem_store *s, const mem_type *t, weir_state state)
{
    const weir_settings *set = weir__mem_settings(s, t);
    return state == WEIR_COMPLETE ? &set->keep_complete : &set->keep_failed;
}

/* ---- making ---- */

mem_job *weir__mem_job_create(mem_type *t, const weir_job *j)
{
    size_t size = j->data_len + 1;
#define X(member, n, k, js, s, life, ...)                                                         \
    WEIR_IF_NEW_##life(size += j->member ? strlen(j->member) + 1 : 0;)
    WEIR_JOB_TEXTS(X)
#undef X
    mem_job *m = malloc(sizeof *m + size);
    if (!m)
        return NULL;
    *m = (mem_job){ .j = *j, .type = t };
    char *at = m->bytes;
#define X(member, ...) m->j.member = NULL;
    WEIR_JOB_TEXTS(X)
    WEIR_JOB_BYTES(X)
#undef X
#define X(member, n, k, js, s, life, ...)                                                         \
    WEIR_IF_NEW_##life(if (j->member) { m->j.member = at; at = stpcpy(at, j->member) + 1; })
    WEIR_JOB_TEXTS(X)
#undef X
    m->j.type = t->name;
    m->j.data = memcpy(at, j->data, j->data_len);
    at[j->data_len] = '\0';
    m->in_all.id = m->in_state.id = m->in_due.id = j->id;
    return m;
}

bool weir__mem_job_values(mem_job *m, const weir_job *j)
{
    weir_job from = *j;
    weir_buf room = { 0 };
    bool     ok = weir__job_values(&from, &room);
    if (ok && from.values)
        m->j.values = weir__mem_text(from.values, from.values_len);
    m->j.values_len = m->j.values ? from.values_len : 0;
    ok = ok && (m->j.values || !from.values);
    weir__buf_fini(&room);
    return ok;
}

void weir__mem_job_put(mem_store *s, mem_job *m)
{
    if (m->j.id > s->last_id)
        s->last_id = m->j.id;
    weir__table_add(&s->jobs, &m->by_id, m->j.id);
    weir__tree_add(&m->type->all, &m->in_all);
    weir__mem_index(s, m);
}

/* ---- strings and lines ---- */

char *weir__mem_text(const char *text, size_t len)
{
    mem_text *t = malloc(sizeof *t + len + 1);
    if (!t)
        return NULL;
    memcpy(t->s, text, len);
    t->s[len] = '\0';
    return t->s;
}

void weir__mem_text_free(char *text)
{
    if (text)
        free(CONTAINER(text, mem_text, s));
}

mem_line *weir__mem_line(const char *prefix, const char *text, size_t len)
{
    size_t head = prefix ? strlen(prefix) + 3 : 0;
    len = weir__utf8_cut(text, len, WEIR_MAX_TEXT - head);
    mem_line *l = malloc(sizeof *l + head + len + 1);
    if (!l)
        return NULL;
    if (prefix) {
        memcpy(l->s, prefix, head - 3);
        memcpy(l->s + head - 3, " | ", 3);
    }
    memcpy(l->s + head, text, len);
    l->s[head + len] = '\0';
    return l;
}

void weir__mem_line_add(mem_job *m, mem_line *line, int64_t now)
{
    line->n = m->last ? m->last->n + 1 : 1;
    line->at = now;
    weir__mem_line_put(m, line);
}

void weir__mem_line_put(mem_job *m, mem_line *line)
{
    line->next = NULL;
    if (m->last)
        m->last->next = line;
    else
        m->first = line;
    m->last = line;
    if (++m->n_lines > WEIR_MAX_LOG) {
        mem_line *old = m->first;
        m->first = old->next;
        m->n_lines--;
        free(old);
    }
}

/* ---- in step ---- */

void weir__mem_index(mem_store *s, mem_job *m)
{
    weir_state state = m->j.state;
    m->in_state.rank = weir__job_rank(&m->j);
    weir__tree_add(&m->type->in[state], &m->in_state);
    m->in_due.rank = weir__job_due(&m->j);
    if (m->in_due.rank) {
        weir__tree_add(&s->due, &m->in_due);
        weir__mem_want(s, m->in_due.rank);
    }
    if (m->j.unique && !weir__finished(state))
        weir__table_add(&s->unique, &m->by_unique, unique_hash(m->type, m->j.unique));
    if (state == WEIR_ACTIVE) {
        m->prev = NULL;
        m->next = s->active;
        if (s->active)
            s->active->prev = m;
        s->active = m;
    }
}

void weir__mem_unindex(mem_store *s, mem_job *m)
{
    weir_state state = m->j.state;
    weir__tree_remove(&m->type->in[state], &m->in_state);
    if (m->in_due.rank)
        weir__tree_remove(&s->due, &m->in_due);
    m->in_due.rank = 0;
    if (m->j.unique && !weir__finished(state))
        weir__table_remove(&s->unique, &m->by_unique);
    if (state == WEIR_ACTIVE) {
        if (m->prev)
            m->prev->next = m->next;
        else
            s->active = m->next;
        if (m->next)
            m->next->prev = m->prev;
        m->prev = m->next = NULL;
    }
}

void weir__mem_job_free(mem_job *m)
{
    for (mem_line *l = m->first, *next; l; l = next) {
        next = l->next;
        free(l);
    }
    if (m->data_apart)
        weir__mem_text_free((char *)m->j.data);
#define X(member, n, k, js, s, life, ...)                                                         \
    WEIR_IF_MOVES_##life(weir__mem_text_free((char *)m->j.member);)
    WEIR_JOB_TEXTS(X)
    WEIR_JOB_BYTES(X)
#undef X
    weir__mem_text_free((char *)m->j.values);
    free(m);
}

static void throw_job(mem_store *s, mem_job *m)
{
    m->next = s->trash_jobs;
    s->trash_jobs = m;
}

void weir__mem_forget(mem_store *s, mem_job *m)
{
    weir__mem_unindex(s, m);
    weir__tree_remove(&m->type->all, &m->in_all);
    weir__table_remove(&s->jobs, &m->by_id);
    throw_job(s, m);
}

/* ---- changing ---- */

weir_code weir__mem_plan_past(mem_change *c, weir_buf *past)
{
    if (past->len)
        c->after.history = c->history = weir__mem_text(past->data, past->len);
    weir_code rc = past->failed || (past->len && !c->history) ? WEIR_ENOMEM : WEIR_OK;
    weir__buf_fini(past);
    return rc;
}

weir_code weir__mem_plan_fail(mem_change *c, mem_job *m, const char *text, size_t len, int64_t now)
{
    weir_buf past = { 0 };
    *c = (mem_change){ .m = m, .before = m->j, .after = m->j };
    c->text = weir__mem_text(text, len);
    c->line = weir__mem_line("error", text, len);
    if (!c->text || !c->line)
        return WEIR_ENOMEM;
    weir__job_fail(&c->after, c->text, now, &past);
    return weir__mem_plan_past(c, &past);
}

/* It ended with an error that job.c has set: as the job's own, and with a line. */
static weir_code plan_error(mem_change *c, weir_buf *past)
{
    size_t len = strlen(c->after.error);
    c->line = weir__mem_line("error", c->after.error, len);
    c->after.error = c->text = weir__mem_text(c->after.error, len);
    weir_code rc = weir__mem_plan_past(c, past);
    return c->text && c->line ? rc : WEIR_ENOMEM;
}

weir_code weir__mem_plan_exceed(mem_change *c, mem_job *m, int64_t now)
{
    weir_buf past = { 0 };
    *c = (mem_change){ .m = m, .before = m->j, .after = m->j };
    weir__job_exceed(&c->after, now, &past);
    return plan_error(c, &past);
}

weir_code weir__mem_plan_expire(mem_change *c, mem_job *m, int64_t now)
{
    weir_buf past = { 0 };
    *c = (mem_change){ .m = m, .before = m->j, .after = m->j };
    weir__job_expire(&c->after, now, &past);
    return plan_error(c, &past);
}

weir_code weir__mem_plan_lose(mem_change *c, mem_job *m, int64_t now)
{
    char     line[WEIR__LINE];
    weir_buf past = { 0 };
    *c = (mem_change){ .m = m, .before = m->j, .after = m->j };
    weir__job_lose(&c->after, now, line, &past);
    if (weir__mem_plan_past(c, &past))
        return WEIR_ENOMEM;
    c->line = weir__mem_line(NULL, line, strlen(line));
    if (!c->line)
        return WEIR_ENOMEM;
    if (c->after.error == line) {
        c->after.error = c->text = weir__mem_text(line, strlen(line));
        if (!c->text)
            return WEIR_ENOMEM;
    }
    return WEIR_OK;
}

weir_code weir__mem_plan_release(mem_change *c, mem_job *m, int64_t now)
{
    weir_buf past = { 0 };
    *c = (mem_change){ .m = m, .before = m->j, .after = m->j };
    weir__job_release(&c->after, now, &past);
    return weir__mem_plan_past(c, &past);
}

weir_code weir__mem_plan_promote(mem_change *c, mem_job *m, int64_t now)
{
    weir_buf past = { 0 };
    *c = (mem_change){ .m = m, .before = m->j, .after = m->j };
    weir__job_promote(&c->after, now, &past);
    return weir__mem_plan_past(c, &past);
}

void weir__mem_drop(mem_change *c)
{
    weir__mem_text_free(c->text);
    weir__mem_text_free(c->history);
    weir__mem_text_free(c->values);
    free(c->line);
}

void weir__mem_apply(mem_store *s, mem_change *c)
{
    mem_job *m = c->m;
    weir__mem_unindex(s, m);
    if (c->gone) {
        weir__tree_remove(&m->type->all, &m->in_all);
        weir__table_remove(&s->jobs, &m->by_id);
    }
    m->j = c->after;
    if (!c->gone)
        weir__mem_index(s, m);
}

void weir__mem_undo(mem_store *s, mem_change *c)
{
    mem_job *m = c->m;
    if (c->gone) {
        weir__tree_add(&m->type->all, &m->in_all);
        weir__table_add(&s->jobs, &m->by_id, m->j.id);
    } else {
        weir__mem_unindex(s, m);
    }
    m->j = c->before;
    weir__mem_index(s, m);
    weir__mem_drop(c);
}

static void throw_text(mem_store *s, const char *old, const char *kept)
{
    if (!old || old == kept)
        return;
    mem_text *t = CONTAINER(old, mem_text, s);
    t->next = s->trash;
    s->trash = t;
}

void weir__mem_want_retention(mem_store *s, const mem_job *m)
{
    const weir_keep *keep = weir__mem_keep(s, m->type, m->j.state);
    int64_t          at = INT64_MAX;
    if (keep->age_ms)
        at = m->j.finished_at + keep->age_ms;
    if (keep->count && m->type->in[m->j.state].n > (uint64_t)keep->count)
        at = INT64_MIN;                  /* at once, even if the clock is turned back */
    if (at < s->keep_at)
        s->keep_at = at;
    weir__mem_want(s, at);
}

void weir__mem_settle(mem_store *s, mem_change *c, int64_t now)
{
    mem_job        *m = c->m;
    const weir_job *was = &c->before, *is = &c->after;
    if (was->data != is->data) {
        if (m->data_apart)
            throw_text(s, was->data, is->data);
        m->data_apart = true;
    }
    throw_text(s, was->result, is->result);
    throw_text(s, was->error, is->error);
    throw_text(s, was->progress_data, is->progress_data);
    throw_text(s, was->worker, is->worker);
    throw_text(s, was->history, is->history);
    throw_text(s, was->values, is->values);
    if (c->line)
        weir__mem_line_add(m, c->line, now);
    if (c->gone)
        throw_job(s, m);
    else if (weir__finished(is->state))
        weir__mem_want_retention(s, m);
}

/* ---- telling ---- */

bool weir__mem_room(mem_store *s, size_t events)
{
    if (s->n_events + events <= s->cap_events)
        return true;
    size_t cap = s->cap_events ? s->cap_events * 2 : 64;
    while (cap < s->n_events + events)
        cap *= 2;
    weir_event *more = realloc(s->events, cap * sizeof *more);
    if (!more)
        return false;
    s->events = more;
    s->cap_events = cap;
    return true;
}

void weir__mem_tell(mem_store *s, weir_event_kind kind, const weir_job *j, bool gone,
                    const char *text, size_t len, int64_t now)
{
    s->events[s->n_events++] = (weir_event){
        .kind = kind,
        .state = gone ? WEIR_ANY : j->state,
        .id = j->id,
        .type = j->type,
        .at = now,
        .attempts = j->attempts,
        .progress = j->progress,
        .delivery = j->delivery,
        .text = text,
        .text_len = text ? len : 0,
    };
}

/* An attempt failed, or all of it. */
void weir__mem_tell_failed(mem_store *s, const weir_job *j, int64_t now)
{
    weir_event_kind kind = j->state == WEIR_FAILED ? WEIR_EVENT_FAILED : WEIR_EVENT_FAILED_ATTEMPT;
    weir__mem_tell(s, kind, j, false, j->error, strlen(j->error), now);
    if (j->state == WEIR_INACTIVE)
        weir__mem_tell(s, WEIR_EVENT_ENQUEUE, j, false, NULL, 0, now);
}

/* Its worker died with it: it waits again, or has failed. */
void weir__mem_tell_lost(mem_store *s, const weir_job *j, int64_t now)
{
    weir__mem_tell(s, WEIR_EVENT_STALLED, j, false, NULL, 0, now);
    if (j->state == WEIR_FAILED)
        weir__mem_tell_failed(s, j, now);
    else
        weir__mem_tell(s, WEIR_EVENT_ENQUEUE, j, false, NULL, 0, now);
}

void weir__mem_want(mem_store *s, int64_t at)
{
    if (at < s->wanted)
        s->wanted = at;
}
