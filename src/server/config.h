/* config.h - the settings of the server: from the command line, the environment and a file.
 *
 * A setting has one name: the option --tls-cert is the variable WEIR_TLS_CERT and in the file the
 * key "tls-cert". If a setting is given more than once, the option holds, then the environment,
 * then the file. The file is one flat JSON object; it may have Vert.x Kue's names too. */
#ifndef WEIR_SERVER_CONFIG_H
#define WEIR_SERVER_CONFIG_H

#include "server/server.h"

/* member and name; TEXT or FLAG; its value, words to complete it with, what it says. The options of
 * the program are made from this list too. */
#define SRV_SETTINGS(X)                                                                           \
    X(listen, "listen", TEXT, "ADDRESS:PORT", NULL,                                               \
      "where to listen (127.0.0.1:7340); port 0 takes any that is free. Others than this machine " \
      "need a token: see `weir help token`")                                                      \
    X(bus, "bus", TEXT, "ADDRESS:PORT", NULL,                                                     \
      "where the event bus takes clients of Vert.x's TCP bridge in (nowhere); see docs/bus.md. "  \
      "In the file also an object: listen, inbound, outbound")                                    \
    X(data, "data", TEXT, "DIR", "<file>",                                                        \
      "where jobs, tokens and push targets are kept (~/.local/share/weir)")                       \
    X(task_table, "task-table", TEXT, "URL", NULL,                                                \
      "a table of record for tasks: mysql://USER:PASSWORD@HOST/DATABASE, or sqlite:FILE")         \
    X(store_wait, "store-wait", TEXT, "TIME", NULL,                                                \
      "how long to wait at the start for a store that does not answer; 0: fail at once (no end)")  \
    X(properties, "properties", TEXT, "FILE", "<file>",                                           \
      "delayqueue.properties: the queue's prefix on Redis, and the name of the table of record")  \
    X(title, "title", TEXT, "TEXT", NULL, "the name of this server, for people (weir)")           \
    X(api, "api", TEXT, "kue|vertx", "kue vertx",                                                 \
      "whose answers to give where Kue's API and Vert.x Kue's differ (kue; vertx if the file has " \
      "Vert.x Kue's names)")                                                                      \
    X(search, "search", TEXT, "on|off", "on off",                                                 \
      "find all new jobs by the words of their data, also those that Kue adds (as it was)")       \
    X(kue_get, "kue-get", FLAG, NULL, NULL,                                                       \
      "let Kue's GET /inactive/ID change the job, as Kue does")                                   \
    X(tls_cert, "tls-cert", TEXT, "FILE", "<file>", "serve https: the certificate chain, PEM")    \
    X(tls_key, "tls-key", TEXT, "FILE", "<file>", "... and its private key, PEM")                 \
    X(origin, "origin", TEXT, "URL,...", NULL,                                                    \
      "origins whose pages may call the API, and this server's own behind a proxy")               \
    X(push_private, "push-private", FLAG, NULL, NULL,                                             \
      "let push workers be at private and local addresses")                                       \
    X(access_log, "access-log", TEXT, "FILE|-", "<file>",                                         \
      "write a line of JSON for each request; - is standard error")                               \
    X(log_format, "log-format", TEXT, "text|json", "text json",                                   \
      "of the lines on standard error (text)")                                                    \
    X(log_level, "log-level", TEXT, "info|warning|error", "info warning error",                   \
      "the least level of these lines (info)")                                                    \
    X(audit, "audit", TEXT, "admin|all|off", "admin all off",                                     \
      "what the audit log has: administrative actions (admin), also what producers and workers "  \
      "do, or nothing")                                                                           \
    X(threads, "threads", TEXT, "N", NULL, "event loops (one a core, at most 4)")                 \
    X(caller_rate, "caller-rate", TEXT, "N", NULL,                                                \
      "requests a second of one token, or of one address that is not this machine (10000)")       \
    X(caller_connections, "caller-connections", TEXT, "N", NULL, "... its connections (2500)")    \
    X(caller_listeners, "caller-listeners", TEXT, "N", NULL,                                      \
      "... its listeners of events and streams of jobs (1024)")                                   \
    X(caller_waits, "caller-waits", TEXT, "N", NULL, "... its requests that wait for jobs (2500)") \
    X(caller_bodies, "caller-bodies", TEXT, "MIB", NULL,                                          \
      "... memory for bodies of its requests (128)")                                              \
    X(caller_answers, "caller-answers", TEXT, "MIB", NULL,                                        \
      "... memory for answers that it does not read (128)")

/* As they were given; NULL or false: not. */
typedef struct srv_given {
    const char *config;         /* the file; only an option, or WEIR_CONFIG */
    const char *store, *durability;
    const char *listen, *bus, *data, *title, *api, *search, *tls_cert, *tls_key, *origin,
               *access_log, *task_table, *properties, *audit, *threads, *store_wait,
               *log_format, *log_level;
    const char *caller_rate, *caller_connections, *caller_listeners, *caller_waits, *caller_bodies,
               *caller_answers;
    bool        kue_get, push_private;
    bool        demo;           /* the command's own: not a setting of the server */
} srv_given;

enum { SRV_MAX_THREADS = 16, SRV_MAX_PERMITS = 100 };

typedef struct srv_config {
    srv_options     serve;      /* data_dir is set, if there is a home; store_url is not */
    const char     *store;      /* URL, with the password if it has one */
    bool            store_in_data;      /* nobody has said another */
    int64_t         store_wait_ms;      /* for a store that does not answer; -1: without an end */
    weir_durability durability;
    const char     *log_format, *log_level;
    const char     *note;       /* a line for people; NULL: nothing to say */
} srv_config;

/* Put `given`, environment and file together. On success *out belongs to the caller:
 * srv_config_destroy(). Errors: WEIR_EINVAL, which says where the wrong value is, and WEIR_EIO. */
weir_code srv_config_create(srv_config **out, const srv_given *given, weir_error *err);
void srv_config_destroy(srv_config *c);

#endif
