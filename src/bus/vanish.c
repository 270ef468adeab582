/* vanish.c - see vanish.h. */
#include "bus/vanish.h"

#include <stdlib.h>
#include <string.h>

/* An address that a watch cares for. */
typedef struct care {
    weir_named named;
    size_t     times;
    char       name[];
} care;

/* Waits in the mailbox of the watch. */
typedef struct vanish_call {
    delivery      d;                    /* first */
    vanish_watch *watch;
    const char   *process;              /* in room */
    char          room[];               /* the address and the process */
} vanish_call;

static void run(delivery *d)
{
    vanish_call *c = (vanish_call *)d;
    c->watch->fn(c->watch->ctx, c->room, c->process);
    free(c);
}

/* Out of memory: a processor that is gone is noticed when it is given work. */
void weir__vanish_post(weir_bus *b, const char *address, const char *process,
                       weir_mailbox **wakes)
{
    size_t len = strlen(address) + 1, process_len = strlen(process) + 1;
    WEIR_EACH(vanish_watch, w, &b->vanishing, link) {
        if (!weir__names_get(&w->cares, address))
            continue;
        vanish_call *c = calloc(1, sizeof *c + len + process_len);
        if (!c)
            continue;
        c->d.call = run;
        c->watch = w;
        memcpy(c->room, address, len);
        c->process = memcpy(c->room + len, process, process_len);
        pthread_mutex_lock(&w->mailbox->lock);
        weir__mailbox_append(w->mailbox, &c->d, wakes);
        pthread_mutex_unlock(&w->mailbox->lock);
    }
}

void weir__vanish_start(weir_bus *b, vanish_watch *w)
{
    pthread_mutex_lock(&b->lock);
    weir__list_append(&b->vanishing, &w->link);
    pthread_mutex_unlock(&b->lock);
}

void weir__vanish_stop(weir_bus *b, vanish_watch *w)
{
    size_t pos = 0;
    pthread_mutex_lock(&b->lock);
    weir__list_remove(&b->vanishing, &w->link);
    for (care *c; (c = weir__names_next(&w->cares, &pos, NULL)); pos = 0) {
        weir__names_remove(&w->cares, &c->named);
        free(c);
    }
    weir__names_fini(&w->cares);
    pthread_mutex_unlock(&b->lock);
}

/* The watch of this address, which is made when it is missing. The bus is locked. */
static care *find(vanish_watch *w, const char *address)
{
    care *c = weir__names_get(&w->cares, address);
    return c ? c : WEIR__NAMES_ADD(&w->cares, care, address);
}

bool weir__vanish_add(weir_bus *b, vanish_watch *w, const char *address)
{
    pthread_mutex_lock(&b->lock);
    care *c = find(w, address);
    if (c)
        c->times++;
    pthread_mutex_unlock(&b->lock);
    return c;
}

void weir__vanish_drop(weir_bus *b, vanish_watch *w, const char *address)
{
    pthread_mutex_lock(&b->lock);
    care *c = weir__names_get(&w->cares, address);
    if (c && --c->times == 0) {
        weir__names_remove(&w->cares, &c->named);
        free(c);
    }
    pthread_mutex_unlock(&b->lock);
}
