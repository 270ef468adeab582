/* parts.c - long answers, part by part: see parts.h. */
#include "server/http/parts.h"

#include "server/http/inner.h"

enum {
    LOOK_MS   = 50,                     /* between two looks whether there is room again */
    MAX_LOOKS = SRV_ANSWER_MS / LOOK_MS /* then the answer is cut off */
};

static void give_room(srv_request *r)
{
    if (r->parts->has_room)
        srv_share_room_end(r, SRV_PAGE_PART);
    r->parts->has_room = false;
}

static void end_stream(srv_request *r, bool whole)
{
    give_room(r);
    weir__buf_fini(&r->parts->body);
    srv_stream_end(r, whole);
}

/* The client or its token is gone: end, unless a part is being made; srv_parts_go_on() finds out
 * then. When the server stops, the client may still read the rest. */
static void unwanted(srv_request *r)
{
    srv_parts *p = r->parts;
    if ((r->conn && !r->revoked) || !(p->unread || p->no_room))
        return;
    srv_not_after(r);
    end_stream(r, false);
}

/* Clients that do not read are closed in the end (SRV_WRITE_MS), so there will be room. */
static void next_part(srv_request *r)
{
    srv_parts *p = r->parts;
    p->has_room = srv_share_room(r, SRV_PAGE_PART);
    p->no_room = !p->has_room;
    if (p->has_room) {
        p->looks = 0;
        p->more(r);
    } else if (p->looks == MAX_LOOKS) {
        end_stream(r, false);
    } else {
        if (!p->looks++)
            atomic_fetch_add(&r->server->counters.answers_delayed, 1);
        srv_after(r, LOOK_MS, next_part);
    }
}

static void part_read(srv_request *r)
{
    srv_parts *p = r->parts;
    if (!p->unread)
        return;
    p->unread = false;
    next_part(r);
}

static void send_part(srv_request *r)
{
    srv_parts *p = r->parts;
    give_room(r);                       /* from here on the bytes themselves are counted */
    if (!p->streams) {
        if (!srv_answer_fits(r, &p->body))
            return;
        p->streams = true;
        r->cancel = unwanted;
        r->drained = part_read;
        srv_stream_begin(r, 200, p->type);
    }
    bool sent = srv_stream_write(r, p->body.data, p->body.len);
    weir__buf_fini(&p->body);
    p->unread = sent && srv_stream_behind(r);
    if (!sent)
        end_stream(r, false);
    else if (!p->unread)
        next_part(r);
}

bool srv_parts_begin(srv_request *r, srv_parts *p, const char *type, void (*more)(srv_request *r))
{
    r->parts = p;
    p->type = type;
    p->more = more;
    p->has_room = true;
    return srv_share_room_or_reply(r, SRV_PAGE_PART);
}

void srv_parts_go_on(srv_request *r)
{
    srv_parts *p = r->parts;
    if (p->body.failed || r->revoked)
        srv_parts_end(r);               /* says so */
    else if (p->body.len < SRV_PAGE_PART)
        p->more(r);
    else
        send_part(r);
}

void srv_parts_end(srv_request *r)
{
    srv_parts *p = r->parts;
    if (p->streams) {
        end_stream(r, !p->body.failed && !r->revoked &&
                          srv_stream_write(r, p->body.data, p->body.len));
        return;
    }
    give_room(r);
    srv_reply(r, 200, p->type, &p->body);
}

bool srv_parts_failed(srv_request *r)
{
    srv_parts *p = r->parts;
    if (p->streams) {
        end_stream(r, false);
        return true;
    }
    give_room(r);
    weir__buf_fini(&p->body);
    return false;
}

size_t srv_parts_items(size_t n, size_t bytes)
{
    size_t fit = n ? SRV_PAGE_PART / (bytes / n + 1) : 0;
    return fit < 1 ? 1 : fit;
}
