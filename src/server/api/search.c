/* search.c - the setting `search`: new jobs of all types are searched, or not. It is kept in the
 * store, as the setting of the type "*", so that it holds for jobs from everywhere. */
#include "server/http/inner.h"

static weir_code configure(weir_queue *q, const weir_type_stats *t, bool on, weir_error *err)
{
    weir_settings settings = t->settings;
    if (settings.search == on)
        return WEIR_OK;
    settings.search = on;
    return weir_configure(q, t->type, &settings, err);
}

/* Types that have settings of their own are not searched just because all are. */
static weir_code configure_types(weir_queue *q, weir_error *err)
{
    weir_stats *stats = NULL;
    weir_code   rc = weir_get_stats(q, &stats, err);
    for (size_t i = 0; !rc && i < stats->n; i++)
        rc = configure(q, &stats->type[i], true, err);
    weir_stats_free(stats);
    return rc;
}

weir_code srv_set_search(weir_queue *q, srv_search search, weir_error *err)
{
    weir_stats *stats = NULL;
    if (search == SRV_SEARCH_AS_IT_IS)
        return WEIR_OK;
    weir_code rc = weir_get_stats(q, &stats, err);
    if (!rc)
        rc = configure(q, &stats->all, search == SRV_SEARCH_ON, err);
    weir_stats_free(stats);
    return rc || search == SRV_SEARCH_OFF ? rc : configure_types(q, err);
}
