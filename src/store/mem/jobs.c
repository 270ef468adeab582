/* jobs.c - the jobs and types of a mem store: finding them, moving them between states, keeping
 * every tree and table in step, and gathering the events of a batch. */
#include "store/mem/mem.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/named.h"
#include "base/sorted.h"
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

static int compare_name(const void *name, const void *type)
{
    return strcmp(name, (*(mem_type *const *)type)->name);
}

mem_type *weir__mem_type_make(mem_store *s, const char *name)
{
    mem_type *t = weir__mem_type(s, name);
    if (t)
        return t;
    if (!weir__grow(&s->by_name, &s->cap_types, s->n_types + 1, sizeof(mem_type *)))
        return NULL;
    t = WEIR__NAMED_NEW(mem_type, name);
    if (!t)
        return NULL;
    t->stats.type = t->name;
    weir__table_add(&s->types, &t->link, weir__table_hash(0, name));
    if (strcmp(name, "*") != 0) {
        size_t at = weir__sorted_place(name, s->by_name, s->n_types, sizeof(mem_type *),
                                       compare_name);
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
    return t->has_settings ? &t->stats.settings : &s->star->stats.settings;
}

weir_kept weir__mem_kept(const mem_store *s, const mem_type *t, weir_state state)
{
    return (weir_kept){ weir__keep_of(weir__mem_settings(s, t), state), t->in[state].n };
}

/* ---- making ---- */

/* The job with data and the texts that nothing changes, in one block, and no others. */
static mem_job *create(mem_type *t, const weir_job *j)
{
    size_t size = j->data_len + 1;
#define SIZE_TEXT(member, n, k, js, s, life, ...)                                                 \
    WEIR_IF_FIXED_##life(size += j->member ? strlen(j->member) + 1 : 0;)
#define SIZE_BYTES(member, n, k, js, s, life, ...)                                                \
    WEIR_IF_FIXED_##life(size += j->member ? j->member##_len + 1 : 0;)
    WEIR_JOB_TEXTS(SIZE_TEXT)
    WEIR_JOB_BYTES(SIZE_BYTES)
    mem_job *m = malloc(sizeof *m + size);
    if (!m)
        return NULL;
    *m = (mem_job){ .j = *j, .type = t };
    char *at = m->bytes;
#define NONE(member, ...) m->j.member = NULL;
#define PUT(member, len)                                                                          \
    if (j->member) {                                                                              \
        m->j.member = at;                                                                         \
        at = (char *)mempcpy(at, j->member, len) + 1;                                             \
        at[-1] = '\0';                                                                            \
    }
#define PUT_TEXT(member, n, k, js, s, life, ...)                                                  \
    WEIR_IF_FIXED_##life(PUT(member, strlen(j->member)))
#define PUT_BYTES(member, n, k, js, s, life, ...)                                                 \
    WEIR_IF_FIXED_##life(PUT(member, j->member##_len))
    WEIR_JOB_TEXTS(NONE)
    WEIR_JOB_BYTES(NONE)
    WEIR_JOB_TEXTS(PUT_TEXT)
    WEIR_JOB_BYTES(PUT_BYTES)
    PUT(data, j->data_len)
    m->j.type = t->name;
    m->in_all.id = m->in_state.id = m->in_due.id = j->id;
    return m;
}

/* A text of the job's own, if there is one. False: out of memory. */
static bool copy_text(const char **to, const char *text, size_t len)
{
    *to = text ? weir__mem_text(text, len) : NULL;
    return *to || !text;
}

/* Data is in the block until it changes (data_apart). */
#define IS_APART(name) (WEIR__TEXT_AT_##name != WEIR__TEXT_AT_data)

static bool copy_changing(mem_job *m, const weir_job *j)
{
    bool ok = true;
#define X(name, len, life)                                                                        \
    WEIR_IF_CHANGES_##life(                                                                       \
        ok = ok && (!IS_APART(name) || copy_text(&m->j.name, j->name, len));)
    WEIR_JOB_STRINGS(X)
#undef X
    return ok;
}

mem_job *weir__mem_job_create(mem_type *t, const weir_job *like)
{
    weir_job j = *like;
    weir_buf room = { 0 };
    mem_job *m = weir__job_values(&j, &room) ? create(t, &j) : NULL;
    if (m && !copy_changing(m, &j)) {
        weir__mem_job_free(m);
        m = NULL;
    }
    weir__buf_fini(&room);
    return m;
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

mem_line *weir__mem_line(const char *text, size_t len)
{
    len = weir__utf8_cut(text, len, WEIR_MAX_TEXT);
    mem_line *l = malloc(sizeof *l + len + 1);
    if (!l)
        return NULL;
    memcpy(l->s, text, len);
    l->s[len] = '\0';
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

/* The texts that may be replaced, by the bits of weir_effects.texts. */
static const struct {
    size_t text, len;               /* where they are in a job; len 0: up to its NUL */
} texts[WEIR__CHANGING_TEXTS] = {
#define X(member, name, k, js, s, life, ...)                                                      \
    WEIR_IF_CHANGES_##life([WEIR__TEXT_AT_##name] = { offsetof(weir_job, member), 0 },)
    WEIR_JOB_TEXTS(X)
#undef X
#define X(member, name, k, js, s, life, ...)                                                      \
    WEIR_IF_CHANGES_##life([WEIR__TEXT_AT_##name] = { offsetof(weir_job, member),                 \
                                                      offsetof(weir_job, member##_len) },)
    WEIR_JOB_BYTES(X)
#undef X
};

/* Take the next text out of these bits. */
static size_t next_text(uint32_t *bits)
{
    size_t i = (size_t)__builtin_ctz(*bits);
    *bits &= *bits - 1;
    return i;
}

static const char **text_of(weir_job *j, size_t i)
{
    return (const char **)(void *)((char *)j + texts[i].text);
}

static size_t length_of(weir_job *j, size_t i)
{
    return texts[i].len ? *(size_t *)(void *)((char *)j + texts[i].len) : strlen(*text_of(j, i));
}

/* ---- in step ---- */

void weir__mem_index(mem_store *s, mem_job *m)
{
    weir_state state = m->j.state;
    m->in_state.rank = weir__job_rank(&m->j);
    weir__tree_add(&m->type->in[state], &m->in_state);
    m->in_due.rank = weir__job_due(&m->j);
    if (m->in_due.rank)
        weir__tree_add(&s->due, &m->in_due);
    if (m->j.unique && !weir__finished(state))
        weir__table_add(&s->unique, &m->by_unique, unique_hash(m->type, m->j.unique));
    if (state == WEIR_STATE_ACTIVE) {
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
    if (state == WEIR_STATE_ACTIVE) {
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
#define X(member, name, k, js, s, life, ...)                                                      \
    WEIR_IF_CHANGES_##life(if (IS_APART(name)) weir__mem_text_free((char *)m->j.member);)
    WEIR_JOB_TEXTS(X)
    WEIR_JOB_BYTES(X)
#undef X
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

void weir__mem_change(mem_change *c, mem_job *m)
{
    c->m = m;
    c->before = c->after = m->j;
    c->planned = 0;
    c->line = NULL;
}

/* A plan that is not carried out. */
static void drop(mem_change *c)
{
    while (c->planned)
        weir__mem_text_free((char *)*text_of(&c->after, next_text(&c->planned)));
    free(c->line);
    weir__effects_fini(&c->e);
}

bool weir__mem_plan(mem_store *s, mem_change *c)
{
    bool ok = weir__effects_ok(&c->e) && weir__outbox_reserve(&s->out, c->e.n_events);
    for (uint32_t left = c->e.texts; ok && left;) {
        size_t       i = next_text(&left);
        const char **text = text_of(&c->after, i);
        if (!*text)
            continue;
        char *copy = weir__mem_text(*text, length_of(&c->after, i));
        ok = copy != NULL;
        if (ok) {
            *text = copy;
            c->planned |= 1u << i;
        }
    }
    if (ok && c->e.log.len)
        ok = (c->line = weir__mem_line(c->e.log.data, c->e.log.len)) != NULL;
    if (ok)
        weir__effects_fini(&c->e);
    else
        drop(c);
    return ok;
}

void weir__mem_apply(mem_store *s, mem_change *c)
{
    mem_job *m = c->m;
    weir__mem_unindex(s, m);
    if (!c->e.to) {
        weir__tree_remove(&m->type->all, &m->in_all);
        weir__table_remove(&s->jobs, &m->by_id);
    }
    m->j = c->after;
    if (c->e.to)
        weir__mem_index(s, m);
}

void weir__mem_undo(mem_store *s, mem_change *c)
{
    mem_job *m = c->m;
    if (!c->e.to) {
        weir__tree_add(&m->type->all, &m->in_all);
        weir__table_add(&s->jobs, &m->by_id, m->j.id);
    } else {
        weir__mem_unindex(s, m);
    }
    m->j = c->before;
    weir__mem_index(s, m);
    drop(c);
}

static void throw_text(mem_store *s, const char *old)
{
    if (!old)
        return;
    mem_text *t = CONTAINER(old, mem_text, s);
    t->next = s->trash;
    s->trash = t;
}

void weir__mem_follow(mem_store *s, mem_job *m, const weir_effects *e, int64_t now)
{
    weir_type_stats *stats = &m->type->stats;
    stats->completed += e->completed;
    stats->failed += e->failed;
    stats->work_ms += e->work_ms;
    if (weir__effects_start(e)) {
        m->ttl_until = weir__job_ttl_until(&m->j, now);
        stats->last_taken_at = now;
    }
    if (e->to)
        weir__agenda_follow(&s->agenda, &m->j, m->ttl_until,
                            weir__mem_kept(s, m->type, m->j.state));
    weir__outbox_follow(&s->out, e, &m->j, now);
}

void weir__mem_settle(mem_store *s, mem_change *c, int64_t now)
{
    mem_job *m = c->m;
    for (uint32_t left = c->e.texts; left;) {
        size_t i = next_text(&left);
        if (i != WEIR__TEXT_AT_data || m->data_apart)
            throw_text(s, *text_of(&c->before, i));
    }
    m->data_apart = m->data_apart || (c->e.texts & WEIR__NEW(data));
    if (c->line)
        weir__mem_line_add(m, c->line, now);
    weir__mem_follow(s, m, &c->e, now);
    if (!c->e.to)
        throw_job(s, m);
}
