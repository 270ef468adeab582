/* cluster.c - the transport of a bus over several processes: see cluster.h. */
#include "bus/cluster.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/thread.h"

enum { RUN = 256 };                     /* arrivals in the mailbox that are handled in a row */

/* ---- posting ---- */

static weir_code post(weir_cluster *cl, const char *to, const weir_buf *bytes, weir_error *err)
{
    weir_envelope e = { .to = to, .bytes = bytes->data, .len = bytes->len };
    if (bytes->failed)
        return weir_fail(err, WEIR_ENOMEM, "bus: out of memory");
    return cl->carrier.post(cl->carrier.ctx, &e, err);
}

weir_code weir__cluster_post(weir_cluster *cl, const char *to, const bus_frame *f, weir_error *err)
{
    weir_buf  out = { 0 };
    bus_frame mine = *f;
    memcpy(mine.from, cl->member.process, sizeof mine.from);
    weir__frame_write(&out, &mine);
    weir_code rc = post(cl, to, &out, err);
    weir__buf_fini(&out);
    return rc;
}

static void free_poke(delivery *d)
{
    free(d);
}

void weir__cluster_poke(weir_cluster *cl)
{
    delivery *d = cl->poked ? NULL : malloc(sizeof *d);
    if (!d)
        return;
    *d = (delivery){ .call = free_poke };
    cl->poked = true;
    weir__mailbox_call(cl->mailbox, d);
}

/* ---- what this process consumes ---- */

static bool cluster_listen(weir_transport *t, const char *address, bool prefix, size_t consumers)
{
    weir_cluster *cl = (weir_cluster *)t;
    pthread_mutex_lock(&cl->lock);
    local_address *a = weir__names_get(&cl->local[prefix], address);
    if (!a)
        a = WEIR__NAMES_ADD(&cl->local[prefix], local_address, address);
    if (a) {
        a->prefix = prefix;
        a->again |= a->changed && !a->n && consumers;
        a->n = consumers;
        if (!a->changed)
            weir__list_append(&cl->changed, &a->link);
        a->changed = true;
        weir__cluster_poke(cl);
    }
    pthread_mutex_unlock(&cl->lock);
    return a;
}

static void write_local(weir_buf *out, const local_address *a, size_t n)
{
    weir__frame_write_entry(out, &(bus_entry){ .address = a->name, .n = (uint32_t)n,
                                               .prefix = a->prefix });
}

/* The next CHANGES frame. False: nothing has changed. */
static bool write_changes(weir_cluster *cl, weir_buf *out)
{
    bus_frame f = { .kind = FRAME_CHANGES };
    memcpy(f.from, cl->member.process, sizeof f.from);
    weir__buf_clear(out);
    pthread_mutex_lock(&cl->lock);
    bool some = cl->changed.first;
    if (some) {
        f.version = ++cl->version;
        weir__frame_write(out, &f);
    }
    WEIR_EACH(local_address, a, &cl->changed, link) {
        if (out->len > CLUSTER_FRAME)
            break;
        if (a->again)
            write_local(out, a, 0);
        write_local(out, a, a->n);
        weir__list_remove(&cl->changed, &a->link);
        a->changed = a->again = false;
        if (!a->n) {
            weir__names_remove(&cl->local[a->prefix], &a->named);
            free(a);
        }
    }
    pthread_mutex_unlock(&cl->lock);
    return some;
}

/* Also before each message, so that its recipient has the addresses that this process consumed by
 * then. */
static void send_changes(weir_cluster *cl)
{
    weir_buf out = { 0 };
    pthread_mutex_lock(&cl->posting);
    while (write_changes(cl, &out))
        post(cl, NULL, &out, NULL);     /* whoever misses it sees that by the version */
    pthread_mutex_unlock(&cl->posting);
    weir__buf_fini(&out);
}

/* The whole list, as frames one behind the other; `ends` gets where each of them ends. */
static void write_list(weir_cluster *cl, weir_buf *out, weir_buf *ends)
{
    bus_frame f = { .kind = FRAME_ADDRESSES, .part = FRAME_FIRST, .version = cl->version };
    weir_buf  entries = { 0 };
    memcpy(f.from, cl->member.process, sizeof f.from);
    for (int prefix = 0; prefix < 2; prefix++) {
        size_t pos = 0;
        for (local_address *a = NULL; (a = weir__names_next(&cl->local[prefix], &pos, a));) {
            if (entries.len > CLUSTER_FRAME) {
                weir__frame_write(out, &f);
                weir__buf_add(out, entries.data, entries.len);
                weir__buf_add(ends, &out->len, sizeof out->len);
                weir__buf_clear(&entries);
                f.part = 0;
            }
            write_local(&entries, a, a->n);
        }
    }
    f.part |= FRAME_LAST;
    weir__frame_write(out, &f);
    weir__buf_add(out, entries.data, entries.len);
    weir__buf_add(ends, &out->len, sizeof out->len);
    out->failed = out->failed || entries.failed || ends->failed;
    weir__buf_fini(&entries);
}

static void send_list(weir_cluster *cl, const char *to)
{
    weir_buf out = { 0 }, ends = { 0 };
    pthread_mutex_lock(&cl->lock);
    write_list(cl, &out, &ends);
    pthread_mutex_unlock(&cl->lock);
    size_t at = 0, end = 0;
    for (size_t i = 0; !out.failed && i < ends.len; i += sizeof end, at = end) {
        memcpy(&end, ends.data + i, sizeof end);
        post(cl, to, &(weir_buf){ .data = out.data + at, .len = end - at }, NULL);
    }
    weir__buf_fini(&out);
    weir__buf_fini(&ends);
}

/* Answer those who asked. */
static void send_lists(weir_cluster *cl)
{
    char to[WEIR_PROCESS];
    bool some = true;
    while (some) {
        size_t pos = 0;
        some = false;
        pthread_mutex_lock(&cl->lock);
        for (bus_peer *p = NULL; !some && (p = weir__names_next(&cl->others.peers, &pos, p));)
            if (p->wants_list) {
                p->wants_list = false;
                memcpy(to, p->name, sizeof to);
                some = true;
            }
        pthread_mutex_unlock(&cl->lock);
        if (some)
            send_list(cl, to);
    }
}

/* ---- the thread ---- */

static void announce(weir_cluster *cl)
{
    weir_buf  out = { 0 };
    bus_frame f = { .kind = FRAME_HELLO };
    memcpy(f.from, cl->member.process, sizeof f.from);
    pthread_mutex_lock(&cl->lock);
    bool due = cl->hello_due;
    cl->hello_due = false;
    f.version = cl->version;
    pthread_mutex_unlock(&cl->lock);
    if (!due)
        return;
    weir__frame_write(&out, &f);
    weir_envelope e = { .bytes = out.data, .len = out.len, .count = true };
    if (!out.failed)
        cl->carrier.post(cl->carrier.ctx, &e, NULL);
    weir__buf_fini(&out);
}

static void give_sign_of_life(weir_cluster *cl, int64_t now)
{
    if (!cl->carrier.silent_ends || now < cl->alive_ms + CLUSTER_ALIVE_MS)
        return;
    cl->alive_ms = now;
    pthread_mutex_lock(&cl->lock);
    bus_frame f = { .kind = FRAME_ALIVE, .version = cl->version };
    pthread_mutex_unlock(&cl->lock);
    weir__cluster_post(cl, NULL, &f, NULL);
}

static bool is_gone(const weir_cluster *cl, const bus_peer *p, int64_t now)
{
    return (cl->carrier.silent_ends && now - p->seen_ms > CLUSTER_GONE_MS) ||
           (p->suspect_ms && now - p->suspect_ms > CLUSTER_GONE_MS);
}

/* A process that has ended without a word; false: none has. *suspects: some may have. */
static bool find_gone(weir_cluster *cl, int64_t now, char out[WEIR_PROCESS], bool *suspects)
{
    size_t pos = 0;
    bool   found = false;
    pthread_mutex_lock(&cl->lock);
    for (bus_peer *p = NULL; !found && (p = weir__names_next(&cl->others.peers, &pos, p));) {
        *suspects = *suspects || p->suspect_ms;
        found = is_gone(cl, p, now);
        if (found)
            memcpy(out, p->name, WEIR_PROCESS);
    }
    pthread_mutex_unlock(&cl->lock);
    return found;
}

/* Drop requests for whose replies nobody waits any more. Returns whether some are left. */
static bool drop_late(weir_cluster *cl, int64_t now)
{
    weir_dlist late = { 0 };
    size_t     pos = 0;
    uint64_t   number;
    void      *value;
    pthread_mutex_lock(&cl->lock);
    while (weir__map_next(&cl->sent, &pos, &number, &value)) {
        sent_request *s = value;
        if (s->until_ms > now)
            continue;
        weir__map_remove(&cl->sent, number);
        weir__list_append(&late, &s->link);
    }
    bool left = cl->sent.n;
    pthread_mutex_unlock(&cl->lock);
    WEIR_EACH(sent_request, s, &late, link)
        weir__cluster_forget(s);
    return left;
}

/* From time to time, as long as there is something to look after. */
static void tidy(weir_cluster *cl, int64_t now)
{
    char process[WEIR_PROCESS];
    bool suspects = false;
    if (now < cl->tidied_ms + CLUSTER_ALIVE_MS)
        return;
    cl->tidied_ms = now;
    pthread_mutex_lock(&cl->lock);
    cl->timed = false;
    pthread_mutex_unlock(&cl->lock);
    while (find_gone(cl, now, process, &suspects))
        weir__cluster_gone(cl, process);
    bool waits = drop_late(cl, now);
    pthread_mutex_lock(&cl->lock);
    cl->timed = cl->timed || suspects || waits || cl->carrier.silent_ends;
    pthread_mutex_unlock(&cl->lock);
}

/* How long to sleep, unless poked; -1: until then. */
static int64_t pause_ms(weir_cluster *cl)
{
    int64_t left = cl->tidied_ms + CLUSTER_ALIVE_MS - weir__monotonic_ms();
    pthread_mutex_lock(&cl->lock);
    bool timed = cl->timed;
    pthread_mutex_unlock(&cl->lock);
    return !timed ? -1 : left > 0 ? left : 0;
}

static void *cluster_main(void *arg)
{
    weir_cluster *cl = arg;
    while (!atomic_load(&cl->stopping)) {
        int64_t now = weir__monotonic_ms();
        pthread_mutex_lock(&cl->lock);
        cl->poked = false;
        pthread_mutex_unlock(&cl->lock);
        announce(cl);
        send_changes(cl);
        send_lists(cl);
        give_sign_of_life(cl, now);
        tidy(cl, now);
        weir_mailbox_run(cl->mailbox, RUN, pause_ms(cl));
    }
    return NULL;
}

/* ---- sending ---- */

static size_t cluster_count(weir_transport *t, const char *address, bool prefix)
{
    weir_cluster *cl = (weir_cluster *)t;
    pthread_mutex_lock(&cl->lock);
    size_t n = weir__directory_count(&cl->others, address, prefix);
    pthread_mutex_unlock(&cl->lock);
    return n;
}

static void cluster_list(weir_transport *t, weir_address_fn *fn, void *ctx)
{
    weir_cluster *cl = (weir_cluster *)t;
    size_t        pos = 0;
    pthread_mutex_lock(&cl->lock);
    for (bus_remote *r = NULL; (r = weir__names_next(&cl->others.addresses, &pos, r));)
        fn(ctx, r->name, r->total);
    pthread_mutex_unlock(&cl->lock);
}

static void cluster_processes(weir_transport *t, const char *address, weir_process_fn *fn,
                              void *ctx)
{
    weir_cluster     *cl = (weir_cluster *)t;
    const bus_remote *r;
    size_t            pos = 0;
    pthread_mutex_lock(&cl->lock);
    for (bus_peer *p = NULL; !address && (p = weir__names_next(&cl->others.peers, &pos, p));)
        fn(ctx, p->name);
    if (address && (r = weir__names_get(&cl->others.addresses, address)))
        WEIR_EACH(bus_place, p, &r->places, in_remote)
            fn(ctx, p->peer->name);
    pthread_mutex_unlock(&cl->lock);
}

/* The names of the processes that consume `address` and not `unless`, WEIR_PROCESS bytes each.
 * True: a CHANGES frame is due. */
static bool find_processes(weir_cluster *cl, const char *address, const char *unless,
                           weir_buf *out)
{
    pthread_mutex_lock(&cl->lock);
    bool changed = cl->changed.first;
    const bus_remote *r = weir__names_get(&cl->others.addresses, address);
    const bus_remote *no = unless ? weir__names_get(&cl->others.addresses, unless) : NULL;
    if (r)
        WEIR_EACH(bus_place, p, &r->places, in_remote)
            if (!no || !weir__directory_consumes(no, p->peer))
                weir__buf_add(out, p->peer->name, WEIR_PROCESS);
    pthread_mutex_unlock(&cl->lock);
    return changed;
}

/* Each process gets it on the way that sends to it go, so that the two stay in their order. */
static weir_code cluster_publish(weir_transport *t, weir_message *m, const char *unless,
                                 weir_error *err)
{
    weir_cluster *cl = (weir_cluster *)t;
    weir_buf      to = { 0 }, out = { 0 };
    weir_code     rc = WEIR_OK;
    if (find_processes(cl, weir_message_address(m), unless, &to) && to.len)
        send_changes(cl);
    if (to.len) {
        bus_frame f = { .kind = FRAME_PUBLISH, .address = weir_message_address(m),
                        .content = weir__content_of(m) };
        memcpy(f.from, cl->member.process, sizeof f.from);
        weir__frame_write(&out, &f);
    }
    for (size_t at = 0; at < to.len; at += WEIR_PROCESS) {
        weir_code one = post(cl, to.data + at, &out, err);
        rc = one ? one : rc;
    }
    if (to.failed)
        rc = weir_fail(err, WEIR_ENOMEM, "bus: out of memory");
    weir__buf_fini(&to);
    weir__buf_fini(&out);
    return rc;
}

static weir_code cluster_send(weir_transport *t, weir_message *m, weir_error *err)
{
    weir_cluster *cl = (weir_cluster *)t;
    bus_frame     f = { .kind = FRAME_SEND, .address = weir_message_address(m) };
    char          to[WEIR_PROCESS];
    bool          expects = weir_message_expects_reply(m), kept = true;
    pthread_mutex_lock(&cl->lock);
    bool        changed = cl->changed.first;
    bus_remote *r = weir__directory_find(&cl->others, f.address);
    if (r)
        memcpy(to, weir__directory_turn(r)->name, sizeof to);
    if (r && expects)
        kept = (f.number = weir__cluster_keep(cl, m, to, false));
    pthread_mutex_unlock(&cl->lock);
    if (!r)
        return weir_fail(err, WEIR_EUNAVAIL, "the process that consumed %s was lost", f.address);
    if (!kept)
        return weir_fail(err, WEIR_ENOMEM, "bus: out of memory");
    if (changed)
        send_changes(cl);
    f.timeout_ms = (uint32_t)weir__message_left_ms(m);
    f.content = weir__content_of(m);
    weir_code rc = weir__cluster_post(cl, to, &f, err);
    if (!rc || !expects)
        return rc;
    sent_request *s = weir__cluster_take(cl, f.number, to);
    if (!s)
        return WEIR_OK;                 /* its process was lost meanwhile, and it has failed */
    weir__cluster_forget(s);
    return rc;
}

/* ---- joining and leaving ---- */

static void member_reached(void *ctx, size_t others)
{
    weir_cluster *cl = ctx;
    pthread_mutex_lock(&cl->lock);
    cl->reached = true;
    cl->expected = others;
    pthread_cond_broadcast(&cl->answered);
    pthread_mutex_unlock(&cl->lock);
}

/* A process that does not answer the HELLO is gone. */
static void member_lost(void *ctx)
{
    weir_cluster *cl = ctx;
    size_t        pos = 0;
    int64_t       now = weir__monotonic_ms();
    pthread_mutex_lock(&cl->lock);
    for (bus_peer *p = NULL; (p = weir__names_next(&cl->others.peers, &pos, p));)
        p->suspect_ms = p->suspect_ms ? p->suspect_ms : now;
    cl->hello_due = cl->timed = true;
    weir__cluster_poke(cl);
    pthread_mutex_unlock(&cl->lock);
}

static bool all_answered(const weir_cluster *cl)
{
    size_t n = 0, pos = 0;
    for (bus_peer *p = NULL; (p = weir__names_next(&cl->others.peers, &pos, p));)
        n += p->answered;
    return cl->reached && n >= cl->expected;
}

static void wait_for_others(weir_cluster *cl, int64_t wait_ms)
{
    weir_deadline until = weir__deadline_in(wait_ms);
    pthread_mutex_lock(&cl->lock);
    while (!all_answered(cl) && weir__cond_wait_until(&cl->answered, &cl->lock, until))
        ;
    pthread_mutex_unlock(&cl->lock);
}

/* Nothing arrives any more. The thread posts, so it ends before the carrier is left. */
static void cluster_stop(weir_transport *t)
{
    weir_cluster *cl = (weir_cluster *)t;
    weir__cluster_post(cl, NULL, &(bus_frame){ .kind = FRAME_BYE }, NULL);
    atomic_store(&cl->stopping, true);
    pthread_mutex_lock(&cl->lock);
    cl->poked = false;
    weir__cluster_poke(cl);
    pthread_mutex_unlock(&cl->lock);
    if (cl->started)
        pthread_join(cl->thread, NULL);
    cl->carrier.leave(cl->carrier.ctx);
    weir_mailbox_destroy(cl->mailbox);
}

static void free_local(weir_names *names)
{
    size_t pos = 0;
    for (local_address *a; (a = weir__names_next(names, &pos, NULL)); pos = 0) {
        weir__names_remove(names, &a->named);
        free(a);
    }
    weir__names_fini(names);
}

static void cluster_destroy(weir_transport *t)
{
    weir_cluster *cl = (weir_cluster *)t;
    size_t        pos = 0;
    uint64_t      number;
    void         *value;
    while (weir__map_next(&cl->sent, &pos, &number, &value))
        weir__cluster_forget(value);
    WEIR_EACH(bus_relay, r, &cl->relays, link)
        free(r);
    weir__map_fini(&cl->sent);
    weir__directory_fini(&cl->others);
    free_local(&cl->local[0]);
    free_local(&cl->local[1]);
    pthread_cond_destroy(&cl->answered);
    pthread_mutex_destroy(&cl->posting);
    pthread_mutex_destroy(&cl->lock);
    free(cl);
}

static const weir_transport_ops cluster_ops = {
    .listen = cluster_listen, .count = cluster_count, .list = cluster_list,
    .processes = cluster_processes, .publish = cluster_publish, .send = cluster_send,
    .stop = cluster_stop, .destroy = cluster_destroy,
};

static weir_code make_member(weir_cluster *cl, weir_error *err)
{
    uint64_t name;
    if (getrandom(&name, sizeof name, 0) != (ssize_t)sizeof name)
        return weir_fail(err, WEIR_EIO, "bus: no random numbers");
    cl->member = (weir_member){ .arrived = weir__cluster_arrived, .reached = member_reached,
                                .lost = member_lost, .gone = weir__cluster_gone, .ctx = cl };
    snprintf(cl->member.process, sizeof cl->member.process, "%016" PRIx64, name);
    return WEIR_OK;
}

weir_code weir__cluster_join(weir_bus *b, const weir_carrier *carrier, int64_t wait_ms,
                             weir_error *err)
{
    weir_cluster *cl = calloc(1, sizeof *cl);
    if (!cl)
        return weir_fail(err, WEIR_ENOMEM, "bus: out of memory");
    cl->t = (weir_transport){ .ops = &cluster_ops, .process = cl->member.process };
    cl->bus = b;
    cl->carrier = *carrier;
    pthread_mutex_init(&cl->lock, NULL);
    pthread_mutex_init(&cl->posting, NULL);
    weir__cond_init(&cl->answered);
    weir_code rc = make_member(cl, err);
    if (!rc)
        rc = weir_mailbox_create(&cl->mailbox, b, NULL, err);
    if (!rc && (rc = carrier->join(carrier->ctx, &cl->member, err)) != WEIR_OK)
        weir_mailbox_destroy(cl->mailbox);
    if (rc) {
        cluster_destroy(&cl->t);
        return rc;
    }
    rc = weir__thread_start(&cl->thread, cluster_main, cl, "weir-cluster", err);
    cl->started = !rc;
    if (rc) {
        cluster_stop(&cl->t);
        cluster_destroy(&cl->t);
        return rc;
    }
    weir__bus_attach(b, &cl->t);
    wait_for_others(cl, wait_ms);
    return WEIR_OK;
}
