/* campaign.h - faults on purpose, under load, in every store, with a ledger outside of it.
 *
 * A place is a store with the servers it needs, started for one run. A scenario is a sort of fault
 * and the places it makes sense in. A run keeps some children at work (support/ledger.h), injects
 * the faults one after the other, lets the children finish everything, and judges. */
#ifndef WEIR_TEST_CAMPAIGN_H
#define WEIR_TEST_CAMPAIGN_H

#include "campaign/shim.h"
#include "support/ledger.h"
#include "support/proxy.h"
#include "support/redis_rig.h"

enum { MOST_CHILDREN = 4, MOST_LINES = 3, LEASE_MS = 1500 };

typedef struct place place;

/* One sort of store. */
typedef struct place_kind {
    const char *name;               /* in the table: "redis cluster" */
    const char *scheme;             /* of its URL */
    const char *query;              /* of its URL, or NULL */
    bool      (*start)(place *p);   /* sets url; false: could not */
    void      (*kill_server)(place *p);     /* kill -9, and start again; NULL: has no server */
    int         children;           /* processes at work at once */
} place_kind;

struct place {
    const place_kind *kind;
    char              dir[TEMPDIR_MAX];
    char              url[600];         /* where children find the store */
    char              judge_url[600];   /* where the judge finds it: without a bad line */
    char              source[600];      /* of jobs that move: url and judge_url are the target */
    rig              *server;           /* Redis */
    rig_nodes        *cluster;
    pid_t             weir;             /* `weir serve` */
    int               port;             /* of `weir serve` */
    proxy            *line[MOST_LINES]; /* between the children and the servers */
    int               n_lines;
    shim_page        *shim;             /* shared with its processes; NULL: they have none */
    uint64_t          random;
};

extern const place_kind place_sqlite_disk, place_sqlite_os, place_shared, place_redis, place_kue,
    place_vertx, place_cluster, place_http;

/* `shimmed`: its processes run under the shim. */
bool place_start(place *p, const place_kind *kind, uint64_t seed, bool shimmed);
void place_stop(place *p);              /* also one that did not start */
bool place_bad_line(place *p);          /* put a proxy before each server */
void place_cut_after(place *p, uint32_t bytes);     /* see proxy.h */
int  place_cuts(place *p);
/* The jobs move to another file: from here on url and judge_url are that one. */
void place_set_target(place *p);
/* Start `weir migrate` between the two. */
pid_t place_migrate(place *p);
/* In a child, between fork() and exec(): run under the shim, if the place has one. */
void place_use_shim(const place *p);

/* ---- one run ---- */

typedef struct run {
    place    place;
    char     ledger[TEMPDIR_MAX + 16];
    uint64_t keys_each;                 /* jobs that a child adds */
    uint64_t next_key;
    bool     adds_only;                 /* children add jobs and leave them to others */
    uint64_t poison;
    pid_t    child[MOST_CHILDREN];      /* oldest first; 0: none */
    int      n_children;
    int      wanted_faults, faults;
    char     trouble[200];              /* what went wrong besides what the judge finds; or "" */
} run;

pid_t run_start_child(run *r);          /* one more, with jobs of its own */
void  run_kill_oldest(run *r);          /* kill -9 */
void  run_keep_busy(run *r);            /* start children anew where some have finished */
void  run_await_acknowledged(run *r);   /* until one more add was acknowledged */
void  run_finish(run *r);               /* one more child, then wait until all have finished */
bool  run_ended(run *r);                /* wait for the oldest: false: it was killed by a signal */
void  run_pause(run *r, int from_ms, int to_ms);    /* a random while: the moment of a fault */

typedef struct scenario {
    const char        *name;
    const char        *faults;          /* what one fault is */
    void             (*inject)(run *r); /* all of them, under load */
    bool               bad_line, shimmed, poisoned;
    bool               moves;           /* all jobs are there before the faults begin */
    bool               may_begin_late;  /* a job may begin again after it was complete: at least
                                           once is all that can be promised */
    const place_kind  *places[9];       /* NULL at the end */
} scenario;

extern const scenario scenarios[];
extern const size_t   n_scenarios;

#endif
