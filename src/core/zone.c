/* zone.c - time zones from the system's files: see zone.h. */
#include "core/zone.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/named.h"
#include "core/zone_rule.h"

/* Spans begin at at[0..n); the first of all, before at[0], has the offset `first`. Only changes of
 * the offset are kept. After at[n - 1] the rule holds, if there is one. */
struct weir_zone {
    weir_named     node;
    char          *name;
    size_t         n;
    int64_t       *at;
    int32_t       *offset, first;
    bool           has_rule;
    weir_zone_rule rule;
};

const char *weir__zone_name(const weir_zone *z)
{
    return z->name;
}

void weir__zone_destroy(weir_zone *z)
{
    if (!z)
        return;
    free(z->name);
    free(z->at);
    free(z->offset);
    free(z);
}

/* ---- the file ----
 *
 * A header of 44 bytes (magic, version, six counts) and a block of data with times of 32 bits. From
 * version 2 on, the same follows with times of 64 bits, and the rule between two newlines. */

enum { HEADER = 44, MAX_TYPES = 256, MAX_OFFSET_S = 26 * 3600 };

typedef struct counts {
    uint32_t isut, isstd, leap, time, type, chars;
} counts;

static uint32_t be32(const unsigned char *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static int64_t be_time(const unsigned char *p, size_t width)
{
    return width == 4 ? (int32_t)be32(p) : (int64_t)((uint64_t)be32(p) << 32 | be32(p + 4));
}

/* The counts of the header at `p`, and how long the block behind it is. */
static bool read_header(const unsigned char *p, size_t len, size_t width, counts *c, size_t *block)
{
    if (len < HEADER || memcmp(p, "TZif", 4) != 0)
        return false;
    *c = (counts){ be32(p + 20), be32(p + 24), be32(p + 28),
                   be32(p + 32), be32(p + 36), be32(p + 40) };
    uint32_t all[] = { c->isut, c->isstd, c->leap, c->time, c->type, c->chars };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i] > WEIR_ZONE_FILE_MAX)
            return false;
    *block = c->time * (width + 1) + c->type * 6 + c->chars + c->leap * (width + 4) + c->isstd +
             c->isut;
    return len - HEADER >= *block && c->type >= 1 && c->type <= MAX_TYPES;
}

static bool read_block(weir_zone *z, const unsigned char *p, size_t width, const counts *c)
{
    const unsigned char *index = p + c->time * width, *type = index + c->time;
    int32_t              offset[MAX_TYPES];
    for (uint32_t i = 0; i < c->type; i++) {
        offset[i] = (int32_t)be32(type + i * 6);
        if (offset[i] < -MAX_OFFSET_S || offset[i] > MAX_OFFSET_S)
            return false;
    }
    z->first = offset[0];
    int32_t now = z->first;
    for (uint32_t i = 0; i < c->time; i++) {
        int64_t at = be_time(p + i * width, width);
        if (index[i] >= c->type || (z->n && at <= z->at[z->n - 1]))
            return false;
        if (offset[index[i]] == now)
            continue;
        now = offset[index[i]];
        z->at[z->n] = at;
        z->offset[z->n++] = now;
    }
    return true;
}

/* The rule between two newlines; none is fine, too. */
static bool read_rule(weir_zone *z, const unsigned char *p, size_t len)
{
    char                 text[256];
    const unsigned char *end = len > 1 && *p == '\n' ? memchr(p + 1, '\n', len - 1) : NULL;
    size_t               n = end ? (size_t)(end - p - 1) : sizeof text;
    if (n >= sizeof text || memchr(p + 1, 0, n))
        return false;
    memcpy(text, p + 1, n);
    text[n] = 0;
    z->has_rule = n > 0;
    return !n || weir__zone_rule_parse(&z->rule, text);
}

static bool read_file(weir_zone *z, const unsigned char *p, size_t len, bool *no_memory)
{
    counts c;
    size_t block, width = 4;
    if (!read_header(p, len, width, &c, &block))
        return false;
    if (p[4] >= '2') {
        p += HEADER + block;
        len -= HEADER + block;
        width = 8;
        if (!read_header(p, len, width, &c, &block))
            return false;
    }
    z->at = calloc(c.time + 1, sizeof *z->at);
    z->offset = calloc(c.time + 1, sizeof *z->offset);
    *no_memory = !z->at || !z->offset;
    if (*no_memory || c.leap || !read_block(z, p + HEADER, width, &c))
        return false;
    return width == 4 || read_rule(z, p + HEADER + block, len - HEADER - block);
}

weir_code weir__zone_parse(weir_zone **out, const char *name, const void *bytes, size_t len,
                           weir_error *err)
{
    weir_zone *z = calloc(1, sizeof *z);
    bool       no_memory = !z || !(z->name = strdup(name));
    *out = NULL;
    if (!no_memory && read_file(z, bytes, len, &no_memory)) {
        *out = z;
        return WEIR_OK;
    }
    weir__zone_destroy(z);
    if (no_memory)
        return weir_fail(err, WEIR_ENOMEM, "time zone %s: out of memory", name);
    return weir_fail(err, WEIR_ECORRUPT,
                     "time zone %s: its file is no TZif file without leap seconds; install the "
                     "system's tzdata again", name);
}

/* ---- finding ---- */

static const char *directory(void)
{
    const char *dir = getenv("TZDIR");
    return dir && *dir ? dir : "/usr/share/zoneinfo";
}

/* "Europe/Berlin": no way out of the directory, and one spelling of each name. */
static bool is_name(const char *name)
{
    size_t len = strlen(name);
    if (!len || len > WEIR_ZONE_NAME_MAX || *name == '/' || name[len - 1] == '/' ||
        strstr(name, "//") || strstr(name, "right/") == name)
        return false;
    for (const char *s = name; *s; s++)
        if (!strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_+-/", *s))
            return false;
    return true;
}

/* The beginning of the unknown part: of "Europe/Berlni", at "Berlni". */
static int unknown_part(const char *name)
{
    char        path[512];
    struct stat st;
    const char *part = name, *slash;
    while ((slash = strchr(part, '/'))) {
        int len = snprintf(path, sizeof path, "%s/%.*s", directory(), (int)(slash - name), name);
        if (len >= (int)sizeof path || !is_name(name) || stat(path, &st) || !S_ISDIR(st.st_mode))
            break;
        part = slash + 1;
    }
    return (int)(part - name) + 1;
}

static weir_code no_such_zone(const char *name, weir_error *err)
{
    if (access(directory(), R_OK))
        return weir_fail(err, WEIR_EINVAL,
                         "time zone \"%.64s\": no time zones are installed in %.100s; install the "
                         "package tzdata", name, directory());
    return weir_fail(err, WEIR_EINVAL,
                     "unknown time zone \"%.64s\", column %d; use an IANA name such as "
                     "Europe/Berlin or UTC", name, unknown_part(name));
}

static weir_code load(weir_zone **out, const char *name, weir_error *err)
{
    char        path[512];
    struct stat st;
    *out = NULL;
    int len = snprintf(path, sizeof path, "%s/%s", directory(), name);
    int fd = len < (int)sizeof path ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
    if (fd < 0 || fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_size > WEIR_ZONE_FILE_MAX) {
        if (fd >= 0)
            close(fd);
        return no_such_zone(name, err);
    }
    size_t    size = (size_t)st.st_size;
    void     *bytes = malloc(size + 1);
    ssize_t   got = bytes ? read(fd, bytes, size) : 0;
    weir_code rc;
    if (!bytes)
        rc = weir_fail(err, WEIR_ENOMEM, "time zone %s: out of memory", name);
    else if (got < 0 || (size_t)got != size)
        rc = weir_fail(err, WEIR_EIO, "time zone %s: %s", name, strerror(got < 0 ? errno : EIO));
    else
        rc = weir__zone_parse(out, name, bytes, size, err);
    free(bytes);
    close(fd);
    return rc;
}

static weir_zone       utc = { .name = "UTC" };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static weir_names      zones;           /* guarded by lock */

weir_code weir__zone_find(const weir_zone **out, const char *name, weir_error *err)
{
    *out = NULL;
    if (!name || strcmp(name, "UTC") == 0) {
        *out = &utc;
        return WEIR_OK;
    }
    if (!is_name(name))
        return no_such_zone(name, err);
    pthread_mutex_lock(&lock);
    weir_zone *z = weir__names_get(&zones, name);
    weir_code  rc = z ? WEIR_OK : load(&z, name, err);
    if (!rc && !z->node.name && !weir__names_put(&zones, &z->node, z->name)) {
        weir__zone_destroy(z);
        z = NULL;
        rc = weir_fail(err, WEIR_ENOMEM, "time zone %s: out of memory", name);
    }
    pthread_mutex_unlock(&lock);
    *out = z;
    return rc;
}

/* ---- spans ---- */

/* How many of the table's spans begin at `at` or before. */
static size_t begun(const weir_zone *z, int64_t at)
{
    size_t low = 0, high = z->n;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (z->at[middle] <= at)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static int32_t offset_of(const weir_zone *z, size_t begun)
{
    return begun ? z->offset[begun - 1] : z->first;
}

weir_zone_span weir__zone_span(const weir_zone *z, int64_t at)
{
    size_t         i = begun(z, at);
    weir_zone_span span = { .from = i ? z->at[i - 1] : INT64_MIN,
                            .until = i < z->n ? z->at[i] : INT64_MAX,
                            .offset = offset_of(z, i),
                            .before = offset_of(z, i ? i - 1 : 0) };
    if (i < z->n || !z->has_rule)
        return span;
    weir_zone_span rule = weir__zone_rule_span(&z->rule, at);
    if (!i || rule.from > span.from)
        return rule;
    span.until = rule.until;
    return span;
}
