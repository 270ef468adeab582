/* server_rig.h - a real server on a free port in the test's own process, over a queue of the
 * runtime fixture, and a small blocking HTTP client; one that waits too long fails the test. */
#ifndef WEIR_TEST_SERVER_RIG_H
#define WEIR_TEST_SERVER_RIG_H

#include <jansson.h>

#include "server/server.h"
#include "support/runtime_fixture.h"

typedef struct web {
    rt          t;              /* the queue: t.q, rt_add(&w.t, ...), rt_later(&w.t, ms) */
    srv_server *s;
    char        host[64];       /* "127.0.0.1:41234" */
} web;

/* Start on a store ("mem:", RT_SQLITE ...) with these options (NULL: none; `listen` is set). */
void web_start(web *w, const char *url, bool test_clock, const srv_options *opt);
void web_stop(web *w);          /* the store must be consistent */

/* `w` for all tests of a file: a server on mem: with a clock that the tests turn, and no options;
 * start() and stop() are the set-up and tear-down of each test. */
#define WEB_FIXTURE                                                                               \
    static web w;                                                                                 \
    static int start(void **state)                                                                \
    {                                                                                             \
        (void)state;                                                                              \
        web_start(&w, RT_MEM, true, NULL);                                                        \
        return 0;                                                                                 \
    }                                                                                             \
    static int stop(void **state)                                                                 \
    {                                                                                             \
        (void)state;                                                                              \
        web_stop(&w);                                                                             \
        return 0;                                                                                 \
    }

typedef struct web_answer {
    int    status;
    char  *head;                /* status line and headers */
    char  *body;                /* ends with NUL; chunks put together */
    size_t len;
} web_answer;
void web_free(web_answer *a);
/* The value of a header, any case; NULL: not there. Good until the next call. */
const char *web_header(const web_answer *a, const char *name);

/* One request on a connection of its own. `headers` are lines that end with \r\n, or NULL. A body
 * is sent as JSON unless the headers have a Content-Type. */
web_answer web_call(web *w, const char *method, const char *target, const char *body);
web_answer web_call_with(web *w, const char *method, const char *target, const char *headers,
                         const char *body);
/* The same, and the answer must have this status: its body as JSON (json_decref()). */
json_t *web_json(web *w, int status, const char *method, const char *target, const char *body);
/* The same, and `part` must be somewhere in its body. */
void web_says(web *w, int status, const char *part, const char *method, const char *target,
              const char *body);
/* The same, and it must be an error of this code with `part` in its message. */
void web_error(web *w, int status, const char *code, const char *part, const char *method,
               const char *target, const char *body);

/* By hand. */
int  web_connect(web *w);
void web_send(int fd, const char *text);
void web_send_bytes(int fd, const void *bytes, size_t n);
web_answer web_read(int fd);                /* the next answer; status 0: closed without one */
/* What is there of a stream, until `text` has been seen; *all grows (free()). */
void web_read_until(int fd, char **all, const char *text);
bool web_closed(int fd);                    /* wait: the server closes it, with nothing more */

#endif
