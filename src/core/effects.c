/* effects.c - events of a transition, and the memory of its effects. */
#include "core/effects.h"

#include <assert.h>

/* The text that an event of this kind carries: see WEIR_EVENTS. */
static const char *text_of(weir_event_kind kind, const weir_job *j, size_t *len)
{
    const char *text = NULL;
    switch (kind) {
    case WEIR_EVENT_COMPLETE:
        *len = j->result_len;
        return j->result;
    case WEIR_EVENT_PROGRESS:
        *len = j->progress_data_len;
        return j->progress_data;
    case WEIR_EVENT_START:
        text = j->worker;
        break;
    case WEIR_EVENT_FAILED_ATTEMPT:
    case WEIR_EVENT_FAILED:
        text = j->error;
        break;
    default:
        break;
    }
    *len = text ? strlen(text) : 0;
    return text;
}

void weir__effects_event(const weir_effects *e, size_t i, const weir_job *j, int64_t now,
                         weir_event *out)
{
    assert(i < e->n_events);
    *out = (weir_event){
        .kind = e->event[i],
        .state = e->to,
        .id = j->id,
        .type = j->type,
        .at = now,
        .attempts = j->attempts,
        .progress = j->progress,
        .delivery = j->delivery,
    };
    out->text = text_of(out->kind, j, &out->text_len);
}

weir_event weir__pause_event(const char *type, bool paused, int64_t now)
{
    return (weir_event){ .kind = paused ? WEIR_EVENT_PAUSE : WEIR_EVENT_RESUME, .type = type,
                         .at = now };
}

void weir__effects_fini(weir_effects *e)
{
    if (!e->log.data && !e->error.data && !e->history.data && !e->values.data)
        return;
    weir__buf_fini(&e->log);
    weir__buf_fini(&e->error);
    weir__buf_fini(&e->history);
    weir__buf_fini(&e->values);
}
