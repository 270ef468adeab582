/* columns.c - see columns.h. */
#include "cli/columns.h"

#include <string.h>
#include "cli/near.h"

enum { CELL = 1000 };

typedef enum cell_kind {
    CELL_ID, CELL_STATE, CELL_PRIORITY, CELL_ATTEMPTS, CELL_WHEN, CELL_TOOK, CELL_PROGRESS,
    CELL_MOMENT, CELL_TEXT,     /* a member of weir_job */
    CELL_ABOUT                  /* why it failed, else its data */
} cell_kind;

typedef struct column {
    const char  *name;
    table_column look;
    cell_kind    kind;
    size_t       at;            /* of the member */
} column;

#define AT(member) offsetof(weir_job, member)
static const column columns[] = {
    { "id", { "ID", true, false }, CELL_ID, 0 },
    { "type", { "TYPE", false, true }, CELL_TEXT, AT(type) },
    { "state", { "STATE", false, false }, CELL_STATE, 0 },
    { "priority", { "PRIO", true, false }, CELL_PRIORITY, 0 },
    { "attempts", { "TRIES", true, false }, CELL_ATTEMPTS, 0 },
    { "when", { "WHEN", true, false }, CELL_WHEN, 0 },
    { "created", { "CREATED", false, false }, CELL_MOMENT, AT(created_at) },
    { "started", { "STARTED", false, false }, CELL_MOMENT, AT(started_at) },
    { "ended", { "ENDED", false, false }, CELL_MOMENT, AT(finished_at) },
    { "took", { "TOOK", true, false }, CELL_TOOK, 0 },
    { "progress", { "PROGRESS", true, false }, CELL_PROGRESS, 0 },
    { "worker", { "WORKER", false, true }, CELL_TEXT, AT(worker) },
    { "unique", { "UNIQUE", false, true }, CELL_TEXT, AT(unique) },
    { "data", { "DATA", false, true }, CELL_TEXT, AT(data) },
    { "error", { "ERROR", false, true }, CELL_TEXT, AT(error) },
    { "result", { "RESULT", false, true }, CELL_TEXT, AT(result) },
};
enum { COLUMNS = sizeof columns / sizeof *columns };

/* The last of the usual ones. */
static const column about = { "data", { "DATA", false, true }, CELL_ABOUT, AT(data) };
#undef AT

/* ---- which ones ---- */

static void add(cli_columns *c, const column *one)
{
    c->column[c->n] = one;
    c->look[c->n++] = one->look;
}

static weir_code add_named(cli_columns *c, const char *name, weir_error *err)
{
    char hint[80];
    weir_near guess = { .typed = name };
    for (int i = 0; i < COLUMNS; i++) {
        weir__near_try(&guess, columns[i].name);
        if (strcmp(columns[i].name, name) != 0)
            continue;
        if (c->n == TABLE_COLUMNS)
            return weir_fail(err, WEIR_EINVAL, "--columns: more than %d", TABLE_COLUMNS);
        add(c, &columns[i]);
        return WEIR_OK;
    }
    return weir_fail(err, WEIR_EINVAL, "--columns: unknown column '%s'%s", name,
                     near_hint(hint, sizeof hint, &guess, ""));
}

weir_code columns_parse(cli_columns *out, const char *names, weir_error *err)
{
    enum { USUAL = 6, LONGEST = 40 };
    *out = (cli_columns){ 0 };
    for (int i = 0; !names && i < USUAL; i++)
        add(out, &columns[i]);
    if (!names)
        add(out, &about);
    for (size_t n; names && *names; names += n + (names[n] == ',')) {
        char name[LONGEST];
        n = strcspn(names, ",");
        snprintf(name, sizeof name, "%.*s", n < LONGEST ? (int)n : LONGEST, names);
        if (add_named(out, name, err))
            return err->code;
    }
    return out->n ? WEIR_OK : weir_fail(err, WEIR_EINVAL, "--columns: no column is named");
}

/* ---- rows ---- */

static const char *text_at(const weir_job *job, size_t at)
{
    const char *text = *(const char *const *)((const char *)job + at);
    return text ? text : "";
}

static bool is_reason(const column *one, const weir_job *job)
{
    return one->kind == CELL_ABOUT && job->state == WEIR_STATE_FAILED && job->error;
}

/* To the second: "2026-11-16 09:00:00". */
static void write_moment(char *out, int64_t at)
{
    char *dot = strchr(term_moment(out, CELL, at), '.');
    if (dot)
        *dot = 0;
}

/* How long its last run took; -1: it has not ended by itself. */
static int64_t took_ms(const weir_job *j)
{
    if (j->state == WEIR_STATE_COMPLETE)
        return j->duration_ms;
    bool ran = j->state == WEIR_STATE_FAILED && j->started_at && j->finished_at >= j->started_at;
    return ran ? j->finished_at - j->started_at : -1;
}

static void write_cell(char *out, const column *one, const weir_job *j, int64_t now)
{
    switch (one->kind) {
    case CELL_ID:
        snprintf(out, CELL, "%llu", (unsigned long long)j->id);
        break;
    case CELL_STATE:
        if (j->state == WEIR_STATE_ACTIVE && j->progress)
            snprintf(out, CELL, "active %d%%", (int)j->progress);
        else
            snprintf(out, CELL, "%s", weir_state_name(j->state));
        break;
    case CELL_PRIORITY:
        snprintf(out, CELL, "%d", (int)j->priority);
        break;
    case CELL_ATTEMPTS:
        snprintf(out, CELL, "%d/%d", (int)j->attempts, (int)j->max_attempts);
        break;
    case CELL_PROGRESS:
        snprintf(out, CELL, "%d%%", (int)j->progress);
        break;
    case CELL_WHEN:
        term_relative(out, CELL, weir_job_moment(j), now);
        break;
    case CELL_TOOK:
        term_duration(out, CELL, took_ms(j));
        break;
    case CELL_MOMENT:
        write_moment(out, *(const int64_t *)((const char *)j + one->at));
        break;
    case CELL_ABOUT:
    case CELL_TEXT:
        snprintf(out, CELL, "%s", is_reason(one, j) ? j->error : text_at(j, one->at));
        break;
    }
}

static term_color color_of(const column *one, const weir_job *job)
{
    if (one->kind == CELL_STATE)
        return term_state_color(job->state);
    bool red = one->at == offsetof(weir_job, error) || is_reason(one, job);
    return red ? COLOR_RED : COLOR_NONE;
}

void columns_row(const cli_columns *c, table *t, const weir_job *job, int64_t now)
{
    char text[CELL];
    table_row(t);
    for (int i = 0; i < c->n; i++) {
        write_cell(text, c->column[i], job, now);
        table_cell(t, i, color_of(c->column[i], job), "%s", text);
    }
}
