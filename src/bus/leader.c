/* leader.c - one process of several does something: see leader.h. */
#include "bus/leader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/named.h"
#include "bus/inner.h"

/* Has the mailbox decide. */
typedef struct leader_call {
    delivery     d;                         /* first */
    weir_leader *leader;
} leader_call;

struct weir_leader {
    weir_link        link;                  /* of bus->leaders; guarded by the lock of the bus, */
    leader_call     *call;                  /* as this is. NULL: it is in the mailbox */
    weir_bus        *bus;
    leader_config    config;                /* its name is `name` */
    weir_consumer   *group, *leads;         /* leads: NULL if it does not */
    bus_request     *timer;                 /* with a reference; NULL: none */
    bool             settled;               /* the timer is over */
    bool             named;                 /* the processes of the bus have names */
    size_t           candidates;            /* others; as decided last */
    uint64_t         sum;                   /* of their names */
    pthread_mutex_t  lock;                  /* guards the next one */
    bool             known;                 /* who leads */
    pthread_cond_t   changed;
    char             name[];
};

/* ---- who is there ---- */

typedef struct view {
    const char *self;
    size_t      others;                     /* processes of the bus */
    size_t      candidates;                 /* other ones */
    uint64_t    sum;
    bool        lower_candidate, leader, lower_leader;
} view;

static void see_process(void *ctx, const char *process)
{
    (void)process;
    ((view *)ctx)->others++;
}

static void see_candidate(void *ctx, const char *process)
{
    view    *v = ctx;
    uint64_t hash = 14695981039346656037u;  /* FNV-1a */
    for (const char *at = process; *at; at++)
        hash = (hash ^ (unsigned char)*at) * 1099511628211u;
    v->candidates++;
    v->sum += hash;
    v->lower_candidate |= strcmp(process, v->self) < 0;
}

static void see_leader(void *ctx, const char *process)
{
    view *v = ctx;
    v->leader = true;
    v->lower_leader |= strcmp(process, v->self) < 0;
}

static view look(const weir_leader *l)
{
    weir_transport *t = l->bus->transport;
    view            v = { .self = l->named ? t->process : "" };
    char            address[WEIR_MAX_BUS_ADDRESS + 1];
    if (!l->named)
        return v;
    t->ops->processes(t, NULL, see_process, &v);
    snprintf(address, sizeof address, LEADER_GROUP "%s", l->name);
    t->ops->processes(t, address, see_candidate, &v);
    snprintf(address, sizeof address, LEADER_LEADS "%s", l->name);
    t->ops->processes(t, address, see_leader, &v);
    return v;
}

/* ---- deciding ---- */

static void ignore(weir_message *m, void *ctx)
{
    (void)m;
    (void)ctx;
}

static void set_known(weir_leader *l)
{
    pthread_mutex_lock(&l->lock);
    l->known = true;
    pthread_cond_broadcast(&l->changed);
    pthread_mutex_unlock(&l->lock);
}

static weir_code consume(weir_leader *l, const char *prefix, weir_message_fn *fn,
                         weir_consumer **out, weir_error *err)
{
    char address[WEIR_MAX_BUS_ADDRESS + 1];
    snprintf(address, sizeof address, "%s%s", prefix, l->name);
    return weir_bus_consume(out, l->bus, &(weir_consumer_config){
        .address = address, .handler = fn, .ctx = l->config.ctx,
        .mailbox = l->config.mailbox }, err);
}

static void yield(weir_leader *l)
{
    weir_consumer *c = l->leads;
    l->leads = NULL;
    l->config.turn(l->config.ctx, LEADER_YIELDS, NULL);
    weir_consumer_close(c);
}

static weir_code start_leading(weir_leader *l, leader_turn how, weir_error *err)
{
    weir_code rc = consume(l, LEADER_LEADS, ignore, &l->leads, err);
    if (!rc && (rc = l->config.turn(l->config.ctx, how, err)) != WEIR_OK) {
        weir_consumer_close(l->leads);
        l->leads = NULL;
    }
    return rc;
}

static void decide(weir_leader *l);

static void settle_over(const weir_reply *reply, void *ctx)
{
    (void)reply;
    weir_leader *l = ctx;
    weir__request_unref(l->timer);
    l->timer = NULL;
    l->settled = true;
    decide(l);
}

static void settle(weir_leader *l)
{
    weir_expect e = { .fn = settle_over, .ctx = l, .mailbox = l->config.mailbox,
                      .timeout_ms = LEADER_SETTLE_MS };
    if (!l->timer)
        weir__request_open(&l->timer, l->bus, "", &e, NULL);
}

static void stand_by(weir_leader *l)
{
    l->settled = false;
    if (l->timer && weir__request_cancel(l->timer)) {
        weir__request_unref(l->timer);
        l->timer = NULL;
    }
}

static void decide(weir_leader *l)
{
    view v = look(l);
    bool changed = v.sum != l->sum;
    l->candidates = v.candidates;
    l->sum = v.sum;
    if (l->leads && v.lower_leader) {
        yield(l);
    } else if (l->leads && changed) {
        l->config.turn(l->config.ctx, LEADER_CANDIDATES, NULL);
    } else if (!l->leads && (v.leader || v.lower_candidate)) {
        stand_by(l);
    } else if (!l->leads && v.others && !l->settled) {
        settle(l);
    } else if (!l->leads && start_leading(l, LEADER_STARTS, NULL)) {
        l->settled = false;                 /* no memory: again later */
        settle(l);
    }
    if (l->leads)
        l->config.turn(l->config.ctx, LEADER_LOOKS, NULL);
    if (l->leads || v.leader)
        set_known(l);
}

static void run_decide(delivery *d)
{
    leader_call *c = (leader_call *)d;
    weir_leader *l = c->leader;
    pthread_mutex_lock(&l->bus->lock);
    l->call = c;                            /* a change from here on needs another look */
    pthread_mutex_unlock(&l->bus->lock);
    decide(l);
}

/* The bus is locked. */
static void post_decide(weir_leader *l, weir_mailbox **wakes)
{
    leader_call  *c = l->call;
    weir_mailbox *mb = l->config.mailbox;
    if (!c)
        return;
    l->call = NULL;
    pthread_mutex_lock(&mb->lock);
    weir__mailbox_append(mb, &c->d, wakes);
    pthread_mutex_unlock(&mb->lock);
}

void weir__leaders_look(weir_bus *b)
{
    weir_mailbox *wakes = NULL;
    pthread_mutex_lock(&b->lock);
    WEIR_EACH(weir_leader, l, &b->leaders, link)
        post_decide(l, &wakes);
    pthread_mutex_unlock(&b->lock);
    weir__mailbox_wake(wakes);
}

/* ---- the beginning and the end ---- */

static weir_code make(weir_leader **out, weir_bus *b, const leader_config *config, weir_error *err)
{
    weir_leader *l = *out = WEIR__NAMED_NEW(weir_leader, config->name);
    leader_call *c = calloc(1, sizeof *c);
    if (!l || !c) {
        free(l);
        free(c);
        *out = NULL;
        return weir_fail(err, WEIR_ENOMEM, "leader: out of memory");
    }
    *c = (leader_call){ .d.call = run_decide, .leader = l };
    l->call = c;
    l->bus = b;
    l->config = *config;
    l->named = b->transport && b->transport->process;
    pthread_mutex_init(&l->lock, NULL);
    weir__cond_init(&l->changed);
    return WEIR_OK;
}

weir_code weir__leader_join(weir_leader **out, weir_bus *b, const leader_config *config,
                            weir_error *err)
{
    weir_leader *l;
    weir_code    rc = make(&l, b, config, err);
    *out = l;
    if (rc || !l->named)
        return rc ? rc : config->turn(config->ctx, LEADER_FIRST, err);
    rc = consume(l, LEADER_GROUP, config->group, &l->group, err);
    if (!rc && !look(l).others)
        rc = start_leading(l, LEADER_FIRST, err);
    pthread_mutex_lock(&b->lock);
    weir__list_append(&b->leaders, &l->link);
    pthread_mutex_unlock(&b->lock);
    return rc;
}

void weir__leader_wait(weir_leader *l)
{
    weir_deadline until = weir__deadline_in(3 * LEADER_SETTLE_MS);
    if (!l->named)
        return;
    weir__leaders_look(l->bus);
    pthread_mutex_lock(&l->lock);
    while (!l->known && weir__cond_wait_until(&l->changed, &l->lock, until))
        ;
    pthread_mutex_unlock(&l->lock);
}

void weir__leader_stop(weir_leader *l)
{
    if (!l || !l->named)
        return;
    pthread_mutex_lock(&l->bus->lock);
    weir__list_remove(&l->bus->leaders, &l->link);
    pthread_mutex_unlock(&l->bus->lock);
}

void weir__leader_free(weir_leader *l)
{
    if (!l)
        return;
    if (l->timer)
        weir__request_unref(l->timer);
    free(l->call);
    pthread_cond_destroy(&l->changed);
    pthread_mutex_destroy(&l->lock);
    free(l);
}

/* ---- for its user ---- */

bool weir__bus_reserved(const char *address)
{
    return strncmp(address, LEADER_GROUP, strlen(LEADER_GROUP)) == 0 ||
           strncmp(address, LEADER_LEADS, strlen(LEADER_LEADS)) == 0;
}

bool weir__leader_leads(const weir_leader *l)
{
    return !l->named || l->leads;
}

bool weir__leader_alone(const weir_leader *l)
{
    return !l->candidates;
}

void weir__leader_publish(const weir_leader *l, const char *body, size_t len)
{
    char address[WEIR_MAX_BUS_ADDRESS + 1];
    snprintf(address, sizeof address, LEADER_GROUP "%s", l->name);
    weir_bus_publish(l->bus, address, &(weir_content){ .body = body, .body_len = len }, NULL);
}
