/* directory.h - which other processes consume which addresses. Not thread-safe: the cluster's lock
 * guards it. */
#ifndef WEIR_BUS_DIRECTORY_H
#define WEIR_BUS_DIRECTORY_H

#include "base/buf.h"
#include "base/list.h"
#include "base/named.h"
#include "store/envelope.h"

/* Another process. */
typedef struct bus_peer {
    weir_named named;
    char       name[WEIR_PROCESS];
    uint64_t   version;                 /* of its addresses, as they are in the directory */
    uint64_t   loading;                 /* the version of the list that arrives in parts; 0: none */
    uint32_t   list;                    /* the number of its last list: see bus_place */
    bool       answered;                /* its whole list has arrived */
    bool       wants_list;              /* it asked for the addresses of this process */
    int64_t    seen_ms;                 /* monotonic: when its last frame arrived */
    int64_t    suspect_ms;              /* since when it may be gone; 0: it is not suspected */
    int64_t    asked_ms;                /* when it was asked for its addresses */
    weir_dlist places;
} bus_peer;

/* An address, or a prefix of addresses, that has consumers in other processes. */
typedef struct bus_remote {
    weir_named named;
    weir_link  link;                    /* of prefixes */
    bool       prefix;
    size_t     total, turn;             /* consumers; sends */
    weir_dlist places;
    char       name[];
} bus_remote;

/* The consumers of one address in one process. */
typedef struct bus_place {
    weir_link   in_remote, in_peer;
    bus_remote *remote;
    bus_peer   *peer;
    size_t      n;
    uint32_t    list;                   /* of the peer, when it was set last */
} bus_place;

typedef struct bus_directory {
    weir_names peers, addresses;
    weir_dlist prefixes;                /* of bus_remote */
    weir_buf   changes;                 /* "+NAME", "-NAME", each with its NUL: addresses that have
                                           their first consumer, have lost the last one */
} bus_directory;

void weir__directory_fini(bus_directory *d);

bus_peer *weir__directory_peer(const bus_directory *d, const char *name);   /* NULL: unknown */
bus_peer *weir__directory_add(bus_directory *d, const char *name);          /* NULL: no memory */
void weir__directory_remove(bus_directory *d, bus_peer *p);                 /* with its addresses */

/* The address has n consumers in this process. False: out of memory. */
bool weir__directory_set(bus_directory *d, bus_peer *p, const char *address, bool prefix,
                         size_t n);
/* A whole list of its addresses follows; what is not set until the end vanishes then. Until then
 * the old entries stay, so that an address it still consumes is found at every moment. */
void weir__directory_begin(bus_peer *p);
void weir__directory_end(bus_directory *d, bus_peer *p);

/* The address; if it has no consumers, a prefix of it. NULL: neither. */
bus_remote *weir__directory_find(const bus_directory *d, const char *address);
size_t      weir__directory_count(const bus_directory *d, const char *address, bool prefix);
bool        weir__directory_consumes(const bus_remote *r, const bus_peer *p);
/* The process whose turn it is: each gets as many turns as it has consumers. */
bus_peer   *weir__directory_turn(bus_remote *r);

#endif
