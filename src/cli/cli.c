/* cli.c - finding and opening the store, and other things that several commands need. */
#include "cli/cli.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "cli/announce.h"
#include "cli/args.h"

enum {
    WAIT_OWNER_MS   = 2000,
    WAIT_SERVER_MS  = 10000,     /* for a server that is being started anew; timeout= in its URL */
    RETRY_SERVER_MS = 100,
    SAY_WAITING_MS  = 500
};

/* Make the directories that lead to the file `path`, for this user alone. */
static weir_code make_directories(const char *path, weir_error *err)
{
    char dir[4096];
    snprintf(dir, sizeof dir, "%s", path);
    for (char *p = strchr(dir + 1, '/'); p; p = strchr(p + 1, '/')) {
        *p = 0;
        if (mkdir(dir, 0700) && errno != EEXIST)
            return weir_fail(err, errno == EACCES || errno == EROFS ? WEIR_EREADONLY : WEIR_EIO,
                             "cannot make %s: %s", dir, strerror(errno));
        *p = '/';
    }
    return WEIR_OK;
}

/* The store of a user who has not chosen one: the file jobs.db in the data directory. */
static weir_code default_store(char *url, size_t size, bool make, weir_error *err)
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
    return make ? make_directories(strchr(url, ':') + 1, err) : WEIR_OK;
}

/* Who has the store, for others who want it: "weir work mail". */
static void say_who(const cli *c, char *out, size_t size)
{
    char   text[256];
    size_t n = (size_t)snprintf(text, sizeof text, "weir %s", c->command->name);
    bool   types = strstr(c->command->args, "TYPE...") != NULL;
    for (int i = 0; types && i < c->n_args && n < sizeof text; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, " %s", c->args[i]);
    term_clean(out, size, text, (int)size - 5);
}

/* How long a server that does not answer is waited for; 0: it is no server of ours. */
static int64_t patience(const char *url)
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
    int64_t   begin = cli_clock_ms(), until = begin + patience(url);
    bool      said = false;
    weir_code rc;
    while ((rc = weir_open(out, url, opt, &c->err)) == WEIR_EUNAVAIL && cli_clock_ms() < until) {
        char clean[WEIR_ERROR_MAX];
        if (!said && term_is_tty(stderr) && cli_clock_ms() - begin >= SAY_WAITING_MS) {
            fprintf(stderr, "weir: %s; waiting for the server\n",
                    term_clean(clean, sizeof clean, c->err.msg, 0));
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
                         .wait_owner_ms = mode == CLI_LOOK ? 0 : WAIT_OWNER_MS };
    return open_patiently(c, url, &opt, out);
}

weir_code cli_open(cli *c, cli_mode mode, weir_queue **out)
{
    static char url[4096];          /* lives as long as the program: c->store points at it */
    *out = NULL;
    const char *from_env = getenv("WEIR_STORE");
    if (!c->store && from_env && *from_env)
        c->store = from_env;
    if (!c->store && announce_find(url, sizeof url))
        c->store = url;
    if (!c->store) {
        weir_code rc = default_store(url, sizeof url, mode == CLI_CHANGE, &c->err);
        if (rc)
            return rc;
        c->store = url;
    }
    weir_code rc = cli_open_url(c, c->store, mode, out);
    if (rc == WEIR_ENOENT && mode == CLI_LOOK)
        return weir_fail(&c->err, rc, "there is no store %s yet; `weir add` makes it", c->store);
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

/* As weir_complain(), but escapes control characters that come from jobs or arguments. */
static int complain(const weir_error *err)
{
    weir_error clean = { .code = err->code };
    term_clean(clean.msg, sizeof clean.msg, err->msg, 0);
    return weir_complain(&clean);
}

int cli_usage(const cli *c, const char *fmt, ...)
{
    char    text[200];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    weir_error  err;
    const char *name = c->command ? c->command->name : NULL;
    weir_fail(&err, WEIR_EINVAL, "%s%s%s (see `weir help%s%s`)", name ? name : "", name ? ": " : "",
              text, name ? " " : "", name ? name : "");
    return complain(&err);
}

int cli_fail(const cli *c)
{
    return complain(&c->err);
}

weir_code cli_print_job_json(FILE *out, const weir_job *job, weir_error *err)
{
    size_t len;
    char  *text = weir_job_json(job, &len);
    if (!text)
        return weir_fail(err, WEIR_ENOMEM, "job %llu", (unsigned long long)job->id);
    jw_json(out, text, len);
    fputc('\n', out);
    free(text);
    return WEIR_OK;
}

char *cli_read_data(size_t *len, weir_error *err)
{
    char   *text = malloc(WEIR_MAX_DATA + 2);
    ssize_t n = 1;
    *len = 0;
    if (!text) {
        weir_fail(err, WEIR_ENOMEM, "standard input");
        return NULL;
    }
    while (n != 0 && *len <= WEIR_MAX_DATA) {
        n = read(STDIN_FILENO, text + *len, WEIR_MAX_DATA + 1 - *len);
        if (n < 0 && errno != EINTR) {
            weir_fail(err, WEIR_EIO, "standard input: %s", strerror(errno));
            free(text);
            return NULL;
        }
        *len += n > 0 ? (size_t)n : 0;
    }
    if (*len > WEIR_MAX_DATA) {
        weir_fail(err, WEIR_ELIMIT, "data: more than %d bytes (WEIR_MAX_DATA)", (int)WEIR_MAX_DATA);
        free(text);
        return NULL;
    }
    text[*len] = 0;
    return text;
}

bool cli_read_line(FILE *in, size_t max, char **line, size_t *len)
{
    size_t cap = 256;
    int    byte = getc(in);
    bool   there = byte != EOF;
    *len = 0;
    *line = malloc(cap);
    for (; *line && byte != EOF && byte != '\n'; byte = getc(in)) {
        if (*len + 1 == cap && cap <= max) {
            char *more = realloc(*line, cap *= 2);
            if (!more)
                free(*line);
            *line = more;
        }
        if (*line && *len + 1 < cap)
            (*line)[(*len)++] = (char)byte;
    }
    while (*line && *len > 0 && strchr(" \t\r", (*line)[*len - 1]))
        --*len;
    if (*line)
        (*line)[*len] = 0;
    return there;
}

weir_code cli_scratch_make(char *dir, size_t dir_size, char *url, size_t url_size, weir_error *err)
{
    const char *tmp = getenv("TMPDIR");
    snprintf(dir, dir_size, "%s/weir-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    if (!mkdtemp(dir))
        return weir_fail(err, WEIR_EIO, "%s: %s", dir, strerror(errno));
    snprintf(url, url_size, "sqlite:%s/jobs.db", dir);
    return WEIR_OK;
}

void cli_scratch_remove(const char *dir)
{
    DIR *d = opendir(dir);
    if (!d)
        return;
    for (struct dirent *e; (e = readdir(d));)
        unlinkat(dirfd(d), e->d_name, 0);
    closedir(d);
    rmdir(dir);
}

int cli_signals(int first, ...)
{
    sigset_t set;
    va_list  args;
    sigemptyset(&set);
    va_start(args, first);
    for (int s = first; s; s = va_arg(args, int))
        sigaddset(&set, s);
    va_end(args);
    if (pthread_sigmask(SIG_BLOCK, &set, NULL))
        return -1;
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

int cli_poll(struct pollfd *fds, unsigned n, int64_t timeout_ms)
{
    int64_t end = cli_clock_ms() + timeout_ms;
    for (;;) {
        int64_t left = timeout_ms < 0 ? -1 : end - cli_clock_ms();
        left = timeout_ms >= 0 && left < 0 ? 0 : left > INT_MAX ? INT_MAX : left;
        int got = poll(fds, n, (int)left);
        if (got > 0 || (got < 0 && errno != EINTR) || (got == 0 && left < INT_MAX))
            return got;
    }
}
