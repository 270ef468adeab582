/* test_cuts.c - the line to Redis is bad: connections are cut in the middle of a reply or of a
 * request, at random, or hang. What was answered is true all the same. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "redis/load.h"
#include "support/proxy.h"

enum { URL_MAX = 600, CUTS = 150 };

static uint64_t seed;

static load *load_over(proxy *p, const char *query, const load_options *opt)
{
    char url[URL_MAX];
    snprintf(url, sizeof url, "redis://127.0.0.1:%d%s%s", proxy_port(p), *query ? "?" : "", query);
    return load_start(url, opt);
}

static void cut_at_random(const char *query, uint32_t after, const load_options *opt)
{
    rig   *r = rig_start(NULL);
    proxy *p = r ? proxy_start(r, seed) : NULL;
    assert_non_null(p);
    print_message("# seed %" PRIu64 "\n", seed);
    load *l = load_over(p, query, opt);
    load_until_acked(l, 50);
    proxy_cut_after(p, after);
    UNTIL(proxy_cuts(p) >= CUTS);
    proxy_cut_after(p, 0);
    load_until_acked(l, 50);
    load_until_begun(l, 50);
    load_drain(l);
    load_verify(l, 0, 0);
    load_free(l);
    proxy_stop(p);
    rig_free(r);
}

/* There is time to repeat what was cut: nobody should notice. */
static void cut_now_and_then(void **state)
{
    (void)state;
    cut_at_random("", 20000, &(load_options){ .lease_ms = 3000 });
}

/* Jobs taken in lots are lost in lots. */
static void cut_with_prefetch(void **state)
{
    (void)state;
    cut_at_random("", 20000, &(load_options){ .lease_ms = 2000, .prefetch = 4 });
}

/* Hardly anything gets through, and there is little time: many hear that it is not known. */
static void cut_all_the_time(void **state)
{
    (void)state;
    cut_at_random("timeout=100ms", 2500, &(load_options){ .lease_ms = 2000 });
}

static void a_line_that_hangs(void **state)
{
    (void)state;
    enum { ROUNDS = 4 };
    rig   *r = rig_start(NULL);
    proxy *p = r ? proxy_start(r, seed) : NULL;
    assert_non_null(p);
    load *l = load_over(p, "timeout=300ms", &(load_options){ .lease_ms = 2000 });
    for (int i = 0; i < ROUNDS; i++) {
        load_until_acked(l, 30);
        proxy_hold(p, true);
        load_until_trouble(l, 1);
        if (i % 2)
            proxy_cut_all(p);
        proxy_hold(p, false);       /* what was held back comes late, and must do no harm */
    }
    load_until_acked(l, 50);
    load_until_begun(l, 50);
    load_drain(l);
    load_verify(l, 0, 0);
    load_free(l);
    proxy_stop(p);
    rig_free(r);
}

int main(int argc, char **argv)
{
    const char *given = getenv("WEIR_TEST_SEED");
    seed = given ? strtoull(given, NULL, 10) : 1794804839;
    cmocka_set_test_filter(argc > 1 ? argv[1] : NULL);     /* "paused*" */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cut_now_and_then),
        cmocka_unit_test(cut_with_prefetch),
        cmocka_unit_test(cut_all_the_time),
        cmocka_unit_test(a_line_that_hangs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
