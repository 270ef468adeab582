/* kue_events.h - the messages of Kue's processes, as events of weir. */
#ifndef WEIR_STORE_REDIS_KUE_EVENTS_H
#define WEIR_STORE_REDIS_KUE_EVENTS_H

#include "base/buf.h"
#include "weir/event.h"

/* Read a message of the channel PREFIX:events. False: it is one of weir's own, or not a message, or
 * is of nothing that weir has an event for. The strings of *out are in `strings`, which is
 * emptied first; out->at is 0. */
bool weir__kue_event(const char *message, size_t len, weir_event *out, weir_buf *strings);

#endif
