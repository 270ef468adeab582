/* config_inner.h - the inside of the settings: config.c chooses what holds and says what it means,
 * config_file.c reads the file. */
#ifndef WEIR_SERVER_CONFIG_INNER_H
#define WEIR_SERVER_CONFIG_INNER_H

#include <jansson.h>

#include "server/bus/workqueues.h"
#include "server/config.h"

#define X(...) +1
enum { N_SETTINGS = 2 SRV_SETTINGS(X) };        /* store and durability, too */
#undef X

/* Settings that only the file has. */
#define WORK_QUEUES "work_queues"

enum { MAX_KEPT = 64, MAX_FROM = 300 };

/* A srv_config with what its texts live in. */
typedef struct config {
    srv_config  pub;
    json_t     *file;               /* an object; NULL: none */
    const char *file_name;
    srv_given   set;                /* what holds */
    char        from[N_SETTINGS][MAX_FROM];     /* where that was said */
    const char *origins[SRV_MAX_ORIGINS + 1];
    const char *inbound[SRV_MAX_PERMITS + 1], *outbound[SRV_MAX_PERMITS + 1];
    weir_arena  workqueues;
    char       *kept[MAX_KEPT];
    size_t      n_kept;
} config;

/* The name of a setting: "listen". */
const char *srv_setting_name(size_t i);

/* Memory that lives as long as the configuration. NULL: it is missing. */
char *srv_config_keep(config *c, const char *fmt, ...) WEIR_PRINTF(2, 3);
weir_code srv_config_no_memory(weir_error *err);

/* ---- config_file.c ---- */

/* Read c->file_name into c->file; names of Kue and Vert.x Kue become ours. */
weir_code srv_config_read(config *c, weir_error *err);
/* The value of a key as text; *out stays as it is when the key is missing. */
weir_code srv_config_text(config *c, const char *key, const char **out, weir_error *err);
weir_code srv_config_flag(const config *c, const char *key, bool *out, weir_error *err);
/* Does the file have names of Vert.x Kue? */
bool srv_config_is_vertx(const config *c);

#endif
