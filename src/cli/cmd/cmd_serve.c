/* cmd_serve.c - weir serve: the queue over HTTP, until a signal ends it. */
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "cli/announce.h"
#include "cli/cmd/demo_flow.h"
#include "cli/directory.h"
#include "cli/notify.h"
#include "cli/say.h"
#include "cli/scratch.h"
#include "cli/signals.h"
#include "cli/store.h"
#include "server/config.h"

CLI_VALUES_FIT(srv_given);

#define X(member, setting, value, argument, shown, about)                                         \
    { .name = setting, .kind = OPT_##value, .at = offsetof(srv_given, member), .arg = argument,   \
      .words = shown, .help = about },
static const option_entry serve_options[] = {
    SRV_SETTINGS(X)
    { .name = "demo", .kind = OPT_FLAG, .at = offsetof(srv_given, demo),
      .help = "with jobs of several types flowing, in a scratch file unless --store says where; "
              "other commands do not use it unless --store names it" },
    { .name = "config", .kind = OPT_TEXT, .at = offsetof(srv_given, config), .arg = "FILE",
      .words = "<file>",
      .help = "a JSON object with any of these and --store and --durability; the option --tls-key "
              "is the key \"tls-key\" there, and the variable WEIR_TLS_KEY in the environment" },
    { 0 }
};
#undef X

enum { STORE_RETRY_MS = 1000, ANNOUNCE_RETRY_MS = 500 };

typedef struct serving {
    cli          *c;
    srv_config   *config;
    weir_queue   *q;
    srv_server   *server;
    demo_flow    *demo;
    char          scratch[256];     /* directory of the demo's jobs; "": none */
    char          scratch_url[300];
    announcement  announcement;
    bool          unannounced;      /* another server is announced: try again until it ends */
    int           signals;
} serving;

/* The next signal; 0: none within `ms` (-1: however long). */
static int next_signal(const serving *s, int64_t ms)
{
    struct signalfd_siginfo got;
    struct pollfd           p = { .fd = s->signals, .events = POLLIN };
    cli_poll(&p, 1, ms);
    return read(s->signals, &got, sizeof got) == sizeof got ? (int)got.ssi_signo : 0;
}

/* From any thread of the server. */
static void notice(const char *text, void *ctx)
{
    cli_warn(ctx, "%s", text);
}

/* ---- start ---- */

/* A server that is not up yet is waited for, as long as the setting says: a machine that starts
 * brings up both at once. False with WEIR_OK in c->err: a signal came first. */
static bool open_store(serving *s)
{
    cli    *c = s->c;
    int64_t most = s->config->store_wait_ms, end = most < 0 ? INT64_MAX : cli_clock_ms() + most;
    for (bool said = false;; said = true) {
        c->err = (weir_error){ 0 };
        if (!cli_open_url(c, s->config->store, CLI_SERVE, &s->q))
            return true;
        int64_t left = end - cli_clock_ms();
        if (c->err.code != WEIR_EUNAVAIL || left <= 0)
            return false;
        if (!said)
            cli_warn(c, "waiting for the store: %s", c->err.msg);
        notify("STATUS=Waiting for the store: %s\nEXTEND_TIMEOUT_USEC=%lld", c->err.msg,
               10LL * 1000 * STORE_RETRY_MS);
        int got = next_signal(s, left < STORE_RETRY_MS ? left : STORE_RETRY_MS);
        if (got == SIGTERM || got == SIGINT) {
            c->err = (weir_error){ 0 };
            return false;
        }
    }
}

static weir_code configure(serving *s, const srv_given *values)
{
    cli      *c = s->c;
    srv_given given = *values;
    if (given.demo && !c->store) {
        weir_code rc = cli_scratch_make(s->scratch, sizeof s->scratch, s->scratch_url,
                                        sizeof s->scratch_url, &c->err);
        if (rc)
            return rc;
        c->store = s->scratch_url;
        if (!given.data)            /* not the tokens and the audit log of the user's own server */
            given.data = s->scratch;
    }
    if (given.demo && !given.title)
        given.title = "weir demo";
    given.store = c->store;
    given.durability = c->durability ? weir_durability_name(c->durability) : NULL;
    weir_code rc = srv_config_create(&s->config, &given, &c->err);
    if (rc)
        return rc;
    rc = cli_log_set(&c->log, s->config->log_format, s->config->log_level, &c->err);
    if (rc)
        return rc;
    c->store = s->config->store;
    c->durability = s->config->durability;
    s->config->serve.data_vanishes = given.data == s->scratch;
    if (strncmp(c->store, "http:", 5) == 0 || strncmp(c->store, "https:", 6) == 0)
        return weir_fail(&c->err, WEIR_EINVAL, "the store is a server already (http); serve needs "
                         "the store itself");
    if (s->config->serve.data_dir)
        rc = cli_make_directory(s->config->serve.data_dir, &c->err);
    return s->config->store_in_data ? rc : WEIR_OK;
}

/* The absolute path of the SQLite file that is open as the store; NULL: it is another store. The
 * caller frees it. */
static char *path_of_store(const char *url)
{
    static const char scheme[] = "sqlite:";
    char              path[PATH_MAX];
    if (strncmp(url, scheme, sizeof scheme - 1) != 0)
        return NULL;
    url += sizeof scheme - 1;
    int n = snprintf(path, sizeof path, "%.*s", (int)strcspn(url, "?"), url);
    return n > 0 && (size_t)n < sizeof path ? realpath(path, NULL) : NULL;
}

/* So that other commands of this user find the server, or its file. */
static weir_code announce(serving *s, weir_error *err)
{
    char     *file = path_of_store(s->c->store);
    weir_code rc = announce_begin(&s->announcement, srv_address(s->server), file, err);
    free(file);
    s->unannounced = rc == WEIR_EBUSY;
    return rc;
}

/* On standard output: a script waits for it. */
static void say_ready(const serving *s, const char *store)
{
    char        text[1024];
    const char *demo = s->config->serve.demo, *bus = srv_bus_address(s->server);
    snprintf(text, sizeof text, "serving %s%s%s%s at %s%s%s", store, demo ? " (" : "",
             demo ? demo : "", demo ? ")" : "", srv_address(s->server),
             bus ? " and bus at " : "", bus ? bus : "");
    if (s->c->log.json)
        cli_log_print(stdout, &s->c->log,
                      &(log_line){ .text = text, .address = srv_address(s->server) });
    else
        printf("weir: %s\n", text);
    fflush(stdout);
}

/* Returns whether it serves; else c->err says why, or a signal came first. */
static bool start(serving *s, const srv_given *values)
{
    cli        *c = s->c;
    static char shown[512];
    if (configure(s, values))
        return false;
    s->config->serve.store_url = cli_show_url(shown, sizeof shown, c->store);
    if (values->demo)
        s->config->serve.demo = *s->scratch ? "a demo: all its jobs vanish when it ends"
                                            : "a demo: it adds and does jobs of its own";
    if (s->config->note)
        cli_note(c, "%s", s->config->note);
    s->config->serve.notice = notice;
    s->config->serve.notice_ctx = c;
    if (!open_store(s) ||
        srv_start(&s->server, s->q, &s->config->serve, &c->err) ||
        (values->demo && demo_flow_start(&s->demo, s->q, &c->err)))
        return false;
    if (srv_warning(s->server))
        cli_warn(c, "%s", srv_warning(s->server));
    weir_error err;
    if (!values->demo && announce(s, &err))
        cli_warn(c, "other commands will not find this server by themselves: %s", err.msg);
    say_ready(s, shown);
    notify("READY=1\nSTATUS=Serving %s at %s", shown, srv_address(s->server));
    return true;
}

/* ---- until the end ---- */

static void reload(serving *s)
{
    weir_error err;
    notify("RELOADING=1\nMONOTONIC_USEC=%lld", (long long)cli_clock_ms() * 1000);
    if (srv_reload(s->server, &err))
        cli_warn(s->c, "keeping the previous settings: %s", err.msg);
    else
        cli_note(s->c, "read tokens and certificates again");
    notify("READY=1");
}

static void *stop_thread(void *arg)
{
    srv_stop(((serving *)arg)->server);
    return NULL;
}

/* Let what is under way finish, unless a second signal comes. */
static void stop(serving *s)
{
    enum { LOOK_MS = 10 };
    pthread_t thread;
    notify("STOPPING=1");
    if (pthread_create(&thread, NULL, stop_thread, s)) {
        srv_stop(s->server);
        return;
    }
    while (pthread_tryjoin_np(thread, NULL)) {
        int got = next_signal(s, LOOK_MS);
        if (got == SIGTERM || got == SIGINT) {
            announce_end(&s->announcement);
            _exit(weir_code_exit(WEIR_ETIMEOUT));       /* what was acknowledged is in the store */
        }
    }
}

static int run_serve(cli *c, const void *values)
{
    serving s = { .c = c, .announcement = { .fd = -1 } };
    signal(SIGPIPE, SIG_IGN);
    s.signals = cli_signals(SIGTERM, SIGINT, SIGHUP, 0);
    bool serves = start(&s, values);
    while (serves) {
        int got = next_signal(&s, s.unannounced ? ANNOUNCE_RETRY_MS : -1);
        if (!got && s.unannounced && !announce(&s, NULL))
            cli_note(c, "the other server has ended: other commands find this one now");
        if (got == SIGHUP)
            reload(&s);
        if (got == SIGTERM || got == SIGINT)
            break;
    }
    if (serves)
        stop(&s);
    announce_end(&s.announcement);
    if (s.server)
        srv_stop(s.server);
    demo_flow_stop(s.demo);
    srv_destroy(s.server);
    weir_close(s.q);
    if (*s.scratch)
        cli_scratch_remove(s.scratch);
    int status = serves || !c->err.code ? 0 : cli_fail(c);
    srv_config_destroy(s.config);
    close(s.signals);
    return status;
}

const command cmd_serve = {
    .name = "serve", .group = GROUP_START,
    .summary = "serve the queue over HTTP",
    .help = "Prints one line when it is ready, and stays in the foreground. Without tokens it "
            "listens on this machine alone, and every program on it may call. SIGTERM and SIGINT "
            "let what is under way finish; a second one does not. SIGHUP reads tokens and "
            "certificates again and opens the access log anew. A store that is a server and not "
            "up yet is waited for, at most --store-wait.",
    .examples = "weir serve\n"
                "weir serve --store redis://localhost --listen 127.0.0.1:0\n"
                "weir serve --listen 0.0.0.0:7340 --tls-cert cert.pem --tls-key key.pem\n",
    .options = serve_options, .run = run_serve,
};
