/* stats_json.c - see stats_json.h. */
#include "core/stats_json.h"

#include <string.h>

#include "base/json.h"

static void number(weir_buf *out, const char *name, int64_t n)
{
    weir__buf_str(out, name);
    weir__buf_int(out, n);
}

/* 0: no limit. */
static void keep_json(weir_buf *out, const char *name, const weir_keep *k)
{
    weir__buf_str(out, name);
    number(out, "{\"age\":", k->age_ms == WEIR_FOREVER ? 0 : k->age_ms);
    number(out, ",\"count\":", k->count);
    weir__buf_char(out, '}');
}

static void counts_json(weir_buf *out, const uint64_t count[WEIR_STATE_COUNT])
{
    weir__buf_str(out, ",\"counts\":{");
    for (int s = WEIR_STATE_INACTIVE; s < WEIR_STATE_COUNT; s++) {
        weir__buf_char(out, '"');
        weir__buf_str(out, weir_state_name((weir_state)s));
        weir__buf_str(out, "\":");
        weir__buf_uint(out, count[s]);
        weir__buf_char(out, ',');
    }
    weir__buf_str(out, "\"total\":");
    weir__buf_uint(out, count[WEIR_STATE_ANY]);
    weir__buf_char(out, '}');
}

void weir__type_json_open(weir_buf *out, const weir_type_stats *t)
{
    weir__buf_str(out, "{\"type\":");
    weir__json_string(out, t->type, strlen(t->type));
    weir__buf_str(out, t->paused ? ",\"paused\":true" : ",\"paused\":false");
    counts_json(out, t->count);
    number(out, ",\"completed\":", (int64_t)t->completed);
    number(out, ",\"failures\":", (int64_t)t->failed);
    number(out, ",\"work_time\":", t->work_ms);
    number(out, ",\"last_taken_at\":", t->last_taken_at);
    number(out, ",\"oldest_at\":", t->oldest_at);
    keep_json(out, ",\"settings\":{\"keep_complete\":", &t->settings.keep_complete);
    keep_json(out, ",\"keep_failed\":", &t->settings.keep_failed);
    weir__buf_str(out, t->settings.search ? ",\"search\":true}" : ",\"search\":false}");
}

void weir__type_json(weir_buf *out, const weir_type_stats *t)
{
    weir__type_json_open(out, t);
    weir__buf_char(out, '}');
}

/* ---- for callers of the library ---- */

char *weir_type_json(const weir_type_stats *type, size_t *out_len)
{
    weir_buf b = { 0 };
    weir__type_json(&b, type);
    return weir__buf_steal(&b, out_len);
}

char *weir_stats_json(const weir_stats *stats, size_t *out_len)
{
    weir_buf b = { 0 };
    weir__type_json_open(&b, &stats->all);
    weir__buf_str(&b, ",\"last_id\":");
    weir__buf_uint(&b, stats->last_id);
    weir__buf_str(&b, ",\"types\":[");
    for (size_t i = 0; i < stats->n; i++) {
        if (i)
            weir__buf_char(&b, ',');
        weir__type_json(&b, &stats->type[i]);
    }
    weir__buf_str(&b, "]}");
    return weir__buf_steal(&b, out_len);
}
