/* fuzz_redis_record.c - what a take finds in Redis: a piece, and in it specs. The first byte is the
 * place that is wanted, the second how many bytes of run follow; the rest is the piece. */
#include <string.h>

#include "fuzz/fuzz.h"
#include "store/redis/engine/engine.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2 || size - 2 < data[1])
        return 0;
    const char *rest = (const char *)data + 2;
    mp_slice    run = { rest, data[1] }, spec = { NULL, 0 };
    redisReply  one = { .type = REDIS_REPLY_INTEGER, .integer = 1 };
    redisReply  skip = { .type = REDIS_REPLY_INTEGER, .integer = data[0] };
    redisReply  piece = { .type = REDIS_REPLY_STRING, .str = (char *)(uintptr_t)rest + run.len,
                          .len = size - 2 - run.len };
    redisReply  some = { .type = REDIS_REPLY_ARRAY, .elements = 3,
                         .element = (redisReply *[]){ &one, &skip, &piece } };
    weir_job   *job = NULL;
    weir_error  err = { 0 };
    if (!weir__piece_spec(&some, 0, &spec))
        return 0;
    MUST(spec.at >= piece.str && spec.len <= piece.len);
    MUST((size_t)(spec.at - piece.str) <= piece.len - spec.len);
    if (!weir__record_get(&job, 7, run, spec, NULL, &err)) {
        MUST(job && job->id == 7 && strlen(job->data) <= job->data_len);
        weir_job_free(job);
    } else {
        MUST(!job && err.code == WEIR_ECORRUPT);
    }
    return 0;
}
