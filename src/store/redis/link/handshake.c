/* handshake.c - the first commands on a connection: authenticate, and check that the server is
 * suitable. A list of steps, each with a function for its answer. */
#include "store/redis/link/net.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The commands. The last two are the probe's. */
enum { HELLO, SELECT, INFO, AOF, KILL, RIGHT, TOPOLOGY, AUTH };

enum { MIN_VERSION = 7, WAITAOF_VERSION = 702 };

/* ---- commands ---- */

static void say(redis_node *n, unsigned char step, size_t argc, const char *const *argv)
{
    weir_buf *b = &n->out;
    size_t    before = b->len;
    weir__resp_array(b, argc);
    for (size_t i = 0; i < argc; i++)
        weir__resp_text(b, argv[i]);
    n->queued += b->len - before;
    n->step[n->n_steps++] = step;
}

static void say_hello(redis_node *n)
{
    const redis_url *u = &n->net->url;
    const char      *argv[8] = { "HELLO", "2" };
    size_t           argc = 2;
    if (*u->password) {
        argv[argc++] = "AUTH";
        argv[argc++] = *u->user ? u->user : "default";
        argv[argc++] = u->password;
    }
    argv[argc++] = "SETNAME";
    argv[argc++] = "weir";
    say(n, HELLO, argc, argv);
}

static void ask_topology(redis_node *n)
{
    if (n->net->url.way == REDIS_CLUSTER)
        say(n, TOPOLOGY, 2, (const char *[]){ "CLUSTER", "SLOTS" });
    else
        say(n, TOPOLOGY, 3, (const char *[]){ "SENTINEL", "GET-MASTER-ADDR-BY-NAME",
                                          n->net->url.primary });
}

/* Answers may come while this is being written: all of it is written at the end. */
static void send_handshake(redis_node *n)
{
    if (n->out.failed)
        weir__node_disconnect(n, WEIR_ENOMEM, "no memory for the connection");
    else
        weir__node_flush(n);
}

void weir__handshake_begin(redis_node *n)
{
    n->n_steps = n->at_step = 0;
    if (!n->probe || n->net->url.way == REDIS_CLUSTER)
        say_hello(n);
    if (n->probe) {
        ask_topology(n);
    } else {
        char db[12];
        snprintf(db, sizeof db, "%d", n->net->url.db);
        if (n->net->url.db)
            say(n, SELECT, 2, (const char *[]){ "SELECT", db });
        say(n, INFO, 5, (const char *[]){ "INFO", "server", "memory", "persistence",
                                          "replication" });
        say(n, AOF, 5, (const char *[]){ "CONFIG", "GET", "appendonly", "appendfsync",
                                         "no-appendfsync-on-rewrite" });
        if (n->net->url.replicas)
            say(n, RIGHT, 3, (const char *[]){ "WAIT", "0", "0" });
    }
    send_handshake(n);
}

/* ---- answers ---- */

/* The text of Redis's error, unless a password is in it (an old Redis repeats unknown words). */
static const char *words(const redis_node *n, const redisReply *r)
{
    const char *password = n->net->url.password;
    return *password && strstr(r->str, password) ? "refused" : r->str;
}

static bool begins(const redisReply *r, const char *word)
{
    return !strncmp(r->str, word, strlen(word));
}

/* Is the text of a flat array of names and values; "" when it has no such name. */
static const char *member(const redisReply *r, const char *name)
{
    for (size_t i = 0; r->type == REDIS_REPLY_ARRAY && i + 1 < r->elements; i += 2) {
        if (r->element[i]->str && !strcmp(r->element[i]->str, name))
            return r->element[i + 1]->str ? r->element[i + 1]->str : "";
    }
    return "";
}

static weir_code check_hello_error(const redis_node *n, const redisReply *r, weir_error *err)
{
    if (begins(r, "NOAUTH"))
        return weir_fail(err, WEIR_EINVAL, "it requires a password: redis://USER:PASSWORD@HOST");
    if (begins(r, "ERR unknown command"))
        return weir_fail(err, WEIR_EINVAL, "older than Redis %d.0, which weir needs", MIN_VERSION);
    return weir_fail(err, begins(r, "WRONGPASS") || begins(r, "NOPERM") ? WEIR_EINVAL
                                                                        : WEIR_EUNAVAIL,
                     "%s", words(n, r));
}

/* "7.2.4" as 702. A part of a version that is over 99 counts as that. */
static int version_number(const char *text)
{
    const char *dot = strchr(text, '.');
    long        major = strtol(text, NULL, 10), minor = dot ? strtol(dot + 1, NULL, 10) : 0;
    major = major < 0 ? 0 : major > 99 ? 99 : major;
    minor = minor < 0 ? 0 : minor > 99 ? 99 : minor;
    return (int)(major * 100 + minor);
}

static weir_code take_hello(redis_node *n, const redisReply *r, weir_error *err)
{
    if (r->type == REDIS_REPLY_ERROR)
        return check_hello_error(n, r, err);
    const char *mode = member(r, "mode"), *version = member(r, "version");
    bool        cluster = n->net->url.way == REDIS_CLUSTER;
    n->version = version_number(version);
    if (n->version < MIN_VERSION * 100)
        return weir_fail(err, WEIR_EINVAL, "Redis %.20s: weir needs %d.0 or later", version,
                         MIN_VERSION);
    if (!strcmp(mode, "sentinel"))
        return weir_fail(err, WEIR_EINVAL, "it is a sentinel: redis+sentinel://HOST:PORT/NAME");
    if (!strcmp(mode, "cluster") && !cluster)
        return weir_fail(err, WEIR_EINVAL, "it is in cluster mode: add ?cluster=1 to the URL%s",
                         n->net->url.kue ? " (Kue's layout cannot be in a cluster)" : "");
    if (strcmp(mode, "cluster") != 0 && cluster)
        return weir_fail(err, WEIR_EINVAL, "it is not in cluster mode: leave ?cluster=1 out of "
                                           "the URL");
    for (size_t i = 0; i + 1 < r->elements; i += 2) {
        if (r->element[i]->str && !strcmp(r->element[i]->str, "id"))
            n->id = r->element[i + 1]->integer;
    }
    return WEIR_OK;
}

static weir_code take_select(redis_node *n, const redisReply *r, weir_error *err)
{
    if (r->type == REDIS_REPLY_ERROR)
        return weir_fail(err, WEIR_EINVAL, "database %d: %s", n->net->url.db, words(n, r));
    return WEIR_OK;
}

/* "name:value\r\n" of INFO; "" when it is missing. */
static void info_field(const redisReply *r, const char *name, char *out, size_t size)
{
    size_t len = strlen(name);
    *out = '\0';
    for (const char *line = r->str; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, name, len) != 0 || line[len] != ':')
            continue;
        size_t n = strcspn(line + len + 1, "\r\n");
        snprintf(out, size, "%.*s", (int)n, line + len + 1);
        return;
    }
}

static weir_code check_role(const redis_node *n, const redisReply *r, weir_error *err)
{
    char role[16], host[256], port[12];
    info_field(r, "role", role, sizeof role);
    if (!strcmp(role, "master") || n->net->url.way == REDIS_CLUSTER)
        return WEIR_OK;
    info_field(r, "master_host", host, sizeof host);
    info_field(r, "master_port", port, sizeof port);
    if (n->net->url.way == REDIS_SENTINEL)
        return weir_fail(err, WEIR_EUNAVAIL, "the sentinels name it as primary, but it is a "
                                             "replica of %.100s:%s", host, port);
    return weir_fail(err, WEIR_EINVAL, "it is a replica: name its primary, %.100s:%s, or ask "
                                       "sentinels with redis+sentinel://", host, port);
}

static weir_code take_info(redis_node *n, const redisReply *r, weir_error *err)
{
    if (r->type == REDIS_REPLY_ERROR && begins(r, "NOPERM"))
        return weir_fail(err, WEIR_EINVAL, "the user needs the right +info, by which weir sees "
                                           "what the server would do to its jobs");
    if (r->type != REDIS_REPLY_STRING)
        return weir_fail(err, WEIR_EUNAVAIL, "INFO: %s", r->str ? words(n, r) : "no text");
    char policy[32], aof[8], run_id[sizeof n->run_id], kill[24];
    info_field(r, "maxmemory_policy", policy, sizeof policy);
    info_field(r, "aof_enabled", aof, sizeof aof);
    info_field(r, "run_id", run_id, sizeof run_id);
    weir_code rc = check_role(n, r, err);
    if (rc)
        return rc;
    if (*policy && strcmp(policy, "noeviction") != 0 && !n->net->url.allow_eviction)
        return weir_fail(err, WEIR_EINVAL, "its maxmemory-policy %s throws jobs away: CONFIG SET "
                                           "maxmemory-policy noeviction, or insist with "
                                           "?allow-eviction=1", policy);
    n->has_aof = *aof == '1';

    /* The server must not carry out from now on what was sent over the previous connection:
     * commands may lie unread in its socket, and the link sends them again. */
    if (n->old_id && !strcmp(run_id, n->run_id)) {
        snprintf(kill, sizeof kill, "%lld", n->old_id);
        say(n, KILL, 4, (const char *[]){ "CLIENT", "KILL", "ID", kill });
    }
    n->old_id = 0;
    memcpy(n->run_id, run_id, sizeof n->run_id);
    return WEIR_OK;
}

/* ---- durability ---- */

/* With everysec, Redis replies before it has written to its file while an fsync is running. */
static weir_durability durability_of(bool has_aof, const char *policy, bool lazy)
{
    if (!has_aof || !strcmp(policy, "everysec") || !*policy)
        return WEIR_DURABILITY_NONE;
    return !strcmp(policy, "always") && !lazy ? WEIR_DURABILITY_DISK : WEIR_DURABILITY_OS;
}

/* The server does not reach the durability of the URL: say how it would. */
static weir_code refuse_durability(const redis_node *n, const char *policy, bool lazy,
                                   weir_error *err)
{
    weir_durability asked = n->net->url.durability;
    const char     *name = weir_durability_name(asked);
    if (!n->has_aof)
        return weir_fail(err, WEIR_EINVAL, "durability=%s was asked for, but the server has no "
                                           "append-only file: set appendonly yes and appendfsync "
                                           "always", name);
    if (!*policy)
        return weir_fail(err, WEIR_EINVAL, "durability=%s was asked for, but the server does not "
                                           "show its appendfsync: give the user the right "
                                           "+config|get", name);
    if (lazy && asked == WEIR_DURABILITY_DISK && !strcmp(policy, "always"))
        return weir_fail(err, WEIR_EINVAL, "durability=disk was asked for, but the server does not "
                                           "sync while it rewrites its file: set "
                                           "no-appendfsync-on-rewrite no");
    return weir_fail(err, WEIR_EINVAL, "durability=%s was asked for, but appendfsync is %.20s%s: "
                                       "set appendfsync always", name, policy,
                     strcmp(policy, "no") != 0 ? " and the server has no WAITAOF (Redis 7.2)" : "");
}

/* Without the right to CONFIG GET, weir reads from INFO that there is a file, but not when it is
 * synced. WAITAOF would wait in vain for a server that never syncs. */
static weir_code take_aof(redis_node *n, const redisReply *r, weir_error *err)
{
    const char     *policy = member(r, "appendfsync");
    bool            lazy = !strcmp(member(r, "no-appendfsync-on-rewrite"), "yes");
    weir_durability asked = n->net->url.durability;
    if (*policy)
        n->has_aof = !strcmp(member(r, "appendonly"), "yes");
    n->durability = durability_of(n->has_aof, policy, lazy);
    n->waits_aof = n->has_aof && n->version >= WAITAOF_VERSION && strcmp(policy, "no") != 0 &&
                   (asked == WEIR_DURABILITY_DISK || (asked && n->durability > asked));
    if (n->waits_aof)
        say(n, RIGHT, 4, (const char *[]){ "WAITAOF", "0", "0", "0" });
    else if (asked && n->durability > asked)
        return refuse_durability(n, policy, lazy, err);
    return WEIR_OK;
}

/* The answer to WAIT or WAITAOF without conditions: may the user use them? */
static weir_code take_right(redis_node *n, const redisReply *r, weir_error *err)
{
    if (r->type == REDIS_REPLY_ERROR && begins(r, "NOPERM"))
        return weir_fail(err, WEIR_EINVAL, "the user needs the rights +wait and +waitaof to see "
                                           "how safe a change is: %s", words(n, r));
    return WEIR_OK;
}

static weir_code take_anything(redis_node *n, const redisReply *r, weir_error *err)
{
    (void)n;
    (void)r;
    (void)err;
    return WEIR_OK;
}

/* If a sentinel requires a password, try the servers' password. */
static weir_code take_topology(redis_node *n, const redisReply *r, weir_error *err)
{
    if (r->type != REDIS_REPLY_ERROR)
        return weir__probe_answer(n, r, err);
    const redis_url *u = &n->net->url;
    if (begins(r, "NOAUTH") && *u->password && n->n_steps == 1) {
        if (*u->user)
            say(n, AUTH, 3, (const char *[]){ "AUTH", u->user, u->password });
        else
            say(n, AUTH, 2, (const char *[]){ "AUTH", u->password });
        ask_topology(n);
        return WEIR_OK;
    }
    return weir_fail(err, begins(r, "NOAUTH") || begins(r, "NOPERM") ? WEIR_EINVAL : WEIR_EUNAVAIL,
                     "%s", words(n, r));
}

static weir_code (*const take[])(redis_node *, const redisReply *, weir_error *) = {
    [HELLO] = take_hello,
    [SELECT] = take_select,
    [INFO] = take_info,
    [AOF] = take_aof,
    [KILL] = take_anything,
    [RIGHT] = take_right,
    [TOPOLOGY] = take_topology,
    [AUTH] = take_anything,
};

void weir__handshake_reply(redis_node *n, const redisReply *r)
{
    weir_error err = { 0 };
    if (n->at_step == n->n_steps) {
        weir__node_disconnect(n, WEIR_EUNAVAIL, "unexpected reply");
        return;
    }
    weir_code rc = take[n->step[n->at_step++]](n, r, &err);
    if (rc) {
        weir__node_disconnect(n, rc, "%s", err.msg);
        return;
    }
    if (n->at_step < n->n_steps) {
        send_handshake(n);
        return;
    }
    if (n->probe) {
        weir__node_close(n);
        return;
    }
    n->state = NODE_READY;
    n->why = (weir_error){ 0 };
    n->timeout_ms = 0;
    n->net->ops->ready(n->net->ctx, n);
}
