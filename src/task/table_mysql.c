/* table_mysql.c - the table of record in MariaDB or MySQL, through libmariadb, which is loaded when
 * the first such table is opened: programs without one do not pay for it. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "task/table.h"

/* Constants of mysql.h and errmsg.h, which are the same in all versions of the library. */
typedef struct st_mysql     MYSQL;
typedef struct st_mysql_res MYSQL_RES;
enum {
    SET_CHARSET_NAME = 7, OPT_CONNECT_TIMEOUT = 0,
    DUP_ENTRY = 1062, DATA_TOO_LONG = 1406, OUT_OF_RANGE = 1264,
    CLIENT_ERRORS = 2000, CLIENT_ERRORS_END = 2999
};
static const char library_name[] = "libmariadb.so.3";

#define FUNCTIONS(X)                                                                              \
    X(MYSQL *, init, (MYSQL *))                                                                   \
    X(int, options, (MYSQL *, int, const void *))                                                 \
    X(MYSQL *, real_connect, (MYSQL *, const char *, const char *, const char *, const char *,    \
                              unsigned, const char *, unsigned long))                             \
    X(int, real_query, (MYSQL *, const char *, unsigned long))                                    \
    X(MYSQL_RES *, store_result, (MYSQL *))                                                       \
    X(char **, fetch_row, (MYSQL_RES *))                                                          \
    X(void, free_result, (MYSQL_RES *))                                                           \
    X(const char *, error, (MYSQL *))                                                             \
    X(unsigned, errno_, (MYSQL *))                                                                \
    X(unsigned, field_count, (MYSQL *))                                                           \
    X(void, close, (MYSQL *))

static struct {
#define X(type, name, args) type(*name) args;
    FUNCTIONS(X)
#undef X
} lib;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static weir_error     failure;          /* of loading */

static void find(void *library, const char *name, void *member)
{
    char symbol[40];
    int  len = (int)strlen(name) - (name[strlen(name) - 1] == '_');    /* errno_ */
    snprintf(symbol, sizeof symbol, "mysql_%.*s", len, name);
    *(void **)member = dlsym(library, symbol);
    if (!*(void **)member && !failure.code)
        weir_fail(&failure, WEIR_EINVAL, "%s has no function %s; install a newer one", library_name,
                  symbol);
}

static void load(void)
{
    void *library = dlopen(library_name, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        weir_fail(&failure, WEIR_EINVAL, "a task table at mysql: needs %s, which cannot be loaded; "
                  "install it (Debian: libmariadb3)", library_name);
        return;
    }
#define X(type, name, args) find(library, #name, &lib.name);
    FUNCTIONS(X)
#undef X
}

/* ---- a connection ---- */

struct task_db {
    MYSQL *mysql;                       /* NULL: not connected */
    char  *user, *password, *host, *database, *socket;      /* in `text`, NULL: not given */
    unsigned port;
    char  *text;
};

static weir_code fail(MYSQL *mysql, weir_error *err)
{
    unsigned  code = lib.errno_(mysql);
    weir_code rc = code == DUP_ENTRY ? WEIR_ESTATE
                   : code == DATA_TOO_LONG || code == OUT_OF_RANGE ? WEIR_ELIMIT
                   : code >= CLIENT_ERRORS && code <= CLIENT_ERRORS_END ? WEIR_EUNAVAIL
                                                                        : WEIR_EIO;
    return weir_fail(err, rc, "the task table: %s", lib.error(mysql));
}

static void hang_up(task_db *db)
{
    if (db->mysql)
        lib.close(db->mysql);
    db->mysql = NULL;
}

static weir_code query(task_db *db, const char *sql, task_db_row *row, void *ctx, weir_error *err)
{
    if (lib.real_query(db->mysql, sql, strlen(sql)))
        return fail(db->mysql, err);
    if (!lib.field_count(db->mysql))
        return WEIR_OK;
    MYSQL_RES *result = lib.store_result(db->mysql);
    if (!result)
        return fail(db->mysql, err);
    for (char **cell; (cell = lib.fetch_row(result));) {
        if (row)
            row((const char *const *)cell, ctx);
    }
    lib.free_result(result);
    return WEIR_OK;
}

static weir_code dial(task_db *db, weir_error *err)
{
    unsigned  seconds = 10;
    weir_code rc = WEIR_OK;
    if (db->mysql)
        return rc;
    if (!(db->mysql = lib.init(NULL)))
        return weir_fail(err, WEIR_ENOMEM, "task: out of memory");
    lib.options(db->mysql, SET_CHARSET_NAME, "utf8mb4");
    lib.options(db->mysql, OPT_CONNECT_TIMEOUT, &seconds);
    if (!lib.real_connect(db->mysql, db->host, db->user, db->password, db->database, db->port,
                          db->socket, 0))
        rc = fail(db->mysql, err);
    else        /* so that doubling quotes is all that a string needs, and nothing is cut */
        rc = query(db, "SET sql_mode='STRICT_ALL_TABLES,NO_BACKSLASH_ESCAPES'", NULL, NULL, err);
    if (rc)
        hang_up(db);
    return rc;
}

static weir_code run(task_db *db, const char *sql, task_db_row *row, void *ctx, weir_error *err)
{
    weir_code rc = dial(db, err);
    if (!rc)
        rc = query(db, sql, row, ctx, err);
    if (rc == WEIR_EUNAVAIL)
        hang_up(db);
    return rc;
}

static void close_db(task_db *db)
{
    hang_up(db);
    free(db->text);
    free(db->socket);
    free(db);
}

/* "//USER:PASSWORD@HOST:PORT/DATABASE" */
static void take_apart(task_db *db, char *text)
{
    char *slash = strchr(text, '/'), *at = strrchr(text, '@');
    if (slash) {
        *slash = 0;
        db->database = slash + 1;
        at = strrchr(text, '@');
    }
    db->host = at ? at + 1 : text;
    if (at) {
        *at = 0;
        db->user = text;
        if ((db->password = strchr(text, ':')))
            *db->password++ = 0;
    }
    char *colon = strchr(db->host, ':');
    if (colon) {
        *colon = 0;
        db->port = (unsigned)strtoul(colon + 1, NULL, 10);
    }
    if (!*db->host || db->socket)
        db->host = NULL;
}

static weir_code open_db(task_db **out, const char *place, const char *socket, weir_error *err)
{
    *out = NULL;
    pthread_once(&once, load);
    if (failure.code) {
        if (err)
            *err = failure;
        return failure.code;
    }
    if (strncmp(place, "//", 2) != 0 || !strchr(place + 2, '/'))
        return weir_fail(err, WEIR_EINVAL, "the task table: expected "
                         "mysql://USER:PASSWORD@HOST:PORT/DATABASE");
    task_db *db = calloc(1, sizeof *db);
    if (!db || !(db->text = strdup(place + 2)) || (socket && !(db->socket = strdup(socket)))) {
        free(db ? db->text : NULL);
        free(db);
        return weir_fail(err, WEIR_ENOMEM, "task: out of memory");
    }
    take_apart(db, db->text);
    weir_code rc = dial(db, err);
    if (rc)
        close_db(db);
    else
        *out = db;
    return rc;
}

const task_db_ops weir__task_mysql = {
    .scheme = "mysql:",
    .create = "(TASK_ID varchar(20) NOT NULL PRIMARY KEY, RELATIVE_ID varchar(100) NULL,"
              " CLASSIFIER varchar(20) NOT NULL, TASK_NAME varchar(100) NOT NULL,"
              " TASK_SERVICE varchar(100) NOT NULL, STATE varchar(3) NOT NULL,"
              " RUN_AT datetime(3) NOT NULL, TIMEOUT int NOT NULL DEFAULT 0,"
              " START_TIME datetime(3) NULL, END_TIME datetime(3) NULL,"
              " RESULT_STATE varchar(300) NULL, RESULT_STORE varchar(100) NULL, RESULT text NULL,"
              " HOSTNAME varchar(100) NULL, CLIENT_IP varchar(100) NULL, ATTACHMENT text NULL,"
              " VAR1 varchar(100) NULL, VAR2 varchar(100) NULL, VAR3 varchar(100) NULL,"
              " SCHEDULED varchar(50) NULL, CREATE_TIME datetime(3) NOT NULL,"
              " VERSION_NUMBER bigint NOT NULL DEFAULT 0, KEY(RELATIVE_ID), KEY(CLASSIFIER))"
              " DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin",
    .open = open_db, .close = close_db, .run = run,
};
