/* outbox.h - the events of a batch, kept until the store has committed it. For stores that make
 * their events in this process: mem, sqlite. {0} is empty. */
#ifndef WEIR_STORE_OUTBOX_H
#define WEIR_STORE_OUTBOX_H

#include "core/effects.h"

typedef struct weir_outbox {
    weir_event          *events;
    size_t               n, cap;
    struct outbox_text  *texts;     /* copies that events point at */
} weir_outbox;

/* Reserve room for n more events; adding them then cannot fail. False: out of memory. */
bool weir__outbox_reserve(weir_outbox *o, size_t n);

/* The strings of an event are borrowed until it is sent or dropped. False: out of memory. */
bool weir__outbox_add(weir_outbox *o, const weir_event *event);

/* The events of a transition. An error that is in *e is copied. */
bool weir__outbox_follow(weir_outbox *o, const weir_effects *e, const weir_job *j, int64_t now);

/* A copy that lasts as long as the events. NULL: out of memory. */
const char *weir__outbox_keep(weir_outbox *o, const char *text, size_t len);

/* The events were sent, or the batch is undone. */
void weir__outbox_clear(weir_outbox *o);
void weir__outbox_fini(weir_outbox *o);

#endif
