/* cluster_arrive.c - frames of other processes, and the requests between them: see cluster.h. */
#include "bus/cluster.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- requests of this process ---- */

uint64_t weir__cluster_keep(weir_cluster *cl, weir_message *m, const char *process, bool reply)
{
    sent_request *s = malloc(sizeof *s);
    if (!s)
        return 0;
    *s = (sent_request){ .number = ++cl->numbers, .reply = reply,
                         .until_ms = weir__monotonic_ms() + weir__message_left_ms(m) };
    memcpy(s->process, process, sizeof s->process);
    if (!weir__map_put(&cl->sent, s->number, s)) {
        free(s);
        return 0;
    }
    s->message = weir_message_keep(m);
    if (!cl->timed)
        weir__cluster_poke(cl);
    cl->timed = true;
    return s->number;
}

sent_request *weir__cluster_take(weir_cluster *cl, uint64_t number, const char *process)
{
    pthread_mutex_lock(&cl->lock);
    sent_request *s = number ? weir__map_get(&cl->sent, number) : NULL;
    if (s && !strcmp(s->process, process))
        weir__map_remove(&cl->sent, number);
    else
        s = NULL;
    pthread_mutex_unlock(&cl->lock);
    return s;
}

void weir__cluster_forget(sent_request *s)
{
    weir_message_free(s->message);
    free(s);
}

/* ---- requests of other processes ---- */

static void post_failure(weir_cluster *cl, const char *process, uint64_t number,
                         weir_failure failure, int code, const char *text)
{
    bus_frame f = { .kind = FRAME_FAIL, .to = number, .failure = failure, .code = code,
                    .text = text };
    weir__cluster_post(cl, process, &f, NULL);
}

/* Post a reply that itself may expect one. */
static void post_reply(weir_cluster *cl, const bus_relay *r, weir_message *m)
{
    bus_frame f = { .kind = FRAME_REPLY, .to = r->number, .content = weir__content_of(m) };
    bool      expects = weir_message_expects_reply(m);
    weir_error why = { 0 };
    if (expects) {
        f.timeout_ms = (uint32_t)weir__message_left_ms(m);
        pthread_mutex_lock(&cl->lock);
        f.number = weir__cluster_keep(cl, m, r->process, true);
        pthread_mutex_unlock(&cl->lock);
        if (!f.number)
            weir_fail(&why, WEIR_ENOMEM, "bus: out of memory");
    }
    if (!why.code)
        weir__cluster_post(cl, r->process, &f, &why);
    if (!why.code)
        return;
    if (expects) {
        weir__message_answer(m, WEIR_FAILURE_ERROR, why.code, why.msg, NULL);
        sent_request *s = weir__cluster_take(cl, f.number, r->process);
        if (s)
            weir__cluster_forget(s);
    }
    post_failure(cl, r->process, r->number, WEIR_FAILURE_ERROR, why.code, why.msg);
}

static void free_relay(bus_relay *r)
{
    weir_cluster *cl = r->cluster;
    pthread_mutex_lock(&cl->lock);
    weir__list_remove(&cl->relays, &r->link);
    pthread_mutex_unlock(&cl->lock);
    free(r);
}

/* The requester counts its time itself: it needs no word that it is over. */
static void relay_answer(const weir_reply *reply, void *ctx)
{
    bus_relay *r = ctx;
    if (reply->message)
        post_reply(r->cluster, r, reply->message);
    else if (reply->failure != WEIR_FAILURE_TIMEOUT)
        post_failure(r->cluster, r->process, r->number, reply->failure, weir__reply_code(reply),
                     reply->text);
    free_relay(r);
}

/* How the answer to f->number of its sender gets there. False: out of memory. */
static bool expect_answer(weir_cluster *cl, const bus_frame *f, weir_expect *out)
{
    bus_relay *r = malloc(sizeof *r);
    if (!r)
        return false;
    *r = (bus_relay){ .cluster = cl, .number = f->number };
    memcpy(r->process, f->from, sizeof r->process);
    pthread_mutex_lock(&cl->lock);
    weir__list_append(&cl->relays, &r->link);
    pthread_mutex_unlock(&cl->lock);
    *out = (weir_expect){ .fn = relay_answer, .ctx = r, .mailbox = cl->mailbox,
                          .timeout_ms = f->timeout_ms ? f->timeout_ms : 1 };
    return true;
}

/* ---- what other processes consume ---- */

/* Ask it for its addresses, unless it was asked just now. Lock held; the caller posts. */
static bool must_ask(bus_peer *p)
{
    int64_t now = weir__monotonic_ms();
    if (p->asked_ms && now - p->asked_ms < CLUSTER_ASK_MS)
        return false;
    p->asked_ms = now;
    return true;
}

static void ask(weir_cluster *cl, const char *process)
{
    pthread_mutex_lock(&cl->lock);
    bus_frame f = { .kind = FRAME_HELLO, .version = cl->version };
    pthread_mutex_unlock(&cl->lock);
    weir__cluster_post(cl, process, &f, NULL);
}

/* These four run with the lock held. True: the sender is to be asked for its list. */
static bool take_version(weir_cluster *cl, bus_peer *p, bus_frame *f)
{
    (void)cl;
    return p->version != f->version && must_ask(p);
}

static bool take_hello(weir_cluster *cl, bus_peer *p, bus_frame *f)
{
    p->wants_list = true;
    weir__cluster_poke(cl);
    return take_version(cl, p, f);
}

static void set_entries(weir_cluster *cl, bus_peer *p, bus_frame *f)
{
    bus_entry e;
    p->version = f->version;
    while (weir__frame_next_entry(f, &e))
        if (!weir__directory_set(&cl->others, p, e.address, e.prefix, e.n))
            p->version = UINT64_MAX;    /* out of memory: the next frame asks again */
}

static bool take_addresses(weir_cluster *cl, bus_peer *p, bus_frame *f)
{
    if (f->part & FRAME_FIRST) {
        weir__directory_begin(p);
        p->loading = f->version + 1;
    }
    if (p->loading != f->version + 1)
        return must_ask(p);             /* a part is missing */
    set_entries(cl, p, f);
    if (!(f->part & FRAME_LAST)) {
        p->version = UINT64_MAX;
        return false;
    }
    weir__directory_end(&cl->others, p);
    p->loading = 0;
    p->answered = true;
    pthread_cond_broadcast(&cl->answered);
    return false;
}

static bool take_changes(weir_cluster *cl, bus_peer *p, bus_frame *f)
{
    if (p->version == UINT64_MAX || f->version > p->version + 1)
        return must_ask(p);
    if (f->version == p->version + 1)
        set_entries(cl, p, f);
    return false;
}

/* Hand what has changed in the directory to the bus. */
static weir_buf detach_changes(weir_cluster *cl)
{
    weir_buf changes = cl->others.changes;
    cl->others.changes = (weir_buf){ 0 };
    return changes;
}

static void report_changes(weir_cluster *cl, weir_buf *changes, const char *process)
{
    if (changes->len)
        weir__bus_changed_elsewhere(cl->bus, changes, process);
    weir__buf_fini(changes);
}

/* ---- messages ---- */

static void take_publish(weir_cluster *cl, bus_frame *f)
{
    weir__bus_arrive(cl->bus, f->address, &f->content, false, NULL, NULL);
}

/* Nobody here takes a message that expects no reply: perhaps another process does. */
static void pass_on(weir_cluster *cl, bus_frame *f)
{
    char to[WEIR_PROCESS];
    if (f->hops++ >= CLUSTER_MAX_HOPS)
        return;
    pthread_mutex_lock(&cl->lock);
    bus_remote *r = weir__directory_find(&cl->others, f->address);
    if (r)
        memcpy(to, weir__directory_turn(r)->name, sizeof to);
    pthread_mutex_unlock(&cl->lock);
    if (r)
        weir__cluster_post(cl, to, f, NULL);
}

static void take_send(weir_cluster *cl, bus_frame *f)
{
    weir_expect e;
    weir_error  why;
    if (!f->number) {
        weir_code rc = weir__bus_arrive(cl->bus, f->address, &f->content, true, NULL, &why);
        if (rc == WEIR_ENOENT || rc == WEIR_EFULL)
            pass_on(cl, f);
    } else if (!expect_answer(cl, f, &e)) {
        post_failure(cl, f->from, f->number, WEIR_FAILURE_ERROR, WEIR_ENOMEM,
                     "out of memory");
    } else if (weir__bus_arrive(cl->bus, f->address, &f->content, true, &e, &why)) {
        post_failure(cl, f->from, f->number, WEIR_FAILURE_ERROR, why.code, why.msg);
        free_relay(e.ctx);
    }
}

static void take_reply(weir_cluster *cl, bus_frame *f)
{
    sent_request *s = weir__cluster_take(cl, f->to, f->from);
    weir_expect   e;
    weir_error    why = { 0 };
    if (!s) {
        weir_fail(&why, WEIR_ESTALE, "the requester does not wait any more");
    } else if (!f->number) {
        weir_message_reply(s->message, &f->content, NULL);
    } else if (!expect_answer(cl, f, &e)) {
        weir_fail(&why, WEIR_ENOMEM, "out of memory");
        weir__message_answer(s->message, WEIR_FAILURE_ERROR, why.code, why.msg, NULL);
    } else if (weir_message_request_async(s->message, &f->content, &e, &why)) {
        weir__message_answer(s->message, WEIR_FAILURE_ERROR, why.code, why.msg, NULL);
        free_relay(e.ctx);
    }
    if (why.code && f->number)
        post_failure(cl, f->from, f->number, WEIR_FAILURE_ERROR, why.code, why.msg);
    if (s)
        weir__cluster_forget(s);
}

/* The directory was wrong about this process: correct it, and try another consumer. */
static void try_another(weir_cluster *cl, const char *process, sent_request *s)
{
    const char *address = weir_message_address(s->message);
    pthread_mutex_lock(&cl->lock);
    bus_peer   *p = weir__directory_peer(&cl->others, process);
    bus_remote *r = weir__directory_find(&cl->others, address);
    if (p && r)
        weir__directory_set(&cl->others, p, r->name, r->prefix, 0);
    bool     asks = p && must_ask(p);
    weir_buf changes = detach_changes(cl);
    pthread_mutex_unlock(&cl->lock);
    report_changes(cl, &changes, "");
    if (asks)
        ask(cl, process);
    weir__leaders_look(cl->bus);
    weir__bus_send_again(cl->bus, weir_message_keep(s->message), NULL);
}

static void take_fail(weir_cluster *cl, bus_frame *f)
{
    sent_request *s = weir__cluster_take(cl, f->to, f->from);
    if (!s)
        return;
    if (f->failure == WEIR_FAILURE_NO_HANDLERS && !s->reply)
        try_another(cl, f->from, s);
    else
        weir__message_answer(s->message, (weir_failure)f->failure, f->code, f->text, NULL);
    weir__cluster_forget(s);
}

/* Its addresses vanish, and what it was asked fails. `lost`: its name, or "" if it has said that it
 * ends. */
static void forget_process(weir_cluster *cl, const char *process, const char *lost)
{
    weir_dlist    failed = { 0 };
    size_t        pos = 0;
    uint64_t      number;
    void         *value;
    pthread_mutex_lock(&cl->lock);
    bus_peer *p = weir__directory_peer(&cl->others, process);
    if (p)
        weir__directory_remove(&cl->others, p);
    while (weir__map_next(&cl->sent, &pos, &number, &value)) {
        sent_request *s = value;
        if (strcmp(s->process, process) != 0)
            continue;
        weir__map_remove(&cl->sent, number);
        weir__list_append(&failed, &s->link);
    }
    weir_buf changes = detach_changes(cl);
    pthread_mutex_unlock(&cl->lock);
    report_changes(cl, &changes, lost);
    WEIR_EACH(sent_request, s, &failed, link) {
        char        text[WEIR_MAX_BUS_ADDRESS + 60];
        const char *address = weir_message_address(s->message);
        snprintf(text, sizeof text, *address ? "the process that consumed %s was lost"
                                             : "the process of the other side was lost%s", address);
        weir__message_answer(s->message, WEIR_FAILURE_ERROR, WEIR_ELOST, text, NULL);
        weir__cluster_forget(s);
    }
    weir__leaders_look(cl->bus);
}

static void take_bye(weir_cluster *cl, bus_frame *f)
{
    forget_process(cl, f->from, "");
}

/* ---- processes ---- */

typedef bool list_fn(weir_cluster *cl, bus_peer *p, bus_frame *f);
typedef void message_fn(weir_cluster *cl, bus_frame *f);

static const struct {
    list_fn    *list;                   /* with the lock held */
    message_fn *message;                /* without */
} takes[FRAME_KINDS] = {
    [FRAME_HELLO] = { .list = take_hello },
    [FRAME_ADDRESSES] = { .list = take_addresses },
    [FRAME_CHANGES] = { .list = take_changes },
    [FRAME_ALIVE] = { .list = take_version },
    [FRAME_PUBLISH] = { .message = take_publish },
    [FRAME_SEND] = { .message = take_send },
    [FRAME_REPLY] = { .message = take_reply },
    [FRAME_FAIL] = { .message = take_fail },
    [FRAME_BYE] = { .message = take_bye },
};

/* It is alive. True: it is to be asked for its list. */
static bool take_sign_of_life(weir_cluster *cl, bus_frame *f)
{
    bool      asks = false;
    list_fn  *list = takes[f->kind].list;
    pthread_mutex_lock(&cl->lock);
    bus_peer *p = weir__directory_peer(&cl->others, f->from);
    if (!p && f->kind != FRAME_BYE) {
        p = weir__directory_add(&cl->others, f->from);
        asks = p && !list && must_ask(p);
    }
    if (p) {
        p->seen_ms = weir__monotonic_ms();
        p->suspect_ms = 0;
        if (list)
            asks = list(cl, p, f);
    }
    weir_buf changes = detach_changes(cl);
    pthread_mutex_unlock(&cl->lock);
    report_changes(cl, &changes, "");
    return asks;
}

void weir__cluster_arrived(void *ctx, const char *bytes, size_t len)
{
    weir_cluster *cl = ctx;
    bus_frame     f;
    if (!weir__frame_read(bytes, len, &f) || !strcmp(f.from, cl->member.process))
        return;
    if (take_sign_of_life(cl, &f))
        ask(cl, f.from);
    if (f.kind == FRAME_ADDRESSES || f.kind == FRAME_CHANGES)
        weir__leaders_look(cl->bus);
    if (takes[f.kind].message)
        takes[f.kind].message(cl, &f);
}

/* Perhaps it is only cut off. */
void weir__cluster_gone(void *ctx, const char *process)
{
    forget_process(ctx, process, process);
}
