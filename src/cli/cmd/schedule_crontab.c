/* schedule_crontab.c - `weir schedule import crontab`: each entry of a crontab becomes a schedule,
 * and a line that runs its command. Names follow from what an entry says, so that a second run
 * finds the schedules of the first. */
#include "cli/cmd/schedule_crontab.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/crontab.h"
#include "cli/say.h"
#include "cli/store.h"

typedef struct importer {
    cli        *c;
    weir_queue *q;
    const char *zone;               /* of entries that name none */
    size_t      made, existed, refused;
    FILE       *workers;            /* lines for the user, each command once */
    char       *worker_text;
    size_t      worker_len;
} importer;

/* The machine's time zone, in which cron runs: $TZ, else where /etc/localtime leads. */
static const char *machine_zone(char *room, size_t size)
{
    static const char dir[] = "zoneinfo/";
    const char       *tz = getenv("TZ");
    if (tz && *tz)
        return *tz == ':' ? tz + 1 : tz;
    ssize_t n = readlink("/etc/localtime", room, size - 1);
    room[n > 0 ? n : 0] = '\0';
    const char *name = strstr(room, dir);
    return name ? name + strlen(dir) : "UTC";
}

/* ---- one entry ---- */

static void refuse(importer *m, const weir_error *why)
{
    char clean[WEIR_ERROR_MAX];
    m->refused++;
    fprintf(stderr, "weir: %s\n", term_clean(clean, sizeof clean, why->msg, 0));
}

static weir_code put(importer *m, const crontab_entry *e, bool *existed, weir_error *err)
{
    weir_schedules *there = NULL;
    weir_code       rc = weir_schedule_get(m->q, e->name, &there, err);
    *existed = !rc;
    weir_schedules_free(there);
    if (rc != WEIR_ENOENT)
        return rc;
    return weir_schedule_put(m->q, &(weir_schedule){
        .name = e->name, .when = e->when, .zone = e->zone ? e->zone : m->zone,
        .day_or_weekday = e->day_or_weekday, .missed = WEIR_MISSED_SKIP,    /* as cron */
        .job = { .type = e->type } }, err);
}

static void print_json(const importer *m, const crontab_entry *e, bool existed)
{
    jw w = { .out = stdout };
    jw_object(&w, NULL);
    jw_int(&w, "line", (int64_t)e->line);
    jw_text(&w, "name", e->name);
    jw_text(&w, "when", e->when);
    jw_text(&w, "zone", e->zone ? e->zone : m->zone);
    jw_text(&w, "type", e->type);
    if (e->user)
        jw_text(&w, "user", e->user);
    jw_text(&w, "command", e->command);
    jw_text(&w, "exec", e->script);
    jw_bool(&w, "existed", existed);
    jw_end(&w, '}');
}

static void print_entry(const importer *m, const crontab_entry *e, bool existed)
{
    char *words = NULL, clean[400];
    weir_schedule_words(&(weir_schedule){ .when = e->when, .zone = e->zone ? e->zone : m->zone,
                                          .day_or_weekday = e->day_or_weekday }, &words, NULL);
    printf("%s  %s: %s%s\n", e->name, words ? words : e->when,
           term_clean(clean, sizeof clean, e->command, 60), existed ? "  (there already)" : "");
    free(words);
}

static void add_worker(importer *m, const crontab_entry *e)
{
    char *quoted = crontab_quote(e->script), line[CRONTAB_MAX_ID + 32];
    snprintf(line, sizeof line, "weir work %s --exec ", e->type);
    fflush(m->workers);
    if (quoted && !(m->worker_text && strstr(m->worker_text, line))) {
        if (e->user)
            fprintf(m->workers, "# as %s:\n", e->user);
        fprintf(m->workers, "%s%s\n", line, quoted);
    }
    free(quoted);
}

/* An error that ends all is returned; a wrong entry is said, and the next one follows. */
static weir_code take(importer *m, const crontab_entry *e)
{
    weir_error *err = &m->c->err;
    bool        existed = false;
    weir_code   rc = put(m, e, &existed, err);
    if (rc == WEIR_EINVAL || rc == WEIR_ELIMIT) {
        weir_error why = *err;
        weir_fail(err, rc, "line %zu: %s", e->line, why.msg);
        refuse(m, err);
        return WEIR_OK;
    }
    if (rc)
        return rc;
    m->made += !existed;
    m->existed += existed;
    if (m->c->json)
        print_json(m, e, existed);
    else if (!m->c->quiet)
        print_entry(m, e, existed);
    add_worker(m, e);
    return WEIR_OK;
}

static weir_code take_all(importer *m, crontab *from)
{
    crontab_entry e;
    weir_code     rc = WEIR_OK;
    for (crontab_step step; !rc && (step = crontab_next(from, &e, &m->c->err)) != CRONTAB_END;) {
        if (step == CRONTAB_ENTRY)
            rc = take(m, &e);
        else if (m->c->err.code == WEIR_ENOMEM)
            rc = WEIR_ENOMEM;
        else
            refuse(m, &m->c->err);
        crontab_entry_fini(&e);
    }
    return rc;
}

/* ---- all ---- */

static char *read_text(cli *c, const char *path, size_t *len)
{
    FILE *in = path ? fopen(path, "re") : stdin;
    char *text = malloc(CRONTAB_MAX + 1);
    *len = in && text ? fread(text, 1, CRONTAB_MAX + 1, in) : 0;
    if (!in || !text || ferror(in))
        weir_fail(&c->err, errno == ENOENT ? WEIR_ENOENT : WEIR_EIO, "%s: %s",
                  path ? path : "standard input", strerror(errno));
    else if (*len > CRONTAB_MAX)
        weir_fail(&c->err, WEIR_ELIMIT, "a crontab of more than 1 MiB (CRONTAB_MAX)");
    if (path && in)
        fclose(in);
    if (!c->err.code)
        return text;
    free(text);
    return NULL;
}

static void print_end(const importer *m)
{
    if (m->c->json || m->c->quiet)
        return;
    printf("%zu schedule%s made, %zu there already", m->made, m->made == 1 ? "" : "s", m->existed);
    if (m->refused)
        printf(", %zu line%s rejected", m->refused, m->refused == 1 ? "" : "s");
    putchar('\n');
    if (m->worker_len)
        printf("Their jobs are done by these workers, which also fire the schedules:\n%s",
               m->worker_text);
}

int schedule_import_crontab(cli *c, const char *path, const char *zone, bool user_column)
{
    char      room[4096];
    size_t    len;
    importer  m = { .c = c, .zone = zone ? zone : machine_zone(room, sizeof room) };
    char     *text = read_text(c, path, &len);
    crontab   from = { .at = text, .end = text ? text + len : NULL, .user_column = user_column };
    weir_code rc = c->err.code;
    if (!rc && !(m.workers = open_memstream(&m.worker_text, &m.worker_len)))
        rc = weir_fail(&c->err, WEIR_ENOMEM, "out of memory");
    if (!rc)
        rc = cli_open(c, CLI_CHANGE, &m.q);
    if (!rc)
        rc = take_all(&m, &from);
    weir_close(m.q);
    if (m.workers)
        fclose(m.workers);
    if (!rc)
        print_end(&m);
    crontab_fini(&from);
    free(m.worker_text);
    free(text);
    return rc ? cli_fail(c) : m.refused ? weir_code_exit(WEIR_ESTATE) : 0;
}
