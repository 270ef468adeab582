/* link.c - calls: where each is sent, what its answer means, and whether it is sent again.
 *
 *   WAITING -> FLYING -> DONE      WAITING: in l->waiting, by number; FLYING: in the list of a node
 *      ^_________|
 *
 * A refused call goes back to WAITING. If a connection is lost, its calls go back, too, except
 * calls that were sent whole and are not repeatable. To keep the order of a slot, a call waits
 * behind earlier ones of its slot that wait or are being repeated. */
#include "store/redis/link/link.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "store/redis/link/net.h"

struct redis_link {
    redis_net   net;
    redis_call *waiting;
    uint64_t    number;         /* of the last call */
    size_t      n_repeats;      /* calls not DONE that were sent before */
};

enum { CALL_WAITING = 1, CALL_FLYING, CALL_DONE };

enum {
    STUCK_MS    = 200,          /* a connection that takes longer: perhaps there is a new primary */
    QUICK_TRIES = 5             /* most times that MOVED, ASK or a missing function is followed at
                                   once */
};

/* ---- the end of a call ---- */

static void set_done(redis_link *l, redis_call *c)
{
    l->n_repeats -= c->tries > 0;
    c->state = CALL_DONE;
}

static void succeed(redis_link *l, redis_call *c, redisReply *r)
{
    c->reply = r;
    c->err.code = WEIR_OK;
    c->err.msg[0] = '\0';
    set_done(l, c);
}

/* With what c->err says. If the first try was perhaps carried out, a refusal of the second does not
 * prove the contrary. */
static void fail(redis_link *l, redis_call *c)
{
    if (c->maybe && c->err.code != WEIR_ECORRUPT)
        c->err.code = WEIR_EUNKNOWN;
    set_done(l, c);
}

static const char *find_why(redis_link *l, const redis_call *c)
{
    const redis_node *n = c->asked ? c->asked : weir__net_owner(&l->net, c->slot);
    if (*c->err.msg)
        return c->err.msg;
    if (n && n->why.code)
        return n->why.msg;
    if (!n && l->net.probe.why.code)
        return l->net.probe.why.msg;
    return n && n->state == NODE_READY ? "redis: calls before this one had no answer"
                                       : "redis: no connection";
}

static void give_up(redis_link *l, redis_call *c)
{
    weir_fail(&c->err, c->maybe ? WEIR_EUNKNOWN : WEIR_EUNAVAIL, "%s; gave up after %lld ms",
              find_why(l, c), (long long)l->net.url.timeout_ms);
    set_done(l, c);
}

/* ---- lists ---- */

static void put_waiting(redis_link *l, redis_call *c)
{
    redis_call **at = &l->waiting;
    while (*at && (*at)->number < c->number)
        at = &(*at)->next;
    c->next = *at;
    *at = c;
    c->state = CALL_WAITING;
}

static void wait_again(redis_link *l, redis_call *c, int64_t pause_ms)
{
    l->n_repeats += c->tries == 0;
    c->tries++;
    c->again_ms = pause_ms ? weir__monotonic_ms() + pause_ms : 0;
    put_waiting(l, c);
}

/* Take it out of the calls of a node; the answers that come for it are for nobody. */
static void unlink_flying(redis_node *n, redis_call *c, bool answered)
{
    redis_call **at = &n->first, *before = NULL;
    for (; *at != c; at = &(*at)->next)
        before = *at;
    *at = c->next;
    if (n->last == c)
        n->last = before;
    n->n_once -= !c->repeatable;
    if (!answered && c->next)
        c->next->before += c->before + 1;
    else if (!answered)
        n->owed += c->before + 1;
}

/* How long the node may be silent. A call that may be repeated is worth a try over a new connection
 * while there is time for that. */
static void set_timeout(redis_link *l, redis_node *n)
{
    int64_t ms = l->net.url.timeout_ms;
    if (!n->first)
        n->timeout_ms = 0;
    else
        weir__node_await(n, n->n_once ? ms : ms / 2);
}

/* ---- sending ---- */

static void add_library(redis_node *n, const redis_library *lib)
{
    weir__resp_array(&n->out, 3);
    weir__resp_text(&n->out, "FUNCTION");
    weir__resp_text(&n->out, "LOAD");
    weir__resp_parts(&n->out, lib->head, strlen(lib->head), lib->source, lib->len);
}

static void fly(redis_link *l, redis_node *n, redis_call *c)
{
    size_t before = n->out.len, room = c->command.len + 128;
    if (c->loading)
        room += c->library->len + sizeof c->library->head;
    if (!weir__node_room(n, room)) {
        weir_fail(&c->err, WEIR_ENOMEM, "redis: no memory to send the call");
        fail(l, c);
        return;
    }
    c->before = n->owed;
    n->owed = 0;
    if (c->loading) {
        add_library(n, c->library);
        c->before++;
    }
    if (c->asked) {
        weir__resp_array(&n->out, 1);
        weir__resp_text(&n->out, "ASKING");
        c->before++;
    }
    weir__buf_add(&n->out, c->command.data, c->command.len);
    n->queued += n->out.len - before;
    c->end = n->queued;
    c->next = NULL;
    c->state = CALL_FLYING;
    bool only = !n->first;
    if (only)
        n->first = c;
    else
        n->last->next = c;
    n->last = c;
    n->n_once += !c->repeatable;
    if (only || n->n_once == 1)
        set_timeout(l, n);
}

/* Must it wait behind an earlier one of its slot? Waiting calls are before it in the list; if the
 * call is new, the whole list is before it. */
static bool held_back(const redis_link *l, const redis_call *c)
{
    for (const redis_call *o = l->waiting; o && o != c; o = o->next) {
        if (o->slot == c->slot)
            return true;
    }
    if (!l->n_repeats)
        return false;
    for (size_t i = 0; i < l->net.n_nodes; i++) {
        for (const redis_call *o = l->net.node[i]->first; o; o = o->next) {
            if (o->slot == c->slot && o->number < c->number && o->tries)
                return true;
        }
    }
    return false;
}

/* The node that it can be sent to, or NULL: it has to wait. */
static redis_node *find_node(redis_link *l, redis_call *c, int64_t now)
{
    if (c->again_ms > now || held_back(l, c))
        return NULL;
    redis_node *n = c->asked ? c->asked : weir__net_owner(&l->net, c->slot);
    if (!n || n->draining)
        return NULL;
    /* A call sent over a connection that the server has closed would be called perhaps done. */
    if (n->state == NODE_READY && (n->first || weir__node_alive(n)))
        return n;
    n->wanted = true;
    if ((n->state != NODE_CLOSED && n->state != NODE_READY) && now - n->read_ms > STUCK_MS)
        weir__net_rediscover(&l->net);
    return NULL;
}

/* Send what can be sent, and end what has waited for too long. */
static void dispatch(redis_link *l)
{
    int64_t now = weir__monotonic_ms();
    for (redis_call **at = &l->waiting, *c; (c = *at);) {
        redis_node *n = find_node(l, c, now);
        if (!n && c->until_ms > now) {
            at = &c->next;
            continue;
        }
        *at = c->next;
        if (n)
            fly(l, n, c);
        else
            give_up(l, c);
    }
    for (size_t i = 0; i < l->net.n_nodes; i++) {
        redis_node *n = l->net.node[i];
        if (n->state == NODE_READY && n->out_at < n->out.len)
            weir__node_flush(n);
    }
}

/* ---- answers ---- */

static void set_trouble(redis_call *c, const redis_node *n, weir_code code, const char *text)
{
    char place[REDIS_PLACE_TEXT];
    weir_fail(&c->err, code, "redis %s: %s", weir__place_text(&n->place, place), text);
}

static void redirect(redis_link *l, redis_node *n, redis_call *c, const char *text, bool ask)
{
    uint32_t    slot = 0;
    redis_node *to = weir__net_redirect(&l->net, n, weir__refusal_rest(text), &slot);
    if (!to || l->net.url.way != REDIS_CLUSTER) {
        fail(l, c);
        return;
    }
    c->asked = ask ? to : NULL;
    if (!ask) {
        weir__net_set_owner(&l->net, slot, to);
        weir__net_rediscover(&l->net);
    }
    wait_again(l, c, c->tries < QUICK_TRIES ? 0 : weir__pause_ms(c->tries - QUICK_TRIES));
}

/* The server does not have the function: send the library, and the call again. Other calls under
 * way may find that the library is there already. */
static void load(redis_link *l, redis_node *n, redis_call *c)
{
    if (c->loading && n->load_error.code) {
        c->err = n->load_error;
        fail(l, c);
        return;
    }
    c->loading = true;
    wait_again(l, c, c->tries < QUICK_TRIES ? 0 : weir__pause_ms(c->tries - QUICK_TRIES));
}

static void refuse(redis_link *l, redis_node *n, redis_call *c, const char *text)
{
    weir_code     code;
    redis_refusal what = weir__refusal(text, c->library != NULL, &code);
    set_trouble(c, n, code, text);
    if (c->pinned) {
        fail(l, c);
        return;
    }
    if (what != REFUSED_ASK && what != REFUSED_MISSING)
        c->asked = NULL;
    switch (what) {
    case REFUSED:
        fail(l, c);
        return;
    case REFUSED_MOVED:
    case REFUSED_ASK:
        redirect(l, n, c, text, what == REFUSED_ASK);
        return;
    case REFUSED_MISSING:
        load(l, n, c);
        return;
    case REFUSED_STALE:
        n->draining = true;
        break;
    case REFUSED_ELSEWHERE:
        weir__net_rediscover(&l->net);
        break;
    case REFUSED_WAIT:
        break;
    }
    wait_again(l, c, weir__pause_ms(c->tries + 1));
}

/* Somebody else was quicker to load it. */
static bool is_there(const char *text)
{
    return !strncmp(text, "ERR Library '", 13) && strstr(text, "' already exists");
}

/* An answer to what was sent before the call: to somebody who gave up, FUNCTION LOAD, ASKING. */
static void take_extra(redis_node *n, redis_call *c, const redisReply *r)
{
    bool load = c->loading && c->before == (c->asked ? 2 : 1);
    c->before--;
    if (!load)
        return;
    n->load_error.code = WEIR_OK;
    if (r->type == REDIS_REPLY_ERROR) {
        char      place[REDIS_PLACE_TEXT];
        weir_code code;
        bool      fine = weir__refusal(r->str, true, &code) != REFUSED || is_there(r->str);
        weir_fail(&n->load_error, fine ? WEIR_OK : code, "redis %s: functions %s: %s",
                  weir__place_text(&n->place, place), c->library->name, r->str);
    }
}

static void take_answer(redis_link *l, redis_node *n, redisReply *r)
{
    redis_call *c = n->first;
    unlink_flying(n, c, true);
    n->pause_ms = 0;
    if (r->type != REDIS_REPLY_ERROR) {
        c->node = n;
        c->connection = n->connection;
        c->durability = n->durability;
        succeed(l, c, r);
        return;
    }
    refuse(l, n, c, r->str);
    freeReplyObject(r);
}

static void on_reply(void *ctx, redis_node *n, redisReply *r)
{
    redis_link *l = ctx;
    if (n->first && !n->first->before) {
        take_answer(l, n, r);
    } else if (n->first || n->owed) {
        if (n->first)
            take_extra(n, n->first, r);
        else
            n->owed--;
        freeReplyObject(r);
    } else {
        freeReplyObject(r);
        weir__node_disconnect(n, WEIR_EUNAVAIL, "unexpected reply");
        return;
    }
    set_timeout(l, n);
    if (n->draining && !n->first)
        weir__node_disconnect(n, WEIR_EUNAVAIL, "it refuses calls");
}

static void on_ready(void *ctx, redis_node *n)
{
    (void)ctx;
    n->owed = 0;
    n->load_error.code = WEIR_OK;
}

/* In the order in which they were sent, so that they wait in that order. */
static void on_lost(void *ctx, redis_node *n)
{
    redis_link *l = ctx;
    redis_call *c = n->first, *next;
    n->first = n->last = NULL;
    n->n_once = 0;
    n->owed = 0;
    for (; c; c = next) {
        next = c->next;
        bool whole = c->end <= n->written;
        c->err = n->why;
        c->asked = NULL;
        if (c->pinned || (whole && !c->repeatable)) {
            c->err.code = WEIR_EUNKNOWN;
            fail(l, c);
        } else {
            c->maybe = c->maybe || whole;
            wait_again(l, c, 0);
        }
    }
}

static bool has_calls(void *ctx, redis_node *n)
{
    (void)ctx;
    return n->first;
}

static void on_found(void *ctx)
{
    weir__net_close_unowned(&((redis_link *)ctx)->net, has_calls);
}

static const redis_net_ops link_ops = {
    .ready = on_ready,
    .reply = on_reply,
    .lost = on_lost,
    .found = on_found,
};

/* ---- waiting ---- */

/* Calls that fly and whose time is over. The connection goes on when answers still come over it. */
static void end_late(redis_link *l)
{
    int64_t now = weir__monotonic_ms();
    for (size_t i = 0; i < l->net.n_nodes; i++) {
        redis_node *n = l->net.node[i];
        for (redis_call *c = n->first, *next; c; c = next) {
            next = c->next;
            if (c->until_ms > now)
                continue;
            if (c->end > n->written) {
                /* The rest of it must never be sent. */
                weir__node_disconnect(n, WEIR_EUNAVAIL, "the server does not read requests");
                break;
            }
            unlink_flying(n, c, false);
            c->maybe = true;
            set_trouble(c, n, WEIR_EUNKNOWN, "no answer");
            give_up(l, c);
        }
    }
}

static void sooner(int64_t *until, int64_t at)
{
    if (at < *until)
        *until = at;
}

/* When a call has to be looked at again, if nothing comes. A call whose time is over already waits
 * for something else. */
static int64_t next_due(const redis_link *l)
{
    int64_t now = weir__monotonic_ms(), until = INT64_MAX;
    for (const redis_call *c = l->waiting; c; c = c->next) {
        sooner(&until, c->until_ms);
        if (c->again_ms > now)
            sooner(&until, c->again_ms);
    }
    for (size_t i = 0; i < l->net.n_nodes; i++) {
        const redis_node *n = l->net.node[i];
        int64_t           stuck = n->read_ms + STUCK_MS + 1;
        for (const redis_call *c = n->first; c; c = c->next)
            sooner(&until, c->until_ms);
        if ((n->state != NODE_CLOSED && n->state != NODE_READY) && stuck > now)
            sooner(&until, stuck);
    }
    return until;
}

/* The server must have received the earlier bytes of the same connection. */
static void send_pinned(redis_link *l, redis_call *c)
{
    redis_node *n = c->node;
    if (n->state == NODE_READY && n->connection == c->connection) {
        fly(l, n, c);
        return;
    }
    set_trouble(c, n, WEIR_EUNKNOWN, "connection lost");
    fail(l, c);
}

/* Put it where it can be sent from with the next dispatch(). */
static void queue_call(redis_link *l, redis_call *c)
{
    int64_t now = weir__monotonic_ms();
    c->number = ++l->number;
    c->until_ms = now + l->net.url.timeout_ms;
    c->again_ms = 0;
    c->tries = 0;
    c->maybe = c->loading = false;
    c->asked = NULL;
    c->err.code = WEIR_OK;
    c->err.msg[0] = '\0';
    if (c->command.failed) {
        weir_fail(&c->err, WEIR_ENOMEM, "redis: no memory for the call");
        set_done(l, c);
        return;
    }
    if (c->pinned) {
        send_pinned(l, c);
        return;
    }
    /* The usual case, without a walk through the list. */
    redis_node *n = l->waiting ? NULL : find_node(l, c, now);
    if (n)
        fly(l, n, c);
    else
        put_waiting(l, c);
}

void weir__link_send(redis_link *l, redis_call *c)
{
    queue_call(l, c);
    dispatch(l);
}

void weir__link_wait(redis_link *l, redis_call *c)
{
    while (c->state != CALL_DONE) {
        dispatch(l);
        if (c->state == CALL_DONE)
            return;
        weir__net_poll_sentinels(&l->net);
        weir__net_turn(&l->net, next_due(l));
        if (c->state != CALL_DONE)
            end_late(l);
    }
}

void weir__link_run(redis_link *l, redis_call *const *calls, size_t n)
{
    for (size_t i = 0; i < n; i++)
        queue_call(l, calls[i]);
    dispatch(l);
    for (size_t i = 0; i < n; i++)
        weir__link_wait(l, calls[i]);
}

redisReply *weir__link_ask(redis_link *l, uint32_t slot, weir_error *err, int argc,
                           const char *const *argv, const size_t *argv_len)
{
    redis_call c = { .slot = slot, .repeatable = true };
    weir__resp_array(&c.command, (size_t)argc);
    for (int i = 0; i < argc; i++)
        weir__resp_bytes(&c.command, argv[i], argv_len ? argv_len[i] : strlen(argv[i]));
    weir__link_send(l, &c);
    weir__link_wait(l, &c);
    redisReply *r = c.reply;
    c.reply = NULL;
    if (!r)
        weir_fail(err, c.err.code, "%s", c.err.msg);
    weir__call_fini(&c);
    return r;
}

/* ---- open ---- */

weir_code weir__link_create(redis_link **out, const redis_url *url, weir_error *err)
{
    *out = NULL;
    redis_link *l = calloc(1, sizeof *l);
    if (!l)
        return weir_fail(err, WEIR_ENOMEM, "redis: no memory for the connection");
    weir_code rc = weir__net_init(&l->net, url, &link_ops, l, err);
    if (rc) {
        weir__link_close(l);
        return rc;
    }
    *out = l;
    return WEIR_OK;
}

weir_code weir__link_open(redis_link **out, const redis_url *url, weir_error *err)
{
    weir_code rc = weir__link_create(out, url, err);
    if (!rc)
        rc = weir__net_open(&(*out)->net, err);
    if (rc) {
        weir__link_close(*out);
        *out = NULL;
    }
    return rc;
}

void weir__link_close(redis_link *l)
{
    if (!l)
        return;
    weir__net_fini(&l->net);
    free(l);
}
