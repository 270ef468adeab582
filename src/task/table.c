/* table.c - rows of the table of record: what is written when, and what is read back. */
#include "task/table.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/fail.h"

struct task_table {
    const task_db_ops *ops;
    task_db           *db;
    pthread_mutex_t    lock;            /* guards db: one statement at a time */
    char               name[WEIR_MAX_TASK_TEXT + 1];
};

/* delayqueue's words for the states. */
static const char *const states[WEIR_TASK_STATE_COUNT] = {
    [WEIR_TASK_READY] = "\u5f85\u8fd0\u884c",     [WEIR_TASK_RUNNING] = "\u8fd0\u884c\u4e2d",
    [WEIR_TASK_COMPLETED] = "\u5df2\u5b8c\u6210", [WEIR_TASK_FAILED] = "\u5df2\u5931\u8d25",
    [WEIR_TASK_CANCELLED] = "\u5df2\u53d6\u6d88", [WEIR_TASK_TIMED_OUT] = "\u5df2\u8d85\u65f6",
};

/* ---- SQL ---- */

static void add_string(weir_buf *b, const char *text, size_t len)
{
    weir__buf_char(b, '\'');
    for (size_t i = 0; i < len; i++) {
        if (text[i] == '\'')
            weir__buf_char(b, '\'');
        weir__buf_char(b, text[i]);
    }
    weir__buf_char(b, '\'');
}

static void add_text(weir_buf *b, const char *text)
{
    if (text)
        add_string(b, text, strlen(text));
    else
        weir__buf_str(b, "NULL");
}

/* "2026-11-18 15:00:00.123", UTC. */
static void add_moment(weir_buf *b, int64_t at)
{
    time_t    seconds = (time_t)(at / 1000);
    struct tm tm;
    char      text[40];
    if (!at) {
        weir__buf_str(b, "NULL");
        return;
    }
    strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", gmtime_r(&seconds, &tm));
    weir__buf_printf(b, "'%s.%03d'", text, (int)(at % 1000));
}

static int64_t read_moment(const char *text)
{
    struct tm tm = { 0 };
    int       ms = 0;
    if (!text || sscanf(text, "%d-%d-%d %d:%d:%d.%3d", &tm.tm_year, &tm.tm_mon, &tm.tm_mday,
                        &tm.tm_hour, &tm.tm_min, &tm.tm_sec, &ms) < 6)
        return 0;
    tm.tm_year -= 1900;
    tm.tm_mon--;
    return (int64_t)timegm(&tm) * 1000 + ms;
}

static weir_code run(task_table *t, weir_buf *sql, task_db_row *row, void *ctx, weir_error *err)
{
    weir_code rc = sql->failed ? weir_fail(err, WEIR_ENOMEM, "task: out of memory") : WEIR_OK;
    if (!rc) {
        pthread_mutex_lock(&t->lock);
        rc = t->ops->run(t->db, sql->data, row, ctx, err);
        pthread_mutex_unlock(&t->lock);
    }
    weir__buf_fini(sql);
    return rc;
}

/* ---- open and close ---- */

static bool is_name(const char *text)
{
    size_t n = strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789");
    return n && !text[n] && n <= WEIR_MAX_TASK_TEXT && !(*text >= '0' && *text <= '9');
}

/* "?table=NAME&socket=FILE" */
static weir_code read_parameters(char *text, char *name, const char **socket, weir_error *err)
{
    for (char *one; text && (one = strsep(&text, "&"));) {
        if (strncmp(one, "socket=", 7) == 0)
            *socket = one + 7;
        else if (strncmp(one, "table=", 6) == 0 && is_name(one + 6))
            snprintf(name, WEIR_MAX_TASK_TEXT + 1, "%s", one + 6);
        else
            return weir_fail(err, WEIR_EINVAL, "the task table: unknown parameter or name \"%s\"; "
                             "expected table=NAME or socket=FILE", one);
    }
    return WEIR_OK;
}

static weir_code open_at(task_table *t, char *url, weir_error *err)
{
    const char *socket = NULL;
    char       *query = strchr(url, '?');
    const task_db_ops *const known[] = { &weir__task_mysql, &weir__task_sqlite };
    if (query)
        *query++ = 0;
    for (size_t i = 0; i < 2; i++) {
        if (strncmp(url, known[i]->scheme, strlen(known[i]->scheme)) == 0)
            t->ops = known[i];
    }
    if (!t->ops)
        return weir_fail(err, WEIR_EINVAL, "the task table: unknown scheme; expected mysql: or "
                         "sqlite:");
    weir_code rc = read_parameters(query, t->name, &socket, err);
    if (!rc)
        rc = t->ops->open(&t->db, url + strlen(t->ops->scheme), socket, err);
    if (rc)
        return rc;
    weir_buf sql = { 0 };
    weir__buf_printf(&sql, "CREATE TABLE IF NOT EXISTS %s%s", t->name, t->ops->create);
    return run(t, &sql, NULL, NULL, err);
}

weir_code weir__record_open(task_table **out, const char *url, weir_error *err)
{
    *out = NULL;
    task_table *t = calloc(1, sizeof *t);
    char       *copy = strdup(url);
    if (!t || !copy) {
        free(copy);
        free(t);
        return weir_fail(err, WEIR_ENOMEM, "task: out of memory");
    }
    pthread_mutex_init(&t->lock, NULL);
    snprintf(t->name, sizeof t->name, "t_delay_task");
    weir_code rc = open_at(t, copy, err);
    free(copy);
    if (rc)
        weir__record_close(t);
    else
        *out = t;
    return rc;
}

void weir__record_close(task_table *t)
{
    if (!t)
        return;
    if (t->db)
        t->ops->close(t->db);
    pthread_mutex_destroy(&t->lock);
    free(t);
}

/* ---- rows ---- */

/* The zone has no column: "30 6 * * 1 TZ=Europe/Berlin". */
static void add_schedule(weir_buf *b, const weir_task_spec *s)
{
    char text[512];
    bool zone = s->zone && strcmp(s->zone, "UTC") != 0;
    if (s->schedule)
        snprintf(text, sizeof text, "%s%s%s", s->schedule, zone ? " TZ=" : "", zone ? s->zone : "");
    add_text(b, s->schedule ? text : NULL);
}

static void add_attachment(weir_buf *b, const weir_task_spec *s)
{
    if (s->attachment)
        add_string(b, s->attachment,
                   s->attachment_len ? s->attachment_len : strlen(s->attachment));
    else
        weir__buf_str(b, "NULL");
}

weir_code weir__record_insert(task_table *t, const weir_task_spec *s, const char *id,
                              int64_t run_at, int64_t now, weir_error *err)
{
    weir_buf    b = { 0 };
    const char *texts[] = { id, s->relative_id, s->classifier ? s->classifier : "default",
                            s->name ? s->name : s->service, s->service, states[WEIR_TASK_READY],
                            s->result_store ? s->result_store : "direct", s->var1, s->var2,
                            s->var3 };
    weir__buf_printf(&b, "INSERT INTO %s(TASK_ID,RELATIVE_ID,CLASSIFIER,TASK_NAME,TASK_SERVICE,"
                     "STATE,RESULT_STORE,VAR1,VAR2,VAR3,RUN_AT,TIMEOUT,ATTACHMENT,SCHEDULED,"
                     "CREATE_TIME,VERSION_NUMBER) VALUES(", t->name);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        add_text(&b, texts[i]);
        weir__buf_char(&b, ',');
    }
    add_moment(&b, run_at ? run_at : now);
    weir__buf_printf(&b, ",%lld,", (long long)((s->timeout_ms + 999) / 1000));
    add_attachment(&b, s);
    weir__buf_char(&b, ',');
    add_schedule(&b, s);
    weir__buf_char(&b, ',');
    add_moment(&b, now);
    weir__buf_printf(&b, ",%lld)", (long long)s->version);
    return run(t, &b, NULL, NULL, err);
}

weir_code weir__record_remove(task_table *t, const char *id, weir_error *err)
{
    weir_buf b = { 0 };
    weir__buf_printf(&b, "DELETE FROM %s WHERE TASK_ID=", t->name);
    add_text(&b, id);
    return run(t, &b, NULL, NULL, err);
}

static bool is_direct(const char *store)
{
    return !store || strcmp(store, "direct") == 0 || strcmp(store, "DirectResultStore") == 0;
}

/* Members that the queue does not give stay as they are. */
static void add_if_known(weir_buf *b, const char *column, const char *text)
{
    if (!text)
        return;
    weir__buf_printf(b, "%s=", column);
    add_text(b, text);
    weir__buf_char(b, ',');
}

weir_code weir__record_update(task_table *t, const weir_task *task, weir_error *err)
{
    const weir_task_spec *s = &task->spec;
    weir_buf              b = { 0 };
    enum { SAID_BYTES = 300 };
    const struct { const char *column, *text; } texts[] = {
        { "STATE", states[task->state] }, { "RELATIVE_ID", s->relative_id },
        { "CLASSIFIER", s->classifier },
        { "TASK_NAME", s->name }, { "VAR1", s->var1 }, { "VAR2", s->var2 }, { "VAR3", s->var3 },
    };
    const struct { const char *column; int64_t at; } moments[] = {
        { "RUN_AT", s->run_at }, { "START_TIME", task->started_at }, { "END_TIME", task->ended_at },
    };
    weir__buf_printf(&b, "UPDATE %s SET ", t->name);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        weir__buf_printf(&b, "%s=", texts[i].column);
        add_text(&b, texts[i].text);
        weir__buf_char(&b, ',');
    }
    for (size_t i = 0; i < sizeof moments / sizeof *moments; i++) {
        weir__buf_printf(&b, "%s=", moments[i].column);
        add_moment(&b, moments[i].at);
        weir__buf_char(&b, ',');
    }
    add_if_known(&b, "HOSTNAME", task->host);
    add_if_known(&b, "CLIENT_IP", task->ip);
    weir__buf_str(&b, "RESULT_STATE=");
    if (task->result_state)
        add_string(&b, task->result_state, weir__utf8_cut(task->result_state,
                                                          strlen(task->result_state), SAID_BYTES));
    else
        weir__buf_str(&b, "NULL");
    weir__buf_str(&b, ",RESULT=");
    if (task->result && is_direct(s->result_store))
        add_string(&b, task->result, task->result_len);
    else
        weir__buf_str(&b, "NULL");
    weir__buf_str(&b, ",ATTACHMENT=");
    add_attachment(&b, s);
    weir__buf_str(&b, ",SCHEDULED=");
    add_schedule(&b, s);
    weir__buf_str(&b, " WHERE TASK_ID=");
    add_text(&b, s->id);
    return run(t, &b, NULL, NULL, err);
}

/* ---- read back ---- */

#define READ_COLUMNS                                                                              \
    "TASK_ID,RELATIVE_ID,CLASSIFIER,TASK_NAME,TASK_SERVICE,RUN_AT,TIMEOUT,RESULT_STORE,"          \
    "ATTACHMENT,VAR1,VAR2,VAR3,SCHEDULED,VERSION_NUMBER,CREATE_TIME"

typedef struct reading {
    weir_arena     *arena;
    weir_task_spec *specs;
    int64_t        *created;
    size_t          n, limit;
    bool            failed;             /* out of memory */
} reading;

static const char *keep(reading *r, const char *text)
{
    size_t size = text ? strlen(text) + 1 : 0;
    char  *copy = text ? weir__arena_alloc(r->arena, size) : NULL;
    r->failed = r->failed || (text && !copy);
    return copy ? memcpy(copy, text, size) : NULL;
}

static void read_row(const char *const *cell, void *ctx)
{
    reading *r = ctx;
    if (r->n == r->limit || !cell[0] || !cell[4])
        return;
    r->created[r->n] = read_moment(cell[14]);
    weir_task_spec *s = &r->specs[r->n++];
    *s = (weir_task_spec){
        .id = keep(r, cell[0]), .relative_id = keep(r, cell[1]), .classifier = keep(r, cell[2]),
        .name = keep(r, cell[3]), .service = keep(r, cell[4]), .run_at = read_moment(cell[5]),
        .timeout_ms = cell[6] ? strtoll(cell[6], NULL, 10) * 1000 : 0,
        .result_store = keep(r, cell[7]), .attachment = keep(r, cell[8]),
        .var1 = keep(r, cell[9]), .var2 = keep(r, cell[10]), .var3 = keep(r, cell[11]),
        .version = cell[13] ? strtoll(cell[13], NULL, 10) : 0
    };
    char *schedule = (char *)(uintptr_t)keep(r, cell[12]), *zone;
    if (schedule && (zone = strstr(schedule, " TZ="))) {
        *zone = 0;
        s->zone = zone + 4;
    }
    s->schedule = schedule;
}

static void add_is_open(weir_buf *b)
{
    weir__buf_printf(b, " STATE IN ('%s','%s')", states[WEIR_TASK_READY],
                     states[WEIR_TASK_RUNNING]);
}

weir_code weir__record_open_rows(task_table *t, const char *classifier, const char *id,
                                 const char *after, size_t limit, weir_arena *arena,
                                 weir_task_spec *specs, int64_t *created, size_t *n,
                                 weir_error *err)
{
    weir_buf b = { 0 };
    reading  r = { .arena = arena, .specs = specs, .created = created, .limit = limit };
    weir__buf_printf(&b, "SELECT " READ_COLUMNS " FROM %s WHERE", t->name);
    add_is_open(&b);
    weir__buf_str(&b, id ? " AND TASK_ID=" : " AND CLASSIFIER=");
    add_text(&b, id ? id : classifier);
    weir__buf_str(&b, " AND TASK_ID>");
    add_text(&b, after);
    weir__buf_printf(&b, " ORDER BY TASK_ID LIMIT %zu", limit);
    weir_code rc = run(t, &b, read_row, &r, err);
    if (!rc && r.failed)
        rc = weir_fail(err, WEIR_ENOMEM, "task: out of memory");
    *n = rc ? 0 : r.n;
    return rc;
}

typedef struct one_text {
    weir_arena *arena;
    const char *text;
    bool        failed;
} one_text;

static void read_text(const char *const *cell, void *ctx)
{
    one_text *one = ctx;
    reading   r = { .arena = one->arena };
    one->text = keep(&r, cell[0]);
    one->failed = r.failed;
}

weir_code weir__record_classifier(task_table *t, const char *after, weir_arena *arena,
                                  const char **out, weir_error *err)
{
    weir_buf b = { 0 };
    one_text one = { .arena = arena };
    weir__buf_printf(&b, "SELECT min(CLASSIFIER) FROM %s WHERE", t->name);
    add_is_open(&b);
    weir__buf_str(&b, " AND CLASSIFIER>");
    add_text(&b, after);
    weir_code rc = run(t, &b, read_text, &one, err);
    if (!rc && one.failed)
        rc = weir_fail(err, WEIR_ENOMEM, "task: out of memory");
    *out = rc ? NULL : one.text;
    return rc;
}

weir_code weir__record_close_row(task_table *t, const char *id, const char *reason, int64_t now,
                                 weir_error *err)
{
    weir_buf b = { 0 };
    weir__buf_printf(&b, "UPDATE %s SET STATE='%s',RESULT_STATE=", t->name,
                     states[WEIR_TASK_CANCELLED]);
    add_text(&b, reason);
    weir__buf_str(&b, ",END_TIME=");
    add_moment(&b, now);
    weir__buf_str(&b, " WHERE TASK_ID=");
    add_text(&b, id);
    weir__buf_str(&b, " AND");
    add_is_open(&b);
    return run(t, &b, NULL, NULL, err);
}

const char *weir__record_name(const task_table *t)
{
    return t->name;
}
