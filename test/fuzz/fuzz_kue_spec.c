/* fuzz_kue_spec.c - the bodies of Kue's POST /job and Vert.x Kue's PUT /job, JSON printed in both
 * ways, and the Accept header. What is read as a job can be added; printing changes nothing but
 * white space. */
#include <string.h>

#include "core/job.h"
#include "fuzz/fuzz.h"
#include "server/kue/kue.h"

typedef struct block {
    struct block *next;
    max_align_t   bytes[];
} block;

static void *take(void *ctx, size_t size)
{
    block **all = ctx, *b = calloc(1, sizeof *b + size);
    MUST(b);
    b->next = *all;
    *all = b;
    return b->bytes;
}

static void print_both_ways(const char *text, size_t size)
{
    weir_buf    compact = { 0 }, pretty = { 0 }, again = { 0 };
    size_t      where;
    const char *why;
    srv_json_compact(&compact, text, size);
    srv_json_pretty(&pretty, text, size);
    MUST(weir__json_valid(pretty.data, pretty.len, SRV_MAX_DEPTH, &where, &why));
    srv_json_compact(&again, pretty.data, pretty.len);
    MUST(again.len == compact.len && !memcmp(again.data, compact.data, again.len));
    weir__buf_fini(&compact);
    weir__buf_fini(&pretty);
    weir__buf_fini(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    block          *all = NULL;
    weir_reader     in = { .alloc = take, .ctx = &all };
    weir_spec       spec;
    srv_vertx_body  body;
    char           *text = malloc(size + 1);
    MUST(text);
    memcpy(text, data, size);
    text[size] = '\0';
    srv_accepts_json(text);
    if (!weir__read_check(&in, text, size, SRV_MAX_DEPTH)) {
        weir_json_piece whole = { text, size };
        print_both_ways(text, size);
        if (!srv_kue_spec(&in, whole, &spec))
            MUST(!weir__spec_check(&spec, -1, NULL));
        else
            MUST(*in.err.msg);
        if (!srv_vertx_spec(&in, whole, &body))
            MUST(!body.spec.type || !weir__spec_check(&body.spec, -1, NULL));
        else
            MUST(*in.err.msg);
    }
    while (all) {
        block *next = all->next;
        free(all);
        all = next;
    }
    free(text);
    return 0;
}
