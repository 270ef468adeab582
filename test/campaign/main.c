/* main.c - the campaign: every scenario in every place where it makes sense, and one table.
 *
 * Usage: campaign [OPTIONS] [SCENARIO ...], see print_help().
 * The exit status is 0 when nothing was lost, doubled or invented, and every run finished. Only a
 * worker that was frozen may begin a job again which is complete: the table shows it. */
#include "campaign/campaign.h"

#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

enum { MOST_ROWS = 64 };

static struct {
    int      faults;
    uint64_t jobs, seed;
    double   hours;
    bool     tap;                       /* each row is a case of a test, too */
} cfg = { .faults = 10, .jobs = 2000 };

typedef struct row {
    const scenario   *scenario;
    const place_kind *place;
    uint64_t          runs, faults, acknowledged, executed, lost, doubled, invented, other;
    uint64_t          faulty;           /* of the doubled, those that must not be */
    char              trouble[520];
} row;

static row    rows[MOST_ROWS];
static size_t n_rows;

/* ---- one run ---- */

static void add_up(row *w, const run *r, const ledger_result *l)
{
    w->runs++;
    w->faults += (uint64_t)r->faults;
    w->acknowledged += l->acknowledged;
    w->executed += l->executed;
    w->lost += l->lost + l->unfinished;
    w->doubled += l->added_twice + l->begun_twice + l->begun_after;
    w->invented += l->invented;
    w->faulty += l->added_twice + l->begun_twice;
    w->faulty += w->scenario->may_begin_late ? 0 : l->begun_after;
    w->other += l->failed + l->spared + l->inconsistent + (r->trouble[0] != '\0');
    if (!w->trouble[0] && (r->trouble[0] || l->trouble[0]))
        snprintf(w->trouble, sizeof w->trouble, "%s%s%s (seed %" PRIu64 ")", r->trouble,
                 r->trouble[0] && l->trouble[0] ? "; " : "", l->trouble, cfg.seed);
}

static void run_row(row *w, uint64_t seed)
{
    run r = { .wanted_faults = cfg.faults, .poison = LEDGER_NO_POISON };
    ledger_result l = { 0 };
    r.keys_each = cfg.jobs;
    if (w->scenario->poisoned)
        r.poison = cfg.jobs / 2;
    else if (!w->scenario->moves)
        r.keys_each = cfg.jobs / (uint64_t)cfg.faults + 1;
    bool ready = place_start(&r.place, w->place, seed, w->scenario->shimmed) &&
                 (!w->scenario->bad_line || place_bad_line(&r.place));
    if (ready) {
        snprintf(r.ledger, sizeof r.ledger, "%s/ledger", r.place.dir);
        w->scenario->inject(&r);
        run_finish(&r);
        if (!ledger_judge(r.ledger, r.place.judge_url, r.poison, &l) && !r.trouble[0])
            snprintf(r.trouble, sizeof r.trouble, "the judge could not read the store");
    } else {
        snprintf(r.trouble, sizeof r.trouble, "the store could not be started");
    }
    add_up(w, &r, &l);
    place_stop(&r.place);
}

/* ---- the table ---- */

static bool is_bad(const row *w)
{
    return w->lost || w->faulty || w->invented || w->other;
}

static void print_head(void)
{
    struct utsname machine;
    char           when[32];
    time_t         now = time(NULL);
    uname(&machine);
    strftime(when, sizeof when, "%Y-%m-%d", gmtime(&now));
    printf("%s, weir " WEIR_VERSION ", SQLite %s, %s %s %s, %ld processors, seed %" PRIu64 "\n\n",
           when, sqlite3_libversion(), machine.sysname, machine.release, machine.machine,
           sysconf(_SC_NPROCESSORS_ONLN), cfg.seed);
    printf("| %-14s | %-26s | %6s | %12s | %8s | %4s | %7s | %8s |\n", "scenario", "store",
           "faults", "acknowledged", "executed", "lost", "doubled", "invented");
    printf("|%.*s|%.*s|%.*s|%.*s|%.*s|%.*s|%.*s|%.*s|\n", 16, "----------------", 28,
           "----------------------------", 8, "-------:", 14, "-------------:", 10, "---------:", 6,
           "-----:", 9, "--------:", 10, "---------:");
    fflush(stdout);
}

static void print_row(const row *w)
{
    printf("| %-14s | %-26s | %6" PRIu64 " | %12" PRIu64 " | %8" PRIu64 " | %4" PRIu64
           " | %7" PRIu64 " | %8" PRIu64 " |\n",
           w->scenario->name, w->place->name, w->faults, w->acknowledged, w->executed, w->lost,
           w->doubled, w->invented);
    if (w->trouble[0] && is_bad(w))
        printf("\nFAULT: %s, %s: %s\n\n", w->scenario->name, w->place->name, w->trouble);
    if (cfg.tap)
        printf("%s - %s, %s\n", is_bad(w) ? "not ok" : "ok", w->scenario->name, w->place->name);
    fflush(stdout);
}

/* ---- all of it ---- */

static bool is_asked_for(const scenario *s, char **names)
{
    if (!*names)
        return true;
    for (; *names; names++)
        if (strcmp(*names, s->name) == 0)
            return true;
    return false;
}

static void make_rows(char **names)
{
    for (size_t i = 0; i < n_scenarios; i++) {
        const place_kind *const *kind = scenarios[i].places;
        for (; *kind && is_asked_for(&scenarios[i], names); kind++)
            rows[n_rows++] = (row){ .scenario = &scenarios[i], .place = *kind };
    }
}

static void print_scenarios(FILE *out)
{
    for (size_t i = 0; i < n_scenarios; i++)
        fprintf(out, "  %-16s %s\n", scenarios[i].name, scenarios[i].faults);
}

static int campaign(char **names)
{
    time_t  end = time(NULL) + (time_t)(cfg.hours * 3600);
    bool    bad = false;
    uint64_t random = cfg.seed;
    make_rows(names);
    if (!n_rows) {
        fprintf(stderr, "campaign: unknown scenario \"%s\"; known are:\n", names[0]);
        print_scenarios(stderr);
        return 2;
    }
    print_head();
    do {
        for (size_t i = 0; i < n_rows; i++) {
            run_row(&rows[i], ledger_random(&random));
            if (cfg.hours == 0)
                print_row(&rows[i]);
            else if (isatty(2))
                fprintf(stderr, "%s, %s: %" PRIu64 " faults\n", rows[i].scenario->name,
                        rows[i].place->name, rows[i].faults);
        }
    } while (time(NULL) < end);
    row all = { 0 };
    for (size_t i = 0; i < n_rows; i++) {
        if (cfg.hours > 0)
            print_row(&rows[i]);
        all.faults += rows[i].faults;
        all.acknowledged += rows[i].acknowledged;
        bad = bad || is_bad(&rows[i]);
    }
    printf("\n%s: %" PRIu64 " faults, %" PRIu64 " jobs acknowledged.\n",
           bad ? "NOT ALL IS WELL" : "All promises were kept", all.faults,
           all.acknowledged);
    return bad;
}

static int be_child(char **argv)
{
    return ledger_work_off(&(ledger_work){ .from = strtoull(argv[2], NULL, 10),
                                           .to = strtoull(argv[3], NULL, 10),
                                           .url = argv[4], .path = argv[5], .patient = true,
                                           .poison = strtoull(argv[6], NULL, 10),
                                           .adds_only = strcmp(argv[7], "add") == 0,
                                           .lease_ms = LEASE_MS });
}

static void print_help(void)
{
    puts("campaign [OPTIONS] [SCENARIO...]: faults on purpose in every store, and one table\n\n"
         "  --faults N    in one run (10)\n"
         "  --jobs N      added in one run, about (2000)\n"
         "  --seed N      of all choices; the table names it\n"
         "  --long HOURS  all scenarios again and again, with new seeds, and added up\n"
         "  --tap         a line of TAP for each row, too\n\n"
         "Scenarios:");
    print_scenarios(stdout);
}

/* The whole text is a number, at least `least`. */
static bool read_number(const char *option, const char *text, double least, double *out)
{
    char *end;
    *out = strtod(text, &end);
    if (end != text && !*end && *out >= least && *out < 1e15)
        return true;
    fprintf(stderr, "campaign: --%s: '%s' is not a number of at least %g\n", option, text, least);
    return false;
}

int main(int argc, char **argv)
{
    static const struct option options[] = { { "faults", required_argument, NULL, 'f' },
                                             { "jobs", required_argument, NULL, 'j' },
                                             { "seed", required_argument, NULL, 's' },
                                             { "long", required_argument, NULL, 'l' },
                                             { "tap", no_argument, NULL, 't' },
                                             { "help", no_argument, NULL, 'h' },
                                             { 0 } };
    if (argc == 8 && strcmp(argv[1], "--child") == 0)
        return be_child(argv);
    cfg.seed = (uint64_t)time(NULL);
    for (int opt, at; (opt = getopt_long(argc, argv, "", options, &at)) != -1;) {
        double n = 0, least = opt == 'f' || opt == 'j';
        if (opt == '?' || (optarg && !read_number(options[at].name, optarg, least, &n)))
            return 2;
        switch (opt) {
        case 'f': cfg.faults = n < INT_MAX ? (int)n : INT_MAX; break;
        case 'j': cfg.jobs = (uint64_t)n; break;
        case 's': cfg.seed = (uint64_t)n; break;
        case 'l': cfg.hours = n; break;
        case 't': cfg.tap = true; break;
        default:  print_help(); return 0;
        }
    }
    return campaign(argv + optind);
}
