/* trouble.c - see trouble.h. */
#include "cli/trouble.h"

#include <sys/eventfd.h>
#include <unistd.h>
#include "cli/clock.h"
#include "cli/say.h"

enum { ASK_MS = 1000 };          /* while there is trouble, the interval between questions to the
                                    store */

void cli_trouble_init(cli_trouble *t, cli *c)
{
    *t = (cli_trouble){ .c = c, .wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK) };
}

/* The queue is closed: no callback writes to the descriptor any more. */
void cli_trouble_fini(cli_trouble *t)
{
    weir_future_free(t->asked);
    close(t->wake);
}

void cli_trouble_hint(cli_trouble *t)
{
    eventfd_write(t->wake, 1);
}

static void on_answer(weir_code code, const weir_error *err, void *ctx)
{
    (void)code;
    (void)err;
    cli_trouble_hint(ctx);
}

static void learn(cli_trouble *t, weir_code rc, const weir_error *err)
{
    if (rc && !t->why.code)
        cli_warn(t->c, "trouble with the store: %s", err->msg);
    else if (!rc && t->why.code)
        cli_note(t->c, "the store works again");
    t->why = *err;
    t->why.code = rc;
    t->again_ms = rc ? cli_clock_ms() + ASK_MS : 0;
}

static void ask(cli_trouble *t)
{
    weir_error err = { 0 };
    weir_code  rc = weir_ready_async(t->q, &t->asked, &err);
    if (!rc)
        rc = weir_future_then(t->asked, on_answer, t);
    if (rc)
        learn(t, rc, &err);
}

void cli_trouble_look(cli_trouble *t)
{
    weir_error err = { 0 };
    eventfd_t  count;
    bool       hinted = !eventfd_read(t->wake, &count);
    if (t->asked && !weir_future_done(t->asked))
        return;
    if (t->asked) {
        weir_code rc = weir_future_wait(t->asked, 0, &err);
        weir_future_free(t->asked);
        t->asked = NULL;
        learn(t, rc, &err);
    } else if (hinted ? !t->why.code : t->again_ms && cli_clock_ms() >= t->again_ms) {
        ask(t);
    }
}

int64_t cli_trouble_wait(const cli_trouble *t)
{
    int64_t left = t->again_ms - cli_clock_ms();
    return !t->again_ms || t->asked ? -1 : left > 0 ? left : 0;
}

weir_code cli_trouble_left(cli_trouble *t)
{
    return t->why.code ? weir_ready(t->q, &t->c->err) : WEIR_OK;
}
