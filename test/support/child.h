/* child.h - other processes of a test: the test program itself, started again in a role.
 *
 * A child talks in lines: what it prints is gathered, what it is told comes on its standard input,
 * and it ends when that is closed. The main() of such a test begins with
 *
 *     if (child_role(argc, argv))
 *         return play(child_role(argc, argv), argv + 3);
 */
#ifndef WEIR_TEST_CHILD_H
#define WEIR_TEST_CHILD_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct child {
    pid_t           pid;            /* 0: it has ended */
    int             in, out;
    char            name[32];
    pthread_t       reader;
    pthread_mutex_t lock;           /* guards text */
    char           *text;           /* all it said so far, whole lines */
    size_t          len, room;
} child;

/* The role it was started in, whose arguments begin at argv[3]; NULL: this is the test itself. */
const char *child_role(int argc, char **argv);
/* In the child: print a line, at once and whole. Any thread. */
void child_print(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* In the child: the next line it is told; false: it is to end. */
bool child_told(char *line, size_t size);

/* Arguments are strings, NULL at the end. */
child *child_start(const char *role, ...);
void   child_tell(child *c, const char *line);
/* How many of its lines begin with `start`. */
size_t child_count(child *c, const char *start);
/* Wait for so many; the test fails when they do not come. */
void   child_until(child *c, const char *start, size_t n);
/* Call `each` for every line so far. */
void   child_each(child *c, void (*each)(const char *line, void *ctx), void *ctx);
/* Let it end by itself and release it; the test fails unless its status is 0. */
void   child_end(child *c);
/* kill -9. Its lines stay until child_free(). */
void   child_kill9(child *c);
void   child_free(child *c);        /* also one that still runs: for when a test has failed */

#endif
