/* test_sentinel.c - a primary watched by three sentinels: found through them, followed when another
 * takes its place. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "redis/load.h"
#include "support/redis_rig.h"

enum { URL_MAX = 600, LAG_MS = 1000 };

static const load_options gently = { .lease_ms = 4000, .producers = 2, .pace_us = 4000 };

static rig_nodes *start(char url[URL_MAX])
{
    rig_nodes *c = rig_sentinels(3, 2);
    assert_non_null(c);
    rig_sentinel_url(c, "redis+sentinel", "timeout=10s", url, URL_MAX);
    return c;
}

static void a_primary_dies(void **state)
{
    (void)state;
    char       url[URL_MAX];
    rig_nodes *c = start(url);
    load      *l = load_start(url, &gently);
    load_until_acked(l, 200);
    rig    *old = rig_sentinel_primary(c);
    int64_t safe = load_replicated(old, 2), killed = rt_ms();
    rig_kill9(old);
    assert_non_null(rig_sentinel_failed_over(c, old));
    load_until_acked(l, 200);
    load_until_begun(l, 100);
    assert_true(rig_begin(old) && rig_ready(old));      /* it comes back, and is no longer asked */
    load_until_acked(l, 50);
    load_drain(l);
    load_verify(l, safe, killed + LAG_MS);
    load_free(l);
    rig_nodes_free(c);
}

/* The old primary answers for another ten seconds, until the sentinels make it a replica, and what
 * it is told is lost: that is Redis's own. But nobody goes on telling it things for long. */
static void another_is_chosen(void **state)
{
    (void)state;
    char       url[URL_MAX];
    rig_nodes *c = start(url);
    rig_free(c->sentinel[0]);                           /* the first in the URL is not there */
    c->sentinel[0] = c->sentinel[2];
    c->n_sentinels = 2;
    load *l = load_start(url, &gently);
    load_until_acked(l, 200);
    rig    *old = rig_sentinel_primary(c);
    int64_t safe = load_replicated(old, 2);
    assert_true(rig_do(c->sentinel[1], "SENTINEL FAILOVER mymaster"));
    assert_non_null(rig_sentinel_failed_over(c, old));
    int64_t over = rt_ms();
    UNTIL(rt_ms() > over + 4 * LAG_MS);
    load_until_acked(l, 200);
    load_until_begun(l, 100);
    load_drain(l);
    load_verify(l, safe, over + 3 * LAG_MS);
    load_free(l);
    rig_nodes_free(c);
}

static void not_a_name_they_know(void **state)
{
    (void)state;
    char        url[URL_MAX];
    rig_nodes  *c = start(url);
    weir_queue *q;
    weir_error  err;
    char       *name = strstr(url, "/mymaster");
    memcpy(name, "/hermaster", strlen("/hermaster"));
    name[strlen("/hermaster")] = 0;
    assert_int_not_equal(weir_open(&q, url, NULL, &err), WEIR_OK);
    assert_non_null(strstr(err.msg, "hermaster"));
    rig_nodes_free(c);
}

int main(int argc, char **argv)
{
    cmocka_set_test_filter(argc > 1 ? argv[1] : NULL);     /* "paused*" */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_primary_dies),
        cmocka_unit_test(another_is_chosen),
        cmocka_unit_test(not_a_name_they_know),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
