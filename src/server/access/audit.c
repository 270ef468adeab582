/* audit.c - the audit log, in memory and in its file: see audit.h. */
#include "server/access/audit.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json.h"

enum { N_TEXTS = 5 };                       /* token, address, action, path, detail */

typedef struct entry {
    uint64_t    number;
    int64_t     at;
    int         status;
    uint64_t    count;
    size_t      n_ids, size;                /* `size`: bytes of this block */
    const char *text[N_TEXTS];              /* behind the ids; NULL: not known */
    uint64_t    ids[];
} entry;
enum { TOKEN, ADDRESS, ACTION, PATH, DETAIL };
static const char *const names[N_TEXTS] = { "token", "address", "action", "path", "detail" };

struct srv_audit {
    pthread_mutex_t lock;                   /* guards what follows */
    entry          *ring[SRV_AUDIT_ENTRIES];
    size_t          first, n, bytes;        /* the oldest, how many, of how many bytes */
    uint64_t        last;                   /* number */
    int             fd;                     /* -1: none */
    size_t          file_bytes, file_limit;
    char            path[4096];             /* "": in memory alone */
};

/* ---- entries ---- */

static size_t text_size(const char *text)
{
    return text ? strnlen(text, SRV_AUDIT_TEXT) + 1 : 0;
}

static entry *entry_create(const srv_audit_item *i)
{
    const char *from[N_TEXTS] = { i->token, i->address, i->action, i->path, i->detail };
    size_t      n_ids = i->n_ids < SRV_AUDIT_IDS ? i->n_ids : SRV_AUDIT_IDS;
    size_t      size = sizeof(entry) + n_ids * sizeof(uint64_t);
    for (int k = 0; k < N_TEXTS; k++)
        size += text_size(from[k]);
    entry *e = malloc(size);
    if (!e)
        return NULL;
    *e = (entry){ .at = i->at, .status = i->status, .count = i->count, .n_ids = n_ids,
                  .size = size };
    if (n_ids)
        memcpy(e->ids, i->ids, n_ids * sizeof *e->ids);
    char *to = (char *)(e->ids + n_ids);
    for (int k = 0; k < N_TEXTS; k++) {
        if (!from[k])
            continue;
        size_t len = text_size(from[k]) - 1;
        len = weir__utf8_cut(from[k], len, len);
        memcpy(to, from[k], len);
        to[len] = 0;
        e->text[k] = to;
        to += len + 1;
    }
    return e;
}

static void entry_json(weir_buf *out, const entry *e)
{
    weir__buf_printf(out, "{\"number\":%llu,\"at\":%lld,\"status\":%d,\"count\":%llu",
                     (unsigned long long)e->number, (long long)e->at, e->status,
                     (unsigned long long)e->count);
    for (int k = 0; k < N_TEXTS; k++) {
        if (!e->text[k])
            continue;
        weir__buf_printf(out, ",\"%s\":", names[k]);
        weir__json_string(out, e->text[k], strlen(e->text[k]));
    }
    weir__buf_str(out, ",\"ids\":[");
    for (size_t i = 0; i < e->n_ids; i++)
        weir__buf_printf(out, "%s%llu", i ? "," : "", (unsigned long long)e->ids[i]);
    weir__buf_str(out, "]}");
}

/* Put it last; the oldest make room. Lock held. */
static void keep(srv_audit *a, entry *e)
{
    while (a->n && (a->n == SRV_AUDIT_ENTRIES || a->bytes + e->size > SRV_AUDIT_BYTES)) {
        entry *old = a->ring[a->first];
        a->bytes -= old->size;
        a->first = (a->first + 1) % SRV_AUDIT_ENTRIES;
        a->n--;
        free(old);
    }
    a->ring[(a->first + a->n++) % SRV_AUDIT_ENTRIES] = e;
    a->bytes += e->size;
}

/* ---- the file ---- */

static weir_code open_file(srv_audit *a, weir_error *err)
{
    struct stat st;
    a->fd = open(a->path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (a->fd < 0 || fstat(a->fd, &st))
        return weir_fail(err, errno == EACCES || errno == EROFS ? WEIR_EREADONLY : WEIR_EIO,
                         "audit log: %s: %s; --audit off serves without one", a->path,
                         strerror(errno));
    a->file_bytes = (size_t)st.st_size;
    return WEIR_OK;
}

static void old_path(const srv_audit *a, char out[4100])
{
    snprintf(out, 4100, "%s.1", a->path);
}

/* Lock held. */
static void append(srv_audit *a, const entry *e)
{
    char     aside[4100];
    weir_buf line = { 0 };
    if (a->fd < 0)
        return;
    entry_json(&line, e);
    weir__buf_char(&line, '\n');
    if (a->file_bytes && a->file_bytes + line.len > a->file_limit) {
        old_path(a, aside);
        close(a->fd);
        rename(a->path, aside);
        open_file(a, NULL);
    }
    ssize_t n = line.failed || a->fd < 0 ? 0 : write(a->fd, line.data, line.len);
    a->file_bytes += n > 0 ? (size_t)n : 0;
    weir__buf_fini(&line);
}

/* A line that cannot be read, as the last of a full disk, is left out. */
static void load_line(srv_audit *a, const char *text)
{
    uint64_t       ids[SRV_AUDIT_IDS];
    json_t        *line = json_loads(text, 0, NULL), *each;
    size_t         i;
    const char    *texts[N_TEXTS];
    srv_audit_item item = { .at = json_integer_value(json_object_get(line, "at")), .ids = ids,
                            .status = (int)json_integer_value(json_object_get(line, "status")) };
    for (int k = 0; k < N_TEXTS; k++)
        texts[k] = json_string_value(json_object_get(line, names[k]));
    item.token = texts[TOKEN], item.address = texts[ADDRESS], item.action = texts[ACTION];
    item.path = texts[PATH], item.detail = texts[DETAIL];
    item.count = (uint64_t)json_integer_value(json_object_get(line, "count"));
    json_array_foreach(json_object_get(line, "ids"), i, each)
        if (i < SRV_AUDIT_IDS)
            ids[item.n_ids++] = (uint64_t)json_integer_value(each);
    uint64_t number = (uint64_t)json_integer_value(json_object_get(line, "number"));
    entry   *e = item.action && number > a->last ? entry_create(&item) : NULL;
    if (e) {
        e->number = a->last = number;
        keep(a, e);
    }
    json_decref(line);
}

static void load_file(srv_audit *a, const char *path)
{
    FILE  *in = fopen(path, "re");
    char  *line = NULL;
    size_t size = 0;
    while (in && getline(&line, &size, in) > 0)
        load_line(a, line);
    free(line);
    if (in)
        fclose(in);
}

weir_code srv_audit_create(srv_audit **out, const char *dir, size_t file_limit, weir_error *err)
{
    srv_audit *a = calloc(1, sizeof *a);
    char       aside[4100];
    *out = NULL;
    if (!a)
        return weir_fail(err, WEIR_ENOMEM, "audit log: out of memory");
    pthread_mutex_init(&a->lock, NULL);
    a->fd = -1;
    a->file_limit = file_limit ? file_limit : SRV_AUDIT_FILE;
    weir_code rc = WEIR_OK;
    if (dir && snprintf(a->path, sizeof a->path, "%s/audit.log", dir) >= (int)sizeof a->path)
        rc = weir_fail(err, WEIR_EINVAL, "audit log: the path is too long");
    if (dir && !rc) {
        old_path(a, aside);
        load_file(a, aside);
        load_file(a, a->path);
        rc = open_file(a, err);
    }
    if (rc)
        srv_audit_destroy(a);
    else
        *out = a;
    return rc;
}

void srv_audit_destroy(srv_audit *a)
{
    if (!a)
        return;
    for (size_t i = 0; i < a->n; i++)
        free(a->ring[(a->first + i) % SRV_AUDIT_ENTRIES]);
    if (a->fd >= 0)
        close(a->fd);
    pthread_mutex_destroy(&a->lock);
    free(a);
}

void srv_audit_record(srv_audit *a, const srv_audit_item *item)
{
    entry *e = entry_create(item);
    if (!e)
        return;
    pthread_mutex_lock(&a->lock);
    e->number = ++a->last;
    append(a, e);
    keep(a, e);
    pthread_mutex_unlock(&a->lock);
}

/* ---- looking ---- */

static bool is_action(const entry *e, const char *wanted)
{
    size_t len = strlen(wanted);
    return strncmp(e->text[ACTION], wanted, len) == 0 &&
           (e->text[ACTION][len] == 0 || e->text[ACTION][len] == '.');
}

static bool matches(const entry *e, const srv_audit_query *q)
{
    if ((q->before && e->number >= q->before) || e->at < q->since ||
        (q->token && strcmp(e->text[TOKEN] ? e->text[TOKEN] : "", q->token) != 0) ||
        (q->action && !is_action(e, q->action)))
        return false;
    for (size_t i = 0; q->id && i < e->n_ids; i++)
        if (e->ids[i] == q->id)
            return true;
    return !q->id;
}

uint64_t srv_audit_list(srv_audit *a, const srv_audit_query *q, weir_buf *out)
{
    uint64_t next = 0, last = 0;
    size_t   shown = 0;
    pthread_mutex_lock(&a->lock);
    for (size_t i = a->n; i-- > 0 && !next;) {
        const entry *e = a->ring[(a->first + i) % SRV_AUDIT_ENTRIES];
        if (!matches(e, q))
            continue;
        if (shown == q->limit) {
            next = last;
        } else {
            weir__buf_str(out, shown++ ? "," : "");
            entry_json(out, e);
            last = e->number;
        }
    }
    pthread_mutex_unlock(&a->lock);
    return next;
}
