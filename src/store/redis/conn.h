/* conn.h - a connection, authenticated. */
#ifndef WEIR_STORE_REDIS_CONN_H
#define WEIR_STORE_REDIS_CONN_H
#include "store/redis/link.h"
weir_code weir__conn_open(redisContext **out, const redis_url *url, weir_error *err);
#endif
