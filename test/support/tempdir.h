/* tempdir.h - a directory for one test, gone with all that is in it when the test is over. */
#ifndef WEIR_TEST_TEMPDIR_H
#define WEIR_TEST_TEMPDIR_H

#include <stdbool.h>

enum { TEMPDIR_MAX = 256 };

/* Make one under $TMPDIR (or /tmp) and write its path. False: could not. */
bool tempdir_make(char path[TEMPDIR_MAX]);
void tempdir_remove(const char *path);

#endif
