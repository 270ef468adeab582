/* random_plan.c - making up operations. Everything is drawn from small sets, so that operations
 * meet: the same types, keys, words and jobs again and again. */
#include "conformance/random.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/job.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))
#define PICK(c, array) ((array)[below((c), COUNT(array))])

uint64_t chance_next(chance *c)
{
    uint64_t x = c->state += 0x9e3779b97f4a7c15u;       /* splitmix64 */
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

size_t below(chance *c, size_t n)
{
    return (size_t)(chance_next(c) % n);
}

bool one_in(chance *c, size_t n)
{
    return below(c, n) == 0;
}

static const char *const types[] = { "a", "b", "mail", "caf\xc3\xa9", "a b'\"%" };
static const char *const keys[] = { "k1", "k2", "K1" };
static const char *const workers[] = { "host:1:1", "host:1:2", "box:77:3" };
static const char *const documents[] = {
    "{}", "[]", "null", "{\"to\":\"ann\",\"n\":7}", "{\"to\":\"bob\",\"list\":[\"red\",\"green\"]}",
    "\"hello world\"", "{\"customer\":{\"name\":\"Carl\"},\"to\":\"dora\"}", "[true,1.5,\"x-y\"]",
    "{\"text\":\"caf\\u00e9 na\xc3\xafve\"}", "{ \"a\" : [ 1 , 2 ] }", "{", "nope",
};
static const char *const texts[] = {
    "connection refused", "disk full", "", "ann was here", "two\nlines", "it's \"odd\" % \\ *",
    "caf\xc3\xa9", "bytes \xff\xfe", "x", "red green blue", "0",
};
static const char *const searches[] = {
    "ann", "hello", "red", "gre*", "refused", "an* to", "carl", "caf\xc3\xa9", "x y", "", "*", "1",
    "OR", "disk \"full", "error", "stalled", "TTL exceeded", "c* n*", "blue -red", "true",
};
static const char *const conditions[] = {
    "data.to = \"ann\"", "data.n > 3 or job.priority < 0", "not job.attempts = 0", "true", "false",
    "now.minute >= 30 and data.to != null", "data.customer.name != \"Carl\"", "job.id > 20",
};
static const char *const search_keys[] = { "to", "customer.name", "to, list", "none" };
static const char *const values[] = {
    "{\"a\":1}", "{\"b\":\"x y\",\"a\":\"5\"}", "{\"c\":[1, 2],\"d\":{\"e\":null}}", "{}",
    "{\"b\":\"caf\\u00e9\",\"z-1\":true}", "{\"a\":\"null\",\"q\":\"\\\"\\\"\"}",
};
static const char *const value_changes[] = {
    "{\"a\":2}", "{\"a\":null}", "{\"b\":\"\",\"c\":null}", "{\"d\":[],\"b\":null,\"z-1\":1.50}",
    "{}", "{\"state\":1}", "{\"a\":null,\"b\":null,\"c\":null,\"d\":null,\"q\":null,\"z-1\":null}",
};
static const int32_t     priorities[] = { 0, 0, 0, 10, -5, -10, -15, 7, INT32_MAX, INT32_MIN };

/* An id that is likely to be there: a recent one. */
static uint64_t some_id(chance *c, const model *m)
{
    if (one_in(c, 40))
        return one_in(c, 2) ? 0 : m->last_id + 5;
    size_t back = one_in(c, 4) ? below(c, 400) : below(c, 60);
    return m->last_id > back ? m->last_id - back : 1;
}

static void some_delivery(chance *c, const model *m, uint64_t *id, uint32_t *delivery)
{
    *id = some_id(c, m);
    *delivery = 1 + (uint32_t)below(c, 2);
    if (m->n_held && !one_in(c, 30)) {
        size_t i = below(c, m->n_held);
        *id = m->held[i].id;
        *delivery = m->held[i].delivery;
    }
}

/* Jobs that are alike: stores may keep them together. */
static size_t plan_lot(plan *p, chance *c)
{
    weir_spec one = { .type = PICK(c, types), .priority = one_in(c, 2) ? 0 : PICK(c, priorities),
                      .attempts = 1 + (int32_t)below(c, 3), .remove_on_complete = one_in(c, 4),
                      .values = one_in(c, 8) ? PICK(c, values) : NULL };
    size_t    n = 2 + below(c, MAX_LOT - 1);
    for (size_t i = 0; i < n; i++) {
        p->specs[i] = one;
        p->specs[i].data = documents[below(c, COUNT(documents) - 2)];
        p->specs[i].ttl_ms = one_in(c, 20) ? 1 + (int64_t)below(c, 600) : 0;
    }
    return n;
}

static void plan_add(plan *p, chance *c, int64_t now)
{
    bool   alike = one_in(c, 4);
    size_t n = alike ? plan_lot(p, c) : one_in(c, 3) ? 1 + below(c, MAX_SPECS) : 1;
    for (size_t i = 0; !alike && i < n; i++) {
        weir_spec *s = &p->specs[i];
        *s = (weir_spec){ .type = PICK(c, types), .priority = PICK(c, priorities) };
        if (!one_in(c, 4))
            s->data = documents[below(c, one_in(c, 30) ? COUNT(documents) : COUNT(documents) - 2)];
        if (one_in(c, 2))
            s->attempts = 1 + (int32_t)below(c, 4);
        if (one_in(c, 4))
            s->delay_ms = 1 + (int64_t)below(c, 800);
        else if (one_in(c, 10))
            s->run_at = now - 100 + (int64_t)below(c, 900);
        if (one_in(c, 3))
            s->backoff = (weir_backoff){ (weir_backoff_kind)below(c, 4), (int64_t)below(c, 300),
                                         one_in(c, 2) ? (int64_t)below(c, 500) : 0,
                                         one_in(c, 2) ? (int32_t)below(c, 101) : 0 };
        if (one_in(c, 5))
            s->ttl_ms = 1 + (int64_t)below(c, 600);
        if (one_in(c, 8))
            s->deadline_at = now + (int64_t)below(c, 1500);
        if (one_in(c, 3))
            s->unique = PICK(c, keys);
        if (one_in(c, 3))
            s->max_lost = 1 + (int32_t)below(c, 2);
        s->remove_on_complete = one_in(c, 4);
        s->search = one_in(c, 2);
        if (one_in(c, 4))
            s->search_keys = PICK(c, search_keys);
        if (one_in(c, 4))
            s->values = PICK(c, values);
    }
    p->op.u.add = (weir_op_add){ .specs = p->specs, .n = n };
    if (one_in(c, 6)) {     /* numbers that rise with the time, so that all that can be is hit */
        p->token = (weir_token){ .key = PICK(c, keys), .digest = below(c, 2) ? 0 : 7,
                                 .number = (uint64_t)(now / 500) + below(c, 3) };
        p->op.u.add.token = &p->token;
    }
}

static void plan_taking(plan *p, weir_op_take *t, chance *c)
{
    t->n_types = 1 + below(c, 3);
    for (size_t i = 0; i < t->n_types; i++)
        p->types[i] = PICK(c, types);
    t->types = p->types;
    t->n = 1 + below(c, MAX_TAKE);
    t->lease_ms = one_in(c, 3) ? 1 + (int64_t)below(c, 400) : 5000;
    t->worker = PICK(c, workers);
    t->when = one_in(c, 3) ? PICK(c, conditions) : NULL;
    t->busy = one_in(c, 2);
}

static void plan_finish(plan *p, chance *c, const model *m)
{
    weir_op_finish *f = &p->op.u.finish;
    some_delivery(c, m, &f->id, &f->delivery);
    size_t kind = below(c, 20);
    f->outcome = kind < 10   ? WEIR_OUTCOME_DONE
                 : kind < 16 ? WEIR_OUTCOME_FAIL
                 : kind < 17 ? WEIR_OUTCOME_GIVE_UP
                 : kind < 19 ? WEIR_OUTCOME_RETURN
                             : WEIR_OUTCOME_LOST;
    if (f->outcome == WEIR_OUTCOME_DONE && one_in(c, 2))
        f->text = PICK(c, documents);
    if (f->outcome == WEIR_OUTCOME_FAIL || f->outcome == WEIR_OUTCOME_GIVE_UP)
        f->text = PICK(c, texts);
    if (f->outcome == WEIR_OUTCOME_RETURN && one_in(c, 2))
        f->delay_ms = 1 + (int64_t)below(c, 2000);
    f->len = f->text ? strlen(f->text) : 0;
    if (one_in(c, 2))
        plan_taking(p, &f->next, c);
}

static void plan_renew(plan *p, chance *c, const model *m)
{
    size_t n = 1 + below(c, MAX_SPECS);
    for (size_t i = 0; i < n; i++) {
        weir_renewal *l = &p->leases[i];
        *l = (weir_renewal){ .lease_ms = 1 + (int64_t)below(c, 3000) };
        some_delivery(c, m, &l->id, &l->delivery);
    }
    p->op.u.renew = (weir_op_renew){ .items = p->leases, .n = n };
}

static void plan_progress(plan *p, chance *c, const model *m)
{
    weir_op_progress *o = &p->op.u.progress;
    some_delivery(c, m, &o->id, &o->delivery);
    o->percent = (int32_t)below(c, 102);
    if (one_in(c, 2))
        o->data = PICK(c, documents);
    o->len = o->data ? strlen(o->data) : 0;
}

static void plan_log(plan *p, chance *c, const model *m)
{
    weir_op_log *l = &p->op.u.log;
    some_delivery(c, m, &l->id, &l->delivery);
    if (one_in(c, 2)) {
        l->id = some_id(c, m);
        l->delivery = 0;
    }
    l->text = PICK(c, texts);
    l->len = strlen(l->text);
}

static void plan_update(plan *p, chance *c, const model *m, int64_t now)
{
    enum { ENDED = WEIR_BIT(WEIR_STATE_COMPLETE) | WEIR_BIT(WEIR_STATE_FAILED) |
           WEIR_BIT(WEIR_STATE_CANCELLED) };
    static const uint32_t sets[] = { 0, 0, WEIR_BIT(WEIR_STATE_DELAYED),
                                     WEIR_BIT(WEIR_STATE_INACTIVE), ENDED };
    weir_op_update *u = &p->op.u.update;
    weir_change    *ch = &u->change;
    u->id = some_id(c, m);
    if (one_in(c, 3)) {
        ch->values = PICK(c, value_changes);
        if (one_in(c, 2))
            some_delivery(c, m, &u->id, &ch->delivery);
        if (!one_in(c, 3))
            return;
    }
    u->from = PICK(c, sets);
    if (one_in(c, 3)) {
        ch->set_priority = true;
        ch->priority = PICK(c, priorities);
    }
    if (one_in(c, 3)) {
        ch->set_delay = true;
        ch->delay_ms = one_in(c, 3) ? 0 : (int64_t)below(c, 600);
    }
    if (one_in(c, ch->set_delay ? 40 : 4))
        ch->run_at = now - 100 + (int64_t)below(c, 900);
    if (one_in(c, 3))
        ch->data = PICK(c, documents);
    if (!one_in(c, 3))
        ch->state = one_in(c, 4) ? (weir_state)below(c, WEIR_STATE_COUNT)
                                 : (weir_state[]){ WEIR_STATE_INACTIVE, WEIR_STATE_DELAYED,
                                                   WEIR_STATE_CANCELLED }[below(c, 3)];
    if (one_in(c, 4))
        ch->by = "the schedule report";
    if (ch->state == WEIR_STATE_ACTIVE) {
        ch->worker = PICK(c, workers);
        ch->lease_ms = 1 + (int64_t)below(c, 400);
    }
}

static void plan_configure(plan *p, chance *c)
{
    weir_op_configure *o = &p->op.u.configure;
    o->type = one_in(c, 4) ? "*" : one_in(c, 10) ? "never" : PICK(c, types);
    if (one_in(c, 2)) {
        o->set_paused = true;
        o->paused = one_in(c, 6);
        return;
    }
    p->settings = (weir_settings){ .search = one_in(c, 4) };
    p->settings.keep_complete.count = 1 + (int64_t)below(c, 20);
    p->settings.keep_failed.count = one_in(c, 3) ? 0 : 1 + (int64_t)below(c, 20);
    p->settings.keep_complete.age_ms = one_in(c, 2) ? 0 : 1 + (int64_t)below(c, 3000);
    p->settings.keep_failed.age_ms = one_in(c, 3) ? 0 : 1 + (int64_t)below(c, 3000);
    if (!p->settings.keep_failed.count && !p->settings.keep_failed.age_ms)
        p->settings.keep_failed.age_ms = WEIR_FOREVER;  /* the default depends on the store */
    o->settings = &p->settings;
}

static const char *some_json(chance *c, size_t *len)
{
    const char *json = documents[below(c, COUNT(documents) - 2)];
    *len = strlen(json);
    return json;
}

static const char *const histories[] = {
    "[]", "[{\"n\":1,\"at\":5,\"event\":\"due\",\"state\":\"inactive\",\"planned\":4}]",
    ("[ {\"n\":41,\"state\":\"inactive\",\"event\":\"returned\",\"at\":9,\"delivery\":3},\n"
     "{\"n\":42,\"at\":9,\"event\":\"changed\",\"state\":\"failed\",\"new_data\":true} ]"),
};

/* What has happened to a job in this state, so that it may have come so far. */
static void live(weir_job *j, chance *c, int64_t now)
{
    bool ended = weir__finished(j->state);
    j->max_attempts = 1 + (int32_t)below(c, 4);
    j->attempts = (int32_t)below(c, (size_t)j->max_attempts + ended);
    if (j->state == WEIR_STATE_COMPLETE && !j->attempts)
        j->attempts = 1;
    j->max_lost = 1 + (int32_t)below(c, 3);
    j->lost = (int32_t)below(c, (size_t)j->max_lost + 1 + (j->state == WEIR_STATE_FAILED));
    j->delivery = (uint32_t)(j->attempts + j->lost + (j->state == WEIR_STATE_ACTIVE));
    j->progress = j->state == WEIR_STATE_COMPLETE ? 100 : (int32_t)below(c, 101);
    if (one_in(c, 2))
        j->progress_data = some_json(c, &j->progress_data_len);
    if (j->delivery) {
        j->worker = PICK(c, workers);
        j->started_at = now - (int64_t)below(c, 500);
        j->lease_until = now + (int64_t)below(c, 500);      /* which is not for here */
    }
    if (j->state == WEIR_STATE_COMPLETE ? false : j->state == WEIR_STATE_FAILED || one_in(c, 3)) {
        j->error = PICK(c, texts);
        j->failed_at = now - (int64_t)below(c, 400);
    }
    if (ended)
        j->finished_at = now - (int64_t)below(c, 2000);
    if (j->state == WEIR_STATE_COMPLETE && one_in(c, 2))
        j->result = some_json(c, &j->result_len);
    if (j->state == WEIR_STATE_COMPLETE)
        j->duration_ms = (int64_t)below(c, 300);
    if (one_in(c, 2)) {
        j->history = PICK(c, histories);
        j->history_len = strlen(j->history);
    }
}

/* Which job it says it is: one that was imported before, one that is or was here, or a new one. */
static void identify(weir_incoming *in, weir_job *j, chance *c, const model *m, int64_t now)
{
    size_t moved = m->n_moved < MAX_MOVED ? m->n_moved : MAX_MOVED;
    j->type = PICK(c, types);
    j->created_at = now - (int64_t)below(c, 3000);
    if (moved && one_in(c, 3)) {
        size_t i = below(c, moved);
        j->id = m->moved[i].id;
        j->created_at = m->moved[i].created_at;
        if (!one_in(c, 4))
            j->type = m->moved[i].type;
    } else if (one_in(c, 2)) {
        j->id = m->last_id + 1 + below(c, 3);
    } else if (!one_in(c, 3)) {
        j->id = some_id(c, m);
    }
    in->new_id = one_in(c, 5);
}

static void plan_import(plan *p, chance *c, const model *m, int64_t now)
{
    size_t n = one_in(c, 2) ? 1 + below(c, MAX_SPECS) : 1;
    for (size_t i = 0; i < n; i++) {
        weir_incoming *in = &p->incoming[i];
        weir_job      *j = &p->jobs[i];
        identify(in, j, c, m, now);
        j->state = (weir_state)(WEIR_STATE_INACTIVE +
                                below(c, WEIR_STATE_COUNT - WEIR_STATE_INACTIVE));
        j->priority = PICK(c, priorities);
        j->data = some_json(c, &j->data_len);
        live(j, c, now);
        j->promote_at = now - 300 + (int64_t)below(c, 900);
        j->updated_at = now - (int64_t)below(c, 100);
        j->delay_ms = one_in(c, 3) ? (int64_t)below(c, 300) : 0;
        j->ttl_ms = one_in(c, 4) ? 1 + (int64_t)below(c, 500) : 0;
        j->deadline_at = one_in(c, 6) ? now - 100 + (int64_t)below(c, 1500) : 0;
        j->backoff = (weir_backoff){ (weir_backoff_kind)below(c, 4), (int64_t)below(c, 300), 0,
                                     (int32_t)below(c, 101) };
        if (one_in(c, 3))
            j->unique = PICK(c, keys);
        j->remove_on_complete = one_in(c, 5);
        j->search = one_in(c, 2);
        if (one_in(c, 4))
            j->search_keys = PICK(c, search_keys);
        if (one_in(c, 3)) {
            j->values = PICK(c, values);
            j->values_len = strlen(j->values);
        }
        if (one_in(c, 40))
            j->attempts = j->max_attempts + 1;
        in->job = j;
        in->lines = p->lines[i];
        in->n_lines = below(c, MAX_LINES + 1);
        uint64_t first = one_in(c, 4) ? 1 + below(c, 20000) : 1;
        if (j->error && !in->n_lines)       /* an error is also in the log */
            in->n_lines = 1;
        for (size_t k = 0; k < in->n_lines; k++)
            p->lines[i][k] = (weir_line){ .n = first + k, .at = now - (int64_t)below(c, 50),
                                          .text = j->error ? j->error : PICK(c, texts) };
    }
    p->op.u.import = (weir_op_import){ .jobs = p->incoming, .n = n };
}

static void plan_list(plan *p, chance *c)
{
    weir_query *q = &p->op.u.list.query;
    if (one_in(c, 3)) {
        p->next_page = true;
        return;
    }
    q->state = one_in(c, 4) ? WEIR_STATE_ANY : (weir_state)below(c, WEIR_STATE_COUNT);
    q->type = one_in(c, 2) ? PICK(c, types) : NULL;
    q->search = one_in(c, 4) ? PICK(c, searches) : NULL;
    q->by_priority = one_in(c, 3);
    q->priority = PICK(c, priorities);
    q->descending = one_in(c, 2);
    q->ids_only = one_in(c, 4);
    q->limit = one_in(c, 10) ? WEIR_MAX_PAGE : 1 + below(c, 12);
}

static const struct {
    const char *name, *record;
} schedules[] = {
    { "night", "{\"name\":\"night\",\"when\":\"@daily\",\"job\":{\"type\":\"a\"}}" },
    { "day", "{\"name\":\"day\",\"when\":\"0 12 * * *\",\"job\":{\"type\":\"a\"}}" },
    { "ü", "{\"name\":\"ü\",\"when\":\"every 90m\",\"job\":{\"type\":\"b\"}}" },
};

static void plan_schedule(plan *p, chance *c, int64_t now)
{
    size_t            i = below(c, 3);
    weir_op_schedule *o = &p->op.u.schedule;
    *o = (weir_op_schedule){ .name = schedules[i].name, .due_at = INT64_MAX,
                             .version = one_in(c, 2)   ? WEIR_ANY_VERSION
                                        : one_in(c, 2) ? 0
                                                       : 1 + below(c, 20) };
    if (one_in(c, 4))
        return;
    o->record = schedules[i].record;
    if (!one_in(c, 4))
        o->due_at = now + (int64_t)below(c, 20000) - 5000;
}

static void plan_schedules(plan *p, chance *c)
{
    weir_op_schedules *o = &p->op.u.schedules;
    *o = (weir_op_schedules){ .limit = 1 + below(c, 4), .due = one_in(c, 2) };
    if (!o->due && one_in(c, 2))
        o->name = schedules[below(c, 3)].name;
    else if (!o->due && one_in(c, 2))
        o->after = schedules[below(c, 3)].name;
}

static const char *const trend_types[] = { "", "a", "mail", "caf\xc3\xa9" };
static const char *const trend_records[] = {
    "added=3 complete=2 backlog=1 oldest=40 w0=1 w7=2 r3=2", "failed=1 attempt=4 w7=1 r3=9 r127=1",
    "r0=4294967295 cancelled=99999999999999 lost=1", "", "backlog=0 oldest=0", "w3=1 added=1",
    "nonsense", "w128=1", "added=1 added=2",
};

/* A slot near one of the ends of what is kept, or about now. */
static int64_t some_slot(chance *c, weir_trend_step step, int64_t now)
{
    int64_t around = one_in(c, 4)   ? weir__trend_first_kept(step, now)
                     : one_in(c, 4) ? weir__trend_last_kept(step, now)
                                    : now / weir__trend_step_ms(step);
    int64_t slot = around + (int64_t)below(c, 4) - 2;
    return slot > 0 ? slot : 0;
}

static void plan_trend_put(plan *p, chance *c, int64_t now)
{
    size_t n = below(c, 4);
    for (size_t i = 0; i < n; i++) {
        weir_trend_step step = (weir_trend_step)below(c, WEIR_TREND_STEPS);
        p->trends[i] = (weir_trend_row){ .type = PICK(c, trend_types),
                                         .record = trend_records[below(c, one_in(c, 8) ? 9 : 6)],
                                         .step = step, .slot = some_slot(c, step, now) };
    }
    p->op.u.trend_put = (weir_op_trend_put){ .rows = p->trends, .n = n };
}

static void plan_trend_get(plan *p, chance *c, int64_t now)
{
    weir_op_trend_get *o = &p->op.u.trend_get;
    o->type = one_in(c, 3) ? NULL : PICK(c, trend_types);
    o->step = (weir_trend_step)below(c, WEIR_TREND_STEPS);
    o->from = some_slot(c, o->step, now);
    o->n = o->type && one_in(c, 3) ? WEIR_MAX_TREND_SLOTS : below(c, 12);
}

/* How often, of a hundred; CHECK is added by whoever runs them. */
static const struct {
    weir_op_kind kind;
    size_t       share;
} shares[] = {
    { WEIR_OP_ADD, 15 },      { WEIR_OP_TAKE, 14 },   { WEIR_OP_FINISH, 17 }, { WEIR_OP_RENEW, 3 },
    { WEIR_OP_PROGRESS, 3 },  { WEIR_OP_LOG, 4 },     { WEIR_OP_TICK, 9 },    { WEIR_OP_UPDATE, 8 },
    { WEIR_OP_REMOVE, 4 },    { WEIR_OP_CONFIGURE, 2 }, { WEIR_OP_GET, 5 },   { WEIR_OP_LIST, 5 },
    { WEIR_OP_LOGS, 1 },      { WEIR_OP_STATS, 1 },   { WEIR_OP_IMPORT, 3 },
    { WEIR_OP_SCHEDULE, 2 },  { WEIR_OP_SCHEDULES, 1 }, { WEIR_OP_TREND_PUT, 2 },
    { WEIR_OP_TREND_GET, 1 },
};

void plan_op(plan *p, chance *c, const model *m, int64_t now)
{
    size_t at = below(c, 100), i = 0;
    while (at >= shares[i].share)
        at -= shares[i++].share;
    memset(p, 0, sizeof *p);
    p->op.kind = shares[i].kind;
    p->op.now_ms = now;
    switch (p->op.kind) {
    case WEIR_OP_ADD:       plan_add(p, c, now); break;
    case WEIR_OP_TAKE:      plan_taking(p, &p->op.u.take, c); break;
    case WEIR_OP_FINISH:    plan_finish(p, c, m); break;
    case WEIR_OP_RENEW:     plan_renew(p, c, m); break;
    case WEIR_OP_PROGRESS:  plan_progress(p, c, m); break;
    case WEIR_OP_LOG:       plan_log(p, c, m); break;
    case WEIR_OP_TICK:      p->op.u.tick.limit = one_in(c, 3) ? 1 + below(c, 5) : 0; break;
    case WEIR_OP_UPDATE:    plan_update(p, c, m, now); break;
    case WEIR_OP_REMOVE:    p->op.u.remove.id = some_id(c, m); break;
    case WEIR_OP_CONFIGURE: plan_configure(p, c); break;
    case WEIR_OP_IMPORT:    plan_import(p, c, m, now); break;
    case WEIR_OP_SCHEDULE:  plan_schedule(p, c, now); break;
    case WEIR_OP_SCHEDULES: plan_schedules(p, c); break;
    case WEIR_OP_TREND_PUT: plan_trend_put(p, c, now); break;
    case WEIR_OP_TREND_GET: plan_trend_get(p, c, now); break;
    case WEIR_OP_GET:       p->op.u.get.id = some_id(c, m); break;
    case WEIR_OP_LIST:      plan_list(p, c); break;
    case WEIR_OP_LOGS:
        p->op.u.logs = (weir_op_logs){ .id = some_id(c, m), .after = below(c, 4),
                                       .limit = below(c, 8) };
        break;
    default:
        break;
    }
}

void plan_end(plan *p, const model *m, size_t i, int64_t now)
{
    *p = (plan){ .op = { .kind = WEIR_OP_FINISH, .now_ms = now } };
    p->op.u.finish = (weir_op_finish){ .id = m->held[i].id, .delivery = m->held[i].delivery,
                                       .outcome = WEIR_OUTCOME_DONE };
}

/* ---- as text, for people ---- */

static void say_take(const weir_op_take *t, weir_buf *out)
{
    weir__buf_printf(out, " take %zu by %s%s, lease %" PRId64 ", of", t->n, t->worker,
                     t->busy ? " (busy)" : "", t->lease_ms);
    for (size_t i = 0; i < t->n_types; i++)
        weir__buf_printf(out, " \"%s\"", t->types[i]);
    if (t->when)
        weir__buf_printf(out, " when %s", t->when);
}

static void say_add(const weir_op_add *a, weir_buf *out)
{
    if (a->token)
        weir__buf_printf(out, " as %s:%" PRIu64, a->token->key, a->token->number);
    for (size_t i = 0; i < a->n; i++) {
        const weir_spec *s = &a->specs[i];
        weir__buf_printf(out, " {\"%s\" %s prio %d attempts %d delay %" PRId64 " run_at %" PRId64
                         " backoff %d:%" PRId64 ":%" PRId64 ":%d ttl %" PRId64 " deadline %" PRId64
                         " unique %s lost %d%s%s keys %s values %s}",
                         s->type, s->data ? s->data : "-", s->priority, s->attempts, s->delay_ms,
                         s->run_at, (int)s->backoff.kind, s->backoff.delay_ms, s->backoff.max_ms,
                         s->backoff.jitter_pct, s->ttl_ms, s->deadline_at,
                         s->unique ? s->unique : "-", s->max_lost,
                         s->remove_on_complete ? " remove" : "", s->search ? " search" : "",
                         s->search_keys ? s->search_keys : "-", s->values ? s->values : "-");
    }
}

static void say_change(const weir_op_update *u, weir_buf *out)
{
    weir__buf_printf(out, " %" PRIu64 " from %x", u->id, u->from);
    if (u->change.set_priority)
        weir__buf_printf(out, " priority %d", u->change.priority);
    if (u->change.set_delay)
        weir__buf_printf(out, " delay %" PRId64, u->change.delay_ms);
    if (u->change.run_at)
        weir__buf_printf(out, " run_at %" PRId64, u->change.run_at - FIXTURE_START);
    if (u->change.data)
        weir__buf_printf(out, " data %s", u->change.data);
    if (u->change.values)
        weir__buf_printf(out, " values %s", u->change.values);
    if (u->change.delivery)
        weir__buf_printf(out, " delivery %u", u->change.delivery);
    if (u->change.state)
        weir__buf_printf(out, " state %s", weir_state_name(u->change.state));
    if (u->change.worker)
        weir__buf_printf(out, " worker %s lease %" PRId64, u->change.worker, u->change.lease_ms);
    if (u->change.by)
        weir__buf_printf(out, " by %s", u->change.by);
}

static void say_import(const weir_op_import *in, weir_buf *out)
{
    for (size_t i = 0; i < in->n; i++) {
        size_t len;
        char  *json = weir_job_json(in->jobs[i].job, &len);
        weir__buf_printf(out, " %s%s %zu lines from %" PRIu64, in->jobs[i].new_id ? "anew " : "",
                         json ? json : "?", in->jobs[i].n_lines,
                         in->jobs[i].n_lines ? in->jobs[i].lines[0].n : 0);
        free(json);
    }
}

void plan_describe(const plan *p, weir_buf *out)
{
    const weir_op *op = &p->op;
    weir__buf_printf(out, "at %" PRId64 " %s", op->now_ms - FIXTURE_START,
                     weir__op_row(op)->name);
    switch (op->kind) {
    case WEIR_OP_ADD:
        say_add(&op->u.add, out);
        break;
    case WEIR_OP_TAKE:
        say_take(&op->u.take, out);
        break;
    case WEIR_OP_FINISH:
        weir__buf_printf(out, " %" PRIu64 "/%u outcome %d \"%s\"", op->u.finish.id,
                         op->u.finish.delivery, (int)op->u.finish.outcome,
                         op->u.finish.text ? op->u.finish.text : "-");
        if (op->u.finish.next.n)
            say_take(&op->u.finish.next, out);
        break;
    case WEIR_OP_RENEW:
        for (size_t i = 0; i < op->u.renew.n; i++)
            weir__buf_printf(out, " %" PRIu64 "/%u for %" PRId64, p->leases[i].id,
                             p->leases[i].delivery, p->leases[i].lease_ms);
        break;
    case WEIR_OP_PROGRESS:
        weir__buf_printf(out, " %" PRIu64 "/%u %d %s", op->u.progress.id, op->u.progress.delivery,
                         op->u.progress.percent, op->u.progress.data ? op->u.progress.data : "-");
        break;
    case WEIR_OP_LOG:
        weir__buf_printf(out, " %" PRIu64 "/%u \"%s\"", op->u.log.id, op->u.log.delivery,
                         op->u.log.text);
        break;
    case WEIR_OP_TICK:
        weir__buf_printf(out, " limit %zu", op->u.tick.limit);
        break;
    case WEIR_OP_UPDATE:
        say_change(&op->u.update, out);
        break;
    case WEIR_OP_REMOVE:
        weir__buf_printf(out, " %" PRIu64, op->u.remove.id);
        break;
    case WEIR_OP_CONFIGURE:
        weir__buf_printf(out, " \"%s\"", op->u.configure.type);
        if (op->u.configure.set_paused)
            weir__buf_str(out, op->u.configure.paused ? " pause" : " resume");
        if (op->u.configure.settings)
            weir__buf_printf(out, " complete %" PRId64 ":%" PRId64 " failed %" PRId64 ":%" PRId64
                             "%s", p->settings.keep_complete.age_ms,
                             p->settings.keep_complete.count, p->settings.keep_failed.age_ms,
                             p->settings.keep_failed.count, p->settings.search ? " search" : "");
        break;
    case WEIR_OP_IMPORT:
        say_import(&op->u.import, out);
        break;
    case WEIR_OP_SCHEDULE:
        weir__buf_printf(out, " %s%s due %" PRId64 " version %" PRIu64, op->u.schedule.name,
                         op->u.schedule.record ? "" : " remove", op->u.schedule.due_at,
                         op->u.schedule.version);
        break;
    case WEIR_OP_SCHEDULES:
        weir__buf_printf(out, " %s%s after %s limit %zu",
                         op->u.schedules.name ? op->u.schedules.name : "-",
                         op->u.schedules.due ? " due" : "",
                         op->u.schedules.after ? op->u.schedules.after : "-",
                         op->u.schedules.limit);
        break;
    case WEIR_OP_TREND_PUT:
        for (size_t i = 0; i < op->u.trend_put.n; i++) {
            const weir_trend_row *row = &op->u.trend_put.rows[i];
            weir__buf_printf(out, " %d/%" PRId64 "/%s \"%s\"", row->step, row->slot, row->type,
                             row->record);
        }
        break;
    case WEIR_OP_TREND_GET:
        weir__buf_printf(out, " %d of %s from %" PRId64 " n %zu", op->u.trend_get.step,
                         op->u.trend_get.type ? op->u.trend_get.type : "all",
                         op->u.trend_get.from, op->u.trend_get.n);
        break;
    case WEIR_OP_GET:
        weir__buf_printf(out, " %" PRIu64, op->u.get.id);
        break;
    case WEIR_OP_LIST:
        if (op->u.list.query.by_priority)
            weir__buf_printf(out, " priority %d", (int)op->u.list.query.priority);
        weir__buf_printf(out, " %s type %s search \"%s\"%s%s limit %zu%s",
                         weir_state_name(op->u.list.query.state),
                         op->u.list.query.type ? op->u.list.query.type : "-",
                         op->u.list.query.search ? op->u.list.query.search : "-",
                         op->u.list.query.descending ? " descending" : "",
                         op->u.list.query.ids_only ? " ids" : "", op->u.list.query.limit,
                         p->next_page ? " (or the next page of the last one)" : "");
        break;
    case WEIR_OP_LOGS:
        weir__buf_printf(out, " %" PRIu64 " after %" PRIu64 " limit %zu", op->u.logs.id,
                         op->u.logs.after, op->u.logs.limit);
        break;
    default:
        break;
    }
}
