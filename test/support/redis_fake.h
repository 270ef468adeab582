/* redis_fake.h - a server that speaks Redis's protocol and says what the test wants: errors, half a
 * reply, nothing. It listens at a port of 127.0.0.1, on a thread of its own.
 *
 * What a link asks when it connects it answers by itself, like a Redis 7 that is alone, unless told
 * otherwise; all other commands are calls, and get the next of the answers. Any thread. */
#ifndef WEIR_TEST_REDIS_FAKE_H
#define WEIR_TEST_REDIS_FAKE_H

#include <stdbool.h>
#include <stddef.h>

typedef struct fake fake;

fake *fake_start(void);             /* NULL: could not */
void  fake_stop(fake *f);           /* NULL is fine */
int   fake_port(const fake *f);

/* Answers of the calls to come, in the order in which they arrive, over whatever connection; "+OK"
 * after the last. The protocol as it is ("-LOADING x\r\n"), "=text" for a bulk string, or:
 *   "!cut"           close the connection
 *   "!half BYTES"    send these, then close
 *   "!silent"        never answer, nor anything behind it on this connection
 *   "!wait MS BYTES" send them after this long; what is behind it waits too
 * Forgets what there was. `answers` is copied, its strings are not. */
void fake_answers(fake *f, size_t n, const char *const *answers);
#define FAKE_ANSWERS(f, ...)                                                                      \
    fake_answers(f, sizeof (const char *[]){ __VA_ARGS__ } / sizeof (const char *),               \
                 (const char *[]){ __VA_ARGS__ })

/* The answer to HELLO, INFO, CONFIG, CLUSTER, FUNCTION ... from now on; NULL: as if nobody had said
 * anything. */
void fake_say(fake *f, const char *command, const char *answer);

/* From now on, read nothing (true), as if stopped. */
void fake_freeze(fake *f, bool frozen);

/* All calls that came, but for WAIT and WAITAOF for 0 servers: their arguments with a space
 * between, each with a ';' behind; with FUNCTION LOAD, ASKING and CLIENT KILL, without the rest of
 * the handshake. Forgets them. Answers `out`. */
char *fake_heard(fake *f, char *out, size_t size);
/* Wait until a call came that has `part` in it. False: it did not. */
bool  fake_wait_heard(fake *f, const char *part);
int   fake_connections(fake *f);    /* so far */
void  fake_close_all(fake *f);      /* the connections */

#endif
