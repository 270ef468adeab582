/* bus_client.c - see bus_client.h. */
#include "support/bus_client.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"

void bus_start_on(web *w, const char *url, const srv_options *opt)
{
    srv_options o = opt ? *opt : (srv_options){ 0 };
    o.bus.listen = "127.0.0.1:0";
    web_start(w, url, false, &o);
}

void bus_start(web *w, const srv_options *opt)
{
    bus_start_on(w, "mem:", opt);
}

int bus_dial(web *w)
{
    return tcp_dial(srv_bus_address(w->s));
}

void bus_register(int fd, const char *address)
{
    char text[WEIR_MAX_BUS_ADDRESS + 100];
    snprintf(text, sizeof text, "{\"type\":\"register\",\"address\":\"%s\"}", address);
    tcp_tell(fd, text);
    tcp_sync(fd);
}

void bus_send(int fd, const char *address, const char *reply, const char *headers,
              const char *body)
{
    weir_buf b = { 0 };
    weir__buf_printf(&b, "{\"type\":\"send\",\"address\":\"%s\"", address);
    if (reply)
        weir__buf_printf(&b, ",\"replyAddress\":\"%s\"", reply);
    if (headers)
        weir__buf_printf(&b, ",\"headers\":%s", headers);
    weir__buf_str(&b, ",\"body\":");
    weir__buf_str(&b, body);
    weir__buf_char(&b, '}');
    tcp_tell(fd, b.data);
    weir__buf_fini(&b);
}

json_t *bus_next(int fd)
{
    char   *text = tcp_next(fd);
    json_t *json = text ? json_loads(text, JSON_DECODE_ANY, NULL) : NULL;
    free(text);
    assert_non_null(json);
    return json;
}

json_t *bus_request(int fd, const char *address, const char *headers, const char *body)
{
    bus_send(fd, address, "r", headers, body);
    return bus_next(fd);
}
