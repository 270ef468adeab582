/* take.c - become the owner of the file, or find out who is: see share.h. */
#include "store/sqlite/share.h"

#include <time.h>

enum {
    FIND_MS = 10 * 1000,            /* an owner opens the file, or leaves: how long to wait */
    FIRST_PAUSE_MS = 1,
    LONGEST_PAUSE_MS = 20
};

/* The lock is ours. */
static weir_code take_over(sq_store *s, weir_error *err)
{
    bool attended = s->file.attended != NULL;
    atomic_store(&s->owns, true);   /* before the socket is there: it is not to be watched */
    weir_code rc = weir__sq_open_owned(s, attended, err);
    if (rc) {
        atomic_store(&s->owns, false);
        return rc;
    }
    weir__sq_file_part(s);
    s->peer = NULL;                 /* its caller has it */
    s->base.waits = false;
    atomic_store(&s->serves, true);
    if (atomic_load(&s->wanted))
        weir__sq_serve_start(s->server);
    if (attended && s->env.lost)
        s->env.lost(s->env.ctx);
    return WEIR_OK;
}

static void pause_ms(int64_t ms)
{
    nanosleep(&(struct timespec){ .tv_nsec = ms * 1000000L }, NULL);
}

weir_code weir__sq_find_owner(sq_store *s, weir_error *err)
{
    int64_t begun = weir__monotonic_ms(), pause = FIRST_PAUSE_MS;
    bool    alone;
    for (;;) {
        weir_error why;
        weir_code  rc = weir__sq_lock_owner(&s->owner, s->path, s->name, s->env.run != NULL, &alone,
                                            err);
        if (!rc)
            return take_over(s, err);
        if (rc != WEIR_EBUSY)
            return rc;
        if (!alone && !(rc = weir__sq_peer_connect(s, &why))) {
            weir__sq_file_attend(s);
            s->base.waits = true;
            return WEIR_OK;
        }
        if (!alone && rc != WEIR_EUNAVAIL && rc != WEIR_ETIMEOUT) {
            *err = why;
            return rc;
        }
        int64_t waited = weir__monotonic_ms() - begun;
        if (waited >= s->env.wait_owner_ms && (alone || waited >= FIND_MS))
            return rc == WEIR_ETIMEOUT ? weir__sq_silent(s->path, err) : err->code;
        pause_ms(pause);
        pause = pause * 2 < LONGEST_PAUSE_MS ? pause * 2 : LONGEST_PAUSE_MS;
    }
}
