/* ui.h - the page: files that are built into the program (ui/build.mjs makes the table). */
#ifndef WEIR_SERVER_UI_H
#define WEIR_SERVER_UI_H

#include <stddef.h>

typedef struct srv_asset {
    const char *path;               /* NULL ends the table; "/" is the page itself */
    const char *type;
    size_t      len, gzip_len;
    const char *bytes, *gzip;
} srv_asset;

extern const srv_asset srv_assets[];

#endif
