/* test_conformance.c - run every case on every store.
 *
 *   test_conformance [--part K/N] [URL...]
 *
 * '@' in a URL is a fresh directory; see store_urls(). With --part only every N-th case runs,
 * from the K-th on, so that N programs can share the work.
 * A store that cannot be opened fails all its cases. After each case the store must be in order. */
#include "conformance/conformance.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char             *subject;
    const conformance_case *cases;
} tables[] = {
#define X(name) { #name, cases_##name },
    CASE_TABLES(X)
#undef X
};

typedef struct run_of_case {
    const char             *url;
    const conformance_case *one;
    fixture                *f;
    char                    name[160];
} run_of_case;

static int set_up(void **state)
{
    run_of_case *r = *state;
    r->f = fixture_open(r->url);
    return r->f ? 0 : -1;
}

static void run_case(void **state)
{
    run_of_case *r = *state;
    r->one->run(r->f);
    check_all_is_well(r->f);
}

static int tear_down(void **state)
{
    run_of_case *r = *state;
    fixture_close(r->f);
    r->f = NULL;
    return 0;
}

static bool is_for(case_for who, const char *url)
{
    bool persists = strncmp(url, "mem:", 4) != 0, has_owner = strncmp(url, "sqlite:", 7) == 0;
    switch (who) {
    case FOR_PERSISTENT: return persists;
    case FOR_OWNED:      return has_owner;
    case FOR_SHARED:     return persists && !has_owner;
    case FOR_STEADY:     return !strstr(url, "rig:") && !strstr(url, "redis");
    default:             return true;
    }
}

static bool read_part(const char *text, size_t *part, size_t *parts)
{
    return sscanf(text, "%zu/%zu", part, parts) == 2 && *part > 0 && *part <= *parts;
}

int main(int argc, char **argv)
{
    size_t part = 1, parts = 1, seen = 0;
    if (argc > 2 && !strcmp(argv[1], "--part")) {
        if (!read_part(argv[2], &part, &parts)) {
            fprintf(stderr, "test_conformance: --part %s: expected K/N, as in 1/4\n", argv[2]);
            return 2;
        }
        argc -= 2;
        argv += 2;
    }
    char **urls;
    size_t n_urls = store_urls(argc, argv, &urls), n = 0, room = 0;
    for (size_t t = 0; t < sizeof tables / sizeof *tables; t++) {
        for (const conformance_case *c = tables[t].cases; c->name; c++)
            room += n_urls;
    }
    run_of_case       *runs = calloc(room + 1, sizeof *runs);
    struct CMUnitTest *tests = calloc(room + 1, sizeof *tests);
    if (!urls || !runs || !tests)
        return 2;
    for (size_t u = 0; u < n_urls; u++) {
        for (size_t t = 0; t < sizeof tables / sizeof *tables; t++) {
            for (const conformance_case *c = tables[t].cases; c->name; c++) {
                if (!is_for(c->who, urls[u]) || (c->ordered && has_partitions(urls[u])))
                    continue;
                if (seen++ % parts != part - 1)
                    continue;
                run_of_case *r = &runs[n];
                *r = (run_of_case){ .url = urls[u], .one = c };
                snprintf(r->name, sizeof r->name, "%s %s: %s", urls[u], tables[t].subject, c->name);
                tests[n++] = (struct CMUnitTest){ .name = r->name,
                                                  .test_func = run_case,
                                                  .setup_func = set_up,
                                                  .teardown_func = tear_down,
                                                  .initial_state = r };
            }
        }
    }
    int failed = _cmocka_run_group_tests("conformance", tests, n, NULL, NULL);
    free(tests);
    free(runs);
    free(urls);
    return failed ? 1 : 0;
}
