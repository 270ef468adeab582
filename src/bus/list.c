/* list.c - which addresses have consumers, in this process and in others. */
#include "bus/inner.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "bus/process.h"

/* Rows with offsets of their names, which move while the list grows. */
typedef struct collector {
    weir_buf   rows, names;
    weir_names *here;                   /* left out of what is elsewhere */
} collector;

typedef struct row {
    size_t           name;              /* offset */
    weir_bus_address what;
} row;

static void add_row(collector *l, const char *name, weir_bus_address what)
{
    row r = { .name = l->names.len, .what = what };
    weir__buf_add(&l->names, name, strlen(name) + 1);
    weir__buf_add(&l->rows, &r, sizeof r);
}

static void add_elsewhere(void *ctx, const char *name, size_t consumers)
{
    collector *l = ctx;
    if (!weir__names_get(l->here, name))
        add_row(l, name, (weir_bus_address){ .elsewhere = consumers });
}

/* The bus is locked. */
static void collect(weir_bus *b, collector *l)
{
    weir_transport *t = b->transport;
    size_t          pos = 0;
    for (bus_address *a = NULL; (a = weir__names_next(&b->addresses, &pos, a));)
        add_row(l, a->name, (weir_bus_address){
            .here = a->n, .delivered = a->delivered,
            .per_second = weir__rate_get(&a->rate, weir__coarse_ms()),
            .elsewhere = t && !t->ops->central ? t->ops->count(t, a->name, false) : 0 });
    if (t)
        t->ops->list(t, add_elsewhere, l);
}

static int by_name(const void *x, const void *y)
{
    return strcmp(((const weir_bus_address *)x)->address, ((const weir_bus_address *)y)->address);
}

/* One block: the list, its rows, the names. */
static weir_bus_addresses *join_rows(const collector *l)
{
    size_t              n = l->rows.len / sizeof(row);
    weir_bus_addresses *out = malloc(sizeof *out + n * sizeof *out->address + l->names.len);
    if (!out)
        return NULL;
    *out = (weir_bus_addresses){ .n = n, .address = (weir_bus_address *)(out + 1) };
    char *names = (char *)(out->address + n);
    if (n)
        memcpy(names, l->names.data, l->names.len);
    for (size_t i = 0; i < n; i++) {
        row r;
        memcpy(&r, l->rows.data + i * sizeof r, sizeof r);
        out->address[i] = r.what;
        out->address[i].address = names + r.name;
    }
    if (n)
        qsort(out->address, n, sizeof *out->address, by_name);
    return out;
}

weir_code weir_bus_list(weir_bus *b, weir_bus_addresses **out, weir_error *err)
{
    collector l = { .here = &b->addresses };
    pthread_mutex_lock(&b->lock);
    collect(b, &l);
    pthread_mutex_unlock(&b->lock);
    *out = l.rows.failed || l.names.failed ? NULL : join_rows(&l);
    weir__buf_fini(&l.rows);
    weir__buf_fini(&l.names);
    return *out ? WEIR_OK : weir_fail(err, WEIR_ENOMEM, "bus: out of memory");
}

void weir_bus_addresses_free(weir_bus_addresses *list)
{
    free(list);
}

/* ---- processes ---- */

const char *weir__bus_process(const weir_bus *b)
{
    return b->transport ? b->transport->process : NULL;
}

void weir__bus_processes(weir_bus *b, const char *address, weir_process_fn *fn, void *ctx)
{
    if (weir__bus_process(b))
        b->transport->ops->processes(b->transport, address, fn, ctx);
}
