/* mover_schedules.c - schedules on their way to another store: park, import, remove, release.
 *
 *   killed      the source has it    the target           the next run
 *   after 1     parked               has none             parks it again, which changes nothing
 *   after 2     parked               has a parked copy    replaces the copy
 *   after 3     none                 has a parked copy    releases it
 *
 * A copy fires only after step 4, when the source has none. */
#include "cli/migrate/mover.h"

#include <stdio.h>
#include <string.h>

static bool is_parked(const weir_schedule *s)
{
    return s->next_at >= WEIR_PARKED_AT;
}

static weir_code find(weir_queue *q, const char *name, weir_schedules **out, weir_error *err)
{
    weir_code rc = weir_schedule_get(q, name, out, err);
    return rc == WEIR_ENOENT ? WEIR_OK : rc;
}

static weir_code refuse(mover *m, weir_error *err)
{
    if (!m->schedules_left++)
        m->schedule_trouble = *err;
    err->code = WEIR_OK;
    return WEIR_OK;
}

void move_forget_ids(weir_schedule *s)
{
    s->last_job = 0;
    for (size_t i = 0; i < s->n_history; i++)
        s->history[i].job = 0;
}

static weir_code copy_one(mover *m, weir_schedule *s, weir_error *err)
{
    bool existed;
    if (m->new_ids)
        move_forget_ids(s);
    if (is_parked(s))
        s->next_at -= WEIR_PARKED_AT;
    weir_code rc = weir_schedule_import(m->to, s, &existed, err);
    m->schedules += !rc && !existed;
    return rc;
}

/* An import gives a series of its own: if the source has that now, it is the target. */
static weir_code check_two(mover *m, const weir_schedule *parked, weir_error *err)
{
    weir_schedules *now = NULL;
    weir_code       rc = find(m->from, parked->name, &now, err);
    bool            same = !rc && now && now->schedule[0].series != parked->series;
    weir_schedules_free(now);
    if (!same)
        return rc;
    weir_schedule_unpark(m->from, parked->name, NULL);
    return weir_fail(err, WEIR_EINVAL, "the target is the source: both URLs lead to one store");
}

static weir_code move_parked(mover *m, weir_schedule *parked, weir_error *err)
{
    weir_schedule there = *parked;
    if (m->new_ids)
        move_forget_ids(&there);
    weir_code rc = weir_schedule_import(m->to, &there, NULL, err);
    if (!rc)
        rc = check_two(m, parked, err);
    if (!rc)
        rc = weir_schedule_remove(m->from, parked->name, err);
    if (!rc)
        rc = weir_schedule_unpark(m->to, parked->name, err);
    m->schedules += !rc;
    return rc;
}

static weir_code move_one(mover *m, weir_schedule *s, weir_error *err)
{
    weir_schedules *there = NULL, *parked = NULL;
    if (m->keep)
        return copy_one(m, s, err);
    weir_code rc = find(m->to, s->name, &there, err);
    bool      taken = !rc && there && !is_parked(&there->schedule[0]);
    weir_schedules_free(there);
    if (taken) {
        weir_fail(err, WEIR_ESTATE, "schedule %s: the target has one of this name; remove it here "
                  "or there", s->name);
        return refuse(m, err);
    }
    if (!rc)
        rc = weir_schedule_park(m->from, s->name, &parked, err);
    if (rc == WEIR_EBUSY)
        return refuse(m, err);
    if (!rc)
        rc = move_parked(m, &parked->schedule[0], err);
    weir_schedules_free(parked);
    return rc;
}

/* A run that was killed has left this one behind; the source has none any more. */
static weir_code release_one(mover *m, weir_schedule *s, weir_error *err)
{
    weir_schedules *here = NULL;
    weir_code       rc = is_parked(s) ? find(m->from, s->name, &here, err) : WEIR_OK;
    if (!rc && is_parked(s) && !here) {
        rc = weir_schedule_unpark(m->to, s->name, err);
        m->schedules += !rc;
    }
    weir_schedules_free(here);
    return rc;
}

static weir_code each(mover *m, weir_queue *q,
                      weir_code (*act)(mover *m, weir_schedule *s, weir_error *err),
                      weir_error *err)
{
    char      after[WEIR_MAX_SCHEDULE_NAME + 1] = "";
    weir_code rc = WEIR_OK;
    for (bool more = true; !rc && more;) {
        weir_schedules *page = NULL;
        rc = weir_schedules_list(q, *after ? after : NULL, 0, &page, err);
        more = !rc && page->more;
        for (size_t i = 0; !rc && i < page->n; i++) {
            snprintf(after, sizeof after, "%s", page->schedule[i].name);
            rc = act(m, &page->schedule[i], err);
        }
        weir_schedules_free(page);
    }
    return rc;
}

weir_code mover_schedules(mover *m, weir_error *err)
{
    m->schedules_left = 0;
    weir_code rc = m->keep ? WEIR_OK : each(m, m->to, release_one, err);
    return rc ? rc : each(m, m->from, move_one, err);
}
