/* scenarios.c - the faults of the campaign. See campaign.h. */
#include "campaign/campaign.h"

#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>

static void kill_workers(run *r)
{
    while (r->faults < r->wanted_faults) {
        run_await_acknowledged(r);
        run_pause(r, 5, 200);
        run_keep_busy(r);
        run_kill_oldest(r);
        r->faults++;
    }
}

static void kill_servers(run *r)
{
    for (; r->faults < r->wanted_faults; r->faults++) {
        run_keep_busy(r);
        run_pause(r, 20, 300);
        r->place.kind->kill_server(&r->place);
    }
}

/* Connections end after some thousand bytes, in the middle of a request or of an answer. */
static void cut_lines(run *r)
{
    place_cut_after(&r->place, 20000);
    while (r->faults < r->wanted_faults && !r->trouble[0]) {
        run_keep_busy(r);
        run_pause(r, 10, 50);
        r->faults = place_cuts(&r->place);
    }
    place_cut_after(&r->place, 0);
}

/* Workers that stop for longer than their leases last, and then go on as if nothing had been. */
static void freeze_workers(run *r)
{
    for (; r->faults < r->wanted_faults; r->faults++) {
        run_keep_busy(r);
        run_pause(r, 5, 100);
        pid_t victim = r->child[0];
        kill(victim, SIGSTOP);
        run_pause(r, LEASE_MS, 2 * LEASE_MS);
        kill(victim, SIGCONT);
    }
}

/* Servers of Redis are out of memory instead. */
static void fill(run *r, bool full)
{
    const rig_nodes *nodes = r->place.cluster;
    if (r->place.server)
        rig_do(r->place.server, "CONFIG SET maxmemory %s", full ? "1" : "0");
    for (size_t i = 0; nodes && i < nodes->n; i++)
        rig_do(nodes->node[i], "CONFIG SET maxmemory %s", full ? "1" : "0");
    if (!r->place.server && !nodes)
        r->place.shim->disk_full = full;
}

static void fill_disk(run *r)
{
    for (; r->faults < r->wanted_faults; r->faults++) {
        run_keep_busy(r);
        run_pause(r, 20, 200);
        fill(r, true);
        run_pause(r, 20, 200);
        fill(r, false);
    }
}

/* An hour or two forth, and back again, for all processes of the place at once. */
static void step_clock(run *r)
{
    enum { LATEST_HOUR = 2 };
    static const int hours[] = { 1, LATEST_HOUR, 1, 0, -1, 0 };
    const size_t     n = sizeof hours / sizeof *hours;
    for (; r->faults < r->wanted_faults; r->faults++) {
        run_keep_busy(r);
        run_pause(r, 50, 400);
        r->place.shim->clock_step_s = 3600 * hours[(size_t)r->faults % n];
    }
    r->place.shim->clock_step_s = 3600 * LATEST_HOUR;   /* delays are moments of Redis's clock */
}

/* One job kills every process that begins it: each death is a fault, and a new process follows.
 * It is given up after its fourth worker, so it is over soon. */
static void poison(run *r)
{
    run_start_child(r);
    r->keys_each = 0;               /* those that follow add nothing */
    while (r->n_children < r->place.kind->children)
        run_start_child(r);
    while (r->n_children) {
        if (!run_ended(r)) {
            r->faults++;
            run_start_child(r);
        }
    }
}

/* Jobs that wait move to another store, where they are worked on meanwhile. */
static void kill_migrations(run *r)
{
    int status = 0;
    r->adds_only = true;
    run_start_child(r);
    run_ended(r);
    r->adds_only = false;
    r->keys_each = 0;
    place_set_target(&r->place);
    for (; r->faults < r->wanted_faults; r->faults++) {
        pid_t pid = place_migrate(&r->place);
        run_keep_busy(r);
        run_pause(r, 20, 300);
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
    }
    waitpid(place_migrate(&r->place), &status, 0);
    if (status && !r->trouble[0])
        snprintf(r->trouble, sizeof r->trouble, "the last migrate ended with status %d",
                 WEXITSTATUS(status));
}

const scenario scenarios[] = {
    { .name = "workers killed", .faults = "kill -9 of a process that adds and works",
      .inject = kill_workers,
      .places = { &place_sqlite_disk, &place_sqlite_os, &place_shared, &place_redis, &place_kue,
                  &place_vertx, &place_cluster, &place_http } },
    { .name = "servers killed", .faults = "kill -9 of Redis (AOF, always), a node or weir serve",
      .inject = kill_servers,
      .places = { &place_redis, &place_kue, &place_vertx, &place_cluster, &place_http } },
    { .name = "lines cut", .faults = "a connection ends in mid-request or mid-answer",
      .inject = cut_lines, .bad_line = true,
      .places = { &place_redis, &place_kue, &place_vertx, &place_cluster, &place_http } },
    { .name = "workers frozen", .faults = "SIGSTOP for longer than a lease, then SIGCONT",
      .inject = freeze_workers, .may_begin_late = true,
      .places = { &place_sqlite_disk, &place_sqlite_os, &place_shared, &place_redis, &place_kue,
                  &place_vertx, &place_cluster, &place_http } },
    { .name = "disk full", .faults = "no room for a while (Redis: maxmemory)",
      .inject = fill_disk, .shimmed = true,
      .places = { &place_sqlite_disk, &place_sqlite_os, &place_shared, &place_redis, &place_kue,
                  &place_vertx, &place_cluster, &place_http } },
    { .name = "clock stepped", .faults = "the wall clock goes an hour forth or back",
      .inject = step_clock, .shimmed = true,
      .places = { &place_sqlite_disk, &place_sqlite_os, &place_shared, &place_redis, &place_kue,
                  &place_vertx, &place_cluster, &place_http } },
    { .name = "poison", .faults = "a job kills its process (it must fail, no other may)",
      .inject = poison, .poisoned = true,
      .places = { &place_sqlite_disk, &place_sqlite_os, &place_shared, &place_redis, &place_kue,
                  &place_vertx, &place_cluster, &place_http } },
    { .name = "migrate killed", .faults = "kill -9 of weir migrate, with workers in the target",
      .inject = kill_migrations, .moves = true,
      .places = { &place_sqlite_disk, &place_sqlite_os, &place_redis, &place_kue, &place_vertx,
                  &place_cluster, &place_http } },
};
const size_t n_scenarios = sizeof scenarios / sizeof *scenarios;
