/* event_json.h - an event as one JSON object, with the names of docs/http.md, and back. */
#ifndef WEIR_CORE_EVENT_JSON_H
#define WEIR_CORE_EVENT_JSON_H

#include "base/buf.h"
#include "core/fields.h"
#include "weir/event.h"

/* {"event":"start","at":1,"id":7,"type":"mail","state":"active","attempts":0,"progress":0,
 * "delivery":1,"text":"host:1:1"}, on one line. `text` is "result" of complete and "data" of
 * progress, which are JSON themselves; a queue's or a type's event has no members of a job. */
void weir__event_json(weir_buf *out, const weir_event *event);

/* The way back. Texts are in memory of `in`. False: it is none. */
bool weir__event_read(weir_reader *in, const char *text, size_t len, weir_event *out);

#endif
