/* gate.c - which jobs one worker process may have side by side: see gate.h. */
#include "core/gate.h"

#include <assert.h>

static bool is_idle(const weir_gate *g)
{
    return !g->held && !g->flying;
}

bool weir__gate_closed(weir_gate *g, int64_t now)
{
    while (g->knowing && now >= g->until) {
        if (g->open && g->phase_ms < WEIR__GATE_LONGEST_MS)
            g->phase_ms *= 2;
        g->open = !g->open;
        if (g->open)
            weir__gate_forget(g, &g->by_hand);
        g->until = (g->until > now - g->phase_ms ? g->until : now) + g->phase_ms;
    }
    return g->knowing && !g->open;
}

static weir_pass enter(weir_gate *g, weir_pass pass, bool only_alone)
{
    bool refused = pass == WEIR__PASS_NONE;
    g->alone = g->alone || pass == WEIR__PASS_ALONE;
    g->flying += !refused;
    g->refused = g->refused || (refused && !only_alone);
    g->refused_alone = g->refused_alone || (refused && only_alone);
    return pass;
}

weir_pass weir__gate_enter(weir_gate *g, bool knows, bool only_alone, int64_t now)
{
    weir_pass pass = g->alone                                      ? WEIR__PASS_NONE
                     : knows && is_idle(g)                         ? WEIR__PASS_ALONE
                     : only_alone || weir__gate_closed(g, now)     ? WEIR__PASS_NONE
                                                                   : WEIR__PASS_BUSY;
    return enter(g, pass, only_alone);
}

weir_pass weir__gate_enter_by_hand(weir_gate *g, int64_t now)
{
    weir_pass pass = g->alone                    ? WEIR__PASS_NONE
                     : is_idle(g)                ? WEIR__PASS_BY_HAND
                     : weir__gate_closed(g, now) ? WEIR__PASS_NONE
                                                 : WEIR__PASS_BUSY;
    return enter(g, pass, false);
}

static void learn(weir_gate *g, bool *knows, int64_t now)
{
    if (*knows)
        return;
    *knows = true;
    if (g->knowing++)
        return;
    g->open = false;
    g->phase_ms = WEIR__GATE_FIRST_MS;
    g->until = now + g->phase_ms;
}

void weir__gate_forget(weir_gate *g, bool *knows)
{
    if (!*knows)
        return;
    *knows = false;
    g->knowing--;
}

bool weir__gate_answered(weir_gate *g, weir_pass pass, weir_gate_answer a, bool *knows,
                         int64_t now)
{
    assert(g->flying && pass != WEIR__PASS_NONE);
    g->flying--;
    bool keep = !a.suspect || pass == WEIR__PASS_ALONE || is_idle(g);
    knows = knows ? knows : &g->by_hand;
    if (keep)
        g->held += a.n;
    if (pass != WEIR__PASS_BUSY && !a.failed)
        weir__gate_forget(g, knows);
    if (pass == WEIR__PASS_ALONE)
        g->alone = false;
    if (a.suspect && keep)
        g->alone = true;
    if (a.waits || !keep)
        learn(g, knows, now);
    return keep;
}

void weir__gate_left(weir_gate *g, size_t n, bool suspect)
{
    assert(g->held >= n);
    g->held -= n;
    g->alone = g->alone && !suspect;
}

bool weir__gate_opened(weir_gate *g, int64_t now)
{
    if (!g->refused && !g->refused_alone)
        return false;
    bool idle = !g->alone && is_idle(g);
    bool opened = (g->refused && !g->alone && (idle || !weir__gate_closed(g, now))) ||
                  (g->refused_alone && idle);
    g->refused = g->refused && !opened;
    g->refused_alone = g->refused_alone && !idle;
    return opened;
}
