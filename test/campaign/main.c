/* main.c - the campaign: every scenario in every place where it makes sense, and one table.
 *
 * Usage: campaign [--faults N] [--jobs N] [--seed N] [--long HOURS] [SCENARIO ...]
 *   --faults  how many faults in one run (default 10)
 *   --jobs    how many jobs are added in one run, about (default 2000)
 *   --long    go through all scenarios again and again, with new seeds, and add up
 *   SCENARIO  only these: "workers killed", "poison" ...
 * The exit status is 0 when nothing was lost, doubled or invented, and every run finished. Only a
 * worker that was frozen may begin a job again which is complete: the table shows it. */
#include "campaign/campaign.h"

#include <getopt.h>
#include <inttypes.h>
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

static int campaign(char **names)
{
    time_t  end = time(NULL) + (time_t)(cfg.hours * 3600);
    bool    bad = false;
    uint64_t random = cfg.seed;
    make_rows(names);
    if (!n_rows) {
        fprintf(stderr, "campaign: unknown scenario \"%s\"; known are:\n", names[0]);
        for (size_t i = 0; i < n_scenarios; i++)
            fprintf(stderr, "  %-16s %s\n", scenarios[i].name, scenarios[i].faults);
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

int main(int argc, char **argv)
{
    static const struct option options[] = { { "faults", required_argument, NULL, 'f' },
                                             { "jobs", required_argument, NULL, 'j' },
                                             { "seed", required_argument, NULL, 's' },
                                             { "long", required_argument, NULL, 'l' },
                                             { "tap", no_argument, NULL, 't' },
                                             { 0 } };
    if (argc == 8 && strcmp(argv[1], "--child") == 0)
        return be_child(argv);
    cfg.seed = (uint64_t)time(NULL);
    for (int opt; (opt = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        switch (opt) {
        case 'f': cfg.faults = atoi(optarg); break;
        case 'j': cfg.jobs = strtoull(optarg, NULL, 10); break;
        case 's': cfg.seed = strtoull(optarg, NULL, 10); break;
        case 'l': cfg.hours = atof(optarg); break;
        case 't': cfg.tap = true; break;
        default:  return 2;
        }
    }
    if (cfg.faults < 1 || cfg.jobs < 1 || cfg.hours < 0) {
        fprintf(stderr, "campaign: --faults and --jobs are at least 1, --long at least 0\n");
        return 2;
    }
    return campaign(argv + optind);
}
