/* push_admin.c - the targets: shown, put, removed, paused, and kept in a file. The change is
 * written first; if that fails, nothing was changed. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "server/access/file.h"
#include "base/fail.h"
#include "server/push/push_inner.h"

/* ---- the list ---- */

static push_target *find(srv_push *p, const char *name)
{
    push_target *t = p->targets;
    while (t && strcmp(t->is->name, name) != 0)
        t = t->next;
    return t;
}

void push_target_free(push_target *t)
{
    free(t->is);
    free(t);
}

void push_sweep(srv_push *p)
{
    push_target *gone = NULL, *t;
    pthread_mutex_lock(&p->lock);
    for (push_target **link = &p->targets; (t = *link);) {
        if (!t->removed || t->running || t->asking) {
            link = &t->next;
            continue;
        }
        *link = t->next;
        t->next = gone;
        gone = t;
    }
    pthread_mutex_unlock(&p->lock);
    if (gone)
        push_listen(p, p->targets, NULL);
    while ((t = gone)) {
        gone = t->next;
        push_target_free(t);
    }
}

/* Takes `is`: as a new one, or as what `t` is from now on. */
static weir_code install(srv_push *p, push_target *t, srv_push_target *is, weir_error *err)
{
    push_target *fresh = t ? NULL : calloc(1, sizeof *t);
    if (!t && !fresh) {
        free(is);
        return weir_fail(err, WEIR_ENOMEM, "push: out of memory");
    }
    push_target    **last = &p->targets;
    srv_push_target *old = t ? t->is : NULL;
    t = t ? t : fresh;
    pthread_mutex_lock(&p->lock);
    t->is = is;
    t->woken = true;
    while (*last)
        last = &(*last)->next;
    if (fresh)
        *last = fresh;
    pthread_mutex_unlock(&p->lock);
    free(old);
    t->removed = false;
    t->failures = 0;
    t->ready_ms = 0;
    t->why.code = WEIR_OK;
    return WEIR_OK;
}

/* ---- the file ---- */

/* All but the one called `but` (NULL: none is), and `fresh` (NULL: none). */
static weir_code save(srv_push *p, const char *but, const srv_push_target *fresh, weir_error *err)
{
    const srv_push_target *all[SRV_PUSH_MAX_TARGETS + 1];
    size_t                 n = 0;
    for (push_target *t = p->targets; t; t = t->next) {
        if (!t->removed && (!but || strcmp(t->is->name, but) != 0))
            all[n++] = t->is;
    }
    if (fresh)
        all[n++] = fresh;
    if (n > SRV_PUSH_MAX_TARGETS)
        return weir_fail(err, WEIR_ELIMIT, "push: more than %d targets (SRV_PUSH_MAX_TARGETS)",
                         SRV_PUSH_MAX_TARGETS);
    if (!p->path)
        return WEIR_OK;
    weir_buf out = { 0 };
    srv_push_write(&out, all, n);
    weir_code rc = out.failed ? weir_fail(err, WEIR_ENOMEM, "%s: out of memory", p->path)
                              : srv_file_replace(p->path, out.data, out.len, err);
    weir__buf_fini(&out);
    return rc;
}

weir_code push_load(srv_push *p, weir_error *err)
{
    srv_push_target *all[SRV_PUSH_MAX_TARGETS];
    size_t           n = 0, i = 0;
    weir_buf         text = { 0 };
    weir_error       why = { 0 };
    weir_code        rc = p->path ? srv_file_read(p->path, &text, err) : WEIR_ENOENT;
    if (!rc && (rc = srv_push_parse(text.data, text.len, all, &n, &why)))
        weir_fail(err, rc, "%s: %s", p->path, why.msg);
    else if (rc == WEIR_ENOENT)
        rc = WEIR_OK;
    weir__buf_fini(&text);
    if (!rc)
        rc = push_listen(p, n, err);
    for (; !rc && i < n; i++)
        rc = install(p, NULL, all[i], err);
    for (; i < n; i++)
        free(all[i]);
    return rc;
}

/* If it can not be written, it is said again after a restart. */
void push_pause(srv_push *p, push_target *t, const weir_error *why)
{
    t->is->paused = true;
    t->why = *why;
    t->why_at = weir_now(p->q);
    save(p, NULL, NULL, NULL);
}

/* ---- what is asked ---- */

/* As members of an object that goes on. */
static void show(srv_push *p, weir_buf *out, const push_target *t)
{
    int64_t left = t->ready_ms - weir__monotonic_ms();
    srv_push_show(out, t->is);
    if (t->is->paused)
        weir__buf_str(out, "\"state\":\"paused\",");
    else if (left > 0)
        weir__buf_printf(out, "\"state\":\"backing off\",\"until\":%" PRId64 ",",
                         weir_now(p->q) + left);
    else
        weir__buf_str(out, "\"state\":\"ready\",");
    if (t->why.code) {
        weir__buf_str(out, "\"error\":");
        weir__json_string(out, t->why.msg, strlen(t->why.msg));
        weir__buf_printf(out, ",\"error_at\":%" PRId64 ",", t->why_at);
    }
    weir__buf_printf(out, "\"running\":%zu", t->running);
}

static void show_kept(srv_push *p, weir_buf *out)
{
    weir__buf_printf(out, ",\"kept\":\"%s\"}", p->path ? "file" : "memory");
}

void srv_push_list(srv_push *p, srv_push_ask *ask)
{
    weir_buf   *out = &ask->json;
    const char *before = "{";
    weir__buf_str(out, "{\"targets\":[");
    for (push_target *t = p->targets; t; t = t->next) {
        if (t->removed)
            continue;
        weir__buf_str(out, before);
        show(p, out, t);
        weir__buf_char(out, '}');
        before = ",{";
    }
    weir__buf_char(out, ']');
    show_kept(p, out);
}

void srv_push_put(srv_push *p, srv_push_ask *ask)
{
    weir_error      *err = &ask->err;
    srv_push_target  fresh = *ask->target, *is;
    push_target     *t = find(p, fresh.name);
    ask->made = !t || t->removed;
    if (!fresh.secret && ask->made) {
        weir__fail_field(err, WEIR_EINVAL, "secret", "missing; a new target needs one");
        return;
    }
    if (fresh.rotate && !ask->made)
        fresh.old_secret = fresh.secret ? t->is->secret : t->is->old_secret;
    if (!fresh.secret)
        fresh.secret = t->is->secret;
    if (!(is = srv_push_copy(&fresh))) {
        weir_fail(err, WEIR_ENOMEM, "push: out of memory");
        return;
    }
    if (push_listen(p, true, err) || save(p, is->name, is, err)) {
        free(is);
        return;
    }
    if (install(p, t, is, err))
        return;
    weir__buf_char(&ask->json, '{');
    show(p, &ask->json, find(p, is->name));
    show_kept(p, &ask->json);
}

void srv_push_remove(srv_push *p, srv_push_ask *ask)
{
    push_target *t = find(p, ask->name);
    if (!t || t->removed)
        weir_fail(&ask->err, WEIR_ENOENT, "push: there is no target \"%.80s\"", ask->name);
    else if (!save(p, ask->name, NULL, &ask->err))
        t->removed = true;
}
