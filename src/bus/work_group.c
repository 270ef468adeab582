/* work_group.c - the queues of one address in several processes: the leader (bus/leader.h) has the
 * addresses. The others have its registrations, so that one of them can go on. See work.h.
 *
 * Messages to the group, published; N counts the changes, so that a lost one is noticed:
 *
 *     {"change":N,"register":A}      from the leader: one more slot for the processor A
 *     {"change":N,"unregister":A}    from the leader: one less
 *     {"change":N,"processors":[A,...]}  from the leader: these are all, once for each slot
 *     {"merge":[A,...]}              from one that yields: the leader adds those it does not have
 *     {"ask":true}                   from one that missed a change: the leader publishes all */
#include "bus/work.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"

/* ---- publishing ---- */

static void publish(weir_workqueue *q, weir_buf *body)
{
    if (!body->failed)
        weir__leader_publish(q->leader, body->data, body->len);
    weir__buf_fini(body);
}

void weir__work_publish_slot(weir_workqueue *q, bool more, const char *address)
{
    weir_buf out = { 0 };
    if (!weir__leader_leads(q->leader))
        return;
    q->changes++;
    if (weir__leader_alone(q->leader))
        return;
    weir__buf_printf(&out, "{\"change\":%" PRIu64 ",\"%s\":", q->changes,
                     more ? "register" : "unregister");
    weir__json_string(&out, address, strlen(address));
    weir__buf_char(&out, '}');
    publish(q, &out);
}

static void write_slots(weir_buf *out, const weir_dlist *list)
{
    WEIR_EACH(slot, s, list, link) {
        if (s->leaves)
            continue;
        weir__json_string(out, s->address, strlen(s->address));
        weir__buf_char(out, ',');
    }
}

static void publish_slots(weir_workqueue *q, bool merge)
{
    weir_buf out = { 0 };
    if (merge)
        weir__buf_str(&out, "{\"merge\":[");
    else
        weir__buf_printf(&out, "{\"change\":%" PRIu64 ",\"processors\":[", q->changes);
    write_slots(&out, &q->idle);
    write_slots(&out, &q->busy);
    write_slots(&out, &q->away);
    if (!out.failed && out.data[out.len - 1] == ',')
        out.len--;
    weir__buf_str(&out, "]}");
    publish(q, &out);
}

/* ---- the slots of a leader, in a standby ---- */

static void forget_known(weir_workqueue *q)
{
    WEIR_EACH(slot, s, &q->known, link) {
        weir__list_remove(&q->known, &s->link);
        weir__work_free_slot(q, s);
    }
}

static void add_known(weir_workqueue *q, const char *address)
{
    slot *s = weir__work_make_slot(q, address);
    if (s)
        weir__list_append(&q->known, &s->link);
}

static void remove_known(weir_workqueue *q, const char *address)
{
    WEIR_EACH(slot, s, &q->known, link)
        if (strcmp(s->address, address) == 0) {
            weir__list_remove(&q->known, &s->link);
            weir__work_free_slot(q, s);
            return;
        }
}

/* An address of a message to the group. False: it is none. */
static bool read_address(weir_json_piece value, char out[WEIR_MAX_BUS_ADDRESS + 1])
{
    size_t len;
    return *value.text == '"' && value.len > 2 && value.len <= WEIR_MAX_BUS_ADDRESS &&
           weir__json_text(value, out, &len);
}

static void set_known(weir_workqueue *q, weir_json_piece list)
{
    weir_json_walk  w;
    weir_json_piece name, value;
    char            address[WEIR_MAX_BUS_ADDRESS + 1];
    forget_known(q);
    if (!weir__json_open(&w, list))
        return;
    while (weir__json_next(&w, &name, &value))
        if (read_address(value, address))
            add_known(q, address);
}

static void change_known(weir_workqueue *q, uint64_t number, bool more, weir_json_piece value)
{
    char address[WEIR_MAX_BUS_ADDRESS + 1];
    if (number != q->changes + 1) {
        weir__leader_publish(q->leader, "{\"ask\":true}", 0);
        return;
    }
    q->changes = number;
    if (!read_address(value, address))
        return;
    if (more)
        add_known(q, address);
    else
        remove_known(q, address);
}

/* ---- the leader ---- */

/* Slots of a list that have this address and are not marked yet; marks one. */
static bool mark_slot(weir_dlist *list, const char *address)
{
    WEIR_EACH(slot, s, list, link)
        if (!s->merged && !s->leaves && strcmp(s->address, address) == 0)
            return s->merged = true;
    return false;
}

/* The other one could reach its process. */
static bool mark_away(weir_workqueue *q, const char *address)
{
    WEIR_EACH(slot, s, &q->away, link) {
        if (s->merged || strcmp(s->address, address) != 0)
            continue;
        s->merged = true;
        *s->process = '\0';
        return true;
    }
    return false;
}

static void unmark_slots(weir_dlist *list)
{
    WEIR_EACH(slot, s, list, link)
        s->merged = false;
}

/* Another one has led, too: have as many slots of each processor as it had. */
static void merge(weir_workqueue *q, weir_json_piece list)
{
    weir_json_walk  w;
    weir_json_piece name, value;
    char            address[WEIR_MAX_BUS_ADDRESS + 1];
    if (!weir__json_open(&w, list))
        return;
    while (weir__json_next(&w, &name, &value)) {
        if (!read_address(value, address) || mark_slot(&q->idle, address) ||
            mark_slot(&q->busy, address) || mark_away(q, address))
            continue;
        slot *s = weir__work_make_slot(q, address);
        if (!s)
            break;
        s->merged = true;
        weir__work_put_away(q, s);          /* until its consumer is known here, too */
    }
    unmark_slots(&q->idle);
    unmark_slots(&q->busy);
    unmark_slots(&q->away);
    weir__work_look_away(q);
    publish_slots(q, false);
    weir__work_dispatch(q);
}

static bool is(weir_json_piece name, const char *text)
{
    size_t len = strlen(text);
    return name.len == len + 2 && memcmp(name.text + 1, text, len) == 0;
}

void weir__work_take_group(weir_message *m, void *ctx)
{
    weir_workqueue *q = ctx;
    bool            leads = weir__leader_leads(q->leader);
    uint64_t        number = 0;
    weir_json_walk  w;
    weir_json_piece name, value, body;
    body.text = weir_message_body(m, &body.len);
    if (*body.text != '{' || !weir__json_open(&w, body))
        return;
    while (weir__json_next(&w, &name, &value))
        if (is(name, "change")) {
            number = strtoull(value.text, NULL, 10);
        } else if (leads && is(name, "merge")) {
            merge(q, value);
        } else if (leads && is(name, "ask")) {
            publish_slots(q, false);
        } else if (!leads && is(name, "processors")) {
            q->changes = number;
            set_known(q, value);
        } else if (!leads && (is(name, "register") || is(name, "unregister"))) {
            change_known(q, number, is(name, "register"), value);
        }
}

/* ---- turns ---- */

static void set_standby(weir_workqueue *q, bool standby)
{
    pthread_mutex_lock(&q->lock);
    q->stats.standby = standby;
    pthread_mutex_unlock(&q->lock);
}

static weir_code start_leading(weir_workqueue *q, weir_error *err)
{
    weir_code rc = weir__work_consume(q, err);
    if (rc)
        return rc;
    WEIR_EACH(slot, s, &q->known, link) {
        weir__list_remove(&q->known, &s->link);
        if (weir__bus_count(q->bus, s->address))
            weir__work_add_slot(q, s);
        else
            weir__work_free_slot(q, s);     /* it was a client of the leader that is gone */
    }
    set_standby(q, false);
    publish_slots(q, false);
    weir__work_dispatch(q);
    return WEIR_OK;
}

/* Processors that are busy finish, and their work is answered; what waits goes to the leader. */
static void stop_leading(weir_workqueue *q)
{
    set_standby(q, true);
    for (size_t i = 0; i < sizeof q->consumer / sizeof *q->consumer; i++) {
        weir_consumer_close(q->consumer[i]);
        q->consumer[i] = NULL;
    }
    publish_slots(q, true);
    WEIR_EACH(slot, s, &q->idle, link) {
        weir__list_remove(&q->idle, &s->link);
        WORK_COUNT(q, idle, (size_t)-1);
        weir__list_append(&q->known, &s->link);
    }
    WEIR_EACH(slot, s, &q->away, link) {
        weir__list_remove(&q->away, &s->link);
        weir__list_append(&q->known, &s->link);
    }
    q->n_away = 0;
    WEIR_EACH(slot, s, &q->busy, link)
        s->leaves = true;
    weir__work_dispatch(q);
}

weir_code weir__work_turn(void *ctx, leader_turn turn, weir_error *err)
{
    weir_workqueue *q = ctx;
    switch (turn) {
    case LEADER_FIRST:
        set_standby(q, false);
        return weir__work_consume(q, err);
    case LEADER_STARTS:
        return start_leading(q, err);
    case LEADER_YIELDS:
        stop_leading(q);
        break;
    case LEADER_CANDIDATES:
        publish_slots(q, false);
        break;
    case LEADER_LOOKS:
        weir__work_look_away(q);
    }
    return WEIR_OK;
}
