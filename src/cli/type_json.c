/* type_json.c - see type_json.h. */
#include "cli/type_json.h"

static void settings_json(jw *w, const weir_settings *s)
{
    jw_object(w, "keep_complete");
    jw_int(w, "age", s->keep_complete.age_ms);
    jw_int(w, "count", s->keep_complete.count);
    jw_end(w, '}');
    jw_object(w, "keep_failed");
    jw_int(w, "age", s->keep_failed.age_ms);
    jw_int(w, "count", s->keep_failed.count);
    jw_end(w, '}');
    jw_bool(w, "search", s->search);
}

void type_json(jw *w, const char *name, const weir_type_stats *t)
{
    jw_object(w, name);
    jw_text(w, "type", t->type);
    jw_bool(w, "paused", t->paused);
    for (int s = WEIR_STATE_INACTIVE; s < WEIR_STATE_COUNT; s++)
        jw_int(w, weir_state_name((weir_state)s), (int64_t)t->count[s]);
    jw_int(w, "total", (int64_t)t->count[WEIR_STATE_ANY]);
    jw_int(w, "completed", (int64_t)t->completed);
    jw_int(w, "failures", (int64_t)t->failed);
    jw_int(w, "work_time", t->work_ms);
    jw_int(w, "last_taken_at", t->last_taken_at);
    jw_int(w, "oldest_at", t->oldest_at);
    settings_json(w, &t->settings);
    jw_end(w, '}');
}
