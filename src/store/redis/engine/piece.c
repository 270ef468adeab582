/* piece.c - specs of jobs that are added together go in pieces, and come back so from a take: see
 * REDIS_PIECE. */
#include "store/redis/engine/engine.h"

void weir__piece_add(redis_lane *s, uint32_t part, mp_slice spec)
{
    redis_piece *p = &s->draft[part].piece;
    if (p->n == REDIS_PIECE)
        weir__piece_close(s, part);
    p->length[p->n++] = (uint16_t)spec.len;
    weir__buf_add(&p->specs, spec.at, spec.len);
}

void weir__piece_close(redis_lane *s, uint32_t part)
{
    redis_piece *p = &s->draft[part].piece;
    char         head[1 + 2 * REDIS_PIECE];
    size_t       len = 0;
    if (!p->n)
        return;
    if (s->draft[part].group.n > 1) {
        head[len++] = (char)p->n;
        for (uint32_t i = 0; i < p->n; i++) {
            head[len++] = (char)(p->length[i] >> 8);
            head[len++] = (char)(p->length[i] & 0xff);
        }
    }
    weir__resp_parts(&s->draft[part].steps, head, len, p->specs.data, p->specs.len);
    weir__step_more(s, part, 1, 0);
    s->failed = s->failed || p->specs.failed;
    weir__buf_clear(&p->specs);
    p->n = 0;
}

/* The spec at a place; false: no spec is there. */
static bool spec_at(mp_slice piece, size_t place, mp_slice *spec)
{
    const uint8_t *at = (const uint8_t *)piece.at;
    size_t         n = piece.len ? at[0] : 0, from = 1 + 2 * n, len = 0;
    if (place >= n || from > piece.len)
        return false;
    for (size_t i = 0; i <= place; i++) {
        from += len;
        len = (size_t)(at[1 + 2 * i] << 8 | at[2 + 2 * i]);
    }
    if (from > piece.len || len > piece.len - from)
        return false;
    *spec = (mp_slice){ piece.at + from, len };
    return true;
}

static bool in_pieces(const redisReply *some)
{
    return some->elements > 2 && some->element[0]->type == REDIS_REPLY_INTEGER;
}

size_t weir__piece_jobs(const redisReply *some)
{
    return in_pieces(some) ? (size_t)some->element[0]->integer : some->elements;
}

bool weir__piece_spec(const redisReply *some, size_t k, mp_slice *spec)
{
    if (!in_pieces(some)) {
        *spec = k < some->elements ? weir__reply_text(some->element[k]) : (mp_slice){ NULL, 0 };
        return spec->len > 0;
    }
    size_t place = k + (size_t)weir__reply_int(some->element[1]);
    for (size_t i = 2; i < some->elements; i++) {
        mp_slice piece = weir__reply_text(some->element[i]);
        size_t   places = piece.len ? (uint8_t)piece.at[0] : 0;
        if (place < places)
            return spec_at(piece, place, spec);
        place -= places;
    }
    return false;
}
