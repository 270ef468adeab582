/* workqueue_file.c - the settings of work queues as JSON: in the server's settings, in the file of
 * work queues that were made while it served, and in the API. See workqueues.h. */
#include <string.h>

#include "server/bus/workqueues.h"

/* The members to read: the settings, and the names that only files have. */
typedef struct entry {
    srv_workqueue   is;             /* first */
    weir_json_piece persistor;
} entry;

#define MEMBERS                                                                                   \
    WEIR_FIELD("process_timeout", weir__as_ms, offsetof(srv_workqueue, process_timeout_ms),       \
               .min = 1, .max = SRV_MAX_PROCESS_TIMEOUT_MS),                                      \
    WEIR_FIELD("persist", weir__as_bool, offsetof(srv_workqueue, persist)),                       \
    WEIR_FIELD("collection", weir__as_type, offsetof(srv_workqueue, collection)),                 \
    WEIR_FIELD("timed_out_first", weir__as_bool, offsetof(srv_workqueue, timed_out_first))

const weir_field srv_workqueue_fields[] = { MEMBERS, { 0 } };

const weir_field srv_workqueue_args[] = {
    WEIR_FIELD("address", weir__as_text, offsetof(srv_workqueue, address), .needed = true,
               .min = 1, .max = WEIR_MAX_BUS_ADDRESS),
    MEMBERS,
    { 0 }
};

static const weir_field entry_fields[] = {
    WEIR_FIELD("address", weir__as_text, offsetof(entry, is.address), .min = 1,
               .max = WEIR_MAX_BUS_ADDRESS),
    MEMBERS,
    WEIR_FIELD("persistor_address", weir__as_raw, offsetof(entry, persistor)),
    { 0 }
};

static const weir_field file_fields[] = {
    WEIR_FIELD("work_queues", weir__as_list, 0, .needed = true, .max = SRV_MAX_WORKQUEUES,
               .fields = entry_fields, .size = sizeof(entry)),
    { 0 }
};

static weir_code check(const srv_workqueue *all, size_t i, weir_error *err)
{
    if (!all[i].address)
        return weir_fail(err, WEIR_EINVAL, "work_queues[%zu]: address must be specified in config "
                         "for busmod", i);      /* the words of mod-work-queue */
    if (all[i].collection && !all[i].persist)
        return weir_fail(err, WEIR_EINVAL, "work_queues[%zu].collection: only a persistent work "
                         "queue has one; add \"persist\":true", i);
    for (size_t k = 0; k < i; k++)
        if (strcmp(all[i].address, all[k].address) == 0)
            return weir_fail(err, WEIR_EINVAL, "work_queues[%zu].address: \"%s\" is given twice", i,
                             all[i].address);
    return WEIR_OK;
}

weir_code srv_workqueues_parse(const char *text, size_t len, weir_arena *arena,
                               srv_workqueue **out, size_t *n, weir_error *err)
{
    enum { DEPTH = 4 };
    weir_items  list = { 0 };
    weir_reader in = { .alloc = weir__arena_alloc, .ctx = arena };
    weir_code   rc = weir__read_check(&in, text, len, DEPTH);
    *out = NULL;
    *n = 0;
    if (!rc)
        rc = weir__read(&in, file_fields, (weir_json_piece){ text, len }, &list);
    if (rc)
        return weir_fail(err, rc, "%s", in.err.msg);
    srv_workqueue *all = weir__arena_alloc(arena, (list.n + 1) * sizeof *all);
    if (!all)
        return weir_fail(err, WEIR_ENOMEM, "work_queues: out of memory");
    for (size_t i = 0; !rc && i < list.n; i++) {
        const entry *e = (const entry *)list.item + i;
        all[i] = e->is;
        all[i].persist |= e->persistor.len > 0;
        rc = check(all, i, err);
    }
    if (!rc) {
        *out = all;
        *n = list.n;
    }
    return rc;
}

void srv_workqueue_write(weir_buf *out, const srv_workqueue *is)
{
    int64_t ms = is->process_timeout_ms ? is->process_timeout_ms : WEIR_WORK_TIMEOUT_MS;
    weir__buf_str(out, "\"address\":");
    weir__json_string(out, is->address, strlen(is->address));
    weir__buf_printf(out, ",\"process_timeout\":%lld,\"timed_out_first\":%s,\"persist\":%s",
                     (long long)ms, is->timed_out_first ? "true" : "false",
                     is->persist ? "true" : "false");
    if (is->persist && is->collection) {
        weir__buf_str(out, ",\"collection\":");
        weir__json_string(out, is->collection, strlen(is->collection));
    }
}

bool srv_workqueue_equal(const srv_workqueue *a, const srv_workqueue *b)
{
    weir_buf x = { 0 }, y = { 0 };
    srv_workqueue_write(&x, a);
    srv_workqueue_write(&y, b);
    bool equal = !x.failed && !y.failed && x.len == y.len && memcmp(x.data, y.data, x.len) == 0;
    weir__buf_fini(&x);
    weir__buf_fini(&y);
    return equal;
}
