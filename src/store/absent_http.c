/* absent_http.c - in place of store/http in a build with -Dhttp=false. */
#include "store/store.h"

const weir_store_ops weir__http_store = { .name = "http", .absent = "HTTP" };
