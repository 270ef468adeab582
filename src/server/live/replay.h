/* replay.h - the answers to the last batches, kept for a caller whose connection broke: when the
 * same batch arrives again, with the same token, it is not done again. One answer for each caller,
 * in memory: it is gone with this run of the server, which batches therefore name (op/batch.h). Any
 * thread. */
#ifndef WEIR_SERVER_REPLAY_H
#define WEIR_SERVER_REPLAY_H

#include "base/buf.h"
#include "server/http/request.h"

enum {
    SRV_MAX_CALLERS = 4096,                 /* then the one idle for longest is forgotten */
    SRV_MAX_REPLAY  = 64 * 1024 * 1024      /* bytes of answers; then the oldest are */
};

typedef struct srv_replays srv_replays;
typedef struct srv_replay  srv_replay;      /* a caller */

weir_code srv_replays_create(srv_replays **out, weir_error *err);
void srv_replays_destroy(srv_replays *s);   /* no request is left; NULL is fine */

/* A batch with a number came. The answer: it is new and has to be done, then srv_replay_end() must
 * follow. NULL: it is a repetition, and the request was answered or will be, when the first is. */
srv_replay *srv_replay_begin(srv_replays *s, srv_request *r, const char *caller, uint64_t number);

/* It is done, with this answer, which is copied. */
void srv_replay_end(srv_replays *s, srv_replay *c, const weir_buf *answer);

#endif
