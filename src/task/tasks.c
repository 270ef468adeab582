/* tasks.c - open and close; services and the loop that does their tasks. */
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "task/inner.h"

/* ---- open and close ---- */

/* The first address of this machine that others may reach. */
static void find_ip(char *out, socklen_t size)
{
    struct ifaddrs *all = NULL;
    snprintf(out, size, "127.0.0.1");
    if (getifaddrs(&all))
        return;
    for (struct ifaddrs *a = all; a; a = a->ifa_next) {
        if (!a->ifa_addr || a->ifa_addr->sa_family != AF_INET || (a->ifa_flags & IFF_LOOPBACK) ||
            !(a->ifa_flags & IFF_UP))
            continue;
        inet_ntop(AF_INET, &((struct sockaddr_in *)(void *)a->ifa_addr)->sin_addr, out, size);
        break;
    }
    freeifaddrs(all);
}

static weir_code open_table(weir_tasks *t, const weir_tasks_config *c, weir_error *err)
{
    weir_task_properties p = { 0 };
    char                *url = NULL;
    weir_code rc = c->properties ? weir_task_properties_read(c->properties, &p, err) : WEIR_OK;
    if (!rc && c->table)
        rc = weir_task_properties_table(&p, c->table, &url, err);
    if (!rc && url)
        rc = weir__record_open(&t->table, url, err);
    free(url);
    return rc;
}

weir_code weir_tasks_open(weir_tasks **out, weir_queue *q, const weir_tasks_config *config,
                          weir_error *err)
{
    const weir_tasks_config none = { 0 };
    const weir_tasks_config *c = config ? config : &none;
    *out = NULL;
    if (WEIR__CHECK_RESERVED(c, err))
        return WEIR_EINVAL;
    if (c->version < 0)
        return weir__fail_field(err, WEIR_EINVAL, "version", "%lld, must be at least 0",
                                (long long)c->version);
    if (c->worker && strlen(c->worker) > WEIR_MAX_WORKER)
        return weir__fail_field(err, WEIR_ELIMIT, "worker", "%zu bytes, at most %d "
                                "(WEIR_MAX_WORKER)", strlen(c->worker), WEIR_MAX_WORKER);
    weir_tasks *t = calloc(1, sizeof *t);
    if (!t)
        return weir_fail(err, WEIR_ENOMEM, "task: out of memory");
    t->q = q;
    t->version = c->version;
    snprintf(t->worker, sizeof t->worker, "%s", c->worker ? c->worker : "");
    find_ip(t->ip, sizeof t->ip);
    weir_code rc = open_table(t, c, err);
    if (rc) {
        free(t);
        return rc;
    }
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->quiet, NULL);
    *out = t;
    return WEIR_OK;
}

void weir_tasks_close(weir_tasks *t)
{
    if (!t)
        return;
    weir_tasks_stop(t, 0, NULL);
    pthread_mutex_lock(&t->lock);
    while (t->in_handler)
        pthread_cond_wait(&t->quiet, &t->lock);
    pthread_mutex_unlock(&t->lock);
    weir__task_unfollow(t);
    weir__record_close(t->table);
    pthread_cond_destroy(&t->quiet);
    pthread_mutex_destroy(&t->lock);
    free(t);
}

/* ---- services ---- */

weir_code weir_task_serve(weir_tasks *t, const char *service, const weir_task_service *what,
                          weir_error *err)
{
    if (WEIR__CHECK_RESERVED(what, err))
        return WEIR_EINVAL;
    if (!what->run)
        return weir__fail_field(err, WEIR_EINVAL, "run", "missing");
    task_draft     draft;
    weir_task_spec spec = { .service = service };
    weir_code      rc = weir__task_draft(&draft, &spec, 0, err);      /* is the name right? */
    weir__buf_fini(&draft.data);
    if (rc)
        return rc;
    pthread_mutex_lock(&t->lock);
    for (size_t i = 0; i < t->n_services && !rc; i++) {
        if (strcmp(t->service[i].name, service) == 0)
            rc = weir__fail_field(err, WEIR_ESTATE, "service", "%s is served already", service);
    }
    if (!rc && t->running)
        rc = weir_fail(err, WEIR_ESTATE, "the loop runs: stop it to add a service");
    if (!rc && t->n_services == WEIR_MAX_TASK_SERVICES)
        rc = weir_fail(err, WEIR_ELIMIT, "%d services already (WEIR_MAX_TASK_SERVICES)",
                       WEIR_MAX_TASK_SERVICES);
    if (!rc) {
        task_service *s = &t->service[t->n_services++];
        memcpy(s->name, service, strlen(service) + 1);
        s->what = *what;
    }
    pthread_mutex_unlock(&t->lock);
    return rc;
}

bool weir__task_served(weir_tasks *t, const char *name, weir_task_service *out)
{
    bool found = false;
    pthread_mutex_lock(&t->lock);
    for (size_t i = 0; i < t->n_services && !found; i++) {
        found = strcmp(t->service[i].name, name) == 0;
        if (found)
            *out = t->service[i].what;
    }
    pthread_mutex_unlock(&t->lock);
    return found;
}

/* ---- types ---- */

/* Is this type a later version of a service here, which this program does? */
static bool is_our_version(weir_tasks *t, const char *type)
{
    bool ours = false;
    pthread_mutex_lock(&t->lock);
    for (size_t i = 0; i < t->n_services && !ours; i++) {
        int64_t version = weir__task_type_version(type, t->service[i].name);
        ours = version > 0 && version <= t->version;
    }
    pthread_mutex_unlock(&t->lock);
    return ours;
}

void weir__task_types_free(char **types)
{
    for (size_t i = 0; types && types[i]; i++)
        free(types[i]);
    free(types);
}

/* A type for each service, then the types of later versions in the store. A program of version 0
 * need not ask. */
static bool list_types(weir_tasks *t, const weir_stats *stats, char **types)
{
    size_t n = 0;
    bool   ok = true;
    pthread_mutex_lock(&t->lock);
    for (; n < t->n_services && ok; n++)
        ok = (types[n] = strdup(t->service[n].name));
    pthread_mutex_unlock(&t->lock);
    for (size_t i = 0; ok && stats && i < stats->n && n < WEIR_MAX_TASK_SERVICES; i++) {
        if (is_our_version(t, stats->type[i].type))
            ok = (types[n++] = strdup(stats->type[i].type));
    }
    return ok;
}

weir_code weir__task_types(weir_tasks *t, char ***out, weir_error *err)
{
    weir_stats *stats = NULL;
    weir_code   rc = t->version ? weir_get_stats(t->q, &stats, err) : WEIR_OK;
    *out = rc ? NULL : calloc(WEIR_MAX_TASK_SERVICES + 1, sizeof **out);
    if (!rc && (!*out || !list_types(t, stats, *out)))
        rc = weir_fail(err, WEIR_ENOMEM, "task: out of memory");
    weir_stats_free(stats);
    if (rc) {
        weir__task_types_free(*out);
        *out = NULL;
    } else if (!(*out)[0]) {
        rc = weir_fail(err, WEIR_ESTATE, "no service is served here: weir_task_serve() first");
    }
    return rc;
}

/* ---- the loop ---- */

/* With the lock. `version`: the one type, if it is a version beyond 0; else "". */
static weir_code start_pool(weir_tasks *t, const char *const *types, const char *version,
                            weir_error *err)
{
    const weir_pool_config config = { .handler = weir__task_handle, .ctx = t,
                                      .threads = t->threads, .types = types };
    struct task_pool      *p = &t->pool[t->n_pools];
    weir_code              rc = weir_process(t->q, NULL, &config, &p->pool, err);
    if (rc)
        return rc;
    snprintf(p->type, sizeof p->type, "%s", version);
    t->n_pools++;
    return WEIR_OK;
}

/* A task of this type was submitted, perhaps the first one of its version. */
static void work_on_version(weir_tasks *t, const char *type)
{
    const char *const types[] = { type, NULL };
    if (!is_our_version(t, type))
        return;
    pthread_mutex_lock(&t->lock);
    bool known = !t->running || t->n_pools == WEIR_MAX_TASK_SERVICES;
    for (size_t i = 0; i < t->n_pools && !known; i++)
        known = strcmp(t->pool[i].type, type) == 0;
    if (!known)
        start_pool(t, types, type, NULL);   /* if it fails: with the next task of this version */
    pthread_mutex_unlock(&t->lock);
}

bool weir__task_is_ours(weir_tasks *t, const char *type)
{
    bool ours = false;
    pthread_mutex_lock(&t->lock);
    for (size_t i = 0; i < t->n_services && !ours; i++)
        ours = weir__task_type_version(type, t->service[i].name) >= 0;
    pthread_mutex_unlock(&t->lock);
    return ours;
}

static void on_event(const weir_event *event, void *ctx)
{
    work_on_version(ctx, event->type);
}

static weir_code start_versions(weir_tasks *t, weir_error *err)
{
    char    **types;
    weir_code rc = weir__task_types(t, &types, err);
    for (size_t i = 0; !rc && types[i]; i++)
        work_on_version(t, types[i]);
    weir__task_types_free(types);
    return rc;
}

static weir_code start_services(weir_tasks *t, int32_t threads, weir_error *err)
{
    const char *types[WEIR_MAX_TASK_SERVICES + 1] = { NULL };
    weir_code   rc = WEIR_OK;
    pthread_mutex_lock(&t->lock);
    for (size_t i = 0; i < t->n_services; i++)
        types[i] = t->service[i].name;
    if (t->running)
        rc = weir_fail(err, WEIR_ESTATE, "the loop runs already");
    else if (!t->n_services)
        rc = weir_fail(err, WEIR_ESTATE, "no service is served here: weir_task_serve() first");
    t->threads = rc ? t->threads : threads;
    if (!rc)
        rc = start_pool(t, types, "", err);
    t->running = t->running || !rc;
    pthread_mutex_unlock(&t->lock);
    return rc;
}

weir_code weir_tasks_run(weir_tasks *t, int32_t threads, weir_error *err)
{
    weir_filter filter = { .events = WEIR_BIT(WEIR_EVENT_ENQUEUE) };
    weir_code   rc = start_services(t, threads, err);
    if (rc)
        return rc;
    rc = weir__task_follow(t, true, err);
    if (!rc && t->version)
        rc = weir_listen(t->q, &filter, on_event, t, &t->listener, err);
    if (!rc && t->version)
        rc = start_versions(t, err);
    if (rc)
        weir_tasks_stop(t, 0, NULL);
    return rc;
}

weir_code weir_tasks_stop(weir_tasks *t, int64_t timeout_ms, weir_error *err)
{
    pthread_mutex_lock(&t->lock);
    size_t n = t->n_pools;
    t->running = false;             /* so no pool is added */
    pthread_mutex_unlock(&t->lock);
    weir_unlisten(t->listener);
    t->listener = NULL;
    weir_code rc = WEIR_OK;
    for (size_t i = 0; i < n; i++) {
        weir_error own;
        weir_code  one = weir_pool_stop(t->pool[i].pool, timeout_ms, &own);
        weir_pool_free(t->pool[i].pool);
        if (one && !rc) {
            rc = one;
            if (err)
                *err = own;
        }
    }
    pthread_mutex_lock(&t->lock);
    t->n_pools = 0;
    pthread_mutex_unlock(&t->lock);
    return rc;
}
