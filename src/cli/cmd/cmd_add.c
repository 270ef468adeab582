/* cmd_add.c - weir add: one job, the same one many times, or one for each line of input. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "cli/input.h"
#include "cli/say.h"
#include "cli/store.h"
#include "cli/values_json.h"

typedef struct add_opts {
    opt_num     priority, delay, at, attempts, ttl, deadline, max_lost, wait, count;
    const char *type, *backoff, *unique, *search_keys;
    opt_texts   set;
    bool        remove_on_complete, search, lines;
} add_opts;
CLI_VALUES_FIT(add_opts);

#define AT(member) offsetof(add_opts, member)
static const option_entry add_options[] = {
    { .name = "type", .letter = 't', .kind = OPT_TEXT, .at = AT(type), .arg = "TYPE",
      .words = "<type>", .help = "its type, instead of the argument" },
    { .name = "priority", .letter = 'p', .kind = OPT_PRIORITY, .at = AT(priority),
      .arg = "PRIORITY", .words = "low normal medium high critical",
      .help = "low, normal, medium, high, critical or a number; lower runs first" },
    { .name = "delay", .letter = 'd', .kind = OPT_DURATION, .at = AT(delay), .arg = "TIME",
      .help = "start this much later: 5s, 2h" },
    { .name = "at", .kind = OPT_TIME, .at = AT(at), .arg = "TIME",
      .help = "start at this time: 2026-11-16T09:00, 2026-11-16T09:00Z, 09:00" },
    { .name = "attempts", .kind = OPT_INT, .at = AT(attempts), .arg = "N",
      .min = 1, .max = WEIR_MAX_ATTEMPTS, .help = "maximum number of attempts (1)" },
    { .name = "backoff", .letter = 'b', .kind = OPT_TEXT, .at = AT(backoff), .arg = "HOW",
      .words = "none fixed:1s linear:2s exponential:1s:60s",
      .help = "wait before trying again: none, fixed:1s, linear:2s (2s, 4s, 6s ...), "
              "exponential:1s or exponential:1s:60s (with a cap), with :20% of jitter at the end "
              "if you like" },
    { .name = "ttl", .kind = OPT_DURATION, .at = AT(ttl), .arg = "TIME", .min = 1,
      .help = "an attempt that takes longer fails" },
    { .name = "deadline", .kind = OPT_WHEN, .at = AT(deadline), .arg = "TIME",
      .help = "not started by then (2h from now, or at a time) it fails" },
    { .name = "unique", .letter = 'u', .kind = OPT_TEXT, .at = AT(unique), .arg = "KEY",
      .help = "while a job of this type with this key waits or runs, print that one's id and add "
              "nothing" },
    { .name = "max-lost", .kind = OPT_INT, .at = AT(max_lost), .arg = "N", .min = 1,
      .max = WEIR_MAX_ATTEMPTS, .help = "how many times its worker may crash before it fails (3)" },
    { .name = "remove-on-complete", .kind = OPT_FLAG, .at = AT(remove_on_complete),
      .help = "forget it when it is done" },
    { .name = "search", .kind = OPT_FLAG, .at = AT(search),
      .help = "let `weir list --search` find it" },
    { .name = "search-keys", .kind = OPT_TEXT, .at = AT(search_keys), .arg = "KEYS",
      .help = "the same, by these members of the data only: to,customer.name" },
    { .name = "set", .kind = OPT_TEXTS, .at = AT(set), .arg = "NAME=VALUE",
      .help = "a value beside the data, any JSON or a text; may be given several times" },
    { .name = "wait", .letter = 'w', .kind = OPT_DURATION, .at = AT(wait), .arg = "TIME",
      .help = "wait for its end and print its result" },
    { .name = "count", .kind = OPT_INT, .at = AT(count), .arg = "N", .min = 1,
      .max = 100000000, .help = "add it this many times" },
    { .name = "lines", .letter = 'l', .kind = OPT_FLAG, .at = AT(lines),
      .help = "add a job for each line of standard input: its data" },
    { 0 }
};
#undef AT

enum { BULK = 1000, BULK_BYTES = 8 * 1024 * 1024, LOOK_AGAIN_MS = 300 };

static void print_added(const cli *c, const weir_added *a)
{
    if (!c->json) {
        printf("%llu\n", (unsigned long long)a->id);
        return;
    }
    jw w = { .out = stdout };
    jw_object(&w, NULL);
    jw_int(&w, "id", (int64_t)a->id);
    jw_text(&w, "state", weir_state_name(a->state));
    jw_bool(&w, "existed", a->existed);
    jw_text(&w, "durability", weir_durability_name(a->durability));
    jw_end(&w, '}');
}

/* ---- --wait ---- */

static int print_end(cli *c, const weir_job *job)
{
    if (c->json) {
        if (jw_job(stdout, job, &c->err))
            return cli_fail(c);
    } else if (job->state == WEIR_STATE_COMPLETE && job->result) {
        jw_json(stdout, job->result, job->result_len);
        fputc('\n', stdout);
    }
    if (job->state == WEIR_STATE_COMPLETE)
        return 0;
    weir_fail(&c->err, WEIR_EJOB, "job %llu %s%s%s", (unsigned long long)job->id,
              job->state == WEIR_STATE_FAILED ? "failed" : "was cancelled", job->error ? ": " : "",
              job->error ? job->error : "");
    return cli_fail(c);
}

/* Wait for the end of a job in a queue that is open for reading. Events come from the process that
 * owns the store. A short-lived owner (`weir work --drain`) may be gone before we have found it, so
 * we also read the job itself now and then. */
static int wait_for(cli *c, weir_queue *q, uint64_t id, int64_t ms)
{
    weir_job *job = NULL;
    int64_t   end = cli_clock_ms() + ms, left = ms;
    weir_code rc;
    do {
        rc = weir_wait(q, id, left < LOOK_AGAIN_MS ? left : LOOK_AGAIN_MS, &job, &c->err);
        left = end - cli_clock_ms();
    } while (rc == WEIR_ETIMEOUT && left > 0);
    if (rc == WEIR_ETIMEOUT)
        weir_fail(&c->err, rc, "job %llu has not ended; `weir explain %llu` says why",
                  (unsigned long long)id, (unsigned long long)id);
    if (rc == WEIR_ENOENT)
        weir_fail(&c->err, rc, "job %llu has ended and was removed", (unsigned long long)id);
    int status = rc ? cli_fail(c) : print_end(c, job);
    weir_job_free(job);
    return status;
}

/* The argument behind the type; NULL: none. */
static const char *data_of(const cli *c, const add_opts *o)
{
    int at = o->type ? 0 : 1;
    return c->n_args > at ? c->args[at] : NULL;
}

static int fail(cli *c, const add_opts *o)
{
    const char *data = data_of(c, o);
    if (data && strcmp(data, "-") != 0)
        cli_show_json(&c->err);
    return cli_fail(c);
}

/* The store must be let go of first, so that a worker can have it. */
static int add_and_wait(cli *c, const add_opts *o, const weir_spec *spec)
{
    weir_queue *q;
    weir_added  added;
    if (cli_open(c, CLI_CHANGE, &q))
        return cli_fail(c);
    weir_code rc = cli_store_is_private(c)
        ? weir_fail(&c->err, WEIR_EINVAL, "--wait: no other process can work on %s", c->store)
        : weir_add(q, spec, &added, &c->err);
    weir_close(q);
    if (rc)
        return fail(c, o);
    if (cli_open(c, CLI_LOOK, &q))
        return cli_fail(c);
    int status = wait_for(c, q, added.id, o->wait.n);
    weir_close(q);
    return status;
}

/* ---- many ---- */

static weir_code add_bulk(cli *c, weir_queue *q, const weir_spec *specs, size_t n,
                         weir_error *err)
{
    static weir_added added[BULK];
    weir_code rc = weir_add_many(q, specs, n, NULL, added, err);
    for (size_t i = 0; i < n && !rc && !c->quiet; i++)
        print_added(c, &added[i]);
    return rc;
}

static weir_code add_count(cli *c, weir_queue *q, const add_opts *o, const weir_spec *spec)
{
    static weir_spec specs[BULK];
    uint64_t         total = (uint64_t)o->count.n;
    term_progress    bar = { .what = "adding", .total = total };
    size_t           bulk = spec->data_len ? BULK_BYTES / spec->data_len : BULK;
    bulk = bulk > BULK ? BULK : bulk < 1 ? 1 : bulk;
    for (size_t i = 0; i < bulk; i++)
        specs[i] = *spec;
    for (uint64_t done = 0; done < total;) {
        size_t    n = total - done < bulk ? (size_t)(total - done) : bulk;
        weir_code rc = add_bulk(c, q, specs, n, &c->err);
        if (rc)
            return rc;
        done += n;
        if (total > bulk && !term_is_tty(stdout))
            term_progress_show(&bar, done);
    }
    term_progress_end(&bar);
    return WEIR_OK;
}

/* The error of a bulk names its element: say the line of the input instead. */
static weir_code name_line(weir_error *err, const size_t *line_of, size_t n)
{
    weir_code code = err->code;
    size_t    i;
    int       at = 0;               /* the member, behind "jobs[3]" or "jobs[3]." */
    if (sscanf(err->field, "jobs[%zu]%n", &i, &at) != 1 || !at || i >= n)
        return code;
    return weir_fail(err, code, "line %zu: %s", line_of[i], err->msg + at + (err->msg[at] == '.'));
}

/* Bulks of lines, each of which is added entirely or not at all. */
static weir_code add_lines(cli *c, weir_queue *q, const weir_spec *spec)
{
    static weir_spec specs[BULK];
    static size_t    line_of[BULK];
    size_t           n = 0, bytes = 0, number = 0, len;
    weir_code        rc = WEIR_OK;
    for (bool more = true; more && !rc;) {
        char *line;
        more = cli_read_line(stdin, WEIR_MAX_DATA, &line, &len);
        number += more;
        if (!line) {
            rc = weir_fail(&c->err, WEIR_ENOMEM, "line %zu: out of memory", number);
            break;
        }
        if (len > 0) {
            specs[n] = *spec;
            specs[n].data = line;
            specs[n].data_len = len;
            line_of[n++] = number;
            bytes += len;
        } else {
            free(line);
        }
        if (n == BULK || bytes > BULK_BYTES || (!more && n > 0)) {
            rc = add_bulk(c, q, specs, n, &c->err);
            if (rc)
                rc = name_line(&c->err, line_of, n);
            while (n > 0)
                free((char *)specs[--n].data);
            bytes = 0;
        }
    }
    while (n > 0)
        free((char *)specs[--n].data);
    if (!rc && ferror(stdin))
        rc = weir_fail(&c->err, WEIR_EIO, "standard input: %s", strerror(errno));
    return rc;
}

/* ---- the command ---- */

/* The memory that make_spec() has allocated. */
typedef struct add_texts {
    char *data, *values;
} add_texts;

static void free_texts(add_texts *t)
{
    free(t->data);
    free(t->values);
}

static weir_code make_spec(cli *c, const add_opts *o, add_texts *texts, weir_spec *spec)
{
    *spec = (weir_spec){
        .type = o->type ? o->type : c->args[0], .priority = (int32_t)o->priority.n,
        .attempts = (int32_t)o->attempts.n,
        .delay_ms = o->delay.n, .run_at = o->at.n, .ttl_ms = o->ttl.n, .unique = o->unique,
        .deadline_at = o->deadline.n, .max_lost = (int32_t)o->max_lost.n,
        .remove_on_complete = o->remove_on_complete, .search = o->search || o->search_keys,
        .search_keys = o->search_keys
    };
    if (o->backoff) {
        weir_error why;
        if (weir_backoff_parse(o->backoff, &spec->backoff, &why))
            return weir_fail(&c->err, WEIR_EINVAL, "--backoff: '%s' is not none, fixed:1s, "
                             "linear:2s[:60s] or exponential:1s[:60s], with :20%% at the end if "
                             "you like", o->backoff);
    }
    if (o->set.n) {
        weir_error why;
        spec->values = texts->values = cli_values_json(o->set.text, o->set.n, &why);
        if (!spec->values)
            return weir_fail(&c->err, why.code, "--set: %s", why.msg);
    }
    const char *data = data_of(c, o);
    if (!data)
        return WEIR_OK;
    spec->data = data;
    spec->data_len = strlen(data);
    if (strcmp(data, "-") == 0) {
        spec->data = texts->data = cli_read_data(&spec->data_len, &c->err);
        if (!spec->data)
            return c->err.code;
    }
    if (spec->data_len == 0)
        return weir_fail(&c->err, WEIR_EINVAL, "data: is empty, not JSON");
    return WEIR_OK;
}

static const char *conflict(const cli *c, const add_opts *o)
{
    if (o->delay.set && o->at.set)
        return "--delay and --at exclude each other";
    if (o->count.set && o->lines)
        return "--count and --lines exclude each other";
    if (o->wait.set && (o->count.set || o->lines))
        return "--wait is for one job, not for --count or --lines";
    if (!o->type && c->n_args == 0)
        return "TYPE is missing";
    if (o->type && c->n_args > 1)
        return "--type names the type, so there is one argument too many";
    if (o->lines && data_of(c, o))
        return "with --lines the data comes from standard input";
    return NULL;
}

static int run_add(cli *c, const void *values)
{
    const add_opts *o = values;
    weir_spec       spec;
    weir_queue     *q = NULL;
    add_texts       texts = { 0 };
    if (conflict(c, o))
        return cli_usage(c, "%s", conflict(c, o));
    weir_code rc = make_spec(c, o, &texts, &spec);
    int       status;
    if (!rc && o->wait.set) {
        status = add_and_wait(c, o, &spec);
        free_texts(&texts);
        return status;
    }
    if (!rc)
        rc = cli_open(c, CLI_CHANGE, &q);
    if (!rc && o->lines) {
        rc = add_lines(c, q, &spec);
    } else if (!rc && o->count.set) {
        rc = add_count(c, q, o, &spec);
    } else if (!rc) {
        weir_added added;
        rc = weir_add(q, &spec, &added, &c->err);
        if (!rc && !c->quiet)
            print_added(c, &added);
    }
    weir_close(q);
    free_texts(&texts);
    return rc ? fail(c, o) : 0;
}

const command cmd_add = {
    .name = "add", .group = GROUP_START, .args = "TYPE [JSON|-]", .max_args = 2, .words = "<type>",
    .summary = "add a job; prints its id",
    .help = "The data is any JSON value up to 1 MiB: an argument, or `-` for standard input; {} "
            "when left out.\n\n"
            "With --wait the command ends when the job has ended, and prints its result: exit "
            "status 1 and the error when it failed, 12 when the time is up (the job stays).\n\n"
            "--count and --lines add in bulks of up to 1000; each bulk is added entirely or not at "
            "all.",
    .examples = "weir add mail '{\"to\":\"ann@example.org\"}' --priority high --attempts 3\n"
                "weir add report --at 09:00 --unique daily-report\n"
                "generate-jobs | weir add resize --lines\n",
    .options = add_options, .run = run_add,
};
