/* store.c - which store a command means, and opening it. */
#include "cli/store.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include "cli/announce.h"
#include "cli/args.h"
#include "cli/directory.h"
#include "cli/say.h"

enum {
    WAIT_OWNER_MS   = 2000,
    WAIT_SERVER_MS  = 10000,     /* for a server that is being started anew; timeout= in its URL */
    RETRY_SERVER_MS = 100,
    SAY_WAITING_MS  = 500
};

/* ---- which one ---- */

/* The store of a user who has not chosen one: the file jobs.db in the data directory. */
static weir_code default_store(char *url, size_t size, weir_error *err)
{
    const char *own = getenv("WEIR_DATA"), *data = getenv("XDG_DATA_HOME"), *home = getenv("HOME");
    int         n;
    if (own && *own)
        n = snprintf(url, size, "sqlite:%s/jobs.db", own);
    else if (data && *data == '/')
        n = snprintf(url, size, "sqlite:%s/weir/jobs.db", data);
    else if (home && *home == '/')
        n = snprintf(url, size, "sqlite:%s/.local/share/weir/jobs.db", home);
    else
        return weir_fail(err, WEIR_EINVAL, "no store: set --store, WEIR_STORE or HOME");
    if (n < 0 || (size_t)n >= size)
        return weir_fail(err, WEIR_EINVAL, "the path of the data directory is too long");
    return WEIR_OK;
}

/* The store of a server of this user that runs: its file, so that nothing ends with the server;
 * else its address. NULL: none. */
static const char *announced_store(cli *c)
{
    static announced found;         /* lives as long as the program, as `url` below */
    if (!announce_find(&found) || !(*found.store || WEIR_WITH_HTTP))
        return NULL;
    c->store_from = STORE_ANNOUNCED;
    c->server = found.address;
    return *found.store ? found.store : found.address;
}

weir_code cli_choose_store(cli *c)
{
    static char url[4096];
    const char *from_env = getenv("WEIR_STORE");
    if (c->store)
        return WEIR_OK;
    if (from_env && *from_env) {
        c->store = from_env;
        c->store_from = STORE_ENVIRONMENT;
        return WEIR_OK;
    }
    c->store = announced_store(c);
    if (c->store)
        return WEIR_OK;
    c->store_from = STORE_DEFAULT;
    weir_code rc = default_store(url, sizeof url, &c->err);
    if (!rc)
        c->store = url;
    return rc;
}

/* The data directory is made by the first command that writes. */
static weir_code make_data_directory(cli *c)
{
    char dir[4096];
    snprintf(dir, sizeof dir, "%s", strchr(c->store, ':') + 1);
    *strrchr(dir, '/') = 0;
    return cli_make_directory(dir, &c->err);
}

/* ---- opening it ---- */

/* The owner of the store, for others who open it: "weir work mail". */
static void say_who(const cli *c, char *out, size_t size)
{
    char   text[256];
    size_t n = (size_t)snprintf(text, sizeof text, "weir %s", c->command->name);
    bool   types = c->command->args && strstr(c->command->args, "TYPE...");
    for (int i = 0; types && i < c->n_args && n < sizeof text; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, " %s", c->args[i]);
    term_clean(out, size, text, (int)size - 5);
}

/* How long a server that does not answer is waited for; 0: it is no server of ours. */
static int64_t wait_limit(const char *url)
{
    const char *query = strchr(url, '?'), *option = query ? strstr(query, "timeout=") : NULL;
    char        value[40];
    int64_t     ms;
    if (strncmp(url, "http://", 7) != 0 && strncmp(url, "https://", 8) != 0)
        return 0;
    if (!option)
        return WAIT_SERVER_MS;
    snprintf(value, sizeof value, "%.*s", (int)strcspn(option + 8, "&"), option + 8);
    return weir_duration_parse(value, &ms, NULL) ? 0 : ms;
}

/* A server that is restarted is back soon: nothing was sent yet, so to try again is safe. Later
 * calls are repeated by the library. */
static weir_code open_patiently(cli *c, const char *url, const weir_options *opt, weir_queue **out)
{
    int64_t   begin = cli_clock_ms(), until = begin + wait_limit(url);
    bool      said = false;
    weir_code rc;
    while ((rc = weir_open(out, url, opt, &c->err)) == WEIR_EUNAVAIL && cli_clock_ms() < until) {
        if (!said && term_is_tty(stderr) && cli_clock_ms() - begin >= SAY_WAITING_MS) {
            cli_warn(c, "%s; waiting for the server", c->err.msg);
            said = true;
        }
        poll(NULL, 0, RETRY_SERVER_MS);
    }
    return rc;
}

weir_code cli_open_url(cli *c, const char *url, cli_mode mode, weir_queue **out)
{
    char who[64];
    say_who(c, who, sizeof who);
    weir_options opt = { .read_only = mode == CLI_LOOK, .name = who,
                         .durability = c->durability, .keep_taken = mode == CLI_SERVE,
                         .brief = mode == CLI_CHANGE || mode == CLI_MEND,
                         .without_log = mode == CLI_MEND,
                         .wait_owner_ms = mode == CLI_LOOK ? 0 : WAIT_OWNER_MS };
    weir_code rc = open_patiently(c, url, &opt, out);
    c->opened |= !rc;
    return rc;
}

/* Never becomes the owner of a file: then jobs of workers that were killed would come back. */
static weir_code open_asking(cli *c, weir_queue **out)
{
    weir_queue *asked;
    weir_info   info;
    weir_error  why;
    if (wait_limit(c->store))
        return cli_open_url(c, c->store, CLI_CHANGE, out);
    weir_code rc = cli_open_url(c, c->store, CLI_LOOK, out);
    if (rc || weir_get_info(*out, &info, &why) || !info.owner_pid)
        return rc;
    weir_options opt = { .name = "weir", .durability = c->durability, .brief = true };
    rc = weir_open(&asked, c->store, &opt, &why);
    if (rc) {
        c->owner_err = why;
        return WEIR_OK;
    }
    weir_close(*out);
    *out = asked;
    return WEIR_OK;
}

weir_code cli_open(cli *c, cli_mode mode, weir_queue **out)
{
    *out = NULL;
    weir_code rc = cli_choose_store(c);
    if (!rc && c->store_from == STORE_DEFAULT && mode == CLI_CHANGE)
        rc = make_data_directory(c);
    if (!rc)
        rc = mode == CLI_ASK ? open_asking(c, out) : cli_open_url(c, c->store, mode, out);
    if (rc == WEIR_ENOENT && (mode == CLI_LOOK || mode == CLI_ASK))
        return weir_fail(&c->err, rc, "no store %s yet; `weir add` makes it", c->store);
    return rc;
}

char *cli_show_url(char *out, size_t size, const char *url)
{
    char text[4096];
    snprintf(text, sizeof text, "%s", url);
    args_hide_secrets(text);
    return term_clean(out, size, text, (int)size - 5);
}

bool cli_store_is_private(const cli *c)
{
    return strncmp(c->store, "mem:", 4) == 0;
}
