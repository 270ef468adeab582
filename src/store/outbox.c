/* outbox.c - the events of a batch. */
#include "store/outbox.h"

#include <stdlib.h>

#include "base/grow.h"

typedef struct outbox_text {
    struct outbox_text *next;
    char                s[];
} outbox_text;

bool weir__outbox_reserve(weir_outbox *o, size_t n)
{
    return weir__grow(&o->events, &o->cap, o->n + n, sizeof *o->events);
}

bool weir__outbox_add(weir_outbox *o, const weir_event *event)
{
    if (!weir__outbox_reserve(o, 1))
        return false;
    o->events[o->n++] = *event;
    return true;
}

const char *weir__outbox_keep(weir_outbox *o, const char *text, size_t len)
{
    outbox_text *t = malloc(sizeof *t + len + 1);
    if (!t)
        return NULL;
    memcpy(t->s, text, len);
    t->s[len] = '\0';
    t->next = o->texts;
    o->texts = t;
    return t->s;
}

bool weir__outbox_follow(weir_outbox *o, const weir_effects *e, const weir_job *j, int64_t now)
{
    if (!weir__outbox_reserve(o, e->n_events))
        return false;
    for (uint32_t i = 0; i < e->n_events; i++) {
        weir_event *event = &o->events[o->n];
        weir__effects_event(e, i, j, now, event);
        if (event->text && event->text == e->error.data) {
            event->text = weir__outbox_keep(o, event->text, event->text_len);
            if (!event->text)
                return false;
        }
        o->n++;
    }
    return true;
}

void weir__outbox_clear(weir_outbox *o)
{
    o->n = 0;
    while (o->texts) {
        outbox_text *t = o->texts;
        o->texts = t->next;
        free(t);
    }
}

void weir__outbox_fini(weir_outbox *o)
{
    weir__outbox_clear(o);
    free(o->events);
    *o = (weir_outbox){ 0 };
}
