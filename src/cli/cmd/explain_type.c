/* explain_type.c - see explain_type.h. The explanation follows from the counts of the type
 * alone. */
#include "cli/cmd/explain_type.h"

#include <stdlib.h>
#include <string.h>
#include "cli/types.h"
#include "weir/schedule.h"

/* All that is looked at. */
typedef struct facts {
    const weir_type_stats *type;
    bool                   all_paused;
    int64_t                now;
    FILE                  *why, *help;
} facts;

static unsigned long long count(const facts *f, weir_state state)
{
    return (unsigned long long)f->type->count[state];
}

static void say_ms(FILE *out, int64_t ms)
{
    char text[32];
    fputs(term_duration(text, sizeof text, ms > 0 ? ms : 0), out);
}

static void say_paused(const facts *f)
{
    fprintf(f->why, "Its jobs are not taken, because %s is paused.",
            f->all_paused ? "the whole queue" : "the type");
    fprintf(f->help, "weir resume '%s'", f->all_paused ? "*" : f->type->type);
}

static void say_waiting(const facts *f)
{
    enum { QUIET_MS = 10000 };      /* with jobs waiting, a worker would have taken one by then */
    unsigned long long waiting = count(f, WEIR_STATE_INACTIVE);
    unsigned long long active = count(f, WEIR_STATE_ACTIVE);
    const weir_type_stats *t = f->type;
    fprintf(f->why, "%llu of its jobs wait%s for a worker; the next one was added ", waiting,
            waiting == 1 ? "s" : "");
    say_ms(f->why, f->now - t->oldest_at);
    fputs(" ago. ", f->why);
    if (active) {
        fprintf(f->why, "%llu %s running now.", active, active == 1 ? "is" : "are");
        fprintf(f->help, "More workers (weir work %s -j ...)", t->type);
        return;
    }
    if (t->last_taken_at) {
        fputs("The last was taken ", f->why);
        say_ms(f->why, f->now - t->last_taken_at);
        fputs(" ago", f->why);
    } else {
        fputs("None was ever taken", f->why);
    }
    if (t->last_taken_at && f->now - t->last_taken_at <= QUIET_MS) {
        fputs(".", f->why);
        return;
    }
    fputs(": it seems that no worker is running, or that the conditions of the running workers "
          "(--when) are not true for these jobs.", f->why);
    fprintf(f->help, "weir work %s --exec COMMAND", t->type);
}

static void say_others(const facts *f)
{
    static const struct { weir_state state; const char *one, *many; } others[] = {
        { WEIR_STATE_DELAYED, "is delayed", "are delayed" },
        { WEIR_STATE_FAILED, "has failed", "have failed" },
    };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        unsigned long long n = count(f, others[i].state);
        if (n)
            fprintf(f->why, " %llu %s.", n, n == 1 ? others[i].one : others[i].many);
    }
}

static void say(const facts *f)
{
    unsigned long long active = count(f, WEIR_STATE_ACTIVE);
    if (f->type->paused || f->all_paused)
        say_paused(f);
    else if (count(f, WEIR_STATE_INACTIVE))
        say_waiting(f);
    else if (active)
        fprintf(f->why, "None of its jobs waits; %llu %s running.", active,
                active == 1 ? "is" : "are");
    else
        fputs("None of its jobs waits or runs.", f->why);
    say_others(f);
}

static void print_json(const weir_type_stats *t, const char *why, const char *help)
{
    jw w = { .out = stdout };
    jw_object(&w, NULL);
    jw_text(&w, "type", t->type);
    for (int s = WEIR_STATE_INACTIVE; s < WEIR_STATE_COUNT; s++)
        jw_int(&w, weir_state_name((weir_state)s), (int64_t)t->count[s]);
    jw_text(&w, "why", why);
    jw_text(&w, "help", help);
    jw_end(&w, '}');
}

static void print_text(const weir_type_stats *t, const char *why, const char *help)
{
    int  width = term_width(stdout);
    char type[WEIR_MAX_TYPE + 8];
    printf("%stype %s%s\n\n", term_on(stdout, COLOR_BOLD),
           term_clean(type, sizeof type, t->type, 0), term_off(stdout));
    term_wrap(stdout, why, 2, width, false);
    if (!*help)
        return;
    printf("\n%sWhat would help%s\n", term_on(stdout, COLOR_BOLD), term_off(stdout));
    term_wrap(stdout, help, 2, width, false);
}

static const weir_type_stats *find(const weir_stats *s, const char *name)
{
    for (size_t i = 0; i < s->n; i++)
        if (strcmp(s->type[i].type, name) == 0)
            return &s->type[i];
    return NULL;
}

static weir_code print(cli *c, facts *f)
{
    char  *why = NULL, *help = NULL;
    size_t len;
    f->why = open_memstream(&why, &len);
    f->help = f->why ? open_memstream(&help, &len) : NULL;
    if (f->help)
        say(f);
    bool ok = f->help && !fclose(f->help);
    ok = f->why && !fclose(f->why) && ok;
    if (ok && c->json)
        print_json(f->type, why, help);
    else if (ok)
        print_text(f->type, why, help);
    free(why);
    free(help);
    return ok ? WEIR_OK : weir_fail(&c->err, WEIR_ENOMEM, "out of memory");
}

/* A schedule may have the name that no type has. */
static weir_code no_such_type(cli *c, weir_queue *q, const char *name)
{
    weir_schedules *found = NULL;
    weir_code       rc = cli_types_check(c, q, &(cli_types){ .name = { name }, .n = 1 });
    if (!weir_schedule_get(q, name, &found, NULL))
        rc = weir_fail(&c->err, WEIR_ENOENT, "no such type '%s', but a schedule: weir schedule "
                       "explain %s", name, name);
    weir_schedules_free(found);
    return rc;
}

weir_code explain_type(cli *c, weir_queue *q, const char *name)
{
    weir_stats *s = NULL;
    weir_code   rc = weir_get_stats(q, &s, &c->err);
    if (rc)
        return rc;
    facts f = { .type = find(s, name), .all_paused = s->all.paused, .now = weir_now(q) };
    rc = f.type ? print(c, &f) : no_such_type(c, q, name);
    weir_stats_free(s);
    return rc;
}
