/* read.c - the operations of the mem store that only look: get, list, logs, stats,
 * info. */
#include "store/mem/mem.h"

#include <stdlib.h>
#include <string.h>

#include "core/results.h"
#include "core/search.h"
#include "store/answers.h"
#include "store/pager.h"

static weir_code no_memory(weir_op *op)
{
    return weir_fail(&op->err, WEIR_ENOMEM, "%s: out of memory", weir__op_row(op)->name);
}

weir_code weir__mem_info(mem_store *s, weir_op *op)
{
    (void)s;
    weir_info *info = weir__info_create("mem");
    if (!info)
        return no_memory(op);
    info->durability = WEIR_DURABILITY_NONE;
    op->u.info.info = info;
    return WEIR_OK;
}

weir_code weir__mem_get(mem_store *s, weir_op *op)
{
    const mem_job *m = weir__mem_find(s, op->u.get.id);
    op->u.get.job = NULL;
    if (!m)
        return weir__no_job(&op->err, op->u.get.id);
    op->u.get.job = weir__job_copy(&m->j);
    return op->u.get.job ? WEIR_OK : no_memory(op);
}

/* ---- list ---- */

/* A walk over several trees as if they were one, by (rank, id). Where it stands is a place, not a
 * node, so it may begin at the place of a job that has moved on. */
typedef struct walk {
    const weir_query *q;
    const tree      **tree;
    tree_node       **head;
    size_t            n;
} walk;

static tree_node *beyond(const tree *t, bool descending, int64_t rank, uint64_t id)
{
    if (!id)
        return descending ? weir__tree_last(t) : weir__tree_first(t);
    return descending ? weir__tree_before(t, rank, id) : weir__tree_after(t, rank, id);
}

static bool walk_init(walk *w, const mem_store *s, const weir_query *q, bool by_id)
{
    size_t room = s->n_types ? s->n_types : 1;
    *w = (walk){ .q = q,
                 .tree = calloc(room, sizeof(tree *)),
                 .head = calloc(room, sizeof(tree_node *)) };
    if (!w->tree || !w->head)
        return false;
    for (size_t i = 0; i < s->n_types; i++) {
        const mem_type *t = s->by_name[i];
        if (q->type && strcmp(q->type, t->name) != 0)
            continue;
        const tree *list = by_id ? &t->all : &t->in[q->state];
        tree_node  *head = beyond(list, q->descending, by_id ? 0 : q->after.rank, q->after.id);
        if (!head)
            continue;
        w->tree[w->n] = list;
        w->head[w->n++] = head;
    }
    return true;
}

static void walk_fini(walk *w)
{
    free(w->tree);
    free(w->head);
}

static bool comes_first(const tree_node *a, const tree_node *b, bool descending)
{
    bool below = a->rank != b->rank ? a->rank < b->rank : a->id < b->id;
    return below != descending;
}

static tree_node *walk_next(walk *w)
{
    if (!w->n)
        return NULL;
    size_t best = 0;
    for (size_t i = 1; i < w->n; i++) {
        if (comes_first(w->head[i], w->head[best], w->q->descending))
            best = i;
    }
    tree_node *n = w->head[best];
    w->head[best] = beyond(w->tree[best], w->q->descending, n->rank, n->id);
    if (!w->head[best]) {
        w->n--;
        w->head[best] = w->head[w->n];
        w->tree[best] = w->tree[w->n];
    }
    return n;
}

/* 1: it is found by the words of the query; 0: not; -1: out of memory. */
static int is_found(const mem_job *m, const char *query)
{
    if (!m->j.search)
        return 0;
    weir_buf text = { 0 };
    bool     ok = weir__search_text(&text, m->j.data, m->j.data_len, m->j.search_keys);
    if (m->j.error) {
        weir__buf_char(&text, ' ');
        weir__buf_str(&text, m->j.error);
    }
    for (const mem_line *l = m->first; l; l = l->next) {
        weir__buf_char(&text, ' ');
        weir__buf_str(&text, l->s);
    }
    int found = -1;
    if (ok && !text.failed)
        found = weir__search_match(query, text.data ? text.data : "", text.len);
    weir__buf_fini(&text);
    return found;
}

static bool put(weir_page *page, const mem_job *m, bool ids_only)
{
    weir_job  bare = { .id = m->j.id };
    weir_job *copy = ids_only ? weir__job_copy(&bare) : weir__job_copy(&m->j);
    if (copy)
        page->job[page->n++] = copy;
    return copy != NULL;
}

static bool fill(weir_page *page, walk *w, bool by_id)
{
    const weir_query *q = w->q;
    weir_pager        pager = { .q = q, .page = page };
    for (tree_node *n; (n = walk_next(w));) {
        const mem_job *m = by_id ? CONTAINER(n, mem_job, in_all) : CONTAINER(n, mem_job, in_state);
        if (q->state && m->j.state != q->state)
            continue;
        int found = q->search ? is_found(m, q->search) : 1;
        if (found < 0)
            return false;
        if (!found)
            continue;
        weir_cursor     at = { .rank = n->rank, .id = n->id };
        weir_pager_step step = weir__pager_add(&pager, at, m->j.priority);
        if (step == WEIR__OVER)
            break;
        if (step == WEIR__PUT && !put(page, m, q->ids_only))
            return false;
    }
    return true;
}

weir_code weir__mem_list(mem_store *s, weir_op *op)
{
    weir_op_list *l = &op->u.list;
    bool          by_id = !l->query.state || l->query.search;
    walk          w;
    bool          ok = walk_init(&w, s, &l->query, by_id);
    l->page = ok ? weir__page_create(l->query.limit) : NULL;
    ok = l->page && fill(l->page, &w, by_id);
    walk_fini(&w);
    if (ok)
        return WEIR_OK;
    weir_page_free(l->page);
    l->page = NULL;
    return no_memory(op);
}

/* ---- logs ---- */

weir_code weir__mem_logs(mem_store *s, weir_op *op)
{
    weir_op_logs  *l = &op->u.logs;
    const mem_job *m = weir__mem_find(s, l->id);
    l->lines = NULL;
    if (!m)
        return weir__no_job(&op->err, l->id);
    l->lines = weir__lines_create();
    bool ok = l->lines != NULL;
    for (const mem_line *line = m->first; ok && line && l->lines->n < l->limit; line = line->next) {
        if (line->n > l->after)
            ok = weir__lines_add(l->lines, line->n, line->at, line->s, strlen(line->s));
    }
    if (ok)
        return WEIR_OK;
    weir_lines_free(l->lines);
    l->lines = NULL;
    return no_memory(op);
}

/* ---- stats ---- */

static bool add_type(const mem_store *s, weir_stats *stats, const mem_type *t)
{
    weir_type_stats *out = weir__stats_add(stats, t->name);
    if (!out)
        return false;
    const char *name = out->type;
    *out = t->stats;
    out->type = name;
    out->settings = weir__settings_out(weir__mem_settings(s, t));
    for (int st = WEIR_STATE_INACTIVE; st < WEIR_STATE_COUNT; st++)
        out->count[st] = t->in[st].n;
    out->count[WEIR_STATE_ANY] = t->all.n;
    const tree_node *next = weir__tree_first(&t->in[WEIR_STATE_INACTIVE]);
    out->oldest_at = next ? CONTAINER(next, mem_job, in_state)->j.created_at : 0;
    return true;
}

weir_code weir__mem_stats(mem_store *s, weir_op *op)
{
    weir_stats *stats = weir__stats_create();
    bool        ok = stats != NULL;
    for (size_t i = 0; ok && i < s->n_types; i++)
        ok = !s->by_name[i]->known || add_type(s, stats, s->by_name[i]);
    op->u.stats.stats = ok ? stats : NULL;
    if (!ok) {
        weir_stats_free(stats);
        return no_memory(op);
    }
    weir__stats_sum(stats);
    stats->all.paused = s->star->stats.paused;
    stats->all.settings = weir__settings_out(&s->star->stats.settings);
    stats->last_id = s->last_id;
    return WEIR_OK;
}
