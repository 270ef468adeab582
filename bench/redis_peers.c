/* redis_peers.c - other job queues, measured by drivers that are not part of weir: a folder that
 * the environment variable WEIR_PEERS names, with programs for node that print a line of JSON. */
#include "redis.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool have_peers(void)
{
    const char *dir = getenv("WEIR_PEERS");
    return dir && *dir && system("command -v node >/dev/null 2>&1") == 0;
}

static bool member(const char *json, const char *name, double *out)
{
    const char *at = strstr(json, name);
    if (at)
        *out = strtod(at + strlen(name), NULL);
    return at;
}

pair_answer run_peer(const rig *r, const char *file, const char *variant, size_t n)
{
    char        command[300], line[1000];
    pair_answer a = { 0 };
    bool        found = false;
    snprintf(command, sizeof command,
             "cd \"$WEIR_PEERS\" && REDIS_PORT=%d exec node %s --n %zu --phase both --only '%s'",
             r->port, file, n, variant);
    fflush(NULL);
    FILE *f = popen(command, "r");
    while (f && fgets(line, sizeof line, f))
        found |= member(line, "\"lifecycles_per_s\":", &a.lives_s) &&
                member(line, "\"cpu_us\":", &a.cpu_us);
    if (!f || pclose(f) != 0 || !found || a.lives_s <= 0 || a.cpu_us <= 0) {
        fprintf(stderr, "bench: %s: no measure came from: %s\n", file, command);
        exit(1);
    }
    return a;
}
