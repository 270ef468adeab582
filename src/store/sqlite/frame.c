/* frame.c - frames of the socket beside a SQLite file: see frame.h. They come from another process:
 * nothing in them is believed before it was looked at. */
#include "store/sqlite/frame.h"

#include <string.h>

#include "weir/queue.h"

size_t weir__sq_frame_at(const weir_buf *in, size_t at, sq_head *head)
{
    if (in->len - at < sizeof *head)
        return 0;
    memcpy(head, in->data + at, sizeof *head);
    if (!head->kind || head->kind >= SQF_FRAMES || head->size > SQ_MAX_FRAME)
        return SIZE_MAX;
    return in->len - at - sizeof *head < head->size ? 0 : sizeof *head + head->size;
}

size_t weir__sq_frame_begin(weir_buf *out, sq_frame kind)
{
    size_t  begun = out->len;
    sq_head head = { .kind = kind };
    weir__buf_add(out, &head, sizeof head);
    return begun;
}

void weir__sq_frame_end(weir_buf *out, size_t begun)
{
    if (out->failed)
        return;
    sq_head head;
    memcpy(&head, out->data + begun, sizeof head);
    size_t size = out->len - begun - sizeof head;
    if (size > SQ_MAX_FRAME) {
        out->failed = true;
        return;
    }
    head.size = (uint32_t)size;
    memcpy(out->data + begun, &head, sizeof head);
}

void weir__sq_frame_put(weir_buf *out, sq_frame kind, const void *bytes, size_t len)
{
    size_t begun = weir__sq_frame_begin(out, kind);
    weir__buf_add(out, bytes, len);
    weir__sq_frame_end(out, begun);
}

/* ---- events ---- */

void weir__sq_event_put(weir_buf *out, uint64_t number, const weir_event *e)
{
    sq_record r = {
        .number = number,
        .id = e->id,
        .at = e->at,
        .kind = (uint32_t)e->kind,
        .state = (uint32_t)e->state,
        .attempts = e->attempts,
        .progress = e->progress,
        .delivery = e->delivery,
        .missed = e->missed,
        .has = (e->type ? 1u : 0) | (e->text ? 2u : 0),
        .type_len = e->type ? (uint32_t)strlen(e->type) : 0,
        .text_len = e->text ? (uint32_t)e->text_len : 0,
    };
    size_t begun = weir__sq_frame_begin(out, SQF_EVENT);
    weir__buf_add(out, &r, sizeof r);
    weir__buf_add(out, e->type, r.type_len);
    weir__buf_add(out, e->text, r.text_len);
    weir__sq_frame_end(out, begun);
}

bool weir__sq_event_get(const char *bytes, size_t len, char *text, uint64_t *number,
                        weir_event *out)
{
    sq_record r;
    if (len < sizeof r)
        return false;
    memcpy(&r, bytes, sizeof r);
    if (r.kind >= WEIR_EVENT_COUNT || r.state >= WEIR_STATE_COUNT || r.attempts < 0 ||
        r.progress < 0 || r.progress > 100 || r.type_len > WEIR_MAX_TYPE ||
        r.text_len > WEIR_MAX_DATA || len - sizeof r != (size_t)r.type_len + r.text_len)
        return false;
    char *rest = text + r.type_len + 1;
    memcpy(text, bytes + sizeof r, r.type_len);
    text[r.type_len] = '\0';
    memcpy(rest, bytes + sizeof r + r.type_len, r.text_len);
    rest[r.text_len] = '\0';
    *number = r.number;
    *out = (weir_event){
        .kind = (weir_event_kind)r.kind,
        .state = (weir_state)r.state,
        .id = r.id,
        .type = r.has & 1 ? text : NULL,
        .at = r.at,
        .attempts = r.attempts,
        .progress = r.progress,
        .delivery = r.delivery,
        .missed = r.missed,
        .text = r.has & 2 ? rest : NULL,
        .text_len = r.has & 2 ? r.text_len : 0,
    };
    return true;
}

/* ---- greetings ---- */

static bool is_place(const weir_place *p)
{
    return memchr(p->run, '\0', sizeof p->run) != NULL;
}

bool weir__sq_hello_get(const char *bytes, size_t len, sq_hello *out)
{
    if (len != sizeof *out)
        return false;
    memcpy(out, bytes, sizeof *out);
    return !strncmp(out->magic, SQ_MAGIC, sizeof out->magic) && is_place(&out->place) &&
           (out->purpose == SQ_FOR_CALLS || out->purpose == SQ_FOR_EVENTS ||
            (out->purpose == SQ_FOR_ENVELOPES &&
             strnlen(out->process, sizeof out->process) == WEIR_PROCESS - 1));
}

bool weir__sq_welcome_get(const char *bytes, size_t len, sq_welcome *out)
{
    if (len != sizeof *out)
        return false;
    memcpy(out, bytes, sizeof *out);
    return !strncmp(out->magic, SQ_MAGIC, sizeof out->magic) && is_place(&out->place) &&
           out->durability <= WEIR_DURABILITY_OS;
}
