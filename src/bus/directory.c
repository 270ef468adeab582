/* directory.c - see directory.h. */
#include "bus/directory.h"

#include <stdlib.h>
#include <string.h>

/* ---- addresses ---- */

static bus_remote *find_prefix(const bus_directory *d, const char *address, bool whole)
{
    WEIR_EACH(bus_remote, r, &d->prefixes, link)
        if (whole ? !strcmp(address, r->name) : !strncmp(address, r->name, strlen(r->name)))
            return r;
    return NULL;
}

bus_remote *weir__directory_find(const bus_directory *d, const char *address)
{
    bus_remote *r = weir__names_get(&d->addresses, address);
    return r ? r : find_prefix(d, address, false);
}

size_t weir__directory_count(const bus_directory *d, const char *address, bool prefix)
{
    const bus_remote *r = prefix ? find_prefix(d, address, false)
                                 : weir__names_get(&d->addresses, address);
    return r ? r->total : 0;
}

bus_peer *weir__directory_turn(bus_remote *r)
{
    size_t at = r->turn++ % r->total;
    WEIR_EACH(bus_place, p, &r->places, in_remote) {
        if (at < p->n)
            return p->peer;
        at -= p->n;
    }
    return NULL;                        /* the total is the sum of the places: not reached */
}

static bus_remote *make_remote(bus_directory *d, const char *name, bool prefix)
{
    bus_remote *r = prefix ? WEIR__NAMED_NEW(bus_remote, name)
                           : WEIR__NAMES_ADD(&d->addresses, bus_remote, name);
    if (!r)
        return NULL;
    r->prefix = prefix;
    if (prefix)
        weir__list_append(&d->prefixes, &r->link);
    return r;
}

static void free_if_empty(bus_directory *d, bus_remote *r)
{
    if (r->places.first)
        return;
    if (r->prefix)
        weir__list_remove(&d->prefixes, &r->link);
    else
        weir__names_remove(&d->addresses, &r->named);
    free(r);
}

/* ---- places ---- */

static bus_place *find_place(const bus_remote *r, const bus_peer *p)
{
    WEIR_EACH(bus_place, at, &r->places, in_remote)
        if (at->peer == p)
            return at;
    return NULL;
}

bool weir__directory_consumes(const bus_remote *r, const bus_peer *p)
{
    return find_place(r, p);
}

/* Out of memory: who waits for the news does not have it. */
static void note_change(bus_directory *d, char sign, const bus_remote *r)
{
    if (r->prefix || !r->total != (sign == '-'))
        return;
    weir__buf_char(&d->changes, sign);
    weir__buf_add(&d->changes, r->name, strlen(r->name) + 1);
    if (d->changes.failed)
        weir__buf_fini(&d->changes);
}

static void remove_place(bus_directory *d, bus_place *at)
{
    bus_remote *r = at->remote;
    r->total -= at->n;
    weir__list_remove(&r->places, &at->in_remote);
    weir__list_remove(&at->peer->places, &at->in_peer);
    free(at);
    note_change(d, '-', r);
    free_if_empty(d, r);
}

static bool add_place(bus_directory *d, bus_remote *r, bus_peer *p, size_t n)
{
    bus_place *at = calloc(1, sizeof *at);
    if (!at) {
        free_if_empty(d, r);
        return false;
    }
    *at = (bus_place){ .remote = r, .peer = p, .n = n, .list = p->list };
    weir__list_append(&r->places, &at->in_remote);
    weir__list_append(&p->places, &at->in_peer);
    bool first = !r->total;
    r->total += n;
    if (first)
        note_change(d, '+', r);
    return true;
}

bool weir__directory_set(bus_directory *d, bus_peer *p, const char *address, bool prefix, size_t n)
{
    bus_remote *r = prefix ? find_prefix(d, address, true)
                           : weir__names_get(&d->addresses, address);
    bus_place  *at = r ? find_place(r, p) : NULL;
    if (at && n) {
        r->total += n - at->n;
        at->n = n;
        at->list = p->list;
    } else if (at) {
        remove_place(d, at);
    } else if (n) {
        if (!r)
            r = make_remote(d, address, prefix);
        return r && add_place(d, r, p, n);
    }
    return true;
}

void weir__directory_begin(bus_peer *p)
{
    p->list++;
}

void weir__directory_end(bus_directory *d, bus_peer *p)
{
    WEIR_EACH(bus_place, at, &p->places, in_peer)
        if (at->list != p->list)
            remove_place(d, at);
}

/* ---- processes ---- */

bus_peer *weir__directory_peer(const bus_directory *d, const char *name)
{
    return weir__names_get(&d->peers, name);
}

bus_peer *weir__directory_add(bus_directory *d, const char *name)
{
    bus_peer *p = calloc(1, sizeof *p);
    if (!p)
        return NULL;
    memccpy(p->name, name, '\0', sizeof p->name - 1);
    if (weir__names_put(&d->peers, &p->named, p->name))
        return p;
    free(p);
    return NULL;
}

void weir__directory_remove(bus_directory *d, bus_peer *p)
{
    weir__directory_begin(p);
    weir__directory_end(d, p);
    weir__names_remove(&d->peers, &p->named);
    free(p);
}

void weir__directory_fini(bus_directory *d)
{
    size_t pos = 0;
    for (bus_peer *p; (p = weir__names_next(&d->peers, &pos, NULL)); pos = 0)
        weir__directory_remove(d, p);
    weir__names_fini(&d->peers);
    weir__names_fini(&d->addresses);
    weir__buf_fini(&d->changes);
}
